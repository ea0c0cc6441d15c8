"""deploy/grafana: the dashboard shows every metric that exists, and no other."""

import json
import re

import pytest

from tests.deploy.metric_names import OPTIONAL, existing_metrics, used_metrics
from tests.services import ROOT

DASHBOARD = json.loads((ROOT / "deploy" / "grafana" / "scheduling.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


@pytest.mark.django_db
@pytest.mark.postgresql
def test_dashboard_shows_every_metric() -> None:
    expressions = [target["expr"] for panel in PANELS for target in panel["targets"]]

    assert set().union(*map(used_metrics, expressions)) == {*existing_metrics(), *OPTIONAL}


def test_dashboard_shows_limits_and_releases_and_selects_nodes() -> None:
    variables = {one["name"] for one in DASHBOARD["templating"]["list"]}
    (releases,) = DASHBOARD["annotations"]["list"]
    limits = {
        panel["title"]: [
            step["value"] for step in panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
        ]
        for panel in PANELS
        if "thresholds" in panel.get("fieldConfig", {}).get("defaults", {})
    }

    assert variables == {"datasource", "cell", "instance"}
    assert used_metrics(releases["expr"]) == {"service_info"}
    assert limits == {
        "Duration": [None, 1],
        "Oldest due": [None, 60],
        "Lag until the first attempt": [None, 30],
        "Workers and beat": [None, 180],
        "Oldest sync": [None, 3600],
        "Last success of tasks and backups": [None, 93600],
    }
    of_processes = [
        target["expr"]
        for panel in PANELS
        for target in panel["targets"]
        if "http_" in target["expr"] or "task_duration" in target["expr"]
    ]
    assert [expr for expr in of_processes if 'instance=~"$instance"' not in expr] == []


def test_every_metric_is_that_of_the_selected_cell() -> None:
    expressions = {target["expr"] for panel in PANELS for target in panel["targets"]}
    expressions |= {one["expr"] for one in DASHBOARD["annotations"]["list"]}

    without = [
        expr
        for expr in expressions
        if expr.count('{cell=~"$cell"') != len(re.findall(r"[{]", expr)) or "{" not in expr
    ]

    assert without == []
    assert all(len(used_metrics(expr)) <= expr.count("{") for expr in expressions)


def test_panels_have_unique_positions_and_ids() -> None:
    numbers = [panel["id"] for panel in DASHBOARD["panels"]]
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in DASHBOARD["panels"]]

    assert (len(set(numbers)), len(set(places))) == (len(numbers), len(places))
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in PANELS)
    assert {panel["datasource"]["uid"] for panel in PANELS} == {"${datasource}"}
