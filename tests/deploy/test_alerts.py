"""deploy/prometheus: the alerts use metrics that exist, have a section in the docs, and fire."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.deploy.metric_names import existing_metrics, needs_promtool, used_metrics
from tests.services import ROOT

FOLDER = ROOT / "deploy" / "prometheus"
RULES = [
    rule
    for group in yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]
    for rule in group["rules"]
]
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()

# A healthy service: nothing fires. A sample each minute.
HEALTHY = {
    "database_up": "1x180",
    'http_request_duration_seconds_count{route="/v2/bookings",status="2xx"}': "0+600x180",
    'http_request_duration_seconds_bucket{route="/v2/bookings",le="0.1"}': "0+600x180",
    'http_request_duration_seconds_bucket{route="/v2/bookings",le="+Inf"}': "0+600x180",
    'http_requests_in_progress{method="GET"}': "3x180",
    "web_threads": "16x180",
    'database_connections{instance="a",state="idle"}': "30x180",
    'database_connections{instance="b",state="idle"}': "30x180",
    "database_connections_max": "97x180",
    "transaction_age_seconds": "1x180",
    "beat_age_seconds": "30x180",
    'task_duration_seconds_count{task="dispatch_deliveries",result="success"}': "0+60x180",
    'deliveries_open{type="email"}': "10x180",
    'deliveries_oldest_due_seconds{type="email"}': "2x180",
    'deliveries_due{type="email"}': "10x180",
    'delivery_lag_seconds{type="email",percentile="99"}': "2x180",
    'delivery_attempts{type="email",result="failed"}': "5x180",
    'delivery_attempts{type="email",result="lost"}': "0x180",
    'deliveries_finished{type="email",kind="confirmed",state="delivered"}': "900x180",
    "webhook_endpoints_open": "0x180",
    "webhooks_disabled": "2x180",
    "calendars_sync_age_seconds": "200x180",
    'calendars_connected{problem=""}': "9x180",
    'calendars_connected{problem="unauthorized"}': "1x180",
}
TROUBLE = {
    "MetricsMissing": {"database_up": "_x180"},
    "DatabaseDown": {"database_up": "1x90 0x90"},
    "RequestsFail": {
        'http_request_duration_seconds_count{route="/v2/bookings",status="5xx"}': "0+12x180"
    },
    "RequestsSlow": {
        'http_request_duration_seconds_bucket{route="/v2/bookings",le="0.1"}': "0+500x180",
        'http_request_duration_seconds_bucket{route="/v2/bookings",le="2.5"}': "0+600x180",
    },
    "WebThreadsBusy": {'http_requests_in_progress{method="GET"}': "15x180"},
    "DatabaseConnectionsScarce": {'database_connections{instance="b",state="idle"}': "80x180"},
    "TransactionOpen": {"transaction_age_seconds": "90x180"},
    "BeatMissing": {"beat_age_seconds": "500x180"},
    "TasksFail": {
        'task_duration_seconds_count{task="dispatch_deliveries",result="failure"}': "0+1x180"
    },
    "DeliveriesLate": {'deliveries_oldest_due_seconds{type="email"}': "90x180"},
    "DeliveriesAccumulate": {'deliveries_due{type="email"}': "0+30x180"},
    "DeliveryLagHigh": {'delivery_lag_seconds{type="email",percentile="99"}': "45x180"},
    "AttemptsLost": {'delivery_attempts{type="email",result="lost"}': "1x180"},
    "EmailsFail": {'delivery_attempts{type="email",result="failed"}': "700x180"},
    "DeliveriesFailed": {
        'deliveries_finished{type="email",kind="confirmed",state="failed"}': "5x180"
    },
    "CircuitBreakersOpen": {"webhook_endpoints_open": "1x180"},
    "WebhooksDisabled": {"webhooks_disabled": "2x120 4x60"},
    "CalendarsStale": {"calendars_sync_age_seconds": "4000x180"},
    "CalendarsProblem": {'calendars_connected{problem="unauthorized"}': "1x120 2x60"},
}


def alert_names() -> list[str]:
    return [rule["alert"] for rule in RULES]


@pytest.mark.django_db
@pytest.mark.postgresql
def test_alerts_use_metrics_that_exist() -> None:
    used = set().union(*(used_metrics(rule["expr"]) for rule in RULES))

    assert used - set(existing_metrics()) == set()


def test_each_alert_has_a_section_and_each_section_an_alert() -> None:
    section = OPERATIONS.split("\n## Alerts\n")[1].split("\n## ")[0]
    parts = re.split(r"^### ", section, flags=re.MULTILINE)[1:]
    headings = [part.splitlines()[0] for part in parts]

    assert sorted(headings) == sorted(alert_names())
    for part in parts:
        words = [word for word in ("**Means**", "**Look at**", "**Do**") if word not in part]
        assert (part.splitlines()[0], words) == (part.splitlines()[0], [])


def alert_test(name: str | None) -> dict[str, object]:
    """A test of promtool: in this trouble, this alert fires and no other. `None`: the healthy
    service, in which none does."""
    series = HEALTHY | TROUBLE.get(name or "", {})
    fired = {"labels": f'{{alertname="{name}"}}', "value": 1}
    return {
        "name": name or "healthy",
        "interval": "1m",
        "input_series": [{"series": key, "values": values} for key, values in series.items()],
        "promql_expr_test": [
            {
                "expr": "count by (alertname) (ALERTS{alertstate='firing'})",
                "eval_time": "170m",
                "exp_samples": [fired] if name else [],
            }
        ],
    }


def run_promtool(tests: list[dict[str, object]], folder: Path) -> subprocess.CompletedProcess[str]:
    """Have Prometheus's own code evaluate the rules every five minutes of the series. All troubles
    last until the end, so that is often enough."""
    rules = {"rule_files": [str(FOLDER / "alerts.yml")], "evaluation_interval": "5m"}
    (folder / "test.yml").write_text(yaml.safe_dump({**rules, "tests": tests}))
    return subprocess.run(
        ["promtool", "test", "rules", "test.yml"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@needs_promtool
def test_each_alert_fires_only_for_its_problem(tmp_path: Path) -> None:
    tests = [alert_test(name) for name in (None, *TROUBLE)]

    done = run_promtool(tests, tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_control_missing_alert_is_detected(tmp_path: Path) -> None:
    """The control: promtool fails where an alert is expected in a healthy service."""
    test = alert_test("DatabaseDown") | {"input_series": alert_test(None)["input_series"]}

    done = run_promtool([test], tmp_path)

    assert (done.returncode, "DatabaseDown" in done.stderr) == (1, True), done.stdout + done.stderr


@needs_promtool
def test_scrape_configuration_is_valid(tmp_path: Path) -> None:
    for file in FOLDER.iterdir():
        shutil.copy(file, tmp_path)
    (tmp_path / "metrics_token").touch()

    done = subprocess.run(
        ["promtool", "check", "config", "prometheus.yml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_test() -> None:
    assert set(TROUBLE) == set(alert_names())
