"""Serializers of event bodies (api.md section 4)."""

from datetime import date, datetime
from typing import Any

from rest_framework import serializers

from availability.core.zones import day_start
from availability.models import Event
from availability.search.parameters import MAX_RANGE
from availability.serializers.fields import CLEARABLE, OPTIONAL, MomentOrDateField, check_span
from common.api.fields import (
    IdField,
    ListOf,
    ObjectSerializer,
    OneLineField,
    StrictBooleanField,
    TextField,
)
from common.time.instants import find_zone


class EventSerializer(ObjectSerializer):
    """The body of PUT /events/:id. `context["zone"]` is the resource's zone, `context["event"]` the
    stored event (None for a new one).
    """

    start = MomentOrDateField(**OPTIONAL)
    end = MomentOrDateField(**CLEARABLE)
    what = OneLineField(200, **OPTIONAL)
    where = OneLineField(200, allow_blank=True, **CLEARABLE)
    description = TextField(8000, allow_blank=True, **CLEARABLE)
    all_day = StrictBooleanField(
        help_text="Start and end are dates; the end is exclusive. Without an end: one day.",
        **OPTIONAL,
    )
    allDay = StrictBooleanField(**OPTIONAL)
    rsvp = OneLineField(32, allow_blank=True, **CLEARABLE)
    participants = ListOf(OneLineField(254), 100, **OPTIONAL)
    busy = StrictBooleanField(**OPTIONAL)

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        event = self.context.get("event")
        given.setdefault("all_day", given.pop("allDay", event.all_day if event else False))
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
            raise serializers.ValidationError({name: ["Must be a date and time."]})
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


class EventCalendarSerializer(ObjectSerializer):
    """The calendar of a new event; read first, because its zone is needed to read the times."""

    calendar_id = IdField()


class NewEventSerializer(EventCalendarSerializer, EventSerializer):
    """The body of POST /events."""

    start = MomentOrDateField()
    what = OneLineField(200)
