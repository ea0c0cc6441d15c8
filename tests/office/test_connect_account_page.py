"""Calendars at Google and Microsoft are connected in the back office, with a person's consent."""

from collections.abc import Callable
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps_config.models import Membership
from availability.models import Calendar, Resource
from external_calendars.models import Connection, ConsentRequest, Grant
from external_calendars.providers import OAUTH_PROVIDERS
from tests.external_calendars.conftest import _loopback_allowed, gateway, google, microsoft
from tests.external_calendars.fakes.google import FakeGoogle
from tests.external_calendars.fakes.graph import FakeGraph
from tests.external_calendars.fakes.server import Gateway
from tests.office.calendar_pages import LIST, history, page_of
from tests.office.staff import form_of, member, messages_of, superuser
from tests.world import Tenant

__all__ = ["_loopback_allowed", "gateway", "google", "microsoft"]

pytestmark = pytest.mark.django_db(transaction=True)

CONNECT = reverse("admin:availability_calendar_connect")
BEGIN = reverse("admin:availability_calendar_begin_consent")
BACK = reverse("admin:availability_calendar_come_back")
CHOOSE = reverse("admin:availability_calendar_choose")
ADA, BEN = "ada@example.com", "ben@example.com"
TITLE = "The calendar is not connected"
ENDED = "This request is older than ten minutes or was used already: connect the calendar again."


@pytest.fixture
def ada(tenant: Tenant, google: FakeGoogle) -> Any:
    """A resource, and at Google the accounts of two people; Ada's has two more calendars."""
    google.add_account(ADA)
    google.add_account(BEN)
    google.add_calendar("Workshops", ADA)
    google.share(google.add_calendar("Holidays", BEN), ADA, "reader")
    return tenant.make_resource("Ada", email=ADA)


@pytest.fixture
def editor(tenant: Tenant) -> Client:
    return member(tenant.app, "editor")


def begin(client: Client, resource: Any, provider: str = "google") -> str:
    """Press the provider's button; return the address of its page."""
    answer = client.post(BEGIN, {"resource": resource["id"], "provider": provider})
    return left_for(answer)


def left_for(answer: Any) -> str:
    assert [template.name for template in answer.templates][:1] == ["office/calendar_leave.html"]
    url = answer.context["url"]
    assert f'<meta http-equiv="refresh" content="0; url={url}">' in unescape(
        answer.content.decode()
    )
    return url


def come_back(client: Client, callback: str) -> Any:
    """Go where the provider leads to: through the API's callback to a page of the office."""
    answer = client.get(f"/v2{callback.partition('/v2')[2]}")
    assert (answer.status_code, answer["Location"].partition("?")[0]) == (
        302,
        f"http://testserver{BACK}",
    )
    return client.get(answer["Location"].removeprefix("http://testserver"), follow=True)


def agree(client: Client, google: FakeGoogle, resource: Any, email: str = ADA) -> Any:
    """Press Google Calendar, agree there, and come back."""
    return come_back(client, google.consent(begin(client, resource), email))


def address(google: FakeGoogle, name: str) -> str:
    [found] = [one for one in google.calendars.values() if one.summary == name]
    return f"https://www.googleapis.com/calendar/v3/calendars/{found.id.replace('@', '%40')}"


def connect(client: Client, google: FakeGoogle, resource: Any, email: str = ADA) -> Calendar:
    """Connect the main calendar of the account, as it is preselected."""
    page = agree(client, google, resource, email)
    url = page.redirect_chain[-1][0]
    client.post(
        url, {name: page.context["form"].initial[name] for name in ("calendars", "primary")}
    )
    return Calendar.objects.get(provider="google", connection__grant__email=email)


def ending(answer: Any) -> list[str]:
    """The title of a page on which nothing was connected, its sentence, and its buttons."""
    context = answer.context
    return [context["title"], context["sentence"], *(["Try again"] * context["may_repeat"])]


