"""Bookings that wait for the code of an e-mail to the customer."""

import re
import uuid
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from django.db import IntegrityError, connections

from apps_config import idempotency
from apps_config.models import RequestCount
from apps_config.public_limits import HOLDS, LIMITS
from availability.models import Hold
from bookings.models import Booking, UnverifiedBooking
from bookings.services import verification
from bookings.services.verification import WrongCode, check_code, code_of, purge_unverified
from bookings.views import holds
from common.errors import Refusal
from notifications.models import Delivery, Suppression
from notifications.outbox.results import FinalState
from notifications.outbox.senders import prepare_batch
from tests.bookings.booking_drafts import MARTY, NINE, span
from tests.world import NOW, Answer, Caller, Tenant

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]
UNTIL = "2026-11-20T09:45:00+00:00"


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource("Ada", email="ada@example.com")


@pytest.fixture
def project(tenant: Tenant, ada: Any) -> str:
    return tenant.make_project(
        ada["id"], booking={"what": "Check-up"}, settings={"verify_email": True}
    )["id"]


@pytest.fixture
def widget(tenant: Tenant) -> Caller:
    return tenant.widget()


def book(caller: Caller, project: str, headers: Any = None, **given: Any) -> Answer:
    body = {"project_id": project, "customer": MARTY, **NINE, **given}
    return caller.call("POST", "/bookings", body, headers)


def verify(
    caller: Caller, reservation: str, code: str | None = None, headers: Any = None
) -> Answer:
    """Send the right code, or another."""
    body = {"code": code_of(uuid.UUID(reservation)) if code is None else code}
    return caller.call("POST", f"/bookings/reserve/{reservation}/verify", body, headers)


def wrong(reservation: str) -> str:
    right = code_of(uuid.UUID(reservation))
    return "000000" if right != "000000" else "111111"


def mails() -> list[tuple[str, str]]:
    return list(Delivery.objects.order_by("id").values_list("kind", "recipient"))


# --- The e-mail -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("asked", "subject"),
    [
        ({"customer": {**MARTY, "language": "de"}}, "Ihr Code: "),
        ({"customer": MARTY}, "Your code: "),
        ({"customers": [{**MARTY, "meta": {"language": "fr"}}]}, "Votre code"),
    ],
)
def test_the_code_is_mailed_in_the_customers_language(
    widget: Caller, project: str, asked: dict[str, Any], subject: str
) -> None:
    held = widget.post("/bookings", {"project_id": project, **NINE, **asked})
    assert held.status == 202
    rows = list(Delivery.objects.all())

    ((_, send),), skipped = prepare_batch(rows, now=NOW)

    assert (send.args[0].subject.startswith(subject), skipped) == (True, [])


def test_no_code_is_mailed_to_an_address_that_bounced(
    tenant: Tenant, widget: Caller, project: str
) -> None:
    Suppression.objects.create(
        app=tenant.app, address=MARTY["email"], reason="bounced", detail="5.1.1", created_at=NOW
    )
    book(widget, project)
    (row,) = Delivery.objects.all()

    sends, skipped = prepare_batch([row], now=NOW)

    reason = "E-mails to this address bounced: 5.1.1"
    assert (sends, skipped) == ([], [(row, FinalState("skipped", reason))])


# --- Booking --------------------------------------------------------------------------------------
def test_booking_is_held_until_the_code(tenant: Tenant, widget: Caller, project: str) -> None:
    held = book(widget, project, meta={"a": 1})
    reservation = held.data["reservation_id"]

    assert (held.status, held.data) == (
        202,
        {"reservation_id": reservation, "expires_at": UNTIL, "verification": "email"},
    )
    assert mails() == [("verification_code", "customer")]
    assert not Booking.objects.exists()
    taken = book(tenant, project)
    assert (taken.status, taken.json["code"]) == (409, "slot_taken")

    made = verify(widget, reservation)

    assert (made.status, made.data["state"]) == (201, "confirmed")
    assert tenant.get(f"/bookings/{made.data['id']}").data["meta"] == {"a": 1}
    assert mails()[1:] == [("confirmed", "customer"), ("confirmed", "owner")]
    assert Hold.objects.get().used_at == NOW
    row = UnverifiedBooking.objects.get()
    assert (row.email, row.body, row.ended_at) == ("", {}, NOW)


