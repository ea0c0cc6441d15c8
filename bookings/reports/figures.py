"""Read reports: sums over DailyTotal, and open hours.

A period's numbers by week or by resource are sums of its days. Not so: the median of lead times,
which the parts of the distribution stand for, and the number of distinct returning customers, who
are counted once per booking.
"""

import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import F, Q, QuerySet, Sum
from django.db.models.functions import TruncMonth, TruncWeek

from apps_config.models import App
from availability.models import Project, Resource
from bookings.models import DailyTotal, OpenDay, ReportState, StateChange
from bookings.reports.columns import ENDED_EARLY, LEADS, OUTCOMES
from bookings.reports.open_hours import MAX_DAYS, MAX_OPEN_DAYS, find_open_seconds
from common.errors import Invalid
from common.time.instants import local_date

DAY = timedelta(days=1)
MAX_YEARS = 10
RESOURCE, PROJECT, TAG, WEEK, MONTH = "resource", "project", "tag", "week", "month"
WHAT, WHEN = (RESOURCE, PROJECT, TAG), (WEEK, MONTH)
STATES = ("kept", *ENDED_EARLY)  # the others are pending

Json = dict[str, Any]
Key = tuple[Any, ...]  # a value for each group
Sums = dict[str, int]


class Period(NamedTuple):
    """Local days of the app; `end` is exclusive."""

    start: date
    end: date

    @property
    def days(self) -> int:
        return (self.end - self.start).days

    def starts_of(self, group: str) -> Iterator[date]:
        """Yield the first day of each week or month that overlaps."""
        start = start_of(group, self.start)
        while start < self.end:
            yield start
            start = start_of(group, start + (7 if group == WEEK else 31) * DAY)


def start_of(group: str, day: date) -> date:
    """Return the first day of the week (Monday) or month of a day."""
    return day - day.weekday() * DAY if group == WEEK else day.replace(day=1)


class Report(NamedTuple):
    """sums: name -> its sum over DailyTotal. figures: the numbers of a row, made of the sums."""

    sums: Mapping[str, Sum]
    figures: Callable[[Sums], Json]


