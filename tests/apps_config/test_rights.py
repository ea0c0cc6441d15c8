"""Who may do what: every kind of key and role, on every path that there is (section 3)."""

import json
import random
import re
import uuid
from ipaddress import ip_network
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from django.conf import settings
from django.db import transaction
from django.urls import URLPattern, get_resolver, resolve

from apps_config.base_views import TenantViewSet
from apps_config.models import Credential, Membership
from apps_config.permissions import ACCESS, Access, may_call
from apps_config.services import issue_key
from bookings.services import code_of
from tests.external_calendars.fake_provider import FakeCalendarServer, fake_caldav
from tests.world import Answer, Caller, Tenant

__all__ = ["fake_caldav"]

pytestmark = pytest.mark.usefixtures("clock", "connectable")

CALLERS = ("server", "owner", "editor", "viewer", "resource", "widget")


class Row(NamedTuple):
    """One endpoint: its answer to those who may call it, and who may not. `{name}` in the path is
    an object of the world below."""

    method: str
    path: str
    body: Any
    status: int
    refused: tuple[str, ...] = ()


EVENT = {"start": "2026-11-25T09:00:00Z", "end": "2026-11-25T10:00:00Z"}
CONNECTED = "https://dav.example.com/ada/work/"
CONSENT = {
    "provider": "google",
    "resource_id": "{resource}",
    "redirect_url": "https://elsewhere.example/",
}
CLIENT = {"client_id": "own", "client_secret": "secret"}
CUSTOMER = {"name": "Marty", "email": "marty@example.com"}
READ = ("resource", "widget")  # who may not even read
WRITE = ("viewer", *READ)
OWNER = ("editor", *WRITE)
QUERY = {"project_id": "{project}", "resources": ["{resource}"], "from": "now", "to": "1 hour"}
ASK = {"resources": ["{resource}"], "from": "now", "to": "1 hour"}

