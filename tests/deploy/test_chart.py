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
    texts = [text for file, text in files.items() if not file.endswith("NOTES.txt")]
    made = [one for text in texts for one in yaml.safe_load_all(text) if one]
    found = {(one["kind"], one["metadata"]["name"]): one for one in made}
    assert len(found) == len(made)
    return found


@pytest.fixture(scope="module")
def objects() -> Objects:
    return render({name: {"enabled": True} for name in ("keda", "backup", "monitoring")})


def pods(objects: Objects) -> dict[str, Any]:
    """Name -> pod spec, of what has the service's settings."""
    return {
        name: one["spec"]["template"]["spec"]
        for (kind, name), one in objects.items()
        if kind in ("Deployment", "Job") and name != "demo-test"
    }


def every_pod(objects: Objects) -> dict[str, Any]:
    """Name -> pod spec, with those of the backup and of `helm test`."""
    backup = objects["CronJob", "demo-backup"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    test = objects["Job", "demo-test"]["spec"]["template"]["spec"]
    return pods(objects) | {"demo-backup": backup, "demo-test": test}


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
            *(("PodDisruptionBudget", name) for name in ["demo-web", *workers]),
            ("PrometheusRule", "demo"),
            *(("PodMonitor", f"demo-{name}") for name in ("web", "worker")),
            ("ConfigMap", "demo-dashboard"),
            ("Job", "demo-test"),
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


def test_web_scales_by_cpu_and_workers_by_what_they_can_send(objects: Objects) -> None:
    (metric,) = objects["HorizontalPodAutoscaler", "demo-web"]["spec"]["metrics"]
    queries = {
        kind: objects["ScaledObject", f"demo-worker-{kind}"]["spec"]["triggers"][0]["metadata"][
            "query"
        ]
        for kind in Delivery.TYPES
    }

    assert metric["resource"]["name"] == "cpu"
    assert queries == {kind: f'max(deliveries_ready{{type="{kind}"}})' for kind in Delivery.TYPES}
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
    selected = objects["Service", "demo-web"]["spec"]["selector"]
    assert selected | {"scheduling/track": "stable"} == web


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


def test_every_object_names_the_namespace_of_the_release(objects: Objects) -> None:
    assert {one["metadata"].get("namespace") for one in objects.values()} == {"prod"}


def test_every_pod_is_confined(objects: Objects) -> None:
    for name, pod in every_pod(objects).items():
        (container,) = pod["containers"]
        contexts = pod["securityContext"], container["securityContext"]
        assert (name, *contexts) == (
            name,
            {
                "runAsNonRoot": True,
                "runAsUser": 10001,
                "runAsGroup": 10001,
                "fsGroup": 10001,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            },
        )
        assert (name, pod["automountServiceAccountToken"]) == (name, False)


TEST = {"app.kubernetes.io/component": "test"}


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
                "from": [
                    namespace("ingress-nginx"),
                    namespace("monitoring"),
                    {"podSelector": {"matchLabels": instance | TEST}},
                ],
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
        *([53, 53], [8000], [5432, 6379], [25, 465, 587], [80, 443, 8443])
    ]
    assert narrow["egress"] == [names, default["egress"][1], rule]
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
    patterns = [
        str(each.pattern)
        for one in get_resolver().url_patterns
        # Of what is included at the root, the patterns in it.
        for each in ([one] if str(one.pattern) else getattr(one, "url_patterns", [one]))
    ]
    routes = {f"/{pattern.split('/')[0]}" for pattern in patterns}

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
        {"home": 256},
        {"home": "7"},
        {"settings": {"HOME_NUMBER": "7"}},
        {"secrets": ["database-url"]},
        {"secrets": ["secret-key", "password"]},
        {"settings": {"WEB_THREADS": 8}},
        {"workers": {"email": {"replicas": 0, "concurrency": 1}}},
        {"workers": {"webhook": None}},
        {"networkPolicy": {"ingressNamespace": ""}},
        {"existingSecrets": "scheduling"},
        {"web": {"replicaz": 3}},
        {"web": {"replicas": 0}},
        {"web": {"autoscaling": {"maxReplicas": 0}}},
        {"web": {"resources": {"limit": {}}}},
        {"web": {"canary": {"replicas": 1}}},
        {"workers": {"mail": {"replicas": 1, "concurrency": 1}}},
        {"workers": {"email": {"duePerReplica": 500}}},
        {"settings": {"web_threads": "8"}},
        {"image": {"digest": "latest"}},
        {"backup": {"databaseUrlKey": "database_url"}},
        {"monitoring": {"grafanaUrl": "grafana"}},
        {"gateway": {"parentRefs": []}},
        {"extraEnv": [{"value": "a"}]},
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


