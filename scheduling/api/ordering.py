"""The order of a listing, and what has changed since a moment (api.md section 2)."""

from collections.abc import Mapping

from django.db.models import F, OrderBy

from scheduling.api.components import Json, text_of
from scheduling.api.query import QueryParams

DIRECTIONS = ("asc", "desc")
ORDER_NAMES = ("orderBy", "sortedBy")
BOUND: Json = {
    "type": "string",
    "description": "An instant, a date (its midnight), `now`, `tomorrow`, or a time relative to"
    " now such as `-2 days`. Without an offset it is wall time.",
    "examples": ["2026-11-20T10:30:00+01:00", "2026-11-20", "-2 days"],
}
UPDATED_SINCE: Json = BOUND | {
    "description": "Changed then or later. The header `Service-Complete-Until` says before which"
    " moment no further change will appear: continue from there. " + str(BOUND["description"])
}

Orders = Mapping[str, str]  # the name in `orderBy` -> the column


def order_query(orders: Orders) -> dict[str, Json]:
    """The two parameters, for the description."""
    return {
        "orderBy": text_of("What to sort by.", enum=list(orders)),
        "sortedBy": text_of(
            "Ties go by the id, the same way.", enum=list(DIRECTIONS), default="desc"
        ),
    }


def read_order(
    query: QueryParams, orders: Orders, default: str = "created_at", *, ascending: bool = False
) -> tuple[OrderBy, OrderBy]:
    """`orderBy` and `sortedBy`, newest first by default; the id breaks ties the same way.

    ascending: the direction where neither is given.
    """
    chosen, direction = query.choice("orderBy", orders), query.choice("sortedBy", DIRECTIONS)
    column = orders[chosen or default]
    ascending = direction == "asc" or (ascending and not chosen and not direction)
    columns = (F(column), F("id"))
    first, second = (one.asc() if ascending else one.desc() for one in columns)
    return first, second