# --- The first choice -----------------------------------------------------------------------------
def test_first_page_offers_all_kinds(tenant: Tenant, ada: Any, editor: Client) -> None:
    page = editor.get(f"{CONNECT}?resource={ada['id']}")

    assert [(one.name, one.label, one.hint) for one in page.context["choices"]] == [
        ("google", "Google Calendar", ""),
        (
            "microsoft",
            OAUTH_PROVIDERS["microsoft"].label,
            f"No client is registered at {OAUTH_PROVIDERS['microsoft'].label}: the operator sets"
            " MICROSOFT_CLIENT_ID and MICROSOFT_CLIENT_SECRET, or an owner of the app enters a"
            " client.",
        ),
    ]
    text = page.content.decode()
    for kind in ("caldav", "ics"):
        assert f'href="?resource={ada["id"]}&amp;provider={kind}"' in text
        form = form_of(editor, f"{CONNECT}?resource={ada['id']}&provider={kind}")
        assert form["provider"] == kind


def test_only_an_owner_is_led_to_the_clients(tenant: Tenant, ada: Any, editor: Client) -> None:
    page = f"{CONNECT}?resource={ada['id']}"
    owner = member(tenant.app, "owner")

    clients = reverse("admin:external_calendars_providerclient_changelist")
    shown = [client.get(page).context["clients_url"] for client in (owner, editor)]
    assert shown == [clients, ""]


# --- The whole way --------------------------------------------------------------------------------
def test_main_calendar_is_connected(
    tenant: Tenant, google: FakeGoogle, ada: Any, editor: Client
) -> None:
    page = agree(editor, google, ada)
    form = page.context["form"]

    assert [label for _, label in form.fields["calendars"].choices] == [
        ADA,
        "Workshops",
        "Holidays (read only)",
    ]
    assert [label for _, label in form.fields["primary"].choices] == [
        ADA,
        "Workshops",
        "none of them",
    ]
    assert form.initial == {"calendars": [address(google, ADA)], "primary": address(google, ADA)}
    answer = editor.post(page.redirect_chain[-1][0], form.initial, follow=True)

    calendar = Calendar.objects.select_related("connection__grant").get(provider="google")
    assert answer.redirect_chain == [(page_of(calendar), 302)]
    assert messages_of(answer) == [f"“{ADA}” is connected. The first sync is running."]
    assert (calendar.resource.name, calendar.provider_primary, calendar.provider_id) == (
        "Ada",
        True,
        address(google, ADA),
    )
    assert calendar.connection.grant.email == ADA
    assert history(editor, calendar) == [f"Connected to {address(google, ADA)}."]


def test_calendar_at_microsoft_is_connected(
    tenant: Tenant, microsoft: FakeGraph, editor: Client
) -> None:
    microsoft.add_account(ADA).add_calendar("Workshops")
    ada = tenant.make_resource("Ada", email=ADA)

    page = come_back(editor, microsoft.consent(begin(editor, ada, "microsoft"), ADA))
    editor.post(page.redirect_chain[-1][0], page.context["form"].initial)
    calendar = Calendar.objects.select_related("connection__grant").get(provider="microsoft")
    stop(calendar)
    url = left_for(editor.post(page_of(calendar, "reconnect")))
    come_back(editor, microsoft.consent(url, ADA))

    [(_, main), (_, second)] = page.context["form"].fields["calendars"].choices
    assert (calendar.name, second) == (main, "Workshops")
    assert (calendar.provider_primary, calendar.connection.grant.email) == (True, ADA)
    assert Connection.objects.get().problem == ""


def test_several_calendars_are_connected_at_once(
    tenant: Tenant, google: FakeGoogle, ada: Any, editor: Client
) -> None:
    page = agree(editor, google, ada)
    chosen = [address(google, name) for name in (ADA, "Workshops", "Holidays")]

    form = {"calendars": chosen, "primary": address(google, "Workshops")}
    answer = editor.post(page.redirect_chain[-1][0], form, follow=True)

    assert messages_of(answer) == [
        f"“{name}” is connected. The first sync is running."
        for name in ("Workshops", ADA, "Holidays")
    ]
    assert answer.redirect_chain[-1][0] == reverse(
        "admin:availability_resource_change", args=[ada["id"]]
    )
    found = Calendar.objects.filter(provider="google").order_by("name")
    assert list(found.values_list("name", "provider_access", "provider_primary")) == [
        ("Holidays", "reader", False),
        ("Workshops", "writer", True),
        (ADA, "writer", False),
    ]
    assert Grant.objects.count() == 1


