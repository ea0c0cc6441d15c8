"""POST /availability/dates and /availability/count: the slots of /availability, by local date."""

from typing import Any

import pytest

from tests.availability.queries import MONDAY, MORNING, UNKNOWN, open_hours, refusal
from tests.world import BERLIN, Answer, Caller, Tenant, at

ONE_MODE = (
    "Must be one of roundrobin_random, roundrobin_prioritized, roundrobin_fair, mutual, exclusive,"
    " all_free."
)

pytestmark = pytest.mark.usefixtures("monday")


def dates(caller: Caller, **body: Any) -> Answer:
    return caller.post("/availability/dates", body)


def count(caller: Caller, **body: Any) -> Answer:
    return caller.post("/availability/count", body)


def days(answer: Answer) -> dict[str, Any]:
    """date -> resources or count."""
    found = [tuple(record.values()) for record in answer.data]
    assert len(dict(found)) == len(found)
    return dict(found)


def test_whole_responses(tenant, ada):
    body = {"resources": [ada["id"]], "from": f"{MONDAY}T22:00:00Z", "to": "2026-11-25T01:00:00Z"}

    on = dates(tenant, **body)
    counted = count(tenant, **body)

    ids = [ada["id"]]
    assert (on.status, counted.status) == (200, 200)
    assert on.json == {
        "data": [
            {"date": "2026-11-23", "resources": ids},
            {"date": "2026-11-24", "resources": ids},
            {"date": "2026-11-25", "resources": ids},
        ]
    }
    assert counted.json == {
        "data": [
            {"date": "2026-11-23", "count": 2},
            {"date": "2026-11-24", "count": 24},
            {"date": "2026-11-25", "count": 1},
        ]
    }


def test_nothing_free(tenant, ada):
    body = {"resources": [ada["id"]], **MORNING, "length": "2 hours"}

    assert dates(tenant, **body).json == count(tenant, **body).json == {"data": []}


def test_project_without_resources(tenant):
    project = tenant.make_project()

    assert dates(tenant, project_id=project["id"]).json == {"data": []}
    assert count(tenant, project_id=project["id"]).json == {"data": []}


def test_date_is_in_the_output_timezone(tenant, ada):
    """A slot belongs to the date on which it starts."""
    body = {"resources": [ada["id"]], "from": f"{MONDAY}T17:30:00Z", "to": f"{MONDAY}T19:30:00Z"}

    def both(zone: str) -> tuple[Any, Any]:
        asked = {**body, "output_timezone": zone}
        return days(dates(tenant, **asked)), days(count(tenant, **asked))

    assert both("UTC") == ({MONDAY: [ada["id"]]}, {MONDAY: 2})
    # 17:30 in UTC is 23:15 in Kathmandu.
    assert both("Asia/Kathmandu") == (
        {MONDAY: [ada["id"]], "2026-11-24": [ada["id"]]},
        {MONDAY: 1, "2026-11-24": 1},
    )
    assert both("Pacific/Kiritimati") == ({"2026-11-24": [ada["id"]]}, {"2026-11-24": 2})


@pytest.mark.parametrize(
    ("mode", "whose", "counted"),
    [
        # Round robin names one resource in a slot; on a date everyone who has a slot counts.
        ("roundrobin_random", {MONDAY: "ABC", "2026-11-24": "BC"}, {MONDAY: 6, "2026-11-24": 5}),
        ("roundrobin_prioritized", {MONDAY: "ABC", "2026-11-24": "BC"},
         {MONDAY: 6, "2026-11-24": 5}),
        ("exclusive", {MONDAY: "ABC", "2026-11-24": "BC"}, {MONDAY: 6, "2026-11-24": 5}),
        ("mutual", {MONDAY: "ABC"}, {MONDAY: 1}),
    ],
)  # fmt: skip
def test_each_mode(tenant, three, mode, whose, counted):
    """Ada has no time on Tuesday."""
    ada = tenant.get(f"/resources/{three[0]}?include=calendars").data
    tenant.make_event(ada["calendars"][0]["id"], "2026-11-24", "2026-11-25", all_day=True)
    body = {"resources": three, "mode": mode, "to": "1 day 12 hours"}

    found = days(dates(tenant, **body))

    names = dict(zip(three, "ABC", strict=True))
    assert {
        day: "".join(sorted(names[identifier] for identifier in ids)) for day, ids in found.items()
    } == whose
    assert days(count(tenant, **body)) == counted


