"""Preview of unsaved rules: two weeks of open time, bookings outside it, a year of exceptions."""

import uuid
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.http import Http404, HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from availability.core.constraints import (
    DAY_NAMES,
    ConstraintError,
    ConstraintRules,
    combine_with_schedule,
    open_windows,
    parse_constraints,
    render_constraint,
)
from availability.core.explain import Segment
from availability.core.intervals import Span
from availability.models import Calendar, Event, Project, Resource, Schedule
from availability.search.availability_query import AvailabilityQuery, SearchResource
from availability.search.explaining import explain_query
from availability.search.parameters import SlotParameters
from bookings.models import Booking
from bookings.pages.formatting import first_known_zone, short_day_words
from common.errors import Refusal
from common.time.instants import format_instant, to_datetime
from office.base.local_time import days_span, span_text, today_in, validate_zone_name
from office.base.message_translations import translate_message
from office.base.model_admin_pages import find_row
from office.base.opening_hours_text import (
    HoursError,
    hours_of_rules,
    merge_hours_and_dates,
    rules_of_hours,
)
from office.base.permissions import (
    SEE,
    editor_caller_of,
    get_visible_resources_or_404,
    json_view,
    read_json_object,
    require,
    visible_projects,
    visible_resources,
    visible_schedules,
)
from office.base.rule_rows import RowsError, country_names, read_rows, subdivision_names
from office.explain.data import WORDS, cut_into_days, explain_week, kind_of
from office.explain.exceptional_days import find_exceptional_days

DAYS = 14
AHEAD = timedelta(days=366)
MAX_LOOKED_AT = 5000
NAMED = 10
NAMED_IN_BULK = 3  # of each resource


class EditedRulesOwner(NamedTuple):
    """The owner of the edited rules. A new resource has no row yet, only a zone.

    under: the schedule that the form of a resource names.
    """

    resource: Resource | None
    project: Project | None
    schedule: Schedule | None
    zone: str
    under: Schedule | None = None

    @property
    def row(self) -> Project | Schedule | Resource | None:
        return self.project or self.schedule or self.resource


class BookedSpan(NamedTuple):
    start: datetime
    booking_id: uuid.UUID
    end: datetime
    resource_id: uuid.UUID
    zone: str


@json_view("POST")
def preview_rules(request: HttpRequest) -> dict[str, Any]:
    """{resource_id | project_id | schedule_id, rows: [...], hours?, timezone?, under?: the
    resource's schedule, shown?: a resource of the project}

    `rows`: of the rule editor; or `constraints`, as in the API; default: the saved rules. `hours`:
    the texts of the weekly hours, in addition. Returns `errors` by the row's position, and of
    `hours` by day, else `days`, `outside` and `year`. Changes nothing: a POST because rules are
    long.
    """
    body = read_json_object(request)
    edited = _find_owner(request, body)
    try:
        rules = _edited_rules(body, edited)
    except (ConstraintError, HoursError, RowsError) as error:
        return {"errors": _errors_of(error), "days": None, "outside": None, "problem": ""}
    rules = _combine_with_schedule(edited, rules)
    now = timezone.now()
    answer: dict[str, Any] = {"errors": {}, "days": None, "problem": ""}
    try:
        answer["days"] = _preview_days(request, edited, rules, now)
    except Refusal as refusal:
        answer["problem"] = translate_message(refusal.message)
    answer["year"] = find_exceptional_days(rules, edited.zone, today_in(edited.zone, now))
    return answer | {"outside": _outside_summary(edited, rules, now)}


@json_view("GET")
def list_regions(request: HttpRequest) -> dict[str, Any]:
    """Return the subdivisions of `?country=` that have holidays of their own."""
    country = request.GET.get("country", "")
    names = subdivision_names(country) if country in country_names() else {}
    return {"regions": [{"code": code, "name": name} for code, name in names.items()]}


