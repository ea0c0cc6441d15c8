"""Admins of resources, projects, events, holds and rules."""

import uuid
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, cast

from django import forms
from django.contrib import admin, messages
from django.db import transaction
from django.db.models import Exists, Field, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.dates import WEEKDAYS
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, pgettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _
from unfold.decorators import action, display

from apps_config.models import App, Membership
from availability.conferences import resources_without_links
from availability.core.constraints import WEEKLY_KINDS, ConstraintRule, render_constraint
from availability.graph_names import DEFAULT_GRAPH
from availability.models import (
    Calendar,
    Event,
    Hold,
    Project,
    ProjectNotification,
    ProjectResource,
    Resource,
    Schedule,
)
from availability.payment_links import lacks_payment_link
from availability.serializers.calendars import CalendarSerializer
from availability.services import (
    change_calendar,
    change_project,
    change_resource,
    change_schedule,
    create_calendar,
    create_project,
    create_resource,
    create_schedule,
    delete_event,
    delete_project,
    delete_resource,
    delete_schedule,
)
from booking_pages.picture_paths import picture_paths
from booking_pages.views.hosted_project_page import is_bookable_project
from bookings.models import Booking
from common.db.indexed_values import in_values
from common.errors import Refusal
from common.time.zone_names import current_zone_name
from office.base.api_forms import ApiForm, ChangesForm, patch_of
from office.base.change_list import CappedPaginator
from office.base.dates import moment_words, office_zone
from office.base.event_notification_forms import (
    CHOICE_WORDS,
    EventNotificationForm,
    EventNotificationInline,
)
from office.base.event_notification_words import event_notification_words
from office.base.form_fields import LinesField
from office.base.labels import RULE_WORDS
from office.base.list_filters import AppFilter, DaysFilter, DeletedFilter, ScopedChoiceFilter
from office.base.model_admin import (
    ALL_EDITS,
    PARTS_FORM,
    OfficeAdmin,
    OfficeInline,
    ServiceBackedAdmin,
    without_field,
)
from office.base.model_admin_pages import ExtraPage, Row
from office.base.opening_hours_text import hours_of_rules, hours_words
from office.base.permissions import may_enter_absences, visible_resources
from office.base.rule_rows import rule_text
from office.base.scope import is_allowed, read_once, scope_of
from office.base.setting_fields import names_of_part, show_fields
from office.calendars.sync_status import provider_words
from office.resources.bulk_edit import CHANGE, MAX_RESOURCES, show_bulk_edit
from office.resources.class_dates import (
    dates_in_words,
    dates_page,
    is_class,
    make_dates,
    refusal_with_times,
    show_class_dates,
)
from office.resources.project_form import (
    ADVANCED,
    LANGUAGES,
    PAGE,
    POLICIES,
    QUESTIONS,
    SERVICE,
    TIMES,
    WHO,
    NewProjectForm,
    ProjectForm,
    kind_words,
)
from office.resources.project_resources import (
    ProjectResourceFormSet,
    WeightedResourceForm,
    stored_weight,
)
from office.resources.requirements_field import requirement_lines
from office.resources.resource_form import (
    NewResourceForm,
    NewScheduleForm,
    ResourceForm,
    ScheduleForm,
    picture_image,
    save_picture,
    stored_rules,
)
from office.resources.share import page_url
from office.resources.translations_field import translation_lines

MAX_OFFERED = 50
NEW_PROJECT = "new_project"  # attribute of a request: the project that it made, and its form


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


@read_once
def only_app(request: HttpRequest) -> App | None:
    """Return the app that the account may edit, if there is a single one."""
    apps = list(scope_of(request).apps(Membership.EDITOR).order_by()[:2])
    return apps[0] if len(apps) == 1 else None


