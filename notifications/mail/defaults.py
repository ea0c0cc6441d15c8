"""The service's own words for every kind of mail, and the language that templates are written in.

A template knows one thing: `{{ name }}` stands for a value. Everything else in it is text, braces
and other template languages included; what a value brings along is never read as a template.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from html import escape
from itertools import chain, zip_longest
from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from bookings.pages.formatting import CUT
from notifications.mail.html_layout import NEGATIVE, NEUTRAL, POSITIVE, WAITING, Tone, mail_page

PLACEHOLDER = re.compile(r"\{\{[ \t]*([A-Za-z_][A-Za-z0-9_]*)[ \t]*\}\}")

MAX_FILLED = 1_000_000  # characters of a mail's text or HTML

# Prepared text or HTML, nothing where there is nothing to say; not for subjects.
BLOCKS: Mapping[str, str] = {
    "details": "what, when, where, with whom: a table in HTML",
    "message": "the message of the person who made the change",
    "actions": "the recipient's buttons (in text: links)",
    "links": "for customers: links to their calendars, a map and their bookings; for owners: a link"
    " to the booking",
    "logo": "the app's logo (in text: nothing)",
    "footer": "the app's postal address, imprint and privacy notice",
}
PLACEHOLDERS: Mapping[str, str] = {
    "name": "the recipient's name",
    "what": "the event's title",
    "where": "the event's place",
    "conference_url": "the link of the video call",
    "description": "the event's description",
    "when": "date and time of the event, with its zone",
    "old_when": "date and time before the booking was moved",
    "old_resource": "the names of the resources that a move replaced",
    "date": "the start date",
    "time": "the start time",
    "zone": "the time zone of date and time",
    "short_when": "start date and time, short, for subjects",
    "resource": "the names of the resources",
    "project": "the project's name",
    "customer": "the customers' names",
    "customer_email": "the first customer's address",
    "customer_phone": "the first customer's number",
    "app": "the sender's name",
    "contact_name": "the app's contact",
    "contact_email": "the contact's address",
    "booking_id": "the booking's id",
    "reminder": "the subject of the reminder",
    "confirm_url": "the link to confirm, if the recipient may confirm",
    "decline_url": "the link to decline",
    "reschedule_url": "the customer's link to choose another time",
    "cancel_url": "the customer's link to cancel",
    "pay_url": "the customer's link to pay, while the payment is awaited",
    "accent_dark": "the app's accent colour, for dark screens",
    "language": "the language code",
    "direction": "ltr or rtl",
    **BLOCKS,
}

# Those below the text in the service's layout.
BODY_BLOCKS = ("{{ message }}", "{{ details }}", "{{ actions }}", "{{ links }}")
BLANK_LINES = re.compile(r"\n[ \t]*\n\s*")
# Placeholders whose values a default subject shortens to have MAX_SUBJECT letters.
SHORTENED = ("what", "customer", "resource")
MAX_SUBJECT = 45


class MailWords(NamedTuple):
    """Subject, text and HTML: of a template, or of a mail made from one."""

    subject: str
    text: str
    html: str


class WrittenMail(NamedTuple):
    """A mail's heading and text, without layout; blank lines separate paragraphs."""

    heading: str
    body: str


class DefaultMail(NamedTuple):
    """What one kind of mail says before an app writes its own words.

    The subject has at most one of SHORTENED, which leaves room for the time on a phone.
    """

    tone: Tone
    badge: str | Promise
    subject: str | Promise
    heading: str | Promise
    sentence: str | Promise


_REQUESTED = _("Requested")
_CONFIRMED = _("Confirmed")
_CANCELLED = _("Cancelled")
_MOVED = _("New time")
_UPDATED = _("Updated")
_REASSIGNED = _("Moved")
_VIDEO_CALL = _("Video call")
_REMINDER = _("Reminder")
_DEFAULT_REMINDER = _("Reminder: {{ what }}, {{ short_when }}")

