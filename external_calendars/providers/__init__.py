"""The calendar providers: one class each, registered in this table."""

from collections.abc import Mapping

from external_calendars.providers.base import OAuthProvider, Provider
from external_calendars.providers.caldav import CalDav
from external_calendars.providers.google import GoogleCalendar
from external_calendars.providers.ics import IcsFeed
from external_calendars.providers.microsoft import MicrosoftCalendar

_OAUTH: tuple[OAuthProvider, ...] = (GoogleCalendar(), MicrosoftCalendar())
_ALL: tuple[Provider, ...] = (CalDav(), IcsFeed(), *_OAUTH)

PROVIDERS: Mapping[str, Provider] = {provider.name: provider for provider in _ALL}
OAUTH_PROVIDERS: Mapping[str, OAuthProvider] = {provider.name: provider for provider in _OAUTH}
