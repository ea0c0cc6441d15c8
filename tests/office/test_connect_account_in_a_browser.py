"""A calendar of an account is connected in a real browser, over the consent pages of the fakes: by
mouse and by keyboard, and every wrong turn.
"""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, Literal

import pytest
from django.urls import reverse
from django.utils import timezone

from apps_config.models import Account
from availability.models import Calendar
from external_calendars.models import Connection, ConsentRequest
from external_calendars.providers import OAUTH_PROVIDERS
from tests.accessibility import find_faults, load_axe
from tests.external_calendars.conftest import _loopback_allowed, gateway, google, microsoft
from tests.external_calendars.fakes.google import FakeGoogle
from tests.external_calendars.fakes.graph import FakeGraph
from tests.external_calendars.fakes.server import Gateway
from tests.office.calendar_pages import page_of
from tests.office.conftest import Visit, logged_in, member_of
from tests.office.test_connect_account_page import ADA, BEN, TITLE, stop
from tests.office.test_connect_account_page import connect as connect_without_browser
from tests.office.test_set_up_in_a_browser import OURS, _tolerate_closed_threads, low_contrast
from tests.world import Tenant

__all__ = ["_loopback_allowed", "_tolerate_closed_threads", "gateway", "google", "microsoft"]

pytestmark = pytest.mark.django_db(transaction=True)

MOST_CLICKS = 6
CONNECT = reverse("admin:availability_calendar_connect")
LOOKS = [(1280, "light"), (390, "dark")]
KINDS, CHOOSE, END = ".office-kinds", "#choose", "#end"
CONSENT_PAGE = "input[name=account]"


class Person:
    """Somebody at the office who uses the mouse or the keyboard only. `clicks`: so far."""

    def __init__(self, seen: Visit, how: Literal["mouse", "keyboard"]) -> None:
        self.seen, self.page, self.how, self.clicks = seen, seen.page, how, 0

    def press(self, selector: str, *, key: str = "Enter", until: str = "") -> None:
        """Press what the selector finds, and wait for `until` on the page that follows."""
        self.clicks += 1
        self.page.wait_for(
            f"document.readyState === 'complete' && !!document.querySelector({selector!r})"
        )
        if self.how == "mouse":
            self.page.click(selector)
        else:
            self.page.tab_to(selector, most=120)
            self.page.press(key)
        if until:
            self.page.wait_for(f"!!document.querySelector({until!r})")


@pytest.fixture
def providers(google: FakeGoogle, live_server: Any, settings: Any, ada: Any) -> FakeGoogle:
    """Google with two people; Ada has two calendars of her own and reads a third."""
    settings.PUBLIC_URL = live_server.url
    google.add_client(f"{live_server.url}/v2/calendars/callback")
    google.add_account(ADA)
    google.add_account(BEN)
    google.add_calendar("Workshops", ADA)
    google.share(google.add_calendar("Holidays", BEN), ADA, "reader")
    return google


@pytest.fixture
def walk(
    providers: FakeGoogle, editor: Account, visit: Callable[..., Visit], gateway: Gateway
) -> Iterator[Callable[..., Person]]:
    """`walk("/admin/...", "mouse", 390, "dark")`: a person who leaves for Google and comes back."""
    people = []

    def begin(path: str, how: Literal["mouse", "keyboard"], width: int, scheme: str) -> Person:
        seen = visit(editor, path, width=width, scheme=scheme)
        seen.expected.append("net::ERR_ABORTED")  # what the pages that were left still asked for
        people.append(Person(seen, how))
        return people[-1]

    yield begin
    for person in people:
        # The page of another host, to which a person goes on purpose.
        requests = person.page.requests
        requests[:] = [url for url in requests if not url.startswith(gateway.url)]


