"""The page behind a mail's link on which a customer chooses another time."""

import re
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from django.conf import settings
from django.test import Client

from bookings.models import Booking
from bookings.pages.action_links import action_url
from notifications.mail import render_mail
from notifications.mail.template_editing import letter_for_booking
from notifications.models import Delivery, EmailTemplate
from tests.booking_pages.test_book_page import NINE_TO_NOON, Shown
from tests.bookings.booking_drafts import steps
from tests.world import Tenant, at

pytestmark = pytest.mark.usefixtures("clock")

NINE = {"start": "2026-11-23T09:00:00+01:00", "end": "2026-11-23T09:30:00+01:00"}
TEN = "2026-11-24T09:00:00+00:00/2026-11-24T09:30:00+00:00"
MOVED = ["Your booking has been moved", "You can close this page."]
POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none';"
    " frame-ancestors 'none'; script-src 'self'; form-action 'self'"
)


class Desk:
    """A booking on Monday at nine with Ada in Berlin, by a customer in Berlin."""

    def __init__(self, tenant: Tenant, *, graph: str = "instant", **given: Any) -> None:
        self.tenant = tenant
        ada = tenant.make_resource("Ada", "Europe/Berlin", availability_constraints=NINE_TO_NOON)
        self.resource = ada["id"]
        terms = {"length": "30 minutes", "to": "2 weeks", **given.pop("availability", {})}
        booking = {"graph": graph, "what": "Check-up", **given.pop("booking", {})}
        self.project = tenant.make_project(
            self.resource, availability=terms, booking=booking, **given
        )["id"]
        self.booking = self.book().data
        self.client = Client()

    def book(self, **given: Any) -> Any:
        marty = {"name": "Marty", "email": "marty@example.com", "timezone": "Europe/Berlin"}
        body = {"project_id": self.project, "customer": marty, **NINE, **given}
        return self.tenant.post("/bookings", body)

    @property
    def row(self) -> Booking:
        return Booking.objects.select_related("event").get(id=self.booking["id"])

    @property
    def link(self) -> str:
        parts = urlsplit(action_url(self.row, "reschedule", self.row.event.end))
        return f"{parts.path}?{parts.query}"

    @property
    def start(self) -> str:
        return self.row.event.start.isoformat()

    def move(self, link: str, time: str = TEN) -> Shown:
        """Press the button, with that choice or none."""
        form = urlencode({"time": time} if time else {})
        return Shown.of(self.client.post(link, form, "application/x-www-form-urlencoded"))


def choices(page: Shown) -> list[str]:
    return re.findall(r'name="time" value="([^"]*)"', page.html)


# --- Looking --------------------------------------------------------------------------------------
def test_page_shows_the_booking_and_free_times(tenant: Tenant) -> None:
    desk = Desk(tenant)

    page = Shown(desk.link)
    tuesday = Shown(f"{desk.link}&day=2026-11-24")
    monday = Shown(f"{desk.link}&day=2026-11-23")

    assert (page.status, page.words("h1")) == (200, ["Choose another time"])
    assert page.words("dd") == [
        "Check-up",
        "Monday, 23 November 2026, 09:00 – 09:30 (Europe/Berlin)",
        "Ada",
    ]
    assert page.words("h3") == ["Friday, 20 November 2026"]
    assert page.words("label", "time") == ["11:00", "11:30"]
    assert choices(tuesday)[2] == TEN
    assert tuesday.words("label", "time") == ["09:00", "09:30", "10:00", "10:30", "11:00", "11:30"]
    # Its own time is no other time, and is in no other's way.
    assert monday.words("label", "time") == ["09:30", "10:00", "10:30", "11:00", "11:30"]


def test_own_booking_does_not_block_the_free_times(tenant: Tenant) -> None:
    """With a buffer and a limit a day, which it would use up itself."""
    desk = Desk(tenant, availability={"buffer": "30 minutes"}, settings={"max_per_day": 1})

    monday = Shown(f"{desk.link}&day=2026-11-23")
    moved = desk.move(desk.link, choices(monday)[0])

    assert monday.words("label", "time") == ["09:30", "10:00", "10:30", "11:00", "11:30"]
    assert (moved.status, desk.start) == (200, "2026-11-23T08:30:00+00:00")


