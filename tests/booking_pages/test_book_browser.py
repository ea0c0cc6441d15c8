"""The hosted page in a real browser: booking, what goes wrong meanwhile, and how it looks."""

import gzip
import re
from typing import Any
from urllib.request import urlopen

import pytest
from django.utils import translation

from booking_pages.texts import SCRIPT
from tests.booking_pages.shop import (
    FIELDS,
    MARTY,
    MONDAY,
    NINE_TO_NOON,
    WIDTHS,
    Shop,
    check_access,
    check_quiet,
    choose,
    done,
    fill_in,
    submit,
)
from tests.browser import Browser, Page, viewports
from tests.live import LiveApp

EVERYDAY = [{"allow_hours": {"start": 0, "end": 24}}]


# --- Booking --------------------------------------------------------------------------------------
@pytest.mark.parametrize("width", WIDTHS)
def test_booking_by_keyboard(browser: Browser, app: LiveApp, width: int) -> None:
    shop = Shop(app)
    page = shop.open(browser, width)

    page.tab_to("#days button")
    page.press("ArrowRight")
    ring = page.evaluate("getComputedStyle(document.activeElement).outline")
    page.press("Enter")
    page.tab_to("#times li:nth-child(3) button")
    page.press(" ")
    page.wait_for("document.activeElement.id == 'form-title'")
    page.tab_to("[data-key=name] input")
    page.type(MARTY["name"])
    page.press("Tab")
    page.type(MARTY["email"])
    page.press("Enter")

    assert done(page) == (
        "Your booking is confirmed\n\n"
        "Tuesday, 4 March 2031, 10:00 – 10:30 (Europe/Berlin)\n\n"
        "With: Dr. Ada Berg\n\n"
        "Where: Harbour Dental, Quay 5 Show on a map\n\n"
        "Thank you. A message to marty@example.com is on its way.\n\n"
        "Add to calendar\nGoogle Calendar\nOutlook\nMicrosoft 365\n\n"
        "Choose another time\nCancel the booking\n\n"
        "Make another booking"
    )
    assert ring == "rgb(31, 79, 153) solid 3px"
    assert page.presses == (12 if width > 820 else 13)  # at most 25
    assert page.evaluate("document.activeElement.innerText") == "Your booking is confirmed"
    assert page.evaluate("document.querySelector('#done').getAttribute('aria-live')") == "polite"
    [booking] = shop.bookings()
    assert (booking["state"], booking["event"]["start"]) == (
        "confirmed",
        "2031-03-04T09:00:00+00:00",
    )
    [customer] = booking["customers"]
    assert {key: customer[key] for key in ("name", "email", "timezone")} == {
        **MARTY,
        "timezone": "Europe/Berlin",
    }
    check_quiet(page, app)


@pytest.mark.parametrize("width", WIDTHS)
def test_keyboard_skips_people_and_lengths(browser: Browser, app: LiveApp, width: int) -> None:
    """At most 25 keys for a booking, however many people there are to choose from."""
    person = {"timezone": "Europe/Berlin", "availability_constraints": NINE_TO_NOON}
    people = [
        app.post("/v2/resources", {**person, "name": f"Dr. {each}"}).data for each in "ABCDEF"
    ]
    lengths = {"length": "30 minutes", "lengths": ["30 minutes", "1 hour"]}
    shop = Shop(app, availability=lengths, settings={"choose_resource": True})
    resources = [shop.resource["id"], *(person["id"] for person in people)]
    app.call("PUT", f"/v2/projects/{shop.project['id']}", {"resources": resources})
    page = shop.open(browser, width)

    page.tab_to("#skip")
    page.press("Enter")
    page.tab_to("#days button")
    page.press("ArrowDown")
    page.press("Enter")
    page.tab_to("#times button")
    page.press("Enter")
    page.wait_for("document.activeElement.id == 'form-title'")
    page.tab_to("[data-key=name] input")
    page.type(MARTY["name"])
    page.press("Tab")
    page.type(MARTY["email"])
    page.press("Enter")

    assert done(page).startswith("Your booking is confirmed\n\nMonday, 10 March 2031, 09:00")
    assert page.presses <= 25
    check_quiet(page, app)


