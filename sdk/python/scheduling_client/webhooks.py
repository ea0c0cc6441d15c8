"""Webhook calls: whether the service has signed them, and what they say."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from scheduling_client.errors import InvalidSignature
from scheduling_client.models import BookingCall, CalendarCall, ObjectCall

TOLERANCE = 300.0
PREFIX = "whsec_"


@dataclass(frozen=True)
class WebhookCall:
    """A call whose signature is right.

    id: the same in each attempt; ignore calls whose id you know. kind: such as `booking.confirmed`.
    sent_at: the time of this attempt. cursor: `changes.follow(cursor)` begins with this change, or
    earlier. object: what has changed; None in the format `thin`. body: the JSON as it came.
    """

    id: str
    kind: str
    sent_at: datetime
    cursor: str | None
    object: BookingCall | CalendarCall | ObjectCall | None
    body: Mapping[str, Any]


def verify(
    body: bytes,
    headers: Mapping[str, str],
    secrets: str | Sequence[str],
    *,
    tolerance: float = TOLERANCE,
) -> WebhookCall:
    """Return the call. Raises InvalidSignature.

    body: as it was received, before any parsing. headers: names in any case. secrets: the webhook's
    `whsec_...`, or several while a new one is brought into use; one valid signature is enough.
    tolerance: seconds that the call may be older or younger than this machine's clock.
    """
    named = {name.lower(): value for name, value in headers.items()}
    try:
        id_, stamp, given = (named[f"webhook-{name}"] for name in ("id", "timestamp", "signature"))
        at = int(stamp)
    except (KeyError, ValueError):
        raise InvalidSignature("The headers of a signed call are missing.") from None
    if abs(time.time() - at) > tolerance:
        raise InvalidSignature("The call was signed too long ago, or a clock is wrong.")
    signed = f"{id_}.{stamp}.".encode() + body
    wanted = [
        sign(signed, secret) for secret in ([secrets] if isinstance(secrets, str) else secrets)
    ]
    if not any(
        hmac.compare_digest(signature.encode(), each.encode())
        for signature in given.split()
        for each in wanted
    ):
        raise InvalidSignature("No signature of the call is made with this secret.")
    return read_call(id_, at, named.get("service-event", ""), json.loads(body))


def sign(content: bytes, secret: str) -> str:
    """`v1,...` of Standard Webhooks. Raises ValueError for what is no secret."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        raise ValueError("A webhook's secret is whsec_ and base64.") from None
    if not key:
        raise ValueError("A webhook's secret is empty.")
    return "v1," + base64.b64encode(hmac.digest(key, content, "sha256")).decode()


def read_call(id_: str, at: int, kind: str, body: Any) -> WebhookCall:
    """The body is an object, or one around it (`standard`), or only names it (`thin`)."""
    is_standard = {"type", "timestamp", "data"} <= body.keys()
    content = body["data"] if is_standard else body
    kind = kind or body.get("type" if is_standard else "kind", "")
    return WebhookCall(
        id=id_,
        kind=kind,
        sent_at=datetime.fromtimestamp(at, UTC),
        cursor=content.get("cursor"),
        object=read_object(content),
        body=body,
    )


def read_object(content: Mapping[str, Any]) -> BookingCall | CalendarCall | ObjectCall | None:
    if "calendar" in content and "problem" in content:
        return CalendarCall(content)
    if "object_id" in content:
        return ObjectCall(content)
    return BookingCall(content) if "graph" in content else None
