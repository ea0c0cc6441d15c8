"""Stale connected calendars: responses name them; where the app wants it, no time is free."""

import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from availability.models import Calendar
from availability.search.queries import fetch_project_resources, fetch_resources
from availability.search.staleness import is_stale
from tests.availability.queries import MONDAY, MORNING, ask, line, lines, open_hours
from tests.world import BERLIN, Answer, Caller, Tenant, app_of, at

pytestmark = pytest.mark.usefixtures("monday")

NOW = at(f"{MONDAY} 08:10")
STALE = timedelta(seconds=3600)
LATE = NOW - timedelta(hours=3)
TWO_HOURS = {"from": f"{MONDAY}T09:00:00Z", "to": f"{MONDAY}T11:00:00Z"}


def connect(resource: Any, synced_at: Any, *, name: str = "Work", **given: Any) -> Calendar:
    """A connected calendar of the resource, last synced at `synced_at`."""
    return Calendar.objects.create(
        app=app_of(resource["id"]),
        resource_id=UUID(resource["id"]),
        name=name,
        provider="caldav",
        synced_at=synced_at,
        **given,
    )


def block(tenant: Tenant) -> None:
    answer = tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"stale_calendars": "block"}})
    assert answer.status == 200, answer.json


def warning(resource: Any, calendar: Calendar, synced_at: str | None, text: str) -> dict[str, Any]:
    return {
        "type": "calendar_out_of_step",
        "resource_id": resource["id"],
        "calendar_id": str(calendar.id),
        "name": calendar.name,
        "synced_at": synced_at,
        "text": text,
    }


def late_warning(resource: Any, calendar: Calendar) -> dict[str, Any]:
    return warning(
        resource,
        calendar,
        f"{MONDAY}T05:10:00+0000",
        f'The external calendar "Work" has not synced since {MONDAY}T05:10:00+00:00.',
    )


def everything(tenant: Tenant, resource: Any) -> dict[str, Answer]:
    """Each of the endpoints, asked about two hours."""
    body = {"resources": [resource["id"]], **TWO_HOURS}
    paths = ("/availability", "/availability/dates", "/availability/count")
    answers = {path: tenant.post(path, body) for path in (*paths, "/unavailable/slots")}
    answers["/availability/explain"] = tenant.post("/availability/explain", body)
    answers["/findtime"] = tenant.post(
        "/findtime",
        {"resource_ids": [resource["id"]], "start": TWO_HOURS["from"], "future": "2 hours"},
    )
    return answers


# --- Out of step, and what is not -----------------------------------------------------------------
def test_whole_response(tenant: Tenant) -> None:
    ada = tenant.make_resource("Ada", **open_hours(9, 11))
    calendar = connect(ada, LATE)

    answer = ask(tenant, ada["id"], output_timezone=BERLIN)

    summary = {"id": ada["id"], "name": "Ada", "timezone": "UTC"}
    assert answer.json == {
        "data": [
            {
                "start": f"{MONDAY}T{hour}:00:00+01:00",
                "end": f"{MONDAY}T{hour + 1}:00:00+01:00",
                "resources": [summary],
            }
            for hour in (10, 11)
        ],
        "warnings": [
            warning(
                ada,
                calendar,
                f"{MONDAY}T05:10:00+0000",
                f'The external calendar "Work" has not synced since {MONDAY}T06:10:00+01:00.',
            )
        ],
    }


@pytest.mark.parametrize(
    ("synced_at", "is_late"),
    [
        (NOW, False),
        (NOW - STALE, False),
        (NOW - STALE - timedelta(microseconds=1), True),
        (NOW - timedelta(days=400), True),
        (None, True),
    ],
)
def test_calendar_is_stale_after_the_limit(tenant: Tenant, synced_at: Any, is_late: bool) -> None:
    ada = tenant.make_resource("Ada")
    calendar = connect(ada, synced_at)

    (read,) = fetch_resources(tenant.app.id, [calendar.resource_id], now=NOW)

    assert read.stale_calendars == (((calendar.id, "Work", synced_at),) if is_late else ())
    # The same rule where calendars are listed and counted.
    assert list(Calendar.objects.filter(is_stale(NOW))) == ([calendar] if is_late else [])


