"""Today's list on a device: what is stored, when it is shown without a connection, and when it is
deleted.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.contrib.sessions.models import Session
from django.urls import reverse

from apps_config.models import Account
from tests.accessibility import find_faults, load_axe
from tests.browser import Page, viewports
from tests.office.conftest import Visit, logged_in, member_of
from tests.office.test_desk_in_a_browser import book_from_now, zone
from tests.world import Tenant

__all__ = ["zone"]

TODAY = "/admin/"
BOOKINGS = "/admin/bookings/booking/?tab=upcoming"
SWITCH = "#office-offline"
LIST = "office-offline-list"
IS_KEPT = f"localStorage.getItem({LIST!r}) !== null"
# Names of all that a page can store.
STORED = """(async () => JSON.stringify([
  Object.keys(localStorage).filter((name) => name.startsWith("office")).sort(),
  await caches.keys(),
  (await navigator.serviceWorker.getRegistrations()).length,
]))()"""
NOTHING = [[], [], 0]
HEADINGS = "h1, #list:not([hidden]) h2"
SHOWN = "[...document.querySelectorAll('#entries > div')].map((row) => row.innerText)"

pytestmark = pytest.mark.usefixtures("zone")


@pytest.fixture
def booking(office: Tenant, zone: None, ada: Any) -> Any:
    return book_from_now(office, ada, "Marty McFly", note="Afraid of needles")


def stored_on(page: Page) -> Any:
    return json.loads(page.evaluate_promise(STORED))


def list_on(page: Page) -> Any:
    return json.loads(page.evaluate(f"localStorage.getItem({LIST!r})"))


def switch_on(shown: Visit) -> Page:
    """Keep the list on this device: until page and worker are stored, too."""
    shown.page.click(SWITCH)
    shown.page.wait_for(IS_KEPT)
    shown.page.evaluate_promise("navigator.serviceWorker.ready.then(() => 0)")
    return shown.page


def disconnect(shown: Visit) -> Callable[[bool], None]:
    """Cut the connection of the page and of its service worker; return what restores it."""
    shown.expected.append("net::ERR_INTERNET_DISCONNECTED")
    browser, sessions = shown.page.browser, [shown.page.session]
    for target in browser.send("Target.getTargets", {})["targetInfos"]:
        if target["type"] == "service_worker":
            attach = {"targetId": target["targetId"], "flatten": True}
            sessions.append(browser.send("Target.attachToTarget", attach)["sessionId"])
            browser.send("Network.enable", {}, sessions[-1])

    def cut(is_cut: bool) -> None:
        state = {"offline": is_cut, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        for session in sessions:
            browser.send("Network.emulateNetworkConditions", state, session)

    cut(True)
    return cut


def test_nothing_is_stored_unless_it_is_switched_on(
    visit: Callable[..., Visit], editor: Account, booking: Any
) -> None:
    page = visit(editor, TODAY).page

    assert page.evaluate(f"document.querySelector({SWITCH!r}).checked") is False
    assert stored_on(page) == NOTHING
    assert [url for url in page.requests if "offline" in url] == []


def test_list_is_stored_with_first_names_and_times_only(
    visit: Callable[..., Visit], viewer: Account, booking: Any
) -> None:
    page = switch_on(visit(viewer, TODAY))

    found = list_on(page)
    left = found.pop("until") / 1000 - page.evaluate("Date.now()") / 1000
    answer = logged_in(viewer).get(
        page.evaluate(f"document.querySelector({SWITCH!r}).dataset.list")
    )
    expected = answer.json()["data"]
    assert found == {key: expected[key] for key in ("day", "as_of", "zone", "entries")}
    assert [row["names"] for row in found["entries"]] == ["Marty"]
    assert 0 < left <= 7200
    assert stored_on(page) == [["office-offline", LIST], ["office-offline"], 1]
    assert page.evaluate("localStorage.getItem('office-offline')") == str(viewer.pk)


def test_list_is_shown_without_a_connection(
    visit: Callable[..., Visit], viewer: Account, booking: Any
) -> None:
    shown = visit(viewer, TODAY, language="de")
    page = switch_on(shown)
    kept = list_on(page)

    disconnect(shown)
    shown.go(BOOKINGS)

    assert page.evaluate("[location.pathname, document.documentElement.lang]") == [
        BOOKINGS.partition("?")[0],
        "de",
    ]
    assert page.texts(HEADINGS) == ["Keine Verbindung", kept["day"]]
    assert page.evaluate(SHOWN) == [f"{row['time']}\n{row['names']}" for row in kept["entries"]]
    assert page.texts("#note") == [f"{kept['as_of']} {kept['zone']}"]


def test_pages_are_loaded_again_with_a_connection(
    visit: Callable[..., Visit], viewer: Account, booking: Any
) -> None:
    shown = visit(viewer, TODAY)
    page = switch_on(shown)
    cut = disconnect(shown)
    shown.go(BOOKINGS)

    cut(False)
    page.click("main a")
    page.wait_for("!!document.getElementById('result_list')")

    assert page.evaluate("location.pathname + location.search") == BOOKINGS
    assert page.evaluate_promise(
        "caches.open('office-offline').then((cache) => cache.keys())"
        ".then((all) => all.map((one) => new URL(one.url).pathname).sort())"
    ) == [
        "/admin/offline/",
        "/static/bookings/page.css",
        "/static/office/offline_page.css",
        "/static/office/offline_page.js",
    ]


# --- When it is deleted ---------------------------------------------------------------------------
def log_out(shown: Visit) -> None:
    shown.page.evaluate("document.getElementById('logout-form').requestSubmit()")


def end_session(shown: Visit) -> None:
    Session.objects.all().delete()
    shown.go(BOOKINGS)


def log_in_another(shown: Visit) -> None:
    account = member_of(Tenant("other"), "viewer")
    session = logged_in(account).cookies[settings.SESSION_COOKIE_NAME].value
    cookie = {"name": settings.SESSION_COOKIE_NAME, "value": session, "url": shown.url}
    shown.page.send("Network.setCookie", **cookie)
    shown.go(BOOKINGS)


def change_end(page: Page, end: str) -> None:
    """Change when the list has to be gone."""
    page.evaluate(
        f"(() => {{ const list = JSON.parse(localStorage.getItem({LIST!r})); list.until = {end};"
        f" localStorage.setItem({LIST!r}, JSON.stringify(list)); }})()"
    )


@pytest.mark.parametrize("end", [log_out, end_session, log_in_another])
def test_list_ends_with_the_session(
    visit: Callable[..., Visit], viewer: Account, booking: Any, end: Callable[[Visit], None]
) -> None:
    shown = visit(viewer, TODAY)
    page = switch_on(shown)

    end(shown)
    page.wait_for(f"!({IS_KEPT})")
    page.wait_for("document.readyState === 'complete'")
    disconnect(shown)
    shown.go(TODAY)

    assert page.texts(HEADINGS) == ["No connection"]
    assert page.evaluate(SHOWN) == []


def test_another_account_has_the_switch_off(
    visit: Callable[..., Visit], viewer: Account, booking: Any
) -> None:
    shown = visit(viewer, TODAY)
    page = switch_on(shown)

    log_in_another(shown)
    shown.go(TODAY)

    page.wait_for(f"document.querySelector({SWITCH!r}).checkVisibility()")
    assert page.evaluate(f"document.querySelector({SWITCH!r}).checked") is False
    assert page.evaluate(IS_KEPT) is False


def test_list_ends_if_it_is_refused(
    visit: Callable[..., Visit], office: Tenant, viewer: Account, booking: Any
) -> None:
    """Today is open while the session ends elsewhere: the list's request is led to the log-in."""
    shown = visit(viewer, TODAY)
    page = switch_on(shown)

    Session.objects.all().delete()
    shown.expected.append("net::ERR_ABORTED")  # what is led to another page
    page.evaluate(f"document.querySelector({SWITCH!r}).dispatchEvent(new Event('change'))")
    page.wait_for(f"!({IS_KEPT})")

    assert page.evaluate("location.pathname") == TODAY


