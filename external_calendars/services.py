"""Connect, reconnect and disconnect calendars at providers.

Network requests come first, outside any transaction; one transaction then writes.
"""

import re
import time
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from django.db import router, transaction
from django.db.models import QuerySet

from availability.models import Calendar, Event, Resource
from availability.reserve.events import lock_resources, lock_resources_of_calendars
from availability.services import CALENDAR_TEXTS, delete_calendar, set_fields
from common.db.calls_outside_transaction import resolve
from common.db.updated_at import transaction_start
from common.errors import AlreadyExists, Invalid, NotFound
from common.messages import Message
from external_calendars.credentials import credentials_of, scheme_and_host, store_credentials
from external_calendars.grants import access_token, delete_unused_grant, request_another_renewal
from external_calendars.mirror.backfill import backfill, retry_now
from external_calendars.models import Connection, Feed, Grant
from external_calendars.providers import OAUTH_PROVIDERS, PROVIDERS
from external_calendars.providers.base import (
    NO_WRITE_ACCESS,
    PROVIDER_ERRORS,
    CalendarAccess,
    DiscoveredCalendar,
    ProviderError,
)
from external_calendars.push import stop_channels_after_commit
from external_calendars.sync.leases import SYNC_WAKEUP
from notifications.mail.envelope import is_address
from notifications.outbox.wakeup import wake_up_after_commit

MAX_CONNECTED = 10  # per resource
MAX_USER_ADDRESSES = 50
FIND_SECONDS = 10.0
GRANTED = Message("This calendar is reached with a person's consent: connect it again instead.")
TYPE_AGAIN = Message("Enter the password again: the address is on another server.")
# Error code -> the body's field that the error is about; "address" for the others.
FIELDS = {
    "unauthorized": "password",
    "secret_unreadable": "password",
    "no_write_access": "provider_primary",
}
_NOT_IN_NAME = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")


class NotConnectable(Invalid):
    """A calendar can't be connected. `problem` is a key of PROVIDER_ERRORS."""

    def __init__(self, provider_error: ProviderError) -> None:
        field = FIELDS.get(provider_error.code, "address")
        # The detail lists the calendars: the person needs it to choose one.
        text = (
            str(provider_error)
            if provider_error.code == "several_calendars"
            else PROVIDER_ERRORS[provider_error.code]
        )
        super().__init__({field: [text]}, problem=provider_error.code)


class ConnectionTest(NamedTuple):
    """The result: a key of PROVIDER_ERRORS or "", and the access level at the provider or ""."""

    provider_error: str
    access: str
    seconds: float

    @property
    def text(self) -> str:
        return (
            PROVIDER_ERRORS[self.provider_error]
            if self.provider_error
            else "The calendar can be used."
        )


def find_single_calendar(provider: str, access: CalendarAccess) -> DiscoveredCalendar:
    """Return the calendar behind `access`. Takes up to FIND_SECONDS; raises NotConnectable."""
    try:
        return PROVIDERS[provider].find_calendar(access, deadline=FIND_SECONDS)
    except ProviderError as provider_error:
        raise NotConnectable(provider_error) from provider_error


def grant_access(grant: Grant, wanted: str = "") -> CalendarAccess:
    """Return what calls the provider with the grant. `wanted`: a calendar's address, id or name."""
    try:
        return CalendarAccess(wanted, grant.email, token=access_token(grant))
    except ProviderError as provider_error:
        raise NotConnectable(provider_error) from provider_error


def list_account_calendars(grant: Grant) -> Sequence[DiscoveredCalendar]:
    """Return the calendars of the grant's account, the main one first.

    Takes up to FIND_SECONDS; raises NotConnectable.
    """
    access = grant_access(grant)
    try:
        return OAUTH_PROVIDERS[grant.provider].list_calendars(access, deadline=FIND_SECONDS)
    except ProviderError as provider_error:
        raise NotConnectable(provider_error) from provider_error


