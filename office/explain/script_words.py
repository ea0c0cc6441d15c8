"""Texts of the script of the rule editor and its preview."""

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from office.base.script_words import Plural, ScriptWords

SCRIPT_WORDS: ScriptWords = {
    "rules": {
        # Translators: in place of hours: the resource is closed on this day.
        "closed": pgettext_lazy("day", "Closed"),
        # Translators: example of a start: an hour, or hour and minutes.
        "start_example": _("9 or 09:30"),
        # Translators: example of an end: an hour.
        "end_example": _("17 or 24"),
        # Translators: choice instead of one of a country's regions.
        "whole_country": _("the whole country"),
        "remove": _("Remove this rule"),
        "unavailable": _("Preview unavailable."),
        "unavailable_because": _("Preview unavailable: {problem}"),
        "unavailable_for_errors": _("Preview unavailable: please correct the marked fields."),
        # Translators: hours: such as "09:00 to 12:00, 14:00 to 17:00".
        "day_open": _("{day}: open {hours}"),
        "day_closed": _("{day}: nothing open"),
        # Translators: a time span: "09:00 to 12:30".
        "span": _("{start} to {end}"),
        # Translators: a time span and its kind: "09:00 to 12:30 Closed by a rule".
        "span_kind": _("{span} {kind}"),
        "outside": Plural(
            "{count} upcoming booking is outside these hours:",
            "{count} upcoming bookings are outside these hours:",
        ),
        "none_outside": _("No upcoming bookings are affected."),
        # Translators: end of a list of bookings or days: "and 3 more".
        "more": Plural("and {count} more", "and {count} more"),
        "no_exceptions": _("No exceptions."),
    },
}
