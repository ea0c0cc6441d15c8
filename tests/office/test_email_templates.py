"""The words of mails in the back office: all kinds, an editor, a preview, the way back."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from apps_config.models import App
from notifications.mail import SLUGS
from notifications.models import EmailTemplate
from tests.bookings.booking_drafts import NINE
from tests.office.staff import form_of, member, messages_of, superuser
from tests.queries import Queries
from tests.world import Tenant

pytestmark = pytest.mark.usefixtures("clock")

LIST = reverse("admin:notifications_emailtemplate_changelist")
SLUG = "confirmed_customer"
WORDS = {
    "subject": "See you on {{ date }}",
    "text": "Hi {{ name }}\n",
    "html": "<p>Hi {{ name }}</p>",
}


def page_of(app: App, slug: str = SLUG, page: str = "edit") -> str:
    return reverse(f"admin:notifications_emailtemplate_{page}", args=[app.pk, slug])


def ask(client: Client, path: str, body: Any) -> Any:
    return client.post(path, json.dumps(body), content_type="application/json")


def test_all_kinds_are_listed(tenant: Tenant) -> None:
    tenant.put(f"/templates/{SLUG}", WORDS)
    viewer = member(tenant.app, "viewer")

    answer = viewer.get(LIST)

    records = answer.context["records"]
    assert [record["slug"] for record in records] == list(SLUGS)
    assert [record["slug"] for record in records if record["custom"]] == [SLUG]
    page = answer.content.decode()
    assert [page_of(tenant.app, slug) in page for slug in SLUGS] == [True] * len(SLUGS)


def test_reminder_template_links_to_its_setting(tenant: Tenant) -> None:
    viewer = member(tenant.app, "viewer")
    link = f"{reverse('admin:apps_config_app_change', args=[tenant.app.pk])}#part-reminders"

    slugs = [
        slug for slug in SLUGS if link in viewer.get(page_of(tenant.app, slug)).content.decode()
    ]

    assert slugs == ["reminder_customer", "reminder_owner"]


def test_only_changed_parts_are_saved_and_can_be_restored(tenant: Tenant) -> None:
    editor = member(tenant.app, "editor")
    form = form_of(editor, page_of(tenant.app))
    tenant.put(f"/templates/{SLUG}", {"text": "By the API\n"})

    answer = editor.post(
        page_of(tenant.app), form | {"subject": "See you, {{ name }}"}, follow=True
    )
    found = tenant.get(f"/templates/{SLUG}").data
    back = editor.post(page_of(tenant.app), {"reset": "1"}, follow=True)

    assert messages_of(answer) == ["Saved."]
    assert (found["subject"], found["text"]) == ("See you, {{ name }}", "By the API\n")
    assert found["html"].startswith("<!DOCTYPE html>")
    assert messages_of(back) == ["The default template is restored."]
    assert not EmailTemplate.objects.exists()
    assert tenant.get(f"/templates/{SLUG}").data["custom"] is False


def test_line_breaks_are_kept(tenant: Tenant) -> None:
    editor = member(tenant.app, "editor")
    form = form_of(editor, page_of(tenant.app))
    as_sent = {name: value.replace("\n", "\r\n") for name, value in form.items()}

    nothing = editor.post(page_of(tenant.app), as_sent, follow=True)
    editor.post(page_of(tenant.app), as_sent | {"text": "One\r\n\r\nTwo\r\n"})

    assert messages_of(nothing) == ["Nothing was changed."]
    assert EmailTemplate.objects.get().text == "One\n\nTwo\n"
    assert form_of(editor, page_of(tenant.app))["text"] == "One\n\nTwo\n"


def test_errors_are_at_their_part_and_keep_the_input(tenant: Tenant) -> None:
    editor = member(tenant.app, "editor")
    form = form_of(editor, page_of(tenant.app))

    answer = editor.post(
        page_of(tenant.app),
        form | {"subject": "{{ details }}", "text": "{{ nothing }}", "html": ""},
    )

    parts = {part.name: part for part in answer.context["parts"]}
    assert (parts["subject"].value, parts["text"].value) == ("{{ details }}", "{{ nothing }}")
    api = tenant.put(
        f"/templates/{SLUG}", {"subject": "{{ details }}", "text": "{{ nothing }}", "html": ""}
    ).json["errors"]
    assert {name: part.faults for name, part in parts.items() if part.faults} == api
    assert not EmailTemplate.objects.exists()


@pytest.mark.parametrize(
    "body",
    [
        {},
        WORDS,
        {"subject": "{{ when }}"},
        {"html": "<script>alert(1)</script>{{ details }}"},
        {"text": "{{ nothing }}", "html": "{{ also_nothing }}"},
        {"subject": "x" * 201},
        {"booking_id": "0193a4c2-0000-7000-8000-0000000000ff"},
        {"booking_id": 7},
        [],
    ],
)
def test_preview_equals_the_api(tenant: Tenant, body: Any) -> None:
    tenant.put("/templates/rescheduled_owner", {"subject": "Moved: {{ what }}"})
    viewer = member(tenant.app, "viewer")

    for slug in ("confirmed_customer", "rescheduled_owner"):
        shown = ask(viewer, page_of(tenant.app, slug, "preview"), body)
        api = tenant.post(f"/templates/{slug}/preview", body)

        assert shown.status_code == api.status
        kept = ("data",) if api.status == 200 else ("errors",)
        assert shown.json() == {name: api.json[name] for name in kept}


def test_preview_of_a_booking_equals_the_api(
    tenant: Tenant, make_tenant: Callable[..., Tenant]
) -> None:
    ada = tenant.make_resource()
    booking = tenant.book(resource_id=ada["id"], **NINE).data
    body = WORDS | {"booking_id": booking["id"]}
    viewer, other = member(tenant.app, "viewer"), make_tenant()
    stranger = member(other.app, "owner")

    shown = ask(viewer, page_of(tenant.app, SLUG, "preview"), body)
    foreign = ask(stranger, page_of(other.app, SLUG, "preview"), body)

    assert shown.json() == tenant.post(f"/templates/{SLUG}/preview", body).json
    assert foreign.json() == {"errors": {"booking_id": ["There is no such booking."]}}


def test_a_preview_needs_a_post_and_json(tenant: Tenant) -> None:
    viewer = member(tenant.app, "viewer")
    path = page_of(tenant.app, SLUG, "preview")
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(viewer.account)

    assert viewer.get(path).status_code == 405
    bad = viewer.post(path, "{", content_type="application/json")
    assert (bad.status_code, bad.json()) == (422, {"errors": {"body": ["Must be JSON."]}})
    assert ask(strict, path, {}).status_code == 403


def test_viewer_cannot_change_and_foreign_members_get_404(
    tenant: Tenant, make_tenant: Callable[..., Tenant]
) -> None:
    tenant.put(f"/templates/{SLUG}", WORDS)
    row, other = EmailTemplate.objects.get(), make_tenant()
    viewer, stranger = member(tenant.app, "viewer"), member(other.app, "owner")

    assert viewer.post(page_of(tenant.app), {"reset": "1"}).status_code == 403
    assert "Save</button>" not in viewer.get(page_of(tenant.app)).content.decode()
    answers = [
        stranger.get(page_of(tenant.app)),
        stranger.post(page_of(tenant.app), {"reset": "1"}),
        ask(stranger, page_of(tenant.app, SLUG, "preview"), {}),
        stranger.get(f"{LIST}?app={tenant.app.pk}"),
        stranger.get(reverse("admin:notifications_emailtemplate_change", args=[row.pk])),
        stranger.get(reverse("admin:notifications_emailtemplate_history", args=[row.pk])),
        viewer.get(page_of(tenant.app, "no_such_kind")),
    ]
    assert [answer.status_code for answer in answers] == [404] * 7
    assert EmailTemplate.objects.count() == 1


def test_query_count_of_pages_is_constant(
    tenant: Tenant, make_tenant: Callable[..., Tenant]
) -> None:
    staff, counts = superuser(), []

    for apps in (1, 3, 30):
        App.objects.bulk_create(
            App(slug=f"more-{apps}-{number}", name="More") for number in range(apps)
        )
        with Queries(connection) as queries:
            staff.get(f"{LIST}?app={tenant.app.pk}")
            staff.get(page_of(tenant.app))
        counts.append(len(queries))

    assert counts == [counts[0]] * 3
