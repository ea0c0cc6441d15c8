"""Many rows: read without holding all of them, and without a cursor that poolers lose; written
with few statements."""

import json
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from django.db import transaction
from django.db.models import Model, QuerySet


def by_slices(rows: QuerySet, size: int) -> Iterator[list[Any]]:
    """The rows in the order of their keys, up to `size` at a time, a query for each slice."""
    rows = rows.order_by("pk")
    found = list(rows[:size])
    while found:
        yield found
        found = list(rows.filter(pk__gt=found[-1].pk)[:size]) if len(found) == size else []


def slices_of(keys: Collection[Any], size: int) -> Iterator[list[Any]]:
    """The keys in their order, up to `size` at a time."""
    ordered = sorted(keys)
    for start in range(0, len(ordered), size):
        yield ordered[start : start + size]


def delete_in_slices(
    rows: QuerySet, order: str, size: int, *, referring: str = "pk"
) -> Iterator[int]:
    """Delete rows, up to `size` in a transaction; yields how many went.

    `referring` is the column by which rows of the same table refer to them: those go first. Nothing
    else may refer to them. The ORM's own deletion would take a statement for each hundred.
    `order` is the column of the index by which they are found. What has been deleted still stands
    in that index until it is vacuumed, so each slice begins where the last one ended.
    """
    rows = rows.order_by(order)
    while found := list(rows.values_list("pk", order)[:size]):
        keys = [pk for pk, _ in found]
        with transaction.atomic():
            for column in dict.fromkeys([referring, "pk"]):
                gone = rows.model._default_manager.filter(**{f"{column}__in": keys})
                gone._raw_delete(using=rows.db)
        yield len(found)
        rows = rows.filter(**{f"{order}__gte": found[-1][1]})


def exhausted_within(seconds: float, work: Iterator[Any]) -> bool:
    """Whether all of the work could be done in that time; else it was left between two steps."""
    ends = time.monotonic() + seconds
    return all(time.monotonic() < ends for _ in work)


def save_alike(model: type[Model], changes: Mapping[Any, Mapping[str, Any]]) -> None:
    """Write texts and JSON: key -> column -> value. One statement for each value of a column.

    Where many rows get the same few values `bulk_update` would build a case for each of them.
    """
    alike = defaultdict(list)
    for key, values in changes.items():
        for column, value in values.items():
            alike[column, json.dumps(value)].append(key)
    for (column, text), keys in alike.items():
        model._default_manager.filter(pk__in=keys).update(**{column: json.loads(text)})
