"""Compose mails from the data of a change."""

import logging
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from html import escape
from itertools import chain
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import get_language, get_language_bidi, gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from apps_config.models import App
from availability.project_texts import project_texts
from bookings.graphs import GRAPHS
from bookings.models import Booking, Customer
from bookings.pages.action_links import (
    CALENDAR,
    PAY,
    RESCHEDULE,
    action_url,
    office_booking_url,
    own_bookings_path,
    payment_address,
    project_page_path,
)
from bookings.pages.branding import (
    Branding,
    absolute_url,
    branding_of,
    readable_on_dark,
    readable_on_light,
)
from bookings.pages.formatting import (
    activate_language_of,
    clean_lines,
    date_words,
    days_words,
    first_known_zone,
    languages_of,
    short_start_words,
    shorten_text,
    span_words,
    step_lines,
    text_language,
    time_words,
    to_one_line,
)
from bookings.pages.translated_texts import translated_text
from bookings.pages.trusted_texts import customer_name, trusted_text
from bookings.services import customer_may_move
from common.api.fields import NOT_IN_URL, is_web_address
from common.email_address import is_address
from common.ical.writing import Guest
from common.time.instants import find_zone, local_date
from notifications.mail.calendar_links import (
    CalendarEntry,
    google_url,
    map_url,
    microsoft_365_url,
    outlook_url,
)
from notifications.mail.defaults import (
    MAX_SUBJECT,
    REASSIGNED,
    SEVERAL,
    MailWords,
    WrittenMail,
    default_mail_words,
    default_written_mail,
    fill_default_subject,
    fill_placeholders,
    words_in_layout,
)
from notifications.mail.envelope import Sender, new_message
from notifications.mail.html_layout import (
    BUTTON,
    DARK_BUTTON,
    Button,
    buttons_html,
    details_html,
    footer_html,
    links_html,
    logo_html,
    quote_block,
)
from notifications.mail.invitations import Invitation, InvitationEntry, render_invitations
from notifications.models import EmailTemplate

logger = logging.getLogger(__name__)

CUSTOMER, OWNER = "customer", "owner"
SUBJECT_LENGTH = 200
CALENDAR_FILE = "invite.ics"
MAX_NAMED = 50  # customers, as many as a booking can have

Link = Callable[[Booking, str, datetime], str]

_OWNERS_CHOICE = ("confirm", "decline")
_CUSTOMERS_CHOICE = (PAY, RESCHEDULE, "cancel_by_customer")
# What the recipient of a mail may do by a link, where graph and project allow it.
CHOICES: Mapping[str, Sequence[str]] = {
    "tentative_owner": _OWNERS_CHOICE,
    "rescheduled_owner": _OWNERS_CHOICE,
    "reassigned_owner": _OWNERS_CHOICE,
    "updated_owner": _OWNERS_CHOICE,
    "tentative_customer": _CUSTOMERS_CHOICE,
    "confirmed_customer": _CUSTOMERS_CHOICE,
    "rescheduled_customer": _CUSTOMERS_CHOICE,
    "reassigned_customer": _CUSTOMERS_CHOICE,
    "updated_customer": _CUSTOMERS_CHOICE,
    "conference_customer": _CUSTOMERS_CHOICE,
    "reminder_customer": _CUSTOMERS_CHOICE,
    "message_customer": _CUSTOMERS_CHOICE,
    "new_times_customer": (RESCHEDULE, "cancel_by_customer"),
}
# Mails about a booking that will take place: with its place and links for calendars.
TAKES_PLACE = CHOICES.keys() - {"new_times_customer"}
# Styles of buttons; the others are outlined. To cancel is the quietest choice.
BUTTON_STYLES = {"confirm": "first", PAY: "first", "cancel_by_customer": "link"}
URL_NAMES = {
    "confirm": "confirm_url",
    "decline": "decline_url",
    RESCHEDULE: "reschedule_url",
    "cancel_by_customer": "cancel_url",
    PAY: "pay_url",
}
ACTION_LABELS: Mapping[str, Promise] = {
    "confirm": _("Confirm"),
    "decline": _("Decline"),
    PAY: _("Pay now"),
    RESCHEDULE: _("Choose another time"),
    "cancel_by_customer": _("Cancel the booking"),
}
# Labels of the details.
WHAT, WHERE, WITH = _("What"), _("Where"), _("With")
VIDEO_CALL = _("Video call")
LINK_FOLLOWS = _("The link for the video call follows.")
WHEN, NEW_TIME, OLD_TIME = _("When"), _("New time"), _("Old time")
RESOURCE, CUSTOMERS = _("Resource"), _("Customer")
INSTEAD_OF = _("Instead of")
PEOPLE = pgettext_lazy("how many come", "People")
STEPS = pgettext_lazy("of a visit", "Steps")
# Other resources, in the mail about a cancellation.
ALSO_FREE = _("Free that day")
IMPRINT, PRIVACY = _("Imprint"), _("Privacy")
REPEATS, DETAILS = _("Repeats"), _("Details")
# Details that the app or project has written; of those the ones that a project can translate.
APP_TEXTS = (WHAT, WHERE, WITH, RESOURCE, INSTEAD_OF, DETAILS)
EVENT_TEXTS = ((WHAT, "what"), (WHERE, "where"), (DETAILS, "description"))
# Mails to customers whose booking does not take place.
ENDS = frozenset(
    {
        *("declined_customer", "unpaid_customer", "cancelled_customer"),
        "cancelled_by_customer_customer",
    }
)
# Which mails carry an invitation, and which take one back.
INVITES = frozenset(
    {
        *("confirmed_customer", "confirmed_owner", "rescheduled_customer", "rescheduled_owner"),
        *("reassigned_customer", "reassigned_owner", "updated_customer", "updated_owner"),
        *("conference_customer", "conference_owner"),
    }
)
# E-mails with the link of the video call.
JOINS = INVITES | {"reminder_customer", "reminder_owner", "message_customer"}
TAKES_BACK = frozenset(
    {
        "cancelled_customer",
        "cancelled_owner",
        "cancelled_by_customer_owner",
        "cancelled_by_customer_customer",
        "unassigned_owner",
    }
)