@pytest.mark.parametrize(
    ("calendars", "primary", "faults"),
    [
        ([], "", {"calendars": ["Select at least one calendar."]}),
        (
            ["Holidays"],
            "Workshops",
            {"primary": ["Select “Workshops” above, too, or let another get the bookings."]},
        ),
        (
            ["Holidays"],
            "Holidays",
            {"primary": ["Select a valid choice. {Holidays} is not one of the available choices."]},
        ),
    ],
)
def test_wrong_choice_is_refused(
    google: FakeGoogle,
    ada: Any,
    editor: Client,
    calendars: list[str],
    primary: str,
    faults: dict[str, list[str]],
) -> None:
    page = agree(editor, google, ada)
    form = {
        "calendars": [address(google, name) for name in calendars],
        "primary": primary and address(google, primary),
    }

    answer = editor.post(page.redirect_chain[-1][0], form)

    found = {name: list(errors) for name, errors in answer.context["form"].errors.items()}
    assert found == {
        name: [text.replace("{Holidays}", address(google, "Holidays")) for text in texts]
        for name, texts in faults.items()
    }
    assert not Connection.objects.exists()


def test_another_calendar_of_a_connected_account_needs_no_consent(
    tenant: Tenant, google: FakeGoogle, ada: Any, editor: Client
) -> None:
    first = connect(editor, google, ada)
    grant = first.connection.grant
    editor = member(tenant.app, "owner")  # whose session has no new grant

    first_page = editor.get(f"{CONNECT}?resource={ada['id']}")
    url = f"{CHOOSE}?{urlencode({'resource': ada['id'], 'grant': grant.pk})}"
    page = editor.get(url)

    assert first_page.context["accounts"] == [(ADA, "Google Calendar", grant.pk)]
    assert page.context["connected"] == [f"This calendar is already connected as “{ADA}”."]
    form = page.context["form"]
    assert [label for _, label in form.fields["calendars"].choices] == [
        "Workshops",
        "Holidays (read only)",
    ]
    assert form.fields["primary"].choices[-1] == ("", f"“{ADA}”, as before")
    assert form.initial == {"calendars": [address(google, "Workshops")], "primary": ""}
    editor.post(url, form.initial)
    found = Calendar.objects.filter(provider="google").order_by("name")
    assert list(found.values_list("name", "provider_primary")) == [
        ("Workshops", False),
        (ADA, True),
    ]
    assert Grant.objects.count() == 1


def test_all_calendars_are_connected_already(google: FakeGoogle, ada: Any, editor: Client) -> None:
    connect(editor, google, ada, BEN)
    calendar = Calendar.objects.get(provider="google")
    google.share(google.calendars[list(google.calendars)[-1]], BEN, "")

    page = agree(editor, google, ada, BEN)

    assert (page.context["has_choice"], page.context["connected"]) == (
        False,
        [f"This calendar is already connected as “{calendar.name}”."],
    )


def test_calendar_that_was_connected_meanwhile_is_refused(
    google: FakeGoogle, ada: Any, editor: Client
) -> None:
    page = agree(editor, google, ada)
    url = page.redirect_chain[-1][0]
    form = page.context["form"].initial
    editor.post(url, form)

    answer = editor.post(url, form)

    assert Calendar.objects.filter(provider="google").count() == 1
    assert list(answer.context["form"].errors) == ["calendars", "primary"]


# --- Wrong turns ----------------------------------------------------------------------------------
def test_consent_is_denied(google: FakeGoogle, ada: Any, editor: Client) -> None:
    callback = google.consent(begin(editor, ada), ADA, allow=False)

    answer = come_back(editor, callback)

    assert ending(answer) == [
        TITLE,
        "The permission was not given at the provider.",
        "Try again",
    ]
    assert (Grant.objects.exists(), ConsentRequest.objects.exists()) == (False, False)


def test_not_everything_is_allowed(google: FakeGoogle, ada: Any, editor: Client) -> None:
    needed = sorted(OAUTH_PROVIDERS["google"].oauth.needed)

    answer = come_back(editor, google.consent(begin(editor, ada), ADA, without=needed[:1]))

    assert ending(answer) == [
        TITLE,
        "The account did not allow everything that is needed: connect the calendar again.",
        "Try again",
    ]
    assert not Grant.objects.exists()


