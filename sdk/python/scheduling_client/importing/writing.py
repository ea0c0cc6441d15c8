"""Writes records through the API: each once, however often the import runs.

An object has the source's id as its `external_id`, and in its `meta` a digest of what the source
said (`import_digest`). A repeated run finds it by the id, and changes it only if the source has
changed since: what people change here stays.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from scheduling_client.client import Client
from scheduling_client.errors import Invalid, NotFound, Refused, Unauthenticated
from scheduling_client.importing.records import (
    Booking,
    Event,
    Person,
    Record,
    Resource,
    Service,
    Skipped,
    Unreadable,
    Unusable,
    kind_of,
)
from scheduling_client.importing.report import Outcome, Row
from scheduling_client.model import as_json

Body = dict[str, Any]
MAX_EXTERNAL_ID = 200  # characters, which the service takes
ENDED = frozenset(
    {"cancelled", "cancelled_by_customer", "cancelled_by_owner", "completed", "declined", "unpaid"}
)
WITH_MAILS = "The service would send e-mails about it: repeat with --send-mails."
PENDING = ""  # the id of what a dry run would create


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What the person who imports decides.

    source: the beginning of external ids, such as "calcom". dry_run: nothing is written.
    send_mails: customers and owners get the usual e-mails. past: bookings that have ended too.
    publish: new projects have a page on the web, if the app's have.
    """

    source: str
    dry_run: bool = False
    send_mails: bool = False
    past: bool = False
    publish: bool = False


class Skip(Exception):
    """A row that is left out; the text says why."""


@dataclass(frozen=True, kw_only=True)
class Saved:
    outcome: Outcome
    id: str
    reason: str = ""