def test_get_changes_nothing(tenant: Tenant) -> None:
    desk = Desk(tenant)
    before = tenant.get(f"/bookings/{desk.booking['id']}?include=logs").data

    Shown(desk.link)
    head = desk.client.head(desk.link)

    assert (head.status_code, head.content) == (200, b"")
    assert tenant.get(f"/bookings/{desk.booking['id']}?include=logs").data == before


def test_later_days_are_linked(tenant: Tenant) -> None:
    desk = Desk(tenant, availability={"to": "8 weeks"})

    page = Shown(desk.link)
    [later] = re.findall(r'href="([^"]*since=[^"]*)">Later days', page.html)
    then = Shown(urlsplit(desk.link).path + later.replace("&amp;", "&"))

    assert page.words("span", "unseen")[-1] == "Friday, 25 December 2026"
    assert then.words("span", "unseen")[0] == "Monday, 28 December 2026"
    assert "Earlier days" in then.html


def test_times_are_in_the_zone_of_the_url(tenant: Tenant) -> None:
    desk = Desk(tenant, availability={"to": "8 weeks"})
    zone = f"{desk.link}&day=2026-11-24&timezone="

    own, kolkata, unknown = (Shown(f"{zone}{name}") for name in ("", "Asia%2FCalcutta", "Mars"))
    refused = desk.move(f"{zone}Asia%2FKolkata", "")

    assert own.words("label", "time")[:2] == ["09:00", "09:30"]
    assert kolkata.words("label", "time")[:2] == ["13:30", "14:00"]
    assert refused.words("label", "time")[:2] == ["13:30", "14:00"]
    assert "All times are in Asia/Kolkata." in kolkata.html
    assert unknown.words("label", "time") == own.words("label", "time")
    assert 'name="timezone" value="Asia/Kolkata"' in kolkata.html
    links = re.findall(r'href="(\?[^"]*)"', kolkata.html)
    assert {"timezone=Asia%2FKolkata" in link for link in links} == {True}
    assert ["timezone" in link for link in re.findall(r'href="(\?[^"]*)"', own.html)] == [
        False
    ] * len(links)
    hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', kolkata.html))
    assert hidden == {"signature": parse_qs(urlsplit(desk.link).query)["signature"][0]}


def test_page_has_strict_policy_and_is_not_cached(tenant: Tenant) -> None:
    headers = Shown(Desk(tenant).link).response.headers

    assert headers["Content-Security-Policy"] == POLICY
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Robots-Tag"] == "noindex, nofollow"
    assert headers["X-Frame-Options"] == "DENY"
    assert "Set-Cookie" not in headers


# --- Moving ---------------------------------------------------------------------------------------
def test_choice_moves_the_booking(tenant: Tenant) -> None:
    desk = Desk(tenant)

    page = desk.move(desk.link)

    assert (page.status, page.visible_texts) == (200, MOVED)
    assert page.words("dd")[1] == "Tuesday, 24 November 2026, 10:00 – 10:30 (Europe/Berlin)"
    log = tenant.get(f"/bookings/{desk.booking['id']}?include=logs").data["logs"][-1]
    assert (log["action"], log["actor"], log["source"]) == ("reschedule", "customer", "link")
    assert Delivery.objects.filter(booking=desk.row, kind="rescheduled").count() == 2


def test_repeated_form_moves_once(tenant: Tenant) -> None:
    """Though once is as often as it may be moved."""
    desk = Desk(tenant, settings={"max_reschedules": 1})
    link = desk.link

    pages = [desk.move(link), desk.move(link)]

    assert [(page.status, page.visible_texts) for page in pages] == [(200, MOVED)] * 2
    assert [action for _, action, _ in steps(tenant, desk.booking)].count("reschedule") == 1


