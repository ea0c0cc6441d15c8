"""Bookings of one request are one e-mail to each person."""

from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import pytest
import vobject
from django.utils import timezone

from bookings.pages.formatting import date_words
from bookings.services import expire_bookings
from bookings.services.bulk_request import bulk_request
from common.time.instants import find_zone, format_instant
from notifications.mail import compose_mail
from notifications.models import Delivery, Suppression
from notifications.outbox.dispatcher import run_dispatcher
from tests.bookings.booking_drafts import MARTY, act, booking_of
from tests.bookings.group_world import ANN, make_group
from tests.delivery_faults import delivery_faults
from tests.notifications.mails import html_of as html_of_message
from tests.notifications.mails import make_event, make_letter
from tests.notifications.test_dispatcher import hook, make_due, reminder, soon, states
from tests.notifications.test_reassignment_mails import html_of, read, short_when, text_of, when
from tests.office.staff import superuser
from tests.sinks import HookSink, Mail, MailSink
from tests.world import Tenant, hours

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]

BERLIN = find_zone("Europe/Berlin")
CANCEL = "Cancel the booking:\n<url>"


@pytest.fixture
def holm(tenant: Tenant) -> Any:
    return tenant.make_resource("Dr. Holm", email="holm@example.com", timezone="Europe/Berlin")


def draft(resource: Any, start: datetime, what: str = "Check-up", **given: Any) -> dict[str, Any]:
    times = {"start": start.isoformat(), "end": (start + hours(1)).isoformat()}
    return {"resource_id": resource["id"], "what": what, "customer": MARTY, **times, **given}


def create(tenant: Tenant, *bookings: Any, status: int = 201, **given: Any) -> list[Any]:
    answer = tenant.post("/bookings/bulk", {"bookings": list(bookings), **given})
    assert [each["status"] for each in answer.data] == [status] * len(bookings), answer.json
    return [each["booking"] for each in answer.data]


def parts_of(mail: Mail) -> list[tuple[str, str | None]]:
    """(type, METHOD) of the parts behind text and HTML."""
    parts = [part for part in mail.message.walk() if not part.is_multipart()]
    return [(part.get_content_type(), part.get_param("method")) for part in parts[2:]]


def entries_of(mail: Mail) -> list[tuple[str, str, str, str, datetime]]:
    """(METHOD, booking, SEQUENCE, SUMMARY, start) of the entries in the attachment."""
    [content] = [
        part.get_content()
        for part in mail.message.walk()
        if part.get_content_type() == "application/ics"
    ]
    calendar = vobject.readOne(content.decode())
    return [
        (
            calendar.method.value,
            booking_of(each.uid.value),
            each.sequence.value,
            each.summary.value,
            each.dtstart.value,
        )
        for each in calendar.vevent_list
    ]


