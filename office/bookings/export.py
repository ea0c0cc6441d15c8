"""Export of the filtered booking list as CSV, fetched page by page: it shows progress, and no
request takes long.
"""

import csv
import io
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date

from dateutil.relativedelta import relativedelta
from django.contrib.admin.views.main import ORDER_VAR, PAGE_VAR
from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps_config.models import SecurityEvent
from apps_config.security_events import record_export
from bookings.models import BookedStep, Booking, further_events
from bookings.pages.formatting import first_known_zone
from common.time.instants import format_instant
from office.base.applied_filters import applied_filters
from office.base.dates import office_zone, parse_iso_day
from office.base.local_time import today_in
from office.base.model_admin import OfficeAdmin
from office.bookings.periods import PERIOD, PERIODS, period_days

BATCH = 1000
CURSOR = "after"
COLUMNS = (
    "id",
    "state",
    "graph",
    "start",
    "end",
    "timezone",
    "what",
    "where",
    "resource",
    "project",
    "customers",
    "emails",
    "phones",
    "created_at",
    "quantity",
    "party_size",
    "place",
    "resources",
    "steps",
)
# Spreadsheets read texts that start with these as formulas.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def show_export(page: OfficeAdmin[Booking], request: HttpRequest) -> HttpResponse:
    """Render the page that fetches the rows and offers them as a file."""
    query = request.GET.copy()
    query.pop(CURSOR, None)
    query.pop(PAGE_VAR, None)
    query.pop(ORDER_VAR, None)  # the file has all rows, the newest first
    changelist = page.get_changelist_instance(_with_query(request, query))
    rows = reverse("admin:bookings_booking_export_rows")
    return page.show_page(
        request,
        "office/export.html",
        title=_("Export as CSV"),
        total=changelist.queryset.order_by().count(),
        filters=[(each.title, each.value) for each in applied_filters(changelist)],
        file_name=file_name(*_chosen_days(request, query)),
        rows_url=f"{rows}?{query.urlencode()}",
        back_url=f"{page.list_url()}?{query.urlencode()}",
    )


def export_rows(page: OfficeAdmin[Booking], request: HttpRequest) -> HttpResponse:
    """Return `{csv, count, next}`: the next rows of the filtered list, the newest first.

    `next` is the value of `after` for the next request, null at the end. The first part begins
    with the column names.
    """
    query = request.GET.copy()
    after = str(query.pop(CURSOR, [""])[0])
    query.pop(ORDER_VAR, None)
    bookings = page.get_changelist_instance(_with_query(request, query)).queryset.order_by("-id")
    try:
        bookings = bookings.filter(id__lt=uuid.UUID(after)) if after else bookings
    except ValueError:
        return JsonResponse({"error": "`after` must be an id."}, status=422)
    batch = list(bookings.prefetch_related(further_events())[:BATCH])
    for app_id, count in Counter(booking.app_id for booking in batch).items():
        about = {"bookings": count}
        record_export(SecurityEvent.BOOKINGS_EXPORTED, app_id=app_id, about=about)
    out = io.StringIO()
    lines = csv.writer(out)
    if not after:
        lines.writerow(COLUMNS)
    lines.writerows(_row(booking) for booking in batch)
    following = str(batch[-1].id) if len(batch) == BATCH else None
    return JsonResponse({"csv": out.getvalue(), "count": len(batch), "next": following})


def _chosen_days(request: HttpRequest, query: QueryDict) -> tuple[date | None, date | None]:
    """Return the first and the last day that the list is filtered by."""
    period = query.get(PERIOD)
    if period in PERIODS:
        return period_days(period, today_in(office_zone(request), timezone.now()))
    return parse_iso_day(query.get("event__start_from")), parse_iso_day(
        query.get("event__start_to")
    )


def file_name(first: date | None, last: date | None) -> str:
    """Return `bookings-2026-10.csv` for the days of one month."""
    if first is None or last is None:
        return "bookings.csv"
    if first.day == 1 and last == first + relativedelta(months=1, days=-1):
        return f"bookings-{first:%Y-%m}.csv"
    return f"bookings-{first}-{last}.csv"


def _with_query(request: HttpRequest, query: QueryDict) -> HttpRequest:
    """Return the request with the list's filters only."""
    vars(request)["GET"] = query
    return request


def _row(booking: Booking) -> Sequence[str]:
    event, people = booking.event, booking.customers.all()
    place = first_known_zone(booking.resource.timezone)
    return [
        escape_formula(text)
        for text in (
            str(booking.id),
            booking.state,
            booking.graph,
            format_instant(event.start, place),
            format_instant(event.end, place),
            place,
            event.what,
            event.where,
            booking.resource.name,
            booking.project.name if booking.project else "",
            _joined(person.name for person in people),
            _joined(person.email for person in people),
            _joined(person.phone for person in people),
            format_instant(booking.created_at, place),
            str(booking.units),
            str(booking.party_size or ""),
            booking.place or "",
            _joined(resource.name for resource in booking.all_resources()),
            _joined(_step_words(step, place) for step in booking.steps()),
        )
    ]


def _step_words(step: BookedStep, zone: str) -> str:
    """Return `cleaning 2026-11-24T09:00:00+01:00/2026-11-24T09:30:00+01:00 Hanna`."""
    times = "/".join(format_instant(instant, zone) for instant in (step.start, step.end))
    return f"{step.name} {times} {', '.join(resource.name for resource in step.resources)}"


def _joined(texts: Iterator[str]) -> str:
    return "; ".join(filter(None, texts))


def escape_formula(text: str) -> str:
    return f"'{text}" if text.startswith(FORMULA) else text
