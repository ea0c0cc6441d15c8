"""The calendar providers: one class each, registered in this table."""

from collections.abc import Mapping
from typing import TypeVar

from external_calendars.providers.base import OAuthProvider, Provider
from external_calendars.providers.caldav import CalDav
from external_calendars.providers.google import GoogleCalendar
from external_calendars.providers.ics import IcsFeed
from external_calendars.providers.microsoft import MicrosoftCalendar

P = TypeVar("P", bound=Provider)


def _by_name(*providers: P) -> Mapping[str, P]:
    return {provider.name: provider for provider in providers}


OAUTH_PROVIDERS: Mapping[str, OAuthProvider] = _by_name(GoogleCalendar(), MicrosoftCalendar())
PROVIDERS: Mapping[str, Provider] = _by_name(CalDav(), IcsFeed(), *OAUTH_PROVIDERS.values())
