"""/credentials: the keys of an app, shown once (section 3)."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from apps_config.models import Credential, Membership
from tests.world import STAMP, Caller, Tenant

MakeTenant = Callable[..., Tenant]
pytestmark = pytest.mark.usefixtures("clock")

NOT_FOUND = {"error": "Credential not found.", "code": "not_found", "model": "Credential"}
LATER = "2026-11-20T10:30:00+0000"


def record(made: Any, kind: str, **given: Any) -> dict[str, Any]:
    """A key as it is written where only its kind was given."""
    row = Credential.objects.get(id=made["id"])
    return {
        "id": made["id"],
        "kind": kind,
        "prefix": row.prefix,
        "description": "",
        "resource_id": None,
        "projects": None,
        "origins": None,
        "scopes": None,
        "addresses": None,
        "expires_at": None,
        "revoked_at": None,
        "last_used_at": None,
        "created_at": STAMP,
        "updated_at": STAMP,
        **given,
    }


# --- POST -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("mode", "kind", "word"),
    [
        ("live", "server", "live_api_key_"),
        ("test", "server", "test_api_key_"),
        ("live", "widget", "live_widget_key_"),
        ("test", "widget", "test_widget_key_"),
    ],
)
def test_create_server_key(make_tenant: MakeTenant, mode: str, kind: str, word: str) -> None:
    tenant = make_tenant(mode=mode)

    answer = tenant.post("/credentials", {"kind": kind})

    key = answer.data["key"]
    assert (answer.status, answer.json) == (201, {"data": record(answer.data, kind, key=key)})
    assert (key[: len(word)], key[:-43]) == (word, answer.data["prefix"])
    path, body = ("/app", None) if kind == "server" else ("/availability", {"resources": []})
    assert Caller(key).call("GET" if body is None else "POST", path, body).status in (200, 422)


def test_create_key_with_every_field(tenant: Tenant) -> None:
    given = {"kind": "server", "description": "Night job", "expires_at": "2026-11-20 10:30:00"}

    answer = tenant.post("/credentials", given)

    expected = record(
        answer.data,
        "server",
        key=answer.data["key"],
        description="Night job",
        expires_at=LATER,
    )
    assert (answer.status, answer.json) == (201, {"data": expected})


def test_create_resource_key(tenant: Tenant) -> None:
    resource = tenant.make_resource(email="ada@example.com")
    body = {"kind": "resource", "resource_id": resource["id"]}

    answer = tenant.post("/credentials", body)

    expected = record(answer.data, "resource", key=answer.data["key"], resource_id=resource["id"])
    seen = Caller(answer.data["key"], user="ada@example.com").get("/resources").data
    assert (answer.status, answer.json) == (201, {"data": expected})
    assert [one["id"] for one in seen] == [resource["id"]]


@pytest.mark.parametrize(
    ("given", "errors"),
    [
        ({}, {"kind": ["This field is required."]}),
        ({"kind": "access"}, {"kind": ["Must be one of server, widget, resource."]}),
        ({"kind": "root"}, {"kind": ["Must be one of server, widget, resource."]}),
        (
            {"kind": "server", "description": "a\nb"},
            {"description": ["May not contain control characters or line breaks."]},
        ),
        (
            {"kind": "server", "expires_at": "2026-11-20T09:30:00Z"},
            {"expires_at": ["Must be in the future."]},
        ),
        ({"kind": "server", "expires_at": 5}, {"expires_at": ["Must be a string."]}),
        ({"kind": "resource"}, {"resource_id": ["This field is required."]}),
        (
            {"kind": "server", "resource_id": str(uuid.uuid4())},
            {"resource_id": ["Only keys of the kind resource take a resource_id."]},
        ),
        (
            {"kind": "resource", "resource_id": str(uuid.uuid4())},
            {"resource_id": ["There is no such resource."]},
        ),
    ],
)
def test_wrong_keys_are_refused(
    tenant: Tenant, given: dict[str, Any], errors: dict[str, list[str]]
) -> None:
    before = Credential.objects.count()

    answer = tenant.post("/credentials", given)

    assert (answer.status, answer.json["errors"]) == (422, errors)
    assert Credential.objects.count() == before


def test_resource_of_another_app_is_refused(tenant: Tenant, make_tenant: MakeTenant) -> None:
    stranger = make_tenant().make_resource()

    answer = tenant.post("/credentials", {"kind": "resource", "resource_id": stranger["id"]})

    assert (answer.status, answer.json["errors"]) == (
        422,
        {"resource_id": ["There is no such resource."]},
    )


def test_a_key_expires(tenant: Tenant, clock: Any) -> None:
    body = {"kind": "server", "expires_at": "2026-11-20T10:30:00Z"}
    caller = Caller(tenant.post("/credentials", body).data["key"])

    before = caller.get("/app").status
    clock.shift(3600)

    assert (before, caller.get("/app").status) == (200, 401)


# --- GET ------------------------------------------------------------------------------------------
def test_list_is_newest_first_without_secrets(tenant: Tenant, clock: Any) -> None:
    own = Credential.objects.get(app=tenant.app)
    widget = tenant.post("/credentials", {"kind": "widget"}).data
    server = tenant.post("/credentials", {"kind": "server"}).data

    answer = tenant.get("/credentials")

    assert (answer.status, answer.json["total"]) == (200, 3)
    assert answer.data == [
        record(server, "server"),
        record(widget, "widget", key=widget["key"]),
        record({"id": str(own.id)}, "server", last_used_at=STAMP),
    ]
    assert tenant.key not in answer.content.decode()
    assert server["key"] not in answer.content.decode()


def test_last_use_is_rounded_to_the_minute(tenant: Tenant, clock: Any) -> None:
    key = tenant.post("/credentials", {"kind": "server"}).data
    clock.shift(95)

    Caller(key["key"]).get("/app")

    shown = tenant.get("/credentials").data[0]
    assert shown == record(key, "server", last_used_at="2026-11-20T09:31:00+0000")
    assert tenant.get("/credentials?updated_since=-1 min").data == []


def test_the_list_has_pages_and_a_search(tenant: Tenant, make_tenant: MakeTenant) -> None:
    resource = tenant.make_resource(email="ada@example.com")
    tenant.make_resource()
    stranger = make_tenant().make_resource()
    body = {"kind": "resource", "resource_id": resource["id"]}
    newer = tenant.post("/credentials", body).data

    page = tenant.get("/credentials?limit=1&page=2")
    found = tenant.get(f"/credentials?search=resource.id:{resource['id']}")
    foreign = tenant.get(f"/credentials?search=resource.id:{stranger['id']}")

    first = Credential.objects.exclude(id=newer["id"]).get(resource=resource["id"])
    keys = [
        record(one, "resource", resource_id=resource["id"], description=text)
        for one, text in ((newer, ""), ({"id": str(first.id)}, first.description))
    ]
    assert (page.json["total"], page.json["last_page"], len(page.data)) == (4, 4, 1)
    assert (found.json["total"], found.data) == (2, keys)
    assert (foreign.json["total"], foreign.data) == (0, [])


@pytest.mark.parametrize(
    ("query", "errors"),
    [
        ("search=resource.id:x", {"search": ["resource.id must be a UUID."]}),
        ("search=kind:server", {"search": ["kind can't be searched."]}),
        ("kind=server", {"kind": ["Is not a known query parameter."]}),
    ],
)
def test_wrong_filters_are_refused(
    tenant: Tenant, query: str, errors: dict[str, list[str]]
) -> None:
    answer = tenant.get(f"/credentials?{query}")

    assert (answer.status, answer.json["errors"]) == (422, errors)


def test_access_tokens_and_other_apps_keys_are_not_listed(
    tenant: Tenant, make_tenant: MakeTenant
) -> None:
    owner = tenant.member("owner@example.com")
    make_tenant().widget()

    assert [one["kind"] for one in owner.get("/credentials").data] == ["server"]


# --- DELETE ---------------------------------------------------------------------------------------
def test_a_revoked_key_is_refused_and_stays_in_the_list(tenant: Tenant, clock: Any) -> None:
    made = tenant.post("/credentials", {"kind": "widget"}).data
    clock.shift(3600)

    answers = [tenant.delete(f"/credentials/{made['id']}") for _ in range(2)]
    clock.shift(3600)
    tenant.delete(f"/credentials/{made['id']}")

    assert [(answer.status, answer.content) for answer in answers] == [(204, b"")] * 2
    assert Caller(made["key"]).post("/bookings", {}).status == 401
    assert tenant.get("/credentials").data[0] == record(
        made, "widget", key=made["key"], revoked_at=LATER, updated_at=LATER
    )


@pytest.mark.parametrize("kind", ["foreign", "unknown", "access"])
def test_foreign_unknown_and_access_keys_are_not_found(
    tenant: Tenant, make_tenant: MakeTenant, kind: str
) -> None:
    tenant.member("owner@example.com")
    ids = {
        "foreign": make_tenant().post("/credentials", {"kind": "server"}).data["id"],
        "unknown": str(uuid.uuid4()),
        "access": str(Credential.objects.get(kind="access").id),
    }

    answer = tenant.delete(f"/credentials/{ids[kind]}")

    assert (answer.status, answer.error) == (404, NOT_FOUND)
    assert not Credential.objects.exclude(revoked_at=None).exists()


# --- Who may --------------------------------------------------------------------------------------
@pytest.mark.parametrize("role", [Membership.VIEWER, Membership.EDITOR])
def test_only_owners_list_and_change_keys(tenant: Tenant, role: str) -> None:
    member = tenant.member("member@example.com", role)
    made = tenant.post("/credentials", {"kind": "widget"}).data

    answers = [
        member.get("/credentials"),
        member.post("/credentials", {"kind": "server"}),
        member.delete(f"/credentials/{made['id']}"),
    ]

    assert [(answer.status, answer.json["code"]) for answer in answers] == [(403, "forbidden")] * 3