@pytest.mark.parametrize(
    ("how", "width", "scheme"),
    [("mouse", 1280, "light"), ("keyboard", 1280, "light"), ("mouse", 390, "dark")],
)
def test_calendar_is_connected_in_six_clicks(
    ada: Any, walk: Callable[..., Person], how: Any, width: int, scheme: str
) -> None:
    """From the resource's page to the page of the connected calendar."""
    axe, found = load_axe(), {}
    resource = reverse("admin:availability_resource_change", args=[ada["id"]])
    person = walk(resource, how, width, scheme)
    page = person.page

    def look(name: str) -> None:
        page.save_screenshot(f"connect-{name}-{width}-{scheme}", whole=True)
        found[name] = (low_contrast(page), find_faults(page, axe, OURS))

    page.evaluate(
        "[...document.querySelectorAll('a')]"
        ".filter(one => one.textContent.includes('Connect a calendar'))"
        ".forEach(one => { one.dataset.connect = '1'; })"
    )
    if width < 600:  # the link is in the menu of the page's actions
        person.clicks += 2
        page.evaluate("document.querySelector('[data-connect]').click()")
        page.wait_for(f"!!document.querySelector({KINDS!r})")
    else:
        person.press("[data-connect]", until=KINDS)
    look("kinds")
    person.press("button[value=google]", until=CONSENT_PAGE)
    person.press(CONSENT_PAGE, key=" ")
    person.press("button[value=allow]", until=CHOOSE)
    look("choose")
    person.press(".office-form .office-primary", until="#kept")
    look("connected")

    calendar = Calendar.objects.select_related("connection__grant").get(provider="google")
    assert person.clicks <= MOST_CLICKS
    assert page.evaluate("location.pathname") == page_of(calendar)
    assert (calendar.name, calendar.provider_primary) == (ADA, True)
    assert calendar.connection.grant.email == ADA
    assert found == dict.fromkeys(found, ([], []))


def test_calendar_at_microsoft_is_connected(
    ada: Any, walk: Callable[..., Person], microsoft: FakeGraph, live_server: Any
) -> None:
    microsoft.add_client(f"{live_server.url}/v2/calendars/callback")
    microsoft.add_account(ADA)
    person = walk(f"{CONNECT}?resource={ada['id']}", "mouse", 390, "dark")

    person.press("button[value=microsoft]", until=CONSENT_PAGE)
    allow(person, CHOOSE)
    person.press(".office-form .office-primary", until="#kept")

    calendar = Calendar.objects.select_related("connection__grant").get(provider="microsoft")
    assert person.page.evaluate("location.pathname") == page_of(calendar)
    assert calendar.connection.grant.email == ADA


def test_two_calendars_are_chosen_by_keyboard(ada: Any, walk: Callable[..., Person]) -> None:
    person = walk(f"{CONNECT}?resource={ada['id']}", "keyboard", 1280, "light")

    person.press("button[value=google]", until=CONSENT_PAGE)
    person.press("button[value=allow]", until=CHOOSE)
    person.press("label:nth-of-type(2) input[name=calendars]", key=" ")
    person.press(".office-form .office-primary", until=".office-parts, #part-calendars, form")

    person.page.wait_for("!location.pathname.includes('/choose/')")
    found = Calendar.objects.filter(provider="google").order_by("name")
    assert list(found.values_list("name", "provider_primary")) == [
        ("Workshops", False),
        (ADA, True),
    ]


# --- Wrong turns ----------------------------------------------------------------------------------
def leave(person: Person) -> None:
    person.press("button[value=google]", until=CONSENT_PAGE)


def allow(person: Person, until: str = END) -> None:
    person.press("button[value=allow]", until=until)


def deny(person: Person, **given: Any) -> None:
    leave(person)
    person.press("button[value=cancel]", until=END)


def allow_too_little(person: Person, **given: Any) -> None:
    leave(person)
    person.press("input[name=scope]")
    allow(person)


def come_back_as_another(person: Person, office: Tenant, **given: Any) -> None:
    leave(person)
    ConsentRequest.objects.update(account=member_of(office, "owner"))
    allow(person)


def lose_the_provider(person: Person, gateway: Gateway, **given: Any) -> None:
    leave(person)
    gateway.hang_up("oauth2.googleapis.com")
    allow(person)


def have_no_calendar(person: Person, google: FakeGoogle, **given: Any) -> None:
    leave(person)
    for calendar in list(google.calendars.values()):
        google.share(calendar, ADA, "")
    allow(person)


def use_it_twice(person: Person, **given: Any) -> None:
    """Back in the browser, to the page that has used the request."""
    leave(person)
    person.page.evaluate("window.isOld = true")
    state = person.page.evaluate("new URLSearchParams(location.search).get('state')")
    allow(person, CHOOSE)
    back = reverse("admin:availability_calendar_come_back")
    person.page.send("Page.navigate", url=f"{person.seen.url}{back}?state={state}&code=x")
    person.page.wait_for(f"!!document.querySelector({END!r})")


