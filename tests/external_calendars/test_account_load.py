"""Workers and web processes at one account at a time: never more requests than Microsoft allows."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from django.db import connections
from django.utils import timezone

from availability.search.queries import TimeSpan
from external_calendars.live_provider_freebusy import fetch_calendar_busy
from external_calendars.models import Connection
from external_calendars.sync.run_all_due import sync_due_calendars
from notifications.outbox.dispatcher import run_dispatcher
from tests.external_calendars.accounts import EMAIL, AccountHome, connect_account
from tests.external_calendars.fakes.graph import MAX_CONCURRENT
from tests.external_calendars.mirrored import copies
from tests.external_calendars.test_mirror import _at_home, book, span_of, times
from tests.world import Tenant

__all__ = ["_at_home"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]

BOOKINGS = 8


def own_connection(run: Callable[[], Any]) -> Any:
    """As in a thread of a worker or of a web process."""
    try:
        return run()
    finally:
        connections.close_all()


def test_account_gets_at_most_four_requests_at_a_time(tenant: Tenant, account: AccountHome) -> None:
    """Two workers sync its three calendars, two write, and eight customers book times that are
    checked at once. `account` fails the test if there are more."""
    ada = tenant.make_resource("Ada Lovelace", email=EMAIL, timezone="Europe/Berlin")
    work = connect_account(tenant, account, ada)
    given = {"provider": account.name, "resource_id": ada["id"], "grant_id": str(work.grant_id)}
    for name in ("Holidays", "Team"):
        account.add_calendar(name)
        assert tenant.post("/calendars", given | {"address": name}).status == 201
    busy = span_of(times(1, 9))
    account.add("Lunch", *busy)
    for day in range(2, 2 + BOOKINGS):
        book(tenant, ada, **times(day))
    Connection.objects.update(next_at=timezone.now())
    account.gateway.latency = 0.05
    span = TimeSpan(*(int(moment.timestamp()) for moment in busy))
    check = partial(fetch_calendar_busy, [UUID(ada["id"])], span)
    jobs = [
        *[sync_due_calendars] * 2,
        *[partial(run_dispatcher, "calendar")] * 2,
        *[check] * BOOKINGS,
    ]

    with ThreadPoolExecutor(len(jobs)) as pool:
        results = list(pool.map(own_connection, jobs))

    assert results[4:] == [{UUID(ada["id"]): [span]}] * BOOKINGS
    assert copies() == [("written", "")] * BOOKINGS
    assert len(account.events()) == BOOKINGS + 1
    assert 2 < account.gateway.most_concurrent[EMAIL] <= MAX_CONCURRENT