@dataclass(frozen=True, slots=True)
class Letter:
    """One mail of one booking, with everything that it is written from.

    booking: with app, event, resource and project loaded. recipient: "customer" or "owner". to:
    addresses. customers: all of the booking; customer: whom it is written to, if to a customer.
    facts: as of the change, each absent one is the booking's own: `start`, `end`, `old_start`,
    `old_end` (ISO instants), `resources` and `old_resources` (names: now, and those that a move
    replaced), `what`, `where`, `description`, `message`, `from_state`, `sequence`, `subject` (of a
    reminder); of a series that is told as one, `times`, `until` (the last start)
    and `occurrences` ([entry id, start, end, sequence], those that stand in calendars);
    `of_companion` if it is for the owner of a further resource, who has no choice to make.
    template: the app's own words. is_entered: the recipient's calendar has the booking by its
    provider, so that the mail carries no entry for it. also_free: names of other resources with
    free time on the day of a booking that does not take place. links: of the video calls of a
    series, or of the booking, by `calendar_uid`. link_follows: one that is missing is about to be
    made. uids: at providers that make them, by `calendar_uid`.
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
    also_free: Sequence[str] = ()
    links: Mapping[uuid.UUID, str] = field(default_factory=dict)
    link_follows: bool = False
    uids: Mapping[uuid.UUID, str] = field(default_factory=dict)

    @property
    def shows_link(self) -> bool:
        return self.slug in JOINS

    @property
    def link(self) -> str:
        """The link of the booking's own video call; "" without one."""
        return self.links.get(self.booking.calendar_uid, "") if self.shows_link else ""

    @property
    def starts_at(self) -> datetime:
        return self.instant("start") or self.booking.event.start

    @property
    def ends_at(self) -> datetime:
        return self.instant("end") or self.booking.event.end

    @property
    def zone(self) -> str:
        """The customer's zone for the customer, else the resource's; for all-day events the
        resource's.
        """
        is_theirs = self.recipient == CUSTOMER and not self.booking.event.all_day
        own = self.customer.timezone if self.customer and is_theirs else ""
        return first_known_zone(own, self.booking.resource.timezone)

    @property
    def state_before(self) -> str:
        """The state of the booking before the change."""
        return self.facts.get("from_state") or self.booking.state

    def instant(self, name: str) -> datetime | None:
        text = self.facts.get(name)
        return datetime.fromisoformat(text) if text else None

    @property
    def hides_texts(self) -> bool:
        """Whether the recipient reads no text of a public caller."""
        return self.recipient == CUSTOMER and self.booking.is_public

    @property
    def named(self) -> Sequence[Customer]:
        """The customers that the mail names; of a public booking only its recipient."""
        return [self.customer] if self.hides_texts and self.customer else self.customers

    def name_of(self, customer: Customer) -> str:
        if self.hides_texts:
            return customer_name(self.booking, customer)
        return to_one_line(customer.name)

    @property
    def in_language(self) -> AbstractContextManager[str]:
        """Activates the recipient's language, whose code is the value."""
        languages = languages_of(self.booking, self.customer)
        return activate_language_of(self.booking.app, *languages)

    @property
    def project_name(self) -> str:
        """The project's name, for a customer in the active language."""
        project = self.booking.project
        if project is None or self.recipient == OWNER:
            return project.name if project else ""
        return project_texts(project, get_language()).name

    def fact(self, name: str) -> str:
        """`what` with its number, `where` or `description`, for a customer in the active
        language.
        """
        text = self._translated_fact(name)
        return self.booking.counted(text) if name == "what" and text else text

    def _translated_fact(self, name: str) -> str:
        text = self.stored_fact(name)
        if self.recipient == OWNER:
            return text
        return translated_text(self.booking, name, text, self.starts_at, self.ends_at)

    def is_translated(self, name: str) -> bool:
        return self._translated_fact(name) != self.stored_fact(name)

    def stored_fact(self, name: str) -> str:
        """`what`, `where` or `description` as stored."""
        value = self.facts.get(name)
        if value is not None:
            return str(value)
        if self.recipient == CUSTOMER:
            return trusted_text(self.booking, name)
        return getattr(self.booking.event, name)

    @property
    def resource_names(self) -> str:
        names = self.facts.get("resources")
        if names is None:
            names = [resource.name for resource in self.booking.all_resources()]
        return to_one_line(", ".join(names))

    def steps(self) -> str:
        """The steps of a visit, a line for each; "" if the booking has moved since."""
        if self.starts_at != self.booking.event.start:
            return ""
        return "\n".join(step_lines(self.booking.steps(), self.zone))

    @property
    def old_resource_names(self) -> str:
        return to_one_line(", ".join(self.facts.get("old_resources", ())))

    def span(self, start: datetime, end: datetime) -> str:
        if not self.booking.event.all_day:
            return span_words(start, end, self.zone)
        first, last = (local_date(moment, self.zone) for moment in (start, end))
        return days_words(first, last, self.zone)


