"""The calendar page: bookings and open time of several resources; drag to move or to book."""

import re
import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from apps_config.models import App
from availability.core.zones import day_start
from availability.models import Project, Resource
from bookings.booking_input import parse_new_booking
from bookings.models import MAX_NOTE, Booking
from bookings.pages.formatting import english_dates_tag, first_known_zone, has_twelve_hours
from bookings.serializers.bodies import RescheduleSerializer
from bookings.services import make_booking, reschedule_booking
from common.api.serializers import read_values_as
from common.errors import Invalid, NotFound, Refusal
from common.time.instants import format_instant, parse_instant, to_datetime
from office.base.local_time import (
    day_and_clock,
    local_text,
    parse_day,
    parse_moment,
    span_text,
    today_in,
    validate_zone_name,
)
from office.base.model_admin_pages import find_row
from office.base.permissions import (
    BLOCK,
    MAKE,
    MAX_SIDE_BY_SIDE,
    MOVE,
    SEE,
    RequiredPermission,
    actor_of,
    editor_caller_of,
    get_visible_resources_or_404,
    has_permission,
    json_view,
    read_ids,
    read_json_object,
    require,
    show_page,
    visible_resources,
)
from office.base.row_choices import CurrentRowForm
from office.base.scope import scope_of
from office.bookings.free_times import MAX_RESOURCES, find_other_calendar, find_times_to_book
from office.bookings.tabs import CALLED_OFF
from office.calendar.grid_data import MAX_DAYS, CalendarRange, read_calendar_data
from office.calendar.new_booking import (
    REPEAT_WORDS,
    add_bookable_count,
    booking_body,
    read_choices,
    read_question_fields,
    read_wanted,
    suggest_customers,
)
from office.resources.class_dates import is_class

SUNDAY = 7
MAX_LENGTH = 366 * 24 * 3600
LISTED = 50  # resources offered at once; others are found by name
LAST_USED = "office_resources"
ALL, TAG = "all", "tag:"  # groups of resources
MAX_IN_GROUP = 200  # rows of a timeline
MAX_TAGGED = 2000  # resources whose tags are read
# Graphs of bookings without a project, as choices.
BOOKABLE_GRAPHS = {
    # Translators: no project; bookings are confirmed at once, need approval, or are paid first.
    "instant": _("None (confirmed at once)"),
    "confirm_decline": _("None (needs approval)"),
    "instant_payment": _("None (pay first)"),
}


@require_safe
def show_calendar(request: HttpRequest) -> HttpResponse:
    """?resources=id,id&view=week&date=2026-11-23&q=ada&app=id, or ?app=id&group=all"""
    group = request.GET.get("group", "")
    chosen = _chosen_resources(request)
    app = _chosen_app(request, chosen)
    if chosen and not group:
        remember_resources(request, chosen)
    found = visible_resources(request).filter(app=app) if app else Resource.objects.none()
    wanted = request.GET.get("q", "").strip()
    if wanted:
        found = found.filter(name__icontains=wanted)
    offered = list(found.order_by("name", "id")[: LISTED + 1])
    return show_page(
        request,
        "office/calendar.html",
        title=_("Calendar"),
        chosen=chosen,
        chosen_names=group_words(group) or ", ".join(resource.name for resource in chosen),
        groups=_groups_of(request, app, group),
        offered=[resource for resource in offered[:LISTED] if resource not in chosen],
        has_more=len(offered) > LISTED,
        most=MAX_SIDE_BY_SIDE,
        wanted=wanted,
        app_choice=app_choice(request, app),
        app=app,
        bookable=_bookable_resources(request, app, chosen),
        projects=_projects_of(app),
        graphs=BOOKABLE_GRAPHS.items(),
        repeats=REPEAT_WORDS.items(),
        may_make=_may(request, app, MAKE),
        may_block=_may(request, app, BLOCK),
        may_be_away=_may(request, app, BLOCK) and _may(request, app, MOVE),
        page=_page_values(request, app, chosen, group),
        max_note=MAX_NOTE,
        is_fullwidth=True,
    )


def _may(request: HttpRequest, app: App | None, need: RequiredPermission) -> bool:
    return app is not None and has_permission(request, app.id, need)


