"""No stranger's words reach a third person (additions A4): what leaves for an address that a public
caller typed has none of the caller's texts, in mails, calendar entries and invitations.
"""

import re
import unicodedata
from collections.abc import Iterator
from datetime import timedelta
from email import message_from_bytes, policy
from html import unescape
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from django.test import Client
from django.utils import timezone

from bookings.models import Booking
from common.link_detection import looks_like_link
from external_calendars.event_formats.ical import compose_event
from external_calendars.providers import PROVIDERS
from notifications.mail import PLACEHOLDERS
from notifications.models import Delivery, EmailTemplate
from notifications.outbox.senders import prepare_batch
from tests.bookings.booking_drafts import links, signature_of
from tests.external_calendars.mirrored import Memory, connect
from tests.world import Caller, Tenant

WORDS = {"what": "Check-up", "where": "Harbour Dental", "description": "Bring your card."}
REMINDER = {
    "type": "email",
    "settings": {"recipient": "customer", "subject": "See you soon"},
    "when": {"type": "before", "unit": "mins", "time": 60},
}
MARK = re.compile(r"zqz\d\dzqz", re.IGNORECASE)
CYRILLIC = str.maketrans("aeopc", "\u0430\u0435\u043e\u0440\u0441")
CIRCLED = {ord("a") + number: 0x24D0 + number for number in range(26)}
FULL_WIDTH = {number: number + 0xFEE0 for number in range(0x21, 0x7F)}


def disguises(mark: str) -> list[str]:
    """A link to `<mark>.example` in each of 20 disguises."""
    host = f"{mark}.example"
    return [
        f"http://{host}/win",
        f"hxxps://{host}",
        f"www.{host}",
        host,
        f"{mark}@evil.example",
        f"[Your prize](https://{host})",
        f'<a href="https://{host}">Prize</a>',
        f"javascript:alert('{mark}')//",
        f"{mark}\u3002example",
        f"{mark}[.]example",
        f"{mark} (dot) example",
        f"{mark} dot com",
        f"xn--{mark}-9ya.example",
        quote(f"https://{host}", safe="").replace("%3A", "%3A"),
        "".join(f"{letter}\u200b" for letter in host),
        f"\u202e{host[::-1]}\u202c",
        f"https://{host}/scope".translate(CYRILLIC),
        host.translate(CIRCLED).replace(".", "\uff0e"),
        f"https://{host}".translate(FULL_WIDTH),
        f"{mark} . example {'x' * 1000}",
    ]


INJECTIONS = ("Hello\r\nBcc: {}@evil.example", "Hello\nSubject: {}", "Hello\r\n\r\n<b>{}</b>")
TEXTS = [text for number in range(10) for text in disguises(f"zqz{number:02}zqz")] + [
    text.format(f"zqz{number:02}zqz") for number in range(10, 12) for text in INJECTIONS
]
NAMES = ("Marty McFly", "Dr. Ada B. Berg", "J.R.R. Tolkien", "Gal\u00b7la", "\u738b\u5c0f\u660e")


def one_line(text: str) -> str:
    """The text as far as a field of one line takes it."""
    return re.sub(r"[\x00-\x1f]+", " ", text)[:200]


def plain(text: str) -> str:
    """The text as a person reads it, in one script; also backwards."""
    read = unicodedata.normalize("NFKC", unescape(text)).translate(
        str.maketrans("\u0430\u0435\u043e\u0440\u0441", "aeopc")
    )
    read = "".join(letter for letter in read if unicodedata.category(letter) != "Cf")
    return f"{read}\n{read[::-1]}"


class Sent(NamedTuple):
    """What leaves: for whom, and all of its text."""

    recipient: str
    text: str


def sent(rows: list[Delivery]) -> Iterator[Sent]:
    """What the workers would send for these rows, calendar entries unfolded."""
    if not rows:
        return
    sends, refused = prepare_batch(rows, now=timezone.now())
    assert refused == []
    for row, send in sends:
        if row.type == Delivery.CALENDAR:
            text = compose_event(send.args[0].entry)
            yield Sent("calendar", text.replace("\r\n ", ""))
            continue
        message = message_from_bytes(send.args[0].message().as_bytes(), policy=policy.default)
        parts = [part.get_content() for part in message.walk() if not part.is_multipart()]
        texts = [part if isinstance(part, str) else part.decode() for part in parts]
        whole = "\n".join([str(message["Subject"]), str(message["To"]), *texts])
        yield Sent(row.recipient, whole.replace("\r\n ", "").replace("\n ", ""))


