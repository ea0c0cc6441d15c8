"""Queries of a fixed form: the ORM builds their SQL once per process, not for each call.

Building a statement with eight joins takes the ORM several times as long as the database needs to
answer it (docs/benchmarks.md).
"""

import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache
from types import SimpleNamespace
from typing import Any

from django.db import connection
from django.db.models import Model, QuerySet
from django.db.models.query import ModelIterable

from common.sql import datetime_param, id_param


class FixedQuery:
    """`FixedQuery(lambda app, booking: Booking.objects.filter(app=app, id=booking))(app_id, id)`.

    `build` returns a queryset of whole rows from ids, which may be parameters of its SQL only, each
    once. Relations that the queryset prefetches are not read.
    """

    def __init__(self, build: Callable[..., QuerySet[Any]]) -> None:
        self.build = build
        self._statements: dict[str, _Statement] = {}

    def __call__(self, *ids: uuid.UUID) -> list[Any]:
        vendor = connection.vendor
        statement = self._statements.get(vendor)
        if statement is None:
            marks = [uuid.uuid4() for _ in ids]
            statement = self._statements[vendor] = _Statement(self.build(*marks), marks)
        return statement.fetch(ids)


class _Statement:
    """The compiled SQL of a queryset; in place of its query, it gives Django the rows."""

    def __init__(self, queryset: QuerySet[Any], marks: list[uuid.UUID]) -> None:
        compiler = queryset.query.get_compiler(connection.alias)
        self.sql, params = compiler.as_sql()
        self.params = list(params)
        self.places = [self.params.index(id_param(mark)) for mark in marks]
        self.compiler = compiler
        self.select, self.klass_info = compiler.select, compiler.klass_info
        self.annotation_col_map = compiler.annotation_col_map
        self.model = queryset.model

    def fetch(self, ids: tuple[uuid.UUID, ...]) -> list[Any]:
        params = self.params.copy()
        for place, identifier in zip(self.places, ids, strict=True):
            params[place] = id_param(identifier)
        with connection.cursor() as cursor:
            cursor.execute(self.sql, params)
            rows = cursor.fetchall()
        query = SimpleNamespace(get_compiler=lambda using: _Results(self, rows))
        executed: Any = SimpleNamespace(
            db=connection.alias, model=self.model, query=query, _known_related_objects={}
        )
        return list(ModelIterable(executed))


class _Results:
    """What ModelIterable needs of a compiler that has executed its statement."""

    def __init__(self, statement: _Statement, rows: list[Any]) -> None:
        self.select, self.klass_info = statement.select, statement.klass_info
        self.annotation_col_map = statement.annotation_col_map
        self.results_iter = statement.compiler.results_iter
        self.rows = rows

    def execute_sql(self, **_: Any) -> list[list[Any]]:
        return [self.rows]


class FixedValues:
    """`FixedValues(lambda keys, now: Row.objects.filter(pk__in=keys, at__lte=now).values_list())`.

    `build` returns a queryset of tuples from keys and a time, which may be parameters of its SQL
    only. There is one statement per number of keys.
    """

    def __init__(self, build: Callable[[Sequence[int], datetime], QuerySet[Any, Any]]) -> None:
        self.build = build
        self._compiled: dict[tuple[str, int], tuple[Any, str, list[Any]]] = {}

    def __call__(self, keys: Sequence[int], now: datetime) -> list[tuple[Any, ...]]:
        marks = [-place for place in range(1, len(keys) + 1)]
        shape = (connection.vendor, len(keys))
        if shape not in self._compiled:
            compiler = self.build(marks, _NEVER).query.get_compiler(connection.alias)
            sql, params = compiler.as_sql()
            self._compiled[shape] = (compiler, sql, list(params))
        compiler, sql, params = self._compiled[shape]
        values = dict(zip(marks, keys, strict=True)) | {datetime_param(_NEVER): datetime_param(now)}
        with connection.cursor() as cursor:
            cursor.execute(sql, [values.get(param, param) for param in params])
            rows = cursor.fetchall()
        return list(compiler.results_iter([rows], tuple_expected=True))


_NEVER = datetime.min.replace(tzinfo=UTC)  # in the place of a time


def prefetch_relation(row: Model, name: str) -> None:
    """Prefetch the rows of a reverse foreign key of one row, as prefetch_related_objects does."""
    relation: Any = row._meta.get_field(name)
    related = _related_query(type(row), name)(row.pk)
    for each in related:
        setattr(each, relation.field.name, row)
    set_relation(row, name, related)


def set_relation(row: Model, name: str, related: list[Any]) -> None:
    """Set the rows of a reverse foreign key as prefetched."""
    relation: Any = row._meta.get_field(name)
    found: Any = QuerySet(relation.related_model)
    found._result_cache, found._prefetch_done = related, True
    cache = row.__dict__.setdefault("_prefetched_objects_cache", {})
    cache[name] = found


@cache
def _related_query(model: type[Model], name: str) -> FixedQuery:
    return FixedQuery(lambda pk: getattr(model(pk=pk), name).all())
