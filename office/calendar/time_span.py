"""A span of days or hours on a resource's clock, and how it is closed for new bookings."""

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from typing import Any

from django import forms
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from availability.models import Calendar, Resource
from availability.serializers.events import EventSerializer
from bookings.services.postponed import ClosedTime
from common.api.serializers import read_values_as
from common.errors import Invalid
from common.time.instants import local_midnight
from office.base.local_time import parse_moment

INPUT = {"class": "office-input"}
DATE, TIME = INPUT | {"type": "date"}, INPUT | {"type": "time"}


class TimeSpanForm(forms.Form):
    """From when to when; times are those of each resource's own clock."""

    first_day = forms.DateField(label=_("First day"), widget=forms.DateInput(DATE))
    start = forms.TimeField(
        label=pgettext_lazy("of a time span", "Start"),
        required=False,
        widget=forms.TimeInput(TIME),
    )
    last_day = forms.DateField(
        label=_("Last day"),
        required=False,
        widget=forms.DateInput(DATE),
        help_text=_("Empty: the same day."),
    )
    end = forms.TimeField(
        label=pgettext_lazy("of a time span", "End"),
        required=False,
        widget=forms.TimeInput(TIME),
    )

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        start, end = given.get("start"), given.get("end")
        if (start is None) != (end is None) and not {"start", "end"} & self.errors.keys():
            missing = "end" if end is None else "start"
            self.add_error(missing, _("Enter both times, or none for the whole day."))
        first, last = given.get("first_day"), given.get("last_day")
        if first and last and last < first:
            self.add_error("last_day", _("Must not be before the first day."))
        return given


def read_span(given: Mapping[str, Any], zone: str) -> tuple[datetime, datetime]:
    """Return the start and end of a valid form's span; whole days without times. Raises Invalid."""
    first, last = given["first_day"], given["last_day"] or given["first_day"]
    if given["start"] is None:
        return day_span(first, last, zone)
    start = parse_moment("start", _local_time_text(first, given["start"]), zone)
    end = parse_moment("end", _local_time_text(last, given["end"]), zone, after=start)
    if end <= start:
        raise Invalid.at("end", "Must be after the start.")
    return start, end


def _local_time_text(day: date, clock: time) -> str:
    return f"{day}T{clock}"


def day_span(first: date, last: date, zone: str) -> tuple[datetime, datetime]:
    """Return the local midnights before the first and after the last day."""
    return local_midnight(first, zone), local_midnight(last + timedelta(days=1), zone)


def closed_time(
    resource: Resource, calendar: Calendar | None, start: datetime, end: datetime, what: str
) -> ClosedTime:
    """Return the time to close in the resource's first own calendar.

    Not an all-day event, which projects may ignore. Raises Invalid without such a calendar.
    """
    if calendar is None:
        raise Invalid.at(
            "calendar_id", gettext("Has only connected calendars: block the time there.")
        )
    body = {
        "calendar_id": str(calendar.id),
        "what": what,
        "busy": True,
        "start": start.isoformat(),
        "end": end.isoformat(),
    }
    given = read_values_as(EventSerializer, body, zone=resource.timezone, event=None)
    return ClosedTime(calendar, given)