DEFAULTS: Mapping[str, DefaultMail] = {
    "tentative_owner": DefaultMail(
        WAITING,
        _REQUESTED,
        _("Request: {{ customer }}, {{ short_when }}"),
        _("New booking request"),
        _("{{ customer }} requested this time. Confirm to accept."),
    ),
    "tentative_customer": DefaultMail(
        WAITING,
        _REQUESTED,
        _("Requested: {{ what }}, {{ short_when }}"),
        _("We have received your request"),
        _("Your request is not confirmed yet. You will get an e-mail with the decision."),
    ),
    "confirmed_customer": DefaultMail(
        POSITIVE,
        _CONFIRMED,
        _("Confirmed: {{ what }}, {{ short_when }}"),
        _("Your booking is confirmed"),
        _("We look forward to seeing you. An invitation for your calendar is attached."),
    ),
    "confirmed_owner": DefaultMail(
        POSITIVE,
        _CONFIRMED,
        _("Confirmed: {{ customer }}, {{ short_when }}"),
        _("A booking is confirmed"),
        _("{{ customer }} has booked this time. An invitation for your calendar is attached."),
    ),
    "declined_customer": DefaultMail(
        NEGATIVE,
        _("Declined"),
        _("Declined: {{ what }}, {{ short_when }}"),
        _("Your request could not be accepted"),
        _("Sorry, this time is not possible. You can request another time."),
    ),
    "cancelled_customer": DefaultMail(
        NEGATIVE,
        _CANCELLED,
        _("Cancelled: {{ what }}, {{ short_when }}"),
        _("Your booking was cancelled"),
        _("Sorry, your booking can't take place."),
    ),
    "cancelled_owner": DefaultMail(
        NEGATIVE,
        _CANCELLED,
        _("Cancelled: {{ customer }}, {{ short_when }}"),
        _("A booking was cancelled"),
        _("The booking of {{ customer }} was cancelled."),
    ),
    "cancelled_by_customer_owner": DefaultMail(
        NEGATIVE,
        _CANCELLED,
        _("Cancelled by {{ customer }}: {{ short_when }}"),
        _("A customer has cancelled"),
        _("{{ customer }} has cancelled this booking. The time is free again."),
    ),
    "cancelled_by_customer_customer": DefaultMail(
        NEGATIVE,
        _CANCELLED,
        _("Cancelled: {{ what }}, {{ short_when }}"),
        _("Your booking is cancelled"),
        _("You have cancelled this booking. You do not need to do anything else."),
    ),
    "unpaid_customer": DefaultMail(
        NEGATIVE,
        _("Not paid"),
        _("Not booked: {{ what }}, {{ short_when }}"),
        _("Your booking was not paid in time"),
        _("The time is no longer reserved. You can book again."),
    ),
    "rescheduled_customer": DefaultMail(
        NEUTRAL,
        _MOVED,
        _("New time: {{ what }}, {{ short_when }}"),
        _("Your booking has a new time"),
        _("Please note the new time."),
    ),
    "rescheduled_owner": DefaultMail(
        NEUTRAL,
        _MOVED,
        _("New time: {{ customer }}, {{ short_when }}"),
        _("A booking has a new time"),
        _("The booking of {{ customer }} was moved."),
    ),
    "reassigned_customer": DefaultMail(
        NEUTRAL,
        _UPDATED,
        _("Now with {{ resource }}: {{ short_when }}"),
        _("Your booking is now with {{ resource }}"),
        _("The time is unchanged."),
    ),
    "reassigned_owner": DefaultMail(
        NEUTRAL,
        _REASSIGNED,
        _("Now with {{ resource }}: {{ short_when }}"),
        _("A booking is now with {{ resource }}"),
        _("The booking of {{ customer }} was moved. The time is unchanged."),
    ),
    "unassigned_owner": DefaultMail(
        NEUTRAL,
        _REASSIGNED,
        _("Moved to {{ resource }}: {{ short_when }}"),
        _("A booking was moved to {{ resource }}"),
        _("The booking of {{ customer }} is no longer with {{ old_resource }}."),
    ),
    "updated_customer": DefaultMail(
        NEUTRAL,
        _UPDATED,
        _("Updated: {{ what }}, {{ short_when }}"),
        _("Your booking was updated"),
        _("Please note the new details. The time is unchanged."),
    ),
    "updated_owner": DefaultMail(
        NEUTRAL,
        _UPDATED,
        _("Updated: {{ customer }}, {{ short_when }}"),
        _("A booking was updated"),
        _("The booking of {{ customer }} has new details. The time is unchanged."),
    ),
    "conference_customer": DefaultMail(
        NEUTRAL,
        _VIDEO_CALL,
        _("Video call: {{ what }}, {{ short_when }}"),
        _("The link for your video call"),
        _("Open the link when your booking begins."),
    ),
    "conference_owner": DefaultMail(
        NEUTRAL,
        _VIDEO_CALL,
        _("Video call: {{ customer }}, {{ short_when }}"),
        _("The link for a video call"),
        _("The link for the booking of {{ customer }} is ready."),
    ),
    "new_times_customer": DefaultMail(
        WAITING,
        _("New time needed"),
        _("New time needed: {{ what }}, {{ short_when }}"),
        _("Please choose another time"),
        _("Sorry, your booking can't take place at this time."),
    ),
    "message_customer": DefaultMail(
        NEUTRAL,
        _("Please note"),
        _("Message: {{ what }}, {{ short_when }}"),
        _("A message about your booking"),
        _("Your booking stays as it is."),
    ),
    "reminder_customer": DefaultMail(
        NEUTRAL,
        _REMINDER,
        _DEFAULT_REMINDER,
        _("Reminder of your booking"),
        _("Here are the details of your booking."),
    ),
    "reminder_owner": DefaultMail(
        NEUTRAL,
        _REMINDER,
        _DEFAULT_REMINDER,
        _("Reminder of a booking"),
        _("Here are the details of the booking with {{ customer }}."),
    ),
}
SLUGS = tuple(DEFAULTS)
# What a mail says in place of its default: the move changed the resources too, or the mail is about
# several bookings. Its subject is then followed by their number.
REASSIGNED, SEVERAL = "reassigned", "several"
_REASSIGNED_DEFAULTS: Mapping[str, DefaultMail] = {
    "rescheduled_customer": DefaultMail(
        NEUTRAL,
        _MOVED,
        _("New time, {{ resource }}: {{ short_when }}"),
        _("Your booking has a new time and is now with {{ resource }}"),
        _("Please note the new time."),
    ),
    "rescheduled_owner": DefaultMail(
        NEUTRAL,
        _MOVED,
        _("New time, {{ resource }}: {{ short_when }}"),
        _("A booking has a new time and is now with {{ resource }}"),
        _("The booking of {{ customer }} was moved."),
    ),
}
_SEVERAL_DEFAULTS: Mapping[str, DefaultMail] = {
    "tentative_owner": DEFAULTS["tentative_owner"]._replace(
        heading=_("New booking requests"),
        sentence=_("{{ customer }} requested these times. Confirm each of them to accept."),
    ),
    "tentative_customer": DEFAULTS["tentative_customer"]._replace(
        heading=_("We have received your requests"),
        sentence=_("Your requests are not confirmed yet. You will get e-mails with the decisions."),
    ),
    "confirmed_customer": DEFAULTS["confirmed_customer"]._replace(
        heading=_("Your bookings are confirmed"),
        sentence=_(
            "We look forward to seeing you. A file with all times for your calendar is attached."
        ),
    ),
    "confirmed_owner": DEFAULTS["confirmed_owner"]._replace(
        heading=_("Several bookings are confirmed"),
        sentence=_(
            "{{ customer }} has booked these times."
            " A file with all times for your calendar is attached."
        ),
    ),
    "declined_customer": DEFAULTS["declined_customer"]._replace(
        heading=_("Your requests could not be accepted"),
        sentence=_("Sorry, these times are not possible. You can request other times."),
    ),
}
VARIANTS = {REASSIGNED: _REASSIGNED_DEFAULTS, SEVERAL: _SEVERAL_DEFAULTS}


