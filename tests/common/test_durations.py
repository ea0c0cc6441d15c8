from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.time.durations import (
    Duration,
    DurationError,
    elapsed_seconds,
    is_relative,
    parse_duration,
    resolve_time,
)
from common.time.instants import ZONES, InstantError

NO_TEXT = "Must be a duration such as '30 minutes' or '3 days 2 weeks'."
NOW = datetime(2026, 3, 27, 12, 0, 0, 5, UTC)


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("1 hour", (0, 0, 3600)),
        ("-1 hour", (0, 0, -3600)),
        ("+ 1 hour", (0, 0, 3600)),
        ("90 mins", (0, 0, 5400)),
        ("45 secs", (0, 0, 45)),
        ("1 minute 1 second", (0, 0, 61)),
        ("3 days 2 weeks", (0, 17, 0)),
        ("1 MONTH 2 Days", (1, 2, 0)),
        ("2 weeks -1 day", (0, 13, 0)),
        ("1day", (0, 1, 0)),
        ("  1   day  ", (0, 1, 0)),
        ("0", (0, 0, 0)),
        (0, (0, 0, 0)),
    ],
)
def test_parse_duration(text, duration):
    assert parse_duration(text) == Duration(*duration)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", NO_TEXT),
        ("hour", NO_TEXT),
        ("1", NO_TEXT),
        (5, NO_TEXT),
        (False, NO_TEXT),
        (0.0, NO_TEXT),
        (None, NO_TEXT),
        ([], NO_TEXT),
        ("1.5 hours", NO_TEXT),
        ("1 hour,", NO_TEXT),
        ("١ hour", NO_TEXT),
        ("9999999999 secs", NO_TEXT),
        ("1 year", "year is not a unit of time; use secs, mins, hours, days, weeks or months."),
        ("999999999 weeks", "Must be less than 200 years."),
        ("99999999 weeks -99999999 weeks", "Must be less than 200 years."),
        ("73201 days", "Must be less than 200 years."),
    ],
)
def test_parse_duration_refuses(text, message):
    with pytest.raises(DurationError) as error:
        parse_duration(text)

    assert str(error.value) == message


def test_elapsed_seconds():
    assert elapsed_seconds("1 week 1 day 1 sec") == 8 * 86_400 + 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 month", "Months are not allowed here."),
        ("59 secs", "Must be from 1 minute to 24 hours."),
        ("-1 hour", "Must be from 1 minute to 24 hours."),
        ("25 hours", "Must be from 1 minute to 24 hours."),
    ],
)
def test_elapsed_seconds_refuses(text, message):
    with pytest.raises(DurationError) as error:
        elapsed_seconds(text, least=60, most=90_000 - 3600)

    assert str(error.value).replace("1 day", "24 hours") == message


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("now", "2026-03-27 12:00"),
        ("Tomorrow", "2026-03-27 23:00"),
        ("90 mins", "2026-03-27 13:30"),
        ("-1 hour", "2026-03-27 11:00"),
        ("48 hours", "2026-03-29 12:00"),
        ("2 days", "2026-03-29 11:00"),  # the wall clock has moved meanwhile
        ("1 week 1 hour", "2026-04-03 12:00"),
        ("1 month", "2026-04-27 11:00"),
        ("-1 month", "2026-02-27 12:00"),
        ("0 days", "2026-03-27 12:00"),
        ("2026-06-01T10:00:00+02:00", "2026-06-01 08:00"),
        ("2026-06-01 10:00:00", "2026-06-01 08:00"),
        ("2026-06-01", "2026-05-31 22:00"),
    ],
)
def test_resolve_in_berlin(text, utc):
    expected = datetime.fromisoformat(utc).replace(tzinfo=UTC)

    assert resolve_time(text, NOW, "Europe/Berlin") == expected


@pytest.mark.parametrize(
    ("text", "now", "zone_name", "utc"),
    [
        ("tomorrow", "2018-11-03 15:00", "America/Sao_Paulo", "2018-11-04 03:00"),  # a gap
        ("2018-11-04", "2018-11-03 15:00", "America/Sao_Paulo", "2018-11-04 03:00"),
        ("1 day", "2026-03-28 01:30", "Europe/Berlin", "2026-03-29 01:00"),  # 02:30 skipped
        ("1 day 30 mins", "2026-03-28 01:30", "Europe/Berlin", "2026-03-29 01:30"),
        ("1 month", "2026-01-31 12:00", "UTC", "2026-02-28 12:00"),
        ("1 month", "2028-01-31 12:00", "UTC", "2028-02-29 12:00"),
        ("12 months", "2028-02-29 12:00", "UTC", "2029-02-28 12:00"),
        ("1 month 1 day", "2026-01-31 12:00", "UTC", "2026-03-01 12:00"),
        ("-2 months", "2026-01-15 12:00", "UTC", "2025-11-15 12:00"),
        ("1 hour", "2026-10-25 00:30", "Europe/Berlin", "2026-10-25 01:30"),
        ("1 day", "2026-10-24 00:30", "Europe/Berlin", "2026-10-25 00:30"),  # twice: the first
        ("1 day", "2011-12-29 20:00", "Pacific/Apia", "2011-12-30 10:00"),  # a day skipped
    ],
)  # fmt: skip
def test_resolve_on_the_wall_clock(text, now, zone_name, utc):
    instant = resolve_time(text, datetime.fromisoformat(now).replace(tzinfo=UTC), zone_name)

    assert instant == datetime.fromisoformat(utc).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("soon", DurationError),
        ("", DurationError),
        (None, DurationError),
        (5, DurationError),
        ("2026-03-29 02:30:00", InstantError),
        ("2026-03-32", InstantError),
        ("9999-01-01T00:00:00Z", InstantError),
        ("190 months", None),
        ("2300 months", InstantError),
        ("-2300 months", InstantError),
        ("70000 days", InstantError),
        ("-70000 days", InstantError),
        ("-999999999 secs -999999999 secs", InstantError),
    ],
)
def test_resolve_refuses(text, error):
    if error is None:
        assert resolve_time(text, NOW, "Europe/Berlin").year == 2042
        return
    with pytest.raises(error):
        resolve_time(text, NOW, "Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "relative"),
    [("now", True), ("2 days", True), ("2026 days", True), ("2026-11-20T10:00:00Z", False)],
)
def test_is_relative(text, relative):
    assert is_relative(text) is relative


@given(st.integers(-100, 100), st.integers(-1000, 1000), st.integers(-100_000, 100_000))
def test_written_durations_are_read(months, days, seconds):
    text = f"{seconds} secs {months} months {days} days"

    assert parse_duration(text) == Duration(months, days, seconds)


@given(
    st.text(max_size=30) | st.text("0123456789 -+dayweekmonths", max_size=30),
    st.datetimes(datetime(1970, 1, 2), datetime(2199, 12, 30), timezones=st.just(UTC)),
    st.sampled_from(sorted(ZONES)),
)
def test_any_text_resolves_or_is_refused(text, now, zone_name):
    try:
        instant = resolve_time(text, now, zone_name)
    except (DurationError, InstantError):
        return

    assert (instant.tzinfo, instant.microsecond, 1970 <= instant.year <= 2199) == (UTC, 0, True)