# --- Connect --------------------------------------------------------------------------------------
def connect_calendar(
    *,
    resource: Resource,
    provider: str,
    access: CalendarAccess,
    given: Mapping[str, Any],
    grant: Grant | None = None,
    is_primary: bool | None = None,
    now: datetime,
) -> Calendar:
    """Connect a provider's calendar to the resource; a worker syncs it at once.

    `grant`: with which the provider is called, instead of a password in `access`. `given`: the
    calendar's texts; the name defaults to the name at the provider. `is_primary`: whether the
    resource's bookings are written to the calendar; None: true for the first writable one. Raises
    NotConnectable, AlreadyExists, and Invalid above MAX_CONNECTED.
    """
    discovered = find_single_calendar(provider, access)
    _check_primary(discovered, is_primary)
    calendar = Calendar(
        app_id=resource.app_id, resource=resource, provider=provider, name=_name_of(discovered)
    )
    set_fields(calendar, given, CALENDAR_TEXTS)
    connection = Connection(calendar=calendar, grant=grant, created_at=now)
    with transaction.atomic():
        if not lock_resources([resource.id]):
            raise Invalid.at("resource_id", "The resource no longer exists.")
        others = list(_connections(resource))
        if len(others) >= MAX_CONNECTED:
            raise Invalid.at(
                "resource_id",
                Message(
                    "A resource has at most %(count)s connected calendars.", count=MAX_CONNECTED
                ),
            )
        _refuse_connected(others, discovered)
        if is_primary is None:
            is_primary = discovered.may_write and not any(
                other.calendar.provider_primary for other in others
            )
        _set_discovered(calendar, connection, discovered, access)
        if is_primary:
            _unset_primary(resource, now)
        calendar.provider_primary = is_primary
        calendar.save(force_insert=True)
        _clear_failures_and_lease(connection)
        connection.save(force_insert=True)
        if calendar.is_writable:
            backfill(calendar, now=now)
        wake_up_after_commit(SYNC_WAKEUP)
    return calendar


def reconnect_calendar(
    calendar: Calendar,
    given: Mapping[str, Any],
    *,
    texts: Mapping[str, Any] | None = None,
    is_primary: bool | None = None,
    now: datetime,
) -> Calendar:
    """Change address, username or password of a connection; values absent from `given` stay.

    If the address leads to another collection, the events read from the old one are deleted.
    `texts` and `is_primary` are changed in the same transaction. Raises NotConnectable,
    AlreadyExists, Invalid for a calendar of the service, NotFound for one that was just deleted.
    """
    connection = connection_of(calendar)
    if sends_password_to_new_host(calendar, given):
        raise Invalid.at("password", TYPE_AGAIN)
    question = (calendar.pk, tuple(sorted(given.items())))
    access, discovered = resolve(_find_changed, [question])[question]
    _check_primary(discovered, is_primary)
    with transaction.atomic():
        calendar = _lock(calendar)
        connection, was_writable = connection_of(calendar), calendar.is_writable
        _refuse_connected(_connections(calendar.resource).exclude(calendar=calendar), discovered)
        if _address_of(connection) != discovered.address:
            _delete_provider_events(calendar)
            stop_channels_after_commit(connection)
            connection.mark = {}
            connection.last_write_succeeded = connection.last_write_invited = False
            calendar.synced_at = None
        if calendar.synced_at is None:
            connection.created_at = now  # the first sync starts now
        _set_discovered(calendar, connection, discovered, access)
        set_fields(calendar, texts or {}, CALENDAR_TEXTS)
        if is_primary:
            _unset_primary(calendar.resource, now)
        be_primary = calendar.provider_primary if is_primary is None else is_primary
        calendar.provider_primary = be_primary and discovered.may_write
        calendar.save()
        _clear_failures_and_lease(connection)
        connection.save()
        if calendar.is_writable or was_writable:
            backfill(calendar, now=now)
        # After the commit, since it takes locks that calendar writes take before the connection's.
        retry_calendar = partial(retry_now, connection, now=now)
        transaction.on_commit(retry_calendar, robust=True)
        wake_up_after_commit(SYNC_WAKEUP)
    return calendar


def _find_changed(questions: Collection[Any]) -> Mapping[Any, Any]:
    """Return for each calendar's id and changed values the credentials, and what they lead to.

    May renew the access token of a grant. Raises as `reconnect_calendar`.
    """
    found = {}
    for calendar_id, given in questions:
        rows = Calendar.objects.select_related("connection__grant")
        calendar = rows.filter(pk=calendar_id).first()
        if calendar is None:
            raise NotFound("Calendar")
        access = _changed_access(connection_of(calendar), dict(given))
        found[calendar_id, given] = access, find_single_calendar(calendar.provider, access)
    return found