def test_every_pod_has_requests_and_a_limit_of_memory(objects: Objects) -> None:
    for name, pod in every_pod(objects).items():
        resources = pod["containers"][0]["resources"]
        assert (name, set(resources["requests"])) == (name, {"cpu", "memory"})
        assert (name, set(resources["limits"])) == (name, {"memory"})


def test_probes_of_workers_and_beat(objects: Objects) -> None:
    probes = {
        name: {key: value for key, value in pod["containers"][0].items() if key.endswith("Probe")}
        for name, pod in pods(objects).items()
    }

    for queue in QUEUES:
        found = probes[f"demo-worker-{queue}"]
        assert set(found) == {"startupProbe", "livenessProbe", "readinessProbe"}
        assert found["readinessProbe"]["exec"] == found["livenessProbe"]["exec"]
    assert set(probes["demo-web"]) == {"startupProbe", "livenessProbe", "readinessProbe"}
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    _, command = compose["beat"]["healthcheck"]["test"]
    beat = probes["demo-beat"]["livenessProbe"]["exec"]["command"]
    assert beat == ["sh", "-c", command.replace("$$", "$")]


def test_web_and_workers_spread_over_zones_and_nodes(objects: Objects) -> None:
    for component in ("web", *(f"worker-{queue}" for queue in QUEUES)):
        selector = {
            "app.kubernetes.io/name": "scheduling",
            "app.kubernetes.io/instance": "demo",
            "app.kubernetes.io/component": component,
        }
        constraints = pods(objects)[f"demo-{component}"]["topologySpreadConstraints"]
        budget = objects["PodDisruptionBudget", f"demo-{component}"]["spec"]
        assert [one["topologyKey"] for one in constraints] == [
            *("topology.kubernetes.io/zone", "kubernetes.io/hostname")
        ]
        assert [one["labelSelector"]["matchLabels"] for one in constraints] == [selector] * 2
        assert budget == {"maxUnavailable": 1, "selector": {"matchLabels": selector}}


def test_placement_and_annotations_are_of_every_pod() -> None:
    placement = {
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "dedicated", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "priorityClassName": "high",
    }
    given = {"podAnnotations": {"team": "desk"}, "extraEnv": [{"name": "TZ", "value": "UTC"}]}

    objects = render(placement | given | {"backup": {"enabled": True}})

    for name, pod in every_pod(objects).items():
        assert (name, {key: pod[key] for key in placement}) == (name, placement)
    for name, pod in pods(objects).items():
        environment = pod["containers"][0]["env"]
        assert (name, environment.count(given["extraEnv"][0])) == (name, 1)
    for (kind, _), one in objects.items():
        if kind in ("Deployment", "Job"):
            template = one["spec"]["template"]
            assert template["metadata"]["annotations"]["team"] == "desk"
        if kind == "Deployment":
            # Without a cluster there is no Secret: the checksum of nothing.
            assert len(template["metadata"]["annotations"]["checksum/secret"]) == 64


def test_canary_is_behind_the_same_service() -> None:
    objects = render({"web": {"canary": {"replicas": 2, "tag": "2.0.0"}}})

    stable, canary = (objects["Deployment", f"demo-web{end}"]["spec"] for end in ("", "-canary"))
    service = objects["Service", "demo-web"]["spec"]["selector"]
    (migrate,) = pods(objects)["demo-migrate"]["containers"]
    assert (canary["replicas"], migrate["image"]) == (2, "scheduling:2.0.0")
    for one, track, tag in ((stable, "stable", "1.0.0"), (canary, "canary", "2.0.0")):
        assert one["selector"]["matchLabels"] == service | {"scheduling/track": track}
        assert one["template"]["metadata"]["labels"] == service | {"scheduling/track": track}
        assert one["template"]["spec"]["containers"][0]["image"] == f"scheduling:{tag}"
    for one in (stable, canary):
        one["template"]["metadata"]["labels"].pop("scheduling/track")
        one["template"]["spec"]["containers"][0].pop("image")
    assert stable["template"] == canary["template"]


def test_monitoring_has_the_alerts_and_the_dashboard_of_this_project() -> None:
    given = {
        "publicUrl": "https://book.example.org",
        "monitoring": {
            "enabled": True,
            "labels": {"release": "prometheus"},
            "grafanaUrl": "https://graphs.example.org",
        },
    }
    alerts = (ROOT / "deploy" / "prometheus" / "alerts.yml").read_text()
    here = alerts.replace("https://bookings.example.com", "https://book.example.org")
    here = here.replace("https://grafana.example.com", "https://graphs.example.org")

    objects = render(given)

    rules = objects["PrometheusRule", "demo"]
    dashboard = objects["ConfigMap", "demo-dashboard"]
    assert rules["spec"] == yaml.safe_load(here)
    assert rules["metadata"]["labels"]["release"] == "prometheus"
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(dashboard["data"]["scheduling.json"]) == json.loads(
        (ROOT / "deploy" / "grafana" / "scheduling.json").read_text()
    )


