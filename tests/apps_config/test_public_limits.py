"""Limits of public requests: what counts, for how long, and what is stored."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import Q
from django.utils import timezone

from apps_config import idempotency, public_limits
from apps_config.models import App, RequestCount
from apps_config.public_limits import (
    PER_ADDRESS,
    PER_APP,
    PER_EMAIL,
    CustomerBlocked,
    LimitReached,
    check_not_blocked,
    check_subjects,
    count_first_use,
    count_refusal,
    count_subjects,
    purge_request_counts,
    refusals_of_a_day,
)
from common.limits.rate_limit import RefusedKeys
from tests.queries import Queries
from tests.world import NOW, Answer, Caller, Tenant, at

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]
EMAIL = "marty@example.com"


def count(app: App, kind: str, subject: str = "", **later: float) -> str:
    """The limit that refuses what is counted, with the seconds to wait; "" below the limit."""
    try:
        count_subjects(app, [(kind, subject)], NOW + timedelta(**later))
    except LimitReached as refusal:
        return f"{refusal.kind} {refusal.headers['Retry-After']}"
    return ""


def with_limits(tenant: Tenant, **limits: Any) -> App:
    """The app with these limits and no others."""
    tenant.set_public_limits(**limits)
    return App.objects.get(id=tenant.app.id)


@pytest.mark.parametrize(
    ("kind", "seconds"), [(PER_ADDRESS, 1800), (PER_EMAIL, 14.5 * 3600), (PER_APP, 60)]
)
def test_retry_after_is_the_end_of_the_window(tenant: Tenant, kind: str, seconds: float) -> None:
    app = with_limits(tenant, **{kind: 2})

    found = [count(app, kind, seconds=second) for second in (0, 0, 0, seconds - 1, seconds)]

    assert found == ["", "", f"{kind} {seconds:.0f}", f"{kind} 1", ""]


def test_counts_are_separate_per_subject_limit_and_app(make_tenant: Any) -> None:
    one, other = (with_limits(make_tenant(), **{PER_ADDRESS: 1, PER_EMAIL: 1}) for _ in range(2))
    wanted = [(one, PER_ADDRESS, "a"), (one, PER_ADDRESS, "b"), (one, PER_EMAIL, "a")]
    wanted.append((other, PER_ADDRESS, "a"))

    first, second = ([count(*each) for each in wanted] for _ in range(2))

    assert first == [""] * 4
    assert [found.partition(" ")[0] for found in second] == [kind for _, kind, _ in wanted]


def test_processes_share_the_counts(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    app = with_limits(tenant, **{PER_ADDRESS: 2})
    found = []
    for _ in range(4):
        monkeypatch.setattr(public_limits, "refused_keys", RefusedKeys())
        found.append(count(app, PER_ADDRESS))

    assert found == ["", "", f"{PER_ADDRESS} 1800", f"{PER_ADDRESS} 1800"]


def test_checking_a_limit_does_not_count(
    tenant: Tenant, django_assert_num_queries: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = with_limits(tenant, **{PER_APP: 1, PER_EMAIL: 1})
    subjects = [(PER_APP, ""), (PER_EMAIL, EMAIL)]

    def check(**later: float) -> str:
        """As another process does, which has refused nothing yet."""
        monkeypatch.setattr(public_limits, "refused_keys", RefusedKeys())
        try:
            check_subjects(app, subjects, NOW + timedelta(**later))
        except LimitReached as refusal:
            return f"{refusal.kind} {refusal.headers['Retry-After']}"
        return ""

    with django_assert_num_queries(2):
        unused = [check(), check()]
    count(app, PER_EMAIL, EMAIL)

    assert unused == ["", ""]
    assert [check(), check(hours=14.5)] == [f"{PER_EMAIL} 52200", ""]


def test_a_raised_limit_takes_effect_at_once(tenant: Tenant) -> None:
    app = with_limits(tenant, **{PER_ADDRESS: 1})
    assert [count(app, PER_ADDRESS), count(app, PER_ADDRESS)] == ["", f"{PER_ADDRESS} 1800"]

    assert count(with_limits(tenant, **{PER_ADDRESS: 3}), PER_ADDRESS) == ""


def test_several_subjects_are_counted_in_one_statement(
    tenant: Tenant, django_assert_num_queries: Any
) -> None:
    emails = [f"{number}@example.com" for number in range(5)]

    with django_assert_num_queries(1):
        count_subjects(tenant.app, [(PER_EMAIL, email) for email in emails], NOW)


def test_expired_counts_are_deleted(tenant: Tenant) -> None:
    for kind in (PER_ADDRESS, PER_APP, PER_EMAIL):
        count(tenant.app, kind)

    assert list(purge_request_counts(now=at("2026-11-20 10:00"))) == [2]
    assert [row.kind for row in RequestCount.objects.all()] == [PER_EMAIL]


def test_challenge_is_used_once(tenant: Tenant) -> None:
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
        ("*@spam.example", "a+b@spam.example", True),
        ("anna@spam.example", "Anna+0@spam.example", True),
        ("anna+0@spam.example", "anna+1@spam.example", True),
        ("an.na@gmail.com", "anna+1@googlemail.com", True),
        ("anna@spam.example", "annabel@spam.example", False),
        ("anna+*@spam.example", "anna@spam.example", False),
        ("*@müller.de", "a@xn--mller-kva.de", True),
        ("*@xn--mller-kva.de", "A@MÜLLER.de", True),
        ("*@gmail.com", "a@gmaıl.com", False),
        ("*@ſpam.example", "a@spam.example", False),  # written without the services
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
def test_wrong_limits_are_refused(tenant: Tenant) -> None:
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
def test_broken_setting_falls_back_to_the_default(tenant: Tenant, value: Any) -> None:
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


def test_public_booking_above_the_limit_is_refused(tenant: Tenant, project: str) -> None:
    with_limits(tenant, **{PER_ADDRESS: 2})
    widget = tenant.widget()

    answers = [book(widget, project, hour) for hour in (9, 9, 11)]

    assert [answer.status for answer in answers] == [201, 409, 429]
    assert answers[2].error == limited("Too many booking attempts from this network address.")
    assert answers[2].headers["Retry-After"] == "1800"
    assert tenant.get("/bookings").json["total"] == 1
    assert tenant.get("/deliveries").json["total"] == 2
    assert refusals_of_a_day(Q(app=tenant.app), NOW) == {PER_ADDRESS: 1}


def test_server_keys_have_no_public_limits(tenant: Tenant, project: str) -> None:
    with_limits(tenant, **{PER_ADDRESS: 1, PER_EMAIL: 1, PER_APP: 1})

    assert [book(tenant, project, hour).status for hour in (9, 11, 13)] == [201] * 3
    assert not RequestCount.objects.exists()


def test_replayed_request_passes_the_limit(tenant: Tenant, project: str) -> None:
    with_limits(tenant, **{PER_ADDRESS: 1})
    widget = tenant.widget()
    key = {"headers": {"Idempotency-Key": "one"}}

    first, again = (book(widget, project, **key) for _ in range(2))

    assert (first.status, again.status, again.json) == (201, 201, first.json)
    assert book(widget, project, 11, headers={"Idempotency-Key": "two"}).status == 429


def test_expiring_stored_response_is_replayed_within_limits(
    tenant: Tenant, project: str, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer turns a day old just after the limits were skipped for it."""
    with_limits(tenant, **{PER_ADDRESS: 1})
    widget = tenant.widget()
    key = {"headers": {"Idempotency-Key": "one"}}
    first = book(widget, project, **key)
    clock.shift(86_399)
    book(widget, project, 11)
    tenant.put(f"/bookings/{first.data['id']}/cancel")
    claim = idempotency._claim

    def claim_a_second_later(*args: Any) -> Any:
        clock.shift(1)
        return claim(*args)

    monkeypatch.setattr(idempotency, "_claim", claim_a_second_later)

    again = book(widget, project, **key)

    assert (again.status, again.json) == (201, first.json)
    assert tenant.get("/bookings").json["total"] == 2


