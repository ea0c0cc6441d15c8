"""How events are written at a provider: iCalendar, or JSON of the provider's own.

An `EventFormat` is a module of pure functions: no database, no network. A text is always in the
provider's own form, as its server sent it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import NamedTuple, Protocol

from common.email_address import canonical_address
from common.ical.expand import Window
from common.ical.occurrences import ParsedObject
from common.ical.writing import Guest


class ForeignObject(Exception):
    """The object at the provider has another UID."""


@dataclass(frozen=True, slots=True)
class MirroredEvent:
    """A booking's event. start, end: aware, or dates for all-day events, the end exclusive.

    guests: the attendees. known: canonical addresses of all customers the booking ever had.
    Attendees in `known` that are no longer in `guests` are removed; other attendees are the owner's
    own. conference: "meet" or "teams" if the provider is to make the link of a video call.
    """

    uid: str
    sequence: int
    stamp: datetime
    start: datetime | date
    end: datetime | date
    what: str
    where: str
    description: str
    organizer: Guest | None
    guests: Sequence[Guest]
    known: Collection[str]
    conference: str = ""


class RemoteEvent(NamedTuple):
    """The times of an event at the provider, as in MirroredEvent; naive if floating."""

    start: datetime | date
    end: datetime | date
    is_recurring: bool
    is_cancelled: bool


class AttendeeAnswer(NamedTuple):
    """response: one of Customer.RESPONSES. at: when it was given; None: unknown."""

    response: str
    at: datetime | None = None


class EventFormat(Protocol):
    """The functions of a format. All raise UnreadableCalendar for a text that can't be read."""

    def read_object(
        self,
        text: str,
        *,
        zone: str,
        window: Window,
        latest: datetime | None = None,
        address: str = "",
    ) -> ParsedObject:
        """Return the object's UID and its occurrences in the half-open window.

        zone: of dates and of times without a zone. latest: a later end for events that do not
        repeat. address: the owner's e-mail; what this attendee has declined does not block.
        """

    def compose_event(self, entry: MirroredEvent) -> str:
        """Return the text of a new event."""

    def update_event(self, text: str, entry: MirroredEvent) -> str | None:
        """Return `text` with the entry's values and all that others added; None if it has them.

        With a new time, the guests have not answered. Raises ForeignObject.
        """

    def replace_event(self, text: str, entry: MirroredEvent) -> str:
        """Return a new text that keeps nothing that others added. Raises ForeignObject."""

    def has_uid(self, text: str, uid: str) -> bool:
        """Return whether `text` is the event with the UID; False for an unreadable text."""

    def read_remote_event(self, text: str, uid: str) -> RemoteEvent:
        """Return the times and status of a mirrored event. Raises ForeignObject."""

    def read_invitations(
        self, text: str, uid: str, addresses: Collection[str]
    ) -> Mapping[str, str]:
        """Return canonical address -> SCHEDULE-STATUS (RFC 6638 3.2.9) of these attendees.

        "" without one. {} if `text` is another object or can't be read.
        """

    def read_conference_url(self, text: str) -> str:
        """Return the link of the video call that the provider has made; "" if there is none yet."""

    def read_answers(
        self, text: str, uid: str, addresses: Collection[str]
    ) -> Mapping[str, AttendeeAnswer]:
        """Return canonical address -> answer of those of these attendees who have answered.

        {} if `text` is another object or can't be read.
        """


def canonical_addresses(addresses: Iterable[str]) -> frozenset[str]:
    return frozenset(canonical_address(address) for address in addresses if address)
