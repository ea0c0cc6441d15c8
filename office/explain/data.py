"""A resource's week with the reasons why time is not free.

Computed by the core of /availability/explain; here it is cut into days, with texts and links to the
rule, booking or event behind each reason.
"""

import uuid
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

from django.urls import reverse
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from apps_config.authentication import Caller
from availability.core.constraints import WEEKLY_KINDS, render_constraint
from availability.core.explain import Reason, Segment
from availability.core.zones import day_start, local_day
from availability.models import Event, Project, Resource
from availability.search.availability_query import AvailabilityQuery
from availability.search.explaining import Explanation, explain_query
from availability.search.input import parse_availability_query
from availability.serializers.queries import QuerySerializer
from bookings.models import Booking
from common.api.serializers import read_values_as
from common.time.instants import to_datetime
from office.base.labels import with_customers
from office.base.local_time import time_text, validate_zone_name
from office.base.message_translations import translate_message
from office.base.rule_rows import rule_text

# The first type among a span's reasons, most specific first, sets its colour.
KINDS = {
    "event": pgettext_lazy("time", "Taken"),
    "hold": pgettext_lazy("time", "Held"),
    "capacity": pgettext_lazy("time", "Full"),
    "buffer": pgettext_lazy("time", "Buffer"),
    "constraint": _("Closed by a rule"),
    "limit": _("Limit"),
    "calendar": _("Calendar out of sync"),
    "requirement": _("Requirement"),
    "notice": _("Minimum notice"),
    "past": pgettext_lazy("time", "Past"),
}
OPEN = "open"
WORDS = {OPEN: pgettext_lazy("time", "Open"), **KINDS}
# The owner of a rule.
SOURCES = {
    "resource": _("resource"),
    "project": _("project"),
    "schedule": _("schedule"),
    # Translators: a request to the API, which has rules of its own.
    "request": _("request"),
}
NAMED_SOURCES = {
    "resource": _("resource %(name)s"),
    "project": _("project %(name)s"),
    "schedule": _("schedule %(name)s"),
}


def kind_of(reasons: Iterable[Reason]) -> str:
    types = {reason.type for reason in reasons}
    return next((kind for kind in KINDS if kind in types), OPEN)


class ExplainedReason(NamedTuple):
    """A reason for people. source: the kind and name of the rule's owner. links: (text, URL)."""

    kind: str
    text: str
    source: str
    links: list[tuple[str, str]]


class ExplainedSpan(NamedTuple):
    """A part of a local day. begins: minutes after the start of the day. lasts: in minutes."""

    kind: str
    word: str
    times: str
    begins: int
    lasts: int
    holds_moment: bool
    reasons: list[ExplainedReason]


class ExplainedDay(NamedTuple):
    date: date
    hours: int  # 23 or 25 if the clock changes
    stretches: list[ExplainedSpan]


def explain_week(
    resource: Resource,
    project: Project | None,
    first: date,
    days: int,
    *,
    caller: Caller,
    now: datetime,
) -> AvailabilityQuery:
    """Return the query as an API client would send it, for whole days of the resource.

    Raises Invalid if the resource's zone is unknown.
    """
    validate_zone_name("timezone", resource.timezone)
    body: dict[str, Any] = {
        "resources": [str(resource.id)],
        "from": f"{first.isoformat()} 00:00:00",
        "to": f"{(first + timedelta(days=days)).isoformat()} 00:00:00",
        "length": None,
    }
    if project:
        body["project_id"] = str(project.id)
    zone = resource.timezone
    for name in ("from", "to"):  # a skipped midnight is the instant after it
        day = first if name == "from" else first + timedelta(days=days)
        body[name] = to_datetime(day_start(day, zone)).isoformat()
    given = read_values_as(QuerySerializer, body)
    return parse_availability_query(
        given, app=resource.app, caller=caller, zone=zone, now=now, for_explain=True
    )


def explain_days(
    query: AvailabilityQuery,
    resource: Resource,
    project: Project | None,
    *,
    moment: datetime | None,
) -> list[ExplainedDay]:
    """Return every local day of the range. `moment`: an instant whose span is highlighted."""
    found = explain_query(query)[0]
    links = ReasonLinks(found, resource, project)
    return [
        _explain_day(day, pieces, resource.timezone, links, moment)
        for day, pieces in cut_into_days(found.segments, resource.timezone)
    ]


def cut_into_days(segments: Sequence[Segment], zone: str) -> list[tuple[date, list[Segment]]]:
    """Return (local day, segments), with the segments cut at midnight."""
    days: dict[date, list[Segment]] = {}
    for segment in segments:
        start = segment.start
        while start < segment.end:
            day = local_day(start, zone)
            end = min(segment.end, day_start(day + timedelta(days=1), zone))
            days.setdefault(day, []).append(segment._replace(start=start, end=end))
            start = end
    return list(days.items())