def choose_primary(calendar: Calendar, is_primary: bool, *, now: datetime) -> Calendar:
    """Set whether the resource's bookings are written to the calendar; the last one chosen is used.

    Raises NotConnectable for a read-only calendar, Invalid for a calendar of the service, NotFound.
    """
    with transaction.atomic():
        calendar = _lock(calendar)
        connection_of(calendar)
        if is_primary and not calendar.is_writable:
            raise NotConnectable(ProviderError("no_write_access"))
        if is_primary != calendar.provider_primary:
            _unset_primary(calendar.resource, now)
            calendar.provider_primary = is_primary
            calendar.save(update_fields=["provider_primary", "updated_at"])
            backfill(calendar, now=now)
    return calendar


def _name_of(discovered: DiscoveredCalendar) -> str:
    name = _NOT_IN_NAME.sub(" ", discovered.name).strip()[:200].strip()
    return name or urlsplit(discovered.address).hostname or "Calendar"


def _check_primary(discovered: DiscoveredCalendar, is_primary: bool | None) -> None:
    if is_primary and not discovered.may_write:
        raise NotConnectable(ProviderError("no_write_access"))


def _connections(resource: Resource) -> QuerySet[Connection]:
    rows = Connection.objects.filter(calendar__resource=resource, calendar__deleted_at=None)
    return rows.select_related("calendar")


def _refuse_connected(
    others: Sequence[Connection] | QuerySet[Connection], discovered: DiscoveredCalendar
) -> None:
    """Raise AlreadyExists if the resource has already connected the collection or feed."""
    for connection in others:
        if _address_of(connection) == discovered.address:
            name = connection.calendar.name
            raise AlreadyExists(
                Message("This calendar is already connected as “%(name)s”.", name=name)
            )


def _address_of(connection: Connection) -> str:
    """Return the decrypted address; "", which equals no other, if decryption fails."""
    try:
        return credentials_of(connection).address
    except ProviderError:
        return ""


def sends_password_to_new_host(calendar: Calendar, given: Mapping[str, Any]) -> bool:
    """Return whether the stored password would be sent to a new server.

    Somebody who does not know the password must not redirect it to a server where they can read it.
    """
    address = given.get("address")
    return bool(
        address
        and calendar.connection.password
        and "password" not in given
        and scheme_and_host(address) != scheme_and_host(calendar.provider_id)
    )


def _changed_access(connection: Connection, given: Mapping[str, Any]) -> CalendarAccess:
    """Return the stored credentials with `given` applied.

    Raises NotConnectable if stored ones are needed and can't be decrypted; Invalid for a user name
    or password of a calendar that is reached with a grant.
    """
    if connection.grant is not None:
        for name in ("username", "password"):
            if given.get(name):
                raise Invalid.at(name, GRANTED)
        return grant_access(
            connection.grant, given.get("address") or connection.calendar.provider_id
        )
    if {"address", "password"} <= given.keys():
        access = CalendarAccess(address="", username=connection.username)
    else:
        try:
            access = credentials_of(connection)
        except ProviderError as provider_error:
            raise NotConnectable(provider_error) from provider_error
    return access._replace(**{name: value or "" for name, value in given.items()})


def _set_discovered(
    calendar: Calendar,
    connection: Connection,
    discovered: DiscoveredCalendar,
    access: CalendarAccess,
) -> None:
    is_feed = not PROVIDERS[calendar.provider].can_write
    calendar.provider_id = scheme_and_host(discovered.address) if is_feed else discovered.address
    calendar.provider_access = Calendar.WRITER if discovered.may_write else Calendar.READER
    calendar.provider_invites = discovered.invites
    if calendar.provider in OAUTH_PROVIDERS:
        # They invite whoever is written as an attendee: the first e-mail needs no calendar file.
        connection.last_write_succeeded = connection.last_write_invited = True
    connection.user_addresses = [
        address for address in discovered.user_addresses if is_address(address)
    ][:MAX_USER_ADDRESSES]
    connection.makes_links = discovered.makes_links
    store_credentials(connection, access._replace(address=discovered.address))


def _unset_primary(resource: Resource, now: datetime) -> None:
    rows = Calendar.objects.filter(resource=resource, provider_primary=True)
    rows.update(provider_primary=False, updated_at=transaction_start())


def _clear_failures_and_lease(connection: Connection) -> None:
    """Clear failures and the lease: the result of a running sync is dropped."""
    connection.problem, connection.problem_since, connection.failures = "", None, 0
    connection.done = connection.total = 0
    connection.next_at, connection.lease_token = transaction_start(), None


