"""A series is told as one: one mail to each person, with every occurrence for the calendar."""

from typing import Any

import pytest
import vobject

from notifications.outbox.dispatcher import run_dispatcher
from tests.bookings.booking_drafts import act, booking_of
from tests.delivery_faults import delivery_faults
from tests.notifications.test_dispatcher import book, reminder, soon, states
from tests.sinks import MailSink
from tests.world import Tenant, hours

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("expanded_calls")]

WEEKLY = {"recurrence": "FREQ=WEEKLY;COUNT=3"}


@pytest.fixture
def sent(mails: MailSink) -> Any:
    """sent() -> to: (the row `Repeats`, METHOD, [(booking, SEQUENCE, STATUS)], named people) of
    each mail that went out since the last call."""

    def read() -> dict[str, Any]:
        run_dispatcher("email")
        run_dispatcher("email")
        found = {}
        for mail in mails.mails:
            assert mail.to[0] not in found
            lines = (line.partition(":") for line in mail.text.splitlines())
            rows = [value.strip() for label, _, value in lines if label == "Repeats"]
            found[mail.to[0]] = (rows, *entries_of(mail.message))
        mails.mails.clear()
        return found

    return read


def entries_of(message: Any) -> tuple[str | None, list[tuple[str, str, str]], int]:
    parts = [one for one in message.walk() if one.get_content_type() == "text/calendar"]
    if not parts:
        return None, [], 0
    calendar = vobject.readOne(parts[0].get_content())
    assert parts[0].get_param("method") == calendar.method.value
    entries = [
        (booking_of(one.uid.value), one.sequence.value, one.status.value)
        for one in calendar.vevent_list
    ]
    people = sum(len(getattr(one, "attendee_list", [])) for one in calendar.vevent_list)
    return calendar.method.value, entries, people


def occurrences(tenant: Tenant, booking: Any) -> list[str]:
    series = tenant.get(f"/bookings/{booking['id']}?include=series").data["series"]
    return [one["booking_id"] for one in series["occurrences"]]


def repeats(times: int, last: Any) -> list[str]:
    return [f"{times} times, until {last:%A}, {last.day} {last:%B %Y}"]


@pytest.fixture
def series(tenant: Tenant, sent: Any) -> list[str]:
    """The bookings of a series of three weeks; what was mailed about it has been read."""
    made = occurrences(tenant, book(tenant, **WEEKLY))
    sent()
    return made


def test_one_confirmation_per_person(tenant: Tenant, sent: Any) -> None:
    start = soon()
    booking = book(tenant, start, event_notifications=[reminder()], **WEEKLY)

    found = sent()

    made = occurrences(tenant, booking)
    entries = [(one, "0", "CONFIRMED") for one in made]
    last = start + hours(14 * 24)
    assert found == dict.fromkeys(
        ("marty@example.com", "ada@example.com"), (repeats(3, last), "PUBLISH", entries, 0)
    )
    assert [kind for _, kind, *_ in states()] == ["confirmed"] * 2 + ["reminder"] * 3
    assert delivery_faults() == []


def test_webhooks_get_each_occurrence(tenant: Tenant, sent: Any) -> None:
    tenant.post("/webhooks", {"url": "https://example.com/hook"})

    booking = book(tenant, **WEEKLY)
    act(tenant, booking, "cancel", {"scope": "all"})

    calls = [(kind, state) for _, kind, _, state in states(type="webhook")]
    assert calls == [("confirmed", "scheduled")] * 3 + [("cancelled", "scheduled")] * 3


def test_cancellation_entry_of_remaining_occurrences(
    tenant: Tenant, sent: Any, series: list[str]
) -> None:
    first, second, third = series
    act(tenant, {"id": second}, "cancel")
    alone = sent()

    act(tenant, {"id": first}, "cancel", {"scope": "all"})
    together = sent()

    assert set(alone) == set(together) == {"marty@example.com", "ada@example.com"}
    assert alone["marty@example.com"] == ([], "CANCEL", [(second, "1", "CANCELLED")], 1)
    rows, *entries = together["marty@example.com"]
    assert rows[0].startswith("2 times, until ")
    assert entries == ["CANCEL", [(one, "1", "CANCELLED") for one in (first, third)], 2]


def test_reschedule_sends_one_mail(tenant: Tenant, sent: Any, series: list[str]) -> None:
    start = soon() + hours(7 * 24 + 2)
    times = {"start": start.isoformat(), "end": (start + hours(1)).isoformat()}

    tenant.post(f"/bookings/{series[1]}/reschedule", {**times, "scope": "following"})

    entries = [(one, "1", "CONFIRMED") for one in series[1:]]
    row = repeats(2, start + hours(7 * 24))
    assert sent() == dict.fromkeys(
        ("marty@example.com", "ada@example.com"), (row, "PUBLISH", entries, 0)
    )


def test_confirmation_of_a_series_sends_one_mail(tenant: Tenant, sent: Any) -> None:
    booking = book(tenant, graph="confirm_decline", **WEEKLY)
    asked = sent()
    first, second, third = occurrences(tenant, booking)
    act(tenant, {"id": second}, "decline")
    sent()

    act(tenant, {"id": first}, "confirm", {"scope": "all"})
    agreed = sent()

    assert {to: one[1:] for to, one in asked.items()} == dict.fromkeys(
        ("marty@example.com", "ada@example.com"), (None, [], 0)
    )
    assert [one[1:] for one in agreed.values()] == [
        ("PUBLISH", [(one, "1", "CONFIRMED") for one in (first, third)], 0)
    ] * 2


def test_cancellation_entry_only_of_confirmed_occurrences(tenant: Tenant, sent: Any) -> None:
    booking = book(tenant, graph="confirm_decline", **WEEKLY)
    sent()
    second = occurrences(tenant, booking)[1]
    act(tenant, {"id": second}, "confirm")
    sent()

    act(tenant, booking, "cancel", {"scope": "all"})
    found = sent()

    assert {to: one[1:] for to, one in found.items()} == {
        "marty@example.com": ("CANCEL", [(second, "2", "CANCELLED")], 1),
        "ada@example.com": ("CANCEL", [(second, "2", "CANCELLED")], 2),
    }


def test_series_of_one_has_an_ordinary_mail(tenant: Tenant, sent: Any) -> None:
    booking = book(tenant, recurrence="FREQ=WEEKLY;COUNT=1")

    assert sent()["marty@example.com"] == (
        *([], "REQUEST", [(booking["id"], "0", "CONFIRMED")], 1),
    )


def test_series_mail_can_be_disabled(tenant: Tenant, sent: Any) -> None:
    book(tenant, notify_customer_by_email={"enabled": False}, **WEEKLY)

    assert set(sent()) == {"ada@example.com"}
    assert states() == [
        ("email", "confirmed", "customer", "skipped"),
        ("email", "confirmed", "owner", "delivered"),
    ]
