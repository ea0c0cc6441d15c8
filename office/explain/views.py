"""The availability check: a resource's week with the reasons why time is not free."""

import uuid
from datetime import timedelta

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from availability.models import Event, Project, Resource
from common.errors import Invalid, Refusal
from office.base.local_time import monday_of, parse_day, parse_moment, today_in
from office.base.message_translations import translate_message
from office.base.model_admin_pages import find_row
from office.base.permissions import (
    editor_caller_of,
    get_visible_resources_or_404,
    show_page,
    visible_projects,
    visible_resources,
)
from office.base.row_choices import CurrentRowForm
from office.calendar.views import last_used_resources, remember_resources
from office.explain.data import WORDS, explain_days, explain_week

LISTED = 200
DAYS = 7


@require_safe
def show_default_resource(request: HttpRequest) -> HttpResponse:
    """Show the chosen, the last used, or the first resource."""
    chosen = request.GET.get("resource", "")
    if chosen:
        try:
            return redirect("admin:why_resource", resource_id=uuid.UUID(chosen))
        except ValueError:
            raise Http404 from None
    reach = visible_resources(request)
    last = last_used_resources(request)
    known = {row.id: row for row in reach.filter(id__in=last)} if last else {}
    resource = next((known[resource] for resource in last if resource in known), None)
    resource = resource or reach.order_by("name", "id").first()
    if resource is None:
        return show_page(request, "office/why_nothing.html", title=_("Availability check"))
    return _show(request, resource.id)


@require_safe
def show_resource(request: HttpRequest, resource_id: uuid.UUID) -> HttpResponse:
    """?date=2026-11-23 (any day of the week) &project=id &at=2026-11-24T10:00"""
    return _show(request, resource_id)


def _show(request: HttpRequest, resource_id: uuid.UUID) -> HttpResponse:
    (resource,) = get_visible_resources_or_404(request, [resource_id])
    if resource.id not in last_used_resources(request):
        remember_resources(request, [resource])
    now = timezone.now()
    project = _find_project(request, resource)
    today = today_in(resource.timezone, now)
    try:
        moment = None
        if request.GET.get("at"):
            moment = parse_moment("at", request.GET["at"], resource.timezone)
        day = parse_day("date", request.GET["date"]) if request.GET.get("date") else None
    except Invalid:
        raise Http404 from None
    day = day or (today_in(resource.timezone, moment) if moment else today)
    monday = monday_of(day)
    error, days = "", []
    try:
        query = explain_week(
            resource, project, monday, DAYS, caller=editor_caller_of(request, resource.app), now=now
        )
        days = explain_days(query, resource, project, moment=moment)
    except Refusal as refusal:
        error = translate_message(refusal.message)
    projects = visible_projects(request).filter(app_id=resource.app_id, resources=resource)
    return show_page(
        request,
        "office/why.html",
        title=_("Availability check"),
        resource=resource,
        choice=CurrentRowForm(
            request,
            name="resource",
            label=_("Resource"),
            column=Event._meta.get_field("resource"),
            rows=visible_resources(request),
            chosen=resource,
            attrs={"data-go": reverse("admin:why_resource", args=[resource.id])},
        ),
        project=project,
        projects=projects.order_by("name", "id")[:LISTED],
        days=days,
        today=today,
        error=error,
        kinds=WORDS,
        monday=monday,
        before=monday - timedelta(days=DAYS),
        after=monday + timedelta(days=DAYS),
        is_fullwidth=True,
    )


def _find_project(request: HttpRequest, resource: Resource) -> Project | None:
    """Return the project in the query. Raises Http404 for one of another app."""
    text = request.GET.get("project", "")
    if not text:
        return None
    return find_row(visible_projects(request).filter(app_id=resource.app_id), text)
