"""`manage.py top`: which apps use the service now."""

import io
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from notifications.models import Attempt, Delivery
from tests.world import Tenant


def json_line(minutes_ago: float, **fields: Any) -> str:
    at = timezone.now() - timedelta(minutes=minutes_ago)
    known = {"time": f"{at:%Y-%m-%dT%H:%M:%S}.123Z", "logger": "access", "message": "request"}
    return f"web-1  | {json.dumps(known | fields)}\n"


def plain_line(minutes_ago: float, fields: str) -> str:
    at = timezone.now().astimezone() - timedelta(minutes=minutes_ago)
    return f"{at:%Y-%m-%d %H:%M:%S},123 INFO access request {fields}\n"


def top(**options: Any) -> str:
    output = io.StringIO()
    call_command("top", stdout=output, **options)
    return output.getvalue()


@pytest.mark.postgresql
def test_top_names_apps_by_requests_errors_and_deliveries(
    tenant: Tenant, make_tenant: Callable[..., Tenant], tmp_path: Path
) -> None:
    other = make_tenant()
    first, second = str(tenant.app.id), str(other.app.id)
    lines = [
        json_line(1, app=first, status=200, ms=1500.0),
        json_line(2, app=first, status=404, ms=100.0),
        json_line(3, app=second, status=503, ms=5000.0),
        json_line(30, app=second, status=500, ms=9000.0),
        json_line(1, status=401, ms=2.0),
        plain_line(1, f'method=GET path="/a \\"b" status=500 ms=250.0 app={first}'),
        plain_line(1, "without a status"),
        json_line(1, logger="delivery", app=first, status=200, ms=1.0),
        '{"access" broken\n',
        "Traceback (most recent call last):\n",
    ]
    (tmp_path / "log").write_text("".join(lines))
    now = timezone.now()
    for app, ago, outcome in (
        (tenant.app, 1, "ok"),
        (tenant.app, 2, "failed"),
        (other.app, 30, "ok"),
    ):
        delivery = Delivery.objects.create(
            app=app,
            type="webhook",
            kind="test",
            endpoint="https://example.com:443",
            due_at=now,
            next_at=now - timedelta(minutes=1),
            expires_at=now + timedelta(days=3),
            created_at=now,
        )
        Attempt.objects.create(
            app=app,
            delivery=delivery,
            at=now - timedelta(minutes=ago),
            seconds=1.25,
            outcome=outcome,
        )

    shown = top(log=str(tmp_path / "log"))

    a, b = tenant.app.slug, other.app.slug
    width = max(len(a), len(b))
    assert shown.splitlines() == [
        "Requests, by time of web:",
        f"  {'app':{width}}  seconds  requests  4xx  5xx",
        f"  {b:{width}}      5.0         1    0    1",
        f"  {a:{width}}      1.9         3    1    1",
        f"  {'-':{width}}      0.0         1    1    0",
        "",
        "Requests that failed (5xx):",
        f"  {'app':{width}}  5xx  requests",
        *sorted(
            [f"  {b:{width}}    1         1", f"  {a:{width}}    1         3"],
            key=shown.splitlines().index,
        ),
        "",
        "Attempts of deliveries, by time of workers:",
        f"  {'app':{width}}  seconds  attempts  failed",
        f"  {a:{width}}      2.5         2       1",
        "",
        "Deliveries that are due now:",
        f"  {'app':{width}}  due",
        f"  {a:{width}}    2",
        f"  {b:{width}}    1",
        "",
    ]


@pytest.mark.django_db
@pytest.mark.postgresql
def test_top_of_an_idle_service_is_empty() -> None:
    assert top(minutes=5) == ""
