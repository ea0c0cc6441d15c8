"""Availability endpoints: /availability and its variants, /findtime."""

import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps_config.base_views import TenantViewSet
from availability.core.slots import Slot
from availability.models import Calendar, Project
from availability.search.availability_query import AvailabilityQuery
from availability.search.cost import check_cost, check_number_of_rules
from availability.search.engine import search_dates, search_slots, search_unavailable
from availability.search.explaining import (
    explain_query,
    free_times_of_requirements,
    possible_starts_of_steps,
)
from availability.search.findtime import (
    ALL_SOLUTIONS,
    RuleLists,
    read_filters,
    restore_sent_paths,
    within_one_day,
)
from availability.search.input import common_zone_or, parse_availability_query
from availability.search.remaining import find_remaining
from availability.search.rendering import (
    CountSerializer,
    DateSerializer,
    ExplanationSerializer,
    RequirementTimesSerializer,
    SlotSerializer,
    StepTimesSerializer,
    WarningSerializer,
    daily_slot_count_records,
    date_records,
    explanation_record,
    list_with_warnings,
    requirement_times_records,
    slot_records,
    span_bounds,
    step_times_records,
    unavailable_records,
    visit_records,
    warning_records,
    write_instants,
)
from availability.search.visit_slots import search_visits
from availability.serializers.queries import (
    MAX_QUERIES,
    FindtimeQueriesSerializer,
    FindtimeSerializer,
    QuerySerializer,
)
from availability.serializers.resources import RESOURCE_EXAMPLE
from common.api.fields import array_as_object
from common.api.serializers import ObjectSerializer, read_body_as, read_values_as
from common.errors import Forbidden, Invalid
from common.messages import Message, find_message
from common.openapi.component_registry import Json
from common.openapi.components import SpanSerializer, list_of, text_response
from common.openapi.generator import data_list, data_lists, named_examples, parameters
from common.openapi.parameters import include_of
from common.time.durations import DurationError, resolve_time
from common.time.instants import InstantError, format_instant

QUERY_EXAMPLES = {
    "a week of half hours": {
        "resources": [RESOURCE_EXAMPLE["id"]],
        "length": "30 minutes",
        "to": "1 week",
        "constraints": [{"allow_weekdays": {}}, {"allow_hours": {"start": 9, "end": 17}}],
        "output_timezone": "Europe/Berlin",
    }
}


SLOT_INCLUDES = ("remaining",)

# Members of responses that may be absent.
WARNINGS = {
    "warnings": list_of(WarningSerializer.schema)
    | {
        "minItems": 1,
        "description": "Only with stale calendars; never with a widget key.",
    }
}
REQUIREMENTS = {
    "requirements": list_of(RequirementTimesSerializer.schema)
    | {"description": "Only with `requires`."},
    "steps": list_of(StepTimesSerializer.schema)
    | {"description": "Only with `steps`: when each step of a visit could start, seen alone."},
}


def describe_query(
    summary: str,
    description: str,
    answer: type[ObjectSerializer],
    *,
    operation_id: str | None = None,
    explains: bool = False,
    query: Mapping[str, Json] | None = None,
) -> Any:
    return extend_schema(
        operation_id=operation_id,
        summary=summary,
        description=description,
        request=QuerySerializer,
        parameters=parameters(query=query),
        responses={200: data_list(answer, WARNINGS | (REQUIREMENTS if explains else {}))},
        examples=named_examples(request=QUERY_EXAMPLES),
    )


class QueryViewSet(TenantViewSet):
    """POST requests that query availability and change nothing."""

    reads_replica = True

    def read_query(self, request: Request) -> tuple[AvailabilityQuery, str]:
        """The query of the body, and the zone of the response."""
        self.check_rules(request.data, "constraints")
        given = read_body_as(QuerySerializer, request)
        query = self.build(given)
        check_cost(query)
        return query, given.get("output_timezone") or self.zone

    def check_rules(self, body: Any, *names: str) -> None:
        if self.caller.is_widget:
            check_number_of_rules(body, *names)

    def warnings_of(self, query: AvailabilityQuery, zone: str) -> list[dict[str, Any]]:
        """The warnings about stale calendars; none for a widget key."""
        return [] if self.caller.is_widget else warning_records(query.resources, zone)

    def build(self, given: dict[str, Any]) -> AvailabilityQuery:
        return parse_availability_query(
            given,
            app=self.app,
            caller=self.caller,
            zone=self.input_zone,
            now=self.now,
            for_explain=self.action == "explain",
        )


