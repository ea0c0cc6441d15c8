"""Admins of projects, and of their resources and reminders."""

import uuid
from collections.abc import Iterable, Mapping
from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, pgettext
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from apps_config.models import Membership
from availability.conferences import resources_without_links
from availability.graph_names import DEFAULT_GRAPH
from availability.models import Project, ProjectNotification, ProjectResource
from availability.payment_links import lacks_payment_link
from availability.services import change_project, create_project, delete_project
from booking_pages.views.hosted_project_page import is_bookable_project
from common.errors import Refusal
from office.base.api_forms import patch_of
from office.base.event_notification_forms import (
    CHOICE_WORDS,
    EventNotificationForm,
    EventNotificationInline,
)
from office.base.event_notification_words import event_notification_words
from office.base.list_filters import AppFilter, DeletedFilter
from office.base.model_admin import ALL_EDITS, OfficeAdmin, OfficeInline, without_field
from office.base.model_admin_pages import ExtraPage
from office.base.permissions import visible_resources
from office.base.setting_fields import names_of_part, show_fields
from office.resources.app_owned_admin import MAX_OFFERED, AppOwnedAdmin, rule_lines
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
    NOT_OF_VISITS,
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
from office.resources.resource_form import stored_rules
from office.resources.share import page_url
from office.resources.steps_field import step_lines
from office.resources.translations_field import translation_lines

NEW_PROJECT = "new_project"  # attribute of a request: the project that it made, and its form


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
        return not (obj and obj.derives_resources) and super()._may(request, what, obj)


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
    search_fields = ("name", "slug", "id", "external_id")
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
        (
            WHO,
            {
                "fields": (
                    *names_of_part(ProjectForm, WHO),
                    "requirements",
                    "visit_steps",
                    "visit_order",
                )
            },
        ),
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
        """Only a class has dates, and a visit has no length of its own."""
        fieldsets = super().get_fieldsets(request, obj)
        left_out = () if obj and is_class(obj) else ("dates",)
        for name in (*left_out, *(NOT_OF_VISITS if obj and obj.steps else ())):
            fieldsets = without_field(fieldsets, name)
        return fieldsets

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

    @display(description=_("Steps of a visit"))
    def visit_steps(self, project: Project) -> str:
        return format_html_join("", "{}<br>", ((line,) for line in step_lines(project)))

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
        if not form.is_of_class:
            return response
        if not form.cleaned_data["first_date"]:
            messages.warning(request, dates_in_words(project))
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
                if form.instance.derives_resources:
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
        if not row.derives_resources and not row.project_resources.exists():
            sentence = gettext(
                '{name} was created. Now choose <a href="#part-who">who can be booked</a>.'
            )
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
    - {"rules", "start_rules", "end_rules", "requirements", "visit_steps", "translated_texts"},
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
