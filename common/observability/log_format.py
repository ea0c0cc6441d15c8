"""The one format of all log lines: of web, workers, beat, commands, gunicorn and Celery.

`LOG_FORMAT=plain` writes `time level logger message key=value ...`, `LOG_FORMAT=json` one JSON
object per line. Every line has the fields of its context (`log_fields`: request id, app, task,
delivery) and its own (`logger.info("request", extra={"fields": {"status": 200}})`).

Imports nothing of Django: gunicorn.conf.py and the settings read it.
"""

import json
import logging
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import orjson

FORMATS = ("plain", "json")
PLAIN = "%(asctime)s %(levelname)s %(name)s %(message)s"
BARE_VALUE = re.compile(r"[^\s\"=\\\x00-\x1f\x7f-\x9f\u2028\u2029]+")

_fields: ContextVar[dict[str, Any] | None] = ContextVar("log_fields", default=None)


# --- The fields of the context --------------------------------------------------------------------
@contextmanager
def log_fields(**fields: Any) -> Iterator[dict[str, Any]]:
    """Add the fields to all log lines of the block, in this thread."""
    token = _fields.set({**(_fields.get() or {}), **fields})
    try:
        yield _fields.get() or {}
    finally:
        _fields.reset(token)


def add_log_fields(**fields: Any) -> None:
    """Add fields to the rest of the innermost block; without a block nothing is added."""
    current = _fields.get()
    if current is not None:
        current.update(fields)


def start_task_fields(**fields: Any) -> None:
    """Begin a block that `end_task_fields` ends: Celery tells both by signals."""
    _fields.set(fields)


def end_task_fields() -> None:
    _fields.set(None)


def current_log_fields() -> Mapping[str, Any]:
    return _fields.get() or {}


def current_request_id() -> str:
    """Return the id of the request that this thread serves; "" outside of requests."""
    return current_log_fields().get("request_id", "")


# --- Formatters -----------------------------------------------------------------------------------
def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    return {**current_log_fields(), **getattr(record, "fields", {})}


class PlainFormatter(logging.Formatter):
    """`... INFO access request method=GET status=200 ms=3.1 request_id=r1`."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        pairs = (f" {name}={_quoted(value)}" for name, value in fields_of(record).items())
        return super().formatMessage(record) + "".join(pairs)


def _quoted(value: object) -> str:
    """Return the value on one line; in JSON's quotes unless it is a plain word."""
    text = str(value)
    return text if BARE_VALUE.fullmatch(text) else json.dumps(text)


class JsonFormatter(logging.Formatter):
    """`{"time": "2026-12-31T23:30:00.123Z", "level": "INFO", "logger": "access", ...}`."""

    def format(self, record: logging.LogRecord) -> str:
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = fields_of(record) | {
            "time": f"{seconds}.{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "process": record.process,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        try:
            return orjson.dumps(line, default=str).decode()
        except TypeError:  # a text with half a character, such as that of an error
            return json.dumps(line, default=str)


def logging_settings(level: str, log_format: str) -> dict[str, Any]:
    """Return the dictionary for logging.config: one handler, on standard error, for all loggers."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "plain": {"()": f"{__name__}.PlainFormatter", "format": PLAIN},
            "json": {"()": f"{__name__}.JsonFormatter"},
        },
        "handlers": {
            "console": {
                "class": "logging.StreamHandler",
                "stream": "ext://sys.stderr",
                "formatter": log_format,
            }
        },
        "loggers": {
            # Django would log each 4xx as a warning.
            "django.request": {"level": "ERROR"},
            # At DEBUG it logs whole URLs, some of which are secret.
            "urllib3": {"level": "INFO"},
            # Without handlers of gunicorn's own.
            "gunicorn.error": {"handlers": [], "propagate": True},
        },
        "root": {"handlers": ["console"], "level": level},
    }