TABLE = [
    Row("GET", "/app", None, 200, READ),
    Row("GET", "/apps", None, 200, READ),
    Row("POST", "/apps", {"slug": "new", "name": "New"}, 201, ("server", "editor", *WRITE)),
    Row("GET", "/apps/{slug}", None, 200, READ),
    Row("PUT", "/apps/{slug}", {"name": "Other"}, 200, WRITE),
    Row("DELETE", "/apps/{slug}", None, 204, ("editor", *WRITE)),
    Row("GET", "/apps/{slug}/members", None, 200, OWNER),
    Row("POST", "/apps/{slug}/members", {"email": "doc@example.com"}, 201, OWNER),
    Row("DELETE", "/apps/{slug}/members/{member}", None, 204, OWNER),
    Row("GET", "/credentials", None, 200, OWNER),
    Row("POST", "/credentials", {"kind": "server"}, 201, OWNER),
    Row("DELETE", "/credentials/{credential}", None, 204, OWNER),
    Row("GET", "/resources", None, 200, ("widget",)),
    Row("POST", "/resources", {"name": "B", "timezone": "UTC"}, 201, WRITE),
    Row("GET", "/resources/{resource}", None, 200, ("widget",)),
    Row("PUT", "/resources/{resource}", {"name": "B"}, 200, ("viewer", "widget")),
    Row("PUT", "/resources/by-external-id/{external}", {"name": "B", "timezone": "UTC"}, 201,
        WRITE),
    Row("DELETE", "/resources/{spare}", None, 204, WRITE),
    Row("GET", "/resources/timezone/{email}", None, 200, ("widget",)),
    Row("POST", "/resources/resetpassword", {"email": "{email}"}, 200, WRITE),
    Row("GET", "/users", None, 200, ("widget",)),
    Row("POST", "/users", {"name": "B", "timezone": "UTC"}, 201, WRITE),
    Row("GET", "/users/{resource}", None, 200, ("widget",)),
    Row("PUT", "/users/{resource}", {"name": "B"}, 200, ("viewer", "widget")),
    Row("PUT", "/users/by-external-id/{external}", {"name": "B", "timezone": "UTC"}, 201, WRITE),
    Row("DELETE", "/users/{spare}", None, 204, WRITE),
    Row("GET", "/users/timezone/{email}", None, 200, ("widget",)),
    Row("POST", "/users/resetpassword", {"email": "{email}"}, 200, WRITE),
    Row("GET", "/calendars", None, 200, ("widget",)),
    Row("POST", "/calendars", {"name": "B", "resource_id": "{resource}"}, 201,
        ("viewer", "widget")),
    Row("GET", "/calendars/{calendar}", None, 200, ("widget",)),
    Row("PUT", "/calendars/{calendar}", {"name": "B"}, 200, ("viewer", "widget")),
    Row("DELETE", "/calendars/{second}", None, 204, ("viewer", "widget")),
    Row("POST", "/calendars/{connected}/test", None, 200, ("widget",)),
    Row("POST", "/calendars/{connected}/sync", None, 200, ("viewer", "widget")),
    Row("POST", "/calendars/{connected}/disconnect", None, 200, ("viewer", "widget")),
    # With an address that is none of the app's.
    Row("POST", "/calendars/connect", CONSENT, 422, ("viewer", "widget")),
    Row("GET", "/calendars/clients", None, 200, OWNER),
    Row("PUT", "/calendars/clients/{client}", CLIENT, 200, OWNER),
    Row("DELETE", "/calendars/clients/{client}", None, 204, OWNER),
    Row("POST", "/calendars/{calendar}/feed", None, 201, ("viewer", "widget")),
    Row("DELETE", "/calendars/{connected}/feed", None, 204, ("viewer", "widget")),
    Row("GET", "/events?start=2026-11-20T00:00:00Z&end=2026-11-30T00:00:00Z", None, 200,
        ("widget",)),
    Row("POST", "/events", {"calendar_id": "{calendar}", "what": "A", **EVENT}, 201,
        ("viewer", "widget")),
    Row("GET", "/events/{event}", None, 200, ("widget",)),
    Row("PUT", "/events/{event}", {"what": "B"}, 200, ("viewer", "widget")),
    Row("DELETE", "/events/{event}", None, 204, ("viewer", "widget")),
    Row("GET", "/schedules", None, 200, READ),
    Row("POST", "/schedules", {"name": "B"}, 201, WRITE),
    Row("GET", "/schedules/{schedule}", None, 200, READ),
    Row("PUT", "/schedules/{schedule}", {"name": "B"}, 200, WRITE),
    Row("DELETE", "/schedules/{schedule}", None, 204, WRITE),
    Row("GET", "/projects", None, 200, READ),
    Row("POST", "/projects", {"name": "B"}, 201, WRITE),
    Row("GET", "/projects/embed/{project}", None, 200, ("resource",)),
    Row("GET", "/projects/{project}", None, 200, READ),
    Row("PUT", "/projects/{project}", {"name": "B"}, 200, WRITE),
    Row("PUT", "/projects/by-external-id/{external}", {"name": "B"}, 201, WRITE),
    Row("DELETE", "/projects/{unused}", None, 204, WRITE),
    Row("GET", "/projects/{project}/resources", None, 200, READ),
    Row("PUT", "/projects/{project}/resources", ["{resource}"], 200, WRITE),
    Row("POST", "/projects/{project}/resources", {"resource_id": "{spare}"}, 201, WRITE),
    Row("DELETE", "/projects/{project}/resources/{resource}", None, 204, WRITE),
    Row("POST", "/availability", QUERY, 200),
    Row("POST", "/availability/dates", QUERY, 200),
    Row("POST", "/availability/count", QUERY, 200),
    Row("POST", "/availability/explain", ASK, 200, ("widget",)),
    Row("POST", "/unavailable/slots", ASK, 200, ("widget",)),
    Row("POST", "/findtime", {"project_id": "{project}", "future": "1 hour"}, 200),
    Row("POST", "/findtime/bulk", {"queries": [{"resource_ids": ["{resource}"]}]}, 200,
        ("widget",)),
    Row("POST", "/findtime/team", {"queries": [{"resource_ids": ["{resource}"]}]}, 200,
        ("widget",)),
    Row("GET", "/bookings", None, 200, ("widget",)),
    Row("POST", "/bookings",
        {"project_id": "{project}", "what": "A", "customer": CUSTOMER, **EVENT}, 201,
        ("viewer",)),
    Row("POST", "/bookings/reserve", {"project_id": "{project}", **EVENT}, 201, ("viewer",)),
    Row("PUT", "/bookings/reserve/extend", {"reservation_id": "{hold}"}, 200, ("viewer",)),
    Row("DELETE", "/bookings/reserve/{hold}", None, 204, ("viewer",)),
    Row("POST", "/bookings/reserve/{unverified}/verify", {"code": "{code}"}, 201, ("viewer",)),
    Row("POST", "/bookings/reserve/{unverified}/code", None, 202, ("viewer",)),
    Row("GET", "/challenge", None, 200, ("resource",)),
    Row("POST", "/bookings/bulk", {"bookings": [{}]}, 200, ("viewer", "widget")),
    Row("PUT", "/bookings/bulk", {"bookings": [{"id": "{booking}", "meta": {}}]}, 200,
        ("viewer", "widget")),
    Row("GET", "/bookings/groups", None, 200, ()),
    Row("GET", "/bookings/groups/{group}", None, 200, ()),
    Row("GET", "/bookings/{booking}", None, 200, ("widget",)),
    Row("PUT", "/bookings/{booking}", {"meta": {"a": 1}}, 200, ("viewer", "widget")),
    Row("DELETE", "/bookings/{done}", None, 204, ("viewer", "widget")),
    Row("POST", "/bookings/{booking}/reschedule", EVENT, 200, ("viewer",)),
    Row("PUT", "/bookings/{booking}/reschedule", EVENT, 200, ("viewer", "widget")),
    Row("PUT", "/bookings/{booking}/cancel", None, 200, ("viewer", "widget")),
    Row("POST", "/bookings/{booking}/cancel", None, 200, ("viewer", "widget")),
    Row("GET", "/customers", None, 200, READ),
    Row("GET", "/customers/export?email=marty@example.com", None, 200, READ),
    Row("PUT", "/customers/note", {"email": "marty@example.com", "note": "x"}, 204, WRITE),
    Row("POST", "/customers/erase", {"email": "marty@example.com"}, 200, WRITE),
    Row("GET", "/changes", None, 200, READ),
    Row("GET", "/reports/utilisation?by=resource", None, 200, READ),
    Row("GET", "/reports/outcomes", None, 200, READ),
    Row("GET", "/reports/lead-time", None, 200, READ),
    Row("GET", "/reports/sources", None, 200, READ),
    Row("GET", "/reports/customers", None, 200, READ),
    Row("GET", "/webhooks", None, 200, READ),
    Row("POST", "/webhooks", {"url": "https://example.com/hook"}, 201, WRITE),
    Row("GET", "/webhooks/{webhook}", None, 200, READ),
    Row("PUT", "/webhooks/{webhook}", {"description": "B"}, 200, WRITE),
    Row("DELETE", "/webhooks/{webhook}", None, 204, WRITE),
    Row("POST", "/webhooks/{webhook}/rotate", None, 200, WRITE),
    Row("POST", "/webhooks/{webhook}/test", None, 201, WRITE),
    Row("GET", "/webhooks/{webhook}/deliveries", None, 200, READ),
    Row("GET", "/deliveries", None, 200, READ),
    Row("GET", "/deliveries/{delivery}", None, 200, READ),
    Row("POST", "/deliveries/{delivery}/redeliver", None, 200, WRITE),
    Row("GET", "/templates", None, 200, READ),
    Row("GET", "/templates/{template}", None, 200, READ),
    Row("PUT", "/templates/{template}", {"subject": "Hello"}, 200, WRITE),
    Row("POST", "/templates/{template}/preview", None, 200, READ),
]  # fmt: skip
# PATCH is another name of PUT, of objects.
NO_OBJECTS = {
    "/projects/{project}/resources",
    "/bookings/reserve/extend",
    "/bookings/bulk",
    "/bookings/{booking}/reschedule",
    "/bookings/{booking}/cancel",
    "/customers/note",
}
TABLE += [
    row._replace(method="PATCH")
    for row in TABLE
    if row.method == "PUT" and row.path not in NO_OBJECTS
]


