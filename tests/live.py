"""A live service as tests call it: raw requests, an app of one's own, and what its rows hold."""

import base64
import hashlib
import http.client
import json
import socket
import sqlite3
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import psycopg

from tests.services import Service

CUSTOMER = {"name": "Marty McFly", "email": "marty@example.com"}
WEBHOOK = {"url": "https://example.com/hook", "active": False}
WEBHOOKS_KEPT = 50  # an app has room for 100
# Written once a minute by whoever calls.
VOLATILE = {"apps_config_credential": "last_used_at"}
KEYS = """
import json
from apps_config.models import Account
from apps_config.public_limits import LIMITS
from apps_config.services import create_app, issue_key
owner = Account.objects.create_user("{slug}@example.com", "correct horse battery")
# Many requests from one address are the point of most tests.
limits = {{name: 0 for name in LIMITS if name.startswith("public_")}}
app = create_app(slug="{slug}", name="Demo", mode="{mode}", owner=owner, settings=limits)
keys = [issue_key(kind, mode=app.mode, app=app)[1] for kind in ("server", "widget")]
print(json.dumps([*keys, issue_key("access", account=owner)[1]]))
"""

# Printed in the service, which alone can sign: links that stand in mails.
PASSWORD_LINK = """
from datetime import timedelta
from django.utils import timezone
from availability.models import Resource
from notifications.links.resource_password_reset import password_url
resource = Resource.objects.get(id="{resource_id}")
print(password_url(resource, timezone.now() + timedelta(hours=1)))
"""
SIGNED_LINK = """
from bookings.pages.action_links import action_url
from bookings.models import Booking
booking = Booking.objects.select_related("event").get(id="{booking_id}")
print(action_url(booking, "cancel_by_customer", booking.event.end))
"""
UNSUBSCRIBE_LINK = """
from bookings.models import Customer
from django.utils import timezone
from notifications.links.unsubscribe import unsubscribe_headers
customer = Customer.objects.get(booking_id="{booking_id}")
print(unsubscribe_headers(customer, timezone.now())["List-Unsubscribe"].strip("<>"))
"""


class LiveAnswer:
    """A response with its body read; `json` is None where there is none."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.content = response.read()
        is_json = response.headers.get("Content-Type", "").startswith("application/json")
        self.json: Any = json.loads(self.content) if is_json and self.content else None

    @property
    def data(self) -> Any:
        assert self.json is not None and "data" in self.json, (self.status, self.content[:2000])
        return self.json["data"]

    @property
    def code(self) -> str:
        """`201`, or a refusal's status with its code: `409 slot_taken`."""
        if self.status < 400:
            return str(self.status)
        return f"{self.status} {self.json['code'] if self.json else self.content[:200]}"


class LiveCaller:
    """A client with one key (or none) of a live service; paths begin with `/v2`."""

    def __init__(self, url: str, key: str | None = None, user: str = "") -> None:
        self.url = url
        self.key = key
        self.headers: dict[str, str | bytes] = {}
        if key is not None:
            secret = base64.b64encode(f"{user}:{key}".encode()).decode()
            self.headers["Authorization"] = f"Basic {secret}"

    def call(
        self,
        method: str,
        path: str | bytes,
        body: Any = None,
        headers: Mapping[str, str | bytes] | None = None,
    ) -> LiveAnswer:
        """One request on a connection of its own.

        `body`: a value to be written as JSON, or bytes to be sent as they are; path and headers go
        out byte for byte too.
        """
        content = body if isinstance(body, bytes) else b"" if body is None else write_json(body)
        named = {"Host": urlsplit(self.url).netloc, "Connection": "close"}
        if body is not None or method in ("POST", "PUT"):
            named |= {"Content-Type": "application/json", "Content-Length": str(len(content))}
        named |= self.headers | dict(headers or {})
        lines = [as_bytes(method) + b" " + as_bytes(path) + b" HTTP/1.1"]
        lines += [as_bytes(name) + b": " + as_bytes(value) for name, value in named.items()]
        return exchange(self.url, method, b"\r\n".join([*lines, b"", content]))

    def get(self, path: str) -> LiveAnswer:
        return self.call("GET", path)

    def post(self, path: str, body: Any) -> LiveAnswer:
        return self.call("POST", path, body)


def write_json(value: Any) -> bytes:
    """As ASCII; lone surrogates go out as escapes."""
    return json.dumps(value).encode()


def as_bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("latin-1")


def exchange(url: str, method: str, request: bytes) -> LiveAnswer:
    address = urlsplit(url)
    with closing(socket.create_connection((address.hostname, address.port), timeout=30)) as wire:
        # Refused before all of it was read: the answer is there.
        with suppress(OSError):
            wire.sendall(request)
            wire.shutdown(socket.SHUT_WR)  # nothing more comes, whatever Content-Length says
        with closing(http.client.HTTPResponse(wire, method=method)) as response:
            response.begin()
            return LiveAnswer(response)


