"""Links in mails: a page that changes nothing, and one button (api.md section 5, "Mail links")."""

import re
import uuid
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from django.test import Client
from django.utils import timezone

from bookings.models import Booking
from bookings.pages.action_links import action_url
from notifications.models import Delivery
from notifications.outbox.senders import prepare_batch
from tests.bookings.booking_drafts import NINE, span, steps
from tests.world import STAMP, Tenant, at

pytestmark = pytest.mark.usefixtures("clock")

POLICY = re.compile(
    r"default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none';"
    r" frame-ancestors 'none'; form-action 'self'(.*)"
)


class Page:
    """What a link answers."""

    def __init__(self, response: Any) -> None:
        self.status = response.status_code
        self.headers = response.headers
        self.html = response.content.decode()

    @property
    def visible_texts(self) -> list[str]:
        """Its visible words: heading, sentences, labels and values, button."""
        body = self.html.partition("<body")[2].partition(">")[2]
        return [word.strip() for word in re.split(r"<[^>]*>", body) if word.strip()]


class Desk:
    """A booking on Monday at nine of a resource in Berlin, by a customer in Los Angeles."""

    def __init__(self, tenant: Tenant, graph: str = "confirm_decline", **given: Any) -> None:
        self.tenant = tenant
        self.resource = tenant.make_resource("Ada", timezone="Europe/Berlin")["id"]
        customer = {
            "name": "Marty <b>McFly</b>",
            "email": "marty@example.com",
            "timezone": "America/Los_Angeles",
        }
        where = given.pop("place", {"resource_id": self.resource})
        answer = tenant.book(graph=graph, customer=customer, **where, **{**NINE, **given})
        self.booking = answer.data
        self.client = Client()

    links: dict[str, str]

    @property
    def row(self) -> Booking:
        return Booking.objects.select_related("event").get(id=self.booking["id"])

    def link(self, action: str) -> str:
        """The path and query of a fresh link."""
        parts = urlsplit(action_url(self.row, action, self.row.event.end))
        return f"{parts.path}?{parts.query}"

    def open(self, link: str) -> Page:
        return Page(self.client.get(link))

    def press(self, link: str, **form: str) -> Page:
        kind = "application/x-www-form-urlencoded"
        return Page(self.client.post(link, urlencode(form), content_type=kind))


DETAILS_OF_OWNER = [
    *("What", "Meeting", "When", "Monday, 23 November 2026, 10:00 – 11:00 (Europe/Berlin)"),
    *("Resource", "Ada", "Customer", "Marty &lt;b&gt;McFly&lt;/b&gt;"),
]
DETAILS_OF_CUSTOMER = [
    *("What", "Meeting", "When", "Monday, 23 November 2026, 01:00 – 02:00 (America/Los_Angeles)"),
    *("With", "Ada"),
]


# --- The link -------------------------------------------------------------------------------------
def test_link_is_absolute_and_the_same_each_time(tenant: Tenant, settings: Any) -> None:
    settings.PUBLIC_URL = "https://booking.example.com"
    settings.SECRET_KEY = "k" * 50
    row = Desk(tenant).row

    link = action_url(row, "confirm", row.event.end)

    address, _, signature = link.partition("?signature=")
    assert address == f"https://booking.example.com/v2/bookings/{row.id}/external_action/confirm"
    assert re.fullmatch(r"1795428000\.[\w-]{43}", signature)
    assert action_url(row, "confirm", row.event.end) == link


# --- Looking --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("action", "question", "form", "details"),
    [
        ("confirm", "Confirm this booking?", ["Confirm the booking"], DETAILS_OF_OWNER),
        (
            "decline",
            "Decline this booking?",
            ["Reason (optional)", "Decline the booking", "Keep the request"],
            DETAILS_OF_OWNER,
        ),
        (
            "cancel_by_customer",
            "Cancel this booking?",
            ["Reason (optional)", "Cancel the booking", "Keep the booking"],
            DETAILS_OF_CUSTOMER,
        ),
    ],
)
def test_get_shows_the_booking_and_changes_nothing(
    tenant: Tenant, action: str, question: str, form: list[str], details: list[str]
) -> None:
    desk = Desk(tenant)
    before = tenant.get(f"/bookings/{desk.booking['id']}?include=logs").data

    page = desk.open(desk.link(action))
    head = desk.client.head(desk.link(action))

    assert (page.status, page.visible_texts) == (200, [tenant.app.name, question, *details, *form])
    assert (head.status_code, head.content) == (200, b"")
    assert tenant.get(f"/bookings/{desk.booking['id']}?include=logs").data == before
    assert page.html.count("<button") == page.html.count("<form") == 1
    assert '<form method="post">' in page.html


