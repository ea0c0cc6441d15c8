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
from scheduling_client.models import Booking, BookingCall, CalendarCall, ObjectCall

TOLERANCE = 300.0
PREFIX = "whsec_"


@dataclass(frozen=True)
class WebhookCall:
    """A call whose signature is right.

    id: the same in each attempt; ignore calls whose id you know. kind: such as `booking.confirmed`.
    sent_at: the time of this attempt. cursor: a place in the list of changes; None for an event
    notification. After the cursor of a call about a booking, `changes.follow(cursor)` begins with
    its change, or earlier; after that of another call, with later changes. object: what has
    changed, or the booking of an event notification; None in the format `thin`. body: the JSON as
    it came.

    A call with the method GET has no body: `body` is {}, `object` and `cursor` are None, and only
    the id and the time are signed.
    """

    id: str
    kind: str
    sent_at: datetime
    cursor: str | None
    object: BookingCall | Booking | CalendarCall | ObjectCall | None
    body: Mapping[str, Any]


def verify(
    body: bytes,
    headers: Mapping[str, str],
    secrets: str | Sequence[str],
    *,
    tolerance: float = TOLERANCE,
) -> WebhookCall:
    """Return the call. Raises InvalidSignature.

    body: as it was received, before any parsing; b"" for a GET. headers: names in any case.
    secrets: the webhook's `whsec_...`, or several while a new one is brought into use; one valid
    signature is enough. tolerance: seconds that the call may be older or younger than this
    machine's clock.
    """
    named = {name.lower(): value for name, value in headers.items()}
    try:
        id_, stamp, given = (named[f"webhook-{name}"] for name in ("id", "timestamp", "signature"))
        at = int(stamp)
    except (KeyError, ValueError):
        raise InvalidSignature("The headers of a signed call are missing.") from None
    if abs(int(time.time()) - at) > tolerance:  # a float can overflow
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
    return read_call(id_, at, named.get("service-event", ""), json.loads(body or b"{}"))


def sign(content: bytes, secret: str) -> str:
    """`v1,...` of Standard Webhooks. Raises ValueError for what is no secret."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        raise ValueError("A webhook's secret is whsec_ and base64.") from None
    if not key:
        raise ValueError("A webhook's secret is empty.")
    return "v1," + base64.b64encode(hmac.digest(key, content, "sha256")).decode()


def read_call(id_: str, at: int, header: str, body: Any) -> WebhookCall:
    """The body is an object, or one around it (`standard`), or only names it (`thin`). header: the
    kind of a call whose body does not tell it; unlike the body, it is not signed.
    """
    is_standard = {"type", "timestamp", "data"} <= body.keys()
    content = body["data"] if is_standard else body
    kind = body["type"] if is_standard else body.get("kind") or body.get("change", {}).get("kind")
    return WebhookCall(
        id=id_,
        kind=kind or header,
        sent_at=datetime.fromtimestamp(at, UTC),
        cursor=content.get("cursor"),
        object=read_object(content),
        body=body,
    )


def read_object(
    content: Mapping[str, Any],
) -> BookingCall | Booking | CalendarCall | ObjectCall | None:
    if "calendar" in content and "problem" in content:
        return CalendarCall(content)
    if "object_id" in content:
        return ObjectCall(content)
    if "graph" not in content:
        return None
    return BookingCall(content) if "change" in content else Booking(content)