def test_answers_to_custom_questions_are_stored(browser: Browser, app: LiveApp) -> None:
    name = {"title": "Name", "split_name": True, "required": True}
    member = {"title": "Member", "prefilled": "4711", "readonly": True}
    shop = Shop(app, customer_fields={"name": name, **FIELDS, "member": member})
    page = shop.open(browser)

    choose(page, "09:00")
    labels = page.texts("#form label")
    page.evaluate("document.querySelectorAll('[data-key=name] input')[0].focus()")
    page.type("Marty")
    page.press("Tab")
    page.type("McFly")
    fill_in(page, email=MARTY["email"], phone="+1 555 0100", comment="A\nB")
    page.evaluate("document.querySelector('[data-key=insurance] select').value = 'Private'")
    page.click("[data-key=terms] input")
    submit(page)
    done(page)

    # PostgreSQL does not keep the order of keys: what is known goes first, a box to tick last.
    assert (labels[:4], labels[-1]) == (
        ["First name", "Last name", "E-mail", "Phone (optional)"],
        "I have read the terms",
    )
    assert sorted(labels[4:-1]) == [
        "Insurance",
        "Member (optional)",
        "What is it about? (optional)",
    ]
    [customer] = shop.bookings()[0]["customers"]
    assert (customer["name"], customer["phone"]) == ("Marty McFly", "+1 555 0100")
    assert customer["meta"] == {
        "comment": "A\nB",
        "insurance": "Private",
        "terms": True,
        "member": "4711",
    }
    check_quiet(page, app)


@pytest.mark.parametrize(
    ("conference", "place", "pattern"),
    [
        (
            {"provider": "template", "template": "https://video.example/{booking_id}"},
            "Where: Harbour Dental, Quay 5 Show on a map",
            r"Video call: https://video\.example/[0-9a-f-]{36}",
        ),
        (
            {"provider": "meet"},  # without a calendar, no link is promised
            "Where: Harbour Dental, Quay 5 Show on a map",
            r"Thank you\. A message to marty@example\.com is on its way\.",
        ),
    ],
)
def test_link_of_the_video_call(
    browser: Browser, app: LiveApp, conference: dict[str, str], place: str, pattern: str
) -> None:
    shop = Shop(app, settings={"conference": conference})
    page = shop.open(browser)

    choose(page, "09:00")
    fill_in(page, **MARTY)
    submit(page)
    paragraphs = done(page).split("\n\n")

    after = paragraphs[paragraphs.index(place) + 1]
    links = "[...document.querySelectorAll('#done a')].map(a => a.href)"
    assert re.fullmatch(pattern, after)
    assert (after.split(" ")[-1] in page.evaluate(links)) == after.startswith("Video call")
    check_quiet(page, app)


def test_double_click_books_once(browser: Browser, app: LiveApp) -> None:
    shop = Shop(app)
    page = shop.open(browser)

    choose(page, "09:00")
    fill_in(page, **MARTY)
    page.click("#submit", times=2)
    done(page)

    assert len(shop.bookings()) == 1
    assert sum("/v2/bookings?include=event,resource" in url for url in page.requests) == 1
    check_quiet(page, app)


@pytest.mark.parametrize(
    ("booking", "state", "heading"),
    [
        pytest.param(
            {"graph": "confirm_decline"},
            "tentative",
            "Your request has been sent",
            marks=pytest.mark.deep,
        ),
        (
            {"graph": "instant_payment", "payment_url": "https://pay.example.com/"},
            "tentative",
            "Payment required to confirm your booking",
        ),
    ],
)
def test_success_heading_of_each_graph(
    browser: Browser, app: LiveApp, booking: dict[str, str], state: str, heading: str
) -> None:
    shop = Shop(app, booking={"what": "Check-up", **booking})
    page = shop.open(browser)

    choose(page, "09:00")
    fill_in(page, **MARTY)
    submit(page)
    said = done(page)
    page.save_screenshot(f"book-done-{booking['graph']}", whole=True)

    assert said.startswith(f"{heading}\n")
    assert [booking["state"] for booking in shop.bookings()] == [state]


