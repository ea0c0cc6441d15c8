"""The desk: a day with one column for each resource that works or is booked, and its day sheet."""

from datetime import UTC, datetime
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.urls import reverse

from apps_config.models import Account, Membership
from bookings.models import Booking, PostponedTask
from bookings.services.postponed import carry_out_due
from tests.office.conftest import logged_in, member_of
from tests.office.staff import messages_of
from tests.queries import Queries
from tests.world import Tenant

TUESDAY = datetime(2030, 3, 5, 9, 20, tzinfo=UTC)  # 10:20 in Berlin
BERLIN = {"timezone": "Europe/Berlin"}
HOURS = [{"allow_weekdays": {}}, {"allow_hours": {"start": 9, "end": 17}}]
WEEKENDS = [{"block_weekdays": {}}]
TODAY = reverse("admin:index")
SHEET = reverse("admin:day_sheet")


@pytest.fixture
def people(tenant: Tenant) -> Any:
    """Ada works and has three bookings today, Bob works without a booking, the room is closed."""
    with time_machine.travel(TUESDAY.replace(hour=6), tick=False):
        tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"default_timezone": "Europe/Berlin"}})
        tenant.app.refresh_from_db()
        ada = tenant.make_resource("Ada", availability_constraints=HOURS, **BERLIN)
        bob = tenant.make_resource("Bob", availability_constraints=HOURS, **BERLIN)
        tenant.make_resource("Room", availability_constraints=WEEKENDS, **BERLIN)
        first = book(tenant, ada, "09:00", "09:30", name="Una")
        asked = book(tenant, ada, "11:00", "11:30", name="Ann", graph="confirm_decline")
        off = book(tenant, ada, "12:00", "12:30", name="Off")
        tenant.put(f"/bookings/{off['id']}/cancel", {})
        tenant.post(
            "/events",
            {
                "calendar_id": ada["calendars"][0]["id"],
                "what": "Lunch",
                "start": "2030-03-05T13:00:00",
                "end": "2030-03-05T14:00:00",
            },
            status=201,
        )
    return {"ada": ada, "bob": bob, "first": first, "asked": asked}


def book(
    tenant: Tenant, resource: Any, start: str, end: str, *, name: str, day: str = "05", **more: Any
) -> Any:
    times = {"start": f"2030-03-{day}T{start}:00", "end": f"2030-03-{day}T{end}:00"}
    customer = {"name": name, "email": f"{name}@example.com", "phone": "+49 30 1"}
    body = {"resource_id": resource["id"], "customer": customer, "what": "Check-up"}
    return tenant.book(**body | times | more).data


def get(account: Account, page: str, now: datetime = TUESDAY) -> Any:
    with time_machine.travel(now, tick=False):
        return logged_in(account).get(page)


def desk_of(account: Account, query: str = "", now: datetime = TUESDAY) -> Any:
    return get(account, f"{TODAY}{query}", now).context["desk"]


@pytest.fixture
def owner(tenant: Tenant) -> Account:
    return member_of(tenant, Membership.OWNER)


def lines(entries: Any) -> list[tuple[Any, ...]]:
    return [
        (
            entry.time,
            entry.title,
            entry.state,
            [button.value for button in (*entry.actions, *entry.outcomes)],
        )
        for entry in entries
    ]


def test_columns_are_of_those_who_work(tenant: Tenant, people: Any, owner: Account) -> None:
    desk = desk_of(owner)

    assert [
        (one.resource.name, one.zone, lines(one.past), one.now, lines(one.coming), one.next_free)
        for one in desk.columns
    ] == [
        (
            "Ada",
            "",
            [("09:00 – 09:30", "Check-up · Una", "confirmed", ["attended", "no_show"])],
            "10:20",
            [
                ("11:00 – 11:30", "Check-up · Ann", "pending", ["confirm", "decline"]),
                ("13:00 – 14:00", "Lunch", "", []),
            ],
            "10:20",
        ),
        ("Bob", "", [], "10:20", [], "10:20"),
    ]
    assert desk.more == 0


def test_day_of_another_date_has_no_present(tenant: Tenant, people: Any, owner: Account) -> None:
    book(tenant, people["bob"], "09:00", "10:00", name="Cy", day="06")

    desk = desk_of(owner, "?day=2030-03-06")

    assert [
        (one.resource.name, one.now, [entry.title for entry in one.entries], one.next_free)
        for one in desk.columns
    ] == [("Ada", "", [], "09:00"), ("Bob", "", ["Check-up · Cy"], "10:00")]


@pytest.mark.parametrize(
    ("now", "day"),
    [
        (TUESDAY.replace(hour=3), "2030-03-05"),  # before opening
        (TUESDAY, "2030-03-05"),
        (TUESDAY.replace(hour=12, minute=0), "2030-03-05"),  # the last one ended at 11:30
        (TUESDAY.replace(hour=12, minute=31), "2030-03-07"),
        (TUESDAY.replace(day=6), "2030-03-07"),  # without bookings
        (TUESDAY.replace(day=8), "2030-03-08"),  # none to come
    ],
)
def test_day_is_the_next_with_bookings(
    tenant: Tenant, people: Any, owner: Account, now: datetime, day: str
) -> None:
    book(tenant, people["bob"], "09:00", "10:00", name="Cy", day="07")

    assert desk_of(owner, now=now).day.isoformat() == day


