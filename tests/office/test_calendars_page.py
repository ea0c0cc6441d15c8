"""Calendars in the back office: each page, the list, and calendars on other pages."""

import re
import uuid
from datetime import UTC, datetime, timedelta
from html import unescape
from html.parser import HTMLParser
from typing import Any

import pytest
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from apps_config.models import Membership
from availability.models import Calendar, Event
from bookings.models import Booking
from external_calendars.grants import due_renewals
from external_calendars.models import Connection, ExternalObject, Feed, Grant, WrittenEvent
from external_calendars.providers.base import FINAL_ERRORS, PROVIDER_ERRORS, ProviderError
from office.calendars import admin
from office.calendars.sync_status import STATES, STOPPED, state_of, with_state
from office.calendars.unreadable_objects import name_in_collection, printable_line
from tests.external_calendars.fake_provider import FakeCalendarServer, fake_caldav, feeds
from tests.office.calendar_pages import (
    FEED,
    HOME,
    LIST,
    WORK,
    connected,
    history,
    leave_unread,
    page_of,
)
from tests.office.conftest import Enter
from tests.office.staff import form_of, member, messages_of, secret_on, superuser
from tests.queries import Queries
from tests.world import Tenant

__all__ = ["fake_caldav", "feeds"]

pytestmark = pytest.mark.django_db


# --- Its page -------------------------------------------------------------------------------------
def test_test_button_shows_the_result(tenant: Tenant, fake_caldav: FakeCalendarServer) -> None:
    calendar = connected(tenant, fake_caldav)
    editor = member(tenant.app, "editor")

    good = editor.post(page_of(calendar, "try"), follow=True)
    fake_caldav.calendars[WORK] = ProviderError("address_refused")
    bad = editor.post(page_of(calendar, "try"), follow=True)

    [words] = messages_of(good)
    assert re.fullmatch(
        r"The calendar can be used\. Access: read and write\. Response time: \d\.\d s\.",
        words,
    )
    assert messages_of(bad) == [PROVIDER_ERRORS["address_refused"]]
    assert Connection.objects.get().problem == ""


def test_sync_now_restarts_a_stopped_calendar(
    tenant: Tenant, fake_caldav: FakeCalendarServer
) -> None:
    calendar = connected(tenant, fake_caldav, next_at=None, problem="unauthorized")
    editor = member(tenant.app, "editor")

    answer = editor.post(page_of(calendar, "sync"), follow=True)

    assert messages_of(answer) == ["A sync was requested. This page shows its progress."]
    assert Connection.objects.get().next_at is not None


def test_sync_now_of_an_ended_permission_asks_the_provider_once_more(
    tenant: Tenant, fake_caldav: FakeCalendarServer
) -> None:
    now = timezone.now()
    grant = Grant.objects.create(app=tenant.app, provider="google", access_ends_at=now)
    ended = {"problem": "grant_ended", "problem_since": now, "next_at": None}
    calendar = connected(tenant, fake_caldav, grant=grant, **ended)
    editor = member(tenant.app, "editor")

    answer = editor.post(page_of(calendar, "sync"), follow=True)

    assert messages_of(answer) == ["The provider is asked once more. If it refuses, connect again."]
    assert Connection.objects.get().is_stopped
    assert due_renewals(timezone.now()).get() == grant
    [shown] = with_state(Calendar.objects.filter(id=calendar.id), timezone.now())
    assert state_of(shown) == STOPPED


