"""Why not? The reasons of a week, with the sentences and the links behind them."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from apps_config.models import Account
from availability.core.constraints import DAY_NAMES
from availability.models import Calendar, Hold
from office.explain.data import kind_of
from tests.browser import viewports
from tests.office.conftest import WORKDAYS, Visit, logged_in, member_of
from tests.office.test_row_choices import OPTION, SELECT2, search
from tests.queries import Queries
from tests.world import BERLIN, Tenant

Open = Callable[..., Visit]


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource("Ada", timezone=BERLIN, availability_constraints=WORKDAYS)


@pytest.fixture
def viewer(tenant: Tenant) -> Client:
    return logged_in(member_of(tenant, "viewer"))


def ask(client: Client, resource: Any, **given: str) -> Any:
    return client.get(f"/admin/why/{resource['id']}/", {"date": "2026-11-23", **given})


def lines(answer: Any, day: int) -> list[tuple[Any, ...]]:
    """The stretches of a day of the week (0 = Monday)."""
    return [
        (stretch.kind, stretch.times, [(reason.text, reason.source) for reason in stretch.reasons])
        for stretch in answer.context["days"][day].stretches
    ]


HOURS = ("Outside the resource's opening hours: 09:00 to 17:00.", "resource Ada")
DAYS = ("Outside the resource's days: Monday to Friday.", "resource Ada")


@pytest.mark.usefixtures("clock")
class TestReasons:
    """On a Friday; the week after it."""

    def test_whole_day(self, tenant: Tenant, ada: Any, viewer: Client) -> None:
        times = {"start": "2026-11-24 10:00:00", "end": "2026-11-24 10:30:00"}
        booking = tenant.book(resource_id=ada["id"], **times).data
        event = tenant.make_event(
            ada["calendars"][0]["id"], "2026-11-24 13:00:00", "2026-11-24 14:00:00", what="Lunch"
        )
        held = {"start": "2026-11-24 15:00:00", "end": "2026-11-24 16:00:00"}
        hold = tenant.post("/bookings/reserve", {"resource_id": ada["id"], **held}).data

        answer = ask(viewer, ada)

        taken, lent = [("Overlaps an event.", "")], [("Held for another booking.", "")]
        assert lines(answer, 1) == [
            ("constraint", "00:00 to 09:00", [HOURS]),
            ("open", "09:00 to 10:00", []),
            ("event", "10:00 to 10:30", taken),
            ("open", "10:30 to 13:00", []),
            ("event", "13:00 to 14:00", taken),
            ("open", "14:00 to 15:00", []),
            ("hold", "15:00 to 16:00", lent),
            ("open", "16:00 to 17:00", []),
            ("constraint", "17:00 to 24:00", [HOURS]),
        ]
        links = [
            link
            for stretch in answer.context["days"][1].stretches
            for reason in stretch.reasons
            for link in reason.links
        ]
        rule_link = (
            "Rule: Open 09:00-17:00",
            f"/admin/availability/resource/{tenant.app.resources.get().pk}/change/#part-hours",
        )
        assert links == [
            rule_link,
            ("Booking: Marty McFly – Meeting", f"/admin/bookings/booking/{booking['id']}/change/"),
            ("Event: Lunch", f"/admin/availability/event/{event['id']}/change/"),
            ("Hold", f"/admin/availability/hold/{hold['reservation_id']}/change/"),
            rule_link,
        ]
        assert Hold.objects.count() == 1

    def test_several_opening_hours_have_one_link(self, tenant: Tenant, viewer: Client) -> None:
        weekly = [{"allow_day_and_time": {"day": day, "start": 8, "end": 12}} for day in DAY_NAMES]
        zoe = tenant.make_resource("Zoe", timezone=BERLIN, availability_constraints=weekly)

        stretches = ask(viewer, zoe).context["days"][1].stretches

        address = f"/admin/availability/resource/{zoe['id']}/change/#part-hours"
        links = [reason.links for stretch in stretches for reason in stretch.reasons]
        assert links == [[("Opening hours", address)]] * 2

    def test_page_agrees_with_the_api(self, tenant: Tenant, ada: Any, viewer: Client) -> None:
        """Every segment of the same question, cut at midnights."""
        project = tenant.make_project(
            ada["id"],
            availability={"from": "4 days", "to": "8 days", "buffer": "15 minutes"},
            availability_constraints=[{"block_hours": {"start": 12, "end": 13}}],
            settings={"max_per_day": 1},
        )
        times = {"start": "2026-11-26 10:00:00", "end": "2026-11-26 11:00:00"}
        tenant.book(resource_id=ada["id"], project_id=project["id"], **times)

        answer = ask(viewer, ada, project=project["id"])
        told = tenant.post(
            "/availability/explain",
            {
                "project_id": project["id"],
                "resources": [ada["id"]],
                "from": "2026-11-23 00:00:00",
                "to": "2026-11-30 00:00:00",
            },
        ).data[0]["segments"]

        joined: list[list[str]] = []
        for day in answer.context["days"]:
            for stretch in day.stretches:
                texts = [reason.text for reason in stretch.reasons]
                if not joined or joined[-1] != texts:
                    joined.append(texts)
        assert joined == [[reason["text"] for reason in one["reasons"]] for one in told]
        kinds = {
            each_stretch.kind for day in answer.context["days"] for each_stretch in day.stretches
        }
        assert kinds == {"open", "constraint", "event", "buffer", "notice", "limit"}

    def test_stale_calendar(self, tenant: Tenant, ada: Any, viewer: Client) -> None:
        """Where the app wants that no time is free then; a rule is more particular."""
        calendar = Calendar.objects.create(
            app=tenant.app, resource_id=UUID(ada["id"]), name="Work", provider="caldav"
        )
        before = lines(ask(viewer, ada), 1)
        tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"stale_calendars": "block"}})

        answer = ask(viewer, ada)

        late = ('The external calendar "Work" has never synced.', "")
        assert before == [
            ("constraint", "00:00 to 09:00", [HOURS]),
            ("open", "09:00 to 17:00", []),
            ("constraint", "17:00 to 24:00", [HOURS]),
        ]
        assert lines(answer, 1) == [
            ("constraint", "00:00 to 09:00", [HOURS, late]),
            ("calendar", "09:00 to 17:00", [late]),
            ("constraint", "17:00 to 24:00", [HOURS, late]),
        ]
        told = answer.context["days"][1].stretches[1].reasons[0]
        assert told.links == [
            ("Calendar", reverse("admin:availability_calendar_change", args=[calendar.id]))
        ]

    def test_past_times(self, ada: Any, viewer: Client) -> None:
        friday = lines(ask(viewer, ada, date="2026-11-20"), 4)

        past = ("Is in the past.", "")
        assert friday == [
            ("constraint", "00:00 to 09:00", [HOURS, past]),
            ("past", "09:00 to 10:30", [past]),
            ("open", "10:30 to 17:00", []),
            ("constraint", "17:00 to 24:00", [HOURS]),
        ]

    @pytest.mark.parametrize(
        ("date", "hours", "night"),
        [
            ("2030-03-31", 23, "00:00 to 09:00"),
            ("2030-10-27", 25, "00:00 to 09:00"),
            ("2030-10-28", 24, "00:00 to 09:00"),
        ],
    )
    def test_days_of_23_and_25_hours(
        self, tenant: Tenant, viewer: Client, date: str, hours: int, night: str
    ) -> None:
        every_day = [{"allow_hours": {"start": 9, "end": 17}}]
        eve = tenant.make_resource("Eve", timezone=BERLIN, availability_constraints=every_day)

        days = ask(viewer, eve, date=date).context["days"]
        (day,) = (day for day in days if day.date.isoformat() == date)

        assert (day.hours, day.stretches[0].times) == (hours, night)
        assert day.stretches[0].lasts == (9 + hours - 24) * 60
        assert sum(stretch.lasts for stretch in day.stretches) == hours * 60

    def test_requested_time_is_highlighted(self, ada: Any, viewer: Client) -> None:
        answer = ask(viewer, ada, at="2026-11-24T08:30")

        chosen = [
            (day.date.isoformat(), stretch.times)
            for day in answer.context["days"]
            for stretch in day.stretches
            if stretch.holds_moment
        ]
        assert chosen == [("2026-11-24", "00:00 to 09:00")]
        assert answer.content.decode().count("data-chosen") == 1

    @pytest.mark.parametrize("count", [1, 3, pytest.param(30, marks=pytest.mark.deep)])
    def test_query_count_is_constant(
        self, tenant: Tenant, ada: Any, viewer: Client, count: int
    ) -> None:
        project = tenant.make_project(ada["id"])
        for number in range(count):
            hour = f"2026-11-2{3 + number // 10} {9 + number % 10:02}"
            times = {"start": f"{hour}:00:00", "end": f"{hour}:30:00"}
            assert tenant.book(resource_id=ada["id"], **times).status == 201
            tenant.make_resource(f"Bob {number}")
        ask(viewer, ada)

        with Queries(connection) as queries:
            answer = ask(viewer, ada, project=project["id"])

        assert answer.status_code == 200
        assert len(queries) == QUERIES, [query["sql"][:150] for query in queries]


QUERIES = 16


def test_side_bar_page_opens_the_last_resource(tenant: Tenant, viewer: Client) -> None:
    nothing = viewer.get("/admin/why/").content.decode()
    _, bob = (tenant.make_resource(name) for name in ("Ada", "Bob"))

    first = viewer.get("/admin/why/").context["resource"].name
    ask(viewer, bob)
    later = viewer.get("/admin/why/").context["resource"].name

    assert "There is no resource yet" in nothing
    assert (first, later) == ("Ada", "Bob")
    assert viewer.get("/admin/why/", {"resource": bob["id"]}).url == f"/admin/why/{bob['id']}/"


def test_members_of_other_apps_get_404(
    tenant: Tenant, make_tenant: Any, ada: Any, viewer: Client
) -> None:
    other = make_tenant()
    stranger = logged_in(member_of(other, "owner"))
    own = other.make_resource("Own")
    foreign = other.make_project(own["id"], name="Foreign")

    answers = [
        ask(stranger, ada),
        stranger.get("/admin/why/", {"resource": ada["id"]}, follow=True),
        ask(viewer, ada, project=foreign["id"]),
        viewer.get("/admin/why/", {"resource": "x"}),
    ]

    assert [answer.status_code for answer in answers] == [404] * 4
    page = stranger.get("/admin/why/").content.decode()
    assert (ada["id"] in page, own["id"] in page) == (False, True)


@pytest.mark.parametrize("given", [{"date": "soon"}, {"at": "soon"}, {"project": "x"}])
def test_wrong_query_parameters_are_404(ada: Any, viewer: Client, given: dict[str, str]) -> None:
    assert ask(viewer, ada, **given).status_code == 404


def test_staff_without_permission_get_403(ada: Any) -> None:
    account = Account.objects.create_user("clerk@example.com", "x" * 12, is_staff=True)

    assert ask(logged_in(account), ada).status_code == 403


def test_resource_page_links_to_why(tenant: Tenant, ada: Any, viewer: Client) -> None:
    page = viewer.get(f"/admin/availability/resource/{ada['id']}/change/").content.decode()

    links = [
        reverse(f"admin:availability_resource_open_{name}", args=[ada["id"]])
        for name in ("why", "calendar")
    ]
    leads = [viewer.get(link) for link in links]

    assert [f'href="{link}"' in page for link in links] == [True, True]

    assert [answer.status_code for answer in leads] == [302, 302]
    assert [answer.url for answer in leads] == [
        f"/admin/why/{ada['id']}/",
        f"/admin/calendar/?resources={ada['id']}",
    ]


def test_kind_of_a_stretch_precedence() -> None:
    class Reason:
        def __init__(self, type_: str) -> None:
            self.type = type_

    def kind(*types: str) -> str:
        return kind_of([Reason(one) for one in types])

    assert [kind(), kind("past", "event"), kind("constraint", "buffer"), kind("past")] == [
        "open",
        "event",
        "buffer",
        "past",
    ]


# --- In a browser ---------------------------------------------------------------------------------
@pytest.fixture
def busy_week(office: Tenant) -> Any:
    ada = office.make_resource("Ada", timezone=BERLIN, availability_constraints=WORKDAYS)
    times = {"start": "2030-01-08 10:00:00", "end": "2030-01-08 10:30:00"}
    assert office.book(resource_id=ada["id"], **times).status == 201
    calendar = ada["calendars"][0]["id"]
    office.make_event(calendar, "2030-01-09 13:00:00", "2030-01-09 15:00:00", what="Congress")
    return ada


def explanations(page: Any) -> list[str]:
    return page.texts(".why-said")


@pytest.mark.parametrize(("width", "scheme"), viewports())
def test_week_in_the_browser(
    visit: Open, viewer_of: Any, busy_week: Any, width: int, scheme: str
) -> None:
    path = f"/admin/why/{busy_week['id']}/?at=2030-01-08T10:00"
    found = visit(viewer_of, path, width=width, height=1000, scheme=scheme)
    page = found.page
    page.wait_for("!!document.querySelector('.is-laid')")

    assert page.evaluate("document.querySelectorAll('.why-stretch').length") == 25
    reasons = "Overlaps an event.\nBooking: Marty McFly – Meeting"
    if width == 390:
        assert page.texts(".why-stretch[open] .why-reasons") == [reasons]
    else:
        assert explanations(page) == [f"Tue 8 Jan, 10:00 to 10:30\n{reasons}"]
    found.page.save_screenshot(f"why-{width}-{scheme}")


@pytest.fixture
def viewer_of(office: Tenant) -> Account:
    return member_of(office, "viewer")


def test_page_works_by_keyboard(visit: Open, viewer_of: Account, busy_week: Any) -> None:
    found = visit(viewer_of, f"/admin/why/{busy_week['id']}/?date=2030-01-07")
    page = found.page
    page.wait_for("!!document.querySelector('.is-laid')")
    page.evaluate("document.querySelector('.why-day:nth-child(2) summary').focus()")

    page.press("Tab")
    assert explanations(page)[0].startswith("Tue 8 Jan, 09:00 to 10:00\n\nFree")
    page.press("Tab")
    assert explanations(page)[0].startswith("Tue 8 Jan, 10:00 to 10:30\nOverlaps an event.")
    page.press("Enter")
    page.wait_for("!!document.querySelector('.why-day:nth-child(2) .why-stretch[open]')")


def test_reason_takes_three_clicks(
    visit: Open, office: Tenant, viewer_of: Account, busy_week: Any
) -> None:
    bob = office.make_resource("Bob", availability_constraints=[{"block_day": {"day": "Tuesday"}}])
    found = visit(viewer_of, "/admin/")
    page = found.page

    page.click("a[href='/admin/why/']")  # first
    page.wait_for("!!document.querySelector('.is-laid')")
    page.click(".time-bar .select2-selection")  # second: a choice of a list
    found.expected += SELECT2
    search(page, "Bob")
    page.wait_for(f"document.querySelector({OPTION!r})?.innerText === 'Bob'")
    page.press("Enter")
    page.wait_for(f"location.pathname === '/admin/why/{bob['id']}/'")
    page.wait_for("!!document.querySelector('.is-laid')")
    page.click(".why-day:nth-child(2) summary")  # third

    page.wait_for("document.querySelector('.why-said').innerText.includes('Blocked by')")
    assert "Blocked by the resource's rule: Tuesdays. (resource Bob)" in explanations(page)[0]
