"""Pages of a listing (api.md section 2)."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from django.conf import settings
from django.http import HttpRequest
from django.utils.encoding import iri_to_uri

from common.api.fields import is_short_number
from common.errors import Invalid

DEFAULT_LIMIT = 50
MAX_LIMIT = 1000
MAX_PAGE = 1_000_000
PAGE_NAMES = ("limit", "page", "cursor")


class Page(NamedTuple):
    """The requested page: `queryset[page.start : page.stop]`; or with a cursor, the rows after it,
    from the start if it is empty.
    """

    limit: int
    number: int
    per_page: str | int
    cursor: str | None = None

    @classmethod
    def read(cls, request: HttpRequest) -> "Page":
        """Return the page of the query string. Raises Invalid at `limit`, `page` or `cursor`."""
        limit = read_number(request, "limit", DEFAULT_LIMIT, MAX_LIMIT)
        number = read_number(request, "page", 1, MAX_PAGE)
        cursor = request.GET.get("cursor")
        if cursor is not None and "page" in request.GET:
            raise Invalid.at("cursor", "Can't be combined with page.")
        return cls(limit, number, request.GET.get("limit", DEFAULT_LIMIT), cursor)

    @property
    def start(self) -> int:
        return (self.number - 1) * self.limit

    @property
    def stop(self) -> int:
        return self.start + self.limit


def read_number(request: HttpRequest, name: str, default: int, most: int) -> int:
    values = request.GET.getlist(name)
    if not values:
        return default
    if len(values) > 1 or not is_short_number(values[0]) or not 1 <= int(values[0]) <= most:
        raise Invalid.at(name, f"Must be one integer from 1 to {most}.")
    return int(values[0])


def list_envelope(
    request: HttpRequest, page: Page, total: int, rows: Sequence[Any]
) -> dict[str, Any]:
    """Return the response of a listing: `rows` of `page`, out of `total`, with absolute URLs."""
    last = max(1, -(-total // page.limit))
    following = page.number + 1 if page.number < last else None
    previous = min(page.number - 1, last) if page.number > 1 else None
    base = address_before(request, page, "page")
    return {
        "total": total,
        "per_page": page.per_page,
        "current_page": page.number,
        "last_page": last,
        "first_page_url": f"{base}1",
        "last_page_url": f"{base}{last}",
        "next_page_url": following and f"{base}{following}",
        "prev_page_url": previous and f"{base}{previous}",
        "from": page.start + 1 if rows else None,
        "to": page.start + len(rows) if rows else None,
        "data": rows,
    }


def cursor_envelope(
    request: HttpRequest, page: Page, next_cursor: str | None, rows: Sequence[Any]
) -> dict[str, Any]:
    """Return the response of a listing that is read by cursor. Nothing is counted."""
    base = address_before(request, page, "cursor")
    return {
        "total": None,
        "per_page": page.per_page,
        "current_page": None,
        "last_page": None,
        "first_page_url": base,
        "last_page_url": None,
        "next_page_url": next_cursor and base + quote(next_cursor),
        "prev_page_url": None,
        "from": None,
        "to": None,
        "next_cursor": next_cursor,
        "data": rows,
    }


def address_before(request: HttpRequest, page: Page, name: str) -> str:
    """Return the listing's URL up to the value of the parameter `name`; other parameters keep their
    order.
    """
    kept = [
        (name, value)
        for name, values in request.GET.lists()
        for value in values
        if name not in PAGE_NAMES
    ]
    query = urlencode([*kept, ("limit", page.limit)])
    return settings.PUBLIC_URL + iri_to_uri(f"{request.path}?{query}&{name}=")
