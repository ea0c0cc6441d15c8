"""The link of a booking's video call: its project's setting, and who sees the link."""

import re
from typing import Any

import pytest
from django.db import connection

from bookings.models import Booking
from tests.bookings.booking_drafts import NINE, act, span
from tests.bookings.group_world import ANN, BOB, make_group, seat_in
from tests.queries import Queries
from tests.world import Answer, Tenant

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]

TEN = span("10:00", "11:00")
TEMPLATE = {"provider": "template", "template": "https://video.example/{booking_id}"}
JITSI = {"provider": "jitsi"}
ADDRESS = "Must be an https address with {booking_id} behind its host."
SERVER = "Must be the https address of a Jitsi server."


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource("Ada")


def make_project(tenant: Tenant, ada: Any, conference: Any) -> str:
    return tenant.make_project(ada["id"], settings={"conference": conference})["id"]


def change(tenant: Tenant, project_id: str, conference: Any) -> Answer:
    return tenant.put(f"/projects/{project_id}", {"settings": {"conference": conference}})


def book(caller: Any, project_id: str, times: Any = NINE, **given: Any) -> Any:
    body = {
        "project_id": project_id,
        "what": "Meeting",
        "customer": {"name": "Marty McFly", "email": "marty@example.com"},
        **times,
        **given,
    }
    answer = caller.post("/bookings?include=conference", body)
    assert answer.status == 201, answer.json
    return answer.data


def conference_of(tenant: Tenant, booking: Any) -> Any:
    return tenant.get(f"/bookings/{booking['id']}").data["conference"]


def with_link(url: str, provider: str = "template") -> dict[str, Any]:
    return {"provider": provider, "url": url, "problem": None}


# --- The setting ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "conference",
    [
        {"provider": "meet"},
        {"provider": "teams"},
        {"provider": "jitsi"},
        {"provider": "jitsi", "template": "https://jitsi.example"},
        {"provider": "jitsi", "template": "https://jitsi.example/{booking_id}#config.lang=de"},
        {"provider": "template", "template": "https://video.example/?room={booking_id}"},
    ],
)
def test_setting_is_stored(tenant: Tenant, ada: Any, conference: Any) -> None:
    body = {"name": "Check-up", "resources": [ada["id"]], "settings": {"conference": conference}}

    answer = tenant.post("/projects", body)

    assert (answer.status, answer.data["settings"]) == (201, {"conference": conference})


@pytest.mark.parametrize(
    ("conference", "errors"),
    [
        ({}, {"provider": ["This field is required."]}),
        ({"template": "https://a.example"}, {"provider": ["This field is required."]}),
        ({"provider": "zoom"}, {"provider": ["Must be one of meet, teams, jitsi, template."]}),
        ({"provider": "template"}, {"template": [ADDRESS]}),
        ({"provider": "template", "template": "https://a.example/"}, {"template": [ADDRESS]}),
        (
            {"provider": "template", "template": "http://a.example/{booking_id}"},
            {"template": [ADDRESS]},
        ),
        (
            {"provider": "template", "template": "https://{booking_id}.example/"},
            {"template": [ADDRESS]},
        ),
        (
            {"provider": "template", "template": "https://a.example/{booking_id}/{start}"},
            {"template": [ADDRESS]},
        ),
        (
            {"provider": "template", "template": "https://u@a.example/{booking_id}"},
            {"template": [ADDRESS]},
        ),
        (
            {"provider": "template", "template": "https://a.example/ {booking_id}"},
            {"template": [ADDRESS]},
        ),
        ({"provider": "jitsi", "template": "http://jitsi.example"}, {"template": [SERVER]}),
        ({"provider": "jitsi", "template": "https://jitsi.example/?a=b"}, {"template": [SERVER]}),
        ({"provider": "jitsi", "template": "https://{room}.example"}, {"template": [SERVER]}),
        (
            {"provider": "template", "template": "https://a.example/{booking_id}" + "x" * 400},
            {"template": ["Ensure this field has no more than 400 characters."]},
        ),
        ("meet", None),
        (["meet"], None),
    ],
)
def test_invalid_setting_is_refused(tenant: Tenant, ada: Any, conference: Any, errors: Any) -> None:
    body = {"name": "Check-up", "resources": [ada["id"]], "settings": {"conference": conference}}

    answer = tenant.post("/projects", body)

    found = {
        path.removeprefix("settings.conference."): faults
        for path, faults in answer.json["errors"].items()
    }
    assert answer.status == 422
    assert found == errors if errors else list(found) == ["settings.conference"]


