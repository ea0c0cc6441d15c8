"""Subscriptions of the fake of Microsoft Graph: handshake, notifications, lifecycle.

https://learn.microsoft.com/graph/change-notifications-delivery-webhooks and
.../change-notifications-lifecycle-events
"""

import json
import re
import urllib.parse
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.external_calendars.fakes.microsoft.events import (
    GraphError,
    Item,
    Mailbox,
    Properties,
    utc_time,
)
from tests.external_calendars.fakes.microsoft.schema import check_object
from tests.external_calendars.fakes.notifications import Notification, NotificationSender
from tests.external_calendars.fakes.server import Clock, Violation

CREATED = {
    "changeType",
    "clientState",
    "expirationDateTime",
    "latestSupportedTlsVersion",
    "lifecycleNotificationUrl",
    "notificationUrl",
    "resource",
}
REQUIRED = {"changeType", "expirationDateTime", "notificationUrl", "resource"}
CHANGED = {"expirationDateTime", "notificationUrl"}
CHANGE_TYPES = {"created", "updated", "deleted"}
RESOURCE = re.compile(r"/?me/(?:calendars/(?P<calendar>[^/]+)/)?events")
MAX_CLIENT_STATE = 128
MIN_MINUTES = 45
MAX_PER_MAILBOX = 1000
HANDSHAKE_SECONDS = 10


@dataclass
class Subscription:
    """is_paused: it must be reauthorized before notifications go on."""

    id: str
    mailbox: Mailbox
    folder_id: str
    properties: Properties
    expires_at: datetime
    client_id: str
    is_paused: bool = False
    reauthorized: int = 0

    @property
    def answer(self) -> Properties:
        return {
            "id": self.id,
            "applicationId": self.client_id,
            "creatorId": self.mailbox.id,
            "includeResourceData": None,
            "latestSupportedTlsVersion": "v1_2",
            "encryptionCertificate": None,
            "encryptionCertificateId": None,
            "notificationQueryOptions": None,
            "notificationUrlAppId": None,
            "lifecycleNotificationUrl": None,
            **self.properties,
            "expirationDateTime": utc_time(self.expires_at),
        }


@dataclass
class Subscriptions:
    """All subscriptions, and how notifications travel.

    max_minutes: how far ahead a subscription of events may end. The stored documentation says
    4,230 minutes; 10,080 is often quoted.
    """

    clock: Clock
    sender: NotificationSender = field(default_factory=NotificationSender)
    max_minutes: int = 4230
    all: dict[str, Subscription] = field(default_factory=dict)
    _batch: list[tuple[str, Properties]] | None = None

    def of(self, mailbox: Mailbox) -> list[Subscription]:
        """Return those that have not ended."""
        now = self.clock.now()
        return [
            subscription
            for subscription in list(self.all.values())
            if subscription.mailbox is mailbox and subscription.expires_at > now
        ]

    def find(self, subscription_id: str, mailbox: Mailbox) -> Subscription:
        for subscription in self.of(mailbox):
            if subscription.id == subscription_id:
                return subscription
        raise GraphError(404, "ResourceNotFound", "The object was not found.")

    # --- Requests ---------------------------------------------------------------------------------
    def create(self, mailbox: Mailbox, client_id: str, body: Any) -> Subscription:
        """Check the body, shake hands with the client's addresses, and store the subscription."""
        check_body(body, CREATED)
        if missing := sorted(REQUIRED - body.keys()):
            raise Violation(f"subscription lacks {', '.join(missing)}.")
        kinds = body["changeType"].split(",")
        if not set(kinds) <= CHANGE_TYPES:
            raise Violation(f"subscription.changeType is {body['changeType']!r}.")
        if len(body.get("clientState") or "") > MAX_CLIENT_STATE:
            raise invalid(f"The clientState is longer than {MAX_CLIENT_STATE} characters.")
        folder = self._folder_of(mailbox, body["resource"])
        expires_at = self._expiry(body["expirationDateTime"])
        if len(self.of(mailbox)) >= MAX_PER_MAILBOX:
            raise GraphError(403, "Forbidden", "The mailbox has too many subscriptions.")
        for name in ("notificationUrl", "lifecycleNotificationUrl"):
            if body.get(name):
                shake_hands(body[name])
        subscription_id = str(uuid.uuid4())
        subscription = Subscription(
            subscription_id, mailbox, folder, dict(body), expires_at, client_id
        )
        self.all[subscription_id] = subscription
        return subscription

    def change(self, subscription: Subscription, body: Any) -> None:
        check_body(body, CHANGED)
        if "notificationUrl" in body:
            shake_hands(body["notificationUrl"])
            subscription.properties["notificationUrl"] = body["notificationUrl"]
        if "expirationDateTime" in body:
            subscription.expires_at = self._expiry(body["expirationDateTime"])
        subscription.is_paused = False

    def reauthorize(self, subscription: Subscription) -> None:
        subscription.is_paused = False
        subscription.reauthorized += 1

    def _folder_of(self, mailbox: Mailbox, resource: str) -> str:
        match = RESOURCE.fullmatch(resource)
        if match is None:
            raise Violation(f"subscription.resource is {resource!r}.")
        if match["calendar"] is None:
            return mailbox.default_calendar.id
        folder_id = urllib.parse.unquote(match["calendar"])
        if folder_id not in mailbox.folders:
            raise GraphError(404, "ResourceNotFound", "The calendar was not found.")
        return folder_id

    def _expiry(self, text: str) -> datetime:
        """Return when it ends: at least 45 minutes ahead."""
        now, asked = self.clock.now(), datetime.fromisoformat(text).astimezone(UTC)
        if asked <= now:
            raise invalid("Subscription expiration must be in the future.")
        if asked > now + timedelta(minutes=self.max_minutes):
            raise invalid(
                f"Subscription expiration can only be {self.max_minutes} minutes in the future."
            )
        return max(asked, now + timedelta(minutes=MIN_MINUTES)).replace(microsecond=0)

    # --- Notifications ----------------------------------------------------------------------------
    def notify(self, mailbox: Mailbox, item: Item, kind: str) -> None:
        """Tell each subscription to this kind of change of this calendar."""
        for subscription in self.of(mailbox):
            kinds = subscription.properties["changeType"].split(",")
            is_of_calendar = subscription.folder_id == item.folder_id
            if kind in kinds and is_of_calendar and not subscription.is_paused:
                url = subscription.properties["notificationUrl"]
                self._post(url, change_notice(subscription, item, kind))

    def notify_lifecycle(self, subscription: Subscription, event: str) -> None:
        """Send reauthorizationRequired, which pauses it; subscriptionRemoved, which ends it; or
        missed. Without an address for these, nothing is sent."""
        if event == "reauthorizationRequired":
            subscription.is_paused = True
        if event == "subscriptionRemoved":
            self.all.pop(subscription.id, None)
        url = subscription.properties.get("lifecycleNotificationUrl")
        if url:
            self._post(url, common_notice(subscription) | {"lifecycleEvent": event})

    @contextmanager
    def batched(self) -> Iterator[None]:
        """Send the notices of the block together, one POST for each address."""
        self._batch = []
        try:
            yield
        finally:
            batch, self._batch = self._batch, None
            for url in dict.fromkeys(url for url, _ in batch):
                self.sender.send(post_of(url, [notice for to, notice in batch if to == url]))

    def _post(self, url: str, notice: Properties) -> None:
        if self._batch is None:
            self.sender.send(post_of(url, [notice]))
        else:
            self._batch.append((url, notice))


