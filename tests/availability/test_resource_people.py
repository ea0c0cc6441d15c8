"""Resources as people: their passwords, their clocks, their older name (section 4)."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.hashers import check_password
from django.test import Client

from apps_config.models import Credential
from apps_config.services import LOG_IN_DESCRIPTION
from availability.models import Resource
from tests.world import Answer, Caller, Tenant

MakeTenant = Callable[..., Tenant]
PASSWORD = "correct horse battery"
NOT_FOUND = {"error": "Resource not found.", "code": "not_found", "model": "Resource"}


@pytest.fixture(autouse=True)
def _frozen_clock(clock: Any) -> None:
    """The clock stands still."""


def log_in(password: str) -> Answer:
    body = {"email": "ada@example.com", "password": password}
    return Answer(Client().post("/v2/auth", body, content_type="application/json"))


# --- Passwords ------------------------------------------------------------------------------------
def test_password_is_stored_and_never_returned(tenant: Tenant) -> None:
    answer = tenant.post(
        "/resources",
        {"name": "Ada", "timezone": "UTC", "email": "ada@example.com", "password": PASSWORD},
    )

    shown = tenant.get(f"/resources/{answer.data['id']}")
    row = Resource.objects.get()
    assert (answer.status, check_password(PASSWORD, row.password)) == (201, True)
    assert "password" not in answer.data | shown.data
    assert row.password not in (answer.content + shown.content).decode()
    assert log_in(PASSWORD).data["id"] == answer.data["id"]


def test_a_new_password_ends_the_log_ins_made_with_the_old_one(tenant: Tenant) -> None:
    made = tenant.make_resource(email="ada@example.com", password=PASSWORD)
    token = log_in(PASSWORD).data["api_token"]

    answer = tenant.put(f"/resources/{made['id']}", {"password": "another password"})

    keys = [token, made["api_token"]]
    statuses = [Caller(key, user="ada@example.com").get("/resources").status for key in keys]
    assert (answer.status, statuses) == (200, [401, 200])
    assert [log_in(one).status for one in (PASSWORD, "another password")] == [401, 200]


def test_other_updates_keep_password_and_log_in_keys(tenant: Tenant) -> None:
    made = tenant.make_resource(email="ada@example.com", password=PASSWORD)
    log_in(PASSWORD)

    tenant.put(f"/resources/{made['id']}", {"name": "Bob"})

    assert log_in(PASSWORD).data["name"] == "Bob"
    assert Credential.objects.filter(description=LOG_IN_DESCRIPTION).count() == 2


def test_null_removes_the_password(tenant: Tenant) -> None:
    made = tenant.make_resource(email="ada@example.com", password=PASSWORD)
    log_in(PASSWORD)

    answer = tenant.put(f"/resources/{made['id']}", {"password": None})

    assert (answer.status, Resource.objects.get().password) == (200, "")
    assert (log_in(PASSWORD).status, log_in("null").status) == (401, 401)
    assert not Credential.objects.filter(description=LOG_IN_DESCRIPTION).exists()


@pytest.mark.parametrize(
    ("password", "fault"),
    [
        ("x" * 11, "Ensure this field has at least 12 characters."),
        ("x" * 201, "Ensure this field has no more than 200 characters."),
        ("", "This field may not be blank."),
        (12345678, "Must be a string."),
    ],
)
def test_wrong_password_lengths_are_refused(tenant: Tenant, password: Any, fault: str) -> None:
    made = tenant.make_resource()
    body = {"name": "B", "timezone": "UTC", "password": password}

    answers = [tenant.post("/resources", body), tenant.put(f"/resources/{made['id']}", body)]

    assert [(answer.status, answer.json["errors"]) for answer in answers] == [
        (422, {"password": [fault]})
    ] * 2
    assert [(row.name, row.password) for row in Resource.objects.all()] == [("Ada", "")]


@pytest.mark.parametrize("password", ["x" * 12, "x" * 200, "пароль ☃ 12 ы"])
def test_password_length_bounds_are_accepted(tenant: Tenant, password: str) -> None:
    tenant.make_resource(email="ada@example.com", password=password)

    assert log_in(password).status == 200


# --- GET /resources/timezone/:email ---------------------------------------------------------------
@pytest.mark.parametrize(
    ("zone", "offset"),
    [
        ("UTC", 0),
        ("Europe/Berlin", 1),
        ("Asia/Kathmandu", 5.75),
        ("America/St_Johns", -3.5),
        ("Pacific/Kiritimati", 14),
    ],
)
def test_zone_and_offset(tenant: Tenant, zone: str, offset: float) -> None:
    tenant.make_resource("Ada", zone, email="Ada@example.com")

    answer = tenant.get("/resources/timezone/ada@EXAMPLE.com")

    assert (answer.status, answer.json) == (
        200,
        {"data": {"timezone": zone, "utc_offset": offset}},
    )
    assert type(answer.data["utc_offset"]) is type(offset)


def test_utc_offset_is_current(tenant: Tenant, clock: Any) -> None:
    tenant.make_resource("Ada", "Europe/Berlin", email="ada@example.com")
    clock.move_to("2026-07-01T12:00:00Z")

    assert tenant.get("/resources/timezone/ada@example.com").data["utc_offset"] == 2


@pytest.mark.parametrize("kind", ["unknown", "foreign", "deleted", "no address"])
def test_unknown_foreign_and_deleted_addresses_are_not_found(
    tenant: Tenant, make_tenant: MakeTenant, kind: str
) -> None:
    make_tenant().make_resource(email="foreign@example.com")
    gone = tenant.make_resource(email="deleted@example.com")
    tenant.delete(f"/resources/{gone['id']}")

    answer = tenant.get(f"/resources/timezone/{kind.split()[0]}@example.com")

    assert (answer.status, answer.error) == (404, NOT_FOUND)


def test_resource_key_reads_only_its_own_zone(tenant: Tenant) -> None:
    ada = tenant.make_resource(email="ada@example.com")
    tenant.make_resource(email="bob@example.com")
    caller = Caller(ada["api_token"], user="ada@example.com")

    answers = [caller.get(f"/resources/timezone/{name}@example.com") for name in ("ada", "bob")]

    assert [answer.status for answer in answers] == [200, 404]


# --- /users ---------------------------------------------------------------------------------------
def test_users_endpoints_are_aliases_of_resources(tenant: Tenant) -> None:
    """Every path has an older name; answers do not differ."""
    made = tenant.post("/users", {"name": "Ada", "timezone": "UTC", "email": "ada@example.com"})
    path = f"/users/{made.data['id']}"

    answers = {
        "PUT": tenant.put(path, {"name": "Bob"}).data,
        "GET": tenant.get(path).data,
        "list": tenant.get("/users?include=calendars").data,
        "zone": tenant.get("/users/timezone/ada@example.com").data,
    }

    expected = tenant.get(f"/resources/{made.data['id']}").data
    assert made.status == 201
    assert answers == {
        "PUT": expected,
        "GET": expected,
        "list": [expected | {"calendars": made.data["calendars"]}],
        "zone": {"timezone": "UTC", "utc_offset": 0},
    }
    assert (tenant.delete(path).status, tenant.get(path).status) == (204, 404)
    assert tenant.get(f"/users/{uuid.uuid4()}").error == NOT_FOUND
