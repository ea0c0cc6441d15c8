"""Whatever stands in the rows, a mail goes to its recipients and says it literally (row S10)."""

import logging
from typing import Any

import pytest

from notifications.mail import SLUGS, compose_mail, compose_webhook_notice
from tests.notifications.mails import (
    DELIVERY_ID,
    calendar_of,
    html_of,
    make_app,
    make_event,
    make_letter,
    sent,
)

pytestmark = pytest.mark.usefixtures("clock")

HOSTILE = {
    "crlf": "a\r\nBcc: x@evil.example",
    "lf": "a\nBcc: x@evil.example\n\nbody",
    "cr": "a\rBcc: x@evil.example",
    "next line": "a\x85Bcc: x@evil.example",
    "line separator": "a\u2028Bcc: x@evil.example",
    "paragraph separator": "a\u2029Bcc: x@evil.example",
    "vertical tab": "a\x0bBcc: x@evil.example",
    "form feed": "a\x0cBcc: x@evil.example",
    "separators": "a\x1c\x1d\x1e\x1fBcc: x@evil.example",
    "nul": "a\x00Bcc: x@evil.example",
    "escape": "a\x1b[31mBcc: x@evil.example\x7f",
    "surrogate": "a\ud800Bcc: x@evil.example",
    "encoded": "=?utf-8?q?a=0D=0ABcc=3A_x=40evil=2Eexample?=",
    "braces": "{{ customer_email }} {{ nothing }} {% include 'x' %} {{ a.b }} }}{{ {0} %(a)s",
    "html": "<script>alert(1)</script><img src=x onerror=y> \"'&amp;",
    "tag end": "</td></table><style>*{display:none}</style>",
    "long": "x" * 100_000,
    "long words": "x@evil.example, " * 6_000,
    "blank": " \t ",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("slug", SLUGS)
def test_texts_of_users_are_not_run_as_html(slug: str, text: str) -> None:
    app = make_app(
        name=text, from_name=text, contact_name=text, contact_email=text, from_email=text
    )
    event = make_event(
        "2026-11-23 08:00", "2026-11-23 08:30", what=text, where=text, description=text
    )
    letter = make_letter(
        slug,
        app=app,
        event=event,
        resource=text,
        project=text,
        customer={"name": text, "phone": text, "timezone": text},
        from_state="confirmed",
        message=text,
        subject=text,
    )

    message = compose_mail(letter)
    read = sent(message)

    to = list(letter.to)
    assert (message.recipients(), message.to, message.cc, message.bcc) == (to, to, [], [])
    assert sorted(read.keys()) == EXPECTED_HEADERS
    assert [str(read[name]) for name in ("To", "X-Delivery-Id")] == [to[0], str(DELIVERY_ID)]
    assert read["From"].addresses[0].addr_spec == "bookings@localhost"
    assert not set(message.subject) & set("\r\n\0\x85\u2028\u2029\x0b\x0c\x1b")
    assert 0 < len(message.subject) <= 200
    for word in ("<script", "<img", "onerror=y>", "</table><style"):
        assert word not in html_of(message)
    assert len(message.message().as_bytes()) < 300_000
    calendar = calendar_of(message)
    if calendar:
        assert [line for line in calendar.split("\r\n") if line.startswith("Bcc")] == []
        assert "\nBcc" not in calendar.replace("\r\n", "")


EXPECTED_HEADERS = sorted(
    [
        *("Content-Type", "MIME-Version", "Subject", "From", "To", "Date", "Message-ID"),
        *("X-Delivery-Id", "Auto-Submitted"),
    ]
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\r\nBcc: x@evil.example", "a Bcc: x@evil.example"),
        ("a\u2028b\x85c\x00d\x1be", "a b c d e"),
        ("{{ customer_email }} {% x %} {{ a.b }}", "{{ customer_email }} {% x %} {{ a.b }}"),
        ("<b>&amp;</b>", "<b>&amp;</b>"),
        ("=?utf-8?q?=41?=", "=\u200b?utf-8?q?=41?="),
        ("y" * 300, "y" * 199 + "…"),
    ],
)
def test_subject_is_literal_and_on_one_line(text: str, shown: str) -> None:
    words = {"subject": "{{ what }}", "text": "", "html": ""}

    message = compose_mail(make_letter("confirmed_customer", what=text, template=words))

    assert (message.subject, sent(message)["Subject"].strip()) == (shown, shown)


def test_values_are_escaped_in_html_only() -> None:
    words = {"subject": "", "text": "{{ what }}\n", "html": '<p title="{{ what }}">{{ what }}</p>'}

    message = compose_mail(make_letter("confirmed_customer", what="<i>\"'&", template=words))

    shown = "&lt;i&gt;&quot;&#x27;&amp;"
    assert message.body == "<i>\"'&\n"
    assert html_of(message) == f'<p title="{shown}">{shown}</p>'


@pytest.mark.parametrize(
    "to",
    [
        (),
        ("",),
        ("marty@example.com\r\nBcc: x@evil.example",),
        ("marty@example.com, x@evil.example",),
        ("Marty <marty@example.com>",),
        ("marty@example.com", "no address"),
        ('"a\rb"@example.com',),
        ("marty@example.com\x00",),
    ],
)
def test_malformed_recipients_are_refused(to: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"^no address that a mail could go to$"):
        compose_mail(make_letter("confirmed_customer", to=to))