@pytest.mark.parametrize("width", WIDTHS)
def test_payment_project_shows_deadline_and_link(
    browser: Browser, app: LiveApp, axe: str, width: int
) -> None:
    address = "https://pay.example.com/checkout?shop=7"
    booking = {"what": "Check-up", "graph": "instant_payment", "payment_url": address}
    shop = Shop(app, booking=booking)
    page = shop.open(browser, width)

    choose(page, "09:00")
    fill_in(page, **MARTY)
    submit(page)
    said = done(page)
    link = page.evaluate("document.querySelector('#done a.button').href")
    page.save_screenshot(f"book-payment-{width}", whole=True)

    (made,) = shop.bookings()
    assert re.search(
        r"\nPlease pay by \w+, \d+ \w+ \d{4}, \d\d:\d\d \(Europe/Berlin\)\."
        r" After that the time is released\.\n",
        said,
    )
    assert "is on its way" not in said
    assert link == f"{address}&booking_id={made['id']}"
    check_access(page, axe, width)


def test_payment_takes_precedence_over_redirect_url(browser: Browser, app: LiveApp) -> None:
    settings = {
        "pay_url": "https://pay.example.com/{booking_id}",
        "redirect_url": f"{app.url}/book/nowhere",
    }
    booking = {"what": "Check-up", "graph": "instant_payment"}
    shop = Shop(app, booking=booking, settings=settings)
    page = shop.open(browser)

    choose(page, "09:00")
    fill_in(page, **MARTY)
    submit(page)
    done(page)
    links = page.evaluate(DONE_LINKS)
    page.send("Page.reload")
    done(page)

    (made,) = shop.bookings()
    assert [label for label, _ in links] == [
        "Pay now",
        "Continue",
        "Choose another time",
        "Make another booking",
    ]
    assert links[0][1].startswith(f"https://pay.example.com/{made['id']}?signature=")
    assert links[1][1] == f"{app.url}/book/nowhere?booking_id={made['id']}"
    assert page.evaluate(DONE_LINKS) == links


DONE_LINKS = "[...document.querySelectorAll('#done a')].map(a => [a.innerText, a.href])"


def test_custom_texts_of_the_project_are_shown(browser: Browser, app: LiveApp) -> None:
    words = {"submit_button": "Ask for it", "success_message": "Bye $& %s <b>"}
    shop = Shop(app, ui={"localization": words})
    page = shop.open(browser)

    choose(page, "09:00")
    button = page.texts("#submit")
    fill_in(page, **MARTY)
    submit(page)

    assert button == ["Ask for it"]
    assert "\nBye $& marty@example.com <b>\n" in done(page)


# --- The slot is gone -----------------------------------------------------------------------------
@pytest.mark.parametrize("width", WIDTHS)
def test_slot_taken_before_submit_offers_next_slots(
    browser: Browser, app: LiveApp, width: int
) -> None:
    shop = Shop(app)
    page = shop.open(browser, width)
    choose(page, "09:00")
    fill_in(page, **MARTY)
    other = shop.book()

    submit(page)
    page.wait_for("!!document.querySelector('#notice li')")
    page.save_screenshot(f"book-taken-{width}", whole=True)
    offered = page.texts("#notice li")
    is_focused = page.evaluate("document.activeElement.id")
    page.click("#notice li:nth-child(2) button")
    typed = page.evaluate("document.querySelector('[data-key=email] input').value")
    submit(page)

    assert done(page).splitlines()[2] == "Monday, 3 March 2031, 10:00 – 10:30 (Europe/Berlin)"
    assert offered == [
        f"Monday, 3 March 2031, {times}"
        for times in ("09:30 – 10:00", "10:00 – 10:30", "10:30 – 11:00")
    ]
    assert (is_focused, typed) == ("notice", "marty@example.com")
    assert [booking["id"] for booking in shop.bookings()][:1] == [other["id"]]
    assert [booking["event"]["start"][11:16] for booking in shop.bookings()] == ["08:00", "09:00"]
    check_quiet(page, app, "409")


