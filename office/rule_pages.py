"""What rules come to before they are saved: a picture of two weeks, and who would fall outside."""

import uuid
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.http import Http404, HttpRequest
from django.urls import reverse
from django.utils import timezone

from availability.core.constraints import ConstraintError, Rules, open_windows, parse_constraints
from availability.models import Calendar, Event, Project, Resource
from availability.reading import to_datetime
from availability.search import Bookable, Query, explain_query
from availability.terms import Terms
from bookings.models import Booking
from office.reach import (
    SEE,
    answers_json,
    caller_of,
    demand,
    find_resources,
    projects_in_reach,
    read_object,
    resources_in_reach,
)
from office.reasons import WORDS, ask, cut_into_days, kind_of
from office.walls import days_span, read_zone, say_span, today_in
from scheduling.api.errors import Refusal
from scheduling.api.instants import format_instant

DAYS = 14
AHEAD = timedelta(days=366)
MOST_LOOKED_AT = 5000
NAMED = 10


class Edited(NamedTuple):
    """Whose rules are being edited. A new resource has no row yet, only a zone."""

    resource: Resource | None
    project: Project | None
    zone: str


@answers_json("POST")
def draw_rules(request: HttpRequest) -> dict[str, Any]:
    """{resource_id | project_id, constraints: [...], timezone?, shown?: a resource of the project}

    Without `constraints` those that are saved. Answers with `errors` by the position of the rule,
    else with `days` and `outside`. Changes nothing: a POST because rules are long.
    """
    body = read_object(request)
    edited = _find_edited(request, body)
    try:
        rules = parse_constraints(body["constraints"]) if "constraints" in body else _saved(edited)
    except ConstraintError as error:
        return {"errors": errors_by_rule(error), "days": None, "outside": None, "problem": ""}
    now = timezone.now()
    answer: dict[str, Any] = {"errors": {}, "days": None, "problem": ""}
    try:
        answer["days"] = _draw(request, edited, rules, now)
    except Refusal as refusal:
        answer["problem"] = refusal.message
    return answer | {"outside": _say_outside(edited, rules, now)}


def _saved(edited: Edited) -> Rules:
    owner = edited.project or edited.resource
    if owner is None:
        return ()
    return parse_constraints([row.as_json() for row in owner.constraints.all()])


def errors_by_rule(error: ConstraintError) -> dict[str, dict[str, list[str]]]:
    """`{"2": {"end": ["Must differ from start."]}}`; what is wrong with a rule as such, or with
    the list, stands at `name`."""
    found: dict[str, dict[str, list[str]]] = {}
    for path, messages in error.errors.items():
        position, *steps = path.split(".")
        field = steps[1] if len(steps) > 1 else "name"
        found.setdefault(position, {}).setdefault(field, []).extend(messages)
    return found


def _find_edited(request: HttpRequest, body: dict[str, Any]) -> Edited:
    if body.get("project_id"):
        project = projects_in_reach(request).filter(id=_id(body["project_id"])).first()
        if project is None:
            raise Http404
        demand(request, project.app_id, SEE)
        resource = None
        if body.get("shown"):
            resource = (
                resources_in_reach(request)
                .filter(id=_id(body["shown"]), app_id=project.app_id)
                .first()
            )
        resource = (
            resource
            or resources_in_reach(request)
            .filter(app_id=project.app_id, project_resources__project=project)
            .order_by("project_resources__position", "project_resources__id")
            .first()
        )
        zone = read_zone("timezone", resource.timezone if resource else "UTC")
        return Edited(resource, project, zone)
    zone = str(body.get("timezone") or "")
    if body.get("resource_id"):
        (resource,) = find_resources(request, [_id(body["resource_id"])])
        resource.timezone = read_zone("timezone", zone or resource.timezone)
        return Edited(resource, None, resource.timezone)
    return Edited(None, None, read_zone("timezone", zone or "UTC"))


def _id(value: Any) -> uuid.UUID:
    try:
        return uuid.UUID(str(value))
    except ValueError:
        raise Http404 from None


# --- The picture ----------------------------------------------------------------------------------
def _draw(
    request: HttpRequest, edited: Edited, rules: Rules, now: datetime
) -> list[dict[str, Any]] | None:
    """Two weeks from today on, as /availability/explain would answer were the rules saved."""
    if edited.project and edited.resource is None:
        return None
    (explanation,) = explain_query(_edited_query(request, edited, rules, now))
    days = cut_into_days(explanation.segments, edited.zone)
    return [
        {
            "date": day.isoformat(),
            "label": f"{day:%a} {day.day} {day:%b}",
            "minutes": sum(piece.end - piece.start for piece in pieces) // 60,
            "pieces": _piece_records(pieces, edited.zone),
        }
        for day, pieces in days
    ]


