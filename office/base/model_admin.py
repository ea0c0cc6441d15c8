"""Base classes of the back office's admin pages: tenants and permissions."""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, cast

from django import forms
from django.contrib import messages
from django.contrib.admin import ShowFacets
from django.contrib.admin.options import BaseModelAdmin, InlineModelAdmin
from django.contrib.admin.views.main import ORDER_VAR
from django.contrib.admin.widgets import RelatedFieldWidgetWrapper
from django.contrib.auth import get_permission_codename
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db import models
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.text import capfirst, slugify
from django.utils.translation import gettext, override
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import AutocompleteSelectFilter, DropdownFilter, RangeDateFilter
from unfold.contrib.filters.forms import AutocompleteDropdownForm
from unfold.decorators import display
from unfold.views import ChangeList

from apps_config.models import Membership
from bookings.models import Booking
from common.db.indexed_values import in_values
from common.db.replica import read_on_replica
from common.errors import Refusal
from common.shipped_languages import SOURCE_LANGUAGE
from office.base.dates import days_span_in_zone, office_zone, parse_iso_day
from office.base.history import HistoryPages
from office.base.labels import booking_words, json_words
from office.base.lazy_text import LazyText
from office.base.model_admin_pages import ModelPages, Row, TitledRow
from office.base.row_choices import CurrentRowSelect, VisibleRowField, VisibleRowSelect
from office.base.scope import reader_of, scope_of
from office.base.service_sentence_translations import translate_sentence

if TYPE_CHECKING:  # neither has types: mypy checks their classes as Django's
    from django.contrib.admin import ModelAdmin, StackedInline, TabularInline
    from django.contrib.admin import ModelAdmin as SimpleHistoryAdmin
else:
    from simple_history.admin import SimpleHistoryAdmin
    from unfold.admin import ModelAdmin, StackedInline, TabularInline

ALL_EDITS = frozenset({"add", "change", "delete"})


class TenantScopedAdmin(BaseModelAdmin, Generic[Row]):
    """Shows only rows of the account's apps. Staff need Django's permissions as well.

    app_paths   lookups from the model to its app ("resource__app"; "pk" for the app itself); empty:
                rows of the platform, which only staff see
    seen_by     the role required to see rows
    least       the role required to add, change or delete; None: staff only
    never       what nobody may do here
    """

    app_paths: ClassVar[tuple[str, ...]] = ()
    seen_by: ClassVar[str] = Membership.VIEWER
    least: ClassVar[dict[str, str | None]] = dict.fromkeys(ALL_EDITS, Membership.EDITOR)
    never: ClassVar[frozenset[str]] = frozenset()

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Row]:
        seen = scope_of(request).rows(*self.app_paths, least=self.seen_by)
        return super().get_queryset(request).filter(seen)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        scope = scope_of(request)
        if scope.is_staff:
            return super().has_view_permission(request, obj)
        return bool(self.app_paths) and scope.allows(self.app_id_of_row(obj), self.seen_by)

    # Django asks an inline with its parent's row.
    def has_add_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return self._may(request, "add", obj)

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return self._may(request, "change", obj)

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return self._may(request, "delete", obj)

    def _may(self, request: HttpRequest, what: str, obj: models.Model | None) -> bool:
        if what in self.never:
            return False
        if scope_of(request).is_staff:
            codename = get_permission_codename(what, self.opts)
            return request.user.has_perm(f"{self.opts.app_label}.{codename}")
        least = self.least[what]
        return least is not None and self._member_may(request, obj, least)

    def _member_may(self, request: HttpRequest, obj: models.Model | None, least: str) -> bool:
        return bool(self.app_paths) and scope_of(request).allows(self.app_id_of_row(obj), least)

    def app_id_of_row(self, obj: models.Model | None) -> uuid.UUID | None:
        """Return the app of a row; None without a row of this admin's model.

        Django asks an inline with its parent's row, whose page has already been checked.
        """
        if obj is None or not isinstance(obj, self.model):
            return None
        for path in self.app_paths:
            *steps, last = path.split("__")
            owner: models.Model | None = obj
            for step in steps:
                owner = owner and getattr(owner, step)
            found = owner and (owner.pk if last == "pk" else getattr(owner, f"{last}_id"))
            if found:
                return found
        return uuid.UUID(int=0)  # no app: visible to nobody

    def formfield_for_foreignkey(
        self, db_field: models.ForeignKey, request: HttpRequest, **kwargs: Any
    ) -> forms.ModelChoiceField | None:
        """Offer only rows that the account may see."""
        other = self.admin_site._registry.get(db_field.remote_field.model)
        if other is not None and "queryset" not in kwargs:
            kwargs["queryset"] = other.get_queryset(request)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)


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