def everything_sent(kind: str | None = None) -> list[Sent]:
    rows = Delivery.objects.filter(state="scheduled").order_by("id")
    rows = rows.filter(kind=kind) if kind else rows
    return [
        each
        for type_ in (Delivery.EMAIL, Delivery.CALENDAR)
        for each in sent(list(rows.filter(type=type_)))
    ]


@pytest.fixture
def ada(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A resource with a connected calendar: its bookings are written there, with their guests."""
    monkeypatch.setitem(PROVIDERS, "caldav", Memory())
    made = tenant.make_resource("Ada", email="ada@example.com")
    connect(made)
    return made


@pytest.fixture
def overrides(tenant: Tenant) -> None:
    """Templates that use every placeholder."""
    text = "\n".join(f"{{{{ {name} }}}}" for name in PLACEHOLDERS)
    for slug in ("confirmed_customer", "rescheduled_customer", "reminder_customer"):
        EmailTemplate.objects.create(
            app=tenant.app, slug=slug, subject="{{ what }} {{ customer }}", text=text, html=text
        )


def make_project(tenant: Tenant, ada: Any, booking: dict[str, str], **settings: Any) -> str:
    return tenant.make_project(
        ada["id"],
        name="Dental care",
        availability={"length": "30 minutes", "to": "60 days"},
        booking=booking,
        event_notifications=[REMINDER],
        settings={"public_customers": 2, "public_reschedule": "id", **settings},
    )["id"]


def at_slot(number: int) -> dict[str, str]:
    start = timezone.now().replace(minute=0, second=0, microsecond=0) + timedelta(days=1)
    start += timedelta(minutes=30 * number)
    return {"start": start.isoformat(), "end": (start + timedelta(minutes=30)).isoformat()}


def body_with(text: str, project: str, number: int) -> dict[str, Any]:
    """The text in each field that a public caller can fill in."""
    line = one_line(text)
    people = [
        {
            "name": line,
            "email": f"{role}{number}@example.com",
            "phone": line,
            "voip": line,
            "answer": text,
            "meta": {"comment": text},
        }
        for role in ("ann", "bob")
    ]
    return {
        "project_id": project,
        "what": line,
        "where": line,
        "description": text.replace("\r", ""),
        "participants": [line[:254]],
        "meta": {"note": text, line[:100]: text},
        "customers": people,
        **at_slot(number),
    }


@pytest.mark.usefixtures("overrides")
@pytest.mark.parametrize("own", [{}, WORDS])
def test_public_texts_are_not_in_mails(
    tenant: Tenant, ada: Any, own: dict[str, str], pytestconfig: pytest.Config
) -> None:
    """Each disguise and injection in each field; with --deep 200 texts, half of them where the
    project has words of its own."""
    tenant.set_public_limits()
    project, widget = make_project(tenant, ada, own), tenant.widget()
    texts = [*disguises("zqz00zqz"), *TEXTS[-len(INJECTIONS) :]]
    if pytestconfig.getoption("deep"):
        texts = TEXTS[::2] if own else TEXTS[1::2]

    answers = [
        widget.post("/bookings", body_with(text, project, number))
        for number, text in enumerate(texts)
    ]
    messages = [
        widget.post(
            f"/bookings/{answer.data['id']}/reschedule",
            {**at_slot(1000 + number), "message": "\n".join(texts).replace("\r", "")[:8000]},
        )
        for number, answer in enumerate(answers[:3])
    ]
    leaves = everything_sent()

    assert [answer.status for answer in answers] == [201] * len(texts)
    assert [answer.status for answer in messages] == [200] * 3
    kinds = [each.recipient for each in leaves]
    assert kinds.count("customer") >= 4 * len(texts)
    assert kinds.count("calendar") >= len(texts)
    reached = [
        each for each in leaves if each.recipient != "owner" and MARK.search(plain(each.text))
    ]
    assert reached == []
    # The control: the owner reads what was typed.
    owners = [each.text for each in leaves if each.recipient == "owner"]
    assert sum(bool(MARK.search(plain(text))) for text in owners) == len(owners) > len(texts)


def test_corpus_has_200_links_and_injections() -> None:
    links_in = [text for text in TEXTS if "\n" not in text]

    assert (len(links_in), len(TEXTS)) == (200, 206)
    assert [text for text in links_in if not looks_like_link(one_line(text))] == []
    assert all(MARK.search(plain(text)) for text in TEXTS)
    assert [name for name in NAMES if looks_like_link(name)] == []


@pytest.mark.parametrize(
    ("own", "what", "where"),
    [
        (WORDS, "Check-up", "Harbour Dental"),
        ({"what": "Check-up"}, "Check-up", ""),
        ({}, "Dental care", ""),
    ],
)
def test_texts_in_mails_to_customer_and_owner(
    tenant: Tenant, ada: Any, own: dict[str, str], what: str, where: str
) -> None:
    project = make_project(tenant, ada, own)
    typed = {"what": "My tooth", "where": "At home", "description": "It hurts"}
    marty = {"name": "Marty McFly", "email": "marty@example.com", "phone": "+1 555 0100"}
    body = {"project_id": project, "customer": marty, **typed, **at_slot(0)}

    booking = tenant.widget().post("/bookings", body).data
    leaves = everything_sent("confirmed")
    page = Client().get(links(booking)["cancel_by_customer"]).content.decode()

    kept = {**typed, **own}
    info = tenant.get(f"/bookings/{booking['id']}").data["attributes"]["event_info"]
    assert {name: info[name] for name in typed} == kept
    customers, owners = (
        "\n".join(each.text for each in leaves if each.recipient == recipient)
        for recipient in ("customer", "owner")
    )
    assert (what in customers, not where or where in customers) == (True, True)
    assert "Hello Marty McFly," in customers
    assert all(kept[name] in owners for name in kept)
    assert "+1 555 0100" in owners and "+1 555 0100" not in customers
    for text in set(typed.values()) - set(own.values()):
        assert (text in customers, text in page) == (False, False)
    assert (what in page, booking["id"] in "".join(_uids(customers))) == (True, False)


def _uids(text: str) -> list[str]:
    found = re.findall(r"^UID:(.*)$", text, re.MULTILINE)
    assert found
    return found


def test_names_are_truncated_and_links_removed(tenant: Tenant, ada: Any) -> None:
    project, widget = make_project(tenant, ada, WORDS), tenant.widget()
    for number, name in enumerate(("A" * 61, "see evil.example")):
        person = {"name": name, "email": f"p{number}@example.com"}
        body = {"project_id": project, "customer": person, **at_slot(number)}
        assert widget.post("/bookings", body).status == 201

    mails = [each.text for each in everything_sent("confirmed") if each.recipient == "customer"]

    assert [re.findall(r"^Hello.*$", text, re.MULTILINE)[0] for text in mails] == [
        f"Hello {'A' * 59}\u2026,",
        "Hello,",
    ]
    assert not any("A" * 60 in text or "evil" in text for text in mails)


def test_texts_of_the_owner_are_in_customer_mails(tenant: Tenant, ada: Any) -> None:
    """An edit makes a text the owner's; what else was typed stays hidden."""
    project = make_project(tenant, ada, {})
    marty = {"name": "Marty McFly", "email": "marty@example.com"}
    typed = {"what": "My tooth", "where": "At home", "description": "It hurts"}
    body = {"project_id": project, "customer": marty, **typed, **at_slot(0)}
    booking = tenant.widget().post("/bookings", body).data

    tenant.put(f"/bookings/{booking['id']}", {"what": "Root canal"})

    (mail,) = [each.text for each in everything_sent("updated") if each.recipient == "customer"]
    assert Booking.objects.get().untrusted_texts == ["where", "description"]
    assert ("Root canal" in mail, "At home" in mail, "It hurts" in mail) == (True, False, False)


def test_texts_of_a_server_key_are_trusted(tenant: Tenant, ada: Any) -> None:
    project = make_project(tenant, ada, {})
    given = {"what": "My tooth", "where": "shop.example", "description": "It hurts"}

    booking = tenant.book(project_id=project, **given, **at_slot(0)).data

    customers = [each.text for each in everything_sent("confirmed") if each.recipient == "customer"]
    assert Booking.objects.get(id=booking["id"]).untrusted_texts is None
    assert all(text in customers[0] for text in given.values())


def test_public_reschedule_message_goes_only_to_the_owner(tenant: Tenant, ada: Any) -> None:
    project = make_project(tenant, ada, WORDS, public_reschedule="link")
    booking = tenant.book(project_id=project, **at_slot(0)).data
    path = f"/bookings/{booking['id']}/reschedule"

    def move(caller: Caller, number: int, message: str) -> dict[str, str]:
        body = {**at_slot(number), "message": message, "signature": signature_of(booking)}
        Delivery.objects.all().delete()
        assert caller.post(path, body).status == 200
        return {each.recipient: each.text for each in everything_sent("rescheduled")}

    by_stranger = move(tenant.widget(), 4, "Buy pills")
    by_owner = move(tenant, 8, "We are ill")

    assert ["pills" in by_stranger[each] for each in ("customer", "owner")] == [False, True]
    assert ["ill" in by_owner[each] for each in ("customer", "owner")] == [True, True]
