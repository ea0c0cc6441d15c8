"""The log line and the trace of an attempt to send a delivery."""

import logging
from collections.abc import Callable

from common.observability.observe import observe_attempt
from notifications.models import Delivery
from notifications.outbox.results import SendResult

logger = logging.getLogger(__name__)


def send_and_log(row: Delivery, send: Callable[[], SendResult]) -> SendResult:
    """Return the result of the attempt; a bug in it is a failed attempt.

    The log lines contain the id of the request that caused the delivery, and the span belongs to
    that request's trace. Runs in a thread without database access.
    """
    fields = {"delivery": row.id, "type": row.type, "app": row.app_id}
    if row.request_id:
        fields["request_id"] = row.request_id
    with observe_attempt(row.type, row.trace_parent, **fields) as span:
        try:
            result = send()
        except Exception as error:
            logger.exception("delivery %s can't be sent", row.id)
            result = SendResult(ok=False, error=f"Internal error ({type(error).__name__}).")
        if span:
            span.end(ok=result.ok, status=result.response_code)
        logger.info(
            "attempt",
            extra={
                "fields": {
                    "ok": result.ok,
                    "status": result.response_code or "",
                    "ms": round(result.seconds * 1000, 1),
                    "error": result.error,
                }
            },
        )
    return result
