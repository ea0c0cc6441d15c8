"""/metrics: where deliveries, bookings and the beat stand, as Prometheus reads it (text 0.0.4).

All are gauges, made of rows at the moment of the question. What has an end is counted over a
window (a day, an hour) and not since ever: retention takes rows away, and a counter that falls
reads as a restart.
"""

import hmac
import math
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import Case, CharField, Count, Exists, F, OuterRef, Q, Sum, Value, When
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema

from bookings.models import BookingTally
from external_calendars.health import max_seconds_behind, problems
from notifications.heartbeat import beat_seen_at
from notifications.lateness import oldest_late, seconds_since
from notifications.models import Attempt, Delivery, Endpoint, Webhook
from notifications.queue import LEASE
from scheduling.api.changes import oldest_transaction_age
from scheduling.api.errors import Refusal, Unavailable
from scheduling.api.sql import database_now
from scheduling.api.views import ApiView

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
# Whoever asks more often gets the same text: one question at a time goes to the database.
FRESH_SECONDS = 5.0
PATIENCE = 2.0  # seconds
# The lag is measured on so many first tries, the newest of the hour.
SAMPLE = 5000
QUANTILES = (0.5, 0.99)

Labels = Mapping[str, str]


class Gauge(NamedTuple):
    name: str
    help: str
    samples: Iterable[tuple[Labels, float]]


# --- The text -------------------------------------------------------------------------------------
def format_gauges(gauges: Iterable[Gauge]) -> str:
    """The exposition format, version 0.0.4.

    >>> format_gauges([Gauge("due", "How many.", [({"type": "email"}, 3)])]).splitlines()[2]
    'due{type="email"} 3'
    """
    lines = []
    for gauge in gauges:
        lines.append(f"# HELP {gauge.name} {_escaped(gauge.help)}")
        lines.append(f"# TYPE {gauge.name} gauge")
        lines += [f"{gauge.name}{_labels(one)} {_number(value)}" for one, value in gauge.samples]
    return "\n".join([*lines, ""])


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _labels(labels: Labels) -> str:
    pairs = [f'{name}="{_quoted(value)}"' for name, value in labels.items()]
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"')


def _number(value: float) -> str:
    return "+Inf" if math.isinf(value) else repr(round(value, 3))


# --- The figures ----------------------------------------------------------------------------------
def gauges(now: datetime) -> Iterator[Gauge]:
    yield from _waiting(now)
    yield Gauge(
        "deliveries_total",
        "Deliveries that were finished in the last 24 hours, by how they ended.",
        _finished(now),
    )
    yield Gauge("delivery_attempts", "Tries of the last hour.", _attempts(now))
    yield Gauge(
        "delivery_lag_seconds",
        "From the due time to the first try, in the last hour (its newest 5000 deliveries).",
        _lags(now),
    )
    open_breakers = Endpoint.objects.filter(open_until__gt=now).count()
    yield _single("webhook_endpoints_open", "Servers that are not called now.", open_breakers)
    disabled = Webhook.objects.filter(active=False, deleted_at=None).exclude(disabled_reason="")
    yield _single("webhooks_disabled", "Webhooks that were switched off.", disabled.count())
    yield Gauge(
        "calendars_connected",
        "Calendars kept elsewhere, by what keeps them from being in step.",
        [({"problem": problem}, count) for problem, count in problems().items()],
    )
    yield _single(
        "calendars_sync_age_seconds",
        "For how long the one that is looked at and waits longest has not been in step.",
        max_seconds_behind(now),
    )
    yield _single(
        "transaction_age_seconds",
        "Of the oldest open transaction: changes since its start are not listed yet.",
        oldest_transaction_age().total_seconds(),
    )
    yield Gauge("bookings_total", "Bookings that are not deleted.", _bookings())
    seen_at = beat_seen_at()
    age = seconds_since(seen_at, now) if seen_at else math.inf
    yield _single("beat_age_seconds", "Since the beat's last mark; +Inf: never seen.", age)


def _single(name: str, help_text: str, value: float) -> Gauge:
    return Gauge(name, help_text, [({}, value)])


def _waiting(now: datetime) -> Iterator[Gauge]:
    """Counted over the narrow index of the open ones alone, however many are due."""
    is_due = Q(next_at__lte=now)
    counts = Delivery.objects.open().order_by().values_list("type")
    found = {
        kind: (opened, due)
        for kind, opened, due in counts.annotate(opened=Count("id"), due=Count("id", filter=is_due))
    }
    opened = {kind: found.get(kind, (0, 0))[0] for kind in Delivery.TYPES}
    due = {kind: found.get(kind, (0, 0))[1] for kind in Delivery.TYPES}
    ages = {kind: seconds_since(oldest_late(kind, now), now) for kind in Delivery.TYPES}
    for name, help_text, values in (
        ("deliveries_open", "Deliveries that are still to be made.", opened),
        ("deliveries_due", "Overdue deliveries.", due),
        (
            "deliveries_oldest_due_seconds",
            "For how long the oldest has waited for a worker (not for a server that is down).",
            ages,
        ),
    ):
        yield Gauge(name, help_text, [({"type": kind}, values[kind]) for kind in Delivery.TYPES])


