"""The calendar: what is booked and open, side by side; drag to move, drag to book."""

import uuid
from datetime import timedelta
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from apps_config.models import App
from apps_config.scope import scope_of
from availability.models import Project, Resource
from bookings.graphs import GRAPHS
from bookings.models import Booking
from bookings.requests import first_calendar, read_new_booking
from bookings.serializers import RescheduleSerializer
from bookings.services import make_booking, reschedule
from office.agenda import MOST_DAYS, Range, read_sheet
from office.reach import (
    MAKE,
    MOST_SIDE_BY_SIDE,
    MOVE,
    SEE,
    actor_of,
    answers_json,
    caller_of,
    demand,
    find_resources,
    may,
    read_ids,
    read_object,
    resources_in_reach,
    show_page,
)
from office.walls import read_day, read_moment, read_zone, say_span, show
from scheduling.api.bodies import read_values_as
from scheduling.api.errors import Invalid, NotFound, Refusal
from scheduling.api.instants import format_instant, parse_instant

LISTED = 50  # resources to choose from at once; others are found by name
LAST_USED = "office_resources"
BOOKABLE_GRAPHS = [
    graph.name for graph in GRAPHS.values() if not graph.is_group and not graph.is_seat
]


@require_safe
def show_calendar(request: HttpRequest) -> HttpResponse:
    """?resources=id,id&view=week&date=2026-11-23&q=ada&app=slug"""
    chosen = _chosen_resources(request)
    app = _chosen_app(request, chosen)
    if chosen:
        remember(request, chosen)
    found = resources_in_reach(request).filter(app=app) if app else Resource.objects.none()
    wanted = request.GET.get("q", "").strip()
    if wanted:
        found = found.filter(name__icontains=wanted)
    offered = list(found.order_by("name", "id")[: LISTED + 1])
    return show_page(
        request,
        "office/calendar.html",
        title="Calendar",
        chosen=chosen,
        offered=[one for one in offered[:LISTED] if one not in chosen],
        has_more=len(offered) > LISTED,
        most=MOST_SIDE_BY_SIDE,
        wanted=wanted,
        apps=scope_of(request).apps()[:200],
        app=app,
        projects=_projects_of(app),
        graphs=BOOKABLE_GRAPHS,
        may_make=bool(app) and may(request, app.id, MAKE),
        page=_page_values(request, app, chosen),
        is_fullwidth=True,
    )


def _page_values(request: HttpRequest, app: App | None, chosen: list[Resource]) -> dict[str, Any]:
    """What the script has to know."""
    return {
        "resources": [
            {"id": str(row.id), "name": row.name, "zone": row.timezone} for row in chosen
        ],
        "events": reverse("admin:calendar_events"),
        "move": reverse("admin:calendar_move", args=[uuid.UUID(int=0)]),
        "book": reverse("admin:calendar_book"),
        "why": reverse("admin:why_resource", args=[uuid.UUID(int=0)]),
        "mayMake": bool(app) and may(request, app.id, MAKE),
        "mayMove": bool(app) and may(request, app.id, MOVE),
        "view": request.GET.get("view", ""),
        "date": request.GET.get("date", ""),
        "zone": request.GET.get("zone", ""),
    }


def _chosen_resources(request: HttpRequest) -> list[Resource]:
    """Those of the address; else those last looked at; else the first by name."""
    ids = [one for text in request.GET.getlist("resources") for one in read_ids(text)]
    if ids:
        return find_resources(request, ids[:MOST_SIDE_BY_SIDE])
    reach = resources_in_reach(request)
    if "app" in request.GET:
        reach = reach.filter(app__slug=request.GET["app"])
    else:
        last = last_used(request)
        rows = {row.id: row for row in reach.filter(id__in=last)} if last else {}
        if rows:
            known = [rows[one] for one in last if one in rows]
            return [row for row in known if row.app_id == known[0].app_id]
    return list(reach.order_by("name", "id")[:1])


def last_used(request: HttpRequest) -> list[uuid.UUID]:
    return [uuid.UUID(text) for text in request.session.get(LAST_USED, ())]


def remember(request: HttpRequest, resources: list[Resource]) -> None:
    """Which resources were looked at: the next visit begins with them."""
    ids = [str(row.id) for row in resources]
    if request.session.get(LAST_USED) != ids:
        request.session[LAST_USED] = ids


def _chosen_app(request: HttpRequest, chosen: list[Resource]) -> App | None:
    if chosen:
        demand(request, chosen[0].app_id, SEE)
        return chosen[0].app
    apps = scope_of(request).apps()
    if "app" in request.GET:
        apps = apps.filter(slug=request.GET["app"])
    app = apps.first()
    if app is None and "app" in request.GET:
        raise Http404
    return app


def _projects_of(app: App | None) -> list[Project]:
    """For the dialog: with the ids of their resources."""
    if app is None:
        return []
    rows = Project.objects.for_app(app).order_by("name", "id")
    return list(rows.prefetch_related("project_resources")[:200])


