"""Which apps use the service now: from its access log and from the outbox."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db.models import Count, Q, Sum

from apps_config.models import App
from notifications.models import Attempt, Delivery

# A line of either LOG_FORMAT may follow what docker or journald put before it.
_PLAIN = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d{3} INFO access request (.*)")
_PAIR = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\S+)')


@dataclass
class AppActivity:
    """What one app did. `seconds`: of web's threads; `due`: deliveries that wait now."""

    app: str
    requests: int = 0
    seconds: float = 0.0
    failures: int = 0  # 5xx
    refusals: int = 0  # 4xx
    attempts: int = 0
    failed_attempts: int = 0
    attempt_seconds: float = 0.0
    due: int = 0


def find_activity(log: Iterable[str], since: datetime, now: datetime) -> list[AppActivity]:
    """Return the activity of each app since `since`; `log`: lines of web's log.

    Requests without an app (wrong keys, the back office of several apps) count for the app "-".
    """
    found: dict[str, AppActivity] = {}

    def of(app: object) -> AppActivity:
        return found.setdefault(str(app), AppActivity(str(app)))

    for line in read_access_log(log, since):
        activity, status = of(line.get("app", "-")), int(line["status"])
        activity.requests += 1
        activity.seconds += float(line["ms"]) / 1000
        activity.failures += status >= 500
        activity.refusals += 400 <= status < 500
    is_failed = ~Q(outcome=Attempt.OK)
    attempts = Attempt.objects.filter(at__gte=since).order_by().values_list("app")
    for app, count, failed, seconds in attempts.annotate(
        count=Count("id"), failed=Count("id", filter=is_failed), total=Sum("seconds")
    ):
        activity = of(app)
        activity.attempts, activity.failed_attempts = count, failed
        activity.attempt_seconds = seconds
    due = Delivery.objects.filter(next_at__lte=now).order_by().values_list("app")
    for app, count in due.annotate(count=Count("id")):
        of(app).due = count
    return _with_slugs(found)


def _with_slugs(found: dict[str, AppActivity]) -> list[AppActivity]:
    ids = [app for app in found if app != "-"]
    for app, slug in App.objects.filter(id__in=ids).values_list("id", "slug"):
        found[str(app)].app = slug
    return [*found.values()]


def read_access_log(log: Iterable[str], since: datetime) -> Iterator[dict[str, Any]]:
    """Yield the fields of the requests since `since`. Other lines are ignored."""
    for line in log:
        fields = _json_fields(line) or _plain_fields(line)
        if fields and fields["at"] >= since and {"status", "ms"} <= fields.keys():
            yield fields


def _json_fields(line: str) -> dict[str, Any] | None:
    start = line.find("{")
    if start < 0 or '"access"' not in line:
        return None
    try:
        fields = json.loads(line[start:])
    except ValueError:
        return None
    if not isinstance(fields, dict) or fields.get("logger") != "access":
        return None
    return fields | {"at": datetime.fromisoformat(fields["time"])}


def _plain_fields(line: str) -> dict[str, Any] | None:
    match = _PLAIN.search(line)
    if not match:
        return None
    # The plain format has this machine's time.
    at = datetime.strptime(match[1], "%Y-%m-%d %H:%M:%S")
    fields = {name: value.strip('"') for name, value in _PAIR.findall(match[2])}
    return fields | {"at": at.astimezone(UTC)}
