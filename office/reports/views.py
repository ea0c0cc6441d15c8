"""Reports: utilisation, outcomes, lead times, sources and customers of one app, as pictures."""

import csv
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from apps_config.models import App
from bookings.pages.formatting import plain_date_words
from bookings.reports.figures import (
    MONTH,
    PROJECT,
    REPORTS,
    RESOURCE,
    TAG,
    UTILISATION,
    WEEK,
    Period,
    counted_until,
    read_report,
)
from common.errors import Invalid
from common.time.instants import local_date
from common.time.zone_names import current_zone_name
from office.base.dates import moment_words, parse_iso_day
from office.base.lazy_text import LazyText
from office.base.model_admin_pages import find_row
from office.base.permissions import SEE, require, show_page
from office.base.scope import scope_of
from office.bookings.export import escape_formula
from office.calendar.views import app_choice
from office.reports.periods import LAST_WEEKS, OWN, PERIODS
from office.reports.pictures import (
    GROUP_WORDS,
    PICTURES,
    BarTable,
    Column,
    Picture,
    bar_table,
    heat_map,
    hours_words,
    rate_words,
)

DAY = timedelta(days=1)
MAX_WEEKS = 16  # of a picture; longer periods are shown by month
TIME = "time"
GROUPS = (TIME, RESOURCE, PROJECT, TAG)


class Chosen(NamedTuple):
    """What the query of the page chooses."""

    app: App
    name: str  # of the period
    period: Period
    group: str
    now: datetime

    @property
    def unit(self) -> str:
        return WEEK if self.period.days <= 7 * MAX_WEEKS else MONTH

    @property
    def by(self) -> str:
        return self.unit if self.group == TIME else self.group

    def query(self, **changes: str) -> str:
        own = {"from": str(self.period.start), "to": str(self.period.end - DAY)}
        values = {
            "app": str(self.app.pk),
            "period": self.name,
            "by": self.group,
            **(own if self.name == OWN else {}),
        }
        return urlencode(values | changes)

    def read(self, report: str, *by: str) -> list[dict[str, Any]]:
        return read_report(report, self.app, self.period, by, now=self.now)


@require_safe
def show_reports(request: HttpRequest) -> HttpResponse:
    """?app=id&period=last-weeks&by=time; with period=own also from and to (inclusive)."""
    app = _chosen_app(request)
    if app is None:
        return show_page(request, "office/reports.html", title=_("Reports"))
    chosen = _read_choice(request, app)
    until = counted_until(app)
    return show_page(
        request,
        "office/reports.html",
        title=_("Reports"),
        app=app,
        app_choice=app_choice(request, app),
        chosen=chosen,
        periods=_period_links(chosen),
        groups=_group_links(chosen),
        first=chosen.period.start.isoformat(),
        last=(chosen.period.end - DAY).isoformat(),
        days=f"{plain_date_words(chosen.period.start)} – "
        f"{plain_date_words(chosen.period.end - DAY)}",
        zone=current_zone_name(app.default_timezone),
        counted_until=moment_words(until),
        **(_pictures(chosen) if until else {}),
    )


@require_safe
def save_report(request: HttpRequest, name: str) -> HttpResponse:
    """The rows of a report as a CSV file, by what the page shows; utilisation also by time."""
    app = _chosen_app(request)
    if app is None or name not in REPORTS:
        raise Http404
    chosen = _read_choice(request, app)
    by = _groups_of_heat_map(chosen) if name == UTILISATION else (chosen.by,)
    try:
        rows = chosen.read(name, *by)
    except Invalid as refusal:
        return HttpResponse(refusal.message, status=422, content_type="text/plain; charset=utf-8")
    last = chosen.period.end - DAY
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = (
        f'attachment; filename="{name}-{chosen.period.start}-{last}.csv"'
    )
    lines = csv.writer(response)
    if rows:
        lines.writerow(rows[0])
    lines.writerows([_cell(value) for value in row.values()] for row in rows)
    return response


