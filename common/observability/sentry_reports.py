"""What Sentry gets of an error, and nothing else: an allowlist. Imported only with SENTRY_DSN.

Each log line of the level ERROR becomes an event: the template of its message, the types and stack
frames of its exceptions, and the fields of the log line. Sentry's integrations are off: they add
bodies, queries, headers, addresses, values of variables and SQL. The text of an exception is left
out too, as PostgreSQL quotes values in it.
"""

import logging
from collections.abc import Mapping
from typing import Any, cast

import sentry_sdk
from sentry_sdk.integrations.atexit import AtexitIntegration
from sentry_sdk.integrations.excepthook import ExcepthookIntegration
from sentry_sdk.integrations.logging import LoggingIntegration
from sentry_sdk.transport import Transport
from sentry_sdk.types import Event, Hint

from common.observability.log_format import current_log_fields

KEPT = ("event_id", "timestamp", "level", "logger", "platform", "release", "environment", "sdk")
FRAME_KEYS = ("filename", "function", "module", "lineno", "in_app", "context_line")
TAGS = ("request_id", "app", "task", "task_id", "delivery", "type")


def start_sentry(dsn: str, transport: type[Transport] | None = None) -> None:
    """Send reports from now on. SENTRY_ENVIRONMENT and SENTRY_RELEASE apply."""
    sentry_sdk.init(
        dsn=dsn,
        transport=transport,
        default_integrations=False,
        auto_enabling_integrations=False,
        integrations=[
            LoggingIntegration(level=None, event_level=logging.ERROR),
            ExcepthookIntegration(),
            AtexitIntegration(callback=_end_quietly),
        ],
        include_local_variables=False,
        max_breadcrumbs=0,
        max_request_body_size="never",
        server_name="",
        before_send=remove_private_fields,
    )


def _end_quietly(pending: int, timeout: float) -> None:
    """Print nothing at the end of a process."""


def remove_private_fields(event: Event, hint: Hint) -> Event | None:
    """Return a new event of the parts that contain nothing personal.

    None for Django's line about each 5xx response: its bug was reported already, or it is a 503.
    """
    if event.get("logger") == "django.request" and "exception" not in event:
        return None
    given = cast(Mapping[str, Any], event)
    kept: dict[str, Any] = {name: given[name] for name in KEPT if name in given}
    fields = current_log_fields()
    kept["tags"] = {name: str(fields[name]) for name in TAGS if name in fields}
    if template := given.get("logentry", {}).get("message"):
        kept["logentry"] = {"message": template}
    if "exception" in given:
        kept["exception"] = {"values": [_exception(one) for one in given["exception"]["values"]]}
    return cast(Event, kept)


def _exception(value: Mapping[str, Any]) -> dict[str, Any]:
    frames = (value.get("stacktrace") or {}).get("frames", [])
    return {
        "type": value.get("type"),
        "module": value.get("module"),
        "stacktrace": {
            "frames": [{name: frame.get(name) for name in FRAME_KEYS} for frame in frames]
        },
    }
