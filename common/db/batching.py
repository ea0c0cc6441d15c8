"""Read, write and delete many rows in batches, without server-side cursors (poolers lose them)."""

import json
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from django.db import transaction
from django.db.models import Model, QuerySet

from common.db.updated_at import transaction_start


def iterate_batches(rows: QuerySet, size: int) -> Iterator[list[Any]]:
    """Yield the rows in the order of their keys, up to `size` at a time. One query per batch."""
    rows = rows.order_by("pk")
    batch = list(rows[:size])
    while batch:
        yield batch
        batch = list(rows.filter(pk__gt=batch[-1].pk)[:size]) if len(batch) == size else []


def key_batches(keys: Collection[Any], size: int) -> Iterator[list[Any]]:
    """Yield the sorted keys, up to `size` at a time."""
    ordered = sorted(keys)
    for start in range(0, len(ordered), size):
        yield ordered[start : start + size]


def delete_in_batches(
    rows: QuerySet, order: str, size: int, *, referring: str = "pk"
) -> Iterator[int]:
    """Delete rows, up to `size` per transaction; yield the number of rows deleted.

    order: the column of the index that finds the rows. Deleted rows remain in that index until a
    vacuum, so each batch starts where the last one ended. referring: a column by which rows of the
    same table refer to the rows; those are deleted first. No other table may refer to the rows. The
    ORM's own deletion takes one statement per hundred rows.
    """
    rows = rows.order_by(order)
    while keys_and_order := list(rows.values_list("pk", order)[:size]):
        keys = [pk for pk, _ in keys_and_order]
        with transaction.atomic():
            for column in dict.fromkeys([referring, "pk"]):
                batch_rows = rows.model._default_manager.filter(**{f"{column}__in": keys})
                batch_rows._raw_delete(using=rows.db)
        yield len(keys_and_order)
        rows = rows.filter(**{f"{order}__gte": keys_and_order[-1][1]})


def finish_within(seconds: float, work: Iterator[Any]) -> bool:
    """Run the iterator until `seconds` have passed; return whether it was exhausted."""
    ends = time.monotonic() + seconds
    return all(time.monotonic() < ends for _ in work)


def update_json_columns(model: type[Model], changes: Mapping[Any, Mapping[str, Any]]) -> None:
    """Write texts and JSON, key -> column -> value, and `updated_at` if the model has it.

    One statement per distinct value: `bulk_update` would build a CASE branch per row, even if many
    rows get the same few values.
    """
    rows_by_columns = defaultdict(list)
    for key, values in changes.items():
        for column, value in values.items():
            rows_by_columns[column, json.dumps(value)].append(key)
    stamp = (
        {"updated_at": transaction_start()}
        if rows_by_columns and hasattr(model, "updated_at")
        else {}
    )
    for (column, text), keys in rows_by_columns.items():
        rows = model._default_manager.filter(pk__in=keys)
        rows.update(**{column: json.loads(text)}, **stamp)