def test_reschedule_of_a_request_keeps_its_state(tenant: Tenant) -> None:
    desk = Desk(tenant, graph="confirm_decline")

    assert desk.move(desk.link).visible_texts == MOVED
    assert (desk.row.state, desk.start) == ("tentative", "2026-11-24T09:00:00+00:00")


def test_project_without_length_keeps_length_of_the_booking(tenant: Tenant) -> None:
    desk = Desk(tenant, availability={"length": None})

    page = Shown(f"{desk.link}&day=2026-11-24")

    assert choices(page)[1] == "2026-11-24T08:30:00+00:00/2026-11-24T09:00:00+00:00"


# --- Refused --------------------------------------------------------------------------------------
def test_taken_time_offers_free_times(tenant: Tenant) -> None:
    desk = Desk(tenant)
    link = desk.link
    start, end = TEN.split("/")
    assert desk.book(start=start, end=end).status == 201

    page = desk.move(link)

    assert page.status == 409
    assert page.visible_texts[:3] == [
        "Choose another time",
        "The time is taken",
        "Your booking does not change. Please choose another time.",
    ]
    assert page.words("ul", "times wide") == [
        "Tuesday, 24 November 2026, 10:30 – 11:00 Tuesday, 24 November 2026, 11:00 – 11:30"
        " Tuesday, 24 November 2026, 11:30 – 12:00"
    ]
    assert desk.start == "2026-11-23T08:00:00+00:00"
    assert desk.move(link, choices(page)[0]).visible_texts == MOVED


def test_refused_time_shows_the_rule(tenant: Tenant) -> None:
    desk = Desk(tenant)

    page = desk.move(desk.link, "2026-11-24T18:00:00+00:00/2026-11-24T18:30:00+00:00")

    assert (page.status, page.visible_texts[1]) == (409, "The time is no longer available")
    assert page.words("li")[:1] == ["It is outside the opening hours."]
    assert desk.start == "2026-11-23T08:00:00+00:00"


def test_refusals_are_in_the_language_of_the_customer(tenant: Tenant) -> None:
    desk = Desk(tenant, settings={"min_reschedule_time": "36 hours", "language": "de"})
    closed = desk.move(desk.link, "2026-11-24T18:00:00+00:00/2026-11-24T18:30:00+00:00")
    odd = desk.move(desk.link, "2026-11-24T09:00:00+00:00/2026-11-24T09:10:00+00:00")
    tenant.put(f"/projects/{desk.project}", {"settings": {"min_reschedule_time": "96 hours"}})
    late = Shown(desk.link)

    assert closed.words("li")[:1] == ["Er liegt außerhalb der Öffnungszeiten."]
    assert odd.words("li")[:1] == ["Dieser Termin wird nicht angeboten."]
    assert late.visible_texts == [
        "Dafür ist es leider zu spät",
        "Das war bis 96 Stunden vor Beginn möglich. Bitte kontaktieren Sie uns.",
    ]


def test_reschedule_keeps_the_chosen_length(tenant: Tenant) -> None:
    desk = Desk(tenant, availability={"lengths": ["30 minutes", "1 hour"]})
    hour = {"start": "2026-11-25T09:00:00+01:00", "end": "2026-11-25T10:00:00+01:00"}
    desk.booking = desk.book(**hour).data

    tuesday = Shown(f"{desk.link}&day=2026-11-24")
    moved = desk.move(desk.link, choices(tuesday)[0])

    assert tuesday.words("label", "time") == ["09:00", "10:00", "11:00"]
    assert moved.visible_texts == MOVED
    assert desk.row.event.end.isoformat() == "2026-11-24T09:00:00+00:00"