def _edited_rules(body: dict[str, Any], edited: EditedRulesOwner) -> ConstraintRules:
    """Parse the rules of the form. Raises ConstraintError, HoursError or RowsError."""
    if "rows" in body:
        dates = read_rows([row for row in _list(body["rows"]) if isinstance(row, dict)])
    elif "constraints" in body:
        dates = parse_constraints(body["constraints"])
    else:
        return _saved(edited)
    hours = body.get("hours")
    if not isinstance(hours, list):
        return dates
    saved = _saved(edited)
    week = [str(text) for text in hours[: len(DAY_NAMES)]]
    weekly = None if week == hours_of_rules(saved) else rules_of_hours(week)
    return parse_constraints(
        merge_hours_and_dates(saved, weekly, [render_constraint(rule) for rule in dates])
    )


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _saved(edited: EditedRulesOwner) -> ConstraintRules:
    owner = edited.row
    if owner is None:
        return ()
    return parse_constraints(owner.availability_constraints)


def _combine_with_schedule(edited: EditedRulesOwner, rules: ConstraintRules) -> ConstraintRules:
    """Return the rules of a resource over those of its schedule; other owners have none."""
    if edited.under is None:
        return rules
    return combine_with_schedule(rules, parse_constraints(edited.under.availability_constraints))


def _errors_of(error: ConstraintError | HoursError | RowsError) -> dict[Any, Any]:
    if isinstance(error, ConstraintError):
        return errors_by_rule(error)
    return {"hours": error.errors} if isinstance(error, HoursError) else dict(error.errors)


def errors_by_rule(error: ConstraintError) -> dict[str, dict[str, list[str]]]:
    """Return errors by rule: `{"2": {"end": ["Must differ from start."]}}`. Errors of a whole rule,
    or of the list, are at `name`.
    """
    errors: dict[str, dict[str, list[str]]] = {}
    for path, messages in error.errors.items():
        position, *steps = path.split(".")
        field = steps[1] if len(steps) > 1 else "name"
        sentences = map(translate_message, messages)
        errors.setdefault(position, {}).setdefault(field, []).extend(sentences)
    return errors


def _find_owner(request: HttpRequest, body: dict[str, Any]) -> EditedRulesOwner:
    if body.get("project_id"):
        project = find_row(visible_projects(request), body["project_id"])
        require(request, project.app_id, SEE)
        resource = None
        if body.get("shown"):
            resource = (
                visible_resources(request)
                .filter(id=_id(body["shown"]), app_id=project.app_id)
                .first()
            )
        resource = (
            resource
            or visible_resources(request)
            .filter(app_id=project.app_id, project_resources__project=project)
            .order_by("project_resources__position", "project_resources__id")
            .first()
        )
        zone = validate_zone_name("timezone", resource.timezone if resource else "UTC")
        return EditedRulesOwner(resource, project, None, zone)
    if body.get("schedule_id"):
        schedule = find_row(visible_schedules(request), body["schedule_id"])
        require(request, schedule.app_id, SEE)
        first = schedule.resources.filter(deleted_at=None).order_by("name", "id").first()
        return EditedRulesOwner(None, None, schedule, _known_zone(first))
    zone = str(body.get("timezone") or "")
    if body.get("resource_id"):
        (resource,) = get_visible_resources_or_404(request, [_id(body["resource_id"])])
        resource.timezone = validate_zone_name("timezone", zone or resource.timezone)
        under = resource.schedule
        if "under" in body:
            rows = visible_schedules(request).filter(app_id=resource.app_id)
            under = find_row(rows, body["under"]) if body["under"] else None
        return EditedRulesOwner(resource, None, None, resource.timezone, under)
    return EditedRulesOwner(None, None, None, validate_zone_name("timezone", zone or "UTC"))


def _known_zone(resource: Resource | None) -> str:
    """Return the zone in which a schedule is shown: that of its first resource."""
    return first_known_zone(resource.timezone) if resource else "UTC"


def _id(value: object) -> uuid.UUID:
    try:
        return uuid.UUID(str(value))
    except ValueError:
        raise Http404 from None


