"""A fake of Microsoft Graph (calendars) and of its sign-in: `FakeGraph`.

What it has is in graph_fields.json; its rules are from Microsoft's documentation, or from the cited
observations of others. Nobody has compared it with the real service.
"""

import contextlib
import threading
import urllib.parse
import uuid
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from tests.external_calendars.fakes.microsoft import login
from tests.external_calendars.fakes.microsoft.delta import (
    Delta,
    Entry,
    Master,
    Place,
    Removed,
    Window,
)
from tests.external_calendars.fakes.microsoft.events import (
    CONSUMERS,
    NO_TIME,
    Folder,
    GraphError,
    Instance,
    Item,
    Mailbox,
    Properties,
    calendar_answer,
    event_answer,
    not_found,
    occurrence_answer,
    utc_time,
)
from tests.external_calendars.fakes.microsoft.login import Client, Grant, MicrosoftLogin
from tests.external_calendars.fakes.microsoft.requests import (
    DEFAULT_PAGE,
    MAX_PAGE,
    Preferences,
    Query,
    read_body,
    read_preferences,
    read_query,
    read_window,
)
from tests.external_calendars.fakes.microsoft.rules import check_event
from tests.external_calendars.fakes.microsoft.schema import check_object, find_route
from tests.external_calendars.fakes.microsoft.subscriptions import Subscription, Subscriptions
from tests.external_calendars.fakes.microsoft.writing import EventWriter
from tests.external_calendars.fakes.server import Gateway, Request, Response, Violation

HOST = "graph.microsoft.com"
ROOT = f"https://{HOST}/v1.0"
CLIENT_ID = "demo-microsoft"
DEFAULT_SCOPES = (
    "openid",
    "profile",
    "email",
    "offline_access",
    "User.Read",
    "Calendars.ReadWrite",
)
# "Application is over its MailboxConcurrency limit": requests of one app to one mailbox at a time
# (https://learn.microsoft.com/graph/throttling-limits).
MAX_CONCURRENT = 4
WRITE_SCOPES = {"Calendars.ReadWrite", "Calendars.ReadWrite.Shared"}
READ_SCOPES = WRITE_SCOPES | {"Calendars.Read", "Calendars.Read.Shared"}
# The documented parameters that the fake has, of those in graph_fields.json.
LIST = {"$top", "$skip", "$select"}
EVENTS = LIST | {"$expand", "$filter", "$orderby"}
EVENT = {"$select", "$expand"}
WINDOW = {"startDateTime", "endDateTime"}

T = TypeVar("T")


class Call(NamedTuple):
    """A request of a signed-in account. parameters: of the path."""

    request: Request
    mailbox: Mailbox
    grant: Grant
    preferences: Preferences
    parameters: dict[str, str]