def test_page_has_strict_policy_and_is_not_cached(tenant: Tenant) -> None:
    page = Desk(tenant).open(Desk(tenant, **span("11:00", "12:00")).link("confirm"))

    headers = dict(page.headers)
    assert POLICY.fullmatch(headers["Content-Security-Policy"])[1] == ""
    assert {name: headers[name] for name in headers if name in EXPECTED_HEADERS} == EXPECTED_HEADERS
    assert "Set-Cookie" not in headers
    assert re.findall(r"(?:src|href|action)=\"([^\"]*)", page.html) == [
        "data:,",
        "/static/bookings/page.css",
    ]
    assert '<meta name="robots" content="noindex, nofollow">' in page.html


EXPECTED_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex, nofollow",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
}


def test_path_with_trailing_slash(tenant: Tenant) -> None:
    desk = Desk(tenant)

    page = desk.open(desk.link("confirm").replace("?", "/?"))

    assert page.status == 200


def test_tracking_parameters_are_ignored(tenant: Tenant) -> None:
    desk = Desk(tenant)

    assert desk.open(f"{desk.link('confirm')}&utm_source=mail").status == 200


# --- Pressing -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("action", "actor", "state", "done"),
    [
        ("confirm", "owner", "confirmed", "The booking is confirmed"),
        ("decline", "owner", "declined", "The booking is declined"),
        (
            "cancel_by_customer",
            "customer",
            "cancelled_by_customer",
            "The booking is cancelled",
        ),
    ],
)
def test_post_applies_the_action(
    tenant: Tenant, action: str, actor: str, state: str, done: str
) -> None:
    desk = Desk(tenant)

    page = desk.press(desk.link(action))

    details = DETAILS_OF_CUSTOMER if actor == "customer" else DETAILS_OF_OWNER
    assert (page.status, page.visible_texts) == (
        200,
        [tenant.app.name, done, "You can close this page.", *details],
    )
    log = tenant.get(f"/bookings/{desk.booking['id']}?include=logs").data["logs"][-1]
    assert log == {
        "from_state": "tentative",
        "to_state": state,
        "action": action,
        "actor": actor,
        "source": "link",
        "message": "",
        "created_at": STAMP,
    }


@pytest.mark.parametrize(
    ("action", "heading", "sentence"),
    [
        ("decline", "The request is kept", "It still waits for your answer."),
        ("cancel_by_customer", "The booking is kept", "Nothing was changed."),
    ],
)
def test_keep_link_changes_nothing(
    tenant: Tenant, action: str, heading: str, sentence: str
) -> None:
    desk = Desk(tenant)
    page = desk.open(desk.link(action))
    (link,) = re.findall('class="keep" href="([^"]*)"', page.html)

    kept = desk.open(desk.link(action).partition("?")[0] + link.replace("&amp;", "&"))

    assert (kept.status, kept.visible_texts[1:3]) == (200, [heading, sentence])
    assert "<button" not in kept.html
    assert desk.row.state == "tentative"


@pytest.mark.parametrize(
    ("action", "to_owner", "to_customer"),
    [("decline", None, "We are ill,\nsorry."), ("cancel_by_customer", "We are ill,\nsorry.", "")],
)
def test_reason_is_in_the_mail_to_the_other_party(
    tenant: Tenant, action: str, to_owner: str | None, to_customer: str
) -> None:
    """A customer's reason reaches no other customer."""
    desk = Desk(tenant)

    page = desk.press(desk.link(action), reason=" We are ill,\r\nsorry. ")

    log = tenant.get(f"/bookings/{desk.booking['id']}?include=logs").data["logs"][-1]
    mails = Delivery.objects.filter(change__action=action, type="email")
    told = {mail.recipient: mail.content["message"] for mail in mails}
    assert (page.status, log["message"]) == (200, "We are ill,\nsorry.")
    assert told == {"customer": to_customer} | ({"owner": to_owner} if to_owner else {})