class OfficeAdmin(TenantScopedAdmin[Row], ModelPages[Row], ModelAdmin):
    """List and form of one model. `fixed_fields`: read-only once the row exists.

    index_sorted: the columns by which an index sorts all rows of the list.
    Accounts that may not change a row see data, bookings and values of `words` (column -> value ->
    text) in words; the method `shown_x` shows the column `x`.
    """

    list_fullwidth = True
    list_filter_submit = True
    list_per_page = 50
    paginator = CappedPaginator
    show_full_result_count = False
    show_facets = ShowFacets.NEVER
    compressed_fields = True
    warn_unsaved_form = True
    conditional_fields: ClassVar[Mapping[str, str]] = {}  # else sought anew for each field
    fixed_fields: ClassVar[tuple[str, ...]] = ()
    index_sorted: ClassVar[tuple[str, ...]] = ()
    words: ClassVar[Mapping[str, Mapping[str, LazyText]]] = {}

    def get_readonly_fields(self, request: HttpRequest, obj: Row | None = None) -> tuple[str, ...]:
        return (*self.readonly_fields, *(self.fixed_fields if obj else ()))

    def get_list_display(self, request: HttpRequest) -> Any:
        """Leave out the app if the account has only one, `deletion_time` without deleted rows."""
        unneeded = {
            *([] if scope_of(request).has_several_apps else ["app"]),
            *([] if request.GET.get(DeletedFilter.parameter_name) else ["deletion_time"]),
        }
        return [name for name in super().get_list_display(request) if name not in unneeded]

    def get_actions(self, request: HttpRequest) -> Any:
        """Leave out Django's deletion of several rows, which no service does."""
        found = super().get_actions(request)
        found.pop("delete_selected", None)
        return found

    def get_index_sorted(self, request: HttpRequest) -> tuple[str, ...]:
        return self.index_sorted

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[OfficeChangeList]:
        return OfficeChangeList

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list; a replica may read it, but not what the account may see."""
        if request.method != "GET" or not self.has_view_permission(request):
            return super().changelist_view(request, extra_context)
        show = partial(self._rendered_list, request, extra_context)
        return read_on_replica(show, reader_of(request))

    def _rendered_list(
        self, request: HttpRequest, extra_context: dict[str, Any] | None
    ) -> HttpResponse:
        heading = {"title": capfirst(str(self.opts.verbose_name_plural))}
        response = super().changelist_view(request, heading | (extra_context or {}))
        if not isinstance(response, TemplateResponse):
            return response
        # What the buttons above the list open applies to the rows that the list shows.
        for button in (response.context_data or {}).get("actions_list", ()):
            if request.GET and "path" in button:
                button["path"] += f"?{request.GET.urlencode()}"
        return response.render()

    def _get_obj_does_not_exist_redirect(
        self, request: HttpRequest, opts: Any, object_id: str
    ) -> HttpResponse:
        """Show the page of unknown addresses, not Django's list with a message."""
        raise Http404

    def page_values(self, request: HttpRequest, object_id: str | None) -> dict[str, Any]:
        """Return the template's values beside the form, for an existing or a new row."""
        return {}

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        own = self.page_values(request, object_id)
        return super().changeform_view(request, object_id, form_url, own | (extra_context or {}))

    # --- Values in words --------------------------------------------------------------------------
    def get_fieldsets(self, request: HttpRequest, obj: Row | None = None) -> Any:
        fieldsets = super().get_fieldsets(request, obj)
        if obj is None or self.has_change_permission(request, obj):
            return fieldsets
        return [
            (title, {**given, "fields": self._fields_in_words(request, given["fields"])})
            for title, given in fieldsets
        ]

    def _fields_in_words(self, request: HttpRequest, names: Sequence[Any]) -> list[Any]:
        columns = {field.name: field for field in self.opts.concrete_fields}
        return [
            self._fields_in_words(request, name)
            if isinstance(name, list | tuple)
            else self._field_in_words(request, name, columns.get(name))
            for name in names
        ]

    def _field_in_words(self, request: HttpRequest, name: Any, column: models.Field | None) -> Any:
        """Return the display function of a column whose value is no text for people."""
        show: Callable[[Any], str]
        if column is None:
            return name
        if hasattr(self, f"shown_{name}"):
            return f"shown_{name}"
        if name in self.words:
            show = partial(value_in_words, self.words[name])
        elif isinstance(column, models.JSONField):
            show = json_words
        elif column.related_model is Booking:
            show = booking_link
        elif column.related_model and not self._may_open(request, column):
            show = text_or_nothing
        else:
            return name

        def shown(row: Row) -> str:
            return show(getattr(row, name))

        shown.__name__ = f"{name}_in_words"
        return display(description=column.verbose_name)(shown)

    def _may_open(self, request: HttpRequest, column: models.Field) -> bool:
        """Return whether the account may see rows of the column's model."""
        model = column.related_model
        other = self.admin_site._registry.get(model) if model else None
        return other is not None and other.has_view_permission(request)

    # --- Headings: the row's title instead of the model's text ----------------------------------
    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        if row := context.get("original"):
            context |= self._heading_values(row)
        return super().render_change_form(request, context, *args, **kwargs)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        row = self.get_object(request, object_id)
        if row is None:
            raise Http404
        title = self.row_title(row)
        own = {
            "title": gettext("History: %(row)s") % {"row": title},
            "object": TitledRow(row, title),
        }
        return super().history_view(request, object_id, own | (extra_context or {}))

    def _heading_values(self, row: Row) -> dict[str, Any]:
        title = self.row_title(row)
        return {"subtitle": title, "original": TitledRow(row, title)} if title != str(row) else {}


