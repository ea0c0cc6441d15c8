"""The interface of calendar providers and their errors.

Nothing here uses the database. Every request goes through `common.net.safe_http.fetch_body`, is
limited in time and size, and raises `ProviderError` for any failure of the server.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from common.messages import Message
from external_calendars.event_formats.base import EventFormat

# Error code in the API -> text for the person who connected the calendar.
PROVIDER_ERRORS: Mapping[str, str] = {
    "unauthorized": Message("The server refuses this user name and password."),
    "not_a_calendar": Message("No calendar was found at this address."),
    "several_calendars": Message("There are several calendars: enter the address of one."),
    "no_write_access": Message("This user can read the calendar but not write to it."),
    "address_refused": Message("The address is not allowed: it must be a public web address."),
    "unreachable": Message("The server could not be reached."),
    "rate_limited": Message("The server limits the number of requests."),
    "server_error": Message("The server returned an error."),
    "bad_answer": Message("The server's response can't be read."),
    "too_large": Message("The calendar is too large."),
    "secret_unreadable": Message("The stored password can't be read: connect the calendar again."),
    "grant_ended": Message(
        "The permission to use the calendar has ended at the provider: connect the calendar again."
    ),
    "not_permitted": Message(
        "The account did not allow everything that is needed: connect the calendar again."
    ),
    "client_refused": Message(
        "The provider refuses the client that is registered for this service."
    ),
    "token_refused": Message("The provider refuses the access token; the service gets a new one."),
}
# Usually only a person can fix these: syncs stop after some attempts.
FINAL_ERRORS = frozenset(
    {
        "unauthorized",
        "not_a_calendar",
        "no_write_access",
        "address_refused",
        "secret_unreadable",
        "grant_ended",
        "not_permitted",
    }
)


# Set by writes and cleared by writes: syncs neither set nor clear it.
NO_WRITE_ACCESS = "no_write_access"
# The access token was refused: with the next one, the calendar can be used again.
TOKEN_REFUSED = "token_refused"  # noqa: S105  # nosec B105
# The calendar is not queried while it has one of these problems.
NOT_ASKED = FINAL_ERRORS - {NO_WRITE_ACCESS}


class ProviderError(Exception):
    """The calendar can't be reached or used.

    `code`: a key of PROVIDER_ERRORS. `status`: of the answer, if any. `retry_after`: seconds, if
    the server named them.
    """

    def __init__(
        self,
        code: str,
        *,
        detail: str = "",
        status: int | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(detail or PROVIDER_ERRORS[code])
        self.code, self.status, self.retry_after = code, status, retry_after


class PreconditionFailed(Exception):
    """The server refused a write (412): the object has another etag, or exists already."""


class ChannelEnded(Exception):
    """The provider no longer knows the push channel."""


class CalendarAccess(NamedTuple):
    """Decrypted credentials. `address`: the collection or feed, or for `find` the user's input.

    token: the access token of a provider with OAuth; `username` is then the account's e-mail.
    """

    address: str
    username: str = ""
    password: str = ""
    token: str = ""


class DiscoveredCalendar(NamedTuple):
    """A result of `find_calendar`.

    invites: the server says that it invites attendees by itself (RFC 6638). user_addresses: the
    e-mail addresses under which it does so, the preferred one first. makes_links: whether it makes
    the links of video calls; None if it does not say so.
    """

    address: str
    name: str
    may_write: bool
    invites: bool
    user_addresses: Sequence[str] = ()
    makes_links: bool | None = None


class ChangeSet(NamedTuple):
    """Changes since a mark. changed: href -> etag of new or possibly new objects. gone: hrefs.

    is_whole: `changed` names every object, so all others are gone. texts: objects included in the
    answer; fetch the others. mark: pass it to the next `list_changes`.
    """

    changed: Mapping[str, str]
    gone: Sequence[str]
    is_whole: bool
    mark: Mapping[str, Any]
    texts: Mapping[str, str] = {}


def compare_etags(
    seen: Mapping[str, str], known: Mapping[str, str], mark: Mapping[str, Any]
) -> ChangeSet:
    """Return the changes from `known` to `seen`, href -> etag of all; "" counts as changed."""
    changed = {href: etag for href, etag in seen.items() if not etag or known.get(href) != etag}
    return ChangeSet(changed, sorted(known.keys() - seen.keys()), False, mark)


class RemoteObject(NamedTuple):
    """One object at the provider, with its text as the server sent it (see EventFormat)."""

    href: str
    etag: str
    text: str


class StoredObjects(Protocol):
    """What the last syncs have stored of a calendar."""

    def etags(self) -> Mapping[str, str]:
        """Return href -> etag of all objects."""

    def texts(self, hrefs: Collection[str]) -> Mapping[str, str]:
        """Return href -> text of those of these objects whose texts are kept (recurring ones)."""


class Provider(Protocol):
    """One kind of calendar provider. `deadline`: seconds of wall time for the whole call."""

    name: str  # in the API
    label: str  # for a person
    can_write: bool
    event_format: EventFormat

    def find_calendar(self, access: CalendarAccess, *, deadline: float) -> DiscoveredCalendar:
        """Find the calendar behind a user's input, and check that it can be used."""

    def list_changes(
        self,
        access: CalendarAccess,
        mark: Mapping[str, Any],
        stored: StoredObjects,
        *,
        deadline: float,
    ) -> ChangeSet:
        """Return the changes since `mark` ({}: everything); one request if nothing has changed."""

    def fetch(
        self, access: CalendarAccess, hrefs: Sequence[str], *, deadline: float
    ) -> Iterator[Sequence[RemoteObject]]:
        """Yield existing objects in batches, each within `deadline`; too large a text is ""."""

    def read_object(
        self, access: CalendarAccess, href: str, *, deadline: float
    ) -> RemoteObject | None:
        """Return one object; None if it is gone.

        If the calendar `invites`, its attendees have SCHEDULE-STATUS (RFC 6638 3.2.9).
        """

    def put(
        self, access: CalendarAccess, href: str, text: str, etag: str, *, deadline: float
    ) -> RemoteObject:
        """Write an object, and return it as stored; its text is "" if the answer does not have it.

        `etag`: of the object to replace; "": the object must not exist. Raises PreconditionFailed.
        """

    def delete(self, access: CalendarAccess, href: str, etag: str, *, deadline: float) -> None:
        """Delete an object; no error if it is gone. Raises PreconditionFailed."""

    def objects_between(
        self, access: CalendarAccess, start: datetime, end: datetime, *, deadline: float
    ) -> Sequence[RemoteObject]:
        """Return the current objects in the half-open range, and perhaps others near it."""

    def new_uid(self, uid: str) -> str:
        """Return the UID at the provider of the event with this UID of the service."""

    def locate(self, access: CalendarAccess, uid: str, *, deadline: float) -> str:
        """Return the href of the event with this UID, or of a new one if there is none.

        "" if there is none and the server chooses the href of a new one.
        """


