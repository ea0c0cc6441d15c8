import itertools
import math
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from django.core.management.commands import flush
from django.db import connection, transaction
from django.db.backends.base.introspection import BaseDatabaseIntrospection
from django.db.backends.postgresql.operations import DatabaseOperations
from django.template import Context, Template
from django.test import override_settings
from django.test.signals import template_rendered
from psycopg._preparing import PrepareManager

from access import log_in_limits
from apps_config import authentication, public_limits
from common.limits import rate_limit
from common.limits.rate_limit import RateWindow, RefusedKeys
from notifications.outbox import dispatcher
from notifications.outbox.expansion import expand_changes
from tests.browser import browser, chromium
from tests.example_requests import example_app, example_feed
from tests.network_guard import NetworkGuard
from tests.services import migrated_template
from tests.stamp_guard import StampGuard
from tests.world import NOW, Answer, Caller, Tenant, stop_transaction_clock

__all__ = ["browser", "chromium", "example_app", "example_feed"]

_numbers = itertools.count(1)
MADE_BY_MIGRATE = ("django_content_type", "auth_permission")
FAST = {
    # Each test client would have WhiteNoise read the folders of all static files.
    "WHITENOISE_AUTOREFRESH": True,
    # One password takes a fifth of a second to hash on purpose.
    "PASSWORD_HASHERS": ["django.contrib.auth.hashers.MD5PasswordHasher"],
}


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """SQLite's file is a copy that stands there already; it goes with the run's folder."""
    return os.environ["TEST_ENGINE"] == "sqlite"


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """The database of pytest-django begins as a copy, too: `migrate` finds nothing to do there."""
    template = migrated_template()
    if os.environ["TEST_ENGINE"] == "sqlite":
        file = Path(os.environ["VAR_DIR"]) / f"{uuid.uuid4().hex}.sqlite3"
        shutil.copyfile(template, file)
        connection.settings_dict["TEST"]["NAME"] = str(file)
    else:
        connection.settings_dict["TEST"]["TEMPLATE"] = template


@pytest.fixture(scope="session", autouse=True)
def _fast_settings() -> Iterator[None]:
    """What only costs time here; services in processes of their own run without it."""
    with override_settings(**FAST):
        yield


@pytest.fixture(scope="session", autouse=True)
def _template_signals_only_of_pages(django_test_environment: None) -> Iterator[None]:
    """Django's test client stores a copy of the context of each part that a page includes, and an
    office page has hundreds. Tests read the context of the page alone."""

    def render(template: Template, context: Context) -> str:
        if context.template is template:
            template_rendered.send(sender=template, template=template, context=context)
        return template.nodelist.render(context)

    patch = pytest.MonkeyPatch()
    patch.setattr(Template, "_render", render)
    yield
    patch.undo()


@pytest.fixture(scope="session", autouse=True)
def _fast_flush() -> Iterator[None]:
    """After a test with real transactions: TRUNCATE makes new files for 51 tables and their indexes
    (0.2 s), DELETE of a few rows takes 2 ms. Only a superuser may switch the triggers off.

    What `migrate` itself has stored of the models stays: to make it again takes 50 ms."""
    truncate = DatabaseOperations.sql_flush

    def delete(operations: Any, style: Any, tables: list[str], **options: Any) -> list[str]:
        with operations.connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('is_superuser')")
            if cursor.fetchone() != ("on",) or options.get("reset_sequences"):
                return truncate(operations, style, tables, **options)
        rows = [f"DELETE FROM {operations.quote_name(table)}" for table in tables]
        return ["SET LOCAL session_replication_role = replica", *rows]

    def list_tables(introspection: Any, **options: Any) -> list[str]:
        tables = table_names(introspection, **options)
        return [table for table in tables if table not in MADE_BY_MIGRATE]

    patch = pytest.MonkeyPatch()
    patch.setattr(DatabaseOperations, "sql_flush", delete)
    table_names = BaseDatabaseIntrospection.django_table_names
    patch.setattr(BaseDatabaseIntrospection, "django_table_names", list_tables)
    patch.setattr(flush, "emit_post_migrate_signal", lambda *args: None)
    yield
    patch.undo()


