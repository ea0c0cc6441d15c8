"""Admins of resources, schedules, events and holds."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib import admin
from django.db import transaction
from django.db.models import Exists, Field, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, pgettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _
from unfold.decorators import action, display

from availability.models import Calendar, Event, Hold, Resource, Schedule
from availability.serializers.calendars import CalendarSerializer
from availability.services import (
    change_calendar,
    change_resource,
    change_schedule,
    create_calendar,
    create_resource,
    create_schedule,
    delete_event,
    delete_resource,
    delete_schedule,
)
from booking_pages.picture_paths import picture_paths
from bookings.models import Booking
from common.db.indexed_values import in_values
from common.time.zone_names import current_zone_name
from office.base.api_forms import ChangesForm
from office.base.change_list import CappedPaginator
from office.base.dates import moment_words, office_zone
from office.base.form_fields import LinesField
from office.base.labels import RULE_WORDS
from office.base.list_filters import AppFilter, DaysFilter, DeletedFilter, ScopedChoiceFilter
from office.base.model_admin import (
    ALL_EDITS,
    OfficeAdmin,
    OfficeInline,
    ServiceBackedAdmin,
    without_field,
)
from office.base.model_admin_pages import ExtraPage
from office.base.opening_hours_text import hours_of_rules, hours_words
from office.base.permissions import may_enter_absences
from office.base.scope import is_allowed
from office.calendars.sync_status import provider_words
from office.resources.app_owned_admin import MAX_OFFERED, AppOwnedAdmin, shown_dates, shown_hours
from office.resources.bulk_edit import CHANGE, MAX_RESOURCES, show_bulk_edit
from office.resources.resource_form import (
    NewResourceForm,
    NewScheduleForm,
    ResourceForm,
    ScheduleForm,
    picture_image,
    save_picture,
    stored_rules,
)


class CalendarLineForm(ChangesForm):
    """A calendar, saved by the API's services."""

    sent = ("name", "description")

    def clean(self) -> dict[str, Any]:
        super().clean()
        self.check(CalendarSerializer(data=self.body(), partial=True))
        return self.cleaned_data

    def save(self, commit: bool = True) -> Calendar:
        if self.is_new:
            return create_calendar(resource=self.instance.resource, given=self.given)
        return change_calendar(self.instance, self.given)


class CalendarInline(OfficeInline[Calendar]):
    never = frozenset({"delete"})
    model = Calendar
    form = CalendarLineForm
    extra = 0
    fields = ("name", "description", "kept_at", "last_sync")
    readonly_fields = ("kept_at", "last_sync")
    show_change_link = True
    verbose_name_plural = _("Calendars")

    @display(description=_("Provider"))
    def kept_at(self, calendar: Calendar) -> str:
        return provider_words(calendar.provider) if calendar.is_connected else gettext("Built-in")

    @display(description=_("Last sync"))
    def last_sync(self, calendar: Calendar) -> str:
        return moment_words(calendar.synced_at)

    def formfield_for_dbfield(
        self, db_field: Field, request: HttpRequest, **kwargs: Any
    ) -> forms.Field | None:
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field and db_field.name == "description":
            field.widget.attrs["rows"] = 1
        return field

    def get_queryset(self, request: HttpRequest) -> QuerySet[Calendar]:
        return super().get_queryset(request).filter(deleted_at=None)


