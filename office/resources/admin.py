"""Admins of resources, projects, events, holds and rules."""

import re
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import ForeignKey, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from unfold.decorators import action, display

from apps_config.models import Membership
from availability.core.constraints import ConstraintError, parse_constraints, render_constraint
from availability.models import (
    Calendar,
    Constraint,
    Event,
    Hold,
    Project,
    ProjectNotification,
    ProjectResource,
    Resource,
)
from availability.public_project import lacks_payment_link
from availability.services import change_project, change_resource, create_project, create_resource
from office.base.dates import moment_words
from office.base.event_notification_forms import EventNotificationForm, EventNotificationInline
from office.base.model_admin import (
    AppFilter,
    DaysFilter,
    HistoryAdmin,
    OfficeAdmin,
    OfficeInline,
    ReadOnlyAdmin,
    ScopedChoiceFilter,
    ServiceBackedAdmin,
)
from office.base.model_admin_pages import Row
from office.base.scope import is_allowed, scope_of
from office.resources.forms import (
    PROJECT_SWITCHES,
    ConstraintFormSet,
    ProjectForm,
    ProjectResourceForm,
    ProjectResourceFormSet,
    ResourceForm,
    public_setting,
)

# The value of a datetime-local input, which omits zero seconds.
_DATE_INPUT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(:\d\d)?")


class ConstraintForm(forms.ModelForm):
    """A rule, checked as by the API; fields that its kind does not use are cleared."""

    class Meta:
        model = Constraint
        fields = ("position", "name", "day", "start", "end")

    def clean(self) -> dict[str, Any]:
        super().clean()
        given = self.cleaned_data
        values = {key: given.get(key) or "" for key in ("name", "day", "start", "end")}
        for key in ("start", "end"):
            if matched := _DATE_INPUT.fullmatch(values[key]):
                values[key] = f"{matched[1]} {matched[2]}{matched[3] or ':00'}"
        try:
            rules = parse_constraints([Constraint(**values).as_json()])
        except ConstraintError as error:
            for path, messages in error.errors.items():
                self.add_error(self._field_of(path), messages)
            return given
        used = render_constraint(rules[0])[values["name"]]
        return given | {key: values[key] if key in used else "" for key in ("day", "start", "end")}

    def _field_of(self, path: str) -> str | None:
        last = path.split(".")[-1]
        return last if last in self.fields else None


class ConstraintInline(OfficeInline[Constraint]):
    """Ordered rules with a live preview of unsaved changes (office/static/office/rules.js)."""

    model = Constraint
    form = ConstraintForm
    formset = ConstraintFormSet
    verbose_name = "rule"
    verbose_name_plural = "rules: when time is open"
    fields = ("name", "day", "start", "end", "position")
    ordering_field = "position"
    hide_ordering_field = True
    hide_title = True
    template_after = "office/rules_picture.html"

    class Media:
        css = {"all": ("office/time.css",)}
        js = ("office/rules.js",)


class CalendarLineForm(forms.ModelForm):
    """Saves changed columns only: a worker writes the others of a connected calendar."""

    def save(self, commit: bool = True) -> Calendar:
        if not commit or self.instance._state.adding:
            return super().save(commit)
        self.instance.save(update_fields=[*self.changed_data, "updated_at"])
        return self.instance


class CalendarInline(OfficeInline[Calendar]):
    never = frozenset({"delete"})
    model = Calendar
    form = CalendarLineForm
    extra = 0
    fields = ("name", "description", "provider", "synced_at")
    readonly_fields = ("provider", "synced_at")
    show_change_link = True

    def get_queryset(self, request: HttpRequest) -> QuerySet[Calendar]:
        return super().get_queryset(request).filter(deleted_at=None)


class AppOwnedAdmin(ServiceBackedAdmin[Row], HistoryAdmin[Row]):
    """Rows with a fixed app, chosen among the apps that the account may edit."""

    never = frozenset({"delete"})
    fixed_fields = ("app",)

    def formfield_for_foreignkey(
        self, db_field: ForeignKey, request: HttpRequest, **kwargs: Any
    ) -> forms.ModelChoiceField | None:
        if db_field.name == "app":
            kwargs["queryset"] = scope_of(request).apps(Membership.EDITOR)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)