@pytest.mark.parametrize("reason", ["x" * 2001, "a\x00b"])
def test_wrong_reason_is_refused(tenant: Tenant, reason: str) -> None:
    desk = Desk(tenant)

    page = desk.press(desk.link("decline"), reason=reason)

    assert (page.status, page.visible_texts[1], desk.row.state) == (
        422,
        "The request is not valid",
        "tentative",
    )


@pytest.mark.parametrize("published", [True, False])
def test_page_after_cancellation_links_to_a_new_booking(tenant: Tenant, published: bool) -> None:
    resource = tenant.make_resource("Ada")["id"]
    project = tenant.make_project(
        resource, slug="check-up", settings={"published": published}, availability={"length": None}
    )["id"]
    desk = Desk(tenant, place={"resource_id": resource, "project_id": project})

    page = desk.press(desk.link("cancel_by_customer"))

    assert re.findall('class="button" href="([^"]*)"', page.html) == (
        ["/book/check-up"] if published else []
    )
    assert ("Book again" in page.visible_texts) == published
    again = desk.open(desk.link("cancel_by_customer"))
    for each in (page, again):
        own = f'<a href="/book/{tenant.app.slug}/mine">Your bookings</a>'
        assert (own in each.html, "Book again" in each.visible_texts) == (published, published)


def test_second_post_reports_that_it_is_done(tenant: Tenant) -> None:
    desk = Desk(tenant)
    link = desk.link("confirm")
    desk.press(link)

    pages = [desk.press(link), desk.open(link)]

    assert [(page.status, page.visible_texts[:3]) for page in pages] == [
        (409, [tenant.app.name, "This is already done", "The booking is confirmed."])
    ] * 2
    assert "<button" not in pages[1].html
    assert steps(tenant, desk.booking) == [
        ("initialized", "create", "tentative"),
        ("tentative", "confirm", "confirmed"),
    ]


@pytest.mark.parametrize("action", ["confirm", "decline", "cancel_by_customer"])
def test_links_end_after_cancellation(tenant: Tenant, action: str) -> None:
    desk = Desk(tenant)
    link = desk.link(action)
    tenant.put(f"/bookings/{desk.booking['id']}/cancel")

    pages = [desk.open(link), desk.press(link)]

    assert [(page.status, page.visible_texts[1:3]) for page in pages] == [
        (409, ["This action is no longer possible", "The booking was cancelled."])
    ] * 2
    assert desk.row.state == "cancelled"


def test_confirm_of_a_taken_time_is_refused(tenant: Tenant) -> None:
    desk = Desk(tenant)
    link = desk.link("confirm")
    tenant.book(resource_id=desk.resource, **NINE)

    page = desk.press(link)

    assert (page.status, page.visible_texts[1:3]) == (
        409,
        ["The time is taken", "Another booking has taken this time."],
    )
    assert desk.row.state == "tentative"


def test_policies_apply_to_links(tenant: Tenant, clock: Any) -> None:
    resource = tenant.make_resource("Ada")["id"]
    project = tenant.make_project(resource, settings={"min_cancel_time": "1 day"})["id"]
    desk = Desk(tenant, graph="instant", place={"project_id": project})
    link = desk.link("cancel_by_customer")
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"contact_email": "desk@example.com"}})
    clock.move_to(at("2026-11-22 09:00:01"))

    page = desk.press(link)

    assert (page.status, page.visible_texts[1:3]) == (
        409,
        [
            "It is too late for this",
            "This was possible until 1 day before the start. Please contact us.",
        ],
    )
    assert page.visible_texts[-3:] == ["Contact", "desk@example.com", "Your bookings"]
    assert desk.row.state == "confirmed"


