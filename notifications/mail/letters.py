"""From the facts of a change to a message that is ready to be sent."""

import logging
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import Any

from django.core.mail import EmailMultiAlternatives
from django.utils import timezone
from django.utils.translation import get_language_bidi
from django.utils.translation import gettext as _

from bookings.graphs import GRAPHS
from bookings.links import RESCHEDULE, action_url
from bookings.models import Booking, Customer
from bookings.services import offers_move
from bookings.wording import (
    date_words,
    days_words,
    known_zone,
    languages_of,
    lines_of,
    one_line,
    shorten,
    span_words,
    speaking_language_of,
    time_words,
)
from notifications.mail.envelope import Sender, new_message
from notifications.mail.invitations import Guest, Invitation, Occurrence, invitation
from notifications.mail.layout import buttons_html, details_html, quote_html
from notifications.mail.templates import Words, default_words, fill
from notifications.models import EmailTemplate
from scheduling.api.instants import zone

logger = logging.getLogger(__name__)

CUSTOMER, OWNER = "customer", "owner"
SUBJECT_LENGTH = 200
MOST_NAMED = 50  # customers, as many as a booking can have

Link = Callable[[Booking, str, datetime], str]

_OWNERS_CHOICE = ("confirm", "decline")
_CUSTOMERS_CHOICE = (RESCHEDULE, "cancel_by_customer")
# What the recipient of a mail may do by a link, where graph and project allow it.
CHOICES: Mapping[str, Sequence[str]] = {
    "tentative_owner": _OWNERS_CHOICE,
    "rescheduled_owner": _OWNERS_CHOICE,
    "updated_owner": _OWNERS_CHOICE,
    "tentative_customer": _CUSTOMERS_CHOICE,
    "confirmed_customer": _CUSTOMERS_CHOICE,
    "rescheduled_customer": _CUSTOMERS_CHOICE,
    "updated_customer": _CUSTOMERS_CHOICE,
    "reminder_customer": _CUSTOMERS_CHOICE,
}
URL_NAMES = {
    "confirm": "confirm_url",
    "decline": "decline_url",
    RESCHEDULE: "reschedule_url",
    "cancel_by_customer": "cancel_url",
}
# Which mails carry an invitation, and which take one back.
INVITES = frozenset(
    {
        *("confirmed_customer", "confirmed_owner", "rescheduled_customer", "rescheduled_owner"),
        *("updated_customer", "updated_owner"),
    }
)
TAKES_BACK = frozenset(
    {
        "cancelled_customer",
        "cancelled_owner",
        "cancelled_by_customer_owner",
        "cancelled_by_customer_customer",
    }
)


@dataclass(frozen=True, slots=True)
class Letter:
    """One mail of one booking, with everything that it is written from.

    booking: with app, event, resource and project loaded. recipient: "customer" or "owner". to:
    addresses. customers: all of the booking; customer: whom it is written to, if to a customer.
    facts: as of the change, each absent one is the booking's own: `start`, `end`, `old_start`,
    `old_end` (ISO instants), `what`, `where`, `description`, `message`, `from_state`, `sequence`,
    `subject` (of a reminder); of a series that is told as one, `times`, `until` (the last start)
    and `occurrences` ([booking id, start, end, sequence], those that stand in calendars); of a
    seat, `group_sequence`. template: the app's own words. is_entered: the recipient's calendar has
    the booking by its provider, so that the mail carries no entry for it.
    """

    slug: str
    delivery_id: uuid.UUID
    booking: Booking
    recipient: str
    to: Sequence[str]
    customers: Sequence[Customer]
    customer: Customer | None
    facts: Mapping[str, Any]
    template: EmailTemplate | None
    is_entered: bool = False

    @property
    def start(self) -> datetime:
        return self.instant("start") or self.booking.event.start

    @property
    def end(self) -> datetime:
        return self.instant("end") or self.booking.event.end

    @property
    def zone(self) -> str:
        """The customer's for the customer, else the resource's; whole days are the resource's."""
        is_theirs = self.recipient == CUSTOMER and self.customer and not self.booking.event.all_day
        own = self.customer.timezone if is_theirs else ""
        return known_zone(own, self.booking.resource.timezone)

    @property
    def state(self) -> str:
        """Where the booking stood before the change."""
        return self.facts.get("from_state") or self.booking.state

    def instant(self, name: str) -> datetime | None:
        text = self.facts.get(name)
        return datetime.fromisoformat(text) if text else None

    def fact(self, name: str) -> str:
        """`what`, `where` or `description`."""
        value = self.facts.get(name)
        return getattr(self.booking.event, name) if value is None else str(value)

    def span(self, start: datetime, end: datetime) -> str:
        if not self.booking.event.all_day:
            return span_words(start, end, self.zone)
        first, last = (one.astimezone(zone(self.zone)).date() for one in (start, end))
        return days_words(first, last, self.zone)