def without_field(fieldsets: Any, left_out: str) -> Any:
    """Return an admin's fieldsets without one of their fields."""
    return [
        (title, {**given, "fields": [name for name in given["fields"] if name != left_out]})
        for title, given in fieldsets
    ]


class HistoryAdmin(HistoryPages[Row], OfficeAdmin[Row], SimpleHistoryAdmin):
    def has_view_history_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return self.has_view_permission(request, obj)

    def has_change_history_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return False

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        return self.show_history(request, object_id)

    def history_form_view(
        self, request: HttpRequest, object_id: str, version_id: str
    ) -> HttpResponse:
        """Disabled: the library's version page ignores tenants."""
        raise Http404


def refusal_words(refusal: Refusal) -> str:
    """Return the text of a refusal; for invalid values without the API's field paths."""
    faults = refusal.fields.get("errors", {}).values()
    sentences = [fault for at_path in faults for fault in at_path] or [refusal.message]
    return " ".join(map(translate_sentence, sentences))


class ServiceBackedAdmin(OfficeAdmin[Row]):
    """Admin whose forms are saved by a service; its refusals are shown above the form."""

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except Refusal as refusal:
            messages.error(request, refusal_words(refusal))
            return HttpResponseRedirect(request.get_full_path())

    def save_row(self, request: HttpRequest, row: Row, form: Any, *, is_new: bool) -> Row:
        """Save the form's values through the service; return the saved row."""
        raise NotImplementedError

    def save_model(self, request: HttpRequest, obj: Row, form: Any, change: bool) -> None:
        saved = self.save_row(request, obj, form, is_new=not change)
        obj.__dict__.update(saved.__dict__)


class ConfirmedDeletion(OfficeAdmin[Row]):
    """Asks for confirmation before a row is deleted.

    deletion_effect: what the deletion of a row changes.
    """

    deletion_effect: ClassVar[LazyText]

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Ask for confirmation; a POST deletes the row, and shows a refusal on the row's page."""
        row = self.find(request, object_id)
        if not self.has_delete_permission(request, row):
            raise PermissionDenied
        name = self.row_title(row)
        if request.method != "POST":
            return self.ask_confirmation(
                request,
                row,
                title=gettext("Delete %(name)s?") % {"name": name},
                sentence=str(self.deletion_effect),
                button=gettext("Delete"),
            )
        try:
            self.delete_and_log(request, row)
        except Refusal as refusal:
            messages.error(request, refusal_words(refusal))
            return self.redirect_to_row(row)
        messages.success(request, gettext("%(name)s was deleted.") % {"name": name})
        return HttpResponseRedirect(self.list_url())

    def delete_and_log(self, request: HttpRequest, row: Row) -> None:
        """Delete the row and note it in the log of the back office. Raises Refusal."""
        raise NotImplementedError


class DeletableAdmin(ConfirmedDeletion[Row], ServiceBackedAdmin[Row]):
    """Admin whose rows a service deletes, after a confirmation."""

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return not getattr(obj, "deleted_at", None) and super().has_delete_permission(request, obj)

    def delete_and_log(self, request: HttpRequest, row: Row) -> None:
        self.delete_row(row)
        self.log_change(request, row, "Deleted.")

    def delete_row(self, row: Row) -> None:
        """Delete the row through its service. Raises Refusal."""
        raise NotImplementedError


def part_id(title: LazyText) -> str:
    """Return the id of the part with this heading in the page: the same in every language."""
    with override(SOURCE_LANGUAGE):
        return f"part-{slugify(title)}"