class OAuthEndpoints(NamedTuple):
    """Where a provider asks for consent and gives tokens.

    issuers: prefixes of the issuers of its ID tokens. scopes: that are asked for; `needed`: without
    which calendars can't be used. extra: further parameters of the consent page.
    """

    authorize_url: str
    token_url: str
    revoke_url: str
    issuers: tuple[str, ...]
    scopes: tuple[str, ...]
    needed: frozenset[str]
    extra: Mapping[str, str] = {}


class WatchedChannel(NamedTuple):
    """A channel on which the provider says that a calendar has changed.

    resource_id: the provider's id of the calendar, if it is needed to end the channel. is_heard:
    the provider has already called the address.
    """

    channel_id: str
    resource_id: str
    ends_at: datetime
    is_heard: bool


class OAuthProvider(Provider, Protocol):
    """A provider whose calendars are reached with a person's grant (OAuth 2.0)."""

    oauth: OAuthEndpoints

    def account_of(self, claims: Mapping[str, Any]) -> tuple[str, str]:
        """Return (the id that never changes, the e-mail address or "") of an ID token."""

    def list_calendars(
        self, access: CalendarAccess, *, deadline: float
    ) -> Sequence[DiscoveredCalendar]:
        """Return the calendars of the account, the main one first."""

    def watch(
        self, access: CalendarAccess, channel_id: str, token: str, address: str, *, deadline: float
    ) -> WatchedChannel:
        """Have the provider call `address` after each change, for as long as it agrees to.

        channel_id: a new one, which the provider may replace. token: comes with each message.
        """

    def extend_watch(
        self, access: CalendarAccess, channel_id: str, *, deadline: float
    ) -> datetime | None:
        """Return the new end of the channel; None if the provider can only open another one.

        Raises ChannelEnded.
        """

    def stop_watching(
        self, access: CalendarAccess, channel_id: str, resource_id: str, *, deadline: float
    ) -> None:
        """End the channel; no error if it has ended."""