def _page_values(
    request: HttpRequest, app: App | None, chosen: list[Resource], group: str
) -> dict[str, Any]:
    """Return the values for the script. `tag`: under which the timeline has the resource."""
    return {
        "resources": [
            {
                "id": str(row.id),
                "name": row.name,
                "zone": row.timezone,
                "tag": min(row.tags or [""]),
            }
            for row in chosen
        ],
        # What the events are asked for: so many ids would be too long for an address.
        "rows": {"app": str(app.pk), "group": group}
        if app and group
        else {"resources": ",".join(str(row.id) for row in chosen)},
        "timelineOnly": len(chosen) > MAX_SIDE_BY_SIDE,
        "events": reverse("admin:calendar_events"),
        "times": reverse("admin:calendar_times"),
        "move": reverse("admin:calendar_move", args=[uuid.UUID(int=0)]),
        "book": reverse("admin:calendar_book"),
        "customers": reverse("admin:calendar_customers"),
        "questions": reverse("admin:calendar_questions"),
        "why": reverse("admin:why_resource", args=[uuid.UUID(int=0)]),
        "mayMake": _may(request, app, MAKE),
        "mayMove": _may(request, app, MOVE),
        "view": request.GET.get("view", ""),
        "date": request.GET.get("date", ""),
        "nextWeek": _next_monday_if_week_has_ended(chosen, timezone.now()),
        "zone": request.GET.get("zone", ""),
        "englishDates": english_dates_tag(),
        "hasTwelveHours": has_twelve_hours(),
    }


def _next_monday_if_week_has_ended(resources: list[Resource], now: datetime) -> str:
    """Return the coming Monday if today is a Sunday and no booking remains today, else ""."""
    if not resources:
        return ""
    zone = first_known_zone(resources[0].timezone)
    today = today_in(zone, now)
    if today.isoweekday() != SUNDAY:
        return ""
    monday = today + timedelta(days=1)
    rows = Booking.objects.filter(
        app=resources[0].app_id,
        event__resource_id__in=[row.id for row in resources],
        event__end__gt=now,
        event__start__lt=to_datetime(day_start(monday, zone)),
        deleted_at=None,
    )
    return "" if rows.exclude(state__in=CALLED_OFF).exists() else monday.isoformat()


def _chosen_resources(request: HttpRequest) -> list[Resource]:
    """Return the group or the resources in the query, else the last used ones, else the first ones
    of the first app by name.
    """
    if "group" in request.GET:
        return resources_of_group(request)
    ids = [identifier for text in request.GET.getlist("resources") for identifier in read_ids(text)]
    if ids:
        return get_visible_resources_or_404(request, ids[:MAX_SIDE_BY_SIDE])
    reach = visible_resources(request)
    if "app" in request.GET:
        reach = reach.filter(app=find_row(scope_of(request).apps(), request.GET["app"]))
    else:
        last = last_used_resources(request)
        rows = {row.id: row for row in reach.filter(id__in=last)} if last else {}
        if rows:
            known = [rows[resource] for resource in last if resource in rows]
            return [row for row in known if row.app_id == known[0].app_id]
    first = list(reach.order_by("app__name", "app_id", "name", "id")[:MAX_SIDE_BY_SIDE])
    return [row for row in first if row.app_id == first[0].app_id]


def resources_of_group(request: HttpRequest) -> list[Resource]:
    """?app=id&group=all, or tag:Rooms: return all resources or those with the tag, by name."""
    app = find_row(scope_of(request).apps(), request.GET.get("app", ""))
    rows = visible_resources(request).filter(app=app).order_by("name", "id")
    tag = request.GET["group"].removeprefix(TAG)
    if request.GET["group"] == ALL:
        return list(rows[:MAX_IN_GROUP])
    return [row for row in rows[:MAX_TAGGED] if tag in row.tags][:MAX_IN_GROUP]


def group_words(group: str) -> str:
    """Return the name of a group; "": not a group."""
    return gettext("All") if group == ALL else group.removeprefix(TAG)


def _groups_of(request: HttpRequest, app: App | None, chosen: str) -> list[tuple[str, str, bool]]:
    """Return the groups to choose: (value, name, is chosen): all, and the tags."""
    if app is None:
        return []
    lists = visible_resources(request).filter(app=app).values_list("tags", flat=True)
    tags = sorted({tag for tags in lists[:MAX_TAGGED] for tag in tags})
    values = [ALL, *(f"{TAG}{tag}" for tag in tags)]
    return [(value, group_words(value), value == chosen) for value in values]


def last_used_resources(request: HttpRequest) -> list[uuid.UUID]:
    return [uuid.UUID(text) for text in request.session.get(LAST_USED, ())]


def remember_resources(request: HttpRequest, resources: list[Resource]) -> None:
    """Store the shown resources in the session: the next visit starts with them."""
    ids = [str(row.id) for row in resources]
    if request.session.get(LAST_USED) != ids:
        request.session[LAST_USED] = ids


def _chosen_app(request: HttpRequest, chosen: list[Resource]) -> App | None:
    if chosen:
        require(request, chosen[0].app_id, SEE)
        return chosen[0].app
    apps = scope_of(request).apps()
    return find_row(apps, request.GET["app"]) if "app" in request.GET else apps.first()


