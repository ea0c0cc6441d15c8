"""One call to a provider: whom it speaks for, how much time it has left, and what a bad answer is.

Where the password goes: to the origin (scheme, host and port) of the address that a person gave,
and to the same host by https. While a calendar is being found, a server may also lead on to others,
as large ones do that keep each user's calendars on a host of their own: they get the password too
if both answers travel over https. Whoever says so over https could keep the password anyway,
whereas anybody on the way may write a redirect into plain http. Every address is judged before it
is called, like any other.
"""

import base64
import time
from collections.abc import Callable, Mapping

from external_calendars.providers import dav
from external_calendars.providers.base import Access, Trouble
from external_calendars.providers.dav import Multistatus
from external_calendars.providers.paths import joined, origin_of
from notifications import safe_http
from notifications.safe_http import Fetched

USER_AGENT = "scheduling-calendars/1"
MOST_REDIRECTS = 5
REDIRECTS = (301, 302, 303, 307, 308)
ANSWER_BYTES = 20 << 20  # 60,000 objects with their etags, or a feed of as many events
# Their own sentence says it all.
TOLD_BY_CODE = {"unauthorized", "no_write_access", "not_a_calendar", "rate_limited"}
FAULTS = {"refused": "address_refused", "failed": "unreachable", "too_large": "too_large"}


class Visit:
    """Asks in the name of one person, until its time is over. Raises Trouble."""

    def __init__(self, access: Access, deadline: float) -> None:
        self.access = access
        self.ends = time.monotonic() + deadline
        self.trusted = {origin_of(access.address)}

    def ask(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] = {},
        body: bytes = b"",
        most_bytes: int = ANSWER_BYTES,
    ) -> Fetched:
        """The answer, whatever its status; for those below 400 with all of its body."""
        left = self.ends - time.monotonic()
        if left <= 0:
            raise Trouble("unreachable", detail=safe_http.TOO_LATE)
        answer = safe_http.fetch(
            url,
            method=method,
            headers={"User-Agent": USER_AGENT, **self.signature(url), **headers},
            body=body,
            deadline=left,
            most_bytes=most_bytes,
        )
        if answer.fault and (answer.status is None or answer.status < 300):
            raise Trouble(FAULTS[answer.fault], detail=answer.error, status=answer.status)
        return answer

    def follow(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] = {},
        body: bytes = b"",
        lead: Callable[[str, str], str] | None = None,
    ) -> tuple[str, Fetched]:
        """Like `ask`, along at most MOST_REDIRECTS redirects; also returns where they led. `lead`:
        `led_on`, or the stricter `led_on_signed`."""
        lead = lead or self.led_on
        for _ in range(MOST_REDIRECTS + 1):
            answer = self.ask(method, url, headers=headers, body=body)
            if answer.status not in REDIRECTS or "Location" not in answer.headers:
                return url, answer
            url = lead(url, answer.headers["Location"])
        raise Trouble("bad_answer", detail="The server redirects again and again.")

    def led_on(self, url: str, link: str) -> str:
        """Where a link in an answer from `url` leads; without the password, if to another host."""
        there = joined(url, link)
        here, origin = origin_of(url), origin_of(there)
        if here in self.trusted and origin[0] == "https" and origin[1] == here[1]:
            self.trusted.add(origin)
        return there

    def led_on_signed(self, url: str, link: str) -> str:
        """Like `led_on`, with the password to other hosts too; raises Trouble where it may not go,
        which is where the way ends."""
        there = self.led_on(url, link)
        here, origin = origin_of(url), origin_of(there)
        if here in self.trusted and here[0] == origin[0] == "https":
            self.trusted.add(origin)
        if self.access.username and origin not in self.trusted:
            detail = "The server leads to another one, and not by https."
            raise Trouble("address_refused", detail=detail)
        return there

    def signature(self, url: str) -> dict[str, str]:
        if not self.access.username or origin_of(url) not in self.trusted:
            return {}
        pair = f"{self.access.username}:{self.access.password}".encode()
        return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}


def refusal(answer: Fetched, *, denied: str = "unauthorized") -> Trouble:
    """What an answer that is not the one that was asked for means.

    `denied`: what a 403 is called, which is about the password or about this one deed.
    """
    status = answer.status or 0
    condition = dav.condition_of(answer.body)
    detail = f"The server answered with {status}" + (f" ({condition})." if condition else ".")
    if status == 401:
        code = "unauthorized"
    elif status == 403:
        code = denied
    elif status in (404, 410):
        code = "not_a_calendar"
    elif status == 429 or (status == 503 and answer.retry_after is not None):
        code = "rate_limited"
    elif status < 400:
        code = "bad_answer"
    else:
        code = "server_error"
    told = "" if code in TOLD_BY_CODE else detail
    return Trouble(code, detail=told, status=status, retry_after=answer.retry_after)


def multistatus(answer: Fetched) -> Multistatus:
    """Of an answer that has to be one. Raises Trouble."""
    if answer.status != 207:
        raise refusal(answer)
    try:
        return dav.read_multistatus(answer.body)
    except dav.Unreadable:
        raise Trouble("bad_answer", status=207) from None
