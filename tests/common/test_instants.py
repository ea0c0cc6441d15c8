from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.time.instants import (
    ZONES,
    InstantError,
    find_zone,
    format_instant,
    format_stamp,
    parse_date,
    parse_instant,
    wall_to_utc,
    wall_to_utc_or_gap_end,
)

NO_TEXT = "Must be a date and time such as 2026-11-20T10:30:00+01:00."
NO_TIME = "There is no such date or time."
NO_OFFSET = "There is no such offset from UTC."
NO_YEAR = "The year must be from 1970 to 2199."


@pytest.mark.parametrize("name", sorted(ZONES))
@pytest.mark.matrix
def test_every_zone_loads(name):
    assert find_zone(name).key == name


def test_zones_exclude_other_files():
    wanted = {"UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5"}
    junk = {"localtime", "posixrules", "Factory", "leapseconds", "tzdata.zi", "America", ""}
    assert (wanted - ZONES, junk & ZONES) == (set(), set())


@pytest.mark.parametrize(
    "name", ["Mars/Olympus", "../../etc/passwd", "/etc/passwd", "America", "tzdata.zi", "", "\0"]
)
def test_unknown_zone_is_refused(name):
    with pytest.raises(InstantError) as error:
        find_zone(name)

    assert str(error.value) == f"{name!r} is not a known time zone."


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2026-11-20T10:30:00Z", "2026-11-20 10:30:00"),
        ("2026-11-20t10:30:00z", "2026-11-20 10:30:00"),
        ("2026-11-20T10:30:00+01:00", "2026-11-20 09:30:00"),
        ("2026-11-20 10:30:00+0100", "2026-11-20 09:30:00"),
        ("2026-11-20T10:30:00-05:30", "2026-11-20 16:00:00"),
        ("2026-11-20T10:30:00-00:00", "2026-11-20 10:30:00"),
        ("2026-11-20T10:30:00.999999999Z", "2026-11-20 10:30:00"),
        ("2026-11-20T10:30:00,5", "2026-11-20 09:30:00"),
        ("2026-11-20 10:30:00", "2026-11-20 09:30:00"),
        ("2026-11-20T10:30", "2026-11-20 09:30:00"),
        ("2026-07-20T10:30:00", "2026-07-20 08:30:00"),
        ("2026-10-25T02:30:00", "2026-10-25 00:30:00"),  # twice: the first
        ("1970-01-01T00:00:00Z", "1970-01-01 00:00:00"),
        ("2199-12-31T23:59:59Z", "2199-12-31 23:59:59"),
        ("1969-12-31T19:00:00-05:00", "1970-01-01 00:00:00"),
        ("2200-01-01T00:59:59+01:00", "2199-12-31 23:59:59"),
    ],
)
def test_parse_instant_in_berlin(text, utc):
    assert parse_instant(text, "Europe/Berlin") == datetime.fromisoformat(utc + "+00:00")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", NO_TEXT),
        ("10", NO_TEXT),
        ("Thu", NO_TEXT),
        ("2026-11-20", NO_TEXT),
        ("2026-11-20T10:30:00 +01:00", NO_TEXT),
        ("2026-11-20T10:30:00+01", NO_TEXT),
        (" 2026-11-20T10:30:00Z", NO_TEXT),
        ("2026-11-20T10:30:00Z\n", NO_TEXT),
        ("２０２６-11-20T10:30:00Z", NO_TEXT),
        ("20261120T103000Z", NO_TEXT),
        ("2026-11-20T24:00:00Z", NO_TIME),
        ("2026-11-20T23:59:60Z", NO_TIME),
        ("2026-02-29T10:00:00Z", NO_TIME),
        ("2026-00-10T10:00:00Z", NO_TIME),
        ("2026-11-20T10:00:00+24:00", NO_OFFSET),
        ("2026-11-20T10:00:00+01:60", NO_OFFSET),
        ("0001-01-01T00:00:00Z", NO_YEAR),
        ("9999-12-31T23:59:59-12:00", NO_YEAR),
        ("1969-12-31T23:59:59-00:00", NO_YEAR),
        ("1970-01-01T00:00:00+01:00", NO_YEAR),
        ("1970-01-01T00:00:00", NO_YEAR),
        ("2199-12-31T23:59:59-01:00", NO_YEAR),
        ("2026-03-29 02:30:00", "2026-03-29 02:30:00 does not exist in Europe/Berlin."),
    ],
)
def test_parse_instant_refuses(text, message):
    with pytest.raises(InstantError) as error:
        parse_instant(text, "Europe/Berlin")

    assert str(error.value) == message


