"""The history of a row: who changed what, when, and from what to what."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from apps_config.models import Credential
from notifications.models import EmailTemplate, Webhook
from tests.office.staff import form_of, member, superuser
from tests.queries import Queries
from tests.world import NOW, Tenant

pytestmark = pytest.mark.usefixtures("clock")


def history_of(label: str, pk: Any) -> str:
    return reverse(f"admin:{label}_history", args=[pk])


def steps(client: Client, path: str) -> list[tuple[str, str, list[tuple[str, str, str]]]]:
    answer = client.get(path)
    assert answer.status_code == 200
    return [
        (step.what, step.who, [tuple(change) for change in step.changes])
        for step in answer.context["steps"]
    ]


def test_history_of_an_app_shows_every_setting(tenant: Tenant, clock: Any) -> None:
    clock.shift(60)
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"from_name": "Old", "x": {"y": 1}}})
    clock.shift(60)
    editor = member(tenant.app, "editor", "ed@example.com")
    page = reverse("admin:apps_config_app_change", args=[tenant.app.pk])
    editor.post(page, form_of(editor, page) | {"name": "New name", "from_name": "New"})
    Credential.objects.update(description="Night job")

    # A viewer is told as much: a key's public beginning is no secret.
    found = steps(member(tenant.app, "viewer"), history_of("apps_config_app", tenant.app.pk))

    key = Credential.objects.get()
    assert found == [
        (
            "changed",
            "ed@example.com",
            [
                ("name", tenant.app.name, "New name"),
                ("settings: from name", "Old", "New"),
            ],
        ),
        (
            "changed",
            f"server key {key.prefix}… (Night job)",
            [
                ("settings: from name", "–", "Old"),
                ("settings: x", "–", "Y: 1"),
            ],
        ),
        (
            "made",
            "the service",
            [("slug", "–", tenant.app.slug), ("name", "–", tenant.app.name), ("mode", "–", "live")],
        ),
    ]


def test_history_shows_times(tenant: Tenant) -> None:
    answer = superuser().get(history_of("apps_config_app", tenant.app.pk))

    [step] = answer.context["steps"]
    assert step.at == NOW == datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
    assert "Fri 20 Nov 2026, 09:30:00" in answer.content.decode()


def test_history_of_a_template_survives_deletion(tenant: Tenant, clock: Any) -> None:
    tenant.put("/templates/confirmed_customer", {"subject": "One <b>"})
    row = EmailTemplate.objects.get()
    clock.shift(60)
    editor = member(tenant.app, "editor", "ed@example.com")
    page = reverse(
        "admin:notifications_emailtemplate_edit", args=[tenant.app.pk, "confirmed_customer"]
    )
    editor.post(page, {"subject": "Two", "shown-subject": "One <b>"})
    clock.shift(60)
    editor.post(page, {"reset": "1"})

    path = history_of("notifications_emailtemplate", row.pk)
    found = [(what, changes) for what, _, changes in steps(editor, path)]

    assert found == [
        ("removed", []),
        ("changed", [("subject", "One <b>", "Two")]),
        (
            "made",
            [
                ("slug", "–", "Confirmation e-mail to the customer"),
                ("subject", "–", "One <b>"),
            ],
        ),
    ]
    assert path in editor.get(page).content.decode()
    history = editor.get(path)
    assert history.context["title"] == "History: Confirmation e-mail to the customer"
    assert "One &lt;b&gt;" in history.content.decode()


def test_rows_and_names_of_the_api_are_in_words(tenant: Tenant, clock: Any) -> None:
    schedule = tenant.post("/schedules", {"name": "Shop hours"}).data["id"]
    ada = tenant.make_resource("Ada", schedule_id=schedule)
    tenant.put(f"/resources/{ada['id']}", {"availability_constraints": [{"block_weekends": {}}]})
    project = tenant.make_project(ada["id"])["id"]
    clock.shift(60)
    tenant.put(f"/projects/{project}", {"availability": {"mode": "roundrobin_prioritized"}})
    hook = {"url": "https://example.com/hook", "states": ["cancelled_by_customer"]}
    webhook = tenant.post("/webhooks", hook).data["id"]
    viewer = member(tenant.app, "viewer")

    changes = {
        label: {
            name: new
            for _, _, fields in reversed(steps(viewer, history_of(label, pk)))
            for name, _, new in fields
        }
        for label, pk in (
            ("availability_resource", ada["id"]),
            ("availability_project", project),
            ("notifications_webhook", webhook),
        )
    }

    assert changes["availability_resource"]["schedule"] == "Shop hours"
    assert changes["availability_resource"]["opening hours"] == "Closed Sat–Sun"
    assert changes["availability_project"]["availability: mode"] == "In order"
    assert changes["notifications_webhook"]["states"] == "cancelled by customer"


def test_no_secret_is_in_a_history(tenant: Tenant) -> None:
    secrets = [tenant.post("/webhooks", {"url": "https://example.com/hook"}).data["secret"]]
    webhook = Webhook.objects.get()
    secrets.append(tenant.post(f"/webhooks/{webhook.pk}/rotate").data["secret"])
    webhook.refresh_from_db()
    secrets += [webhook.secret, webhook.previous_secret]
    ada = tenant.make_resource(email="ada@example.com", password="harbour-lights-7")
    staff = superuser()

    pages = [
        staff.get(history_of("notifications_webhook", webhook.pk)).content.decode(),
        staff.get(history_of("availability_resource", ada["id"])).content.decode(),
    ]

    shown = "".join(pages)
    assert ("https://example.com/hook" in shown, "ada@example.com" in shown) == (True, True)
    assert [secret.removeprefix("whsec_") in shown for secret in secrets] == [False] * 4
    assert ("pbkdf2" in shown, "harbour-lights-7" in shown) == (False, False)


def rows_of(tenant: Tenant) -> dict[str, Any]:
    """A row of each model whose history is kept."""
    tenant.put("/templates/confirmed_customer", {"subject": "Hello"})
    tenant.post("/webhooks", {"url": "https://example.com/hook"})
    ada = tenant.make_resource(availability_constraints=[{"block_weekends": {}}])
    project = tenant.make_project(ada["id"])
    return {
        "apps_config_app": tenant.app.pk,
        "availability_resource": ada["id"],
        "availability_project": project["id"],
        "notifications_webhook": tenant.app.webhooks.get().pk,
        "notifications_emailtemplate": tenant.app.email_templates.get().pk,
    }


def test_history_of_other_apps_is_404(tenant: Tenant, make_tenant: Callable[..., Tenant]) -> None:
    rows, viewer = rows_of(tenant), member(tenant.app, "viewer")
    stranger = member(make_tenant().app, "owner")
    versions = {label: f"{history_of(label, pk)}1/" for label, pk in rows.items()}

    seen = {label: viewer.get(history_of(label, pk)).status_code for label, pk in rows.items()}
    foreign = {label: stranger.get(history_of(label, pk)).status_code for label, pk in rows.items()}
    version = {label: viewer.get(path, follow=True).status_code for label, path in versions.items()}
    turned_back = {
        label: viewer.post(path, follow=True).status_code for label, path in versions.items()
    }

    assert seen == dict.fromkeys(rows, 200)
    assert foreign == version == turned_back == dict.fromkeys(rows, 404)


def test_history_of_a_deleted_row_is_scoped_to_its_app(
    tenant: Tenant, make_tenant: Callable[..., Tenant]
) -> None:
    rows = rows_of(tenant)
    tenant.put("/templates/confirmed_customer", dict.fromkeys(("subject", "text", "html")))
    stranger, viewer = member(make_tenant().app, "owner"), member(tenant.app, "viewer")
    page = history_of("notifications_emailtemplate", rows["notifications_emailtemplate"])

    assert stranger.get(page).status_code == 404
    assert steps(viewer, page)[0][0] == "removed"


@pytest.mark.parametrize("pk", ["nonsense", "0193a4c2-0000-7000-8000-0000000000ff"])
def test_history_of_an_unknown_row_is_404(tenant: Tenant, pk: str) -> None:
    assert superuser().get(history_of("apps_config_app", pk)).status_code == 404


def test_long_history_is_paginated_with_constant_queries(tenant: Tenant, clock: Any) -> None:
    viewer, counts = member(tenant.app, "viewer"), []
    path = history_of("apps_config_app", tenant.app.pk)
    done = 0

    for changes in (1, 3, 60):
        while done < changes:
            done += 1
            clock.shift(1)
            tenant.put(f"/apps/{tenant.app.slug}", {"name": f"Name {done}"})
        with Queries(connection) as queries:
            first = steps(viewer, path)
        counts.append(len(queries))

    second = steps(viewer, f"{path}?p=2")
    assert counts == [counts[0]] * 3
    assert (len(first), len(second)) == (50, 11)
    assert first[-1][2] == [("name", "Name 10", "Name 11")]
    assert second[0][2] == [("name", "Name 9", "Name 10")]
