"""A filtered list of bookings as CSV: fetched page by page, so that a long one shows its progress
and no request lasts long."""

import csv
import io
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from django.contrib.admin.views.main import PAGE_VAR
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.response import TemplateResponse
from django.urls import reverse

from bookings.models import Booking
from bookings.wording import known_zone
from scheduling.api.instants import format_instant

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
)
# A spreadsheet takes what begins so for a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def export_page(page: Any, request: HttpRequest) -> HttpResponse:
    """The page that collects the rows and offers them as a file."""
    query = request.GET.copy()
    query.pop(CURSOR, None)
    query.pop(PAGE_VAR, None)
    changelist = page.get_changelist_instance(_narrowed(request, query))
    rows = reverse("admin:bookings_booking_export_rows")
    back = reverse("admin:bookings_booking_changelist")
    context = {
        **page.admin_site.each_context(request),
        "opts": Booking._meta,
        "title": "Export as CSV",
        "total": changelist.queryset.order_by().count(),
        "rows_url": f"{rows}?{query.urlencode()}",
        "back_url": f"{back}?{query.urlencode()}",
    }
    return TemplateResponse(request, "office/export.html", context)


def export_rows(page: Any, request: HttpRequest) -> HttpResponse:
    """`{csv, count, next}`: the next rows of the filtered list, the newest first; `next` is what
    `after` has to be then, null at the end. The first piece begins with the columns' names."""
    query = request.GET.copy()
    after = query.pop(CURSOR, [""])[0]
    bookings = page.get_changelist_instance(_narrowed(request, query)).queryset.order_by("-id")
    try:
        bookings = bookings.filter(id__lt=uuid.UUID(after)) if after else bookings
    except ValueError:
        return JsonResponse({"error": "`after` must be an id."}, status=422)
    found = list(bookings[:BATCH])
    out = io.StringIO()
    lines = csv.writer(out)
    if not after:
        lines.writerow(COLUMNS)
    lines.writerows(_row(booking) for booking in found)
    following = str(found[-1].id) if len(found) == BATCH else None
    return JsonResponse({"csv": out.getvalue(), "count": len(found), "next": following})


def _narrowed(request: HttpRequest, query: Any) -> HttpRequest:
    """The request as the list would get it: with its filters alone."""
    request.GET = query
    return request


def _row(booking: Booking) -> Sequence[str]:
    event, people = booking.event, booking.people
    place = known_zone(booking.resource.timezone)
    return [
        _harmless(text)
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
        )
    ]


def _joined(texts: Iterator[str]) -> str:
    return "; ".join(filter(None, texts))


def _harmless(text: str) -> str:
    return f"'{text}" if text.startswith(FORMULA) else text
