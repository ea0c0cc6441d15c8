"""Push channels: events.watch, channels.stop and the messages to the service."""

import hashlib
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

from tests.external_calendars.fakes.google.errors import ApiError
from tests.external_calendars.fakes.notifications import (
    Notification,
    NotificationSender,
    is_loopback,
)
from tests.external_calendars.fakes.server import Clock, Violation

DEFAULT_SECONDS = 604_800
MAX_TOKEN = 256


@dataclass
class Channel:
    """One push channel of a calendar. messages: sent so far, also those that were lost."""

    id: str
    calendar_id: str
    account: str
    client_id: str
    address: str
    token: str
    expires_at: datetime
    resource_id: str
    resource_uri: str
    is_stopped: bool = False
    messages: int = 0

    def is_live(self, now: datetime) -> bool:
        return not self.is_stopped and now < self.expires_at


class Channels:
    """most_seconds: how long a channel lives at most, whatever the client asks for."""

    def __init__(self, clock: Clock, sender: NotificationSender) -> None:
        self.clock, self.sender = clock, sender
        self.all: list[Channel] = []
        self.most_seconds = DEFAULT_SECONDS

    def live(self, calendar_id: str = "") -> list[Channel]:
        """Return the channels that get messages now, of one calendar or of all."""
        now = self.clock.now()
        return [
            channel
            for channel in self.all
            if channel.is_live(now) and calendar_id in ("", channel.calendar_id)
        ]

    def watch(
        self, calendar_id: str, account: str, client_id: str, body: Mapping[str, Any]
    ) -> dict[str, str]:
        """Open a channel and send its first message. Raises ApiError or Violation."""
        for name in ("id", "type", "address"):
            if not body.get(name):
                raise ApiError("required", f"Missing {name}.")
        if body["type"] not in ("web_hook", "webhook"):
            raise Violation(f"a channel has no type {body['type']}.")
        if unknown := body.keys() - {"id", "type", "address", "token", "params", "expiration"}:
            raise Violation(f"the client does not set {sorted(unknown)} of a channel.")
        if unknown := body.get("params", {}).keys() - {"ttl"}:
            raise Violation(f"a channel has no parameters {sorted(unknown)}.")
        if len(body["id"]) > 64 or len(body.get("token", "")) > MAX_TOKEN:
            raise ApiError("invalid", "Too long a channel id or token.")
        if any(channel.id == body["id"] for channel in self.all):
            raise ApiError("channelIdNotUnique", f"Channel id {body['id']} not unique")
        check_address(body["address"])
        now = self.clock.now()
        latest = now + timedelta(seconds=self.most_seconds)
        asked = now + timedelta(seconds=int(body.get("params", {}).get("ttl", DEFAULT_SECONDS)))
        if "expiration" in body:
            asked = datetime.fromtimestamp(int(body["expiration"]) / 1000, UTC)
        if asked <= now:
            raise ApiError("invalid", "Invalid expiration.")
        resource = hashlib.sha256(f"{account} {calendar_id}".encode()).hexdigest()[:27]
        channel = Channel(
            id=body["id"],
            calendar_id=calendar_id,
            account=account,
            client_id=client_id,
            address=body["address"],
            token=body.get("token", ""),
            expires_at=min(asked, latest),
            resource_id=resource,
            resource_uri=(
                "https://www.googleapis.com/calendar/v3/calendars/"
                f"{urllib.parse.quote(calendar_id)}/events?alt=json"
            ),
        )
        self.all.append(channel)
        self._send(channel, "sync")
        answer = {
            "kind": "api#channel",
            "id": channel.id,
            "resourceId": channel.resource_id,
            "resourceUri": channel.resource_uri,
            "expiration": str(int(channel.expires_at.timestamp() * 1000)),
        }
        return answer | ({"token": channel.token} if channel.token else {})

    def stop(self, account: str, client_id: str, body: Mapping[str, Any]) -> None:
        """End a channel of this account and client. Raises ApiError."""
        for name in ("id", "resourceId"):
            if not body.get(name):
                raise ApiError("required", f"Missing {name}.")
        for channel in self.live():
            if (channel.id, channel.resource_id) == (body["id"], body["resourceId"]) and (
                channel.account,
                channel.client_id,
            ) == (account, client_id):
                channel.is_stopped = True
                return
        raise ApiError("notFound", f"Channel '{body['id']}' not found for project '0'")

    def tell(self, calendar_id: str) -> None:
        """Send a message about a change of the calendar."""
        for channel in self.live(calendar_id):
            self._send(channel, "exists")

    def message(self, channel: Channel, state: str = "exists") -> Notification:
        """Return the next message of a channel, for a test to change and deliver."""
        channel.messages += 1
        headers = {
            "Accept": "*/*",
            "Content-Type": "application/json; utf-8",
            "User-Agent": "APIs-Google; (+https://developers.google.com/webmasters/APIs-Google.html)",
            "X-Goog-Channel-ID": channel.id,
            "X-Goog-Channel-Expiration": format_datetime(channel.expires_at, usegmt=True),
            "X-Goog-Resource-State": state,
            "X-Goog-Message-Number": str(channel.messages),
            "X-Goog-Resource-ID": channel.resource_id,
            "X-Goog-Resource-URI": channel.resource_uri,
        }
        headers |= {"X-Goog-Channel-Token": channel.token} if channel.token else {}
        return Notification(channel.address, headers)

    def _send(self, channel: Channel, state: str) -> None:
        self.sender.send(self.message(channel, state))


def check_address(address: str) -> None:
    """Raises ApiError unless it is https, or http of this machine."""
    url = urllib.parse.urlsplit(address)
    host = url.hostname or ""
    if url.scheme == "https" or (url.scheme == "http" and is_loopback(host)):
        return
    raise ApiError("push.webhookUrlNotHttps", f"WebHook callback must be HTTPS: {address}")
