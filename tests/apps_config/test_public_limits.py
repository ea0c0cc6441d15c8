"""Limits of public requests: what counts, for how long, and what is stored."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import Q
from django.utils import timezone

from apps_config import public_limits
from apps_config.models import App, RequestCount
from apps_config.public_limits import (
    PER_ADDRESS,
    PER_APP,
    PER_EMAIL,
    CustomerBlocked,
    LimitReached,
    check_not_blocked,
    count_attempt,
    count_first_use,
    count_refusal,
    purge_request_counts,
    refusals_of_a_day,
)
from common.rate_limit import RefusedKeys
from tests.queries import Queries
from tests.world import NOW, Answer, Caller, Tenant, at

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]
EMAIL = "marty@example.com"
NETWORK = "192.0.2.1"


def attempt(
    app: App, network: str = NETWORK, emails: Iterable[str] = (EMAIL,), **later: float
) -> str:
    """The limit that refuses the attempt, with the seconds to wait; "" if it is admitted."""
    try:
        count_attempt(app, network=network, emails=list(emails), now=NOW + timedelta(**later))
    except LimitReached as refusal:
        return f"{refusal.kind} {refusal.headers['Retry-After']}"
    return ""


def with_limits(tenant: Tenant, **limits: Any) -> App:
    """The app with these limits and no others."""
    tenant.set_public_limits(**limits)
    return App.objects.get(id=tenant.app.id)


@pytest.mark.parametrize(
    ("limits", "seconds"),
    [({PER_ADDRESS: 2}, 1800), ({PER_EMAIL: 2}, 14.5 * 3600), ({PER_APP: 2}, 60)],
)
def test_attempts_above_a_limit_wait_for_the_end_of_its_window(
    tenant: Tenant, limits: dict[str, int], seconds: float
) -> None:
    app, (kind,) = with_limits(tenant, **limits), limits

    found = [attempt(app, seconds=second) for second in (0, 0, 0, seconds - 1, seconds)]

    assert found == ["", "", f"{kind} {seconds:.0f}", f"{kind} 1", ""]


def test_other_subjects_are_counted_apart(tenant: Tenant) -> None:
    app = with_limits(tenant, **{PER_ADDRESS: 1, PER_EMAIL: 1})

    assert attempt(app, "192.0.2.1", ["a@example.com"]) == ""
    assert attempt(app, "192.0.2.2", ["b@example.com"]) == ""
    assert attempt(app, "192.0.2.1", ["c@example.com"]).startswith(PER_ADDRESS)
    assert attempt(app, "192.0.2.3", ["b@example.com", "d@example.com"]).startswith(PER_EMAIL)


def test_apps_are_counted_apart(make_tenant: Any) -> None:
    one, other = (with_limits(make_tenant(), **{PER_ADDRESS: 1}) for _ in range(2))

    assert [attempt(app) for app in (one, other)] == ["", ""]


def test_processes_share_the_counts(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    app = with_limits(tenant, **{PER_ADDRESS: 2})
    found = []
    for _ in range(4):
        monkeypatch.setattr(public_limits, "refused_keys", RefusedKeys())
        found.append(attempt(app))

    assert found == ["", "", f"{PER_ADDRESS} 1800", f"{PER_ADDRESS} 1800"]


def test_a_refused_address_does_not_use_up_the_apps_limit(tenant: Tenant) -> None:
    app = with_limits(tenant, **{PER_ADDRESS: 2, PER_APP: 5})

    flood = [attempt(app, emails=()) for _ in range(50)]

    assert flood[2:] == [f"{PER_ADDRESS} 1800"] * 48
    assert attempt(app, "192.0.2.2") == ""


def test_a_raised_limit_takes_effect_at_once(tenant: Tenant) -> None:
    app = with_limits(tenant, **{PER_ADDRESS: 1})
    assert [attempt(app), attempt(app)] == ["", f"{PER_ADDRESS} 1800"]

    assert attempt(with_limits(tenant, **{PER_ADDRESS: 3})) == ""


def test_only_digests_are_stored(tenant: Tenant) -> None:
    attempt(tenant.app)

    rows = RequestCount.objects.order_by("kind").values_list("kind", "expires_at", "count")
    assert list(rows) == [
        (PER_ADDRESS, at("2026-11-20 10:00"), 1),
        (PER_APP, at("2026-11-20 09:31"), 1),
        (PER_EMAIL, at("2026-11-21 00:00"), 1),
    ]
    for subject in RequestCount.objects.values_list("subject", flat=True):
        assert len(subject) == 32
        assert set(subject) <= set("0123456789abcdef")


def test_an_attempt_is_one_statement(
    tenant: Tenant, django_assert_num_queries: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    emails = [f"{number}@example.com" for number in range(5)]

    with django_assert_num_queries(1):
        attempt(tenant.app, emails=emails)


def test_expired_counts_are_deleted(tenant: Tenant) -> None:
    attempt(tenant.app)

    assert list(purge_request_counts(now=at("2026-11-20 10:00"))) == [2]
    assert [row.kind for row in RequestCount.objects.all()] == [PER_EMAIL]


def test_the_first_use_is_the_only_one(tenant: Tenant) -> None:
    ends = at("2026-11-20 09:40")
    uses = [count_first_use(tenant.app, "public_challenge", word, ends) for word in "aab"]

    assert uses == [True, False, True]


def test_refusals_are_counted_by_reason(make_tenant: Any) -> None:
    one, other = make_tenant().app, make_tenant().app
    for reason in (PER_ADDRESS, PER_ADDRESS, "blocked_customers"):
        count_refusal(one, reason, now=NOW)
    count_refusal(other, PER_APP, now=NOW)

    assert refusals_of_a_day(Q(app=one), NOW) == {PER_ADDRESS: 2, "blocked_customers": 1}
    assert refusals_of_a_day(Q(app=one), NOW + timedelta(hours=25)) == {}


# --- Blocked customers ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("pattern", "email", "is_blocked"),
    [
        ("*@spam.example", "a@spam.example", True),
        ("*@Spam.example", "A@SPAM.EXAMPLE", True),
        ("*@spam.example", "a@nospam.example", False),
        ("*@*.spam.example", "a@mail.spam.example", True),
        ("x@y.example", "x@y.example", True),
        ("x@y.example", "xx@y.example", False),
        ("?@y.example", "x@y.example", False),
        ("[ab]@y.example", "a@y.example", False),
        ("*", "a@example.com", True),
        (7, "7", False),
        (None, "a@example.com", False),
    ],
)
def test_patterns_of_blocked_customers(
    tenant: Tenant, pattern: Any, email: str, is_blocked: bool
) -> None:
    tenant.app.settings["blocked_customers"] = ["other@example.com", pattern]
    try:
        check_not_blocked(tenant.app, {email})
        found = False
    except CustomerBlocked:
        found = True

    assert found == is_blocked


# --- Settings -------------------------------------------------------------------------------------
def test_the_settings_are_checked(tenant: Tenant) -> None:
    def save(**settings: Any) -> Answer:
        return tenant.put(f"/apps/{tenant.app.slug}", {"settings": settings})

    good = {
        PER_ADDRESS: 0,
        PER_EMAIL: 7,
        "blocked_customers": ["*@spam.example"],
        "public_challenge": "altcha",
    }
    refused = save(
        **{
            PER_ADDRESS: -1,
            PER_EMAIL: True,
            PER_APP: 10**9,
            "blocked_customers": [1],
            "public_challenge": "captcha",
        }
    )

    assert save(**good).data["settings"] == {"disable_emails": False, **good}
    assert (refused.status, sorted(refused.json["errors"])) == (
        422,
        [
            "settings.blocked_customers.0",
            "settings.public_bookings_per_address_per_hour",
            "settings.public_bookings_per_app_per_minute",
            "settings.public_bookings_per_email_per_day",
            "settings.public_challenge",
        ],
    )


@pytest.mark.parametrize("value", ["20", -1, None, [], True, 1.5, 10**12])
def test_a_broken_setting_is_the_default(tenant: Tenant, value: Any) -> None:
    tenant.app.settings[PER_ADDRESS] = value

    assert public_limits.limit_of(tenant.app, PER_ADDRESS) == 20


# --- Requests -------------------------------------------------------------------------------------
@pytest.fixture
def project(tenant: Tenant) -> str:
    ada = tenant.make_resource("Ada")
    return tenant.make_project(ada["id"], name="Check-up", booking={"what": "Check-up"})["id"]


def book(caller: Caller, project: str, hour: int = 9, day: int = 23, **given: Any) -> Answer:
    body = {
        "project_id": project,
        "start": f"2026-11-{day} {hour:02}:00:00",
        "end": f"2026-11-{day} {hour + 1:02}:00:00",
        "customer": {"name": "Marty McFly", "email": EMAIL},
        **given,
    }
    headers = body.pop("headers", {})
    return caller.post("/bookings", body, **headers)


def limited(sentence: str) -> dict[str, str]:
    return {"error": sentence, "code": "rate_limited"}


def test_a_public_booking_above_the_limit(tenant: Tenant, project: str) -> None:
    with_limits(tenant, **{PER_ADDRESS: 2})
    widget = tenant.widget()

    answers = [book(widget, project, hour) for hour in (9, 9, 11)]

    assert [answer.status for answer in answers] == [201, 409, 429]
    assert answers[2].error == limited("Too many booking attempts from this network address.")
    assert answers[2].headers["Retry-After"] == "1800"
    assert tenant.get("/bookings").json["total"] == 1
    assert tenant.get("/deliveries").json["total"] == 2
    assert refusals_of_a_day(Q(app=tenant.app), NOW) == {PER_ADDRESS: 1}


def test_other_keys_have_no_such_limits(tenant: Tenant, project: str) -> None:
    with_limits(tenant, **{PER_ADDRESS: 1, PER_EMAIL: 1, PER_APP: 1})

    assert [book(tenant, project, hour).status for hour in (9, 11, 13)] == [201] * 3
    assert not RequestCount.objects.exists()


def test_a_repeated_request_gets_its_answer(tenant: Tenant, project: str) -> None:
    with_limits(tenant, **{PER_ADDRESS: 1})
    widget = tenant.widget()
    key = {"headers": {"Idempotency-Key": "one"}}

    first, again = (book(widget, project, **key) for _ in range(2))

    assert (first.status, again.status, again.json) == (201, 201, first.json)
    assert book(widget, project, 11, headers={"Idempotency-Key": "two"}).status == 429


def test_a_rollback_keeps_the_count(tenant: Tenant, project: str) -> None:
    with_limits(tenant, **{PER_ADDRESS: 1})
    widget = tenant.widget()

    statuses = [
        book(widget, project, 9, 23, end="nonsense", headers={"Idempotency-Key": key}).status
        for key in "ab"
    ]

    assert statuses == [422, 429]


def test_moves_count_too(tenant: Tenant, project: str) -> None:
    with_limits(tenant, **{PER_ADDRESS: 2})
    widget = tenant.widget()
    booking = book(widget, project).data["id"]
    moves = [
        widget.post(
            f"/bookings/{booking}/reschedule",
            {"start": f"2026-11-24 {hour}:00:00", "end": f"2026-11-24 {hour + 1}:00:00"},
        )
        for hour in (10, 12)
    ]

    assert [move.status for move in moves][1] == 429


def test_a_blocked_customer(tenant: Tenant, project: str) -> None:
    with_limits(tenant, blocked_customers=["*@example.com"])

    refused = book(tenant.widget(), project)
    by_staff = book(tenant, project)

    assert (refused.status, refused.error) == (
        403,
        {"error": "This e-mail address can't be used to book here.", "code": "forbidden"},
    )
    assert by_staff.status == 201
    assert refusals_of_a_day(Q(app=tenant.app), NOW) == {"blocked_customers": 1}


def test_open_bookings_of_one_address(tenant: Tenant, project: str) -> None:
    with_limits(tenant, public_open_bookings_per_email=2)
    widget = tenant.widget()
    loud = {"name": "Marty", "email": "MARTY@example.com"}
    first = book(widget, project, 9).data["id"]
    book(widget, project, 11)

    refused = book(widget, project, 13, customer=loud)
    other = book(widget, project, 13, customer={"name": "Doc", "email": "doc@example.com"})
    tenant.put(f"/bookings/{first}/cancel")

    assert (refused.status, refused.error, refused.headers["Retry-After"]) == (
        429,
        limited("This e-mail address has too many upcoming bookings."),
        "3600",
    )
    assert (other.status, book(widget, project, 15, customer=loud).status) == (201, 201)


def test_all_customers_are_counted(tenant: Tenant, project: str) -> None:
    with_limits(tenant, **{PER_EMAIL: 1})
    tenant.put(f"/projects/{project}", {"settings": {"public_customers": 2}})
    widget = tenant.widget()
    people = [{"name": name, "email": f"{name}@example.com"} for name in ("ann", "ben")]

    def book_for(hour: int, **customers: Any) -> int:
        span = {
            "start": f"2026-11-23 {hour}:00:00",
            "end": f"2026-11-23 {hour + 1}:00:00",
        }
        return widget.post("/bookings", {"project_id": project, **span, **customers}).status

    assert [book_for(10, customers=people), book_for(12, customer=people[1])] == [201, 429]


HOSTILE: list[Any] = [
    *(None, [], "text", 7, {"customer": []}),
    *({"customer": {"email": ["a@example.com"]}}, {"customers": {"email": "a@example.com"}}),
    {"customers": [None, 7, {"email": "nobody"}]},
    {"customer": {"email": "a" * 300}},
]


@pytest.mark.parametrize("body", HOSTILE)
def test_hostile_bodies_are_counted_without_addresses(tenant: Tenant, body: Any) -> None:
    answer = tenant.widget().post("/bookings", body)

    # An object without a project is refused before its customers are read.
    assert answer.status == (422 if body in ("text", 7) else 403)
    assert sorted(RequestCount.objects.values_list("kind", flat=True)) == [PER_ADDRESS, PER_APP]


# --- Proxies that are not configured --------------------------------------------------------------
def attempt_from(tenant: Tenant, client: str, **headers: str) -> int:
    """The status of an attempt that a peer on this machine sends with X-Forwarded-For."""
    return tenant.widget().post("/bookings", {}, **{"X-Forwarded-For": client}, **headers).status


@pytest.mark.parametrize("varies", [False, True])
def test_an_own_header_switches_no_limit_off(tenant: Tenant, varies: bool) -> None:
    """Of a client in a private network, which no proxy forwards."""
    with_limits(tenant, **{PER_ADDRESS: 20})

    statuses = [attempt_from(tenant, f"8.8.8.{number if varies else 8}") for number in range(30)]

    assert statuses == [403] * 20 + [429] * 10
    assert public_limits.saw_unknown_proxy(Q(app=tenant.app), NOW) is varies


def test_a_proxy_is_learnt_from_two_clients_in_an_hour(
    tenant: Tenant, make_tenant: Any, clock: Any
) -> None:
    other = make_tenant()

    def learn(client: str, of: Tenant = tenant) -> bool:
        attempt_from(of, client)
        return public_limits.saw_unknown_proxy(Q(app=of.app), timezone.now())

    learnt = [learn("203.0.113.1"), learn("203.0.113.2", other)]
    clock.shift(3600)
    learnt += [learn("203.0.113.2"), learn("203.0.113.2"), learn("203.0.113.1, 10.0.0.1")]

    assert learnt == [False, False, False, False, True]
    assert not public_limits.saw_unknown_proxy(Q(app=other.app), timezone.now())


def test_a_flood_of_headers_stores_two(tenant: Tenant) -> None:
    for number in range(9):
        attempt_from(tenant, f"203.0.113.{number}")

    stored = RequestCount.objects.filter(kind=public_limits.FORWARDED)
    assert stored.count() == 2
    assert not [row for row in stored if "203.0" in row.subject]


def test_two_peers_are_two_clients(tenant: Tenant) -> None:
    """Each with a header of its own."""
    widget = tenant.widget()
    for peer in ("10.0.0.5", "10.0.0.6"):
        widget.client.post(
            "/v2/bookings",
            {},
            "application/json",
            headers={**widget.headers, "X-Forwarded-For": peer},
            REMOTE_ADDR=peer,
        )

    assert not public_limits.saw_unknown_proxy(Q(app=tenant.app), NOW)


def test_a_known_proxy_is_no_statement_more(tenant: Tenant, settings: Any) -> None:
    widget = tenant.widget()
    forwarded = {"X-Forwarded-For": "203.0.113.1"}
    widget.post("/bookings", {})
    with Queries(connection) as plain:
        widget.post("/bookings", {})
    settings.TRUSTED_PROXIES = 1

    with Queries(connection) as behind_known_proxy:
        widget.post("/bookings", {}, **forwarded)

    assert len(behind_known_proxy) == len(plain)


def test_holds_are_limited_behind_an_unknown_proxy(tenant: Tenant, project: str) -> None:
    widget = tenant.widget()

    statuses = [
        widget.post(
            "/bookings/reserve",
            {
                "project_id": project,
                "start": f"2026-11-23 {hour:02}:00:00",
                "end": f"2026-11-23 {hour + 1:02}:00:00",
            },
            **{"X-Forwarded-For": f"203.0.113.{hour}"},
        ).status
        for hour in range(9, 15)
    ]

    assert statuses == [201] * 5 + [429]
