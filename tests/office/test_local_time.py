"""Readings of wall clocks, also on days of 23 and 25 hours."""

from datetime import date, timedelta

import pytest

from common.errors import Invalid
from office.base.local_time import (
    LocalSpan,
    days_span,
    local_pieces,
    local_span,
    monday_of,
    parse_moment,
    skipped_pieces,
    span_text,
)
from tests.world import BERLIN, at

SPRING, AUTUMN = date(2030, 3, 31), date(2030, 10, 27)
DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("start", "end", "shown"),
    [
        ("2030-01-07 08:00", "2030-01-07 09:00", ("2030-01-07T09:00:00", "2030-01-07T10:00:00")),
        # Over the spring change it reads an hour longer, over the autumn change an hour shorter.
        ("2030-03-31 00:30", "2030-03-31 01:30", ("2030-03-31T01:30:00", "2030-03-31T03:30:00")),
        ("2030-10-27 00:00", "2030-10-27 02:00", ("2030-10-27T02:00:00", "2030-10-27T03:00:00")),
        # It ends before it begins, by the clock: drawn in its length.
        ("2030-10-27 00:30", "2030-10-27 01:15", ("2030-10-27T02:30:00", "2030-10-27T03:15:00")),
    ],
)
def test_local_span_of_a_time(start: str, end: str, shown: tuple[str, str]) -> None:
    assert local_span(at(start), at(end), BERLIN) == LocalSpan(*shown)


def test_local_pieces_are_cut_at_clock_changes() -> None:
    assert local_pieces(*days_span(SPRING, SPRING + DAY, BERLIN), BERLIN) == [
        LocalSpan("2030-03-31T00:00:00", "2030-03-31T02:00:00"),
        LocalSpan("2030-03-31T03:00:00", "2030-04-01T00:00:00"),
    ]
    assert local_pieces(*days_span(AUTUMN, AUTUMN + DAY, BERLIN), BERLIN) == [
        LocalSpan("2030-10-27T00:00:00", "2030-10-27T03:00:00"),
        LocalSpan("2030-10-27T02:00:00", "2030-10-28T00:00:00"),
    ]


def test_skipped_pieces_of_a_day() -> None:
    hour = LocalSpan("2030-03-31T02:00:00", "2030-03-31T03:00:00")

    assert skipped_pieces(*days_span(SPRING, SPRING + DAY, BERLIN), BERLIN) == [hour]
    assert skipped_pieces(*days_span(AUTUMN, AUTUMN + DAY, BERLIN), BERLIN) == []


@pytest.mark.parametrize(
    ("text", "after", "instant"),
    [
        ("2030-01-07T09:00", None, "2030-01-07 08:00"),
        ("2030-01-07T09:00:00+05:00", None, "2030-01-07 04:00"),
        ("2030-10-27T02:30", None, "2030-10-27 00:30"),
        ("2030-10-27T02:30", "2030-10-27 00:00", "2030-10-27 00:30"),
        ("2030-10-27T02:30", "2030-10-27 00:45", "2030-10-27 01:30"),
        # Both lie before: the first, and the check of the span says what is wrong.
        ("2030-10-27T02:30", "2030-10-27 03:00", "2030-10-27 00:30"),
    ],
)
def test_parse_moment(text: str, after: str | None, instant: str) -> None:
    assert parse_moment("end", text, BERLIN, after=at(after) if after else None) == at(instant)


@pytest.mark.parametrize("text", ["2030-03-31T02:30", "", None, "soon", "2030-02-30T10:00"])
def test_parse_moment_refuses(text: str | None) -> None:
    with pytest.raises(Invalid) as refusal:
        parse_moment("start", text, BERLIN)

    assert list(refusal.value.fields["errors"]) == ["start"]


@pytest.mark.parametrize(
    ("start", "end", "words"),
    [
        ("2030-01-07 08:00", "2030-01-07 09:00", "Mon 7 Jan 2030, 09:00 to 10:00"),
        ("2030-01-07 22:00", "2030-01-08 01:00", "Mon 7 Jan 2030, 23:00 to Tue 8 Jan 2030, 02:00"),
        (
            "2030-10-27 00:30",
            "2030-10-27 01:30",
            "Sun 27 Oct 2030, 02:30 UTC+02:00 to 02:30 UTC+01:00",
        ),
    ],
)
def test_a_span_in_words(start: str, end: str, words: str) -> None:
    assert span_text(at(start), at(end), BERLIN) == words


def test_monday_of_a_week() -> None:
    assert [monday_of(date(2030, 1, day)) for day in (6, 7, 13)] == [
        date(2029, 12, 31),
        date(2030, 1, 7),
        date(2030, 1, 7),
    ]