def test_primary_calendar_is_chosen(tenant: Tenant, fake_caldav: FakeCalendarServer) -> None:
    resource = tenant.make_resource("Ada")
    work = connected(tenant, fake_caldav, resource)
    home = connected(tenant, fake_caldav, resource, HOME)
    editor = member(tenant.app, "editor")

    first = editor.post(page_of(home, "primary"), {"primary": "yes"}, follow=True)
    chosen = {
        calendar.pk: calendar.provider_primary
        for calendar in Calendar.objects.filter(provider="caldav")
    }
    second = editor.post(page_of(home, "primary"), {"primary": "no"}, follow=True)

    assert chosen == {work.pk: False, home.pk: True}
    assert messages_of(first) == ["Bookings of Ada are now written to this calendar."]
    assert messages_of(second) == ["Bookings of Ada are no longer written to this calendar."]
    assert not Calendar.objects.filter(provider_primary=True).exists()
    assert history(editor, home) == ["Made primary.", "Not primary."]


def test_read_only_calendar_cannot_be_primary(
    tenant: Tenant, fake_caldav: FakeCalendarServer
) -> None:
    fake_caldav.put(WORK, may_write=False)
    calendar = connected(tenant, fake_caldav)
    editor = member(tenant.app, "editor")

    answer = editor.post(page_of(calendar, "primary"), {"primary": "yes"}, follow=True)

    assert messages_of(answer) == [PROVIDER_ERRORS["no_write_access"]]
    assert not Calendar.objects.filter(provider_primary=True).exists()


def test_disconnect_after_confirmation_keeps_the_calendar(
    tenant: Tenant, fake_caldav: FakeCalendarServer
) -> None:
    calendar = connected(tenant, fake_caldav)
    Event.objects.create(
        app_id=calendar.app_id,
        calendar=calendar,
        resource=calendar.resource,
        what="Dentist",
        start=timezone.now(),
        end=timezone.now() + timedelta(hours=1),
    )
    editor = member(tenant.app, "editor")

    asked = editor.get(page_of(calendar, "disconnect"))
    before = Connection.objects.count()
    answer = editor.post(page_of(calendar, "disconnect"), follow=True)

    assert "Disconnect “Work”?" in asked.content.decode()
    assert before == 1
    assert messages_of(answer) == ["“Work” is disconnected."]
    assert (Connection.objects.count(), Event.objects.count()) == (0, 0)
    assert Calendar.objects.get(id=calendar.id).provider == "service"
    assert history(editor, calendar) == [f"Disconnected from {WORK}."]
    assert editor.post(page_of(calendar, "disconnect")).status_code == 404


