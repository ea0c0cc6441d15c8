"""When something takes place, in words: zones, clock changes, midnights, whole days."""

from datetime import date

import pytest

from notifications.mail import compose_mail
from tests.notifications.mails import make_event, make_letter

pytestmark = pytest.mark.usefixtures("clock")

BERLIN, LORD_HOWE = "Europe/Berlin", "Australia/Lord_Howe"
NEW_YORK, KATHMANDU = "America/New_York", "Asia/Kathmandu"


def when_line(start: str, end: str, zone: str) -> str:
    """What the mail to the owner says behind "When:"."""
    body = compose_mail(
        make_letter("confirmed_owner", event=make_event(start, end), zone=zone)
    ).body
    return next(line for line in body.splitlines() if line.startswith("When:"))[5:].strip()


@pytest.mark.parametrize(
    ("zone", "start", "end", "words"),
    [
        # An ordinary day, and offsets that are no whole hours.
        (
            BERLIN,
            "2026-11-23 08:00",
            "2026-11-23 08:30",
            "Monday, 23 November 2026, 09:00 – 09:30 (Europe/Berlin)",
        ),
        (
            KATHMANDU,
            "2026-11-23 08:00",
            "2026-11-23 08:30",
            "Monday, 23 November 2026, 13:45 – 14:15 (Asia/Kathmandu)",
        ),
        (
            NEW_YORK,
            "2026-11-23 02:00",
            "2026-11-23 03:00",
            "Sunday, 22 November 2026, 21:00 – 22:00 (America/New_York)",
        ),
        # Across midnight, up to midnight, several days.
        (
            BERLIN,
            "2026-11-23 22:30",
            "2026-11-23 23:30",
            "Monday, 23 November 2026, 23:30 – Tuesday, 24 November 2026, 00:30 (Europe/Berlin)",
        ),
        (
            BERLIN,
            "2026-11-23 22:00",
            "2026-11-23 23:00",
            "Monday, 23 November 2026, 23:00 – Tuesday, 24 November 2026, 00:00 (Europe/Berlin)",
        ),
        (
            BERLIN,
            "2026-12-31 09:00",
            "2027-01-02 16:00",
            "Thursday, 31 December 2026, 10:00 – Saturday, 2 January 2027, 17:00 (Europe/Berlin)",
        ),
        # 29 March 2026, 02:00 becomes 03:00 in Berlin.
        (
            BERLIN,
            "2026-03-29 00:30",
            "2026-03-29 01:30",
            "Sunday, 29 March 2026, 01:30 UTC+01:00 – 03:30 UTC+02:00 (Europe/Berlin)",
        ),
        (
            BERLIN,
            "2026-03-29 01:00",
            "2026-03-29 02:00",
            "Sunday, 29 March 2026, 03:00 – 04:00 (Europe/Berlin)",
        ),
        # 25 October 2026, 03:00 becomes 02:00: the hour is there twice.
        (
            BERLIN,
            "2026-10-25 00:15",
            "2026-10-25 01:15",
            "Sunday, 25 October 2026, 02:15 UTC+02:00 – 02:15 UTC+01:00 (Europe/Berlin)",
        ),
        (
            BERLIN,
            "2026-10-25 01:15",
            "2026-10-25 01:45",
            "Sunday, 25 October 2026, 02:15 UTC+01:00 – 02:45 UTC+01:00 (Europe/Berlin)",
        ),
        (
            BERLIN,
            "2026-10-24 23:30",
            "2026-10-25 02:00",
            "Sunday, 25 October 2026, 01:30 UTC+02:00 – 03:00 UTC+01:00 (Europe/Berlin)",
        ),
        (
            BERLIN,
            "2026-10-24 08:00",
            "2026-10-26 09:00",
            "Saturday, 24 October 2026, 10:00 – Monday, 26 October 2026, 10:00 (Europe/Berlin)",
        ),
        # Half an hour: 5 April and 4 October 2026.
        (
            LORD_HOWE,
            "2026-04-04 14:40",
            "2026-04-04 15:10",
            "Sunday, 5 April 2026, 01:40 UTC+11:00 – 01:40 UTC+10:30 (Australia/Lord_Howe)",
        ),
        (
            LORD_HOWE,
            "2026-10-03 15:15",
            "2026-10-03 15:45",
            "Sunday, 4 October 2026, 01:45 UTC+10:30 – 02:45 UTC+11:00 (Australia/Lord_Howe)",
        ),
        # What the zones' table does not know.
        (
            "Nowhere/At_all",
            "2026-11-23 08:00",
            "2026-11-23 08:30",
            "Monday, 23 November 2026, 08:00 – 08:30 (UTC)",
        ),
    ],
)
def test_span_in_a_zone(zone: str, start: str, end: str, words: str) -> None:
    assert when_line(start, end, zone) == words


@pytest.mark.parametrize(
    ("slug", "customers", "expected"),
    [
        ("confirmed_customer", NEW_YORK, "03:00 – 03:30 (America/New_York)"),
        ("confirmed_customer", "", "09:00 – 09:30 (Europe/Berlin)"),
        ("confirmed_customer", "Mars/Olympus", "09:00 – 09:30 (Europe/Berlin)"),
        ("confirmed_owner", NEW_YORK, "09:00 – 09:30 (Europe/Berlin)"),
    ],
)
def test_times_are_in_the_zone_of_the_recipient(slug: str, customers: str, expected: str) -> None:
    message = compose_mail(make_letter(slug, customer={"timezone": customers}))

    assert message.subject.endswith(f", Mon 23 Nov, {expected[:5]}")
    assert f" Monday, 23 November 2026, {expected}\n" in message.body


@pytest.mark.parametrize(
    ("last", "words"),
    [
        (date(2026, 3, 30), "Sunday, 29 March 2026, all day (Europe/Berlin)"),
        (
            date(2026, 4, 1),
            "Sunday, 29 March 2026 – Tuesday, 31 March 2026, all day (Europe/Berlin)",
        ),
    ],
)
def test_all_day_events_are_in_the_zone_of_the_resource(last: date, words: str) -> None:
    """Whoever reads: a day does not become two halves on another clock."""
    event = make_event(
        "2026-03-28 23:00",
        f"{last:%Y-%m-}{last.day - 1:02} 22:00" if last.day > 1 else "2026-03-31 22:00",
        all_day=True,
        start_date=date(2026, 3, 29),
        end_date=last,
    )

    message = compose_mail(
        make_letter("confirmed_customer", event=event, customer={"timezone": NEW_YORK})
    )

    assert message.subject == "Confirmed: Check-up, Sun 29 Mar"
    assert f" {words}\n" in message.body


def test_template_placeholders_of_day_time_and_zone() -> None:
    words = {
        "subject": "{{ date }} / {{ time }} / {{ zone }}",
        "text": "",
        "html": "",
    }

    message = compose_mail(
        make_letter("reminder_customer", customer={"timezone": NEW_YORK}, template=words)
    )

    assert message.subject == "Monday, 23 November 2026 / 03:00 / America/New_York"
