"""Endpoints that answer when there is time: /availability and its siblings, /findtime."""

import uuid
from dataclasses import replace
from datetime import datetime
from typing import Any

from rest_framework.response import Response

from apps_config.endpoints import TenantView
from availability.answers import (
    bounds_of,
    count_records,
    date_records,
    explanation_record,
    unavailable_records,
    warning_records,
    with_warnings,
    write_instants,
    write_slots,
)
from availability.core.slots import Slot
from availability.findtime import (
    ALL_SOLUTIONS,
    RuleLists,
    as_sent,
    read_filters,
    within_one_day,
)
from availability.models import Calendar
from availability.requests import build_query, wall_zone
from availability.schemas import RESOURCE_EXAMPLE
from availability.search import Query, explain_query, search_slots, search_unavailable
from availability.serializers.queries import FindtimeSerializer, QuerySerializer
from scheduling.api.bodies import read_body_as, read_values_as
from scheduling.api.components import (
    FLAG,
    ID,
    REASON,
    SPAN,
    STAMP,
    TEXT,
    TIME,
    component,
    nullable,
    referenced,
    text_of,
)
from scheduling.api.durations import DurationError, resolve
from scheduling.api.errors import Invalid
from scheduling.api.fields import array_as_object
from scheduling.api.instants import InstantError, format_instant
from scheduling.api.schema import described, many

SLOT_EXAMPLE = {
    "start": "2026-11-23T09:00:00+01:00",
    "end": "2026-11-23T09:30:00+01:00",
    "resources": [{key: RESOURCE_EXAMPLE[key] for key in ("id", "name", "timezone")}],
}
SLOT_RESOURCE = component(
    "SlotResource",
    {
        "type": "object",
        "required": ["id", "name", "timezone"],
        "properties": {
            "id": ID,
            "name": TEXT,
            "timezone": TEXT,
        },
    },
)
SLOT = component(
    "Slot",
    {
        "type": "object",
        "required": ["start", "end", "resources"],
        "properties": {
            "start": TIME,
            "end": TIME,
            "resources": {"type": "array", "items": SLOT_RESOURCE},
        },
    },
    SLOT_EXAMPLE,
)
EXPLANATION = component(
    "Explanation",
    {
        "type": "object",
        "required": ["resource", "never_open", "segments"],
        "properties": {
            "resource": SLOT_RESOURCE,
            "never_open": FLAG | {"description": "No time in the range satisfies all rules."},
            "text": text_of("The same in words, where it is so."),
            "segments": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["start", "end", "available", "reasons"],
                    "properties": {
                        "start": TIME,
                        "end": TIME,
                        "available": FLAG,
                        "reasons": {"type": "array", "items": REASON},
                    },
                },
            },
        },
    },
    {
        "resource": SLOT_EXAMPLE["resources"][0],
        "never_open": False,
        "segments": [
            {
                "start": "2026-11-23T12:00:00+01:00",
                "end": "2026-11-23T13:00:00+01:00",
                "available": False,
                "reasons": [referenced(REASON)["examples"][0]],
            },
            {
                "start": "2026-11-23T13:00:00+01:00",
                "end": "2026-11-23T17:00:00+01:00",
                "available": True,
                "reasons": [],
            },
        ],
    },
)
QUERY_EXAMPLES = {
    "a week of half hours": {
        "resources": [RESOURCE_EXAMPLE["id"]],
        "length": "30 minutes",
        "to": "1 week",
        "constraints": [{"allow_weekdays": {}}, {"allow_hours": {"start": 9, "end": 17}}],
        "output_timezone": "Europe/Berlin",
    }
}


WARNING = component(
    "Warning",
    {
        "type": "object",
        "description": "A connected calendar of which nothing new has been known for longer than"
        " the service allows: what stands in it now may not be in this answer. With the app's"
        " setting `stale_calendars: block` its resource has no free time meanwhile.",
        "required": ["type", "resource_id", "calendar_id", "name", "synced_at", "text"],
        "properties": {
            "type": {"type": "string", "enum": ["calendar_out_of_step"]},
            "resource_id": ID,
            "calendar_id": ID,
            "name": text_of("The calendar's name."),
            "synced_at": nullable(STAMP) | {"description": "Null: never yet."},
            "text": text_of("The same in words."),
        },
    },
)


def warned(answer: dict[str, Any]) -> dict[str, Any]:
    """The schema of an answer that may carry warnings."""
    warnings = {
        "type": "array",
        "minItems": 1,
        "items": WARNING,
        "description": "Only where there is something to say; never with a widget key.",
    }
    return answer | {"properties": {**answer["properties"], "warnings": warnings}}


def describe_query(summary: str, description: str, answer: dict[str, Any]) -> Any:
    return described(
        summary=summary,
        description=description,
        request=QuerySerializer,
        response=warned(many(answer)),
        request_examples=QUERY_EXAMPLES,
    )


