"""Current names of time zones."""

from datetime import UTC, datetime

import pytest

from common.time.instants import ZONES, find_zone
from common.time.zone_names import current_zone_name, current_zones


@pytest.mark.parametrize(
    ("name", "current"),
    [
        ("Asia/Calcutta", "Asia/Kolkata"),
        ("Asia/Katmandu", "Asia/Kathmandu"),
        ("Asia/Rangoon", "Asia/Yangon"),
        ("Asia/Saigon", "Asia/Ho_Chi_Minh"),
        ("Europe/Kiev", "Europe/Kyiv"),
        ("US/Eastern", "America/New_York"),
        ("Europe/Oslo", "Europe/Oslo"),
        ("Europe/Berlin", "Europe/Berlin"),
        ("GMT", "UTC"),
        ("UTC", "UTC"),
        ("Etc/GMT+3", "Etc/GMT+3"),
        ("Atlantis", "Atlantis"),
    ],
)
def test_old_zone_names_map_to_current_names(name: str, current: str) -> None:
    assert current_zone_name(name) == current


def test_current_zones_are_known_and_current() -> None:
    zones = current_zones()

    assert set(zones) <= ZONES
    assert [zone for zone in zones if current_zone_name(zone) != zone] == []
    assert {"UTC", "Europe/Berlin", "Asia/Kolkata"} <= set(zones)
    assert not {"Europe/Kiev", "CET", "Etc/GMT+3"} & set(zones)


def test_current_name_has_the_same_offsets() -> None:
    for moment in (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 7, 1, tzinfo=UTC)):
        for name in ZONES:
            local = moment.astimezone(find_zone(name))
            assert (
                moment.astimezone(find_zone(current_zone_name(name))).isoformat()
                == local.isoformat()
            )
