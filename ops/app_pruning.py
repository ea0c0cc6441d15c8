"""Deletes apps with all their rows, in batches: those that have moved to another cell."""

from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from typing import Any

from django.apps import apps
from django.db import transaction
from django.db.models import Field, Model, QuerySet
from django.utils import timezone

from apps_config.models import App, Change, ChangeFeed, ListingTally
from common.db.batching import delete_in_batches
from common.db.updated_at import transaction_start

# Triggers write rows of these while other rows of an app are deleted.
WRITTEN_BY_TRIGGERS = (Change, ChangeFeed, ListingTally)


def close_apps(gone: QuerySet[App]) -> int:
    """Archive the apps, and return how many were open: nobody sees, changes or sends any more what
    is to be deleted.
    """
    with transaction.atomic():
        stamps = {"archived_at": timezone.now(), "updated_at": transaction_start()}
        return gone.filter(archived_at=None).update(**stamps)


def delete_apps(gone: QuerySet[App], *, batch: int) -> Iterator[tuple[str, int]]:
    """Delete the apps and what belongs to them; yield (table, rows) of each transaction.

    An interrupted deletion can be repeated: the apps themselves are deleted last.
    """
    models: tuple[type[Model], ...] = (*tables_of_apps(), App)
    for model in models:
        rows = rows_of_apps(model, gone)
        for count in delete_in_batches(rows, "pk", batch, referring=self_reference(model)):
            yield model._meta.db_table, count


def count_rows(app: App) -> dict[str, int]:
    """Return the number of the app's rows by table; tables without a row of it are left out."""
    one = App.objects.filter(pk=app.pk)
    counts = {
        model._meta.db_table: rows_of_apps(model, one).count()
        for model in tables_of_apps()
        if model not in WRITTEN_BY_TRIGGERS
    }
    return {table: count for table, count in sorted(counts.items()) if count}


@cache
def tables_of_apps() -> tuple[type[Model], ...]:
    """Return the models whose rows belong to an app, without App; what refers to others first."""
    owned = {model for model in apps.get_models() if path_to_app(model)} - {App}
    references = {
        model: {
            field.related_model
            for field in model._meta.concrete_fields
            if field.related_model in owned and field.related_model is not model
        }
        for model in owned - set(WRITTEN_BY_TRIGGERS)
    }
    parents_first = TopologicalSorter(references).static_order()
    return (*reversed(list(parents_first)), *WRITTEN_BY_TRIGGERS)


@cache
def path_to_app(model: type[Model]) -> str:
    """Return the filter by which rows of the model are found by their app; "" without one."""
    if model is App:
        return "pk"
    if model._meta.model_name == "historicalapp":
        return "id"
    for field in model._meta.concrete_fields:
        if field.related_model is App:
            return field.attname
    for field in model._meta.concrete_fields:
        if leads_to_app(field):
            return f"{field.name}__{path_to_app(field.related_model)}"
    return ""


def leads_to_app(field: Field) -> bool:
    """Whether the field refers to a row that belongs to an app."""
    parent: Any = field.related_model
    return (
        bool(parent) and not field.null and parent is not field.model and bool(path_to_app(parent))
    )


def rows_of_apps(model: type[Model], gone: QuerySet[App]) -> QuerySet:
    """Return the rows of the model that belong to one of the apps."""
    return model._default_manager.filter(**{f"{path_to_app(model)}__in": gone.values("pk")})


def self_reference(model: type[Model]) -> str:
    """Return the field by which rows of the model refer to others of it; "pk" without one."""
    for field in model._meta.concrete_fields:
        if field.related_model is model:
            return field.name
    return "pk"