def compose(letter: Letter) -> EmailMultiAlternatives:
    """The message, in the recipient's language and zone, not sent.

    The same letter gives the same Message-ID. Raises ValueError at a recipient that is no address.
    """
    app = letter.booking.app
    with speaking_language_of(app, *languages_of(letter.booking, letter.customer)) as language:
        words = render(letter, language=language)
    sender = Sender.of(app)
    message = new_message(words, sender, delivery_id=letter.delivery_id, to=letter.to)
    method = method_of(letter)
    if method:
        calendar = invitation(invitation_of(letter, method, sender))
        message.attach_alternative(calendar, f"text/calendar; method={method}")
        message.attach("invite.ics", calendar.encode(), "application/ics")
    return message


# --- Words ----------------------------------------------------------------------------------------
def render(letter: Letter, *, language: str, link: Link = action_url) -> Words:
    """Subject, text and HTML in the active language, whose code is `language`.

    An app's own words that can't be used give way to the service's: a template never stops a mail.
    """
    default = default_words(letter.slug)
    values = Values(letter, language=language, link=link)
    own = letter.template
    if own is not None:
        try:
            return fill_words(merge_words(own, default), values)
        except Exception:
            logger.exception("template %s of app %s can't be used", own.slug, letter.booking.app_id)
    return fill_words(default, values)


def merge_words(own: EmailTemplate | None, default: Words) -> Words:
    """The app's own words; what it left blank is the service's."""
    if own is None:
        return default
    return Words(
        subject=own.subject or default.subject,
        text=own.text or default.text,
        html=own.html or default.html,
    )


def fill_words(template: Words, values: "Values") -> Words:
    """A reminder that has a subject of its own goes by that; it is no template.

    Raises ValueError where no subject is left.
    """
    subject = values.text["reminder"] or one_line(
        fill(template.subject, values.text), SUBJECT_LENGTH
    )
    if not subject:
        raise ValueError("the subject is empty")
    return Words(
        subject=subject,
        text=squeeze(fill(template.text, values.text)),
        html=fill(template.html, values.html),
    )


def squeeze(text: str) -> str:
    """Without the holes that empty blocks leave: at most one empty line in a row."""
    lines: list[str] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        if line.strip() or (lines and lines[-1]):
            lines.append(line.rstrip())
    return "\n".join(lines).strip("\n") + "\n"


