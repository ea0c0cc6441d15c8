"""The base of every page of the back office: whose rows, and who may change them."""

import uuid
from datetime import date
from typing import Any, ClassVar

from django.contrib import messages
from django.contrib.admin import RelatedFieldListFilter
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db import models
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.functional import cached_property
from simple_history.admin import SimpleHistoryAdmin
from unfold.admin import ModelAdmin, TabularInline
from unfold.contrib.filters.admin import AutocompleteSelectFilter, RangeDateFilter
from unfold.contrib.filters.forms import AutocompleteDropdownForm

from apps_config.days import read_day, span_of, zone_of
from apps_config.history_pages import show_history
from apps_config.models import Membership
from apps_config.scope import scope_of
from scheduling.api.errors import Refusal


class Rights:
    """Rows of the caller's apps alone. Staff are held to Django's permissions as well.

    app_paths   lookups from the model to its app ("resource__app"; "pk" for the app itself); none:
                the rows are the platform's, and only its staff see them
    seen_by     the role that it takes to see them
    least       the role that may add, change or delete; None: nobody but staff
    """

    app_paths: ClassVar[tuple[str, ...]] = ()
    seen_by: ClassVar[str] = Membership.VIEWER
    least: ClassVar[dict[str, str | None]] = {
        "add": Membership.EDITOR,
        "change": Membership.EDITOR,
        "delete": Membership.EDITOR,
    }

    def get_queryset(self, request: HttpRequest) -> Any:
        seen = scope_of(request).rows(*self.app_paths, least=self.seen_by)
        return super().get_queryset(request).filter(seen)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        scope = scope_of(request)
        if scope.is_staff:
            return super().has_view_permission(request, obj)
        return bool(self.app_paths) and scope.allows(app_id_of(obj, self), self.seen_by)

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        # An inline is asked with its parent.
        scope = scope_of(request)
        if scope.is_staff:
            return super().has_add_permission(request, *args)
        return self._may(request, "add", args[0] if args else None)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        if scope_of(request).is_staff:
            return super().has_change_permission(request, obj)
        return self._may(request, "change", obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        if scope_of(request).is_staff:
            return super().has_delete_permission(request, obj)
        return self._may(request, "delete", obj)

    def _may(self, request: HttpRequest, what: str, obj: Any) -> bool:
        least = self.least[what]
        if not self.app_paths or least is None:
            return False
        return scope_of(request).allows(app_id_of(obj, self), least)

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """What may be chosen is what may be seen."""
        other = self.admin_site._registry.get(db_field.remote_field.model)
        if other is not None and "queryset" not in kwargs:
            kwargs["queryset"] = other.get_queryset(request)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)


def app_id_of(obj: Any, rights: Any) -> uuid.UUID | None:
    """The app of a row of this admin class; None without a row. An inline is asked about its
    parent, whose page has looked at that already."""
    if obj is None or not isinstance(obj, rights.model):
        return None
    for path in rights.app_paths:
        *steps, last = path.split("__")
        owner: Any = obj
        for step in steps:
            owner = owner and getattr(owner, step)
        found = owner and (owner.pk if last == "pk" else getattr(owner, f"{last}_id"))
        if found:
            return found
    return uuid.UUID(int=0)  # of no app: nobody's


class CappedPaginator(Paginator):
    """Pages of a list that may be huge: it is counted so far, and shown so far. Who looks for an
    old row narrows the list."""

    MOST = 5000

    @cached_property
    def count(self) -> int:
        return self.object_list.order_by()[: self.MOST].count()


class OfficeAdmin(Rights, ModelAdmin):
    """A list and a page of one model."""

    list_fullwidth = True
    list_filter_submit = True
    list_per_page = 50
    paginator = CappedPaginator
    show_full_result_count = False
    show_facets = False
    compressed_fields = True
    warn_unsaved_form = True


class RecordedAdmin(OfficeAdmin, SimpleHistoryAdmin):
    """One whose history of changes is shown, and not to be turned back by a click."""

    def has_view_history_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_view_permission(request, obj)

    def has_change_history_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        return show_history(self, request, object_id)

    def history_form_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """The library's page of one version looks it up whoever asks: there is none here."""
        raise Http404


def refusal_words(refusal: Refusal) -> str:
    """Of a wrong value: what is wrong with it, without its path in the API's body."""
    faults = refusal.fields.get("errors", {}).values()
    return " ".join(fault for at_path in faults for fault in at_path) or refusal.message


class ServedAdmin(OfficeAdmin):
    """One whose forms are saved by a service: what that refuses is said above the form."""

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return super().changeform_view(request, *args, **kwargs)
        except Refusal as refusal:
            messages.error(request, refusal_words(refusal))
            return HttpResponseRedirect(request.get_full_path())


class NothingByHand:
    """Rows that only the service writes."""

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ReadOnlyAdmin(NothingByHand, OfficeAdmin):
    """A list and a page to look at."""


class OfficeRows(Rights):
    """Rows on their owner's page: who may see or change the page, may see or change them."""

    extra = 0

    def get_queryset(self, request: HttpRequest) -> models.QuerySet:
        return super(Rights, self).get_queryset(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        if scope_of(request).is_staff:
            return super().has_view_permission(request, obj)
        return True

    def _may(self, request: HttpRequest, what: str, obj: Any) -> bool:
        owner = self.admin_site._registry[self.parent_model]
        return self.least[what] is not None and owner.has_change_permission(request, obj)


class OfficeInline(OfficeRows, TabularInline):
    """Such rows as a table."""


class ReadOnlyInline(NothingByHand, OfficeInline):
    can_delete = False


class AppFilter(RelatedFieldListFilter):
    """By app: those that may be seen."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> list[Any]:
        return [(app.pk, str(app)) for app in scope_of(request).apps()]


class ScopedChoiceForm(AutocompleteDropdownForm):
    """The theme's form of a filter; what was chosen is named only to those who may see it."""

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().__init__(request, *args, **kwargs)
        other = kwargs["model_admin"].admin_site._registry[kwargs["field"].remote_field.model]
        self.fields[kwargs["name"]].queryset = other.get_queryset(request)


class ScopedChoiceFilter(AutocompleteSelectFilter):
    """By a related row that is found by typing."""

    form_class = ScopedChoiceForm


class DaysFilter(RangeDateFilter):
    """From one day to another, both whole, on the clock that the back office counts days by."""

    def queryset(self, request: HttpRequest, queryset: models.QuerySet) -> models.QuerySet:
        first, last = self._day("from"), self._day("to")
        if first:
            start, _ = span_of(first, first, zone_of(request))
            queryset = queryset.filter(**{f"{self.parameter_name}__gte": start})
        if last:
            _, end = span_of(last, last, zone_of(request))
            queryset = queryset.filter(**{f"{self.parameter_name}__lt": end})
        return queryset

    def _day(self, bound: str) -> date | None:
        """What was chosen; what is no date narrows nothing."""
        return read_day(self.used_parameters.get(f"{self.parameter_name}_{bound}"))
