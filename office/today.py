"""The first page of the back office: what today brings, what waits, what went wrong.

Every number is the length of a list, and leads to it. All of it is bounded: counts stop at MOST,
the charts look at two weeks of bookings and one day of deliveries, and are kept for a minute.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.core.cache import cache
from django.db.models import Avg, Count, DurationField, ExpressionWrapper, F, Max, Prefetch
from django.db.models.functions import TruncDate, TruncHour
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from apps_config.days import DAY, moment_words, span_of, zone_of
from apps_config.scope import Scope, scope_of
from availability.models import Calendar
from bookings.models import Booking
from notifications.models import FAILURES, LATE, Delivery, Webhook
from office.calendar_states import (
    STATES,
    TROUBLE,
    being_read,
    need_somebody,
    problem_words,
    progress_words,
)
from office.words import STATE_COLOURS, state_words
from scheduling.api.instants import zone

MOST = 1000  # a count stops here
SHOWN = 8
DAYS_BEFORE, DAYS_AFTER = 6, 7
KEPT = 60  # seconds
OFF = ("declined", "unpaid", "cancelled", "cancelled_by_customer", "cancelled_by_owner")


class Figure(NamedTuple):
    """A number, and the list that it is the length of."""

    words: str
    number: str
    link: str
    is_bad: bool = False


class Bar(NamedTuple):
    """One column of a chart: its label, and parts from the bottom up: (class, height, y, words)."""

    x: float
    middle: float
    width: float
    label: str
    total: int
    parts: Sequence[tuple[str, float, float, str]]
    note: str = ""


def today_context(request: HttpRequest) -> dict[str, Any]:
    scope, now = scope_of(request), timezone.now()
    place = zone_of(request)
    local = now.astimezone(zone(place)).date()
    start, end = span_of(local, local, place)
    bookings = Booking.objects.filter(scope.rows("app"), deleted_at=None)
    deliveries = Delivery.objects.filter(scope.rows("app"))
    calendars = Calendar.objects.filter(scope.rows("resource__app"))
    in_need = need_somebody(calendars, now)
    chart = cache.get_or_set(
        f"office-charts-{request.user.pk}-{local}", lambda: _charts(scope, now, place), KEPT
    )
    return {
        "day": local,
        "zone": place,
        "figures": [
            _today(bookings, start, end, local),
            _waiting(bookings),
            _failed(deliveries, now),
            _overdue(deliveries, now),
            _disabled(scope),
            _in_need(in_need),
        ],
        "next_bookings": _next(bookings, now, end),
        "requests": _requests(bookings),
        "calendars": _calendar_lines(in_need),
        "first_looks": _first_looks(being_read(calendars, now)),
        **chart,
    }


def _count(rows: Any) -> str:
    number = rows.order_by()[: MOST + 1].count()
    return f"{MOST}+" if number > MOST else str(number)


def _list(model: str, **query: str) -> str:
    return f"{reverse(f'admin:{model}_changelist')}?{urlencode(query)}"


def _today(bookings: Any, start: datetime, end: datetime, day: Any) -> Figure:
    rows = bookings.filter(event__start__gte=start, event__start__lt=end).exclude(state__in=OFF)
    link = _list("bookings_booking", day=day.isoformat())
    return Figure("bookings today", _count(rows), link)


def _asked(bookings: Any) -> Any:
    """Requests that an owner has to answer."""
    return bookings.filter(state="tentative", graph="confirm_decline")


def _waiting(bookings: Any) -> Figure:
    number = _count(_asked(bookings))
    link = _list("bookings_booking", state="tentative", graph="confirm_decline")
    return Figure("wait for confirmation", number, link)


def _failed(deliveries: Any, now: datetime) -> Figure:
    number = _count(deliveries.failed_since(now - DAY))
    link = _list("notifications_delivery", trouble="failed")
    return Figure("deliveries failed in 24 hours", number, link, number != "0")


def _overdue(deliveries: Any, now: datetime) -> Figure:
    number = _count(deliveries.filter(next_at__lte=now - LATE))
    link = _list("notifications_delivery", trouble="overdue")
    return Figure("deliveries overdue", number, link, number != "0")


def _disabled(scope: Scope) -> Figure:
    rows = Webhook.objects.filter(scope.rows("app"), active=False, deleted_at=None)
    number = _count(rows)
    return Figure(
        "webhooks switched off",
        number,
        _list("notifications_webhook", active__exact="0"),
        number != "0",
    )


def _in_need(calendars: Any) -> Figure:
    number = _count(calendars)
    link = _list("availability_calendar", state=TROUBLE)
    return Figure("calendars need somebody", number, link, number != "0")


def _calendar_lines(calendars: Any) -> list[dict[str, Any]]:
    """Of those that need somebody: first those that have waited longest."""
    rows = calendars.select_related("resource", "connection")
    rows = rows.order_by(F("synced_at").asc(nulls_first=True), "id")[:SHOWN]
    found = []
    for one in rows:
        since = moment_words(one.synced_at) if one.synced_at else ""
        found.append(
            _calendar_line(one)
            | {
                "since": f"in step until {since}" if since else "never yet in step",
                "problem": problem_words(one.connection),
            }
        )
    return found


def _first_looks(calendars: Any) -> list[dict[str, Any]]:
    """Out of step as well, but nobody has to do anything about it."""
    rows = calendars.select_related("resource", "connection").order_by("-id")[:SHOWN]
    return [
        _calendar_line(one) | {"since": progress_words(one.connection) or "waits for its turn"}
        for one in rows
    ]


def _calendar_line(calendar: Any) -> dict[str, Any]:
    words, colour = STATES[calendar.state]
    return {
        "link": reverse("admin:availability_calendar_change", args=[calendar.id]),
        "name": calendar.name,
        "resource": calendar.resource.name,
        "state": words,
        "colour": colour,
    }


def _next(bookings: Any, now: datetime, end: datetime) -> list[dict[str, Any]]:
    rows = bookings.filter(event__end__gt=now, event__start__gt=now - DAY, event__start__lt=end)
    return _lines(rows.exclude(state__in=OFF).order_by("event__start", "id"))


def _requests(bookings: Any) -> list[dict[str, Any]]:
    return _lines(_asked(bookings).order_by("-created_at", "-id"))


def _lines(bookings: Any) -> list[dict[str, Any]]:
    rows = bookings.select_related("event", "resource")
    rows = rows.prefetch_related(Prefetch("customers", to_attr="people"))[:SHOWN]
    return [
        {
            "link": reverse("admin:bookings_booking_change", args=[one.id]),
            "when": moment_words(one.event.start),
            "who": ", ".join(person.name for person in one.people[:2]) or one.event.what,
            "resource": one.resource.name,
            "state": state_words(one.state),
            "colour": STATE_COLOURS.get(one.state, "info"),
        }
        for one in rows
    ]


# --- Charts ---------------------------------------------------------------------------------------
HEIGHT, WIDTH = 120, 336  # of a chart, in units of its drawing
GROUPS = {
    **dict.fromkeys(OFF, "off"),
    "tentative": "waiting",
    "initialized": "waiting",
    "completed": "done",
}


def _charts(scope: Scope, now: datetime, place: str) -> dict[str, Any]:
    return {
        "bookings_chart": _bookings_per_day(scope, now, place),
        "deliveries_chart": _deliveries_per_hour(scope, now, place),
        "chart_height": HEIGHT,
        "chart_width": WIDTH,
    }


def _bookings_per_day(scope: Scope, now: datetime, place: str) -> list[Bar]:
    """Two weeks around today, by the day on which they take place."""
    first = now.astimezone(zone(place)).date() - timedelta(days=DAYS_BEFORE)
    days = [first + timedelta(days=number) for number in range(DAYS_BEFORE + 1 + DAYS_AFTER)]
    start, end = span_of(first, days[-1], place)
    rows = Booking.objects.filter(scope.rows("app"), deleted_at=None)
    rows = rows.filter(event__start__gte=start, event__start__lt=end)
    found = (
        rows.order_by()
        .values(day=TruncDate("event__start", tzinfo=zone(place)), of=F("state"))
        .annotate(number=Count("pk"))
    )
    counts: dict[Any, dict[str, int]] = {day: {} for day in days}
    for row in found:
        group = GROUPS.get(row["of"], "agreed")
        if row["day"] in counts:
            counts[row["day"]][group] = counts[row["day"]].get(group, 0) + row["number"]
    labels = [(f"{day:%a} {day.day}", counts[day]) for day in days]
    return _bars(labels, ("done", "agreed", "waiting", "off"))


def _deliveries_per_hour(scope: Scope, now: datetime, place: str) -> list[Bar]:
    """The last day, hour by hour, with how late the mails and calls were: on average, at most."""
    last = now.replace(minute=0, second=0, microsecond=0)
    hours = [last - timedelta(hours=number) for number in reversed(range(24))]
    late = ExpressionWrapper(F("finished_at") - F("due_at"), output_field=DurationField())
    rows = Delivery.objects.filter(scope.rows("app"), finished_at__gte=hours[0])
    found = (
        rows.filter(state__in=(Delivery.DELIVERED, *FAILURES))
        .order_by()
        .values(hour=TruncHour("finished_at", tzinfo=UTC), of=F("state"))
        .annotate(number=Count("pk"), mean=Avg(late), worst=Max(late))
    )
    counts: dict[datetime, dict[str, int]] = {hour: {} for hour in hours}
    notes: dict[datetime, str] = {}
    for row in found:
        group = "agreed" if row["of"] == Delivery.DELIVERED else "off"
        counts[row["hour"]][group] = counts[row["hour"]].get(group, 0) + row["number"]
        if group == "agreed":
            mean, worst = _seconds(row["mean"]), _seconds(row["worst"])
            notes[row["hour"]] = f"{mean} after the due time on average, {worst} at most"
    shown = zone(place)
    labels = [(f"{hour.astimezone(shown):%H}", counts[hour]) for hour in hours]
    return _bars(labels, ("agreed", "off"), [notes.get(hour, "") for hour in hours])


def _seconds(span: timedelta) -> str:
    seconds = max(span.total_seconds(), 0)
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


CHART_WORDS = {
    "done": "completed",
    "agreed": "confirmed, paid or sent",
    "waiting": "waiting",
    "off": "called off or failed",
}


def _bars(
    labels: Sequence[tuple[str, Mapping[str, int]]],
    order: Sequence[str],
    notes: Sequence[str] = (),
) -> list[Bar]:
    column = WIDTH / len(labels)
    most = max([sum(counts.values()) for _, counts in labels] + [1])
    bars = []
    for number, (label, counts) in enumerate(labels):
        parts, below = [], 0.0
        for group in order:
            height = HEIGHT * counts.get(group, 0) / most
            if height:
                below += height
                words = f"{counts[group]} {CHART_WORDS[group]}"
                parts.append((group, round(height, 2), round(HEIGHT - below, 2), words))
        note = notes[number] if notes else ""
        x = number * column
        bars.append(Bar(x, x + column / 2, column, label, sum(counts.values()), parts, note))
    return bars
