"""The bodies of calls: formats, cursors, signatures of event notifications, and calls about
resources, projects and deliveries.
"""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from standardwebhooks import Webhook as Receiver

from apps_config.models import Change, ChangeFeed, Membership
from notifications.models import Delivery, Webhook
from notifications.outbox.dispatcher import run_dispatcher
from notifications.tasks import number_and_tell_changes
from tests.bookings.booking_drafts import MARTY
from tests.notifications.test_change_feed import book, follow
from tests.notifications.test_dispatcher import hook, soon
from tests.sinks import HookSink
from tests.world import Tenant

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]


@pytest.fixture
def resource(tenant: Tenant) -> Any:
    return tenant.make_resource()


def test_standard_format_has_type_timestamp_and_data(
    tenant: Tenant, resource: Any, hooks: HookSink
) -> None:
    hook(tenant, hooks)
    hook(tenant, hooks, "/standard", format="standard")
    booking = book(tenant, resource)
    run_dispatcher("webhook")

    bodies = {call.path: call.json for call in hooks.calls}
    plain = bodies["/hook"]
    assert bodies["/standard"] == {
        "type": "booking.confirmed",
        "timestamp": bodies["/standard"]["timestamp"],
        "data": plain,
    }
    assert bodies["/standard"]["timestamp"].startswith(plain["change"]["at"][:19])
    assert plain["id"] == booking["id"]


def test_standard_format_has_the_time_of_the_change_of_an_object(
    tenant: Tenant, resource: Any, hooks: HookSink
) -> None:
    """The call is queued later, by the worker that reads the feed."""
    hook(tenant, hooks, format="standard", kinds=["resource.updated"])
    tenant.put(f"/resources/{resource['id']}", {"name": "Bea"})
    changed_at = timezone.now() - timedelta(hours=1)
    Change.objects.filter(type="resource", action="updated").update(at=changed_at)
    Webhook.objects.update(created_at=changed_at - timedelta(hours=1))
    number_and_tell_changes()
    run_dispatcher("webhook")

    (call,) = hooks.calls
    assert call.json["timestamp"] == changed_at.replace(microsecond=0).isoformat()
    assert call.json["timestamp"] == call.json["data"]["at"].replace("+0000", "+00:00")


def test_thin_format_has_kind_id_and_cursor(tenant: Tenant, resource: Any, hooks: HookSink) -> None:
    hook(tenant, hooks, format="thin", kinds=["booking.confirmed", "resource.updated"])
    before = tenant.get("/changes").json["next_cursor"]
    booking = book(tenant, resource)
    tenant.put(f"/resources/{resource['id']}", {"name": "Bea"})
    number_and_tell_changes()
    run_dispatcher("webhook")

    bodies = {call.event: call.json for call in hooks.calls}
    assert bodies["booking.confirmed"] == {
        "kind": "booking.confirmed",
        "id": booking["id"],
        "cursor": bodies["booking.confirmed"]["cursor"],
    }
    assert {**bodies["resource.updated"], "cursor": ""} == {
        "kind": "resource.updated",
        "id": resource["id"],
        "cursor": "",
    }
    assert follow(tenant, before) != []


def test_cursor_of_a_call_lists_its_change(tenant: Tenant, resource: Any, hooks: HookSink) -> None:
    hook(tenant, hooks)
    tenant.get("/changes")
    booking = book(tenant, resource)
    run_dispatcher("webhook")
    (call,) = hooks.calls

    rows = follow(tenant, call.json["cursor"], "&types=booking")

    assert [(row["action"], row["object_id"]) for row in rows] == [("confirm", booking["id"])]


