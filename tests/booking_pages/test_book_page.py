"""The hosted page as the service writes it, before any script runs."""

import hashlib
import html
import json
import re
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from apps_config import authentication
from apps_config.models import Credential
from apps_config.services import archive_app, store_logo
from availability.models import Project
from common.images import SmallImage
from common.limits.rate_limit import RateWindow
from common.time.zone_names import current_browser_zones
from tests.world import Answer, Tenant, at

pytestmark = pytest.mark.usefixtures("clock")

NINE_TO_NOON = [{"allow_weekdays": {}}, {"allow_hours": {"start": 9, "end": 12}}]
POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'self'",
    "frame-ancestors": "*",
}
NO_PAGE = [
    "Nothing was found here",
    "This booking page does not exist or was removed. Please check the address.",
]


def hosted_page(path: str) -> Answer:
    """What the API tells of the page at a path."""
    return Answer(Client().get(f"/v2/projects/hosted/{path.rpartition('/')[2]}"))


class Shown:
    """A page as it was answered."""

    def __init__(self, path: str) -> None:
        self.read(Client().get(path))

    @classmethod
    def of(cls, response: Any) -> "Shown":
        page = cls.__new__(cls)
        page.read(response)
        return page

    def read(self, response: Any) -> None:
        self.response = response
        self.status = response.status_code
        self.html = response.content.decode()

    def words(self, tag: str, name: str = "") -> list[str]:
        """What stands in each element of that tag and class."""
        kind = rf'[^>]*class="{name}[^"]*"' if name else ""
        found = re.findall(rf"<{tag}\b{kind}[^>]*>(.*?)</{tag}>", self.html, re.S)
        plain = [re.sub(r"<[^>]*>", "", one) for one in found]
        return [html.unescape(" ".join(one.split())) for one in plain]

    @property
    def visible_texts(self) -> list[str]:
        return self.words("h1") + self.words("p")

    @property
    def for_script(self) -> Any:
        """What the script reads, with start and end of each slot."""
        told = json.loads(re.search(r'<script id="page"[^>]*>(.*?)</script>', self.html)[1])
        runs = told["offer"]["slots"]
        packed = [slot for count, *slot in runs for _ in range(count)]
        starts = accumulate(slot[0] for slot in packed)
        told["offer"]["slots"] = [
            [start, start + length, *rest]
            for start, (_, length, *rest) in zip(starts, packed, strict=True)
        ]
        return told


def make_page(tenant: Tenant, **given: Any) -> str:
    """The path of a new project's page: half hours in Berlin, on weekdays from nine to twelve."""
    rules = given.pop("rules", NINE_TO_NOON)
    resource = tenant.make_resource("Ada", "Europe/Berlin", availability_constraints=rules)
    availability = {"length": "30 minutes", "to": "2 weeks", **given.pop("availability", {})}
    given = {"slug": f"page-of-{tenant.app.slug}", "availability": availability, **given}
    return f"/book/{tenant.make_project(resource['id'], **given)['slug']}"


# --- What stands in it ----------------------------------------------------------------------------
def test_first_days_and_times_are_in_the_html(tenant: Tenant) -> None:
    page = Shown(make_page(tenant, booking={"where": "Quay 5", "description": "Look\nand talk"}))

    assert page.status == 200
    assert page.words("title") == [f"Check-up · {tenant.app.name}"]
    assert page.words("dl", "facts") == ["Length30 minWhereQuay 5WithAda"]
    assert page.words("p", "lines") == ["Look and talk"]
    assert page.words("h3") == ["November – December 2026", "Friday, 20 November 2026"]
    assert page.words("th") == ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    assert page.words("td")[:9] == [
        "16",
        "17",
        "18",
        "19",
        "20Friday, 20 November 2026",
        "21",
        "22",
        "23Monday, 23 November 2026",
        "24Tuesday, 24 November 2026",
    ]
    assert page.words("td")[15] == "Dec1Tuesday, 1 December 2026"
    assert (len(page.words("td")), page.words("td")[-1]) == (35, "20")
    assert page.words("p", "soonest") == ["Next free time: Friday, 20 November 2026, 11:00"]
    assert page.words("h3", "day-title") == ["Friday, 20 November 2026"]
    assert page.words("span", "time") == ["11:00", "11:30"]  # it is half past ten there
    assert '<html lang="en" dir="ltr">' in page.html
    assert page.words("noscript") == ["Please enable JavaScript to book on this page."]


