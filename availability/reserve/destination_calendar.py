"""The connected calendars that events are mirrored to."""

from collections.abc import Iterable

from django.db.models import Q

from availability.models import Calendar, CalendarQuerySet, Event


class DestinationCalendars:
    """The destination calendars of some events; all calendars are read in one query.

    The destination is the event's own calendar if it is writable, else the primary calendar of its
    resource if that is writable, else none.
    """

    def __init__(self, events: Iterable[Event]) -> None:
        events = list(events)
        calendars = {event.calendar_id for event in events}
        resources = {event.resource_id for event in events}
        condition = Q(id__in=calendars) | Q(resource__in=resources, provider_primary=True)
        rows = writable_calendars().filter(condition) if events else ()
        self._by_id = {calendar.id: calendar for calendar in rows}
        self._primary = {
            calendar.resource_id: calendar
            for calendar in self._by_id.values()
            if calendar.provider_primary
        }

    def of(self, event: Event) -> Calendar | None:
        return self._by_id.get(event.calendar_id) or self._primary.get(event.resource_id)


def writable_calendars() -> CalendarQuerySet:
    """Calendars for which `Calendar.is_writable` is true, not deleted."""
    rows = Calendar.objects.filter(deleted_at=None, provider_access=Calendar.WRITER)
    return rows.exclude(provider=Calendar.SERVICE)
