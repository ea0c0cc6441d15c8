"""From when to when: `from`, `to`, rounding, wall time and the past in POST /availability."""

import pytest

from tests.availability.queries import MONDAY, ask, line, lines, refusal, starts
from tests.world import BERLIN, at

KATHMANDU = "Asia/Kathmandu"
LORD_HOWE = "Australia/Lord_Howe"

pytestmark = pytest.mark.usefixtures("monday")


@pytest.mark.parametrize(
    ("zone", "now", "given", "found"),
    [
        ("UTC", "2026-11-23 08:10:05", {"to": "3 hours"}, "2026-11-23 09:00-11:10:05 +00:00"),
        ("UTC", "2026-11-23 08:00:00", {"to": "3 hours"}, "2026-11-23 08:00-11:00 +00:00"),
        ("UTC", "2026-11-23 08:00:01", {"to": "3 hours"}, "2026-11-23 09:00-11:00:01 +00:00"),
        ("UTC", "2026-11-23 08:10:05", {"to": "3 hours", "round_to_nearest_hour": False},
         "2026-11-23 08:10:05-11:10:05 +00:00"),
        ("UTC", "2026-11-23 08:10", {"from": "2 hours 25 minutes", "to": "1 day"},
         "2026-11-23 11:00+00:00 to 2026-11-24 08:10+00:00"),
        # An absolute `from` is taken as it is.
        ("UTC", "2026-11-23 08:10", {"from": "2026-11-23 08:20:00", "to": "1 hour"},
         "2026-11-23 08:20-09:10 +00:00"),
        # The full hour of the wall clock: Kathmandu's lies at a quarter past in UTC.
        (KATHMANDU, "2026-11-23 08:10", {"to": "3 hours"}, "2026-11-23 14:00-16:55 +05:45"),
        (KATHMANDU, "2026-11-23 08:15", {"to": "3 hours"}, "2026-11-23 14:00-17:00 +05:45"),
        (KATHMANDU, "2026-11-23 08:16", {"to": "3 hours"}, "2026-11-23 15:00-17:01 +05:45"),
        (LORD_HOWE, "2026-06-01 08:10", {"to": "3 hours"}, "2026-06-01 19:00-21:40 +10:30"),
        # On 6 April 2025 the clock goes back from 02:00 to 01:30, on 5 October forth to 02:30.
        (LORD_HOWE, "2025-04-05 14:40", {"to": "3 hours"}, "2025-04-06 02:00-04:10 +10:30"),
        (LORD_HOWE, "2025-04-05 14:00", {"to": "3 hours"},
         "2025-04-06 01:00+11:00 to 2025-04-06 03:30+10:30"),
        (LORD_HOWE, "2025-10-04 15:20", {"to": "3 hours"}, "2025-10-05 03:00-05:20 +11:00"),
        (LORD_HOWE, "2025-10-04 15:30", {"to": "3 hours"}, "2025-10-05 03:00-05:30 +11:00"),
        # Days move on the wall clock, hours elapse.
        (BERLIN, "2025-03-29 11:00", {"from": "1 day", "to": "1 day 2 hours"},
         "2025-03-30 12:00-14:00 +02:00"),
        (BERLIN, "2025-03-29 11:00", {"from": "24 hours", "to": "26 hours"},
         "2025-03-30 13:00-15:00 +02:00"),
        (BERLIN, "2025-03-29 11:00", {"from": "1 week", "to": "1 week 1 hour"},
         "2025-04-05 12:00-13:00 +02:00"),
        (BERLIN, "2025-01-31 11:00", {"from": "1 month", "to": "1 month 1 hour"},
         "2025-02-28 12:00-13:00 +01:00"),
        (BERLIN, "2025-03-30 23:30", {"from": "tomorrow", "to": "tomorrow"}, None),
        (BERLIN, "2025-03-29 23:30", {"from": "now", "to": "tomorrow"},
         "2025-03-30 01:00+01:00 to 2025-03-31 00:00+02:00"),
        (BERLIN, "2025-03-29 22:30", {"from": " Tomorrow ", "to": "1 day 2 hours"},
         "2025-03-30 00:00+01:00 to 2025-03-31 01:30+02:00"),
        # A day on falls into the gap: its end. Into the repeated hour: the first.
        (BERLIN, "2025-03-29 01:30", {"from": "1 day", "to": "1 day 1 hour"},
         "2025-03-30 03:00-04:00 +02:00"),
        (BERLIN, "2025-10-25 00:00", {"from": "1 day", "to": "1 day 2 hours"},
         "2025-10-26 02:00+02:00 to 2025-10-26 03:00+01:00"),
        # Cairo has no midnight when the clock goes forth: tomorrow begins at one.
        ("Africa/Cairo", "2025-04-24 10:00", {"from": "tomorrow", "to": "2 days"},
         "2025-04-25 01:00+03:00 to 2025-04-26 12:00+03:00"),
        # Apia had no 30 December 2011.
        ("Pacific/Apia", "2011-12-30 00:00", {"from": "tomorrow", "to": "2 days"},
         "2011-12-31 00:00-14:00 +14:00"),
    ],
)  # fmt: skip
@pytest.mark.matrix
def test_from_and_to_in_local_time(tenant, monday, zone, now, given, found):
    monday.move_to(at(now))
    rosa = tenant.make_resource("Rosa", zone)

    body = {"resources": [rosa["id"]], "length": None, "output_timezone": zone, **given}
    answer = tenant.post("/availability", body)

    if found is None:
        assert (answer.status, answer.error) == (422, refusal(to="Must be after `from`."))
    else:
        assert lines(answer) == [f"{found} Rosa"]


