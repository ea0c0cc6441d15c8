"""Sync states of calendars, with the same texts on every page."""

from collections.abc import Mapping
from datetime import datetime

from django.db.models import Case, Q, QuerySet, Value, When
from django.utils.formats import number_format
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from availability.models import Calendar
from availability.search.staleness import is_stale
from external_calendars.models import Connection
from external_calendars.providers import PROVIDERS
from external_calendars.providers.base import FINAL_ERRORS, PROVIDER_ERRORS
from external_calendars.sync.health_queries import in_first_sync, without_push
from office.base.lazy_text import LazyText
from office.base.message_translations import translate_message

SYNCED, FIRST_SYNC, FAILING = "synced", "first_sync", "failing"
STALE, STOPPED, LOCAL, DELETED = "out_of_step", "stopped", "here", "deleted"
NEEDS_ATTENTION = "trouble"  # in URLs: stale, stopped or with a final error
# Each calendar has exactly one state. Value: text, and the theme's label colour (`default`: grey).
STATES: Mapping[str, tuple[LazyText, str]] = {
    SYNCED: (_("synced"), "success"),
    FIRST_SYNC: (_("first sync"), "info"),
    FAILING: (_("failing"), "warning"),
    STALE: (_("out of sync"), "danger"),
    STOPPED: (_("stopped"), "danger"),
    LOCAL: (_("not connected"), "default"),
    DELETED: (_("deleted"), "default"),
}
STATE_COLOURS = {state: colour for state, (_words, colour) in STATES.items()}
PROVIDER_WORDS = {Calendar.SERVICE: _("this service"), "ics": _("iCalendar feed")}


def with_state(calendars: QuerySet[Calendar], now: datetime) -> QuerySet[Calendar]:
    """Annotate the calendars with `state`, the first key of STATES that applies."""
    return calendars.annotate(
        state=Case(
            When(deleted_at__isnull=False, then=Value(DELETED)),
            When(connection=None, then=Value(LOCAL)),
            When(connection__next_at=None, then=Value(STOPPED)),
            When(in_first_sync(now), then=Value(FIRST_SYNC)),
            When(is_stale(now), then=Value(STALE)),
            When(~Q(connection__problem=""), then=Value(FAILING)),
            default=Value(SYNCED),
        )
    )


def state_of(calendar: Calendar) -> str:
    """Return the state of a calendar annotated by `with_state`."""
    return vars(calendar)["state"]


def need_attention(calendars: QuerySet[Calendar], now: datetime) -> QuerySet[Calendar]:
    """Return the stale or stopped calendars, and those with a problem that usually only a person
    can fix. Deleted ones are left out, also those of deleted resources and archived apps.
    """
    is_in_need = Q(state__in=(STALE, STOPPED)) | Q(connection__problem__in=FINAL_ERRORS)
    return _connected_calendars(calendars, now).filter(is_in_need)


def calendars_in_first_sync(calendars: QuerySet[Calendar], now: datetime) -> QuerySet[Calendar]:
    """Return the calendars in their first sync, without deleted ones."""
    return _connected_calendars(calendars, now).filter(Q(state=FIRST_SYNC))


def silent_calendars(calendars: QuerySet[Calendar], now: datetime) -> QuerySet[Calendar]:
    """Return the calendars whose provider has told nothing for a day, although it could."""
    return _connected_calendars(calendars, now).filter(without_push(now))


def _connected_calendars(calendars: QuerySet[Calendar], now: datetime) -> QuerySet[Calendar]:
    """Return the connected calendars in use; few compared with calendars of the service."""
    rows = calendars.filter(deleted_at=None, connection__isnull=False)
    rows = rows.filter(resource__deleted_at=None, resource__app__archived_at=None)
    return with_state(rows, now)


def provider_words(name: str) -> str:
    """Return `CalDAV`; the name itself if the provider no longer exists."""
    provider = PROVIDERS.get(name)
    return str(PROVIDER_WORDS.get(name) or (provider.label if provider else name))


def problem_words(connection: Connection | None) -> str:
    """Return the problem's text; "" without one."""
    if connection is None or not connection.problem:
        return ""
    return translate_message(PROVIDER_ERRORS[connection.problem])


def account_words(connection: Connection | None) -> str:
    """Return the account of a calendar that is reached with a person's consent; "" for others."""
    grant = connection and connection.grant
    return grant.email or grant.subject if grant else ""


def progress_words(connection: Connection | None) -> str:
    """Return the running sync's progress; "" without one."""
    progress = connection and connection.progress_record()
    if not progress:
        return ""
    done, total = progress["done"], progress["total"]
    words = ngettext("%(done)s of %(total)s object", "%(done)s of %(total)s objects", total)
    return words % {
        "done": number_format(done, force_grouping=True),
        "total": number_format(total, force_grouping=True),
    }