@pytest.mark.parametrize("mode", ["roundrobin_prioritized", "exclusive", "mutual"])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu", "Pacific/Marquesas"])
def test_dates_and_count_agree_with_the_slots(tenant, three, mode, zone):
    body = {
        "resources": three,
        "mode": mode,
        "length": "30 minutes",
        "timeslot_increments": "15 minutes",
        "output_timezone": zone,
        "to": "9 days",
        "constraints": [{"block_day": {"day": "Thursday"}}],
    }
    slots = tenant.post("/availability", body).data

    counts: dict[str, int] = {}
    for slot in slots:
        counts[slot["start"][:10]] = counts.get(slot["start"][:10], 0) + 1
    assert len(slots) > 10
    assert days(count(tenant, **body)) == counts
    assert list(days(dates(tenant, **body))) == list(counts)


@pytest.mark.parametrize(
    ("zone", "now", "counts"),
    [
        (BERLIN, "2025-03-28 23:00", {"2025-03-29": 48, "2025-03-30": 46, "2025-03-31": 48}),
        (BERLIN, "2025-10-24 22:00", {"2025-10-25": 48, "2025-10-26": 50, "2025-10-27": 48}),
        ("Australia/Lord_Howe", "2025-10-03 13:30",
         {"2025-10-04": 48, "2025-10-05": 47, "2025-10-06": 48}),
        ("Australia/Lord_Howe", "2025-04-04 13:00",
         {"2025-04-05": 48, "2025-04-06": 49, "2025-04-07": 48}),
        ("Africa/Cairo", "2025-04-23 22:00",
         {"2025-04-24": 48, "2025-04-25": 46, "2025-04-26": 48}),
        # There was no 30 December.
        ("Pacific/Apia", "2011-12-28 10:00",
         {"2011-12-28": 48, "2011-12-29": 48, "2011-12-31": 48}),
        # Midnight and the half hour before it came twice.
        ("America/St_Johns", "2010-11-06 02:30",
         {"2010-11-06": 49, "2010-11-07": 49, "2010-11-08": 48}),
    ],
)  # fmt: skip
def test_days_of_clock_changes(tenant, monday, zone, now, counts):
    """Half hours of three local days."""
    monday.move_to(at(now))
    rosa = tenant.make_resource("Rosa", zone)
    first, *_, last = counts
    body = {
        "resources": [rosa["id"]],
        "from": f"{first} 00:00:00",
        "to": f"{last}T23:59:59",
        "length": "1 minute",
        "timeslot_increments": "30 minutes",
        "output_timezone": zone,
    }

    assert days(count(tenant, **body)) == counts
    assert days(dates(tenant, **body)) == {day: [rosa["id"]] for day in counts}


@pytest.mark.parametrize(
    ("given", "errors"),
    [
        ({"resources": [UNKNOWN]}, {"resources__0": "There is no such resource."}),
        ({"project_id": UNKNOWN}, {"project_id": "There is no such project."}),
        ({}, {"resources": "Required without a project."}),
        ({"to": 5}, {"to": "Must be a string."}),
        ({"mode": "best"}, {"mode": ONE_MODE}),
        ({"output_timezone": "Mars/Olympus"},
         {"output_timezone": "Must be a time zone such as Europe/Berlin."}),
        ({"resources": ["A"], "to": "-1 hour"}, {"to": "Must be after `from`."}),
        ({"resources": ["A"], "length": "1 minute", "to": "100 days"},
         {"to": "More than 100,000 slots: request a shorter range."}),
    ],
)  # fmt: skip
def test_wrong_bodies_are_refused(tenant, ada, given, errors):
    body = {**given, "resources": [ada["id"]]} if given.get("resources") == ["A"] else given

    for answer in (dates(tenant, **body), count(tenant, **body)):
        assert (answer.status, answer.error) == (422, refusal(**errors))


def test_a_widget_key_may_only_narrow(tenant: Tenant):
    ada, bob = (tenant.make_resource(name, **open_hours(9, 12)) for name in ("Ada", "Bob"))
    project = tenant.make_project(ada["id"], availability={"to": "2 days"})
    widget = tenant.widget()
    wide = {"project_id": project["id"], "to": "2 weeks", "length": "30 minutes"}

    assert days(count(widget, **wide)) == {MONDAY: 3, "2026-11-24": 3}
    assert days(dates(widget, **wide)) == {MONDAY: [ada["id"]], "2026-11-24": [ada["id"]]}
    for answer in (count(widget, **wide, resources=[bob["id"]]),
                   dates(widget, **wide, resources=[bob["id"]])):  # fmt: skip
        assert answer.error == refusal(resources__0="There is no such resource.")


def test_a_resource_key_sees_itself_only(tenant, ada):
    bob = tenant.make_resource("Bob", email="bob@example.com", **open_hours(9, 12))
    caller = Caller(bob["api_token"], user="bob@example.com")

    assert days(dates(caller, to="1 day")) == {MONDAY: [bob["id"]]}
    assert days(count(caller, to="1 day")) == {MONDAY: 3}
    for answer in (dates(caller, resources=[ada["id"]]), count(caller, resources=[ada["id"]])):
        assert answer.error == refusal(resources__0="There is no such resource.")
