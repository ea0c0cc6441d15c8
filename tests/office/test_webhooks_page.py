"""Webhooks and deliveries in the back office."""

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from ipaddress import ip_network
from typing import Any

import pytest
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from notifications.models import Attempt, Delivery, Webhook
from notifications.outbox.dispatcher import run_dispatcher
from notifications.webhooks.services import create_webhook, delete_webhook
from tests.bookings.booking_drafts import span
from tests.office.staff import faults, form_of, member, messages_of, secret_on, superuser
from tests.queries import Queries
from tests.sinks import Answer, HookSink, hook_sink
from tests.world import Tenant

pytestmark = pytest.mark.django_db

LIST = reverse("admin:notifications_webhook_changelist")
ADD = reverse("admin:notifications_webhook_add")
URL = "https://example.com/hook"


@pytest.fixture
def hooks(settings: Any) -> Iterator[HookSink]:
    """A receiver of webhook calls; loopback is allowed."""
    settings.WEBHOOK_ALLOWED_NETWORKS = [ip_network("127.0.0.0/8")]
    with hook_sink() as sink:
        yield sink


def page_of(webhook: Webhook, page: str = "change") -> str:
    return reverse(f"admin:notifications_webhook_{page}", args=[webhook.pk])


def delivery_page(delivery: Delivery, page: str = "change") -> str:
    return reverse(f"admin:notifications_delivery_{page}", args=[delivery.pk])


def make_hook(tenant: Tenant, url: str = URL) -> Webhook:
    return create_webhook(app=tenant.app, given={"url": url})[0]


def test_webhook_is_created_and_secret_shown_once(tenant: Tenant) -> None:
    editor = member(tenant.app, "editor")
    form = form_of(editor, ADD) | {"url": URL, "method": "put", "expected_response_code": "202"}
    assert form["app"] == str(tenant.app.pk)

    told = {"states": ["confirmed", "rescheduled"], "kinds": ["booking.updated"]}
    answer = editor.post(ADD, form | {"graph": "confirm_decline"} | told)

    secret = secret_on(answer)
    webhook = Webhook.objects.get()
    [shown] = tenant.get("/webhooks").data
    expected = {"url": URL, "method": "put", "graph": "confirm_decline", **told, "active": True}
    assert {name: shown[name] for name in expected} == expected
    assert shown["expected_response_code"] == 202
    pages = [editor.get(path).content.decode() for path in (LIST, page_of(webhook))]
    pages.append(editor.get(page_of(webhook, "history")).content.decode())
    assert secret.startswith("whsec_")
    assert secret.removeprefix("whsec_") not in "".join(pages)
    assert [URL in page for page in pages] == [True, True, True]


def test_only_changed_fields_are_saved(tenant: Tenant) -> None:
    webhook = make_hook(tenant)
    Webhook.objects.filter(pk=webhook.pk).update(
        active=False, disabled_reason="Gone.", failures=30, failing_since=timezone.now()
    )
    editor = member(tenant.app, "editor")
    form = form_of(editor, page_of(webhook))
    assert "active" not in form
    tenant.put(f"/webhooks/{webhook.pk}", {"description": "by the API"})

    editor.post(page_of(webhook), form | {"active": "on", "graph": "instant"})

    webhook.refresh_from_db()
    found = (webhook.active, webhook.disabled_reason, webhook.failures, webhook.graph)
    assert (*found, webhook.description) == (True, "", 0, "instant", "by the API")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("url", "http://127.0.0.1/x"),
        ("url", "nothing"),
        ("expected_response_code", "99"),
        ("graph", "unknown"),
        ("states", ["unknown"]),
    ],
)
def test_wrong_values_are_refused_as_in_the_api(tenant: Tenant, field: str, value: Any) -> None:
    editor = member(tenant.app, "editor")

    answer = editor.post(ADD, form_of(editor, ADD) | {"url": URL} | {field: value})

    assert list(faults(answer)) == [field]
    assert not Webhook.objects.exists()


def test_webhook_over_the_limit_is_refused(tenant: Tenant) -> None:
    Webhook.objects.bulk_create(Webhook(app=tenant.app, url=URL, secret="x") for _ in range(100))
    editor = member(tenant.app, "editor")

    answer = editor.post(ADD, form_of(editor, ADD) | {"url": URL}, follow=True)

    assert messages_of(answer) == ["An app has at most 100 webhooks."]
    assert Webhook.objects.count() == 100