def _edited_query(request: HttpRequest, edited: Edited, rules: Rules, now: datetime) -> Query:
    first = today_in(edited.zone, now)
    if edited.resource is None:
        span = days_span(first, first + timedelta(days=DAYS), edited.zone)
        texts = [to_datetime(instant).isoformat() for instant in span]
        new = Bookable(uuid.uuid4(), "", edited.zone, rules)
        terms = Terms(length=None, earliest=texts[0], latest=texts[1])
        return Query(resources=[new], terms=terms, now=now)
    resource, project = edited.resource, edited.project
    caller = caller_of(request, resource.app)
    query = ask(resource, project, first, DAYS, caller=caller, now=now)
    if project:
        return replace(query, terms=replace(query.terms, constraints=rules))
    own = [replace(one, zone=edited.zone, rules=rules) for one in query.resources]
    return replace(query, resources=own)


def _piece_records(pieces: Sequence[Any], zone: str) -> list[dict[str, Any]]:
    begin = pieces[0].start
    return [
        {
            "start": format_instant(to_datetime(piece.start), zone),
            "end": format_instant(to_datetime(piece.end), zone),
            "available": piece.available,
            "reasons": [reason.text for reason in piece.reasons],
            "kind": kind_of(piece.reasons),
            "word": WORDS[kind_of(piece.reasons)],
            "begins": (piece.start - begin) // 60,
            "lasts": (piece.end - piece.start) // 60,
        }
        for piece in pieces
    ]


# --- Who would fall outside -----------------------------------------------------------------------
def _say_outside(edited: Edited, rules: Rules, now: datetime) -> dict[str, Any]:
    """Bookings to come that the rules would not allow: how many, and the first of them."""
    spans = _bookings_to_come(edited, now)
    outside = _spans_outside(spans, rules, edited, now)
    ids = [span[0] for span in outside[:NAMED]]
    rows = Booking.objects.filter(id__in=ids).select_related("event", "resource")
    known = {row.id: row for row in rows.prefetch_related("customers")} if ids else {}
    return {
        "count": len(outside),
        "all": len(spans) < MOST_LOOKED_AT,
        "bookings": [_outside_record(known[one]) for one in ids],
    }


def _outside_record(booking: Booking) -> dict[str, str]:
    event, zone = booking.event, booking.resource.timezone
    names = [customer.name for customer in booking.customers.all() if customer.name]
    return {
        "text": f"{say_span(event.start, event.end, zone)} {(names or [event.what])[0]}",
        "url": reverse("admin:bookings_booking_change", args=[booking.id]),
    }


def _bookings_to_come(
    edited: Edited, now: datetime
) -> list[tuple[uuid.UUID, datetime, datetime, str]]:
    """(booking, start, end, zone of its resource), by start: what blocks by the index of what
    blocks, what stands by through its calendar."""
    if edited.project:
        resources = edited.project.resources.filter(deleted_at=None)
    elif edited.resource:
        resources = Resource.objects.filter(id=edited.resource.id)
    else:
        return []
    ids = list(resources.values_list("id", flat=True))
    rows = Event.objects.filter(start__lt=now + AHEAD)
    busy = rows.filter(resource_id__in=ids, busy=True, end__gt=now)
    calendars = Calendar.objects.filter(resource_id__in=ids, deleted_at=None).values("id")
    idle = rows.filter(calendar_id__in=calendars, busy=False, start__gt=now)
    found = []
    for part in (busy, idle):
        if edited.project:
            part = part.filter(project_id=edited.project.id)
        part = part.filter(
            bookings__completed=False,
            bookings__deleted_at=None,
            bookings__owner_booking=None,
        )
        values = part.order_by("start", "id").values_list(
            "bookings__id", "start", "end", "resource__timezone"
        )
        found += list(values[:MOST_LOOKED_AT])
    return sorted(found, key=lambda row: (row[1], row[0]))[:MOST_LOOKED_AT]


def _spans_outside(
    spans: Sequence[tuple[uuid.UUID, datetime, datetime, str]],
    rules: Rules,
    edited: Edited,
    now: datetime,
) -> list[tuple[uuid.UUID, datetime, datetime, str]]:
    """Those that do not lie wholly in time that the rules open, on their resource's wall clock."""
    if not spans:
        return []
    start = min(int(span[1].timestamp()) for span in spans)
    end = max(int(span[2].timestamp()) for span in spans)
    windows = {}
    for zone in {span[3] for span in spans}:
        read_in = zone if edited.project else edited.zone
        windows[zone] = open_windows((rules,), read_in, start, end)
    return [span for span in spans if not _is_inside(span, windows[span[3]])]


def _is_inside(span: tuple[uuid.UUID, datetime, datetime, str], windows: Sequence[Any]) -> bool:
    start, end = (int(instant.timestamp()) for instant in span[1:3])
    position = bisect_right(windows, (start, float("inf"))) - 1
    return position >= 0 and windows[position][1] >= end
