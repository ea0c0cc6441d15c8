"""Requests that the examples of the API's description make, against rows of one app."""

import json
import uuid
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from ipaddress import ip_network
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from django.db import transaction
from django.test import override_settings
from django.utils import timezone

from access.serializers import CredentialSerializer, LogInSerializer, MemberSerializer
from availability.models import Resource
from availability.serializers.calendars import CalendarSerializer
from availability.serializers.events import EventSerializer, HoldSerializer
from availability.serializers.projects import PROJECT_EXAMPLE
from availability.serializers.resources import RESOURCE_EXAMPLE, ScheduleSerializer
from bookings.models import Booking, Customer
from bookings.pages.action_links import action_url
from bookings.serializers.responses import BookingSerializer
from bookings.services import code_of
from external_calendars.examples import FEED_ADDRESS
from notifications.links.resource_password_reset import password_url
from notifications.links.unsubscribe import unsubscribe_headers
from notifications.outbox.serializers import DeliverySerializer
from notifications.webhooks.serializers import WebhookSerializer
from tests.description import Operation, description, examples_of
from tests.external_calendars.front import Answer, Front
from tests.external_calendars.icalendars import one
from tests.local import LocalApp, LocalCaller

FORM = "application/x-www-form-urlencoded"
EXAMPLE_IDS = {
    "resource_id": RESOURCE_EXAMPLE["id"],
    "schedule_id": ScheduleSerializer.example()["id"],
    "calendar_id": CalendarSerializer.example()["id"],
    "credential_id": CredentialSerializer.example()["id"],
    "event_id": EventSerializer.example()["id"],
    "member_id": MemberSerializer.example()["id"],
    "project_id": PROJECT_EXAMPLE["id"],
    "booking_id": BookingSerializer.example()["id"],
    "reservation_id": HoldSerializer.example()["reservation_id"],
    "webhook_id": WebhookSerializer.example()["id"],
    "delivery_id": DeliverySerializer.example()["id"],
    "owner_email": LogInSerializer.example()["email"],
    "new_email": RESOURCE_EXAMPLE["email"],
    "feed_address": FEED_ADDRESS,
}
EXAMPLE_PROJECT = {"availability": {"length": "30 minutes", "to": "4 weeks"}}
EXAMPLE_MONDAY = date(2026, 11, 23)
EXAMPLE_VALUES = {
    "action": "cancel",
    "template_slug": "confirmed_customer",
    "project_slug": "no-such-project",
    "provider": "google",
    "external_id": "new",
}


def filled(text: str, ids: dict[str, str]) -> str:
    """An example's JSON or a path with real ids, and with a Monday that is yet to come."""
    for name, example_id in EXAMPLE_IDS.items():
        text = text.replace(example_id, ids[name]).replace(f"{{{name}}}", ids[name])
    for name, value in (EXAMPLE_VALUES | ids).items():
        text = text.replace(f"{{{name}}}", value)
    today = datetime.now(UTC).date()
    monday = today + timedelta(days=14 - today.weekday())
    return text.replace(EXAMPLE_MONDAY.isoformat(), monday.isoformat())


def needed_query(operation: Operation) -> str:
    parameters = [description().resolve(one) for one in operation.content.get("parameters", [])]
    needed = [
        parameter
        for parameter in parameters
        if parameter["in"] == "query" and parameter.get("required")
    ]
    query = urlencode({one["name"]: one["schema"]["examples"][0] for one in needed})
    return f"?{query}" if query else ""


def path_of(operation: Operation, ids: dict[str, str]) -> str:
    """The path and query of an operation; those of a link in a mail are signed."""
    if operation.path.endswith("/feed.ics"):
        url = ids["feed"]
    elif operation.path.endswith("external_action/{action}"):
        booking = Booking.objects.select_related("event").get(id=ids["booking_id"])
        url = action_url(booking, "cancel_by_customer", booking.event.end)
    elif operation.path.endswith("{resource_id}/password"):
        resource = Resource.objects.get(id=ids["resource_id"])
        url = password_url(resource, timezone.now() + timedelta(hours=1))
    elif operation.path.endswith("/callback"):
        [state] = parse_qs(urlsplit(ids["consent_url"]).query)["state"]
        url = f"{operation.path}?state={state}&error=access_denied"
    elif operation.path.endswith("/unsubscribe"):
        customer = Customer.objects.filter(booking=ids["booking_id"])[0]
        url = unsubscribe_headers(customer, timezone.now())["List-Unsubscribe"].strip("<>")
    else:
        return filled(operation.path, ids) + needed_query(operation)
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}"


