"""A fake of Google: Calendar API v3, OAuth 2.0 and OpenID Connect.

    google = FakeGoogle(gateway)
    ada = google.add_account("ada@example.com")
    event_id = ada.calendar.add("Lunch", start, end)
    grant = google.allow("ada@example.com")

It takes only what Google's discovery document has; anything else is a violation of the gateway.
What is estimated, because no document says it, is in the docstrings. Not here: partial responses
(`fields`), batches, access control lists, and copies of events in the calendars of guests.
"""

import threading
import urllib.parse
from collections.abc import Iterable

from tests.external_calendars.fakes.google import discovery, oauth
from tests.external_calendars.fakes.google.api import (
    ROLES,
    SCOPE,
    Account,
    CalendarApi,
    CalendarEntry,
)
from tests.external_calendars.fakes.google.calendars import StoredCalendar
from tests.external_calendars.fakes.google.channels import Channels
from tests.external_calendars.fakes.google.errors import error_response
from tests.external_calendars.fakes.google.events import Invitation
from tests.external_calendars.fakes.notifications import NotificationSender
from tests.external_calendars.fakes.server import Gateway, Request, Response, Violation

API = "www.googleapis.com"
TOKENS = "oauth2.googleapis.com"
ACCOUNTS = "accounts.google.com"
DEFAULT_SCOPES = ("openid", "email", f"{SCOPE}.events", f"{SCOPE}.calendarlist.readonly")


