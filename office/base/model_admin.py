"""Base classes of the back office's admin pages: tenants and permissions."""

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic

from django import forms
from django.contrib import messages
from django.contrib.admin import ShowFacets
from django.contrib.admin.options import BaseModelAdmin, InlineModelAdmin
from django.contrib.admin.utils import unquote
from django.contrib.admin.widgets import RelatedFieldWidgetWrapper
from django.contrib.auth import get_permission_codename
from django.core.exceptions import ImproperlyConfigured, PermissionDenied
from django.db import models
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.text import capfirst, slugify
from django.utils.translation import gettext, override
from unfold.decorators import display

from apps_config.models import Membership
from bookings.models import Booking
from common.db.replica import read_on_replica
from common.errors import Refusal
from common.shipped_languages import SOURCE_LANGUAGE
from office.base.change_list import CappedPaginator, OfficeChangeList, Shortcut
from office.base.history import find_changes, history_steps, read_changes_of_page, row_at_step
from office.base.labels import booking_words, json_words
from office.base.lazy_text import LazyText
from office.base.list_filters import DeletedFilter
from office.base.message_translations import translate_message
from office.base.model_admin_pages import ACTION_KINDS, BACK, CONFIRMED, ExtraPage, Row, TitledRow
from office.base.permissions import PagePermission, with_permission
from office.base.registered_pages import page_of
from office.base.scope import reader_of, scope_of

if TYPE_CHECKING:  # neither has types: mypy checks their classes as Django's
    from django.contrib.admin import ModelAdmin, StackedInline, TabularInline
else:
    from unfold.admin import ModelAdmin, StackedInline, TabularInline

PARTS_FORM = "office/parts_form.html"
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
        for app_path in self.app_paths:
            *steps, last = app_path.split("__")
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
        other = page_of(self.admin_site, db_field.remote_field.model)
        if other is not None and "queryset" not in kwargs:
            kwargs["queryset"] = other.get_queryset(request)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)


