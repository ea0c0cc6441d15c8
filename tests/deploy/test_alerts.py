"""deploy/prometheus: the alerts use metrics that exist, have a section in the docs, and fire."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.deploy.metric_names import OPTIONAL, existing_metrics, needs_promtool, used_metrics
from tests.services import ROOT

FOLDER = ROOT / "deploy" / "prometheus"
RULES = [
    rule
    for group in yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]
    for rule in group["rules"]
]
ALERTS = [rule for rule in RULES if "alert" in rule]
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()

# Of Prometheus itself, node_exporter and blackbox_exporter.
OF_EXPORTERS = {
    *("up", "node_filesystem_avail_bytes", "node_filesystem_size_bytes"),
    "probe_ssl_earliest_cert_expiry",
}

# A healthy service: nothing fires. A sample each minute.
HEALTHY = {
    'database_up{instance="a"}': "1x180",
    'database_up{instance="b"}': "1x180",
    'http_request_duration_seconds_count{route="/v2/bookings",status="2xx"}': "0+600x180",
    'http_request_duration_seconds_bucket{route="/v2/bookings",le="0.1"}': "0+600x180",
    'http_request_duration_seconds_bucket{route="/v2/bookings",le="+Inf"}': "0+600x180",
    'http_requests_in_progress{method="GET"}': "3x180",
    "web_threads": "16x180",
    'database_connections{instance="a",state="idle"}': "30x180",
    'database_connections{instance="b",state="idle"}': "30x180",
    "database_connections_max": "97x180",
    "transaction_age_seconds": "1x180",
    "changes_lag_seconds": "1x180",
    "beat_age_seconds": "30x180",
    'up{job="scheduling-web",instance="a"}': "1x180",
    'up{job="scheduling-web",instance="b"}': "1x180",
    'worker_age_seconds{queue="email"}': "20x180",
    'worker_age_seconds{queue="celery"}': "20x180",
    "redis_up": "1x180",
    "broker_up": "1x180",
    "pooler_clients_waiting": "0x180",
    "replica_lag_seconds": "0x180",
    "wal_archiving_fails": "0x180",
    'task_success_age_seconds{task="backup"}': "80000x180",
    'task_success_age_seconds{task="purge_people"}': "80000x180",
    "delivery_faults": "0x180",
    'node_filesystem_avail_bytes{instance="a",mountpoint="/",fstype="ext4"}': "50x180",
    'node_filesystem_size_bytes{instance="a",mountpoint="/",fstype="ext4"}': "100x180",
    'probe_ssl_earliest_cert_expiry{instance="https://b"}': "7776000x180",
    'task_duration_seconds_count{task="dispatch_deliveries",result="success"}': "0+60x180",
    'deliveries_open{type="email"}': "10x180",
    'deliveries_oldest_due_seconds{type="email"}': "2x180",
    'deliveries_due{type="email"}': "10x180",
    'delivery_lag_seconds{type="email",percentile="99"}': "2x180",
    'delivery_attempts{type="email",result="ok"}': "900x180",
    'delivery_attempts{type="email",result="failed"}': "5x180",
    'delivery_attempts{type="email",result="lost"}': "0x180",
    'deliveries_finished{type="email",kind="confirmed",state="delivered"}': "900x180",
    "webhook_endpoints_open": "0x180",
    "webhooks_disabled": "2x180",
    "calendars_sync_age_seconds": "200x180",
    'calendars_connected{problem=""}': "9x180",
    'calendars_connected{problem="unauthorized"}': "1x180",
}
FAILURES = 'http_request_duration_seconds_count{route="/v2/bookings",status="5xx"}'
# Lasts until the end, so that a look at the end is enough.
TROUBLE = {
    "MetricsMissing": {'database_up{instance="a"}': "_x180", 'database_up{instance="b"}': "_x180"},
    "NodeDown": {'up{job="scheduling-web",instance="b"}': "0x180"},
    "DatabaseDown": {
        'database_up{instance="a"}': "1x90 0x90",
        'database_up{instance="b"}': "1x90 0x90",
    },
    "NodeWithoutDatabase": {'database_up{instance="b"}': "0x180"},
    "RequestsFail": {FAILURES: "0+12x180"},
    "RequestsFailSlowly": {FAILURES: "0+6x180"},
    "RequestsSlow": {
        'http_request_duration_seconds_bucket{route="/v2/bookings",le="0.1"}': "0+500x180",
        'http_request_duration_seconds_bucket{route="/v2/bookings",le="2.5"}': "0+600x180",
    },
    "WebThreadsBusy": {'http_requests_in_progress{method="GET"}': "15x180"},
    "DatabaseConnectionsScarce": {'database_connections{instance="b",state="idle"}': "80x180"},
    "CertificateExpires": {'probe_ssl_earliest_cert_expiry{instance="https://b"}': "90000x180"},
    "PoolerQueue": {"pooler_clients_waiting": "3x180"},
    "ReplicaLate": {"replica_lag_seconds": "3600x180"},
    "DiskFull": {'node_filesystem_avail_bytes{instance="a",mountpoint="/",fstype="ext4"}': "9x180"},
    "BackupOld": {'task_success_age_seconds{task="backup"}': "100000x180"},
    "WalArchivingFails": {"wal_archiving_fails": "1x180"},
    "WorkerMissing": {'worker_age_seconds{queue="email"}': "500x180"},
    "RedisDown": {"redis_up": "0x180"},
    "TaskOverdue": {'task_success_age_seconds{task="purge_people"}': "100000x180"},
    "DeliveriesMissing": {"delivery_faults": "2x180"},
    "TransactionOpen": {"transaction_age_seconds": "90x180"},
    "ChangesLate": {"changes_lag_seconds": "90x180"},
    "BeatMissing": {"beat_age_seconds": "500x180"},
    "TasksFail": {'task_last_failure_timestamp_seconds{task="purge_people"}': "_x120 7200x60"},
    "DeliveriesLate": {'deliveries_oldest_due_seconds{type="email"}': "90x180"},
    "DeliveriesAccumulate": {'deliveries_due{type="email"}': "0+30x180"},
    "DeliveryLagHigh": {'delivery_lag_seconds{type="email",percentile="99"}': "45x180"},
    "AttemptsLost": {'delivery_attempts{type="email",result="lost"}': "1x180"},
    "EmailsFail": {'delivery_attempts{type="email",result="failed"}': "901x180"},
    "DeliveriesFailed": {
        'deliveries_finished{type="email",kind="confirmed",state="failed"}': "5x180"
    },
    "CircuitBreakersOpen": {"webhook_endpoints_open": "1x180"},
    "WebhooksDisabled": {"webhooks_disabled": "2x120 4x60"},
    "CalendarsStale": {"calendars_sync_age_seconds": "4000x180"},
    "CalendarsProblem": {'calendars_connected{problem="unauthorized"}': "1x120 2x60"},
}

BOOK = 'http_request_duration_seconds_count{route="/book/<slug:slug>",status="%s"}'
# What happens, and which alerts fire at which minutes.
SCENARIOS: dict[str, tuple[dict[str, str], dict[int, set[str]]]] = {
    "one of two web nodes is down for two hours": (
        {'up{job="scheduling-web",instance="b"}': "1x9 0x119 1x50"},
        {9: set(), 14: set(), 16: {"NodeDown"}, 128: {"NodeDown"}, 132: set()},
    ),
    "one node has lost the database": (
        {'database_up{instance="b"}': "1x9 0x170"},
        {9: set(), 11: set(), 13: {"NodeWithoutDatabase"}, 170: {"NodeWithoutDatabase"}},
    ),
    "the database is away for thirty seconds": (
        {'database_up{instance="a"}': "1x9 0 1x170", 'database_up{instance="b"}': "1x9 0 1x170"},
        {9: set(), 10: set(), 11: set(), 20: set()},
    ),
    "the only e-mail worker is down and nothing is due": (
        {'worker_age_seconds{queue="email"}': "20x9 20+60x170"},
        {9: set(), 12: set(), 15: {"WorkerMissing"}, 170: {"WorkerMissing"}},
    ),
    "a worker of a queue is replaced": (
        {'worker_age_seconds{queue="email"}': "20x9 20 80 140 20x170"},
        {10: set(), 11: set(), 12: set(), 13: set(), 20: set()},
    ),
    "a small office: every e-mail fails, of 40 attempts an hour": (
        {
            'delivery_attempts{type="email",result="ok"}': "40x9 40-0.66x60 0x110",
            'delivery_attempts{type="email",result="failed"}': "0x9 0+0.66x60 40x110",
        },
        {9: set(), 40: set(), 60: {"EmailsFail"}, 130: {"EmailsFail"}},
    ),
    "a small office: three attempts of an hour fail": (
        {
            'delivery_attempts{type="email",result="ok"}': "1x180",
            'delivery_attempts{type="email",result="failed"}': "3x180",
        },
        {30: set(), 170: set()},
    ),
    "a task fails once": (
        {'task_last_failure_timestamp_seconds{task="purge_people"}': "_x30 1800x150"},
        {29: set(), 31: {"TasksFail"}, 88: {"TasksFail"}, 91: set()},
    ),
    "a fifth of the booking pages fail, a small part of all requests": (
        {BOOK % "2xx": "0+12x180", BOOK % "5xx": "0x29 0+3x150"},
        {29: set(), 31: set(), 36: {"RequestsFail"}, 170: {"RequestsFail"}},
    ),
    "all fails for six minutes": (
        {FAILURES: "0x29 0+600x6 3600x150"},
        {29: set(), 32: {"RequestsFail"}, 45: {"RequestsFailSlowly"}, 80: set()},
    ),
    "two requests of a quiet night fail, four minutes apart": (
        {
            **{key: "0x180" for key in HEALTHY if key.startswith("http_request_duration")},
            BOOK % "2xx": "0+1x180",
            BOOK % "5xx": "0x29 1x3 2x150",
        },
        {29: set(), 31: set(), 34: set(), 40: set(), 90: set()},
    ),
    "the replica is an hour behind": (
        {"replica_lag_seconds": "0x9 3600x170"},
        {9: set(), 14: set(), 16: {"ReplicaLate"}, 170: {"ReplicaLate"}},
    ),
    "the replica is away": (
        {"replica_lag_seconds": "0x9 +Inf +Inf +Inf +Inf +Inf +Inf +Inf +Inf +Inf"},
        {14: set(), 16: {"ReplicaLate"}},
    ),
    "a transaction of four minutes, then one of ten": (
        {"transaction_age_seconds": "1x9 1+60x4 1x9 1+60x10 1x150"},
        {14: set(), 20: set(), 29: set(), 32: {"TransactionOpen"}, 40: set()},
    ),
    "a rolling deployment: counters restart": (
        {key: "0+600x60 0+600x119" for key in HEALTHY if key.startswith("http_request_duration")},
        {60: set(), 61: set(), 65: set(), 120: set()},
    ),
    "a dead server of a webhook, with 4,000 calls due": (
        {
            'deliveries_due{type="webhook"}': "0x9 0+50x80 4000x90",
            'deliveries_oldest_due_seconds{type="webhook"}': "0x180",
            "webhook_endpoints_open": "0x11 1x170",
        },
        {
            9: set(),
            40: {"DeliveriesAccumulate"},
            80: {"DeliveriesAccumulate", "CircuitBreakersOpen"},
            120: {"CircuitBreakersOpen"},
        },
    ),
    "Redis is away for twenty minutes": (
        {"redis_up": "1x9 0x19 1x150", "broker_up": "1x9 0x19 1x150"},
        {14: set(), 16: {"RedisDown"}, 28: {"RedisDown"}, 32: set()},
    ),
    "the pooler has a queue for some seconds, later for ten minutes": (
        {"pooler_clients_waiting": "0x9 4 0x19 4x10 0x140"},
        {10: set(), 20: set(), 34: set(), 36: {"PoolerQueue"}, 42: set()},
    ),
    "the last backup is 26 hours old": (
        {'task_success_age_seconds{task="backup"}': "91800+60x180"},
        {29: set(), 35: set(), 45: {"BackupOld"}},
    ),
    "no backup was ever made by the scripts": (
        {'task_success_age_seconds{task="backup"}': "_x180"},
        {170: set()},
    ),
    "the disk fills, and is freed": (
        {
            'node_filesystem_avail_bytes{instance="a",mountpoint="/",fstype="ext4"}': (
                "50-1x50 0x9 60x120"
            )
        },
        {40: set(), 49: set(), 52: {"DiskFull"}, 59: {"DiskFull"}, 62: set()},
    ),
    "a certificate has a week left": (
        {'probe_ssl_earliest_cert_expiry{instance="https://b"}': "604800x180"},
        {59: set(), 61: {"CertificateExpires"}},
    ),
    "the nightly check finds faults": (
        {"delivery_faults": "0x59 2x120"},
        {59: set(), 61: {"DeliveriesMissing"}, 170: {"DeliveriesMissing"}},
    ),
}


def alert_names() -> list[str]:
    return [rule["alert"] for rule in ALERTS]


@pytest.mark.django_db
@pytest.mark.postgresql
def test_alerts_use_metrics_that_exist() -> None:
    used = set().union(*(used_metrics(rule["expr"]) for rule in RULES))

    assert used - OF_EXPORTERS - OPTIONAL - set(existing_metrics()) == set()


def test_alerts_use_rules_that_are_recorded() -> None:
    recorded = {rule["record"] for rule in RULES if "record" in rule}

    used = {word for rule in ALERTS for word in re.findall(r"\w+(?::\w+)+", rule["expr"])}

    assert used == recorded


def test_each_alert_links_to_its_section_and_the_dashboard() -> None:
    """As the documentation's site numbers its headings: docs/guide/ of the service has it."""
    dashboard = json.loads((ROOT / "deploy" / "grafana" / "scheduling.json").read_text())
    page = "https://bookings.example.com/docs/guide/operations/"

    links = {
        rule["alert"]: (rule["annotations"]["runbook_url"], rule["annotations"]["dashboard"])
        for rule in ALERTS
    }

    assert links == {
        name: (f"{page}#{name.lower()}", f"https://grafana.example.com/d/{dashboard['uid']}")
        for name in alert_names()
    }