def test_bulk_request_sends_one_mail_per_person(tenant: Tenant, holm: Any, mails: MailSink) -> None:
    """Whole mails, in order of time; the request's own order is another one."""
    start = soon()
    second, first = create(
        tenant, draft(holm, start + hours(3), "Cleaning"), draft(holm, start, where="Quay 5")
    )

    found = read(mails)

    assert set(found) == {"marty@example.com", "holm@example.com"}
    marty, owner = found["marty@example.com"], found["holm@example.com"]
    assert marty.subject == f"Confirmed: Check-up, {short_when(start)} (+1)"
    assert owner.subject == f"Confirmed: Marty McF…, {short_when(start)} (+1)"
    assert text_of(marty) == [
        "Your bookings are confirmed",
        "Hello Marty McFly,",
        "We look forward to seeing you. A file with all times for your calendar is attached.",
        f"What:   Check-up\nWhen:   {when(start)}\nWhere:  Quay 5\nWith:   Dr. Holm",
        CANCEL,
        f"What:  Cleaning\nWhen:  {when(start + hours(3))}\nWith:  Dr. Holm",
        CANCEL,
        tenant.app.name,
    ]
    links = [line for line in marty.text.splitlines() if "external_action/cancel" in line]
    assert [each["id"] in link for each, link in zip((first, second), links, strict=True)] == [
        True,
        True,
    ]
    customer = ["Customer", "Marty McFly marty@example.com"]
    assert html_of(owner) == [
        *("Several bookings are confirmed", "Hello,"),
        "Marty McFly has booked these times. A file with all times for your calendar is attached.",
        *("What", "Check-up", "When", when(start), "Where", "Quay 5", "Resource", "Dr. Holm"),
        *customer,
        *("What", "Cleaning", "When", when(start + hours(3)), "Resource", "Dr. Holm"),
        *customer,
    ]
    entries = [
        ("PUBLISH", first["id"], "0", "Check-up", start),
        ("PUBLISH", second["id"], "0", "Cleaning", start + hours(3)),
    ]
    assert (entries_of(marty), entries_of(owner)) == (entries, entries)
    assert parts_of(marty) == parts_of(owner) == [("application/ics", None)]
    assert states() == [
        ("email", "confirmed", "customer", "delivered"),
        ("email", "confirmed", "owner", "delivered"),
    ]
    assert delivery_faults() == []


@pytest.mark.parametrize("given", [{"delete_all_on_error": True}, {"relate_bookings": True}])
def test_all_or_none_and_related_bookings(
    tenant: Tenant, holm: Any, mails: MailSink, given: Any
) -> None:
    start = soon()

    create(tenant, *(draft(holm, start + hours(n)) for n in range(3)), **given)

    subjects = [mail.subject for mail in read(mails).values()]
    assert [subject.endswith(" (+2)") for subject in subjects] == [True, True]


def counts(mails: dict[str, Mail]) -> dict[str, int]:
    """How many bookings each person's mail is about."""
    return {
        to.lower(): sum(paragraph.startswith("What: ") for paragraph in text_of(mail))
        for to, mail in mails.items()
    }


def sent(mails: MailSink) -> list[tuple[str, str]]:
    """(to, beginning of the subject) of each mail that is due."""
    run_dispatcher("email")
    run_dispatcher("email")
    found = sorted((mail.to[0], mail.subject.partition(",")[0]) for mail in mails.mails)
    mails.mails.clear()
    return found


def test_customers_and_owners_get_separate_mails(
    tenant: Tenant, holm: Any, mails: MailSink
) -> None:
    berg = tenant.make_resource("Dr. Berg", email="berg@example.com")
    start = soon()

    create(
        tenant,
        draft(holm, start),
        draft(berg, start, customer=ANN),
        draft(berg, start + hours(1), customer={**MARTY, "email": "Marty@Example.com"}),
    )

    assert counts(read(mails)) == {
        "marty@example.com": 2,
        "ann@example.com": 1,
        "holm@example.com": 1,
        "berg@example.com": 2,
    }


def test_refused_booking_is_not_in_the_mail(tenant: Tenant, holm: Any, mails: MailSink) -> None:
    start = soon()
    drafts = [draft(holm, start + hours(n)) for n in (0, 0, 1)]

    answer = tenant.post("/bookings/bulk", {"bookings": drafts})

    assert [each["status"] for each in answer.data] == [201, 409, 201]
    assert counts(read(mails)) == {"marty@example.com": 2, "holm@example.com": 2}


def test_the_first_booking_is_refused_after_its_mail_was_planned(
    tenant: Tenant, holm: Any, mails: MailSink
) -> None:
    """Its rollback also removes the mail that would have carried the others."""
    project = tenant.make_project(holm["id"], settings={"max_per_customer_per_day": 1})
    start = soon().replace(hour=9)  # the next hour is the same day
    of_project = {"project_id": project["id"], "enforce_availability": True}
    create(tenant, draft(holm, start, **of_project))
    read(mails)
    drafts = [
        draft(holm, start + hours(1), **of_project),
        draft(holm, start + hours(2)),
        draft(holm, start + hours(3)),
    ]

    answer = tenant.post("/bookings/bulk", {"bookings": drafts})

    assert [each["status"] for each in answer.data] == [409, 201, 201]
    assert counts(read(mails)) == {"marty@example.com": 2, "holm@example.com": 2}