def test_rounding_past_the_end_is_an_empty_range(tenant, ada):
    answer = tenant.post("/availability", {"resources": [ada["id"]], "to": "30 minutes"})

    assert (answer.status, answer.json) == (200, {"data": []})


def test_relative_range_is_in_the_zone_of_each_resource(tenant):
    berta, kiran = (tenant.make_resource(zone, zone)["id"] for zone in (BERLIN, KATHMANDU))

    answer = tenant.post(
        "/availability",
        {"resources": [berta, kiran], "from": "tomorrow", "to": "1 day 16 hours", "length": None,
         "mode": "exclusive", "include_past": True},
    )  # fmt: skip

    assert lines(answer) == [
        "2026-11-23 18:15+00:00 to 2026-11-25 00:10+00:00 Asia/Kathmandu",
        "2026-11-23 23:00+00:00 to 2026-11-25 00:10+00:00 Europe/Berlin",
    ]


WALL = {"from": f"{MONDAY} 12:00:00", "to": f"{MONDAY}T13:00:00"}


@pytest.mark.parametrize(
    ("zones", "headers", "found"),
    [
        # The zone of the resource, whatever the header and the app say.
        ([BERLIN], {}, "11:00-12:00 +00:00"),
        ([BERLIN], {"Service-Timezone": KATHMANDU}, "16:45-17:45 +05:45"),
        ([BERLIN, BERLIN], {}, "11:00-12:00 +00:00"),
        # Of several: the header's, else the app's.
        ([BERLIN, "UTC"], {"Service-Timezone": "America/Chicago"}, "12:00-13:00 -06:00"),
        ([BERLIN, "UTC"], {}, "17:00-18:00 +00:00"),
    ],
)
def test_wall_time_zone(make_tenant, zones, headers, found):
    tenant = make_tenant(settings={"default_timezone": "America/New_York"})
    ids = [tenant.make_resource("Rosa", zone)["id"] for zone in zones]

    body = {"resources": ids, "mode": "roundrobin_prioritized", "length": None, **WALL}
    answer = tenant.post("/availability", body, **headers)

    assert lines(answer) == [f"2026-11-23 {found} Rosa"]


def test_wall_time_of_resources_in_several_zones_is_utc(tenant):
    ids = [tenant.make_resource("Rosa", zone)["id"] for zone in (BERLIN, KATHMANDU)]

    answer = ask(tenant, *ids, mode="mutual", **WALL)

    assert lines(answer) == ["2026-11-23 12:00-13:00 +00:00 Rosa, Rosa"]


