"""deploy/grafana: the dashboard shows every metric that exists, and no other."""

import json

import pytest

from tests.deploy.metric_names import existing_metrics, used_metrics
from tests.services import ROOT

DASHBOARD = json.loads((ROOT / "deploy" / "grafana" / "scheduling.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


@pytest.mark.django_db
@pytest.mark.postgresql
def test_dashboard_shows_every_metric() -> None:
    expressions = [target["expr"] for panel in PANELS for target in panel["targets"]]

    assert set().union(*map(used_metrics, expressions)) == set(existing_metrics())


def test_panels_have_unique_positions_and_ids() -> None:
    numbers = [panel["id"] for panel in DASHBOARD["panels"]]
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in DASHBOARD["panels"]]

    assert (len(set(numbers)), len(set(places))) == (len(numbers), len(places))
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in PANELS)
    assert {panel["datasource"]["uid"] for panel in PANELS} == {"${datasource}"}