def compose_mail(letter: Letter, others: Sequence[Letter] = ()) -> EmailMultiAlternatives:
    """Return the unsent message in the recipient's language and zone.

    others: letters of the same kind to the same recipient, about further bookings, which the same
    message contains. The same letter gives the same Message-ID. Raises ValueError for an invalid
    recipient.
    """
    words = mail_words(letter, others)
    sender = Sender.of(letter.booking.app)
    message = new_message(words, sender, delivery_id=letter.delivery_id, to=letter.to)
    with letter.in_language:
        attach_entries(message, letters_with_entries([letter, *others]), sender)
    return message


# --- Words ----------------------------------------------------------------------------------------
def mail_link(booking: Booking, action: str, event_end: datetime) -> str:
    """Return the address of a choice of the recipient, valid until `event_end`."""
    return payment_address(booking) if action == PAY else action_url(booking, action, event_end)


def mail_words(
    letter: Letter, others: Sequence[Letter] = (), *, link: Link = mail_link
) -> MailWords:
    """Subject, text and HTML in the recipient's language. others: as in `compose_mail`."""
    with letter.in_language as language:
        return render_mail(letter, language=language, link=link, others=others)


def render_mail(
    letter: Letter, *, language: str, link: Link = mail_link, others: Sequence[Letter] = ()
) -> MailWords:
    """Subject, text and HTML in the active language, whose code is `language`.

    An app's own words that can't be used give way to the service's: a template never stops a mail.
    """
    is_named = letter.customer is None or bool(letter.name_of(letter.customer))
    variant = REASSIGNED if letter.old_resource_names else SEVERAL if others else ""
    default = default_mail_words(letter.slug, is_named=is_named, variant=variant)
    values = (
        SeveralValues([letter, *others], language=language, link=link)
        if others
        else PlaceholderValues(letter, language=language, link=link)
    )
    own = letter.template
    if own is not None:
        try:
            merged = merge_override(own, default, is_named=is_named)
            return fill_template_words(merged, values, default_subject=default.subject)
        except Exception:
            logger.exception("template %s of app %s can't be used", own.slug, letter.booking.app_id)
    return fill_template_words(default, values, default_subject=default.subject)


