"""Own bookings: from the request of a link to the erasure, over the whole stack without scripts."""

import html
import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from django.http import HttpResponse, SimpleCookie
from django.test import Client
from django.utils import timezone

from apps_config import public_limits
from apps_config.models import RequestCount
from apps_config.services import archive_app
from booking_pages.own_bookings import begin_session
from bookings.models import Booking, Customer
from common.limits.rate_limit import RefusedKeys
from notifications.models import Delivery
from notifications.outbox.senders import prepare_batch
from tests.booking_pages.test_book_page import NO_PAGE, Shown, make_page
from tests.world import NOW, Answer, Tenant

pytestmark = pytest.mark.usefixtures("clock")

MARTY = {"name": "Marty McFly", "email": "Marty@Example.com", "phone": "+1 555 0100"}
NINE = {"start": "2026-11-23T09:00:00+01:00", "end": "2026-11-23T09:30:00+01:00"}
TEN = {"start": "2026-11-24T10:00:00+01:00", "end": "2026-11-24T10:30:00+01:00"}
FORM = "application/x-www-form-urlencoded"
SENT = [
    "Check your inbox",
    "If this address has bookings, a link is on its way. It works once, for 15 minutes.",
]
BAD_LINK = [
    "This link no longer works",
    "It has expired or was already used. Please request a new one.",
    "Request a new link",
]


class Visitor:
    """A customer with a browser that keeps cookies and sends what its forms contain."""

    def __init__(self, tenant: Tenant, **headers: str) -> None:
        self.tenant = tenant
        self.client = Client(headers=headers)
        self.home = f"/book/{tenant.app.slug}/mine"

    def get(self, path: str = "") -> Shown:
        return Shown.of(self.client.get(f"{self.home}{path}"))

    def post(self, path: str = "", /, **form: str) -> Shown:
        return Shown.of(self.client.post(f"{self.home}{path}", urlencode(form), FORM))

    def submit(self, path: str, /, post_to: str = "", **form: str) -> Shown:
        """The form of a page of the session, with its token."""
        return self.post(post_to or path, token=token_of(self.get(path)), **form)

    def ask(self, email: str = "marty@example.com") -> Shown:
        return self.post(email=email)

    def link(self, outbox: list[Any]) -> str:
        """Ask for a link, and open the e-mail: the path behind `mine`."""
        self.ask()
        send_mails()
        return link_in(outbox[-1], self.home)

    def log_in(self, outbox: list[Any]) -> "Visitor":
        response = self.post(self.link(outbox)).response
        assert (response.status_code, response.headers["Location"]) == (303, self.home)
        return self


def token_of(page: Shown) -> str:
    return re.search(r'name="token" value="(\w+)"', page.html)[1]


def link_in(mail: Any, home: str) -> str:
    [address] = re.findall(r"https?://\S+/open\?token=\S+", mail.body)
    parts = urlsplit(address)
    return f"{parts.path.removeprefix(home)}?{parts.query}"


def send_mails() -> list[tuple[str, str]]:
    """As a worker does; returns (state, reason) of what is not sent."""
    rows = list(Delivery.objects.filter(kind="own_bookings_link", next_at__isnull=False))
    sends, unsent = prepare_batch(rows, now=timezone.now()) if rows else ([], [])
    assert all(send().ok for _, send in sends)
    Delivery.objects.filter(id__in=[row.id for row in rows]).update(
        state=Delivery.DELIVERED, next_at=None, finished_at=timezone.now()
    )
    return [final_state for _, final_state in unsent]


@pytest.fixture
def shop(tenant: Tenant) -> Tenant:
    make_page(tenant, booking={"what": "Check-up"})
    tenant.set_public_limits()
    return tenant


def book(tenant: Tenant, times: Any = NINE, **customer: Any) -> Any:
    project = str(tenant.app.projects.get().id)
    return tenant.post(
        "/bookings", {"project_id": project, **times, "customer": {**MARTY, **customer}}
    ).data


# --- The link -------------------------------------------------------------------------------------
def test_booking_pages_link_to_own_bookings(shop: Tenant) -> None:
    address = f'href="/book/{shop.app.slug}/mine"'
    project = shop.app.projects.get()

    pages = [Shown(f"/book/{slug}").html for slug in (project.slug, shop.app.slug)]

    assert [address in page for page in pages] == [True, True]


