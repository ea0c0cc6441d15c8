"""Which of an account's calendars somebody means."""

from collections.abc import Sequence
from urllib.parse import unquote

from common.messages import Message
from external_calendars.providers.base import DiscoveredCalendar, ProviderError


def choose_calendar(found: Sequence[DiscoveredCalendar], wanted: str) -> DiscoveredCalendar:
    """Return the wanted calendar by its address, id or name; "": the first.

    Raises ProviderError (not_a_calendar, several_calendars).
    """
    if not found:
        raise ProviderError("not_a_calendar")
    if not wanted:
        return found[0]
    for one in found:
        if wanted in (one.address, unquote(one.address.rpartition("/")[2])):
            return one
    named = [one for one in found if one.name.casefold() == wanted.strip().casefold()]
    if len(named) == 1:
        return named[0]
    names = ", ".join(f"“{one.name}”" for one in (named or found)[:20])
    if named:
        detail = Message("There are several calendars of this name: %(names)s.", names=names)
        raise ProviderError("several_calendars", detail=detail)
    raise ProviderError("not_a_calendar")
