"""Filters of the back office's lists."""

from collections.abc import Sequence
from datetime import date
from typing import Any, ClassVar, cast

from django.contrib.admin.options import BaseModelAdmin
from django.db import models
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import AutocompleteSelectFilter, DropdownFilter, RangeDateFilter
from unfold.contrib.filters.forms import AutocompleteDropdownForm

from bookings.pages.formatting import plain_date_words
from office.base.dates import days_span_in_zone, office_zone, parse_iso_day
from office.base.lazy_text import LazyText
from office.base.row_choices import CurrentRowSelect, VisibleRowField, VisibleRowSelect
from office.base.scope import scope_of


class ChoiceFilter(DropdownFilter):
    """Filter by one of `options` (value, text) of the column `parameter_name`."""

    options: ClassVar[Sequence[tuple[str, LazyText]]] = ()

    def lookups(self, request: HttpRequest, model_admin: BaseModelAdmin) -> Any:
        return self.options

    def queryset(self, request: HttpRequest, queryset: models.QuerySet) -> models.QuerySet:
        value = self.value()
        return queryset.filter(**{str(self.parameter_name): value}) if value else queryset


class DeletedFilter(ChoiceFilter):
    """Leaves out deleted rows, unless they are asked for."""

    title = _("deleted")
    parameter_name = "deleted"
    all_option = ("", _("Not deleted"))
    options = (("only", _("Deleted")), ("all", _("All")))

    def queryset(self, request: HttpRequest, queryset: models.QuerySet) -> models.QuerySet:
        if self.value() == "all":
            return queryset
        return queryset.filter(deleted_at__isnull=self.value() != "only")


class ScopedChoiceForm(AutocompleteDropdownForm):
    """The theme's filter form, limited to rows that the account may see."""

    field = VisibleRowField
    widget = VisibleRowSelect

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().__init__(request, *args, **kwargs)
        site, model = kwargs["model_admin"].admin_site, kwargs["field"].remote_field.model
        other = site.get_model_admin(model)
        field = cast(VisibleRowField, self.fields[kwargs["name"]])
        field.queryset, field.scope = other.get_queryset(request), scope_of(request)


class ScopedChoiceFilter(AutocompleteSelectFilter):
    form_class = ScopedChoiceForm


class AppChoiceForm(ScopedChoiceForm):
    widget = CurrentRowSelect


class AppFilter(ScopedChoiceFilter):
    """Filter by app, for accounts that may see several."""

    form_class = AppChoiceForm

    def has_output(self) -> bool:
        return scope_of(self.request).has_several_apps


class DaysFilter(RangeDateFilter):
    """Filter by a range of whole days in the back office's time zone."""

    def queryset(self, request: HttpRequest, queryset: models.QuerySet) -> models.QuerySet:
        first, last = self._day("from"), self._day("to")
        if first:
            start, _ = days_span_in_zone(first, first, office_zone(request))
            queryset = queryset.filter(**{f"{self.parameter_name}__gte": start})
        if last:
            _, end = days_span_in_zone(last, last, office_zone(request))
            queryset = queryset.filter(**{f"{self.parameter_name}__lt": end})
        return queryset

    def days_words(self) -> str:
        """Return the range; an open end is a dash."""
        first, last = self._day("from"), self._day("to")
        if not (first or last):
            return ""
        words = [plain_date_words(day) if day else "" for day in (first, last)]
        return words[0] if first == last else " – ".join(words).strip()

    def _day(self, bound: str) -> date | None:
        """Return the chosen day; None if it is not a date."""
        return parse_iso_day(self.used_parameters.get(f"{self.parameter_name}_{bound}"))