def merge_override(
    own: EmailTemplate | None, default: MailWords, *, is_named: bool = True
) -> MailWords:
    """The app's own words, in the active language; what it left blank is the service's.

    is_named: as in `default_mail_words`.
    """
    if own is None:
        return default
    words = _written_words(own, is_named=is_named) if own.is_written else own
    return MailWords(
        subject=own.subject or default.subject,
        text=words.text or default.text,
        html=words.html or default.html,
    )


def _written_words(own: EmailTemplate, *, is_named: bool) -> MailWords:
    default = default_written_mail(own.slug, is_named=is_named)
    body = own.body if is_named else own.body.replace(" {{ name }}", "")
    written = WrittenMail(own.heading or default.heading, body or default.body)
    return words_in_layout(own.slug, written)


def fill_template_words(
    template: MailWords, values: "PlaceholderValues", *, default_subject: str
) -> MailWords:
    """A reminder that has a subject of its own goes by that; it is no template.

    default_subject: the template's, if the app has no own; it is kept short. Raises ValueError
    where no subject is left.
    """
    number = f" (+{values.further})" if values.further else ""
    subject = values.text["reminder"]
    if not subject and template.subject == default_subject:
        most = MAX_SUBJECT - len(number)
        subject = to_one_line(fill_default_subject(template.subject, values.text, most=most))
    elif not subject:
        subject = to_one_line(fill_placeholders(template.subject, values.text), SUBJECT_LENGTH)
    if not subject:
        raise ValueError("the subject is empty")
    return MailWords(
        subject=subject + number,
        text=collapse_blank_lines(fill_placeholders(template.text, values.text)),
        html=fill_placeholders(template.html, values.html),
    )


def collapse_blank_lines(text: str) -> str:
    """Reduce blank lines, which empty blocks leave, to at most one in a row."""
    lines: list[str] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        if line.strip() or (lines and lines[-1]):
            lines.append(line.rstrip())
    return "\n".join(lines).strip("\n") + "\n"