def test_going_back_reloads_the_times(browser: Browser, app: LiveApp) -> None:
    shop = Shop(app)
    page = shop.open(browser)
    choose(page, "09:00")
    shop.book()
    shop.book(f"{MONDAY} 10:00:00", f"{MONDAY} 10:30:00")

    page.click("#change")
    page.wait_for("document.querySelectorAll('#times li').length == 4")

    assert page.texts("#times li") == ["09:30", "10:30", "11:00", "11:30"]


# --- Holds ----------------------------------------------------------------------------------------
def test_slot_is_held_while_the_form_is_open(browser: Browser, app: LiveApp) -> None:
    shop = Shop(app, reservation_time=300)
    page = shop.open(browser)
    wanted = {"project_id": shop.project["id"], "start": f"{MONDAY} 09:00:00"}
    wanted |= {"end": f"{MONDAY} 09:30:00", "customer": MARTY}

    choose(page, "09:00")
    page.wait_for("!!document.querySelector('#held').innerText")
    refused = app.post("/v2/bookings", wanted)
    page.click("#change")
    page.wait_for("document.querySelectorAll('#times li').length == 6")
    choose(page, "09:30")
    page.wait_for("!!document.querySelector('#held').innerText")
    freed = app.post("/v2/bookings", wanted)
    fill_in(page, **MARTY)
    submit(page)
    done(page)

    assert (refused.code, freed.code) == ("409 slot_taken", "201")
    assert [booking["event"]["start"][11:16] for booking in shop.bookings()] == ["08:00", "08:30"]
    check_quiet(page, app)


def test_slot_taken_before_hold_offers_next_slots(browser: Browser, app: LiveApp) -> None:
    shop = Shop(app, reservation_time=300)
    page = shop.open(browser)
    shop.book()

    choose(page, "09:00")
    page.wait_for("!!document.querySelector('#notice li')")
    page.click("#notice li:first-child button")
    page.wait_for("!!document.querySelector('#held').innerText")

    assert page.texts("#chosen") == ["Monday, 3 March 2031, 09:30 – 10:00"]
    assert page.texts("#notice") == [""]
    check_quiet(page, app, "409")


def test_expired_hold_can_be_booked_while_free(browser: Browser, app: LiveApp) -> None:
    shop = Shop(app, reservation_time=300)
    page = shop.open(browser)

    choose(page, "09:00")
    page.wait_for("!!document.querySelector('#held').innerText")
    code = (
        "from availability.models import Hold; from django.db.models import F;"
        f"Hold.objects.filter(project_id='{shop.project['id']}').update(expires_at=F('created_at'))"
    )
    app.service.run(code)
    fill_in(page, **MARTY)
    submit(page)

    assert done(page).startswith("Your booking is confirmed")
    check_quiet(page, app, "409")


def test_hold_is_extended_once_and_its_end_is_shown(browser: Browser, app: LiveApp) -> None:
    """With minutes that pass like seconds."""
    shop = Shop(app, reservation_time=120)
    page = browser.open("about:blank", zone="Europe/Berlin")
    page.send("Page.addScriptToEvaluateOnNewDocument", source=FAST_MINUTES)
    page.send("Page.navigate", url=shop.url)
    page.wait_for("document.querySelector('#zone')?.disabled === false")

    choose(page, "09:00")
    page.wait_for("document.querySelector('#held').innerText.startsWith('Your hold has expired')")

    assert page.texts("#held") == [
        "Your hold has expired. You can still book this time while it is free."
    ]
    assert sum(url.endswith("/v2/bookings/reserve/extend") for url in page.requests) == 1
    check_quiet(page, app)


FAST_MINUTES = """
const real = window.setTimeout;
window.setTimeout = (act, ms, ...rest) => real(act, ms > 60000 ? ms / 60 : ms, ...rest);
"""