# --- Preview --------------------------------------------------------------------------------------
def _preview_days(
    request: HttpRequest, edited: EditedRulesOwner, rules: ConstraintRules, now: datetime
) -> list[dict[str, Any]] | None:
    """Return two weeks from today, as /availability/explain would if the rules were saved."""
    if edited.project and edited.resource is None:
        return None
    (explanation,) = explain_query(_edited_query(request, edited, rules, now))
    days = cut_into_days(explanation.segments, edited.zone)
    return [
        {
            "date": day.isoformat(),
            "label": short_day_words(day),
            "minutes": sum(piece.end - piece.start for piece in pieces) // 60,
            "pieces": _piece_records(pieces, edited.zone),
        }
        for day, pieces in days
    ]


def _edited_query(
    request: HttpRequest, edited: EditedRulesOwner, rules: ConstraintRules, now: datetime
) -> AvailabilityQuery:
    first = today_in(edited.zone, now)
    if edited.resource is None:
        span = days_span(first, first + timedelta(days=DAYS), edited.zone)
        texts = [to_datetime(instant).isoformat() for instant in span]
        new = SearchResource(uuid.uuid4(), "", edited.zone, rules)
        terms = SlotParameters(length=None, earliest=texts[0], latest=texts[1])
        return AvailabilityQuery(resources=[new], terms=terms, now=now)
    resource, project = edited.resource, edited.project
    caller = editor_caller_of(request, resource.app)
    query = explain_week(resource, project, first, DAYS, caller=caller, now=now)
    if project:
        return replace(query, terms=replace(query.terms, constraints=rules))
    own = [replace(resource, zone=edited.zone, rules=rules) for resource in query.resources]
    return replace(query, resources=own)


def _piece_records(pieces: Sequence[Segment], zone: str) -> list[dict[str, Any]]:
    begin = pieces[0].start
    return [
        {
            "start": format_instant(to_datetime(piece.start), zone),
            "end": format_instant(to_datetime(piece.end), zone),
            "available": piece.available,
            "reasons": [translate_message(reason.text) for reason in piece.reasons],
            "kind": kind_of(piece.reasons),
            "word": str(WORDS[kind_of(piece.reasons)]),
            "begins": (piece.start - begin) // 60,
            "lasts": (piece.end - piece.start) // 60,
        }
        for piece in pieces
    ]


# --- Bookings outside the rules -------------------------------------------------------------------
def _outside_summary(
    edited: EditedRulesOwner, rules: ConstraintRules, now: datetime
) -> dict[str, Any]:
    """Return the number of future bookings that the rules would not allow, and the first of
    them.
    """
    spans = _bookings_to_come(edited, now)
    zone = edited.zone if edited.resource and not edited.project else ""
    outside = _spans_outside(spans, _rules_by_resource(rules, edited), zone)
    records = _outside_records([span.booking_id for span in outside[:NAMED]])
    return {
        "count": len(outside),
        "all": len(spans) < MAX_LOOKED_AT,
        "bookings": list(records.values()),
    }


def _outside_records(ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, dict[str, str]]:
    """Return booking id -> text and URL, in the order of `ids`."""
    if not ids:
        return {}
    rows = Booking.objects.filter(id__in=ids).select_related("event", "resource")
    known = {row.id: row for row in rows.prefetch_related("customers")}
    return {identifier: _outside_record(known[identifier]) for identifier in ids}


def _outside_record(booking: Booking) -> dict[str, str]:
    event, zone = booking.event, booking.resource.timezone
    names = [customer.name for customer in booking.customers.all() if customer.name]
    return {
        # Translators: a booking with its time: "Tue 24 Nov 2026, 10:00 to 10:30 Ann".
        "text": _("%(times)s %(customer)s")
        % {
            "times": span_text(event.start, event.end, zone),
            "customer": (names or [event.what])[0],
        },
        "url": reverse("admin:bookings_booking_change", args=[booking.id]),
    }