class PlaceholderValues:
    """What the placeholders of one letter stand for: `text`, and `html` with all of it escaped."""

    def __init__(self, letter: Letter, *, language: str, link: Link) -> None:
        self.letter = letter
        self.further = 0  # further bookings of the mail
        self.text_language = app_text_language(letter, language)
        self.when = letter.span(letter.starts_at, letter.ends_at)
        self.old_when = old_span(letter)
        self.choices = list(mail_actions(letter, link))
        self.rows = self.details()
        message = clean_lines(str(letter.facts.get("message") or ""))
        plain = self.plain() | {"language": language, "direction": text_direction()}
        plain |= {URL_NAMES[action]: url for action, _label, url in self.choices}
        lines = link_lines(letter, link)
        self.branding = branding = MailBranding(letter.booking.app)
        self.text = plain | {
            "links": links_text(lines),
            **branding.text,
            "details": details_text(self.rows),
            "message": "\n".join(f"> {line}".rstrip() for line in message.splitlines()),
            "actions": self.actions_text(),
        }
        self.html = {name: as_html(value) for name, value in plain.items()} | {
            "details": self.details_html(),
            "message": quote_block(as_html(message)),
            "actions": self.actions_html(),
            "links": links_html(lines),
            **branding.html,
        }

    def details_html(self) -> str:
        return details_html(
            [(label, self._in_language(label, value)) for label, value in self.rows]
        )

    def _in_language(self, label: str, value: str) -> str:
        """Return the value as HTML, an app's text with its language if the mail has another one."""
        if label == str(VIDEO_CALL):
            return linked_html(value)
        if self.text_language and label in self.foreign_labels():
            return f'<span lang="{self.text_language}">{as_html(value)}</span>'
        return as_html(value)

    def foreign_labels(self) -> set[str]:
        """Return the labels of details in the language of the app's texts."""
        is_translated = self.letter.is_translated
        translated = [str(label) for label, name in EVENT_TEXTS if is_translated(name)]
        return set(map(str, APP_TEXTS)).difference(translated)

    def actions_text(self) -> str:
        return "\n\n".join(f"{label}:\n{url}" for _action, label, url in self.choices)

    def actions_html(self) -> str:
        buttons = [
            Button(label, url, BUTTON_STYLES.get(action, "other"))
            for action, label, url in self.choices
        ]
        return buttons_html(buttons, color=self.branding.button)

    def plain(self) -> dict[str, str]:
        letter, booking = self.letter, self.letter.booking
        start = letter.starts_at.astimezone(find_zone(letter.zone))
        first = letter.named[0] if letter.named else None
        given = booking.app.settings
        one_liners = {
            "name": letter.name_of(letter.customer) if letter.customer else booking.resource.name,
            "what": letter.fact("what"),
            "where": letter.fact("where") or letter.link,
            "conference_url": letter.link,
            "when": self.when,
            "old_when": self.old_when,
            "date": date_words(start),
            "time": "" if booking.event.all_day else time_words(start),
            "zone": letter.zone,
            "short_when": short_start_words(start, all_day=booking.event.all_day),
            "resource": letter.resource_names,
            "old_resource": letter.old_resource_names,
            "project": letter.project_name,
            "customer_email": first.email if first else "",
            "customer_phone": first.phone if first and not letter.hides_texts else "",
            "app": given.get("from_name") or booking.app.name,
            "contact_name": given.get("contact_name") or "",
            "contact_email": given.get("contact_email") or "",
            "booking_id": str(booking.id),
            "reminder": letter.facts.get("subject") or "",
        }
        return {name: to_one_line(str(value)) for name, value in one_liners.items()} | {
            "customer": self.customer_names(),
            "description": clean_lines(letter.fact("description")),
        }

    def video_call(self) -> str:
        """The link, or that it follows; of a series one line with the start for each link."""
        letter = self.letter
        if not letter.shows_link:
            return ""
        several = letter.facts.get("occurrences") or ()
        lines = (
            [letter.link]
            if len(several) < 2
            else [
                f"{self.start_words(start)}: {letter.links[uuid.UUID(uid)]}"
                for uid, start, *_rest in several
                if uuid.UUID(uid) in letter.links
            ]
        )
        return "\n".join(filter(None, [*lines, str(LINK_FOLLOWS) if letter.link_follows else ""]))

    def start_words(self, start: str) -> str:
        moment = datetime.fromisoformat(start).astimezone(find_zone(self.letter.zone))
        return short_start_words(moment, all_day=self.letter.booking.event.all_day)

    def customer_names(self) -> str:
        letter = self.letter
        return listed_names(letter.name_of(customer) for customer in letter.named[:MAX_NAMED])

    def repeats(self) -> str:
        """`52 times, until Monday, 15 November 2027`, of a series."""
        until = self.letter.instant("until")
        if until is None:
            return ""
        day = date_words(until.astimezone(find_zone(self.letter.zone)))
        times = self.letter.facts["times"]
        return gettext("%(times)s times, until %(day)s") % {"times": times, "day": day}

    def details(self) -> list[tuple[str, str]]:
        """(label, value), the value in one or several lines; empty ones are left out."""
        letter = self.letter
        old_when = self.old_when
        rows: list[tuple[Promise, str]] = [
            (WHAT, to_one_line(letter.fact("what"))),
            (NEW_TIME if old_when else WHEN, self.when),
            (OLD_TIME, old_when),
            (REPEATS, self.repeats()),
            (PEOPLE, str(letter.booking.party_size or "")),
            (STEPS, letter.steps()),
            (WHERE, to_one_line(letter.fact("where"))),
            (VIDEO_CALL, self.video_call()),
            (RESOURCE if letter.recipient == OWNER else WITH, letter.resource_names),
            (INSTEAD_OF, letter.old_resource_names),
            (ALSO_FREE, to_one_line(", ".join(letter.also_free))),
        ]
        if letter.recipient == OWNER:
            rows += [
                (CUSTOMERS, contact_lines(customer)) for customer in letter.customers[:MAX_NAMED]
            ]
        rows.append((DETAILS, clean_lines(letter.fact("description"))))
        return [(str(label), value) for label, value in rows if value]