def test_rolled_back_attempts_are_counted(tenant: Tenant, project: str) -> None:
    with_limits(tenant, **{PER_ADDRESS: 1})
    widget = tenant.widget()

    statuses = [
        book(widget, project, 9, 23, end="nonsense", headers={"Idempotency-Key": key}).status
        for key in "ab"
    ]

    assert statuses == [422, 429]


def test_counts_store_only_digests(tenant: Tenant, project: str) -> None:
    book(tenant.widget(), project)

    rows = RequestCount.objects.order_by("kind").values_list("kind", "expires_at", "count")
    assert list(rows) == [
        (PER_ADDRESS, at("2026-11-20 10:00"), 1),
        (PER_APP, at("2026-11-20 09:31"), 1),
        (PER_EMAIL, at("2026-11-21 00:00"), 1),
    ]
    for subject in RequestCount.objects.values_list("subject", flat=True):
        assert len(subject) == 32
        assert set(subject) <= set("0123456789abcdef")


def test_moves_are_counted(tenant: Tenant, project: str) -> None:
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


def test_blocked_customer_is_refused(tenant: Tenant, project: str) -> None:
    with_limits(tenant, blocked_customers=["*@example.com"])

    refused = book(tenant.widget(), project)
    by_staff = book(tenant, project)

    assert (refused.status, refused.error) == (
        403,
        {"error": "This e-mail address can't be used to book here.", "code": "forbidden"},
    )
    assert by_staff.status == 201
    assert refusals_of_a_day(Q(app=tenant.app), NOW) == {"blocked_customers": 1}


