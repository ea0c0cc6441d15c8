"""The version stands in pyproject.toml; what cannot read it there repeats it."""

import json
import tomllib

import yaml
from django.conf import settings

from tests.services import ROOT


def test_openapi_document_and_chart_have_the_version_of_pyproject() -> None:
    document = json.loads((ROOT / "docs" / "openapi.json").read_text())
    chart = yaml.safe_load((ROOT / "deploy" / "helm" / "scheduling" / "Chart.yaml").read_text())
    package = tomllib.loads((ROOT / "sdk" / "python" / "pyproject.toml").read_text())

    repeated = [document["info"]["version"], chart["version"], chart["appVersion"]]
    repeated.append(package["project"]["version"])

    assert repeated == [settings.VERSION] * 4
