"""The texts of the booking pages."""

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from bookings.graphs import INITIALIZED, Graph
from bookings.pages.email_links import LINK_ACTIONS
from bookings.pages.refusal_texts import REFUSAL_TEXTS

CANCEL = LINK_ACTIONS["cancel_by_customer"]

# Texts for the script; `{name}` is a placeholder.
SCRIPT: Mapping[str, str | Promise] = {
    "times": _("Free times: {count}"),
    "zone": _("Times are shown in {zone}."),
    "loading": _("Looking for free times …"),
    "none": _("No free times in these weeks."),
    "is_first": _("There are no earlier times."),
    "is_last": _("There are no later times."),
    "past": _("This time is in the past. Next free:"),
    "next_free": _("Next free date: {day}"),
    "soonest": _("Next free time: {day}, {time}"),
    "zone_none": _("No time zone matches."),
    "zone_now": _("now {time}"),
    "chosen": _("{day}, {time}"),
    "held": _("We're holding this time for {minutes}."),
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
    "policy": _("You have reached the limit of bookings for your e-mail address."),
    "refused": _("This could not be booked. Please choose another time or contact us."),
    # Translators: `when` is such as "in 30 seconds".
    "busy": _("Too many requests. Please try again {when}."),
    "unsolved": _(
        "Your browser could not complete the check against automated bookings. Please use an up-to-"
        "date browser and a secure address (https)."
    ),
    "offline": _("The service could not be reached. Your input is kept. Please try again."),
    "trouble": _("Something went wrong on our side. Your input is kept. Please try again."),
    "gone": _("This page is out of date. Please reload it."),
    "there": _("Time in {zone}: {time}"),
    "with": _("With: {name}"),
    "where": _("Where: {place}"),
    "map": _("Show on a map"),
    "video_call": _("Video call:"),
    "link_follows": _("The link for the video call follows by e-mail."),
    "calendar": _("Add to calendar"),
    "google": _("Google Calendar"),
    "outlook": _("Outlook"),
    "microsoft": _("Microsoft 365"),
    "move": _("Choose another time"),
    "cancel": _("Cancel the booking"),
    "another": _("Make another booking"),
    "cancel_question": CANCEL.question,
    "cancel_keep": CANCEL.keep,
    "cancelled": CANCEL.done,
    "cancel_refused": REFUSAL_TEXTS["action_not_allowed"].heading,
    "pay_by": _("Please pay by {time} ({zone}). After that the time is released."),
    "pay": _("Pay now"),
    "onward": _("Continue"),
    # Translators: how many can still be booked, such as "2 left".
    "left": _("{count} left"),
    "people": pgettext_lazy("how many come", "People"),
}

# Further texts for the script, of a page that sells seats.
SEATS: Mapping[str, str | Promise] = {
    "seats_left": _("{count} seats left"),
    "seat_left": _("1 seat left"),
    "full": _("This session has no free seat any more."),
    "fewer": _("Fewer seats are free by now. Choose fewer, or another place or time."),
    "seats_booked": _("Seats: {count}"),
    "place": pgettext_lazy("of seats", "Place"),
}

# Further texts for the script, of a page that asks for the code of an e-mail.
CODES: Mapping[str, str | Promise] = {
    "code_sent": _(
        "We sent a six-digit code to {email}. Enter it within 15 minutes to complete your booking."
    ),
    "code_typed": _("Enter the six-digit code from the e-mail to complete your booking."),
    "code_resent": _("We sent a new code. The earlier one no longer works."),
    "code_form": _("Please enter the six digits of the code."),
    "code_wrong": _("This code is wrong. Please check the e-mail."),
    "code_tries": _("The code was wrong too often. Please choose a time again."),
    "code_expired": _("The code has expired. Please choose a time again."),
}

PAGE: Mapping[str, str | Promise] = {
    "choose": _("Choose a time"),
    "zone": _("Time zone"),
    "earlier": _("Earlier"),
    "later": _("Later"),
    "back": _("Choose another day"),
    "contact": _("Questions? Contact us:"),
    "own_bookings": _("Your bookings"),
    "person": _("With"),
    "length": _("Length"),
    "quantity": pgettext_lazy("how many are booked", "Number"),
    "party_size": pgettext_lazy("how many come", "People"),
    "place": pgettext_lazy("of seats", "Place"),
    "seats": pgettext_lazy("how many", "Seats"),
    "services": _("Choose a service"),
    "more": _("Show more"),
    "less": _("Show less"),
    "clock": _("Time format"),
    "clock_12": _("12 h"),
    "clock_24": _("24 h"),
    "details": _("Your details"),
    "change": _("Choose another time"),
    "optional": _("(optional)"),
    "verify": _("Confirm your e-mail address"),
    "code": _("Code"),
    "complete": _("Complete booking"),
    "resend": _("Send a new code"),
    "change_email": _("Change e-mail address"),
    "no_script": _("Please enable JavaScript to book on this page."),
}
# `%s` is the placeholder for the customer's address, as on other pages of this API family.
SUCCESS = _("Thank you. A message to %s is on its way.")
NOTHING_FREE = _("There is no free time at the moment. Please come back later.")
NOTHING_FREE_WITH_CONTACT = _(
    "There is no free time at the moment. Please come back later or contact us."
)
NOT_HERE = _("You can't book this online.")
NOT_HERE_WITH_CONTACT = _("You can't book this online. Please contact us.")
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
_REQUESTED_WITHOUT_MAIL = (_REQUESTED[0], _("Your request is not confirmed yet."))
_UNPAID = (_("Payment required to confirm your booking"), "")
_CONFIRMED = (_("Your booking is confirmed"), "")


def needs_approval(graph: Graph) -> bool:
    """Return whether a booking that was just made waits for a decision."""
    return not graph.is_paid_later and not graph.is_live(graph.steps[INITIALIZED, graph.start])


def confirmation_of(graph: Graph, *, is_mailed: bool) -> tuple[str | Promise, str | Promise]:
    """Return heading and sentence for a booking that was just made. `is_mailed`: the customer gets
    e-mails.
    """
    if graph.is_paid_later:
        return _UNPAID
    if needs_approval(graph):
        return _REQUESTED if is_mailed else _REQUESTED_WITHOUT_MAIL
    return _CONFIRMED
