"""Why not? A resource's week in colours, by the reason why time is not free."""

import uuid
from datetime import timedelta
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_safe

from availability.models import Project, Resource
from office.calendar_pages import last_used, remember
from office.reach import caller_of, find_resources, projects_in_reach, resources_in_reach, show_page
from office.reasons import WORDS, ask, tell_days
from office.walls import monday_of, read_day, read_moment, today_in
from scheduling.api.errors import Invalid, Refusal

LISTED = 200
DAYS = 7


@require_safe
def show_any(request: HttpRequest) -> HttpResponse:
    """The resource that was chosen, looked at last, or comes first."""
    chosen = request.GET.get("resource", "")
    if chosen:
        try:
            return redirect("admin:why_resource", resource_id=uuid.UUID(chosen))
        except ValueError:
            raise Http404 from None
    reach = resources_in_reach(request)
    last = last_used(request)
    known = {row.id: row for row in reach.filter(id__in=last)} if last else {}
    resource = next((known[one] for one in last if one in known), None)
    resource = resource or reach.order_by("name", "id").first()
    if resource is None:
        return show_page(request, "office/why_nothing.html", title="Why not?")
    return _show(request, resource.id)


@require_safe
def show_resource(request: HttpRequest, resource_id: uuid.UUID) -> HttpResponse:
    """?date=2026-11-23 (any day of the week) &project=id &at=2026-11-24T10:00"""
    return _show(request, resource_id)


def _show(request: HttpRequest, resource_id: uuid.UUID) -> HttpResponse:
    (resource,) = find_resources(request, [resource_id])
    if resource.id not in last_used(request):
        remember(request, [resource])
    now = timezone.now()
    project = _find_project(request, resource)
    today = today_in(resource.timezone, now)
    try:
        moment = None
        if request.GET.get("at"):
            moment = read_moment("at", request.GET["at"], resource.timezone)
        day = read_day("date", request.GET["date"]) if request.GET.get("date") else None
    except Invalid:
        raise Http404 from None
    day = day or (today_in(resource.timezone, moment) if moment else today)
    monday = monday_of(day)
    error, days = "", []
    try:
        query = ask(
            resource, project, monday, DAYS, caller=caller_of(request, resource.app), now=now
        )
        days = tell_days(query, resource, project, moment=moment)
    except Refusal as refusal:
        error = refusal.message
    projects = projects_in_reach(request).filter(app_id=resource.app_id, resources=resource)
    return show_page(
        request,
        "office/why.html",
        title="Why not?",
        resource=resource,
        resources=_choices(request, resource),
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
    """The project of the address. Raises Http404 for one that is not the app's."""
    text = request.GET.get("project", "")
    if not text:
        return None
    try:
        wanted = uuid.UUID(text)
    except ValueError:
        raise Http404 from None
    found = projects_in_reach(request).filter(id=wanted, app_id=resource.app_id).first()
    if found is None:
        raise Http404
    return found


def _choices(request: HttpRequest, resource: Resource) -> list[dict[str, Any]]:
    rows = list(resources_in_reach(request).order_by("name", "id")[:LISTED])
    rows = rows if resource in rows else [resource, *rows]
    several = len({row.app_id for row in rows}) > 1
    return [
        {"id": row.id, "name": f"{row.name} ({row.app.name})" if several else row.name}
        for row in rows
    ]