def test_rotate_after_confirmation_shows_secret_once(tenant: Tenant) -> None:
    webhook = make_hook(tenant)
    editor = member(tenant.app, "editor")

    asked = editor.get(page_of(webhook, "rotate"))
    before = Webhook.objects.get().secret
    secret = secret_on(editor.post(page_of(webhook, "rotate")))

    assert b"Create a new secret?" in asked.content
    assert before == webhook.secret != Webhook.objects.get().secret
    assert secret.removeprefix("whsec_") not in editor.get(page_of(webhook)).content.decode()


def test_deleted_webhook_is_hidden_and_keeps_its_log(tenant: Tenant) -> None:
    webhook = make_hook(tenant)
    tenant.post(f"/webhooks/{webhook.pk}/test")
    editor = member(tenant.app, "editor")

    asked = editor.get(page_of(webhook, "delete")).context
    editor.post(page_of(webhook, "delete"))

    webhook.refresh_from_db()
    assert (asked["title"], asked["button"]) == (f"Delete {URL}?", "Delete")
    assert (webhook.deleted_at is None, tenant.get("/webhooks").data) == (False, [])
    assert [(delivery.state, delivery.reason) for delivery in Delivery.objects.all()] == [
        ("skipped", "The webhook was deleted.")
    ]
    assert editor.post(page_of(webhook), {"url": "https://example.com/other"}).status_code == 403


def test_viewer_cannot_change_webhooks(tenant: Tenant) -> None:
    webhook = make_hook(tenant)
    viewer = member(tenant.app, "viewer")

    page = viewer.get(page_of(webhook))
    answers = [
        viewer.post(page_of(webhook), {"url": "https://example.com/other"}),
        viewer.post(page_of(webhook, "test")),
        viewer.post(page_of(webhook, "rotate")),
        viewer.post(page_of(webhook, "delete"), {"post": "yes"}),
        viewer.get(ADD),
    ]

    assert URL in page.content.decode()
    assert b"Send a test call" not in page.content
    assert [answer.status_code for answer in answers] == [403] * 5
    assert (Webhook.objects.get().url, Delivery.objects.count()) == (URL, 0)


def test_webhook_of_another_app_is_404(tenant: Tenant, make_tenant: Callable[..., Tenant]) -> None:
    other = make_tenant()
    webhook = make_hook(other)
    other.post(f"/webhooks/{webhook.pk}/test")
    delivery = Delivery.objects.get()
    owner = member(tenant.app, "owner")
    # A viewer there as well may look, and do no more than that.
    both = member(other.app, "viewer")
    both.account.memberships.create(app=tenant.app, role="owner")

    statuses = [
        owner.get(page_of(webhook)).status_code,
        owner.get(page_of(webhook, "history")).status_code,
        owner.post(page_of(webhook, "test")).status_code,
        owner.post(page_of(webhook, "rotate")).status_code,
        owner.get(delivery_page(delivery)).status_code,
        owner.post(delivery_page(delivery, "again")).status_code,
        both.post(page_of(webhook, "test")).status_code,
        both.post(delivery_page(delivery, "again")).status_code,
    ]
    listed = owner.get(f"{reverse('admin:notifications_delivery_changelist')}?webhook={webhook.pk}")
    action = {"action": "switch_off", "_selected_action": [str(webhook.pk)]}
    switched = both.post(LIST, action, follow=True)
    made = both.post(ADD, form_of(both, ADD) | {"url": URL, "app": str(other.app.pk)})

    assert statuses == [404, 404, 404, 404, 404, 404, 403, 403]
    assert [*listed.context["cl"].result_list] == []
    assert webhook.url not in listed.content.decode()
    assert messages_of(switched) == [f"{webhook}: you may only view it."]
    assert faults(made) == {
        "app": ["Select a valid choice. That choice is not one of the available choices."]
    }
    assert (Webhook.objects.count(), Webhook.objects.get().active) == (1, True)
    assert Delivery.objects.count() == 1


