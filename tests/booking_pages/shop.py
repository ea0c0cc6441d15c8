"""What the tests of the booking pages share: a live project, its page, and who looks at it."""

import json
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.accessibility import find_faults
from tests.browser import Browser, Page
from tests.live import LiveApp

# A Monday long after every other booking, and the three weeks from there.
MONDAY = "2031-03-03"
SPAN = {"from": f"{MONDAY} 00:00:00", "to": "2031-03-24 00:00:00"}
NINE_TO_NOON = [{"allow_weekdays": {}}, {"allow_hours": {"start": 9, "end": 12}}]
FIELDS = {
    "phone": {"title": "Phone", "format": "tel"},
    "comment": {"title": "What is it about?", "format": "textarea"},
    "insurance": {"title": "Insurance", "enum": ["Public", "Private"], "required": True},
    "terms": {"title": "I have read the terms", "format": "checkbox", "required": True},
}
FOLDER = Path(__file__).parent
WIDTHS = (390, pytest.param(1280, marks=pytest.mark.deep))
REFUSED = "Failed to load resource"  # what a console says of each answer of 400 or more


class Shop:
    """A project of a live app: half hours with Ada in Berlin, on weekdays from nine to twelve."""

    def __init__(self, app: LiveApp, **given: Any) -> None:
        self.app = app
        rules = given.pop("rules", NINE_TO_NOON)
        zone = given.pop("zone", "Europe/Berlin")
        terms = {**SPAN, "length": "30 minutes", **given.pop("availability", {})}
        ada = {"name": "Dr. Ada Berg", "timezone": zone, "availability_constraints": rules}
        self.resource = app.post("/v2/resources", ada).data
        wanted = {
            "name": "Check-up",
            "slug": f"check-up-{uuid.uuid4().hex[:8]}",
            "resources": [self.resource["id"]],
            "availability": terms,
            "booking": {"what": "Check-up", "where": "Harbour Dental, Quay 5"},
        }
        self.project = app.post("/v2/projects", {**wanted, **given}).data
        self.url = f"{app.url}/book/{self.project['slug']}"

    def book(self, start: str = f"{MONDAY} 09:00:00", end: str = f"{MONDAY} 09:30:00") -> Any:
        """By somebody else, through the API."""
        body = {
            "project_id": self.project["id"],
            "start": start,
            "end": end,
            "customer": {"name": "Doc Brown", "email": "doc@example.com"},
        }
        return self.app.post("/v2/bookings", body).data

    def bookings(self) -> list[Any]:
        """The oldest first."""
        found = f"/v2/bookings?search=project.id:{self.project['id']}&include=event,customers"
        return self.app.get(found).data[::-1]

    def open(self, browser: Browser, width: int = 1280, **visitor: Any) -> Page:
        visitor = {"zone": "Europe/Berlin", **visitor}
        page = browser.open(self.url, width=width, **visitor)
        page.wait_for(IS_READY)
        return page

    def links(self, booking: Mapping[str, Any]) -> dict[str, str]:
        """The addresses behind the buttons of mails, by action: only the service can sign them."""
        code = SIGNED_LINKS.format(booking_id=booking["id"])
        printed = self.app.service.run(code)
        links = json.loads(printed.splitlines()[-1])
        return {action: f"{self.app.url}{path}" for action, path in links.items()}

    def link(self, booking: Mapping[str, Any]) -> str:
        """That of the page where another time is chosen."""
        return self.links(booking)["reschedule"]


IS_READY = "document.querySelector('#zone')?.disabled === false"
SIGNED_LINKS = """
import json
from urllib.parse import urlsplit
from bookings.pages.action_links import action_url
from bookings.models import Booking
booking = Booking.objects.select_related("event").get(id="{booking_id}")
links = dict()
for action in ("confirm", "decline", "cancel_by_customer", "reschedule"):
    parts = urlsplit(action_url(booking, action, booking.event.end))
    links[action] = parts.path + "?" + parts.query
print(json.dumps(links))
"""


# --- What a visitor does --------------------------------------------------------------------------
def choose(page: Page, time: str) -> None:
    """The time of the day that is shown."""
    by_time = f"[...document.querySelectorAll('#times button')].find(b => b.innerText == {time!r})"
    page.wait_for(f"!!{by_time}")
    page.evaluate(f"{by_time}.click()")
    page.wait_for("!document.querySelector('#form').hidden")


def fill_in(page: Page, **answers: str) -> None:
    for key, answer in answers.items():
        page.evaluate(f"document.querySelector('[data-key={key}] :is(input, textarea)').select()")
        page.type(answer)


MARTY = {"name": "Marty McFly", "email": "marty@example.com"}


def submit(page: Page) -> None:
    page.click("#submit")


def done(page: Page) -> str:
    """What stands there when it is booked."""
    page.wait_for("!!document.querySelector('#done h2')")
    return page.evaluate("document.querySelector('#done').innerText")


def check_quiet(page: Page, app: LiveApp, *refusals: str) -> None:
    """Nothing went wrong, and nobody else was asked. `refusals`: statuses that were to come."""
    said = [
        complaint
        for complaint in page.complaints
        if not (refusals and complaint.startswith(REFUSED))
    ]
    failed = [failure for failure in page.failures if not failure.endswith(refusals or ("none",))]
    assert (said, failed) == ([], [])
    hosts = {urlsplit(url).netloc for url in page.requests if not url.startswith("data:")}
    assert hosts == {urlsplit(app.url).netloc}


# --- How it looks ---------------------------------------------------------------------------------
def check_access(page: Page, axe: str, width: int) -> None:
    """No serious or critical fault by axe-core, nothing wider than the window."""
    assert find_faults(page, axe) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(SMALL_TARGETS) == []


# Buttons, links and fields that a finger would miss. A field that its label covers counts with it.
SMALL_TARGETS = """
[...document.querySelectorAll("button, select, input, textarea, .day, .quiet, label.time, .check")]
  .filter(one => one.matches("label") || !one.closest("label"))
  .filter(one => one.getClientRects().length)
  .filter(one => {
    const { width, height } = one.getBoundingClientRect();
    return Math.min(width, height) < 44;
  })
  .map(one => one.outerHTML)
"""