@pytest.mark.parametrize(
    "end",
    [
        "Date.now() - 1",
        "Date.now() + 25 * 3600 * 1000",  # the device's clock was set back
    ],
)
def test_list_that_is_over_is_not_shown(
    visit: Callable[..., Visit], viewer: Account, booking: Any, end: str
) -> None:
    shown = visit(viewer, TODAY)
    page = switch_on(shown)
    disconnect(shown)

    change_end(page, end)
    shown.go(TODAY)

    assert page.texts(HEADINGS) == ["No connection"]
    assert (page.evaluate(SHOWN), page.evaluate(IS_KEPT)) == ([], False)


def test_list_disappears_while_it_is_shown(
    visit: Callable[..., Visit], viewer: Account, booking: Any
) -> None:
    shown = visit(viewer, TODAY)
    page = switch_on(shown)
    disconnect(shown)

    change_end(page, "Date.now() + 3000")
    shown.go(TODAY)
    before = page.evaluate(SHOWN)
    page.wait_for(f"!({IS_KEPT})")

    assert (len(before), page.evaluate(SHOWN)) == (1, [])
    assert page.texts(HEADINGS) == ["No connection"]


def test_switch_deletes_everything(
    visit: Callable[..., Visit], viewer: Account, booking: Any
) -> None:
    shown = visit(viewer, TODAY)
    page = switch_on(shown)
    shown.go(TODAY)

    page.click(SWITCH)
    page.wait_for(f"!({IS_KEPT})")
    page.evaluate_promise(
        "new Promise((resolve) => { const look = async () => ("
        "await navigator.serviceWorker.getRegistration() ? setTimeout(look, 50) : resolve(0));"
        " look(); })"
    )
    shown.go(TODAY)

    assert stored_on(page) == NOTHING


# --- How it looks ---------------------------------------------------------------------------------
@pytest.mark.parametrize(("width", "scheme"), viewports())
def test_pages_are_accessible(
    visit: Callable[..., Visit],
    office: Tenant,
    viewer: Account,
    bob: Any,
    booking: Any,
    width: int,
    scheme: str,
) -> None:
    book_from_now(office, bob, "Una-Isabella von Hohenstein-Wolfenbüttel")
    axe, found = load_axe(), {}
    shown = visit(viewer, TODAY, width=width, scheme=scheme)
    page = switch_on(shown)
    page.save_screenshot(f"offline-switch-{width}-{scheme}")
    found["switch"] = find_faults(page, axe, f"document.querySelector({SWITCH!r}).closest('div')")
    disconnect(shown)
    for name in ("list", "none"):
        shown.go(TODAY)
        page.save_screenshot(f"offline-{name}-{width}-{scheme}")
        found[name] = find_faults(page, axe)
        page.evaluate(f"localStorage.removeItem({LIST!r})")

    assert found == {"switch": [], "list": [], "none": []}


def test_browser_can_install_the_office(visit: Callable[..., Visit], viewer: Account) -> None:
    page = visit(viewer, TODAY).page

    manifest = page.send("Page.getAppManifest")

    assert (manifest["url"].rpartition("/admin/")[2], manifest["errors"]) == (
        reverse("admin:manifest").rpartition("/")[2],
        [],
    )
    assert page.send("Page.getInstallabilityErrors")["installabilityErrors"] == []
