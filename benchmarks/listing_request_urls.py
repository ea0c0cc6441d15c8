"""Requests of every listing to the rows of `listing_rows`: page 1, and each filter."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlencode

UPDATED = 150  # rows that `updated_since` finds


class ListingRequest(NamedTuple):
    """`path` is that of the API's description; `filter` a parameter, or `search` with a field."""

    path: str
    filter: str
    address: str


def page_requests(ids: Mapping[str, Any]) -> list[ListingRequest]:
    """Return page 1 of each listing."""
    return [
        ListingRequest(path, "", _address(path, filters.get("", {}), ids))
        for path, filters in _filters(ids).items()
    ]


def filter_requests(ids: Mapping[str, Any]) -> list[ListingRequest]:
    """Return each filter of each listing, with a value that at most 1,000 rows have."""
    return [
        ListingRequest(path, name, _address(path, filters.get("", {}) | values, ids))
        for path, filters in _filters(ids).items()
        for name, values in filters.items()
        if name
    ]


# Neither of a deleted resource, calendar or booking.
SHOWN_EVENTS = """
SELECT count(*) FROM availability_event e
JOIN availability_resource r ON r.id = e.resource_id
JOIN availability_calendar c ON c.id = e.calendar_id
LEFT JOIN bookings_booking b ON b.event_id = e.id AND b.owner_booking_id IS NULL
LEFT JOIN bookings_booking m ON m.event_id = e.main_id
WHERE r.deleted_at IS NULL AND c.deleted_at IS NULL AND b.deleted_at IS NULL
AND m.deleted_at IS NULL"""


class WideRequest(NamedTuple):
    """A filter that a large part of the rows match, and the plain count of its condition."""

    name: str
    address: str
    count: str


def wide_requests(ids: Mapping[str, Any]) -> list[WideRequest]:
    now = datetime.fromisoformat(ids["filled_at"])
    half = _text(now - int(ids["total"]) / 2 * timedelta(minutes=1))
    bookings, deliveries = (
        f"SELECT count(*) FROM {table} AS found WHERE found.app_id = '{ids['app']}'"
        for table in ("bookings_booking", "notifications_delivery")
    )
    bookings += " AND found.deleted_at IS NULL"
    events = bookings.replace(" WHERE ", " JOIN availability_event e ON e.id = event_id WHERE ")
    wide = (
        ("bookings", {"state": "completed"}, f"{bookings} AND state = 'completed'"),
        ("bookings", {"graph": "instant"}, f"{bookings} AND graph = 'instant'"),
        ("bookings", {"completed": "true"}, f"{bookings} AND completed"),
        (
            "bookings",
            {"resource_id": ids["resource"]},
            f"{bookings} AND resource_id = '{ids['resource']}'",
        ),
        (
            "bookings",
            {"project_id": ids["project"]},
            f"{bookings} AND project_id = '{ids['project']}'",
        ),
        (
            "bookings",
            {"calendar_id": ids["calendar"]},
            f"{events} AND calendar_id = '{ids['calendar']}'",
        ),
        ("bookings", {"start": half}, f"{events} AND e.end > '{half}'"),
        ("bookings", {"end": half}, f"{events} AND e.start < '{half}'"),
        ("bookings", {"search": "meta.ward:usual"}, f"{bookings} AND meta ->> 'ward' = 'usual'"),
        (
            "customers",
            {"search": "email:*@example.com"},
            "SELECT count(*) FROM bookings_appcustomer"
            f" WHERE app_id = '{ids['app']}' AND upper(address) LIKE '%@EXAMPLE.COM'",
        ),
        ("deliveries", {"type": "email"}, f"{deliveries} AND type = 'email'"),
        ("deliveries", {"state": "delivered"}, f"{deliveries} AND state = 'delivered'"),
        (
            "deliveries",
            {"webhook": ids["webhook"]},
            f"{deliveries} AND webhook_id = '{ids['webhook']}'",
        ),
        (
            "events",
            {"start": half, "end": _text(now + timedelta(days=1))},
            SHOWN_EVENTS + f" AND r.app_id = '{ids['app']}' AND e.end > '{half}'",
        ),
    )
    return [
        WideRequest(f"{path} {', '.join(values)}", _address(f"/v2/{path}", values, ids), count)
        for path, values, count in wide
    ]


