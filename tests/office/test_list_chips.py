"""Periods and applied filters above lists."""

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any
from urllib.parse import parse_qsl

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from apps_config.models import Account, Membership
from office.bookings.periods import PERIODS, period_days
from tests.office.conftest import Enter, Visit
from tests.queries import Queries
from tests.world import Tenant

LIST = "/admin/bookings/booking/"
RESOURCES = "/admin/availability/resource/"


@pytest.mark.parametrize(
    ("period", "today", "first", "last"),
    [
        ("today", "2026-11-27", "2026-11-27", "2026-11-27"),
        ("tomorrow", "2026-12-31", "2027-01-01", "2027-01-01"),
        ("this-week", "2026-11-23", "2026-11-23", "2026-11-29"),  # a Monday
        ("this-week", "2026-11-29", "2026-11-23", "2026-11-29"),
        ("last-month", "2026-01-31", "2025-12-01", "2025-12-31"),
        ("last-month", "2028-03-01", "2028-02-01", "2028-02-29"),
    ],
)
def test_days_of_each_period(period: str, today: str, first: str, last: str) -> None:
    days = period_days(period, date.fromisoformat(today))

    assert [day.isoformat() for day in days] == [first, last]


def chips(client: Client, path: str, **query: str) -> list[tuple[str, str, dict[str, str]]]:
    """(title, value, the query without it) of each applied filter."""
    changelist = client.get(path, query).context["cl"]
    return [(one.title, one.value, dict(parse_qsl(left[1:]))) for one, left in changelist.chips]


def shortcuts(client: Client, **query: str) -> list[tuple[str, dict[str, str], bool]]:
    changelist = client.get(LIST, query).context["cl"]
    return [
        (one.words, dict(parse_qsl(one.query[1:])), one.is_chosen) for one in changelist.shortcuts
    ]


@pytest.mark.usefixtures("clock")
def test_periods_list_their_bookings(tenant: Tenant, enter: Enter) -> None:
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"default_timezone": "UTC"}})
    ada = tenant.make_resource("Ada", timezone="UTC")
    today = timezone.now().date()
    for days, what in ((1, "Tomorrow"), (30, "Later")):
        day = today + timedelta(days=days)
        times = {"start": f"{day} 23:00:00", "end": f"{day} 23:30:00"}
        assert tenant.book(resource_id=ada["id"], what=what, **times).status == 201
    client = enter(tenant, Membership.VIEWER)

    found = {
        period: [
            row.event.what for row in client.get(LIST, {"period": period}).context["cl"].result_list
        ]
        for period in (*PERIODS, "unknown")
    }

    assert found["tomorrow"] == ["Tomorrow"]
    assert (found["today"], found["last-month"]) == ([], [])
    assert found["unknown"] == ["Later", "Tomorrow"]


def test_a_period_keeps_filters_but_for_other_days(tenant: Tenant, enter: Enter) -> None:
    given = {"tab": "upcoming", "event__start_from": "2026-10-01", "state": "confirmed"}

    found = shortcuts(enter(tenant), **given)
    chosen = shortcuts(enter(Tenant("second")), period="tomorrow", state="confirmed")

    kept = {"state": "confirmed"}
    periods = [("Today", "today"), ("Tomorrow", "tomorrow"), ("This week", "this-week")]
    periods.append(("Last month", "last-month"))
    assert found == [(words, kept | {"period": each}, False) for words, each in periods]
    assert chosen[1] == ("Tomorrow", kept, True)


def test_applied_filters_are_named_and_removed(tenant: Tenant, enter: Enter) -> None:
    ada = tenant.make_resource("Ada")
    given = {
        "tab": "upcoming",
        "q": "marty",
        "state": "tentative",
        "event__start_from": "2026-10-01",
        "resource__id__exact": ada["id"],
    }

    found = chips(enter(tenant), LIST, **given)

    def without(*names: str) -> dict[str, str]:
        return {name: value for name, value in given.items() if name not in names}

    assert found == [
        ("Search", "marty", without("q")),
        ("state", "pending", without("state")),
        ("start", "1 Oct 2026 –", without("event__start_from")),
        ("resource", "Ada", without("resource__id__exact")),
    ]


def test_other_lists_show_their_filters(tenant: Tenant, enter: Enter) -> None:
    client = enter(tenant, Membership.OWNER)
    keys = "/admin/apps_config/credential/"

    assert chips(client, RESOURCES, deleted="all") == [("deleted", "All", {})]
    assert chips(client, keys, kind__exact="widget") == [("kind", "widget", {})]
    assert chips(client, RESOURCES) == []


def test_a_row_of_another_app_is_not_named(tenant: Tenant, enter: Enter) -> None:
    other = Tenant("other").make_resource("Secret")

    found = chips(enter(tenant), LIST, resource__id__exact=other["id"])

    assert [value for _, value, _ in found] == [other["id"]]


def test_resources_are_sorted_by_name(tenant: Tenant, enter: Enter) -> None:
    for name in ("Cleo", "Ada", "Bob"):
        tenant.make_resource(name)

    changelist = enter(tenant).get(RESOURCES).context["cl"]

    assert [row.name for row in changelist.result_list] == ["Ada", "Bob", "Cleo"]
    assert "creation_time" not in changelist.list_display


def test_query_count_does_not_grow_with_rows(tenant: Tenant, enter: Enter) -> None:
    client, counts = enter(tenant, Membership.VIEWER), []
    ada = tenant.make_resource("Ada", timezone="UTC")
    for day in (0, 1, 2, 3):
        times = {"start": f"2030-04-0{day + 1} 09:00:00", "end": f"2030-04-0{day + 1} 09:30:00"}
        assert tenant.book(resource_id=ada["id"], **times).status == 201
        with Queries(connection) as queries:
            client.get(LIST, {"resource__id__exact": ada["id"], "tab": "upcoming"})
        counts.append(len(queries))

    assert counts[1:] == [counts[1]] * 3


def test_escape_closes_a_choice_before_the_filters(
    visit: Callable[..., Visit], ada: Any, editor: Account
) -> None:
    page = visit(editor, LIST).page
    panel = "document.querySelector('#changelist-filter').checkVisibility()"
    page.wait_for("!!document.querySelector('[x-on\\\\:click*=filterOpen][role=button]')")
    page.click("[x-on\\:click*=filterOpen][role=button]")
    page.wait_for(panel)

    page.click("#changelist-filter .select2-selection")
    page.wait_for("!!document.querySelector('.select2-container--open')")
    page.press("Escape")
    page.wait_for("!document.querySelector('.select2-container--open')")
    after_first = page.evaluate(panel)
    page.press("Escape")
    page.wait_for(f"!{panel}")

    assert after_first is True
