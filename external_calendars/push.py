"""Push: providers say that a calendar has changed, and a worker syncs it at once.

A message only makes the calendar due. Messages get lost, so calendars are polled all the same.
"""

import hashlib
import logging
import secrets
import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from django.conf import settings
from django.db import transaction
from django.db.models import Case, F, Q, Value, When

from common.db.sql import database_now
from external_calendars.credentials import credentials_of
from external_calendars.models import Connection, PushChannel
from external_calendars.providers import OAUTH_PROVIDERS
from external_calendars.providers.base import (
    CalendarAccess,
    ChannelEnded,
    OAuthProvider,
    ProviderError,
)
from external_calendars.sync.leases import SYNC_WAKEUP
from notifications.outbox.wakeup import wake_up_after_commit

logger = logging.getLogger(__name__)

NOTIFICATIONS_PATH = "/v2/calendars/notifications"
WATCH_SECONDS = 10.0
STOP_SECONDS = 5.0  # for all channels of a calendar
# Until another try to open or extend a channel.
WATCH_PAUSE = timedelta(hours=1)
# A channel that is being opened may call before the answer of the provider.
OPENING = timedelta(minutes=1)
# An operator hears of push that has not worked for longer; ended channels are kept as long.
DEAD_AFTER = timedelta(days=1)

# What messages say: that the channel exists; that the calendar has changed; and of Microsoft's
# subscriptions, that they end soon, have ended, or have lost messages.
OPENED, CHANGED = "opened", "changed"
REAUTHORIZE, REMOVED, MISSED = "reauthorizationRequired", "subscriptionRemoved", "missed"
LIFECYCLE = frozenset({REAUTHORIZE, REMOVED, MISSED})
# Message -> fields of its channel that become the present: a worker then extends or replaces it.
CHANNEL_ENDS = {REAUTHORIZE: ("renew_at",), REMOVED: ("renew_at", "ends_at")}


class PushMessage(NamedTuple):
    """kind: one of the above."""

    channel_id: str
    token: str
    kind: str


def push_address(provider: str) -> str:
    """Return the address that the provider calls; "" if it can't reach this service.

    Providers call https only, except for fakes of them behind a gateway.
    """
    if not (settings.HTTPS or settings.CALENDAR_PROVIDER_GATEWAY):
        return ""
    return f"{settings.PUBLIC_URL}{NOTIFICATIONS_PATH}/{provider}"


# --- Messages -------------------------------------------------------------------------------------
def receive_messages(messages: Sequence[PushMessage]) -> None:
    """Make the calendars of the messages due, and wake a worker.

    Nothing happens without a live channel and its token. A paused calendar (after an error) stays
    paused, and a stopped one stopped.
    """
    now = database_now()
    channels = _authentic_channels(messages, now)
    new = [channel.pk for channel, _kind in channels if channel.heard_at is None]
    if new:
        PushChannel.objects.filter(pk__in=new).update(heard_at=now)
    for kind, fields in CHANNEL_ENDS.items():
        told = [channel.pk for channel, said in channels if said == kind]
        if told:
            PushChannel.objects.filter(pk__in=told).update(**dict.fromkeys(fields, now))
    missed = {channel.connection_id for channel, kind in channels if kind == MISSED}
    changed = {channel.connection_id for channel, kind in channels if kind != OPENED} - missed
    if changed:
        _make_due(changed, now)
    if missed:
        # Another context of reading makes the next sync read everything.
        _make_due(missed, now, read_as="")
    if changed or missed:
        wake_up_after_commit(SYNC_WAKEUP)


def _authentic_channels(
    messages: Sequence[PushMessage], now: datetime
) -> list[tuple[PushChannel, str]]:
    """Return the live channels of the messages that have the channel's token, with their kinds."""
    ids = {message.channel_id for message in messages}
    found = PushChannel.objects.filter(channel_id__in=ids, ends_at__gt=now)
    channels = {channel.channel_id: channel for channel in found}
    return [
        (channel, message.kind)
        for message in messages
        if (channel := channels.get(message.channel_id))
        and secrets.compare_digest(channel.token_hash, _token_hash(message.token))
    ]


def _make_due(calendar_ids: Iterable[uuid.UUID], now: datetime, **values: str) -> None:
    """During a sync, `notified_at` alone makes it repeat: see `release_synced`."""
    is_waiting = Q(lease_token=None, failures=0, next_at__gt=now)
    Connection.objects.filter(pk__in=calendar_ids).update(
        notified_at=now,
        next_at=Case(When(is_waiting, then=Value(now)), default=F("next_at")),
        **values,
    )


def _token_hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


