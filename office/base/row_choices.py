"""Fields to choose one of many rows: they query the rows that match what is typed."""

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.views.autocomplete import AutocompleteJsonView
from django.contrib.admin.widgets import (
    AutocompleteMixin,
    AutocompleteSelect,
    AutocompleteSelectMultiple,
)
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import HttpRequest

from office.base.lazy_text import LazyText
from office.base.registered_pages import page_of
from office.base.scope import Scope, scope_of

# What a field offers besides the rows that a form of its model accepts.
OFFER, VISIBLE, CURRENT = "offer", "visible", "current"
ENDS = ("deleted_at", "archived_at")  # a current row has neither


class Offer(AutocompleteMixin):
    """What a field offers."""

    offer: str

    def get_url(self) -> str:
        return f"{super().get_url()}?{OFFER}={self.offer}"


class VisibleRowSelect(Offer, AutocompleteSelect):
    """Offers all rows that the account may see, for filters."""

    offer = VISIBLE


class CurrentRowSelect(VisibleRowSelect):
    """Offers the rows that the account may see and that are neither deleted nor archived."""

    offer = CURRENT


class CurrentRowsSelect(Offer, AutocompleteSelectMultiple):
    """The same, for several rows."""

    offer = CURRENT

    def build_attrs(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        # Each choice has a button to remove it. One for all would be part of their list.
        return super().build_attrs(*args, **kwargs) | {"data-allow-clear": "false"}


class VisibleRowField(forms.ModelChoiceField):
    """One of the visible rows. Names its app if the account sees several."""

    scope: Scope

    def label_from_instance(self, obj: models.Model) -> str:
        return row_label(obj, self.scope)


class CurrentRowForm(forms.Form):
    """A form with the single field `name`, which sends the id of a current row.

    column: the foreign key whose rows are offered.
    """

    def __init__(
        self,
        request: HttpRequest,
        *,
        name: str,
        label: LazyText,
        column: Any,
        rows: models.QuerySet,
        chosen: models.Model | None = None,
        attrs: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(initial={name: chosen.pk if chosen else None})
        widget = CurrentRowSelect(column, admin.site, attrs=attrs)
        field = VisibleRowField(rows, label=label, widget=widget)
        field.scope = scope_of(request)
        self.fields[name] = field


class RowChoices(AutocompleteJsonView):
    """The rows that a field offers: those of its model's admin that the account may see, and that
    the form of the field's own model accepts.
    """

    def get_queryset(self) -> models.QuerySet:
        rows = super().get_queryset()
        names = {field.name for field in rows.model._meta.concrete_fields}
        if "app" in names:
            rows = rows.select_related("app")
        if "name" in names:
            rows = rows.order_by("name", "pk")
        offer = self.request.GET.get(OFFER)
        if offer == VISIBLE:
            return rows
        if offer == CURRENT:
            return rows.filter(**dict.fromkeys(names.intersection(ENDS)))
        return rows.filter(pk__in=self._accepted().order_by().values("pk"))

    def _accepted(self) -> models.QuerySet:
        page = page_of(admin.site, self.source_field.model)
        field = page and page.formfield_for_foreignkey(self.source_field, self.request)
        if not isinstance(field, forms.ModelChoiceField) or field.queryset is None:
            raise PermissionDenied
        return field.queryset

    def serialize_result(self, obj: models.Model, to_field_name: str) -> dict[str, str]:
        found = super().serialize_result(obj, to_field_name)
        return found | {"text": row_label(obj, scope_of(self.request))}


def row_label(row: Any, scope: Scope) -> str:
    """Return the row's name, as `Ada (Clinic)` if the account sees several apps."""
    names = {field.name for field in row._meta.concrete_fields}
    return f"{row} ({row.app})" if scope.has_several_apps and "app" in names else str(row)