class SeveralValues(PlaceholderValues):
    """Those of a mail about several bookings: `details` lists each with its actions.

    For the calendar there is the attached file; links would add the first booking only.
    """

    def __init__(self, letters: Sequence[Letter], *, language: str, link: Link) -> None:
        super().__init__(letters[0], language=language, link=link)
        others = [PlaceholderValues(each, language=language, link=link) for each in letters[1:]]
        self.further = len(others)
        every = [self, *others]
        shown: set[tuple[str, str]] = set()
        for each in every:  # a description that several have is shown once
            each.rows = [row for row in each.rows if row not in shown]
            shown |= {row for row in each.rows if row[0] == str(DETAILS)}
        named = [
            letter.name_of(customer) for letter in letters for customer in letter.named[:MAX_NAMED]
        ]
        customers = listed_names(dict.fromkeys(named))
        places = {letter.fact("where") for letter in letters}
        links = other_links(letters[0], places.pop() if len(places) == 1 else "")
        blocks = [
            (details_text(each.rows), each.actions_text(), links_text(office_links(each.letter)))
            for each in every
        ]
        self.text |= {
            "customer": customers,
            "details": "\n\n".join(filter(None, chain.from_iterable(blocks))),
            "actions": "",
            "links": links_text(links),
        }
        self.html |= {
            "customer": as_html(customers),
            "details": "\n".join(
                each.details_html() + each.actions_html() + links_html(office_links(each.letter))
                for each in every
            ),
            "actions": "",
            "links": links_html(links),
        }


def app_text_language(letter: Letter, language: str) -> str:
    """Return the language of the app's and project's texts; "" if it is the mail's, or unknown."""
    project = letter.booking.project
    own = text_language(letter.booking.app, project.settings.get("language") if project else None)
    return "" if own == language else own


def listed_names(names: Iterable[str]) -> str:
    return shorten_text(", ".join(filter(None, names)), 1000) or gettext("The customer")


def old_span(letter: Letter) -> str:
    start, end = letter.instant("old_start"), letter.instant("old_end")
    return letter.span(start, end) if start and end else ""


class MailBranding:
    """An app's branding in mails: the colour of the button to press, and values of placeholders."""

    def __init__(self, app: App) -> None:
        branding = branding_of(app)
        links = footer_links(branding)
        accent = branding.accent
        self.button = readable_on_light(accent) if accent else BUTTON
        shared = {"accent_dark": readable_on_dark(accent) if accent else DARK_BUTTON}
        footer = [*branding.lines, *(f"{label}: {url}" for label, url in links)]
        self.text = shared | {"logo": "", "footer": "\n".join(footer)}
        self.html = shared | {
            "logo": logo_html(absolute_url(branding.logo)),
            "footer": footer_html(branding.lines, links),
        }


def footer_links(branding: Branding) -> list[tuple[str, str]]:
    """(label, address) of the links below a mail."""
    links = [(IMPRINT, branding.imprint), (PRIVACY, branding.privacy)]
    return [(str(label), url) for label, url in links if url]


def text_direction() -> str:
    return "rtl" if get_language_bidi() else "ltr"


def as_html(text: str) -> str:
    return escape(text).replace("\n", "<br>\n")


def linked_html(text: str) -> str:
    """Return the text as HTML; an https address, which is a word of its own, becomes a link."""
    words = [
        f'<a href="{escape(word)}">{escape(word)}</a>'
        if word.startswith("https://")
        else escape(word)
        for word in text.replace("\n", " \n ").split(" ")
    ]
    return " ".join(words).replace(" \n ", "<br>\n")


def contact_lines(customer: Customer) -> str:
    given = (customer.name, customer.email, customer.phone)
    return "\n".join(filter(None, (to_one_line(value) for value in given)))


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
def mail_actions(letter: Letter, link: Link) -> Sequence[tuple[str, str, str]]:
    """(action, label, address) of what the recipient can do now; nothing once the event is over."""
    booking, end = letter.booking, letter.ends_at
    if end <= timezone.now() or letter.facts.get("of_companion"):
        return []
    return [
        (action, str(ACTION_LABELS[action]), link(booking, action, end))
        for action in CHOICES.get(letter.slug, ())
        if is_offered(letter, action)
    ]


def link_lines(letter: Letter, link: Link) -> list[tuple[str, list[tuple[str, str]]]]:
    """(text, [(label, address)]) of each line below the buttons."""
    if letter.recipient == OWNER:
        return office_links(letter)
    calendars = calendar_links(letter, link)
    line = [(gettext("Add to calendar:"), calendars)] if calendars else []
    return line + other_links(letter, letter.fact("where"))


