"""Pages of lists and of changes, as both clients read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from scheduling_client.model import Model
from scheduling_client.models import ListedChange

M = TypeVar("M", bound=Model)


@dataclass(frozen=True)
class Page(Generic[M]):
    """One page of a list. total: the objects on all pages. last: the number of the last page."""

    items: Sequence[M]
    number: int
    last: int
    total: int

    @classmethod
    def read(cls, body: Mapping[str, Any], model: type[M]) -> Page[M]:
        items = [model(each) for each in body["data"]]
        return cls(items, body["current_page"], body["last_page"], body["total"])


@dataclass(frozen=True)
class ChangesPage:
    """Changes, the cursor after the last of them, and whether there are more at once."""

    changes: Sequence[ListedChange]
    cursor: str
    has_more: bool

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> ChangesPage:
        changes = [ListedChange(each) for each in body["data"]]
        return cls(changes, body["next_cursor"], body["has_more"])