def test_verify_response_is_the_booking(tenant: Tenant, widget: Caller, project: str) -> None:
    reservation = book(widget, project).data["reservation_id"]
    code = {"code": code_of(uuid.UUID(reservation))}

    path = f"/bookings/reserve/{reservation}/verify?include=event,resource"
    found = widget.post(path, code).data

    assert found["event"]["start"] == "2026-11-23T09:00:00+00:00"
    assert found["resource"]["name"] == "Ada"


def test_existing_hold_is_extended(widget: Caller, project: str) -> None:
    hold = widget.post("/bookings/reserve", {"project_id": project, **NINE}).data["reservation_id"]

    held = book(widget, project, reservation_id=hold).data

    assert (held["reservation_id"], held["expires_at"]) == (hold, UNTIL)
    assert Hold.objects.count() == 1
    assert verify(widget, hold).status == 201


def test_server_keys_need_no_code(tenant: Tenant, project: str) -> None:
    assert book(tenant, project).status == 201


def test_a_refused_time_sends_no_code(tenant: Tenant, widget: Caller, project: str) -> None:
    book(tenant, project)

    refused = book(widget, project)

    assert (refused.status, refused.json["code"]) == (409, "slot_taken")
    assert ("verification_code", "customer") not in mails()
    assert not UnverifiedBooking.objects.exists()


def test_idempotency_key_replays_booking_and_verification(widget: Caller, project: str) -> None:
    once = {"headers": {"Idempotency-Key": "book"}}
    first, again = (book(widget, project, **once) for _ in range(2))
    reservation = first.data["reservation_id"]
    made, repeated = (
        verify(widget, reservation, headers={"Idempotency-Key": "verify"}) for _ in range(2)
    )

    assert again.json == first.json
    assert (made.status, repeated.status, repeated.json) == (201, 201, made.json)
    assert mails().count(("verification_code", "customer")) == 1


