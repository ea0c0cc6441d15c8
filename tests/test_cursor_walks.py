"""Every list of the API, read by cursor while rows come and go: each row once, in one order."""

from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest

from apps_config.models import App
from notifications.models import Delivery
from notifications.outbox.expansion import expand_changes
from tests.bookings.booking_drafts import span
from tests.bookings.group_world import make_group
from tests.description import description
from tests.test_openapi import views_of_this_service
from tests.world import Caller, Tenant

pytestmark = [
    pytest.mark.usefixtures("clock"),
    pytest.mark.both_databases,
    pytest.mark.every_case,
]

DAY = {"start": "2026-11-23T00:00:00Z", "end": "2026-11-24T00:00:00Z"}
# What the query of a list needs.
NEEDED = {"/v2/events": DAY}
ROWS = 6


class Writer(NamedTuple):
    """How a row of a list is made, the number of which makes its values, and how it goes; None: it
    stays listed.
    """

    add: Callable[[int], Any]
    remove: Callable[[str], Any] | None


def writers(tenant: Tenant, owner: Caller, ids: dict[str, str]) -> dict[str, Writer]:
    resource, calendar, project = ids["resource_id"], ids["calendar_id"], ids["project_id"]

    def name(number: int) -> str:
        return f"Row {number * 7 % 10}"

    def hour(number: int) -> dict[str, str]:
        return span(f"{number:02}:00", f"{number:02}:30")

    def book(number: int) -> Any:
        customer = {"name": name(number), "email": f"row{number * 7 % 20}@example.com"}
        answer = tenant.book(resource_id=resource, customer=customer, **hour(number))
        expand_changes()
        return answer

    def cancel_and_delete(booking_id: str) -> Any:
        tenant.put(f"/bookings/{booking_id}/cancel")
        return tenant.delete(f"/bookings/{booking_id}")

    def make_app(number: int) -> Any:
        return owner.post("/apps", {"slug": f"row-{number * 7 % 20}", "name": name(number)})

    def archive_app(app_id: str) -> Any:
        return owner.delete(f"/apps/{App.objects.get(id=app_id).slug}")

    def add_to_project(number: int) -> Any:
        body = {"resource_id": tenant.make_resource(name(number))["id"]}
        return tenant.post(f"/projects/{project}/resources", body)

    def by_api(path: str, body: Callable[[int], dict[str, Any]]) -> Writer:
        return Writer(
            lambda number: owner.post(path, body(number)),
            lambda row_id: owner.delete(f"{path}/{row_id}"),
        )

    resources = by_api("/resources", lambda number: {"name": name(number), "timezone": "UTC"})
    deliveries = Writer(book, lambda row_id: Delivery.objects.filter(id=row_id).delete())
    return {
        "/v2/apps": Writer(make_app, archive_app),
        "/v2/apps/{slug}/members": by_api(
            f"/apps/{tenant.app.slug}/members",
            lambda number: {"email": f"row{number * 7 % 20}@example.com"},
        ),
        "/v2/bookings": Writer(book, cancel_and_delete),
        "/v2/bookings/groups": Writer(
            lambda number: make_group(tenant, {"id": resource}, **hour(number)), cancel_and_delete
        ),
        "/v2/calendars": by_api(
            "/calendars", lambda number: {"name": name(number), "resource_id": resource}
        ),
        "/v2/credentials": Writer(
            lambda number: owner.post("/credentials", {"kind": "widget"}), remove=None
        ),
        "/v2/customers": Writer(
            book, lambda email: tenant.post("/customers/erase", {"email": email})
        ),
        "/v2/deliveries": deliveries,
        "/v2/events": by_api(
            "/events", lambda number: {"calendar_id": calendar, "what": "A", **hour(number)}
        ),
        "/v2/projects": by_api("/projects", lambda number: {"name": name(number)}),
        "/v2/projects/{project_id}/resources": Writer(
            add_to_project, lambda row_id: tenant.delete(f"/projects/{project}/resources/{row_id}")
        ),
        "/v2/resources": resources,
        "/v2/schedules": by_api("/schedules", lambda number: {"name": name(number)}),
        "/v2/users": resources,
        "/v2/webhooks/{webhook_id}/deliveries": deliveries,
    }


