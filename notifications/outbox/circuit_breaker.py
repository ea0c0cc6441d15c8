"""Circuit breaker: failing or slow servers get fewer concurrent calls, so that others do not wait.

An endpoint is scheme, host and port. It has a row only while it fails or is slow.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, OuterRef

from common.net.ssrf import UrlRefused, parse_url_target
from notifications.models import Delivery, Endpoint, LaneCheck
from notifications.outbox.lanes import recheck_server

SLOW_SECONDS = 2.0
SLOW_CAP = 2
# Microsoft allows four requests at once for each mailbox; a sync and live checks take the others.
ACCOUNT_CAP = 2
OPENS_AFTER = 10  # failures in a row
FIRST_PAUSE = timedelta(minutes=1)  # doubled after each failed probe
MAX_PAUSE = timedelta(hours=1)
MAX_FAILING_SERVERS = 1000  # of an app
TOO_MANY_FAILING = f"The calls of this app go to {MAX_FAILING_SERVERS} failing servers already."


def endpoint_of(url: str) -> str:
    """Return `https://example.com:443`; "" for an invalid URL, whose call will fail."""
    try:
        scheme, host, port, _ = parse_url_target(url)
    except UrlRefused:
        return ""
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def call_cap(address: str, endpoint: Endpoint | None, now: datetime) -> int:
    """Return the cap of concurrent calls: 0 while the breaker is open, then 1 for a probe.

    An address with a path is one account at a server (`mirror_endpoint` of calendars).
    """
    if urlsplit(address).path:
        return min(ACCOUNT_CAP, _call_cap(endpoint, now))
    return _call_cap(endpoint, now)


def _call_cap(endpoint: Endpoint | None, now: datetime) -> int:
    if endpoint is None:
        return settings.DELIVERY_ENDPOINT_CAP
    if endpoint.open_until and endpoint.open_until > now:
        return 0
    if endpoint.failures >= OPENS_AFTER:
        return 1
    return min(SLOW_CAP, settings.DELIVERY_ENDPOINT_CAP)


def has_max_failing_servers(app_id: UUID) -> bool:
    """Return whether the app has open calls to MAX_FAILING_SERVERS failing servers."""
    failing = Endpoint.objects.filter(address=OuterRef("endpoint"), failures__gt=0)
    lanes = LaneCheck.objects.filter(Exists(failing), app_id=app_id, type=Delivery.WEBHOOK)
    servers = lanes.order_by("endpoint").values("endpoint").distinct()
    return servers[MAX_FAILING_SERVERS - 1 : MAX_FAILING_SERVERS].exists()


def breaker_pause(failures: int) -> timedelta | None:
    """Return for how long the breaker opens after consecutive failures; None: it stays closed."""
    if failures < OPENS_AFTER:
        return None
    doublings = min(failures - OPENS_AFTER, 10)
    return min(FIRST_PAUSE * 2**doublings, MAX_PAUSE)


def record_endpoint_results(
    address: str, results: Iterable[tuple[bool, float]], now: datetime
) -> None:
    """Count a batch of (success, seconds) of one endpoint, in order.

    Locks its row; runs inside the caller's transaction.
    """
    endpoint = _locked(address)
    for was_good, seconds in results:
        endpoint.failures = 0 if was_good else endpoint.failures + 1
        endpoint.is_slow = not was_good or seconds > SLOW_SECONDS
        if was_good:
            endpoint.open_until = None
        elif pause := breaker_pause(endpoint.failures):
            endpoint.open_until = now + pause
    if endpoint.failures or endpoint.is_slow:
        endpoint.save()
    else:
        endpoint.delete()
        recheck_server(address, now)


def _locked(address: str) -> Endpoint:
    """Lock and return the row; create it if absent, as two dispatchers may do at once."""
    Endpoint.objects.bulk_create(
        [Endpoint(address=address)],
        update_conflicts=True,
        unique_fields=["address"],
        update_fields=["is_slow"],  # every result sets it anew
    )
    return Endpoint.objects.get(address=address)