@pytest.mark.parametrize("graph", ["instant_payment"])
def test_a_payment_project_without_a_payment_link_takes_no_bookings(
    tenant: Tenant, graph: str
) -> None:
    path = make_page(tenant, booking={"graph": graph})

    without, hosted = Shown(path), hosted_page(path)
    project = tenant.app.projects.get()
    address = {"payment_url": "https://pay.example.com/"}
    saved = tenant.put(f"/projects/{project.id}", {"booking": address})
    wrong = tenant.put(f"/projects/{project.id}", {"booking": {"payment_url": "javascript:pay()"}})
    with_link, hosted_then = Shown(path), hosted_page(path)

    assert without.visible_texts == ["Check-up", "You can't book this online."]
    assert (hosted.status, hosted.error["code"]) == (404, "not_found")
    assert saved.data["booking"] == {"graph": graph, **address}
    assert hosted_then.data["booking"]["payment_url"] == address["payment_url"]
    assert wrong.json["errors"] == {"booking.payment_url": ["Must be an http or https address."]}
    page = with_link.for_script
    assert page["payment"] == 300
    assert (page["outcome"], page["success"]) == (
        ["Payment required to confirm your booking", ""],
        "",
    )


def test_day_links_work_without_scripts(tenant: Tenant) -> None:
    path = make_page(tenant)

    page = Shown(f"{path}?date=2026-11-24")
    old_link = Shown(f"{path}?day=2026-11-24")
    odd = Shown(f"{path}?date=yesterday&month=x&utm_source=mail")

    assert page.words("h3", "day-title") == ["Tuesday, 24 November 2026"]
    assert page.words("span", "time") == ["09:00", "09:30", "10:00", "10:30", "11:00", "11:30"]
    assert old_link.words("h3", "day-title") == ["Tuesday, 24 November 2026"]
    assert odd.words("h3", "day-title") == ["Friday, 20 November 2026"]


def test_week_links_work_without_scripts(tenant: Tenant) -> None:
    """Earlier and later as far as something can be free; links to months work too."""
    path = make_page(tenant, availability={"to": "10 weeks"})

    def seen(query: str) -> tuple[list[str], list[str]]:
        page = Shown(f"{path}{query}")
        links = re.findall(r'class="arrow" href="([^"]+)" rel="nofollow">', page.html)
        return page.words("h3"), links

    assert seen("") == (
        ["November – December 2026", "Friday, 20 November 2026"],
        ["?week=2026-12-21"],
    )
    assert seen("?week=2026-12-21") == (
        ["December 2026 – January 2027", "Monday, 21 December 2026"],
        ["?week=2026-11-16", "?week=2027-01-25"],
    )
    assert seen("?month=2026-12") == (
        ["November 2026 – January 2027", "Tuesday, 1 December 2026"],
        ["?week=2026-11-16", "?week=2027-01-04"],
    )
    assert seen("?date=2026-12-08") == (
        ["November – December 2026", "Tuesday, 8 December 2026"],
        ["?week=2026-12-21"],
    )
    assert seen("?date=2027-01-16") == (
        ["January 2027", "Monday, 18 January 2027"],
        ["?week=2026-12-14"],
    )
    assert seen("?date=2199-12-31") == seen("")


@pytest.mark.parametrize("query", ["date=2025-01-01", "month=2025-01", "week=2026-11-09"])
def test_links_to_the_past_show_the_next_free_time(tenant: Tenant, query: str) -> None:
    path = make_page(tenant)

    page = Shown(f"{path}?{query}")

    assert page.words("h3", "day-title") == ["Friday, 20 November 2026"]
    assert page.words("p", "soonest") == ["Next free time: Friday, 20 November 2026, 11:00"]
    assert 'data-step="days"' in page.html


@pytest.mark.parametrize(
    ("accepted", "has_clock"),
    [("en-GB", True), ("ja", True), ("de-DE", False), ("de-DE,en-US", True), ("pl", False)],
)
def test_clocks_are_offered_where_both_are_usual(
    tenant: Tenant, accepted: str, has_clock: bool
) -> None:
    path = make_page(tenant)

    page = Shown.of(Client(headers={"Accept-Language": accepted}).get(path))

    assert ('id="clock"' in page.html) is has_clock