def find_bookings_outside(
    edited: Mapping[Resource, ConstraintRules], zone: str, now: datetime
) -> tuple[dict[Resource, list[str]], bool]:
    """Return the future bookings outside the resources' own new rules: the first three as texts,
    the others as a number; and whether all were read: at most the next MAX_LOOKED_AT are.

    zone: the resources' new zone, or empty.
    """
    rules_of = {}
    for resource, rules in edited.items():
        rules_of[resource.pk] = rules
        if resource.schedule:
            under = parse_constraints(resource.schedule.availability_constraints)
            rules_of[resource.pk] = combine_with_schedule(rules, under)
    spans = _read_bookings(list(rules_of), None, now)
    outside: dict[uuid.UUID, list[BookedSpan]] = {}
    for span in _spans_outside(spans, rules_of.__getitem__, zone):
        outside.setdefault(span.resource_id, []).append(span)
    ids = [span.booking_id for of_one in outside.values() for span in of_one[:NAMED_IN_BULK]]
    texts = {key: record["text"] for key, record in _outside_records(ids).items()}
    texts_by_resource = {}
    for resource in edited:
        of_one = outside.get(resource.pk, [])
        texts_by_resource[resource] = [texts[span.booking_id] for span in of_one[:NAMED_IN_BULK]]
        if more := len(of_one) - len(texts_by_resource[resource]):
            words = ngettext("%(count)s more booking", "%(count)s more bookings", more)
            texts_by_resource[resource].append(words % {"count": more})
    return texts_by_resource, len(spans) < MAX_LOOKED_AT


def _bookings_to_come(edited: EditedRulesOwner, now: datetime) -> list[BookedSpan]:
    if edited.project:
        resources = edited.project.resources.filter(deleted_at=None)
    elif edited.schedule:
        resources = edited.schedule.resources.filter(deleted_at=None)
    elif edited.resource:
        resources = Resource.objects.filter(id=edited.resource.id)
    else:
        return []
    return _read_bookings(list(resources.values_list("id", flat=True)), edited.project, now)


def _read_bookings(
    ids: Sequence[uuid.UUID], project: Project | None, now: datetime
) -> list[BookedSpan]:
    """Return future bookings by start: blocking ones by their index, others by calendar."""
    rows = Event.objects.filter(start__lt=now + AHEAD)
    busy = rows.filter(resource_id__in=ids, busy=True, end__gt=now)
    calendars = Calendar.objects.filter(resource_id__in=ids, deleted_at=None).values("id")
    idle = rows.filter(calendar_id__in=calendars, busy=False, start__gt=now)
    found = []
    for part in (busy, idle):
        if project:
            part = part.filter(project_id=project.id)
        part = part.filter(
            bookings__completed=False,
            bookings__deleted_at=None,
            bookings__owner_booking=None,
        )
        values = part.order_by("start", "id").values_list(
            "start", "bookings__id", "end", "resource_id", "resource__timezone"
        )
        found += [BookedSpan(*row) for row in values[:MAX_LOOKED_AT]]
    return sorted(found)[:MAX_LOOKED_AT]


def _spans_outside(
    spans: Sequence[BookedSpan],
    rules_for: Callable[[uuid.UUID], ConstraintRules],
    zone: str = "",
) -> list[BookedSpan]:
    """Return the spans not entirely within open time, in `zone` or their resource's."""
    if not spans:
        return []
    start = min(int(span.start.timestamp()) for span in spans)
    end = max(int(span.end.timestamp()) for span in spans)
    windows = {}
    for stored_zone, resource_id in {(span.zone, span.resource_id) for span in spans}:
        lists = (rules_for(resource_id),)
        windows[resource_id] = open_windows(lists, zone or stored_zone, start, end)
    return [span for span in spans if not _is_inside(span, windows[span.resource_id])]


def _rules_by_resource(
    rules: ConstraintRules, edited: EditedRulesOwner
) -> Callable[[uuid.UUID], ConstraintRules]:
    """Return the function that gives a resource's rules: of a schedule, with its own over them."""
    if edited.schedule is None:
        return lambda resource_id: rules
    resources = edited.schedule.resources.filter(deleted_at=None)
    own = {
        resource.pk: parse_constraints(resource.availability_constraints) for resource in resources
    }
    return lambda resource_id: combine_with_schedule(own.get(resource_id, ()), rules)


def _is_inside(span: BookedSpan, windows: Sequence[Span]) -> bool:
    start, end = (int(instant.timestamp()) for instant in (span.start, span.end))
    position = bisect_right(windows, (start, float("inf"))) - 1
    return position >= 0 and windows[position][1] >= end