class FakeGoogle:
    """Accounts, calendars, grants and push channels. Registers itself with the gateway.

    invitations: the mails that Google sent to guests. sender: the notifications. listings:
    `listings.most_events = 2` makes pages small. oauth.grant_days: 7 as in test mode.
    """

    def __init__(self, gateway: Gateway) -> None:
        self.gateway, self.clock = gateway, gateway.clock
        self.lock = threading.RLock()
        self.invitations: list[Invitation] = []
        self.sender = NotificationSender()
        self.channels = Channels(self.clock, self.sender)
        self.oauth = oauth.OAuth(self.clock)
        self.api = CalendarApi(self.clock, self.oauth, self.channels)
        self.accounts, self.calendars = self.api.accounts, self.api.calendars
        self.listings = self.api.listings
        for host in (API, TOKENS, ACCOUNTS):
            gateway.serve(host, self)

    # --- For tests --------------------------------------------------------------------------------
    def add_account(self, email: str, name: str = "", time_zone: str = "Europe/Berlin") -> Account:
        """Add an account with its primary calendar."""
        calendar = self._new_calendar(email, email, time_zone, email)
        calendar.is_primary = True
        subject = str(10**20 + len(self.accounts))
        account = Account(email, subject, name or email.partition("@")[0].title(), calendar)
        self.accounts[email] = self.oauth.accounts[email] = account
        self.share(calendar, email, "owner")
        return account

    def add_calendar(
        self, summary: str, email: str, time_zone: str = "Europe/Berlin"
    ) -> StoredCalendar:
        """Add a further calendar of this account."""
        number = len(self.calendars)
        calendar_id = f"c{number}@group.calendar.google.com"
        calendar = self._new_calendar(calendar_id, summary, time_zone, email)
        self.share(calendar, email, "owner")
        return calendar

    def share(self, calendar: StoredCalendar, email: str, role: str) -> None:
        """Put a calendar into the list of an account, or change its role there; "": remove it."""
        if role and role not in ROLES:
            raise ValueError(role)
        self.api.list_changes += 1
        entry = CalendarEntry(calendar, role, self.api.list_changes)
        self.accounts[email].entries[calendar.id] = entry

    def add_client(
        self, redirect_uri: str, client_id: str = "demo-google", secret: str = "demo-secret"
    ) -> None:
        """Register a client, or another redirect URI of it."""
        client = self.oauth.clients.setdefault(client_id, oauth.Client(client_id, secret, []))
        client.redirect_uris.append(redirect_uri)

    def allow(self, email: str, *scopes: str, client_id: str = "demo-google") -> oauth.Grant:
        """Return a grant of the account, without a page; by default with all that is needed."""
        return self.oauth.allow(email, frozenset(scopes or DEFAULT_SCOPES), client_id)

    def access_token(self, email: str, *scopes: str) -> str:
        """Return an access token of a new grant."""
        return self.oauth.make_access_token(self.allow(email, *scopes))

    def consent(
        self, url: str, email: str, *, without: Iterable[str] = (), allow: bool = True
    ) -> str:
        """Do on the page at this address what a person does; return where it redirects to.

        without: scopes that the person unticks. allow: False presses "Cancel".
        """
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(url).query)
        form = [("account", email), ("decision", "allow" if allow else "cancel")]
        form += [
            ("scope", scope)
            for scope in " ".join(query.get("scope", ())).split()
            if scope not in without
        ]
        answer = self.gateway.answer(
            "POST",
            "/" + url.removeprefix(self.gateway.url).removeprefix("/").removeprefix("https://"),
            {"content-type": "application/x-www-form-urlencoded"},
            urllib.parse.urlencode(form).encode(),
        )
        assert answer is not None and answer.status == 302, answer
        return answer.headers["Location"]

    def answer_invitation(self, event_id: str, email: str, status: str, comment: str = "") -> None:
        """A guest answers an invitation: accepted, tentative, declined or needsAction."""
        [calendar] = [one for one in self.calendars.values() if event_id in one.events]
        calendar.respond(event_id, email, status, comment)

    def mails_to(self, email: str) -> list[str]:
        """Return the operations about which Google has sent mails to this address."""
        return [one.operation for one in self.invitations if email in one.recipients]

    def fail(
        self, reason: str, pattern: str = "", *, times: int = 1, method: str = "", **headers: str
    ) -> None:
        """Refuse the next requests with this reason; headers: Retry_After="7"."""
        response = error_response(reason, **headers)
        self.gateway.fail(
            f"^{API}/calendar.*{pattern}",
            status=response.status,
            body=response.body,
            headers=response.headers,
            times=times,
            method=method,
        )

    def throttle(self, pattern: str = "", *, times: int = 1, seconds: int = 7) -> None:
        """Answer the next requests with 429 and Retry-After."""
        response = error_response("rateLimitExceeded")
        body = response.body
        body["error"]["code"] = 429
        self.gateway.fail(
            f"^{API}/calendar.*{pattern}",
            status=429,
            body=body,
            times=times,
            headers={"Retry-After": str(seconds)},
        )

    def expire_sync_tokens(self) -> None:
        """Answer 410 to the sync tokens that exist now."""
        self.listings.points.clear()

    def expire_page_tokens(self) -> None:
        self.listings.pages.clear()

    def _new_calendar(
        self, calendar_id: str, summary: str, time_zone: str, owner: str
    ) -> StoredCalendar:
        self.calendars[calendar_id] = StoredCalendar(
            calendar_id,
            summary,
            time_zone,
            owner,
            self.clock,
            lambda calendar: self.channels.tell(calendar.id),
            self.invitations,
            self.lock,
        )
        return self.calendars[calendar_id]

    # --- What the gateway calls -------------------------------------------------------------------
    def account_of(self, request: Request) -> str:
        with self.lock:
            token = self.oauth.access_tokens.get(request.bearer)
        return token.grant.account.email if token else ""

    def refuse(self, request: Request, sentence: str) -> Response:
        if request.host == ACCOUNTS:
            return oauth.error_page(400, "invalid_request", sentence)
        if request.host == TOKENS:
            body = {"error": "invalid_request", "error_description": sentence}
            return Response(400, body)
        return error_response("badRequest", sentence)

    def respond(self, request: Request) -> Response:
        with self.lock:
            return self._respond(request)

    def _respond(self, request: Request) -> Response:
        if request.host == ACCOUNTS and request.path == "/o/oauth2/v2/auth":
            return self.oauth.respond_to_page(request)
        if request.host == TOKENS and request.method == "POST":
            if request.path == "/token":
                return self.oauth.respond_to_token_request(request)
            if request.path == "/revoke":
                return self.oauth.respond_to_revocation(request)
        if request.host == API and request.method == "GET" and request.path == "/oauth2/v3/certs":
            return Response(200, oauth.key_set(), {"Cache-Control": "public, max-age=20000"})
        if request.host == API and request.path.startswith(discovery.PREFIX):
            return self.api.respond(request)
        raise Violation("Google has no such path, or not with this method.")