def test_change_is_checked_with_the_stored_setting(tenant: Tenant, ada: Any) -> None:
    project_id = make_project(tenant, ada, TEMPLATE)

    other = change(tenant, project_id, {"template": "https://other.example/{booking_id}"})
    refused = change(tenant, project_id, {"template": "https://other.example/"})
    meet = change(tenant, project_id, {"provider": "meet"})
    back = change(tenant, project_id, {"provider": "template"})
    without = change(tenant, project_id, {"template": None})

    changed = {"provider": "template", "template": "https://other.example/{booking_id}"}
    assert other.data["settings"]["conference"] == changed
    assert (refused.status, refused.json["errors"]) == (
        422,
        {"settings.conference.template": [ADDRESS]},
    )
    assert meet.data["settings"]["conference"] == changed | {"provider": "meet"}
    assert back.data["settings"]["conference"] == changed
    assert (without.status, without.json["errors"]) == (
        422,
        {"settings.conference.template": [ADDRESS]},
    )


@pytest.mark.parametrize("nothing", [None, {"provider": None}])
def test_setting_is_removed(tenant: Tenant, ada: Any, nothing: Any) -> None:
    project_id = make_project(tenant, ada, TEMPLATE)

    answer = change(tenant, project_id, nothing)

    assert (answer.status, answer.data["settings"]) == (200, {})


# --- The link -------------------------------------------------------------------------------------
def test_template_has_the_id(tenant: Tenant, ada: Any) -> None:
    booking = book(tenant, make_project(tenant, ada, TEMPLATE))

    link = with_link(f"https://video.example/{booking['id']}")
    assert booking["conference"] == link
    assert conference_of(tenant, booking) == link


@pytest.mark.parametrize(
    ("conference", "pattern"),
    [
        (JITSI, r"https://meet\.jit\.si/[0-9a-f]{32}"),
        (JITSI | {"template": "https://jitsi.example/"}, r"https://jitsi\.example/[0-9a-f]{32}"),
        (
            JITSI | {"template": "https://jitsi.example/a/{booking_id}#b"},
            r"https://jitsi\.example/a/[0-9a-f]{32}#b",
        ),
    ],
)
def test_room_of_jitsi_is_random(tenant: Tenant, ada: Any, conference: Any, pattern: str) -> None:
    project_id = make_project(tenant, ada, conference)

    bookings = [book(tenant, project_id, times) for times in (NINE, TEN)]

    links = [booking["conference"]["url"] for booking in bookings]
    assert [bool(re.fullmatch(pattern, link)) for link in links] == [True, True]
    assert len(set(links)) == 2
    hidden = {booking["id"].replace("-", "") for booking in bookings}
    assert not any(part in link for link in links for part in hidden)


def test_link_has_nothing_that_a_stranger_typed(tenant: Tenant, ada: Any) -> None:
    project_id = make_project(tenant, ada, JITSI)
    customer = {"name": "evil.example", "email": "evil@example.com"}

    booking = book(tenant.widget(), project_id, what="evil", where="evil", customer=customer)

    assert "evil" not in booking["conference"]["url"]


def test_booking_keeps_its_link(tenant: Tenant, ada: Any) -> None:
    project_id = make_project(tenant, ada, JITSI)
    booking = book(tenant, project_id)

    moved = tenant.post(f"/bookings/{booking['id']}/reschedule", TEN)
    changed = change(tenant, project_id, {**TEMPLATE})

    assert (moved.status, changed.status) == (200, 200)
    assert conference_of(tenant, booking) == booking["conference"]