def test_known_address_gets_one_mail_with_fixed_text(shop: Tenant, mailoutbox: list[Any]) -> None:
    book(shop, language="de")
    visitor = Visitor(shop)

    form, sent = visitor.get(), visitor.ask("MARTY@example.com")

    assert (form.status, form.words("h1"), form.words("button")) == (
        200,
        ["Your bookings"],
        ["Send the link"],
    )
    assert (sent.status, sent.visible_texts) == (200, SENT)
    assert send_mails() == []
    [mail] = mailoutbox
    assert (mail.to, mail.subject) == (
        ["Marty@Example.com"],
        f"Ihre Termine: {shop.app.name}",
    )
    assert "Marty McFly" not in mail.body + mail.alternatives[0].content
    assert mail.body.splitlines()[0] == (
        "Über diesen Link können Sie Ihre Termine ansehen und ändern. Er ist 15 Minuten gültig und"
        " nur einmal verwendbar."
    )


def test_unknown_address_gets_the_same_response_and_query_count(
    shop: Tenant, mailoutbox: list[Any], django_assert_num_queries: Any
) -> None:
    book(shop)
    visitor = Visitor(shop)
    pages = []

    for email in ("marty@example.com", "nobody@example.com"):
        with django_assert_num_queries(7):
            pages.append(visitor.ask(email))

    known, unknown = pages
    assert (known.status, known.html) == (unknown.status, unknown.html)
    headers = [dict(page.response.headers) for page in pages]
    for each in headers:
        each.pop("Service-Request-Id", None)
        for name in ("RateLimit", "X-RateLimit-Remaining"):
            each.pop(name, None)
    assert headers[0] == headers[1]
    assert send_mails() == [("skipped", "Nobody has booked with this address.")]
    assert [mail.to for mail in mailoutbox] == [["Marty@Example.com"]]
    row = Delivery.objects.get(kind="own_bookings_link", customer=None)
    assert "nobody" not in f"{row.content}{row.body}{row.reason}"


@pytest.mark.parametrize("email", ["", "nobody", "a@b\x00.example", "a@" + "b" * 300 + ".example"])
def test_invalid_address_is_refused(shop: Tenant, email: str) -> None:
    page = Visitor(shop).ask(email)

    assert (page.status, page.words("p", "error")) == (
        422,
        ["Please enter an e-mail address, such as name@example.com."],
    )
    assert not Delivery.objects.filter(kind="own_bookings_link").exists()


def test_links_are_counted_in_the_public_limits(shop: Tenant) -> None:
    visitor = Visitor(shop)

    statuses = [visitor.ask("nobody@example.com").status for _ in range(4)]
    shop.set_public_limits(public_bookings_per_address_per_hour=1)
    first, second = visitor.ask("ann@example.com"), visitor.ask("bob@example.com")

    assert statuses == [200, 200, 200, 429]
    assert (first.status, second.status, second.response.headers["Retry-After"]) == (
        200,
        429,
        "1800",
    )
    assert second.visible_texts == [
        "Too many requests",
        "Nothing was changed. Please try again later.",
    ]
    refused = RequestCount.objects.filter(kind__startswith="refused:")
    assert dict(refused.values_list("kind", "count")) == {
        "refused:own_bookings_links": 1,
        "refused:public_bookings_per_address_per_hour": 1,
    }
    assert Delivery.objects.filter(kind="own_bookings_link").count() == 4
    # The network that was refused has counted nothing for Bob.
    assert RequestCount.objects.filter(kind="own_bookings_links").count() == 2


def test_limits_of_links_and_bookings_are_separate(shop: Tenant) -> None:
    """A flood of requests for links keeps nobody from booking."""
    shop.set_public_limits(public_bookings_per_app_per_minute=1)
    project = shop.get("/projects").data[0]["id"]
    body = {"project_id": project, "customer": {"name": "Ann", "email": "ann@example.com"}}

    links = [Visitor(shop).ask(f"{name}@example.com").status for name in ("ann", "bob")]
    booking = shop.widget().post("/bookings", {**body, **NINE})

    assert (links, booking.status) == ([200, 429], 201)


