"""Calendars that are kept elsewhere are connected in the back office, and who may do so."""

import re
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from apps_config.models import Membership
from availability.models import Calendar
from common.net.ssrf import NO_WEB_ADDRESS
from external_calendars.credentials import credentials_of
from external_calendars.models import Connection, Feed
from external_calendars.providers.base import PROVIDER_ERRORS, CalendarAccess, ProviderError
from external_calendars.services import FIELDS, FIND_SECONDS
from notifications.models import Delivery
from tests.external_calendars.fake_provider import FakeCalendarServer, fake_caldav, feeds
from tests.office.calendar_pages import FEED, HOME, LIST, WORK, connected, history, page_of
from tests.office.staff import form_of, member, messages_of, superuser
from tests.world import Tenant

__all__ = ["fake_caldav", "feeds"]

pytestmark = pytest.mark.django_db

CONNECT = reverse("admin:availability_calendar_connect")
FORM = {
    "provider": "caldav",
    "address": WORK,
    "username": "ada",
    "password": "correct horse",
    "name": "",
    "primary": "",
}
PARTS = ("reconnect", "try", "sync", "primary", "disconnect", "feed", "revoke_feed")


def connect_page(resource: Any) -> str:
    return f"{CONNECT}?resource={resource['id']}&provider=caldav"


def form_faults(answer: Any) -> dict[str, list[str]]:
    return {name: list(found) for name, found in answer.context["form"].errors.items()}


# --- Connect --------------------------------------------------------------------------------------
def test_a_calendar_is_connected(tenant: Tenant, fake_caldav: FakeCalendarServer) -> None:
    resource = tenant.make_resource("Ada")
    fake_caldav.put("https://dav.example.com/", at=WORK)
    editor = member(tenant.app, "editor")

    form = form_of(editor, connect_page(resource))
    answer = editor.post(connect_page(resource), FORM | {"address": "dav.example.com"}, follow=True)

    assert set(form) == set(FORM)
    calendar = Calendar.objects.get(provider="caldav")
    assert answer.redirect_chain == [(page_of(calendar), 302)]
    assert messages_of(answer) == ["“Work” is connected. The first sync is running."]
    assert fake_caldav.asked == [CalendarAccess("https://dav.example.com/", "ada", "correct horse")]
    assert fake_caldav.deadlines == [FIND_SECONDS]
    assert credentials_of(calendar.connection) == CalendarAccess(WORK, "ada", "correct horse")
    assert (calendar.resource.name, calendar.provider_primary) == ("Ada", True)
    pages = answer.content + editor.get(LIST).content + editor.get(page_of(calendar)).content
    assert b"correct horse" not in pages
    assert history(editor, calendar) == [f"Connected to {WORK}."]


@pytest.mark.parametrize(
    ("primary", "found", "is_primary"),
    [("", True, True), ("no", True, False), ("yes", True, True), ("", False, False)],
)
def test_primary_option_at_connection(
    tenant: Tenant, fake_caldav: FakeCalendarServer, primary: str, found: bool, is_primary: bool
) -> None:
    resource = tenant.make_resource()
    fake_caldav.put(WORK, may_write=found)
    editor = member(tenant.app, "editor")

    editor.post(connect_page(resource), FORM | {"primary": primary, "name": "My own"})

    calendar = Calendar.objects.get(provider="caldav")
    assert (calendar.name, calendar.provider_primary) == ("My own", is_primary)


@pytest.mark.parametrize("trouble", PROVIDER_ERRORS)
def test_connect_error_is_at_its_field(
    tenant: Tenant, fake_caldav: FakeCalendarServer, trouble: str
) -> None:
    resource = tenant.make_resource()
    fake_caldav.calendars[WORK] = ProviderError(trouble)
    editor = member(tenant.app, "editor")

    answer = editor.post(connect_page(resource), FORM)

    field = {"provider_primary": "primary"}.get(FIELDS.get(trouble, ""), FIELDS.get(trouble))
    assert (answer.status_code, form_faults(answer)) == (
        200,
        {field or "address": [PROVIDER_ERRORS[trouble]]},
    )
    page = unescape(answer.content.decode())
    assert page.count(PROVIDER_ERRORS[trouble]) == 1
    assert ("correct horse" in page, f'value="{WORK}"' in page) == (False, True)
    assert not Connection.objects.exists()


@pytest.mark.parametrize(
    ("given", "field", "words"),
    [
        ({"address": ""}, "address", "This field is required."),
        ({"address": "ftp://dav.example.com"}, "address", NO_WEB_ADDRESS),
        ({"username": "a:b"}, "username", "May not contain a colon."),
        ({"provider": "unknown"}, "provider", "Select a valid choice."),
        ({"primary": "perhaps"}, "primary", "Select a valid choice."),
        ({"primary": "yes", "address": HOME}, "primary", PROVIDER_ERRORS["no_write_access"]),
    ],
)
def test_wrong_values_are_refused_as_in_the_api(
    tenant: Tenant, fake_caldav: FakeCalendarServer, given: dict[str, str], field: str, words: str
) -> None:
    resource = tenant.make_resource()
    fake_caldav.put(WORK)
    fake_caldav.put(HOME, may_write=False)
    editor = member(tenant.app, "editor")

    answer = editor.post(connect_page(resource), FORM | given)

    [(found, [sentence])] = form_faults(answer).items()
    assert (found, sentence.startswith(words)) == (field, True)
    assert not Connection.objects.exists()


