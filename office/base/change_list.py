"""The lists of the back office: how many rows they count, and how they sort them."""

from typing import Any, cast

from django.contrib.admin.views.main import ORDER_VAR
from django.core.paginator import Paginator
from django.db import models
from django.http import HttpRequest
from django.utils.functional import cached_property
from unfold.views import ChangeList

from common.db.indexed_values import in_values


class CappedPaginator(Paginator):
    """Paginator that counts and shows at most MOST rows; use filters to find older ones."""

    MOST = 5000

    @cached_property
    def count(self) -> int:
        rows = cast(models.QuerySet, self.object_list)
        return rows.order_by()[: self.MOST].count()


class OfficeChangeList(ChangeList):
    """Sorts by a column without an index only the rows that the list shows: the newest ones."""

    def get_queryset(
        self, request: HttpRequest, exclude_parameters: list[str] | None = None
    ) -> models.QuerySet:
        rows = super().get_queryset(request, exclude_parameters)
        if ORDER_VAR not in self.params:
            return rows
        places = self.get_ordering_field_columns()
        sorted_by = {self.list_display[place] for place in places if place < len(self.list_display)}
        if sorted_by <= {*self.model_admin.get_index_sorted(request)}:
            return rows
        order = self.model_admin.get_ordering(request) or self._get_default_ordering()
        newest = rows.order_by(*order)[: CappedPaginator.MOST]
        shown = self.root_queryset.filter(in_values("pk", newest.values("pk")))
        return self.apply_select_related(shown).order_by(*rows.query.order_by)

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
