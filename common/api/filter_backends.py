"""The filter backends of lists (api.md section 2): each a part of the query string.

`parameters` describes the query parameters of a backend. All other parameters are refused, and an
invalid value is a 422 at its parameter. The backends use `query`, `input_zone`, `now` and `changed`
of the view: `apps_config.base_views.TenantViewSet`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet
from django_filters.rest_framework import DjangoFilterBackend
from rest_framework.filters import BaseFilterBackend
from rest_framework.request import Request

from common.api.filters import apply_filters, filter_schema
from common.api.ordering import CHANGED_PARAMETERS, order_parameters, read_order
from common.api.search_conditions import filter_by_search
from common.openapi.component_registry import Json
from common.openapi.parameters import parameter_objects, search_of


class ListBackend(BaseFilterBackend, ABC):
    """A filter backend that names its query parameters."""

    @abstractmethod
    def parameters(self, view: Any) -> Mapping[str, Json]:
        """Return the schemas of the query parameters by name."""

    def get_schema_operation_parameters(self, view: Any) -> list[Json]:
        return parameter_objects(self.parameters(view))


class SearchBackend(ListBackend):
    """`search=field:value;field:value`. The view's `search_fields`: field -> condition."""

    def parameters(self, view: Any) -> Mapping[str, Json]:
        if not view.search_fields:
            return {}
        return {"search": search_of(view.search_fields, view.search_example)}

    def filter_queryset(self, request: Request, queryset: QuerySet, view: Any) -> QuerySet:
        if not view.search_fields:
            return queryset
        terms = view.query.search(view.search_fields)
        return filter_by_search(queryset, terms, view.search_fields)


class FilterSetBackend(DjangoFilterBackend):
    """The view's `filterset_class`, strict: see `common.api.filters`."""

    def parameters(self, view: Any) -> Mapping[str, Json]:
        filters = view.filterset_class.base_filters if view.filterset_class else {}
        examples = getattr(view.filterset_class, "examples", {})
        return {name: filter_schema(each, examples.get(name)) for name, each in filters.items()}

    def filter_queryset(self, request: Request, queryset: QuerySet, view: Any) -> QuerySet:
        if view.filterset_class is None:
            return queryset
        values, zone = view.query.values, view.input_zone
        return apply_filters(view.filterset_class, values, queryset, zone=zone, now=view.now)


class ChangedSinceBackend(ListBackend):
    """`updated_since`: rows that changed then or later; lists that can be ordered have it."""

    def parameters(self, view: Any) -> Mapping[str, Json]:
        return CHANGED_PARAMETERS if view.ordering_fields else {}

    def filter_queryset(self, request: Request, queryset: QuerySet, view: Any) -> QuerySet:
        return view.changed(queryset) if view.ordering_fields else queryset


class OrderBackend(ListBackend):
    """`orderBy` and `sortedBy`. The view's `ordering_fields`: value -> column; `ordering`: the
    default, with `-` for descending.
    """

    def parameters(self, view: Any) -> Mapping[str, Json]:
        return order_parameters(view.ordering_fields) if view.ordering_fields else {}

    def filter_queryset(self, request: Request, queryset: QuerySet, view: Any) -> QuerySet:
        if not view.ordering_fields:
            return queryset
        default = view.ordering.removeprefix("-")
        ascending = default == view.ordering
        return queryset.order_by(
            *read_order(view.query, view.ordering_fields, default, ascending=ascending)
        )