def test_data_for_the_script(tenant: Tenant) -> None:
    page = Shown(make_page(tenant, reservation_time=300, settings={"max_reschedules": 7}))

    told = page.for_script
    words, offer = told.pop("words"), told.pop("offer")
    key = Credential.objects.get(app=tenant.app, kind=Credential.WIDGET)
    assert told == {
        "key": key.public_text,
        "project": told["project"],
        "zone": "Europe/Berlin",
        "language": None,
        "english_dates": "en-GB",
        "resource": None,
        "requirement": None,
        "length": None,
        "quantity": None,
        "party_size": None,
        "shows_remaining": False,
        "is_group": False,
        "max_seats": 1,
        "redirect": None,
        "embed_origins": None,
        "shows_ends": False,
        "hold": 300,
        "translations": {},
        "outcome": ["Your booking is confirmed", ""],
        "success": "Thank you. A message to %s is on its way.",
        "payment": None,
        "search_days": 366,
        "needs_challenge": False,
        "solver": "/static/booking_pages/solve.js",
        "zones": "/static/booking_pages/zones.js",
        "done": "/static/booking_pages/done.js",
        "zone_names": current_browser_zones(),
        "reservation": None,
    }
    assert offer["slots"][0] == [1795168800, 1795170600]
    assert (len(offer["slots"]), offer["until"], offer["horizon"]) == (59, 1796376600, 1796376600)
    assert (offer["since"], offer["earliest"]) == (1795167000, 1795167000)
    assert words["taken"] == "This time has just been taken."


def test_a_shared_link_shows_name_next_free_time_and_logo(tenant: Tenant, settings: Any) -> None:
    settings.PUBLIC_URL = "https://bookings.example.com"
    path = make_page(tenant, name="Yoga & <more>", booking={"description": "Bring\na mat."})
    store_logo(tenant.app, SmallImage(b"x", "image/png"))
    digest = hashlib.sha256(b"x").hexdigest()

    page = Shown(path)

    found = re.findall(
        r'<meta (?:property|name)="(og:\w+|description)" content="([^"]*)">', page.html
    )
    text = "Next free time: Friday, 20 November 2026, 11:00 · Bring a mat."
    assert [(name, html.unescape(content)) for name, content in found] == [
        ("description", text),
        ("og:type", "website"),
        ("og:title", f"Yoga & <more> · {tenant.app.name}"),
        ("og:url", f"https://bookings.example.com{path}"),
        ("og:description", text),
        ("og:image", f"https://bookings.example.com/book/logos/{tenant.app.slug}/{digest}"),
    ]


def test_short_holds_are_not_used(tenant: Tenant) -> None:
    page = Shown(make_page(tenant, reservation_time=30))

    assert page.for_script["hold"] == 0


def test_repeated_hour_has_its_offset(tenant: Tenant, clock: Any) -> None:
    night = [{"allow_hours": {"start": 1, "end": 4}}]
    clock.move_to("2026-10-24T12:00:00Z")
    page = Shown(make_page(tenant, rules=night, availability={"length": "1 hour"}))

    assert page.words("h3", "day-title") == ["Sunday, 25 October 2026"]
    assert page.words("span", "time") == ["01:00", "02:00 UTC+02:00", "02:00 UTC+01:00", "03:00"]


def test_slots_without_a_length_show_start_and_end(tenant: Tenant) -> None:
    page = Shown(f"{make_page(tenant, availability={'length': None})}?date=2026-11-23")

    assert page.words("span", "time") == ["09:00 – 12:00"]
    assert page.for_script["shows_ends"] is True