def test_calendar_stale_seconds_setting(tenant: Tenant, settings: Any) -> None:
    ada = tenant.make_resource("Ada")
    calendar = connect(ada, LATE)
    ids = [calendar.resource_id]

    settings.CALENDAR_STALE_SECONDS = 3 * 3600
    before = fetch_resources(tenant.app.id, ids, now=NOW)
    settings.CALENDAR_STALE_SECONDS = 3 * 3600 - 1
    after = fetch_resources(tenant.app.id, ids, now=NOW)

    assert [[one.id for one in row.stale_calendars] for (row,) in (before, after)] == [
        [],
        [calendar.id],
    ]


def test_never_synced_calendar_is_warned_of(tenant: Tenant) -> None:
    ada = tenant.make_resource("Ada", **open_hours(9, 10))
    calendar = connect(ada, None)

    answer = ask(tenant, ada["id"])

    text = 'The external calendar "Work" has never synced.'
    assert answer.json["warnings"] == [warning(ada, calendar, None, text)]


def test_fresh_own_and_deleted_calendars_cause_no_warning(tenant: Tenant) -> None:
    """One's own, one that is in step, one that is gone, and those of another resource."""
    ada, bob = (tenant.make_resource(name, **open_hours(9, 10)) for name in ("Ada", "Bob"))
    connect(ada, NOW)
    connect(ada, LATE, deleted_at=timezone.now())
    late = connect(bob, LATE)

    answer = ask(tenant, ada["id"])

    assert list(Calendar.objects.filter(is_stale(NOW))) == [late]

    assert lines(answer) == [f"{MONDAY} 09:00-10:00 +00:00 Ada"]


def test_responses_without_warnings_stay_the_same(tenant: Tenant) -> None:
    ada = tenant.make_resource("Ada", **open_hours(9, 10))
    before = everything(tenant, ada)

    connect(ada, NOW)

    after = everything(tenant, ada)
    assert {path: one.content for path, one in after.items()} == {
        path: one.content for path, one in before.items()
    }


def test_rules_are_not_duplicated_by_several_calendars(tenant: Tenant) -> None:
    """Two equal rules are two; a resource without rules has none; the project's order stands."""
    ada, bob = (tenant.make_resource(name) for name in ("Ada", "Bob"))
    rules = [{"allow_hours": {"start": 9, "end": 12}}] * 2 + [{"block_weekends": {}}]
    tenant.put(f"/resources/{ada['id']}", {"availability_constraints": rules})
    project = UUID(tenant.make_project(bob["id"], ada["id"])["id"])
    alone = fetch_project_resources(tenant.app.id, project, now=NOW)
    late = {
        resource["name"]: [connect(resource, LATE, name=name) for name in ("B", "A", "C")]
        for resource in (ada, bob)
    }

    found = fetch_project_resources(tenant.app.id, project, now=NOW)

    assert [row._replace(stale_calendars=()) for row in found] == alone
    assert [len(json.loads(row.constraints)) for row in found] == [0, 3]
    assert [row.stale_calendars for row in found] == [
        tuple((one.id, one.name, LATE) for one in sorted(late[name], key=lambda one: one.name))
        for name in ("Bob", "Ada")
    ]


# --- The app chooses: warn ------------------------------------------------------------------------
@pytest.mark.parametrize("choice", [None, "warn"])
def test_every_response_warns_of_stale_calendars(tenant: Tenant, choice: str | None) -> None:
    ada = tenant.make_resource("Ada", **open_hours(9, 11))
    before = everything(tenant, ada)
    calendar = connect(ada, LATE)
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"stale_calendars": choice}})

    after = everything(tenant, ada)

    told = {"warnings": [late_warning(ada, calendar)]}
    assert {path: one.json for path, one in after.items()} == {
        path: one.json | told for path, one in before.items()
    }