class OfficeAdmin(TenantScopedAdmin[Row], ModelAdmin):
    """List, form, history and further pages of one model.

    fixed_fields    read-only once the row exists
    index_sorted    the columns by which an index sorts all rows of the list
    first_order     the columns by which the list first sorts the rows that it shows, instead of
                    `ordering`
    filters_shown_elsewhere     parameters of filters that tabs or shortcuts show
    chosen_fields   foreign keys without add or edit links; "app" is chosen at creation: a single
                    app is preselected
    chosen_by       the role that the account needs in the app that it chooses
    parts           of a long form, with links to them: (heading, inline or None), each with the
                    fieldset of this name and the rows of the inline; `change_form_template` is
                    PARTS_FORM
    first_fields    those of a long form outside of "More", which each part has for the others;
                    none: all
    made_fields     fields with a default that is made from others: "More" does not open for them
    preview_part    the part with a preview of the rules (office/static/office/rules.js)

    Accounts that may not change a row see data, bookings and values of `words` (column -> value ->
    text) in words; the method `shown_x` shows the column `x`. A model with `history` has a history
    page with old and new values. The service does not start if a page or action names no
    permission.
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
    first_order: ClassVar[tuple[str, ...]] = ()
    filters_shown_elsewhere: ClassVar[tuple[str, ...]] = ()
    words: ClassVar[Mapping[str, Mapping[str, LazyText]]] = {}
    chosen_fields: ClassVar[tuple[str, ...]] = ()
    chosen_by: ClassVar[str] = Membership.EDITOR
    parts: ClassVar[tuple[tuple[LazyText, "type[PageScopedInline] | None"], ...]] = ()
    first_fields: ClassVar[frozenset[str]] = frozenset()
    made_fields: ClassVar[frozenset[str]] = frozenset()
    preview_part: ClassVar[LazyText] = ""

    # --- Lists ------------------------------------------------------------------------------------
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

    def list_shortcuts(self, changelist: OfficeChangeList) -> list[Shortcut]:
        """Return links above the list."""
        return []

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

    # --- Forms ------------------------------------------------------------------------------------
    def get_readonly_fields(self, request: HttpRequest, obj: Row | None = None) -> tuple[str, ...]:
        return (*self.readonly_fields, *(self.fixed_fields if obj else ()))

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Preselect `?app=`, or the only app."""
        initial = super().get_changeform_initial_data(request)
        if "app" not in self.chosen_fields:
            return initial
        apps = list(scope_of(request).apps(self.chosen_by).order_by()[:2])
        return ({"app": apps[0].pk} if len(apps) == 1 else {}) | initial

    def formfield_for_foreignkey(
        self, db_field: models.ForeignKey, request: HttpRequest, **kwargs: Any
    ) -> forms.ModelChoiceField | None:
        if db_field.name == "app" and "app" in self.chosen_fields:
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
        other = page_of(self.admin_site, column.related_model)
        return other is not None and other.has_view_permission(request)

    # --- Headings: the row's title instead of the model's text ----------------------------------
    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        if row := context.get("original"):
            context |= self._heading_values(row)
            is_split = bool(self.first_fields) and self.has_change_permission(request, row)
            parts = self._parts(row, context, is_split=is_split) if self.parts else ()
            context["parts"] = list(parts)
        return super().render_change_form(request, context, *args, **kwargs)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        if hasattr(self.model, "history"):
            return self._show_changes(request, unquote(object_id))
        row = self.get_object(request, object_id)
        if row is None:
            raise Http404
        title = self.row_title(row)
        own = {
            "title": gettext("History: %(row)s") % {"row": title},
            "object": TitledRow(row, title),
        }
        return super().history_view(request, object_id, own | (extra_context or {}))

    def _show_changes(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Render the row's history, also of a deleted one. Raises Http404 if it is not visible."""
        rows = find_changes(request, self.model, object_id, self.app_paths, least=self.seen_by)
        current = self.get_queryset(request).filter(pk=object_id).first()
        if current is None and not rows.exists():
            raise Http404
        changes, number = read_changes_of_page(request, rows)
        title = self.row_title(current or row_at_step(self.model, changes[0]))
        return self.show_page(
            request,
            "office/history.html",
            title=gettext("History: %(row)s") % {"row": title},
            original=current,
            steps=list(history_steps(request, changes)),
            number=number,
        )

    def _heading_values(self, row: Row) -> dict[str, Any]:
        title = self.row_title(row)
        return {"subtitle": title, "original": TitledRow(row, title)} if title != str(row) else {}

    # --- Forms in parts ---------------------------------------------------------------------------
    def part_notes(self, row: Row) -> Mapping[str, str]:
        """Return heading -> a sentence under the part's fields."""
        return {}

    def _parts(
        self, row: Row, context: dict[str, Any], *, is_split: bool
    ) -> Iterator[dict[str, Any]]:
        """Yield each part of the page with its fieldset and its rows. `is_split`: the fields that
        are not among the first are apart.
        """
        fieldsets = {fieldset.name: fieldset for fieldset in context["adminform"]}
        rows = {type(formset.opts): formset for formset in context["inline_admin_formsets"]}
        notes = self.part_notes(row)
        for title, inline in self.parts:
            fieldset, more = fieldsets.get(title), None
            if is_split and fieldset:
                fieldset, more = split_fieldset(fieldset, self.first_fields)
            yield {
                "title": title,
                "note": notes.get(str(title), ""),
                "id": part_id(title),
                "fieldset": fieldset,
                "more": more,
                "is_more_open": more and has_changed_field(more, self.made_fields),
                "rows": rows.get(inline) if inline else None,
                "has_preview": title == self.preview_part,
            }

    # --- Further pages ----------------------------------------------------------------------------
    def extra_pages(self) -> Iterable[ExtraPage]:
        return ()

    def get_urls(self) -> list[URLPattern]:
        self._check_actions()
        return [*map(self._extra_url, self.extra_pages()), *super().get_urls()]

    def _extra_url(self, page: ExtraPage) -> URLPattern:
        view = with_permission(page.view, self._permission_check(page.name, page.permission))
        return path(page.path, self.admin_site.admin_view(view), name=self._name(page.name))

    def _permission_check(self, name: str, permission: str) -> PagePermission:
        check = getattr(self, f"has_{permission}_permission", None)
        if check is None:
            raise ImproperlyConfigured(f"{self._name(name)} requires no known permission")
        return check

    def _check_actions(self) -> None:
        """Raise ImproperlyConfigured for an action, of the list or of a row, without permission."""
        names = [name for kind in ACTION_KINDS for name in getattr(self, kind, None) or ()]
        for method, name, _description in filter(None, map(self.get_action, names)):
            for permission in getattr(method, "allowed_permissions", None) or ("",):
                self._permission_check(name, permission)

    def _name(self, page: str) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_{page}"

    def list_url(self) -> str:
        return reverse(f"admin:{self._name('changelist')}")

    def url_of(self, row: Row) -> str:
        return reverse(f"admin:{self._name('change')}", args=[row.pk])

    def row_title(self, row: Row) -> str:
        """Return the row's name in headings."""
        return str(row)

    def redirect_to_row(self, row: Row) -> HttpResponse:
        return HttpResponseRedirect(self.url_of(row))

    def show_page(self, request: HttpRequest, template: str, **values: Any) -> TemplateResponse:
        """Render a page in the back office's layout. `values`: the template's."""
        context = {**self.admin_site.each_context(request), "opts": self.opts, **values}
        return TemplateResponse(request, template, context)

    def find(self, request: HttpRequest, object_id: str) -> Row:
        """Return a visible row. Raises Http404 for any other id."""
        row = self.get_object(request, object_id)
        if row is None:
            raise Http404
        return row

    def find_to_change(self, request: HttpRequest, object_id: str) -> Row:
        """Return a row to change. Raises Http404 if not visible, PermissionDenied if read-only."""
        row = self.find(request, object_id)
        if getattr(row, "deleted_at", None):
            raise Http404
        if not self.has_change_permission(request, row):
            raise PermissionDenied
        return row

    def ask_confirmation(
        self,
        request: HttpRequest,
        row: Row | None,
        *,
        title: str,
        sentence: str,
        button: str,
        back: str = "",
        button_style: str = "danger",
        lines: Sequence[str] = (),
        repeated: Sequence[str] = (),
        goes_back_to_form: bool = False,
        back_words: str = "",
        form: forms.Form | None = None,
    ) -> TemplateResponse:
        """Render a confirmation page; its button POSTs to the same URL.

        `row`: None if it is about several rows. `back`: the URL of No; default: the row's page.
        `back_words`: its text. `form`: fields to send as well. `lines`: what will happen.
        `repeated`: the fields of this request's form to send again with CONFIRMED.
        `goes_back_to_form`: No sends these fields with BACK instead.
        """
        given = request.POST or request.GET
        fields = [(name, value) for name in repeated for value in given.getlist(name)]
        return self.show_page(
            request,
            "office/confirm.html",
            original=TitledRow(row, self.row_title(row)) if row else None,
            title=title,
            sentence=sentence,
            lines=lines,
            fields=[*fields, (CONFIRMED, "yes")] if fields else [],
            button=button,
            button_style=button_style,
            back=back or (self.url_of(row) if row else self.list_url()),
            back_name=BACK if goes_back_to_form else "",
            back_words=back_words or gettext("No, go back"),
            form=form,
        )

    def show_secret(
        self,
        request: HttpRequest,
        *,
        title: str,
        heading: str,
        secret: str,
        back: str,
        label: str = "",
        is_public: bool = False,
    ) -> TemplateResponse:
        """Render a page with a secret, shown once. `is_public`: it can be shown again later."""
        return self.show_page(
            request,
            "office/secret.html",
            title=title,
            heading=heading,
            secret=secret,
            back=back,
            label=label or gettext("Secret"),
            is_public=is_public,
        )


def without_field(fieldsets: Any, left_out: str) -> Any:
    """Return an admin's fieldsets without one of their fields."""
    return [
        (title, {**given, "fields": [name for name in given["fields"] if name != left_out]})
        for title, given in fieldsets
    ]


def refusal_words(refusal: Refusal) -> str:
    """Return the text of a refusal; for invalid values without the API's field paths."""
    faults = refusal.fields.get("errors", {}).values()
    sentences = [fault for at_path in faults for fault in at_path] or [refusal.message]
    return " ".join(map(translate_message, sentences))


class ServiceBackedAdmin(OfficeAdmin[Row]):
    """Admin whose rows are saved by a service, and deleted by it after a confirmation. Refusals are
    shown above the form.

    deletion_effect: what the deletion of a row changes.
    """

    deletion_effect: ClassVar[LazyText] = ""

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

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return not getattr(obj, "deleted_at", None) and super().has_delete_permission(request, obj)

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
        owner = self.admin_site.get_model_admin(self.parent_model)
        return owner.has_change_permission(request, obj)


class OfficeInline(PageScopedInline[Row], TabularInline):
    """Inline rows as a table."""


class StackedOfficeInline(PageScopedInline[Row], StackedInline):
    """Inline rows, each with all its fields."""


def split_fieldset(fieldset: Any, first: Collection[str]) -> tuple[Any, Any]:
    """Return the part's first fields, and the others without a heading; None instead of no others.
    A part that is closed anyway stays whole.
    """
    others = [name for name in fieldset.fields if name not in first]
    if fieldset.is_collapsible or not others:
        return fieldset, None
    shown, more = copy(fieldset), copy(fieldset)
    shown.fields = [name for name in fieldset.fields if name in first]
    more.fields, more.name = others, None
    return shown, more


def has_changed_field(fieldset: Any, made_fields: Collection[str]) -> bool:
    """Return whether a field has an error or another value than its default."""
    form = fieldset.form
    names = [name for name in fieldset.fields if name in form.fields]
    if any(name in form.errors or (form.is_bound and name in form.changed_data) for name in names):
        return True
    return any(
        (form.get_initial_for_field(form.fields[name], name) or None)
        != (form.fields[name].initial or None)
        for name in names
        if name not in made_fields
    )