@pytest.fixture(scope="module")
def example_app(
    module_transaction: None, example_feed: Front
) -> Iterator[tuple[LocalApp, dict[str, str]]]:
    """An app, and the ids of one of everything in it."""
    loopback = [ip_network("127.0.0.0/8")]
    with override_settings(WEBHOOK_ALLOWED_NETWORKS=loopback, WEBHOOK_HTTPS_ONLY=False):
        app = LocalApp()
        ids = app.make_ids(EXAMPLE_PROJECT)
        ids |= {"feed": ids["feed_address"], "feed_address": f"{example_feed.url}/ada.ics"}
        yield app, ids


@pytest.fixture(scope="module")
def example_feed() -> Iterator[Front]:
    """An iCalendar feed with one event, which the examples connect."""
    text = one("DTSTART:20301201T100000Z", "DURATION:PT1H").encode()
    front = Front()
    front.answer = lambda call: Answer(200, text, {"Content-Type": "text/calendar"})
    yield front
    front.stop()


UNVERIFIED = {"what": "A", "customer": {"name": "Marty", "email": "marty@example.com"}}


def next_slot(app: LocalApp, project_id: str) -> dict[str, str]:
    """`start` and `end` of the project's first free slot."""
    slot = app.post("/v2/availability", {"project_id": project_id}).data[0]
    return {name: slot[name] for name in ("start", "end")}


CONSENT = {"provider": "google", "redirect_url": "https://app.example.com/settings/calendars"}


def prepare(app: LocalApp, operation: Operation, ids: dict[str, str]) -> None:
    """What has to be so before an operation is allowed."""
    if str(operation) == "DELETE /v2/calendars/{calendar_id}":
        app.post("/v2/calendars", {"name": "Second", "resource_id": ids["resource_id"]})
    if operation.path.endswith(("/test", "/sync", "/disconnect")) and "calendars" in operation.path:
        ids["calendar_id"] = app.subscribe(ids["resource_id"], ids["feed_address"])["id"]
    if operation.path.endswith(("/calendars/clients/{provider}", "/connect", "/callback")):
        client = {"client_id": "own", "client_secret": "secret"}
        app.call("PUT", "/v2/calendars/clients/google", client)
        settings = {"redirect_urls": [CONSENT["redirect_url"]]}
        app.call("PUT", f"/v2/apps/{app.slug}", {"settings": settings})
    if operation.path.endswith("/callback"):
        consent = CONSENT | {"resource_id": ids["resource_id"]}
        ids["consent_url"] = app.post("/v2/calendars/connect", consent).data["url"]
    if operation.path.endswith(("/verify", "/code")):
        app.call("PUT", f"/v2/projects/{ids['project_id']}", {"settings": {"verify_email": True}})
        ids["reservation_id"] = (
            app.widget()
            .post(
                "/v2/bookings",
                UNVERIFIED | {"project_id": ids["project_id"], **next_slot(app, ids["project_id"])},
            )
            .data["reservation_id"]
        )
    if str(operation).startswith("DELETE"):
        app.post(f"/v2/bookings/{ids['booking_id']}/cancel", {})
        app.post(f"/v2/bookings/{ids['group_id']}/cancel", {})


class ExampleRequest(NamedTuple):
    """A request with one of the operation's examples as its body; None: without one."""

    example: str
    caller: LocalCaller
    method: str
    path: str
    body: bytes | None

    def send(self) -> Any:
        return self.caller.call(self.method, self.path, self.body)


def example_requests(
    app: LocalApp, example_ids: dict[str, str], operation: Operation
) -> Iterator[ExampleRequest]:
    """A request for each example of the operation's body, or one without. What the caller of this
    writes is undone before the next one.
    """
    content = operation.content.get("requestBody", {}).get("content", {})
    examples = examples_of(content.get("application/json", {}) or content.get(FORM, {}))
    for name, example in (examples or {"": None}).items():
        before = transaction.savepoint()
        ids = dict(example_ids)
        caller: LocalCaller = app.owner() if operation.path == "/v2/apps" else app
        if str(operation) == "DELETE /v2/apps/{slug}":
            ids["slug"] = f"{app.slug}-2"
            caller = app.owner()
            assert caller.post("/v2/apps", {"slug": ids["slug"], "name": "Second"}).status == 201
        prepare(app, operation, ids)
        body = None
        if FORM in content:
            body = urlencode(example).encode()
        elif example is not None:
            body = filled(json.dumps(example), ids).encode()
        if operation.path.endswith("/verify"):
            body = json.dumps({"code": code_of(uuid.UUID(ids["reservation_id"]))}).encode()
        yield ExampleRequest(name, caller, operation.method, path_of(operation, ids), body)
        transaction.savepoint_rollback(before)