def test_link_opens_a_session_once_by_its_button(shop: Tenant, mailoutbox: list[Any]) -> None:
    book(shop)
    visitor, other = Visitor(shop), Visitor(shop)
    link = visitor.link(mailoutbox)

    looked = [other.get(link) for _ in range(2)]
    opened = visitor.post(link)
    again = other.post(link)

    assert [(page.status, page.words("button")) for page in looked] == [
        (200, ["Show my bookings"])
    ] * 2
    assert other.client.cookies == SimpleCookie()
    cookie = visitor.client.cookies["own_bookings"]
    assert (opened.status, cookie["path"], cookie["httponly"], cookie["samesite"]) == (
        303,
        visitor.home,
        True,
        "Lax",
    )
    assert (again.status, again.visible_texts) == (403, BAD_LINK)
    assert visitor.get().words("h2") == ["Upcoming bookings"]
    assert other.get().words("button") == ["Send the link"]


def test_link_lasts_15_minutes_and_session_30(
    shop: Tenant, mailoutbox: list[Any], clock: Any
) -> None:
    book(shop)
    visitor = Visitor(shop)
    late, link = visitor.link(mailoutbox), visitor.link(mailoutbox)

    clock.shift(14 * 60)
    opened = visitor.post(link)
    clock.shift(60)
    expired = [visitor.get(late), visitor.post(late)]
    clock.shift(29 * 60 - 1)
    before = visitor.get()
    clock.shift(1)
    after = visitor.get()

    assert opened.status == 303
    assert [(page.status, page.visible_texts) for page in expired] == [(403, BAD_LINK)] * 2
    assert before.words("h2") == ["Upcoming bookings"]
    assert after.words("button") == ["Send the link"]


def test_links_and_sessions_are_scoped_to_one_app(
    shop: Tenant, make_tenant: Callable[..., Tenant], mailoutbox: list[Any]
) -> None:
    other = make_tenant()
    make_page(other, booking={"what": "Check-up"})
    for tenant in (shop, other):
        book(tenant)
    visitor, stranger = Visitor(shop), Visitor(other)

    foreign = stranger.post(visitor.link(mailoutbox))
    visitor.log_in(mailoutbox)
    stranger.client.cookies["own_bookings"] = visitor.client.cookies["own_bookings"].value
    stranger.client.cookies["own_bookings"]["path"] = stranger.home

    assert (foreign.status, foreign.visible_texts) == (403, BAD_LINK)
    assert stranger.get().words("button") == ["Send the link"]


@pytest.mark.parametrize("token", ["", "x", "x:y", "e30:y", "%F0%9F%92%A9", "a" * 3000])
def test_damaged_link_is_refused(shop: Tenant, token: str) -> None:
    visitor = Visitor(shop)

    pages = [visitor.get(f"/open?token={token}"), visitor.post(f"/open?token={token}")]

    assert [(page.status, page.visible_texts) for page in pages] == [(403, BAD_LINK)] * 2
    visitor.client.cookies["own_bookings"] = "x:y"
    assert visitor.get().status == 200


def test_app_without_published_project_has_no_own_bookings_page(
    make_tenant: Callable[..., Tenant],
) -> None:
    empty, archived, hidden = make_tenant(), make_tenant(), make_tenant()
    make_page(archived)
    make_page(hidden, settings={"published": False})
    archive_app(archived.app, now=NOW)

    pages = [Visitor(each).get() for each in (empty, archived, hidden)]
    pages.append(Shown("/book/no-such-app/mine"))

    assert [(page.status, page.visible_texts) for page in pages] == [(404, NO_PAGE)] * 4