class FakeGraph:
    """Serves graph.microsoft.com and login.microsoftonline.com at the gateway.

    login, delta, subscriptions and writer have the settings of these parts. invitations: all mails
    to attendees. sender: the notifications. too_many_at_once: requests that were refused as the
    fifth of a mailbox. transaction_ids_outlive_events: that of a deleted event is still taken,
    which is not documented.
    """

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.clock = gateway.clock
        self.mailboxes: dict[str, Mailbox] = {}
        self.login = MicrosoftLogin(self.clock, self.mailboxes)
        self.delta = Delta()
        self.subscriptions = Subscriptions(self.clock)
        self.sender = self.subscriptions.sender
        self.writer = EventWriter(self.clock, self.subscriptions)
        self.invitations = self.writer.invitations
        self.too_many_at_once = 0
        self.transaction_ids_outlive_events = True
        self._lock = threading.RLock()
        for host in (HOST, login.HOST):
            gateway.serve(host, self)

    # --- Accounts and grants ----------------------------------------------------------------------
    def add_account(self, email: str, name: str = "", *, is_personal: bool = False) -> Mailbox:
        """Add an account with its default calendar "Calendar", at work or personal."""
        tenant = CONSUMERS if is_personal else str(_uuid(email.partition("@")[2]))
        person = _uuid(email).hex[:16] if is_personal else str(_uuid(email))
        name = name or email.partition("@")[0].title()
        mailbox = Mailbox(email, name, person, tenant, email)
        mailbox.add_calendar("Calendar")
        self.mailboxes[email] = mailbox
        return mailbox

    def add_client(
        self, redirect_uri: str, client_id: str = CLIENT_ID, secret: str = "demo-secret"
    ) -> None:
        """Register a client, or another redirect URI of it."""
        client = self.login.clients.setdefault(client_id, Client(client_id, secret, []))
        client.redirect_uris.append(redirect_uri)

    def allow(self, email: str, *scopes: str, client_id: str = CLIENT_ID) -> Grant:
        """Return a grant of the account, without a page; by default with all that is needed."""
        with self._lock:
            return self.login.allow(email, scopes or DEFAULT_SCOPES, client_id)

    def access_token(self, email: str, *scopes: str) -> str:
        """Return an access token of a new grant."""
        with self._lock:
            return self.login.make_access_token(self.allow(email, *scopes))

    def consent(self, url: str, email: str, *, allow: bool = True) -> str:
        """Do on the page at this address what a person does; return where it redirects to.

        allow: False presses "Cancel".
        """
        form = {"account": email, "decision": "allow" if allow else "cancel"}
        answer = self.gateway.answer(
            "POST",
            "/" + url.removeprefix(self.gateway.url).removeprefix("/").removeprefix("https://"),
            {"content-type": "application/x-www-form-urlencoded"},
            urllib.parse.urlencode(form).encode(),
        )
        assert answer is not None and answer.status == 302, answer
        return answer.headers["Location"]

    def revoke(self, email: str, number: int = 50173) -> None:
        """End the grants of an account; see MicrosoftLogin.revoke."""
        with self._lock:
            self.login.revoke(email, number)

    def retire_old_refresh_tokens(self) -> None:
        """Refuse from now on each refresh token that was used."""
        self.login.retire_old_refresh_tokens()

    # --- What people do in Outlook ----------------------------------------------------------------
    def create(self, email: str, body: Properties, folder: Folder | None = None) -> Item:
        """Let the owner create an event, default in the default calendar. The body may have the
        read-only properties too, such as organizer or originalStartTimeZone."""
        mailbox = self.mailboxes[email]
        with self._lock:
            return self.writer.create(mailbox, folder or mailbox.default_calendar, body, "person")

    def change(self, event_id: str, body: Properties) -> None:
        """Let the owner change an event, a series or (by its own id) one occurrence."""
        with self._lock:
            mailbox, instance = self._find(event_id)
            self.writer.change(mailbox, instance, body, "person")

    def remove(self, event_id: str) -> None:
        """Let the owner delete an event, a series or one occurrence."""
        with self._lock:
            mailbox, instance = self._find(event_id)
            self.writer.remove(mailbox, instance, "person")

    def answer_invitation(self, event_id: str, email: str, response: str) -> None:
        """Let an attendee answer: accepted, tentativelyAccepted, declined, notResponded, none."""
        check_object("responseStatus", {"response": response}, "response")
        at = NO_TIME if response == "none" else utc_time(self.clock.now())
        with self._lock:
            mailbox, instance = self._find(event_id)
            attendees = [
                each | {"status": {"response": response, "time": at}}
                if each["emailAddress"]["address"].lower() == email.lower()
                else each
                for each in instance.properties["attendees"]
            ]
            if attendees == instance.properties["attendees"]:
                raise ValueError(f"{email} is no attendee, or has answered so.")
            self.writer.store(mailbox, instance, {"attendees": attendees})

    def mails_to(self, email: str) -> list[str]:
        """Return the kinds of the mails that Exchange has sent to this address."""
        return [one.kind for one in self.invitations if one.to == email.lower()]

    def events(self, email: str, folder: Folder | None = None) -> list[Properties]:
        """Return the events and series of a calendar as Graph shows them in UTC, with their
        extended properties and plain bodies."""
        mailbox = self.mailboxes[email]
        folder = folder or mailbox.default_calendar
        with self._lock:
            return [self._answer_in_utc(mailbox, item) for item in _items_of(mailbox, folder)]

    def throttle(self, pattern: str = HOST, *, times: int = 1, seconds: int = 7) -> None:
        """Answer the next requests with 429 and Retry-After."""
        error = GraphError(429, "ApplicationThrottled", "Too many requests.")
        headers = {"Retry-After": str(seconds)}
        body = self._error(error)
        self.gateway.fail(pattern, status=429, times=times, body=body, headers=headers)

    def _find(self, event_id: str) -> tuple[Mailbox, Instance]:
        for mailbox in self.mailboxes.values():
            with contextlib.suppress(GraphError):
                return mailbox, mailbox.find(event_id)
        raise not_found()

    # --- Requests ---------------------------------------------------------------------------------
    def account_of(self, request: Request) -> str:
        with self._lock:
            grant = self.login.grant_of(request.bearer)
        return grant.mailbox.address if grant and request.host == HOST else ""

    def respond(self, request: Request) -> Response:
        if request.host == login.HOST:
            with self._lock:
                return self.login.respond(request)
        try:
            return self._respond(request)
        except GraphError as error:
            return Response(error.status, self._error(error), error.headers)

    def refuse(self, request: Request, sentence: str) -> Response:
        if request.host == login.HOST:
            return self.login.refuse(sentence)
        return Response(400, self._error(GraphError(400, "ErrorInvalidRequest", sentence)))

    def _error(self, error: GraphError) -> Properties:
        request_id = str(uuid.uuid4())
        inner = {
            "date": f"{self.clock.now():%Y-%m-%dT%H:%M:%S}",
            "request-id": request_id,
            "client-request-id": request_id,
        }
        return {"error": {"code": error.code, "message": error.message, "innerError": inner}}

    def _respond(self, request: Request) -> Response:
        with self._lock:
            grant = self.login.grant_of(request.bearer)
        if grant is None:
            message = "Access token has expired or is not yet valid."
            challenge = {"WWW-Authenticate": 'Bearer error="invalid_token"'}
            raise GraphError(401, "InvalidAuthenticationToken", message, **challenge)
        if request.concurrent > MAX_CONCURRENT:
            with self._lock:
                self.too_many_at_once += 1
            message = "Application is over its MailboxConcurrency limit."
            raise GraphError(429, "ApplicationThrottled", message, **{"Retry-After": "1"})
        segments = [urllib.parse.unquote(part) for part in request.path.split("/")[1:]]
        if segments[0] != "v1.0":
            raise Violation("Unknown path.")
        route = find_route(request.method, segments[1:])
        preferences = read_preferences(request, grant.mailbox)
        handler = HANDLERS.get((request.method, route.template))
        if handler is None:
            raise Violation(f"The fake lacks {request.method} {route.template}.")
        check_scope(request.method, route.template, grant)
        call = Call(request, grant.mailbox, grant, preferences, route.parameters)
        if handler in SHAKING_HANDS:
            # The handshake waits for the client, which may ask the fake meanwhile.
            return handler(self, call)
        with self._lock:
            return handler(self, call)

    # --- Account and calendars --------------------------------------------------------------------
    def _get_me(self, call: Call) -> Response:
        query = read_query(call.request, {"$select"}, "user")
        mailbox = call.mailbox
        answer = {
            "id": mailbox.id,
            "displayName": mailbox.name,
            "mail": mailbox.mail,
            "userPrincipalName": mailbox.address,
            "preferredLanguage": None,
        }
        return self._object(answer, query, "users")

    def _list_calendars(self, call: Call) -> Response:
        query = read_query(call.request, LIST, "calendar")
        folders = list(call.mailbox.folders.values())
        return self._list(call, query, folders, lambda each: calendar_answer(call.mailbox, each))

    def _get_calendar(self, call: Call) -> Response:
        query = read_query(call.request, {"$select"}, "calendar")
        return self._object(calendar_answer(call.mailbox, self._folder(call)), query, "calendars")

    def _folder(self, call: Call) -> Folder:
        folder = call.mailbox.folders.get(call.parameters["calendar-id"])
        if folder is None:
            message = "The specified object was not found in the store."
            raise GraphError(404, "ErrorItemNotFound", message)
        return folder

    # --- Events -----------------------------------------------------------------------------------
    def _list_events(self, call: Call) -> Response:
        query = read_query(call.request, EVENTS, "event")
        instances = [
            call.mailbox.find(item.id)
            for item in _items_of(call.mailbox, self._folder(call))
            if query.having is None or _has_property(item, *query.having)
        ]
        if query.order_by:
            instances.sort(key=lambda instance: instance.start)
        return self._list(call, query, instances, lambda each: self._answer(call, query, each))

    def _view(self, call: Call) -> Response:
        query = read_query(call.request, (EVENTS - {"$filter"}) | WINDOW, "event")
        folder = self._folder(call)
        # In the order of their starts, with and without $orderby.
        instances = call.mailbox.instances(folder.id, *read_window(query))
        return self._list(call, query, instances, lambda each: self._answer(call, query, each))

    def _answer(self, call: Call, query: Query, instance: Instance) -> Properties:
        preferences = call.preferences
        return event_answer(
            call.mailbox,
            instance,
            zone=preferences.zone,
            body_type=preferences.body_type,
            extended=query.extended,
        )

    def _answer_in_utc(self, mailbox: Mailbox, item: Item) -> Properties:
        stored = item.properties.get("singleValueExtendedProperties") or []
        return event_answer(
            mailbox,
            mailbox.find(item.id),
            zone="UTC",
            body_type="text",
            extended=tuple(each["id"] for each in stored),
        )

    def _event(self, call: Call) -> Instance:
        instance = call.mailbox.find(call.parameters["event-id"])
        if call.parameters.get("calendar-id", instance.item.folder_id) != instance.item.folder_id:
            raise GraphError(404, "ErrorItemNotFound", "The object is in another calendar.")
        return instance

    def _get_event(self, call: Call) -> Response:
        query = read_query(call.request, EVENT, "event")
        instance = self._event(call)
        self.writer.prepare_meeting(call.mailbox, instance)
        return self._object(self._answer(call, query, instance), query, "events")

    def _post_event(self, call: Call) -> Response:
        query = read_query(call.request, set(), "event")
        folder = self._folder(call)
        body = read_body(call.request)
        check_event(body)
        if missing := sorted({"start", "end"} - body.keys()):
            raise Violation(f"event lacks {', '.join(missing)}.")
        if not folder.can_edit:
            raise access_denied()
        mailbox = call.mailbox
        item = self._repeated(mailbox, body) or self.writer.create(mailbox, folder, body, "api")
        answer = self._answer(call, query, mailbox.find(item.id))
        return self._json(201, answer, "events/$entity")

    def _repeated(self, mailbox: Mailbox, body: Properties) -> Item | None:
        """Return the event that the same POST created. Raise GraphError where another body has used
        the transactionId.

        201 for the same body: https://blog.rykoma.net/2020/10/05/1559; the error's sentence:
        https://github.com/alcionai/corso/issues/2490 (its status is not in there).
        """
        if not body.get("transactionId"):
            return None
        for item in mailbox.items.values():
            if item.written.get("transactionId") == body["transactionId"]:
                if item.written == body and not item.is_deleted:
                    return item
                if not item.is_deleted or self.transaction_ids_outlive_events:
                    raise GraphError(
                        409,
                        "ErrorDuplicateTransactionId",
                        "Your request can't be completed. The TransactionId specified in the "
                        "request has already been used to create a different event.",
                    )
        return None

    def _patch_event(self, call: Call) -> Response:
        query = read_query(call.request, set(), "event")
        instance = self._event(call)
        body = read_body(call.request)
        check_event(body)
        if "transactionId" in body:
            raise Violation("event.transactionId can't be changed.")
        self._check_write(call, instance)
        self.writer.change(call.mailbox, instance, body, "api")
        instance = call.mailbox.find(instance.id)
        return self._object(self._answer(call, query, instance), query, "events")

    def _delete_event(self, call: Call) -> Response:
        read_query(call.request, set(), "event")
        instance = self._event(call)
        self._check_write(call, instance)
        self.writer.remove(call.mailbox, instance, "api")
        return Response(204)

    def _check_write(self, call: Call, instance: Instance) -> None:
        """Raise GraphError where the calendar is read-only, or If-Match names an old version.

        412 with this code and sentence:
        https://github.com/microsoftgraph/msgraph-sdk-dotnet/issues/1201
        """
        if not call.mailbox.folders[instance.item.folder_id].can_edit:
            raise access_denied()
        given = call.request.headers.get("if-match", "*")
        etag = f'W/"{(instance.exception or instance.item).change_key}"'
        if given not in ("*", etag):
            raise GraphError(
                412,
                "ErrorIrresolvableConflict",
                "The send or update operation could not be performed because the change key passed "
                "in the request does not match the current change key for the item.",
            )

    # --- Delta ------------------------------------------------------------------------------------
    def _delta(self, call: Call) -> Response:
        folder = self._folder(call)
        tokens = {"$skiptoken", "$deltatoken"} & call.request.query.keys()
        query = read_query(call.request, tokens or WINDOW, "event")
        size = call.preferences.page_size or DEFAULT_PAGE
        if not tokens:
            window = Window(folder.id, *read_window(query))
            place = Place(self.delta.begin(call.mailbox, window, size, None), 0)
        else:
            place = self._continue(call, query, folder, size)
        pages = place.round.pages
        value = [self._delta_entry(call, entry) for entry in pages[place.page]]
        is_last = place.page + 1 == len(pages)
        token = self.delta.token(Place(place.round, place.page + 1))
        name, key = ("deltaLink", "$deltatoken") if is_last else ("nextLink", "$skiptoken")
        path = urllib.parse.quote(f"/me/calendars/{folder.id}/calendarView/delta")
        link = self.gateway.address(f"{ROOT}{path}?{key}={token}")
        return self._json(200, {f"@odata.{name}": link, "value": value}, "Collection(event)")

    def _continue(self, call: Call, query: Query, folder: Folder, size: int) -> Place:
        """Return the page of a token. Raise GraphError 410 where it has ended
        (https://github.com/microsoftgraph/microsoft-graph-docs-contrib/issues/7897)."""
        place = self.delta.find(next(iter(query.other.values())), call.mailbox)
        if place is None or place.round.window.folder_id != folder.id:
            message = "The sync state generation is not found; generation=149;[highest=157]."
            raise GraphError(410, self.delta.ended_code, message)
        is_end = place.page == len(place.round.pages)
        if is_end != ("$deltatoken" in query.other):
            raise Violation("The token is one of the other kind.")
        if not is_end:
            return place
        return Place(self.delta.begin(call.mailbox, place.round.window, size, place.round), 0)

    def _delta_entry(self, call: Call, entry: Entry) -> Properties:
        zone = call.preferences.zone
        if isinstance(entry, Removed):
            return {
                "@odata.type": "#microsoft.graph.event",
                "id": entry.id,
                "@removed": {"reason": self.delta.removed_reason},
            }
        instance = entry.instance if isinstance(entry, Master) else entry
        if instance.day and not instance.exception:
            return occurrence_answer(instance, zone=zone)
        whole = event_answer(
            call.mailbox,
            instance,
            zone=zone,
            body_type=call.preferences.body_type,
            extended=(),
        )
        if instance.exception is None:
            return {"@odata.type": "#microsoft.graph.event"} | whole
        names = instance.exception.properties.keys() | {"originalStart"}
        names -= {"start", "end", "singleValueExtendedProperties"}
        return occurrence_answer(instance, zone=zone) | {name: whole[name] for name in names}

    # --- Subscriptions ----------------------------------------------------------------------------
    def _create_subscription(self, call: Call) -> Response:
        read_query(call.request, set(), "subscription")
        body = read_body(call.request)
        created = self.subscriptions.create(call.mailbox, call.grant.client.id, body)
        return self._json(201, created.answer, "subscriptions/$entity")

    def _list_subscriptions(self, call: Call) -> Response:
        query = read_query(call.request, set(), "subscription")
        found = self.subscriptions.of(call.mailbox)
        return self._list(call, query, found, lambda each: each.answer)

    def _get_subscription(self, call: Call) -> Response:
        query = read_query(call.request, {"$select"}, "subscription")
        return self._object(self._subscription(call).answer, query, "subscriptions")

    def _patch_subscription(self, call: Call) -> Response:
        query = read_query(call.request, set(), "subscription")
        subscription = self._subscription(call)
        self.subscriptions.change(subscription, read_body(call.request))
        return self._object(subscription.answer, query, "subscriptions")

    def _delete_subscription(self, call: Call) -> Response:
        read_query(call.request, set(), "subscription")
        del self.subscriptions.all[self._subscription(call).id]
        return Response(204)

    def _reauthorize(self, call: Call) -> Response:
        read_query(call.request, set(), "subscription")
        self.subscriptions.reauthorize(self._subscription(call))
        return Response(204)

    def _subscription(self, call: Call) -> Subscription:
        return self.subscriptions.find(call.parameters["subscription-id"], call.mailbox)

    # --- Answers ----------------------------------------------------------------------------------
    def _list(
        self, call: Call, query: Query, found: Sequence[T], answer: Callable[[T], Properties]
    ) -> Response:
        """Answer one page of what was found, with the link to the next one."""
        size = query.top or call.preferences.page_size or DEFAULT_PAGE
        end = query.skip + min(size, MAX_PAGE)
        page = [selected(answer(each), query) for each in found[query.skip : end]]
        body: Properties = {"value": page}
        if end < len(found):
            values = {name: given[0] for name, given in call.request.query.items()}
            text = urllib.parse.urlencode(values | {"$skip": str(end)}, safe="$")
            body["@odata.nextLink"] = self.gateway.address(
                f"https://{HOST}{call.request.path}?{text}"
            )
        return self._json(200, body, call.request.path.split("/")[-1])

    def _object(self, answer: Properties, query: Query, kind: str) -> Response:
        return self._json(200, selected(answer, query), f"{kind}/$entity")

    def _json(self, status: int, answer: Properties, context: str) -> Response:
        headers = {"request-id": str(uuid.uuid4()), "Preference-Applied": 'IdType="ImmutableId"'}
        return Response(
            status, {"@odata.context": f"{ROOT}/$metadata#{context}", **answer}, headers
        )


