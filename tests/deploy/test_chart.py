"""deploy/helm: the chart, rendered by Helm's own engine (helm-python-sdk)."""

import json
import re
from typing import Any

import pytest
import yaml
from django.conf import settings
from django.urls import get_resolver

from notifications.models import Delivery
from tests.services import ROOT
from tests.setup.test_production import documented_settings

helm = pytest.importorskip(
    "helm_python", reason="helm-python-sdk, Helm as a library, has no wheel for this machine"
)

CHART = str(ROOT / "deploy" / "helm" / "scheduling")
QUEUES = sorted(settings.CELERY_TASK_QUEUES)
Objects = dict[tuple[str, str], Any]


def render(values: dict[str, Any]) -> Objects:
    """(kind, name) -> object, of the release `demo`."""
    with helm.Chart.load(CHART) as chart:
        chart.validate_schema(values)
        files = chart.render(values, name="demo", namespace="prod")
    made = [one for text in files.values() for one in yaml.safe_load_all(text) if one]
    found = {(one["kind"], one["metadata"]["name"]): one for one in made}
    assert len(found) == len(made)
    return found


@pytest.fixture(scope="module")
def objects() -> Objects:
    return render({"keda": {"enabled": True}, "backup": {"enabled": True}})


def pods(objects: Objects) -> dict[str, Any]:
    """Name -> pod spec, of what runs the service's image."""
    return {
        name: one["spec"]["template"]["spec"]
        for (kind, name), one in objects.items()
        if kind in ("Deployment", "Job")
    }


def test_lint_finds_only_the_missing_icon() -> None:
    found = helm.lint(CHART)

    assert [message["error"] for message in found["messages"]] == ["icon is recommended"]


def test_chart_has_web_a_worker_per_queue_beat_and_migrations(objects: Objects) -> None:
    workers = [f"demo-worker-{queue}" for queue in QUEUES]

    assert sorted(objects) == sorted(
        [
            *(("Deployment", name) for name in ["demo-web", "demo-beat", *workers]),
            *(("ScaledObject", f"demo-worker-{kind}") for kind in Delivery.TYPES),
            ("Job", "demo-migrate"),
            ("Service", "demo-web"),
            ("Ingress", "demo"),
            ("PodDisruptionBudget", "demo-web"),
            ("HorizontalPodAutoscaler", "demo-web"),
            ("CronJob", "demo-backup"),
            ("ConfigMap", "demo-backup"),
            *(("NetworkPolicy", f"demo-{name}") for name in ("web", "metrics", "egress")),
        ]
    )
    for queue in QUEUES:
        (container,) = pods(objects)[f"demo-worker-{queue}"]["containers"]
        assert container["args"][-1] == f"--queues={queue}"
    assert objects["Deployment", "demo-beat"]["spec"]["replicas"] == 1
    annotations = objects["Job", "demo-migrate"]["metadata"]["annotations"]
    assert annotations["helm.sh/hook"] == "pre-install,pre-upgrade"


def test_web_scales_by_cpu_and_workers_by_due_deliveries(objects: Objects) -> None:
    (metric,) = objects["HorizontalPodAutoscaler", "demo-web"]["spec"]["metrics"]
    queries = {
        kind: objects["ScaledObject", f"demo-worker-{kind}"]["spec"]["triggers"][0]["metadata"][
            "query"
        ]
        for kind in Delivery.TYPES
    }

    assert metric["resource"]["name"] == "cpu"
    assert queries == {kind: f'max(deliveries_due{{type="{kind}"}})' for kind in Delivery.TYPES}
    for name in ("demo-web", *(f"demo-worker-{kind}" for kind in Delivery.TYPES)):
        assert (name, "replicas" in objects["Deployment", name]["spec"]) == (name, False)