# --- The bookings ---------------------------------------------------------------------------------
def test_all_bookings_of_the_address_are_shown(
    shop: Tenant, make_tenant: Callable[..., Tenant], mailoutbox: list[Any], clock: Any
) -> None:
    other = make_tenant()
    make_page(other, booking={"what": "Check-up"})
    book(other)
    first, second = book(shop), book(shop, TEN, name="Marty Senior")
    book(
        shop, {key: value.replace("24T", "25T") for key, value in TEN.items()}, email="x@y.example"
    )
    cancelled = book(shop, {key: value.replace("24T", "26T") for key, value in TEN.items()})
    shop.put(f"/bookings/{cancelled['id']}/cancel", {})
    clock.move_to("2026-11-23T12:00:00Z", tick=False)
    visitor = Visitor(shop).log_in(mailoutbox)

    page = visitor.get()

    assert (page.status, page.visible_texts[:2]) == (
        200,
        ["Your bookings", "Bookings of Marty@Example.com"],
    )
    assert page.words("h2") == ["Upcoming bookings", "Past and cancelled bookings"]
    assert [value for value in page.words("dd") if "2026" in value] == [
        "Tuesday, 24 November 2026, 10:00 – 10:30 (Europe/Berlin)",
        "Thursday, 26 November 2026, 10:00 – 10:30 (Europe/Berlin)",
        "Monday, 23 November 2026, 09:00 – 09:30 (Europe/Berlin)",
    ]
    assert page.words("p", "hint") == [
        "The booking is confirmed.",
        "The booking was cancelled.",
        "The booking is confirmed.",
    ]
    upcoming, past, again, *rest = page.words("p", "more")
    assert upcoming == ("Choose another timeCancel the bookingAdd to calendarCorrect name or phone")
    assert (past, again, rest) == ("Book again", "Book again", [])
    assert first["id"] not in page.html
    assert second["id"] in page.html


def test_links_reschedule_and_cancel(shop: Tenant, mailoutbox: list[Any]) -> None:
    booking = book(shop)
    page = Visitor(shop).log_in(mailoutbox).get()
    links = [html.unescape(link) for link in re.findall(r'class="quiet" href="([^"]+)"', page.html)]
    move, cancel, calendar, _ = links[:4]
    client = Client()

    shown = [client.get(link) for link in (move, cancel, calendar)]
    done = Shown.of(client.post(cancel, "", FORM))

    assert [response.status_code for response in shown] == [200, 200, 200]
    assert done.visible_texts[0] == "The booking is cancelled"
    assert shop.get(f"/bookings/{booking['id']}").data["state"] == "cancelled_by_customer"


def test_owner_of_a_lookalike_domain_sees_no_bookings(shop: Tenant, mailoutbox: list[Any]) -> None:
    """PostgreSQL: UPPER('ı') = 'I'. The stranger owns xn--gmal-nza.com, and books twice."""
    victims = book(shop, TEN, email="victim@gmail.com", name="Victim")["id"]
    page, project = shop.widget(), str(shop.app.projects.get().id)
    customer = {"name": "Stranger", "email": "victim@gmaıl.com"}
    own = [
        page.post("/bookings", {"project_id": project, **times, "customer": customer}).data["id"]
        for times in (NINE, {key: value.replace("24T", "25T") for key, value in TEN.items()})
    ]

    stranger = Visitor(shop)
    stranger.ask("victim@gmaıl.com")
    send_mails()
    stranger.post(link_in(mailoutbox[-1], stranger.home))
    seen = stranger.get().html
    cancelled = {
        str(id_): Client().post(html.unescape(link), "", FORM).status_code
        for id_ in Booking.objects.values_list("id", flat=True)
        for link in re.findall(rf'href="([^"]*{id_}/external_action/cancel[^"]*)"', seen)
    }
    export = b"".join(stranger.client.get(f"{stranger.home}/export")).decode()

    assert cancelled == dict.fromkeys(own, 200)
    assert shop.get(f"/bookings/{victims}").data["state"] == "confirmed"
    assert (victims in seen, victims in export) == (False, False)
    assert {row["id"] for row in json.loads(export)["data"]["bookings"]} == set(own)
    assert stranger.get(f"/bookings/{victims}").status == 404
    assert mailoutbox[-1].to == ["victim@xn--gmal-nza.com"]