def test_expiring_stored_response_does_not_replace_the_code(
    widget: Caller, project: str, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer turns a day old just after the check of the code was skipped for it."""
    key = {"Idempotency-Key": "any"}
    book(widget, project, headers=key)
    clock.shift(86_399)
    reservation = book(widget, project, **span("11:00", "12:00")).data["reservation_id"]
    claim = idempotency._claim

    def claim_a_second_later(*args: Any) -> Any:
        clock.shift(1)
        return claim(*args)

    monkeypatch.setattr(idempotency, "_claim", claim_a_second_later)

    answer = verify(widget, reservation, wrong(reservation), key)

    assert (answer.status, answer.json["code"]) == (422, "idempotency_mismatch")
    assert not Booking.objects.exists()


# --- The same hold again --------------------------------------------------------------------------
DOC = {"name": "Doc", "email": "doc@example.com"}


def mailed_codes() -> list[tuple[list[str], str]]:
    """Recipients and code of the e-mails that would be sent now."""
    sends, _ = prepare_batch(list(Delivery.objects.order_by("id")), now=NOW)
    messages = [send.args[0] for _, send in sends]
    return [(mail.to, re.findall(r"\d{6}", mail.subject)[0]) for mail in messages]


@pytest.mark.parametrize("is_held_first", [True, False])
def test_repeated_booking_request_changes_nothing(
    widget: Caller, project: str, clock: Any, is_held_first: bool
) -> None:
    """The answer was lost, or a client of its own clicked twice."""
    hold = {}
    if is_held_first:
        held = widget.post("/bookings/reserve", {"project_id": project, **NINE}).data
        hold = {"reservation_id": held["reservation_id"]}
    first = book(widget, project, **hold)
    reservation = first.data["reservation_id"]
    clock.shift(60)

    again = book(widget, project, reservation_id=reservation)

    assert (first.status, again.status, again.data) == (202, 202, first.data)
    assert mails() == [("verification_code", "customer")]
    assert Hold.objects.get().expires_at.isoformat() == UNTIL
    assert verify(widget, reservation).status == 201


def test_a_mistyped_address_can_be_corrected(tenant: Tenant, widget: Caller, project: str) -> None:
    first = book(widget, project, customer={**MARTY, "email": "mraty@example.com"})
    reservation = first.data["reservation_id"]
    old_code = code_of(uuid.UUID(reservation))
    verify(widget, reservation, wrong(reservation))

    again = book(widget, project, reservation_id=reservation)

    assert (again.status, again.data) == (202, first.data)
    assert mailed_codes() == [([MARTY["email"]], code_of(uuid.UUID(reservation), 2))]
    row = UnverifiedBooking.objects.get()
    assert (row.email, row.limit_key, row.codes_tried) == (MARTY["email"], MARTY["email"], 0)
    assert verify(widget, reservation, old_code).json["attempts_left"] == 4
    made = verify(widget, reservation, code_of(uuid.UUID(reservation), 2)).data["id"]
    assert tenant.get(f"/bookings/{made}").data["customers"][0]["email"] == MARTY["email"]


def test_mail_to_a_mistyped_address_is_cancelled(widget: Caller, project: str) -> None:
    reservation = book(widget, project).data["reservation_id"]
    book(widget, project, customer=DOC, reservation_id=reservation)
    old = Delivery.objects.order_by("id").first()
    assert old is not None

    sends, skipped = prepare_batch([old], now=NOW)

    assert (sends, skipped) == ([], [(old, FinalState("cancelled", "A newer code was sent."))])


def test_changed_request_books_the_new_body(tenant: Tenant, widget: Caller, project: str) -> None:
    reservation = book(widget, project).data["reservation_id"]

    book(widget, project, reservation_id=reservation, meta={"note": "by tram"})

    made = verify(widget, reservation, code_of(uuid.UUID(reservation), 2)).data["id"]
    assert tenant.get(f"/bookings/{made}").data["meta"] == {"note": "by tram"}


def test_code_does_not_verify_a_replaced_address(
    widget: Caller, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address is replaced just after the code of the first one was accepted."""
    reservation = book(widget, project).data["reservation_id"]
    check = holds.check_code

    def check_then_replace(*args: Any, **named: Any) -> None:
        check(*args, **named)
        book(widget, project, customer=DOC, reservation_id=reservation)

    monkeypatch.setattr(holds, "check_code", check_then_replace)

    answer = verify(widget, reservation, code_of(uuid.UUID(reservation)))

    assert (answer.status, answer.json["attempts_left"]) == (422, 5)
    assert not Booking.objects.exists()


def test_corrections_count_towards_the_limit_of_codes(widget: Caller, project: str) -> None:
    reservation = book(widget, project).data["reservation_id"]
    once_more = [
        book(widget, project, reservation_id=reservation, meta={"number": number}).status
        for number in range(3)
    ]

    assert once_more == [202, 202, 429]
    row = UnverifiedBooking.objects.get()
    assert (row.body["meta"], row.code_number) == ({"number": 1}, 3)


def test_ended_hold_gets_no_new_code(widget: Caller, project: str, clock: Any) -> None:
    verified, lapsed = (
        book(widget, project, **times).data["reservation_id"]
        for times in (NINE, span("11:00", "12:00"))
    )
    verify(widget, verified)
    used = book(widget, project, reservation_id=verified)
    clock.shift(900)

    late = book(widget, project, reservation_id=lapsed, **span("11:00", "12:00"))

    assert [(answer.status, answer.json["code"]) for answer in (used, late)] == [
        (409, "hold_expired"),
        (409, "hold_expired"),
    ]


# --- Another code ---------------------------------------------------------------------------------
def send_new_code(caller: Caller, reservation: str) -> Answer:
    return caller.post(f"/bookings/reserve/{reservation}/code")


def test_a_new_code_replaces_the_earlier_one(widget: Caller, project: str) -> None:
    first = book(widget, project)
    reservation = first.data["reservation_id"]
    verify(widget, reservation, wrong(reservation))

    answer = send_new_code(widget, reservation)

    assert (answer.status, answer.data) == (202, first.data)
    assert mailed_codes() == [([MARTY["email"]], code_of(uuid.UUID(reservation), 2))]
    assert verify(widget, reservation).json["attempts_left"] == 4
    assert verify(widget, reservation, code_of(uuid.UUID(reservation), 2)).status == 201


def test_a_seat_gets_a_new_code(widget: Caller, seat: dict[str, Any]) -> None:
    reservation = widget.post("/bookings", seat).data["reservation_id"]

    answer = send_new_code(widget, reservation)

    assert answer.status == 202
    assert verify(widget, reservation, code_of(uuid.UUID(reservation), 2)).status == 201


def test_new_codes_count_towards_the_limit(widget: Caller, project: str) -> None:
    reservation = book(widget, project).data["reservation_id"]

    answers = [send_new_code(widget, reservation) for _ in range(3)]

    assert [answer.status for answer in answers] == [202, 202, 429]
    assert int(answers[2].headers["Retry-After"]) > 0
    assert UnverifiedBooking.objects.get().code_number == 3


def test_ended_holds_get_no_new_code(
    tenant: Tenant, widget: Caller, project: str, others: list[Caller], clock: Any
) -> None:
    verified, lapsed = (
        book(widget, project, **times).data["reservation_id"]
        for times in (NINE, span("11:00", "12:00"))
    )
    hold = tenant.post("/bookings/reserve", {"project_id": project, **span("14:00", "15:00")})
    verify(widget, verified)
    before = mails()
    foreign = [send_new_code(other, lapsed) for other in others]
    used, plain = (send_new_code(tenant, each) for each in (verified, hold.data["reservation_id"]))
    clock.shift(900)
    late = send_new_code(widget, lapsed)

    assert [(answer.status, answer.error) for answer in (*foreign, plain)] == [NO_HOLD] * 3
    assert [(answer.status, answer.json["code"]) for answer in (used, late)] == [
        (409, "hold_expired"),
        (409, "hold_expired"),
    ]
    assert mails() == before


@pytest.mark.postgresql  # in a test, SQLite's connections share one cache and its table locks
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("in_turn", [True, False])
def test_concurrent_requests_share_one_code(
    widget: Caller, project: str, monkeypatch: pytest.MonkeyPatch, in_turn: bool
) -> None:
    """The control: out of turn, both requests find no row, and the later one fails."""
    hold = widget.post("/bookings/reserve", {"project_id": project, **NINE}).data["reservation_id"]
    both_looked = Barrier(2)
    if not in_turn:
        monkeypatch.setattr(verification, "wait_for_turn", lambda name: None)
        extend = verification.extend_hold

        def extend_after_both_looked(*args: Any, **named: Any) -> Any:
            both_looked.wait(10)
            return extend(*args, **named)

        monkeypatch.setattr(verification, "extend_hold", extend_after_both_looked)

    def ask(customer: dict[str, Any]) -> str:
        try:
            return str(book(widget, project, customer=customer, reservation_id=hold).status)
        except IntegrityError:
            return "failed"
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as pool:
        outcomes = sorted(pool.map(ask, [MARTY, DOC]))

    assert outcomes == ["202", "202" if in_turn else "failed"]
    numbers = list(UnverifiedBooking.objects.values_list("code_number", flat=True))
    assert numbers == [2 if in_turn else 1]


# --- Codes ----------------------------------------------------------------------------------------
def test_five_wrong_codes_end_the_hold(tenant: Tenant, widget: Caller, project: str) -> None:
    reservation = book(widget, project).data["reservation_id"]

    answers = [verify(widget, reservation, wrong(reservation)) for _ in range(5)]
    later = verify(widget, reservation)

    assert [(answer.status, answer.error) for answer in answers] == [
        (
            422,
            {
                "error": "code: This code is wrong.",
                "code": "invalid",
                "errors": {"code": ["This code is wrong."]},
                "attempts_left": left,
            },
        )
        for left in (4, 3, 2, 1, 0)
    ]
    assert (later.status, later.json["code"]) == (409, "hold_expired")
    assert book(tenant, project).status == 201
    assert UnverifiedBooking.objects.get().body == {}


def test_right_code_after_four_wrong_ones(widget: Caller, project: str) -> None:
    reservation = book(widget, project).data["reservation_id"]
    for _ in range(4):
        verify(widget, reservation, wrong(reservation))

    assert verify(widget, reservation).status == 201


def test_rolled_back_wrong_codes_are_counted(widget: Caller, project: str) -> None:
    reservation = book(widget, project).data["reservation_id"]

    left = [
        verify(widget, reservation, wrong(reservation), {"Idempotency-Key": key}).json
        for key in "abcde"
    ]

    assert [answer["attempts_left"] for answer in left] == [4, 3, 2, 1, 0]


@pytest.mark.parametrize("code", ["", "12345", "abcdef", "1" * 21, 123456, None, [], "\u0661" * 6])
def test_malformed_codes_are_refused(widget: Caller, project: str, code: Any) -> None:
    reservation = book(widget, project).data["reservation_id"]

    answer = widget.post(f"/bookings/reserve/{reservation}/verify", {"code": code})

    assert (answer.status, list(answer.json["errors"])) == (422, ["code"])


def test_hold_expires_without_a_code(
    tenant: Tenant, widget: Caller, project: str, clock: Any
) -> None:
    reservation = book(widget, project).data["reservation_id"]
    clock.shift(900)

    late = verify(widget, reservation)

    assert (late.status, late.json["code"]) == (409, "hold_expired")
    assert book(tenant, project).status == 201


def test_unknown_and_foreign_holds_are_not_found(
    widget: Caller, project: str, make_tenant: Callable[..., Tenant]
) -> None:
    reservation = book(widget, project).data["reservation_id"]

    answers = [
        verify(make_tenant().widget(), reservation),
        verify(widget, str(uuid.uuid4()), "123456"),
    ]

    assert [(answer.status, answer.error) for answer in answers] == [NO_HOLD] * 2


def test_customer_can_release_the_hold(tenant: Tenant, widget: Caller, project: str) -> None:
    reservation = book(widget, project).data["reservation_id"]

    ended = widget.delete(f"/bookings/reserve/{reservation}")
    late = verify(widget, reservation)

    assert (ended.status, late.status, late.json["code"]) == (204, 409, "hold_expired")
    assert book(tenant, project).status == 201


@pytest.fixture
def others(tenant: Tenant) -> list[Caller]:
    """Callers with keys that are bound to another project, and to another resource."""
    bob = tenant.make_resource("Bob")
    other = tenant.make_project(bob["id"], name="Other")["id"]
    bound = tenant.post("/credentials", {"kind": "widget", "projects": [other]}).data["key"]
    return [Caller(bound), Caller(bob["api_token"])]


NO_HOLD = (404, {"error": "Hold not found.", "code": "not_found", "model": "Hold"})


def test_other_keys_can_neither_release_nor_verify_the_hold(
    tenant: Tenant, widget: Caller, project: str, others: list[Caller]
) -> None:
    reservation = book(widget, project).data["reservation_id"]

    answers = [
        *(other.delete(f"/bookings/reserve/{reservation}") for other in others),
        *(verify(other, reservation, wrong(reservation)) for other in others),
        *(verify(other, reservation) for other in others),
    ]

    assert [(answer.status, answer.error) for answer in answers] == [NO_HOLD] * 6
    assert UnverifiedBooking.objects.get().codes_tried == 0
    assert verify(widget, reservation).status == 201


def test_three_codes_an_hour_and_address(widget: Caller, project: str, clock: Any) -> None:
    answers = [
        book(widget, project, **span(f"{hour}:00", f"{hour + 1}:00")) for hour in range(10, 14)
    ]
    other = book(widget, project, customer={"name": "Doc", "email": "doc@example.com"})
    clock.shift(1800)
    next_hour = book(widget, project, **span("15:00", "16:00"))

    assert [answer.status for answer in answers] == [202, 202, 202, 429]
    assert answers[3].error == {
        "error": "Too many codes were sent to this e-mail address.",
        "code": "rate_limited",
    }
    assert answers[3].headers["Retry-After"] == "1800"
    assert (other.status, next_hour.status) == (202, 202)
    counts = dict(RequestCount.objects.values_list("kind", "count"))
    assert counts["refused:verification_codes"] == 1


def test_held_bookings_count_as_open(tenant: Tenant, widget: Caller, project: str) -> None:
    limits = {"public_open_bookings_per_email": 1}
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": limits})

    answers = [book(widget, project), book(widget, project, **span("11:00", "12:00"))]

    assert [answer.status for answer in answers] == [202, 429]
    assert answers[1].headers["Retry-After"] == "3600"


def test_unverified_booking_counts_for_its_address(
    tenant: Tenant, widget: Caller, project: str
) -> None:
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"public_bookings_per_email_per_day": 1}})
    reservation = book(widget, project).data["reservation_id"]

    refused = book(widget, project, **span("11:00", "12:00"))
    verified = verify(widget, reservation)

    assert (refused.status, verified.status) == (429, 201)


