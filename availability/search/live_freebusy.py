"""The live free/busy check of external calendars, just before a time is taken."""

import uuid
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from availability.search.availability_query import ExternalBusy
from availability.search.queries import TimeSpan
from common.hooks import Hook


class FreebusySource(Protocol):
    """Returns busy time by resource; with `ignore_all_day` without all-day items."""

    def __call__(
        self, resource_ids: Collection[uuid.UUID], span: TimeSpan, *, ignore_all_day: bool
    ) -> Mapping[uuid.UUID, Sequence[TimeSpan]]: ...


# Sources of busy time in external calendars, queried live. Each returns within a few seconds,
# whatever the server does, and omits the resources that it could not query. Called outside of any
# transaction.
freebusy_sources = Hook[FreebusySource]()


def fetch_live_busy(
    resource_ids: Collection[uuid.UUID], span: TimeSpan, *, ignore_all_day: bool = False
) -> ExternalBusy:
    """The busy time in external calendars by resource; resources that are free are omitted."""
    busy_times: dict[uuid.UUID, list[TimeSpan]] = {}
    for source in freebusy_sources:
        answer = source(resource_ids, span, ignore_all_day=ignore_all_day)
        for resource_id, spans in answer.items():
            if spans:
                busy_times.setdefault(resource_id, []).extend(spans)
    return busy_times