def test_confirm_against_the_rules_shows_the_reason(tenant: Tenant) -> None:
    resource = tenant.make_resource("Ada")["id"]
    project = tenant.make_project(
        resource, availability={"length": "1 hour", "buffer": "30 minutes"}
    )["id"]
    desk = Desk(tenant, place={"project_id": project})
    calendar = tenant.get(f"/resources/{resource}?include=calendars").data["calendars"][0]["id"]
    tenant.make_event(calendar, "2026-11-23T10:10:00Z", "2026-11-23T10:20:00Z")

    page = desk.press(desk.link("confirm"))

    assert (page.status, page.visible_texts[1]) == (409, "The time is no longer available")
    assert "<li>It is too close to another appointment.</li>" in page.html
    assert desk.row.state == "tentative"


# --- Links that do not hold -----------------------------------------------------------------------
NO_LINK = [
    "This link does not work",
    "It is incomplete or has ended. Please open the link in the latest e-mail.",
]


def forged(link: str, old: str, new: str) -> str:
    assert old in link
    return link.replace(old, new)


def test_links_do_not_open_other_pages_or_bookings(tenant: Tenant) -> None:
    desk, other = Desk(tenant), Desk(tenant, **span("11:00", "12:00"))
    link = desk.link("cancel_by_customer")
    broken = [
        forged(link, "cancel_by_customer", "confirm"),
        forged(link, desk.booking["id"], other.booking["id"]),
        forged(link, "signature=1795428000", "signature=1895428000"),
        forged(link, "signature=1795428000.", "signature="),
        link[:-1],
        link.partition("?")[0],
        f"{link.partition('?')[0]}?signature=",
        f"{link.partition('?')[0]}?signature=%F0%9F%98%80.é",
    ]

    pages = [page for one in broken for page in (desk.open(one), desk.press(one))]

    branded = [tenant.app.name, *NO_LINK]
    assert [(page.status, page.visible_texts) for page in pages] == [(403, branded)] * 16
    assert (desk.row.state, other.row.state) == ("tentative", "tentative")


@pytest.mark.parametrize(
    ("action", "more"), [("cancel_by_customer", ["Your bookings"]), ("decline", [])]
)
def test_bad_link_leads_the_customer_to_their_bookings(
    tenant: Tenant, action: str, more: list[str]
) -> None:
    """With the brand of the app, and without a word about the booking."""
    project = tenant.make_project(tenant.make_resource("Ada")["id"])["id"]
    desk = Desk(tenant, place={"project_id": project})

    page = desk.open(desk.link(action)[:-1])
    unknown = desk.open(desk.link(action).replace(desk.booking["id"], str(uuid.uuid4())))

    assert (page.status, page.visible_texts) == (403, [tenant.app.name, *NO_LINK, *more])
    assert (unknown.status, unknown.visible_texts) == (403, NO_LINK)


@pytest.mark.parametrize(
    ("now", "status"), [("2026-11-23 09:59:59", 200), ("2026-11-23 10:00:00", 403)]
)
def test_link_expires_at_the_end_of_the_event(
    tenant: Tenant, clock: Any, now: str, status: int
) -> None:
    desk = Desk(tenant)
    link = desk.link("confirm")
    clock.move_to(at(now))

    pages = [desk.open(link), desk.press(link)]

    assert [page.status for page in pages] == [status] * 2
    if status == 403:
        assert pages[1].visible_texts[:3] == [
            tenant.app.name,
            "This link has expired",
            "The link was valid until the end of the booking.",
        ]
        assert desk.row.state == "tentative"


def test_link_from_before_a_move_keeps_its_expiry(tenant: Tenant, clock: Any) -> None:
    desk = Desk(tenant)
    link = desk.link("confirm")
    tenant.post(f"/bookings/{desk.booking['id']}/reschedule", span("14:00", "15:00"))
    clock.move_to(at("2026-11-23 10:00:00"))

    assert desk.open(link).status == 403
    assert desk.open(desk.link("confirm")).status == 200


ALL_ACTIONS = ("confirm", "decline", "cancel_by_customer", "reschedule", "calendar")