class AvailabilityViewSet(QueryViewSet):
    tag = "availability"
    query_actions = frozenset(
        {"search", "list_dates", "count_slots", "explain", "list_unavailable"}
    )

    @describe_query(
        "Find free slots",
        "Sorted by start. A slot lies completely inside the range and inside free time: the time"
        " that the rules open, without blocking events and their buffer. `project_id` or"
        " `resources` is required. With a widget key, a request can only narrow the project's"
        " offer. 422 on `to` for more than 366 days or 100,000 slots; in `exclusive` and `mutual`,"
        " a slot counts once per resource. In the other modes also 422 if the resources together"
        " have more than three million starts. 422 on `constraints` if those of the request repeat"
        " too often: their windows in the range (a recurring one has one a day) times the number of"
        " resources, and of ten more for each time zone, may be at most 300,000. With a widget key"
        " also 422 on `constraints` for more than 20, and on `to` for more than 35 days with more"
        " than 17,500 days of all resources together.",
        SlotSerializer,
        operation_id="searchAvailability",
        query={"include": include_of(SLOT_INCLUDES)},
    )
    @action(detail=False, methods=["post"], url_path="availability")
    def search(self, request: Request) -> Response:
        query, zone = self.read_query(request)
        if query.visit:
            records = visit_records(search_visits(query), zone)
            slots: list[Slot] = []
        else:
            slots = search_slots(query)
            records = slot_records(slots, zone)
        if "remaining" in self.query.include(SLOT_INCLUDES):
            self._check_may_see_remaining(query)
            found = [1] * len(records) if query.visit else find_remaining(query, slots)
            for record, remaining in zip(records, found, strict=True):
                record["remaining"] = remaining
        return Response(list_with_warnings(records, self.warnings_of(query, zone)))

    def _check_may_see_remaining(self, query: AvailabilityQuery) -> None:
        """Raise Forbidden for a public caller, unless the project shows how many are left."""
        if not self.caller.is_widget:
            return
        projects = Project.objects.filter(id__in=filter(None, [query.project_id]))
        project = projects.only("settings").first()
        if project is None or not project.settings.get("show_remaining"):
            raise Forbidden("The project's setting `show_remaining` is off.")

    @describe_query(
        "List dates with slots and their resources",
        "A short form of POST /v2/availability. In round robin, a date lists every resource with a"
        " slot. 422 on `to` for more than 100,000 pairs of date and resource.",
        DateSerializer,
        operation_id="listAvailableDates",
    )
    @action(detail=False, methods=["post"], url_path="availability/dates")
    def list_dates(self, request: Request) -> Response:
        query, zone = self.read_query(request)
        records = date_records(search_dates(query, zone))
        return Response(list_with_warnings(records, self.warnings_of(query, zone)))

    @describe_query(
        "Count the slots per date",
        "A short form of POST /v2/availability. Dates without slots are omitted.",
        CountSerializer,
        operation_id="countAvailableSlots",
    )
    @action(detail=False, methods=["post"], url_path="availability/count")
    def count_slots(self, request: Request) -> Response:
        query, zone = self.read_query(request)
        records = daily_slot_count_records(search_slots(query), zone)
        return Response(list_with_warnings(records, self.warnings_of(query, zone)))

    @describe_query(
        "List times that are not free, per resource",
        "The complement of free time in the range, with one resource per entry.",
        SlotSerializer,
        operation_id="listUnavailableSlots",
    )
    @action(detail=False, methods=["post"], url_path="unavailable/slots")
    def list_unavailable(self, request: Request) -> Response:
        query, zone = self.read_query(request)
        records = unavailable_records(search_unavailable(query), zone)
        return Response(list_with_warnings(records, self.warnings_of(query, zone)))

    @describe_query(
        "Explain why time is free or not, per resource",
        "The whole range as consecutive segments with their reasons. `requirements`: when enough"
        " resources of each requirement are free.",
        ExplanationSerializer,
        explains=True,
    )
    @action(detail=False, methods=["post"], url_path="availability/explain")
    def explain(self, request: Request) -> Response:
        query, zone = self.read_query(request)
        explanations = explain_query(query)
        records = [explanation_record(explanation, zone) for explanation in explanations]
        answer = dict(list_with_warnings(records, self.warnings_of(query, zone)))
        if query.alternatives:
            found = free_times_of_requirements(query, explanations)
            answer["requirements"] = requirement_times_records(found, zone)
        if query.visit:
            answer["steps"] = step_times_records(possible_starts_of_steps(query), zone)
        return Response(answer)


DEPRECATED = {
    "Deprecation": "@1767225600",  # RFC 9745: since 2026-01-01
    "Link": '</v2/availability>; rel="successor-version"',
}
DEPRECATION_HEADERS = {
    "Deprecation": text_response(
        "The date of the deprecation (RFC 9745).", examples=["@1767225600"]
    ),
    "Link": text_response("The successor.", examples=[DEPRECATED["Link"]]),
}
RULE_NAMES = ("filters", "constraints")  # two names of one parameter
FINDTIME_EXAMPLE = {
    "resource_ids": [RESOURCE_EXAMPLE["id"]],
    "filters": {"and": [{"business_hours": {}}]},
    "future": "2 days",
    "length": "30 minutes",
}
describe_many: Any = extend_schema(
    summary="Run several findtime queries",
    description="Each query is a body of POST /v2/findtime. The results have the same order.",
    deprecated=True,
    request=FindtimeQueriesSerializer,
    responses={200: data_lists(SpanSerializer)},
    parameters=parameters(headers=DEPRECATION_HEADERS),
    examples=named_examples(request={"one question": {"queries": [FINDTIME_EXAMPLE]}}),
)