def test_requests_and_confirmations_are_merged(tenant: Tenant, holm: Any, mails: MailSink) -> None:
    start = soon()
    made = create(
        tenant, *(draft(holm, start + hours(n), graph="confirm_decline") for n in range(3))
    )
    asked = read(mails)
    choices = ["Confirm:\n<url>", "Decline:\n<url>"]

    assert counts(asked) == {"marty@example.com": 3, "holm@example.com": 3}
    assert text_of(asked["holm@example.com"])[4:6] == choices
    assert text_of(asked["holm@example.com"])[2] == (
        "Marty McFly requested these times. Confirm each of them to accept."
    )
    assert [parts_of(mail) for mail in asked.values()] == [[], []]

    changes = [{"id": each["id"], "action": "confirm"} for each in made[:2]]
    tenant.put("/bookings/bulk", {"bookings": changes})
    agreed = read(mails)

    assert counts(agreed) == {"marty@example.com": 2, "holm@example.com": 2}
    assert [entry[:3] for entry in entries_of(agreed["marty@example.com"])] == [
        ("PUBLISH", each["id"], "1") for each in made[:2]
    ]


def test_different_decline_reasons_are_separate_mails(
    tenant: Tenant, holm: Any, mails: MailSink
) -> None:
    start = soon()
    made = create(
        tenant, *(draft(holm, start + hours(n), graph="confirm_decline") for n in range(3))
    )
    read(mails)

    reasons = ["Ill", "Ill", "Full"]
    changes = [
        {"id": each["id"], "action": "decline", "decline": {"message": reason}}
        for each, reason in zip(made, reasons, strict=True)
    ]
    tenant.put("/bookings/bulk", {"bookings": changes})
    run_dispatcher("email")

    texts = [text_of(mail) for mail in mails.mails]
    assert sorted((text[0], text[3]) for text in texts) == [
        ("Your request could not be accepted", "> Full"),
        ("Your requests could not be accepted", "> Ill"),
    ]


def test_action_on_related_bookings_sends_one_mail(
    tenant: Tenant, holm: Any, mails: MailSink
) -> None:
    start = soon()
    drafts = [draft(holm, start + hours(n), graph="confirm_decline") for n in range(2)]
    made = create(tenant, *drafts, relate_bookings=True)
    read(mails)

    act(tenant, made[0], "confirm")

    assert counts(read(mails)) == {"marty@example.com": 2, "holm@example.com": 2}


def test_cancellation_mails_match_calendar_entries(
    tenant: Tenant, holm: Any, mails: MailSink
) -> None:
    start = soon()
    made = create(tenant, *(draft(holm, start + hours(n)) for n in range(2)))
    read(mails)

    changes = [{"id": each["id"], "action": "cancel"} for each in made]
    tenant.put("/bookings/bulk", {"bookings": changes})
    run_dispatcher("email")

    assert sorted((mail.to[0], parts_of(mail)) for mail in mails.mails) == [
        (to, [("text/calendar", "CANCEL"), ("application/ics", None)])
        for to in ("holm@example.com", "marty@example.com")
        for _ in range(2)
    ]


