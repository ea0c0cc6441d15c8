"""Rules that others wrote, against dateutil, where dateutil ends."""

import datetime as datetime_module
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from types import ModuleType

import pytest
from dateutil.rrule import rrulestr
from hypothesis import assume, given
from hypothesis import strategies as st

from common.ical.rrule import RecurrenceRule, RecurrenceRuleError, rule_starts

WEEKDAYS = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"]
FIRST = datetime(2019, 5, 14, 9, 15)
SINCE, BEFORE = datetime(2021, 1, 1), datetime(2023, 6, 1)


def lists(least: int, most: int, size: int = 3) -> st.SearchStrategy[str]:
    numbers = st.integers(least, most).filter(bool)
    return st.lists(numbers, min_size=1, max_size=size, unique=True).map(
        lambda found: ",".join(map(str, found))
    )


@st.composite
def rules(draw: st.DrawFn) -> str:
    frequency = draw(st.sampled_from(["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY"]))
    parts = [f"FREQ={frequency}", f"INTERVAL={draw(st.integers(1, 7))}"]
    choices = {
        "BYMONTH": lists(1, 12),
        "BYMONTHDAY": lists(-31, 31),
        "BYDAY": st.lists(st.sampled_from(WEEKDAYS), min_size=1, max_size=3, unique=True).map(
            ",".join
        ),
        "WKST": st.sampled_from(WEEKDAYS),
    }
    if frequency == "YEARLY":
        choices |= {"BYYEARDAY": lists(-366, 366), "BYWEEKNO": lists(-53, 53)}
    if frequency in ("YEARLY", "MONTHLY"):
        numbered = st.tuples(st.sampled_from(["", "1", "2", "-1", "4"]), st.sampled_from(WEEKDAYS))
        choices["BYDAY"] = st.lists(numbered.map("".join), min_size=1, max_size=3, unique=True).map(
            ",".join
        )
    if frequency == "HOURLY":
        choices["BYHOUR"] = lists(1, 23)
    else:
        choices |= {"BYHOUR": lists(1, 23), "BYMINUTE": lists(1, 59, size=2)}
    names = draw(st.sets(st.sampled_from(sorted(choices)), max_size=3))
    parts += [f"{name}={draw(choices[name])}" for name in sorted(names)]
    has_days = names & {"BYDAY", "BYMONTHDAY", "BYYEARDAY"}
    if frequency != "HOURLY" and has_days and draw(st.booleans()):
        parts.append(f"BYSETPOS={draw(lists(-3, 3, size=2))}")
    if draw(st.booleans()):
        parts.append(f"COUNT={draw(st.integers(1, 400))}")
    return ";".join(parts)


@pytest.fixture(autouse=True, scope="module")
def _dateutil_ends() -> Iterator[None]:
    """It looks for the next occurrence until the last year that there is."""
    calendar = ModuleType("datetime")
    calendar.__dict__.update({**datetime_module.__dict__, "MAXYEAR": 2030})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dateutil.rrule.datetime", calendar)
        yield


def reads_otherwise(text: str) -> bool:
    """Where dateutil departs from RFC 5545 (3.3.10), or reads more into it than stands there."""
    days = re.search(r"BYDAY=([^;]*)", text)
    numbered = [any(map(str.isdigit, day)) for day in days[1].split(",")] if days else []
    return (
        # Of `1MO,TU` it takes what is both.
        (any(numbered) and not all(numbered))
        # Numbers of weekdays have no place beside weeks: it drops them.
        or ("BYWEEKNO" in text and any(numbered))
        # A week by its number alone: all its days, while what is not said is as the start.
        or ("BYWEEKNO" in text and "BYDAY" not in text)
        # The first week counts from the start on, not from its first day.
        or ("WEEKLY" in text and "BYSETPOS" in text and "COUNT" in text)
    )


@given(rules())
def test_rules_agree_with_dateutil(text: str) -> None:
    assume(not reads_otherwise(text))
    last = BEFORE - timedelta(seconds=1)
    try:
        expected = rrulestr(text, dtstart=FIRST).between(SINCE, last, inc=True)
    except ValueError:  # it sees that no hour fits
        expected = []

    found = list(rule_starts(RecurrenceRule(text), FIRST, since=SINCE, before=BEFORE, until=None))

    assert found == expected


@pytest.mark.parametrize(
    ("text", "until", "is_utc"),
    [
        ("FREQ=DAILY;UNTIL=20260301", datetime(2026, 3, 1, 23, 59, 59), False),
        ("FREQ=DAILY;UNTIL=20260301T120000", datetime(2026, 3, 1, 12), False),
        ("freq=daily;until=20991231t235959z", datetime(2099, 12, 31, 23, 59, 59), True),
        ("FREQ=DAILY;UNTIL=99991231T235959Z", None, False),
        ("FREQ=DAILY;X-NOTE=1;", None, False),
    ],
)
def test_until_of_a_rule(text: str, until: datetime | None, is_utc: bool) -> None:
    rule = RecurrenceRule(text)

    assert (rule.until, rule.until_is_utc) == (until, is_utc)


def test_count_from_the_distant_past_is_refused() -> None:
    rule = RecurrenceRule("FREQ=DAILY;COUNT=3")

    with pytest.raises(RecurrenceRuleError):
        list(rule_starts(rule, datetime(1604, 1, 1), since=SINCE, before=BEFORE, until=None))
