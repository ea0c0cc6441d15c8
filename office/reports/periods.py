"""The periods that the reports offer."""

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from typing import NamedTuple

from dateutil.relativedelta import relativedelta
from django.utils.translation import gettext_lazy as _

from bookings.reports.figures import Period
from office.base.lazy_text import LazyText

DAY, MONTH = timedelta(days=1), relativedelta(months=1)
OWN = "own"


class OfferedPeriod(NamedTuple):
    words: LazyText
    period_at: Callable[[date], Period]  # of a day


def _last_weeks(today: date) -> Period:
    """Whole weeks until the last Sunday."""
    monday = today - today.weekday() * DAY
    return Period(monday - 28 * DAY, monday)


def _this_month(today: date) -> Period:
    first = today.replace(day=1)
    return Period(first, first + MONTH)


def _last_month(today: date) -> Period:
    first = today.replace(day=1)
    return Period(first - MONTH, first)


def _this_year(today: date) -> Period:
    return Period(date(today.year, 1, 1), date(today.year + 1, 1, 1))


LAST_WEEKS = "last-weeks"
PERIODS: Mapping[str, OfferedPeriod] = {
    LAST_WEEKS: OfferedPeriod(_("Last 4 weeks"), _last_weeks),
    "this-month": OfferedPeriod(_("This month"), _this_month),
    "last-month": OfferedPeriod(_("Last month"), _last_month),
    "this-year": OfferedPeriod(_("This year"), _this_year),
}
