"""The values of a source's row. Unusable names what is missing or of another type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from scheduling_client.importing.records import Kind, Record, Unreadable, Unusable
from scheduling_client.importing.times import instant, zone_name

MAX_TEXT = 8000


class Fields:
    """One JSON object of a source."""

    def __init__(self, value: Any) -> None:
        if not isinstance(value, Mapping):
            raise Unusable("The row is no object.")
        self.values = value

    def text(self, name: str) -> str:
        """Return a text that is not blank. Numbers are texts too, as ids are."""
        found = self.optional_text(name)
        if found is None:
            raise Unusable(f"`{name}` is missing.")
        return found

    def optional_text(self, name: str) -> str | None:
        value = self.values.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if value is not None and not isinstance(value, str):
            raise Unusable(f"`{name}` is no text.")
        return (value or "").strip()[:MAX_TEXT] or None

    def number(self, name: str, default: int = 0) -> int:
        """Return a whole number, such as minutes."""
        value = self.values.get(name)
        if isinstance(value, str) and value.isascii() and value.isdecimal():
            value = int(value)
        if value is None or value == "":
            return default
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise Unusable(f"`{name}` is no whole number.")
        return value

    def length(self, name: str) -> int:
        """Return minutes above 0."""
        return self.number(name) or missing(name)

    def instant(self, name: str, zone: str | None = None) -> datetime:
        return instant(self.text(name), zone)

    def zone(self, name: str, default: str | None = None) -> str:
        return zone_name(self.optional_text(name) or default or missing(name))

    def object(self, name: str) -> Fields:
        """Return an object; one that is absent is empty."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, Mapping):
            raise Unusable(f"`{name}` is no object.")
        return Fields(value or {})

    def items(self, name: str) -> list[Any]:
        value = self.values.get(name)
        if value is not None and not isinstance(value, list):
            raise Unusable(f"`{name}` is no list.")
        return value or []

    def objects(self, name: str) -> list[Fields]:
        return [Fields(each) for each in self.items(name)]

    def flag(self, name: str) -> bool:
        return self.values.get(name) is True


def missing(name: str) -> Any:
    raise Unusable(f"`{name}` is missing.")


def read_rows(
    kind: Kind, rows: Iterable[Any], read: Callable[[Fields], Record], *, id_name: str = "id"
) -> Iterator[Record]:
    """Read each row; one that raises Unusable becomes Unreadable, and the others go on."""
    for number, row in enumerate(rows, 1):
        try:
            yield read(Fields(row))
        except Unusable as error:
            known = row.get(id_name) if isinstance(row, Mapping) else None
            key = str(known) if known not in (None, "") else f"row {number}"
            yield Unreadable(kind=kind, key=key[:200], reason=str(error))
