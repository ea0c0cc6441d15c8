"""How calendars stand that are kept elsewhere: the same words on every page."""

from collections.abc import Mapping
from datetime import datetime

from django.db.models import Case, Q, QuerySet, Value, When

from availability.models import Calendar
from availability.out_of_step import out_of_step
from external_calendars.health import being_read_first
from external_calendars.models import Connection
from external_calendars.providers import PROVIDERS
from external_calendars.providers.base import FINAL_TROUBLES, TROUBLES

IN_STEP, FIRST_LOOK, TROUBLED = "in_step", "first_look", "troubled"
OUT_OF_STEP, STOPPED, HERE, DELETED = "out_of_step", "stopped", "here", "deleted"
TROUBLE = "trouble"  # in addresses: those that need somebody
# Each is exactly one of these: words, and the theme's colour of the label (`default`: grey).
STATES: Mapping[str, tuple[str, str]] = {
    IN_STEP: ("in step", "success"),
    FIRST_LOOK: ("first look", "info"),
    TROUBLED: ("in trouble", "warning"),
    OUT_OF_STEP: ("out of step", "danger"),
    STOPPED: ("stopped", "danger"),
    HERE: ("kept here", "default"),
    DELETED: ("deleted", "default"),
}


def with_state(calendars: QuerySet[Calendar], now: datetime) -> QuerySet[Calendar]:
    """The calendars with a key of STATES as `state`: the first that holds."""
    return calendars.annotate(
        state=Case(
            When(deleted_at__isnull=False, then=Value(DELETED)),
            When(connection=None, then=Value(HERE)),
            When(connection__next_at=None, then=Value(STOPPED)),
            When(being_read_first(now), then=Value(FIRST_LOOK)),
            When(out_of_step(now), then=Value(OUT_OF_STEP)),
            When(~Q(connection__problem=""), then=Value(TROUBLED)),
            default=Value(IN_STEP),
        )
    )


def need_somebody(calendars: QuerySet[Calendar], now: datetime) -> QuerySet[Calendar]:
    """Those that are out of step, and those with a problem that as a rule only a person mends; what
    belongs to nobody any more is left out."""
    is_in_need = Q(state__in=(OUT_OF_STEP, STOPPED)) | Q(connection__problem__in=FINAL_TROUBLES)
    return _in_use(calendars, now).filter(is_in_need)


def being_read(calendars: QuerySet[Calendar], now: datetime) -> QuerySet[Calendar]:
    """Those whose first look is under way, but of what belongs to nobody any more."""
    return _in_use(calendars, now).filter(state=FIRST_LOOK)


def _in_use(calendars: QuerySet[Calendar], now: datetime) -> QuerySet[Calendar]:
    """The connected ones alone: few beside those that are kept here."""
    rows = calendars.filter(deleted_at=None, connection__isnull=False)
    rows = rows.filter(resource__deleted_at=None, resource__app__archived_at=None)
    return with_state(rows, now)


def provider_words(name: str) -> str:
    """`CalDAV`; of one that the table has no more, its name."""
    if name == Calendar.SERVICE:
        return "this service"
    provider = PROVIDERS.get(name)
    return provider.label if provider else name


def problem_words(connection: Connection | None) -> str:
    """Why it is not in step, as a sentence; "" where nothing is wrong."""
    return TROUBLES[connection.problem] if connection and connection.problem else ""


def progress_words(connection: Connection | None) -> str:
    """How far the look that is under way has come; "" where there is none."""
    progress = connection and connection.progress_record()
    return f"{progress['done']:,} of {progress['total']:,} read" if progress else ""
