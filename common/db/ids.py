"""Ids that carry the home of their app: UUIDs of version 8 (RFC 9562) in the layout of version 7.

    48 bits  Unix milliseconds
     4 bits  version (8)
    12 bits  counter within the millisecond
     2 bits  variant
     8 bits  home
    54 bits  random

New rows are appended to every index. The home of an app is a number from 0 to 255 that never
changes; every id of a row of the app carries it.
"""

import os
import threading
import time
import uuid
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models.base import DEFERRED
from django.db.models.query_utils import DeferredAttribute

_VERSION_8 = 0x8 << 76
_VARIANT = 0x2 << 62
_COUNTER_BITS = 12
_COUNTER_MASK = (1 << _COUNTER_BITS) - 1
_HOME_SHIFT = 54
_RANDOM_MASK = (1 << _HOME_SHIFT) - 1


class _Clock(threading.local):
    """The millisecond of the last id of this thread, and the number of ids made in it."""

    millisecond = 0
    count = 0


_clock = _Clock()


def new_id() -> uuid.UUID:
    """Make an id of this installation's home: for apps, accounts and access tokens."""
    return _make_id(settings.HOME_NUMBER)


def new_tenant_id(app_id: uuid.UUID) -> uuid.UUID:
    """Make the id of a row of the app."""
    return _make_id(home_of_id(app_id))


def home_of_id(identifier: uuid.UUID) -> int:
    """Return the home of the app that the id's row belongs to."""
    return identifier.int >> _HOME_SHIFT & 0xFF


def id_after(earlier: uuid.UUID, app_id: uuid.UUID) -> uuid.UUID:
    """Make the id of a row of the app that comes after `earlier`, made by whatever clock."""
    made = new_tenant_id(app_id)
    if made > earlier:
        return made
    moment = (earlier.int >> 80 << _COUNTER_BITS) + (earlier.int >> 64 & _COUNTER_MASK)
    return _id_at(moment + 1, home_of_id(app_id))


def _make_id(home: int) -> uuid.UUID:
    """The counter keeps the ids of one thread in order (RFC 9562, 6.2, method 1), so that rows
    written in the same instant are listed in that order.
    """
    now = time.time_ns() // 1_000_000
    if now == _clock.millisecond:
        _clock.count += 1
    else:
        _clock.millisecond, _clock.count = now, 0
    # After 4,096 ids in a millisecond the counter overflows into the next.
    return _id_at((now << _COUNTER_BITS) + _clock.count, home)


def _id_at(moment: int, home: int) -> uuid.UUID:
    """`moment`: milliseconds, followed by the bits of the counter."""
    millisecond, counter = divmod(moment, 1 << _COUNTER_BITS)
    random = int.from_bytes(os.urandom(7)) & _RANDOM_MASK
    low = _VARIANT | home << _HOME_SHIFT | random
    return uuid.UUID(int=millisecond << 80 | _VERSION_8 | counter << 64 | low)


def least_id(instant: datetime) -> uuid.UUID:
    """Return a lower bound of the ids made since `instant`, to find recent rows by the index."""
    return uuid.UUID(int=int(instant.timestamp() * 1000) << 80)


class _MadeWhenRead(DeferredAttribute):
    """Makes the id of a new row when it is first read; None until the row has its app."""

    field: "TenantIdField"

    def __get__(self, row: Any, model: type[models.Model] | None = None) -> Any:
        if row is None:
            return self
        made = self.field.make_id(row)
        if made is not None:
            row.__dict__[self.field.attname] = made
        return made


class TenantIdField(models.UUIDField):
    """The primary key of a row of an app, with the app's home; a UUIDField in migrations.

    The id is made when it is first read, from the row's `app_id`; `owner` names the relation whose
    row has it, for a model without. A row whose app may be null belongs to this installation then.
    Saving a row without an app raises ValueError.
    """

    descriptor_class = _MadeWhenRead
    # `save()` takes a field without a value for a deferred one, unless the database generates it.
    generated = None  # type: ignore[assignment]

    def __init__(self, *args: Any, owner: str = "", **kwargs: Any) -> None:
        self.owner = owner
        super().__init__(*args, **{"default": new_id, "editable": False, **kwargs})

    def get_default(self) -> Any:
        return DEFERRED

    def make_id(self, row: models.Model) -> uuid.UUID | None:
        """Return a new id for the row; None if its app is not known yet."""
        app_id = getattr(getattr(row, self.owner, None) if self.owner else row, "app_id", None)
        if app_id is not None:
            return new_tenant_id(app_id)
        return new_id() if not self.owner and row._meta.get_field("app").null else None

    def get_pk_value_on_save(self, row: models.Model) -> uuid.UUID:
        made = self.make_id(row)
        if made is None:
            raise ValueError(f"{row.__class__.__name__}: a row without an app has no id.")
        return made

    def pre_save(self, row: models.Model, add: bool) -> uuid.UUID:
        return getattr(row, self.attname) or self.get_pk_value_on_save(row)

    def deconstruct(self) -> Any:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.UUIDField", args, kwargs