def app_choice(request: HttpRequest, app: App | None) -> CurrentRowForm | None:
    """Return the field to choose another app, for accounts that may see several."""
    scope = scope_of(request)
    if not scope.has_several_apps:
        return None
    column = Resource._meta.get_field("app")
    return CurrentRowForm(
        request, name="app", label=_("App"), column=column, rows=scope.apps(), chosen=app
    )


def _bookable_resources(
    request: HttpRequest, app: App | None, chosen: list[Resource]
) -> list[Resource]:
    """Return the resources for the dialog: the shown ones, then the app's others by name."""
    if not _may(request, app, MAKE):
        return []
    others = visible_resources(request).filter(app=app).exclude(id__in=[row.id for row in chosen])
    return [*chosen, *others.order_by("name", "id")[:MAX_RESOURCES]]


def _projects_of(app: App | None) -> list[Project]:
    """Return the app's projects, with their resources' ids, for the dialog; a class takes people
    on its own page.
    """
    if app is None:
        return []
    rows = Project.objects.for_app(app).order_by("name", "id")
    return [row for row in rows.prefetch_related("project_resources")[:200] if not is_class(row)]


# --- Data -----------------------------------------------------------------------------------------
@json_view("GET", "HEAD")
def read_events(request: HttpRequest) -> dict[str, Any]:
    """?start&end (days, the end exclusive) &resources=id,id&zone (none: each resource's own), or
    &app=id&group=all in place of resources.
    """
    if "group" in request.GET:
        resources = resources_of_group(request)
        if not resources:
            raise NotFound("Resource")
        require(request, resources[0].app_id, SEE)
    else:
        ids = read_ids(request.GET.get("resources", ""))
        resources = get_visible_resources_or_404(request, ids)
    app = resources[0].app
    zone = request.GET.get("zone") or None
    shown = CalendarRange(
        parse_day("start", request.GET.get("start", "")),
        parse_day("end", request.GET.get("end", "")),
        zone and validate_zone_name("zone", zone),
    )
    if not 0 < shown.days <= MAX_DAYS:
        raise Invalid.at("end", f"Must lie 1 to {MAX_DAYS} days after start.")
    sheet = read_calendar_data(
        app, resources, shown, now=timezone.now(), may_move=has_permission(request, app.id, MOVE)
    )
    return sheet._asdict()


@json_view("POST")
def move_booking(request: HttpRequest, booking_id: uuid.UUID) -> dict[str, Any]:
    """{start, end?, resource_id?, zone?}: local times in the zone (default: the resource's) or
    instants. Without an end the booking keeps its length.
    """
    body = read_json_object(request)
    rows = Booking.objects.filter(scope_of(request).rows("app"), deleted_at=None)
    booking = rows.select_related("app", "resource", "event").filter(id=booking_id).first()
    if booking is None:
        raise NotFound("Booking")
    require(request, booking.app_id, MOVE)
    calendar = find_other_calendar(booking, body.get("resource_id"))
    resource = calendar.resource if calendar else booking.resource
    zone = _zone_of(body, resource)
    event = booking.event
    was = {"start": format_instant(event.start), "end": format_instant(event.end)}
    start = _read_start(body, booking, zone)
    end = start + (event.end - event.start)
    if body.get("end"):
        end = parse_moment("end", body["end"], zone, after=start)
    given = read_values_as(
        RescheduleSerializer, {"start": format_instant(start), "end": format_instant(end)}
    )
    try:
        reschedule_booking(
            app=booking.app,
            booking_id=booking_id,
            start=given["start"],
            end=given["end"],
            calendar=calendar,
            actor=actor_of(request),
            now=timezone.now(),
        )
    except Refusal as refusal:
        add_alternative_texts(refusal, zone)
        raise
    return {
        "start": format_instant(given["start"], zone),
        "end": format_instant(given["end"], zone),
        "text": span_text(given["start"], given["end"], zone),
        "resource": resource.name if resource.pk != booking.resource_id else "",
        "was": was | {"resource_id": str(booking.resource_id)},
    }


def _read_start(body: dict[str, Any], booking: Booking, zone: str) -> datetime:
    """Return the booking's own start if the local time is unchanged: it may be the second of two
    ambiguous ones.
    """
    text = str(body.get("start") or "")
    if text == local_text(booking.event.start, zone):
        return booking.event.start
    return parse_moment("start", text, zone)


def _zone_of(body: Mapping[str, Any], resource: Resource) -> str:
    return validate_zone_name("zone", str(body["zone"])) if body.get("zone") else resource.timezone


def add_alternative_texts(refusal: Refusal, zone: str) -> None:
    """Add local texts to the refusal's alternatives, conflicts and occurrences of a series."""
    for name in ("alternatives", "conflicts", "occurrences"):
        add_local_texts(refusal.fields.get(name) or (), zone)


