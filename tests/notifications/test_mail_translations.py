"""Every mail in every language: no English sentence and no English date is left."""

import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest
from django.core.mail import EmailMultiAlternatives

from common.shipped_languages import shipped_languages
from notifications.mail import (
    SLUGS,
    compose_code_mail,
    compose_invitation_mail,
    compose_mail,
    compose_own_bookings_mail,
    compose_password_mail,
    compose_webhook_notice,
)
from notifications.mail.defaults import SEVERAL, VARIANTS
from notifications.webhooks.disabling_reasons import ANSWERED_GONE, NEVER_SUCCEEDED
from tests.booking_pages.test_languages_browser import ENGLISH_DATE, LETTER, same_in
from tests.notifications.mails import DELIVERY_ID, html_of, make_app, make_letter
from tests.world import at

pytestmark = pytest.mark.usefixtures("clock")

# What people have typed, and names; not translated.
TYPED = (
    *("Check-up", "Harbour Dental", "Harbour Street 5", "Bring your card.", "Ada Lovelace"),
    *("Marty McFly", "marty@example.com", "desk@example.com", "+1 555 0100", "Europe/Berlin"),
    *("Quay 5", "We are ill.", "410 Gone"),
)
SEVERAL_SLUGS = tuple(VARIANTS[SEVERAL])
LINK = "https://example.com/link"
BRANDING = {
    "contact_email": "desk@example.com",
    "address": "Quay 5",
    "imprint_url": "https://example.com/i",
    "privacy_url": "https://example.com/p",
}
REASSIGNED = {"resources": ["Ada Lovelace"], "old_resources": ["Ada Lovelace"]}
MOVED = {"old_start": "2026-11-20T14:00:00+00:00", "old_end": "2026-11-20T14:30:00+00:00"}
SERIES = {"times": 2, "until": "2026-11-30T08:00:00+00:00", "occurrences": []}
SYSTEM_MAILS: dict[str, Any] = {
    "code": (compose_code_mail, {"code": "123456", "url": LINK, "languages": []}),
    "own bookings": (compose_own_bookings_mail, {"url": LINK, "languages": []}),
    "password": (compose_password_mail, {"url": LINK}),
    **{
        f"invitation of {role}": (compose_invitation_mail, {"role": role, "url": LINK})
        for role in ("viewer", "editor", "owner")
    },
    **{
        f"webhook: {reason}": (compose_webhook_notice, {"reason": reason, "url": LINK})
        for reason in (ANSWERED_GONE, NEVER_SUCCEEDED)
    },
}


def mails_in(language: str) -> Iterator[tuple[str, EmailMultiAlternatives]]:
    """(name, mail) of every kind, with everything that it can say."""
    app = make_app(language=language, **BRANDING)
    for slug in SLUGS:
        moved = MOVED if slug.startswith("rescheduled") else {}
        reassigned = REASSIGNED if slug.startswith(("reassigned", "unassigned")) else {}
        facts = {"message": "We are ill.", **moved, **reassigned}
        yield slug, compose_mail(make_letter(slug, app=app, project="Check-up", **facts))
        if moved:
            both = make_letter(slug, app=app, project="Check-up", **facts, **REASSIGNED)
            yield f"{slug} with other resources", compose_mail(both)
    for slug in SEVERAL_SLUGS:
        letters = [make_letter(slug, app=app, project="Check-up") for _ in range(2)]
        yield f"{slug} about several", compose_mail(letters[0], letters[1:])
    yield "series", compose_mail(make_letter("confirmed_customer", app=app, **SERIES))
    unpaid = make_letter(
        "updated_customer", app=app, project="Check-up", graph="instant_payment", state="tentative"
    )
    unpaid.booking.project.settings = {"pay_url": LINK}
    unpaid.booking.expires_at = at("2026-11-20 10:00")
    yield "payment", compose_mail(unpaid)
    for name, (compose, given) in SYSTEM_MAILS.items():
        yield name, compose(app=app, delivery_id=DELIVERY_ID, to=["marty@example.com"], **given)


def lines_of(mail: EmailMultiAlternatives) -> set[str]:
    """What is read in subject, text and HTML, without names and addresses."""
    html = re.sub(r"<(style|title)>.*?</\1>", "", html_of(mail), flags=re.S)
    shown = unescape(re.sub(r"<[^>]*>", "\n", html))
    text = "\n".join([mail.subject, mail.body, shown])
    for name in TYPED:
        text = text.replace(name, "")
    text = re.sub(r"https?://\S+", "", text)
    parts = re.split(r"\n|: | {2,}", text)
    return {part for each in parts if LETTER.search(part := each.strip(" ·-–:,>\u200f\u200e"))}


@pytest.fixture
def english(clock: Any) -> dict[str, set[str]]:
    return {name: lines_of(mail) for name, mail in mails_in("en")}


def test_every_kind_has_english_lines(english: dict[str, set[str]]) -> None:
    """The control of the others."""
    assert {name for name in english if len(english[name]) < 4} == set()
    assert {"Pay now", "Imprint", "Reason", "A webhook was disabled"} <= set().union(
        *english.values()
    )


@pytest.mark.parametrize("language", shipped_languages()[1:])
def test_no_mail_has_an_english_line(english: dict[str, set[str]], language: str) -> None:
    same = same_in(language)

    left = {
        name: [line for line in lines_of(mail) & english[name] if line not in same]
        + [line for line in lines_of(mail) if ENGLISH_DATE.search(line)]
        for name, mail in mails_in(language)
    }

    assert {name: lines for name, lines in left.items() if lines} == {}


@pytest.mark.parametrize("language", shipped_languages())
def test_every_mail_declares_its_language(language: str) -> None:
    direction = "rtl" if language == "ar" else "ltr"

    tags = {re.search(r"<html [^>]*>", html_of(mail))[0] for _, mail in mails_in(language)}

    assert tags == {f'<html lang="{language}" dir="{direction}">'}