def _explain_day(
    day: date, pieces: list[Segment], zone: str, links: "ReasonLinks", moment: datetime | None
) -> ExplainedDay:
    begin = day_start(day, zone)
    length = day_start(day + timedelta(days=1), zone) - begin
    stretches = []
    for piece in pieces:
        kind = kind_of(piece.reasons)
        end_text = (
            "24:00" if piece.end == begin + length else time_text(to_datetime(piece.end), zone)
        )
        stretches.append(
            ExplainedSpan(
                kind=kind,
                word=str(WORDS[kind]),
                times=times_text(time_text(to_datetime(piece.start), zone), end_text),
                begins=(piece.start - begin) // 60,
                lasts=(piece.end - piece.start) // 60,
                holds_moment=moment is not None and piece.start <= moment.timestamp() < piece.end,
                reasons=[links.explain_reason(reason) for reason in piece.reasons],
            )
        )
    return ExplainedDay(day, length // 3600, stretches)


def times_text(start: str, end: str) -> str:
    # Translators: a time span: "09:00 to 12:30".
    return gettext("%(start)s to %(end)s") % {"start": start, "end": end}


class ReasonLinks:
    """Finds the rows behind an explanation's reasons, with at most three queries."""

    def __init__(
        self, explanation: Explanation, resource: Resource, project: Project | None
    ) -> None:
        reasons = {reason for segment in explanation.segments for reason in segment.reasons}
        self.names = {"resource": resource.name, "project": project.name if project else ""}
        self.names["schedule"] = resource.schedule.name if resource.schedule else ""
        self.owners = {"resource": resource, "project": project, "schedule": resource.schedule}
        self.events = self._read_events(reasons)

    def _read_events(self, reasons: set[Reason]) -> dict[uuid.UUID, tuple[str, str]]:
        """Return event id -> (text, URL of its booking or of itself)."""
        ids = {reason.event_id for reason in reasons if reason.event_id}
        if not ids:
            return {}
        rows = Event.objects.filter(id__in=ids).values_list("id", "main_id", "what")
        mains = {main or own for own, main, _ in rows}
        bookings = {
            booking.event_id: booking
            for booking in Booking.objects.filter(event_id__in=mains, owner_booking=None)
            .only("event_id")
            .prefetch_related("customers")
        }
        found = {}
        for own, main, what in rows:
            if booking := bookings.get(main or own):
                text = gettext("Booking: %(booking)s") % {"booking": with_customers(booking, what)}
                address = reverse("admin:bookings_booking_change", args=[booking.pk])
            else:
                text = gettext("Event: %(event)s") % {"event": what}
                address = reverse("admin:availability_event_change", args=[own])
            found[own] = (text, address)
        return found

    def explain_reason(self, reason: Reason) -> ExplainedReason:
        source = reason.source or ""
        name = self.names.get(source)
        return ExplainedReason(
            kind=reason.type,
            text=translate_message(reason.text),
            source=NAMED_SOURCES[source] % {"name": name}
            if name
            else str(SOURCES.get(source, source)),
            links=[*self._of_rules(reason), *self._of_time(reason)],
        )

    def _of_rules(self, reason: Reason) -> list[tuple[str, str]]:
        """Return links to the page of the rules' owner: one for each rule, or one for opening hours
        of several rules.
        """
        owner = self.owners.get(reason.source or "")
        if owner is None:
            return []
        part = "rules" if isinstance(owner, Project) else "hours"
        page = f"admin:availability_{owner._meta.model_name}_change"
        address = f"{reverse(page, args=[owner.pk])}#part-{part}"
        is_weekly = all(rule.kind in WEEKLY_KINDS for rule in reason.rules)
        if is_weekly and (len(reason.rules) > 1 or reason.source == "schedule"):
            return [(gettext("Opening hours"), address)]
        texts = [rule_text(render_constraint(rule)) for rule in reason.rules]
        return [(gettext("Rule: %(rule)s") % {"rule": text}, address) for text in texts]

    def _of_time(self, reason: Reason) -> list[tuple[str, str]]:
        if reason.event_id in self.events:
            return [self.events[reason.event_id]]
        if reason.reservation_id:
            address = reverse("admin:availability_hold_change", args=[reason.reservation_id])
            # Translators: link to time that is held for a booking.
            return [(gettext("Hold"), address)]
        if reason.calendar_id:
            address = reverse("admin:availability_calendar_change", args=[reason.calendar_id])
            return [(gettext("Calendar"), address)]
        return []