Handler = Callable[[FakeGraph, Call], Response]
ON_EVENTS: dict[str, Handler] = {
    "GET": FakeGraph._get_event,
    "PATCH": FakeGraph._patch_event,
    "DELETE": FakeGraph._delete_event,
}
HANDLERS: dict[tuple[str, str], Handler] = {
    ("GET", "/me"): FakeGraph._get_me,
    ("GET", "/me/calendars"): FakeGraph._list_calendars,
    ("GET", "/me/calendars/{calendar-id}"): FakeGraph._get_calendar,
    ("GET", "/me/calendars/{calendar-id}/events"): FakeGraph._list_events,
    ("POST", "/me/calendars/{calendar-id}/events"): FakeGraph._post_event,
    ("GET", "/me/calendars/{calendar-id}/calendarView"): FakeGraph._view,
    ("GET", "/me/calendars/{calendar-id}/calendarView/delta"): FakeGraph._delta,
    ("POST", "/subscriptions"): FakeGraph._create_subscription,
    ("GET", "/subscriptions"): FakeGraph._list_subscriptions,
    ("GET", "/subscriptions/{subscription-id}"): FakeGraph._get_subscription,
    ("PATCH", "/subscriptions/{subscription-id}"): FakeGraph._patch_subscription,
    ("DELETE", "/subscriptions/{subscription-id}"): FakeGraph._delete_subscription,
    ("POST", "/subscriptions/{subscription-id}/reauthorize"): FakeGraph._reauthorize,
    **{
        (method, template): handler
        for template in ("/me/events/{event-id}", "/me/calendars/{calendar-id}/events/{event-id}")
        for method, handler in ON_EVENTS.items()
    },
}
SHAKING_HANDS = (FakeGraph._create_subscription, FakeGraph._patch_subscription)