def lists_of_the_router() -> set[str]:
    """The paths of all viewsets' lists that have pages."""
    return {
        path
        for path, callback in views_of_this_service().items()
        if (action := getattr(callback, "actions", {}).get("get"))
        and callback.cls(**callback.initkwargs, action=action).is_page
    }


def orders_of(path: str) -> list[dict[str, str]]:
    """Each order that a list has, in both directions."""
    operation = next(one for one in description().operations if str(one) == f"GET {path}")
    given = {
        one["name"]: one for one in map(description().resolve, operation.content["parameters"])
    }
    if "orderBy" not in given:
        return [{}]
    return [
        {"orderBy": order, "sortedBy": direction}
        for order in given["orderBy"]["schema"]["enum"]
        for direction in ("asc", "desc")
    ]


def walks() -> list[Any]:
    """Each list in its first and its last order, and with --deep in all of them."""
    found = []
    for path in sorted(lists_of_the_router()):
        orders = orders_of(path)
        for order in orders:
            is_deep = order not in (orders[0], orders[-1])
            found.append(pytest.param(path, order, marks=[pytest.mark.deep] * is_deep))
    return found


def walk_name(value: Any) -> str:
    return " ".join(value.values()) if isinstance(value, dict) else str(value)


@pytest.mark.parametrize(("path", "order"), walks(), ids=walk_name)
def test_walk_finds_each_row_once_while_rows_come_and_go(
    tenant: Tenant, path: str, order: dict[str, str], clock: Any
) -> None:
    resource = tenant.make_resource("Ada")
    webhook = tenant.post("/webhooks", {"url": "https://example.com/hook"}).data["id"]
    ids = {
        "resource_id": resource["id"],
        "calendar_id": resource["calendars"][0]["id"],
        "project_id": tenant.make_project(name="All")["id"],
        "webhook_id": webhook,
        "slug": tenant.app.slug,
    }
    caller = tenant.member("zoe@example.com")
    caller.headers["Service-App"] = tenant.app.slug
    writer = writers(tenant, caller, ids)[path]
    address = path.removeprefix("/v2").format(**ids)
    key = "email" if path == "/v2/customers" else "id"

    def read(**query: Any) -> Any:
        answer = caller.get(f"{address}?{urlencode(NEEDED.get(path, {}) | order | query)}")
        assert answer.status == 200, answer.json
        return answer.json

    own = {row[key] for row in read()["data"]}
    for number in range(ROWS):
        writer.add(number)
        clock.shift(number % 2)  # some in one instant
    before = [row[key] for row in read(limit=1000)["data"]]
    doomed = [row for row in before if row not in own][::2]

    found: list[str] = []
    removed: set[str] = set()
    cursor: str | None = ""
    number = ROWS
    while cursor is not None:
        page = read(limit=2, cursor=cursor)
        cursor = page["next_cursor"]
        rows = [row[key] for row in page["data"]]
        assert removed.isdisjoint(rows)
        found += rows
        # One that was read, then one that is ahead.
        doomed.sort(key=lambda row: (row in found) == bool(len(removed) % 2))
        if doomed and writer.remove:
            writer.remove(doomed[0])
            removed.add(doomed.pop(0))
        if number < 2 * ROWS:
            writer.add(number)
            number += 1

    stayed = [row for row in before if row not in removed]
    assert [row for row in found if row in stayed] == stayed
    assert len(found) == len(set(found))
    assert len(before) >= ROWS
    assert len(removed) > 1 or not writer.remove


def test_every_list_of_the_router_is_walked(tenant: Tenant) -> None:
    ids = dict.fromkeys(("resource_id", "calendar_id", "project_id"), "")

    assert writers(tenant, tenant, ids).keys() == lists_of_the_router()