def _ratio(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _utilisation(sums: Sums) -> Json:
    booked, is_known = sums["booked_seconds"], "open_seconds" in sums
    return {
        "booked_seconds": booked,
        "open_seconds": sums["open_seconds"] if is_known else None,
        "utilisation": _ratio(booked, sums["open_seconds"]) if is_known else None,
    }


def _outcomes(sums: Sums) -> Json:
    cancelled = sums["cancelled"] + sums["cancelled_by_customer"]
    return {
        **{name: sums[name] for name in ("bookings", *STATES)},
        "pending": sums["bookings"] - sum(sums[name] for name in STATES),
        **{name: sums[name] for name in OUTCOMES},
        "cancellation_rate": _ratio(cancelled, sums["kept"] + cancelled),
        "no_show_rate": _ratio(sums["no_show"], sums["kept"]),
    }


def _lead_time(sums: Sums) -> Json:
    days = sums["lead_seconds"] / DAY.total_seconds()
    return {
        "bookings": sums["bookings"],
        "average_days": round(days / sums["bookings"], 2) if sums["bookings"] else None,
        **{name: sums[name] for name in LEADS},
        "lead_longer": sums["bookings"] - sum(sums[name] for name in LEADS),
    }


def _sources(sums: Sums) -> Json:
    return {"bookings": sums["bookings"], **{name: sums[name] for name in StateChange.SOURCES}}


def _customers(sums: Sums) -> Json:
    new, returning = sums["new_customers"], sums["returning_customers"]
    return {"new": new, "returning": returning, "new_rate": _ratio(new, new + returning)}


def _columns(*names: str) -> dict[str, Sum]:
    return {name: Sum(name) for name in names}


UTILISATION = "utilisation"
REPORTS: Mapping[str, Report] = {
    UTILISATION: Report(_columns("booked_seconds"), _utilisation),
    "outcomes": Report(_columns("bookings", *STATES, *OUTCOMES), _outcomes),
    "lead-time": Report(_columns("bookings", "lead_seconds", *LEADS), _lead_time),
    "sources": Report(
        _columns("bookings")
        | {name: Sum("bookings", filter=Q(source=name)) for name in StateChange.SOURCES},
        _sources,
    ),
    "customers": Report(_columns("new_customers", "returning_customers"), _customers),
}


def read_report(
    name: str, app: App, period: Period, by: Sequence[str], *, now: datetime
) -> list[Json]:
    """Return the rows of a report, each with its group (resource, week, ...) and its numbers.

    by: at most one of WHAT and one of WHEN; without any there is one row. Rows by week or month
    alone are complete, others leave out groups without numbers. Raises Invalid on `to`.
    """
    report = REPORTS[name]
    _check_length(name, period)
    totals = DailyTotal.objects.filter(app=app, day__gte=period.start, day__lt=period.end)
    found = _sum_by(totals, report.sums, by)
    if name == UTILISATION and PROJECT not in by:
        for key, seconds in _open_seconds(app, period, by, now).items():
            found[key]["open_seconds"] = seconds
        for sums in found.values():
            sums.setdefault("open_seconds", 0)
    if TAG in by:
        found = _by_tag(app, by, found)
    if not by:
        found[()]  # even if nothing is counted
    elif len(by) == 1 and by[0] in WHEN:
        for start in period.starts_of(by[0]):
            found[(start,)]
    return _in_order(app, by, [(key, report.figures(sums)) for key, sums in found.items()])


def counted_until(app: App) -> datetime | None:
    """Return until when changes are counted; None: nothing is counted yet."""
    return ReportState.objects.filter(app=app).values_list("counted_until", flat=True).first()


def _check_length(name: str, period: Period) -> None:
    if period.end <= period.start:
        raise Invalid.at("to", "Must be after `from`.")
    if name == UTILISATION and period.days > MAX_DAYS:
        raise Invalid.at("to", "Must be at most 53 weeks after `from`.")
    if period.days > MAX_YEARS * 366:
        raise Invalid.at("to", "Must be at most 10 years after `from`.")


def _sum_by(
    rows: QuerySet[Any], sums: Mapping[str, Sum], by: Sequence[str]
) -> defaultdict[Key, Sums]:
    """Return the sums by the values of the groups; those of a tag are still by resource."""
    groups = {
        f"by_{group}": {
            RESOURCE: F("resource_id"),
            TAG: F("resource_id"),
            PROJECT: F("project_id"),
            WEEK: TruncWeek("day"),
            MONTH: TruncMonth("day"),
        }[group]
        for group in by
    }
    aggregates = {f"sum_{name}": column for name, column in sums.items()}
    found: defaultdict[Key, Sums] = defaultdict(lambda: defaultdict(int))
    if not groups:
        grouped = [rows.order_by().aggregate(**aggregates)]
    else:
        grouped = rows.annotate(**groups).order_by().values(*groups).annotate(**aggregates)
    for row in grouped:
        key = tuple(row[group] for group in groups)
        found[key].update({name: row[f"sum_{name}"] or 0 for name in sums})
    return found


def _by_tag(app: App, by: Sequence[str], found: Mapping[Key, Sums]) -> defaultdict[Key, Sums]:
    """Add the sums of the resources up by their present tags. A resource may have several."""
    tags = dict(Resource.objects.filter(app=app).order_by().values_list("id", "tags"))
    place = by.index(TAG)
    by_tag: defaultdict[Key, Sums] = defaultdict(lambda: defaultdict(int))
    for key, sums in found.items():
        for tag in tags.get(key[place], ()):
            of_tag = by_tag[*key[:place], tag, *key[place + 1 :]]
            for name, number in sums.items():
                of_tag[name] += number
    return by_tag


# --- Open hours -----------------------------------------------------------------------------------
def _open_seconds(app: App, period: Period, by: Sequence[str], now: datetime) -> dict[Key, int]:
    """Return the open time by the groups: stored of days that are over, else by the present rules.

    Raises Invalid on `to` if too much would be computed.
    """
    zone = app.default_timezone
    stored = OpenDay.objects.filter(app=app, day__gte=period.start, day__lt=period.end)
    state = ReportState.objects.filter(app=app).only("open_until").first()
    found: dict[Key, int] = {
        key: sums["seconds"] for key, sums in _sum_by(stored, _columns("seconds"), by).items()
    }
    today = local_date(now, zone)
    stored_until = state.open_until + DAY if state and state.open_until else today
    first = max(period.start, stored_until)
    if first >= period.end:
        return found
    ids = list(Resource.objects.for_app(app).order_by("id").values_list("id", flat=True))
    if len(ids) * (period.end - first).days > MAX_OPEN_DAYS:
        text = "Too many days for so many resources: request a shorter range."
        raise Invalid.at("to", text)
    computed = find_open_seconds(app, ids, first, period.end - DAY, zone, now=now)
    for (resource_id, day), seconds in computed.items():
        key = tuple(start_of(group, day) if group in WHEN else resource_id for group in by)
        found[key] = found.get(key, 0) + seconds
    return found


# --- Rows -----------------------------------------------------------------------------------------
def _in_order(app: App, by: Sequence[str], rows: Collection[tuple[Key, Json]]) -> list[Json]:
    """Return the rows with the names of their groups, in the order of names and days."""
    names: dict[uuid.UUID, str] = {}
    for group, model in ((RESOURCE, Resource), (PROJECT, Project)):
        if group in by:
            names = dict(model.objects.filter(app=app).order_by().values_list("id", "name"))
    ordered = sorted(rows, key=lambda row: [_sort_key(value, names) for value in row[0]])
    return [
        {
            **{
                group: _group_value(group, value, names)
                for group, value in zip(by, key, strict=True)
            },
            **figures,
        }
        for key, figures in ordered
    ]


def _sort_key(value: Any, names: Mapping[uuid.UUID, str]) -> tuple[bool, str, str]:
    """By name; what has none comes last."""
    name = names.get(value, "") if isinstance(value, uuid.UUID) else str(value or "")
    return value is None, name.casefold(), str(value)


def _group_value(group: str, value: Any, names: Mapping[uuid.UUID, str]) -> Any:
    if group in (RESOURCE, PROJECT):
        return value and {"id": str(value), "name": names.get(value, "")}
    return value.isoformat() if isinstance(value, date) else value
