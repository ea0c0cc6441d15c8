"""The calendar providers: one class each, registered in this table."""

from collections.abc import Mapping

from external_calendars.providers.base import Provider
from external_calendars.providers.caldav import CalDav
from external_calendars.providers.ics import IcsFeed

PROVIDERS: Mapping[str, Provider] = {provider.name: provider for provider in (CalDav(), IcsFeed())}
