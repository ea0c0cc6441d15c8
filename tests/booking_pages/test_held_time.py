"""The page on which a person books what an agent holds: once, within ten minutes, by its link."""

import re
import uuid
from datetime import datetime
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from django.test import Client
from django.utils import timezone

from apps_config.models import Credential
from apps_config.services import archive_app, issue_key
from bookings.models import Booking
from tests.agents.client import Agent
from tests.booking_pages.shop import FIELDS
from tests.booking_pages.test_book_page import NINE_TO_NOON, Shown
from tests.world import Tenant

pytestmark = pytest.mark.usefixtures("clock")

NINE = {"start": "2026-11-23T09:00:00+01:00", "end": "2026-11-23T09:30:00+01:00"}
MARTY = {"field-1": "Marty McFly", "field-2": "marty@example.com"}
WHEN = "Monday, 23 November 2026, 09:00 – 09:30 (Europe/Berlin)"
ENDED = [
    "This link no longer works",
    "It has expired, or the time was already booked.",
    "Choose a time",
]
REQUEST = {"request_id": "h", "reservation_time": 600}


class Desk:
    """Ada in Berlin, with half hours that an agent holds."""

    def __init__(self, tenant: Tenant, kind: str = Credential.SERVER, **given: Any) -> None:
        self.tenant = tenant
        ada = tenant.make_resource(
            "Ada", "Europe/Berlin", availability_constraints=NINE_TO_NOON, **given.pop("ada", {})
        )
        self.resource = ada["id"]
        booking = {"what": "Check-up", "where": "Quay 5", **given.pop("booking", {})}
        terms = {"length": "30 minutes", "to": "2 weeks"}
        wanted = {"slug": "check-up", "reservation_time": 600, **given}
        self.project = tenant.make_project(
            self.resource, availability=terms, booking=booking, **wanted
        )
        key = issue_key(kind, mode=tenant.app.mode, app=tenant.app)[1]
        self.agent = Agent(key)

    def hold(self, **given: Any) -> Any:
        wish = {"project_id": self.project["id"], **NINE, **REQUEST, **given}
        return self.agent.use("hold_time", **wish)

    def link(self, **given: Any) -> str:
        parts = urlsplit(self.hold(**given)["booking_link"])
        return f"{parts.path}?{parts.query}"

    def bookings(self) -> Any:
        return self.tenant.get("/bookings?include=event,customers,resource,logs").data


def submit(link: str, answers: Any) -> Shown:
    form = urlencode(answers)
    return Shown.of(Client().post(link, form, "application/x-www-form-urlencoded"))


def errors(page: Shown) -> dict[str, str]:
    found = re.findall(r'<p id="(field-\d)-error" class="error">([^<]+)</p>', page.html)
    return dict(found)


# --- Booking --------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", [Credential.SERVER, Credential.WIDGET])
def test_a_person_books_what_the_agent_holds(tenant: Tenant, kind: str) -> None:
    desk = Desk(tenant, kind)
    link = desk.link()

    page = Shown(link)
    unbooked = desk.bookings()
    done = submit(link, MARTY)

    assert (page.status, page.words("h1"), page.words("dd")) == (
        200,
        ["Check-up"],
        ["Check-up", WHEN, "Quay 5", "Ada", "10:40"],
    )
    assert page.words("dt") == ["What", "When", "Where", "With", "Held for you until"]
    assert page.words("label") == ["Name", "E-mail"]
    assert page.words("button") == ["Book"]
    assert "<script" not in page.html
    assert unbooked == []
    assert (done.status, done.words("h1")) == (200, ["Your booking is confirmed"])
    assert done.words("dd") == ["Check-up", WHEN, "Quay 5", "Ada"]
    assert done.words("a") == [
        "Add to calendar",
        "Choose another time",
        "Cancel the booking",
        "Your bookings",
    ]
    [booking] = desk.bookings()
    assert (booking["state"], booking["event"]["start"]) == (
        "confirmed",
        "2026-11-23T08:00:00+00:00",
    )
    assert [each["email"] for each in booking["customers"]] == ["marty@example.com"]
    assert [log["source"] for log in booking["logs"]] == ["widget"]


