"""Idempotency-Key under fire: many clients send the same request at once, and it is done once."""

import itertools
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.bookings.race_clients import Answer, Request
from tests.bookings.race_tenant import (
    LiveTenant,
    count_outcomes,
    count_overlaps,
    open_database,
    span,
)

pytestmark = pytest.mark.both_databases

_numbers = itertools.count(1)


@pytest.fixture
def key() -> str:
    return f"key-{next(_numbers)}"


class Replays(NamedTuple):
    """How many answers were made, replayed or put off, and how many different bodies they had."""

    made: int
    others: int  # replayed, or told that the first is still running
    bodies: int


def replays_of(answers: list[Answer], status: int = 201) -> Replays:
    kinds = Counter(
        (answer.status, answer.headers.get("Idempotent-Replayed")) for answer in answers
    )
    put_off = count_outcomes(answers)["409 idempotency_in_progress"]
    bodies = {answer.content for answer in answers if answer.status == status}
    others = kinds[status, "true"] + put_off
    assert kinds[status, None] + others == len(answers), kinds
    return Replays(kinds[status, None], others, len(bodies))


RUNNING = "A request with this Idempotency-Key is still running."


def booking_with(tenant: LiveTenant, key: str, **given: object) -> Request:
    return tenant.booking(headers={"Idempotency_Key": key}, **given)


def test_one_request_of_fifty_clients_makes_one_booking(live_tenant: LiveTenant, key: str) -> None:
    (resource,) = live_tenant.make_resources(1)
    book = booking_with(live_tenant, key, resource_id=resource, **span(10))

    at_once = live_tenant.race_each([book] * 50)
    later = live_tenant.race([[book] * 10] * 5)

    everything = [*at_once, *itertools.chain(*later)]
    assert replays_of(everything) == Replays(made=1, others=99, bodies=1)
    assert count_outcomes(later) == {"201": 50}
    assert len(live_tenant.held([resource])) == 1


def test_one_confirmation_of_many_clients_is_one_transition(
    live_tenant: LiveTenant, key: str
) -> None:
    (resource,) = live_tenant.make_resources(1)
    booking = live_tenant.book(graph="confirm_decline", resource_id=resource, **span(10))["id"]

    confirm = live_tenant.act(booking, "confirm", Idempotency_Key=key)
    answers = live_tenant.race_each([confirm] * 16)

    assert replays_of(answers, 200) == Replays(made=1, others=15, bodies=1)
    assert live_tenant.steps_of(booking) == [
        ("initialized", "create", "tentative"),
        ("tentative", "confirm", "confirmed"),
    ]


def test_first_of_two_bodies_with_one_key_is_applied(live_tenant: LiveTenant, key: str) -> None:
    (resource,) = live_tenant.make_resources(1)
    books = [
        booking_with(live_tenant, key, resource_id=resource, **span(hour)) for hour in (10, 12)
    ]

    answers = live_tenant.race_each(books * 8)

    by_body = sorted([count_outcomes(answers[n::2]) for n in (0, 1)], key=str)
    assert by_body == [{"201": 8}, {"422 idempotency_mismatch": 8}]
    assert len(live_tenant.held([resource])) == 1


def test_another_app_may_use_the_same_key(live_tenant: LiveTenant, key: str) -> None:
    tenants = [live_tenant, LiveTenant(live_tenant.service)]
    books = []
    for tenant in tenants:
        (resource,) = tenant.make_resources(1)
        books.append(booking_with(tenant, key, resource_id=resource, **span(10)))

    answers = live_tenant.race_each(books * 8)

    assert [replays_of(answers[n::2]) for n in (0, 1)] == [Replays(1, 7, 1)] * 2
    assert len({answer.data["id"] for answer in answers if answer.status == 201}) == 2


def test_refusal_is_not_stored(live_tenant: LiveTenant, key: str) -> None:
    (resource,) = live_tenant.make_resources(1)
    blocker = live_tenant.book(resource_id=resource, **span(10))["id"]
    book = booking_with(live_tenant, key, resource_id=resource, **span(10))

    refused = live_tenant.race_each([book] * 8)
    live_tenant.race_each([live_tenant.act(blocker, "cancel")])
    made = live_tenant.race_each([book] * 8)

    assert count_outcomes(refused) == {"409 slot_taken": 8}
    assert replays_of(made) == Replays(made=1, others=7, bodies=1)