@admin.register(Resource)
class ResourceAdmin(AppOwnedAdmin[Resource]):
    app_paths = ("app",)
    form = ResourceForm
    list_display = ("name", "app", "email", "timezone", "created_at", "deleted_at")
    list_filter = (("app", AppFilter),)
    list_select_related = ("app",)
    search_fields = ("name", "email", "id")
    autocomplete_fields = ("app",)
    readonly_fields = ("id", "created_at", "updated_at", "deleted_at")
    inlines = (ConstraintInline, CalendarInline)
    actions_detail = ("open_why", "open_calendar", "connect_calendar")

    @action(description="Why not?", url_path="why")
    def open_why(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return redirect("admin:why_resource", resource_id=object_id)

    @action(description="Calendar", url_path="calendar")
    def open_calendar(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return redirect(f"{reverse('admin:calendar')}?resources={object_id}")

    @action(description="Connect a calendar…", url_path="connect", permissions=["connect"])
    def connect_calendar(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return redirect(f"{reverse('admin:availability_calendar_connect')}?resource={object_id}")

    def has_connect_permission(self, request: HttpRequest, object_id: str | None = None) -> bool:
        return is_allowed(request, "availability.add_calendar", None)

    def save_row(
        self, request: HttpRequest, row: Resource, form: ResourceForm, *, is_new: bool
    ) -> Resource:
        if is_new:
            return create_resource(app=row.app, given=form.given)[0]
        return change_resource(row, form.given)


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin[Event]):
    """Other events are changed through the API, bookings' events through the booking."""

    app_paths = ("resource__app",)
    list_display = ("what", "resource", "starts", "ends", "busy", "all_day")
    list_filter = ("busy", "all_day", ("start", DaysFilter), ("resource", ScopedChoiceFilter))
    list_select_related = ("resource",)
    search_fields = ("what", "resource__name", "id")
    ordering = ("-id",)  # by creation: ids are time-ordered
    sortable_by = ()

    @display(description="start")
    def starts(self, event: Event) -> str:
        return moment_words(event.start)

    @display(description="end")
    def ends(self, event: Event) -> str:
        return moment_words(event.end)


@admin.register(Hold)
class HoldAdmin(ReadOnlyAdmin[Hold]):
    """Holds are created and released through the API, and expire."""

    app_paths = ("resource__app",)
    list_display = ("resource", "start", "end", "expires_at", "used_at", "client_address")
    list_select_related = ("resource",)
    search_fields = ("resource__name", "id", "client_address")


class ProjectResourceInline(OfficeInline[ProjectResource]):
    model = ProjectResource
    form = ProjectResourceForm
    formset = ProjectResourceFormSet
    extra = 0
    autocomplete_fields = ("resource",)


class ProjectNotificationInline(EventNotificationInline):
    model = ProjectNotification


@admin.register(Project)
class ProjectAdmin(AppOwnedAdmin[Project]):
    app_paths = ("app",)
    form = ProjectForm
    list_display = ("name", "slug", "app", "created_at", "deleted_at")
    list_filter = (("app", AppFilter),)
    list_select_related = ("app",)
    search_fields = ("name", "slug", "id")
    autocomplete_fields = ("app",)
    readonly_fields = ("id", "created_at", "updated_at", "deleted_at")
    inlines = (ProjectResourceInline, ConstraintInline, ProjectNotificationInline)

    # For accounts that may not change the project.
    @admin.display(description="Booking page")
    def published(self, project: Project) -> str:
        return "published" if project.is_published else "not published"

    @admin.display(description="Customers per booking")
    def public_customers(self, project: Project) -> str:
        return public_setting(project, "public_customers") or "1"

    @admin.display(description="Choosing another time")
    def public_reschedule(self, project: Project) -> str:
        by_id = public_setting(project, "public_reschedule")
        return "the booking's id" if by_id else "the link in an e-mail"

    @display(description=PROJECT_SWITCHES["verify_email"][0], boolean=True)
    def verify_email(self, project: Project) -> bool:
        """For accounts that may not change the project."""
        return project.settings.get("verify_email") is True

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Add the project's resources for the preview of the rules, which shows one resource."""
        if project := context.get("original"):
            rows = project.resources.filter(deleted_at=None)
            order = ("project_resources__position", "project_resources__id")
            context["pictured"] = rows.filter(project_resources__project=project).order_by(*order)
        return super().render_change_form(request, context, *args, **kwargs)

    def save_row(
        self, request: HttpRequest, row: Project, form: ProjectForm, *, is_new: bool
    ) -> Project:
        if is_new:
            saved = create_project(app=row.app, given=form.given)
        else:
            saved = change_project(row, form.given)
        if lacks_payment_link(saved):
            messages.warning(
                request,
                "The booking page takes no bookings until the project has a payment link:"
                " payment_url in “Booking”.",
            )
        return saved


@admin.register(Constraint)
class ConstraintAdmin(HistoryAdmin[Constraint]):
    app_paths = ("resource__app", "project__app")
    list_display = ("name", "day", "start", "end", "resource", "project")
    list_filter = ("name",)
    list_select_related = ("resource", "project")
    search_fields = ("resource__name", "project__name")
    autocomplete_fields = ("resource", "project")
    form = ConstraintForm
    fields = ("resource", "project", "position", "name", "day", "start", "end")


@admin.register(ProjectResource)
class ProjectResourceAdmin(OfficeAdmin[ProjectResource]):
    app_paths = ("project__app",)
    form = ProjectResourceForm
    list_display = ("project", "resource", "position")
    list_select_related = ("project", "resource")
    search_fields = ("project__name", "resource__name")
    autocomplete_fields = ("project", "resource")


@admin.register(ProjectNotification)
class ProjectNotificationAdmin(OfficeAdmin[ProjectNotification]):
    app_paths = ("project__app",)
    list_display = ("project", "type", "when_time", "when_unit", "when_type")
    list_select_related = ("project",)
    search_fields = ("project__name",)
    autocomplete_fields = ("project",)
    form = EventNotificationForm
    fields = ("project", *EventNotificationForm.Meta.fields)
