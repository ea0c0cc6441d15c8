"""Connect calendars that are kept elsewhere, and let go of them.

What needs the network is asked first, outside of any transaction; then one transaction writes.
"""

import re
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from django.db import router, transaction
from django.db.models import QuerySet

from availability.models import Calendar, Event, Resource
from availability.placement import lock_calendars, lock_resources
from availability.services import CALENDAR_TEXTS, delete_calendar, set_fields
from external_calendars.access import access_of, keep_access, server_of
from external_calendars.claims import LOOK
from external_calendars.models import Connection, Feed
from external_calendars.providers import PROVIDERS
from external_calendars.providers.base import NO_WRITE_ACCESS, TROUBLES, Access, Found, Trouble
from external_calendars.writing import hurry, plan_missing
from notifications.waking import ask_after_commit
from scheduling.api.changes import transaction_start
from scheduling.api.errors import AlreadyExists, Invalid, NotFound

MOST_CONNECTED = 10  # of a resource
FIND_SECONDS = 10.0
TYPE_AGAIN = "Must be given again: it is not told to another server unasked."
# The field of a body that a trouble is about; the address where none is named.
FIELDS = {
    "unauthorized": "password",
    "secret_unreadable": "password",
    "no_write_access": "provider_primary",
}
_NOT_IN_NAME = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")


class NotConnectable(Invalid):
    """A calendar can't be connected as it was asked: `problem` is one of TROUBLES."""

    def __init__(self, trouble: Trouble) -> None:
        field = FIELDS.get(trouble.code, "address")
        # Which calendars there are is what a person has to know to choose one of them.
        text = str(trouble) if trouble.code == "several_calendars" else TROUBLES[trouble.code]
        super().__init__({field: [text]}, problem=trouble.code)


class Verdict(NamedTuple):
    """How a try to reach a calendar went: `trouble` is a key of TROUBLES, "" where it went well;
    `access` what may be done there, "" where it is not known."""

    trouble: str
    access: str
    seconds: float

    @property
    def text(self) -> str:
        return TROUBLES[self.trouble] if self.trouble else "The calendar can be used."


def find(provider: str, access: Access) -> Found:
    """The calendar behind what a person gave. Takes up to FIND_SECONDS; raises NotConnectable."""
    try:
        return PROVIDERS[provider].find(access, deadline=FIND_SECONDS)
    except Trouble as trouble:
        raise NotConnectable(trouble) from trouble


# --- Connect --------------------------------------------------------------------------------------
def connect(
    *,
    resource: Resource,
    provider: str,
    access: Access,
    given: Mapping[str, Any],
    is_primary: bool | None = None,
    now: datetime,
) -> Calendar:
    """A calendar of the resource that is kept at a provider; a worker looks there at once.

    `given`: the texts of a calendar; without a name it has its name there. `is_primary`: whether
    the resource's bookings are written to it; None: if it is the first that can be.
    Raises NotConnectable, AlreadyExists, and Invalid past the resource's most.
    """
    found = find(provider, access)
    _check_primary(found, is_primary)
    calendar = Calendar(resource=resource, provider=provider, name=_name_of(found))
    set_fields(calendar, given, CALENDAR_TEXTS)
    connection = Connection(calendar=calendar, created_at=now)
    with transaction.atomic():
        if not lock_resources([resource.id]):
            raise Invalid.at("resource_id", "There is no such resource any more.")
        others = list(_connections(resource))
        if len(others) >= MOST_CONNECTED:
            raise Invalid.at(
                "resource_id", f"A resource has at most {MOST_CONNECTED} connected calendars."
            )
        _refuse_twice(others, found)
        if is_primary is None:
            is_primary = found.may_write and not any(
                one.calendar.provider_primary for one in others
            )
        _set_found(calendar, connection, found, access)
        if is_primary:
            _dethrone(resource, now)
        calendar.provider_primary = is_primary
        calendar.save(force_insert=True)
        _start_over(connection, now)
        connection.save(force_insert=True)
        if calendar.is_writable:
            plan_missing(calendar, now=now)
        ask_after_commit(LOOK)
    return calendar


