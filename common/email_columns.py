"""Columns that are derived from the e-mail address of their row."""

from typing import Any

from django.db import models

from common.email_address import MAX_LENGTH, canonical_address, limit_key


class CanonicalAddressField(models.CharField):
    """The canonical form of the row's `email`, by which rows are found and compared.

    Written whenever the row is saved. `update()` of a query set has to set it, and `save` with
    `update_fields` to name it. A CharField in migrations.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        own = {"max_length": MAX_LENGTH, "editable": False}
        super().__init__(*args, **{**own, **kwargs})

    def derive(self, email: str) -> str:
        return canonical_address(email)

    def pre_save(self, row: Any, add: bool) -> str | None:
        derived = None if row.email is None else self.derive(row.email)
        setattr(row, self.attname, derived)
        return derived

    def deconstruct(self) -> Any:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.CharField", args, kwargs


class LimitKeyField(CanonicalAddressField):
    """What limits count in place of the row's `email` (`limit_key`)."""

    def derive(self, email: str) -> str:
        return limit_key(email)