@pytest.mark.parametrize("key", ["from", "to"])
def test_wall_time_in_a_gap_is_refused(make_tenant, monday, key):
    monday.move_to(at("2026-03-27 10:00"))
    tenant = make_tenant(settings={"default_timezone": "America/New_York"})
    berta, nick = (tenant.make_resource(zone, zone)["id"] for zone in (BERLIN, "America/New_York"))
    gap = {key: "2026-03-29 02:30:00", "length": None}

    refused = tenant.post("/availability", {"resources": [berta], **gap})
    known = tenant.post("/availability", {"resources": [nick], **gap})

    assert refused.error == refusal(**{key: "2026-03-29 02:30:00 does not exist in Europe/Berlin."})
    assert (
        line(known.data[0])
        == {
            "from": "2026-03-29 06:30+00:00 to 2026-04-24 10:00+00:00 America/New_York",
            "to": "2026-03-27 10:00+00:00 to 2026-03-29 06:30+00:00 America/New_York",
        }[key]
    )


def test_a_projects_wall_time_is_read_in_each_zone(tenant, monday):
    """What it means in a zone that skips it: the end of the gap."""
    monday.move_to(at("2026-03-27 10:00"))
    ids = [tenant.make_resource(zone, zone)["id"] for zone in (BERLIN, "America/New_York")]
    project = tenant.make_project(
        *ids,
        availability={
            "mode": "exclusive",
            "length": None,
            "from": "2026-03-29 02:30:00",
            "to": "2026-03-29 06:00:00",
        },
    )

    assert lines(tenant.post("/availability", {"project_id": project["id"]})) == [
        "2026-03-29 01:00-04:00 +00:00 Europe/Berlin",
        "2026-03-29 06:30-10:00 +00:00 America/New_York",
    ]


def test_a_range_of_366_days_is_not_too_long(tenant, ada):
    span = {"from": f"{MONDAY}T09:00:00Z", "to": "2027-11-24T09:00:00Z"}

    assert lines(ask(tenant, ada["id"], **span, length=None)) == [
        "2026-11-23 09:00-10:00 +00:00 Ada",
        "2026-11-23 10:30+00:00 to 2027-11-24 09:00+00:00 Ada",
    ]


def test_range_of_366_days_over_a_clock_change_is_not_too_long(tenant, monday):
    monday.move_to(at("2025-10-25 10:00"))  # the clock is set back on the next day
    berta = tenant.make_resource("Berta", BERLIN)

    answer = tenant.post(
        "/availability", {"resources": [berta["id"]], "length": None, "to": "366 days"}
    )

    assert lines(answer) == ["2025-10-25 10:00+00:00 to 2026-10-26 11:00+00:00 Berta"]


def test_slots_that_have_begun_are_left_out(tenant, ada, monday):
    monday.move_to(at(f"{MONDAY} 10:31"))
    halves = {"length": "30 minutes"}

    plain = ask(tenant, ada["id"], **halves)
    past = ask(tenant, ada["id"], **halves, include_past=True)
    whole = ask(tenant, ada["id"], length=None)

    # Packed from the start of the gap all the same: what is offered does not move with the clock.
    assert starts(plain) == [f"2026-11-23 {start}+00:00" for start in ("11:00", "11:30")]
    assert starts(past) == [
        f"2026-11-23 {start}+00:00" for start in ("09:00", "09:30", "10:30", "11:00", "11:30")
    ]
    assert lines(whole) == ["2026-11-23 10:31-12:00 +00:00 Ada"]


def test_a_slot_that_begins_now_has_not_begun(tenant, ada, monday):
    monday.move_to(at(f"{MONDAY} 10:30"))

    assert lines(ask(tenant, ada["id"])) == ["2026-11-23 10:30-11:30 +00:00 Ada"]


def test_a_range_in_the_past_is_empty(tenant, ada):
    span = {"from": "-2 hours", "to": "now", "round_to_nearest_hour": False}

    assert ask(tenant, ada["id"], **span).json == {"data": []}
    assert lines(ask(tenant, ada["id"], **span, include_past=True)) == [
        "2026-11-23 06:10-07:10 +00:00 Ada",
        "2026-11-23 07:10-08:10 +00:00 Ada",
    ]