class SampleRows:
    """What an app's caller adds: one of everything, made over the API."""

    slug: str
    owner_email: str
    get: Any
    post: Any
    call: Any

    def make_ids(self, project: Mapping[str, Any] | None = None) -> dict[str, str]:
        """One of everything, free of bookings in the way: name of a path's parameter -> id."""
        email = f"{uuid.uuid4().hex}@example.com"
        ada = {"name": "Ada", "timezone": "Europe/Berlin", "email": email}
        resource = self.post("/v2/resources", ada).data
        calendar_id = resource["calendars"][0]["id"]
        event = {
            "calendar_id": calendar_id,
            "what": "Congress",
            "start": "2031-01-01 09:00:00",
            "end": "2031-01-01 10:00:00",
        }
        booking = {
            "resource_id": resource["id"],
            "what": "Check-up",
            "customer": CUSTOMER,
            "start": "2031-01-02 09:00:00",
            "end": "2031-01-02 10:00:00",
        }
        hold = {
            "resource_id": resource["id"],
            "start": "2031-01-03 09:00:00",
            "end": "2031-01-03 10:00:00",
            "reservation_time": 3600,
        }
        wanted = {"name": "Check-up", "slug": uuid.uuid4().hex, "resources": [resource["id"]]}
        made = self.post("/v2/bookings?include=customers", booking).data
        booking_id = made["id"]
        widget_key = self.post("/v2/credentials", {"kind": "widget"}).data
        group = {
            "resource_id": resource["id"],
            "what": "Course",
            "graph": "group_owner",
            "settings": {"max_seats": 5},
            "start": "2031-01-04 09:00:00",
            "end": "2031-01-04 10:00:00",
        }
        for earlier in self.get("/v2/webhooks").data[WEBHOOKS_KEPT:]:
            self.call("DELETE", f"/v2/webhooks/{earlier['id']}")
        deliveries = self.get(f"/v2/deliveries?booking={booking_id}&limit=1").data
        project = self.post("/v2/projects", wanted | dict(project or {})).data
        members = f"/v2/apps/{self.slug}/members"
        return {
            "member_id": self.post(members, {"email": email}).data["id"],
            "resource_id": resource["id"],
            "schedule_id": self.post("/v2/schedules", {"name": "Hours"}).data["id"],
            "calendar_id": calendar_id,
            "credential_id": widget_key["id"],
            "event_id": self.post("/v2/events", event).data["id"],
            "project_id": project["id"],
            "project_slug": project["slug"],
            "booking_id": booking_id,
            "customer_id": made["customers"][0]["id"],
            "reservation_id": self.post("/v2/bookings/reserve", hold).data["reservation_id"],
            "group_id": self.post("/v2/bookings", group).data["id"],
            "webhook_id": self.post("/v2/webhooks", WEBHOOK).data["id"],
            "delivery_id": deliveries[0]["id"],
            "slug": self.slug,
            "owner_email": self.owner_email,
            "email": email,
            "new_email": f"{uuid.uuid4().hex}@example.com",
            "feed_address": self.post(f"/v2/calendars/{calendar_id}/feed", {}).data["url"],
        }

    def subscribe(self, resource_id: str, address: str) -> Any:
        """A calendar of the resource that is a feed; its service has to be let to that address."""
        body = {"resource_id": resource_id, "provider": "ics", "address": address}
        return self.post("/v2/calendars", body).data


class LiveApp(SampleRows, LiveCaller):
    """A fresh app in a live service, called with its server key."""

    def __init__(self, service: Service, mode: str = "live") -> None:
        self.service = service
        self.slug = f"app-{uuid.uuid4().hex[:12]}"
        code = KEYS.format(slug=self.slug, mode=mode)
        printed = service.run(code)
        server, self.widget_key, self.access_token = json.loads(printed.splitlines()[-1])
        super().__init__(service.url, server)
        self.owner_email = f"{self.slug}@example.com"

    def widget(self) -> LiveCaller:
        return LiveCaller(self.url, self.widget_key)

    def owner(self) -> LiveCaller:
        return LiveCaller(self.url, self.access_token, self.owner_email)


# --- What the rows hold ---------------------------------------------------------------------------
class Rows:
    """The database of a live service, read beside it."""

    def __init__(self, service: Service) -> None:
        self.url = service.database_url
        self.is_sqlite = self.url.startswith("sqlite")

    @contextmanager
    def cursor(self) -> Iterator[Any]:
        connection = (
            sqlite3.connect(self.url.removeprefix("sqlite:///"), timeout=20)
            if self.is_sqlite
            else psycopg.connect(self.url)
        )
        with closing(connection), closing(connection.cursor()) as cursor:
            yield cursor

    def read(self, sql: str) -> list[tuple[Any, ...]]:
        with self.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()

    def tables(self) -> list[str]:
        return [name for (name,) in self.read(TABLES[self.is_sqlite])]

    def snapshot(self) -> dict[str, str]:
        """table -> a digest of all its rows but for what changes by merely being called."""
        with self.cursor() as cursor:
            if not self.is_sqlite:
                cursor.execute(" UNION ALL ".join(map(digest_sql, self.known_tables)))
                return dict(cursor.fetchall())
            digests = {}
            for table in self.known_tables:
                cursor.execute(f'SELECT * FROM "{table}"')
                names = [column[0] for column in cursor.description]
                skipped = names.index(VOLATILE[table]) if table in VOLATILE else None
                rows = [
                    repr([value for place, value in enumerate(row) if place != skipped])
                    for row in cursor.fetchall()
                ]
                text = "\n".join([str(len(rows)), *sorted(rows)])
                digests[table] = hashlib.sha256(text.encode()).hexdigest()
            return digests

    @property
    def known_tables(self) -> list[str]:
        if not hasattr(self, "_tables"):
            self._tables = self.tables()
        return self._tables

    def dump(self) -> str:
        """Every row of every table as text."""
        lines = []
        for table in self.tables():
            lines += [repr(row) for row in self.read(f'SELECT * FROM "{table}"')]
        return "\n".join(lines)


def digest_sql(table: str) -> str:
    """A row of PostgreSQL: the table's name, and a digest of its rows in any order."""
    row = f"(to_jsonb(each) - '{VOLATILE[table]}')" if table in VOLATILE else "each"
    digest = f"md5({row}::text)"
    rows = f"coalesce(md5(string_agg({digest}, '' ORDER BY {digest})), '')"
    return f"""SELECT '{table}', count(*) || ' ' || {rows} FROM "{table}" AS each"""


TABLES = {
    True: "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name",
    False: "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename",
}