# --- Channels -------------------------------------------------------------------------------------
def maintain_channel(connection: Connection, access: CalendarAccess) -> bool:
    """Open, extend and end channels of a calendar that was just synced. Not in a transaction.

    Return whether a new one was opened: what has changed before it is in another sync. Failures are
    only logged.
    """
    provider = OAUTH_PROVIDERS.get(connection.calendar.provider)
    address = push_address(connection.calendar.provider)
    if provider is None or not address:
        return False
    now = database_now()
    channels = _without_replaced(connection, provider, access, now)
    if any(channel.renew_at > now for channel in channels):
        return False
    live = [channel for channel in channels if channel.ends_at > now]
    if live and _extend(provider, access, live[0]):
        return False
    return _open(provider, access, connection, address)


def _without_replaced(
    connection: Connection, provider: OAuthProvider, access: CalendarAccess, now: datetime
) -> list[PushChannel]:
    """End the channels older than the newest one that works, and delete old rows; return the
    others, the newest first.
    """
    channels = list(connection.channels.order_by("-created_at", "-pk"))
    works = [channel for channel in channels if channel.heard_at and channel.ends_at > now]
    replaced = channels[channels.index(works[0]) + 1 :] if works else []
    for channel in replaced:
        if channel.ends_at > now:
            _stop(provider, access, channel.channel_id, channel.resource_id, STOP_SECONDS)
    ended = Q(ends_at__lte=now - DEAD_AFTER) | Q(ends_at__lte=now, heard_at=None, renew_at__lte=now)
    old = Q(pk__in=[channel.pk for channel in replaced]) | ended
    connection.channels.filter(old).delete()
    return [channel for channel in channels if channel not in replaced]


def _extend(provider: OAuthProvider, access: CalendarAccess, channel: PushChannel) -> bool:
    """Return whether the channel needs no new one; also if it is tried again later."""
    now = database_now()
    try:
        ends_at = provider.extend_watch(access, channel.channel_id, deadline=WATCH_SECONDS)
    except ChannelEnded:
        _update(channel, ends_at=now)
        return False
    except ProviderError as error:
        _log_failure(channel, error)
        _update(channel, renew_at=now + WATCH_PAUSE)
        return True
    if ends_at is None:
        return False
    _update(channel, ends_at=ends_at, renew_at=_half_life(now, ends_at))
    return True


def _open(
    provider: OAuthProvider, access: CalendarAccess, connection: Connection, address: str
) -> bool:
    """Return whether a channel was opened. Its row is there before: it may call at once."""
    token, now = secrets.token_urlsafe(32), database_now()
    channel = PushChannel.objects.create(
        connection=connection,
        channel_id=str(uuid.uuid4()),
        token_hash=_token_hash(token),
        renew_at=now + WATCH_PAUSE,
        ends_at=now + OPENING,
        created_at=now,
    )
    try:
        watched = provider.watch(access, channel.channel_id, token, address, deadline=WATCH_SECONDS)
    except ProviderError as error:
        _log_failure(channel, error)
        _update(channel, ends_at=database_now())
        return False
    is_stored = _update(
        channel,
        channel_id=watched.channel_id,
        resource_id=watched.resource_id,
        ends_at=watched.ends_at,
        renew_at=_half_life(now, watched.ends_at),
        **({"heard_at": now} if watched.is_heard else {}),
    )
    if not is_stored:  # the calendar was disconnected meanwhile
        _stop(provider, access, watched.channel_id, watched.resource_id, STOP_SECONDS)
    return is_stored


def _update(channel: PushChannel, **values: object) -> bool:
    """Return whether the row exists."""
    return bool(PushChannel.objects.filter(pk=channel.pk).update(**values))


def _half_life(now: datetime, ends_at: datetime) -> datetime:
    return now + (ends_at - now) / 2


def _log_failure(channel: PushChannel, error: ProviderError) -> None:
    logger.info("push of calendar %s: %s (%s)", channel.connection_id, error.code, error)


# --- The end --------------------------------------------------------------------------------------
def stop_channels_after_commit(connection: Connection) -> None:
    """End the calendar's channels, whose rows are deleted here, when the transaction is committed.

    A failure is only logged: messages of an unknown channel change nothing, and it ends by itself.
    """
    channels = list(connection.channels.values_list("channel_id", "resource_id"))
    connection.channels.all().delete()
    provider = OAUTH_PROVIDERS.get(connection.calendar.provider)
    if provider is None or not channels:
        return
    try:
        access = credentials_of(connection)
    except ProviderError:
        return
    for channel_id, resource_id in channels:
        stop = partial(
            _stop, provider, access, channel_id, resource_id, STOP_SECONDS / len(channels)
        )
        transaction.on_commit(stop, robust=True)


def _stop(
    provider: OAuthProvider,
    access: CalendarAccess,
    channel_id: str,
    resource_id: str,
    deadline: float,
) -> None:
    try:
        provider.stop_watching(access, channel_id, resource_id, deadline=deadline)
    except ProviderError as error:
        logger.info("channel %s goes on: %s (%s)", channel_id, error.code, error)