class QueryView(TenantView):
    """A POST that asks for time and changes nothing."""

    query_like = True
    widget_methods = frozenset({"POST"})
    resource_methods = frozenset({"POST"})

    def read_query(self, request: Any) -> tuple[Query, str]:
        """The query of the body, and the zone its answer is written in."""
        given = read_body_as(QuerySerializer, request)
        return self.build(given), given.get("output_timezone") or self.zone

    def warnings_of(self, query: Query, zone: str) -> list[dict[str, Any]]:
        """What the answer says beside its `data`; to the public nothing of calendars."""
        return [] if self.caller.is_widget else warning_records(query.resources, zone)

    def build(self, given: dict[str, Any]) -> Query:
        return build_query(
            given, app=self.app, caller=self.caller, zone=self.input_zone, now=self.now
        )


class AvailabilityView(QueryView):
    @describe_query(
        "Find free slots",
        "Sorted by start. A slot lies wholly inside the range and inside free time; free is what"
        " the rules open, minus events that block with their buffer. `project_id` or `resources`"
        " is needed; with a widget key a request may only narrow what its project offers. 422 on"
        " `to` for more than 366 days or 100,000 slots.",
        SLOT,
    )
    def post(self, request: Any) -> Response:
        query, zone = self.read_query(request)
        return Response(write_slots(search_slots(query), zone, self.warnings_of(query, zone)))


class DatesView(QueryView):
    @describe_query(
        "The dates that have slots, and whose",
        "As POST /v2/availability, in short.",
        {
            "type": "object",
            "required": ["date", "resources"],
            "properties": {
                "date": {"type": "string", "format": "date"},
                "resources": {"type": "array", "items": ID},
            },
            "examples": [{"date": "2026-11-23", "resources": [RESOURCE_EXAMPLE["id"]]}],
        },
    )
    def post(self, request: Any) -> Response:
        query, zone = self.read_query(request)
        # Round robin names one resource per slot; here everyone who has one counts.
        mode = "mutual" if query.terms.mode == "mutual" else "exclusive"
        records = date_records(search_slots(query, mode=mode), zone)
        return Response(with_warnings(records, self.warnings_of(query, zone)))


class CountView(QueryView):
    @describe_query(
        "How many slots each date has",
        "As POST /v2/availability, in short; dates without slots are left out.",
        {
            "type": "object",
            "required": ["date", "count"],
            "properties": {
                "date": {"type": "string", "format": "date"},
                "count": {"type": "integer", "minimum": 1},
            },
            "examples": [{"date": "2026-11-23", "count": 16}],
        },
    )
    def post(self, request: Any) -> Response:
        query, zone = self.read_query(request)
        records = count_records(search_slots(query), zone)
        return Response(with_warnings(records, self.warnings_of(query, zone)))


class UnavailableView(QueryView):
    tag = "availability"
    widget_methods = frozenset()

    @describe_query(
        "What is not free, per resource",
        "The complement of free time in the range: each stretch with its one resource.",
        SLOT,
    )
    def post(self, request: Any) -> Response:
        query, zone = self.read_query(request)
        records = unavailable_records(search_unavailable(query), zone)
        return Response(with_warnings(records, self.warnings_of(query, zone)))


class ExplainView(QueryView):
    widget_methods = frozenset()

    @describe_query(
        "Why time is free or not, per resource",
        "The whole range as consecutive segments with their reasons.",
        EXPLANATION,
    )
    def post(self, request: Any) -> Response:
        query, zone = self.read_query(request)
        records = [explanation_record(one, zone) for one in explain_query(query)]
        return Response(with_warnings(records, self.warnings_of(query, zone)))


DEPRECATED = {
    "Deprecation": "@1767225600",  # RFC 9745: since 2026-01-01
    "Link": '</v2/availability>; rel="successor-version"',
}
DEPRECATION_HEADERS = {
    "Deprecation": text_of("Since when, as RFC 9745 writes it.", examples=["@1767225600"]),
    "Link": text_of("The successor.", examples=[DEPRECATED["Link"]]),
}
MAX_QUERIES = 20
FINDTIME_EXAMPLE = {
    "resource_ids": [RESOURCE_EXAMPLE["id"]],
    "filters": {"and": [{"business_hours": {}}]},
    "future": "2 days",
    "length": "30 minutes",
}