# --- What else goes wrong -------------------------------------------------------------------------
@pytest.mark.parametrize("width", WIDTHS)
def test_errors_are_shown_at_their_fields(browser: Browser, app: LiveApp, width: int) -> None:
    shop = Shop(app, customer_fields=FIELDS)
    page = shop.open(browser, width)
    choose(page, "09:00")

    fill_in(page, email="marty")
    submit(page)
    page.save_screenshot(f"book-errors-{width}", whole=True)

    errors = page.evaluate(ERRORS)
    assert errors == {
        "name": "Please fill this in.",
        "email": "Please enter an e-mail address, such as name@example.com.",
        "insurance": "Please fill this in.",
        "terms": "Please fill this in.",
    }
    focused = "document.activeElement.closest('.field').dataset.key"
    assert page.evaluate(focused) == "name"
    assert page.texts("#status") == ["Please check the marked fields."]
    assert shop.bookings() == []


# What is read to a person in each field that is marked.
ERRORS = """
Object.fromEntries([...document.querySelectorAll("[aria-invalid=true]")].map(one => [
  one.closest(".field").dataset.key,
  document.getElementById(one.getAttribute("aria-describedby")).innerText,
]))
"""


def test_server_side_errors_are_shown_at_their_fields(browser: Browser, app: LiveApp) -> None:
    page = Shop(app).open(browser)
    choose(page, "09:00")

    fill_in(page, name="Marty", email="marty@localhost.")
    page.evaluate("document.querySelector('[data-key=email] input').type = 'text'")
    submit(page)
    page.wait_for("!!document.querySelector('[aria-invalid=true]')")

    assert page.evaluate(ERRORS) == {
        "email": "Please enter an e-mail address, such as name@example.com."
    }
    assert page.evaluate("document.activeElement.closest('.field').dataset.key") == "email"
    check_quiet(page, app, "422")


@pytest.mark.parametrize(
    "language",
    [pytest.param("en", marks=pytest.mark.deep), pytest.param("de", marks=pytest.mark.deep), "ar"],
)
def test_errors_are_in_the_language_of_the_page(
    browser: Browser, app: LiveApp, language: str
) -> None:
    shop = Shop(app, customer_fields={"phone": {"format": "tel"}})
    page = shop.open(browser, language=language)
    page.wait_for("!!document.querySelector('#times button')")
    page.evaluate("document.querySelector('#times button').click()")
    fill_in(page, **MARTY)
    for key in ("name", "phone"):
        field = f"document.querySelector('[data-key={key}] input')"
        page.evaluate(f"{field}.removeAttribute('maxlength'), {field}.value = 'x'.repeat(300)")

    submit(page)
    page.wait_for("!!document.querySelector('[aria-invalid=true]')")

    with translation.override(language):
        sentence = str(SCRIPT["unfit"])
    assert page.evaluate(ERRORS) == {"name": sentence, "phone": sentence}
    check_quiet(page, app, "422")


def test_input_is_kept_while_offline(browser: Browser, app: LiveApp) -> None:
    shop = Shop(app)
    page = shop.open(browser)
    choose(page, "09:00")
    fill_in(page, **MARTY)

    set_offline(page, True)
    submit(page)
    page.wait_for("!!document.querySelector('#notice p')")
    notice = page.texts("#notice")
    set_offline(page, False)
    submit(page)

    assert notice == ["The service could not be reached. Your input is kept. Please try again."]
    assert done(page).startswith("Your booking is confirmed")
    assert len(shop.bookings()) == 1


def set_offline(page: Page, offline: bool) -> None:
    page.send(
        "Network.emulateNetworkConditions",
        offline=offline,
        latency=0,
        downloadThroughput=-1,
        uploadThroughput=-1,
    )


def test_refusals_are_in_plain_words(browser: Browser, app: LiveApp) -> None:
    page = Shop(app).open(browser)
    choose(page, "09:00")
    fill_in(page, **MARTY)

    for status, body, said in [
        (429, {}, "Too many requests. Please try again in 7 seconds."),
        (503, {}, "Something went wrong on our side. Your input is kept. Please try again."),
        (401, {}, "This page is out of date. Please reload it."),
        (
            409,
            {"code": "policy"},
            "You have reached the limit of bookings for your e-mail address.",
        ),
    ]:
        page.evaluate(f"""
          window.fetch = async () => new Response(
            JSON.stringify({body}), {{status: {status}, headers: {{"Retry-After": "7"}}}})
        """)
        submit(page)
        page.wait_for(f"document.querySelector('#notice').innerText.trim() === {said!r}")
        name = page.evaluate("document.querySelector('[data-key=name] input').value")
        assert name == "Marty McFly"


