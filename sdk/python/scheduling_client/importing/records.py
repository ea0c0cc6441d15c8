"""What every source is read into: plain records, in the words of the service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

Kind = Literal["resource", "service", "booking", "event"]
Rules = tuple[Mapping[str, Any], ...]  # as `availability_constraints` of the service


class Unusable(Exception):
    """A row that can't be imported; the text says why."""


class SourceFailed(Exception):
    """The source can't be read: wrong key, no answer, no such file."""


@dataclass(frozen=True, kw_only=True)
class Resource:
    """key: the id at the source, unique among resources. timezone: an IANA name. rules: its opening
    hours; without rules it is always open. note: what the source has and the import leaves out."""

    key: str
    name: str
    timezone: str
    email: str | None = None
    tags: tuple[str, ...] = ()
    capacity: int = 1
    rules: Rules = ()
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Service:
    """A project. resources: their keys. availability: its slot parameters, as the service takes
    them."""

    key: str
    name: str
    resources: tuple[str, ...]
    availability: Mapping[str, Any]
    what: str | None = None
    description: str | None = None
    where: str | None = None
    needs_confirmation: bool = False
    rules: Rules = ()
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Person:
    name: str
    email: str
    phone: str | None = None
    timezone: str | None = None


@dataclass(frozen=True, kw_only=True)
class Booking:
    """start, end: aware. service: the key of one, or None. what None: the project's. internal_note:
    for staff alone."""

    key: str
    resource: str
    service: str | None
    start: datetime
    end: datetime
    people: tuple[Person, ...]
    what: str | None = None
    where: str | None = None
    description: str | None = None
    internal_note: str | None = None
    state: Literal["confirmed", "requested", "cancelled"] = "confirmed"


@dataclass(frozen=True, kw_only=True)
class Event:
    """Time that is taken without a booking. start, end: aware."""

    key: str
    resource: str
    start: datetime
    end: datetime
    what: str


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """A row that is left out on purpose, such as a cancelled one."""

    kind: Kind
    key: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Unreadable:
    """A row with something missing or wrong."""

    kind: Kind
    key: str
    reason: str


Record = Resource | Service | Booking | Event | Skipped | Unreadable
KINDS: dict[type, Kind] = {
    Resource: "resource",
    Service: "service",
    Booking: "booking",
    Event: "event",
}


def kind_of(record: Record) -> Kind:
    return record.kind if isinstance(record, (Skipped, Unreadable)) else KINDS[type(record)]