def test_selectors_match_the_pods_of_their_own_deployment_only(objects: Objects) -> None:
    deployments = {name: one for (kind, name), one in objects.items() if kind == "Deployment"}
    for name, one in deployments.items():
        wanted = one["spec"]["selector"]["matchLabels"].items()
        matched = [
            other
            for other, deployment in deployments.items()
            if wanted <= deployment["spec"]["template"]["metadata"]["labels"].items()
        ]
        assert matched == [name]
    web = objects["Deployment", "demo-web"]["spec"]["selector"]["matchLabels"]
    assert objects["Service", "demo-web"]["spec"]["selector"] == web


def test_containers_get_documented_settings_and_secrets_as_files(objects: Objects) -> None:
    documented = documented_settings()
    for name, pod in pods(objects).items():
        (container,) = pod["containers"]
        variables = {one["name"]: one["value"] for one in container["env"]}
        files = {key for key in variables if key.endswith("_FILE")}
        mounts = {mount["name"] for mount in container["volumeMounts"]}

        assert {key.removesuffix("_FILE") for key in variables} - documented == set(), name
        assert files == {
            "SECRET_KEY_FILE",
            "DATABASE_URL_FILE",
            "REDIS_URL_FILE",
            "EMAIL_URL_FILE",
            "METRICS_TOKEN_FILE",
        }
        assert mounts == {volume["name"] for volume in pod["volumes"]}


def test_every_secret_setting_can_be_a_secret() -> None:
    source = (ROOT / "scheduling" / "settings.py").read_text()
    schema = json.loads((ROOT / "deploy/helm/scheduling/values.schema.json").read_text())

    read = set(re.findall(r'env_secret\("(\w+)"\)', source))
    offered = schema["properties"]["secrets"]["items"]["enum"]

    assert sorted(offered) == sorted(name.lower().replace("_", "-") for name in read)


def test_every_pod_is_confined(objects: Objects) -> None:
    backup = objects["CronJob", "demo-backup"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    for name, pod in (pods(objects) | {"demo-backup": backup}).items():
        user = 999 if name == "demo-backup" else 10001
        (container,) = pod["containers"]
        contexts = pod["securityContext"], container["securityContext"]
        assert (name, *contexts) == (
            name,
            {
                "runAsNonRoot": True,
                "runAsUser": user,
                "runAsGroup": user,
                "fsGroup": user,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            },
        )
        assert (name, pod["automountServiceAccountToken"]) == (name, False)


def namespace(name: str) -> Any:
    return {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}


def test_pods_accept_only_ingress_and_prometheus(objects: Objects) -> None:
    policies = {
        name: one["spec"] for (kind, name), one in objects.items() if kind == "NetworkPolicy"
    }
    instance = {"app.kubernetes.io/name": "scheduling", "app.kubernetes.io/instance": "demo"}
    web = {"app.kubernetes.io/component": "web"}
    others = {"key": "app.kubernetes.io/component", "operator": "NotIn", "values": ["web"]}

    assert policies["demo-web"] == {
        "podSelector": {"matchLabels": instance | web},
        "policyTypes": ["Ingress"],
        "ingress": [
            {
                "from": [namespace("ingress-nginx"), namespace("monitoring")],
                "ports": [{"port": "http"}],
            }
        ],
    }
    assert policies["demo-metrics"] == {
        "podSelector": {"matchLabels": instance, "matchExpressions": [others]},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [namespace("monitoring")], "ports": [{"port": 9100}]}],
    }


def test_pods_reach_only_dns_and_given_targets() -> None:
    rule = {"to": [{"ipBlock": {"cidr": "10.0.0.5/32"}}], "ports": [{"port": 5432}]}

    default = render({})["NetworkPolicy", "demo-egress"]["spec"]
    narrow = render({"networkPolicy": {"egress": [rule]}})["NetworkPolicy", "demo-egress"]["spec"]
    without = render({"networkPolicy": {"enabled": False}})

    names = {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]}
    assert default["podSelector"]["matchLabels"] == {
        "app.kubernetes.io/name": "scheduling",
        "app.kubernetes.io/instance": "demo",
    }
    assert default["policyTypes"] == ["Egress"]
    assert [[one["port"] for one in rule["ports"]] for rule in default["egress"]] == [
        *([53, 53], [5432, 6379], [25, 465, 587], [80, 443, 8443])
    ]
    assert narrow["egress"] == [names, rule]
    assert [kind for kind, _ in without if kind == "NetworkPolicy"] == []