def test_key_can_be_reused_once_after_a_day(live_tenant: LiveTenant, key: str) -> None:
    (resource,) = live_tenant.make_resources(1)
    settings = {"allow_double_bookings": True}
    book = booking_with(live_tenant, key, resource_id=resource, settings=settings, **span(10))
    first = live_tenant.race_each([book])[0].data["id"]
    records = "UPDATE apps_config_idempotencyrecord SET created_at = ? WHERE key = ?"
    live_tenant.rows(records, "2020-01-01 00:00:00", key)

    answers = live_tenant.race_each([book] * 16)

    assert replays_of(answers) == Replays(made=1, others=15, bodies=1)
    assert {answer.data["id"] for answer in answers if answer.status == 201} & {first} == set()
    bookings = live_tenant.call("GET", f"/bookings?search=resource.id:{resource}").data
    assert len(bookings) == 2


def test_separate_keys_book_a_slot_once(live_tenant: LiveTenant, key: str) -> None:
    (resource,) = live_tenant.make_resources(1)
    books = [
        booking_with(live_tenant, f"{key}-{n}", resource_id=resource, **span(10)) for n in range(8)
    ]

    answers = live_tenant.race([[book] * 2 for book in books])

    outcomes = sorted(tuple(one.outcome for one in both) for both in answers)
    assert outcomes == [("201", "201"), *[("409 slot_taken", "409 slot_taken")] * 7]
    held = live_tenant.held([resource])
    assert (len(held), count_overlaps(held)) == (1, 0)


def test_second_call_waits_limited_time_for_the_first(faulty_tenant: LiveTenant, key: str) -> None:
    """The first has written its key and not come to an end: another transaction plays it."""
    (resource,) = faulty_tenant.make_resources(1)
    credential = faulty_tenant.rows(
        "SELECT key.id FROM apps_config_credential AS key JOIN apps_config_app AS app"
        f" ON app.id = key.app_id WHERE key.kind = 'server' AND app.slug = '{faulty_tenant.slug}'"
    )
    impatient = faulty_tenant.with_faults(patience=200)
    book = booking_with(impatient, key, resource_id=resource, **span(10))
    before = faulty_tenant.count_rows()

    with open_database(faulty_tenant.service.database_url) as first:
        if faulty_tenant.is_sqlite:
            first.execute("BEGIN IMMEDIATE")
        else:
            first.execute("BEGIN")
            insert = """INSERT INTO apps_config_idempotencyrecord
                (credential_id, key, request_hash, created_at) VALUES (%s, %s, '', now())"""
            first.execute(insert, [credential[0][0], key])
        (answer,) = faulty_tenant.race_each([book])
        during = faulty_tenant.count_rows()
        first.execute("ROLLBACK")
    (after,) = faulty_tenant.race_each([book])

    # SQLite has one lock for everything, so what holds it can't be told.
    status, code, error = 409, "idempotency_in_progress", RUNNING
    if faulty_tenant.is_sqlite:
        status, code, error = 503, "unavailable", "The service is busy, try again."
    request_id = answer.headers["Service-Request-Id"]
    assert (answer.status, answer.json) == (
        status,
        {"error": error, "code": code, "request_id": request_id},
    )
    assert (answer.headers["Retry-After"], during) == ("1", before)
    assert after.outcome == "201"


@pytest.mark.postgresql  # SQLite's transaction is alone: nothing vanishes inside of it
def test_record_purged_before_its_read_is_created_again(
    faulty_tenant: LiveTenant, key: str, tmp_path: Path
) -> None:
    (resource,) = faulty_tenant.make_resources(1)
    settings = {"allow_double_bookings": True}
    book = booking_with(faulty_tenant, key, resource_id=resource, settings=settings, **span(10))
    (first,) = faulty_tenant.race_each([book])

    read = 'SELECT .*"apps_config_idempotencyrecord"'
    with faulty_tenant.paused_request(book, at=read, folder=tmp_path) as waiting:
        faulty_tenant.rows("DELETE FROM apps_config_idempotencyrecord WHERE key = ?", key)
    second = waiting.result()
    (third,) = faulty_tenant.race_each([book])

    assert [one.outcome for one in (first, second, third)] == ["201"] * 3
    assert first.data["id"] != second.data["id"] == third.data["id"]


@pytest.mark.postgresql
def test_concurrently_deleted_credential_is_refused(
    faulty_tenant: LiveTenant, key: str, tmp_path: Path
) -> None:
    """A log-in key goes with its password, at any moment."""
    tenant = LiveTenant(faulty_tenant.service)
    (resource,) = tenant.make_resources(1)
    book = booking_with(tenant, key, resource_id=resource, **span(10))
    app = f"(SELECT id FROM apps_config_app WHERE slug = '{tenant.slug}')"

    insert = 'INSERT INTO "bookings_booking"'
    with tenant.paused_request(book, at=insert, folder=tmp_path) as waiting:
        tenant.rows(f"DELETE FROM apps_config_credential WHERE kind = 'server' AND app_id = {app}")
    answer = waiting.result()

    assert answer.outcome == "401 unauthenticated"
    assert tenant.held([resource]) == []
