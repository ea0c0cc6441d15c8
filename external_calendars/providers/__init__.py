"""The providers of calendars: one small class each, and its line in this table."""

from collections.abc import Mapping

from external_calendars.providers.base import Provider
from external_calendars.providers.caldav import CalDav
from external_calendars.providers.ics import Feed

PROVIDERS: Mapping[str, Provider] = {provider.name: provider for provider in (CalDav(), Feed())}