@pytest.fixture(scope="session", autouse=True)
def _kept_statements() -> Iterator[None]:
    """At a ROLLBACK, psycopg discards its prepared statements: what they name may have been made
    since BEGIN. Each test ends with a ROLLBACK, and after it PostgreSQL would plan every statement
    anew. What else discards them does so here, too."""
    clear = PrepareManager.clear
    reasons = (b"DROP", b"ALTER", b"DISCARD ALL", b"DEALLOCATE ALL")

    def discard(manager: PrepareManager, prepare: Any, results: Sequence[Any]) -> bool:
        statuses = [result.command_status or b"" for result in results]
        found = any(status.startswith(reasons) for status in statuses)
        return clear(manager) if found else False

    patch = pytest.MonkeyPatch()
    patch.setattr(PrepareManager, "_should_discard", discard)
    patch.setattr(PrepareManager, "clear", lambda manager: False)
    patch.setattr(PrepareManager, "prepared_max", 1000)
    yield
    patch.undo()


@pytest.fixture(autouse=True)
def _fresh_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process counts in memory starts anew for every test; CPU time, of which the first
    request takes much, does not count.
    """
    monkeypatch.setattr(authentication, "refused_logins", RefusedKeys())
    monkeypatch.setattr(log_in_limits, "refused_networks", RefusedKeys())
    monkeypatch.setattr(public_limits, "refused_keys", RefusedKeys())
    limit = authentication.request_rates.limit
    monkeypatch.setattr(authentication, "request_rates", RateWindow(limit))
    monkeypatch.setattr(rate_limit, "CPU_SECONDS", math.inf)


@pytest.fixture(autouse=True)
def _no_linger(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of the dispatcher in the process of a test ends once nothing is due."""
    monkeypatch.setattr(dispatcher, "LINGER", 0)


@pytest.fixture(autouse=True)
def network_guard(monkeypatch: pytest.MonkeyPatch) -> Iterator[NetworkGuard]:
    """Fails a test in which a socket was connected inside a transaction."""
    guard = NetworkGuard(monkeypatch)
    yield guard
    guard.check()


@pytest.fixture(autouse=True)
def stamp_guard(monkeypatch: pytest.MonkeyPatch) -> Iterator[StampGuard]:
    """Fails a test in which a changed row was not stamped with the start of its transaction."""
    guard = StampGuard(monkeypatch)
    yield guard
    guard.check()


@pytest.fixture(scope="module")
def module_transaction(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """For rows that are made once for all tests of a module: what a test of the fixture `db`
    changes in them is rolled back after it, they themselves after the last one."""
    block = transaction.atomic()
    block._from_testcase = True
    with django_db_blocker.unblock(), block:
        yield
        transaction.set_rollback(True)


@pytest.fixture
def clock(time_machine: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The clock stands still at NOW, also that of transactions; `clock.shift(60)` moves it on."""
    stop_transaction_clock(monkeypatch)
    time_machine.move_to(NOW, tick=False)
    return time_machine


@pytest.fixture
def expanded_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker expands the webhook calls of each change before the next line of the test."""
    call = Caller.call

    def call_and_expand(caller: Caller, method: str, *args: Any, **kwargs: Any) -> Answer:
        answer = call(caller, method, *args, **kwargs)
        if method != "GET":
            expand_changes()
        return answer

    monkeypatch.setattr(Caller, "call", call_and_expand)


@pytest.fixture
def make_tenant(db: None) -> Callable[..., Tenant]:
    """`make_tenant(mode="test")`: an app of its own slug, with a server key."""

    def make(**app: Any) -> Tenant:
        return Tenant(app.pop("slug", f"app-{next(_numbers)}"), **app)

    return make


@pytest.fixture
def tenant(make_tenant: Callable[..., Tenant]) -> Tenant:
    return make_tenant()
