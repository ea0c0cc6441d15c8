"""Pages of listings, and the numbers of rows of the longest lists (`ListingTally`)."""

from typing import Any, TypeVar

from django.db.models import Model, QuerySet, Sum

from apps_config.models import App, ListingTally
from common.api.pagination import Page

Row = TypeVar("Row", bound=Model)


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
    return total, list(rows[page.start : min(page.stop, total)]) if page.start < total else []
