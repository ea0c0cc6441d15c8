"""One webhook call over the network, and its result."""

import time
from collections.abc import Sequence
from uuid import UUID

from django.conf import settings

from common.messages import Message
from common.net import safe_http
from common.observability.tracing import trace_headers
from notifications.outbox.results import SendResult
from notifications.webhooks.signing import signature_headers

CALL_DEADLINE = 15.0  # seconds, for the whole attempt


def send_call(
    delivery_id: UUID,
    event: str,
    url: str,
    method: str,
    body: str,
    expected_code: int | None,
    secrets: Sequence[str],
) -> SendResult:
    """Send one webhook call, with Standard Webhooks headers; a GET has no body."""
    content = b"" if method == "get" else body.encode()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"scheduling-webhooks/{settings.VERSION}",
        "Service-Event": event,
        **signature_headers(
            message_id=str(delivery_id), timestamp=int(time.time()), body=content, secrets=secrets
        ),
        **trace_headers(),
    }
    reply = safe_http.send_request(
        url, method=method.upper(), headers=headers, body=content, deadline=CALL_DEADLINE
    )
    return result_of_reply(reply, expected_code)


def result_of_reply(reply: safe_http.CallResult, expected_code: int | None) -> SendResult:
    """Return the result: only the expected status (default: any 2xx) is a success."""
    status = reply.status
    wanted = 200 <= (status or 0) <= 299 if expected_code is None else status == expected_code
    ok = wanted and not reply.error
    error = "" if ok else reply.error or Message("The server returned %(status)s.", status=status)
    return SendResult(
        ok=ok,
        seconds=reply.seconds,
        response_code=status,
        error=error,
        excerpt=reply.excerpt,
        retry_after=reply.retry_after,
        final=status == 410,
        server_failed=not ok and (status is None or status >= 500 or status == 429),
    )
