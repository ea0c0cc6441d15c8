"""Every listing, whole: one envelope for all, the newest first, no row twice (section 2)."""

from typing import Any
from urllib.parse import quote, urlencode

import pytest
from django.db import connection
from django.db.models import Model
from django.test.utils import CaptureQueriesContext

from access.views.credentials import CredentialViewSet
from apps_config.models import Account, App, Credential, Membership
from apps_config.views import AppViewSet
from availability.models import Calendar, Event, Project, ProjectResource, Resource, Schedule
from availability.views.calendars import CalendarViewSet
from availability.views.events import EventViewSet
from availability.views.projects import ProjectViewSet
from availability.views.resources import ResourceViewSet
from availability.views.schedules import ScheduleViewSet
from bookings.models import AppCustomer, Booking
from bookings.views.bookings import BookingViewSet
from bookings.views.customers import CustomerViewSet
from bookings.views.groups import GroupViewSet
from notifications.models import Delivery
from notifications.outbox.expansion import expand_changes
from notifications.outbox.views import DeliveryViewSet
from tests.bookings.booking_drafts import MARTY, MONDAY, span
from tests.bookings.group_world import make_group
from tests.description import description
from tests.world import Caller, Tenant, clock_at_now

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]

# path -> what its query needs
LISTINGS: dict[str, dict[str, str]] = {
    "/v2/apps": {},
    "/v2/bookings": {},
    "/v2/bookings/groups": {},
    "/v2/calendars": {},
    "/v2/credentials": {},
    "/v2/customers": {},
    "/v2/deliveries": {},
    "/v2/events": {"start": f"{MONDAY}T00:00:00Z", "end": f"{MONDAY}T23:00:00Z"},
    "/v2/projects": {},
    "/v2/projects/{project_id}/resources": {},
    "/v2/resources": {},
    "/v2/schedules": {},
    "/v2/users": {},
    "/v2/webhooks/{webhook_id}/deliveries": {},
}
# Whose order is not that of their making.
OWN_ORDER = {"/v2/customers", "/v2/projects/{project_id}/resources"}
SINGLES = {"/v2/calendars", "/v2/events", "/v2/projects", "/v2/resources", "/v2/schedules",
           "/v2/users"}  # fmt: skip


World = tuple[Caller, dict[str, str]]


def make_world(tenant: Tenant) -> World:
    """An owner of three apps, one of which has three of everything, made in one instant."""
    webhook = tenant.post("/webhooks", {"url": "https://example.com/hook"}).data["id"]
    resources = [tenant.make_resource(name)["id"] for name in "ABC"]
    for resource in resources:
        tenant.make_project(resource, name=resource)
        tenant.post("/schedules", {"name": resource})
        tenant.post("/credentials", {"kind": "widget"})
        customer = {**MARTY, "email": f"{resource}@example.com"}
        body = {"resource_id": resource, "what": "A", "customer": customer}
        tenant.post("/bookings", {**body, **span("09:00", "10:00")})
        make_group(tenant, {"id": resource}, **span("11:00", "12:00"))
    project = tenant.make_project(*resources, name="All")["id"]
    expand_changes()
    owner = tenant.member("owner@example.com")
    for slug in ("second", "third"):
        app = Tenant(slug).app
        account = Account.objects.get(email="owner@example.com")
        Membership.objects.create(account=account, app=app)
    owner.headers["Service-App"] = tenant.app.slug
    return owner, {"project_id": project, "webhook_id": webhook}


@pytest.fixture(scope="module")
def made_world(module_transaction: None) -> World:
    with clock_at_now():
        return make_world(Tenant("listed"))


@pytest.fixture
def world(db: None, made_world: World) -> World:
    return made_world