@pytest.fixture
def connectable(fake_caldav: FakeCalendarServer) -> None:
    fake_caldav.put(CONNECTED)


class World:
    """An app with one of everything, all of it the resource's own that can be."""

    def __init__(self, tenant: Tenant) -> None:
        resource = tenant.make_resource("Desk", email="desk@example.com")
        calendar = resource["calendars"][0]["id"]
        second = tenant.post("/calendars", {"name": "Private", "resource_id": resource["id"]})
        connected = tenant.post(
            "/calendars",
            {"resource_id": resource["id"], "provider": "caldav", "address": CONNECTED},
        )
        tenant.post(f"/calendars/{connected.data['id']}/feed")
        tenant.put("/calendars/clients/google", CLIENT)
        settings = {"public_reschedule": "id"}
        project = tenant.make_project(resource["id"], settings=settings)["id"]
        booked = {"project_id": project, "resource_id": resource["id"]}
        first = tenant.book(start="2026-11-23T09:00:00Z", end="2026-11-23T10:00:00Z", **booked)
        other = tenant.book(start="2026-11-23T11:00:00Z", end="2026-11-23T12:00:00Z", **booked)
        tenant.put(f"/bookings/{other.data['id']}/cancel")
        event = tenant.make_event(calendar, "2026-11-24T09:00:00Z", "2026-11-24T10:00:00Z")
        hold = tenant.post(
            "/bookings/reserve",
            {"start": "2026-11-23T14:00:00Z", "end": "2026-11-23T15:00:00Z", **booked},
        )
        group = tenant.book(
            graph="group_owner",
            settings={"max_seats": 5},
            start="2026-11-23T16:00:00Z",
            end="2026-11-23T17:00:00Z",
            **booked,
        )
        verifying = tenant.make_project(
            resource["id"], booking={"what": "A"}, settings={"verify_email": True}
        )
        unverified = (
            tenant.widget()
            .post(
                "/bookings",
                {
                    "project_id": verifying["id"],
                    "start": "2026-11-23T18:00:00Z",
                    "end": "2026-11-23T19:00:00Z",
                    "customer": CUSTOMER,
                },
            )
            .data["reservation_id"]
        )
        self.names = {
            "unverified": unverified,
            "code": code_of(uuid.UUID(unverified)),
            "group": group.data["id"],
            "slug": tenant.app.slug,
            "resource": resource["id"],
            "spare": tenant.make_resource("Spare")["id"],
            "schedule": tenant.post("/schedules", {"name": "Hours"}).data["id"],
            "credential": tenant.post("/credentials", {"kind": "widget"}).data["id"],
            "member": tenant.post(
                f"/apps/{tenant.app.slug}/members", {"email": "emmett@example.com"}
            ).data["id"],
            "calendar": calendar,
            "second": second.data["id"],
            "connected": connected.data["id"],
            "client": "google",
            "external": "crm/7",
            "event": event["id"],
            "project": project,
            "unused": tenant.make_project(name="Unused")["id"],
            "booking": first.data["id"],
            "done": other.data["id"],
            "hold": hold.data["reservation_id"],
            "webhook": tenant.post("/webhooks", {"url": "https://example.com/"}).data["id"],
            "delivery": tenant.get("/deliveries").data[0]["id"],
            "template": "confirmed_customer",
            "email": "desk@example.com",
        }
        self.callers = {
            "server": tenant,
            **{role: tenant.member(f"{role}@example.com", role) for role in Membership.ROLES},
            "resource": Caller(resource["api_token"], user="desk@example.com"),
            "widget": tenant.widget(),
        }

    def fill(self, value: Any) -> Any:
        """The value with the world's ids in place of their names."""
        if isinstance(value, str):
            return value.format(**self.names)
        if isinstance(value, dict):
            return {key: self.fill(one) for key, one in value.items()}
        return [self.fill(one) for one in value] if isinstance(value, list) else value

    def call(self, caller: str, row: Row) -> Answer:
        """The answer; what the call did is taken back."""
        with transaction.atomic():
            body = None if row.body is None else self.fill(row.body)
            answer = self.callers[caller].call(row.method, self.fill(row.path), body)
            transaction.set_rollback(True)
        return answer