def test_several_recipients() -> None:
    to = ("ada@example.com", "grace@example.com")

    message = compose_mail(make_letter("confirmed_owner", to=to))

    assert message.recipients() == list(to)
    assert sent(message)["To"] == "ada@example.com, grace@example.com"


# --- Headers --------------------------------------------------------------------------------------
def test_sender_name_is_that_of_the_app(settings: Any) -> None:
    settings.DEFAULT_FROM_EMAIL = "Service <mail@service.example>"
    settings.SENDER_DOMAINS = frozenset({"harbour.example"})
    own = {
        "from_name": 'Zahnärztin, Dr. "Ada"',
        "from_email": "desk@harbour.example",
        "contact_email": "hello@harbour.example",
    }

    read = sent(compose_mail(make_letter("confirmed_customer", app=make_app(**own))))
    plain = sent(compose_mail(make_letter("confirmed_customer")))

    (sender,) = read["From"].addresses
    assert (sender.display_name, sender.addr_spec) == (own["from_name"], own["from_email"])
    assert read["Reply-To"] == "hello@harbour.example"
    assert read["Message-ID"] == f"<{DELIVERY_ID}@harbour.example>"
    assert (plain["From"], plain["Reply-To"]) == ("Harbour Dental <mail@service.example>", None)
    assert plain["Message-ID"] == f"<{DELIVERY_ID}@service.example>"


def test_message_id_is_the_same_on_each_try() -> None:
    tries = [sent(compose_mail(make_letter("confirmed_customer"))) for _ in range(2)]

    assert [attempt["Message-ID"] for attempt in tries] == [f"<{DELIVERY_ID}@localhost>"] * 2
    assert [attempt["X-Delivery-Id"] for attempt in tries] == [str(DELIVERY_ID)] * 2
    assert [attempt["Auto-Submitted"] for attempt in tries] == ["auto-generated"] * 2


def test_non_ascii_domain_is_encoded(settings: Any) -> None:
    settings.SENDER_DOMAINS = frozenset({"xn--bcher-kva.example"})
    app = make_app(from_email="a@bücher.example")

    read = sent(compose_mail(make_letter("confirmed_customer", app=app)))

    assert read["Message-ID"] == f"<{DELIVERY_ID}@xn--bcher-kva.example>"
    assert read["From"].addresses[0].addr_spec == "a@xn--bcher-kva.example"


# --- Own templates --------------------------------------------------------------------------------
def test_custom_template_replaces_the_default() -> None:
    words = {
        "subject": "{{what}} with {{ resource }}{{ nothing }}",
        "text": "{{ name }} ({{ contact_email }}), {% if x %} {{ a.b }} { } {{}}\n\n{{ message }}",
        "html": "<p>{{ customer }} &amp; {{ message }}{{ details }}{{ actions }}</p>",
    }

    message = compose_mail(make_letter("cancelled_customer", template=words, what=""))

    assert message.subject == "with Ada Lovelace"
    assert message.body == "Marty McFly (), {% if x %} {{ a.b }} { } {{}}\n"
    assert html_of(message).startswith("<p>Marty McFly &amp; <table")


def test_blank_template_parts_use_the_default() -> None:
    words = {"subject": "Hi {{ name }}", "text": "", "html": ""}

    message = compose_mail(make_letter("confirmed_customer", template=words))
    default = compose_mail(make_letter("confirmed_customer"))

    assert message.subject == "Hi Marty McFly"
    assert (message.body, html_of(message)) == (default.body, html_of(default))


LONG = make_event("2026-11-23 08:00", "2026-11-23 08:30", description="&" * 8000)


@pytest.mark.parametrize(
    "words",
    [
        {"subject": "{{ nothing }} \r\n", "text": "x", "html": "x"},
        {"subject": "x", "text": 7, "html": "x"},
        {"subject": ["x"], "text": "x", "html": "x"},
        {"subject": "x", "text": "x", "html": "{{description}}" * 6_600},
    ],
)
def test_broken_template_falls_back_to_the_default(words: Any, caplog: Any) -> None:
    with caplog.at_level(logging.ERROR):
        message = compose_mail(make_letter("confirmed_customer", template=words, event=LONG))

    default = compose_mail(make_letter("confirmed_customer", event=LONG))
    assert (message.subject, message.body) == (default.subject, default.body)
    (record,) = caplog.records
    assert record.getMessage().startswith("template confirmed_customer of app ")


# --- Notices --------------------------------------------------------------------------------------
def test_notice_about_a_webhook() -> None:
    message = compose_webhook_notice(
        app=make_app(),
        delivery_id=DELIVERY_ID,
        to=["owner@example.com"],
        url="https://example.com/<hook>",
        reason="It answered 410 Gone.",
    )

    assert message.subject == "A webhook was disabled"
    assert message.recipients() == ["owner@example.com"]
    assert message.body == (
        "It is not called until you enable it again.\n\n"
        "Address:  https://example.com/<hook>\n"
        "Reason:   It answered 410 Gone.\n"
        "App:      Harbour Dental\n"
    )
    assert "https://example.com/&lt;hook&gt;</td>" in html_of(message)
    assert message.extra_headers["Message-ID"] == f"<{DELIVERY_ID}@localhost>"
    assert [alternative.mimetype for alternative in message.alternatives] == ["text/html"]
