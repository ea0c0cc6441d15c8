"""Texts of the calendar's script."""

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from office.base.script_words import Plural, ScriptWords

SCRIPT_WORDS: ScriptWords = {
    "calendar": {
        "today": _("Today"),
        # Translators: button: show one day, a week, or a month of the calendar.
        "day": pgettext_lazy("calendar view", "Day"),
        "week": pgettext_lazy("calendar view", "Week"),
        "month": pgettext_lazy("calendar view", "Month"),
        # Translators: button: show one day with a row for each resource.
        "timeline": pgettext_lazy("calendar view", "Timeline"),
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
        # Translators: a booking that was moved to another person.
        "moved_to": _("{title} is now {time}, {resource}."),
        # Translators: a time that is not free, such as "Tue 24 Nov 2026, 10:00 to 10:30".
        "taken": _("Taken: {time}"),
        "booked": _("Booked: {time}."),
        "booked_series": Plural("{count} booking was made.", "{count} bookings were made."),
        # Translators: time: of the first booking of a series.
        "first_booked": _("The first: {time}."),
        # Translators: times: of a series, such as "Tue 24 Nov 2026, 10:00 to 10:30".
        "not_booked": _("Not booked: {times}."),
        # Translators: a link to the new booking.
        "open": pgettext_lazy("go to a page", "Open"),
    },
    "new_booking": {
        "suggestions": Plural("{count} known customer", "{count} known customers"),
        "no_suggestions": _("No known customer: type the e-mail address, too."),
        "no_answer": _("No answer"),
        # Translators: of the resources that a booking may take: no choice.
        "anyone": _("Anyone who is free"),
        # Translators: times of a series of bookings.
        "conflicts": Plural("{count} time can't be booked:", "{count} times can't be booked:"),
        # Translators: time: such as "Tue 24 Nov 2026, 10:00 to 10:30"; reason: a few words.
        "conflict": _("{time}: {reason}"),
        "slot_taken": _("taken"),
        "not_available": _("outside of opening hours or limits"),
        # Translators: button: book the times of a series that are free.
        "book_others": Plural("Book the other {count}", "Book the other {count}"),
        "go_back": _("Go back"),
        # Translators: below the reasons why a time can't be booked; the quoted words are a box to
        # tick in the same form.
        "anyway": _("To book anyway, select “Ignore opening hours and limits”."),
    },
}