def test_monitors_select_the_pods_with_figures(objects: Objects) -> None:
    selected = {
        name: one["spec"]["selector"]["matchExpressions"][0]["values"]
        for (kind, name), one in objects.items()
        if kind == "PodMonitor"
    }
    (web,) = objects["PodMonitor", "demo-web"]["spec"]["podMetricsEndpoints"]
    open_to_all = render({"secrets": ["secret-key"], "monitoring": {"enabled": True}})

    assert selected == {"demo-web": ["web"], "demo-worker": [f"worker-{queue}" for queue in QUEUES]}
    assert web == {
        "port": "http",
        "path": "/metrics",
        "interval": "15s",
        "relabelings": [{"targetLabel": "cell", "replacement": "0"}],
        "authorization": {"credentials": {"name": "scheduling", "key": "metrics-token"}},
    }
    (endpoint,) = open_to_all["PodMonitor", "demo-web"]["spec"]["podMetricsEndpoints"]
    assert "authorization" not in endpoint


def test_release_of_a_cell_has_its_home_and_address() -> None:
    given = {"home": 7, "publicUrl": "https://cell7.example.com", "monitoring": {"enabled": True}}
    objects = render(given)

    for name, pod in pods(objects).items():
        (container,) = pod["containers"]
        variables = {one["name"]: one["value"] for one in container["env"]}
        own = (variables["HOME_NUMBER"], variables["PUBLIC_URL"])
        assert (name, own) == (name, ("7", "https://cell7.example.com"))
    for name in ("demo-web", "demo-worker"):
        (endpoint,) = objects["PodMonitor", name]["spec"]["podMetricsEndpoints"]
        assert endpoint["relabelings"] == [{"targetLabel": "cell", "replacement": "7"}]


def test_gateway_has_the_routes_of_the_ingress() -> None:
    objects = render({"gateway": {"enabled": True}})

    (rule,) = objects["HTTPRoute", "demo"]["spec"]["rules"]
    (of_ingress,) = objects["Ingress", "demo"]["spec"]["rules"]
    kinds = {"PathPrefix": "Prefix", "Exact": "Exact"}
    routes = [(kinds[one["path"]["type"]], one["path"]["value"]) for one in rule["matches"]]
    assert routes == [(one["pathType"], one["path"]) for one in of_ingress["http"]["paths"]]
    assert rule["backendRefs"] == [{"name": "demo-web", "port": 80}]


def test_external_secret_has_every_secret() -> None:
    secrets = ["secret-key", "database-url", "oidc-client-secret"]

    objects = render({"secrets": secrets, "externalSecret": {"enabled": True}})

    spec = objects["ExternalSecret", "scheduling"]["spec"]
    assert spec["target"]["name"] == "scheduling"
    assert spec["data"] == [
        {"secretKey": name, "remoteRef": {"key": "scheduling", "property": name}}
        for name in secrets
    ]


def test_backup_reads_its_secrets_from_files() -> None:
    given = {"secrets": ["secret-key", "database-url", "database-password"]}

    objects = render(given | {"backup": {"enabled": True, "databaseUrlKey": "database-direct-url"}})

    pod = every_pod(objects)["demo-backup"]
    (secrets,) = (one["secret"] for one in pod["volumes"] if one["name"] == "secrets")
    assert {one["path"]: one["key"] for one in secrets["items"]} == {
        "database-url": "database-direct-url",
        "database-password": "database-password",
    }
    assert {one["name"]: one["value"] for one in pod["containers"][0]["env"]} == {
        "DATABASE_URL_FILE": "/run/secrets/scheduling/database-url",
        "PGPASSWORD_FILE": "/run/secrets/scheduling/database-password",
        "BACKUP_KEEP_DAYS": "14",
    }


def test_helm_test_asks_the_service(objects: Objects) -> None:
    job = objects["Job", "demo-test"]

    assert job["metadata"]["annotations"]["helm.sh/hook"] == "test"
    _, _, code = job["spec"]["template"]["spec"]["containers"][0]["command"]
    assert compile(code, "test", "exec")
    assert "http://demo-web" in code


def test_notes_say_what_is_missing() -> None:
    def notes(values: dict[str, Any]) -> str:
        with helm.Chart.load(CHART) as chart:
            return chart.render(values, name="demo", namespace="prod")[
                "scheduling/templates/NOTES.txt"
            ]

    everything = {"backup": {"enabled": True}, "monitoring": {"enabled": True}}

    assert ("Nothing backs up" in notes({}), "Nobody is woken" in notes({})) == (True, True)
    assert "Nothing" not in notes(everything)
    assert "helm test demo -n prod" in notes(everything)