def _finished(now: datetime) -> Iterator[tuple[Labels, float]]:
    rows = Delivery.objects.filter(finished_at__gt=now - DAY).order_by("type", "kind", "state")
    for kind, event, state, count in rows.values_list("type", "kind", "state").annotate(
        Count("id")
    ):
        yield {"type": kind, "kind": event, "state": state}, count


def _attempts(now: datetime) -> Iterator[tuple[Labels, float]]:
    """A try ends long before its lease: what lasted as long was its worker's last."""
    result = Case(
        When(error="", then=Value("ok")),
        When(seconds__gte=LEASE.total_seconds(), then=Value("lost")),
        default=Value("failed"),
        output_field=CharField(),
    )
    rows = Attempt.objects.filter(at__gt=now - HOUR).annotate(_result=result)
    counts = rows.order_by().values_list("delivery__type", "_result").annotate(Count("id"))
    found = {(kind, result): count for kind, result, count in counts}
    for kind in sorted({*Delivery.TYPES, *(kind for kind, _ in found)}):
        for result in ("ok", "failed", "lost"):
            yield {"type": kind, "result": result}, found.get((kind, result), 0)


def _lags(now: datetime) -> Iterator[tuple[Labels, float]]:
    """Sent again by hand a delivery has a new due time, which its first try does not answer to."""
    before = Attempt.objects.filter(delivery=OuterRef("delivery"), id__lt=OuterRef("id"))
    firsts = Attempt.objects.filter(
        ~Exists(before), at__gt=now - HOUR, at__gte=F("delivery__due_at")
    )
    rows = firsts.order_by("-at").values_list("delivery__type", "at", "delivery__due_at")
    lags: dict[str, list[float]] = {}
    for kind, at, due_at in rows[:SAMPLE]:
        lags.setdefault(kind, []).append((at - due_at).total_seconds())
    for kind in sorted(lags):
        ordered = sorted(lags[kind])
        for quantile in QUANTILES:
            rank = math.ceil(quantile * len(ordered)) - 1
            yield {"type": kind, "quantile": str(quantile)}, ordered[rank]


def _bookings() -> Iterator[tuple[Labels, float]]:
    for state, count in (
        BookingTally.objects.order_by("state").values_list("state").annotate(Sum("count"))
    ):
        yield {"state": state}, count


# --- The view -------------------------------------------------------------------------------------
class TokenNeeded(Refusal):
    code = "unauthenticated"

    def __init__(self) -> None:
        super().__init__(
            "The metrics token is needed.", headers={"WWW-Authenticate": 'Bearer realm="metrics"'}
        )


class Reading:
    """The text of the last question, for a while; whoever comes meanwhile waits for it.

    Not for long: a database that is slow must not keep all threads of a web process here.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._text = ""
        self._taken: float | None = None

    def text(self) -> str:
        if not self._lock.acquire(timeout=PATIENCE):
            raise Unavailable
        try:
            if self._taken is None or time.monotonic() - self._taken >= FRESH_SECONDS:
                self._text = format_gauges(gauges(database_now()))
                self._taken = time.monotonic()
            return self._text
        finally:
            self._lock.release()


reading = Reading()

EXAMPLE = """\
# HELP deliveries_due Overdue deliveries.
# TYPE deliveries_due gauge
deliveries_due{type="email"} 0
deliveries_due{type="webhook"} 3
"""


class MetricsView(ApiView):
    public = True
    json_only = False
    tag = "service"

    @extend_schema(
        summary="Figures for Prometheus",
        description="Text format 0.0.4. Where the operator has set a token, it is needed:"
        " `Authorization: Bearer <token>`.",
        responses={
            (200, "text/plain"): OpenApiTypes.STR,
            401: OpenApiResponse(
                {"$ref": "#/components/schemas/Error401"},
                "The token is missing or wrong.",
                [
                    OpenApiExample(
                        "unauthenticated",
                        TokenNeeded().body("1f0e6a54c2b14d0f8d6f0a9c3b7e5d21"),
                    )
                ],
            ),
        },
        examples=[
            OpenApiExample(
                "its head",
                value=EXAMPLE,
                media_type="text/plain",
                response_only=True,
                status_codes=["200"],
            )
        ],
    )
    def get(self, request: Any) -> HttpResponse:
        _check_token(request.META.get("HTTP_AUTHORIZATION", ""))
        return HttpResponse(reading.text(), content_type=CONTENT_TYPE)


def _check_token(given: str) -> None:
    """Raises TokenNeeded where a token is set and another, or none, was given."""
    wanted = f"Bearer {settings.METRICS_TOKEN}".encode()
    if settings.METRICS_TOKEN and not hmac.compare_digest(
        given.encode("latin-1", "replace"), wanted
    ):
        raise TokenNeeded
