"""The same customer books, moves and cancels in each language: pages, dates and mails."""

import json
import re
from datetime import date, datetime
from typing import Any

import pytest
from django.utils import translation

from bookings.pages.formatting import (
    date_words,
    length_words,
    month_words,
    short_month_words,
    time_words,
)
from common.shipped_languages import TRANSLATED_PACKAGES, catalogue_folder, shipped_languages
from ops.translation_catalogues import read_catalogue
from tests.accessibility import load_axe
from tests.booking_pages.shop import IS_READY, MARTY, Shop, check_access, check_quiet
from tests.browser import Browser, Page, viewports
from tests.live import LiveApp
from tests.services import Service

MONDAY, TUESDAY = date(2031, 3, 3), date(2031, 3, 4)
# What people have typed, and names; not translated.
TYPED = (
    *("Check-up", "Demo", "Dr. Ada Berg", "Harbour Dental, Quay 5", "Europe/Berlin"),
    *("Bo Lind", "Welcome", "Quay 5", "Please bring your card."),
    *MARTY.values(),
)
ENGLISH_DATE = re.compile(r"\b(Monday|Tuesday|March|Mon|Tue)\b")
OTHER_DIGITS = re.compile(r"[٠-٩۰-۹]")
LETTER = re.compile(r"[^\W\d_]")
TEXTS = """
[document.title, ...document.body.innerText.split("\\n"),
 ...["aria-label", "placeholder", "title", "alt"].flatMap(name =>
   [...document.querySelectorAll(`[${name}]`)].map(one => one.getAttribute(name)))]
  .map(text => text.trim())
"""
# Kind, language, subject and text of each mail to the customer, as the worker would send it.
READ_MAILS = """
import json, re
from django.utils import timezone
from notifications.models import Delivery
from notifications.mails_and_calls import MailsAndCalls
rows = Delivery.objects.filter(booking_id="{booking_id}", type="email", recipient="customer")
rows = list(rows.order_by("id"))
batch = MailsAndCalls(rows, timezone.now())
mails = []
for row in rows:
    message = batch._mail(row, batch.apps[row.app_id]).args[0]
    page = message.alternatives[0][0]
    shown = re.search(r'<html lang="([^"]*)" dir="([^"]*)"', page).groups()
    mails.append([row.kind, shown, message.subject, message.body])
print(json.dumps(mails))
"""


class Visit:
    """What a customer reads on the way: lines of pages and mails, by step."""

    def __init__(self, app: LiveApp, browser: Browser, language: str, **window: Any) -> None:
        self.app = app
        self.language = language
        self.shop = Shop(app, customer_fields={"phone": {"format": "tel"}}, reservation_time=300)
        self.browser = browser
        self.window = {"zone": "Europe/Berlin", "language": language, **window}
        self.lines: dict[str, list[str]] = {}
        self.shown: set[tuple[str, str]] = set()
        self.mails: list[Any] = []
        self.first_time = ""

    def open(self, url: str, is_ready: str = "!!document.querySelector('h1')") -> Page:
        page = self.browser.open(url, **self.window)
        page.wait_for(f"document.readyState == 'complete' && {is_ready}")
        return page

    def read(self, page: Page, step: str) -> None:
        self.lines[step] = [line for line in page.evaluate(TEXTS) if LETTER.search(line)]
        html = "document.documentElement"
        self.shown.add((page.evaluate(f"{html}.lang"), page.evaluate(f"{html}.dir")))
        width, scheme = self.window.get("width", 1280), self.window.get("scheme", "light")
        page.save_screenshot(f"{self.language}-{step}-{width}-{scheme}", whole=True)
        assert page.evaluate("document.documentElement.scrollWidth") <= width

    def book(self) -> dict[str, str]:
        """Return the addresses of the links that follow, by their action."""
        page = self.open(f"{self.app.url}/book/{self.app.slug}")
        self.read(page, "app")
        page = self.open(self.shop.url, IS_READY)
        self.read(page, "month")
        page.click("[data-date='2031-03-03']")
        self.read(page, "times")
        self.first_time = page.texts("#times li")[0]
        page.evaluate("document.querySelector('#times button').click()")
        page.wait_for("!!document.querySelector('#held').innerText")
        page.click("#submit")
        self.read(page, "form")
        for key, answer in MARTY.items():
            page.evaluate(f"document.querySelector('[data-key={key}] input').focus()")
            page.type(answer)
        page.click("#submit")
        page.wait_for("!!document.querySelector('#done h2')")
        self.read(page, "done")
        links = page.evaluate("[...document.querySelectorAll('#done a')].map(a => a.href)")
        check_quiet(page, self.app)
        wanted = ("reschedule", "cancel_by_customer")
        return {name: next(link for link in links if name in link) for name in wanted}

    def move(self, link: str) -> None:
        page = self.open(link)
        page.click(".days li:nth-child(2) a")
        page.wait_for("location.search.includes('day=2031-03-04')")
        page.wait_for("document.readyState == 'complete'")
        self.read(page, "reschedule")
        self.press(page, "#times button", "#times label")
        self.read(page, "moved")

    def cancel(self, link: str) -> None:
        page = self.open(link)
        self.read(page, "cancel")
        self.press(page, "button[type=submit]")
        self.read(page, "cancelled")
        self.read(self.open(link), "cancelled again")

    def press(self, page: Page, button: str, *before: str) -> None:
        for selector in before:
            page.click(selector)
        heading = page.evaluate("document.querySelector('h1').innerText")
        page.click(button)
        page.wait_for(f"document.querySelector('h1')?.innerText != {heading!r}")
        page.wait_for("document.readyState == 'complete' && !!document.querySelector('h1')")

    def read_mails(self) -> None:
        [booking] = self.shop.bookings()
        printed = self.app.service.run(READ_MAILS.format(booking_id=booking["id"]))
        self.mails = json.loads(printed.splitlines()[-1])
        for kind, _, subject, text in self.mails:
            lines = [subject, *text.splitlines()]
            self.lines[f"mail {kind}"] = [line for line in lines if LETTER.search(line)]

    @property
    def state(self) -> str:
        return self.shop.bookings()[0]["state"]