# --- The form -------------------------------------------------------------------------------------
def test_each_question_has_its_field(tenant: Tenant) -> None:
    questions = {
        "name": {"title": "Your name", "required": True, "prefilled": "Ada"},
        "email": {"title": "E-mail", "format": "email", "required": True},
        "phone": {"title": "Phone", "format": "tel", "required": True},
        "site": {"title": "Site", "format": "url"},
        "age": {"title": "Age", "format": "integer"},
        "day": {"title": "Day", "format": "date"},
        "note": {"title": "Note", "format": "textarea", "prefilled": "<b>"},
        "kind": {"title": "Kind", "enum": ["A", "B"], "prefilled": "B"},
        "news": {"title": "News", "format": "checkbox", "prefilled": True},
        "member": {"title": "Member", "readonly": True, "prefilled": "4711"},
        "empty": {"title": "Empty", "readonly": True},
        "meta": {"title": "Never asked"},
        "odd": {"format": "label"},
    }

    page = Shown(make_page(tenant, customer_fields=questions))

    fields = {
        key: re.sub(r"\s+", " ", element)
        for key, element in re.findall(
            r'data-key="(\w+)">.*?(<(?:input|textarea|select)\b.*?>)', page.html, re.S
        )
    }
    number = {key: re.search(r'id="(field-\d+)"', element)[1] for key, element in fields.items()}
    assert list(fields)[:3] == ["name", "email", "phone"]
    assert {key: element.replace(number[key], "N") for key, element in fields.items()} == {
        "name": text("text", "Ada", 'maxlength="200" autocomplete="name" required'),
        "email": text("email", "", 'maxlength="254" autocomplete="email" required'),
        "phone": text("tel", "", 'maxlength="200" autocomplete="tel" required'),
        "site": text("url", "", 'maxlength="2000"'),
        "age": text("number", "", 'step="any"'),
        "day": text("date", "", 'maxlength="2000"'),
        "member": text("text", "4711", 'maxlength="2000" readonly'),
        "empty": text("text", "", 'maxlength="2000"'),
        "odd": text("text", "", 'maxlength="2000"'),
        "note": '<textarea id="N" rows="3" maxlength="2000" aria-describedby="N-error">',
        "kind": '<select id="N" dir="auto" aria-describedby="N-error">',
        "news": '<input type="checkbox" id="N" checked aria-describedby="N-error">',
    }
    assert page.words("textarea") == ["<b>"]
    assert "<option selected>B</option>" in page.html
    assert set(re.findall(r'<label (?:class="check" )?for="([\w-]+)"', page.html)) == {
        *number.values(),
        "zone",
    }


def text(kind: str, value: str, rest: str) -> str:
    return f'<input type="{kind}" id="N" value="{value}" {rest} aria-describedby="N-error">'


def test_name_in_two_parts(tenant: Tenant) -> None:
    name = {"title": "Name", "split_name": True, "prefilled": "Ada Berg"}

    page = Shown(make_page(tenant, customer_fields={"name": name}))

    assert page.words("label")[1:3] == ["First name", "Last name"]
    assert 'value="Ada" maxlength="99" autocomplete="given-name" required' in " ".join(
        page.html.split()
    )
    assert 'value="Berg" maxlength="99" autocomplete="family-name" required' in " ".join(
        page.html.split()
    )


@pytest.mark.parametrize(
    ("graph", "button", "done"),
    [
        ("instant", "Book", "part"),
        ("confirm_decline", "Request", "part pending"),
        ("instant_payment", "Book", "part pending"),
    ],
)
def test_a_booking_that_needs_an_approval_is_requested(
    tenant: Tenant, graph: str, button: str, done: str
) -> None:
    booking = {"graph": graph, "payment_url": "https://pay.example.com/"}

    page = Shown(make_page(tenant, booking=booking))

    assert page.words("button")[-1] == button
    assert f'<section id="done" class="{done}"' in page.html


@pytest.mark.parametrize(
    "ui", [{"localization": "x"}, {"localization": {"submit_button": 5, "success_message": []}}]
)
def test_malformed_custom_texts_fall_back_to_defaults(tenant: Tenant, ui: dict[str, Any]) -> None:
    page = Shown(make_page(tenant, ui=ui))

    assert page.words("button")[-1] == "Book"
    assert page.for_script["success"] == "Thank you. A message to %s is on its way."


