"""Texts of the scripts of bookings."""

from django.utils.translation import gettext_lazy as _

from office.base.script_words import ScriptWords

SCRIPT_WORDS: ScriptWords = {
    "booking": {
        "loading": _("Looking for free times…"),
        "times": _("Free times. Press one to reschedule at once:"),
        "no_times": _("No free times in the next two weeks."),
        "unavailable": _("Free times are unavailable."),
    },
    "export": {
        # Translators: rows fetched so far: "1000 of 2500".
        "progress": _("{done} of {total}"),
        "ready": _("Ready: {done} of {total}."),
        "failed": _("That did not work: {problem}. Please try again."),
        # Translators: the part "{problem}" of "That did not work: {problem}. Please try again."
        "status": _("the service answered {status}"),
    },
}