def test_consent_of_another_person_is_refused_and_stays(
    tenant: Tenant, google: FakeGoogle, ada: Any, editor: Client
) -> None:
    callback = google.consent(begin(editor, ada), ADA)
    other = member(tenant.app, "owner")

    answer = come_back(other, callback)

    assert ending(answer) == [
        TITLE,
        "Somebody else began this connection: connect the calendar yourself.",
    ]
    assert not Grant.objects.exists()
    assert "form" in come_back(editor, callback).context


def test_state_that_was_used_is_ended(google: FakeGoogle, ada: Any, editor: Client) -> None:
    callback = google.consent(begin(editor, ada), ADA)
    come_back(editor, callback)

    again = editor.get(f"{BACK}?{urlsplit(callback).query}")

    assert ending(again) == [TITLE, ENDED]


def test_state_is_ended_after_ten_minutes(google: FakeGoogle, ada: Any, editor: Client) -> None:
    callback = google.consent(begin(editor, ada), ADA)
    ConsentRequest.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    assert ending(editor.get(f"{BACK}?{urlsplit(callback).query}")) == [TITLE, ENDED]


def test_no_client_is_registered(
    google: FakeGoogle, ada: Any, editor: Client, settings: Any
) -> None:
    settings.GOOGLE_CLIENT_SECRET = ""

    answer = editor.post(BEGIN, {"resource": ada["id"], "provider": "google"})

    assert ending(answer) == [
        TITLE,
        "No client is registered at Google Calendar: the operator sets GOOGLE_CLIENT_ID and"
        " GOOGLE_CLIENT_SECRET, or an owner of the app enters a client.",
    ]


def test_client_is_refused(google: FakeGoogle, ada: Any, editor: Client, settings: Any) -> None:
    callback = google.consent(begin(editor, ada), ADA)
    settings.GOOGLE_CLIENT_SECRET = "wrong"

    assert ending(come_back(editor, callback))[:2] == [
        TITLE,
        "The provider refuses the client that is registered for this service.",
    ]


def test_provider_is_down_at_the_exchange(
    google: FakeGoogle, ada: Any, editor: Client, gateway: Gateway
) -> None:
    callback = google.consent(begin(editor, ada), ADA)
    gateway.fail("oauth2.googleapis.com", status=503)

    assert ending(come_back(editor, callback)) == [
        TITLE,
        "The server returned an error.",
        "Try again",
    ]


def test_provider_is_unreachable(
    google: FakeGoogle, ada: Any, editor: Client, settings: Any
) -> None:
    callback = google.consent(begin(editor, ada), ADA)
    settings.CALENDAR_PROVIDER_GATEWAY = "http://127.0.0.1:9"

    assert ending(come_back(editor, callback)) == [
        TITLE,
        "The server could not be reached.",
        "Try again",
    ]


def test_account_without_calendars(google: FakeGoogle, ada: Any, editor: Client) -> None:
    google.share(google.accounts[BEN].calendar, BEN, "")
    for calendar in google.calendars.values():
        google.share(calendar, BEN, "")

    assert ending(agree(editor, google, ada, BEN)) == [
        TITLE,
        f"The account {BEN} has no calendar.",
        "Try again",
    ]


# --- Connected again ------------------------------------------------------------------------------
def stop(calendar: Calendar) -> None:
    now = timezone.now()
    Connection.objects.filter(calendar=calendar).update(
        problem="grant_ended", problem_since=now, next_at=None
    )
    Grant.objects.update(renew_at=None)


def test_stopped_calendar_is_connected_again(google: FakeGoogle, ada: Any, editor: Client) -> None:
    connect(editor, google, ada)
    page = agree(editor, google, ada)
    editor.post(
        page.redirect_chain[-1][0], {"calendars": [address(google, "Workshops")], "primary": ""}
    )
    calendar = Calendar.objects.get(name="Workshops")
    google.oauth.revoke(ADA)
    stop(calendar)
    reconnect = page_of(calendar, "reconnect")

    asked = editor.get(reconnect)
    url = left_for(editor.post(reconnect))
    answer = come_back(editor, google.consent(url, ADA))

    assert asked.context["title"] == "Connect “Workshops” again?"
    assert parse_qs(urlsplit(url).query)["login_hint"] == [ADA]
    assert answer.redirect_chain[-1] == (page_of(calendar), 302)
    assert messages_of(answer) == ["“Workshops” is reconnected."]
    calendar = Calendar.objects.select_related("connection").get(pk=calendar.pk)
    connection = calendar.connection
    assert (calendar.provider_id, connection.problem, connection.is_stopped) == (
        address(google, "Workshops"),
        "",
        False,
    )
    assert history(editor, calendar)[-1] == (f"Connected again to {address(google, 'Workshops')}.")


