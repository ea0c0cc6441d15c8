"""All-day events whose zone has changed its rules: found by doctor, derived again by a command."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, reset_tzpath

import pytest
import tzdata
from django.core.management import call_command
from django.db import connection

from availability.core import zones
from availability.models import Event
from ops.doctor import Finding, check_all_day_events
from tests.queries import Queries
from tests.world import BERLIN, NOW, Tenant, at

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]

DAY = ("2026-11-23", "2026-11-25")
BY_OLD_RULES = (at("2026-11-22 23:00"), at("2026-11-24 23:00"))
BY_NEW_RULES = (at("2026-11-22 22:00"), at("2026-11-24 22:00"))
HOUR = timedelta(hours=1)


@pytest.fixture
def new_rules(tmp_path: Path) -> Iterator[Callable[[], None]]:
    """`new_rules()`: from now on Berlin's clock goes as Kyiv's does, an hour ahead."""

    def change() -> None:
        folder = Path(tzdata.__file__).parent / "zoneinfo" / "Europe"
        (tmp_path / "Europe").mkdir()
        (tmp_path / "Europe" / "Berlin").write_bytes((folder / "Kyiv").read_bytes())
        reset_tzpath(to=[str(tmp_path)])
        forget()

    yield change
    reset_tzpath()
    forget()


def forget() -> None:
    """What a process that starts does not know yet."""
    ZoneInfo.clear_cache()
    zones._transitions.cache_clear()


def make_days(tenant: Tenant, zone: str = BERLIN, first: str = DAY[0], last: str = DAY[1]) -> Any:
    resource = tenant.make_resource(timezone=zone)
    calendar = resource["calendars"][0]["id"]
    return tenant.make_event(calendar, first, last, all_day=True)["id"]


def times_of(event: str) -> tuple[datetime, datetime]:
    return Event.objects.values_list("start", "end").get(id=event)


def run(*args: str) -> list[str]:
    out = StringIO()
    call_command("recompute_all_day_events", *args, stdout=out)
    return out.getvalue().splitlines()


def test_doctor_finds_days_with_outdated_zone_rules(
    tenant: Tenant, new_rules: Callable[[], None]
) -> None:
    berlin, paris = make_days(tenant), make_days(tenant, "Europe/Paris")
    past = make_days(tenant, first="2026-11-16", last="2026-11-18")
    before = times_of(past)
    assert times_of(berlin) == times_of(paris) == BY_OLD_RULES
    assert check_all_day_events() == Finding("ok", "2 checked, all start and end at midnight")

    new_rules()
    finding = check_all_day_events()
    counted = run("--dry-run")
    kept = times_of(berlin)
    said = run()

    assert finding == Finding(
        "WARN",
        "1 of 2 do not start and end at midnight",
        "A time zone has changed its rules: run manage.py recompute_all_day_events.",
    )
    assert (counted[-1], kept) == ("1 to be recomputed.", BY_OLD_RULES)
    assert said[-2:] == ["2 events checked.", "1 recomputed."]
    assert (times_of(berlin), times_of(paris)) == (BY_NEW_RULES, BY_OLD_RULES)
    assert times_of(past) == before
    assert check_all_day_events().level == "ok"
    assert run()[-1] == "0 recomputed."


def test_recomputed_days_free_the_old_time(tenant: Tenant, new_rules: Callable[[], None]) -> None:
    event = make_days(tenant, last="2026-11-24")
    resource = str(Event.objects.get(id=event).resource_id)
    query = {"resources": [resource], "from": "2026-11-22T21:00:00Z", "to": "2026-11-23T23:59:00Z"}

    new_rules()
    run()

    taken = tenant.post("/unavailable/slots", query).data
    assert [(one["start"][:19], one["end"][:19]) for one in taken] == [
        ("2026-11-22T22:00:00", "2026-11-23T22:00:00")
    ]


def test_other_events_are_not_recomputed(tenant: Tenant) -> None:
    """Events with a time, events of connected calendars, deleted calendars, unknown zones."""
    timed, connected, hidden, unknown = (make_days(tenant) for _ in range(4))
    events = Event.objects.filter(id__in=[timed, connected, hidden, unknown])
    events.update(start=BY_OLD_RULES[0] + HOUR)
    Event.objects.filter(id=timed).update(all_day=False, start_date=None, end_date=None)
    calendars = {str(event.id): event.calendar for event in events.select_related("calendar")}
    calendars[connected].provider = "caldav"
    calendars[connected].save()
    calendars[hidden].deleted_at = NOW
    calendars[hidden].save()
    resource = calendars[unknown].resource
    resource.timezone = "Mars/Olympus"
    resource.save()

    said = run()

    assert said[-1] == "0 recomputed."
    assert set(events.values_list("start", flat=True)) == {BY_OLD_RULES[0] + HOUR}


def test_many_days_are_recomputed_in_few_statements(tenant: Tenant) -> None:
    counts = []
    for number in (2, 20):
        for _ in range(number):
            make_days(tenant)
        Event.objects.update(start=BY_OLD_RULES[0] + HOUR)
        with Queries(connection) as queries:
            run()
        counts.append(len(queries))

    assert counts[0] == counts[1]
    assert set(Event.objects.values_list("start", "end")) == {BY_OLD_RULES}
