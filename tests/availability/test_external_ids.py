"""`external_id` of resources and projects: their ids in the client's own system."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connections, transaction

from apps_config.models import Credential
from apps_config.services import issue_key
from availability.views import base_views
from tests.live import LiveApp
from tests.services import Service
from tests.waiters import wait_for_a_waiter
from tests.world import Caller, Tenant

MakeTenant = Callable[..., Tenant]
pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]

ID = "crm/42 ü"
NEW = {"resources": {"name": "Ada", "timezone": "UTC"}, "projects": {"name": "Check-up"}}
KINDS = pytest.mark.parametrize("kind", list(NEW))


def path_of(kind: str, external_id: str = ID) -> str:
    return f"/{kind}/by-external-id/{quote(external_id, safe='')}"


def taken(model: str) -> tuple[int, dict[str, str]]:
    error = {"error": f"Another {model} has this external_id.", "code": "already_exists"}
    return 409, error


@KINDS
def test_patch_is_put(tenant: Tenant, kind: str) -> None:
    made = tenant.call("PATCH", path_of(kind), NEW[kind])
    changed = tenant.call("PATCH", path_of(kind), {"name": "Other"})

    assert (made.status, changed.status) == (201, 200)
    assert (changed.data["id"], changed.data["name"]) == (made.data["id"], "Other")


def test_id_may_end_with_a_slash(live_service: Service) -> None:
    """Clients may add a slash of their own, which is not escaped."""
    app = LiveApp(live_service)
    paths = [
        path_of("resources", "crm/"),
        path_of("resources", "crm"),
        "/resources?external_id=crm",
    ]
    with_slash, without, found = (f"/v2{path}" for path in paths)

    made = [app.call("PUT", path, NEW["resources"]) for path in (with_slash, without)]
    again = app.call("PUT", f"{without}/", {"name": "Bea"})

    assert [answer.data["external_id"] for answer in made] == ["crm/", "crm"]
    assert [(row["id"], row["name"]) for row in app.get(found).data] == [
        (made[1].data["id"], "Bea")
    ]
    assert again.data["id"] == made[1].data["id"]


@KINDS
def test_put_creates_once_and_then_changes(tenant: Tenant, kind: str) -> None:
    made = tenant.put(path_of(kind), NEW[kind])
    changed = tenant.put(path_of(kind), {"name": "Other", "external_id": ID})

    assert (made.status, made.data["external_id"]) == (201, ID)
    assert (changed.status, changed.data) == (
        200,
        made.data | {"name": "Other", "updated_at": changed.data["updated_at"]},
    )
    assert tenant.get(f"/{kind}/{made.data['id']}").data == changed.data


@KINDS
def test_put_of_another_app_creates_its_own(
    tenant: Tenant, make_tenant: MakeTenant, kind: str
) -> None:
    theirs = make_tenant().put(path_of(kind), NEW[kind]).data

    mine = tenant.put(path_of(kind), NEW[kind])

    assert mine.status == 201
    assert mine.data["id"] != theirs["id"]
    assert [row["id"] for row in tenant.get(f"/{kind}").data] == [mine.data["id"]]


@KINDS
def test_invalid_put_creates_nothing(tenant: Tenant, kind: str) -> None:
    answers = [
        tenant.put(path_of(kind), {}),
        tenant.put(path_of(kind), NEW[kind] | {"external_id": "other"}),
        tenant.put(path_of(kind), NEW[kind] | {"external_id": None}),
        tenant.put(path_of(kind, "x" * 201), NEW[kind]),
        tenant.put(path_of(kind, "a\tb"), NEW[kind]),
        tenant.post(f"/{kind}", NEW[kind] | {"external_id": ""}),
    ]

    required = {name: ["This field is required."] for name in NEW[kind]}
    unequal = {"external_id": ["Must equal the id in the path."]}
    assert [(answer.status, answer.error["errors"]) for answer in answers] == [
        (422, required),
        (422, unequal),
        (422, unequal),
        (422, {"external_id": ["Ensure this field has no more than 200 characters."]}),
        (422, {"external_id": ["May not contain control characters or line breaks."]}),
        (422, {"external_id": ["This field may not be blank."]}),
    ]
    assert tenant.get(f"/{kind}").data == []


@KINDS
def test_taken_id_is_refused_until_its_object_is_deleted(tenant: Tenant, kind: str) -> None:
    first = tenant.post(f"/{kind}", NEW[kind] | {"external_id": ID}).data
    second = tenant.post(f"/{kind}", NEW[kind]).data
    change = {"external_id": ID}

    refused = [
        tenant.post(f"/{kind}", NEW[kind] | change),
        tenant.put(f"/{kind}/{second['id']}", change),
    ]
    tenant.delete(f"/{kind}/{first['id']}")
    changed = tenant.put(f"/{kind}/{second['id']}", change)

    assert [(answer.status, answer.error) for answer in refused] == [taken(kind[:-1])] * 2
    assert (second["external_id"], changed.data["external_id"]) == (None, ID)


@KINDS
def test_null_removes_the_id(tenant: Tenant, kind: str) -> None:
    made = tenant.put(path_of(kind), NEW[kind]).data

    removed = tenant.put(f"/{kind}/{made['id']}", {"external_id": None})

    assert removed.data["external_id"] is None
    assert tenant.put(path_of(kind), NEW[kind]).status == 201


@KINDS
def test_lists_are_filtered_by_the_id(tenant: Tenant, kind: str) -> None:
    made = tenant.put(path_of(kind), NEW[kind]).data
    tenant.put(path_of(kind, "CRM/42 ü"), NEW[kind])
    queries = [f"external_id={quote(ID)}", f"search=external_id:{quote(ID)}"]

    found = [tenant.get(f"/{kind}?{query}").data for query in queries]
    wild = tenant.get(f"/{kind}?search=external_id:crm*")

    assert found == [[made], [made]]
    assert (wild.status, wild.error["errors"]) == (
        422,
        {"search": ["external_id does not support wildcards; write \\* for a star."]},
    )


@KINDS
def test_if_match_is_that_of_the_object(tenant: Tenant, kind: str) -> None:
    body = NEW[kind] | {"name": "Old"}
    absent = tenant.put(path_of(kind), body, **{"If-Match": "*"})
    made = tenant.put(path_of(kind), body).data
    tag = tenant.get(f"/{kind}/{made['id']}").headers["ETag"]

    matched = tenant.put(path_of(kind), {"name": "New"}, **{"If-Match": tag})
    stale = tenant.put(path_of(kind), {"name": "Newer"}, **{"If-Match": tag})

    assert [answer.status for answer in (absent, matched, stale)] == [412, 200, 412]
    assert [row["name"] for row in tenant.get(f"/{kind}").data] == ["New"]


@KINDS
def test_repeated_request_gets_the_same_answer(tenant: Tenant, kind: str) -> None:
    answers = [
        tenant.put(path_of(kind), NEW[kind], **{"Idempotency-Key": "once"}) for _ in range(2)
    ]

    assert [answer.status for answer in answers] == [201, 201]
    assert answers[0].data == answers[1].data


def test_new_resource_has_a_calendar_and_no_key(tenant: Tenant) -> None:
    made = tenant.put(f"{path_of('resources')}?include=calendars", NEW["resources"]).data

    assert [calendar["name"] for calendar in made["calendars"]] == ["Bookings"]
    assert "api_token" not in made
    assert not Credential.objects.filter(resource=made["id"]).exists()


def test_keys_of_a_part_of_the_app_set_no_id(tenant: Tenant) -> None:
    ada = tenant.post_resource(external_id="ada")
    project = tenant.post_project(ada["id"], external_id="check-up")
    own = Caller(ada["api_token"])
    limited = Caller(
        issue_key(
            Credential.SERVER, mode=tenant.app.mode, app=tenant.app, projects=[project["id"]]
        )[1]
    )

    answers = [
        own.put(path_of("resources", "ada"), {"name": "Eve"}),
        own.put(f"/resources/{ada['id']}", {"external_id": "bob"}),
        limited.put(path_of("projects", "check-up"), {"name": "Eve"}),
        limited.put(f"/projects/{project['id']}", {"external_id": "other"}),
    ]
    kept = [
        own.put(f"/resources/{ada['id']}", {"external_id": "ada"}),
        limited.put(f"/projects/{project['id']}", {"external_id": "check-up"}),
    ]

    assert [answer.status for answer in answers] == [403] * 4
    assert [answer.data["external_id"] for answer in kept] == ["ada", "check-up"]


@pytest.mark.postgresql  # in a test, SQLite's connections share one cache and its table locks
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_locked", [True, False], ids=["locked", "control"])
@KINDS
def test_concurrent_puts_make_one(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, kind: str, is_locked: bool
) -> None:
    """The second one begins before the first one is committed."""

    def put_again() -> Any:
        try:
            return tenant.put(path_of(kind), NEW[kind] | {"name": "Second"})
        finally:
            connections.close_all()

    tenant.get("/app")  # the use of the key is recorded, which locks its row
    if not is_locked:
        monkeypatch.setattr(base_views, "lock_app", lambda app: None)
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            first = tenant.put(path_of(kind), NEW[kind])
            second = pool.submit(put_again)
            wait_for_a_waiter()
        answer = second.result()

    assert (first.status, answer.status) == (201, 200 if is_locked else 409)
    names = [row["name"] for row in tenant.get(f"/{kind}").data]
    assert names == ["Second" if is_locked else NEW[kind]["name"]]