class FindtimeViewSet(QueryViewSet):
    """The older form of the search; bulk and team run several queries, with results in order."""

    query_actions = frozenset({"find_time", "find_times", "find_team_times"})

    @extend_schema(
        operation_id="findTime",
        summary="Find common free time",
        description="Deprecated: use POST /v2/availability. With several resources: times when"
        " all are free. At least one of `resource_ids`, `resources`, `calendar_ids` and"
        " `project_id` is required. `filters` and range have the limits of POST /v2/availability.",
        deprecated=True,
        request=FindtimeSerializer,
        responses={200: data_list(SpanSerializer, WARNINGS)},
        parameters=parameters(headers=DEPRECATION_HEADERS),
        examples=named_examples(request={"two days": FINDTIME_EXAMPLE}),
    )
    @action(detail=False, methods=["post"], url_path="findtime")
    def find_time(self, request: Request) -> Response:
        query, slots = self.find_slots(request.data)
        return Response(
            list_with_warnings(slots, self.warnings_of(query, self.zone)), headers=DEPRECATED
        )

    @describe_many
    @action(detail=False, methods=["post"], url_path="findtime/bulk")
    def find_times(self, request: Request) -> Response:
        body = request.data
        queries = body.get("queries") if isinstance(body, dict) else None
        if not isinstance(queries, list) or not 1 <= len(queries) <= MAX_QUERIES:
            raise Invalid.at("queries", f"Must be a list of 1 to {MAX_QUERIES} queries.")
        return Response(
            {"data": [self._find_at(position, query) for position, query in enumerate(queries)]},
            headers=DEPRECATED,
        )

    @describe_many
    @action(detail=False, methods=["post"], url_path="findtime/team")
    def find_team_times(self, request: Request) -> Response:
        return self.find_times(request)

    def find_slots(self, body: Any) -> tuple[AvailabilityQuery, list[dict[str, str]]]:
        self.check_rules(body, *RULE_NAMES)
        given = read_values_as(FindtimeSerializer, body)
        filters = tuple(
            rules for name in RULE_NAMES for rules in read_filters(given.get(name, []), name)
        )
        resource_ids = self._resource_ids(given)
        try:
            query = self.build(self._translate(given, list(resource_ids.values())))
            query = self._with_terms(query, given, filters)
            check_cost(query)
            slots = search_slots(query, mode="mutual")
        except Invalid as error:
            raise restore_sent_paths(
                error,
                resource_paths=list(resource_ids),
                rules_path="filters" if "filters" in given else "constraints",
            ) from error
        if given.get("no_day_span"):
            slots = within_one_day(slots)
        if given.get("sort") == "desc":
            slots = slots[::-1]
        return query, self._records(slots)

    def _find_at(self, position: int, query: Any) -> list[dict[str, str]]:
        query = array_as_object(query)
        if not isinstance(query, dict):
            raise Invalid.at(f"queries.{position}", Message("Must be an object."))
        try:
            return self.find_slots(query)[1]
        except Invalid as error:
            errors = error.fields["errors"].items()
            raise Invalid({f"queries.{position}.{key}": value for key, value in errors}) from error

    def _records(self, slots: list[Slot]) -> list[dict[str, str]]:
        texts = write_instants(span_bounds(slots), self.zone)
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

    def _with_terms(
        self, query: AvailabilityQuery, given: dict[str, Any], filters: RuleLists
    ) -> AvailabilityQuery:
        """The query with the rules and range of the legacy form: `future` counts from `start`."""
        zone = common_zone_or(query.resources, self.input_zone)
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
            return resolve_time(given[name], now, zone)
        except (DurationError, InstantError) as error:
            raise Invalid.at(name, find_message(error)) from error

    def _resource_ids(self, given: dict[str, Any]) -> dict[str, uuid.UUID]:
        """The ids of the resources by the path at which the client sent them."""
        named = {
            f"{name}.{position}": element
            for name in ("resource_ids", "resources")
            for position, element in enumerate(given.get(name, ()))
        }
        return named | self._owners(given.get("calendar_ids", ()))

    def _owners(self, calendar_ids: Any) -> dict[str, uuid.UUID]:
        calendars = Calendar.objects.for_app(self.app).filter(id__in=calendar_ids)
        if self.caller.resource_id:
            calendars = calendars.filter(resource_id=self.caller.resource_id)
        owners = dict(calendars.values_list("id", "resource_id"))
        Invalid.check_known("calendar_ids", calendar_ids, owners, "There is no such calendar.")
        return {
            f"calendar_ids.{position}": owners[calendar_id]
            for position, calendar_id in enumerate(calendar_ids)
        }
