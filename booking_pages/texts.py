"""The texts of the booking pages."""

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from bookings.graphs import INITIALIZED, Graph

# Texts for the script; `{name}` is a placeholder.
SCRIPT: Mapping[str, str | Promise] = {
    "times": _("Free times: {count}"),
    "zone": _("Times are now in {zone}."),
    "loading": _("Looking for free times …"),
    "no_more": _("There are no later free times."),
    "chosen": _("{day}, {time}"),
    "held": _("We keep this time for you for {minutes} min."),
    "lapsed": _("Your hold has expired. You can still book this time while it is free."),
    "required": _("Please fill this in."),
    "email": _("Please enter an e-mail address, such as name@example.com."),
    "unfit": _("Please enter a valid value."),
    "faults": _("Please check the marked fields."),
    "booking": _("Booking …"),
    "taken": _("This time has just been taken."),
    "instead": _("Free times:"),
    "nothing_instead": _("Please choose another one."),
    "all_times": _("Show all free times"),
    "policy": _("There are too many upcoming bookings for this e-mail address. Please contact us."),
    "refused": _("This could not be booked. Please choose another time or contact us."),
    "busy": _("Too many requests. Please try again in {count} s."),
    "busy_minutes": _("Too many requests. Please try again in {count} min."),
    "busy_hours": _("Too many requests. Please try again in {count} h."),
    "unsolved": _(
        "Your browser could not complete the check against automated bookings. Please use an up-to-"
        "date browser and a secure address (https)."
    ),
    "code_sent": _(
        "We sent a six-digit code to {email}. Enter it within 15 minutes to complete your booking."
    ),
    "code_typed": _("Enter the six-digit code from the e-mail to complete your booking."),
    "code_form": _("Please enter the six digits of the code."),
    "code_wrong": _("This code is wrong. Please check the e-mail."),
    "code_tries": _("The code was wrong too often. Please choose a time again."),
    "code_expired": _("The code has expired. Please choose a time again."),
    "offline": _("The service could not be reached. Your input is kept. Please try again."),
    "trouble": _("Something went wrong on our side. Your input is kept. Please try again."),
    "gone": _("This page has changed. Please reload it."),
    "there": _("Time in {zone}: {time}"),
    "with": _("With: {name}"),
    "another": _("Make another booking"),
    "pay_by": _("Please pay by {time} ({zone}). After that the time is released."),
    "pay": _("Pay now"),
}

PAGE: Mapping[str, str | Promise] = {
    "choose": _("Choose a time"),
    "zone": _("Time zone"),
    "days": _("Days with free times"),
    "later": _("Later days"),
    "details": _("Your details"),
    "change": _("Choose another time"),
    "optional": _("(optional)"),
    "verify": _("Confirm your e-mail address"),
    "code": _("Code"),
    "complete": _("Complete booking"),
    "no_script": _("Please enable JavaScript to book on this page."),
}
# `%s` is the placeholder for the customer's address, as on other pages of this API family.
SUCCESS = _("Thank you. A message to %s is on its way.")
NOTHING_FREE = _("There is no free time at the moment. Please come back later or contact us.")
NOT_HERE = _("You can't book this online. Please contact us.")
NO_PAGE = (
    _("Nothing was found here"),
    _("This booking page does not exist or was removed. Please check the address."),
)
UNAVAILABLE = (
    _("This booking page is unavailable"),
    _("You can't book here at the moment. Please contact us."),
)

_REQUESTED = (
    _("Your request has been sent"),
    _("Your request is not confirmed yet. We will send you the decision by e-mail."),
)
_UNPAID = (_("Payment required to confirm your booking"), "")
_CONFIRMED = (_("Your booking is confirmed"), "")


def outcome_of(graph: Graph) -> tuple[str | Promise, str | Promise]:
    """Return heading and sentence for a booking that was just made."""
    if graph.is_paid_later:
        return _UNPAID
    state = graph.steps[INITIALIZED, graph.start]
    return _CONFIRMED if graph.is_live(state) else _REQUESTED
