"""A last question to calendars elsewhere, just before a time is taken; the rooms above ask it."""

import uuid
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from availability.reading import Span
from availability.search import Elsewhere


class Asker(Protocol):
    """Says by resource what takes its time; `ignore_all_day`: but for what fills whole days."""

    def __call__(
        self, resource_ids: Collection[uuid.UUID], span: Span, *, ignore_all_day: bool
    ) -> Mapping[uuid.UUID, Sequence[Span]]: ...


ASKERS: list[Asker] = []


def asks_outside(asker: Asker) -> Asker:
    """Have the function asked what takes the time of resources in a span, elsewhere and right now.

    It returns within a few seconds, whatever the other side does, and names no resource that it
    could not ask about. Called outside of any transaction.
    """
    ASKERS.append(asker)
    return asker


def ask_outside(
    resource_ids: Collection[uuid.UUID], span: Span, *, ignore_all_day: bool = False
) -> Elsewhere:
    """By resource, what takes its time elsewhere; resources that are free are left out."""
    found: dict[uuid.UUID, list[Span]] = {}
    for asker in ASKERS:
        answer = asker(resource_ids, span, ignore_all_day=ignore_all_day)
        for resource_id, spans in answer.items():
            if spans:
                found.setdefault(resource_id, []).extend(spans)
    return found