# --- Deliveries -----------------------------------------------------------------------------------
@pytest.mark.django_db(transaction=True)
def test_test_call_is_delivered_and_redelivered(
    tenant: Tenant, hooks: HookSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks.answers["/hook"] = Answer(500, body=b"<b>no</b>")
    webhook = make_hook(tenant, hooks.url("/hook"))
    editor = member(tenant.app, "editor")

    answer = editor.post(page_of(webhook, "test"), follow=True)
    run_dispatcher("webhook")
    delivery = Delivery.objects.get()
    failed = editor.get(delivery_page(delivery)).content.decode()
    hooks.answers["/hook"] = Answer(200)
    again = editor.post(delivery_page(delivery, "again"), follow=True)
    run_dispatcher("webhook")
    done = editor.get(delivery_page(delivery)).content.decode()

    assert messages_of(answer) == ["A test call is scheduled. This page shows the result."]
    assert messages_of(again) == [f"Webhook call: test to {webhook.url} will be sent again."]
    assert [call.id for call in hooks.calls] == [str(delivery.pk)] * 2
    assert ("&lt;b&gt;no&lt;/b&gt;" in failed, "status 500" in failed) == (True, True)
    assert ("status 200" in done, "<b>no</b>" in done) == (True, False)
    assert json.loads(hooks.calls[0].body)["id"] in done
    log = editor.get(page_of(webhook)).content.decode()
    assert f'href="{delivery_page(delivery)}"' in log
    assert "Of the latest 1000: 1 delivered." in log


def test_delivery_page_is_read_only_for_viewers(tenant: Tenant) -> None:
    resource = tenant.make_resource(email="ada@example.com")
    booked = tenant.book(resource_id=resource["id"], **span("09:00", "10:00"))
    viewer = member(tenant.app, "viewer")
    delivery = Delivery.objects.filter(recipient="customer").first()

    page = viewer.get(delivery_page(delivery)).content.decode()
    answers = [viewer.post(delivery_page(delivery)), viewer.post(delivery_page(delivery, "again"))]
    listed = viewer.get(reverse("admin:notifications_delivery_changelist"))

    assert reverse("admin:bookings_booking_change", args=[booked.data["id"]]) in page
    assert "marty@example.com" in page
    assert "Send now" not in page
    assert [answer.status_code for answer in answers] == [403, 403]
    assert b"send_again" not in listed.content


def found(client: Any, **query: str) -> list[Delivery]:
    answer = client.get(reverse("admin:notifications_delivery_changelist"), query)
    return list(answer.context["cl"].result_list)


def test_deliveries_are_found_by_webhook_and_ids(tenant: Tenant) -> None:
    first, second = make_hook(tenant), make_hook(tenant, f"{URL}/2")
    for webhook in (first, second):
        tenant.post(f"/webhooks/{webhook.pk}/test")
    of_second, of_first = Delivery.objects.all()
    editor = member(tenant.app, "editor")

    assert found(editor, webhook=str(first.pk)) == [of_first]
    assert found(editor, q=str(second.pk)) == [of_second]
    assert found(editor, q=str(of_first.pk)) == [of_first]
    assert found(editor, webhook="nonsense") == []
    assert found(editor, q="nonsense") == []
    assert found(editor) == [of_second, of_first]


@pytest.mark.parametrize("path", [LIST, reverse("admin:notifications_delivery_changelist")])
@pytest.mark.parametrize("counts", [(1, 3), pytest.param((1, 3, 300), marks=pytest.mark.deep)])
def test_query_count_of_lists_is_constant(
    tenant: Tenant, path: str, counts: tuple[int, ...]
) -> None:
    editor = member(tenant.app, "editor")
    now, asked = timezone.now(), []

    for rows in counts:
        Webhook.objects.bulk_create(
            Webhook(app=tenant.app, url=f"{URL}/{number}", secret="x") for number in range(rows)
        )
        webhook = Webhook.objects.first()
        Delivery.objects.bulk_create(
            Delivery(
                app=tenant.app,
                webhook=webhook,
                type="webhook",
                kind="test",
                due_at=now,
                next_at=now,
                expires_at=now + timedelta(hours=1),
                created_at=now,
            )
            for _ in range(rows)
        )
        for page in (path, page_of(webhook)):
            editor.get(page)
        with Queries(connection) as queries:
            assert [editor.get(page).status_code for page in (path, page_of(webhook))] == [200, 200]
        asked.append(len(queries))

    assert asked == [asked[0]] * len(counts)


def test_query_count_of_a_delivery_page_is_constant(tenant: Tenant) -> None:
    webhook = make_hook(tenant)
    tenant.post(f"/webhooks/{webhook.pk}/test")
    delivery, counts = Delivery.objects.get(), []
    editor = member(tenant.app, "editor")

    for tries in (1, 3, 300):
        Attempt.objects.bulk_create(
            Attempt(app_id=delivery.app_id, delivery=delivery, at=timezone.now(), seconds=1)
            for _ in range(tries)
        )
        with Queries(connection) as queries:
            editor.get(delivery_page(delivery))
        counts.append(len(queries))

    assert counts == [counts[0]] * 3


def test_deleted_webhook_page_is_readable(tenant: Tenant) -> None:
    webhook = make_hook(tenant)
    delete_webhook(webhook, now=timezone.now())

    page = superuser().get(page_of(webhook)).content.decode()

    assert URL in page
    assert "Send a test call" not in page