def test_seats_are_merged(tenant: Tenant, holm: Any, mails: MailSink) -> None:
    start = soon()
    times = {"start": start.isoformat(), "end": (start + hours(1)).isoformat()}
    group = make_group(tenant, holm, max_seats=5, **times)
    read(mails)
    seat = {
        "graph": "group_customer",
        "related": {"owner_booking_id": group["id"]},
        "customer": ANN,
    }

    made = create(tenant, seat, seat, seat, relate_bookings=True)
    found = read(mails)

    assert counts(found) == {"ann@example.com": 3, "holm@example.com": 3}
    # The owner has one entry for the group, which the third seat has changed last.
    assert [entry[:3] for entry in entries_of(found["holm@example.com"])] == [
        ("REQUEST", group["id"], "3")
    ]
    assert parts_of(found["holm@example.com"])[0] == ("text/calendar", "REQUEST")
    assert sorted(entry[:3] for entry in entries_of(found["ann@example.com"])) == sorted(
        ("PUBLISH", each["id"], "0") for each in made
    )


def test_series_and_single_booking_are_merged(tenant: Tenant, holm: Any, mails: MailSink) -> None:
    start = soon()

    create(
        tenant,
        draft(holm, start + hours(1)),
        draft(holm, start, "Physio", recurrence="FREQ=WEEKLY;COUNT=3"),
    )
    found = read(mails)

    assert counts(found) == {"marty@example.com": 2, "holm@example.com": 2}
    weeks = [start + hours(7 * 24 * number) for number in range(3)]
    assert [entry[3:] for entry in entries_of(found["marty@example.com"])] == [
        *(("Physio", week) for week in weeks),
        ("Check-up", start + hours(1)),
    ]


def test_bulk_request_with_idempotency_key(tenant: Tenant, holm: Any, mails: MailSink) -> None:
    """All its changes are one transaction."""
    start = soon()
    body = {"bookings": [draft(holm, start + hours(n)) for n in range(2)]}

    for _ in range(2):
        assert tenant.post("/bookings/bulk", body, **{"Idempotency-Key": "k1"}).status == 200

    assert counts(read(mails)) == {"marty@example.com": 2, "holm@example.com": 2}


def test_confirmations_in_the_back_office_are_merged(
    tenant: Tenant, holm: Any, mails: MailSink
) -> None:
    start = soon()
    drafts = [draft(holm, start + hours(n), graph="confirm_decline") for n in range(2)]
    made = create(tenant, *drafts)
    read(mails)
    chosen = {"action": "apply_confirm", "_selected_action": [each["id"] for each in made]}

    superuser().post("/admin/bookings/booking/", chosen)

    assert counts(read(mails)) == {"marty@example.com": 2, "holm@example.com": 2}


# --- What has changed before the mail leaves ------------------------------------------------------
def test_cancelled_booking_is_not_in_the_mail(tenant: Tenant, holm: Any, mails: MailSink) -> None:
    start = soon()
    made = create(tenant, *(draft(holm, start + hours(n)) for n in range(3)))
    act(tenant, made[0], "cancel")

    found = sent(mails)

    begin = f"Confirmed: Check-up, {start:%A}".partition(",")[0]
    assert found == [
        ("holm@example.com", "Cancelled: Marty McFly"),
        ("holm@example.com", "Confirmed: Marty McF…"),
        ("marty@example.com", "Cancelled: Check-up"),
        ("marty@example.com", begin),
    ]


def test_single_remaining_booking_has_an_ordinary_mail(
    tenant: Tenant, holm: Any, mails: MailSink
) -> None:
    start = soon()
    first, second = create(tenant, *(draft(holm, start + hours(n)) for n in range(2)))
    act(tenant, first, "cancel")
    Delivery.objects.filter(kind="cancelled").delete()

    found = read(mails)

    marty = found["marty@example.com"]
    assert marty.subject == f"Confirmed: Check-up, {short_when(start + hours(1))}"
    assert parts_of(marty) == [("text/calendar", "REQUEST"), ("application/ics", None)]
    assert [entry[:3] for entry in entries_of(marty)] == [("REQUEST", second["id"], "0")]