def reconnect(
    calendar: Calendar,
    given: Mapping[str, Any],
    *,
    texts: Mapping[str, Any] | None = None,
    is_primary: bool | None = None,
    now: datetime,
) -> Calendar:
    """Reach it otherwise from now on: any of address, username and password; what is not given
    stays. What was read from another collection goes. `texts` and `is_primary` change with it.

    Raises NotConnectable, AlreadyExists, Invalid for an own calendar, NotFound for one that was
    just deleted.
    """
    connection = connection_of(calendar)
    if would_tell_another_server(calendar, given):
        raise Invalid.at("password", TYPE_AGAIN)
    access = _changed_access(connection, given)
    found = find(calendar.provider, access)
    _check_primary(found, is_primary)
    with transaction.atomic():
        calendar = _lock(calendar)
        connection, was_writable = connection_of(calendar), calendar.is_writable
        _refuse_twice(_connections(calendar.resource).exclude(calendar=calendar), found)
        if _address_of(connection) != found.address:
            _forget_what_was_there(calendar)
            connection.mark = {}
            calendar.synced_at = None
        if calendar.synced_at is None:
            connection.created_at = now  # its first look begins now
        _set_found(calendar, connection, found, access)
        set_fields(calendar, texts or {}, CALENDAR_TEXTS)
        if is_primary:
            _dethrone(calendar.resource, now)
        wanted = calendar.provider_primary if is_primary is None else is_primary
        calendar.provider_primary = wanted and found.may_write
        calendar.save()
        _start_over(connection, now)
        connection.save()
        if calendar.is_writable or was_writable:
            plan_missing(calendar, now=now)
        # Later, since it takes locks that writes take before this one.
        going_on = partial(hurry, connection, address=found.address, now=now)
        transaction.on_commit(going_on, robust=True)
        ask_after_commit(LOOK)
    return calendar


def choose_primary(calendar: Calendar, is_primary: bool, *, now: datetime) -> Calendar:
    """Whether the resource's bookings are written to it: to one calendar at most, the last chosen.

    Raises NotConnectable for one that can only be read, Invalid for an own one, NotFound.
    """
    with transaction.atomic():
        calendar = _lock(calendar)
        connection_of(calendar)
        if is_primary and not calendar.is_writable:
            raise NotConnectable(Trouble("no_write_access"))
        if is_primary != calendar.provider_primary:
            _dethrone(calendar.resource, now)
            calendar.provider_primary = is_primary
            calendar.save(update_fields=["provider_primary", "updated_at"])
            plan_missing(calendar, now=now)
    return calendar


def _name_of(found: Found) -> str:
    name = _NOT_IN_NAME.sub(" ", found.name).strip()[:200].strip()
    return name or urlsplit(found.address).hostname or "Calendar"


def _check_primary(found: Found, is_primary: bool | None) -> None:
    if is_primary and not found.may_write:
        raise NotConnectable(Trouble("no_write_access"))


def _connections(resource: Resource) -> QuerySet[Connection]:
    rows = Connection.objects.filter(calendar__resource=resource, calendar__deleted_at=None)
    return rows.select_related("calendar")


def _refuse_twice(others: Sequence[Connection] | QuerySet[Connection], found: Found) -> None:
    """Raise AlreadyExists where the resource has that collection or feed already."""
    for connection in others:
        if _address_of(connection) == found.address:
            raise AlreadyExists(f"It is connected already, as “{connection.calendar.name}”.")


def _address_of(connection: Connection) -> str:
    """ "" where it can't be read any more: then it is no other's."""
    try:
        return access_of(connection).address
    except Trouble:
        return ""


def would_tell_another_server(calendar: Calendar, given: Mapping[str, Any]) -> bool:
    """Whether the stored password would go to a server that it was not given for: who does not know
    it must not have it sent to where they can read it."""
    address = given.get("address")
    return bool(
        address
        and calendar.connection.password
        and "password" not in given
        and server_of(address) != server_of(calendar.provider_id)
    )


def _changed_access(connection: Connection, given: Mapping[str, Any]) -> Access:
    """Raises NotConnectable where what stays can't be read; what is replaced need not be."""
    if {"address", "password"} <= given.keys():
        access = Access(address="", username=connection.username)
    else:
        try:
            access = access_of(connection)
        except Trouble as trouble:
            raise NotConnectable(trouble) from trouble
    return access._replace(**{name: value or "" for name, value in given.items()})


def _set_found(calendar: Calendar, connection: Connection, found: Found, access: Access) -> None:
    is_feed = not PROVIDERS[calendar.provider].can_write
    calendar.provider_id = server_of(found.address) if is_feed else found.address
    calendar.provider_access = Calendar.WRITER if found.may_write else Calendar.READER
    calendar.provider_invites = found.invites
    keep_access(connection, access._replace(address=found.address))


def _dethrone(resource: Resource, now: datetime) -> None:
    rows = Calendar.objects.filter(resource=resource, provider_primary=True)
    rows.update(provider_primary=False, updated_at=transaction_start())


