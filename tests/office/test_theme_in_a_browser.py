"""The theme's own parts for screen readers and keyboards: names without icon words, buttons that
the Tab key reaches; and what a phone shows.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest

from apps_config.models import Account
from tests.accessibility import find_faults, load_axe
from tests.browser import Page
from tests.office.conftest import Enter, Visit, member_of
from tests.office.test_crawl import MIN_ROUTES, clinic, crawl, foreign_tenant
from tests.world import Tenant

__all__ = ["clinic", "foreign_tenant"]

BOOKINGS = "/admin/bookings/booking/?tab=upcoming"
OPEN = [{"allow_hours": {"start": 0, "end": 24}}]
# Names of icons in the theme's font. Some are also words of people.
ICON = re.compile(r"\b[a-z]+_[a-z_]+\b|\b(badge|close|draft|dns|stacks|unsubscribe|logout)\b")
LOUD = ".material-symbols-outlined:not([aria-hidden], [role])"
CONTROLS = ("link", "button", "menuitem", "tab")


@pytest.fixture
def owner(office: Tenant) -> Account:
    return member_of(office, "owner")


@pytest.fixture
def booking(office: Tenant) -> Any:
    ada = office.make_resource("Ada", timezone="Europe/Berlin", availability_constraints=OPEN)
    times = {"start": "2030-01-07 09:00:00", "end": "2030-01-07 09:30:00"}
    answer = office.book(resource_id=ada["id"], what="Check-up", **times)
    assert answer.status == 201, answer.json
    return answer.data


def names_of(page: Page) -> list[tuple[str, str]]:
    """(role, name) of everything that a screen reader finds, as Chromium computes it."""
    nodes = page.send("Accessibility.getFullAXTree")["nodes"]
    return [
        (node["role"]["value"], (node.get("name", {}).get("value") or "").strip())
        for node in nodes
        if not node.get("ignored")
    ]


@pytest.mark.deep
def test_names_have_no_icon_words(
    visit: Callable[..., Visit], office: Tenant, owner: Account, booking: Any
) -> None:
    """And nothing that axe-core calls serious, the theme's own parts included; of other pages
    test_bookings_in_a_browser.py says so."""
    project = office.make_project(booking["resource_id"])
    checked_elsewhere = [
        "/admin/",
        BOOKINGS,
        f"/admin/bookings/booking/{booking['id']}/change/",
    ]
    pages = [
        *checked_elsewhere,
        f"/admin/availability/project/{project['id']}/change/",
        f"/admin/apps_config/app/{office.app.pk}/change/",
        "/admin/apps_config/credential/add/",
        "/admin/notifications/delivery/",
    ]
    found, axe = [], load_axe()
    shown = visit(owner, "/admin/")
    shown.expected.append("Blocked aria-hidden on an element")  # select2 on a focused field
    page = shown.page
    for path in pages:
        shown.go(path)
        page.wait_for(f"!document.querySelector({LOUD!r})")
        if path not in checked_elsewhere:
            found += [(path, *fault) for fault in find_faults(page, axe)]
        page.evaluate("document.querySelector('[x-on\\\\:click*=openUserLinks]').click()")
        page.wait_for("document.querySelector('#logout-form').checkVisibility()")
        found += [(path, *fault) for fault in faults_of_names(page)]
        shown.check()

    assert found == [], found


def test_customer_error_and_platform_pages_are_accessible(
    visit: Callable[..., Visit], office: Tenant, owner: Account, booking: Any
) -> None:
    staff = Account.objects.create_superuser("staff@example.com", "x" * 12)
    pages = [
        (owner, "/admin/bookings/appcustomer/"),
        (owner, "/admin/availability/resource/nowhere/change/"),
        (owner, "/admin/apps_config/account/"),  # 403
        (staff, "/admin/apps_config/account/"),
        (staff, "/admin/usersessions/usersession/"),
    ]
    found, axe = [], load_axe()
    for account, path in pages:
        shown = visit(account, path)
        shown.expected += ["404", "403", "Blocked aria-hidden on an element"]
        shown.page.wait_for(f"!document.querySelector({LOUD!r})")
        faults = [*faults_of_names(shown.page), *find_faults(shown.page, axe)]
        found += [(path, *fault) for fault in faults]

    assert found == [], found


def faults_of_names(page: Page) -> list[tuple[str, str]]:
    """(role, name) with an icon's word, or of a control without a name. Addresses and
    {placeholders} in texts are none of these.
    """
    return [
        (role, name)
        for role, name in names_of(page)
        if role != "InlineTextBox"  # a line of a text
        and "://" not in name
        and (ICON.search(re.sub(r"{ ?\w+ ?}", "", name)) or (role in CONTROLS and not name))
    ]


@pytest.mark.deep
@pytest.mark.parametrize("width", [1280, 390, 320])
def test_every_page_is_accessible(
    transactional_db: None, clinic: Tenant, visit: Callable[..., Visit], enter: Enter, width: int
) -> None:
    """One page of each view that links lead an owner to: names, axe-core, no sideways scrolling."""
    client = enter(clinic, "owner")
    paths = {route: path for route, path, _ in crawl(client)}
    account = Account.objects.get(email=f"owner@{clinic.app.slug}.example.com")
    shown, axe = visit(account, "/admin/", width=width), load_axe()
    shown.expected.append("Blocked aria-hidden on an element")  # select2 on a focused field
    page, found = shown.page, {}
    for route, path in paths.items():
        page.evaluate(f"document.body.id = 'left'; location.assign({path!r})")
        page.wait_for("document.body?.id !== 'left' && document.readyState === 'complete'")
        page.wait_for(f"!document.querySelector({LOUD!r})")
        wide = page.evaluate(
            "(({scrollWidth, clientWidth}) => scrollWidth > clientWidth)(document.documentElement)"
        )
        faults = [*faults_of_names(page), *find_faults(page, axe), *(["wide"] if wide else [])]
        if faults:
            found[route, path] = faults

    assert found == {}, found
    assert len(paths) >= MIN_ROUTES["owner"]


def test_menus_of_the_theme_work_by_keyboard(
    visit: Callable[..., Visit], owner: Account, booking: Any
) -> None:
    page = visit(owner, BOOKINGS).page
    page.wait_for("!!document.querySelector('[role=button]')")

    page.tab_to("[x-on\\:click*=filterOpen]", most=60)
    page.press("Enter")
    page.wait_for("document.querySelector('#changelist-filter').checkVisibility()")
    triangles = page.evaluate(
        "[...document.querySelectorAll('.timezonewarning')].filter(one => one.checkVisibility())"
        ".length"
    )
    page.evaluate("document.querySelector('[x-on\\\\:click*=openUserLinks]').focus()")
    page.press("Enter")
    page.wait_for("document.querySelector('#logout-form').checkVisibility()")
    page.evaluate("document.querySelector('[x-on\\\\:click*=\"\\'dark\\'\"]').focus()")
    page.press("Enter")
    page.wait_for("document.documentElement.classList.contains('dark')")

    assert triangles == 0


@pytest.mark.parametrize("scheme", [pytest.param("light", marks=pytest.mark.deep), "dark"])
def test_a_phone_shows_whole_headings_and_short_rows(
    visit: Callable[..., Visit], owner: Account, booking: Any, scheme: str
) -> None:
    path = f"/admin/bookings/booking/{booking['id']}/change/"
    shown = visit(owner, BOOKINGS, width=390, scheme=scheme)
    height = shown.page.box("#result_list tr.data-row")["height"]
    shown.page.save_screenshot(f"bookings-390-{scheme}")
    faults = find_faults(shown.page, load_axe())
    one = visit(owner, path, width=390, scheme=scheme)
    one.page.save_screenshot(f"booking-390-{scheme}")
    cut = one.page.evaluate(
        "(({scrollWidth: all, clientWidth: shown}) => all > shown)(document.querySelector('h1 a'))"
    )

    assert (cut, faults) == (False, [])
    assert height < 130


def test_a_phone_shows_whole_headings_in_longer_languages(
    visit: Callable[..., Visit], owner: Account, booking: Any
) -> None:
    window = {"width": 390, "language": "it"}
    lists = visit(owner, BOOKINGS, **window), visit(owner, "/admin/bookings/appcustomer/", **window)
    cut = "(({scrollWidth: all, clientWidth: seen}) => all > seen)(document.querySelector('h1 a'))"
    names = (
        "[...document.querySelectorAll('#result_list tr.data-row td')].map(td => td.dataset.label)"
    )

    shown = "[...document.querySelectorAll('h1 a')].filter(a => a.checkVisibility())"
    headings = [
        (each.page.evaluate(f"{shown}.map(a => a.innerText)"), each.page.evaluate(cut))
        for each in lists
    ]

    assert headings == [(["Prenotazioni"], False), (["Clienti"], False)]
    assert lists[1].page.evaluate(names) == [
        *("E-mail", "Prenotazioni", "Ultima", "Prossima", "Mancate presentazioni"),
        *("Problema e-mail", "Ultima prenotazione"),
    ]
    look = "getComputedStyle(document.querySelector('#result_list td'), '::before').textTransform"
    assert lists[1].page.evaluate(look) == "none"


def test_lists_and_forms_from_right_to_left(
    visit: Callable[..., Visit], owner: Account, booking: Any, office: Tenant
) -> None:
    resource = f"/admin/availability/resource/{office.app.resources.get().pk}/change/"
    row, form = (
        visit(owner, path, width=width, language="ar").page
        for path, width in ((BOOKINGS, 390), (resource, 1280))
    )
    buttons = (
        "[...document.querySelectorAll('#submit-row :is(a, button)')].filter(b => b.offsetParent)"
    )
    order = f"{buttons}.sort((a, b) => b.getBoundingClientRect().x - a.getBoundingClientRect().x)"
    icons = "[...document.querySelectorAll(':is(h1, a[title]) > .material-symbols-outlined')]"

    checkbox, state = (
        row.box(f"#result_list tr.data-row > {cell}")
        for cell in (".action-checkbox", ".field-shown_state")
    )

    assert checkbox["x"] > state["x"] + state["width"]
    assert form.evaluate(f"{order}.map(b => b.innerText)")[0] == "حذف"
    is_arrow = "/arrow_back|chevron_right/.test(i.dataset.icon) && i.checkVisibility()"
    turned = f"{icons}.filter(i => {is_arrow}).map(i => getComputedStyle(i).transform)"
    assert form.evaluate(turned) == ["matrix(-1, 0, 0, 1, 0, 0)"] * 2


def test_buttons_of_hours_are_one_line_in_longer_languages(
    visit: Callable[..., Visit], owner: Account, booking: Any, office: Tenant
) -> None:
    resource = f"/admin/availability/resource/{office.app.resources.get().pk}/change/"
    page = visit(owner, resource, language="de").page
    chips = "[...document.querySelectorAll('[data-copy-day]')].filter(chip => chip.offsetParent)"

    words = page.evaluate(f"{chips}.map(chip => chip.firstChild.textContent.trim())")
    lines = page.evaluate(f"{chips}.map(chip => Math.round(chip.clientHeight / 24))")

    assert words == ["Auf Mo.–Fr. kopieren"] * 5 + ["Auf das Wochenende kopieren"] * 2
    assert lines == [1] * 7


def test_a_filter_is_saved_by_keyboard(
    visit: Callable[..., Visit], owner: Account, booking: Any
) -> None:
    shown = visit(owner, f"{BOOKINGS}&q=Marty")
    page = shown.page

    page.tab_to(".office-saved summary")
    page.press("Enter")
    page.tab_to("#filter-name")
    page.type("Marty")
    page.press("Enter")
    page.wait_for("document.querySelector('#tabs-items .active')?.innerText === 'Marty'")
    shown.page.save_screenshot("bookings-saved-1280-light")

    assert page.texts("#tabs-items a") == ["Upcoming", "Past", "Pending", "All", "Marty"]
    assert page.texts(".office-saved summary") == ["Edit filter “Marty”"]
