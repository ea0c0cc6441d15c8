"""Servers that fail or dawdle get fewer calls at once, so that they hold up nobody else.

An endpoint is scheme, host and port. A row exists only while something is wrong with it.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.conf import settings

from notifications.models import Endpoint
from scheduling.api.addresses import UrlRefused, read_target

SLOW_SECONDS = 2.0
SLOW_CAP = 2
OPENS_AFTER = 10  # failures in a row
FIRST_PAUSE = timedelta(minutes=1)  # doubled each time that a probe fails
LONGEST_PAUSE = timedelta(hours=1)


def endpoint_of(url: str) -> str:
    """`https://example.com:443`; nothing of what is no address to call: its call says so."""
    try:
        scheme, host, port, _ = read_target(url)
    except UrlRefused:
        return ""
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def cap_of(endpoint: Endpoint | None, now: datetime) -> int:
    """How many calls may be in flight to it: none while the breaker is open, then one probe."""
    if endpoint is None:
        return settings.DELIVERY_ENDPOINT_CAP
    if endpoint.open_until and endpoint.open_until > now:
        return 0
    if endpoint.failures >= OPENS_AFTER:
        return 1
    return min(SLOW_CAP, settings.DELIVERY_ENDPOINT_CAP)


def pause_after(failures: int) -> timedelta | None:
    """For how long the breaker opens after so many failures in a row; None: not at all."""
    if failures < OPENS_AFTER:
        return None
    doublings = min(failures - OPENS_AFTER, 10)
    return min(FIRST_PAUSE * 2**doublings, LONGEST_PAUSE)


def note_results(address: str, results: Iterable[tuple[bool, float]], now: datetime) -> None:
    """Count a batch of (the server did its part, seconds) of one endpoint, in their order.

    Under the lock of its row, which is taken inside the caller's transaction.
    """
    endpoint = _locked(address)
    for was_good, seconds in results:
        endpoint.failures = 0 if was_good else endpoint.failures + 1
        endpoint.is_slow = not was_good or seconds > SLOW_SECONDS
        if was_good:
            endpoint.open_until = None
        elif pause := pause_after(endpoint.failures):
            endpoint.open_until = now + pause
    if endpoint.failures or endpoint.is_slow:
        endpoint.save()
    else:
        endpoint.delete()


def _locked(address: str) -> Endpoint:
    """Its row, made where there is none: two pumps may note its first failure at once."""
    Endpoint.objects.bulk_create(
        [Endpoint(address=address)],
        update_conflicts=True,
        unique_fields=["address"],
        update_fields=["is_slow"],  # which every result sets anew
    )
    return Endpoint.objects.get(address=address)