def test_warnings_are_in_the_order_of_the_resources(tenant: Tenant) -> None:
    ada, bob, cleo = (tenant.make_resource(name, **open_hours(9, 10)) for name in "ABC")
    of_bob, of_ada = connect(bob, LATE), [connect(ada, LATE, name=name) for name in ("Y", "X")]
    project = tenant.make_project(cleo["id"], bob["id"], ada["id"])

    answer = tenant.post("/availability", {"project_id": project["id"], **MORNING})

    found = [(one["resource_id"], one["calendar_id"]) for one in answer.json["warnings"]]
    assert found == [
        (bob["id"], str(of_bob.id)),
        (ada["id"], str(of_ada[1].id)),
        (ada["id"], str(of_ada[0].id)),
    ]


def test_resource_key_sees_warnings_of_its_own_calendars(tenant: Tenant) -> None:
    ada = tenant.make_resource("Ada", email="ada@example.com", **open_hours(9, 10))
    calendar = connect(ada, LATE)
    key = Caller(ada["api_token"], user="ada@example.com")

    answer = key.post("/availability", TWO_HOURS)

    assert answer.json["warnings"] == [late_warning(ada, calendar)]


def test_widget_key_sees_no_warnings(tenant: Tenant) -> None:
    ada = tenant.make_resource("Ada", **open_hours(9, 10))
    project = tenant.make_project(ada["id"])
    connect(ada, LATE)
    body = {"project_id": project["id"], "from": "now", "to": "1 day"}

    widget = tenant.widget()
    answers = [widget.post(f"/availability{path}", body) for path in ("", "/dates", "/count")]

    assert [(answer.status, set(answer.json), bool(answer.data)) for answer in answers] == [
        (200, {"data"}, True)
    ] * 3


def test_booking_is_accepted_with_a_stale_calendar(tenant: Tenant) -> None:
    ada = tenant.make_resource("Ada")
    project = tenant.make_project(ada["id"])
    connect(ada, LATE)

    answer = tenant.book(
        project_id=project["id"], start=f"{MONDAY}T09:00:00Z", end=f"{MONDAY}T10:00:00Z"
    )

    assert answer.status == 201


# --- The app chooses: block -----------------------------------------------------------------------
def test_stale_calendar_blocks_in_every_response(tenant: Tenant) -> None:
    ada = tenant.make_resource("Ada")
    calendar = connect(ada, LATE)
    block(tenant)

    answers = everything(tenant, ada)

    summary = {"id": ada["id"], "name": "Ada", "timezone": "UTC"}
    text = f'The external calendar "Work" has not synced since {MONDAY}T05:10:00+00:00.'
    span = {"start": f"{MONDAY}T09:00:00+00:00", "end": f"{MONDAY}T11:00:00+00:00"}
    reason = {"type": "calendar", "source": None, "calendar_id": str(calendar.id), "text": text}
    explained = {
        "resource": summary,
        "never_open": False,
        "segments": [{**span, "available": False, "reasons": [reason]}],
    }
    data = {
        "/availability": [],
        "/availability/dates": [],
        "/availability/count": [],
        "/unavailable/slots": [{**span, "resources": [summary]}],
        "/availability/explain": [explained],
        "/findtime": [],
    }
    warnings = [late_warning(ada, calendar)]
    assert {path: answer.json for path, answer in answers.items()} == {
        path: {"data": found, "warnings": warnings} for path, found in data.items()
    }