def test_another_day_says_that_today_is_over(tenant: Tenant, people: Any, owner: Account) -> None:
    book(tenant, people["bob"], "09:00", "09:30", name="Una", day="07")
    sentence = "Nothing more today. This is the next day with bookings."

    found = [
        sentence in get(owner, f"{TODAY}{query}", now).content.decode()
        for query, now in (
            ("", TUESDAY),
            ("", TUESDAY.replace(hour=20)),
            ("?day=2030-03-07", TUESDAY.replace(hour=20)),
        )
    ]
    assert found == [False, True, False]


def test_times_are_on_the_clock_of_the_resource(
    tenant: Tenant, people: Any, owner: Account
) -> None:
    book(tenant, tenant.make_resource("Zoe", timezone="Asia/Tokyo"), "20:00", "21:00", name="Cy")

    zoe = desk_of(owner).columns[-1]

    assert (zoe.resource.name, zoe.zone, zoe.now) == ("Zoe", "Asia/Tokyo", "18:20")
    assert [(entry.time, entry.title) for entry in zoe.entries] == [
        ("20:00 – 21:00", "Check-up · Cy")
    ]


def test_those_with_bookings_have_a_column_first(
    tenant: Tenant, people: Any, owner: Account
) -> None:
    for number in range(14):
        tenant.make_resource(f"Berta {number:02}", availability_constraints=HOURS, **BERLIN)
    zoe = tenant.make_resource("Zoe", availability_constraints=HOURS, **BERLIN)
    book(tenant, zoe, "15:00", "16:00", name="Cy")

    desk = desk_of(owner)

    names = [column.resource.name for column in desk.columns]
    assert names == ["Ada", *(f"Berta {number:02}" for number in range(10)), "Zoe"]
    assert desk.more == 5  # four Bertas and Bob


def test_request_is_confirmed_on_the_page(tenant: Tenant, people: Any, owner: Account) -> None:
    address = reverse("admin:bookings_booking_act", args=[people["asked"]["id"]])

    with time_machine.travel(TUESDAY, tick=False):
        answer = logged_in(owner).post(
            address, {"action": "confirm", "return_to": f"{TODAY}?day=2030-03-05"}, follow=True
        )

    assert answer.redirect_chain == [(f"{TODAY}?day=2030-03-05", 302)]
    assert messages_of(answer) == ["The booking is confirmed."]
    assert Booking.objects.get(id=people["asked"]["id"]).state == "confirmed"


def test_decline_asks_first_and_returns(tenant: Tenant, people: Any, owner: Account) -> None:
    address = reverse("admin:bookings_booking_act", args=[people["asked"]["id"]])
    body = {"action": "decline", "return_to": TODAY}

    with time_machine.travel(TUESDAY, tick=False):
        client = logged_in(owner)
        asked = client.post(address, body)
        done = client.post(address, dict(asked.context["fields"]), follow=True)
        state = Booking.objects.get(id=people["asked"]["id"]).state
        task = PostponedTask.objects.get()
        carry_out_due(now=task.run_at)

    assert asked.context["back"] == TODAY
    assert done.redirect_chain == [(TODAY, 302)]
    (message,) = messages_of(done)
    link = reverse("admin:postponed", args=[task.pk])
    assert message.endswith(f'is about to be changed. <a href="{link}">Show and undo</a>')
    assert state == "tentative"
    assert Booking.objects.get(id=people["asked"]["id"]).state == "declined"


@pytest.mark.parametrize("page", ["https://evil.example/", "//evil.example", "javascript:alert(1)"])
def test_form_returns_to_no_other_site(
    tenant: Tenant, people: Any, owner: Account, page: str
) -> None:
    booking = people["first"]["id"]
    address = reverse("admin:bookings_booking_outcome", args=[booking])

    with time_machine.travel(TUESDAY, tick=False):
        answer = logged_in(owner).post(address, {"outcome": "no_show", "return_to": page})

    assert answer["Location"] == reverse("admin:bookings_booking_change", args=[booking])
    assert Booking.objects.get(id=booking).outcome == "no_show"


def test_viewer_has_no_buttons(tenant: Tenant, people: Any) -> None:
    desk = desk_of(member_of(tenant, Membership.VIEWER))

    assert [lines(column.entries) for column in desk.columns] == [
        [
            ("09:00 – 09:30", "Check-up · Una", "confirmed", []),
            ("11:00 – 11:30", "Check-up · Ann", "pending", []),
            ("13:00 – 14:00", "Lunch", "", []),
        ],
        [],
    ]