# --- Seats ----------------------------------------------------------------------------------------
@pytest.fixture
def seat(tenant: Tenant, ada: Any) -> dict[str, Any]:
    """The only seat of a group, as POST /bookings takes it."""
    project = tenant.make_project(
        ada["id"], booking={"graph": "group_customer"}, settings={"verify_email": True}
    )["id"]
    group = tenant.post(
        "/bookings",
        {
            "graph": "group_owner",
            "project_id": project,
            "resource_id": ada["id"],
            "what": "Course",
            "settings": {"max_seats": 1},
            **NINE,
        },
    ).data["id"]
    return {
        "graph": "group_customer",
        "project_id": project,
        "related": {"owner_booking_id": group},
        "customer": MARTY,
    }


def test_seat_is_held_until_the_code(tenant: Tenant, widget: Caller, seat: dict[str, Any]) -> None:
    free = [group["id"] for group in widget.get("/bookings/groups").data]
    held = widget.post("/bookings", seat)
    listed = widget.get("/bookings/groups").data
    full = tenant.post("/bookings", {**seat, "customer": {"name": "Doc", "email": "d@example.com"}})
    made = verify(widget, held.data["reservation_id"])

    assert (free, listed) == ([seat["related"]["owner_booking_id"]], [])
    assert (held.status, full.status, full.json["code"]) == (202, 409, "group_full")
    assert (made.status, made.data["graph"]) == (201, "group_customer")


