"""The texts of public pages for errors."""

from collections.abc import Mapping
from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


class RefusalText(NamedTuple):
    """The texts of the page for an error code."""

    heading: str | Promise
    sentence: str | Promise


# Error code, or the exception's class in tables made from this one -> texts.
REFUSAL_TEXTS: Mapping[str | type[Exception], RefusalText] = {
    "forbidden": RefusalText(
        _("This link does not work"),
        _("It is incomplete or has ended. Please open the link in the latest e-mail."),
    ),
    "not_found": RefusalText(
        _("Nothing was found here"),
        _("This booking does not exist or was removed."),
    ),
    "action_not_allowed": RefusalText(_("This action is no longer possible"), ""),
    "policy": RefusalText(
        _("It is too late for this"),
        _("This was possible until {limit} before the start. Please contact us."),
    ),
    "slot_taken": RefusalText(
        _("The time is taken"),
        _("Another booking has taken this time."),
    ),
    "not_available": RefusalText(_("The time is no longer available"), ""),
    "rate_limited": RefusalText(
        _("Too many requests"),
        _("Nothing was changed. Please try again in a minute."),
    ),
    "unavailable": RefusalText(
        _("The service is busy"),
        _("Nothing was changed. Please try again in a moment."),
    ),
    "internal": RefusalText(
        _("Something went wrong on our side"),
        _("Nothing was changed. Please try again later."),
    ),
}
UNREADABLE = RefusalText(
    _("The request is not valid"),
    _("Please open the link in the e-mail again."),
)