class Values:
    """What the placeholders of one letter stand for: `text`, and `html` with all of it escaped."""

    def __init__(self, letter: Letter, *, language: str, link: Link) -> None:
        self.letter = letter
        self.choices = list(choices_of(letter, link))
        rows = list(self.details())
        message = lines_of(str(letter.facts.get("message") or ""))
        plain = self.plain() | {"language": language, "direction": direction()}
        plain |= {URL_NAMES[action]: url for action, _label, url in self.choices}
        buttons = [(label, url, action == "confirm") for action, label, url in self.choices]
        self.text = plain | {
            "details": details_text(rows),
            "message": "\n".join(f"> {line}".rstrip() for line in message.splitlines()),
            "actions": "\n\n".join(f"{label}:\n{url}" for _action, label, url in self.choices),
        }
        self.html = {name: as_html(value) for name, value in plain.items()} | {
            "details": details_html([(label, as_html(value)) for label, value in rows]),
            "message": quote_html(as_html(message)),
            "actions": buttons_html(buttons),
        }

    def plain(self) -> dict[str, str]:
        letter, booking = self.letter, self.letter.booking
        start = letter.start.astimezone(zone(letter.zone))
        first = letter.customers[0] if letter.customers else None
        settings = booking.app.settings
        one_liners = {
            "name": letter.customer.name if letter.customer else booking.resource.name,
            "what": letter.fact("what"),
            "where": letter.fact("where"),
            "when": letter.span(letter.start, letter.end),
            "old_when": self.old_when(),
            "date": date_words(start),
            "time": "" if booking.event.all_day else time_words(start),
            "zone": letter.zone,
            "resource": booking.resource.name,
            "project": booking.project.name if booking.project else "",
            "customer_email": first.email if first else "",
            "customer_phone": first.phone if first else "",
            "app": settings.get("from_name") or booking.app.name,
            "contact_name": settings.get("contact_name") or "",
            "contact_email": settings.get("contact_email") or "",
            "booking_id": str(booking.id),
            "reminder": letter.facts.get("subject") or "",
        }
        return {name: one_line(str(value)) for name, value in one_liners.items()} | {
            "customer": self.customer_names(),
            "description": lines_of(letter.fact("description")),
        }

    def customer_names(self) -> str:
        names = [one_line(one.name) for one in self.letter.customers[:MOST_NAMED]]
        return shorten(", ".join(names), 1000) or _("The customer")

    def old_when(self) -> str:
        start, end = self.letter.instant("old_start"), self.letter.instant("old_end")
        return self.letter.span(start, end) if start and end else ""

    def repeats(self) -> str:
        """`52 times, until Monday, 15 November 2027`, of a series."""
        until = self.letter.instant("until")
        if until is None:
            return ""
        day = date_words(until.astimezone(zone(self.letter.zone)))
        times = self.letter.facts["times"]
        return _("%(times)s times, until %(day)s") % {"times": times, "day": day}

    def details(self) -> list[tuple[str, str]]:
        """(label, value), the value in one or several lines; empty ones are left out."""
        letter = self.letter
        old_when = self.old_when()
        rows = [
            (_("What"), one_line(letter.fact("what"))),
            (_("New time") if old_when else _("When"), letter.span(letter.start, letter.end)),
            (_("Old time"), old_when),
            (_("Repeats"), self.repeats()),
            (_("Where"), one_line(letter.fact("where"))),
            (
                _("Resource") if letter.recipient == OWNER else _("With"),
                one_line(letter.booking.resource.name),
            ),
        ]
        if letter.recipient == OWNER:
            rows += [(_("Customer"), contact_lines(one)) for one in letter.customers[:MOST_NAMED]]
        rows.append((_("Details"), lines_of(letter.fact("description"))))
        return [(label, value) for label, value in rows if value]


def direction() -> str:
    return "rtl" if get_language_bidi() else "ltr"


def as_html(text: str) -> str:
    return escape(text).replace("\n", "<br>\n")


def contact_lines(customer: Customer) -> str:
    given = (customer.name, customer.email, customer.phone)
    return "\n".join(filter(None, (one_line(value) for value in given)))


def details_text(rows: Sequence[tuple[str, str]]) -> str:
    """One line per row, the values below each other; further lines of a value are set in."""
    width = max((len(label) for label, _value in rows), default=0) + 3
    lines = []
    for label, value in rows:
        first, *others = value.split("\n")
        lines.append(f"{label}:".ljust(width) + first)
        lines += [" " * width + line for line in others]
    return "\n".join(lines)