@pytest.mark.parametrize(
    ("now", "day", "seconds", "expected"),
    [
        ("2026-11-20T08:00:00+00:00", "2026-11-23", 300, "09:05"),
        ("2026-11-20T08:00:00+00:00", "2026-11-23", 3600, "09:10"),  # as long as the link
        ("2026-10-25T00:55:00+00:00", "2026-10-26", 600, "02:05 UTC+01:00"),
    ],
)
def test_the_page_says_until_when_the_time_is_held(
    tenant: Tenant, clock: Any, now: str, day: str, seconds: int, expected: str
) -> None:
    clock.move_to(datetime.fromisoformat(now), tick=False)
    times = {"start": f"{day}T09:00:00+01:00", "end": f"{day}T09:30:00+01:00"}

    link = Desk(tenant).link(**times, reservation_time=seconds)

    assert Shown(link).words("dd")[-1] == expected


def test_the_link_has_nothing_personal_and_its_pages_are_not_kept(tenant: Tenant) -> None:
    desk = Desk(tenant)
    held = desk.hold()

    parts = urlsplit(held["booking_link"])
    headers = Shown(f"{parts.path}?{parts.query}").response.headers

    assert parts.path == f"/book/holds/{held['hold']['reservation_id']}"
    assert re.fullmatch(r"signature=\d{10}\.[\w-]+", parts.query)
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Frame-Options"] == "DENY"
    assert "Set-Cookie" not in headers


def test_the_form_sent_twice_books_once(tenant: Tenant) -> None:
    desk = Desk(tenant)
    link = desk.link()

    first, again = submit(link, MARTY), submit(link, MARTY)
    other = submit(link, {**MARTY, "field-1": "Doc Brown"})
    looked = Shown(link)

    assert (again.status, again.visible_texts) == (first.status, first.visible_texts)
    assert (other.status, other.visible_texts) == (422, ENDED)
    assert (looked.status, looked.visible_texts) == (409, ENDED)
    assert len(desk.bookings()) == 1


def test_the_projects_questions_are_asked(tenant: Tenant) -> None:
    desk = Desk(tenant, customer_fields=FIELDS)
    link = desk.link()

    missing = submit(link, {"field-2": "marty", "field-4": "About <b>"})
    typed = {**MARTY, "field-3": "", "field-4": "Teeth", "field-5": "Public", "field-6": "on"}
    done = submit(link, typed)

    assert missing.status == 422
    assert errors(missing) == {
        "field-1": "Please fill this in.",
        "field-2": "Please enter an e-mail address, such as name@example.com.",
    }
    assert 'value="marty"' in missing.html
    assert "About &lt;b&gt;</textarea>" in missing.html
    assert done.words("h1") == ["Your booking is confirmed"]
    [booking] = desk.bookings()
    [customer] = booking["customers"]
    assert (customer["name"], customer["meta"]) == (
        "Marty McFly",
        {"comment": "Teeth", "insurance": "Public", "terms": True},
    )


def test_required_answers_are_required(tenant: Tenant) -> None:
    desk = Desk(tenant, customer_fields=FIELDS)

    page = submit(desk.link(), MARTY)

    assert (page.status, errors(page)) == (
        422,
        {"field-5": "Please fill this in.", "field-6": "Please fill this in."},
    )
    assert desk.bookings() == []


def test_the_size_of_the_party_is_that_of_the_hold(tenant: Tenant) -> None:
    desk = Desk(tenant, ada={"party": {"min": 2, "max": 4}})
    link = desk.link(party_size=3)

    forged = Shown(link.replace("party_size=3", "party_size=4"))
    done = submit(link, MARTY)

    assert (forged.status, forged.visible_texts) == (403, ENDED)
    assert done.words("h1") == ["Your booking is confirmed"]
    assert [each.party_size for each in Booking.objects.all()] == [3]