def test_address_of_a_feed_is_hidden(
    tenant: Tenant, feeds: FakeCalendarServer, fake_caldav: FakeCalendarServer
) -> None:
    resource = tenant.make_resource()
    feeds.put(FEED, "Holidays")
    editor = member(tenant.app, "editor")
    form = {**FORM, "provider": "ics", "address": FEED, "username": "", "password": ""}

    refused = editor.post(connect_page(resource), form | {"primary": "yes"})
    answer = editor.post(connect_page(resource), form, follow=True)

    calendar = Calendar.objects.get(provider="ics")
    pages = [refused, answer, editor.get(page_of(calendar, "reconnect")), editor.get(LIST)]
    assert form_faults(refused) == {"primary": [PROVIDER_ERRORS["no_write_access"]]}
    assert [page for page in pages if b"5ecret" in page.content] == []
    assert "https://feeds.example.com" in answer.content.decode()
    assert history(editor, calendar) == ["Connected to https://feeds.example.com."]


def test_already_connected_calendar_is_refused(
    tenant: Tenant, fake_caldav: FakeCalendarServer
) -> None:
    resource = tenant.make_resource()
    connected(tenant, fake_caldav, resource)
    editor = member(tenant.app, "editor")

    answer = editor.post(connect_page(resource), FORM)

    assert form_faults(answer) == {"address": ["This calendar is already connected as “Work”."]}
    assert Connection.objects.count() == 1


def test_resource_can_be_chosen(tenant: Tenant, fake_caldav: FakeCalendarServer) -> None:
    tenant.make_resource("Ada")
    tenant.make_resource("Bob")
    Tenant("other").make_resource("Ada of another")
    editor = member(tenant.app, "editor")

    every = editor.get(CONNECT)
    found = editor.get(CONNECT, {"q": "bo"})

    assert [one.name for one in every.context["resources"]] == ["Ada", "Bob"]
    assert [one.name for one in found.context["resources"]] == ["Bob"]
    [address] = re.findall(r'href="(\?resource=[^"]+)"', found.content.decode())
    assert address == f"?resource={found.context['resources'][0].pk}"