@pytest.mark.parametrize("caller", CALLERS)
def test_permissions_of_each_endpoint(tenant: Tenant, caller: str) -> None:
    world = World(tenant)

    found = {f"{row.method} {row.path}": world.call(caller, row).status for row in TABLE}

    assert found == {
        f"{row.method} {row.path}": 403 if caller in row.refused else row.status for row in TABLE
    }


# What a key with limits can't do at all: it would have or end rights that it lacks.
NEVER_LIMITED = {
    "POST /apps",
    "POST /apps/{slug}/members",
    "POST /credentials",
    "DELETE /credentials/{credential}",
    "POST /resources/resetpassword",
    "POST /users/resetpassword",
}


def access_of(row: Row) -> Access:
    example = row.path.partition("?")[0].replace("{slug}", "a").replace("{client}", "google")
    example = re.sub(r"{(template|email|booking|done)}", str(uuid.UUID(int=0)), example)
    view = resolve("/v2" + re.sub(r"{\w+}", str(uuid.UUID(int=0)), example)).func
    return ACCESS[view.initkwargs["basename"]][view.actions[row.method.lower()]]


def test_key_with_the_scopes_of_an_endpoint_may_call_it(tenant: Tenant) -> None:
    world = World(tenant)

    found = {}
    for row in TABLE:
        scopes = list(access_of(row).scopes)
        world.callers["limited"] = limited_key(tenant, scopes=scopes)
        found[f"{row.method} {row.path}"] = world.call("limited", row).status

    assert found == {
        name: 403 if name in NEVER_LIMITED else row.status
        for row in TABLE
        if (name := f"{row.method} {row.path}")
    }


