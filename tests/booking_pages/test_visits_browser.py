"""A visit of two steps on the booking page."""

import pytest

from tests.booking_pages.shop import (
    IS_READY,
    MARTY,
    MONDAY,
    NINE_TO_NOON,
    SPAN,
    Shop,
    choose,
    done,
    fill_in,
    submit,
)
from tests.browser import Browser
from tests.live import LiveApp


@pytest.mark.parametrize("width", [390, 1280])
def test_a_visit_is_booked_with_a_chosen_person(browser: Browser, app: LiveApp, width: int) -> None:
    shop = Shop(app, settings={"choose_resource": "check-up"})
    hours = {"timezone": "Europe/Berlin", "availability_constraints": NINE_TO_NOON}
    ben = app.post("/v2/resources", {"name": "Dr. Ben Cole", **hours}).data["id"]
    other = app.post("/v2/resources", {"name": "Hanna", **hours}).data["id"]
    steps = [
        {"name": "cleaning", "length": "30 mins", "resources": [other]},
        {"name": "check-up", "length": "1 hour", "resources": [shop.resource["id"], ben]},
    ]
    given = {"steps": steps, "availability": {**SPAN, "timeslot_increments": "30 mins"}}
    app.call("PUT", f"/v2/projects/{shop.project['id']}", given)
    page = shop.open(browser, width=width)

    facts = page.texts("dt")
    page.evaluate(f"document.querySelector('a[href*=\"resource={ben}\"]').click()")
    page.wait_for(f"location.search.includes('{ben}')")
    page.wait_for(IS_READY)
    choose(page, "09:30 – 11:00")
    page.save_screenshot(f"visit-form-{width}", whole=True)
    fill_in(page, **MARTY)
    submit(page)
    text = done(page)
    page.save_screenshot(f"visit-done-{width}", whole=True)

    (booking,) = shop.bookings()
    steps_url = f"/v2/bookings/{booking['id']}?include=steps"
    booked = [
        (step["name"], [each["name"] for each in step["resources"]])
        for step in app.get(steps_url).data["steps"]
    ]
    assert booking["event"]["start"].startswith(MONDAY)
    assert booked == [("cleaning", ["Hanna"]), ("check-up", ["Dr. Ben Cole"])]
    assert "Length" not in facts
    assert "09:30 – 10:00 cleaning (Hanna)\n10:00 – 11:00 check-up (Dr. Ben Cole)\n" in text
    assert "09:30 – 11:00" in text