@pytest.mark.parametrize(
    "stored",
    [
        {"booking": {"graph": "nonsense"}},
        {"booking": {"graph": ["instant"]}},
        {"availability": {"length": "banana"}},
        {"availability": {"from": 7}},
        {"booking": {"graph": "instant_payment"}, "settings": {"pay_url": 7}},
    ],
)
def test_invalid_stored_project_shows_unavailable_page(
    tenant: Tenant, stored: dict[str, Any]
) -> None:
    path = make_page(tenant)
    Project.objects.update(**stored)

    page = Shown(path)

    if "settings" in stored:
        assert (page.status, page.visible_texts) == (
            200,
            ["Check-up", "You can't book this online."],
        )
    else:
        assert (page.status, page.visible_texts) == (
            422,
            [
                "This booking page is unavailable",
                "You can't book here at the moment. Please contact us.",
            ],
        )


@pytest.mark.parametrize(
    ("accepted", "first"),
    [
        ("en-US,en;q=0.9", "9:00 am"),
        ("en-GB", "09:00"),
        ("", "09:00"),
        ("en-US,de", "9:00 am"),
    ],
)
def test_times_have_the_clock_of_the_browsers_region(
    tenant: Tenant, accepted: str, first: str
) -> None:
    path = make_page(tenant)

    page = Shown.of(Client(headers={"Accept-Language": accepted}).get(f"{path}?date=2026-11-24"))

    assert page.words("span", "time")[0] == first


# --- Nothing to book ------------------------------------------------------------------------------
def test_message_without_free_time(tenant: Tenant) -> None:
    page = Shown(make_page(tenant, rules=[{"block_weekdays": {}}, {"block_weekends": {}}]))

    assert (page.status, page.visible_texts) == (
        200,
        [
            "Check-up",
            "There is no free time at the moment. Please come back later.",
        ],
    )
    assert "<script" not in page.html


def test_message_without_free_time_names_the_contact(tenant: Tenant) -> None:
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"contact_email": "desk@example.com"}})

    page = Shown(make_page(tenant, rules=[{"block_weekdays": {}}, {"block_weekends": {}}]))

    assert page.words("p", "notice") == [
        "There is no free time at the moment. Please come back later or contact us."
    ]
    assert 'href="mailto:desk@example.com"' in page.html


def test_message_without_resources(tenant: Tenant) -> None:
    tenant.make_project(slug="empty")

    assert Shown("/book/empty").visible_texts[1].startswith("There is no free time")


def test_group_projects_cannot_be_booked(tenant: Tenant) -> None:
    path = make_page(tenant, booking={"graph": "group_owner"})
    without = Shown(path)
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"contact_email": "desk@example.com"}})
    with_contact = Shown(path)

    assert without.visible_texts == ["Check-up", "You can't book this online."]
    assert with_contact.visible_texts == [
        "Check-up",
        "You can't book this online. Please contact us.",
        "Questions? Contact us: desk@example.com",
    ]


@pytest.mark.parametrize("path", ["/book/nowhere", "/book/a/b", "/book/nowhere/", "/book/%3Cb%3E"])
def test_unknown_page_is_404_in_html(db: None, path: str) -> None:
    page = Shown(path)

    assert (page.status, page.visible_texts) == (404, NO_PAGE)
    assert page.response["Content-Type"] == "text/html; charset=utf-8"
    assert page.response["X-Frame-Options"] == "DENY"


def test_deleted_project_or_app_has_no_page(make_tenant: Callable[..., Tenant], clock: Any) -> None:
    removed, archived = make_tenant(), make_tenant()
    paths = [make_page(removed), make_page(archived)]
    before = [Shown(path).status for path in paths]

    [project] = removed.get("/projects").data
    removed.delete(f"/projects/{project['id']}")
    archive_app(archived.app, now=timezone.now())

    assert before == [200, 200]
    assert [(page.status, page.visible_texts) for page in map(Shown, paths)] == [(404, NO_PAGE)] * 2


def test_other_methods_are_refused(tenant: Tenant) -> None:
    response = Client().post(make_page(tenant))

    assert (response.status_code, response["Allow"]) == (405, "GET, HEAD, OPTIONS")


# --- Around it ------------------------------------------------------------------------------------
def test_page_has_a_strict_content_security_policy(tenant: Tenant) -> None:
    page = Shown(make_page(tenant))

    headers = page.response.headers
    parts = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
    assert parts == POLICY
    assert headers["Cache-Control"] == "no-cache"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert {"Set-Cookie", "X-Frame-Options", "X-Robots-Tag"} & set(headers) == set()
    assert (
        re.findall(
            r"<style|\son\w+=|\sstyle=|<script(?! id=\"page\")(?! type=\"module\" src)", page.html
        )
        == []
    )


