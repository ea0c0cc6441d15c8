"""Limits of wrong passwords, over all processes and all pages and endpoints that take one.

They count for the address that was typed, whether anybody has it or not:

- A network gets FAILED_PASSWORDS_PER_HOUR failures an hour, over all addresses.
- After FREE_FAILURES failures of an address in an hour, a pause of PAUSES minutes follows each
  further one. A network from which the account has logged in lately is not subject to the pause,
  and a browser that has (`known_devices`) to neither limit: strangers lock nobody out. Each has
  FREE_FAILURES of its own.
- An address gets MAX_FAILURES an hour in all (OWASP ASVS 2.2.1).

An attempt counts as a failure until its password has proved right. So concurrent attempts meet the
limits exactly.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F

from access.known_devices import has_logged_in_from
from apps_config.models import FailedLogin
from common.email_address import canonical_address
from common.errors import RateLimited
from common.instants import to_datetime
from common.rate_limit import RefusedKeys, digest_key

FREE_FAILURES, MAX_FAILURES = 10, 100
PAUSES = (1, 2, 4, 8, 15)  # minutes; the last one repeats
HOUR = 60  # minutes

refused_networks = RefusedKeys()


class TooManyFailures(RateLimited):
    """A limit of wrong passwords is reached."""

    def __init__(self, until: datetime, now: datetime) -> None:
        self.seconds = max(1.0, (until - now).total_seconds())
        super().__init__(self.seconds, "Too many wrong passwords. Try again later.")


def typed_address(text: str) -> str:
    """Return an address as it is counted, and as accounts are found."""
    return canonical_address(text.strip())[:254].replace("\0", "")


@dataclass(frozen=True, slots=True)
class Attempt:
    """A counted attempt. The failures of the hour include it; 0 without limits."""

    network: str
    keys: Mapping[str, str]
    minute: int
    failures: int = 0
    network_failures: int = 0

    def take_back(self) -> None:
        """Count the attempt no more: the password was right, or was not checked."""
        rows = FailedLogin.objects.filter(address__in=self.keys.values(), minute=self.minute)
        rows.filter(count__gt=0).update(count=F("count") - 1)

    @property
    def starts_pauses(self) -> bool:
        return self.failures == FREE_FAILURES

    @property
    def ends_network(self) -> bool:
        return 0 < self.network_failures == settings.FAILED_PASSWORDS_PER_HOUR


def count_attempt(*, email: str, network: str, device: str = "", now: datetime) -> Attempt:
    """Count an attempt to log in before its password is checked.

    device: the browser, if its cookie proves an earlier log-in of the account. Raises
    TooManyFailures, and counts nothing then.
    """
    email, minute = typed_address(email), (int(now.timestamp()) // 60 // HOUR + 1) * HOUR
    if not settings.FAILED_PASSWORDS_PER_HOUR:
        return Attempt(network, {}, minute)
    ends = to_datetime(minute * 60)
    if not device and refused_networks.seconds_left(network, now.timestamp()):
        raise TooManyFailures(ends, now)
    keys = {
        "network": f"network {network}",
        "address": f"address {digest_key(email)}",
        "pair": f"pair {digest_key(f'{email} {network}')}",
    } | ({"device": f"device {digest_key(device)}"} if device else {})
    with transaction.atomic():
        rows = _lock_rows(sorted(keys.values()), minute)
        of = {name: rows[key] for name, key in keys.items()}
        has_device = bool(device) and of["device"].count < FREE_FAILURES
        _check_limits(of, email, network, has_device=has_device, ends=ends, now=now)
        counted = FailedLogin.objects.filter(id__in=[row.pk for row in rows.values()])
        counted.update(count=F("count") + 1, last_at=now)
    return Attempt(network, keys, minute, of["address"].count + 1, of["network"].count + 1)


def _lock_rows(keys: list[str], minute: int) -> dict[str, FailedLogin]:
    """Make missing rows and lock all, in one order, so that no two deadlock."""
    new = [FailedLogin(address=key, minute=minute, count=0) for key in keys]
    FailedLogin.objects.bulk_create(new, ignore_conflicts=True)
    rows = FailedLogin.objects.select_for_update(no_key=True).filter(minute=minute)
    return {row.address: row for row in rows.filter(address__in=keys).order_by("address")}


def _check_limits(
    of: Mapping[str, FailedLogin],
    email: str,
    network: str,
    *,
    has_device: bool,
    ends: datetime,
    now: datetime,
) -> None:
    if of["address"].count >= MAX_FAILURES:
        raise TooManyFailures(ends, now)
    if has_device:
        return
    if of["network"].count >= settings.FAILED_PASSWORDS_PER_HOUR:
        refused_networks.add(network, ends.timestamp())
        raise TooManyFailures(ends, now)
    until = min(pause_end(of["address"]), ends)
    if now < until:
        is_known = has_logged_in_from(network, email, now=now)
        if not is_known or of["pair"].count >= FREE_FAILURES:
            raise TooManyFailures(until, now)


def pause_end(row: FailedLogin) -> datetime:
    """Return when the pause after an address's latest failure ends."""
    further = row.count - FREE_FAILURES
    if further < 0 or row.last_at is None:
        return to_datetime(0)
    return row.last_at + timedelta(minutes=PAUSES[min(further, len(PAUSES) - 1)])