def _start_over(connection: Connection, now: datetime) -> None:
    """As if nothing had gone wrong; the result of a look that is under way is dropped."""
    connection.problem, connection.problem_since, connection.failures = "", None, 0
    connection.done = connection.total = 0
    connection.next_at, connection.lease_token = now, None


def _forget_what_was_there(calendar: Calendar) -> None:
    """Bookings keep their time; their copies at the provider stay there as they are."""
    # Nothing leads to them, so the database need not be asked about that for each of thousands.
    Event.objects.filter(id__in=of_provider(calendar).values("id"))._raw_delete(
        using=router.db_for_write(Event)
    )
    calendar.connection.remote_objects.all().delete()
    calendar.written.all().delete()


def of_provider(calendar: Calendar) -> QuerySet[Event]:
    """The events that came from there: all but those of bookings."""
    return calendar.events.filter(bookings=None, main=None)


def _lock(calendar: Calendar) -> Calendar:
    """The row as it is under the lock of its resource. Raises NotFound for one just deleted."""
    if not lock_calendars([calendar]):
        raise NotFound("Calendar")
    return Calendar.objects.select_related("resource", "connection").get(id=calendar.id)


def connection_of(calendar: Calendar) -> Connection:
    """Raises Invalid for a calendar of the service's own."""
    if not calendar.is_connected:
        raise Invalid.at("calendar_id", "Is a calendar of its own: it is connected to nothing.")
    return calendar.connection


# --- While it is connected ------------------------------------------------------------------------
def try_out(calendar: Calendar) -> Verdict:
    """Reach it now, as a worker would, and change nothing. Takes up to FIND_SECONDS.

    Raises Invalid for an own calendar.
    """
    connection = connection_of(calendar)
    begun = time.monotonic()
    try:
        found = PROVIDERS[calendar.provider].find(access_of(connection), deadline=FIND_SECONDS)
    except Trouble as trouble:
        return Verdict(trouble.code, "", time.monotonic() - begun)
    access = Calendar.WRITER if found.may_write else Calendar.READER
    lost = calendar.is_writable and not found.may_write
    return Verdict("no_write_access" if lost else "", access, time.monotonic() - begun)


def look_now(calendar: Calendar, *, now: datetime) -> Calendar:
    """Have a worker look there at once, also where a problem had stopped it.

    One that is under way goes on, and is not followed by another. Raises Invalid for an own
    calendar, NotFound for one just deleted.
    """
    with transaction.atomic():
        calendar = _lock(calendar)
        connection_of(calendar)
        waiting = Connection.objects.filter(calendar=calendar, lease_token=None)
        waiting.update(next_at=now)
        # Whoever asks may have mended it; the next write tells.
        kept_out = waiting.filter(problem=NO_WRITE_ACCESS)
        kept_out.update(problem="", problem_since=None)
        calendar.connection.refresh_from_db()
        ask_after_commit(LOOK)
    return calendar


# --- Let go ---------------------------------------------------------------------------------------
def disconnect(calendar: Calendar, *, now: datetime) -> Calendar:
    """Keep it as a calendar of the service's own, with its bookings and without what came from
    there. What was written there stays there; its bookings are the primary calendar's from now on.

    Raises Invalid for an own calendar, NotFound for one just deleted.
    """
    with transaction.atomic():
        calendar = _lock(calendar)
        connection_of(calendar)
        _drop_connection(calendar)
        calendar.provider, calendar.provider_id = Calendar.SERVICE, ""
        calendar.provider_access, calendar.provider_invites = "", False
        calendar.provider_primary, calendar.synced_at = False, None
        calendar.save()
        plan_missing(calendar, now=now)
    return Calendar.objects.select_related("resource", "connection").get(id=calendar.id)


def remove_calendar(calendar: Calendar, *, now: datetime) -> None:
    """Delete a calendar, its feed, and of a connected one its secrets and all that came from there.

    Raises InUse as `delete_calendar` does.
    """
    with transaction.atomic():
        delete_calendar(calendar, now=now)
        if calendar.is_connected:
            _drop_connection(calendar)
            Calendar.objects.filter(id=calendar.id).update(provider_primary=False)
        Feed.objects.filter(calendar=calendar).delete()


def _drop_connection(calendar: Calendar) -> None:
    _forget_what_was_there(calendar)
    Connection.objects.filter(calendar=calendar).delete()
    Feed.objects.filter(calendar=calendar).delete()