def _filters(ids: Mapping[str, Any]) -> dict[str, dict[str, dict[str, str]]]:
    """Return path -> filter -> parameters; under "" those that every request needs."""
    total = int(ids["total"])
    now = datetime.fromisoformat(ids["filled_at"])
    middle = now - timedelta(minutes=total // 3)
    hours = {"start": _text(middle), "end": _text(middle + timedelta(hours=5))}
    always = {"start": _text(now - timedelta(minutes=total)), "end": _text(now + timedelta(days=1))}
    since = {"updated_since": _text(now - UPDATED * timedelta(seconds=20))}
    sent_since = {"updated_since": _text(now - UPDATED * timedelta(days=30) / (3 * total))}
    rare = {
        "resource": ids["rare_resource"],
        "calendar": ids["rare_calendar"],
        "project": ids["rare_project"],
        "owner_booking": ids["group"],
        "series": ids["series"],
        "bulk": ids["bulk"],
    }
    chosen = {"state": "tentative", "graph": "group_owner", "completed": "false"}
    updated = {"updated_since": since}
    deliveries = {
        "": {},
        "updated_since": sent_since,
        "booking": {"booking": ids["group"]},
        "state": {"state": "failed"},
    }
    people = {"name": "R*", "email": "*nobody*", "tags": "rare", "external_id": "rare"}
    external = {"external_id": "booking-1", "customer_external_id": "rare"}
    by_id = _parameters({"external_id": "rare"})
    return {
        "/v2/apps": {"": {}, **updated},
        "/v2/bookings": {
            "": {},
            **updated,
            "start": hours,
            "end": hours,
            **_parameters({f"{name}_id": rare[name] for name in rare if name != "bulk"}),
            **_parameters(chosen),
            **_parameters({"outcome": "no_show", "customer_email": "shared@example.org"}),
            **_parameters(external),
            **_searches({f"{name}.id": value for name, value in rare.items()}),
            **_searches({"external_id": "booking-1", "customer.external_id": "rare"}),
            **_searches(chosen),
            **_searches({"customer.email": "rare*", "customer.name": "*re pers*"}),
            **_searches({"customer.phone": "+1 555*", "meta.<key>": "rare"}),
        },
        "/v2/bookings/groups": {
            "": {},
            **updated,
            "start": hours,
            "end": hours,
            **_parameters({"full": "true"}),
            **_searches({"project.id": ids["project"], "resource.id": ids["resource"]}),
        },
        "/v2/calendars": {"": {}, **updated, **_searches({"resource.id": ids["resource"]})},
        "/v2/credentials": {"": {}, **updated, **_searches({"resource.id": ids["resource"]})},
        "/v2/customers": {
            "": {},
            **updated,
            **by_id,
            **_searches({"email": "*@example.net", "name": "rare*", "phone": "*1 555*"}),
            **_searches({"external_id": "rare"}),
        },
        "/v2/deliveries": {
            **deliveries,
            **_parameters({"type": "calendar", "webhook": ids["rare_webhook"]}),
        },
        "/v2/events": {
            "": hours,
            "start": hours,
            "end": hours,
            "updated_since": always | since,
            **{
                name: always | values
                for name, values in _searches(
                    {f"{name}.id": rare[name] for name in ("resource", "calendar")}
                ).items()
            },
        },
        "/v2/projects": {
            "": {},
            **updated,
            **by_id,
            **_searches({"slug": "rare", "name": "R*", "external_id": "rare"}),
        },
        "/v2/projects/{project_id}/resources": {"": {}, **updated, **by_id},
        "/v2/resources": {"": {}, **updated, **by_id, **_searches(people)},
        "/v2/schedules": {"": {}, **updated, **_searches({"name": "R*"})},
        "/v2/users": {"": {}, **updated, **by_id, **_searches(people)},
        "/v2/webhooks/{webhook_id}/deliveries": {
            **deliveries,
            "state": {"state": "skipped"},
            **_parameters({"type": "email", "webhook": ids["rare_webhook"]}),
        },
    }


def _parameters(values: Mapping[str, str]) -> dict[str, dict[str, str]]:
    return {name: {name: value} for name, value in values.items()}


def _searches(values: Mapping[str, str]) -> dict[str, dict[str, str]]:
    return {
        f"search {field}": {"search": f"{field.replace('<key>', 'ward')}:{value}"}
        for field, value in values.items()
    }


def _text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _address(path: str, values: Mapping[str, str], ids: Mapping[str, Any]) -> str:
    path = path.format(project_id=ids["project"], webhook_id=ids["webhook"])
    return f"{path}?{urlencode(values)}" if values else path