def _chosen_app(request: HttpRequest) -> App | None:
    """The app in the query, else the first one that the account may see."""
    apps = scope_of(request).apps()
    app = find_row(apps, request.GET["app"]) if "app" in request.GET else apps.first()
    if app:
        require(request, app.id, SEE)
    return app


def _read_choice(request: HttpRequest, app: App) -> Chosen:
    now = timezone.now()
    name, group = request.GET.get("period", LAST_WEEKS), request.GET.get("by", TIME)
    first, last = (parse_iso_day(request.GET.get(end)) for end in ("from", "to"))
    today = local_date(now, app.default_timezone)
    if name == OWN and first and last and first <= last:
        period = Period(first, last + DAY)
    else:
        name = name if name in PERIODS else LAST_WEEKS
        period = PERIODS[name].period_at(today)
    return Chosen(app, name, period, group if group in GROUPS else TIME, now)


class Choice(NamedTuple):
    words: LazyText
    link: str
    is_chosen: bool


def _period_links(chosen: Chosen) -> list[Choice]:
    return [
        Choice(offered.words, f"?{chosen.query(period=name)}", name == chosen.name)
        for name, offered in PERIODS.items()
    ]


def _group_links(chosen: Chosen) -> list[Choice]:
    words = {**GROUP_WORDS, TIME: _("Time")}
    return [
        Choice(words[group], f"?{chosen.query(by=group)}", group == chosen.group)
        for group in GROUPS
    ]


# --- Pictures -------------------------------------------------------------------------------------
class ShownPicture(NamedTuple):
    picture: Picture
    figures: Sequence[tuple[Column, str]]
    table: BarTable
    file: str
    endpoint: str


def _pictures(chosen: Chosen) -> dict[str, Any]:
    return {**_utilisation(chosen), "pictures": [_shown(chosen, each) for each in PICTURES]}


def _shown(chosen: Chosen, picture: Picture) -> ShownPicture:
    try:
        total, rows = chosen.read(picture.report)[0], chosen.read(picture.report, chosen.by)
    except Invalid:  # the period is too long
        total, rows = {}, []
    figures = [(column, column.write(total[column.name])) for column in picture.figures if total]
    return ShownPicture(
        picture,
        figures,
        bar_table(picture, chosen.by, rows),
        _file(chosen, picture.report),
        _endpoint(chosen, picture.report, chosen.by),
    )


def _groups_of_heat_map(chosen: Chosen) -> tuple[str, str]:
    """A project has no hours of its own."""
    return TAG if chosen.group == TAG else RESOURCE, chosen.unit


def _utilisation(chosen: Chosen) -> dict[str, Any]:
    """The heat map, and the whole period, unless that is too long."""
    by = _groups_of_heat_map(chosen)
    try:
        total = chosen.read(UTILISATION)[0]
        rows = chosen.read(UTILISATION, *by)
    except Invalid:
        return {"is_too_long": True}
    return {
        "heat": heat_map(*by, list(chosen.period.starts_of(chosen.unit)), rows),
        "heat_file": _file(chosen, UTILISATION),
        "heat_endpoint": _endpoint(chosen, UTILISATION, *by),
        "booked": hours_words(total["booked_seconds"]),
        "open": hours_words(total["open_seconds"]),
        "utilisation": rate_words(total["utilisation"]),
    }


def _file(chosen: Chosen, report: str) -> str:
    return f"{reverse('admin:report_file', args=[report])}?{chosen.query()}"


def _endpoint(chosen: Chosen, report: str, *by: str) -> str:
    start, end = chosen.period
    return f"GET /v2/reports/{report}?from={start}&to={end}&by={','.join(by)}"


def _cell(value: Any) -> Any:
    """A resource and a project by their names."""
    named = value["name"] if isinstance(value, dict) else value
    return escape_formula(named) if isinstance(named, str) else named
