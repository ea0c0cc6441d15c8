"""Idempotency-Key: the same request twice has one effect and one answer (section 1)."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from apps_config import idempotency, tasks
from apps_config.idempotency import purge_records
from apps_config.models import Credential, IdempotencyRecord, Membership
from apps_config.services import issue_key
from common.db.sql import database_now
from tests.world import NOW, Answer, Caller, Tenant

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]

PROJECT = {"name": "Check-up"}
REPLAYED = "Idempotent-Replayed"


def post(caller: Caller, body: Any = None, key: str = "k1", path: str = "/projects") -> Answer:
    return caller.post(path, PROJECT if body is None else body, **{"Idempotency-Key": key})


def count_projects(tenant: Tenant) -> int:
    return tenant.get("/projects").json["total"]


def test_the_second_call_replays_status_and_body(tenant: Tenant) -> None:
    first, second = post(tenant), post(tenant)

    assert (first.status, first.headers.get(REPLAYED)) == (201, None)
    assert (second.status, second.content, second.headers[REPLAYED]) == (201, first.content, "true")
    assert second.headers["Content-Type"] == "application/json"
    assert count_projects(tenant) == 1


def test_put_is_replayed(tenant: Tenant) -> None:
    path = f"/projects/{tenant.make_project()['id']}"
    key = {"Idempotency-Key": "k1"}

    first = tenant.put(path, {"name": "One"}, **key)
    tenant.put(path, {"name": "Two"})
    again = tenant.put(path, {"name": "One"}, **key)

    assert (again.status, again.content) == (200, first.content)
    assert tenant.get(path).data["name"] == "Two"


def test_an_action_is_applied_once(tenant: Tenant) -> None:
    resource = tenant.make_resource()
    booking = tenant.book(
        resource_id=resource["id"], start="2026-11-23T09:00:00Z", end="2026-11-23T10:00:00Z"
    ).data

    answers = [
        tenant.put(f"/bookings/{booking['id']}/cancel", **{"Idempotency-Key": "k1"})
        for _ in range(2)
    ]

    assert [(answer.status, answer.data["state"]) for answer in answers] == [(200, "cancelled")] * 2
    assert answers[1].headers[REPLAYED] == "true"


def other_body(tenant: Tenant) -> Answer:
    return post(tenant, {"name": "Another"})


def other_bytes(tenant: Tenant) -> Answer:
    return post(tenant, json.dumps(PROJECT, indent=1).encode())


def other_path(tenant: Tenant) -> Answer:
    return post(tenant, path="/calendars")


def other_query(tenant: Tenant) -> Answer:
    return post(tenant, path="/projects?include=resources")


@pytest.mark.parametrize("again", [other_body, other_bytes, other_path, other_query])
def test_key_of_a_different_request_is_refused(
    tenant: Tenant, again: Callable[[Tenant], Answer]
) -> None:
    post(tenant)

    answer = again(tenant)

    assert (answer.status, answer.error) == (
        422,
        {
            "error": "This Idempotency-Key was used for another request.",
            "code": "idempotency_mismatch",
            "errors": {"Idempotency-Key": ["Was used for another request."]},
        },
    )
    assert count_projects(tenant) == 1


def test_keys_are_scoped_to_the_credential(tenant: Tenant) -> None:
    member = tenant.member("owner@example.com")

    answers = [post(tenant), post(tenant, key="k2"), post(member)]

    assert [answer.headers.get(REPLAYED) for answer in answers] == [None] * 3
    assert count_projects(tenant) == 3


def test_keys_are_scoped_to_the_app(tenant: Tenant, make_tenant: Callable[..., Tenant]) -> None:
    other_tenant = make_tenant(slug="other")
    account = tenant.member("owner@example.com")
    owner = Membership.objects.get(app=tenant.app)
    Membership.objects.create(account=owner.account, app=other_tenant.app, role=Membership.OWNER)
    slugs = [tenant.app.slug, other_tenant.app.slug] * 2

    answers = [
        account.post("/projects", PROJECT, **{"Idempotency-Key": "k1", "Service-App": slug})
        for slug in slugs
    ]

    assert [(answer.status, answer.headers.get(REPLAYED)) for answer in answers] == [
        (201, None),
        (201, None),
        (201, "true"),
        (201, "true"),
    ]
    assert [answer.content for answer in answers[2:]] == [answer.content for answer in answers[:2]]
    assert (count_projects(tenant), count_projects(other_tenant)) == (1, 1)


def test_key_is_the_same_with_and_without_app_header(tenant: Tenant) -> None:
    member = tenant.member("owner@example.com")

    post(member)
    named = member.post(
        "/projects", PROJECT, **{"Idempotency-Key": "k1", "Service-App": tenant.app.slug}
    )

    assert named.headers[REPLAYED] == "true"


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/projects", {}, 422),
        ("/projects", b"{", 400),
        ("/projects/0193a4c2-0000-7000-8000-000000000011/resources", {"resource_id": "x"}, 404),
        ("/projects", {"name": "Second", "slug": "taken"}, 409),
    ],
)
def test_refusals_are_not_stored(tenant: Tenant, path: str, body: Any, status: int) -> None:
    tenant.make_project(slug="taken")

    answers = [post(tenant, body, path=path) for _ in range(2)]

    assert [(answer.status, answer.headers.get(REPLAYED)) for answer in answers] == [
        (status, None)
    ] * 2
    assert not IdempotencyRecord.objects.exists()


def test_key_of_a_refused_request_can_be_reused(tenant: Tenant) -> None:
    post(tenant, {})

    answer = post(tenant)

    assert (answer.status, answer.headers.get(REPLAYED)) == (201, None)


@pytest.mark.parametrize("key", ["", "a b", "ä", "x" * 256, "a\x7f"])
def test_malformed_keys_are_refused(tenant: Tenant, key: str) -> None:
    answer = post(tenant, key=key)

    assert (answer.status, answer.json["errors"]) == (
        422,
        {"Idempotency-Key": ["Must be 1 to 255 visible ASCII characters."]},
    )
    assert count_projects(tenant) == 0


@pytest.mark.parametrize("key", ["x", "!~" + "x" * 253])
def test_keys_of_1_to_255_characters_are_accepted(tenant: Tenant, key: str) -> None:
    assert [post(tenant, key=key).headers.get(REPLAYED) for _ in range(2)] == [None, "true"]


@pytest.mark.parametrize(
    ("path", "body", "names"),
    [
        ("/resources", {"name": "Ada", "timezone": "UTC"}, ["api_token"]),
        ("/credentials", {"kind": "server"}, ["key"]),
        ("/webhooks", {"url": "https://example.com/hook", "active": False}, ["secret"]),
        ("/calendars/:id/feed", {}, ["url", "token"]),
    ],
)
def test_repeated_request_gets_no_secret(
    tenant: Tenant, path: str, body: dict[str, Any], names: list[str]
) -> None:
    calendar = tenant.make_resource()["calendars"][0]["id"]
    path = path.replace(":id", calendar)

    first, again = (post(tenant, body, path=path) for _ in range(2))

    assert (first.status, again.status, again.headers[REPLAYED]) == (201, 201, "true")
    assert all(first.data[name] for name in names)
    assert "secret_shown" not in first.data
    assert again.data == {**first.data, **dict.fromkeys(names), "secret_shown": True}
    stored = b"".join(bytes(row.body or b"") for row in IdempotencyRecord.objects.all())
    assert not any(first.data[name].encode() in stored for name in names)


def test_repeated_request_claims_no_secret_that_was_not_shown(tenant: Tenant) -> None:
    """A key that makes no keys makes a resource without one."""
    key = Caller(issue_key(Credential.SERVER, app=tenant.app, scopes=["settings:write"])[1])

    first, again = (
        post(key, {"name": "Ada", "timezone": "UTC"}, path="/resources") for _ in range(2)
    )

    assert (first.data["api_token"], again.headers[REPLAYED]) == (None, "true")
    assert again.content == first.content


@pytest.mark.parametrize(
    "path",
    [
        "/availability",
        "/availability/dates",
        "/availability/count",
        "/availability/explain",
        "/unavailable/slots",
        "/findtime",
    ],
)
def test_queries_are_never_replayed(tenant: Tenant, path: str) -> None:
    body = {"resources": [tenant.make_resource()["id"]]}

    answers = [post(tenant, body, path=path) for _ in range(2)]

    assert [(answer.status, answer.headers.get(REPLAYED)) for answer in answers] == [
        (200, None)
    ] * 2
    assert not IdempotencyRecord.objects.exists()


@pytest.mark.parametrize(
    ("later", "replayed"),
    [(timedelta(hours=24) - timedelta(seconds=1), "true"), (timedelta(hours=24), None)],
)
def test_stored_response_lasts_a_day(
    tenant: Tenant, clock: Any, later: timedelta, replayed: str | None
) -> None:
    post(tenant)

    clock.move_to(NOW + later)

    assert post(tenant).headers.get(REPLAYED) == replayed


def test_old_answers_are_purged(tenant: Tenant, clock: Any) -> None:
    post(tenant, key="old")
    clock.move_to(NOW + timedelta(hours=1))
    post(tenant, key="new")

    counts = list(purge_records(now=NOW + timedelta(hours=24)))

    assert (counts, [row.key for row in IdempotencyRecord.objects.all()]) == ([1], ["new"])


def stored(tenant: Tenant, count: int, at: datetime) -> None:
    credential = Credential.objects.get(app=tenant.app)
    IdempotencyRecord.objects.bulk_create(
        IdempotencyRecord(credential=credential, key=f"old-{number}", created_at=at)
        for number in range(count)
    )


def test_many_old_answers_are_deleted_in_slices(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than one statement could delete before its time-out."""
    monkeypatch.setattr(idempotency, "PURGE_SLICE", 3)
    stored(tenant, 7, NOW - timedelta(hours=24))

    counts = list(purge_records(now=NOW))

    assert (counts, IdempotencyRecord.objects.count()) == ([3, 3, 1], 0)


def test_long_purge_continues_in_another_task(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    continued: list[dict[str, Any]] = []
    monkeypatch.setattr(idempotency, "PURGE_SLICE", 2)
    monkeypatch.setattr(tasks, "PURGE_SECONDS", 0)
    monkeypatch.setattr(tasks, "database_now", lambda: NOW)
    purge = tasks.purge_idempotency_records
    monkeypatch.setattr(purge, "apply_async", lambda **options: continued.append(options))
    stored(tenant, 3, NOW - timedelta(hours=24))

    purge()
    left = IdempotencyRecord.objects.count()
    purge()
    purge()

    assert (left, IdempotencyRecord.objects.count(), len(continued)) == (1, 0, 2)


@pytest.mark.postgresql
def test_purge_uses_the_clock_of_the_database(tenant: Tenant, clock: Any) -> None:
    stored(tenant, 1, database_now())
    clock.move_to(NOW + timedelta(days=3650))

    tasks.purge_idempotency_records()

    assert IdempotencyRecord.objects.count() == 1