# --- Hostile texts --------------------------------------------------------------------------------
ATTACK = "</script><script>window.hit=1</script><img src=x onerror=window.hit=1>\"'{{7*7}}"


def test_texts_are_not_run_as_html(browser: Browser, app: LiveApp) -> None:
    fields = {
        "name": {"title": ATTACK, "required": True},
        "email": {"title": "E-mail", "format": "email", "required": True},
        ATTACK: {"title": ATTACK, "prefilled": ATTACK},
        "choice": {"title": ATTACK, "enum": [ATTACK], "prefilled": ATTACK},
    }
    ui = {"localization": {"submit_button": ATTACK, "success_message": ATTACK}}
    booking = {"what": ATTACK, "where": ATTACK, "description": ATTACK}
    shop = Shop(app, name=ATTACK, customer_fields=fields, ui=ui, booking=booking)
    page = shop.open(browser)

    heading = page.texts("h1")
    choose(page, "09:00")
    labels = page.texts("#form label")
    fill_in(page, name=ATTACK, email=MARTY["email"])
    submit(page)
    said = done(page)

    assert heading == [ATTACK]
    assert labels == [ATTACK, "E-mail", f"{ATTACK} (optional)", f"{ATTACK} (optional)"]
    assert ATTACK in said
    assert page.evaluate("window.hit") is None
    assert page.evaluate("document.querySelectorAll('img, main script:not([type])').length") == 0
    assert shop.bookings()[0]["customers"][0]["meta"] == {ATTACK: ATTACK, "choice": ATTACK}
    check_quiet(page, app)


# --- How it looks ---------------------------------------------------------------------------------
@pytest.mark.parametrize(("width", "scheme"), viewports(only="narrow"))
def test_pages_are_accessible(
    browser: Browser, app: LiveApp, axe: str, width: int, scheme: str
) -> None:
    description = "A look at your teeth, and a talk about them.\nPlease bring your card."
    booking = {"what": "Check-up", "where": "Harbour Dental, Quay 5", "description": description}
    shop = Shop(app, booking=booking, customer_fields=FIELDS, reservation_time=300)
    page = shop.open(browser, width, scheme=scheme)

    def look(name: str) -> None:
        page.save_screenshot(f"book-{name}-{width}-{scheme}", whole=True)
        check_access(page, axe, width)

    look("days" if width < 820 else "times")
    if width < 820:
        page.click("[data-date='2031-03-03']")
        look("times")
    page.click("#zone")
    page.wait_for("document.querySelectorAll('#zones li').length > 20")
    look("zones")
    choose(page, "09:00")
    page.wait_for("!!document.querySelector('#held').innerText")
    look("form")
    submit(page)
    look("faults")
    email = f"marty-{width}-{scheme}@example.com"  # an address has room for twenty bookings
    fill_in(page, name="Marty McFly", email=email, comment="It hurts when I laugh.")
    page.evaluate("document.querySelector('[data-key=insurance] select').value = 'Public'")
    page.click("[data-key=terms] input")
    submit(page)
    done(page)
    look("done")
    check_quiet(page, app)


@pytest.mark.deep
def test_long_words_are_hyphenated(browser: Browser, app: LiveApp) -> None:
    """By the browser, in the page's language. A browser without its dictionary breaks the word."""
    word = "Donaudampfschifffahrtsgesellschaftskapitänsuntersuchung"
    booking = {"what": word, "description": f"{word}en und ein Gespräch.", "where": word}
    shop = Shop(app, name=word, booking=booking)
    page = shop.open(browser, 320)

    page.save_screenshot("book-long-words-320", whole=True)
    styles = "[...document.querySelectorAll('h1, .lines')].map(e => getComputedStyle(e).hyphens)"
    found = page.evaluate(f"[document.documentElement.lang, {styles}, innerWidth]")
    right = page.evaluate(
        "Math.max(...[...document.querySelectorAll('main *')]"
        ".map(e => Math.max(e.getBoundingClientRect().right, e.scrollWidth)))"
    )

    assert found == ["en", ["auto", "auto"], 320]
    assert right <= 320