def test_spellings_of_a_domain_are_one_customer(shop: Tenant, mailoutbox: list[Any]) -> None:
    first = book(shop, email="marty@müller.de")
    second = book(shop, TEN, email="Marty@XN--mller-kva.de")
    visitor = Visitor(shop)

    visitor.ask("marty@MÜLLER.de")
    send_mails()
    visitor.post(link_in(mailoutbox[-1], visitor.home))
    page = visitor.get().html

    assert mailoutbox[-1].to == ["Marty@XN--mller-kva.de"]
    assert (first["id"] in page, second["id"] in page) == (True, True)
    assert "Bookings of Marty@XN--mller-kva.de" in page


def test_no_reschedule_link_if_not_allowed(shop: Tenant, mailoutbox: list[Any]) -> None:
    shop.put(f"/projects/{shop.app.projects.get().id}", {"settings": {"max_reschedules": 0}})
    book(shop)

    page = Visitor(shop).log_in(mailoutbox).get()

    assert page.words("p", "more")[0] == ("Cancel the bookingAdd to calendarCorrect name or phone")


@pytest.mark.parametrize("count", [1, 4])
def test_query_count_is_constant(
    shop: Tenant, mailoutbox: list[Any], django_assert_num_queries: Any, count: int
) -> None:
    for day in range(count):
        times = {key: value.replace("24T", f"{24 + day}T") for key, value in TEN.items()}
        moved = book(shop, times)
        Booking.objects.filter(id=moved["id"]).update(reschedules=20)
    visitor = Visitor(shop).log_in(mailoutbox)

    with django_assert_num_queries(8):
        page = visitor.get()

    assert len(page.words("p", "hint")) == count


def test_past_bookings_are_paginated(shop: Tenant, mailoutbox: list[Any]) -> None:
    resource = shop.make_resource("Bo")["id"]
    for hour in range(22):
        start, end = NOW + timedelta(days=2, hours=hour), NOW + timedelta(days=2, hours=hour + 1)
        shop.book(
            resource_id=resource, start=start.isoformat(), end=end.isoformat(), customer=MARTY
        )
    Booking.objects.update(state="cancelled", completed=True)
    visitor = Visitor(shop).log_in(mailoutbox)

    pages = [visitor.get(f"?page={page}") for page in ("1", "2", "3", "x", "-1", "9" * 50)]

    assert [len(page.words("p", "hint")) for page in pages] == [20, 2, 0, 20, 20, 20]
    assert ["Earlier" in page.words("a", "quiet") for page in pages[:2]] == [True, False]
    assert ["Later" in page.words("a", "quiet") for page in pages[:2]] == [False, True]


# --- Name and phone -------------------------------------------------------------------------------
def test_name_and_phone_are_corrected(shop: Tenant, mailoutbox: list[Any]) -> None:
    booking = book(shop)
    visitor = Visitor(shop).log_in(mailoutbox)
    path = f"/bookings/{booking['id']}"

    form = visitor.get(path)
    saved = visitor.submit(path, name="  Martin McFly ", phone="")
    told = visitor.get("?saved=1")

    assert re.findall(r'name="(\w+)" type="\w+" value="([^"]*)"', form.html) == [
        ("name", "Marty McFly"),
        ("phone", "+1 555 0100"),
    ]
    location = f"{visitor.home}?saved=1"
    assert (saved.status, saved.response.headers["Location"]) == (303, location)
    assert told.words("p", "notice") == ["Your details are saved."]
    row = Customer.objects.get(booking=booking["id"])
    assert (row.name, row.email, row.phone) == ("Martin McFly", MARTY["email"], "")
    log = shop.get(f"/bookings/{booking['id']}?include=logs").data["logs"][-1]
    assert (log["action"], log["actor"], log["source"], log["message"]) == (
        "update",
        "customer",
        "link",
        "Changed: customer name, customer phone.",
    )


@pytest.mark.parametrize(
    ("name", "phone", "errors"),
    [
        ("", "1", ["Please fill this in."]),
        ("a" * 201, "1", ["Please enter a valid value."]),
        ("Marty", "\x00", ["Please enter a valid value."]),
        ("Mar\nty", "1" * 201, ["Please enter a valid value."] * 2),
    ],
)
def test_wrong_details_are_refused(
    shop: Tenant, mailoutbox: list[Any], name: str, phone: str, errors: list[str]
) -> None:
    booking = book(shop)
    visitor = Visitor(shop).log_in(mailoutbox)

    page = visitor.submit(f"/bookings/{booking['id']}", name=name, phone=phone)

    assert (page.status, page.words("p", "error")) == (422, errors)
    assert Customer.objects.get(booking=booking["id"]).name == "Marty McFly"


