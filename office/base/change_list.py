"""The lists of the back office: how many rows they count, and how they sort them."""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from django.contrib.admin.views.main import ORDER_VAR
from django.core.paginator import Paginator
from django.db import models
from django.http import HttpRequest
from django.utils.functional import cached_property
from unfold.views import ChangeList

from common.db.indexed_values import in_values
from office.base.applied_filters import AppliedFilter, applied_filters


class Shortcut(NamedTuple):
    """`query`: the list's address; without the shortcut's filter if `is_chosen`."""

    words: str
    query: str
    is_chosen: bool


class CappedPaginator(Paginator):
    """Paginator that counts and shows at most MOST rows; use filters to find older ones."""

    MOST = 5000

    @cached_property
    def count(self) -> int:
        rows = cast(models.QuerySet, self.object_list)
        return rows.order_by()[: self.MOST].count()


class OfficeChangeList(ChangeList):
    """Sorts by a column without an index only the rows that the list shows: the newest ones.

    Above the rows are links to lists that people often need (`shortcuts`), and the search and the
    filters with a link that removes each (`chips`).
    """

    former_bookings: Sequence[Any] = ()  # in place of rows, if the list is empty

    @cached_property
    def shortcuts(self) -> list[Shortcut]:
        return self.model_admin.list_shortcuts(self)

    @cached_property
    def chips(self) -> list[tuple[AppliedFilter, str]]:
        """Return the filters that no tab or shortcut shows, with the query without each."""
        shown = {*self.model_admin.filters_shown_elsewhere}
        return [
            (each, self.get_query_string(remove=each.parameters))
            for each in applied_filters(self)
            if shown.isdisjoint(each.parameters)
        ]

    def get_queryset(
        self, request: HttpRequest, exclude_parameters: list[str] | None = None
    ) -> models.QuerySet:
        rows = super().get_queryset(request, exclude_parameters)
        if ORDER_VAR not in self.params:
            return self._in_first_order(rows, request)
        places = self.get_ordering_field_columns()
        sorted_by = {self.list_display[place] for place in places if place < len(self.list_display)}
        if sorted_by <= {*self.model_admin.get_index_sorted(request)}:
            return rows
        return self._newest_in_order(rows, request, rows.query.order_by)

    def _in_first_order(self, rows: models.QuerySet, request: HttpRequest) -> models.QuerySet:
        first_order = self.model_admin.first_order
        return self._newest_in_order(rows, request, first_order) if first_order else rows

    def _newest_in_order(
        self, rows: models.QuerySet, request: HttpRequest, columns: Sequence[Any]
    ) -> models.QuerySet:
        order = self.model_admin.get_ordering(request) or self._get_default_ordering()
        newest = rows.order_by(*order)[: CappedPaginator.MOST]
        shown = self.root_queryset.filter(in_values("pk", newest.values("pk")))
        return self.apply_select_related(shown).order_by(*columns)

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        if not (self.query or self.has_active_filters):
            self.full_result_count = self.result_count  # no link to show all rows

    def get_ordering_field(self, field_name: Any) -> Any:
        """Sort by the name of a related row, which the list shows."""
        columns = {column.name: column.related_model for column in self.lookup_opts.concrete_fields}
        related = columns.get(field_name)
        if related and any(column.name == "name" for column in related._meta.concrete_fields):
            return f"{field_name}__name"
        return super().get_ordering_field(field_name)
