"""Limits of wrong passwords, over all processes and all pages and endpoints that take one.

They count for the address that was typed, whether anybody has it or not:

- A network gets FAILED_PASSWORDS_PER_HOUR failures an hour, over all addresses.
- After FREE_FAILURES failures of an address in an hour, a pause of PAUSES minutes follows each
  further one. A network from which the account has logged in lately is not subject to the pause,
  and a browser that has (`known_devices`) to neither limit: strangers lock nobody out. Each has
  FREE_FAILURES of its own.
- An address gets MAX_FAILURES an hour in all (OWASP ASVS 5.0, 6.3.1).

An attempt counts as a failure until its password has proved right. So concurrent attempts meet the
limits exactly. Where right passwords may still make room, TooManyLogIns asks to try again at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F

from access.known_devices import has_logged_in_from
from apps_config.models import FailedLogin
from common.db.sql import count_up
from common.email_address import canonical_address
from common.errors import RateLimited
from common.limits.hashing_slots import TooManyLogIns
from common.limits.rate_limit import RefusedKeys, digest_key
from common.time.instants import to_datetime

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
class Failure:
    """The failures of the hour, with this one; 0 without limits."""

    of_address: int = 0
    of_network: int = 0

    @property
    def is_last_free_failure(self) -> bool:
        return self.of_address == FREE_FAILURES

    @property
    def reaches_network_limit(self) -> bool:
        return 0 < self.of_network == settings.FAILED_PASSWORDS_PER_HOUR


@dataclass(frozen=True, slots=True)
class LogInAttempt:
    """A counted attempt. `keys`: of its rows; none without limits."""

    network: str
    keys: Mapping[str, str]
    minute: int

    def take_back(self) -> None:
        """Count the attempt no more: the password was right, or was not checked."""
        rows = FailedLogin.objects.filter(address__in=self.keys.values(), minute=self.minute)
        rows.filter(count__gt=0).update(count=F("count") - 1)

    def count_failure(self) -> Failure:
        """Count that the password was wrong, in rows beside those of attempts."""
        if not self.keys:
            return Failure()
        rows = [{"address": wrong_key(key), "minute": self.minute} for key in self.keys.values()]
        counts = count_up(FailedLogin, rows, by="address")
        address, network = (counts[wrong_key(self.keys[name])] for name in ("address", "network"))
        return Failure(address, network)


def wrong_key(key: str) -> str:
    """The key of the failures among the attempts of a key."""
    return f"wrong {key}"


def count_log_in_attempt(
    *, email: str, network: str, device: str = "", now: datetime
) -> LogInAttempt:
    """Count an attempt to log in before its password is checked.

    device: the browser, if its cookie proves an earlier log-in of the account. Raises
    TooManyFailures or TooManyLogIns, and counts nothing then.
    """
    email, minute = typed_address(email), (int(now.timestamp()) // 60 // HOUR + 1) * HOUR
    if not settings.FAILED_PASSWORDS_PER_HOUR:
        return LogInAttempt(network, {}, minute)
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
        row_of = {name: rows[key] for name, key in keys.items()}
        has_device = bool(device) and row_of["device"].count < FREE_FAILURES
        _check_limits(row_of, email, network, has_device=has_device, ends=ends, now=now)
        counted = FailedLogin.objects.filter(id__in=[row.pk for row in rows.values()])
        counted.update(count=F("count") + 1, last_at=now)
    return LogInAttempt(network, keys, minute)


def _lock_rows(keys: list[str], minute: int) -> dict[str, FailedLogin]:
    """Make missing rows and lock all, in one order, so that no two deadlock."""
    new = [FailedLogin(address=key, minute=minute, count=0) for key in keys]
    FailedLogin.objects.bulk_create(new, ignore_conflicts=True)
    rows = FailedLogin.objects.select_for_update(no_key=True).filter(minute=minute)
    return {row.address: row for row in rows.filter(address__in=keys).order_by("address")}


def _check_limits(
    row_of: Mapping[str, FailedLogin],
    email: str,
    network: str,
    *,
    has_device: bool,
    ends: datetime,
    now: datetime,
) -> None:
    if not _has_room(row_of["address"], MAX_FAILURES):
        raise TooManyFailures(ends, now)
    if has_device:
        return
    if not _has_room(row_of["network"], settings.FAILED_PASSWORDS_PER_HOUR):
        refused_networks.add(network, ends.timestamp())
        raise TooManyFailures(ends, now)
    until = min(pause_end(row_of["address"]), ends)
    if now >= until:
        return
    is_known = has_logged_in_from(network, email, now=now)
    if is_known and _has_room(row_of["pair"], FREE_FAILURES):
        return
    if not _has_room(row_of["address"], FREE_FAILURES):
        raise TooManyFailures(until, now)


def _has_room(row: FailedLogin, limit: int) -> bool:
    """Whether the row has fewer attempts than the limit.

    Raises TooManyLogIns if it has fewer failures: the other passwords are being checked.
    """
    if row.count < limit:
        return True
    failures = FailedLogin.objects.filter(address=wrong_key(row.address), minute=row.minute)
    if not failures.filter(count__gte=limit).exists():
        raise TooManyLogIns
    return False


def pause_end(row: FailedLogin) -> datetime:
    """Return when the pause after an address's latest failure ends."""
    further = row.count - FREE_FAILURES
    if further < 0 or row.last_at is None:
        return to_datetime(0)
    return row.last_at + timedelta(minutes=PAUSES[min(further, len(PAUSES) - 1)])