def test_explain_names_each_stale_calendar(tenant: Tenant) -> None:
    ada = tenant.make_resource("Ada", BERLIN)
    tenant.make_event(ada["calendars"][0]["id"], f"{MONDAY}T10:00:00Z", f"{MONDAY}T10:30:00Z")
    connect(ada, LATE, name="B")
    connect(ada, None, name="A")
    block(tenant)

    answer = tenant.post("/availability/explain", {"resources": [ada["id"]], **TWO_HOURS})

    late = [
        'calendar: The external calendar "A" has never synced.',
        f'calendar: The external calendar "B" has not synced since {MONDAY}T06:10:00+01:00.',
    ]
    assert [
        (line(record), [f"{reason['type']}: {reason['text']}" for reason in record["reasons"]])
        for record in answer.data[0]["segments"]
    ] == [
        (f"{MONDAY} 09:00-10:00 +00:00", late),
        (f"{MONDAY} 10:00-10:30 +00:00", ["event: Overlaps an event.", *late]),
        (f"{MONDAY} 10:30-11:00 +00:00", late),
    ]


def test_stale_calendar_blocks_only_its_resource(tenant: Tenant) -> None:
    ada, bob = (tenant.make_resource(name, **open_hours(9, 10)) for name in ("Ada", "Bob"))
    connect(ada, LATE)
    block(tenant)

    found = {
        mode: [line(slot) for slot in ask(tenant, ada["id"], bob["id"], mode=mode).data]
        for mode in ("roundrobin_prioritized", "roundrobin_random", "exclusive", "mutual")
    }

    bobs = [f"{MONDAY} 09:00-10:00 +00:00 Bob"]
    assert found == {
        "roundrobin_prioritized": bobs,
        "roundrobin_random": bobs,
        "exclusive": bobs,
        "mutual": [],
    }


def nine(**given: Any) -> dict[str, Any]:
    return {"start": f"{MONDAY}T09:00:00Z", "end": f"{MONDAY}T10:00:00Z", **given}


def test_an_enforced_booking_is_refused_with_the_reason(tenant: Tenant) -> None:
    ada = tenant.make_resource("Ada")
    project = tenant.make_project(ada["id"])
    calendar = connect(ada, LATE)
    block(tenant)

    answers = [
        tenant.book(**nine(project_id=project["id"])),
        tenant.book(**nine(resource_id=ada["id"], settings={"enforce_availability": True})),
        tenant.post("/bookings/reserve", nine(project_id=project["id"])),
    ]

    refused = {
        "error": "The time is not available.",
        "code": "not_available",
        "reasons": [
            {
                "type": "calendar",
                "source": None,
                "calendar_id": str(calendar.id),
                "text": late_warning(ada, calendar)["text"],
            }
        ],
        "alternatives": [],
    }
    assert [(answer.status, answer.error) for answer in answers] == [(409, refused)] * 3
    assert tenant.get("/bookings").json["total"] == 0


def test_widget_key_does_not_see_the_calendar_name(tenant: Tenant) -> None:
    ada = tenant.make_resource("Ada")
    project = tenant.make_project(ada["id"])
    connect(ada, LATE, name="At my doctor's")
    block(tenant)

    answer = tenant.widget().post(
        "/bookings",
        nine(project_id=project["id"], what="x", customer={"name": "M", "email": "m@example.com"}),
    )

    text = f"An external calendar has not synced since {MONDAY}T05:10:00+00:00."
    assert answer.json["reasons"] == [{"type": "calendar", "text": text}]
    assert "doctor" not in answer.content.decode()


def test_booking_without_enforced_rules_ignores_stale_calendars(tenant: Tenant) -> None:
    ada = tenant.make_resource("Ada")
    project = tenant.make_project(ada["id"], settings={"enforce_availability": False})
    connect(ada, LATE)
    block(tenant)

    answers = [
        tenant.book(**nine(resource_id=ada["id"])),
        tenant.book(
            project_id=project["id"], start=f"{MONDAY}T11:00:00Z", end=f"{MONDAY}T12:00:00Z"
        ),
    ]

    assert [answer.status for answer in answers] == [201, 201]


