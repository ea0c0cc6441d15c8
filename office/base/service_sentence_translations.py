"""Sentences of the services in the language of the page.

Services write English, for the API and the log. The back office finds a sentence by its pattern,
whose parts (`%(rule)s`) may be sentences of the list again; others stay English.
"""

import re
from collections.abc import Iterator
from functools import cache

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as noop

SENTENCES: tuple[str, ...] = (
    # Why a time is not free
    noop("Is in the past."),
    noop("Must contain `%(field)s`."),
    noop("Must be 1 s to 366 days after `%(field)s`."),
    noop("Starts within the minimum notice."),
    noop("Beyond the booking window."),
    noop("Daily limit reached."),
    noop("Weekly limit reached."),
    noop("Monthly limit reached."),
    noop("Overlaps an event."),
    noop("Held for another booking."),
    noop("The project has no resources."),
    noop("Too few different resources are open."),
    noop('No resource for "%(requirement)s" is open.'),
    noop("Must start at one of the offered times."),
    noop("Must last %(length)s."),
    noop("Breaks too many rules to list."),
    noop("All %(count)s places are taken."),
    noop("Within the buffer of %(length)s around an event."),
    noop("Within the buffer of %(length)s before an event."),
    noop("Within the buffer of %(length)s after an event."),
    noop("Within the buffer of %(length)s around a hold."),
    noop("Within the buffer of %(length)s before a hold."),
    noop("Within the buffer of %(length)s after a hold."),
    noop("Within the buffer of %(length)s around bookings that take all %(count)s places."),
    noop("Within the buffers of bookings that take all %(count)s places."),
    noop("Blocked by the resource's rule: %(rule)s."),
    noop("Blocked by the schedule's rule: %(rule)s."),
    noop("Blocked by the project's rule: %(rule)s."),
    noop("Blocked by the request's rule: %(rule)s."),
    # Rules
    noop("Monday to Friday"),
    noop("Saturday and Sunday"),
    noop("%(start)s to %(end)s every day"),
    noop("Mondays"),
    noop("Tuesdays"),
    noop("Wednesdays"),
    noop("Thursdays"),
    noop("Fridays"),
    noop("Saturdays"),
    noop("Sundays"),
    noop("%(start)s to %(end)s"),
    noop("holidays of %(place)s"),
    # Changes of a booking
    noop("The links in earlier e-mails no longer work."),
    # Refusals
    noop("The time is taken."),
    noop("The time is not available."),
    noop("The hold has expired or was already used."),
    noop("Every seat of the group is taken."),
    noop("Only the owner can move a group."),
    noop("The resource has bookings that are not completed."),
    noop("Resources have this schedule. Change them first."),
    noop("A resource must have at least one calendar."),
    noop("The event belongs to a connected calendar: change it at the provider."),
    noop("Another resource has this e-mail address."),
    noop("Another project has this slug."),
    noop("Another app has this slug."),
    noop("This person is already a member."),
    noop("This person is already invited."),
    noop("This invitation was just sent. Wait five minutes to send it again."),
    noop("This invitation is no longer valid."),
    noop("This invitation has expired."),
    noop("An app must have at least one owner: add another owner first."),
    noop("An app has at most %(count)s webhooks."),
    noop("Your account is disabled."),
    noop("Your account has no access to any app. Ask an owner to invite you."),
    noop("Your identity provider did not confirm your e-mail address."),
    noop("Your account belongs to another identity. Ask the platform's staff."),
    noop("There is no account for you yet. Ask an owner to invite you."),
    # Invalid values
    noop("Must be in the future."),
    noop("Must be after start."),
    noop("Must differ from start."),
    noop("Must be a string."),
    noop("Must be an object."),
    noop("Must be a date and time."),
    noop("Must be a colour like #1f4f99."),
    noop("Must be an e-mail address."),
    noop("May have no letters except a to z before the @."),
    noop("Must have a valid domain after the @."),
    noop("Must be at most one year."),
    noop("Must be at most 24 hours."),
    noop("Must be at most %(limit)s."),
    noop("Must have at most %(limit)s characters."),
    noop("Must not repeat a name."),
    noop("May not be blank."),
    noop("May not contain a colon."),
    noop("May not contain control characters or line breaks."),
    noop("May have a to z, 0 to 9, hyphens and underscores."),
    noop("Expected a date such as 2026-12-24, in the years 1970 to 2199."),
    noop("Expected a weekday such as Monday."),
    noop('Expected a time such as 9 or "09:30", from 0 to 24.'),
    noop("Expected a time from 0 to 23:59."),
    noop("At most %(limit)s constraints."),
    noop("At most %(limit)s windows."),
    noop("Another rule replaces this day."),
    noop("UNTIL must not be before the start."),
    noop("The start must be an occurrence of the rule."),
    noop("Unknown country. Expected a code such as DE."),
    noop("Is not a known IANA time zone."),
    # Connected calendars
    noop("The server refuses this user name and password."),
    noop("No calendar was found at this address."),
    noop("There are several calendars: enter the address of one."),
    noop("This user can read the calendar but not write to it."),
    noop("The address is not allowed: it must be a public web address."),
    noop("The server could not be reached."),
    noop("The server limits the number of requests."),
    noop("The server returned an error."),
    noop("The server's response can't be read."),
    noop("The calendar is too large."),
    noop("The stored password can't be read: connect the calendar again."),
    noop("This user has no calendar for events."),
    noop("This collection does not support events."),
    noop("The server redirects to a non-HTTPS address."),
    noop("The server redirects too often."),
    noop("The server redirects to an invalid address."),
    noop("The calendar is incomplete."),
    noop("The response is empty."),
    noop("The response is not a calendar."),
    noop("Enter the password again: the address is on another server."),
    noop("This calendar is already connected as “%(name)s”."),
    noop("A resource has at most %(count)s connected calendars."),
    noop("No response within the time limit."),
    noop("The event was changed at the provider during every attempt to write it."),
    noop("The event at the provider can't be read."),
    noop("Another event already uses this address at the provider."),
    noop("The calendar server did not invite the customer: %(reason)s."),
    noop("The calendar server did not invite %(count)s of %(total)s customers: %(reason)s."),
    noop("it does not accept the e-mail address"),
    noop("it could not deliver the invitation"),
    noop("it refused the invitation"),
    noop("The calendar is no longer connected."),
    noop("The calendar is read-only."),
    # Deliveries
    noop("The worker was lost in every attempt."),
    noop("It could not be sent in time."),
    noop("The worker was lost. The message may have been sent."),
    noop("The message could not be rendered."),
    noop("The app is archived."),
    noop("The server returned %(status)s."),
    noop("The response of the mail server is not SMTP."),
    noop("The mail server took too long."),
    noop("The mail server returned %(code)s."),
    noop("The app's e-mails are disabled."),
    noop("The recipient has no e-mail address."),
    noop("The new resource has the same e-mail address."),
    noop("A test app sends e-mails only to its members."),
    noop("The server refused the address (%(answer)s)."),
    noop("The server refused %(refused)s of %(total)s addresses (%(answer)s)."),
    noop("The server accepts no e-mail for the address at the moment (%(answer)s)."),
    noop("The webhook was deleted."),
    noop("The webhook is disabled."),
    noop("The booking was deleted."),
    noop("The booking was moved."),
    noop("The planned time was already past."),
    noop("E-mails are disabled for this booking."),
    noop("The customer has unsubscribed from reminders."),
    noop("The customer's data was erased."),
    noop("The receiver returned 410 Gone."),
    noop("No call has succeeded for five days."),
)
PLACEHOLDER = re.compile(r"%\((\w+)\)s")


def translate_sentence(text: str) -> str:
    """Return a sentence of a service in the active language; unknown ones unchanged."""
    for pattern, sentence in _patterns():
        if matched := pattern.fullmatch(text):
            parts = {name: translate_sentence(part) for name, part in matched.groupdict().items()}
            return gettext(sentence) % parts if parts else gettext(sentence)
    return text


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile("".join(_pieces(sentence))), sentence) for sentence in SENTENCES)


def _pieces(sentence: str) -> Iterator[str]:
    for place, piece in enumerate(PLACEHOLDER.split(sentence)):
        yield rf"(?P<{piece}>.+?)" if place % 2 else re.escape(piece)