def test_a_held_seat_counts_as_a_hold(
    widget: Caller, seat: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LIMITS, HOLDS, LIMITS[HOLDS]._replace(default=1))  # type: ignore[arg-type]
    held = widget.post("/bookings", seat)
    widget.delete(f"/bookings/reserve/{held.data['reservation_id']}")

    again = widget.post("/bookings", seat)

    assert (held.status, again.status) == (202, 429)
    assert UnverifiedBooking.objects.count() == 1


def test_other_keys_can_neither_release_nor_verify_a_seat(
    widget: Caller, seat: dict[str, Any], others: list[Caller]
) -> None:
    reservation = widget.post("/bookings", seat).data["reservation_id"]
    path = f"/bookings/reserve/{reservation}"

    answers = [
        *(other.delete(path) for other in others),
        *(verify(other, reservation) for other in others),
    ]
    ended = [widget.delete(path).status for _ in range(2)]

    assert [(answer.status, answer.error) for answer in answers] == [NO_HOLD] * 4
    assert ended == [204, 404]


# --- Personal data --------------------------------------------------------------------------------
def test_unverified_bookings_are_exported_and_erased(
    tenant: Tenant, widget: Caller, project: str
) -> None:
    reservation = book(widget, project, meta={"note": "shy"}).data["reservation_id"]

    exported = tenant.get("/customers/export?email=MARTY@example.com").data
    erased = tenant.post("/customers/erase", {"email": "marty@example.com"}).data
    gone = tenant.get("/customers/export?email=marty@example.com")

    assert exported["unverified_bookings"] == [
        {
            "reservation_id": reservation,
            "created_at": "2026-11-20T09:30:00+0000",
            "expires_at": "2026-11-20T09:45:00+0000",
            "body": {"project_id": project, "customer": MARTY, "meta": {"note": "shy"}, **NINE},
        }
    ]
    assert (erased["unverified_bookings"], erased["bookings"], gone.status) == (1, 0, 404)
    assert verify(widget, reservation).status == 409
    assert book(tenant, project).status == 201


def test_unverified_booking_is_purged_with_its_hold(widget: Caller, project: str) -> None:
    book(widget, project)
    expired = NOW + timedelta(minutes=15)

    counts = [list(purge_unverified(now=expired + timedelta(days=days))) for days in (0.99, 1)]

    assert counts == [[], [1]]


# --- Races ----------------------------------------------------------------------------------------
@pytest.mark.postgresql  # in a test, SQLite's connections share one cache and its table locks
@pytest.mark.django_db(transaction=True)
def test_concurrent_guesses_are_limited_to_five(widget: Caller, project: str) -> None:
    reservation = uuid.UUID(book(widget, project).data["reservation_id"])
    row = UnverifiedBooking.objects.select_related("app").get()

    def guess(code: str) -> str:
        try:
            check_code(row.app, reservation, code, now=NOW)
        except WrongCode:
            return "wrong"
        except Refusal as refusal:
            return refusal.code
        finally:
            connections.close_all()
        return "right"

    with ThreadPoolExecutor(8) as pool:
        found = Counter(pool.map(guess, [wrong(str(reservation))] * 24))

    assert found == {"wrong": 5, "hold_expired": 19}