# --- Links ----------------------------------------------------------------------------------------
def choices_of(letter: Letter, link: Link) -> Sequence[tuple[str, str, str]]:
    """(action, label, address) of what the recipient can do now; nothing once the event is over."""
    booking, end = letter.booking, letter.end
    if end <= timezone.now():
        return []
    labels = choice_labels()
    return [
        (action, labels[action], link(booking, action, end))
        for action in CHOICES.get(letter.slug, ())
        if is_offered(letter, action)
    ]


def is_offered(letter: Letter, action: str) -> bool:
    booking = letter.booking
    if action == RESCHEDULE:
        # Of a series that is told as one it would move the first alone, which nobody expects.
        return "until" not in letter.facts and offers_move(booking)
    return GRAPHS[booking.graph].next_state(booking.state, action) is not None


def choice_labels() -> dict[str, str]:
    return {
        "confirm": _("Confirm"),
        "decline": _("Decline"),
        RESCHEDULE: _("Choose another time"),
        "cancel_by_customer": _("Cancel the booking"),
    }


# --- Invitations ----------------------------------------------------------------------------------
def method_of(letter: Letter) -> str | None:
    """What the mail does to the recipient's calendar: REQUEST, CANCEL or nothing; several entries
    are published instead of requested.

    A booking that was never agreed on is in nobody's calendar: moving it invites no one, and there
    is nothing to take back. A seat that its owner loses leaves the group where it is.
    """
    if letter.is_entered:
        return None
    several = letter.facts.get("occurrences")
    if several is not None:
        asks = "REQUEST" if len(several) == 1 else "PUBLISH"
        method = "CANCEL" if letter.slug in TAKES_BACK else asks
        return method if several and letter.slug in INVITES | TAKES_BACK else None
    if letter.slug in TAKES_BACK and _is_of_group(letter):
        return None
    is_live = GRAPHS[letter.booking.graph].is_live
    if letter.slug.startswith("confirmed"):
        return "REQUEST"
    if letter.slug in INVITES and is_live(letter.state):
        return "REQUEST"
    if letter.slug in TAKES_BACK and is_live(letter.facts.get("from_state") or ""):
        return "CANCEL"
    return None


def _is_of_group(letter: Letter) -> bool:
    """A seat as its owner hears of it, who has one entry for the whole group."""
    return letter.recipient == OWNER and letter.booking.owner_booking_id is not None


def invitation_of(letter: Letter, method: str, sender: Sender) -> Invitation:
    booking = letter.booking
    guests = [Guest(one_line(one.name), one.email) for one in letter.customers]
    hosts = [Guest(one_line(booking.resource.name), one) for one in letter.to]
    return Invitation(
        method=method,
        occurrences=list(_occurrences(letter, method)),
        what=one_line(letter.fact("what")),
        where=one_line(letter.fact("where")),
        description=lines_of(letter.fact("description")),
        organizer=Guest(sender.name, sender.address),
        guests=() if _is_of_group(letter) else guests,
        hosts=hosts if letter.recipient == OWNER else (),
    )


def _occurrences(letter: Letter, method: str) -> Iterator[Occurrence]:
    booking = letter.booking
    place = zone(known_zone(booking.resource.timezone))

    def occurrence(
        booking_id: uuid.UUID, sequence: int, start: datetime, end: datetime
    ) -> Occurrence:
        if not booking.event.all_day:
            return Occurrence(booking_id, sequence, start, end)
        first, last = (one.astimezone(place).date() for one in (start, end))
        return Occurrence(booking_id, sequence, first, last)

    if letter.facts.get("occurrences"):
        for booking_id, start, end, sequence in letter.facts["occurrences"]:
            times = (datetime.fromisoformat(one) for one in (start, end))
            yield occurrence(uuid.UUID(booking_id), sequence, *times)
    elif _is_of_group(letter):
        sequence = letter.facts.get("group_sequence") or 0
        yield occurrence(booking.owner_booking_id, sequence, letter.start, letter.end)
    else:
        sequence = letter.facts.get("sequence")
        if sequence is None:
            sequence = booking.reschedules + (method == "CANCEL")
        yield occurrence(booking.id, int(sequence), letter.start, letter.end)
