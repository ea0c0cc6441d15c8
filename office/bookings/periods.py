"""Periods that move on with the days: filters of the list of bookings."""

from collections.abc import Mapping
from datetime import date, timedelta

from dateutil.relativedelta import relativedelta
from django.utils.translation import gettext_lazy as _

from office.base.lazy_text import LazyText

PERIOD = "period"
PERIODS: Mapping[str, LazyText] = {
    "today": _("Today"),
    "tomorrow": _("Tomorrow"),
    "this-week": _("This week"),
    "last-month": _("Last month"),
}
DAY = timedelta(days=1)


def period_days(period: str | None, today: date) -> tuple[date, date]:
    """Return the first and the last day of one of PERIODS. Weeks begin on Monday."""
    if period == "today":
        return today, today
    if period == "tomorrow":
        return today + DAY, today + DAY
    if period == "this-week":
        monday = today - today.weekday() * DAY
        return monday, monday + 6 * DAY
    first = today.replace(day=1) - relativedelta(months=1)
    return first, today.replace(day=1) - DAY