def test_no_mail_if_all_bookings_are_cancelled(tenant: Tenant, holm: Any, mails: MailSink) -> None:
    start = soon()
    for each in create(tenant, *(draft(holm, start + hours(n)) for n in range(2))):
        act(tenant, each, "cancel")

    assert [subject.partition(":")[0] for _, subject in sent(mails)] == ["Cancelled"] * 4
    ended = Delivery.objects.filter(kind="confirmed")
    assert [(row.state, row.reason) for row in ended] == [
        ("cancelled", "The booking is cancelled.")
    ] * 2


def test_an_erased_person_gets_no_mail(tenant: Tenant, holm: Any, mails: MailSink) -> None:
    start = soon()
    create(
        tenant,
        draft(holm, start),
        draft(holm, start + hours(1)),
        draft(holm, start + hours(2), customer=ANN),
    )

    tenant.post("/customers/erase", {"email": "marty@example.com"})

    found = read(mails)
    assert counts(found) == {"ann@example.com": 1, "holm@example.com": 3}
    assert "marty" not in found["holm@example.com"].message.as_string().lower()


# --- Who is not written to ------------------------------------------------------------------------
def test_disabled_mail_is_not_merged(tenant: Tenant, holm: Any, mails: MailSink) -> None:
    start = soon()
    quiet = {"notify_customer_by_email": {"enabled": False}}

    create(tenant, draft(holm, start, **quiet), *(draft(holm, start + hours(n)) for n in (1, 2)))

    assert counts(read(mails)) == {"marty@example.com": 2, "holm@example.com": 3}


def test_suppressed_address_gets_no_mail(tenant: Tenant, holm: Any, mails: MailSink) -> None:
    Suppression.objects.create(
        app=tenant.app, address="marty@example.com", reason="bounced", created_at=timezone.now()
    )
    start = soon()

    create(tenant, *(draft(holm, start + hours(n)) for n in range(2)))

    assert counts(read(mails)) == {"holm@example.com": 2}


def test_two_customers_with_one_address_get_two_mails(
    tenant: Tenant, holm: Any, mails: MailSink
) -> None:
    body = draft(holm, soon()) | {"customers": [MARTY, {**MARTY, "name": "Doc"}]}
    del body["customer"]

    create(tenant, body)

    assert [to for to, _ in sent(mails)] == ["holm@example.com", *["marty@example.com"] * 2]


def test_mail_lists_only_bookings_of_the_customer(
    tenant: Tenant, holm: Any, mails: MailSink
) -> None:
    start = soon()
    body = draft(holm, start, graph="confirm_decline") | {"customers": [ANN, MARTY]}
    del body["customer"]
    second = draft(holm, start + hours(1), graph="confirm_decline")
    made = create(tenant, body, second, relate_bookings=True)
    read(mails)

    act(tenant, made[0], "confirm")

    confirmed = Delivery.objects.filter(kind="confirmed")
    carried = confirmed.values_list("customer__email", "content__others__0__start")
    assert sorted(carried, key=str) == [
        ("ann@example.com", None),
        ("marty@example.com", format_instant(start + hours(1))),
        (None, format_instant(start + hours(1))),
    ]
    assert counts(read(mails)) == {
        "marty@example.com": 2,
        "ann@example.com": 1,
        "holm@example.com": 2,
    }


# --- What stays one for each booking --------------------------------------------------------------
@pytest.mark.usefixtures("expanded_calls")
def test_reminders_and_calls_are_not_merged(
    tenant: Tenant, holm: Any, mails: MailSink, hooks: HookSink
) -> None:
    hook(tenant, hooks)
    start = soon()
    drafts = [draft(holm, start + hours(n), event_notifications=[reminder()]) for n in range(2)]

    create(tenant, *drafts)

    assert sorted(states()) == sorted(
        [
            ("email", "confirmed", "customer", "scheduled"),
            ("email", "confirmed", "owner", "scheduled"),
            *[("webhook", "confirmed", "", "scheduled")] * 2,
            *[("email", "reminder", "customer", "scheduled")] * 2,
        ]
    )