def envelope(address: str, rows: list[Any], page: int) -> dict[str, Any]:
    """Of pages of two rows."""
    last = -(-len(rows) // 2)
    part = rows[2 * page - 2 : 2 * page]
    return {
        "total": len(rows),
        "per_page": "2",
        "current_page": page,
        "last_page": last,
        "first_page_url": f"{address}1",
        "last_page_url": f"{address}{last}",
        "next_page_url": f"{address}{page + 1}" if page < last else None,
        "prev_page_url": f"{address}{min(page - 1, last)}" if page > 1 else None,
        "from": 2 * page - 1 if part else None,
        "to": 2 * page - 2 + len(part) if part else None,
        "data": part,
    }


def test_every_listing_is_tested() -> None:
    found = {
        operation.path
        for operation in description().operations
        for parameter in operation.content.get("parameters", [])
        if operation.method == "GET" and description().resolve(parameter)["name"] == "limit"
    }

    # Members are a few, in the order of their addresses: tests/access/test_members.py. Changes
    # have no pages: tests/apps_config/test_changes.py.
    assert found == LISTINGS.keys() | {"/v2/apps/{slug}/members", "/v2/changes"}


@pytest.mark.parametrize("listing", LISTINGS)
def test_pages_of_each_listing(world: World, listing: str) -> None:
    owner, ids = world
    path = listing.format(**ids)
    query = urlencode(LISTINGS[listing])
    short = path.removeprefix("/v2")
    rows = owner.get(f"{short}?{query}").data
    address = f"http://127.0.0.1:8000{path}?{query}&limit=2&page=".replace("?&", "?")
    last = -(-len(rows) // 2)

    answers = [owner.get(f"{short}?{query}&limit=2&page={page}") for page in range(1, last + 3)]

    assert last > 1
    assert [(answer.status, answer.json) for answer in answers] == [
        (200, envelope(address, rows, page)) for page in range(1, last + 3)
    ]
    if listing not in OWN_ORDER:
        assert [row["id"] for row in rows] == sorted({row["id"] for row in rows}, reverse=True)
    if listing in SINGLES:
        assert rows == [owner.get(f"{short}/{row['id']}").data for row in rows]


# listing -> the field of the default order, where it is not `created_at`
DEFAULT_ORDER = {
    "/v2/customers": "last_booking_at",
    "/v2/projects/{project_id}/resources": "position",
}


@pytest.mark.parametrize("listing", LISTINGS)
def test_each_listing_in_both_directions(world: World, listing: str) -> None:
    owner, ids = world
    path = listing.format(**ids).removeprefix("/v2")
    field = DEFAULT_ORDER.get(listing, "created_at")
    query = {**LISTINGS[listing], "orderBy": field}

    down, up = (
        owner.get(f"{path}?{urlencode({**query, 'sortedBy': direction})}").data
        for direction in ("desc", "asc")
    )
    refused = owner.get(f"{path}?{urlencode({**LISTINGS[listing], 'orderBy': 'secret'})}")

    assert len(down) > 1
    if listing == "/v2/customers":  # by address where the times are equal
        assert up == down
    else:
        assert up == down[::-1]
    assert (refused.status, list(refused.json["errors"])) == (422, ["orderBy"])


@pytest.mark.parametrize("listing", LISTINGS)
def test_updated_since_of_each_listing(world: World, listing: str, clock: Any) -> None:
    owner, ids = world
    path = listing.format(**ids).removeprefix("/v2")
    everything = owner.get(f"{path}?{urlencode(LISTINGS[listing])}").data

    def changed(since: str) -> list[Any]:
        return owner.get(f"{path}?{urlencode({**LISTINGS[listing], 'updated_since': since})}").data

    assert changed("now") == changed("2026-11-20") == everything
    clock.shift(60)
    assert changed("now") == []
    assert changed("-1 min") == everything


# --- By cursor ------------------------------------------------------------------------------------
def orders_of(path: str) -> list[str]:
    """The values of `orderBy` that a listing has."""
    operation = next(one for one in description().operations if str(one) == f"GET {path}")
    given = map(description().resolve, operation.content["parameters"])
    return next(one["schema"]["enum"] for one in given if one["name"] == "orderBy")


ORDERS = [(listing, order) for listing in LISTINGS for order in orders_of(listing)]


@pytest.mark.parametrize("direction", ["asc", "desc"])
@pytest.mark.parametrize(("listing", "order"), ORDERS)
def test_cursor_reads_each_row_once_in_each_order(
    world: World, listing: str, order: str, direction: str
) -> None:
    owner, ids = world
    path = listing.format(**ids).removeprefix("/v2")
    query = {**LISTINGS[listing], "orderBy": order, "sortedBy": direction}
    expected = owner.get(f"{path}?{urlencode(query)}").data

    found, cursor = [], ""
    while cursor is not None:
        page = owner.get(f"{path}?{urlencode({**query, 'limit': 2, 'cursor': cursor})}").json
        found += page["data"]
        cursor = page["next_cursor"]

    assert len(expected) > 1
    assert found == expected


@pytest.mark.parametrize("listing", LISTINGS)
def test_envelopes_of_a_list_by_cursor(world: World, listing: str) -> None:
    owner, ids = world
    path = listing.format(**ids)
    query = urlencode(LISTINGS[listing])
    short = path.removeprefix("/v2")
    rows = owner.get(f"{short}?{query}").data
    base = f"http://127.0.0.1:8000{path}?{query}&limit=2&cursor=".replace("?&", "?")

    pages = [owner.get(f"{short}?{query}&limit=2&cursor=").json]
    while next_url := pages[-1]["next_page_url"]:
        pages.append(owner.get(next_url.removeprefix("http://127.0.0.1:8000/v2")).json)

    cursors = [page["next_cursor"] for page in pages]
    assert (len(set(cursors)), cursors[-1]) == (len(pages), None)
    assert pages == [
        {
            "total": None,
            "per_page": "2",
            "current_page": None,
            "last_page": None,
            "first_page_url": base,
            "last_page_url": None,
            "next_page_url": cursor and base + quote(cursor),
            "prev_page_url": None,
            "from": None,
            "to": None,
            "next_cursor": cursor,
            "data": rows[2 * number : 2 * number + 2],
        }
        for number, cursor in enumerate(cursors)
    ]


@pytest.mark.parametrize("listing", LISTINGS)
def test_list_by_cursor_is_not_counted(world: World, listing: str) -> None:
    owner, ids = world
    path = listing.format(**ids).removeprefix("/v2")
    query = {**LISTINGS[listing], "limit": "2", "cursor": ""}

    with CaptureQueriesContext(connection) as queries:
        owner.get(f"{path}?{urlencode(query)}")

    counts = [one["sql"] for one in queries if one["sql"].startswith("SELECT COUNT(")]
    assert counts + [one["sql"] for one in queries if "listingtally" in one["sql"]] == []


@pytest.mark.parametrize(
    ("model", "orders"),
    [
        (App, AppViewSet.ordering_fields),
        (AppCustomer, CustomerViewSet.ordering_fields),
        (Booking, BookingViewSet.ordering_fields),
        (Booking, GroupViewSet.ordering_fields),
        (Calendar, CalendarViewSet.ordering_fields),
        (Credential, CredentialViewSet.ordering_fields),
        (Delivery, DeliveryViewSet.ordering_fields),
        (Event, EventViewSet.ordering_fields),
        (Project, ProjectViewSet.ordering_fields),
        (ProjectResource, {"position": "position"}),
        (Resource, ResourceViewSet.ordering_fields),
        (Schedule, ScheduleViewSet.ordering_fields),
    ],
)
def test_columns_of_orders_are_never_null(model: type[Model], orders: dict[str, str]) -> None:
    """A comparison with null is neither true nor false: a cursor would skip the row."""
    for column in orders.values():
        holder: Any = model
        for name in column.split("__"):
            field = holder._meta.get_field(name)
            assert not field.null, (model, column)
            holder = field.related_model


@pytest.mark.parametrize("order", ["created_at", "name"])
@pytest.mark.parametrize("direction", ["asc", "desc"])
def test_cursor_skips_and_repeats_no_row_while_rows_come_and_go(
    tenant: Tenant, order: str, direction: str
) -> None:
    kept = [tenant.make_resource(f"Room {number}")["id"] for number in (2, 4, 4, 6, 8)]
    gone = [tenant.make_resource(f"Room {number}")["id"] for number in (1, 3, 5, 7, 9)]
    new = ["Room 0", "Room 99", "Room 4"]
    query = {"orderBy": order, "sortedBy": direction, "limit": 2}
    expected = [
        row["id"]
        for row in tenant.get(f"/resources?{urlencode(query | {'limit': 50})}").data
        if row["id"] in kept
    ]

    found, cursor = [], ""
    while cursor is not None:
        page = tenant.get(f"/resources?{urlencode(query | {'cursor': cursor})}").json
        found += [row["id"] for row in page["data"]]
        cursor = page["next_cursor"]
        read = [row for row in gone if row in found]
        for row in read[:1] or gone[:1]:
            tenant.delete(f"/resources/{row}")
            gone.remove(row)
        for name in new[:1]:
            tenant.make_resource(name)
            new.remove(name)

    assert [row for row in found if row in kept] == expected
    assert len(set(found)) == len(found)


def test_cursor_of_a_deleted_row_is_a_place(tenant: Tenant) -> None:
    names = [tenant.make_resource(name)["name"] for name in "ABCD"]
    query = "/resources?orderBy=name&sortedBy=asc&limit=2&cursor="
    first = tenant.get(query).json

    tenant.delete(f"/resources/{first['data'][1]['id']}")

    rest = tenant.get(query + quote(first["next_cursor"])).json
    assert [row["name"] for row in (*first["data"], *rest["data"])] == names


@pytest.mark.parametrize(
    ("cursor", "query", "fault"),
    [
        ("x", {}, "Is no cursor of this list in this order."),
        ("x:y", {}, "Is no cursor of this list in this order."),
        ("{cursor}x", {}, "Is no cursor of this list in this order."),
        ("x{cursor}", {}, "Is no cursor of this list in this order."),
        ("{cursor}", {"orderBy": "name"}, "Is no cursor of this list in this order."),
        ("{cursor}", {"sortedBy": "asc"}, "Is no cursor of this list in this order."),
        ("{other}", {}, "Is no cursor of this list in this order."),
        ("", {"page": "1"}, "Can't be combined with page."),
        ("{cursor}", {"page": "2"}, "Can't be combined with page."),
    ],
)
def test_wrong_cursor_is_invalid(
    tenant: Tenant, cursor: str, query: dict[str, str], fault: str
) -> None:
    for name in "ABC":
        tenant.make_resource(name)
        tenant.post("/schedules", {"name": name})
    known = {
        "cursor": tenant.get("/resources?limit=1&cursor=").json["next_cursor"],
        "other": tenant.get("/schedules?limit=1&cursor=").json["next_cursor"],
    }

    answer = tenant.get(f"/resources?{urlencode(query | {'cursor': cursor.format(**known)})}")

    assert (answer.status, answer.json["errors"]) == (422, {"cursor": [fault]})


def test_cursor_of_another_app_shows_nothing_of_it(make_tenant: Any) -> None:
    """A cursor is a place in an order: whose rows follow, the key decides."""
    first, second = make_tenant(slug="one"), make_tenant(slug="two")
    for name in ("A", "B", "C"):
        first.make_resource(f"{name} of one")
        second.make_resource(f"{name} of two")
    query = "/resources?orderBy=name&sortedBy=asc&limit=1&cursor="
    cursor = first.get(query).json["next_cursor"]

    shown = second.get(query + quote(cursor)).data

    assert [row["name"] for row in shown] == ["A of two"]