class Writer:
    def __init__(self, client: Client, choices: Choices, *, now: datetime | None = None) -> None:
        self.client = client
        self.choices = choices
        self.now = now or datetime.now(UTC)
        self.resources = Known(choices.source, client.resources.list(include="calendars"))
        self.projects = Known(choices.source, client.projects.list())
        self.may_mail = choices.send_mails or bool(client.app.get().settings.disable_emails)
        self.seen: set[tuple[str, str]] = set()

    def write(self, records: Iterable[Record]) -> Iterator[Row]:
        """Yield the row of each record as soon as it is written.

        Raises ConnectionFailed and Unauthenticated, after which no other row could succeed.
        """
        for record in records:
            yield self.write_one(record)

    def write_one(self, record: Record) -> Row:
        kind = kind_of(record)
        external_id = external_id_of(self.choices.source, record.key)
        row = {"kind": kind, "external_id": external_id, "name": name_of(record)}
        try:
            saved = self.save(record, external_id)
        except (Skip, Unusable, Refused) as error:
            if isinstance(error, Unauthenticated):
                raise
            self.forget(record)
            outcome: Outcome = "skipped" if isinstance(error, Skip) else "failed"
            code = error.code if isinstance(error, Refused) else ""
            return Row(**row, outcome=outcome, code=code, reason=reason_of(error))  # type: ignore[arg-type]
        return Row(**row, outcome=saved.outcome, id=saved.id, reason=saved.reason)  # type: ignore[arg-type]

    def save(self, record: Record, external_id: str) -> Saved:
        if isinstance(record, Skipped):
            raise Skip(record.reason)
        if isinstance(record, Unreadable):
            raise Unusable(record.reason)
        if (kind_of(record), record.key) in self.seen:
            raise Unusable("An earlier row has the same id.")
        self.seen.add((kind_of(record), record.key))
        if isinstance(record, Resource):
            return self.save_resource(record, external_id)
        if isinstance(record, Service):
            return self.save_service(record, external_id)
        if isinstance(record, Booking):
            return self.save_booking(record, external_id)
        return self.save_event(record)

    def forget(self, record: Record) -> None:
        """What refers to this row is skipped, also if an earlier run has imported it."""
        if kind_of(record) == "resource":
            self.resources.ids.setdefault(record.key, None)
        elif kind_of(record) == "service":
            self.projects.ids.setdefault(record.key, None)

    # --- Resources and projects -------------------------------------------------------------------
    def save_resource(self, record: Resource, external_id: str) -> Saved:
        body = {
            "name": record.name,
            "timezone": record.timezone,
            "email": record.email,
            "tags": list(record.tags),
            "capacity": record.capacity,
            "availability_constraints": list(record.rules),
        }
        found = self.resources.by_external_id.get(external_id)
        put = self.client.resources.put_by_external_id
        saved = self.save_object(external_id, body, {}, found, put)
        self.resources.ids[record.key] = saved.id
        return Saved(outcome=saved.outcome, id=saved.id, reason=record.note)

    def save_service(self, record: Service, external_id: str) -> Saved:
        resources = [self.resources.id_of(key, "resource") for key in record.resources]
        body = {
            "name": record.name,
            "resources": resources,
            "availability": dict(record.availability),
            "availability_constraints": list(record.rules),
            "booking": {
                "graph": "confirm_decline" if record.needs_confirmation else "instant",
                "what": (record.what or record.name)[:200],
                "where": cut(record.where, 200),
                "description": record.description,
            },
        }
        first = {} if self.choices.publish else {"settings": {"published": False}}
        found = self.projects.by_external_id.get(external_id)
        put = self.client.projects.put_by_external_id
        saved = self.save_object(external_id, body, first, found, put)
        self.projects.ids[record.key] = saved.id
        return Saved(outcome=saved.outcome, id=saved.id, reason=record.note)

    def save_object(
        self,
        external_id: str,
        body: Body,
        first: Body,
        found: Any,
        put: Callable[..., Any],
    ) -> Saved:
        """Create an object or change it. first: what only a new one gets."""
        mark = {"import_digest": digest(body)}
        if found is None:
            if self.choices.dry_run:
                return Saved(outcome="would create", id=PENDING)
            return Saved(outcome="created", id=put(external_id, **body, **first, meta=mark).id)
        if is_unchanged(found, mark):
            return Saved(outcome="unchanged", id=found.id)
        if self.choices.dry_run:
            return Saved(outcome="would update", id=found.id)
        put(external_id, **body, meta={**found.meta, **mark})
        return Saved(outcome="updated", id=found.id)

    # --- Bookings ---------------------------------------------------------------------------------
    def save_booking(self, record: Booking, external_id: str) -> Saved:
        if record.end <= self.now and not self.choices.past:
            raise Skip("It is in the past: --past imports it.")
        found = self.find_booking(external_id)
        if found is None and record.state == "cancelled":
            raise Skip("It is cancelled.")
        target = {"resource_id": self.resources.id_of(record.resource, "resource")}
        if record.service is not None:
            target["project_id"] = self.projects.id_of(record.service, "service")
            self.check_video_calls(target["project_id"])
        texts = {
            "what": cut(record.what, 200),
            "where": cut(record.where, 200),
            "description": record.description,
            "note": record.internal_note,
        }
        texts = {name: text for name, text in texts.items() if text}
        times = {"start": as_json(record.start), "end": as_json(record.end)}
        source = {
            **target,
            **times,
            **texts,
            "customers": [customer_of(person) for person in record.people],
            "state": record.state,
        }
        mark = {"import_digest": digest(source)}
        if found is not None:
            return self.change_booking(found, record, source, mark)
        if self.choices.dry_run:
            return Saved(outcome="would create", id=PENDING)
        body = {name: value for name, value in source.items() if name != "state"}
        graph = "confirm_decline" if record.state == "requested" else "instant"
        return self.create_booking(
            {**body, "graph": graph, "external_id": external_id, "meta": mark}
        )

    def create_booking(self, body: Body) -> Saved:
        """Book outside of opening hours too. Without --send-mails nobody hears of it: neither now
        nor by a reminder nor by an invitation of a calendar server."""
        body["settings"] = {"enforce_availability": False}
        if not self.choices.send_mails:
            silent = {"enabled": False}
            body |= {"notify_customer_by_email": silent, "notify_owner_by_email": silent}
            body |= {"event_notifications": [], "invite": False}
        made = self.client.bookings.create(**body, idempotency_key=digest(body))
        if made.created_at < self.now and self.is_deleted(made.id):
            raise Skip("It was imported within the last 24 hours, and deleted here.")
        return Saved(outcome="created", id=made.id)

    def is_deleted(self, booking_id: str) -> bool:
        try:
            self.client.bookings.get(booking_id)
        except NotFound:
            return True
        return False

    def find_booking(self, external_id: str) -> Any:
        include = ["meta", "event", "resource"]
        listed = self.client.bookings.list(external_id=external_id, include=include)
        return next(iter(listed), None)

    def change_booking(
        self, found: Any, record: Booking, source: Body, mark: Mapping[str, str]
    ) -> Saved:
        """Move, change or cancel a booking as the source has done, if it has."""
        if is_unchanged(found, mark):
            return Saved(outcome="unchanged", id=found.id)
        if record.state == "cancelled":
            return self.cancel_booking(found, mark)
        self.check_changeable(found)
        if self.choices.dry_run:
            return Saved(outcome="would update", id=found.id)
        api = self.client.bookings
        is_moved = (found.event.start, found.event.end) != (record.start, record.end)
        if is_moved or found.resource.id != source["resource_id"]:
            where = {name: source[name] for name in ("start", "end", "resource_id")}
            api.reschedule(found.id, **where)
        names = ("what", "where", "description", "note")
        body = {name: source[name] for name in names if name in source}
        meta = {**found.meta, **mark}
        api.update(found.id, **body, customers=source["customers"], meta=meta)
        return Saved(outcome="updated", id=found.id)

    def cancel_booking(self, found: Any, mark: Mapping[str, str]) -> Saved:
        if found.state in ENDED:
            return Saved(outcome="unchanged", id=found.id)
        self.check_changeable(found)
        if self.choices.dry_run:
            return Saved(outcome="would update", id=found.id)
        self.client.bookings.update(found.id, meta={**found.meta, **mark})
        self.client.bookings.cancel(found.id)
        return Saved(outcome="updated", id=found.id, reason="It is cancelled at the source.")

    def check_changeable(self, found: Any) -> None:
        if found.state in ENDED:
            raise Skip(f"It has changed at the source; here it is {found.state}.")
        if not self.may_mail:
            raise Skip(f"It has changed at the source. {WITH_MAILS}")

    def check_video_calls(self, project_id: str) -> None:
        """The link of a video call is sent as soon as a calendar has made it."""
        project = self.projects.by_id.get(project_id)
        if project is not None and project.settings.conference and not self.may_mail:
            raise Skip(f"Its project has video calls. {WITH_MAILS}")

    # --- Events -----------------------------------------------------------------------------------
    def save_event(self, record: Event) -> Saved:
        """Block time. An event has no external id: one with the same text and times is the same."""
        if record.end <= self.now and not self.choices.past:
            raise Skip("It is in the past: --past imports it.")
        resource_id = self.resources.id_of(record.resource, "resource")
        what = record.what[:200]
        if resource_id != PENDING:
            times = {"start": as_json(record.start), "end": as_json(record.end)}
            listed = self.client.events.list(search=f"resource.id:{resource_id}", **times)
            for event in listed:
                if (event.what, event.start, event.end) == (what, record.start, record.end):
                    return Saved(outcome="unchanged", id=event.id)
        if self.choices.dry_run:
            return Saved(outcome="would create", id=PENDING)
        calendar_id = self.calendar_of(resource_id)
        made = self.client.events.create(
            calendar_id=calendar_id, what=what, start=record.start, end=record.end
        )
        return Saved(outcome="created", id=made.id)

    def calendar_of(self, resource_id: str) -> str:
        resource = self.resources.by_id.get(resource_id)
        if resource is None:
            resource = self.client.resources.get(resource_id, include="calendars")
            self.resources.by_id[resource_id] = resource
        calendars = [each.id for each in resource.calendars or ()]
        if not calendars:
            raise Unusable("Its resource has no calendar.")
        return calendars[0]