def default_mail_words(slug: str, *, is_named: bool = True, variant: str = "") -> MailWords:
    """The service's template of that kind, in the active language; is_named: there is a name to
    greet the customer by; variant: REASSIGNED, SEVERAL or none.
    """
    return _default_mail_words(slug, is_named, variant, get_language())


@lru_cache(maxsize=1024)
def _default_mail_words(slug: str, is_named: bool, variant: str, language: str | None) -> MailWords:
    default = _default_of(slug, variant)
    written = default_written_mail(slug, is_named=is_named, variant=variant)
    return words_in_layout(slug, written, variant=variant)._replace(subject=str(default.subject))


def _default_of(slug: str, variant: str) -> DefaultMail:
    return VARIANTS.get(variant, DEFAULTS).get(slug, DEFAULTS[slug])


def default_written_mail(slug: str, *, is_named: bool = True, variant: str = "") -> WrittenMail:
    """The heading and body of `default_mail_words`."""
    default = _default_of(slug, variant)
    is_personal = is_named and slug.endswith("_customer")
    greeting = gettext("Hello {{ name }},") if is_personal else gettext("Hello,")
    return WrittenMail(str(default.heading), f"{greeting}\n\n{default.sentence}")


def words_in_layout(slug: str, written: WrittenMail, *, variant: str = "") -> MailWords:
    """Return the templates of text and HTML in the service's layout, without a subject."""
    default = _default_of(slug, variant)
    paragraphs = [text.strip("\n") for text in BLANK_LINES.split(written.body.strip())]
    html = mail_page(
        tone=default.tone,
        badge=escape(str(default.badge)),
        heading=escape(written.heading),
        preheader="{{ what }} · {{ when }}",
        body="\n".join([*_paragraphs(paragraphs), *BODY_BLOCKS]),
    )
    parts = [written.heading, *paragraphs, *BODY_BLOCKS, "{{ app }}", "{{ footer }}"]
    return MailWords("", "\n\n".join(parts) + "\n", html)