def test_limit_of_open_bookings_per_address(tenant: Tenant, project: str) -> None:
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


@pytest.mark.parametrize("limit", [PER_EMAIL, "public_open_bookings_per_email"])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("u@straße.de", "u@straße.de"),
        ("u@müller.de", "U@xn--Mller-kva.de"),
        ("anna+0@example.com", "anna+1@example.com"),
        ("an.na@gmail.com", "anna@googlemail.com"),
    ],
)
def test_spellings_and_tags_of_an_address_are_counted_together(
    tenant: Tenant, project: str, limit: str, first: str, second: str
) -> None:
    with_limits(tenant, **{limit: 1})
    widget = tenant.widget()

    made, refused, other = (
        book(widget, project, hour, customer={"name": "U", "email": email})
        for hour, email in ((9, first), (11, second), (13, "other@example.com"))
    )

    assert [made.status, refused.status, other.status] == [201, 429, 201]


def test_lookalike_of_a_blocked_domain_is_refused(tenant: Tenant, project: str) -> None:
    with_limits(tenant, blocked_customers=["*@spam.example"])
    customer = {"name": "A", "email": "a@ſpam.example"}

    refused = book(tenant.widget(), project, customer=customer)

    assert (refused.status, refused.json["errors"]) == (
        422,
        {"customer.email": ["Must have a valid domain after the @."]},
    )
    assert tenant.get("/deliveries").json["total"] == 0


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
def test_malformed_bodies_count_for_the_network_only(tenant: Tenant, body: Any) -> None:
    answer = tenant.widget().post("/bookings", body)

    # An object without a project is refused before its customers are read.
    assert answer.status == (422 if body in ("text", 7) else 403)
    assert list(RequestCount.objects.values_list("kind", flat=True)) == [PER_ADDRESS]


# --- What counts for addresses and the app --------------------------------------------------------
def test_refused_requests_do_not_count_for_the_customer(tenant: Tenant, project: str) -> None:
    """Those of a stranger with the customer's address: without a time, and for a taken time."""
    with_limits(tenant, **{PER_EMAIL: 2, PER_APP: 2})
    widget = tenant.widget()
    customer = {"name": "Marty McFly", "email": EMAIL}
    book(tenant, project, 9)

    refused = [
        *(widget.post("/bookings", {"project_id": project, "customer": customer}) for _ in "abc"),
        *(book(widget, project, 9) for _ in "abc"),
    ]
    own = [book(widget, project, hour) for hour in (11, 13, 15)]

    assert [answer.status for answer in refused] == [422] * 3 + [409] * 3
    assert [answer.status for answer in own] == [201, 201, 429]


