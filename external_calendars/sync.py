"""One pass over one calendar elsewhere: what is new there is fetched, and kept here.

Network and transactions take turns and never meet. What is in stays in: a pass that ends early, for
whatever reason, is taken up by the next, which fetches only what is not known by its etag. Only
when all is in does the mark move on and the calendar count as in step.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TypeVar

from django.db import DatabaseError

from external_calendars.access import access_of
from external_calendars.claims import (
    LeaseLost,
    held,
    note_in_step,
    note_progress,
    note_trouble,
    release,
)
from external_calendars.edits import follow_edits
from external_calendars.keeping import forget, portions, read_all, reader_of, store, window_at
from external_calendars.models import Connection
from external_calendars.providers import PROVIDERS
from external_calendars.providers.base import Look, Object, Trouble
from external_calendars.writing import hurry
from scheduling.api.sql import database_now

logger = logging.getLogger(__name__)

# A provider's answer is awaited for so long, well within a lease, in seconds: some servers read all
# of a large calendar before the first word.
LOOK_SECONDS, BATCH_SECONDS = 90.0, 30.0
BATCH = 100  # objects to a transaction
BATCH_GONE = 500
LONGEST_HREF, LONGEST_ETAG = 1000, 300

# How a pass ends.
IN_STEP, UNFINISHED, TROUBLED, LOST = "in step", "unfinished", "troubled", "lost"

Told = Callable[[int, int], None]
T = TypeVar("T")


def sync(
    connection: Connection,
    *,
    stopping: Callable[[], bool] = lambda: False,
    told: Told = lambda done, total: None,
) -> str:
    """Look at a claimed calendar once and give it back; says how that ended.

    stopping: asked between batches; then the pass is left to whoever claims it next. told: how many
    of how many objects are in. Raises the database's errors: the lease is left to lapse.
    """
    try:
        return _Pass(connection, stopping, told).run()
    except LeaseLost:
        return LOST
    except Trouble as trouble:
        logger.info("calendar %s: %s (%s)", connection.pk, trouble.code, trouble)
        note_trouble(connection, trouble)
    except DatabaseError:
        raise
    except Exception:
        # One that nobody foresaw must not be tried again at once, nor stop the others.
        logger.exception("calendar %s can't be read", connection.pk)
        note_trouble(connection, Trouble("bad_answer"))
    return TROUBLED


class _Pass:
    def __init__(self, connection: Connection, stopping: Callable[[], bool], told: Told) -> None:
        self.connection, self.stopping, self.told = connection, stopping, told

    def run(self) -> str:
        begun = database_now()
        self.window = window_at(begun)
        self.provider = PROVIDERS[self.connection.calendar.provider]
        self.access = access_of(self.connection)
        self._check_reader()
        look = self.provider.look(
            self.access, self.connection.mark, lambda: self.known, deadline=LOOK_SECONDS
        )
        self.etags = self._wanted(look)
        self.connection.done, self.connection.total = 0, len(self.etags)
        if self.etags:
            note_progress(self.connection, 0, len(self.etags))
        for objects in self._batches(look):
            self._keep(objects)
            if self.stopping():
                release(self.connection, at_once=True)
                return UNFINISHED
        self._forget(look)
        self.connection.mark = dict(look.mark)
        with held(self.connection):
            note_in_step(self.connection, begun=begun)
        if self.connection.failures:
            hurry(self.connection, address=self.access.address, now=begun)
        self._follow_edits()
        release(self.connection)
        return IN_STEP

    @cached_property
    def known(self) -> dict[str, str]:
        """href -> etag of what is in."""
        return dict(self.connection.remote_objects.values_list("href", "etag"))

    def _check_reader(self) -> None:
        """With another clock, or another owner, every text may mean something else."""
        reader = reader_of(self.connection)
        if self.connection.read_as == reader:
            return
        with held(self.connection):
            self.connection.remote_objects.update(etag="")
            self.connection.mark, self.connection.read_as = {}, reader
            self.connection.save(update_fields=["mark", "read_as"])

    def _wanted(self, look: Look) -> dict[str, str]:
        """href -> etag of what is not in yet."""
        wanted = {}
        for href, etag in look.changed.items():
            etag = etag[:LONGEST_ETAG]
            if len(href) > LONGEST_HREF:
                logger.warning("calendar %s: a path is too long", self.connection.pk)
            elif not etag or self.known.get(href) != etag:
                wanted[href] = etag
        return wanted

    def _batches(self, look: Look) -> Iterator[Sequence[Object]]:
        """What came with the look, then what is fetched."""
        here = [
            Object(href, etag, look.texts[href])
            for href, etag in self.etags.items()
            if href in look.texts
        ]
        yield from _cut(here, BATCH)
        away = [href for href in self.etags if href not in look.texts]
        if away:
            for objects in self.provider.fetch(self.access, away, deadline=BATCH_SECONDS):
                yield from _cut(objects, BATCH)

    def _keep(self, objects: Sequence[Object]) -> None:
        fetched = [
            one._replace(etag=(one.etag or self.etags[one.href])[:LONGEST_ETAG])
            for one in objects
            if one.href in self.etags
        ]
        reads = read_all(self.connection, fetched, self.window)
        for part in portions(reads):
            with held(self.connection):
                store(self.connection, part, self.window)
                done = self.connection.done + len(part)
                note_progress(self.connection, done, self.connection.total)
        self.told(self.connection.done, self.connection.total)

    def _forget(self, look: Look) -> None:
        gone = [href for href in look.gone if href not in look.changed]
        if look.is_whole:
            gone = [href for href in self.known if href not in look.changed]
        for hrefs in _cut(gone, BATCH_GONE):
            with held(self.connection):
                forget(self.connection, hrefs)

    def _follow_edits(self) -> None:
        """What became of our own events there; if that fails, the calendar is in step all the
        same."""
        try:
            follow_edits(self.connection, now=database_now())
        except Exception:
            logger.exception("calendar %s: edits can't be followed", self.connection.pk)


def _cut(whole: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for first in range(0, len(whole), size):
        yield whole[first : first + size]
