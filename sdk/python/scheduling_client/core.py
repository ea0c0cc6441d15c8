"""What both clients share: how requests are written, answers read, and attempts repeated."""

from __future__ import annotations

import json
import random
import re
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote

from scheduling_client.errors import ConnectionFailed, UnexpectedAnswer, refusal
from scheduling_client.model import as_body, as_query
from scheduling_client.version import VERSION

FIRST_WAIT = 0.5  # seconds, doubled with each attempt
LONGEST_WAIT = 8.0
# The server did not carry the request out, or can't tell: the same request may be sent again.
REPEATED_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
REPEATED_CODES = frozenset({"idempotency_in_progress"})
WITH_BODY = frozenset({200, 201})  # if it is empty, the body was lost
WITH_KEY = frozenset({"POST", "PUT", "PATCH"})


@dataclass(frozen=True, kw_only=True)
class Retries:
    """How often requests are repeated: attempts in all, and seconds from the first to the last.

    An answer that asks for a longer pause than is left is raised at once.
    """

    attempts: int = 5
    seconds: float = 60.0


RETRIES = Retries()


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request. `key`: its Idempotency-Key. It is sent again only if that is harmless."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    key: str | None = None
    is_repeatable: bool = True


class Answer(NamedTuple):
    """`body` is JSON, or None where there is none."""

    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def data(self) -> Any:
        return self.body["data"]


def call(
    method: str,
    path: str,
    *,
    query: Mapping[str, Any] | None = None,
    body: Mapping[str, Any] | None = None,
    key: str | None = None,
    is_search: bool = False,
    takes_key: bool = True,
    headers: Mapping[str, str] | None = None,
) -> Call:
    """Write a request.

    body: keys with values of Python, which are sent as JSON. key: the Idempotency-Key; without one
    a write gets a new one. is_search: the POST changes nothing. takes_key: False where the service
    refuses an Idempotency-Key; such a request is sent once.
    """
    path, _, parameters = path.partition("?")
    is_write = method in WITH_KEY and not is_search
    key = (key or str(uuid.uuid4())) if is_write and takes_key else None
    content = None if body is None else json.dumps(as_body(body), ensure_ascii=False).encode()
    named = {"Idempotency-Key": key} if key else {}
    named |= {"Content-Type": "application/json"} if content is not None else {}
    return Call(
        method=method,
        path=path,
        query=dict(parse_qsl(parameters, keep_blank_values=True)) | as_query(query or {}),
        content=content,
        headers=named | dict(headers or {}),
        key=key,
        is_repeatable=not is_write or key is not None,
    )


def part(value: object) -> str:
    """A value as one part of a path. Raises ValueError for one that leads to another path."""
    if value in ("", ".", "..", None):
        raise ValueError(f"{value!r} is no id.")
    return quote(str(value), safe="")


def base_url(url: str) -> str:
    """`https://booking.example.com`, also from an address with `/v2`. Raises ValueError."""
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"The address of the service begins with https:// or http://: {url!r}")
    return url.rstrip("/").removesuffix("/v2")


def common_headers(
    *, key: str | None, app: str | None, timezone: str | None, strict: bool
) -> dict[str, str]:
    """Raises ValueError for a key that no header takes: httpx would show it in its error."""
    if key and not re.fullmatch("[!-~]+", key):
        raise ValueError("The key has a character that no key has, such as a line break.")
    headers = {"Accept": "application/json", "User-Agent": f"scheduling-client/{VERSION} (Python)"}
    headers |= {"Authorization": f"Bearer {key}"} if key else {}
    headers |= {"Service-App": app} if app else {}
    headers |= {"Service-Timezone": timezone} if timezone else {}
    return headers | ({"Prefer": "handling=strict"} if strict else {})


class Attempts:
    """The attempts of one call: after each, `wait_after...` says how many seconds to wait for the
    next. None: there is none, and `read` or `failure` has the result."""

    def __init__(
        self, call: Call, retries: Retries, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._call = call
        self._retries = retries
        self._now = now
        self._end = now() + retries.seconds
        self._made = 0
        self._was_lost = False  # an attempt without an answer may have taken effect

    def wait_after_answer(
        self, status: int, headers: Mapping[str, str], content: bytes
    ) -> float | None:
        if status < 400 or not (
            status in REPEATED_STATUSES or read_json(content).get("code") in REPEATED_CODES
        ):
            return None
        self._was_lost = self._was_lost or status >= 500
        return self._wait(retry_after(headers) or 0.0)

    def wait_after_failure(self) -> float | None:
        self._was_lost = True
        return self._wait(0.0)

    def _wait(self, at_least: float) -> float | None:
        self._made += 1
        if not self._call.is_repeatable or self._made >= self._retries.attempts:
            return None
        backoff = min(FIRST_WAIT * 2 ** (self._made - 1), LONGEST_WAIT)
        wait = max(at_least, backoff * random.uniform(0.5, 1.0))
        return wait if self._now() + wait <= self._end else None

    def read(self, status: int, headers: Mapping[str, str], content: bytes) -> Answer:
        """Return the answer. Raises Refused, UnexpectedAnswer."""
        if status < 300 or status == 304:
            return Answer(status, headers, self._read_body(status, content))
        if status < 400:
            place = headers.get("Location", "another address")
            raise refusal(status, {"error": f"The service redirects to {place}."})
        if status == 404 and self._call.method == "DELETE" and self._was_lost:
            return Answer(204, headers, None)  # an earlier attempt has deleted it
        raise refusal(status, read_json(content), retry_after=retry_after(headers))

    def _read_body(self, status: int, content: bytes) -> Any:
        if not content and (status not in WITH_BODY or self._call.method == "HEAD"):
            return None
        try:
            return json.loads(content)
        except ValueError:
            text = f"{self._call.method} {self._call.path}: the answer is no JSON"
            raise UnexpectedAnswer(text, status, self._call.key) from None

    def failure(self, error: Exception) -> ConnectionFailed:
        return ConnectionFailed(
            f"{self._call.method} {self._call.path}: no answer ({error!r})", self._call.key
        )


def read_json(content: bytes) -> dict[str, Any]:
    """An error's body; one that is no JSON, as a proxy's, is {}."""
    try:
        body = json.loads(content)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of Retry-After, which is a number or a date of HTTP; None: neither."""
    text = headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdecimal():
        return float(text)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(0.0, (at - datetime.now(UTC)).total_seconds())
