"""The bytes of mails are those that Django writes, except for the random boundaries."""

import re
from email.utils import formataddr
from typing import Any

import pytest
import time_machine
from django.core.mail import EmailMultiAlternatives
from hypothesis import given
from hypothesis import strategies as st

from notifications.mail.mime import EncodedMail, Mail

WORDS = st.lists(
    st.sampled_from(
        [
            "Confirmed: ",
            "Check-up",
            " – ",
            " ",
            "(Europe/Berlin)",
            "日本",
            "Ü",
            ",",
            "x" * 30,
            "_=?",
        ]
    ),
    max_size=20,
).map("".join)
ANY = st.text(st.characters(codec="utf-8"), max_size=250)
ASCII = st.text(st.characters(codec="ascii", min_codepoint=32), max_size=120)


def usual(**values: Any) -> dict[str, Any]:
    return {
        "subject": "Confirmed: Check-up, Monday, 23 November 2026, 09:00 – 09:30 (Europe/Berlin)",
        "body": "Hello\r\nMüller\n",
        "from_email": "Harbour Dental <bookings@example.com>",
        "to": ["marty@example.com"],
        "headers": {"Message-ID": "<1@example.com>"},
        **values,
    }


def write(
    kind: type[EmailMultiAlternatives],
    values: dict[str, Any],
    html: str = "<p>ü</p>\n",
    calendar: str | None = "BEGIN:VCALENDAR\r\n",
    attachment: bytes | None = b"BEGIN:VCALENDAR\r\n",
) -> bytes | type[Exception]:
    mail = kind(**values)
    mail.attach_alternative(html, "text/html")
    if calendar is not None:
        mail.attach_alternative(calendar, "text/calendar; method=REQUEST")
    if attachment is not None:
        mail.attach("invite.ics", attachment, "application/ics")
    try:
        written = mail.message().as_bytes(linesep="\r\n")
    except Exception as error:
        return type(error)
    for number, boundary in enumerate(re.findall(rb'boundary="([^"]+)"', written)):
        written = written.replace(boundary, b"part%d" % number)
    return written


@given(
    subject=st.one_of(WORDS, ANY, ASCII),
    name=st.one_of(WORDS, ASCII),
    header=st.one_of(WORDS, ASCII, st.just(f"<{'a' * 80}>")),
    body=ANY,
    html=ANY,
    calendar=st.none() | ANY,
    attachment=st.none() | st.binary(max_size=200),
    reply_to=st.none() | st.just(["ada@example.com"]),
)
def test_bytes_are_djangos(
    subject: str, name: str, header: str, reply_to: list[str] | None, **parts: Any
) -> None:
    values = usual(
        subject=subject,
        body=parts.pop("body"),
        from_email=formataddr((name, "bookings@example.com")),
        reply_to=reply_to,
        headers={"Message-ID": "<1@example.com>", "List-Unsubscribe": header},
    )

    with time_machine.travel("2026-11-23 08:00Z", tick=False):
        ours, djangos = write(Mail, values, **parts), write(EmailMultiAlternatives, values, **parts)

    assert ours == djangos


@pytest.mark.parametrize(
    ("changed", "html", "is_direct"),
    [
        ({}, "<p></p>", True),
        ({"subject": "予約が確定しました: 歯科検診"}, "<p></p>", True),
        ({"reply_to": ["ada@example.com"]}, "<p></p>", True),
        ({}, "x" * 1000, False),
        ({"subject": "two\nlines"}, "<p></p>", False),
        ({"to": ["ada@bücher.example"]}, "<p></p>", False),
        ({"to": ["ada@example.com", "grace@example.com"] * 3}, "<p></p>", False),
        ({"headers": {}}, "<p></p>", False),
    ],
)
def test_usual_mails_are_written_directly(
    changed: dict[str, Any], html: str, is_direct: bool
) -> None:
    mail = Mail(**usual(**changed))
    mail.attach_alternative(html, "text/html")

    try:
        message = mail.message()
    except ValueError:
        message = None

    assert isinstance(message, EncodedMail) == is_direct
