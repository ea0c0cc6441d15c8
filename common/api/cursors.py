"""Cursors of lists: places in an order, which stay where rows before them come or go.

A cursor is the list's path, its order, and the values of the last row that was read, signed: only
values of rows come back as values of a query.
"""

from collections.abc import Sequence
from typing import Any, TypeVar, cast

from django.core.signing import BadSignature, Signer
from django.db.models import F, Model, OrderBy, Q, QuerySet

from common.errors import Invalid

Row = TypeVar("Row", bound=Model)

_SIGNER = Signer(salt="cursors of lists")


def fetch_after(
    rows: QuerySet[Row], cursor: str, *, limit: int, path: str
) -> tuple[list[Row], str | None]:
    """Return the rows after the cursor, and the cursor after them; None: there are no more.

    rows: in an order of columns without null, the last of which is unique. cursor: empty for the
    start. path: that of the list. Raises Invalid at `cursor`.
    """
    order = _order_of(rows)
    names = [f"order_{number}" for number in range(len(order))]
    columns = {name: F(column.removeprefix("-")) for name, column in zip(names, order, strict=True)}
    # As annotations, they are compared in the joins of the order.
    keyed = rows.annotate(**columns).filter(after_cursor(cursor, path, order, names))
    found = list(keyed[: limit + 1])
    if len(found) <= limit:
        return found, None
    last = found[limit - 1]
    return found[:limit], write_cursor(path, order, [getattr(last, name) for name in names])


def after_cursor(cursor: str, path: str, order: Sequence[str], names: Sequence[str]) -> Q:
    """Return the condition of the rows after the cursor; all rows if it is empty. names: those of
    the columns of the order in the query. Raises Invalid at `cursor`.
    """
    if not cursor:
        return Q()
    signs = ["-" if column.startswith("-") else "" for column in order]
    signed = [sign + name for sign, name in zip(signs, names, strict=True)]
    return rows_after(signed, read_cursor(cursor, path, order))


def _order_of(rows: QuerySet[Any]) -> list[str]:
    """Return the columns by which the rows are ordered, each once, `-` for descending."""
    found: dict[str, str] = {}
    for part in rows.query.order_by:
        if isinstance(part, OrderBy):
            sign, column = "-" if part.descending else "", cast(Any, part.expression).name
        else:
            sign, column = "", str(part)  # only ties are ordered without an expression
        found.setdefault(column, sign + column)
    return list(found.values())


def rows_after(order: Sequence[str], values: Sequence[Any]) -> Q:
    """Return the condition of the rows after that with these values in the order.

    `created_at <= x` stands apart, because the index of the order serves it:

    >>> rows_after(["-created_at", "id"], ["x", "y"])  # doctest: +NORMALIZE_WHITESPACE
    <Q: (AND: ('created_at__lte', 'x'), (OR: ('created_at__lt', 'x'), ('id__gt', 'y')))>
    """
    (column, *columns), (value, *others) = order, values
    lookup = f"{column.removeprefix('-')}__{'lt' if column.startswith('-') else 'gt'}"
    beyond = Q((lookup, value))
    return Q((f"{lookup}e", value)) & (beyond | rows_after(columns, others)) if columns else beyond


def write_cursor(path: str, order: Sequence[str], values: Sequence[Any]) -> str:
    return _SIGNER.sign_object([path, *order, *map(str, values)])


def read_cursor(cursor: str, path: str, order: Sequence[str]) -> list[str]:
    """Return the values of a cursor of this list and order. Raises Invalid at `cursor`."""
    try:
        written: list[str] = _SIGNER.unsign_object(cursor)
    except BadSignature:
        written = []
    if written[: len(order) + 1] != [path, *order]:
        raise Invalid.at("cursor", "Is no cursor of this list in this order.")
    return written[len(order) + 1 :]