# --- Data -----------------------------------------------------------------------------------------
@answers_json("GET", "HEAD")
def read_events(request: HttpRequest) -> dict[str, Any]:
    """?start&end (days, the end exclusive) &resources=id,id&zone (none: each resource's own)"""
    resources = find_resources(request, read_ids(request.GET.get("resources", "")))
    app = resources[0].app
    zone = request.GET.get("zone") or None
    shown = Range(
        read_day("start", request.GET.get("start", "")),
        read_day("end", request.GET.get("end", "")),
        zone and read_zone("zone", zone),
    )
    if not timedelta() < shown.until - shown.first <= timedelta(days=MOST_DAYS):
        raise Invalid.at("end", f"Must lie 1 to {MOST_DAYS} days after start.")
    sheet = read_sheet(
        app, resources, shown, now=timezone.now(), may_move=may(request, app.id, MOVE)
    )
    return sheet._asdict()


@answers_json("POST")
def move_booking(request: HttpRequest, booking_id: uuid.UUID) -> dict[str, Any]:
    """{start, end?, resource_id?, zone?}: readings in the zone (none: the resource's own) or
    instants. Without an end it keeps its length."""
    body = read_object(request)
    rows = Booking.objects.filter(scope_of(request).rows("app"), deleted_at=None)
    booking = rows.select_related("app", "resource", "event").filter(id=booking_id).first()
    if booking is None:
        raise NotFound("Booking")
    demand(request, booking.app_id, MOVE)
    calendar = _find_calendar(booking, body.get("resource_id"))
    resource = calendar.resource if calendar else booking.resource
    zone = _zone_of(body, resource)
    event = booking.event
    was = {"start": format_instant(event.start), "end": format_instant(event.end)}
    start = _read_start(body, booking, zone)
    end = start + (event.end - event.start)
    if body.get("end"):
        end = read_moment("end", body["end"], zone, after=start)
    given = read_values_as(
        RescheduleSerializer, {"start": format_instant(start), "end": format_instant(end)}
    )
    try:
        reschedule(
            app=booking.app,
            booking_id=booking_id,
            start=given["start"],
            end=given["end"],
            calendar=calendar,
            actor=actor_of(request),
            now=timezone.now(),
        )
    except Refusal as refusal:
        say_alternatives(refusal, zone)
        raise
    return {
        "start": format_instant(given["start"], zone),
        "end": format_instant(given["end"], zone),
        "text": say_span(given["start"], given["end"], zone),
        "was": was | {"resource_id": str(booking.resource_id)},
    }


def _read_start(body: dict[str, Any], booking: Booking, zone: str) -> Any:
    """Where the reading is the one it has already, it is meant: also the second of two."""
    text = str(body.get("start") or "")
    if text == show(booking.event.start, zone):
        return booking.event.start
    return read_moment("start", text, zone)


def _find_calendar(booking: Booking, resource_id: Any) -> Any:
    """The calendar of another resource; None: it stays where it is."""
    if not resource_id or str(resource_id) == str(booking.resource_id):
        return None
    try:
        wanted = uuid.UUID(str(resource_id))
    except ValueError:
        wanted = uuid.UUID(int=0)
    calendar = first_calendar(booking.app, resource_id=wanted)
    if calendar is None:
        raise Invalid.at("resource_id", "There is no such resource.")
    return calendar


def _zone_of(body: dict[str, Any], resource: Resource) -> str:
    return read_zone("zone", str(body["zone"])) if body.get("zone") else resource.timezone


def say_alternatives(refusal: Refusal, zone: str) -> None:
    """Give what is free instead in words, beside the instants."""
    for name in ("alternatives", "conflicts"):
        for one in refusal.fields.get(name) or ():
            span = [parse_instant(one[key], "UTC") for key in ("start", "end")]
            one["text"] = say_span(*span, zone)
            one["wall_start"], one["wall_end"] = (show(instant, zone) for instant in span)


@answers_json("POST")
def make_from_calendar(request: HttpRequest) -> dict[str, Any]:
    """A body of POST /v2/bookings with a resource, times read in `zone` (none: its own)."""
    body = read_object(request)
    try:
        wanted = uuid.UUID(str(body.get("resource_id")))
    except ValueError:
        raise Invalid.at("resource_id", "There is no such resource.") from None
    resource = resources_in_reach(request).filter(id=wanted).first()
    if resource is None:
        raise NotFound("Resource")
    demand(request, resource.app_id, MAKE)
    zone = _zone_of(body, resource)
    start = read_moment("start", body.get("start"), zone)
    times = {"start": start, "end": read_moment("end", body.get("end"), zone, after=start)}
    now = timezone.now()
    given = body | {name: format_instant(instant) for name, instant in times.items()}
    given.pop("calendar_id", None)
    new, place = read_new_booking(
        given, app=resource.app, caller=caller_of(request, resource.app), zone=zone, now=now
    )
    try:
        booking = make_booking(new, place=place, actor=actor_of(request), now=now)
    except Refusal as refusal:
        say_alternatives(refusal, zone)
        raise
    return {
        "id": str(booking.id),
        "state": booking.state,
        "url": reverse("admin:bookings_booking_change", args=[booking.id]),
        "text": say_span(booking.event.start, booking.event.end, zone),
    }
