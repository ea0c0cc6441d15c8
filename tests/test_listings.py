"""Every listing, whole: one envelope for all, the newest first, no row twice (section 2)."""

from typing import Any
from urllib.parse import urlencode

import pytest

from apps_config.models import Account, Membership
from notifications.outbox.expansion import expand_changes
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