def test_key_without_a_scope_of_an_endpoint_is_told_which_one(tenant: Tenant) -> None:
    world = World(tenant)

    found, expected = {}, {}
    for row in TABLE:
        for scope in access_of(row).scopes:
            others = [each for each in Credential.SCOPES if each != scope]
            world.callers["limited"] = limited_key(tenant, scopes=others)
            name = f"{row.method} {row.path} without {scope}"
            answer = world.call("limited", row)
            found[name] = (answer.status, answer.json and answer.json.get("error"))
            expected[name] = (403, f"This key lacks the scope {scope}.")

    assert found == expected


def test_key_with_projects_may_call_what_is_of_its_projects(tenant: Tenant) -> None:
    world = World(tenant)
    world.callers["limited"] = limited_key(tenant, projects=[world.names["project"]])

    found = {f"{row.method} {row.path}": world.call("limited", row).status for row in TABLE}

    by_project = {f"{row.method} {row.path}" for row in TABLE if access_of(row).by_project}
    assert {name for name, status in found.items() if status != 403} == by_project - {
        # Without the project, or of another one, or a key without projects.
        "POST /availability/explain",
        "POST /unavailable/slots",
        "POST /credentials",
        "DELETE /credentials/{credential}",
    }


def test_key_with_addresses_may_call_nothing_from_elsewhere(tenant: Tenant) -> None:
    world = World(tenant)
    world.callers["limited"] = limited_key(tenant, addresses=["203.0.113.0/24"])

    answers = {f"{row.method} {row.path}": world.call("limited", row) for row in TABLE}

    found = {name: answer.json and answer.json.get("code") for name, answer in answers.items()}
    assert found == dict.fromkeys(found, "address_not_allowed")


def operations_of(key: Credential) -> set[tuple[str, str]]:
    """The actions that the key's kind and scopes allow, in all projects."""
    caller = SimpleNamespace(
        kind=key.kind,
        projects=None,
        has_scopes=lambda *scopes: key.scopes is None or {*scopes} <= {*key.scopes},
    )
    return {
        (view, action)
        for view, actions in ACCESS.items()
        for action, access in actions.items()
        if may_call(caller, access)
    }


