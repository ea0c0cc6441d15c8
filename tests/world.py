"""A small world for tests: an app with its keys, called over the whole stack in one process."""

import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from apps_config.models import Account, App, Credential, Membership
from apps_config.public_limits import LIMITS
from apps_config.services import create_app, issue_key
from availability.models import Resource
from availability.serializers.projects import ProjectSerializer
from availability.serializers.resources import ResourceSerializer
from availability.services import create_project, create_resource
from common.api.serializers import read_values_as
from common.db import updated_at
from common.db.sql import datetime_param

BERLIN = "Europe/Berlin"
NOW = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)  # a Friday; what the fixture `clock` shows
STAMP = "2026-11-20T09:30:00+0000"  # that as created_at


def stop_transaction_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Transactions start when the clock says so, also on PostgreSQL."""
    monkeypatch.setattr(updated_at, "transaction_start_on_postgresql", timezone.now)
    monkeypatch.setattr(
        updated_at,
        "transaction_start_sql_on_postgresql",
        lambda: ("%s", [datetime_param(timezone.now())]),
    )


@contextmanager
def clock_at_now() -> Iterator[None]:
    """For the fixtures of a module: the clock as the fixture `clock` shows it to a test."""
    with pytest.MonkeyPatch.context() as monkeypatch, time_machine.travel(NOW, tick=False):
        stop_transaction_clock(monkeypatch)
        yield


def basic(password: str, user: str = "") -> str:
    """The value of an Authorization header."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


class Answer:
    """A response with its body read: `answer.status`, `answer.json`, `answer.headers`."""

    def __init__(self, response: HttpResponse) -> None:
        self.status = response.status_code
        self.headers = response.headers
        self.content = b"".join(response) if response.streaming else response.content
        json_types = ("application/json", "application/problem+json")
        is_json = response.headers.get("Content-Type", "").startswith(json_types)
        self.json: Any = json.loads(self.content) if is_json and self.content else None

    @property
    def data(self) -> Any:
        """`json["data"]`, or a readable failure where there is none."""
        assert self.json is not None and "data" in self.json, (self.status, self.json)
        return self.json["data"]

    @property
    def error(self) -> dict[str, Any]:
        """The error body without its request id, which differs each time."""
        return {key: value for key, value in self.json.items() if key != "request_id"}


class Caller:
    """A client with one key: `caller.post("/bookings", {...})`, paths relative to /v2."""

    def __init__(self, password: str, user: str = "", **headers: str) -> None:
        self.client = Client()
        self.headers = {"Authorization": basic(password, user), **headers}

    def call(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """`body`: a value to be written as JSON, or bytes to be sent as they are."""
        content = body if isinstance(body, bytes) else b"" if body is None else _json(body)
        response = self.client.generic(
            method,
            f"/v2{path}",
            content,
            content_type="application/json",
            headers={**self.headers, **(headers or {})},
        )
        return Answer(response)

    def get(self, path: str, **headers: str) -> Answer:
        return self.call("GET", path, headers=headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Answer:
        return self.call("POST", path, body, headers=headers)

    def put(self, path: str, body: Any = None, **headers: str) -> Answer:
        return self.call("PUT", path, body, headers=headers)

    def delete(self, path: str, **headers: str) -> Answer:
        return self.call("DELETE", path, headers=headers)


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


class Tenant(Caller):
    """An app and its server key.

    The ways to put something into it go through the API, but for `make_resource` and
    `make_project`: these call what POST /resources and POST /projects call, with the same checks of
    the values, in a third of the time.
    """

    def __init__(self, slug: str, **app: Any) -> None:
        self.app: App = create_app(slug=slug, name=app.pop("name", slug.title()), **app)
        self.key = issue_key(Credential.SERVER, mode=self.app.mode, app=self.app)[1]
        super().__init__(self.key)

    def set_public_limits(self, **limits: Any) -> None:
        """These limits of public requests and no others."""
        off = dict.fromkeys((name for name in LIMITS if name.startswith("public_")), 0)
        self.put(f"/apps/{self.app.slug}", {"settings": off | limits})

    def widget(self) -> Caller:
        return Caller(issue_key(Credential.WIDGET, mode=self.app.mode, app=self.app)[1])

    def member(self, email: str, role: str = Membership.OWNER) -> Caller:
        """An account with that role, calling with an access token."""
        account = Account.objects.filter(email=email).first()
        account = account or Account.objects.create_user(email)
        Membership.objects.create(account=account, app=self.app, role=role)
        return Caller(issue_key(Credential.ACCESS, account=account)[1], user=email)

    def post_resource(self, name: str = "Ada", timezone: str = "UTC", **given: Any) -> Any:
        """The answer of POST /resources: with `calendars` and `api_token`."""
        return self.post("/resources", {"name": name, "timezone": timezone, **given}).data

    def post_project(self, *resource_ids: str, name: str = "Check-up", **given: Any) -> Any:
        return self.post("/projects", {"name": name, "resources": list(resource_ids), **given}).data

    def make_resource(self, name: str = "Ada", timezone: str = "UTC", **given: Any) -> Any:
        """A part of the answer of POST /resources, with `calendars` and `api_token`."""
        values = {"name": name, "timezone": timezone, **given}
        resource, key = create_resource(
            app=self.app, given=read_values_as(ResourceSerializer, values)
        )
        calendars = [{"id": str(row.id)} for row in resource.calendars.all()]
        return {"id": str(resource.id), "name": name, "api_token": key, "calendars": calendars}

    def make_project(self, *resource_ids: str, name: str = "Check-up", **given: Any) -> Any:
        """A part of the answer of POST /projects."""
        values = {"name": name, "resources": list(resource_ids), **given}
        project = create_project(app=self.app, given=read_values_as(ProjectSerializer, values))
        return {"id": str(project.id), "name": name, "slug": project.slug}

    def make_event(self, calendar_id: str, start: str, end: str, **given: Any) -> Any:
        body = {"calendar_id": calendar_id, "what": "Busy", "start": start, "end": end, **given}
        return self.post("/events", body).data

    def book(self, **given: Any) -> Answer:
        """POST /bookings with a customer and a title where none is given."""
        customer = {"name": "Marty McFly", "email": "marty@example.com"}
        return self.post("/bookings", {"what": "Meeting", "customer": customer, **given})


def call_body(
    tenant: Tenant, booking_id: str, event: str, previous: dict[str, Any] | None = None
) -> Any:
    """The body of a call to a webhook about the last change of the booking. event: the value of
    `Service-Event`.
    """
    path = f"/bookings/{booking_id}"
    log = tenant.get(f"{path}?include=logs").data["logs"][-1]
    names = ("action", "from_state", "actor", "source", "message")
    change = {
        "kind": event,
        "at": log["created_at"].replace("+0000", "+00:00"),
        **{name: log[name] for name in names},
        "previous": previous,
    }
    # Changes of the test's own transaction have no number yet.
    return {**tenant.get(path).data, "change": change, "cursor": "0-"}


def app_of(resource_id: str) -> App:
    return Resource.objects.select_related("app").get(id=resource_id).app


def at(text: str) -> datetime:
    """An instant: `at("2026-11-23 09:00")` is UTC."""
    instant = datetime.fromisoformat(text)
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


def hours(count: float) -> timedelta:
    return timedelta(hours=count)