class RowPageAdmin(OfficeAdmin[Row]):
    """Shows a row on a page of its own instead of Django's form. Buttons send to other pages."""

    def show_row(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Render the page, for an account that may see rows of some app."""
        raise NotImplementedError

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        if request.method not in ("GET", "HEAD") or not self.has_view_permission(request):
            raise PermissionDenied
        return self.show_row(request, object_id)


class FormPartsAdmin(OfficeAdmin[Row]):
    """A long form in parts, with links to them.

    parts   (heading, inline or None): with the fieldset of this name and the rows of the inline
    """

    change_form_template = "office/parts_form.html"
    parts: ClassVar[tuple[tuple[LazyText, "type[PageScopedInline] | None"], ...]]
    # The part with a preview of the rules (office/static/office/rules.js).
    preview_part: ClassVar[LazyText] = ""

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        if context.get("original"):
            context["parts"] = list(self._parts(context))
            notes = self.part_notes(context["original"])
            for part in context["parts"]:
                part["note"] = notes.get(part["title"], "")
        return super().render_change_form(request, context, *args, **kwargs)

    def part_notes(self, row: Row) -> Mapping[str, str]:
        """Return heading -> a sentence under the part's fields."""
        return {}

    def _parts(self, context: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield each part of the page with its fieldset and its rows."""
        fieldsets = {fieldset.name: fieldset for fieldset in context["adminform"]}
        rows = {type(formset.opts): formset for formset in context["inline_admin_formsets"]}
        for title, inline in self.parts:
            yield {
                "title": title,
                "id": part_id(title),
                "fieldset": fieldsets.get(title),
                "rows": rows.get(inline) if inline else None,
                "has_preview": title == self.preview_part,
            }


class AppChoiceAdmin(OfficeAdmin[Row]):
    """Admin of rows whose app is chosen at creation; a single app is preselected.

    chosen_by: the role that the account needs in the app. chosen_fields: foreign keys without add
    or edit links.
    """

    autocomplete_fields: ClassVar[tuple[str, ...]] = ("app",)
    chosen_by: ClassVar[str] = Membership.EDITOR
    chosen_fields: ClassVar[tuple[str, ...]] = ("app",)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Preselect `?app=`, or the only app."""
        initial = super().get_changeform_initial_data(request)
        apps = list(scope_of(request).apps(self.chosen_by).order_by()[:2])
        return ({"app": apps[0].pk} if len(apps) == 1 else {}) | initial

    def formfield_for_foreignkey(
        self, db_field: models.ForeignKey, request: HttpRequest, **kwargs: Any
    ) -> forms.ModelChoiceField | None:
        if db_field.name == "app":
            kwargs["queryset"] = scope_of(request).apps(self.chosen_by)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def formfield_for_dbfield(
        self, db_field: models.Field, request: HttpRequest, **kwargs: Any
    ) -> forms.Field | None:
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        widget = field.widget if field else None
        if db_field.name in self.chosen_fields and isinstance(widget, RelatedFieldWidgetWrapper):
            widget.can_add_related = widget.can_change_related = False
            widget.can_view_related = widget.can_delete_related = False
        return field


class ReadOnlyAdmin(OfficeAdmin[Row]):
    """List and page without changes: only the service writes the rows."""

    never = ALL_EDITS


def value_in_words(words: Mapping[str, LazyText], value: str) -> str:
    return str(words.get(value, value.replace("_", " ")))


def text_or_nothing(row: models.Model | None) -> str:
    return "" if row is None else str(row)


def booking_link(booking: Booking | None) -> str:
    """Return the booking in words, linked to its page. Reads event and customers."""
    if booking is None:
        return ""
    words = booking_words(booking)
    if booking.deleted_at:
        return gettext("%(booking)s (deleted)") % {"booking": words}
    url = reverse("admin:bookings_booking_change", args=[booking.pk])
    return format_html('<a href="{}" class="office-link">{}</a>', url, words)


class PageScopedInline(TenantScopedAdmin[Row], InlineModelAdmin):
    """Inline rows with the permissions of the parent's page."""

    extra = 0

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Row]:
        return super(TenantScopedAdmin, self).get_queryset(request)

    def has_view_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return not scope_of(request).is_staff or super().has_view_permission(request, obj)

    def _member_may(self, request: HttpRequest, obj: models.Model | None, least: str) -> bool:
        owner = self.admin_site._registry[self.parent_model]
        return owner.has_change_permission(request, obj)


class OfficeInline(PageScopedInline[Row], TabularInline):
    """Inline rows as a table."""


class StackedOfficeInline(PageScopedInline[Row], StackedInline):
    """Inline rows, each with all its fields."""


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
        other = kwargs["model_admin"].admin_site._registry[kwargs["field"].remote_field.model]
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

    def _day(self, bound: str) -> date | None:
        """Return the chosen day; None if it is not a date."""
        return parse_iso_day(self.used_parameters.get(f"{self.parameter_name}_{bound}"))
