"""What a provider of calendars can do, and how it says that it can't.

Nothing here touches the database. Every call goes out through `notifications.safe_http.fetch`, has
an end in time and in size, and raises `Trouble` for whatever the other side does.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

# Why a calendar can't be used: the slug in answers -> the sentence for whoever connected it.
TROUBLES: Mapping[str, str] = {
    "unauthorized": "The server refuses this user name and password.",
    "not_a_calendar": "No calendar was found at this address.",
    "several_calendars": "There are several calendars: give the address of one.",
    "no_write_access": "This user may read the calendar, but not write to it.",
    "address_refused": "The address is not allowed: it must be a public web address.",
    "unreachable": "The server could not be reached.",
    "rate_limited": "The server asks for fewer requests.",
    "server_error": "The server answered with an error.",
    "bad_answer": "The server's answer can't be read.",
    "too_large": "The calendar is too large.",
    "secret_unreadable": "The stored password can't be read: connect the calendar again.",
}
# As a rule only a person mends these: after some tries nobody looks until somebody has.
FINAL_TROUBLES = frozenset(
    {"unauthorized", "not_a_calendar", "no_write_access", "address_refused", "secret_unreadable"}
)


# Said by a write, which alone can tell that it is over: a look has nothing to do with it.
NO_WRITE_ACCESS = "no_write_access"
# Nothing is asked while one of these lasts.
NOT_ASKED = FINAL_TROUBLES - {NO_WRITE_ACCESS}


class Trouble(Exception):
    """The calendar can't be reached or used. `code`: a key of TROUBLES; `status`: of the answer,
    if there was one; `retry_after`: seconds, if the server asked for them."""

    def __init__(
        self,
        code: str,
        *,
        detail: str = "",
        status: int | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(detail or TROUBLES[code])
        self.code, self.status, self.retry_after = code, status, retry_after


class Changed(Exception):
    """A write was refused because the object there is not the one that was known (412), or because
    it stands there already."""


class Access(NamedTuple):
    """How a calendar is reached: `address` is its collection or feed (or, for `find`, what a person
    gave), the password in clear."""

    address: str
    username: str = ""
    password: str = ""


class Found(NamedTuple):
    """What `find` came to: the calendar's own address, its name there, whether it may be written
    to, and whether its server mails attendees by itself (RFC 6638, calendar-auto-schedule)."""

    address: str
    name: str
    may_write: bool
    invites: bool


class Look(NamedTuple):
    """What is new since a mark. `changed`: href -> etag of what is new or may be; `gone`: hrefs.

    is_whole: `changed` names every object, so what is not in it is gone. `texts`: those that came
    with the answer already (a feed's); the others are fetched. `mark`: to be given next time.
    """

    changed: Mapping[str, str]
    gone: Sequence[str]
    is_whole: bool
    mark: Mapping[str, Any]
    texts: Mapping[str, str] = {}


def differing(seen: Mapping[str, str], known: Mapping[str, str], mark: Mapping[str, Any]) -> Look:
    """What is new, from href -> etag of all that stands there now and of what was known. An etag of
    "" may be any."""
    changed = {href: etag for href, etag in seen.items() if not etag or known.get(href) != etag}
    return Look(changed, sorted(known.keys() - seen.keys()), False, mark)


class Object(NamedTuple):
    """One object as it stands there: its iCalendar text is as the server sent it."""

    href: str
    etag: str
    text: str


class Provider(Protocol):
    """One kind of calendar elsewhere. `deadline` is in seconds of wall time, for the whole call."""

    name: str  # in the API
    label: str  # for a person
    can_write: bool

    def find(self, access: Access, *, deadline: float) -> Found:
        """Find the calendar behind what a person gave, and try that it can be used."""

    def look(
        self,
        access: Access,
        mark: Mapping[str, Any],
        known: Callable[[], Mapping[str, str]],
        *,
        deadline: float,
    ) -> Look:
        """What is new since `mark` ({}: everything); one request where nothing is. `known()` gives
        href -> etag of what was seen last, for servers that can't tell what changed."""

    def fetch(
        self, access: Access, hrefs: Sequence[str], *, deadline: float
    ) -> Iterator[Sequence[Object]]:
        """The objects in batches, each within `deadline`; those that are gone are left out, and one
        that is too large to be read has the text ""."""

    def read(self, access: Access, href: str, *, deadline: float) -> Object | None:
        """One object; None where it is gone."""

    def put(self, access: Access, href: str, text: str, etag: str, *, deadline: float) -> str:
        """Write an object and return its new etag. `etag`: what is to be replaced; "": it must not
        be there yet. Raises Changed."""

    def delete(self, access: Access, href: str, etag: str, *, deadline: float) -> None:
        """Remove an object; one that is gone is fine. Raises Changed."""

    def objects_between(
        self, access: Access, start: datetime, end: datetime, *, deadline: float
    ) -> Sequence[Object]:
        """What stands in the half-open range right now, and maybe near it: asked just before it
        counts."""

    def new_href(self, access: Access, uid: str) -> str:
        """The path under which an object of this UID is to be made."""