def test_app_of_the_query_is_shown_again(tenant: Tenant, people: Any) -> None:
    other = Tenant("aaa")
    member = member_of(tenant, Membership.EDITOR)
    Membership.objects.create(account=member, app=other.app, role=Membership.EDITOR)

    with time_machine.travel(TUESDAY, tick=False):
        client = logged_in(member)
        names = [
            [column.resource.name for column in client.get(page).context["desk"].columns]
            for page in (TODAY, f"{TODAY}?app={tenant.app.pk}", TODAY)
        ]
        strange = client.get(f"{TODAY}?app={Tenant('strange').app.pk}")

    assert names == [[], ["Ada", "Bob"], ["Ada", "Bob"]]  # at first, the first by name
    assert strange.status_code == 404


def test_resource_with_an_unknown_time_zone_keeps_its_bookings(
    tenant: Tenant, people: Any, owner: Account
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE availability_resource SET timezone = 'Mars/Base' WHERE name = 'Ada'")

    ada = desk_of(owner).columns[0]

    assert [entry.title for entry in ada.entries] == ["Check-up · Una", "Check-up · Ann", "Lunch"]


def test_number_of_queries_is_constant(tenant: Tenant, people: Any, owner: Account) -> None:
    desk_of(owner)
    with Queries(connection) as few:
        desk_of(owner)
    for number in range(6):
        one = tenant.make_resource(f"More {number}", availability_constraints=HOURS, **BERLIN)
        book(tenant, one, "10:00", "11:00", name="Cy", graph="confirm_decline")

    with Queries(connection) as many:
        desk_of(owner)

    assert len(many) == len(few)


# --- The day sheet --------------------------------------------------------------------------------
def sheet_of(account: Account, query: str = "?day=2030-03-05") -> list[tuple[Any, ...]]:
    answer = get(account, f"{SHEET}{query}")
    return [
        (column.resource.name, [tuple(row) for row in rows])
        for column, rows in answer.context["tables"]
    ]


@pytest.mark.parametrize(
    ("accepted", "heading", "times"),
    [
        ("en-US,en;q=0.5", "Today, Tuesday, March 5, 2030", "9:00 am – 9:30 am"),
        ("en-GB,en;q=0.5", "Today, Tuesday, 5 March 2030", "09:00 – 09:30"),
        ("en-AU", "Today, Tuesday, 5 March 2030", "9:00 am – 9:30 am"),
        ("", "Today, Tuesday, 5 March 2030", "09:00 – 09:30"),
    ],
)
def test_english_follows_the_region_of_the_browser(
    tenant: Tenant, people: Any, owner: Account, accepted: str, heading: str, times: str
) -> None:
    with time_machine.travel(TUESDAY, tick=False):
        client = logged_in(owner)
        page = client.get(TODAY, headers={"accept-language": accepted})
        list_page = client.get(
            f"/admin/bookings/booking/{people['first']['id']}/change/",
            headers={"accept-language": accepted},
        )

    text = page.content.decode().replace("\u00a0", " ")
    day = heading.removeprefix("Today, ")
    assert (heading in text, times in text) == (True, True)
    assert day in list_page.content.decode()


def test_day_sheet_names_people(tenant: Tenant, people: Any, owner: Account) -> None:
    meta = {"tooth": "left molar"}
    customer = {"name": "Cy", "email": "cy@example.com", "phone": "+49 30 2", "meta": meta}
    questions = {"tooth": {"title": "Which tooth?"}}
    project = tenant.make_project(
        people["bob"]["id"], customer_fields=questions, availability={"length": "30 minutes"}
    )
    given = {"project_id": project["id"], "note": "Afraid of needles", "customer": customer}
    no_rules = {"enforce_availability": False}
    book(tenant, people["bob"], "15:00", "15:30", name="Cy", settings=no_rules, **given)

    assert sheet_of(owner) == [
        (
            "Ada",
            [
                ("09:00 – 09:30", "Check-up", "confirmed", "Una", "+49 30 1", [], ""),
                ("11:00 – 11:30", "Check-up", "pending", "Ann", "+49 30 1", [], ""),
                ("13:00 – 14:00", "Lunch", "", "", "", (), ""),
            ],
        ),
        (
            "Bob",
            [
                (
                    "15:00 – 15:30",
                    "Check-up",
                    "confirmed",
                    "Cy",
                    "+49 30 2",
                    [("Which tooth?", "left molar")],
                    "Afraid of needles",
                )
            ],
        ),
    ]


def test_day_sheet_of_one_resource(tenant: Tenant, people: Any, owner: Account) -> None:
    sheet = sheet_of(owner, f"?day=2030-03-05&resources={people['bob']['id']}")

    assert sheet == [("Bob", [])]


def test_day_sheet_of_another_app_is_hidden(tenant: Tenant, people: Any, owner: Account) -> None:
    other = member_of(Tenant("globex"), Membership.OWNER)

    assert get(other, f"{SHEET}?app={tenant.app.pk}").status_code == 404
    assert sheet_of(other, f"?resources={people['ada']['id']}") == []
