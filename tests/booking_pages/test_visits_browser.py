"""A visit of two steps on the booking page."""

import pytest

from tests.booking_pages.shop import MARTY, MONDAY, Shop, choose, done, fill_in, submit
from tests.browser import Browser
from tests.live import LiveApp


@pytest.mark.parametrize("width", [390, 1280])
def test_a_visit_is_booked(browser: Browser, app: LiveApp, width: int) -> None:
    shop = Shop(app)
    other = app.post("/v2/resources", {"name": "Hanna", "timezone": "Europe/Berlin"}).data["id"]
    steps = [
        {"name": "cleaning", "length": "30 mins", "resources": [other]},
        {"name": "check-up", "length": "1 hour", "resources": [shop.resource["id"]]},
    ]
    given = {"steps": steps, "availability": {"timeslot_increments": "30 mins"}}
    app.call("PUT", f"/v2/projects/{shop.project['id']}", given)
    page = shop.open(browser, width=width)

    choose(page, "09:30")
    page.save_screenshot(f"visit-form-{width}", whole=True)
    fill_in(page, **MARTY)
    submit(page)
    text = done(page)
    page.save_screenshot(f"visit-done-{width}", whole=True)

    (booking,) = shop.bookings()
    steps_url = f"/v2/bookings/{booking['id']}?include=steps"
    times = [(step["name"], step["start"][11:16]) for step in app.get(steps_url).data["steps"]]
    assert booking["event"]["start"].startswith(MONDAY)
    assert [name for name, _ in times] == ["cleaning", "check-up"]
    assert "09:30" in text
    assert "11:00" in text