def test_path_with_trailing_slash(tenant: Tenant) -> None:
    assert Shown(f"{make_page(tenant)}/").status == 200


def test_test_mode_is_shown(make_tenant: Callable[..., Tenant]) -> None:
    page = Shown(make_page(make_tenant(mode="test")))

    assert page.response["Service-TestMode"] == "true"


def test_hostile_texts_are_escaped(tenant: Tenant) -> None:
    attack = "</script><script>alert(1)</script>"
    page = Shown(
        make_page(
            tenant,
            name=attack,
            booking={"where": attack, "description": attack},
            customer_fields={"x": {"title": attack, "prefilled": attack, "enum": [attack]}},
            ui={"localization": {"submit_button": attack, "success_message": attack}},
        )
    )

    assert page.words("h1") == [attack]
    assert page.for_script["success"] == attack
    assert "<script>" not in page.html


def test_page_takes_few_queries(tenant: Tenant, django_assert_num_queries: Any) -> None:
    path = make_page(tenant)
    Shown(path)

    with django_assert_num_queries(4):
        Shown(path)


def test_page_requests_are_rate_limited(tenant: Tenant, monkeypatch: Any) -> None:
    path = make_page(tenant)
    monkeypatch.setattr(authentication, "request_rates", RateWindow(1))

    pages = [Shown(path), Shown(path)]

    assert [page.status for page in pages] == [200, 429]
    assert pages[1].visible_texts[0] == "Too many requests"
    assert int(pages[1].response["Retry-After"]) > 0


def test_weeks_in_the_url_are_offered(tenant: Tenant) -> None:
    """Their slots begin on the Friday before them."""
    path = make_page(tenant, availability={"to": "12 weeks"})

    page = Shown(f"{path}?week=2026-12-28")

    offer = page.for_script["offer"]
    first, until = at("2026-12-25 08:00").timestamp(), at("2027-01-30 23:00").timestamp()
    assert (offer["slots"][0][0], offer["until"]) == (first, until)
    assert page.words("p", "soonest") == [""]  # there are earlier ones


@pytest.mark.parametrize(
    ("opens", "last", "until"),
    [
        ("2026-11-23", "2026-12-29 10:30", "2026-12-29 23:00"),
        ("2026-12-07", "2027-01-12 10:30", "2027-01-12 23:00"),
        ("2027-02-01", "2027-03-09 10:30", "2027-03-09 23:00"),
    ],
    ids=["soon", "in weeks", "in months"],
)
def test_the_days_after_the_first_free_one_are_offered(
    tenant: Tenant, opens: str, last: str, until: str
) -> None:
    closed = {"block_period": {"start": "2026-11-01", "end": opens}}
    path = make_page(tenant, rules=[*NINE_TO_NOON, closed], availability={"to": "200 days"})

    offer = Shown(path).for_script["offer"]

    first, latest = at(f"{opens} 08:00").timestamp(), at(last).timestamp()
    slots = offer["slots"]
    assert (slots[0][0], slots[-1][0], offer["until"]) == (first, latest, at(until).timestamp())


# --- The length -----------------------------------------------------------------------------------
LENGTHS = {"length": "30 minutes", "lengths": ["30 minutes", "1 hour"]}


def links_of(page: Shown, name: str) -> list[tuple[str, str, bool]]:
    """(text, address, whether it is chosen) of each link of that class."""
    found = re.findall(rf'<a class="{name}" href="([^"]*)"([^>]*)>(.*?)</a>', page.html, re.S)
    return [(text, html.unescape(link), "aria-current" in rest) for link, rest, text in found]


def test_project_that_opens_years_ahead_is_offered(tenant: Tenant) -> None:
    """The page looks a year ahead from there, not from now."""
    window = {"from": "2031-03-03 00:00:00", "to": "2031-03-24 00:00:00"}
    page = Shown(make_page(tenant, availability={"length": "30 minutes", **window}))

    offer = page.for_script["offer"]
    first = at("2031-03-02 23:00").timestamp()  # midnight in Berlin
    assert (offer["slots"][0], offer["until"], offer["horizon"]) == (
        [first + 9 * 3600, first + 9.5 * 3600],
        first + 21 * 86_400,
        first + 21 * 86_400,
    )


