"""Every write of a row with `updated_at` stamps it with the start of its own transaction.

Notes each statement that changes such a row without a stamp, with a stamp from elsewhere, or
outside of a transaction that began before the stamp was read. Statements of the tests themselves
are not counted, nor is the transaction that pytest-django puts around a test.
"""

import re
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.db.backends.utils import CursorWrapper

from common.db import updated_at

ROOT = Path(__file__).resolve().parent.parent
# Packages may be installed below the project, in .venv.
PACKAGES = Path(sysconfig.get_path("purelib"))
WRITE = re.compile(r'\s*(INSERT INTO|UPDATE) "?(\w+)"?\s(.*)', re.DOTALL)
ASSIGNED = re.compile(r'(?:SET|,)\s*"?(\w+)"? = ')
OWN_STAMP = "transaction_timestamp()"
# table -> the columns that its record does not show, or that are no change: when a key was last
# used, when a calendar was last read.
UNSTAMPED = {
    "apps_config_app": {"first_steps_ended_at"},
    "apps_config_credential": {"last_used_at"},
    "availability_calendar": {"synced_at"},
    "availability_event": {"exclusive", "unit"},
    "availability_resource": {"longest_buffer"},
    "notifications_webhook": {
        *("secret", "previous_secret", "previous_until", "failures", "failing_since"),
    },
}


@cache
def stamped_tables() -> frozenset[str]:
    models = [model for model in apps.get_models() if not hasattr(model, "history_id")]
    return frozenset(
        model._meta.db_table
        for model in models
        if any(isinstance(field, updated_at.UpdatedAtField) for field in model._meta.fields)
    ) | {"bookings_booking"}


class StampGuard:
    """`offences`: what is wrong with each such statement, with the lines of ours that sent it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.offences: list[tuple[str, str]] = []
        send = CursorWrapper._execute_with_wrappers  # type: ignore[attr-defined]

        def recording(cursor: Any, sql: str, params: Any, many: bool, executor: Any) -> Any:
            fault = fault_of(sql, params)
            if fault and not is_sent_by_a_test():
                stack = "".join(traceback.format_stack(limit=25)[:-1])
                self.offences.append((f"{fault}: {sql:.300}", stack))
            return send(cursor, sql, params, many, executor)

        monkeypatch.setattr(CursorWrapper, "_execute_with_wrappers", recording)

    def check(self) -> None:
        """Fail where there is one."""
        if self.offences:
            fault, stack = self.offences[0]
            pytest.fail(f"{fault}\n{stack}", pytrace=False)


def fault_of(sql: str, params: Any) -> str:
    """What is wrong with the stamp of a statement, if anything."""
    write = WRITE.match(sql)
    if write is None or write[2] not in stamped_tables():
        return ""
    if write[1] == "UPDATE":
        columns = set(ASSIGNED.findall(write[3].partition("WHERE")[0]))
        if not columns - UNSTAMPED.get(write[2], set()):
            return ""
        if "updated_at" not in columns:
            return "no stamp"
    if OWN_STAMP in sql:
        return ""
    if all(block._from_testcase for block in connection.atomic_blocks):
        return "a stamp that was read before the transaction began"
    is_own = connection.vendor != "postgresql" or updated_at.transaction_start() in flat(params)
    return "" if is_own else "a stamp that is not the start of the transaction"


def flat(params: Any) -> Iterator[Any]:
    """Also what stands in the arrays of a statement for many rows."""
    for value in params or ():
        if isinstance(value, list):
            yield from flat(value)
        else:
            yield value


def is_sent_by_a_test() -> bool:
    """Whether the innermost line of ours is one of the tests."""
    frame = sys._getframe(2)
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(ROOT) and not path.is_relative_to(PACKAGES):
            return path.is_relative_to(ROOT / "tests")
        frame = frame.f_back
    return True