def test_concurrent_disconnect_is_404(
    tenant: Tenant, fake_caldav: FakeCalendarServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is let go of between the look at the page's row and the service's own."""
    calendar = connected(tenant, fake_caldav)
    editor = member(tenant.app, "editor")
    find = admin.CalendarAdmin.find_to_change

    def find_then_lose(page: Any, request: Any, object_id: str) -> Calendar:
        found = find(page, request, object_id)
        tenant.delete(f"/calendars/{calendar.pk}")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(admin.CalendarAdmin, "find_to_change", find_then_lose)
        answer = editor.post(page_of(calendar, "disconnect"))

    assert answer.status_code == 404


def test_feed_is_created_shown_once_and_revoked(tenant: Tenant) -> None:
    tenant.make_resource()
    calendar = Calendar.objects.get()
    editor = member(tenant.app, "editor")
    path = page_of(calendar, "feed")

    first = secret_on(editor.post(path))
    asked = editor.get(path)
    second = secret_on(editor.post(path))
    pages = editor.get(page_of(calendar)).content + editor.get(LIST).content
    read = [tenant.get(url.split("/v2")[1]).status for url in (first, second)]
    editor.get(page_of(calendar, "revoke_feed"))
    kept = Feed.objects.count()
    revoked = editor.post(page_of(calendar, "revoke_feed"), follow=True)

    assert first != second
    assert "The old URL stops working." in asked.content.decode()
    assert second.partition("token=")[2].encode() not in pages
    assert read == [404, 200]
    assert (kept, Feed.objects.count()) == (1, 0)
    assert messages_of(revoked) == ["The feed is revoked."]
    assert history(editor, calendar) == [
        "Feed created.",
        "Feed URL replaced.",
        "Feed revoked.",
    ]
    assert editor.post(page_of(calendar, "revoke_feed")).status_code == 404


def test_page_shows_the_state_of_the_sync(tenant: Tenant, fake_caldav: FakeCalendarServer) -> None:
    calendar = connected(
        tenant,
        fake_caldav,
        synced_at=None,
        problem="rate_limited",
        problem_since=timezone.now(),
        done=1200,
        total=5000,
        lease_token=tenant.app.pk,
    )
    viewer = member(tenant.app, "viewer")

    page = unescape(viewer.get(page_of(calendar)).content.decode())

    for words in (
        "out of sync",
        "primary: bookings are written to this calendar",
        PROVIDER_ERRORS["rate_limited"],
        "1,200 of 5,000 objects",
        WORK,
        "read and write",
        "never",
        "running",
    ):
        assert words in page
    for words in ("Test the connection", "Disconnect…", "Create a feed", "correct horse"):
        assert words not in page


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"next_at": datetime(2099, 1, 1, 12, tzinfo=UTC)}, "Thu 1 Jan 2099, 13:00 CET"),
        ({"next_at": datetime(2026, 1, 1, 12, tzinfo=UTC)}, "queued"),
        (
            {"next_at": datetime(2099, 1, 1, 12, tzinfo=UTC), "lease_token": uuid.UUID(int=1)},
            "running",
        ),
        ({"next_at": None}, "none until the problem is fixed"),
    ],
)
def test_time_of_the_next_sync(
    tenant: Tenant, fake_caldav: FakeCalendarServer, given: dict[str, Any], words: str
) -> None:
    resource = tenant.make_resource(timezone="Europe/Berlin")
    calendar = connected(tenant, fake_caldav, resource, **given)

    page = member(tenant.app, "viewer").get(page_of(calendar)).content.decode()

    [said] = re.findall(r"<dt>Next sync</dt><dd>([^<]*)</dd>", page)
    assert said.removesuffix(" (Europe/Berlin)") == words


class _Unread(HTMLParser):
    """Of the card of objects that can't be read: its texts, and the elements in its rows."""

    def __init__(self) -> None:
        super().__init__()
        self.is_here, self.is_row = False, False
        self.texts: list[str] = []
        self.elements: set[str] = set()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag == "section":
            self.is_here = dict(attrs).get("aria-labelledby") == "unread"
        if self.is_here and tag == "li":
            self.is_row = True
        if self.is_row:
            self.elements.add(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag == "section":
            self.is_here = self.is_row = False
        self.is_row = self.is_row and tag != "ul"

    def handle_data(self, data: str) -> None:
        if self.is_here and data.strip():
            self.texts.append(data.strip())


def unreadable_objects_on(client: Any, calendar: Calendar) -> tuple[list[str], set[str]]:
    answer = client.get(page_of(calendar))
    assert answer.status_code == 200
    parser = _Unread()
    parser.feed(answer.content.decode())
    return parser.texts, parser.elements


STOP_NO_OTHER = (
    "Other objects are synced, and the last known events of these objects stay. An object is read"
    " again when it changes on its server."
)


def test_unreadable_objects_are_listed(tenant: Tenant, fake_caldav: FakeCalendarServer) -> None:
    calendar = connected(tenant, fake_caldav, tenant.make_resource(timezone="Europe/Berlin"))
    viewer = member(tenant.app, "viewer")
    ExternalObject.objects.create(connection=calendar.connection, href="/good.ics", uid="good")

    none = unreadable_objects_on(viewer, calendar)
    leave_unread(calendar, "/ada/work/B%C3%BCro%2Feins.ics")
    one = unreadable_objects_on(viewer, calendar)
    cell = viewer.get(LIST, {"provider": "caldav"}).context["cl"]
    ExternalObject.objects.exclude(problem="").delete()
    leave_unread(calendar, *(f"/ada/work/{number}.ics" for number in range(12)))
    many, _ = unreadable_objects_on(viewer, calendar)

    words = "The text is not a calendar."
    assert none == ([], set())
    assert one[0] == [
        "1 object can't be read",
        STOP_NO_OTHER,
        "Büro/eins.ics",
        words,
        "since Tue 1 Jan 2030, 13:00 CET",
    ]
    assert [cell.model_admin.problem(row) for row in cell.result_list] == ["1 object can't be read"]
    assert many == [
        "12 objects can't be read",
        STOP_NO_OTHER,
        *(
            text
            for number in range(11, 1, -1)
            for text in (f"{number}.ics", words, f"since Tue 1 Jan 2030, 13:{number:02} CET")
        ),
        "And 2 more.",
    ]


@pytest.mark.parametrize(
    ("href", "name"),
    [
        ("/w/<script>alert(1)</script>", "script>"),
        ("/w/%3Cscript%3Ealert(1)%3C%2Fscript%3E", "<script>alert(1)</script>"),
        ('/w/"><img src=x onerror=alert(1)>', '"><img src=x onerror=alert(1)>'),
        ("/w/a%00b%0D%0Ac%1B[31m", "a�b��c�[31m"),
        ("/w/%E2%80%AEsci.exe", "�sci.exe"),
        ("/w/%ff%fe.ics", "��.ics"),
        ("/w/{{ csrf_token }}{% now 'Y' %}", "{{ csrf_token }}{% now 'Y' %}"),
        ("/w/", "w"),
        ("", "without a name"),
        ("/", "without a name"),
        ("/w/%20%20", "without a name"),
        ("/w/" + "x" * 997, "x" * 79 + "…"),
    ],
)
@pytest.mark.matrix
def test_hostile_names_are_escaped_on_one_line(
    tenant: Tenant, fake_caldav: FakeCalendarServer, href: str, name: str
) -> None:
    calendar = connected(tenant, fake_caldav)
    leave_unread(calendar, href, problem="RRULE can't be <b>\x1b\u202e</b>.")

    texts, elements = unreadable_objects_on(member(tenant.app, "viewer"), calendar)

    assert texts[2:] == [name, "RRULE can't be <b>��</b>.", "since Tue 1 Jan 2030, 12:00 UTC"]
    assert elements == {"li", "span", "strong"}


def test_long_names_are_truncated() -> None:
    """More than the column takes: SQLite would keep it."""
    assert name_in_collection("/" + "%41" * 10_000) == "A" * 10_000
    assert printable_line("x" * 10_000, 80) == "x" * 79 + "…"
    assert printable_line("\n" * 10_000, 80) == "�" * 79 + "…"
    assert printable_line("x" * 80, 80) == "x" * 80


def test_unreadable_feed_object_is_named_by_uid(tenant: Tenant, feeds: FakeCalendarServer) -> None:
    feeds.put(FEED)
    body = {"resource_id": tenant.make_resource()["id"], "provider": "ics", "address": FEED}
    calendar = Calendar.objects.get(id=tenant.post("/calendars", body).data["id"])
    leave_unread(calendar, "holidays/2030%41@example.com", problem_since=None)

    texts, _ = unreadable_objects_on(member(tenant.app, "viewer"), calendar)

    assert texts[2:] == ["holidays/2030%41@example.com", "The text is not a calendar."]


def test_form_saves_only_name_and_description(
    tenant: Tenant, fake_caldav: FakeCalendarServer
) -> None:
    calendar = connected(tenant, fake_caldav)
    editor = member(tenant.app, "editor")
    form = form_of(editor, page_of(calendar))
    # What a worker and a client do meanwhile.
    Calendar.objects.filter(id=calendar.id).update(synced_at=None, description="by the API")

    saved = editor.post(page_of(calendar), form | {"name": "Office"})
    refused = editor.post(page_of(calendar), form | {"name": "two\nlines" + "x" * 200})

    calendar.refresh_from_db()
    assert (saved.status_code, refused.status_code) == (302, 200)
    assert (calendar.name, calendar.description, calendar.synced_at) == (
        "Office",
        "by the API",
        None,
    )


def test_service_calendar_is_added(tenant: Tenant) -> None:
    resource = tenant.make_resource()
    editor = member(tenant.app, "editor")
    path = reverse("admin:availability_calendar_add")

    editor.post(path, form_of(editor, path) | {"resource": resource["id"], "name": "Private"})

    [found] = Calendar.objects.filter(name="Private")
    assert (str(found.resource_id), found.provider) == (resource["id"], "service")


def test_writes_are_in_the_delivery_log(tenant: Tenant, fake_caldav: FakeCalendarServer) -> None:
    resource = tenant.make_resource()
    work = connected(tenant, fake_caldav, resource)
    booked = tenant.book(
        resource_id=resource["id"], start="2030-01-02 10:00:00", end="2030-01-02 11:00:00"
    ).data
    bob = tenant.make_resource("Bob")
    other = connected(tenant, fake_caldav, bob, HOME)
    tenant.book(resource_id=bob["id"], start="2030-01-02 10:00:00", end="2030-01-02 11:00:00")
    editor = member(tenant.app, "editor")
    stranger = member(Tenant("other").app, "owner")
    path = reverse("admin:notifications_delivery_changelist")

    found = editor.get(path, {"calendar": str(work.pk)}).context["cl"].result_list
    foreign = stranger.get(path, {"calendar": str(other.pk)}).context["cl"].result_list

    assert [(row.type, str(row.booking_id)) for row in found] == [("calendar", booked["id"])]
    assert list(foreign) == []


# --- The booking's page ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("state", "reason", "words"),
    [
        ("pending", "", "Will be written to Work"),
        (
            "pending",
            PROVIDER_ERRORS["unreachable"],
            f"Will be written to Work: {PROVIDER_ERRORS['unreachable']}",
        ),
        ("written", "", "Written to Work, Tue 1 Jan 2030, 13:00 CET"),
        ("removed", "", "Removed from Work"),
        ("moved_there", "Moved there to noon.", "In Work: Moved there to noon."),
        ("removed_there", "Removed in the external calendar. The booking is unchanged.", None),
        ("refused", "Moved there, which can't be followed: No.", None),
    ],
)
def test_booking_page_shows_the_written_event(
    tenant: Tenant, fake_caldav: FakeCalendarServer, state: str, reason: str, words: str | None
) -> None:
    resource = tenant.make_resource(timezone="Europe/Berlin")
    connected(tenant, fake_caldav, resource)
    tenant.book(resource_id=resource["id"], start="2030-01-02 10:00:00", end="2030-01-02 11:00:00")
    WrittenEvent.objects.update(state=state, reason=reason, written_at="2030-01-01T12:00:00Z")
    viewer = member(tenant.app, "viewer")

    page = viewer.get(reverse("admin:bookings_booking_change", args=[Booking.objects.get().pk]))

    [found] = re.findall(r"<dt>Calendar</dt><dd[^>]*>(.*?)</dd>", page.content.decode())
    said = unescape(re.sub(r"<[^>]+>", "", found))
    assert said == (words or f"In Work: {reason}")


# --- The list, and today's page -------------------------------------------------------------------
@pytest.fixture
def every(tenant: Tenant, fake_caldav: FakeCalendarServer) -> dict[str, Calendar]:
    """A calendar in each state."""
    now = timezone.now()
    long_ago = now - timedelta(days=2)
    resource = tenant.make_resource("Ada", timezone="Europe/Berlin")

    def one(number: int, **given: Any) -> Calendar:
        return connected(tenant, fake_caldav, resource, f"{WORK}{number}/", **given)

    found = {
        "here": Calendar.objects.get(provider="service"),
        "synced": one(1),
        "first_sync": one(2, synced_at=None),
        "failing": one(3, problem="unreachable", problem_since=now),
        "out_of_step": one(4, synced_at=long_ago, problem="unreachable", problem_since=now),
        "stopped": one(5, next_at=None, problem="unauthorized", problem_since=now),
        "deleted": one(6),
    }
    tenant.delete(f"/calendars/{found['deleted'].pk}")
    return found


def test_list_shows_the_state_of_each_calendar(
    tenant: Tenant, every: dict[str, Calendar], enter: Enter
) -> None:
    viewer = enter(tenant, Membership.VIEWER)

    usual = viewer.get(LIST).context["cl"]
    page = viewer.get(LIST, {"deleted": "all"}).context["cl"]
    shown = {row.pk: page.model_admin.shown_state(row) for row in page.result_list}
    by_state = {
        state: [row.pk for row in viewer.get(LIST, {"state": state}).context["cl"].result_list]
        for state in STATES
    }
    by_provider = viewer.get(LIST, {"provider": "service"}).context["cl"].result_list
    trouble = viewer.get(LIST, {"state": "trouble"}).context["cl"].result_list

    living = {calendar.pk for state, calendar in every.items() if state != "deleted"}
    assert {row.pk for row in usual.result_list} == living
    assert shown == {calendar.pk: (state, STATES[state][0]) for state, calendar in every.items()}
    assert by_state == {state: [calendar.pk] for state, calendar in every.items()}
    assert [row.pk for row in by_provider] == [every["here"].pk]
    assert {row.pk for row in trouble} == {every["out_of_step"].pk, every["stopped"].pk}


@pytest.mark.parametrize("problem", PROVIDER_ERRORS)
def test_permanent_problem_needs_attention_at_once(
    tenant: Tenant, fake_caldav: FakeCalendarServer, enter: Enter, problem: str
) -> None:
    """Though the last sync but one was a minute ago, and others will follow."""
    calendar = connected(tenant, fake_caldav, problem=problem, problem_since=timezone.now())

    page = enter(tenant, Membership.VIEWER).get(LIST, {"state": "trouble"}).context["cl"]

    found = {row.pk for row in page.result_list}
    assert found == ({calendar.pk} if problem in FINAL_ERRORS else set())


def test_dashboard_lists_stale_calendars(
    tenant: Tenant, every: dict[str, Calendar], enter: Enter
) -> None:
    Tenant("other")

    context = enter(tenant).get("/admin/").context
    elsewhere = enter(Tenant("third")).get("/admin/").context

    figure = context["figures"][-1]
    assert (figure.words, figure.number, figure.is_bad) == ("calendars need attention", "2", True)
    lines = [(one["link"], one["state"], one["problem"]) for one in context["calendars"]]
    assert lines == [
        (page_of(every["out_of_step"]), "out of sync", PROVIDER_ERRORS["unreachable"]),
        (page_of(every["stopped"]), "stopped", PROVIDER_ERRORS["unauthorized"]),
    ]
    assert context["first_syncs"] == [
        {
            "link": page_of(every["first_sync"]),
            "name": "Work",
            "resource": "Ada",
            "account": "",
            "state": "first sync",
            "colour": "info",
            "since": "queued",
        }
    ]
    names = ("calendars", "first_syncs")
    assert elsewhere["figures"][-1].number == "0"
    assert [elsewhere[name] for name in names] == [[], []]


FIRST = {"synced_at": None}
AN_HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("given", "state"),
    [
        (FIRST, "first_sync"),
        (FIRST | {"created_at": AN_HOUR - timedelta(minutes=1)}, "first_sync"),
        (FIRST | {"created_at": AN_HOUR + timedelta(minutes=1)}, "out_of_step"),
        (FIRST | {"problem": "unreachable"}, "out_of_step"),
        (FIRST | {"problem": "unauthorized", "next_at": None}, "stopped"),
        ({"synced_at": AN_HOUR + timedelta(minutes=1)}, "out_of_step"),
        ({"synced_at": AN_HOUR - timedelta(minutes=1)}, "synced"),
        ({"synced_at": AN_HOUR - timedelta(minutes=1), "problem": "unreachable"}, "failing"),
    ],
)
def test_staleness_agrees_with_availability(
    tenant: Tenant, fake_caldav: FakeCalendarServer, given: dict[str, Any], state: str
) -> None:
    """One rule: no page says that a calendar is in sync of which availability warns."""
    now = timezone.now()
    values = {name: now - one if isinstance(one, timedelta) else one for name, one in given.items()}
    calendar = connected(tenant, fake_caldav, **values)
    resource_id = str(calendar.resource_id)
    editor = member(tenant.app, "editor")

    day = {"from": "2030-01-01T10:00:00Z", "to": "2030-01-01T11:00:00Z"}
    answer = tenant.post("/availability", {"resources": [resource_id], "length": "1 hour", **day})
    [row] = editor.get(LIST, {"provider": "caldav"}).context["cl"].result_list
    today = editor.get("/admin/").context

    assert row.state == state
    is_late = values["synced_at"] is None or values["synced_at"] < now - AN_HOUR
    assert bool(answer.json.get("warnings")) is is_late
    named = {name: [one["name"] for one in today[name]] for name in ("calendars", "first_syncs")}
    assert named == {
        "calendars": ["Work"] if state in ("out_of_step", "stopped") else [],
        "first_syncs": ["Work"] if state == "first_sync" else [],
    }