@pytest.fixture
def desk_with_wrong_address(tenant: Tenant) -> Desk:
    """A request of a project's time, with a wrong address of the customer."""
    ada = tenant.make_resource("Ada", email="ada@example.com")
    project = tenant.make_project(ada["id"])["id"]
    desk = Desk(tenant, place={"project_id": project})
    desk.links = {action: desk.link(action) for action in ALL_ACTIONS}
    return desk


def correct_address(desk: Desk, email: str = "martin@example.com") -> None:
    answer = desk.tenant.put(f"/bookings/{desk.booking['id']}", {"customer": {"email": email}})
    assert answer.status == 200


def test_corrected_email_address_ends_all_links(
    tenant: Tenant, desk_with_wrong_address: Desk
) -> None:
    desk = desk_with_wrong_address
    tenant.put(f"/bookings/{desk.booking['id']}/confirm")
    before = [desk.open(desk.links[action]).status for action in ALL_ACTIONS[2:]]

    correct_address(desk)
    ended = [page for link in desk.links.values() for page in (desk.open(link), desk.press(link))]
    fresh = [desk.open(desk.link(action)).status for action in ALL_ACTIONS[2:]]

    assert (before, fresh) == ([200] * 3, [200] * 3)
    # The file for calendars takes no POST.
    assert [page.status for page in ended] == [403] * 9 + [405]
    branded = [tenant.app.name, *NO_LINK]
    assert [page.visible_texts for page in ended[:9]] == [
        *[branded] * 4,
        *[[*branded, "Your bookings"]] * 5,
    ]
    assert (desk.row.state, desk.row.event.start) == ("confirmed", at("2026-11-23 09:00"))


def test_other_updates_keep_links_valid(desk_with_wrong_address: Desk) -> None:
    desk = desk_with_wrong_address
    for body in ({"customer": {"name": "Martin"}}, {"what": "Check"}, {"meta": {"a": 1}}):
        desk.tenant.put(f"/bookings/{desk.booking['id']}", body)
    correct_address(desk, "MARTY@example.com")

    assert [desk.open(desk.links[action]).status for action in ALL_ACTIONS[:4]] == [200] * 4


def test_widget_reschedules_only_with_current_signature(
    tenant: Tenant, desk_with_wrong_address: Desk
) -> None:
    desk = desk_with_wrong_address
    correct_address(desk)

    answers = [
        tenant.widget().post(
            f"/bookings/{desk.booking['id']}/reschedule",
            {**span("11:00", "12:00"), "signature": link.rpartition("=")[2]},
        )
        for link in (desk.links["reschedule"], desk.link("reschedule"))
    ]

    assert [answer.status for answer in answers] == [403, 200]


def test_forged_version_is_refused(desk_with_wrong_address: Desk) -> None:
    """A signature that is moved into the version, as if the booking had none yet."""
    desk = desk_with_wrong_address
    correct_address(desk)
    link = desk.link("confirm")
    Booking.objects.update(link_version=0)

    page = desk.open(forged(link, "signature=", "signature=1."))

    assert (page.status, page.visible_texts) == (403, [desk.tenant.app.name, *NO_LINK])


def test_queued_mail_has_current_links(tenant: Tenant, desk_with_wrong_address: Desk) -> None:
    desk = desk_with_wrong_address
    rows = list(Delivery.objects.filter(kind="tentative", recipient="owner"))
    correct_address(desk)

    ((_, send),), skipped = prepare_batch(rows, now=timezone.now())

    assert skipped == []
    (link,) = re.findall(r"(/v2/bookings/\S+/confirm\?signature=\S+)", send.args[0].body)
    assert desk.open(link).status == 200


def test_unknown_action_and_hidden_booking_are_not_found(tenant: Tenant) -> None:
    desk = Desk(tenant)
    link = desk.link("decline")
    unknown = [forged(link, "decline", name) for name in ("complete", "fly", "cancel")]
    unknown += [forged(link, desk.booking["id"], one) for one in ("x", desk.booking["id"][:-3])]
    desk.press(link)
    tenant.delete(f"/bookings/{desk.booking['id']}")

    pages = [desk.open(one) for one in [*unknown, link]]

    said = ["Nothing was found here", "This booking does not exist or was removed."]
    assert [(page.status, page.visible_texts) for page in pages] == [(404, said)] * 6