def test_a_project_with_a_page_of_its_own_leads_there(tenant: Tenant) -> None:
    desk = Desk(tenant, settings={"redirect_url": "https://thanks.example.com/a?b=1"})
    link = desk.link()

    page, done = Shown(link), submit(link, MARTY)

    [booking] = desk.bookings()
    policy = page.response.headers["Content-Security-Policy"]
    assert policy.endswith("form-action 'self' https://thanks.example.com")
    assert (done.status, done.response.headers["Location"]) == (
        303,
        f"https://thanks.example.com/a?b=1&booking_id={booking['id']}",
    )


# --- Refusals -------------------------------------------------------------------------------------
def test_the_link_ends_after_ten_minutes_and_with_the_hold(tenant: Tenant, clock: Any) -> None:
    desk = Desk(tenant)
    long, short = (
        desk.link(reservation_time=3600),
        desk.link(
            start="2026-11-23T10:00:00+01:00",
            end="2026-11-23T10:30:00+01:00",
            request_id="i",
            reservation_time=300,
        ),
    )

    clock.shift(301)
    ended, lasting = submit(short, MARTY), Shown(long)
    clock.shift(300)
    pages = [ended, submit(long, MARTY), Shown(long)]

    assert lasting.status == 200
    assert [page.status for page in pages] == [409, 403, 403]
    assert [page.visible_texts for page in pages] == [ENDED] * 3
    assert desk.bookings() == []


def test_other_signatures_and_ids_are_refused(tenant: Tenant) -> None:
    desk = Desk(tenant)
    link = desk.link()
    path, _, query = link.partition("?")
    other = f"/book/holds/{uuid.uuid4()}"

    links = [path, f"{path}?signature=1.x", f"{other}?{query}", f"/book/holds/x?{query}", link[:-1]]
    pages = [submit(each, MARTY) for each in links]

    assert [page.status for page in pages] == [403] * 5
    assert {page.words("h1")[0] for page in pages} == {"This link no longer works"}
    assert desk.bookings() == []


def test_a_time_that_the_agent_released_is_not_booked(tenant: Tenant) -> None:
    desk = Desk(tenant)
    link = desk.link()
    tenant.delete(f"/bookings/reserve/{link.split('/')[3].partition('?')[0]}")

    assert submit(link, MARTY).visible_texts == ENDED


def test_limits_for_the_public_apply(tenant: Tenant) -> None:
    tenant.set_public_limits(blocked_customers=["marty@example.com"])
    desk = Desk(tenant)

    page = submit(desk.link(), MARTY)

    assert (page.status, page.visible_texts) == (
        403,
        [
            "This booking page is unavailable",
            "This could not be booked. Please choose another time or contact us.",
            "Choose a time",
        ],
    )
    assert desk.bookings() == []


def test_an_archived_app_has_no_page(tenant: Tenant) -> None:
    link = Desk(tenant).link()
    archive_app(tenant.app, now=timezone.now())

    page = Shown(link)

    assert (page.status, page.words("h1")) == (404, ["Nothing was found here"])


@pytest.mark.parametrize(
    "given",
    [
        {"settings": {"published": False}},
        {"settings": {"verify_email": True}},
        {"booking": {"graph": "instant_payment"}},
    ],
)
def test_only_what_the_page_can_book_has_a_link(tenant: Tenant, given: Any) -> None:
    assert Desk(tenant, **given).hold().keys() == {"status", "hold"}


def test_an_app_with_challenges_and_a_short_hold_have_no_link(tenant: Tenant) -> None:
    desk = Desk(tenant)
    short = desk.hold(reservation_time=119)
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"public_challenge": "altcha"}})
    later = {"start": "2026-11-23T10:00:00+01:00", "end": "2026-11-23T10:30:00+01:00"}

    assert short.keys() == {"status", "hold"}
    assert desk.hold(**later, request_id="i").keys() == {"status", "hold"}


def test_a_repeated_call_returns_the_same_link(tenant: Tenant, clock: Any) -> None:
    desk = Desk(tenant)
    first = desk.hold()
    clock.shift(60)

    assert desk.hold() == first