def test_only_own_upcoming_bookings_can_be_corrected(
    shop: Tenant, make_tenant: Callable[..., Tenant], mailoutbox: list[Any]
) -> None:
    other = make_tenant()
    make_page(other, booking={"what": "Check-up"})
    own, cancelled, foreign = book(shop), book(shop, TEN), book(other)
    elsewhere = book(
        shop, {key: value.replace("24T", "25T") for key, value in TEN.items()}, email="a@b.example"
    )
    shop.put(f"/bookings/{cancelled['id']}/cancel", {})
    visitor = Visitor(shop).log_in(mailoutbox)
    token = token_of(visitor.get(f"/bookings/{own['id']}"))

    ids = [cancelled["id"], foreign["id"], elsewhere["id"], "x", "%00"]
    shown = [visitor.get(f"/bookings/{each}").status for each in ids]
    sent = [visitor.post(f"/bookings/{each}", token=token, name="X").status for each in ids]

    assert (shown, sent) == ([404] * 5, [404] * 5)
    assert set(Customer.objects.values_list("name", flat=True)) == {"Marty McFly"}


# --- Forms of other sites, and without a session --------------------------------------------------
PATHS = ("/close", "/erase", "/bookings/{id}")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("token", ["", "0" * 64, "ü"])
def test_cross_site_forms_are_refused(
    shop: Tenant, mailoutbox: list[Any], path: str, token: str
) -> None:
    booking = book(shop)
    visitor = Visitor(shop).log_in(mailoutbox)

    page = visitor.post(path.format(id=booking["id"]), token=token, name="X")

    assert (page.status, page.words("h1")) == (403, ["The request is not valid"])
    assert visitor.get().words("h2") == ["Upcoming bookings"]
    assert Customer.objects.get(booking=booking["id"]).name == "Marty McFly"


@pytest.mark.parametrize("path", PATHS)
def test_forms_without_a_session_redirect_to_the_start(shop: Tenant, path: str) -> None:
    booking = book(shop)
    visitor = Visitor(shop)

    pages = [visitor.post(path.format(id=booking["id"]), name="X")]
    pages += [visitor.get(each) for each in (f"/bookings/{booking['id']}", "/export", "/erase")]

    places = [(page.status, page.response.headers["Location"]) for page in pages]
    assert places == [(303, visitor.home)] * 4
    assert Customer.objects.get().name == "Marty McFly"


def test_log_out_ends_the_session(shop: Tenant, mailoutbox: list[Any]) -> None:
    book(shop)
    visitor = Visitor(shop).log_in(mailoutbox)

    page = visitor.submit("", post_to="/close")

    assert (page.status, page.response.headers["Location"]) == (303, visitor.home)
    assert visitor.get().words("button") == ["Send the link"]


@pytest.mark.parametrize("ending", ["/close", "/erase"])
def test_copied_cookie_ends_with_its_session(
    shop: Tenant, mailoutbox: list[Any], ending: str
) -> None:
    """But no other session of the same person."""
    first, second, copy = Visitor(shop), Visitor(shop), Visitor(shop)
    begin_session(response := HttpResponse(), shop.app, "marty@example.com", now=NOW)
    first.client.cookies = response.cookies
    copy.client.cookies.load({name: each.value for name, each in response.cookies.items()})
    begin_session(response := HttpResponse(), shop.app, "marty@example.com", now=NOW)
    second.client.cookies = response.cookies
    before = copy.get().words("button")

    first.submit("" if ending == "/close" else ending, post_to=ending)

    assert "Log out" in before
    assert copy.get().words("button") == ["Send the link"]
    assert "Log out" in second.get().words("button")