def office_links(letter: Letter) -> list[tuple[str, list[tuple[str, str]]]]:
    """The line with the owner's link to the booking; nothing for customers."""
    if letter.recipient != OWNER:
        return []
    return [("", [(gettext("Open the booking"), office_booking_url(letter.booking))])]


def other_links(letter: Letter, place: str) -> list[tuple[str, list[tuple[str, str]]]]:
    """The lines without that of the calendars; place: what the map shows, or ""."""
    if letter.recipient != CUSTOMER:
        return []
    places = []
    where = to_one_line(place)
    if letter.slug in TAKES_PLACE and where and not is_web_address(where):
        places.append((gettext("Show on a map"), map_url(where)))
    again = project_page_path(letter.booking) if letter.slug in ENDS else ""
    if again:
        places.append((gettext("Book again"), f"{settings.PUBLIC_URL}{again}"))
    project = letter.booking.project
    if project is not None and project.is_published:
        path = own_bookings_path(letter.booking.app)
        places.append((gettext("Your bookings"), f"{settings.PUBLIC_URL}{path}"))
    return ([("", places)] if places else []) + contact_line(letter.booking.app)


def contact_line(app: App) -> list[tuple[str, list[tuple[str, str]]]]:
    """The line with the app's contact, as in `link_lines`; [] without one."""
    contact = to_one_line(str(app.settings.get("contact_email") or ""))
    if not is_address(contact):
        return []
    return [(gettext("Questions? Contact us:"), [(contact, f"mailto:{quote(contact, '@')}")])]


def calendar_links(letter: Letter, link: Link) -> list[tuple[str, str]]:
    """Return the links that add the booking to a calendar.

    Empty if the booking is not agreed on or is over, if the mail is about a whole series, or if the
    recipient's calendar gets the booking anyway.
    """
    booking = letter.booking
    takes_place = letter.slug in TAKES_PLACE and GRAPHS[booking.graph].is_live(booking.state)
    if not takes_place or letter.is_entered or "until" in letter.facts:
        return []
    if letter.ends_at <= timezone.now():
        return []
    entry = CalendarEntry(
        what=to_one_line(letter.fact("what")),
        where=to_one_line(letter.fact("where")) or letter.link,
        start=letter.starts_at,
        end=letter.ends_at,
        all_day_zone=letter.zone if booking.event.all_day else "",
    )
    return [
        (gettext("Calendar file"), link(booking, CALENDAR, letter.ends_at)),
        (gettext("Google Calendar"), google_url(entry)),
        (gettext("Outlook"), outlook_url(entry)),
        (gettext("Microsoft 365"), microsoft_365_url(entry)),
    ]


def links_text(lines: Sequence[tuple[str, Sequence[tuple[str, str]]]]) -> str:
    return "\n".join(
        f"{text} {url.removeprefix('mailto:')}" if url.startswith("mailto:") else f"{label}: {url}"
        for text, links in lines
        for label, url in links
    )


def is_offered(letter: Letter, action: str) -> bool:
    booking = letter.booking
    if action == PAY:
        return bool(payment_address(booking))
    if action == RESCHEDULE:
        # Of a series that is told as one it would move the first alone, which nobody expects.
        return "until" not in letter.facts and customer_may_move(booking)
    return GRAPHS[booking.graph].next_state(booking.state, action) is not None


# --- Invitations ----------------------------------------------------------------------------------
def method_of(letter: Letter) -> str | None:
    """Return the iTIP method of the mail's calendar entries; None: the mail has no entries.

    REQUEST and CANCEL change the recipient's calendar; several new entries are published (PUBLISH).
    A booking that was never agreed on has no entry in a calendar, so nothing is sent when it is
    rescheduled or ends. When a seat ends, the owner keeps the entry of the group.
    """
    if letter.is_entered:
        return None
    several = letter.facts.get("occurrences")
    if several is not None:
        asks = "REQUEST" if len(several) == 1 else "PUBLISH"
        method = "CANCEL" if letter.slug in TAKES_BACK else asks
        return method if several and letter.slug in INVITES | TAKES_BACK else None
    is_of_group = entry_of(letter.booking, letter.recipient) != letter.booking.id
    if letter.slug in TAKES_BACK and is_of_group:
        return None
    is_live = GRAPHS[letter.booking.graph].is_live
    if letter.slug.startswith("confirmed"):
        return "REQUEST"
    if letter.slug in INVITES and is_live(letter.state_before):
        return "REQUEST"
    if letter.slug in TAKES_BACK and is_live(letter.facts.get("from_state") or ""):
        return "CANCEL"
    return None