WRONG_TURNS: dict[str, tuple[Callable[..., None], str, bool]] = {
    "denied": (deny, "The permission was not given at the provider.", True),
    "too-little": (
        allow_too_little,
        "The account did not allow everything that is needed: connect the calendar again.",
        True,
    ),
    "another-person": (
        come_back_as_another,
        "Somebody else began this connection: connect the calendar yourself.",
        False,
    ),
    "used": (
        use_it_twice,
        "This request is older than ten minutes or was used already: connect the calendar again.",
        False,
    ),
    "unreachable": (lose_the_provider, "The server could not be reached.", True),
    "no-calendar": (have_no_calendar, f"The account {ADA} has no calendar.", True),
}


@pytest.mark.parametrize("name", WRONG_TURNS)
def test_wrong_turn_has_a_sentence(
    office: Tenant,
    ada: Any,
    gateway: Gateway,
    providers: FakeGoogle,
    walk: Callable[..., Person],
    name: str,
) -> None:
    turn, sentence, may_repeat = WRONG_TURNS[name]
    width, scheme = LOOKS[len(name) % 2]
    person = walk(f"{CONNECT}?resource={ada['id']}", "mouse", width, scheme)

    turn(person, office=office, gateway=gateway, google=providers)

    page = person.page
    page.save_screenshot(f"connect-{name}-{width}-{scheme}", whole=True)
    assert page.texts("#end, #end + p") == [TITLE, sentence]
    assert ("Try again" in page.texts(".office-buttons button")) == may_repeat
    assert (low_contrast(page), find_faults(page, load_axe(), OURS)) == ([], [])
    assert not Connection.objects.exists()


def test_denied_consent_can_be_tried_again(ada: Any, walk: Callable[..., Person]) -> None:
    person = walk(f"{CONNECT}?resource={ada['id']}", "keyboard", 1280, "light")
    deny(person)

    person.press(".office-buttons .office-primary", until=CONSENT_PAGE)
    allow(person, CHOOSE)
    person.press(".office-form .office-primary", until="#kept")

    assert Calendar.objects.get(provider="google").name == ADA


def test_expired_request_has_a_sentence(ada: Any, walk: Callable[..., Person]) -> None:
    person = walk(f"{CONNECT}?resource={ada['id']}", "mouse", 390, "dark")
    leave(person)
    ConsentRequest.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    person.seen.expected += ["404"]

    allow(person, "main h1")

    assert person.page.texts("main h1") == ["This request has ended"]
    assert not Connection.objects.exists()


def test_provider_without_a_client_says_what_to_do(ada: Any, walk: Callable[..., Person]) -> None:
    person = walk(f"{CONNECT}?resource={ada['id']}", "mouse", 390, "dark")
    page = person.page
    page.save_screenshot("connect-no-client-390-dark", whole=True)

    label = OAUTH_PROVIDERS["microsoft"].label
    assert page.texts(".office-kinds > li:nth-child(2)") == [
        f"{label}\nNo client is registered at {label}: the operator sets MICROSOFT_CLIENT_ID and"
        " MICROSOFT_CLIENT_SECRET, or an owner of the app enters a client."
    ]
    assert (low_contrast(page), find_faults(page, load_axe(), OURS)) == ([], [])


def test_other_account_does_not_connect_again(
    ada: Any, providers: FakeGoogle, editor: Account, walk: Callable[..., Person]
) -> None:
    calendar = connect_without_browser(logged_in(editor), providers, ada)
    stop(calendar)
    person = walk(page_of(calendar), "mouse", 390, "dark")
    page = person.page
    page.save_screenshot("connect-ended-390-dark", whole=True)

    person.press(f"a[href='{page_of(calendar, 'reconnect')}']", until=".office-buttons button")
    page.save_screenshot("connect-again-390-dark", whole=True)
    person.press(".office-primary", until=CONSENT_PAGE)
    person.press(f"input[value='{BEN}']")
    allow(person)
    page.save_screenshot("connect-wrong-account-390-dark", whole=True)

    assert page.texts("#end, #end + p") == [
        TITLE,
        f"You chose the account {BEN}, but the calendar belongs to {ADA}.",
    ]
    assert (low_contrast(page), find_faults(page, load_axe(), OURS)) == ([], [])
    person.press(".office-buttons .office-primary", until=CONSENT_PAGE)
    allow(person, "#kept")
    assert Connection.objects.get(calendar=calendar).problem == ""