@pytest.mark.parametrize(
    "time",
    ["", "soon", "/", "2026-11-24T09:00:00+00:00", TEN + TEN, "/".join(TEN.split("/")[::-1])],
)
def test_missing_choice_is_refused(tenant: Tenant, time: str) -> None:
    desk = Desk(tenant)

    page = desk.move(desk.link, time)

    assert (page.status, page.visible_texts[:2]) == (
        422,
        ["Choose another time", "Please choose a time."],
    )
    assert choices(page) != []


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (
            {"min_reschedule_time": "4 days"},
            [
                "It is too late for this",
                "This was possible until 4 days before the start. Please contact us.",
            ],
        ),
        (
            {"max_reschedules": 0},
            [
                "The booking can't be moved again",
                "It was already moved as often as allowed. Please contact us.",
            ],
        ),
    ],
)
def test_policies_apply_to_links(tenant: Tenant, policy: dict[str, Any], said: list[str]) -> None:
    desk = Desk(tenant, settings=policy)

    pages = [Shown(desk.link), desk.move(desk.link)]

    assert [(page.status, page.visible_texts) for page in pages] == [(409, said)] * 2
    assert "<form" not in pages[0].html
    assert desk.start == "2026-11-23T08:00:00+00:00"


def test_cancelled_booking_cannot_be_moved(tenant: Tenant) -> None:
    desk = Desk(tenant)
    link = desk.link
    tenant.put(f"/bookings/{desk.booking['id']}/cancel")

    pages = [Shown(link), desk.move(link)]

    assert [(page.status, page.visible_texts) for page in pages] == [
        (409, ["This action is no longer possible", "The booking was cancelled."])
    ] * 2


def test_links_do_not_open_other_pages_or_bookings(tenant: Tenant) -> None:
    desk = Desk(tenant)
    link = desk.link
    cancel = action_url(desk.row, "cancel_by_customer", desk.row.event.end).partition("?")[2]
    path = urlsplit(link).path
    broken = [
        f"{path}?{cancel}",
        link[:-1],
        path,
        f"{path}?signature=",
        "/book/bookings/x/reschedule",
    ]

    pages = [page for one in broken for page in (Shown(one), desk.move(one))]

    assert [page.status for page in pages] == [403] * 8 + [404] * 2
    assert desk.start == "2026-11-23T08:00:00+00:00"


def test_link_expires_at_the_end_of_the_event(tenant: Tenant, clock: Any) -> None:
    desk = Desk(tenant)
    link = desk.link
    clock.move_to(at("2026-11-23 08:30:00"))

    page = Shown(link)

    assert (page.status, page.words("h1")) == (403, ["This link has expired"])


# --- The mail -------------------------------------------------------------------------------------
def test_mails_of_projects_carry_the_link(tenant: Tenant) -> None:
    desk = Desk(tenant)

    text = tenant.post(
        "/templates/confirmed_customer/preview",
        {"booking_id": desk.booking["id"], "text": "{{ reschedule_url }}\n{{ actions }}"},
    ).data["text"]

    address = f"/book/bookings/{desk.booking['id']}/reschedule?signature=preview"
    first, *others = [line for line in text.splitlines() if line]
    assert first.endswith(address)
    assert others[0] == "Choose another time:"
    assert (others[1].endswith(address), others[2]) == (True, "Cancel the booking:")


def test_link_of_a_mail_opens_the_page(tenant: Tenant) -> None:
    desk = Desk(tenant)
    rows = Booking.objects.select_related("app", "event", "resource", "project")
    letter = letter_for_booking(
        rows.get(id=desk.booking["id"]), "confirmed_customer", EmailTemplate()
    )

    text = render_mail(letter, language="en").text

    [url] = re.findall(r"^Choose another time:\n(\S+)$", text, re.M)
    page = Shown(url.removeprefix(settings.PUBLIC_URL))
    assert (page.status, page.words("h1")) == (200, ["Choose another time"])


@pytest.mark.parametrize(
    "given",
    [
        {"booking": {"rescheduling_url": "https://example.com/move"}},
        {"settings": {"max_reschedules": 0}},
    ],
)
def test_mails_without_project_have_no_reschedule_link(
    tenant: Tenant, given: dict[str, Any]
) -> None:
    desk = Desk(tenant, **given)

    text = tenant.post(
        "/templates/confirmed_customer/preview",
        {"booking_id": desk.booking["id"], "text": "x {{ actions }}"},
    ).data["text"]

    assert re.findall(r"^(?:x )?(.*):$", text, re.M) == ["Cancel the booking"]