class AppOwnedAdmin(ServiceBackedAdmin[Row]):
    """Rows with a fixed app, chosen among the apps that the account may edit.

    A new row has a short form (`add_form`).
    """

    fixed_fields = autocomplete_fields = chosen_fields = ("app",)
    change_form_template = PARTS_FORM
    add_form: ClassVar[type[ApiForm]]

    class Media:
        css = {"all": ("office/forms.css", "office/time.css")}
        js = (
            *("office/rows.js", "office/json.js", "office/forms.js", "office/copy.js"),
            "office/rules.js",
        )

    @display(description=_("created"), ordering="created_at")
    def creation_time(self, row: Any) -> str:
        return moment_words(row.created_at)

    @display(description=_("deleted"))
    def deletion_time(self, row: Any) -> str:
        return moment_words(row.deleted_at)

    def get_form(
        self, request: HttpRequest, obj: Row | None = None, change: bool = False, **kwargs: Any
    ) -> type[forms.ModelForm]:
        if obj:
            return super().get_form(request, obj, change, **kwargs)
        kwargs["form"] = self.add_form
        form = cast(type[ApiForm], super().get_form(request, obj, change, **kwargs))
        form.only_app = only_app(request)
        return form

    def get_fieldsets(self, request: HttpRequest, obj: Row | None = None) -> Any:
        if obj:
            return super().get_fieldsets(request, obj)
        app = () if only_app(request) else ("app",)
        return ((None, {"fields": (*app, *self.add_form.asked)}),)

    def get_inlines(self, request: HttpRequest, obj: Row | None) -> Any:
        return self.inlines if obj else ()

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """A new row's page opens after saving: no second button says so."""
        if not context.get("original"):
            context["show_save_and_continue"] = False
        return super().render_change_form(request, context, *args, **kwargs)

    def response_add(
        self, request: HttpRequest, obj: Row, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Open the page of the new row."""
        if "_addanother" in request.POST or "_popup" in request.POST:
            return super().response_add(request, obj, post_url_continue)
        messages.success(request, self.added_message(obj))
        return redirect(self.url_of(obj))

    def added_message(self, row: Row) -> str:
        raise NotImplementedError


# Hours and dates of resources and schedules, for accounts that may not change them.
@display(description=_("Weekly hours"))
def shown_hours(page: AppOwnedAdmin, row: Any) -> str:
    days = zip(WEEKDAYS.values(), hours_of_rules(stored_rules(row)), strict=True)
    closed = gettext("closed")
    return format_html_join("", "{}: {}<br>", ((day, text or closed) for day, text in days))


@display(description=_("Dates"))
def shown_dates(page: AppOwnedAdmin, row: Any) -> str:
    return rule_lines(rule for rule in stored_rules(row) if rule.kind not in WEEKLY_KINDS)


def rule_lines(rules: Iterable[ConstraintRule]) -> str:
    texts = (rule_text(render_constraint(rule)) for rule in rules)
    return format_html_join("", "{}<br>", ((text,) for text in texts))


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
    search_fields = ("name", "email", "id")
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


class ProjectResourceInline(OfficeInline[ProjectResource]):
    model = ProjectResource
    form = WeightedResourceForm
    formset = ProjectResourceFormSet
    verbose_name = _("resource")
    verbose_name_plural = _("Who can be booked")
    fields = ("resource", "weight", "position")
    ordering_field = "position"
    hide_ordering_field = True
    hide_title = True
    extra = 0
    autocomplete_fields = ("resource",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[ProjectResource]:
        return super().get_queryset(request).select_related("resource")

    @display(description=_("Weight in fair turns"))
    def weight(self, row: ProjectResource) -> int | None:
        return stored_weight(row.project, row.resource_id)

    def _may(self, request: HttpRequest, what: str, obj: Any) -> bool:
        """Requirements of a project determine its resources: nobody may change these."""
        return not (obj and obj.requires) and super()._may(request, what, obj)


class ProjectNotificationInline(EventNotificationInline):
    model = ProjectNotification
    verbose_name_plural = _("This project's reminders")


@admin.register(Project)
class ProjectAdmin(AppOwnedAdmin[Project]):
    app_paths = ("app",)
    deletion_effect = _(
        "The booking page of the project disappears, and its address is free for another project."
        " Past bookings stay. The back office can't undo this."
    )
    form = ProjectForm
    add_form = NewProjectForm
    list_display = ("name", "kind", "booking_page", "app", "creation_time", "deletion_time")
    list_filter = (DeletedFilter, ("app", AppFilter))
    sortable_by = ("name", "creation_time")
    list_select_related = ("app",)
    search_fields = ("name", "slug", "id")
    readonly_fields = ("dates", "page_address", "id", "created_at", "updated_at", "deleted_at")
    inlines = (ProjectResourceInline, ProjectNotificationInline)
    first_fields = frozenset(
        {
            *("dates", "name", "graph", "length", "notice", "mode", "questions", "min_cancel_time"),
            *("page_address", "published"),
        }
    )
    made_fields = frozenset({"slug"})
    preview_part = _("Rules")
    fieldsets = (
        (SERVICE, {"fields": ("name", *names_of_part(ProjectForm, SERVICE), "app")}),
        (TIMES, {"fields": ("dates", *names_of_part(ProjectForm, TIMES))}),
        (WHO, {"fields": (*names_of_part(ProjectForm, WHO), "requirements")}),
        (_("Rules"), {"fields": ("rules", "start_rules", "end_rules")}),
        (QUESTIONS, {"fields": ("questions", *names_of_part(ProjectForm, QUESTIONS))}),
        (POLICIES, {"fields": names_of_part(ProjectForm, POLICIES)}),
        (
            PAGE,
            {
                "fields": (
                    *("page_address", "published", "slug", "submit_button", "success_message"),
                    *names_of_part(ProjectForm, PAGE),
                )
            },
        ),
        (_("Reminders"), {"fields": ("replaces_notifications",)}),
        (LANGUAGES, {"classes": ("collapse",), "fields": ("translated_texts",)}),
        (
            _("Advanced"),
            {
                "classes": ("collapse",),
                "fields": (
                    *names_of_part(ProjectForm, ADVANCED),
                    "other_ui",
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
        (_("Service"), None),
        (_("Times"), None),
        (_("Who"), ProjectResourceInline),
        (_("Rules"), None),
        (_("Questions"), None),
        (_("Policies"), None),
        (_("Booking page"), None),
        (_("Reminders"), ProjectNotificationInline),
        (_("Languages"), None),
        (_("Advanced"), None),
    )

    @display(description=_("kind"))
    def kind(self, project: Project) -> str:
        graph = str(project.booking.get("graph") or DEFAULT_GRAPH)  # a stored one may be anything
        return kind_words(graph)

    @display(description=_("Dates"))
    def dates(self, project: Project) -> SafeString:
        return dates_in_words(project)

    def get_fieldsets(self, request: HttpRequest, obj: Project | None = None) -> Any:
        """Only a class has dates."""
        fieldsets = super().get_fieldsets(request, obj)
        return fieldsets if obj and is_class(obj) else without_field(fieldsets, "dates")

    def extra_pages(self) -> Iterable[ExtraPage]:
        return (ExtraPage("<path:object_id>/dates/", self.class_dates, "dates", "view"),)

    def class_dates(self, request: HttpRequest, object_id: str) -> HttpResponse:
        project = self.find(request, object_id)
        if project.deleted_at or not is_class(project):
            raise Http404
        return show_class_dates(self, request, project)

    @display(description=_("booking page"))
    def booking_page(self, project: Project) -> str:
        if not project.is_published or project.deleted_at:
            return gettext("not published")
        page = '<a class="office-link" href="{}" target="_blank" rel="noopener">/book/{}</a>'
        return format_html(page, page_url(project), project.slug)

    @display(description=_("Rules"))
    def rules(self, project: Project) -> str:
        return rule_lines(stored_rules(project))

    @display(description=_("Texts in other languages"))
    def translated_texts(self, project: Project) -> str:
        return format_html_join("", "{}<br>", ((line,) for line in translation_lines(project)))

    @display(description=_("Several resources at once"))
    def requirements(self, project: Project) -> str:
        return format_html_join("", "{}<br>", ((line,) for line in requirement_lines(project)))

    @display(description=_("Address of the page"))
    def page_address(self, project: Project) -> SafeString:
        return format_html(
            '<span class="office-inline"><input id="page-address" readonly value="{0}"'
            ' aria-label="{1}" class="office-input">'
            '<button type="button" class="office-button office-default" data-copy="page-address">'
            '{2}</button> <a href="{0}" target="_blank" rel="noopener">{3}</a>'
            ' <a href="{4}">{5}</a>'
            '<span id="copied" role="status"></span></span>{6}',
            page_url(project),
            gettext("Address of the page"),
            gettext("Copy"),
            gettext("Open the page"),
            reverse("admin:project_share", args=[project.pk]),
            gettext("QR code, poster, signature, web site"),
            "" if project.is_published else gettext("The page is not published."),
        )

    def get_form(
        self, request: HttpRequest, obj: Project | None = None, change: bool = False, **kwargs: Any
    ) -> type[forms.ModelForm]:
        form = super().get_form(request, obj, change, **kwargs)
        if obj is None:
            self._offer_resources(request, cast(type[NewProjectForm], form))
        return form

    def _offer_resources(self, request: HttpRequest, form: type[NewProjectForm]) -> None:
        """Offer `?resources=` and the first resources by name."""
        rows = visible_resources(request, least=Membership.EDITOR).order_by("name", "id")
        first = list(rows.values_list("pk", flat=True)[: MAX_OFFERED + 1])
        form.has_more = len(first) > MAX_OFFERED
        form.offered = rows.filter(pk__in=[*first[:MAX_OFFERED], *_resources_in_query(request)])

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Preselect `?resources=`, or the only resource."""
        initial = super().get_changeform_initial_data(request)
        chosen = _resources_in_query(request)
        if not chosen:
            rows = visible_resources(request, least=Membership.EDITOR)
            ids = list(rows.values_list("pk", flat=True)[:2])
            chosen = ids if len(ids) == 1 else []
        return {**initial, "resources": chosen}

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Add the project's resources for the preview of the rules, which shows one resource."""
        if project := context.get("original"):
            rows = project.resources.filter(deleted_at=None)
            order = ("project_resources__position", "project_resources__id")
            context["pictured"] = rows.filter(project_resources__project=project).order_by(*order)
        return super().render_change_form(request, context, *args, **kwargs)

    def part_notes(self, row: Project) -> Mapping[str, str]:
        """Name the app's reminders beside the project's own."""
        link = f"{reverse('admin:apps_config_app_change', args=[row.app_id])}#part-reminders"
        rows = row.app.event_notifications.order_by("position", "id")
        texts = "; ".join(map(event_notification_words, rows))
        return {
            gettext("Reminders"): format_html(
                # Translators: of projects, which have reminders of their own or use the app's.
                gettext(
                    'The <a href="{link}">app\'s reminders</a>, for projects without their own:'
                    " {reminders}."
                ),
                link=link,
                reminders=texts or pgettext("instead of reminders", "none"),
            )
        }

    def save_row(
        self, request: HttpRequest, row: Project, form: ProjectForm, *, is_new: bool
    ) -> Project:
        if is_new:
            saved = create_project(app=row.app, given=form.given)
            setattr(request, NEW_PROJECT, (saved, form))
        else:
            saved = change_project(row, form.given)
        if lacks_payment_link(saved):
            messages.warning(
                request,
                gettext("Add a payment link: without it, the booking page takes no bookings."),
            )
        if names := resources_without_links(saved):
            words = gettext(
                "These resources have no connected calendar that makes links for video calls, so"
                " their bookings have none: %(names)s."
            )
            messages.warning(request, words % {"names": ", ".join(names)})
        return saved

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Add the dates of a new class once it is committed: they may need calls to other servers.
        Refused ones are shown on the page of its dates.
        """
        response = super().changeform_view(request, object_id, form_url, extra_context)
        made = getattr(request, NEW_PROJECT, None)
        if made is None:
            return response
        project, form = made
        if not (form.is_of_class and form.cleaned_data["first_date"]):
            return response
        resource = form.cleaned_data["resources"][0]
        try:
            make_dates(request, project, resource, form.cleaned_data)
        except Refusal as refusal:
            messages.error(request, refusal_with_times(refusal, resource))
            return redirect(dates_page(project, form.cleaned_data))
        return response

    def delete_row(self, row: Project) -> None:
        delete_project(row, now=timezone.now())

    def save_related(
        self, request: HttpRequest, form: ProjectForm, formsets: Any, change: bool
    ) -> None:
        super().save_related(request, form, formsets, change)
        given: dict[str, Any] = {}
        for rows in formsets:
            if not rows.has_changed():
                continue
            if isinstance(rows, ProjectResourceFormSet):
                if form.instance.requires:
                    continue
                given["resources"] = rows.resource_ids()
                weights = rows.weights(form.instance)
                stored = form.instance.availability.get("weights") or {}
                if weights != stored:
                    patch = patch_of(stored, weights)
                    given["availability"] = {"weights": patch if weights else None}
            elif rows.new_objects and "replaces_notifications" not in form.changed_data:
                given["replaces_notifications"] = True
        if given:
            change_project(form.instance, given)

    def added_message(self, row: Project) -> SafeString:
        if not row.is_published:
            sentence = gettext("{name} was created. Its booking page is not published.")
            return format_html(sentence, name=row.name)
        if not is_bookable_project(row):
            sentence = gettext("{name} was created. Customers can't book it online yet.")
            return format_html(sentence, name=row.name)
        return format_html(
            gettext('{name} was created. Customers can book at <a href="{link}">{link}</a>.'),
            name=row.name,
            link=page_url(row),
        )


def _resources_in_query(request: HttpRequest) -> list[uuid.UUID]:
    """Return the ids in `?resources=`; none if one of them is malformed."""
    try:
        return [uuid.UUID(text) for text in request.GET.get("resources", "").split(",") if text]
    except ValueError:
        return []


show_fields(
    ProjectAdmin,
    ProjectForm,
    ProjectForm.declared_fields.keys()
    - {"rules", "start_rules", "end_rules", "requirements", "translated_texts"},
)


@admin.register(ProjectResource)
class ProjectResourceAdmin(OfficeAdmin[ProjectResource]):
    """The resources of a project are changed on its page."""

    app_paths = ("project__app",)
    never = ALL_EDITS
    list_display = ("project", "resource", "position")
    list_select_related = ("project", "resource")
    search_fields = ("project__name", "resource__name")
    fields = ("project", "resource", "position")

    def row_title(self, row: ProjectResource) -> str:
        # Translators: a resource in a project.
        words = gettext("%(resource)s in %(project)s")
        return words % {"resource": row.resource, "project": row.project}


@admin.register(ProjectNotification)
class ProjectNotificationAdmin(OfficeAdmin[ProjectNotification]):
    """The reminders of a project are changed on its page."""

    app_paths = ("project__app",)
    never = ALL_EDITS
    list_display = ("project", "reminder")
    list_select_related = ("project",)
    sortable_by = ()
    search_fields = ("project__name",)
    fields = ("project", *EventNotificationForm.Meta.fields)
    words = CHOICE_WORDS

    @display(description=_("reminder"))
    def reminder(self, row: ProjectNotification) -> str:
        return event_notification_words(row)

    def row_title(self, row: ProjectNotification) -> str:
        return event_notification_words(row)