def test_key_makes_no_key_that_may_do_more_than_itself(tenant: Tenant) -> None:
    """Any key of any limits, asked for any other one."""
    chance = random.Random(47)
    projects = [tenant.make_project(name=name)["id"] for name in "AB"]
    networks = ["127.0.0.0/8", "127.0.0.1/32", "203.0.113.0/24"]

    def limits() -> dict[str, Any]:
        chosen = {
            "scopes": chance.sample(Credential.SCOPES, chance.randint(1, 7)),
            "projects": chance.sample(projects, chance.randint(1, 2)),
            "addresses": chance.sample(networks, chance.randint(1, 3)),
        }
        return {name: value for name, value in chosen.items() if chance.random() < 0.6}

    made = 0
    for _ in range(300):
        held = limits()
        held["scopes"] = [*held.get("scopes", Credential.SCOPES), Credential.KEYS_WRITE]
        maker, text = issue_key(Credential.SERVER, app=tenant.app, **held)
        kind = chance.choice([Credential.SERVER, Credential.SERVER, Credential.WIDGET])
        names = ("projects",) if kind == Credential.WIDGET else ("scopes", "projects", "addresses")
        body = {name: value for name, value in limits().items() if name in names}
        answer = Caller(text).post("/credentials", {"kind": kind, **body})
        if answer.status in (401, 403):  # 403 also from elsewhere
            continue
        assert answer.status == 201, answer.json
        made += 1
        key = Credential.objects.get(id=answer.data["id"])
        assert operations_of(key) <= operations_of(maker), (held, kind, body)
        assert maker.projects is None or {*key.projects} <= {*maker.projects}
        assert maker.addresses is None or all(
            any(ip_network(each).subnet_of(ip_network(other)) for other in maker.addresses)
            for each in key.addresses
        )
    assert made > 20


def test_document_names_the_scope_of_each_operation() -> None:
    document = json.loads((settings.BASE_DIR / "docs/openapi.json").read_text())

    named = {
        (method.upper(), path): operation.get("x-scope")
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if operation["security"]
    }

    assert named == {
        (method.upper(), "/v2/" + re.sub(r"<\w+:(\w+)>", r"{\1}", path)): ACCESS[
            view.initkwargs["basename"]
        ][action].scope
        for path, view in endpoints()
        for method, action in view.actions.items()
        if method != "head"
    }
    assert set(named.values()) == set(Credential.SCOPES)


def limited_key(tenant: Tenant, **limits: Any) -> Caller:
    return Caller(issue_key(Credential.SERVER, app=tenant.app, **limits)[1])


def test_head_has_the_permissions_and_parameters_of_get(tenant: Tenant) -> None:
    key = tenant.make_resource("Desk", email="desk@example.com")["api_token"]
    callers = {
        "editor": tenant.member("editor@example.com", Membership.EDITOR),
        "viewer": tenant.member("viewer@example.com", Membership.VIEWER),
        "resource": Caller(key, user="desk@example.com"),
        "widget": tenant.widget(),
    }

    found = {
        path: {name: caller.call("HEAD", path).status for name, caller in callers.items()}
        for path in ("/bookings?state=confirmed", "/bookings/groups?limit=1", "/credentials")
    }

    assert found == {
        "/bookings?state=confirmed": {"editor": 200, "viewer": 200, "resource": 200, "widget": 403},
        "/bookings/groups?limit=1": dict.fromkeys(callers, 200),
        "/credentials": dict.fromkeys(callers, 403),
    }


def test_every_path_works_with_a_trailing_slash(tenant: Tenant) -> None:
    world = World(tenant)
    rows = [row._replace(path=slashed(row.path)) for row in TABLE]

    found = {f"{row.method} {row.path}": world.call("owner", row).status for row in rows}

    assert found == {f"{row.method} {row.path}": row.status for row in rows}


def slashed(path: str) -> str:
    head, mark, query = path.partition("?")
    return f"{head}/{mark}{query}"


def test_unknown_query_parameters_are_refused_everywhere(tenant: Tenant) -> None:
    world = World(tenant)
    errors = {"unknown": ["Is not a known query parameter."]}

    for row in TABLE:
        path = row.path + ("&" if "?" in row.path else "?") + "unknown=1"
        answer = world.call("owner", row._replace(path=path))
        assert (answer.status, answer.json["errors"]) == (422, errors), path


def test_whole_refusal(tenant: Tenant) -> None:
    answer = tenant.widget().get("/resources")

    assert (answer.status, answer.error) == (
        403,
        {"error": "A widget key can't do this.", "code": "forbidden"},
    )


def test_permissions_are_checked_before_the_body(tenant: Tenant) -> None:
    """Who may not do it learns nothing about what would be valid."""
    viewer = tenant.member("viewer@example.com", Membership.VIEWER)

    statuses = [
        caller.post(path, {"slug": 5}).status
        for caller, path in ((viewer, "/resources"), (viewer, "/apps"), (tenant, "/apps"))
    ]

    assert statuses == [403, 403, 403]