def test_automatic_declines_are_not_merged(tenant: Tenant, holm: Any, mails: MailSink) -> None:
    project = tenant.make_project(holm["id"], settings={"pending_expires": "1 hour"})
    start = soon()
    given = {"project_id": project["id"], "graph": "confirm_decline"}
    create(tenant, *(draft(holm, start + hours(n), **given) for n in range(2)))
    read(mails)

    assert expire_bookings(now=timezone.now() + timedelta(hours=2)) == 2

    assert [to for to, _ in sent(mails)] == ["marty@example.com"] * 2


# --- While the request runs -----------------------------------------------------------------------
def test_mails_are_held_until_the_request_ends(tenant: Tenant, holm: Any, mails: MailSink) -> None:
    start = soon()
    with bulk_request():
        tenant.book(**draft(holm, start))
        during = sent(mails)
        tenant.book(**draft(holm, start + hours(1)))

    assert during == []
    assert counts(read(mails)) == {"marty@example.com": 2, "holm@example.com": 2}


def test_mails_of_a_crashed_request_are_sent_a_minute_later(
    tenant: Tenant, holm: Any, mails: MailSink
) -> None:
    start, began = soon(), timezone.now()
    with suppress(SystemExit), bulk_request():
        tenant.book(**draft(holm, start))
        tenant.book(**draft(holm, start + hours(1)))
        raise SystemExit

    rows = Delivery.objects.all()
    latest = timezone.now() + timedelta(minutes=1)
    assert [began < row.next_at <= latest and row.state for row in rows] == ["scheduled"] * 2
    make_due()
    assert counts(read(mails)) == {"marty@example.com": 2, "holm@example.com": 2}


def test_booking_after_the_mail_was_sent_is_a_separate_mail(
    tenant: Tenant, holm: Any, mails: MailSink
) -> None:
    start = soon()
    with bulk_request():
        tenant.book(**draft(holm, start))
        make_due()
        first = read(mails)
        tenant.book(**draft(holm, start + hours(1)))
        tenant.book(**draft(holm, start + hours(2)))

    assert counts(first) == {"marty@example.com": 1, "holm@example.com": 1}
    assert counts(read(mails)) == {"marty@example.com": 2, "holm@example.com": 2}


# --- The words ------------------------------------------------------------------------------------
def test_custom_template_of_a_merged_mail(tenant: Tenant, holm: Any, mails: MailSink) -> None:
    words = {"subject": "See you on {{ date }}", "text": "{{ details }}\n\n{{ actions }}"}
    tenant.put("/templates/confirmed_customer", words)
    start = soon()

    create(tenant, *(draft(holm, start + hours(n)) for n in range(2)))
    marty = read(mails)["marty@example.com"]

    assert marty.subject == f"See you on {date_words(start.astimezone(BERLIN))} (+1)"
    assert text_of(marty) == [
        f"What:  Check-up\nWhen:  {when(start)}\nWith:  Dr. Holm",
        CANCEL,
        f"What:  Check-up\nWhen:  {when(start + hours(1))}\nWith:  Dr. Holm",
        CANCEL,
    ]


@pytest.mark.parametrize("slug", ["tentative_owner", "confirmed_customer", "confirmed_owner"])
def test_a_hundred_bookings_are_all_listed(slug: str, clock: Any) -> None:
    description = "Bring your card & patience. " * 50
    event = make_event("2026-11-23 08:00", "2026-11-23 08:30", description=description)
    letters = [make_letter(slug, event=event, project="Check-up") for _ in range(100)]

    mail = compose_mail(letters[0], letters[1:])

    assert mail.subject.endswith(" (+99)")
    assert mail.body.count("What:") == html_of_message(mail).count(">What</th>") == 100
    assert mail.body.count("Details:") == 1
    assert len(html_of_message(mail)) < 500_000