def _delete_provider_events(calendar: Calendar) -> None:
    """Delete the events and objects read from the provider; bookings and mirrored events stay."""
    # No row references them, so the database need not check that for each of thousands.
    Event.objects.filter(id__in=events_of_provider(calendar).values("id"))._raw_delete(
        using=router.db_for_write(Event)
    )
    calendar.connection.remote_objects.all().delete()
    calendar.written.all().delete()


def events_of_provider(calendar: Calendar) -> QuerySet[Event]:
    """Return the calendar's events from the provider: all but those of bookings."""
    return calendar.events.filter(bookings=None, main=None)


def _lock(calendar: Calendar) -> Calendar:
    """Return the calendar's row with its resource locked. Raises NotFound if just deleted."""
    if not lock_resources_of_calendars([calendar]):
        raise NotFound("Calendar")
    return Calendar.objects.select_related("resource", "connection").get(id=calendar.id)


def connection_of(calendar: Calendar) -> Connection:
    """Return the calendar's connection. Raises Invalid for a calendar of the service."""
    if not calendar.is_connected:
        raise Invalid.at("calendar_id", "This calendar is not connected to a provider.")
    return calendar.connection


# --- Connected calendars --------------------------------------------------------------------------
def test_connection(calendar: Calendar) -> ConnectionTest:
    """Contact the provider as a worker would, and change nothing. Takes up to FIND_SECONDS.

    Raises Invalid for a calendar of the service.
    """
    connection = connection_of(calendar)
    begun = time.monotonic()
    try:
        discovered = PROVIDERS[calendar.provider].find_calendar(
            credentials_of(connection), deadline=FIND_SECONDS
        )
    except ProviderError as provider_error:
        return ConnectionTest(provider_error.code, "", time.monotonic() - begun)
    access = Calendar.WRITER if discovered.may_write else Calendar.READER
    lost = calendar.is_writable and not discovered.may_write
    return ConnectionTest("no_write_access" if lost else "", access, time.monotonic() - begun)


def request_sync(calendar: Calendar) -> Calendar:
    """Have a worker sync the calendar at once, even if a problem has stopped its syncs.

    A running sync continues and is not followed by another. If the permission of the account has
    ended, the worker first asks for a new access token, and the calendar stays stopped until there
    is one. Raises Invalid for a calendar of the service, NotFound for one that was just deleted.
    """
    with transaction.atomic():
        calendar = _lock(calendar)
        connection_of(calendar)
        waiting = Connection.objects.filter(calendar=calendar, lease_token=None)
        if not request_another_renewal(calendar.connection):
            waiting.update(next_at=transaction_start())
        # The caller may have fixed the missing write access; the next write will tell.
        kept_out = waiting.filter(problem=NO_WRITE_ACCESS)
        kept_out.update(problem="", problem_since=None)
        calendar.connection.refresh_from_db()
        wake_up_after_commit(SYNC_WAKEUP)
    return calendar


# --- Disconnect -----------------------------------------------------------------------------------
def disconnect_calendar(calendar: Calendar, *, now: datetime) -> Calendar:
    """Turn a connected calendar into a calendar of the service.

    It keeps its bookings and loses the provider's events. Mirrored events stay at the provider; the
    bookings are mirrored to the primary calendar from now on. Raises Invalid for a calendar of the
    service, NotFound for one that was just deleted.
    """
    with transaction.atomic():
        calendar = _lock(calendar)
        connection_of(calendar)
        _drop_connection(calendar)
        calendar.provider, calendar.provider_id = Calendar.SERVICE, ""
        calendar.provider_access, calendar.provider_invites = "", False
        calendar.provider_primary, calendar.synced_at = False, None
        calendar.save()
        backfill(calendar, now=now)
    return Calendar.objects.select_related("resource", "connection").get(id=calendar.id)


def remove_calendar(calendar: Calendar, *, now: datetime) -> None:
    """Delete a calendar, its feed, secrets and provider events. Raises as `delete_calendar`."""
    with transaction.atomic():
        delete_calendar(calendar, now=now)
        if calendar.is_connected:
            _drop_connection(calendar)
            Calendar.objects.filter(id=calendar.id).update(
                provider_primary=False, updated_at=transaction_start()
            )
        Feed.objects.filter(calendar=calendar).delete()


def _drop_connection(calendar: Calendar) -> None:
    _delete_provider_events(calendar)
    stop_channels_after_commit(calendar.connection)
    grant_id = calendar.connection.grant_id
    Connection.objects.filter(calendar=calendar).delete()
    delete_unused_grant(grant_id)
    Feed.objects.filter(calendar=calendar).delete()