class Known:
    """The resources or projects of the app, and what this run has made of the source's."""

    def __init__(self, source: str, objects: Iterable[Any]) -> None:
        self.source = source
        self.by_id = {each.id: each for each in objects}
        self.by_external_id = {each.external_id: each for each in self.by_id.values()}
        self.ids: dict[str, str | None] = {}  # by the source's key; None: the row was not imported

    def id_of(self, key: str, kind: str) -> str:
        """Return the id here of a row of the source, or of an object that is named by its id, its
        slug or its name. Raises Skip if its row was not imported, and Unusable."""
        if key in self.ids:
            found = self.ids[key]
            if found is None:
                raise Skip(f"The {kind} {key} was not imported.")
            return found
        imported = self.by_external_id.get(external_id_of(self.source, key))
        if imported is not None:
            return str(imported.id)
        named = [
            each.id
            for each in self.by_id.values()
            if key in (each.id, each.name, getattr(each, "slug", None))
        ]
        if len(named) != 1:
            many = f"{len(named)} {kind}s have" if named else f"No {kind} has"
            raise Unusable(f"{many} the id or name {key!r}.")
        return str(named[0])


def external_id_of(source: str, key: str) -> str:
    """Return "calcom:123"; of an id that the service does not take, a digest."""
    text = f"{source}:{key}"
    is_taken = text.isprintable() and len(text) <= MAX_EXTERNAL_ID
    return text if is_taken else f"{source}:{hashlib.sha256(key.encode()).hexdigest()}"


def is_unchanged(found: Any, mark: Mapping[str, str]) -> bool:
    return bool(found.meta.get("import_digest") == mark["import_digest"])


def digest(value: Any) -> str:
    """Return a text that is another one for every other value of JSON."""
    text = json.dumps(as_json(value), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def customer_of(person: Person) -> Body:
    found = {"name": person.name, "email": person.email}
    found |= {"phone": person.phone} if person.phone else {}
    return found | ({"timezone": person.timezone} if person.timezone else {})


def cut(text: str | None, length: int) -> str | None:
    """Return one line of at most `length` characters."""
    return " ".join(text.split())[:length] if text else None


def name_of(record: Record) -> str:
    if isinstance(record, (Resource, Service)):
        return record.name
    return record.start.isoformat() if isinstance(record, (Booking, Event)) else ""


def reason_of(error: Exception) -> str:
    if not isinstance(error, Refused):
        return str(error)
    if isinstance(error, Invalid) and error.errors:
        texts = [f"{path}: {' '.join(found)}" for path, found in error.errors.items()]
        return " ".join([error.message, *texts])
    return error.message