def test_the_projects_texts_have_their_own_language(browser: Browser, app: LiveApp) -> None:
    """Browsers hyphenate by it: German words on an English page break as German words."""
    booking = {"what": "Termin", "description": "Ein Gespräch."}
    german = Shop(app, name="Sprechstunde", booking=booking, settings={"language": "de"})
    unknown = Shop(app, name="Sprechstunde", booking=booking)
    langs = "[...document.querySelectorAll('html, h1, .lines')].map(e => e.lang)"

    found = [
        shop.open(browser, language=language).evaluate(langs)
        for shop, language in ((german, "en-GB"), (german, "de"), (unknown, "en-GB"))
    ]

    assert found == [["en", "de", "de"], ["de", "", ""], ["en", "", ""]]


@pytest.mark.parametrize("width", WIDTHS)
def test_the_first_load_is_small(browser: Browser, app: LiveApp, width: int) -> None:
    """Everything until the first time can be chosen, compressed as it is served."""
    terms = {"length": "15 minutes", "to": "2031-12-31 00:00:00"}
    shop = Shop(app, availability=terms, rules=EVERYDAY, customer_fields=FIELDS)
    page = shop.open(browser, width)
    page.wait_for("!!document.querySelector('#times button')")

    assert page.evaluate("document.querySelectorAll('#times button').length") == 96
    assert 10_000 < page.evaluate(LOADED) < 85_000
    check_quiet(page, app)


@pytest.mark.parametrize(
    ("terms", "hours"),
    [({}, None), ({"length": "30 minutes", "to": "2031-12-31 00:00:00"}, EVERYDAY)],
)
def test_a_page_is_six_requests_and_25_kilobytes(
    browser: Browser, app: LiveApp, terms: Any, hours: Any
) -> None:
    """Compressed, as a server in front of the service sends it; also with five weeks of half
    hours. The last step is loaded later."""
    given = {"availability": terms, "rules": hours} if hours else {}
    page = Shop(app, customer_fields=FIELDS, **given).open(browser)
    page.wait_for("!!document.querySelector('#times button')")

    bodies = []
    for url in page.evaluate(ADDRESSES):
        with urlopen(url) as answer:
            bodies.append(answer.read())

    assert len(bodies) <= 6
    assert sum(len(gzip.compress(body)) for body in bodies) < 25_000
    assert sum(map(len, bodies)) < 86_000


ADDRESSES = """
[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
  .map((one) => one.name).filter((name) => name.startsWith("http"))
"""
# Bytes with headers.
LOADED = """
[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
  .reduce((sum, one) => sum + one.transferSize, 0)
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_layout_does_not_shift(browser: Browser, app: LiveApp, width: int) -> None:
    page = Shop(app).open(browser, width)

    page.evaluate(SHIFTS)
    page.wait_for("window.shifted !== undefined")

    assert page.evaluate("window.shifted") < 0.02


SHIFTS = """
new PerformanceObserver(list => {}).observe({type: "layout-shift", buffered: true});
setTimeout(() => {
  new PerformanceObserver(list => {
    window.shifted = list.getEntries().reduce((sum, one) => sum + one.value, 0);
  }).observe({type: "layout-shift", buffered: true});
  setTimeout(() => { window.shifted ??= 0; }, 200);
}, 200);
"""


@pytest.mark.parametrize(("width", "scheme"), viewports(only="narrow"))
def test_pages_without_a_form_are_accessible(
    browser: Browser, app: LiveApp, axe: str, width: int, scheme: str
) -> None:
    closed = Shop(app, rules=[{"allow_weekdays": {}}, {"block_weekdays": {}}])
    for name, url in [("nothing-free", closed.url), ("unknown", f"{app.url}/book/nowhere")]:
        page = browser.open(url, width=width, scheme=scheme)
        page.wait_for("document.readyState == 'complete' && !!document.querySelector('h1')")
        page.save_screenshot(f"book-{name}-{width}-{scheme}", whole=True)
        check_access(page, axe, width)
        assert [complaint for complaint in page.complaints if "404" not in complaint] == []