def _paragraphs(texts: Sequence[str]) -> Iterator[str]:
    for number, text in enumerate(texts, start=1):
        margin = "0" if number == len(texts) else "0 0 8px"
        lines = escape(text).replace("\n", "<br>\n")
        yield f'<p class="ink" dir="auto" style="margin:{margin};">{lines}</p>'


def fill_placeholders(template: str, values: Mapping[str, str]) -> str:
    """Return the template with each placeholder replaced by its value, an unknown one by nothing.

    Raises ValueError if the result might have more than MAX_FILLED characters: a template can
    contain thousands of placeholders, and values can be long.

    >>> fill_placeholders("{{ a }} {{b}} {% c %} {{ d.e }} {", {"a": "{{ b }}"})
    '{{ b }}  {% c %} {{ d.e }} {'
    """
    texts, names = _split_template(template)
    filled = [values.get(name, "") for name in names]
    if len(template) + sum(map(len, filled)) > MAX_FILLED:
        raise ValueError("the mail is too long")
    return "".join(chain.from_iterable(zip_longest(texts, filled, fillvalue="")))


def fill_default_subject(template: str, values: Mapping[str, str], *, most: int) -> str:
    """Return the filled subject; a long name in it is shortened to leave at most `most` letters.

    >>> values = {"what": "A rather long name", "short_when": "Fri 27 Nov, 09:00"}
    >>> fill_default_subject("{{ what }}, {{ short_when }}", values, most=30)
    'A rather l…, Fri 27 Nov, 09:00'
    """
    subject = fill_placeholders(template, values)
    _, names = _split_template(template)
    for name in SHORTENED:
        if name in names and len(subject) > most:
            room = max(len(values[name]) - (len(subject) - most), 1)
            shorter = f"{values[name][: room - 1].rstrip()}{CUT}"
            subject = fill_placeholders(template, {**values, name: shorter})
    return subject


@lru_cache(maxsize=256)
def _split_template(template: str) -> tuple[Sequence[str], Sequence[str]]:
    """Return the texts around the placeholders, and the names of these."""
    parts = PLACEHOLDER.split(template)
    return parts[::2], parts[1::2]


def find_faults(template: str, *, is_subject: bool = False, is_written: bool = False) -> list[str]:
    """Return a sentence for each placeholder that a template can't have. is_written: a heading or
    body.
    """
    names = dict.fromkeys(match[1] for match in PLACEHOLDER.finditer(template))
    faults = [f"{{{{ {name:.80} }}}} is not a placeholder." for name in names - PLACEHOLDERS.keys()]
    blocks = [name for name in names if name in BLOCKS]
    if is_written:
        faults += [f"{{{{ {name} }}}} is part of the layout." for name in blocks]
    if is_subject:
        faults += [f"{{{{ {name} }}}} can't be used in a subject." for name in blocks]
    return sorted(faults)