def add_local_texts(spans: Iterable[dict[str, str]], zone: str) -> None:
    for span in spans:
        start, end = (parse_instant(span[key], "UTC") for key in ("start", "end"))
        span["text"] = span_text(start, end, zone)
        span |= day_and_clock(start, zone)
        span["wall_start"], span["wall_end"] = local_text(start, zone), local_text(end, zone)


@json_view("GET", "HEAD")
def read_free_times(request: HttpRequest) -> dict[str, Any]:
    """?resource_id&project_id&start&length&zone&closed&wanted: returns the next free `times` and
    their `length` in seconds.

    start: a day, or a local time in the zone; never the past. length: default the project's.
    closed: also outside of opening hours. wanted: as `read_wanted` parses it.
    """
    resource = _resource_to_book(request, request.GET.get("resource_id"))
    zone = _zone_of(request.GET, resource)
    now = timezone.now()
    length, spans = find_times_to_book(
        resource,
        _find_project(resource, request.GET.get("project_id")),
        read_wanted(request.GET.get("wanted", "")),
        start=_read_day_or_time(request.GET.get("start", ""), zone),
        length=_read_length(request.GET.get("length")),
        keeps_rules="closed" not in request.GET,
        now=now,
    )
    add_local_texts(spans, zone)
    return {"length": length, "times": spans}


def _read_day_or_time(text: str, zone: str) -> datetime:
    if len(text) == len("2026-11-23"):
        return to_datetime(day_start(parse_day("start", text), zone))
    return parse_moment("start", text, zone)


def _resource_to_book(request: HttpRequest, resource_id: object) -> Resource:
    try:
        wanted = uuid.UUID(str(resource_id))
    except ValueError:
        raise Invalid.at("resource_id", gettext("There is no such resource.")) from None
    resource = visible_resources(request).filter(id=wanted).first()
    if resource is None:
        raise NotFound("Resource")
    require(request, resource.app_id, MAKE)
    return resource


def _find_project(resource: Resource, project_id: str | None) -> Project | None:
    """Return the project of the resource's app; None without an id."""
    if not project_id:
        return None
    try:
        wanted = uuid.UUID(project_id)
    except ValueError:
        raise Invalid.at("project_id", gettext("There is no such project.")) from None
    project = Project.objects.for_app(resource.app_id).filter(id=wanted).first()
    if project is None:
        raise NotFound("Project")
    return project


def _read_length(text: str | None) -> int | None:
    """Parse seconds, up to a year."""
    if not text:
        return None
    if not re.fullmatch(r"[0-9]{1,8}", text) or not 0 < int(text) <= MAX_LENGTH:
        raise Invalid.at("length", f"Must be 1 to {MAX_LENGTH} seconds.")
    return int(text)


@json_view("GET", "HEAD")
def read_customers(request: HttpRequest) -> dict[str, Any]:
    """?resource_id&q: returns known `customers` of the resource's app."""
    resource = _resource_to_book(request, request.GET.get("resource_id"))
    return {"customers": suggest_customers(resource, request.GET.get("q", ""))}


@json_view("GET", "HEAD")
def read_questions(request: HttpRequest) -> dict[str, Any]:
    """?resource_id&project_id: returns the `questions` of the project's booking form, and what else
    can be chosen.
    """
    resource = _resource_to_book(request, request.GET.get("resource_id"))
    project = _find_project(resource, request.GET.get("project_id"))
    return {"questions": read_question_fields(project), **read_choices(resource, project)}


@json_view("POST")
def make_from_calendar(request: HttpRequest) -> dict[str, Any]:
    """The body of POST /v2/bookings with a resource, and the keys of `booking_body`; times are in
    `zone` (default: the resource's).

    The refusal of a series has its `occurrences` in conflict, and how many are `bookable`.
    """
    given = read_json_object(request)
    resource = _resource_to_book(request, given.get("resource_id"))
    body = booking_body(given)
    zone = _zone_of(body, resource)
    start = parse_moment("start", body.get("start"), zone)
    times = {"start": start, "end": parse_moment("end", body.get("end"), zone, after=start)}
    now = timezone.now()
    given = body | {name: format_instant(instant) for name, instant in times.items()}
    given.pop("calendar_id", None)
    new, target = parse_new_booking(
        given, app=resource.app, caller=editor_caller_of(request, resource.app), zone=zone, now=now
    )
    try:
        booking = make_booking(new, target=target, actor=actor_of(request), now=now)
    except Refusal as refusal:
        add_alternative_texts(refusal, zone)
        add_bookable_count(refusal, new, resource)
        raise
    skipped = list(booking.series.skipped) if booking.series else []
    add_local_texts(skipped, zone)
    return {
        "id": str(booking.id),
        "state": booking.state,
        "url": reverse("admin:bookings_booking_change", args=[booking.id]),
        "text": span_text(booking.event.start, booking.event.end, zone),
        "count": booking.series.bookings.count() if booking.series else 1,
        "skipped": [span["text"] for span in skipped],
    }