@pytest.mark.parametrize(
    ("wall", "zone_name", "utc"),
    [
        ("2026-03-29 02:00", "Europe/Berlin", "2026-03-29 01:00"),
        ("2026-03-29 02:59:59", "Europe/Berlin", "2026-03-29 01:00"),
        ("2026-03-29 03:00", "Europe/Berlin", "2026-03-29 01:00"),
        ("2026-03-29 01:59:59", "Europe/Berlin", "2026-03-29 00:59:59"),
        ("2018-11-04 00:00", "America/Sao_Paulo", "2018-11-04 03:00"),
        ("2026-10-04 02:15", "Australia/Lord_Howe", "2026-10-03 15:30"),
        ("2011-12-30 12:00", "Pacific/Apia", "2011-12-30 10:00"),
        ("2011-12-30 00:00", "Pacific/Apia", "2011-12-30 10:00"),
        ("2026-10-25 02:30", "Europe/Berlin", "2026-10-25 00:30"),
    ],
)
def test_wall_time_in_a_gap_is_its_end(wall, zone_name, utc):
    instant = wall_to_utc_or_gap_end(datetime.fromisoformat(wall), zone_name)

    assert instant == datetime.fromisoformat(utc).replace(tzinfo=UTC)


seconds = st.integers(0, int(datetime(2199, 12, 31, tzinfo=UTC).timestamp()))
zone_names = st.sampled_from(sorted(ZONES))


@given(seconds, zone_names)
def test_format_and_parse_are_inverse(second, zone_name):
    instant = datetime.fromtimestamp(second, UTC)

    assert parse_instant(format_instant(instant, zone_name), "UTC") == instant
    assert parse_instant(format_stamp(instant), "UTC") == instant


@given(seconds, zone_names)
def test_wall_to_utc_returns_the_first_instant(second, zone_name):
    instant = datetime.fromtimestamp(second, UTC)
    wall = instant.astimezone(find_zone(zone_name)).replace(tzinfo=None, fold=0)

    found = wall_to_utc(wall, zone_name)

    assert found <= instant
    assert found.astimezone(find_zone(zone_name)).replace(tzinfo=None, fold=0) == wall
    assert wall_to_utc_or_gap_end(wall, zone_name) == found


@given(st.datetimes(datetime(1971, 1, 1), datetime(2199, 1, 1)), zone_names)
def test_gap_end_is_the_clock_change(wall, zone_name):
    wall = wall.replace(microsecond=0)
    found = wall_to_utc_or_gap_end(wall, zone_name)
    before = (found - timedelta(seconds=1)).astimezone(find_zone(zone_name)).replace(tzinfo=None)
    after = found.astimezone(find_zone(zone_name)).replace(tzinfo=None)

    assert before < wall <= after or after == wall


@given(st.text(max_size=40) | st.from_regex(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d.{0,7}"))
def test_any_text_is_an_instant_or_refused(text):
    try:
        instant = parse_instant(text, "America/New_York")
    except InstantError:
        return

    assert (instant.tzinfo, instant.microsecond, 1970 <= instant.year <= 2199) == (UTC, 0, True)


@pytest.mark.parametrize(
    ("zone_name", "text"),
    [
        ("UTC", "2026-11-20T09:30:00+00:00"),
        ("Europe/Berlin", "2026-11-20T10:30:00+01:00"),
        ("Asia/Kathmandu", "2026-11-20T15:15:00+05:45"),
    ],
)
def test_format_instant(zone_name, text):
    assert format_instant(datetime(2026, 11, 20, 9, 30, 0, 999, UTC), zone_name) == text


def test_format_instant_of_an_offset_with_seconds():
    text = format_instant(datetime(1971, 1, 1, 12, tzinfo=UTC), "Africa/Monrovia")

    assert text == "1971-01-01T11:15:00-00:45"


def test_format_stamp():
    assert format_stamp(datetime(2026, 11, 20, 9, 30, tzinfo=UTC)) == "2026-11-20T09:30:00+0000"


def test_parse_date():
    assert parse_date("2028-02-29") == date(2028, 2, 29)


@pytest.mark.parametrize("text", ["2026-02-29", "2026-1-1", "20260101", "1969-12-31", "", "x"])
def test_parse_date_refuses(text):
    with pytest.raises(InstantError):
        parse_date(text)