def test_other_account_does_not_connect_again(google: FakeGoogle, ada: Any, editor: Client) -> None:
    calendar = connect(editor, google, ada)
    stop(calendar)

    url = left_for(editor.post(page_of(calendar, "reconnect")))
    answer = come_back(editor, google.consent(url, BEN))

    assert ending(answer) == [
        TITLE,
        f"You chose the account {BEN}, but the calendar belongs to {ADA}.",
        "Try again",
    ]
    assert Connection.objects.get().problem == "grant_ended"


# --- Rights ---------------------------------------------------------------------------------------
def test_rights_are_checked_again_at_the_return(
    tenant: Tenant, google: FakeGoogle, ada: Any, editor: Client
) -> None:
    callback = google.consent(begin(editor, ada), ADA)
    Membership.objects.update(role="viewer")

    answer = editor.get(f"{BACK}?{urlsplit(callback).query}")

    assert (answer.status_code, Grant.objects.exists()) == (403, False)


@pytest.mark.parametrize(
    "open_page",
    [
        lambda client, ada, grant: client.get(f"{CONNECT}?resource={ada['id']}"),
        lambda client, ada, grant: client.post(
            BEGIN, {"resource": ada["id"], "provider": "google"}
        ),
        lambda client, ada, grant: client.get(
            f"{CHOOSE}?{urlencode({'resource': ada['id'], 'grant': grant.pk})}"
        ),
    ],
    ids=["connect", "begin", "choose"],
)
def test_viewers_and_members_of_other_apps_may_not_connect(
    tenant: Tenant,
    make_tenant: Callable[..., Tenant],
    google: FakeGoogle,
    ada: Any,
    editor: Client,
    open_page: Callable[..., Any],
) -> None:
    grant = connect(editor, google, ada).connection.grant
    clients = [
        superuser(),
        member(tenant.app, "viewer"),
        member(make_tenant().app, "owner"),
        Client(),
    ]

    statuses = [open_page(client, ada, grant).status_code for client in clients]

    assert statuses == [200, 403, 404, 302]


def test_grant_without_calendars_is_only_for_its_giver(
    tenant: Tenant, google: FakeGoogle, ada: Any, editor: Client
) -> None:
    url = agree(editor, google, ada).redirect_chain[-1][0]
    other = member(tenant.app, "owner")

    assert [client.get(url).status_code for client in (editor, other)] == [200, 404]


def test_grant_of_another_resource_is_not_offered(
    tenant: Tenant, google: FakeGoogle, ada: Any, editor: Client
) -> None:
    grant = connect(editor, google, ada).connection.grant
    ben = tenant.make_resource("Ben")
    other = member(tenant.app, "owner")

    assert other.get(f"{CONNECT}?resource={ben['id']}").context["accounts"] == []
    url = f"{CHOOSE}?{urlencode({'resource': ben['id'], 'grant': grant.pk})}"
    assert other.get(url).status_code == 404


# --- Health ---------------------------------------------------------------------------------------
def test_pages_name_the_account(
    tenant: Tenant, google: FakeGoogle, ada: Any, editor: Client
) -> None:
    calendar = connect(editor, google, ada)
    Calendar.objects.filter(pk=calendar.pk).update(name="Mine")
    stop(calendar)

    pages = [editor.get(page).content.decode() for page in (page_of(calendar), LIST, "/admin/")]

    assert [ADA in page for page in pages] == [True, True, True]
    assert "Connect again…" in pages[0]
    sentence = "The permission to use the calendar has ended at the provider: connect the calendar"
    assert [sentence in unescape(page) for page in pages] == [True, True, True]


def test_resource_of_the_link_is_preset(tenant: Tenant, ada: Any, editor: Client) -> None:
    resource = Resource.objects.get(pk=ada["id"])
    page = editor.get(reverse("admin:availability_resource_connect_calendar", args=[resource.pk]))

    assert page["Location"] == f"{CONNECT}?resource={resource.pk}"