def test_every_endpoint_is_in_the_table() -> None:
    """A new endpoint needs a line that says who may call it."""
    expected = {
        (method, "/" + path)
        for path, view in endpoints()
        for method in view.actions
        if method != "head"
    }

    assert {(row.method.lower(), route(row.path)) for row in TABLE} == expected


def test_table_of_access_has_exactly_the_actions_of_the_router() -> None:
    routed: dict[str, set[str]] = {}
    for _, view in endpoints():
        routed.setdefault(view.initkwargs["basename"], set()).update(view.actions.values())

    assert {name: set(actions) for name, actions in ACCESS.items()} == routed


def test_name_on_the_router_belongs_to_one_viewset() -> None:
    """Permissions are found by it."""
    named: dict[str, set[type]] = {}
    for _, view in endpoints():
        named.setdefault(view.initkwargs["basename"], set()).add(view.cls)

    assert {name: len(viewsets) for name, viewsets in named.items()} == dict.fromkeys(ACCESS, 1)


def endpoints() -> list[tuple[str, Any]]:
    """Path and view of every endpoint of an app below /v2."""
    below = [
        pattern
        for part in get_resolver().url_patterns
        if str(part.pattern) == "v2/" and hasattr(part, "url_patterns")
        for pattern in part.url_patterns
    ]
    assert all(isinstance(pattern, URLPattern) for pattern in below)
    views = [(str(pattern.pattern), pattern.callback) for pattern in below]
    # Pages for people and the description need no key: nobody has rights there.
    return [(path, view) for path, view in views if issubclass(view.cls, TenantViewSet)]


def route(path: str) -> str:
    """The pattern of a path in the table: `/apps/{slug}` is `/apps/<str:slug>`."""
    for pattern, names in ROUTES.items():
        for name in names:
            path = path.replace("{" + name + "}", f"<{pattern}>")
    path = path.partition("?")[0]
    return path.replace("/cancel", "/<str:action>")


ROUTES = {
    "str:slug": ("slug",),
    "str:provider": ("client",),
    "uuid:resource_id": ("resource", "spare"),
    "uuid:schedule_id": ("schedule",),
    "uuid:member_id": ("member",),
    "uuid:credential_id": ("credential",),
    "uuid:calendar_id": ("calendar", "second", "connected"),
    "uuid:event_id": ("event",),
    "uuid:project_id": ("project", "unused"),
    "uuid:booking_id": ("booking", "done"),
    "uuid:group_id": ("group",),
    "uuid:reservation_id": ("hold", "unverified"),
    "uuid:webhook_id": ("webhook",),
    "uuid:delivery_id": ("delivery",),
    "str:template_slug": ("template",),
    "str:email": ("email",),
    "path:external_id": ("external",),
}


# --- A resource's key, beyond its own -------------------------------------------------------------
def resource_key(tenant: Tenant) -> tuple[Caller, dict[str, str]]:
    """The key of one resource, and what is another's."""
    mine = tenant.make_resource("Mine", email="mine@example.com")
    other = tenant.make_resource("Other")
    calendar = other["calendars"][0]["id"]
    event = tenant.make_event(calendar, "2026-11-24T09:00:00Z", "2026-11-24T10:00:00Z")
    booking = tenant.book(resource_id=other["id"], **EVENT).data["id"]
    times = {"start": "2026-11-26T09:00:00Z", "end": "2026-11-26T10:00:00Z"}
    hold = tenant.post("/bookings/reserve", {"resource_id": other["id"], **times}).data
    names = {"resource": other["id"], "calendar": calendar, "event": event["id"]}
    names["hold"] = hold["reservation_id"]
    caller = Caller(mine["api_token"], user="mine@example.com")
    return caller, names | {"booking": booking, "unknown": str(uuid.uuid4())}