@pytest.mark.parametrize(
    ("kind", "sentence", "wait"),
    [
        (PER_EMAIL, "Too many bookings for this e-mail address.", "52200"),
        (PER_APP, "Too many bookings at the moment.", "60"),
    ],
)
def test_refusal_offers_a_challenge(
    tenant: Tenant, project: str, kind: str, sentence: str, wait: str
) -> None:
    with_limits(tenant, **{kind: 1})
    widget = tenant.widget()
    book(widget, project)
    before = tenant.get("/deliveries").json["total"]

    refused = book(widget, project, 11)

    assert (refused.status, refused.headers["Retry-After"]) == (429, wait)
    assert refused.error == limited(
        f"{sentence} Send a solved challenge (GET /v2/challenge), or try again later."
    ) | {"errors": {"challenge": ["Required: a solved challenge (GET /v2/challenge)."]}}
    assert (tenant.get("/bookings").json["total"], before) == (1, 2)
    assert tenant.get("/deliveries").json["total"] == before
    assert refusals_of_a_day(Q(app=tenant.app), NOW) == {kind: 1}


def test_moves_and_holds_count_for_the_app(tenant: Tenant, project: str) -> None:
    with_limits(tenant, **{PER_APP: 3})
    tenant.put(f"/projects/{project}", {"settings": {"public_reschedule": "id"}})
    widget = tenant.widget()
    booking = book(widget, project).data["id"]

    def move(hour: int) -> int:
        span = {"start": f"2026-11-24 {hour}:00:00", "end": f"2026-11-24 {hour + 1}:00:00"}
        return widget.post(f"/bookings/{booking}/reschedule", span).status

    def hold(hour: int) -> int:
        span = {"start": f"2026-11-25 {hour}:00:00", "end": f"2026-11-25 {hour + 1}:00:00"}
        return widget.post("/bookings/reserve", {"project_id": project, **span}).status

    assert [move(10), hold(10)] == [200, 201]
    assert [move(12), hold(12), book(widget, project, 15).status] == [429] * 3


def test_a_repeated_request_is_counted_once(tenant: Tenant, project: str) -> None:
    with_limits(tenant, **{PER_APP: 2, PER_EMAIL: 2})
    widget = tenant.widget()
    key = {"headers": {"Idempotency-Key": "one"}}

    repeated = [book(widget, project, **key).status for _ in range(4)]

    assert (repeated, book(widget, project, 11).status) == ([201] * 4, 201)


# --- Proxies that are not configured --------------------------------------------------------------
def attempt_from(tenant: Tenant, client: str, **headers: str) -> int:
    """The status of an attempt that a peer on this machine sends with X-Forwarded-For."""
    return tenant.widget().post("/bookings", {}, **{"X-Forwarded-For": client}, **headers).status


@pytest.mark.parametrize("varies", [False, True])
def test_forwarded_header_of_the_client_is_ignored(tenant: Tenant, varies: bool) -> None:
    """Of a client in a private network, which no proxy forwards."""
    with_limits(tenant, **{PER_ADDRESS: 20})

    statuses = [attempt_from(tenant, f"8.8.8.{number if varies else 8}") for number in range(30)]

    assert statuses == [403] * 20 + [429] * 10
    assert public_limits.saw_unknown_proxy(Q(app=tenant.app), NOW) is varies


def test_unknown_proxy_is_detected_from_two_clients(
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


def test_many_forwarded_headers_store_two_rows(tenant: Tenant) -> None:
    for number in range(9):
        attempt_from(tenant, f"203.0.113.{number}")

    stored = RequestCount.objects.filter(kind=public_limits.FORWARDED)
    assert stored.count() == 2
    assert not [row for row in stored if "203.0" in row.subject]


def test_two_peers_are_no_unknown_proxy(tenant: Tenant) -> None:
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


def test_known_proxy_takes_no_additional_query(tenant: Tenant, settings: Any) -> None:
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
                # On two days: of one day, public holds may take a fifth.
                "start": f"2026-11-{23 + hour % 2} {hour:02}:00:00",
                "end": f"2026-11-{23 + hour % 2} {hour + 1:02}:00:00",
            },
            **{"X-Forwarded-For": f"203.0.113.{hour}"},
        ).status
        for hour in range(9, 15)
    ]

    assert statuses == [201] * 5 + [429]