@pytest.mark.django_db(transaction=True)
def test_server_is_called_outside_transactions(
    tenant: Tenant, fake_caldav: FakeCalendarServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    resource = tenant.make_resource()
    fake_caldav.put(WORK)
    editor = member(tenant.app, "editor")
    inside = []
    find = fake_caldav.find_calendar
    monkeypatch.setattr(
        fake_caldav,
        "find_calendar",
        lambda *args, **kinds: inside.append(connection.in_atomic_block) or find(*args, **kinds),
    )

    editor.post(connect_page(resource), FORM)
    calendar = Calendar.objects.get(provider="caldav")
    editor.post(page_of(calendar, "try"))
    editor.post(page_of(calendar, "reconnect"), form_of(editor, page_of(calendar, "reconnect")))

    assert inside == [False] * 3


# --- Reconnect --------------------------------------------------------------------------------
def test_reconnect_without_changes_keeps_credentials(
    tenant: Tenant, fake_caldav: FakeCalendarServer
) -> None:
    now = timezone.now()
    calendar = connected(
        tenant, fake_caldav, problem="unauthorized", problem_since=now, next_at=None, failures=3
    )
    editor = member(tenant.app, "editor")
    path = page_of(calendar, "reconnect")

    form = form_of(editor, path)
    answer = editor.post(path, form | {"password": "battery"}, follow=True)

    assert form == {"address": WORK, "username": "ada", "password": ""}
    assert messages_of(answer) == ["“Work” is reconnected."]
    kept = Connection.objects.get()
    assert credentials_of(kept) == CalendarAccess(WORK, "ada", "battery")
    assert (kept.problem, kept.failures, kept.is_stopped) == ("", 0, False)
    assert history(editor, calendar) == [f"Reconnected to {WORK}."]


@pytest.mark.parametrize(
    ("given", "access"),
    [
        ({}, CalendarAccess(WORK, "ada", "correct horse")),
        ({"address": HOME}, CalendarAccess(HOME, "ada", "correct horse")),
        ({"username": "bob"}, CalendarAccess(WORK, "bob", "correct horse")),
        ({"username": ""}, CalendarAccess(WORK, "", "")),
        ({"address": "https://other.example.com/", "password": "new"}, None),
    ],
)
def test_reconnect_tests_changed_credentials(
    tenant: Tenant,
    fake_caldav: FakeCalendarServer,
    given: dict[str, str],
    access: CalendarAccess | None,
) -> None:
    calendar = connected(tenant, fake_caldav)
    fake_caldav.put(HOME)
    fake_caldav.put("https://other.example.com/")
    editor = member(tenant.app, "editor")
    path = page_of(calendar, "reconnect")

    editor.post(path, form_of(editor, path) | given)

    wanted = access or CalendarAccess("https://other.example.com/", "ada", "new")
    assert (fake_caldav.asked[-1], credentials_of(Connection.objects.get())) == (wanted, wanted)


def test_stored_password_is_not_sent_to_another_server(
    tenant: Tenant, fake_caldav: FakeCalendarServer
) -> None:
    calendar = connected(tenant, fake_caldav)
    fake_caldav.put("https://evil.example.com/")
    editor = member(tenant.app, "editor")
    path = page_of(calendar, "reconnect")

    answer = editor.post(path, form_of(editor, path) | {"address": "https://evil.example.com/"})

    assert form_faults(answer) == {
        "password": ["Enter the password again: the address is on another server."]
    }
    assert len(fake_caldav.asked) == 1
    assert credentials_of(Connection.objects.get()) == CalendarAccess(WORK, "ada", "correct horse")


def test_refused_reconnect_changes_nothing(tenant: Tenant, fake_caldav: FakeCalendarServer) -> None:
    calendar = connected(tenant, fake_caldav)
    fake_caldav.calendars[WORK] = ProviderError("unauthorized")
    editor = member(tenant.app, "editor")
    path = page_of(calendar, "reconnect")

    answer = editor.post(path, form_of(editor, path) | {"password": "wr0ng"})

    assert form_faults(answer) == {"password": [PROVIDER_ERRORS["unauthorized"]]}
    assert b"wr0ng" not in answer.content
    assert credentials_of(Connection.objects.get()).password == "correct horse"


# --- Rights ---------------------------------------------------------------------------------------
def statuses(client: Any, calendar: Calendar, resource: Any) -> dict[str, tuple[int, int]]:
    """Of each page: what a look at it comes to, and a form that is sent to it."""
    found = {
        part: (
            client.get(page_of(calendar, part)).status_code,
            client.post(page_of(calendar, part)).status_code,
        )
        for part in PARTS
    }
    path = connect_page(resource)
    return found | {"connect": (client.get(path).status_code, client.post(path, FORM).status_code)}


@pytest.mark.parametrize("who", ["viewer", "stranger", "staff without permissions"])
def test_viewers_and_members_of_other_apps_cannot_change(
    tenant: Tenant, fake_caldav: FakeCalendarServer, who: str
) -> None:
    resource = tenant.make_resource()
    calendar = connected(tenant, fake_caldav, resource)
    tenant.post(f"/calendars/{calendar.pk}/feed")
    client = {
        "viewer": lambda: member(tenant.app, "viewer"),
        "stranger": lambda: member(Tenant("other").app, "owner"),
        "staff without permissions": lambda: _plain_staff(),
    }[who]()

    found = statuses(client, calendar, resource)

    refused = {"viewer": 403, "stranger": 404, "staff without permissions": 403}[who]
    # What takes a POST alone says so to those who may send it for their own calendars.
    posts = ("try", "sync", "primary") if who == "stranger" else ()
    looks = {part: 405 if part in posts else refused for part in found}
    assert found == {part: (looks[part], refused) for part in found}
    assert (Connection.objects.count(), Feed.objects.count(), len(fake_caldav.asked)) == (1, 1, 1)


def _plain_staff() -> Any:
    client = superuser()
    client.account.is_superuser = False
    client.account.save()
    return client


@pytest.mark.parametrize("role", ["editor", "owner"])
def test_editors_and_owners_may_change(
    tenant: Tenant, fake_caldav: FakeCalendarServer, role: str
) -> None:
    resource = tenant.make_resource()
    calendar = connected(tenant, fake_caldav, resource)
    tenant.post(f"/calendars/{calendar.pk}/feed")
    client = member(tenant.app, role)

    found = statuses(client, calendar, resource)

    assert found == {
        "reconnect": (200, 200),
        "try": (405, 302),
        "sync": (405, 302),
        "primary": (405, 302),
        "disconnect": (200, 302),
        "feed": (200, 200),
        "revoke_feed": (200, 302),
        "connect": (200, 302),
    }


def test_role_is_per_app(tenant: Tenant, fake_caldav: FakeCalendarServer) -> None:
    """Somebody with two apps does in each what the role there allows."""
    client = member(tenant.app, "editor")
    other = Tenant("other")
    Membership.objects.create(app=other.app, account=client.account, role="viewer")
    resource = other.make_resource("Zoe")
    tenant.make_resource("Ada")
    fake_caldav.put(WORK)

    chosen = client.get(CONNECT).context["resources"]
    answers = [client.get(connect_page(resource)), client.post(connect_page(resource), FORM)]
    add = reverse("admin:availability_calendar_add")
    client.post(add, form_of(client, add) | {"resource": resource["id"], "name": "Mine"})

    assert [one.name for one in chosen] == ["Ada"]
    assert [answer.status_code for answer in answers] == [403, 403]
    assert not Calendar.objects.filter(name="Mine").exists()
    assert not Delivery.objects.filter(app=other.app).exists()