@pytest.mark.parametrize(
    ("method", "path", "body", "model"),
    [
        ("GET", "/resources/{resource}", None, "Resource"),
        ("PUT", "/resources/{resource}", {}, "Resource"),
        ("GET", "/calendars/{calendar}", None, "Calendar"),
        ("PUT", "/calendars/{calendar}", {}, "Calendar"),
        ("DELETE", "/calendars/{calendar}", None, "Calendar"),
        ("GET", "/events/{event}", None, "Event"),
        ("PUT", "/events/{event}", {}, "Event"),
        ("DELETE", "/events/{event}", None, "Event"),
        ("GET", "/bookings/{booking}", None, "Booking"),
        ("PUT", "/bookings/{booking}", {}, "Booking"),
        ("DELETE", "/bookings/{booking}", None, "Booking"),
        ("PUT", "/bookings/{booking}/cancel", None, "Booking"),
        ("POST", "/bookings/{booking}/reschedule", EVENT, "Booking"),
        ("DELETE", "/bookings/reserve/{hold}", None, "Hold"),
    ],
)
def test_resource_key_gets_404_for_rows_of_other_resources(
    tenant: Tenant, method: str, path: str, body: Any, model: str
) -> None:
    caller, names = resource_key(tenant)
    unknown = dict.fromkeys(names, names["unknown"])

    answers = [caller.call(method, path.format(**ids), body) for ids in (names, unknown)]

    error = {"error": f"{model} not found.", "code": "not_found", "model": model}
    assert [(answer.status, answer.error) for answer in answers] == [(404, error)] * 2


@pytest.mark.parametrize(
    ("path", "body", "where"),
    [
        ("/calendars", {"name": "B", "resource_id": "{resource}"}, "resource_id"),
        ("/events", {"calendar_id": "{calendar}", "what": "A", **EVENT}, "calendar_id"),
        ("/bookings",
         {"resource_id": "{resource}", "what": "A", "customer": CUSTOMER, **EVENT}, "resource_id"),
        ("/bookings",
         {"event": {"calendar_id": "{calendar}", "what": "A", **EVENT}, "customer": CUSTOMER},
         "event.calendar_id"),
        ("/bookings/reserve", {"resource_id": "{resource}", **EVENT}, "resource_id"),
        ("/bookings/reserve", {"calendar_id": "{calendar}", **EVENT}, "calendar_id"),
        ("/bookings",
         {"what": "A", "customer": CUSTOMER, "reservation_id": "{hold}", **EVENT},
         "reservation_id"),
        ("/availability", ASK, "resources.0"),
        ("/findtime", {"resource_ids": ["{resource}"]}, "resource_ids.0"),
    ],
)  # fmt: skip
def test_resource_key_cannot_reference_other_resources(
    tenant: Tenant, path: str, body: Any, where: str
) -> None:
    caller, names = resource_key(tenant)
    world = World.__new__(World)
    world.names = names

    answer = caller.post(path, world.fill(body))

    noun = {"calendar_id": "calendar", "reservation_id": "hold"}.get(
        where.split(".")[-1], "resource"
    )
    assert (answer.status, answer.error["errors"]) == (
        422,
        {where: [f"There is no such {noun}."]},
    )


def test_listings_of_a_resource_key_have_only_its_own_rows(tenant: Tenant) -> None:
    caller, _ = resource_key(tenant)
    mine = caller.get("/resources").data[0]
    booking = tenant.book(resource_id=mine["id"], **EVENT).data["id"]
    span = "start=2026-11-20T00:00:00Z&end=2026-11-30T00:00:00Z"

    found = {
        "resources": caller.get("/resources").json,
        "calendars": caller.get("/calendars").json,
        "events": caller.get(f"/events?{span}").json,
        "bookings": caller.get("/bookings").json,
    }

    assert {name: (answer["total"], len(answer["data"])) for name, answer in found.items()} == (
        dict.fromkeys(found, (1, 1))
    )
    assert found["resources"]["data"][0]["name"] == "Mine"
    assert found["bookings"]["data"][0]["id"] == booking


def test_resource_key_does_not_see_other_resources_of_its_projects(tenant: Tenant) -> None:
    caller, names = resource_key(tenant)
    mine = caller.get("/resources").data[0]["id"]
    project = tenant.make_project(mine, names["resource"])["id"]
    body = {"project_id": project, "what": "A", "customer": CUSTOMER, **EVENT}

    booked = caller.post("/bookings?include=resource,project", body)
    refused = caller.get("/bookings?include=project.resources")

    assert (booked.status, booked.data["resource"]["id"], booked.data["project"]["id"]) == (
        201,
        mine,
        project,
    )
    assert names["resource"] not in booked.content.decode()
    assert (refused.status, refused.json["errors"]) == (
        422,
        {"include": ["project.resources can't be included."]},
    )