def test_each_alert_has_a_section_and_each_section_an_alert() -> None:
    section = OPERATIONS.split("\n## Alerts\n")[1].split("\n## ")[0]
    parts = re.split(r"^### ", section, flags=re.MULTILINE)[1:]
    headings = [part.splitlines()[0] for part in parts]

    assert sorted(headings) == sorted(alert_names())
    for part in parts:
        words = [word for word in ("**Means**", "**Look at**", "**Do**") if word not in part]
        assert (part.splitlines()[0], words) == (part.splitlines()[0], [])


def alert_test(name: str, changed: dict[str, str], fired: dict[int, set[str]]) -> dict[str, object]:
    """A test of promtool: what fires at each minute, if these series of the healthy service are
    changed."""
    series = HEALTHY | changed
    return {
        "name": name,
        "interval": "1m",
        "input_series": [{"series": key, "values": values} for key, values in series.items()],
        "promql_expr_test": [
            {
                "expr": "count by (alertname) (ALERTS{alertstate='firing'})",
                "eval_time": f"{minute}m",
                "exp_samples": [
                    {"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in sorted(alerts)
                ],
            }
            for minute, alerts in fired.items()
        ],
    }


def run_promtool(
    tests: list[dict[str, object]], folder: Path, every: str = "1m"
) -> subprocess.CompletedProcess[str]:
    """Have Prometheus's own code evaluate the rules."""
    rules = {"rule_files": [str(FOLDER / "alerts.yml")], "evaluation_interval": every}
    (folder / "test.yml").write_text(yaml.safe_dump({**rules, "tests": tests}))
    return subprocess.run(
        ["promtool", "test", "rules", "test.yml"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def in_cell(series: str, cell: int) -> str:
    """The series with the label that the configuration of a cell's scrapes adds."""
    name, _, labels = series.partition("{")
    return f'{name}{{cell="{cell}",{labels or "}"}'


def two_cells_test(name: str, changed: dict[str, str]) -> dict[str, object]:
    """A test of promtool: cell 8 is healthy while these series of cell 7 are changed."""
    test = alert_test(name, changed, {})
    cells = {7: HEALTHY | changed, 8: HEALTHY}
    test["input_series"] = [
        {"series": in_cell(key, cell), "values": values}
        for cell, series in cells.items()
        for key, values in series.items()
    ]
    test["promql_expr_test"] = [
        {
            "expr": "count by (alertname, cell) (ALERTS{alertstate='firing'})",
            "eval_time": "170m",
            "exp_samples": [{"labels": f'{{alertname="{name}",cell="7"}}', "value": 1}],
        }
    ]
    return test


@needs_promtool
def test_each_alert_fires_for_the_cell_with_the_problem(tmp_path: Path) -> None:
    """A cell that never had metrics is not known: here, it had some for two hours."""
    gone = {f'database_up{{instance="{name}"}}': "1x120 _x59" for name in "ab"}
    troubles = TROUBLE | {"MetricsMissing": gone}
    tests = [two_cells_test(name, changed) for name, changed in troubles.items()]

    done = run_promtool(tests, tmp_path, every="5m")

    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_each_alert_fires_only_for_its_problem(tmp_path: Path) -> None:
    tests = [alert_test(name, changed, {170: {name}}) for name, changed in TROUBLE.items()]
    tests.append(alert_test("healthy", {}, {170: set()}))

    done = run_promtool(tests, tmp_path, every="5m")

    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
@pytest.mark.parametrize("name", SCENARIOS)
def test_alerts_fire_in_time_and_end(name: str, tmp_path: Path) -> None:
    done = run_promtool([alert_test(name, *SCENARIOS[name])], tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_control_missing_alert_is_detected(tmp_path: Path) -> None:
    """The control: promtool fails where an alert is expected in a healthy service."""
    test = alert_test("healthy", {}, {170: {"DatabaseDown"}})

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
