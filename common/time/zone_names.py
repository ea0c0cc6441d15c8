"""Current names of time zones: the tz database keeps old ones, such as Asia/Calcutta, as links."""

from functools import cache
from importlib.resources import files

from common.time.instants import ZONES


@cache
def current_zone_name(name: str) -> str:
    """Return the zone's current name: "Asia/Kolkata" for "Asia/Calcutta".

    Current are the names in the tz database's table of countries, and UTC. A name without a
    current one is returned as it is.
    """
    current, links = _current_names(), _renamed_zones()
    zone = name
    while zone not in current and zone in links:
        zone = links[zone]
    return zone if zone in current and zone in ZONES else name


@cache
def current_zones() -> tuple[str, ...]:
    """Return the current names of all zones that belong to a place, and UTC; sorted."""
    return tuple(sorted(_current_names() & ZONES))


# Old names that browsers list (CLDR keeps them).
BROWSER_NAMES = (
    *("Africa/Asmera", "America/Buenos_Aires", "America/Catamarca", "America/Coral_Harbour"),
    *("America/Cordoba", "America/Godthab", "America/Indianapolis", "America/Jujuy"),
    *("America/Louisville", "America/Mendoza", "Asia/Calcutta", "Asia/Katmandu", "Asia/Rangoon"),
    *("Asia/Saigon", "Atlantic/Faeroe", "Europe/Kiev", "Pacific/Enderbury", "Pacific/Ponape"),
    "Pacific/Truk",
)


@cache
def current_browser_zones() -> dict[str, str]:
    """Return old name -> current name of the zones that browsers list by old names."""
    return {name: current_zone_name(name) for name in BROWSER_NAMES}


@cache
def _current_names() -> frozenset[str]:
    rows = [line.split("\t") for line in _read_lines("zone.tab") if not line.startswith("#")]
    return frozenset({"UTC", *(row[2] for row in rows)})


@cache
def _renamed_zones() -> dict[str, str]:
    """Return the links of the tz database: other name -> name; of UTC's names to UTC."""
    rows = [line.split() for line in _read_lines("tzdata.zi") if line.startswith("L ")]
    links = {other: target for _, target, other in rows}
    return {**links, "Etc/UTC": "UTC", "Etc/GMT": "UTC"}


def _read_lines(file: str) -> list[str]:
    return (files("tzdata.zoneinfo") / file).read_text("utf-8").splitlines()