def letters_with_entries(letters: Sequence[Letter]) -> list[Letter]:
    """Return one letter per calendar entry; of a group's seats, that with the latest SEQUENCE."""
    letters_by_id: dict[uuid.UUID, Letter] = {}
    for letter in letters:
        entry = entry_of(letter.booking, letter.recipient)
        if method_of(letter):
            letters_by_id[entry] = max(letters_by_id.get(entry, letter), letter, key=_sequence_of)
    return list(letters_by_id.values())


def _sequence_of(letter: Letter) -> int:
    return int(letter.facts.get("sequence") or 0)


def attach_entries(
    message: EmailMultiAlternatives, letters: Sequence[Letter], sender: Sender
) -> None:
    """Attach the entries of the letters, each of which has one or is about a series.

    One of them is an alternative of the text too, which programs offer to accept. Several are only
    published in the attachment: a REQUEST may have one UID, and programs drop the others.
    """
    if not letters:
        return
    if len(letters) > 1:
        published = [invitation_of(letter, "PUBLISH", sender) for letter in letters]
        calendar = render_invitations(published)
    else:
        method = method_of(letters[0]) or ""
        calendar = render_invitations([invitation_of(letters[0], method, sender)])
        message.attach_alternative(calendar, f"text/calendar; method={method}")
    message.attach(CALENDAR_FILE, calendar.encode(), "application/ics")


def entry_of(booking: Booking, recipient: str) -> uuid.UUID:
    """Return the id of the booking's entry in the recipient's calendar; an owner has one entry per
    group.
    """
    return (recipient == OWNER and booking.owner_booking_id) or booking.id


def invitation_of(letter: Letter, method: str, sender: Sender) -> Invitation:
    booking = letter.booking
    guests = [Guest(letter.name_of(customer), customer.email) for customer in letter.named]
    hosts = [Guest(to_one_line(booking.resource.name), address) for address in letter.to]
    return Invitation(
        method=method,
        occurrences=list(_occurrences(letter, method)),
        what=to_one_line(letter.fact("what")),
        where=to_one_line(letter.fact("where")),
        description=clean_lines(letter.fact("description")),
        organizer=Guest(sender.name, sender.address),
        guests=guests if entry_of(booking, letter.recipient) == booking.id else (),
        hosts=hosts if letter.recipient == OWNER else (),
        url=_meeting_or_page_url(letter),
    )


def _meeting_or_page_url(letter: Letter) -> str:
    """Return the address at which the booking takes place, else the project's booking page for a
    customer; "" without either.
    """
    where = letter.fact("where").strip()
    if is_web_address(where) and not NOT_IN_URL.search(where):
        return where
    project = letter.booking.project
    if letter.recipient != CUSTOMER or project is None or not project.is_published:
        return ""
    return f"{settings.PUBLIC_URL}/book/{project.slug}"


def _occurrences(letter: Letter, method: str) -> Iterator[InvitationEntry]:
    booking = letter.booking
    zone = first_known_zone(booking.resource.timezone)

    def occurrence(
        entry_id: uuid.UUID, sequence: int, start: datetime, end: datetime
    ) -> InvitationEntry:
        link = letter.links.get(entry_id, "") if method != "CANCEL" else ""
        uid = letter.uids.get(entry_id, "")
        if not booking.event.all_day:
            return InvitationEntry(entry_id, sequence, start, end, link, uid)
        first, last = (local_date(moment, zone) for moment in (start, end))
        return InvitationEntry(entry_id, sequence, first, last, link, uid)

    if letter.facts.get("occurrences"):
        for entry_id, start, end, sequence in letter.facts["occurrences"]:
            times = (datetime.fromisoformat(moment) for moment in (start, end))
            yield occurrence(uuid.UUID(entry_id), sequence, *times)
    else:
        sequence = letter.facts.get("sequence")
        if sequence is None:
            sequence = booking.reschedules + (method == "CANCEL")
        is_owners = entry_of(booking, letter.recipient) != booking.id
        shown = booking.owner_booking if is_owners and booking.owner_booking else booking
        yield occurrence(shown.calendar_uid, int(sequence), letter.starts_at, letter.ends_at)
