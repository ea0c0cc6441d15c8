"""Events and holds (api.md section 4)."""

from datetime import date, datetime
from typing import Any

from rest_framework import serializers

from availability.core.zones import day_start
from availability.models import Event, Hold
from availability.reserve.holds import held_span
from availability.search.parameters import MAX_RANGE
from availability.serializers.fields import MomentOrDateField, check_span
from availability.serializers.resources import PublicResourceSerializer, ResourceSerializer
from common.api.fields import (
    CLEARABLE,
    OPTIONAL,
    IdField,
    InstantField,
    ListOf,
    OneLineField,
    OneOfField,
    StampField,
    StrictBooleanField,
    TextField,
)
from common.api.response_schemas import END_EXAMPLE, example_id
from common.api.serializers import ObjectSerializer
from common.messages import Message
from common.openapi.component_registry import Json
from common.time.instants import find_zone

# What a key without the scope `people:read` sees of texts that may be about customers.
NO_EVENT_TEXTS: Json = {"description": "", "participants": []}


class EventCalendarSerializer(ObjectSerializer):
    """The calendar of a new event; read first, because its zone is needed to read the times."""

    calendar_id = IdField()


class EventSerializer(ObjectSerializer):
    # For bodies, `context["zone"]` is the resource's zone, and `context["event"]` the stored event
    # (None for a new one).
    only_at_creation = ("calendar_id",)
    never_null = ("end",)
    examples = {
        "id": example_id(13),
        "calendar_id": example_id(12),
        "what": "Dentists' congress",
        "where": "Hamburg",
        "start": "2026-12-01T09:00:00+01:00",
        "end": "2026-12-01T17:00:00+01:00",
        "busy": True,
    }

    id = IdField(read_only=True)
    calendar_id = IdField()
    what = OneLineField(200)
    where = OneLineField(200, allow_blank=True, **CLEARABLE)
    description = TextField(8000, allow_blank=True, **CLEARABLE)
    start = MomentOrDateField()
    end = MomentOrDateField(**CLEARABLE)
    # Of the two, `all_day` counts in a body that has both.
    allDay = StrictBooleanField(
        source="all_day",
        help_text="An all-day event: start and end are local midnights of the resource.",
        **OPTIONAL,
    )
    all_day = StrictBooleanField(
        write_only=True,
        help_text="Start and end are dates; the end is exclusive. Without an end: one day.",
        **OPTIONAL,
    )
    rsvp = OneLineField(32, allow_blank=True, **CLEARABLE)
    participants = ListOf(OneLineField(254), 100, **OPTIONAL)
    busy = StrictBooleanField(help_text="Blocks the time.", **OPTIONAL)
    provider_id = serializers.CharField(read_only=True, allow_null=True)
    created_at = StampField()
    updated_at = StampField()

    @classmethod
    def render(cls, row: Event, zone: str = "UTC", *_: Any) -> Json:
        """Times in `zone`; whole days are shown in the resource's own."""
        return super().render(row, row.resource.timezone if row.all_day else zone)

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        event = self.context.get("event")
        given.setdefault("all_day", event.all_day if event else False)
        if not event or {"start", "end"} & given.keys() or given["all_day"] != event.all_day:
            self._read_time(given, event)
        else:
            del given["all_day"]  # unchanged, even if a concurrent request changes it
        return given

    def _read_time(self, given: dict[str, Any], event: Event | None) -> None:
        start: datetime | date
        start = given["start"] if event is None else given.get("start") or event.start
        end: datetime | date | None
        end = given.get("end") if event is None or "end" in given else event.end
        if given["all_day"]:
            given["start_date"], given["end_date"] = self._days(start, end)
            given.pop("start", None)
            given.pop("end", None)
            return
        if not isinstance(start, datetime) or not isinstance(end, datetime):
            name = "end" if isinstance(start, datetime) else "start"
            raise serializers.ValidationError({name: [Message("Must be a date and time.")]})
        check_span(start, end)
        given["start"], given["end"] = start, end

    def _days(self, start: datetime | date, end: datetime | date | None) -> tuple[date, date]:
        """The dates of an all-day event, at least one day; the end is exclusive."""
        first = self._date("start", start)
        last = first if end is None else self._date("end", end)
        if last == first:
            last = date.fromordinal(first.toordinal() + 1)
        if last < first or last - first > MAX_RANGE:
            raise serializers.ValidationError({"end": ["Must be 1 to 366 days after the start."]})
        return first, last

    def _date(self, name: str, value: datetime | date) -> date:
        if not isinstance(value, datetime):
            return value
        zone_name = self.context.get("zone") or "UTC"
        wall = value.astimezone(find_zone(zone_name))
        is_midnight = (wall.hour, wall.minute, wall.second) == (0, 0, 0)
        # If the clock skips midnight, accept the first instant of the day.
        if not is_midnight and value.timestamp() != day_start(wall.date(), zone_name):
            raise serializers.ValidationError({name: ["Must be a date, or a local midnight."]})
        return wall.date()


class HoldSerializer(ObjectSerializer):
    examples = {
        "reservation_id": example_id(41),
        "end": END_EXAMPLE,
        "quantity": 1,
        "place": None,
        "expires_at": "2026-11-20T10:30:30+01:00",
    }

    reservation_id = IdField(source="id")
    start = InstantField()
    end = InstantField()
    resource = OneOfField(
        ResourceSerializer(),
        PublicResourceSerializer(),
        help_text="In mode mutual, the first held resource.",
    )
    quantity = serializers.IntegerField(help_text="The held units of the resource, or seats.")
    place = serializers.CharField(allow_null=True, help_text="The place of held seats.")
    expires_at = InstantField(help_text="The expiry, unless the hold is used or extended.")

    @staticmethod
    def get_start(hold: Hold) -> datetime:
        return held_span(hold)[0]

    @staticmethod
    def get_end(hold: Hold) -> datetime:
        return held_span(hold)[1]
