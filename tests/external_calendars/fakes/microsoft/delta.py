"""Rounds of calendarView/delta: what changed in a window since the last round, in pages.

A round is a snapshot. `$skiptoken` names a page of it, `$deltatoken` its end; both are opaque and
encode calendar and window (https://learn.microsoft.com/graph/delta-query-events).
"""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from tests.external_calendars.fakes.microsoft.events import (
    Instance,
    Item,
    Mailbox,
    instances_between,
    times_of,
)


class Removed(NamedTuple):
    id: str


class Master(NamedTuple):
    """The master of a series, which delta returns beside the occurrences in the window."""

    instance: Instance


Entry = Removed | Master | Instance


class Window(NamedTuple):
    folder_id: str
    begin: datetime
    end: datetime


@dataclass(frozen=True)
class Round:
    """pages: of entries. number: the mailbox's last change at its begin. shown: id of a series ->
    the ids of its occurrences that the client has."""

    mailbox_id: str
    window: Window
    pages: list[list[Entry]]
    number: int
    shown: dict[str, frozenset[str]]


class Place(NamedTuple):
    """Where a token continues: a page of a round; after the last one, the next round."""

    round: Round
    page: int


@dataclass
class Delta:
    """The rounds of all mailboxes, and how awkward they are.

    empty_pages: so many pages without an item begin each round. repeats_items: the last item of a
    page comes again in the next one. splits_series: a series may go over several pages; without it
    its page grows (observed, but not documented:
    https://github.com/microsoftgraph/microsoft-graph-docs/pull/4501). reports_occurrences: an
    occurrence that is gone comes as removed; without it, it is only missing from its series, all of
    which comes again (observed there too). removed_reason: "deleted", or "changed" for what the
    person can still restore. ended_code: of the error 410; "resyncRequired" is another.
    """

    empty_pages: int = 0
    repeats_items: bool = False
    splits_series: bool = False
    reports_occurrences: bool = False
    removed_reason: str = "deleted"
    ended_code: str = "SyncStateNotFound"
    _places: dict[str, Place] = field(default_factory=dict)

    def end_tokens(self) -> None:
        """Let no token that was given out be valid any more: the answer is 410."""
        self._places.clear()

    def find(self, token: str, mailbox: Mailbox) -> Place | None:
        place = self._places.get(token)
        return place if place and place.round.mailbox_id == mailbox.id else None

    def token(self, place: Place) -> str:
        token = secrets.token_urlsafe(60)
        self._places[token] = place
        return token

    def begin(self, mailbox: Mailbox, window: Window, size: int, last: Round | None) -> Round:
        """Begin a round with pages of `size` items, after the last one if there is one."""
        shown = dict(last.shown) if last else {}
        groups = list(self._groups(mailbox, window, last, shown))
        if self.splits_series:
            groups = [[entry] for group in groups for entry in group]
        pages: list[list[Entry]] = [[]]
        for group in groups:
            if pages[-1] and len(pages[-1]) + len(group) > size:
                pages.append([])
            pages[-1] += group
        if self.repeats_items:
            earlier = [page[-1:] for page in pages[:-1]]
            pages = pages[:1] + [
                again + page for again, page in zip(earlier, pages[1:], strict=True)
            ]
        pages = [[] for _ in range(self.empty_pages)] + pages
        return Round(mailbox.id, window, pages, mailbox.change, shown)

    def _groups(
        self,
        mailbox: Mailbox,
        window: Window,
        last: Round | None,
        shown: dict[str, frozenset[str]],
    ) -> Iterator[list[Entry]]:
        """Yield the entries of each item that changed, a series as a whole."""
        changed = [
            item
            for item in mailbox.items.values()
            if item.folder_id == window.folder_id and item.change > (last.number if last else 0)
        ]
        for item in sorted(changed, key=lambda item: item.change):
            instances: list[Instance] = []
            if not item.is_deleted:
                instances += instances_between(item, window.begin, window.end)
            entries: list[Entry] = []
            if instances and item.is_series:
                entries.append(Master(master_of(item)))
            entries += instances
            # Also for what was never in the window
            # (https://learn.microsoft.com/graph/api/event-delta, "Response").
            if last and not instances:
                entries.append(Removed(item.id))
            ids = frozenset(instance.id for instance in instances if instance.day)
            gone = shown.pop(item.id, frozenset()) - ids
            if self.reports_occurrences:
                entries += [Removed(each) for each in sorted(gone)]
            if ids:
                shown[item.id] = ids
            if entries:
                yield entries


def master_of(item: Item) -> Instance:
    return Instance(*times_of(item.properties), item)