class FindtimeView(QueryView):
    @described(
        summary="Find common free time",
        description="The earlier form of POST /v2/availability, which takes its place. Several"
        " resources: times when all are free. At least one of `resource_ids`, `resources`,"
        " `calendar_ids` and `project_id` is needed.",
        request=FindtimeSerializer,
        response=warned(many(SPAN)),
        request_examples={"two days": FINDTIME_EXAMPLE},
        headers=DEPRECATION_HEADERS,
        deprecated=True,
    )
    def post(self, request: Any) -> Response:
        query, slots = self.find(request.data)
        return Response(
            with_warnings(slots, self.warnings_of(query, self.zone)), headers=DEPRECATED
        )

    def find(self, body: Any) -> tuple[Query, list[dict[str, str]]]:
        given = read_values_as(FindtimeSerializer, body)
        filters = tuple(
            rules
            for name in ("filters", "constraints")
            for rules in read_filters(given.get(name, []), name)
        )
        resource_ids = self._resource_ids(given)
        try:
            query = self.build(self._translate(given, list(resource_ids.values())))
            query = self._with_terms(query, given, filters)
            slots = search_slots(query, mode="mutual")
        except Invalid as error:
            raise as_sent(error, resource_paths=list(resource_ids)) from error
        if given.get("no_day_span"):
            slots = within_one_day(slots)
        if given.get("sort") == "desc":
            slots = slots[::-1]
        return query, self._records(slots)

    def _records(self, slots: list[Slot]) -> list[dict[str, str]]:
        texts = write_instants(bounds_of(slots), self.zone)
        return [{"start": texts[start], "end": texts[end]} for start, end, _ in slots]

    def _translate(self, given: dict[str, Any], resource_ids: list[uuid.UUID]) -> dict[str, Any]:
        translated = {
            "mode": "mutual",
            "length": given["length"],
            "buffer": given.get("buffer", "0"),
            "ignore_all_day_events": given.get("ignore_all_day_events", False),
            "project_id": given.get("project_id"),
        }
        if given.get("all_solutions"):
            translated["timeslot_increments"] = ALL_SOLUTIONS
        return translated | ({"resources": resource_ids} if resource_ids else {})

    def _with_terms(self, query: Query, given: dict[str, Any], filters: RuleLists) -> Query:
        """The query with the older form's rules and range: `future` counts from `start`."""
        zone = wall_zone(query.resources, self.input_zone)
        start = self._read_moment("start", given, self.now, zone)
        latest = self._read_moment("future", given, start, zone)
        terms = replace(
            query.terms,
            extra=filters,
            earliest=format_instant(start),
            latest=format_instant(latest),
        )
        return replace(query, terms=terms)

    def _read_moment(self, name: str, given: dict[str, Any], now: datetime, zone: str) -> datetime:
        try:
            return resolve(given[name], now, zone)
        except (DurationError, InstantError) as error:
            raise Invalid.at(name, str(error)) from error

    def _resource_ids(self, given: dict[str, Any]) -> dict[str, uuid.UUID]:
        """The ids of the resources by the path at which the client named them."""
        named = {
            f"{name}.{position}": one
            for name in ("resource_ids", "resources")
            for position, one in enumerate(given.get(name, ()))
        }
        return named | self._owners(given.get("calendar_ids", ()))

    def _owners(self, calendar_ids: Any) -> dict[str, uuid.UUID]:
        calendars = Calendar.objects.for_app(self.app).filter(id__in=calendar_ids)
        if self.caller.resource_id:
            calendars = calendars.filter(resource_id=self.caller.resource_id)
        owners = dict(calendars.values_list("id", "resource_id"))
        errors = {
            f"calendar_ids.{position}": ["There is no such calendar."]
            for position, one in enumerate(calendar_ids)
            if one not in owners
        }
        if errors:
            raise Invalid(errors)
        return {
            f"calendar_ids.{position}": owners[one] for position, one in enumerate(calendar_ids)
        }


class FindtimeManyView(FindtimeView):
    """/findtime/bulk and /findtime/team: several questions, their answers in order."""

    widget_methods = frozenset()

    @described(
        summary="Several findtime questions at once",
        description="Each as of POST /v2/findtime; the answers stand in the same order.",
        request={
            "type": "object",
            "required": ["queries"],
            "properties": {
                "queries": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": MAX_QUERIES,
                    "items": {"type": "object"},
                }
            },
        },
        response=many({"type": "array", "items": SPAN}),
        request_examples={"one question": {"queries": [FINDTIME_EXAMPLE]}},
        headers=DEPRECATION_HEADERS,
        deprecated=True,
    )
    def post(self, request: Any) -> Response:
        body = request.data
        queries = body.get("queries") if isinstance(body, dict) else None
        if not isinstance(queries, list) or not 1 <= len(queries) <= MAX_QUERIES:
            raise Invalid.at("queries", f"Must be a list of 1 to {MAX_QUERIES} queries.")
        return Response(
            {"data": [self._find_at(position, query) for position, query in enumerate(queries)]},
            headers=DEPRECATED,
        )

    def _find_at(self, position: int, query: Any) -> list[dict[str, str]]:
        query = array_as_object(query)
        if not isinstance(query, dict):
            raise Invalid.at(f"queries.{position}", "Must be an object.")
        try:
            return self.find(query)[1]
        except Invalid as error:
            errors = error.fields["errors"].items()
            raise Invalid({f"queries.{position}.{key}": value for key, value in errors}) from error
