"""Subjects of the service's own templates fit a phone: the time is never cut off."""

from typing import Any

import pytest

from common.shipped_languages import shipped_languages
from notifications.mail import SLUGS, compose_mail
from notifications.mail.defaults import MAX_SUBJECT, REASSIGNED, VARIANTS
from tests.notifications.mails import make_app, make_event, make_letter

pytestmark = pytest.mark.usefixtures("clock")

LONG = "Extraordinarily long consultation about everything"
SHORT_NAMES = {"resource": "Ada", "customer": {"name": "Ann"}}
LONG_NAMES = {"resource": LONG, "customer": {"name": LONG}}


def letters(**given: Any) -> dict[str, Any]:
    """A letter of each kind, also about a booking whose resources have changed with the time."""
    event = make_event("2026-11-25 08:00", "2026-11-25 08:30", what=given.pop("what"))
    found = {slug: make_letter(slug, event=event, **given) for slug in SLUGS}
    for slug in VARIANTS[REASSIGNED]:
        found[f"{slug}, {REASSIGNED}"] = make_letter(
            slug, event=event, resources=[given["resource"]], old_resources=["Grace"], **given
        )
    return found


@pytest.mark.parametrize("language", shipped_languages())
def test_long_names_are_shortened_but_not_the_time(language: str) -> None:
    app = make_app(language=language)

    for kind, letter in letters(what=LONG, app=app, **LONG_NAMES).items():
        subject = compose_mail(letter).subject

        assert len(subject) <= MAX_SUBJECT, (kind, subject)
        assert "9:00" in subject, (kind, subject)
        assert "…" in subject and "Ext" in subject, (kind, subject)


@pytest.mark.parametrize("language", shipped_languages())
def test_short_names_are_whole(language: str) -> None:
    app = make_app(language=language)

    for kind, letter in letters(what="Yoga", app=app, **SHORT_NAMES).items():
        subject = compose_mail(letter).subject

        assert len(subject) <= MAX_SUBJECT, (kind, subject)
        assert "…" not in subject, (kind, subject)


@pytest.mark.parametrize(
    ("slug", "subject"),
    [
        ("confirmed_customer", "Confirmed: Check-up, Mon 23 Nov, 09:00"),
        ("confirmed_owner", "Confirmed: Marty McFly, Mon 23 Nov, 09:00"),
        ("cancelled_by_customer_owner", "Cancelled by Marty McFly: Mon 23 Nov, 09:00"),
        ("reminder_customer", "Reminder: Check-up, Mon 23 Nov, 09:00"),
    ],
)
def test_subjects_in_english(slug: str, subject: str) -> None:
    assert compose_mail(make_letter(slug)).subject == subject


def test_number_of_further_bookings_counts() -> None:
    event = make_event("2026-11-25 08:00", "2026-11-25 08:30", what=LONG)
    letter = make_letter("confirmed_customer", event=event)

    message = compose_mail(letter, [letter, letter])

    assert message.subject == "Confirmed: Extraordi…, Wed 25 Nov, 09:00 (+2)"
    assert len(message.subject) == MAX_SUBJECT


def test_own_subject_is_not_shortened() -> None:
    words = {"subject": "{{ what }} on {{ when }}", "text": "", "html": ""}
    event = make_event("2026-11-25 08:00", "2026-11-25 08:30", what=LONG)

    message = compose_mail(make_letter("confirmed_customer", event=event, template=words))

    when = "Wednesday, 25 November 2026, 09:00 – 09:30 (Europe/Berlin)"
    assert message.subject == f"{LONG} on {when}"


@pytest.mark.parametrize("language", shipped_languages())
def test_subject_begins_in_the_first_line_of_its_header(language: str) -> None:
    for what in ("Yoga", LONG, "Prophylaxe für Kinder – mit Röntgen"):
        for letter in letters(what=what, app=make_app(language=language), **SHORT_NAMES).values():
            raw = compose_mail(letter).message().as_bytes()

            [line] = [line for line in raw.split(b"\n") if line.startswith(b"Subject:")]
            assert line.removeprefix(b"Subject:").strip()
            assert len(line) <= 78


# --- English of a region --------------------------------------------------------------------------
AMERICAN = "Monday, November 23, 2026, 9:00\u00a0am – 9:30\u00a0am (Europe/Berlin)"
BRITISH = "Monday, 23 November 2026, 09:00 – 09:30 (Europe/Berlin)"


@pytest.mark.parametrize(
    ("tag", "when", "subject"),
    [
        ("en-US", AMERICAN, "Confirmed: Check-up, Mon, Nov 23, 9:00 am"),
        ("en_US", AMERICAN, "Confirmed: Check-up, Mon, Nov 23, 9:00 am"),
        ("en-GB", BRITISH, "Confirmed: Check-up, Mon 23 Nov, 09:00"),
        ("en", BRITISH, "Confirmed: Check-up, Mon 23 Nov, 09:00"),
        (None, BRITISH, "Confirmed: Check-up, Mon 23 Nov, 09:00"),
    ],
)
def test_mail_follows_the_customers_language_tag(tag: Any, when: str, subject: str) -> None:
    customer = {"meta": {"language": tag}}

    message = compose_mail(make_letter("confirmed_customer", customer=customer))

    assert f" {when}\n" in message.body
    assert message.subject == subject


def test_mail_follows_the_apps_language_tag() -> None:
    message = compose_mail(make_letter("confirmed_owner", app=make_app(language="en-US")))

    assert f" {AMERICAN}\n" in message.body
