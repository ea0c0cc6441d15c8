"""One call to a provider: credentials, time limit, and errors.

The password is sent to the origin (scheme, host and port) of the user's address, and to the same
host over https. During discovery, other hosts get it if both answers travel over https: large
providers keep each user's calendars on a separate host. A server that redirects over https could
keep the password anyway; a redirect to plain http could come from anyone on the network. Every
address passes the SSRF check.
"""

import base64
import time
from collections.abc import Callable, Mapping

from django.conf import settings

from common.messages import Message
from common.net import safe_http
from common.net.safe_http import FetchResult
from external_calendars.providers import webdav_xml
from external_calendars.providers.base import CalendarAccess, ProviderError
from external_calendars.providers.urls import join_url, origin_of
from external_calendars.providers.webdav_xml import Multistatus

USER_AGENT = f"scheduling-calendars/{settings.VERSION}"
MAX_REDIRECTS = 5
REDIRECTS = (301, 302, 303, 307, 308)
ANSWER_BYTES = 20 << 20  # 60,000 objects with their etags, or a feed with as many events
# Their standard texts are complete: no detail is added.
ERROR_CODES = {"unauthorized", "no_write_access", "not_a_calendar", "rate_limited"}
FAULTS = {"refused": "address_refused", "failed": "unreachable", "too_large": "too_large"}


class HttpSession:
    """Sends requests for one user until the deadline. Raises ProviderError."""

    def __init__(self, access: CalendarAccess, deadline: float) -> None:
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
    ) -> FetchResult:
        """Return the answer with any status; the body is complete for statuses below 400."""
        left = self.ends - time.monotonic()
        if left <= 0:
            raise ProviderError("unreachable", detail=safe_http.TOO_LATE)
        answer = safe_http.fetch_body(
            url,
            method=method,
            headers={"User-Agent": USER_AGENT, **self.authorization_headers(url), **headers},
            body=body,
            deadline=left,
            most_bytes=most_bytes,
        )
        if answer.fault and (answer.status is None or answer.status < 300):
            raise ProviderError(FAULTS[answer.fault], detail=answer.error, status=answer.status)
        return answer

    def follow(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] = {},
        body: bytes = b"",
        resolve: Callable[[str, str], str] | None = None,
    ) -> tuple[str, FetchResult]:
        """Like `ask`, but follow at most MAX_REDIRECTS redirects; also return the final URL.

        `resolve`: `resolve_link`, or the stricter `resolve_link_with_password`.
        """
        resolve = resolve or self.resolve_link
        for _ in range(MAX_REDIRECTS + 1):
            answer = self.ask(method, url, headers=headers, body=body)
            if answer.status not in REDIRECTS or "Location" not in answer.headers:
                return url, answer
            url = resolve(url, answer.headers["Location"])
        raise ProviderError("bad_answer", detail=Message("The server redirects too often."))

    def resolve_link(self, url: str, link: str) -> str:
        """Return the URL of a link in an answer from `url`; another host gets no password."""
        target = join_url(url, link)
        base, origin = origin_of(url), origin_of(target)
        if base in self.trusted and origin[0] == "https" and origin[1] == base[1]:
            self.trusted.add(origin)
        return target

    def resolve_link_with_password(self, url: str, link: str) -> str:
        """Like `resolve_link`, but https hosts get the password; ProviderError for others."""
        target = self.resolve_link(url, link)
        base, origin = origin_of(url), origin_of(target)
        if base in self.trusted and base[0] == origin[0] == "https":
            self.trusted.add(origin)
        if self.access.username and origin not in self.trusted:
            detail = Message("The server redirects to a non-HTTPS address.")
            raise ProviderError("address_refused", detail=detail)
        return target

    def authorization_headers(self, url: str) -> dict[str, str]:
        if not self.access.username or origin_of(url) not in self.trusted:
            return {}
        pair = f"{self.access.username}:{self.access.password}".encode()
        return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}


def provider_error(answer: FetchResult, *, denied: str = "unauthorized") -> ProviderError:
    """Return the error for an unexpected answer.

    `denied`: the code for a 403, which may be about the password or about this request only.
    """
    status = answer.status or 0
    condition = webdav_xml.failed_condition(answer.body)
    answered = f"{status} ({condition})" if condition else status
    detail = Message("The server returned %(status)s.", status=answered)
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
    shown_detail = "" if code in ERROR_CODES else detail
    return ProviderError(code, detail=shown_detail, status=status, retry_after=answer.retry_after)


def require_multistatus(answer: FetchResult) -> Multistatus:
    """Return the parsed answer, which must be a multistatus. Raises ProviderError."""
    if answer.status != 207:
        raise provider_error(answer)
    try:
        return webdav_xml.read_multistatus(answer.body)
    except webdav_xml.UnreadableXml:
        raise ProviderError("bad_answer", status=207) from None