def test_links_of_an_archived_app_are_refused(tenant: Tenant) -> None:
    desk = Desk(tenant)
    link = desk.link("confirm")
    tenant.delete(f"/apps/{tenant.app.slug}")

    assert desk.press(link).status == 404


def test_wrong_methods_and_bodies_get_html_pages(tenant: Tenant) -> None:
    desk = Desk(tenant)
    link = desk.link("confirm")

    answers = [
        desk.client.put(link),
        desk.client.get(f"{link}&x=%FF"),
        desk.client.post(link, b"x" * 300_000, content_type="text/plain"),
    ]

    assert [(answer.status_code, answer["Content-Type"]) for answer in answers] == [
        (405, "text/html; charset=utf-8"),
        (400, "text/html; charset=utf-8"),
        (413, "text/html; charset=utf-8"),
    ]
    assert answers[0]["Allow"] == "GET, POST, HEAD, OPTIONS"
    assert desk.row.state == "tentative"


def test_server_error_is_an_html_page(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(tenant)
    link = desk.link("confirm")
    monkeypatch.setattr("bookings.pages.email_links.apply_action", lambda **_: 1 / 0)
    desk.client.raise_request_exception = False

    page = desk.press(link)

    assert (page.status, page.visible_texts) == (
        500,
        ["Something went wrong on our side", "Nothing was changed. Please try again later."],
    )


# --- Redirects ------------------------------------------------------------------------------------
ALLOWED = "https://www.example.com/thanks"


@pytest.mark.parametrize(
    ("redirect", "expected"),
    [
        (ALLOWED, ALLOWED),
        (f"{ALLOWED}?state=done&x=1", f"{ALLOWED}?state=done&x=1"),
        (f"{ALLOWED}#part", f"{ALLOWED}#part"),
        (f"{ALLOWED}/", None),
        (f"{ALLOWED}/more", None),
        ("https://www.example.com/", None),
        ("http://www.example.com/thanks", None),
        ("https://www.example.com.evil.example/thanks", None),
        ("https://www.example.com@evil.example/thanks", None),
        ("https://evil.example/?https://www.example.com/thanks", None),
        ("//www.example.com/thanks", None),
        ("/thanks", None),
        ("javascript:alert(1)", None),
        (f"{ALLOWED}?a\r\nSet-Cookie: x=y", None),
        (f"{ALLOWED}\\@evil.example", None),
        ("", None),
    ],
)
def test_redirects_only_to_urls_of_the_app(
    tenant: Tenant, redirect: str, expected: str | None
) -> None:
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"redirect_urls": [f"{ALLOWED}?old=1"]}})
    desk = Desk(tenant)
    link = desk.link("confirm")
    query = {"signature": link.partition("signature=")[2], "redirect": redirect}

    shown = Page(desk.client.get(link.partition("?")[0], query))
    page = Page(desk.client.post(link.partition("?")[0], query_params=query))

    assert shown.status == 200
    origin = " https://www.example.com" if expected else ""
    assert POLICY.fullmatch(shown.headers["Content-Security-Policy"])[1] == origin
    assert (page.status, page.headers.get("Location")) == (303 if expected else 200, expected)
    assert desk.row.state == "confirmed"


def test_redirects_only_after_success(tenant: Tenant) -> None:
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"redirect_urls": [ALLOWED]}})
    desk = Desk(tenant)
    link = f"{desk.link('confirm')}&redirect={ALLOWED}"
    desk.press(link)

    page = desk.press(link)

    assert (page.status, page.headers.get("Location")) == (409, None)


def test_percent_sign_in_the_path_is_404(client: Client) -> None:
    """The page behind the path answers, in its own language."""
    answer = client.get("/v2/bookings/%C2%B5%25/external_action/confirm")

    assert answer.status_code == 404
    assert b'<html lang="en" dir="ltr">' in answer.content
