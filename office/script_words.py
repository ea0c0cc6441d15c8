"""The texts of all scripts of the back office, which each of its pages carries."""

from typing import Any

from office.base.event_notification_words import SCRIPT_WORDS as EVENT_NOTIFICATIONS
from office.base.script_words import ScriptWords, plain_words
from office.base.shared_script_words import SCRIPT_WORDS as SHARED
from office.bookings.script_words import SCRIPT_WORDS as BOOKINGS
from office.calendar.script_words import SCRIPT_WORDS as CALENDAR
from office.explain.script_words import SCRIPT_WORDS as EXPLAIN
from office.notifications.script_words import SCRIPT_WORDS as NOTIFICATIONS

# Of the packages: one line each.
PACKAGES: tuple[ScriptWords, ...] = (
    SHARED,
    BOOKINGS,
    CALENDAR,
    EXPLAIN,
    EVENT_NOTIFICATIONS,
    NOTIFICATIONS,
)


def all_script_words() -> dict[str, dict[str, Any]]:
    """Return script -> name -> text, in the active language."""
    return {script: texts for each in PACKAGES for script, texts in plain_words(each).items()}
