"""One sync of one connected calendar: fetch changes and store them.

Network requests never happen inside a transaction. Stored objects stay: after an interrupted sync
the next one fetches only objects with an unknown etag. The new sync token is stored, and the
calendar counts as synced, only after everything is stored.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from typing import TypeVar

from django.db import DatabaseError

from common.db.sql import database_now
from external_calendars.credentials import credentials_of
from external_calendars.grants import request_renewal
from external_calendars.mirror.backfill import retry_now
from external_calendars.models import Connection
from external_calendars.providers import PROVIDERS
from external_calendars.providers.base import TOKEN_REFUSED, ChangeSet, ProviderError, RemoteObject
from external_calendars.push import maintain_channel
from external_calendars.sync.inbound_changes import apply_inbound_changes
from external_calendars.sync.leases import (
    LeaseLost,
    locked_connection,
    record_problem,
    record_progress,
    record_synced,
    release_lease,
    release_synced,
)
from external_calendars.sync.store import (
    chunked,
    delete_objects,
    read_all,
    reading_context,
    store_objects,
    sync_window,
)

logger = logging.getLogger(__name__)

# Timeouts for a provider's answer, in seconds, well within a lease: some servers read a large
# calendar completely before they answer.
SYNC_SECONDS, BATCH_SECONDS = 90.0, 30.0
BATCH = 100  # objects per transaction
BATCH_GONE = 500
MAX_HREF, MAX_ETAG = 1000, 300

# Results of a sync.
SYNCED, UNFINISHED, FAILED, LEASE_LOST = "synced", "unfinished", "failed", "lease lost"

ReportProgress = Callable[[int, int], None]
T = TypeVar("T")


def sync_calendar(
    connection: Connection,
    *,
    stopping: Callable[[], bool] = lambda: False,
    report_progress: ReportProgress = lambda done, total: None,
) -> str:
    """Sync a claimed calendar once, release the lease, and return a result such as SYNCED.

    stopping: checked between batches; if true, the next worker to claim the calendar continues.
    report_progress: called with the numbers of stored and of all objects. Raises DatabaseError; the
    lease then expires.
    """
    try:
        return _SyncRun(connection, stopping, report_progress).run()
    except LeaseLost:
        return LEASE_LOST
    except ProviderError as provider_error:
        logger.info("calendar %s: %s (%s)", connection.pk, provider_error.code, provider_error)
        record_problem(connection, provider_error)
        if provider_error.code == TOKEN_REFUSED:
            request_renewal(connection.pk)
    except DatabaseError:
        raise
    except Exception:
        # An unexpected error must neither be retried at once nor stop other calendars.
        logger.exception("calendar %s can't be read", connection.pk)
        record_problem(connection, ProviderError("bad_answer"))
    return FAILED


class _SyncRun:
    def __init__(
        self, connection: Connection, stopping: Callable[[], bool], report_progress: ReportProgress
    ) -> None:
        self.connection, self.stopping, self.report_progress = connection, stopping, report_progress

    def run(self) -> str:
        begun = database_now()
        self.window = sync_window(begun)
        self.provider = PROVIDERS[self.connection.calendar.provider]
        self.access = credentials_of(self.connection)
        self._reset_sync_if_context_changed()
        change_set = self.provider.list_changes(
            self.access, self.connection.mark, self, deadline=SYNC_SECONDS
        )
        self.new_etags = self._changed_etags(change_set)
        self.connection.done, self.connection.total = 0, len(self.new_etags)
        if self.new_etags:
            record_progress(self.connection, 0, len(self.new_etags))
        for objects in self._batches(change_set):
            self._store_objects(objects)
            if self.stopping():
                release_lease(self.connection, at_once=True)
                return UNFINISHED
        self._delete_missing(change_set)
        self.connection.mark = dict(change_set.mark)
        with locked_connection(self.connection):
            record_synced(self.connection, begun=begun)
        if self.connection.failures:
            retry_now(self.connection, now=begun)
        self._follow_edits()
        if self._opened_channel():
            release_lease(self.connection, at_once=True)
        else:
            release_synced(self.connection, begun=begun)
        return SYNCED

    # --- StoredObjects, for the provider ----------------------------------------------------------
    def etags(self) -> dict[str, str]:
        return self.known

    def texts(self, hrefs: Collection[str]) -> dict[str, str]:
        rows = self.connection.remote_objects.filter(href__in=hrefs).exclude(text="")
        return dict(rows.values_list("href", "text"))

    @cached_property
    def known(self) -> dict[str, str]:
        """href -> etag of the stored objects."""
        return dict(self.connection.remote_objects.values_list("href", "etag"))

    def _reset_sync_if_context_changed(self) -> None:
        """Read everything anew if the resource's zone or e-mail changed: both affect parsing."""
        context = reading_context(self.connection)
        if self.connection.read_as == context:
            return
        with locked_connection(self.connection):
            self.connection.remote_objects.update(etag="")
            self.connection.mark, self.connection.read_as = {}, context
            self.connection.save(update_fields=["mark", "read_as"])

    def _changed_etags(self, change_set: ChangeSet) -> dict[str, str]:
        """Return href -> etag of the objects that are not stored yet."""
        etags = {}
        for href, etag in change_set.changed.items():
            etag = etag[:MAX_ETAG]
            if len(href) > MAX_HREF:
                logger.warning("calendar %s: a path is too long", self.connection.pk)
            elif not etag or self.known.get(href) != etag:
                etags[href] = etag
        return etags

    def _batches(self, change_set: ChangeSet) -> Iterator[Sequence[RemoteObject]]:
        """Yield the objects that came with the change set, then fetch the others."""
        batch = [
            RemoteObject(href, etag, change_set.texts[href])
            for href, etag in self.new_etags.items()
            if href in change_set.texts
        ]
        yield from _chunks(batch, BATCH)
        away = [href for href in self.new_etags if href not in change_set.texts]
        if away:
            for objects in self.provider.fetch(self.access, away, deadline=BATCH_SECONDS):
                yield from _chunks(objects, BATCH)

    def _store_objects(self, objects: Sequence[RemoteObject]) -> None:
        fetched = [
            remote_object._replace(
                etag=(remote_object.etag or self.new_etags[remote_object.href])[:MAX_ETAG]
            )
            for remote_object in objects
            if remote_object.href in self.new_etags
        ]
        reads = read_all(self.connection, fetched, self.window)
        for part in chunked(reads):
            with locked_connection(self.connection):
                store_objects(self.connection, part, self.window)
                done = self.connection.done + len(part)
                record_progress(self.connection, done, self.connection.total)
        self.report_progress(self.connection.done, self.connection.total)

    def _delete_missing(self, change_set: ChangeSet) -> None:
        missing = [href for href in change_set.gone if href not in change_set.changed]
        if change_set.is_whole:
            missing = [href for href in self.known if href not in change_set.changed]
        for hrefs in _chunks(missing, BATCH_GONE):
            with locked_connection(self.connection):
                delete_objects(self.connection, hrefs)

    def _follow_edits(self) -> None:
        """Apply changes made to mirrored events; if this fails, the calendar is still synced."""
        try:
            apply_inbound_changes(self.connection, now=database_now())
        except Exception:
            logger.exception("calendar %s: edits can't be followed", self.connection.pk)

    def _opened_channel(self) -> bool:
        """Keep the push channel; return whether a new one was opened, so that a sync follows."""
        try:
            return maintain_channel(self.connection, self.access)
        except Exception:
            logger.exception("calendar %s: no push", self.connection.pk)
            return False


def _chunks(whole: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for first in range(0, len(whole), size):
        yield whole[first : first + size]
