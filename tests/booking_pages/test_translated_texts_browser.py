"""A page with translated texts in a real browser: what is sent are the project's own choices."""

from tests.booking_pages.shop import (
    FIELDS,
    MARTY,
    Shop,
    check_access,
    check_quiet,
    choose,
    done,
    fill_in,
    submit,
)
from tests.browser import Browser
from tests.live import LiveApp

GERMAN = {
    "name": "Kontrolle",
    "where": "Praxis am Hafen, Kai 5",
    "submit_button": "Jetzt buchen",
    "success_message": "Bis bald, %s!",
    "questions": {
        "insurance": {
            "title": "Versicherung",
            "choices": {"Public": "Gesetzlich", "Private": "Privat"},
        },
        "terms": {"title": "Ich habe die Bedingungen gelesen"},
    },
}


def test_customer_books_in_the_language_of_the_translation(
    browser: Browser, app: LiveApp, axe: str
) -> None:
    shop = Shop(app, customer_fields=FIELDS, translations={"de": GERMAN})
    page = shop.open(browser, 390, language="de")

    heading = page.texts("h1")
    choose(page, "09:00")
    options = page.texts("[data-key=insurance] option")
    fill_in(page, **MARTY)
    page.evaluate("document.querySelector('[data-key=insurance] select').selectedIndex = 1")
    page.click("[data-key=terms] input")
    button = page.texts("#submit")
    check_access(page, axe, 390)
    page.save_screenshot("translated-texts-390")
    submit(page)
    lines = done(page).split("\n\n")

    assert (heading, options, button) == (
        ["Kontrolle"],
        ["", "Gesetzlich", "Privat"],
        ["Jetzt buchen"],
    )
    assert lines[3].startswith("Ort: Praxis am Hafen, Kai 5 ")
    assert lines[4] == "Bis bald, marty@example.com!"
    links = page.evaluate("[...document.querySelectorAll('#done a')].map((one) => one.href)")
    [google] = [link for link in links if "google" in link]
    assert "location=Praxis+am+Hafen%2C+Kai+5" in google
    [booking] = shop.bookings()
    assert (booking["event"]["what"], booking["event"]["where"]) == (
        "Check-up",
        "Harbour Dental, Quay 5",
    )
    [customer] = booking["customers"]
    assert customer["meta"] == {"insurance": "Public", "terms": True, "language": "de"}
    check_quiet(page, app)


def test_a_place_with_placeholders_is_translated(browser: Browser, app: LiveApp) -> None:
    booking = {"what": "Check-up", "where": "Door code {booking_id} (from {start})"}
    german = {"where": "Türcode {booking_id}, ab {start}"}
    shop = Shop(app, booking=booking, translations={"de": german})
    page = shop.open(browser, language="de")

    choose(page, "09:00")
    fill_in(page, **MARTY)
    submit(page)
    lines = done(page).split("\n\n")

    [made] = shop.bookings()
    start = made["event"]["where"].removesuffix(")").split("from ")[1]
    assert lines[3].startswith(f"Ort: Türcode {made['id']}, ab {start} ")
    check_quiet(page, app)