def test_calls_about_resources_and_projects(tenant: Tenant, hooks: HookSink) -> None:
    hook(tenant, hooks, kinds=["resource.created", "project.updated", "project.deleted"])
    hook(tenant, hooks, "/bookings")
    resource = tenant.post("/resources", {"name": "Ada", "timezone": "UTC"}).data
    project = tenant.post("/projects", {"name": "Check-up"}).data
    tenant.put(f"/projects/{project['id']}", {"name": "Visit"})
    tenant.delete(f"/projects/{project['id']}")
    number_and_tell_changes()
    number_and_tell_changes()
    run_dispatcher("webhook")

    told = {call.event: call.json for call in hooks.calls}
    assert sorted(call.path for call in hooks.calls) == ["/hook"] * 3
    assert told.keys() == {"resource.created", "project.updated", "project.deleted"}
    made = told["resource.created"]
    assert made["object"] == tenant.get(f"/resources/{resource['id']}").data
    assert (made["kind"], made["type"], made["action"]) == (
        *("resource.created", "resource", "created"),
    )
    assert (told["project.deleted"]["object_id"], told["project.deleted"]["object"]) == (
        *(project["id"], None),
    )
    after = follow(tenant, made["cursor"], "&types=project")
    assert [row["action"] for row in after] == ["created", "updated", "deleted"]


def test_new_webhook_is_told_nothing_that_was_before(tenant: Tenant, hooks: HookSink) -> None:
    tenant.post("/resources", {"name": "Ada", "timezone": "UTC"})
    hook(tenant, hooks, kinds=["resource.created"])
    number_and_tell_changes()
    feed = ChangeFeed.objects.get(app=tenant.app)
    tenant.post("/resources", {"name": "Bea", "timezone": "UTC"})
    number_and_tell_changes()
    run_dispatcher("webhook")

    assert feed.called_number == feed.last_number > 0
    assert [call.json["object"]["name"] for call in hooks.calls] == ["Bea"]


def test_failed_delivery_is_told_but_not_the_failure_of_its_call(
    tenant: Tenant, hooks: HookSink
) -> None:
    webhook = hook(tenant, hooks, kinds=["delivery.failed"])
    tenant.post(f"/webhooks/{webhook.id}/test")
    failed = Delivery.objects.get(kind="test")

    def fail(row: Delivery) -> None:
        row.state, row.next_at, row.finished_at = Delivery.FAILED, None, soon()
        row.save()

    fail(failed)
    number_and_tell_changes()
    call = Delivery.objects.get(kind="delivery.failed")
    fail(call)
    number_and_tell_changes()

    assert Delivery.objects.filter(kind="delivery.failed").count() == 1
    body = json.loads(call.body)
    assert (body["kind"], body["object"]["id"], body["action"]) == (
        *("delivery.failed", str(failed.id), "failed"),
    )


def test_event_notifications_are_signed_with_the_secret_of_the_app(
    tenant: Tenant, resource: Any, hooks: HookSink
) -> None:
    secret = tenant.get("/app?include=signing_secret").data["signing_secret"]
    notification = {
        "type": "webhook",
        "settings": {"url": hooks.url("/door")},
        "when": {"type": "before", "unit": "mins", "time": 60},
    }
    start = soon()
    span = {"start": start.isoformat(), "end": (start + timedelta(hours=1)).isoformat()}
    body = {"resource_id": resource["id"], "what": "A", "customer": MARTY, **span}
    made = tenant.post("/bookings", {**body, "event_notifications": [notification]})
    Delivery.objects.filter(kind="reminder").update(
        next_at=soon(hours=-100), due_at=soon(hours=-100)
    )
    run_dispatcher("webhook")

    (call,) = hooks.calls
    assert Receiver(secret).verify(call.body, dict(call.headers))["id"] == made.data["id"]


def test_only_owners_and_server_keys_read_the_signing_secret(tenant: Tenant) -> None:
    editor = tenant.member("editor@example.com", Membership.EDITOR)
    owner = tenant.member("owner@example.com", Membership.OWNER)

    secret = tenant.get("/app?include=signing_secret").data["signing_secret"]

    assert "signing_secret" not in tenant.get("/app").data
    assert editor.get("/app?include=signing_secret").status == 403
    assert owner.get("/app?include=signing_secret").data["signing_secret"] == secret
