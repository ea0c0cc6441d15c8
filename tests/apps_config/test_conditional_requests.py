"""ETags, If-None-Match and If-Match; PATCH; Bearer; problem details; GET /v2."""

import base64
import threading
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.test import Client

from apps_config import authentication
from apps_config.models import Membership
from availability.models import Resource
from common.limits.rate_limit import RateWindow
from tests.bookings.booking_drafts import MARTY
from tests.waiters import wait_for_waiters
from tests.world import Answer, Caller, Tenant

pytestmark = pytest.mark.both_databases

PROBLEM = "application/problem+json"


@pytest.fixture
def resource(tenant: Tenant) -> Any:
    return tenant.post("/resources", {"name": "Ada", "timezone": "UTC"}).data


# --- ETag -----------------------------------------------------------------------------------------
def test_unchanged_object_is_not_modified(tenant: Tenant, resource: Any) -> None:
    path = f"/resources/{resource['id']}"
    first = tenant.get(path)
    again = tenant.get(path, **{"If-None-Match": f'"x", W/{first.headers["ETag"]}'})
    tenant.put(path, {"name": "Bea"})
    later = tenant.get(path, **{"If-None-Match": first.headers["ETag"]})

    assert (again.status, again.json) == (304, None)
    assert again.headers["ETag"] == first.headers["ETag"]
    assert again.headers["Service-Request-Id"]
    assert (later.status, later.data["name"]) == (200, "Bea")
    assert later.headers["ETag"] != first.headers["ETag"]


@pytest.mark.parametrize("path", ["resources", "projects", "schedules", "webhooks"])
def test_change_needs_the_present_etag(tenant: Tenant, path: str) -> None:
    bodies = {
        "resources": {"name": "Ada", "timezone": "UTC"},
        "projects": {"name": "Check-up"},
        "schedules": {"name": "Hours"},
        "webhooks": {"url": "https://example.com/hook", "active": False},
    }
    name = "description" if path == "webhooks" else "name"
    at = f"/{path}/{tenant.post(f'/{path}', bodies[path]).data['id']}"
    etag = tenant.get(at).headers["ETag"]

    changed = tenant.put(at, {name: "First"}, **{"If-Match": etag})
    lost = tenant.put(at, {name: "Second"}, **{"If-Match": etag})
    kept = tenant.delete(at, **{"If-Match": etag})
    any_state = tenant.put(at, {name: "Third"}, **{"If-Match": "*"})
    gone = tenant.delete(at, **{"If-Match": tenant.get(at).headers["ETag"]})

    assert (changed.status, changed.data[name]) == (200, "First")
    for refused in (lost, kept):
        assert (refused.status, refused.json["code"]) == (412, "precondition_failed")
    assert (any_state.status, any_state.data[name]) == (200, "Third")
    assert gone.status == 204


def test_booking_and_app_are_changed_with_their_etag(tenant: Tenant, resource: Any) -> None:
    booking = tenant.book(
        resource_id=resource["id"], start="2077-01-04 09:00:00", end="2077-01-04 09:30:00"
    ).data
    at, app = f"/bookings/{booking['id']}", f"/apps/{tenant.app.slug}"
    template = "/templates/confirmed_customer"

    for path, body in (
        (at, {"meta": {"a": 1}}),
        (app, {"name": "B"}),
        (template, {"subject": "Yes"}),
    ):
        etag = tenant.get(path).headers["ETag"]
        assert tenant.put(path, body, **{"If-Match": '"other"'}).status == 412
        assert tenant.put(path, body, **{"If-Match": etag}).status == 200
        assert tenant.put(path, body, **{"If-Match": etag}).status == 412


def test_if_match_of_an_unknown_object_is_not_found(tenant: Tenant) -> None:
    path = "/resources/00000000-0000-7000-8000-000000000000"

    assert tenant.put(path, {"name": "A"}, **{"If-Match": "*"}).status == 404


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_of_two_writers_with_one_etag_one_changes(tenant: Tenant, resource: Any) -> None:
    path = f"/resources/{resource['id']}"
    etag = tenant.get(path).headers["ETag"]
    answers: list[Answer] = []

    def write(name: str) -> None:
        answers.append(tenant.put(path, {"name": name}, **{"If-Match": etag}))
        connection.close()

    threads = [threading.Thread(target=write, args=(f"N{number}",)) for number in range(4)]
    with transaction.atomic():
        Resource.objects.select_for_update().get(id=resource["id"])
        for thread in threads:
            thread.start()
        wait_for_waiters(len(threads))
    for thread in threads:
        thread.join()

    assert sorted(answer.status for answer in answers) == [200, 412, 412, 412]


# --- PATCH ----------------------------------------------------------------------------------------
def test_patch_is_put(tenant: Tenant, resource: Any) -> None:
    path = f"/resources/{resource['id']}"
    key = {"Idempotency-Key": "once"}

    changed = tenant.call("PATCH", path, {"first_name": "Ada", "nme": 1}, key)
    again = tenant.call("PATCH", path, {"first_name": "Ada", "nme": 1}, key)
    strict = tenant.call("PATCH", path, {"nme": 1}, {"Prefer": "handling=strict"})

    assert (changed.status, changed.data["first_name"]) == (200, "Ada")
    assert changed.headers["Service-Ignored"] == "nme"
    assert again.headers["Idempotent-Replayed"] == "true"
    assert (strict.status, list(strict.json["errors"])) == (422, ["nme"])


