"""Staff's view of resources, events and projects."""

import re
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from unfold.decorators import action, display

from apps_config.days import moment_words
from apps_config.office import (
    AppFilter,
    DaysFilter,
    OfficeAdmin,
    OfficeInline,
    ReadOnlyAdmin,
    RecordedAdmin,
    ScopedChoiceFilter,
    ServedAdmin,
)
from apps_config.reminders import ReminderForm, ReminderInline
from apps_config.scope import is_allowed, scope_of
from availability.admin_forms import (
    ConstraintFormSet,
    ProjectForm,
    ProjectResourceForm,
    ProjectResourceFormSet,
    ResourceForm,
)
from availability.core.constraints import (
    ConstraintError,
    parse_constraints,
    render_constraint,
)
from availability.graph_names import PAYMENT_GRAPHS
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
from availability.services import (
    change_project,
    change_resource,
    create_project,
    create_resource,
)

# What a browser's input of a date and time sends, which leaves out seconds of zero.
_DATE_INPUT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(:\d\d)?")


class ConstraintForm(forms.ModelForm):
    """A rule is checked as the API checks it; what its kind does not use is dropped."""

    class Meta:
        model = Constraint
        fields = ("position", "name", "day", "start", "end")

    def clean(self) -> dict[str, Any]:
        given = super().clean()
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


class ConstraintInline(OfficeInline):
    """The rules in their order, with a picture of what they come to (office/static/office/rules.js)
    that needs no saving."""

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
    """Saves what was changed alone: the rest of a connected calendar's row is a worker's."""

    def save(self, commit: bool = True) -> Calendar:
        if not commit or self.instance._state.adding:
            return super().save(commit)
        self.instance.save(update_fields=[*self.changed_data, "updated_at"])
        return self.instance


class CalendarInline(OfficeInline):
    model = Calendar
    form = CalendarLineForm
    extra = 0
    fields = ("name", "description", "provider", "synced_at")
    readonly_fields = ("provider", "synced_at")
    show_change_link = True

    def get_queryset(self, request: HttpRequest) -> QuerySet[Calendar]:
        return super().get_queryset(request).filter(deleted_at=None)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class SetUpAdmin(ServedAdmin, RecordedAdmin):
    """What stays in its app: chosen among those that the account may add to."""

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return (*self.readonly_fields, "app") if obj else self.readonly_fields

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "app":
            kwargs["queryset"] = scope_of(request).apps(self.least["add"])
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Resource)
class ResourceAdmin(SetUpAdmin):
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

    def has_connect_permission(self, request: HttpRequest, *args: Any) -> bool:
        return is_allowed(request, "availability.add_calendar", None)

    def save_model(self, request: HttpRequest, obj: Resource, form: Any, change: bool) -> None:
        if change:
            saved = change_resource(obj, form.given)
        else:
            saved, _ = create_resource(app=obj.app, given=form.given)
        obj.__dict__.update(saved.__dict__)


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    """Events made by hand are changed through the API, those of bookings through the booking."""

    app_paths = ("resource__app",)
    list_display = ("what", "resource", "starts", "ends", "busy", "all_day")
    list_filter = ("busy", "all_day", ("start", DaysFilter), ("resource", ScopedChoiceFilter))
    list_select_related = ("resource",)
    search_fields = ("what", "resource__name", "id")
    ordering = ("-id",)  # by their making: ids carry the moment
    sortable_by = ()

    @display(description="start")
    def starts(self, event: Event) -> str:
        return moment_words(event.start)

    @display(description="end")
    def ends(self, event: Event) -> str:
        return moment_words(event.end)


@admin.register(Hold)
class HoldAdmin(ReadOnlyAdmin):
    """Holds are placed and given back through the API, and lapse by themselves."""

    app_paths = ("resource__app",)
    list_display = ("resource", "start", "end", "expires_at", "used_at", "client_address")
    list_select_related = ("resource",)
    search_fields = ("resource__name", "id", "client_address")


class ProjectResourceInline(OfficeInline):
    model = ProjectResource
    form = ProjectResourceForm
    formset = ProjectResourceFormSet
    extra = 0
    autocomplete_fields = ("resource",)


class ProjectNotificationInline(ReminderInline):
    model = ProjectNotification


@admin.register(Project)
class ProjectAdmin(SetUpAdmin):
    app_paths = ("app",)
    form = ProjectForm
    list_display = ("name", "slug", "app", "created_at", "deleted_at")
    list_filter = (("app", AppFilter),)
    list_select_related = ("app",)
    search_fields = ("name", "slug", "id")
    autocomplete_fields = ("app",)
    readonly_fields = ("id", "created_at", "updated_at", "deleted_at")
    inlines = (ProjectResourceInline, ConstraintInline, ProjectNotificationInline)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """For the picture of the rules, which is one resource's."""
        if project := context.get("original"):
            rows = project.resources.filter(deleted_at=None)
            order = ("project_resources__position", "project_resources__id")
            context["pictured"] = rows.filter(project_resources__project=project).order_by(*order)
        return super().render_change_form(request, context, *args, **kwargs)

    def save_model(self, request: HttpRequest, obj: Project, form: Any, change: bool) -> None:
        if change:
            saved = change_project(obj, form.given)
        else:
            saved = create_project(app=obj.app, given=form.given)
        obj.__dict__.update(saved.__dict__)
        if obj.booking.get("graph") in PAYMENT_GRAPHS and not obj.booking.get("payment_url"):
            messages.warning(
                request,
                "The booking page takes no bookings until the project has a payment link:"
                " payment_url in “Booking”.",
            )


@admin.register(Constraint)
class ConstraintAdmin(RecordedAdmin):
    app_paths = ("resource__app", "project__app")
    list_display = ("name", "day", "start", "end", "resource", "project")
    list_filter = ("name",)
    list_select_related = ("resource", "project")
    search_fields = ("resource__name", "project__name")
    autocomplete_fields = ("resource", "project")
    form = ConstraintForm
    fields = ("resource", "project", "position", "name", "day", "start", "end")


@admin.register(ProjectResource)
class ProjectResourceAdmin(OfficeAdmin):
    app_paths = ("project__app",)
    form = ProjectResourceForm
    list_display = ("project", "resource", "position")
    list_select_related = ("project", "resource")
    search_fields = ("project__name", "resource__name")
    autocomplete_fields = ("project", "resource")


@admin.register(ProjectNotification)
class ProjectNotificationAdmin(OfficeAdmin):
    app_paths = ("project__app",)
    list_display = ("project", "type", "when_time", "when_unit", "when_type")
    list_select_related = ("project",)
    search_fields = ("project__name",)
    autocomplete_fields = ("project",)
    form = ReminderForm
    fields = ("project", *ReminderForm.Meta.fields)
