"""Pages of listings, and the numbers of rows of the longest lists (`ListingTally`)."""

from typing import Any, TypeVar

from django.db.models import Model, QuerySet, Sum
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response

from apps_config.models import App, ListingTally
from common.api.cursors import fetch_after
from common.api.pagination import Page, cursor_envelope, list_envelope

Row = TypeVar("Row", bound=Model)

# Up to so many keys are read without a LIMIT. For a LIMIT, PostgreSQL may follow the index of the
# order, and read most rows of the app until it has met those that match.
FEW = 20_000
# From this row on, the rows that OFFSET skips are read in the index alone.
DEEP = 1000


def tally_of(app: App, listing: str, **parts: Any) -> QuerySet[ListingTally]:
    """Return the tally of the app's list, or of those parts of it."""
    return ListingTally.objects.filter(app=app, listing=listing, **parts)


def fetch_page(
    page: Page, rows: QuerySet[Row], *, tally: QuerySet[ListingTally] | None = None
) -> tuple[int, list[Row]]:
    """Return the number of rows and those of the page; `rows` is filtered and ordered.

    tally: counts `rows`; without it, the database counts them.
    """
    total = rows.count() if tally is None else tally.aggregate(total=Sum("count"))["total"] or 0
    stop = min(page.stop, total)
    if page.start >= stop:
        return total, []
    if total <= page.limit:
        return total, list(rows)[:total]
    keys = rows.prefetch_related(None).values_list("pk", flat=True)
    if tally is None and total <= FEW:
        found = rows.filter(pk__in=list(keys)[page.start : stop])
    elif page.start >= DEEP:
        found = rows.filter(pk__in=list(keys[page.start : stop]))
    else:
        found = rows[page.start : stop]
    return total, list(found)


class EnvelopePagination(BasePagination):
    """One page of an ordered query set, in the envelope of the API (api.md section 2)."""

    def paginate_queryset(
        self,
        queryset: Any,
        request: Request,
        view: Any = None,
        *,
        tally: QuerySet[ListingTally] | None = None,
    ) -> list[Any]:
        """Return the rows of the page. tally: counts them; see `fetch_page`.

        Raises Invalid at `limit`, `page` or `cursor`.
        """
        self.request, self.page = request, Page.read(request)
        limit, cursor = self.page.limit, self.page.cursor
        if cursor is not None:
            rows, self.next_cursor = fetch_after(queryset, cursor, limit=limit, path=request.path)
        else:
            self.total, rows = fetch_page(self.page, queryset, tally=tally)
        return rows

    def get_paginated_response(self, data: list[Any]) -> Response:
        if self.page.cursor is not None:
            return Response(cursor_envelope(self.request, self.page, self.next_cursor, data))
        return Response(list_envelope(self.request, self.page, self.total, data))