def test_patch_needs_the_rights_of_put(tenant: Tenant, resource: Any) -> None:
    viewer = tenant.member("viewer@example.com", Membership.VIEWER)
    path = f"/resources/{resource['id']}"

    assert viewer.call("PATCH", path, {"name": "B"}).status == 403
    assert tenant.widget().call("PATCH", path, {"name": "B"}).status == 403
    assert tenant.call("PATCH", "/resources", {"name": "B"}).status == 405


def test_browsers_may_patch() -> None:
    headers = {"Origin": "https://shop.example", "Access-Control-Request-Method": "PATCH"}

    answer = Client().options("/v2/resources", headers=headers)

    assert "PATCH" in answer.headers["Access-Control-Allow-Methods"]


# --- Bearer ---------------------------------------------------------------------------------------
def bearer(key: str, path: str = "/app") -> Answer:
    return Answer(Client().get(f"/v2{path}", headers={"Authorization": f"Bearer {key}"}))


def test_any_key_is_a_bearer_token(tenant: Tenant) -> None:
    owner = tenant.member("owner@example.com", Membership.OWNER)
    keys = [
        base64.b64decode(caller.headers["Authorization"].split()[1]).decode().split(":", 1)[1]
        for caller in (tenant, owner)
    ]
    project = tenant.make_project(name="Check-up")["id"]
    widget = tenant.post("/credentials", {"kind": "widget", "projects": [project]}).data["key"]
    of_resource = tenant.make_resource("Bob", email="bob@example.com")

    assert [bearer(key).data for key in keys] == [tenant.get("/app").data] * 2
    assert bearer(widget, f"/projects/embed/{project}").data["id"] == project
    seen = bearer(of_resource["api_token"], "/resources").data
    assert [row["id"] for row in seen] == [of_resource["id"]]
    for wrong in (f"{keys[0]}x", "", "x", f":{keys[0]}"):
        assert (bearer(wrong).status, bearer(wrong).json["code"]) == (401, "unauthenticated")


# --- Problem details ------------------------------------------------------------------------------
def test_errors_are_problem_details_on_request(tenant: Tenant) -> None:
    path = "/resources/00000000-0000-7000-8000-000000000000"
    plain = tenant.get(path)
    problem = tenant.get(path, Accept="application/problem+json")
    both = tenant.get("/app", Accept="application/json, application/problem+json")
    outside = Client().get("/v2/nowhere", headers={"Accept": "application/problem+json"})

    assert plain.headers["Content-Type"] == "application/json"
    assert problem.headers["Content-Type"] == "application/problem+json"
    assert problem.json == {
        "type": "about:blank",
        "title": "Not Found",
        "status": 404,
        "detail": plain.json["error"],
        **plain.json,
        "request_id": problem.json["request_id"],
    }
    assert (both.status, both.headers["Content-Type"]) == (200, "application/json")
    assert outside.headers["Content-Type"] == "application/problem+json"
    assert outside.json()["title"] == "Not Found"


def test_refusals_of_the_service_can_be_problem_details(tenant: Tenant, resource: Any) -> None:
    """With those of tests/common/test_views.py: each status of an error."""
    nine = {"start": "2077-01-04 09:00:00", "end": "2077-01-04 09:30:00"}
    tenant.book(resource_id=resource["id"], **nine)
    path = f"/resources/{resource['id']}"
    body = {"resource_id": resource["id"], "what": "A", "customer": MARTY, **nine}
    calls: dict[int, Callable[..., Answer]] = {
        401: lambda **headers: Caller("wrong").get("/app", **headers),
        403: lambda **headers: tenant.widget().get("/resources", **headers),
        409: lambda **headers: tenant.post("/bookings", body, **headers),
        410: lambda **headers: tenant.get("/changes?cursor=99-", **headers),
        412: lambda **headers: tenant.put(path, {}, **headers, **{"If-Match": '"other"'}),
        422: lambda **headers: tenant.put(path, {"nme": 1, "id": "x"}, **headers),
    }
    pairs = {code: (call(), call(Accept=PROBLEM)) for code, call in calls.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(authentication, "request_rates", RateWindow(1))
        tenant.get("/app")
        pairs[429] = tenant.get("/app"), tenant.get("/app", Accept=PROBLEM)

    for status, (plain, problem) in pairs.items():
        assert (plain.status, problem.status) == (status, status), (plain.json, problem.json)
        assert problem.headers["Content-Type"] == PROBLEM
        assert problem.json == {
            "type": "about:blank",
            "title": HTTPStatus(status).phrase,
            "status": status,
            "detail": plain.json["error"],
            **plain.json,
            "request_id": problem.json["request_id"],
        }


# --- GET /v2 --------------------------------------------------------------------------------------
def test_root_says_version_limits_and_links() -> None:
    answer = Client().get("/v2").json()["data"]

    assert answer == {
        "version": settings.VERSION,
        "limits": {
            "requests_per_minute": settings.RATE_LIMIT_PER_MINUTE,
            "body_bytes": 262144,
            "page_rows": 1000,
            "idempotency_hours": 24,
            "changes_days": 30,
        },
        "links": {
            "description": f"{settings.PUBLIC_URL}/v2/openapi.json",
            "reference": f"{settings.PUBLIC_URL}/docs",
            "guide": f"{settings.PUBLIC_URL}/docs/guide/",
            "app": f"{settings.PUBLIC_URL}/v2/app",
            "changes": f"{settings.PUBLIC_URL}/v2/changes",
        },
    }