@pytest.mark.parametrize("given", [{}, {"address": HOME}])
def test_reconnected_calendar_is_in_its_first_sync(
    tenant: Tenant, fake_caldav: FakeCalendarServer, given: dict[str, str]
) -> None:
    """One that could never be read, days ago."""
    days_ago = timezone.now() - timedelta(days=3)
    calendar = connected(
        tenant,
        fake_caldav,
        synced_at=None,
        problem="unauthorized",
        next_at=None,
        created_at=days_ago,
    )
    fake_caldav.put(HOME)
    editor = member(tenant.app, "editor")
    path = page_of(calendar, "reconnect")

    def state() -> str:
        [row] = editor.get(LIST, {"provider": "caldav"}).context["cl"].result_list
        return row.state

    first = state()
    editor.post(path, form_of(editor, path) | {"password": "new"} | given)

    assert (first, state()) == ("stopped", "first_sync")


@pytest.mark.parametrize("who", ["staff", "viewer"])
@pytest.mark.parametrize("counts", [(1, 3), pytest.param((1, 3, 60), marks=pytest.mark.deep)])
def test_query_count_of_pages_is_constant(
    tenant: Tenant, fake_caldav: FakeCalendarServer, who: str, counts: tuple[int, ...]
) -> None:
    client = superuser() if who == "staff" else member(tenant.app, "viewer")
    resource = tenant.make_resource()
    calendar = connected(tenant, fake_caldav, resource)
    paths = [LIST, f"{LIST}?state=trouble", "/admin/", page_of(calendar)]
    long_ago = timezone.now() - timedelta(days=2)
    asked = []

    for count in counts:
        made = Calendar.objects.bulk_create(
            Calendar(
                app=tenant.app,
                resource_id=resource["id"],
                name=f"{count} {number}",
                provider="caldav",
            )
            for number in range(count)
        )
        Connection.objects.bulk_create(
            Connection(calendar=one, address="x", created_at=long_ago) for one in made
        )
        ExternalObject.objects.all().delete()
        leave_unread(calendar, *(f"/{number}.ics" for number in range(count)))
        taken = []
        for path in paths:
            client.get(path)  # what Django keeps of its own tables, and the charts
            with Queries(connection) as queries:
                assert client.get(path).status_code == 200
            taken.append(len(queries))
        asked.append(taken)

    assert asked == [asked[0]] * len(counts)
