"""Render slots, days and explanations."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, timedelta
from itertools import chain
from typing import Any

from rest_framework import serializers

from availability.core.constraints import render_constraint
from availability.core.explain import Reason
from availability.core.fairness import Turn
from availability.core.slots import Slot
from availability.core.zones import DAY, offset_segments
from availability.search.availability_query import SearchResource
from availability.search.explaining import Explanation, RequirementTimes, stale_calendar_text
from availability.search.visit_slots import VisitSlot
from availability.serializers.resources import RESOURCE_EXAMPLE
from common.api.fields import IdField, StampField
from common.api.serializers import ObjectSerializer
from common.openapi.component_registry import Json
from common.openapi.components import REASON_EXAMPLE, ReasonSerializer, SpanSerializer
from common.time.instants import format_stamp

_EPOCH = date(1970, 1, 1)


# --- What answers look like -----------------------------------------------------------------------
class SlotResourceSerializer(ObjectSerializer):
    examples = {name: RESOURCE_EXAMPLE[name] for name in ("id", "name", "timezone")}

    id = IdField()
    name = serializers.CharField()
    timezone = serializers.CharField(source="zone")


class SlotStepSerializer(SpanSerializer):
    examples = {"name": "cleaning"}

    name = serializers.CharField()
    resources = SlotResourceSerializer(many=True)


class SlotSerializer(SpanSerializer):
    on_request = ("remaining", "steps")

    resources = SlotResourceSerializer(many=True)
    remaining = serializers.IntegerField(
        min_value=1,
        help_text="With include=remaining: the largest `quantity` that one of the resources can"
        " take. 1 where a booking takes several resources.",
    )
    steps = SlotStepSerializer(many=True, help_text="Of a visit, in the order of their times.")


class DateSerializer(ObjectSerializer):
    examples = {"resources": [RESOURCE_EXAMPLE["id"]]}

    date = serializers.DateField()
    resources = serializers.ListField(child=IdField())


class CountSerializer(ObjectSerializer):
    examples = {"count": 16}

    date = serializers.DateField()
    count = serializers.IntegerField(min_value=1)


class SegmentSerializer(SpanSerializer):
    available = serializers.BooleanField()
    reasons = ReasonSerializer(many=True)


class TurnSerializer(ObjectSerializer):
    """When the resource gets a booking in the mode `roundrobin_fair`: the less it has of its share,
    the sooner."""

    examples = {
        "position": 1,
        "weight": 1,
        "bookings": 4,
        "share": 5.33,
        "text": "Is next: 4 of 5.3 bookings due.",
    }

    position = serializers.IntegerField(
        allow_null=True, help_text="1: the next. Null: never by turn."
    )
    weight = serializers.IntegerField()
    bookings = serializers.IntegerField(
        help_text="Made since `calibrate_from`, with holds that last."
    )
    share = serializers.FloatField(help_text="The bookings that are due by its weight.")
    text = serializers.CharField(help_text="The same in words.")


class ExplanationSerializer(ObjectSerializer):
    examples = {
        "segments": [
            {
                "start": "2026-11-23T12:00:00+01:00",
                "end": "2026-11-23T13:00:00+01:00",
                "available": False,
                "reasons": [REASON_EXAMPLE],
            },
            {
                "start": "2026-11-23T13:00:00+01:00",
                "end": "2026-11-23T17:00:00+01:00",
                "available": True,
                "reasons": [],
            },
        ]
    }
    on_request = ("turn", "text")

    resource = SlotResourceSerializer()
    turn = TurnSerializer()
    never_open = serializers.BooleanField(help_text="No time in the range satisfies all rules.")
    text = serializers.CharField(help_text="The same in words, where it is so.")
    segments = SegmentSerializer(many=True)


class RequirementTimesSerializer(ObjectSerializer):
    """When enough resources of a requirement are free, whatever the others take."""

    examples = {"alternative": 1, "name": "room"}

    alternative = serializers.IntegerField(
        min_value=1, help_text="The number of the alternative that has the requirement; else 1."
    )
    name = serializers.CharField()
    free = SpanSerializer(many=True)


class StepTimesSerializer(ObjectSerializer):
    """When a step of a visit could start, whatever the other steps need."""

    examples = {"name": "cleaning"}

    name = serializers.CharField()
    starts = SpanSerializer(many=True)


class WarningSerializer(ObjectSerializer):
    """A connected calendar of which nothing new has been known for longer than the service allows:
    what stands in it now may not be in this answer. With the app's setting `stale_calendars: block`
    its resource has no free time meanwhile."""

    examples = {}

    type = serializers.ChoiceField(["calendar_out_of_step"])
    resource_id = IdField()
    calendar_id = IdField()
    name = serializers.CharField(help_text="The calendar's name.")
    synced_at = StampField(allow_null=True, help_text="Null: never yet.")
    text = serializers.CharField(help_text="The same in words.")


# --- Instants -------------------------------------------------------------------------------------
class _Times(dict):
    """Second of the day -> "T09:30:00", rendered on first use."""

    def __missing__(self, second: int) -> str:
        hours, rest = divmod(second, 3600)
        text = self[second] = f"T{hours:02}:{rest // 60:02}:{rest % 60:02}"
        return text


_TIMES = _Times()


def _offset_text(minutes: int) -> str:
    hours, rest = divmod(abs(minutes), 60)
    return f"{'-' if minutes < 0 else '+'}{hours:02}:{rest:02}"


def write_instants(instants: Iterable[int], zone: str) -> dict[int, str]:
    """Epoch seconds -> RFC 3339 text in the zone, as `format_instant` renders it.

    Date and offset are computed once per day and per change of offset, not per instant.
    """
    ordered = sorted(instants)
    if not ordered:
        return {}
    texts: dict[int, str] = {}
    segments = offset_segments(zone, ordered[0], ordered[-1] + 1)
    segment, fence = -1, ordered[0]
    for instant in ordered:
        if instant >= fence:
            while segment < 0 or instant >= segments[segment][1]:
                segment += 1
            _, end, offset = segments[segment]
            # RFC 3339 offsets have no seconds: the reading is rendered with the offset in whole
            # minutes.
            minutes = offset // 60
            day = (instant + minutes * 60) // DAY
            midnight = day * DAY - minutes * 60
            fence = min(end, midnight + DAY)
            date_text = (_EPOCH + timedelta(days=day)).isoformat()
            tail = _offset_text(minutes)
        texts[instant] = f"{date_text}{_TIMES[instant - midnight]}{tail}"
    return texts


def span_bounds(spans: Collection[Sequence[Any]]) -> set[int]:
    """The set of all starts and ends."""
    starts_and_ends = {span[0] for span in spans}
    starts_and_ends.update(span[1] for span in spans)
    return starts_and_ends


# --- Responses ------------------------------------------------------------------------------------
def slot_records(slots: Sequence[Slot], zone: str) -> list[Json]:
    """The slots as `SlotSerializer`s. Each tuple of resources is rendered once."""
    texts = write_instants(span_bounds(slots), zone)
    rendered = {
        resources: [SlotResourceSerializer.render(resource) for resource in resources]
        for resources in {slot[2] for slot in slots}
    }
    return [
        {"start": texts[start], "end": texts[end], "resources": rendered[resources]}
        for start, end, resources in slots
    ]


def visit_records(slots: Sequence[VisitSlot], zone: str) -> list[Json]:
    """The slots of visits as `SlotSerializer`s."""
    texts = write_instants(span_bounds([*slots, *chain.from_iterable(_spans(slots))]), zone)
    records = slot_records([slot[:3] for slot in slots], zone)
    for record, slot in zip(records, slots, strict=True):
        record["steps"] = [
            {
                "name": step.name,
                "start": texts[step.start],
                "end": texts[step.end],
                "resources": [SlotResourceSerializer.render(each) for each in step.resources],
            }
            for step in slot.steps
        ]
    return records


def _spans(slots: Sequence[VisitSlot]) -> Iterable[list[tuple[int, int]]]:
    return ([(step.start, step.end) for step in slot.steps] for slot in slots)


def list_with_warnings(
    records: Sequence[Any], warnings: Sequence[Mapping[str, Any]]
) -> dict[str, Sequence[Any]]:
    """`{"data": records}`, with `warnings` if there are any."""
    return {"data": records, "warnings": warnings} if warnings else {"data": records}


def warning_records(resources: Iterable[SearchResource], zone: str) -> list[Json]:
    """A warning for each stale calendar of the resources."""
    return [
        {
            "type": "calendar_out_of_step",
            "resource_id": str(resource.id),
            "calendar_id": str(calendar.id),
            "name": calendar.name,
            "synced_at": calendar.synced_at and format_stamp(calendar.synced_at),
            "text": stale_calendar_text(calendar, zone),
        }
        for resource in resources
        for calendar in resource.stale_calendars
    ]


def slots_by_date(slots: Sequence[Slot], zone: str) -> dict[str, list[Slot]]:
    """The slots grouped by the local date of their start, in order."""
    texts = write_instants({slot[0] for slot in slots}, zone)
    days: dict[str, list[Slot]] = {}
    for slot in slots:
        days.setdefault(texts[slot[0]][:10], []).append(slot)
    return days


def date_records(resources_by_date: Mapping[date, Sequence[SearchResource]]) -> list[Json]:
    return [
        {"date": day.isoformat(), "resources": [str(resource.id) for resource in resources]}
        for day, resources in resources_by_date.items()
    ]


def daily_slot_count_records(slots: Sequence[Slot], zone: str) -> list[Json]:
    return [{"date": day, "count": len(found)} for day, found in slots_by_date(slots, zone).items()]


def unavailable_records(spans: Sequence[tuple[int, int, SearchResource]], zone: str) -> list[Json]:
    texts = write_instants(span_bounds(spans), zone)
    return [
        {
            "start": texts[start],
            "end": texts[end],
            "resources": [SlotResourceSerializer.render(resource)],
        }
        for start, end, resource in spans
    ]


def reason_record(reason: Reason) -> Json:
    """Type, source and text of the reason, with the ids or constraints that it refers to.

    The key is `constraint` for one rule, `constraints` for several rules that act together.
    """
    record: Json = {"type": reason.type, "source": reason.source}
    rules = [render_constraint(rule) for rule in reason.rules]
    if len(rules) == 1:
        record["constraint"] = rules[0]
    elif rules:
        record["constraints"] = rules
    if reason.event_id:
        record["event_id"] = str(reason.event_id)
    if reason.reservation_id:
        record["reservation_id"] = str(reason.reservation_id)
    if reason.calendar_id:
        record["calendar_id"] = str(reason.calendar_id)
    return record | {"text": reason.text}


def public_reason_record(reason: Reason) -> Json:
    """Type and public text of the reason: no source, constraint or id."""
    return {"type": reason.type, "text": reason.public_text or reason.text}


def turn_record(turn: Turn) -> Json:
    return {
        "position": turn.position,
        "weight": turn.weight,
        "bookings": turn.bookings,
        "share": round(float(turn.share), 2),
        "text": turn_text(turn),
    }


def turn_text(turn: Turn) -> str:
    """Return one sentence on when the resource gets a booking."""
    if turn.position is None:
        return "Gets no bookings by turn (weight 0)."
    has = f"{turn.bookings} of {float(turn.share):.1f} bookings due"
    return f"Is next: {has}." if turn.position == 1 else f"Number {turn.position} in turn: {has}."


def requirement_times_records(
    requirement_times: Sequence[RequirementTimes], zone: str
) -> list[Json]:
    """When enough resources of each requirement are free."""
    spans = [span for each in requirement_times for span in each.free]
    texts = write_instants(span_bounds(spans), zone)
    return [
        {
            "alternative": each.alternative,
            "name": each.name,
            "free": [{"start": texts[start], "end": texts[end]} for start, end in each.free],
        }
        for each in requirement_times
    ]


def step_times_records(
    step_times: Sequence[tuple[str, Sequence[tuple[int, int]]]], zone: str
) -> list[Json]:
    """When each step could start."""
    bounds = span_bounds([span for _, spans in step_times for span in spans])
    texts = write_instants(bounds, zone)
    return [
        {
            "name": name,
            "starts": [{"start": texts[start], "end": texts[end]} for start, end in spans],
        }
        for name, spans in step_times
    ]


def explanation_record(explanation: Explanation, zone: str) -> Json:
    texts = write_instants(span_bounds(explanation.segments), zone)
    record: Json = {
        "resource": SlotResourceSerializer.render(explanation.resource),
        "never_open": explanation.never_open,
        "segments": [
            {
                "start": texts[segment.start],
                "end": texts[segment.end],
                "available": segment.available,
                "reasons": [reason_record(reason) for reason in segment.reasons],
            }
            for segment in explanation.segments
        ],
    }
    if explanation.turn:
        record["turn"] = turn_record(explanation.turn)
    if explanation.never_open:
        record["text"] = "No time in this range satisfies all rules together."
    return record