def test_a_length_is_chosen_in_the_address(tenant: Tenant) -> None:
    path = make_page(tenant, availability=LENGTHS)

    usual = Shown(path)
    hour = Shown(f"{path}?length=1%20hour&date=2026-11-23&time=2026-11-23T08:00:00Z&email=a@b.c")
    minutes = Shown(f"{path}?length=60+mins")
    unknown = [Shown(f"{path}?length={length}") for length in ("2+hours", "x", "", "9" * 50)]

    kept = "?length={}&date=2026-11-23&email=a%40b.c"
    assert links_of(usual, "length") == [
        ("30 min", "?length=30+minutes", True),
        ("1 h", "?length=1+hour", False),
    ]
    assert links_of(hour, "length") == [
        ("30 min", kept.format("30+minutes"), False),
        ("1 h", kept.format("1+hour"), True),
    ]
    assert usual.words("span", "time") == ["11:00", "11:30"]
    assert hour.words("span", "time") == ["09:00", "10:00", "11:00"]
    assert minutes.words("span", "time") == ["11:00"]
    assert hour.words("dl", "facts") == ["WithAda"]
    assert [page.for_script["length"] for page in (usual, hour, minutes, *unknown)] == [
        "30 minutes",
        "1 hour",
        "1 hour",
        *["30 minutes"] * 4,
    ]


def test_other_days_keep_length_and_person_without_a_script(tenant: Tenant) -> None:
    path = make_page(tenant, availability={**LENGTHS, "to": "8 weeks"})

    page = Shown(f"{path}?length=1+hour&timezone=Asia/Tokyo&utm_source=mail")

    choices = "length=1+hour&timezone=Asia/Tokyo"
    assert {
        f"?{choices}&date=2026-11-24",
        f"?{choices}&week=2026-12-21",
        f"?{choices}&date=2026-11-20&time=2026-11-20T10:00:00Z",
    } <= set(map(html.unescape, re.findall(r'href="([^"]*)"', page.html)))


@pytest.mark.parametrize(
    "availability", [{}, {"length": "1 hour", "lengths": ["1 hour"]}, {"length": None}]
)
def test_single_length_is_not_offered_as_a_choice(
    tenant: Tenant, availability: dict[str, Any]
) -> None:
    page = Shown(f"{make_page(tenant, availability=availability)}?length=30+minutes")

    assert (links_of(page, "length"), page.for_script["length"]) == ([], None)


# --- Language and direction of the app's texts ----------------------------------------------------
def test_texts_of_the_app_have_their_language_and_direction(tenant: Tenant) -> None:
    """Questions with words of their own too; the service's words have the page's language."""
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"language": "en"}})
    path = make_page(
        tenant,
        booking={"description": "Bring your insurance card."},
        customer_fields={"about": {"title": "What is it about?"}, "phone": {}},
    )

    arabic = Client(headers={"Accept-Language": "ar"}).get(path).content.decode()
    english = Client(headers={"Accept-Language": "en"}).get(path).content.decode()

    for text in ("What is it about?", "Bring your insurance card.", "Check-up"):
        assert f' dir="auto" lang="en">{text}</' in arabic
        assert f' dir="auto">{text}</' in english
    assert "<span>الهاتف</span>" in arabic


@pytest.mark.parametrize(
    ("accepted", "language", "day"),
    [
        ("en-US", "en-US", "Tuesday, November 24, 2026"),
        ("en-GB", None, "Tuesday, 24 November 2026"),
        ("de", "de", "Dienstag, 24. November 2026"),
        ("", None, "Tuesday, 24 November 2026"),
    ],
)
def test_page_sends_the_english_of_the_browsers_region(
    tenant: Tenant, accepted: str, language: str | None, day: str
) -> None:
    path = make_page(tenant)

    page = Shown.of(Client(headers={"Accept-Language": accepted}).get(f"{path}?date=2026-11-24"))

    [script] = re.findall(r'<script id="page" type="application/json">(.*?)</script>', page.html)
    assert json.loads(script)["language"] == language
    assert page.words("h3")[1] == day