def check_scope(method: str, template: str, grant: Grant) -> None:
    if template == "/me":
        if "User.Read" not in grant.scopes:
            message = "Insufficient privileges to complete the operation."
            raise GraphError(403, "Authorization_RequestDenied", message)
        return
    is_read = method == "GET" or template.startswith("/subscriptions")
    if not set(grant.scopes) & (READ_SCOPES if is_read else WRITE_SCOPES):
        raise access_denied()


def access_denied() -> GraphError:
    return GraphError(
        403, "ErrorAccessDenied", "Access is denied. Check credentials and try again."
    )


def selected(answer: Properties, query: Query) -> Properties:
    """Return what $select asks for; id and annotations come anyway."""
    if not query.select:
        return answer
    return {
        name: value
        for name, value in answer.items()
        if name in query.select or name == "id" or name.startswith("@")
    }


def _items_of(mailbox: Mailbox, folder: Folder) -> list[Item]:
    return [
        item
        for item in mailbox.items.values()
        if item.folder_id == folder.id and not item.is_deleted
    ]


def _has_property(item: Item, name: str, value: str) -> bool:
    """Names are case-sensitive, values are not
    (https://learn.microsoft.com/graph/api/singlevaluelegacyextendedproperty-get)."""
    return any(
        each["id"] == name and each["value"].lower() == value.lower()
        for each in item.properties.get("singleValueExtendedProperties") or []
    )


def _uuid(text: str) -> uuid.UUID:
    return uuid.uuid5(uuid.NAMESPACE_URL, text)