@admin.register(Resource)
class ResourceAdmin(AppOwnedAdmin[Resource]):
    app_paths = ("app",)
    deletion_effect = _(
        "Nobody can book the resource any more, its keys stop working, and its e-mail address is"
        " free for another resource. Past bookings stay. The back office can't undo this."
    )
    form = ResourceForm
    add_form = NewResourceForm
    preview_part = _("Dates")
    list_display = (
        *("name", "app", "opening_hours", "shown_timezone"),
        *("shown_tags", "email", "deletion_time"),
    )
    first_order = ("name", "id")
    list_filter = (DeletedFilter, ("app", AppFilter))
    sortable_by = ("name",)
    list_select_related = ("app", "schedule")
    search_fields = ("name", "email", "id", "external_id")
    readonly_fields = ("id", "created_at", "updated_at", "deleted_at")
    inlines = (CalendarInline,)
    fieldsets = (
        (
            _("Resource"),
            {
                "fields": (
                    *("name", "email", "picture_file", "removes_picture"),
                    *("tags", "capacity", "party_min", "party_max", "app"),
                )
            },
        ),
        (_("Hours"), {"fields": ("timezone", "schedule_id", "hours")}),
        (_("Dates"), {"fields": ("dates",)}),
        (
            _("Advanced"),
            {
                "classes": ("collapse",),
                "fields": (
                    "first_name",
                    "last_name",
                    "image",
                    "id_elsewhere",
                    "meta",
                    "id",
                    "created_at",
                    "updated_at",
                    "deleted_at",
                ),
            },
        ),
    )
    parts = (
        (_("Resource"), None),
        (_("Hours"), None),
        (_("Dates"), None),
        (_("Calendars"), CalendarInline),
        (_("Advanced"), None),
    )
    actions = ("change_selected",)
    actions_list = ("open_bulk_edit",)
    actions_detail = ("open_why", "open_calendar", "open_away", "connect_calendar")

    @action(description=_("Availability check"), url_path="why", permissions=["view"])
    def open_why(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return redirect("admin:why_resource", resource_id=object_id)

    @action(description=_("Calendar"), url_path="calendar", permissions=["view"])
    def open_calendar(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return redirect(f"{reverse('admin:calendar')}?resources={object_id}")

    @action(description=pgettext_lazy("person", "Away"), url_path="away", permissions=["be_away"])
    def open_away(self, request: HttpRequest, object_id: str) -> HttpResponse:
        resource = self.find(request, object_id)
        return redirect(
            f"{reverse('admin:calendar_away')}?app={resource.app_id}&resource={resource.pk}"
        )

    def has_be_away_permission(self, request: HttpRequest, object_id: str | None = None) -> bool:
        return may_enter_absences(request)

    @action(description=_("Connect a calendar…"), url_path="connect", permissions=["connect"])
    def connect_calendar(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return redirect(f"{reverse('admin:availability_calendar_connect')}?resource={object_id}")

    def has_connect_permission(self, request: HttpRequest, object_id: str | None = None) -> bool:
        return is_allowed(request, "availability.add_calendar", None)

    hours, dates = shown_hours, shown_dates

    # --- Several resources at once ----------------------------------------------------------------
    @action(description=_("Change several…"), url_path="change-several", permissions=["bulk_edit"])
    def open_bulk_edit(self, request: HttpRequest) -> HttpResponse:
        """Open the form; with the resources of a filtered list chosen."""
        if not request.GET:
            return redirect("admin:availability_resource_bulk_edit")
        return self.change_selected(request, self.get_changelist_instance(request).queryset)

    @action(description=_("Change hours, time zone or tags…"), permissions=["bulk_edit"])
    def change_selected(self, request: HttpRequest, rows: QuerySet[Resource]) -> HttpResponse:
        ids = ",".join(str(pk) for pk in rows.values_list("pk", flat=True)[:MAX_RESOURCES])
        return redirect(f"{reverse('admin:availability_resource_bulk_edit')}?ids={ids}")

    def has_bulk_edit_permission(self, request: HttpRequest) -> bool:
        return is_allowed(request, CHANGE, None)

    def extra_pages(self) -> Iterable[ExtraPage]:
        return (ExtraPage("several/", self.bulk_edit, "bulk_edit", "bulk_edit"),)

    def bulk_edit(self, request: HttpRequest) -> HttpResponse:
        return show_bulk_edit(self, request)

    @display(description=_("time zone"))
    def shown_timezone(self, resource: Resource) -> str:
        return current_zone_name(resource.timezone)

    @display(description=_("opening hours"))
    def opening_hours(self, resource: Resource) -> str:
        """The weekly hours, within those of the schedule."""
        schedule = [stored_rules(resource.schedule)] if resource.schedule else []
        return hours_words(hours_of_rules(stored_rules(resource), *schedule))

    # For accounts that may not change the resource.
    @display(description=_("Schedule"))
    def schedule_id(self, resource: Resource) -> str:
        return resource.schedule.name if resource.schedule else ""

    def get_fieldsets(self, request: HttpRequest, obj: Resource | None = None) -> Any:
        fieldsets = super().get_fieldsets(request, obj)
        may_remove = obj and hasattr(obj, "picture") and self.has_change_permission(request, obj)
        return fieldsets if may_remove else without_field(fieldsets, "removes_picture")

    @display(description=_("Picture"))
    def picture_file(self, resource: Resource) -> str:
        path = picture_paths([resource.pk]).get(resource.pk)
        return picture_image(path) if path else pgettext("instead of a picture", "none")

    @display(description=_("Tags"))
    def shown_tags(self, resource: Resource) -> str:
        return LinesField().shown_value(resource.tags).replace("\n", ", ")

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        zone = office_zone(request)
        known = {"timezone": zone} if zone != "UTC" else {}
        return known | super().get_changeform_initial_data(request)

    def save_row(
        self, request: HttpRequest, row: Resource, form: ResourceForm, *, is_new: bool
    ) -> Resource:
        if is_new:
            return create_resource(app=row.app, given=form.given)[0]
        with transaction.atomic():
            resource = change_resource(row, form.given)
            save_picture(resource, form.cleaned_data)
        return resource

    def delete_row(self, row: Resource) -> None:
        delete_resource(row, now=timezone.now())

    def added_message(self, row: Resource) -> SafeString:
        return format_html(
            gettext(
                '{name} was added. Next: <a href="{link}">create a project</a> that customers can'
                " book."
            ),
            name=row.name,
            link=f"{reverse('admin:availability_project_add')}?resources={row.pk}",
        )


@admin.register(Schedule)
class ScheduleAdmin(AppOwnedAdmin[Schedule]):
    """Hours that several resources share."""

    app_paths = ("app",)
    deletion_effect = _(
        "The hours and dates of the schedule are lost. The back office can't undo this."
    )
    form = ScheduleForm
    add_form = NewScheduleForm
    preview_part = _("Dates")
    list_display = ("name", "app", "shown_rules", "creation_time")
    list_filter = (("app", AppFilter),)
    sortable_by = ("name", "creation_time")
    list_select_related = ("app",)
    search_fields = ("name", "id")
    readonly_fields = ("used_by", "id", "created_at", "updated_at")
    inlines = ()
    fieldsets = (
        (_("Schedule"), {"fields": ("name", "used_by", "app")}),
        (_("Hours"), {"fields": ("hours",)}),
        (_("Dates"), {"fields": ("dates",)}),
        (_("Advanced"), {"classes": ("collapse",), "fields": ("id", "created_at", "updated_at")}),
    )
    parts = ((_("Schedule"), None), (_("Hours"), None), (_("Dates"), None), (_("Advanced"), None))

    hours, dates = shown_hours, shown_dates

    @display(description=_("rules"))
    def shown_rules(self, row: Schedule) -> str:
        """The kinds of the rules, in words."""
        names = (name for rule in row.availability_constraints for name in rule)
        return ", ".join(dict.fromkeys(str(RULE_WORDS.get(name, name)) for name in names))

    @display(description=_("Used by"))
    def used_by(self, row: Schedule) -> str:
        """The first resources, linked."""
        rows = row.resources.filter(deleted_at=None).order_by("name", "id")
        first = list(rows[: MAX_OFFERED + 1])
        links = (
            (reverse("admin:availability_resource_change", args=[resource.pk]), resource.name)
            for resource in first[:MAX_OFFERED]
        )
        names = format_html_join(", ", '<a href="{}" class="office-link">{}</a>', links)
        more = ", …" if len(first) > MAX_OFFERED else ""
        return format_html("{}{}", names, more) if first else gettext("no resource yet")

    def save_row(
        self, request: HttpRequest, row: Schedule, form: ScheduleForm, *, is_new: bool
    ) -> Schedule:
        if is_new:
            return create_schedule(app=row.app, given=form.given)
        return change_schedule(row, form.given)

    def delete_row(self, row: Schedule) -> None:
        delete_schedule(row)

    def added_message(self, row: Schedule) -> SafeString:
        sentence = gettext("{name} was added. Select it on the pages of resources.")
        return format_html(sentence, name=row.name)


class DeletedEventFilter(DeletedFilter):
    """Leaves out the events of deleted bookings, calendars and resources."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Event]) -> QuerySet[Event]:
        if self.value() == "all":
            return queryset
        deleted = Booking.objects.filter(owner_booking=None).exclude(deleted_at=None)
        if self.value() == "only":
            bookings = deleted.order_by("-deleted_at").values("event")[: CappedPaginator.MOST]
            calendars, resources = (
                model._default_manager.exclude(deleted_at=None).order_by().values("pk")
                for model in (Calendar, Resource)
            )
            return queryset.filter(
                Q(in_values("pk", bookings))
                | Q(in_values("main", bookings))
                | Q(in_values("calendar", calendars))
                | Q(in_values("resource", resources))
            )
        # The other events of a booking have its own event as `main`.
        own = Coalesce(OuterRef("main"), OuterRef("pk"))
        is_current = Q(resource__deleted_at=None, calendar__deleted_at=None)
        return queryset.filter(is_current, ~Exists(deleted.filter(event=own).order_by()))


@admin.register(Event)
class EventAdmin(ServiceBackedAdmin[Event]):
    """Events are made by "Block time" and changed through the API, those of bookings through the
    booking, those of connected calendars at the provider.
    """

    never = frozenset({"change"})
    deletion_effect = _("The time is free again.")
    app_paths = ("resource__app",)
    list_display = ("what", "resource", "starts", "ends", "busy", "all_day")
    list_filter = (
        *("busy", "all_day", ("start", DaysFilter)),
        *(("resource", ScopedChoiceFilter), DeletedEventFilter),
    )
    list_select_related = ("resource",)
    search_fields = ("what", "resource__name", "id")
    ordering = ("-id",)  # by creation: ids are time-ordered
    index_sorted = ("starts",)

    @display(description=_("start"), ordering="start")
    def starts(self, event: Event) -> str:
        return moment_words(event.start)

    @display(description=_("end"), ordering="end")
    def ends(self, event: Event) -> str:
        return moment_words(event.end)

    def add_view(self, request: HttpRequest, *_: Any, **__: Any) -> HttpResponse:
        return HttpResponseRedirect(reverse("admin:calendar_block"))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return (obj is None or is_own_event(obj)) and super().has_delete_permission(request, obj)

    def row_title(self, row: Event) -> str:
        return f"{row.what}, {row.resource}, {moment_words(row.start)}"

    def delete_row(self, row: Event) -> None:
        delete_event(row)


def is_own_event(event: Event) -> bool:
    """Whether the event belongs to neither a booking nor a connected calendar."""
    of_booking = event.main_id or event.bookings.filter(owner_booking=None).exists()
    return not of_booking and not event.calendar.is_connected


@admin.register(Hold)
class HoldAdmin(OfficeAdmin[Hold]):
    """Holds are created and released through the API, and expire."""

    never = ALL_EDITS
    app_paths = ("resource__app",)
    list_display = ("resource", "start", "end", "expires_at", "used_at", "client_address")
    list_select_related = ("resource",)
    search_fields = ("resource__name", "id", "client_address")

    def row_title(self, row: Hold) -> str:
        words = gettext("%(resource)s until %(moment)s")
        return words % {"resource": row.resource, "moment": moment_words(row.expires_at)}