def test_project_books_the_resource_with_a_fresh_calendar(tenant: Tenant) -> None:
    ada, bob = (tenant.make_resource(name) for name in ("Ada", "Bob"))
    modes = {
        mode: tenant.make_project(ada["id"], bob["id"], availability={"mode": mode})["id"]
        for mode in ("roundrobin_prioritized", "mutual")
    }
    calendar = connect(ada, LATE)
    block(tenant)

    first = tenant.post("/bookings?include=resource", _body(modes["roundrobin_prioritized"], 9))
    mutual = tenant.post("/bookings", _body(modes["mutual"], 11))

    assert first.data["resource"]["name"] == "Bob"
    assert (mutual.status, [one["calendar_id"] for one in mutual.json["reasons"]]) == (
        409,
        [str(calendar.id)],
    )


def _body(project_id: str, hour: int) -> dict[str, Any]:
    return {
        "project_id": project_id,
        "start": f"{MONDAY}T{hour:02}:00:00Z",
        "end": f"{MONDAY}T{hour + 1:02}:00:00Z",
        "what": "Meeting",
        "customer": {"name": "Marty McFly", "email": "marty@example.com"},
    }


def test_series_and_reschedule_are_refused(tenant: Tenant) -> None:
    ada = tenant.make_resource("Ada")
    project = tenant.make_project(ada["id"])
    booking = tenant.book(**nine(project_id=project["id"])).data
    connect(ada, LATE)
    block(tenant)
    later = {"start": f"{MONDAY}T11:00:00Z", "end": f"{MONDAY}T12:00:00Z"}

    series = tenant.book(project_id=project["id"], recurrence="FREQ=DAILY;COUNT=2", **later)
    move = tenant.post(f"/bookings/{booking['id']}/reschedule", later)

    found = [
        (one.status, one.json["code"], [reason["type"] for reason in one.json["reasons"]])
        for one in (series, move)
    ]
    assert found == [(409, "not_available", ["calendar"])] * 2


def test_confirmation_ignores_stale_calendars(tenant: Tenant) -> None:
    """Confirming is the owner's right: what opens and closes was asked when it was made."""
    ada = tenant.make_resource("Ada")
    project = tenant.make_project(ada["id"], booking={"graph": "confirm_decline"})
    booking = tenant.book(**nine(project_id=project["id"])).data
    connect(ada, LATE)
    block(tenant)

    answer = tenant.put(f"/bookings/{booking['id']}/confirm", {})

    assert (answer.status, answer.data["state"]) == (200, "confirmed")


def test_sync_frees_the_time(tenant: Tenant) -> None:
    ada = tenant.make_resource("Ada", **open_hours(9, 10))
    calendar = connect(ada, LATE)
    block(tenant)
    assert ask(tenant, ada["id"]).data == []

    Calendar.objects.filter(id=calendar.id).update(synced_at=NOW)

    assert lines(ask(tenant, ada["id"])) == [f"{MONDAY} 09:00-10:00 +00:00 Ada"]


# --- The setting ----------------------------------------------------------------------------------
@pytest.mark.parametrize("value", ["ignore", "", "BLOCK", 1, True, ["block"]])
def test_wrong_setting_is_refused(tenant: Tenant, value: Any) -> None:
    path = f"/apps/{tenant.app.slug}"
    before = tenant.get(path).data

    answer = tenant.put(path, {"settings": {"stale_calendars": value}})

    assert (answer.status, list(answer.json["errors"])) == (422, ["settings.stale_calendars"])
    assert tenant.get(path).data == before


def test_setting_is_stored_and_removed(tenant: Tenant) -> None:
    path = f"/apps/{tenant.app.slug}"
    found = []
    for value in ("warn", "block", None):
        tenant.put(path, {"settings": {"stale_calendars": value}})
        found.append(tenant.get(path).data["settings"])

    off = {"disable_emails": False}
    assert found == [off | {"stale_calendars": "warn"}, off | {"stale_calendars": "block"}, off]
