"""Programs that were made for Timekit, unmodified: its SDK, and three versions of its widget."""

import json
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.browser import Browser
from tests.live import LiveApp
from tests.node_tools import install_tools
from tests.services import Service
from tests.sinks import Answer, HookSink, hook_sink

pytestmark = pytest.mark.deep

TOOLS = Path(__file__).parent / "clients" / "timekit"
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Shop</title>
<link rel="stylesheet" href="/widget.css"><div id="bookingjs"></div>
<script src="/jquery.js"></script><script src="/widget.js"></script>
<script>new TimekitBooking().init({config})</script></html>"""
SERVICE = {"availability": {"length": "1 hour"}, "booking": {"graph": "instant", "what": "Shave"}}


@pytest.fixture
def app(live_service: Service) -> LiveApp:
    return LiveApp(live_service)


@pytest.fixture(scope="module")
def modules() -> Path:
    return install_tools(TOOLS)


@pytest.fixture
def web_site() -> Iterator[HookSink]:
    with hook_sink() as sink:
        yield sink


def test_the_sdk_makes_its_calls(app: LiveApp, modules: Path) -> None:
    program = modules.parent / "sdk.cjs"
    program.write_bytes((TOOLS / "sdk.cjs").read_bytes())

    done = subprocess.run(
        ["node", program, app.url, app.key or ""], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    answers = dict(told.split(" ", 1) for told in json.loads(done.stdout))
    assert {
        name for name, status in answers.items() if status not in ("200", "201", "204")
    } == set()
    assert len(answers) == 42


def config_of_widget(version: int, app: LiveApp) -> dict[str, Any]:
    """What a web site with this version has in its page, for an app with one service."""
    person = {"name": "Ada", "timezone": "UTC", "email": f"ada@{app.slug}.example.com"}
    ada = app.post("/v2/resources", person).data
    if version == 1:  # before projects: a resource and its key
        [calendar] = app.get(f"/v2/resources/{ada['id']}?include=calendars").data["calendars"]
        return {
            **{"name": "Ada", "email": ada["email"], "apiToken": ada["api_token"]},
            **{"calendar": calendar["id"], "app": app.slug, "disableRemoteLoad": True},
            "timekitConfig": {"apiBaseUrl": f"{app.url}/"},
            "timekitFindTime": {
                "emails": [ada["email"]],
                "length": "1 hour",
                "future": "1 week",
                "filters": {"and": [{"business_hours": {}}]},
            },
        }
    project = app.post("/v2/projects", {"name": "Shave", "resources": [ada["id"]], **SERVICE}).data
    named = {"app_key": app.widget_key, "project_id": project["id"]}
    return named | {"api_base_url": f"{app.url}/", "sdk": {"apiBaseUrl": f"{app.url}/"}}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_widget_books(
    browser: Browser, app: LiveApp, modules: Path, web_site: HookSink, version: int
) -> None:
    folder = modules / f"timekit-booking-{version}" / ("public/build" if version == 3 else "dist")
    files = {"/jquery.js": modules / "jquery/dist/jquery.min.js"}
    files["/widget.js"] = folder / "booking.min.js"
    if version == 3:
        files["/widget.css"] = folder / "booking.min.css"
    for path, file in files.items():
        kind = "text/css" if file.suffix == ".css" else "text/javascript"
        web_site.answers[path] = Answer(headers={"Content-Type": kind}, body=file.read_bytes())
    page = PAGE.format(config=json.dumps(config_of_widget(version, app)))
    web_site.answers["/shop"] = Answer(headers={"Content-Type": "text/html"}, body=page.encode())

    shop = browser.open(web_site.url("/shop"))
    # The veil over the times takes clicks for half a second after they are shown.
    shop.wait_for(
        "!!document.querySelector('.fc-event') && !document.querySelector('.bookingjs-loading')"
    )
    shop.click(".fc-event")
    shop.wait_for("!!document.querySelector('#bookingjs .bookingjs-form .input-email')")
    shop.save_screenshot(f"timekit-{version}")
    shop.type_into(".bookingjs-form .input-name", "Marty McFly")
    shop.type_into(".bookingjs-form .input-email", "marty@example.com")
    shop.click(".bookingjs-form-button")
    shop.wait_for("!!document.querySelector('.bookingjs-form.success')")
    shop.save_screenshot(f"timekit-{version}-booked")

    [booking] = app.get("/v2/bookings?include=customers,event").data
    start = datetime.fromisoformat(booking["event"]["start"])
    end = datetime.fromisoformat(booking["event"]["end"])
    assert booking["state"] == "confirmed"
    assert [each["email"] for each in booking["customers"]] == ["marty@example.com"]
    assert (end - start, start > datetime.now(UTC)) == (timedelta(hours=1), True)