# --- Export and erasure ---------------------------------------------------------------------------
def test_export_contents(shop: Tenant, mailoutbox: list[Any]) -> None:
    booking = book(shop, allergies="none")
    shop.put(f"/bookings/{booking['id']}", {"meta": {"note": "Pays late"}})
    book(shop, TEN, email="other@example.com")
    visitor = Visitor(shop).log_in(mailoutbox)

    response = visitor.client.get(f"{visitor.home}/export")

    assert response.headers["Content-Disposition"] == 'attachment; filename="bookings.json"'
    content = Answer(response).content
    row = Booking.objects.get(id=booking["id"])
    assert json.loads(content) == {
        "data": {
            "email": "Marty@Example.com",
            "bookings": [
                {
                    "id": booking["id"],
                    "external_id": None,
                    "state": "confirmed",
                    "graph": "instant",
                    "completed": False,
                    "created_at": "2026-11-20T09:30:00+0000",
                    "updated_at": "2026-11-20T09:30:00+0000",
                    "start": "2026-11-23T08:00:00+00:00",
                    "end": "2026-11-23T08:30:00+00:00",
                    "what": "Check-up",
                    "where": "",
                    "description": "",
                    "resource": "Ada",
                    "customers": [
                        {
                            "id": str(row.customers.get().id),
                            "external_id": None,
                            "name": "Marty McFly",
                            "email": "Marty@Example.com",
                            "phone": "+1 555 0100",
                            "voip": "",
                            "timezone": "",
                            "meta": {"allergies": "none"},
                            **{"response": "needs_action", "responded_at": None, "source": None},
                        }
                    ],
                }
            ],
        }
    }


def test_erasure_waits_for_upcoming_bookings(shop: Tenant, mailoutbox: list[Any]) -> None:
    booking = book(shop)
    visitor = Visitor(shop).log_in(mailoutbox)
    token = token_of(visitor.get())

    pages = [visitor.get("/erase"), visitor.post("/erase", token=token)]

    assert [(page.status, page.visible_texts[1]) for page in pages] == [
        (409, "Please cancel your upcoming bookings first.")
    ] * 2
    assert pages[0].words("button") == []
    assert Customer.objects.get(booking=booking["id"]).name == "Marty McFly"


def test_erasure_after_confirmation(shop: Tenant, mailoutbox: list[Any]) -> None:
    booking = book(shop)
    book(shop, TEN, email="other@example.com")
    visitor = Visitor(shop)
    visitor.log_in(mailoutbox)
    shop.put(f"/bookings/{booking['id']}/cancel", {})

    question = visitor.get("/erase")
    still_there = Customer.objects.get(booking=booking["id"]).name
    done = visitor.submit("/erase")

    assert (question.status, question.words("h1"), question.words("button", "danger")) == (
        200,
        ["Erase my data?"],
        ["Erase my data"],
    )
    assert (still_there, done.status, done.visible_texts) == (
        "Marty McFly",
        200,
        ["Your data is erased", "You can close this page."],
    )
    rows = Customer.objects.order_by("booking__event__start").values_list("name", "email")
    assert list(rows) == [("", ""), ("Marty McFly", "other@example.com")]
    assert visitor.get().words("button") == ["Send the link"]


def test_an_erased_customer_gets_no_link(shop: Tenant, mailoutbox: list[Any]) -> None:
    book(shop)
    Visitor(shop).ask()
    shop.post("/customers/erase", {"email": "marty@example.com"})

    assert (send_mails(), mailoutbox) == ([], [])
    states = Delivery.objects.filter(kind="own_bookings_link").values_list("state", flat=True)
    assert list(states) == ["cancelled"]


# --- Language and headers -------------------------------------------------------------------------
def test_pages_are_in_the_language_of_the_browser(shop: Tenant) -> None:
    page = Visitor(shop, **{"Accept-Language": "ar"}).get()

    assert '<html lang="ar" dir="rtl">' in page.html
    assert page.words("h1") == ["حجوزاتك"]


def test_pages_are_not_cached_or_framed(
    shop: Tenant, mailoutbox: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(public_limits, "refused_keys", RefusedKeys())
    book(shop)
    visitor = Visitor(shop)

    pages = [visitor.get(), visitor.log_in(mailoutbox).get()]

    for page in pages:
        headers = page.response.headers
        assert headers["Cache-Control"] == "no-store"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["X-Frame-Options"] == "DENY"
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
