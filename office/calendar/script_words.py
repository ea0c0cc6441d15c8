"""Texts of the calendar's script."""

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from office.base.labels import STATE_WORDS
from office.base.script_words import Plural, ScriptWords

SCRIPT_WORDS: ScriptWords = {
    "calendar": {
        "today": _("Today"),
        # Translators: button: show one day, a week, or a month of the calendar.
        "day": pgettext_lazy("calendar view", "Day"),
        "week": pgettext_lazy("calendar view", "Week"),
        "month": pgettext_lazy("calendar view", "Month"),
        # Translators: beside entries that take a whole day.
        "all_day": _("all-day"),
        "close": _("Close"),
        # Translators: entries of a day that its box has no place for: "3 more".
        "more": Plural("{count} more", "{count} more"),
        "zone_of_device": _("Times in this device's time zone ({zone})."),
        "zone": _("Times in the time zone {zone}."),
        # Translators: zones: "Ada Europe/Berlin, Bob Europe/London".
        "zones": _("Each column in its own time zone: {zones}."),
        "too_many": _("Too many entries: select fewer days or resources."),
        "failed": _("The calendar could not be loaded: {problem}"),
        # Translators: a booking: "Tue 24 Nov 2026, 10:00 to 10:30: Haircut · Ann".
        "entry": _("{time}: {title}"),
        # Translators: state of a booking and its resource: "confirmed, Ada".
        "state": _("{state}, {resource}"),
        # Translators: reason: a sentence.
        "closed": _("{resource} is closed: {reason}"),
        "calendar": _("Calendar"),
        "earlier": _("Earlier"),
        "later": _("Later"),
        "undo": _("Undo"),
        "free_times": _("Free times:"),
        "no_times": _("No free time in the next two weeks."),
        # Translators: a moved booking: "Haircut is now Tue 24 Nov 2026, 10:00 to 10:30."
        "moved": _("{title} is now {time}."),
        # Translators: a time that is not free, such as "Tue 24 Nov 2026, 10:00 to 10:30".
        "taken": _("Taken: {time}"),
        "booked": _("Booked: {time}."),
        # Translators: a link to the new booking.
        "open": pgettext_lazy("go to a page", "Open"),
        # Translators: a field with its errors; the field's name is the API's.
        "field": _("{field}: {errors}"),
        # Translators: a booking that is not confirmed yet.
        "state_tentative": pgettext_lazy("state of a booking", "tentative"),
        "state_confirmed": STATE_WORDS["confirmed"],
        "state_paid": STATE_WORDS["paid"],
        "state_completed": STATE_WORDS["completed"],
        "state_declined": STATE_WORDS["declined"],
        # Translators: a booking that was not paid in time.
        "state_unpaid": pgettext_lazy("state of a booking", "unpaid"),
        "state_cancelled": STATE_WORDS["cancelled"],
        # Translators: a booking that the customer cancelled.
        "state_cancelled_by_customer": pgettext_lazy("state of a booking", "cancelled_by_customer"),
        # Translators: a booking that the owner cancelled.
        "state_cancelled_by_owner": pgettext_lazy("state of a booking", "cancelled_by_owner"),
        # Translators: an event that is not a booking; its time is taken.
        "state_event": pgettext_lazy("calendar entry", "event"),
        # Translators: an event that is not a booking; its time stays free.
        "state_idle": pgettext_lazy("calendar entry", "idle"),
        # Translators: time held for a booking that is not made yet.
        "state_hold": pgettext_lazy("calendar entry", "hold"),
    },
}