def visit(app: LiveApp, browser: Browser, language: str, **window: Any) -> Visit:
    visit = Visit(app, browser, language, **window)
    links = visit.book()
    visit.move(links["reschedule"])
    visit.cancel(links["cancel_by_customer"])
    visit.read_mails()
    return visit


def same_in(language: str) -> set[str]:
    """What is the same in English, by the catalogues and CLDR."""
    locale = translation.to_locale(language)
    files = (
        catalogue_folder(package) / locale / "LC_MESSAGES" / "django.po"
        for package in TRANSLATED_PACKAGES
    )
    found = {each.id for file in files for each in read_catalogue(file) if each.id == each.string}
    with translation.override(language):
        return {*found, length_words(1800), short_month_words(date(2031, 4, 1))}


def without_names(line: str) -> str:
    for name in TYPED:
        line = line.replace(name, "")
    return re.sub(r"https?://\S+", "", line).strip(" ·-–:,\u200f\u200e")


def english_left(english: set[str], lines: list[str], language: str) -> list[str]:
    """The lines that an English page has too, apart from names, and those with an English date."""
    same = same_in(language)
    return [
        line
        for line in lines
        if ENGLISH_DATE.search(line)
        or (line in english and LETTER.search(rest := without_names(line)) and rest not in same)
    ]


@pytest.fixture(scope="module")
def app(live_service: Service) -> LiveApp:
    return LiveApp(live_service)


@pytest.fixture(scope="module")
def axe() -> str:
    return load_axe()


@pytest.fixture(scope="module")
def english(app: LiveApp, chromium: Browser) -> Visit:
    with chromium.context() as browser:
        return visit(app, browser, "en")


def test_a_visit_in_english(english: Visit) -> None:
    """The control of the others: all steps and mails are read."""
    assert list(english.lines) == [
        *("app", "month", "times", "form", "done", "reschedule", "moved"),
        *("cancel", "cancelled", "cancelled again"),
        *("mail confirmed", "mail rescheduled", "mail cancelled_by_customer"),
    ]
    assert english.shown == {("en", "ltr")}
    found = {step: english_left(set(lines), lines, "de") for step, lines in english.lines.items()}
    assert {step: bool(lines) for step, lines in found.items()} == dict.fromkeys(found, True)
    assert "Cancel the booking" in found["done"]


