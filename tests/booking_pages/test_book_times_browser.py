"""The hosted page in a real browser: days, times, zones, the address, the first screen."""

import time

import pytest

from tests.booking_pages.shop import (
    FIELDS,
    IS_READY,
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
from tests.browser import Browser, Page
from tests.live import LiveApp
from tests.services import Service

HALF_HOURS = ["09:00", "09:30", "10:00", "10:30", "11:00", "11:30"]


# --- Time -----------------------------------------------------------------------------------------
CHANGE = {"from": "2031-10-25 00:00:00", "to": "2031-10-27 00:00:00", "length": "1 hour"}
NIGHT = [{"allow_hours": {"start": 0, "end": 5}}]


@pytest.mark.parametrize("width", WIDTHS)
def test_repeated_hour_shows_offsets(browser: Browser, app: LiveApp, width: int) -> None:
    shop = Shop(app, availability=CHANGE, rules=NIGHT)
    page = shop.open(browser, width)

    page.click("[data-date='2031-10-26']")
    page.save_screenshot(f"book-clock-change-{width}", whole=True)
    times = page.texts("#times li")
    page.click("#times li:nth-child(4) button")
    fill_in(page, **MARTY)
    submit(page)

    assert times == ["00:00", "01:00", "02:00 UTC+02:00", "02:00 UTC+01:00", "03:00", "04:00"]
    assert done(page).splitlines()[2] == (
        "Sunday, 26 October 2031, 02:00 UTC+01:00 – 03:00 (Europe/Berlin)"
    )
    assert shop.bookings()[0]["event"]["start"] == "2031-10-26T01:00:00+00:00"
    check_quiet(page, app)


def test_times_are_in_the_zone_of_the_browser(browser: Browser, app: LiveApp) -> None:
    shop = Shop(app, availability=CHANGE, rules=NIGHT)
    page = shop.open(browser, zone="America/New_York")

    zone = page.evaluate("document.querySelector('#zone').value")
    days = page.texts("#days button .unseen")
    page.click("[data-date='2031-10-25']")
    times = page.texts("#times li")
    choose(page, "21:00")
    fill_in(page, **MARTY)
    submit(page)

    assert (zone, days) == (
        "America/New York",
        ["Friday, 24 October 2031", "Saturday, 25 October 2031"],
    )
    assert times == ["18:00", "19:00", "20:00", "21:00", "22:00", "23:00"]
    said = done(page)
    assert "Saturday, 25 October 2031, 21:00 – 22:00 (America/New York)" in said
    assert "Europe/Berlin: Sunday, 26 October 2031, 02:00 UTC+01:00 – 03:00" in said
    assert shop.bookings()[0]["customers"][0]["timezone"] == "America/New_York"
    check_quiet(page, app)


def test_zone_is_found_by_search(browser: Browser, app: LiveApp) -> None:
    page = Shop(app).open(browser, zone="Asia/Tokyo")
    before = page.texts("#times li")

    page.evaluate("document.querySelector('#zone').focus()")
    page.wait_for("document.querySelectorAll('#zones li').length > 20")
    marked = page.texts("#zones [aria-selected=true]")
    page.evaluate("document.querySelector('#zone').select()")
    page.type("new york")
    page.wait_for("document.querySelectorAll('#zones li').length == 1")
    page.press("Enter")

    assert marked[0].startswith("Asia/Tokyo\nUTC+09:00 · now ")
    assert (before[0], page.texts("#times li")[0]) == ("17:00", "03:00")
    assert page.texts("#status") == ["Times are shown in America/New York."]
    assert page.evaluate("document.querySelector('#zone').value") == "America/New York"
    assert page.evaluate("location.search") == "?timezone=America/New_York"


def test_zones_have_their_current_names(browser: Browser, app: LiveApp) -> None:
    found = {}
    page = Shop(app).open(browser, zone="Asia/Calcutta")
    own = page.evaluate("document.querySelector('#zone').value")

    page.evaluate("document.querySelector('#zone').focus()")
    page.wait_for("document.querySelectorAll('#zones li').length > 20")
    for typed in ("calcutta", "kiev", "+05:45", "nowhere"):
        before = page.texts("#zones li")
        page.evaluate("document.querySelector('#zone').select()")
        page.type(typed)
        page.wait_for(
            "document.querySelectorAll('#zones li').length == 1"
            f" && document.querySelector('#zones li').innerText.trim() != {before[0]!r}"
        )
        found[typed] = [text.split("\n")[0] for text in page.texts("#zones li")]

    assert own == "Asia/Kolkata"
    assert found == {
        "calcutta": ["Asia/Kolkata"],
        "kiev": ["Europe/Kyiv"],
        "+05:45": ["Asia/Kathmandu"],
        "nowhere": ["No time zone matches."],
    }


def test_the_clock_has_twelve_or_24_hours(browser: Browser, app: LiveApp) -> None:
    shop = Shop(app)
    page = shop.open(browser)
    usual = page.texts("#times li")[0], page.texts("#clock [aria-pressed=true]")

    page.click("#clock [data-clock=h12]")
    chosen = page.texts("#times li")[0], page.texts("#clock [aria-pressed=true]")
    page.send("Page.reload")
    page.wait_for(f"{IS_READY} && document.querySelector('#times button')")

    assert (usual, chosen) == (("09:00", ["24 h"]), ("9:00\u00a0am", ["12 h"]))
    assert page.texts("#times li")[0] == "9:00\u00a0am"


@pytest.mark.parametrize(
    ("language", "words", "clock"),
    [
        ("en-US", "9:00\u00a0am", "h12"),
        pytest.param("en-GB", "09:00", "h23", marks=pytest.mark.deep),
        pytest.param("de-DE", "09:00", None, marks=pytest.mark.deep),  # one clock: no choice
    ],
)
def test_clock_format_follows_the_region_of_the_browser(
    browser: Browser, app: LiveApp, language: str, words: str, clock: str | None
) -> None:
    """From the first paint on, so that no time changes when the script starts."""
    shop = Shop(app)

    first = open_without_scripts(browser, shop.url, language)
    page = shop.open(browser, language=language)

    assert [each.texts("#times li")[0] for each in (first, page)] == [words, words]
    pressed = "document.querySelector('#clock [aria-pressed=true]')?.dataset.clock ?? null"
    assert page.evaluate(pressed) == clock


def open_without_scripts(browser: Browser, url: str, language: str = "en-GB") -> Page:
    page = browser.open("about:blank", language=language, width=390)
    page.send("Emulation.setScriptExecutionDisabled", value=True)
    page.send("Page.navigate", url=url)
    deadline = time.monotonic() + 60
    while not page.evaluate("document.readyState == 'complete' && !!document.querySelector('h1')"):
        assert time.monotonic() < deadline
    return page


def test_days_and_times_are_readable_without_scripts(browser: Browser, app: LiveApp) -> None:
    """At 390 px too, where a script would show one step at a time."""
    shop = Shop(app)
    page = open_without_scripts(browser, shop.url)

    first = page.texts("#times li")
    parts = "[...document.querySelectorAll('#days, #hours')]"
    shown = page.evaluate(f"{parts}.map(e => e.checkVisibility())")
    address = page.evaluate("document.querySelectorAll('#days a.day')[1].href")
    page = open_without_scripts(browser, address)

    assert (first, shown) == (HALF_HOURS, [True, True])
    assert page.texts("#day") == ["Tuesday, 4 March 2031"]
    assert page.texts("noscript") == ["Please enable JavaScript to book on this page."]
    check_quiet(page, app)


@pytest.mark.parametrize(
    ("width", "language"),
    [
        (390, "ar"),
        *(
            pytest.param(390, language, marks=pytest.mark.deep)
            for language in ("en-US", "en-GB", "pl")
        ),
        *(
            pytest.param(1280, language, marks=pytest.mark.deep)
            for language in ("en-US", "en-GB", "pl", "ar")
        ),
    ],
)
def test_a_range_of_times_does_not_wrap(
    browser: Browser, app: LiveApp, width: int, language: str
) -> None:
    """Of a project without a length, whose times are whole stretches."""
    shop = Shop(app, availability={"length": None}, rules=[
        {"allow_weekdays": {}}, {"allow_hours": {"start": 10, "end": 12}},
    ])  # fmt: skip
    page = shop.open(browser, width, language=language)
    page.evaluate("document.querySelector('#days button').click()")
    page.save_screenshot(f"book-ranges-{language}-{width}", whole=True)

    heights = page.evaluate(
        "[...new Set([...document.querySelectorAll('#times button')].map(b => b.offsetHeight))]"
    )

    assert heights == [48]
    assert len(page.texts("#times li")) == 1


# --- Weeks and the address ------------------------------------------------------------------------
def test_later_weeks_are_loaded(browser: Browser, app: LiveApp) -> None:
    """Weeks without a free time name the next free date."""
    rules = [*NINE_TO_NOON_OF_TWO_DAYS]
    shop = Shop(app, rules=rules, availability={"to": "2031-09-01 00:00:00"})
    page = shop.open(browser)
    first = page.texts("#month, #days button .unseen")
    has_earlier = page.evaluate("!document.querySelector('#earlier').hidden")

    page.click("#later")
    page.wait_for("!!document.querySelector('#none button')")
    nothing = page.texts("#month, #none > *")
    page.click("#none button")
    page.wait_for("document.activeElement.dataset.date == '2031-08-04'")

    assert (first, has_earlier) == (["March – April 2031", "Monday, 3 March 2031"], False)
    assert nothing == [
        "April – May 2031",
        "No free times in these weeks.",
        "Next free date: Monday, 4 August 2031",
    ]
    assert page.texts("#day") == ["Monday, 4 August 2031"]
    assert page.texts("#times li") == HALF_HOURS
    assert page.evaluate("document.querySelector('#later').hidden")
    check_quiet(page, app)


def test_last_days_of_a_month_are_followed_by_the_next_one(browser: Browser, app: LiveApp) -> None:
    """Five weeks are shown, whatever the month."""
    window = {"from": "2031-03-27 00:00:00", "to": "2031-05-30 00:00:00"}
    page = Shop(app, availability=window).open(browser)
    shown = page.texts("#days td")
    first = page.evaluate("document.querySelector('#days button').dataset.date")

    page.click("[data-date='2031-04-01']")
    day = page.texts("#day") + page.texts("#times li")
    page.click("#later")
    page.wait_for("document.querySelectorAll('#days td')[0].innerText.startsWith('28')")

    assert (len(shown), first) == (35, "2031-03-27")
    assert (shown[0], shown[8].split("\n")[:2], shown[34]) == ("24", ["Apr", "1"], "27")
    assert day == ["Tuesday, 1 April 2031", *HALF_HOURS]
    assert page.texts("#month") == ["April – May 2031"]
    assert page.evaluate("location.search") == "?week=2031-04-28"
    check_quiet(page, app)


def test_keys_turn_the_weeks_and_say_where_they_end(browser: Browser, app: LiveApp) -> None:
    page = Shop(app, availability={"to": "2031-04-30 00:00:00"}).open(browser)
    page.evaluate("document.querySelector('[data-date=\"2031-03-03\"]').focus()")

    said = []
    for key in ("PageUp", "PageDown", "PageDown"):
        before = page.texts("#status")
        page.press(key)
        page.wait_for(f"document.querySelector('#status').innerText != {before[0]!r}")
        page.wait_for("!!document.activeElement.dataset.date")
        focused = page.evaluate("document.activeElement.dataset.date")
        said.append((page.texts("#status")[0], focused))

    assert said == [
        ("There are no earlier times.", "2031-03-03"),
        ("April 2031", "2031-04-07"),
        ("There are no later times.", "2031-04-07"),
    ]
    check_quiet(page, app)


@pytest.mark.parametrize("query", ["date=2025-01-01", "date=2025-01-01&time=2025-01-01T09:00:00Z"])
def test_link_to_the_past_offers_the_next_free_time(
    browser: Browser, app: LiveApp, query: str
) -> None:
    shop = Shop(app)
    page = browser.open(f"{shop.url}?{query}", zone="Europe/Berlin")
    page.wait_for("!!document.querySelector('#notice button')")
    notice = page.texts("#notice p") + page.texts("#notice button")
    shown = page.texts("#month") + page.texts("#day")

    page.click("#notice button")
    page.wait_for("!document.querySelector('#form').hidden")

    assert notice == [
        "This time is in the past. Next free:",
        "Monday, 3 March 2031, 09:00 – 09:30",
    ]
    assert shown == ["March 2031", "Monday, 3 March 2031"]
    assert page.texts("#chosen") == ["Monday, 3 March 2031, 09:00 – 09:30"]
    check_quiet(page, app)


@pytest.mark.parametrize("width", WIDTHS)
def test_back_and_forward_buttons(browser: Browser, app: LiveApp, width: int) -> None:
    shop = Shop(app, reservation_time=300)
    page = shop.open(browser, width)
    page.click("[data-date='2031-03-04']")
    choose(page, "10:00")
    page.wait_for("!!document.querySelector('#held').innerText")
    fill_in(page, **MARTY)
    address = page.evaluate("location.search")

    page.evaluate("history.back()")
    page.wait_for("document.querySelector('#form').hidden")
    page.wait_for("document.querySelectorAll('#times li').length == 6")
    day = page.texts("#day")
    page.evaluate("history.forward()")
    page.wait_for("!document.querySelector('#form').hidden")

    assert address == "?date=2031-03-04&time=2031-03-04T09:00:00Z"
    assert day == ["Tuesday, 4 March 2031"]
    assert page.texts("#chosen") == ["Tuesday, 4 March 2031, 10:00 – 10:30"]
    page.wait_for("!!document.querySelector('#held').innerText")
    check_quiet(page, app)


def test_reload_keeps_slot_and_answers(browser: Browser, app: LiveApp) -> None:
    shop = Shop(app, reservation_time=300, customer_fields=FIELDS)
    page = shop.open(browser)
    choose(page, "09:30")
    page.wait_for("!!document.querySelector('#held').innerText")
    fill_in(page, **MARTY, comment="A\nB")
    page.click("[data-key=terms] input")
    page.evaluate("document.querySelector('[data-key=insurance] select').value = 'Private'")
    page.evaluate(f"{INSURANCE}.dispatchEvent(new Event('input', {{bubbles: true}}))")

    page.send("Page.reload")
    page.wait_for("document.querySelector('#held')?.innerText?.includes('holding this time')")
    chosen = page.texts("#chosen")
    submit(page)
    said = done(page)
    page.send("Page.reload")
    page.wait_for(f"{IS_READY} && document.querySelector('#done h2')")

    assert chosen == ["Monday, 3 March 2031, 09:30 – 10:00"]
    assert done(page) == said
    [booking] = shop.bookings()
    assert booking["customers"][0]["meta"] == {
        "comment": "A\nB",
        "insurance": "Private",
        "terms": True,
    }


INSURANCE = "document.querySelector('[data-key=insurance] select')"


def test_query_parameters_prefill_the_form(browser: Browser, app: LiveApp) -> None:
    member = {"title": "Member", "prefilled": "4711", "readonly": True}
    shop = Shop(app, customer_fields={**FIELDS, "member": member})
    answers = "name=Marty%20McFly&email=marty@example.com&comment=Hi&terms=yes&insurance=Public"
    day = "date=2031-03-05&timezone=Asia/Kolkata&member=1&utm_source=mail"
    page = browser.open(f"{shop.url}?{answers}&{day}", zone="Europe/Berlin")
    page.wait_for(IS_READY)

    times = page.texts("#day") + page.texts("#times li")[:1]
    choose(page, "13:30")
    submit(page)

    assert times == ["Wednesday, 5 March 2031", "13:30"]
    assert done(page).splitlines()[2] == ("Wednesday, 5 March 2031, 13:30 – 14:00 (Asia/Kolkata)")
    [customer] = shop.bookings()[0]["customers"]
    assert {key: customer[key] for key in ("name", "email", "timezone", "meta")} == {
        **MARTY,
        "timezone": "Asia/Kolkata",
        "meta": {"comment": "Hi", "terms": True, "insurance": "Public", "member": "4711"},
    }
    check_quiet(page, app)


def test_taken_slot_in_the_url_offers_other_slots(browser: Browser, app: LiveApp) -> None:
    shop = Shop(app)
    shop.book()

    page = browser.open(f"{shop.url}?date={MONDAY}&time={MONDAY}T08:00:00Z", zone="Europe/Berlin")
    page.wait_for("!!document.querySelector('#notice p')")

    assert page.texts("#notice") == ["This time has just been taken. Please choose another one."]
    assert page.texts("#times li") == HALF_HOURS[1:]
    assert page.evaluate("location.search") == f"?date={MONDAY}"


@pytest.mark.parametrize("width", WIDTHS)
def test_first_slot_is_on_the_first_screen(browser: Browser, app: LiveApp, width: int) -> None:
    page = Shop(app).open(browser, width)
    first = "#soonest button" if width < 820 else "#times button"
    page.wait_for(f"!!document.querySelector('{first}')")

    box = page.evaluate(f"document.querySelector('{first}').getBoundingClientRect().toJSON()")

    assert 0 < box["bottom"] < 640
    assert page.texts("#soonest") == ["Next free time: Monday, 3 March 2031, 09:00"]


@pytest.mark.deep
def test_first_slot_is_on_the_first_screen_with_every_option(
    browser: Browser, live_service: Service
) -> None:
    """On a phone, below a cover text, a long name, lengths and people."""
    app = LiveApp(live_service)
    look = {
        "cover_text": "Welcome to the harbour. Please come ten minutes early, and bring your card"
        " and the list of your medicines.",
    }
    app.call("PUT", f"/v2/apps/{app.slug}", {"settings": look})
    person = {"timezone": "Europe/Berlin", "availability_constraints": NINE_TO_NOON}
    people = [
        app.post("/v2/resources", {**person, "name": f"Dr. {each}"}).data["id"] for each in "ABCDEF"
    ]
    lengths = {"length": "30 minutes", "lengths": ["30 minutes", "1 hour", "2 hours"]}
    name = "Initial consultation with an examination"
    shop = Shop(app, name=name, availability=lengths, settings={"choose_resource": True})
    resources = [shop.resource["id"], *people]
    app.call("PUT", f"/v2/projects/{shop.project['id']}", {"resources": resources})
    page = shop.open(browser, 390)
    page.wait_for("!!document.querySelector('#soonest button')")

    bottom = page.evaluate("document.querySelector('#soonest').getBoundingClientRect().bottom")
    page.save_screenshot("book-everything-390", whole=True)

    assert 0 < bottom < 640


LONG_TEXT = "Welcome to the harbour. Please come ten minutes early.\n\n" + "Bring your card. " * 55
TALL_OF = {390: 844, 1280: 800}
COVER = "document.querySelector('.cover p')"


@pytest.mark.parametrize(
    ("width", "language"),
    [
        (390, "ar"),
        pytest.param(1280, "en", marks=pytest.mark.deep),
        pytest.param(390, "en", marks=pytest.mark.deep),
        pytest.param(1280, "ar", marks=pytest.mark.deep),
    ],
)
def test_long_cover_text_is_collapsed(
    browser: Browser, live_service: Service, axe: str, width: int, language: str
) -> None:
    """The first time stays on the first screen; the text is opened with a key."""
    app = LiveApp(live_service)
    app.call("PUT", f"/v2/apps/{app.slug}", {"settings": {"cover_text": LONG_TEXT}})
    shop = Shop(app)
    page = shop.open(browser, width, height=TALL_OF[width], language=language)
    first = "#soonest button" if width < 820 else "#times button"
    page.wait_for(f"!!document.querySelector('{first}')")
    label = "document.querySelector('.cover summary').innerText"

    bottom = page.evaluate(f"document.querySelector('{first}').getBoundingClientRect().bottom")
    closed = page.evaluate(f"{COVER}.offsetHeight"), page.evaluate(label)
    page.save_screenshot(f"book-long-cover-{width}-{language}", whole=True)
    check_access(page, axe, width)
    page.evaluate("document.querySelector('.cover summary').focus()")
    page.press("Enter")
    page.wait_for("document.querySelector('.cover details').open")
    whole = page.evaluate(f"{COVER}.offsetHeight === {COVER}.scrollHeight"), page.evaluate(label)
    page.save_screenshot(f"book-long-cover-opened-{width}-{language}", whole=True)
    check_access(page, axe, width)

    more, less = {"en": ("Show more", "Show less"), "ar": ("عرض المزيد", "عرض أقل")}[language]
    assert 0 < bottom < TALL_OF[width]
    assert (closed, whole) == ((48, more), (True, less))
    assert page.evaluate(f"{COVER}.textContent") == LONG_TEXT.strip()


def test_short_cover_text_is_not_collapsed(browser: Browser, live_service: Service) -> None:
    """Four lines of a phone are one of a wide screen."""
    app = LiveApp(live_service)
    text = "Please come ten minutes early, and bring your card. " * 3
    app.call("PUT", f"/v2/apps/{app.slug}", {"settings": {"cover_text": text}})
    shop = Shop(app)

    shown = {}
    for width in (390, 1280):
        page = shop.open(browser, width)
        is_cut = f"{COVER}.offsetHeight < {COVER}.scrollHeight"
        has_button = "document.querySelector('.cover summary').checkVisibility()"
        shown[width] = page.evaluate(f"[{is_cut}, {has_button}]")

    assert shown == {390: [True, True], 1280: [False, False]}


@pytest.mark.deep
def test_dates_begin_headings_with_a_capital_letter(browser: Browser, app: LiveApp) -> None:
    """In languages that write months and weekdays small, too."""
    page = Shop(app).open(browser, language="it")

    words = page.evaluate("['month', 'day'].map(id => document.getElementById(id).textContent)")
    first = "getComputedStyle(document.getElementById(id), '::first-letter').textTransform"

    assert words == ["marzo 2031", "lunedì 3 marzo 2031"]
    assert page.evaluate(f"['month', 'day'].map(id => {first})") == ["uppercase", "uppercase"]


NINE_TO_NOON_OF_TWO_DAYS = [
    {"allow_period": {"start": "2031-03-03 09:00:00", "end": "2031-03-03 12:00:00"}},
    {"allow_period": {"start": "2031-08-04 09:00:00", "end": "2031-08-04 12:00:00"}},
]
