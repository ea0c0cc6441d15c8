"""One call to a JSON API with an access token: time limit, gateway, and errors.

The token goes to the provider's own host only: links in answers to other hosts are refused.
"""

import json
import time
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from django.conf import settings

from common.messages import Message
from common.net import safe_http
from common.net.safe_http import FetchResult
from external_calendars.providers.base import CalendarAccess, ProviderError
from external_calendars.providers.http_session import ANSWER_BYTES, FAULTS, USER_AGENT

Json = dict[str, Any]


class JsonAnswer(NamedTuple):
    """An answer with any status. `data`: {} if the body is no JSON object."""

    status: int
    data: Json
    retry_after: int | None


def provider_url(url: str) -> str:
    """Return the URL to call: the provider's own, or at CALENDAR_PROVIDER_GATEWAY.

    `https://host/path` is `<gateway>/host/path` there.
    """
    gateway = settings.CALENDAR_PROVIDER_GATEWAY
    return url.replace("https://", f"{gateway}/", 1) if gateway else url


def read_answer(answer: FetchResult) -> JsonAnswer:
    """Return the answer. Raises ProviderError without a complete one."""
    if answer.fault and (answer.status is None or answer.status < 300):
        raise ProviderError(FAULTS[answer.fault], detail=answer.error, status=answer.status)
    try:
        data = json.loads(answer.body) if answer.body else {}
    except ValueError:
        data = None
    if not isinstance(data, dict):
        if answer.status is not None and answer.status < 300:
            raise ProviderError("bad_answer", status=answer.status)
        data = {}
    return JsonAnswer(answer.status or 0, data, answer.retry_after)


class JsonSession:
    """Sends requests with the token of `access` to one host until the deadline."""

    def __init__(self, access: CalendarAccess, base_url: str, deadline: float) -> None:
        self.access, self.base_url = access, provider_url(base_url)
        self.ends = time.monotonic() + deadline

    def ask(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] = {},
        body: Json | None = None,
        headers: Mapping[str, str] = {},
    ) -> JsonAnswer:
        """`path`: below the base URL, or a whole URL from an answer of the same host.

        Raises ProviderError without an answer, and for a host that is not the provider's.
        """
        left = self.ends - time.monotonic()
        if left <= 0:
            raise ProviderError("unreachable", detail=safe_http.TOO_LATE)
        url = path if "://" in path else f"{self.base_url}{path}"
        if urlsplit(url)[:2] != urlsplit(self.base_url)[:2]:
            detail = Message("The server redirects to another address.")
            raise ProviderError("address_refused", detail=detail)
        if params:
            url = f"{url}?{urlencode(params, quote_via=quote)}"
        sent = {"Content-Type": "application/json"} if body is not None else {}
        return read_answer(
            safe_http.fetch_body(
                url,
                method=method,
                headers={
                    "User-Agent": USER_AGENT,
                    "Accept": "application/json",
                    "Authorization": f"Bearer {self.access.token}",
                    **sent,
                    **headers,
                },
                body=b"" if body is None else json.dumps(body).encode(),
                deadline=left,
                most_bytes=ANSWER_BYTES,
            )
        )


def post_form(url: str, form: Mapping[str, str], *, deadline: float) -> JsonAnswer:
    """Post a form to a provider without a token. Raises ProviderError without an answer."""
    return read_answer(
        safe_http.fetch_body(
            provider_url(url),
            method="POST",
            headers={
                "User-Agent": USER_AGENT,
                "Accept": "application/json",
                "Content-Type": "application/x-www-form-urlencoded",
            },
            body=urlencode(form).encode(),
            deadline=deadline,
            most_bytes=1 << 20,
        )
    )