def check_translated(found: Visit, english: Visit) -> None:
    """No English line at any step, and dates and times of the language."""
    language = found.language
    known = {line for lines in english.lines.values() for line in lines}
    left = {step: english_left(known, lines, language) for step, lines in found.lines.items()}
    assert {step: lines for step, lines in left.items() if lines} == {}
    direction = "rtl" if language == "ar" else "ltr"
    assert found.shown == {(language, direction)}
    assert list(found.lines) == list(english.lines)
    assert [mail[1] for mail in found.mails] == [[language, direction]] * 3
    texts = {step: "\n".join(lines) for step, lines in found.lines.items()}
    assert [step for step, text in texts.items() if OTHER_DIGITS.search(text)] == []
    with translation.override(language):
        first, second = date_words(MONDAY), date_words(TUESDAY)
        month = month_words(MONDAY)
        nine = time_words(datetime(2031, 3, 3, 9))
    # A date at the beginning of a line begins with a capital letter.
    assert month.casefold() in texts["month"].casefold()
    assert found.first_time == nine
    assert [step for step in ("done", "moved", "mail confirmed") if nine not in texts[step]] == []
    for words, steps in [
        (first, ("times", "form", "done", "mail confirmed", "mail rescheduled")),
        (
            second,
            ("reschedule", "moved", "cancel", "mail rescheduled", "mail cancelled_by_customer"),
        ),
    ]:
        wanted = words.casefold()
        assert [step for step in steps if wanted not in texts[step].casefold()] == []
    assert found.state == "cancelled_by_customer"


# Each run: a language with long words, and one without spaces; from right to left below.
@pytest.mark.parametrize(
    "language",
    [
        pytest.param(code, marks=() if code in ("de", "ja") else pytest.mark.deep)
        for code in shipped_languages()[1:]
    ],
)
def test_a_customer_books_moves_and_cancels_in_each_language(
    browser: Browser, app: LiveApp, english: Visit, language: str
) -> None:
    check_translated(visit(app, browser, language), english)


@pytest.mark.parametrize(("width", "scheme"), viewports(only="narrow"))
def test_pages_from_right_to_left(
    browser: Browser, app: LiveApp, axe: str, english: Visit, width: int, scheme: str
) -> None:
    found = visit(app, browser, "ar", width=width, scheme=scheme)
    lengths = {"length": "30 minutes", "lengths": ["30 minutes", "1 hour"]}
    booking = {"what": "Check-up", "description": "Please bring your card."}
    shop = Shop(app, availability={**lengths, "to": "2031-06-01 00:00:00"}, booking=booking)
    window = {"width": width, "scheme": scheme, "zone": "Europe/Berlin", "language": "ar"}
    page = browser.open(f"{shop.url}?month=2031-04", **window)
    page.wait_for(f"{IS_READY} && !document.querySelector('#days[aria-busy]')")
    check_access(page, axe, width)
    page.click("#zone")
    page.wait_for("document.querySelectorAll('#zones li').length > 20")
    page.save_screenshot(f"ar-zones-{width}-{scheme}", whole=True)
    earlier, later = (page.box(f"#{name}")["x"] for name in ("earlier", "later"))
    page.evaluate("document.querySelector('#days [aria-pressed=true]').focus()")
    page.press("ArrowLeft")
    focused = page.evaluate("document.activeElement.dataset.date")
    page.press("Enter")
    page.save_screenshot(f"ar-choice-{width}-{scheme}", whole=True)
    services = browser.open(f"{app.url}/book/{app.slug}", **window)
    services.wait_for(
        "document.readyState == 'complete' && !!document.querySelector('.service span')"
    )

    check_translated(found, english)
    assert found.shown == {("ar", "rtl")}
    assert earlier > later
    assert focused == "2031-04-02"
    assert page.evaluate(HEIGHTS) == [48]
    assert len({*services.evaluate(STARTS)}) == 1
    check_quiet(page, app)


# The right edges of a service's name and description, in whole pixels.
STARTS = """
(() => {
  const card = document.querySelector(".service:has(span)");
  return ["strong", "span"].map(name => {
    const range = document.createRange();
    range.selectNodeContents(card.querySelector(name));
    return Math.round(range.getBoundingClientRect().right);
  });
})()
"""
# Of the buttons with a time: a time that wraps is higher.
HEIGHTS = "[...new Set([...document.querySelectorAll('#times button')].map(b => b.offsetHeight))]"