def test_booking_without_the_setting_has_none(tenant: Tenant, ada: Any) -> None:
    project_id = tenant.make_project(ada["id"])["id"]
    booking = book(tenant, project_id)
    assert change(tenant, project_id, JITSI).status == 200

    assert (booking["conference"], conference_of(tenant, booking)) == (None, None)


@pytest.mark.parametrize(
    ("graph", "actions", "shown"),
    [
        ("instant", [], [True]),
        ("instant", ["cancel"], [True, False]),
        ("instant", ["cancel_by_customer"], [True, False]),
        ("instant", ["complete"], [True, True]),
        ("confirm_decline", ["confirm"], [False, True]),
        ("confirm_decline", ["decline"], [False, False]),
        ("instant_payment", ["pay", "cancel"], [False, True, False]),
    ],
)
def test_link_is_shown_while_the_booking_takes_place(
    tenant: Tenant, ada: Any, graph: str, actions: list[str], shown: list[bool]
) -> None:
    booking = book(tenant, make_project(tenant, ada, TEMPLATE), graph=graph)

    found = [conference_of(tenant, booking)]
    for action in actions:
        assert act(tenant, booking, action).status == 200
        found.append(conference_of(tenant, booking))

    link = with_link(f"https://video.example/{booking['id']}")
    assert found == [link if each else None for each in shown]


def test_seats_share_the_link_of_the_group(tenant: Tenant, ada: Any) -> None:
    group = make_group(tenant, ada, project_id=make_project(tenant, ada, TEMPLATE))
    seats = [seat_in(tenant, group, person) for person in (ANN, BOB)]

    assert act(tenant, seats[1], "cancel_by_customer").status == 200

    link = with_link(f"https://video.example/{group['id']}")
    assert [conference_of(tenant, each) for each in (group, *seats)] == [link, link, None]


def test_occurrences_have_links_of_their_own(tenant: Tenant, ada: Any) -> None:
    project_id = make_project(tenant, ada, TEMPLATE)

    booking = book(tenant, project_id, recurrence="FREQ=WEEKLY;COUNT=3")

    series = tenant.get(f"/bookings/{booking['id']}?include=series").data["series"]
    ids = [each["booking_id"] for each in series["occurrences"]]
    links = [conference_of(tenant, {"id": each}) for each in ids]
    assert links == [with_link(f"https://video.example/{each}") for each in ids]


def test_widget_key_reads_the_link_of_its_new_booking_alone(tenant: Tenant, ada: Any) -> None:
    project_id = make_project(tenant, ada, TEMPLATE)
    widget = tenant.widget()
    booking = book(widget, project_id)

    answers = [
        widget.get(f"/bookings/{booking['id']}?include=conference"),
        widget.get("/bookings/groups?include=conference"),
    ]

    assert booking["conference"] == with_link(f"https://video.example/{booking['id']}")
    assert [answer.status for answer in answers] == [403, 422]


def test_mutual_booking_has_one_link(tenant: Tenant, ada: Any) -> None:
    bob = tenant.make_resource("Bob")
    settings = {"conference": TEMPLATE}
    project = tenant.make_project(
        ada["id"], bob["id"], availability={"mode": "mutual"}, settings=settings
    )

    booking = book(tenant, project["id"])

    row = Booking.objects.get(id=booking["id"])
    assert booking["conference"] == with_link(f"https://video.example/{booking['id']}")
    assert [each.conference_url for each in row.event.companions.all()] == [None]


def test_list_reads_links_with_its_rows(tenant: Tenant, ada: Any) -> None:
    project_id = make_project(tenant, ada, TEMPLATE)
    path = "/bookings?include=conference"
    first = book(tenant, project_id)
    tenant.get(path)
    with Queries(connection) as one:
        tenant.get(path)
    second = book(tenant, project_id, TEN)

    with Queries(connection) as two:
        found = tenant.get(path).data

    assert [each["conference"]["url"] for each in found] == [
        f"https://video.example/{each['id']}" for each in (second, first)
    ]
    assert len(one) == len(two)
