"""The order of a listing, and `updated_since` (api.md section 2)."""

from collections.abc import Mapping

from django.db.models import F, OrderBy

from common.api.query import QueryParams
from common.openapi.components import Json, text_response

DIRECTIONS = ("asc", "desc")
ORDER_NAMES = ("orderBy", "sortedBy")
BOUND: Json = {
    "type": "string",
    "description": "An instant, a date (its midnight), `now`, `tomorrow`, or a time relative to"
    " now such as `-2 days`. Without an offset it is wall time.",
    "examples": ["2026-11-20T10:30:00+01:00", "2026-11-20", "-2 days"],
}
CHANGED_PARAMETERS: dict[str, Json] = {
    "updated_since": BOUND
    | {
        "description": "Changed then or later. The header `Service-Complete-Until` says before"
        " which moment no further change will appear: continue from there. "
        + str(BOUND["description"])
    }
}

Orders = Mapping[str, str]  # value of `orderBy` -> column


def order_parameters(orders: Orders) -> dict[str, Json]:
    """Return the OpenAPI parameters `orderBy` and `sortedBy`."""
    return {
        "orderBy": text_response("What to sort by.", enum=list(orders)),
        "sortedBy": text_response(
            "Ties go by the id, the same way.", enum=list(DIRECTIONS), default="desc"
        ),
    }


def read_order(
    query: QueryParams, orders: Orders, default: str = "created_at", *, ascending: bool = False
) -> tuple[OrderBy, OrderBy]:
    """Return the order by `orderBy` and `sortedBy`; ties are ordered by id, in the same direction.

    ascending: the default direction if neither parameter is given.
    """
    chosen, direction = query.choice("orderBy", orders), query.choice("sortedBy", DIRECTIONS)
    column = orders[chosen or default]
    ascending = direction == "asc" or (ascending and not chosen and not direction)
    columns = (F(column), F("id"))
    first, second = (column.asc() if ascending else column.desc() for column in columns)
    return first, second