def invalid(message: str) -> GraphError:
    return GraphError(400, "InvalidRequest", message)


def check_body(body: Any, names: set[str]) -> None:
    check_object("subscription", body, "subscription")
    if unknown := sorted(body.keys() - names):
        raise Violation(f"subscription: {', '.join(unknown)} can't be written here.")


def shake_hands(url: str) -> None:
    """POST ?validationToken=... and expect the token as text/plain within ten seconds.

    The token has characters that a client must decode, and must not escape as HTML.
    """
    token = f"Validation: Testing client application reachability + 100% <&> {uuid.uuid4()}"
    joint = "&" if urllib.parse.urlsplit(url).query else "?"
    address = f"{url}{joint}validationToken={urllib.parse.quote(token, safe='')}"
    headers = {"Content-Type": "text/plain; charset=utf-8"}
    request = urllib.request.Request(address, b"", headers, method="POST")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=HANDSHAKE_SECONDS) as answer:
            kind = answer.headers.get_content_type()
            text = answer.read().decode()
            is_right = (answer.status, kind, text) == (200, "text/plain", token)
    except (OSError, ValueError):
        is_right = False
    if not is_right:
        raise invalid(
            "Subscription validation request failed. Notification endpoint must respond with 200 "
            "OK to validation request."
        )


def common_notice(subscription: Subscription) -> Properties:
    return {
        "subscriptionId": subscription.id,
        "subscriptionExpirationDateTime": utc_time(subscription.expires_at),
        "tenantId": subscription.mailbox.tenant_id,
        "clientState": subscription.properties.get("clientState"),
    }


def change_notice(subscription: Subscription, item: Item, kind: str) -> Properties:
    resource = f"Users/{subscription.mailbox.id}/Events/{item.id}"
    return common_notice(subscription) | {
        "changeType": kind,
        "resource": resource,
        "resourceData": {
            "@odata.type": "#Microsoft.Graph.Event",
            "@odata.id": resource,
            "@odata.etag": f'W/"{item.change_key}"',
            "id": item.id,
        },
    }


def post_of(url: str, notices: list[Properties]) -> Notification:
    headers = {"Content-Type": "application/json; charset=utf-8"}
    return Notification(url, headers, json.dumps({"value": notices}).encode())
