"""Queries of a fixed form: the ORM builds their SQL once per process, not for each call.

Building a statement with eight joins takes the ORM several times as long as the database needs to
answer it (docs/benchmarks.md).
"""

import uuid
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

from django.db import connection
from django.db.models import Model, QuerySet
from django.db.models.query import ModelIterable

from common.db.sql import id_param


class FixedQuery:
    """`FixedQuery(lambda app, booking: Booking.objects.filter(app=app, id=booking))(app_id, id)`.

    `build` returns a queryset of whole rows from ids and texts, which may be parameters of its SQL
    only, each once. Relations that the queryset prefetches are not read.
    """

    def __init__(self, build: Callable[..., QuerySet[Any]]) -> None:
        self.build = build
        self._statements: dict[str, _Statement] = {}

    def __call__(self, *values: uuid.UUID | str) -> list[Any]:
        vendor = connection.vendor
        statement = self._statements.get(vendor)
        if statement is None:
            marks = [_mark_like(value) for value in values]
            statement = self._statements[vendor] = _Statement(self.build(*marks), marks)
        return statement.fetch(values)


def _mark_like(value: uuid.UUID | str) -> uuid.UUID | str:
    """Return a value that no other parameter of a statement has, in the place of `value`."""
    return uuid.uuid4().hex if isinstance(value, str) else uuid.uuid4()


def _param(value: uuid.UUID | str) -> Any:
    return value if isinstance(value, str) else id_param(value)


class _Statement:
    """The compiled SQL of a queryset; in place of its query, it gives Django the rows."""

    def __init__(self, queryset: QuerySet[Any], marks: list[uuid.UUID | str]) -> None:
        compiler = queryset.query.get_compiler(connection.alias)
        self.sql, params = compiler.as_sql()
        self.params = list(params)
        self.places = [self.params.index(_param(mark)) for mark in marks]
        self.compiler = compiler
        self.select, self.klass_info = compiler.select, compiler.klass_info
        self.annotation_col_map = compiler.annotation_col_map
        self.model = queryset.model

    def fetch(self, values: tuple[uuid.UUID | str, ...]) -> list[Any]:
        params = self.params.copy()
        for place, value in zip(self.places, values, strict=True):
            params[place] = _param(value)
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