def test_the_image_can_be_pinned_by_digest() -> None:
    digest = f"sha256:{'0' * 64}"

    objects = render({"image": {"tag": "2.1.0", "digest": digest}})

    images = {pod["containers"][0]["image"] for pod in pods(objects).values()}
    assert images == {f"scheduling:2.1.0@{digest}"}


def test_grace_periods_and_rolling_update(objects: Objects) -> None:
    for queue in QUEUES:
        assert pods(objects)[f"demo-worker-{queue}"]["terminationGracePeriodSeconds"] >= 40
    rolling = objects["Deployment", "demo-web"]["spec"]["strategy"]["rollingUpdate"]
    assert rolling == {"maxUnavailable": 0, "maxSurge": 1}


def test_liveness_of_workers_is_checked_as_in_compose(objects: Objects) -> None:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    _, command = compose["worker-email"]["healthcheck"]["test"]

    for queue in QUEUES:
        (container,) = pods(objects)[f"demo-worker-{queue}"]["containers"]
        probe = container["livenessProbe"]["exec"]["command"]
        assert probe == ["sh", "-c", command.replace("$$", "$")]


def test_ingress_routes_every_page_and_no_metrics(objects: Objects) -> None:
    (rule,) = objects["Ingress", "demo"]["spec"]["rules"]
    paths = {path["path"] for path in rule["http"]["paths"]}
    routes = {f"/{str(one.pattern).split('/')[0]}" for one in get_resolver().url_patterns}

    assert paths == routes - {"/healthz", "/readyz", "/metrics"} | {"/static"}


def test_backup_runs_the_script_of_this_project(objects: Objects) -> None:
    script = (ROOT / "deploy" / "backup" / "backup.sh").read_text()

    assert objects["ConfigMap", "demo-backup"]["data"]["backup.sh"].strip() == script.strip()


def test_without_autoscaling_the_replicas_are_fixed() -> None:
    objects = render({"web": {"autoscaling": {"enabled": False}, "replicas": 3}})

    assert objects["Deployment", "demo-web"]["spec"]["replicas"] == 3
    assert objects["Deployment", "demo-worker-email"]["spec"]["replicas"] == 1
    assert {kind for kind, _ in objects} & {"HorizontalPodAutoscaler", "ScaledObject"} == set()


@pytest.mark.parametrize(
    "values",
    [
        {"publicUrl": "bookings.example.com"},
        {"secrets": ["database-url"]},
        {"secrets": ["secret-key", "password"]},
        {"settings": {"WEB_THREADS": 8}},
        {"workers": {"email": {"replicas": 0, "concurrency": 1}}},
        {"workers": {"webhook": None}},
        {"networkPolicy": {"ingressNamespace": ""}},
    ],
)
def test_invalid_values_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(helm.HelmError):
        render(values)


def test_pooler_and_replica_are_secrets_and_a_setting() -> None:
    secrets = ["secret-key", "database-url", "database-direct-url", "database-replica-url"]

    objects = render({"secrets": secrets, "settings": {"DB_POOLED": "true"}})

    for pod in pods(objects).values():
        variables = {one["name"]: one["value"] for one in pod["containers"][0]["env"]}
        folder = "/run/secrets/scheduling"
        assert variables["DB_POOLED"] == "true"
        assert variables["DATABASE_DIRECT_URL_FILE"] == f"{folder}/database-direct-url"
        assert variables["DATABASE_REPLICA_URL_FILE"] == f"{folder}/database-replica-url"
