"""The container files, read as far as can be without an engine, and the settings they lead to."""

import ast
import hashlib
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import redis
import yaml

from ops.management.commands.write_settings_table import with_settings_table
from tests.services import FORK_SERVER, ROOT, end_with_parent, free_port

COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = COMPOSE["services"]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
EXAMPLE = dict(
    line.removeprefix("# ").split("=", 1)
    for line in (ROOT / ".env.example").read_text().splitlines()
    if re.match(r"(# )?[A-Z_]+=", line)
)
SETTINGS_SOURCE = (ROOT / "scheduling" / "settings.py").read_text()
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
SECRETS = {
    "secret_key": "nq3tq8HVhHq2mGqf0oA8Fy0Jx1S5m4wYbV7cR9dLkPz6TgEuXi",
    "postgres_password": "p@ss/word",
    "encryption_keys": "",
    "email_url": "smtp+tls://user:password@mail.example.com:587",
    "metrics_token": "",
    "sentry_dsn": "",
    "oidc_client_secret": "",
    "google_client_secret": "",
    "microsoft_client_secret": "",
    "secret_key_fallbacks": "",
    "redis_url": "redis://:p-w_1@redis:6379/0",
}
THIS_MACHINE = ["localhost", "127.0.0.1", "[::1]"]
BARE = {"PATH": os.environ["PATH"], "VAR_DIR": os.environ["VAR_DIR"]}
# Of the image, of one container, or not for production.
NOT_IN_THE_EXAMPLE = {
    *("VAR_DIR", "STATIC_ROOT", "DOCS_ROOT", "METRICS_DIR", "DEBUG", "REQUIRE_SECRET_KEY"),
    *("DATABASE_URL", "DATABASE_PASSWORD", "REDIS_URL", "SECRET_KEY", "ENCRYPTION_KEYS"),
    *(
        "SECRET_KEY_FALLBACKS",
        "DATABASE_DIRECT_URL",
        "EMAIL_URL",
        "METRICS_TOKEN",
        "SENTRY_DSN",
        "OIDC_CLIENT_SECRET",
        "GOOGLE_CLIENT_SECRET",
        "MICROSOFT_CLIENT_SECRET",
    ),
}
# Read by compose, and by the packages of OpenTelemetry and Sentry.
NOT_OF_THE_SETTINGS = {
    *("HTTP_PORT", "HTTPS_PORT", "BACKUP_KEEP_DAYS", "DATABASE_HOST", "GRAFANA_URL"),
}
OF_PACKAGES = {
    *("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_SERVICE_NAME"),
    *("OTEL_SDK_DISABLED", "SENTRY_ENVIRONMENT"),
}


def substituted(text: str, variables: dict[str, str]) -> str:
    """What compose makes of `${NAME:-default}` and `${NAME:?message}`; raises on a missing one."""

    def value(match: re.Match) -> str:
        name, kind, rest = match.groups()
        if variables.get(name):
            return variables[name]
        if kind == ":?":
            raise KeyError(name)
        return rest

    return re.sub(r"\$\{([A-Z_]+)(:[-?])([^}]*)\}", value, text)


def secret_files() -> dict[str, str]:
    """The service's secrets as files: name of the setting -> path."""
    folder = Path(os.environ["VAR_DIR"]) / "secrets"
    folder.mkdir(exist_ok=True)
    for name, content in SECRETS.items():
        (folder / name).write_text(f"{content}\n")
    given = SERVICES["web"]["environment"]
    return {
        name: str(folder / Path(path).name)
        for name, path in given.items()
        if name.endswith("_FILE")
    }


def production_environment(**changed: str) -> dict[str, str]:
    """Of the service's containers: .env, what compose sets, and the secrets as files.

    `changed`: a secret that is given by itself replaces its file.
    """
    given = SERVICES["web"]["environment"]
    made = {name: substituted(text, EXAMPLE) for name, text in given.items()} | secret_files()
    made = {name: path for name, path in made.items() if name.removesuffix("_FILE") not in changed}
    example = {name: value for name, value in EXAMPLE.items() if name not in OF_PACKAGES}
    return BARE | example | made | changed


def manage(*args: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return FORK_SERVER.run("manage", *args, cwd=ROOT, env=env)


def python_output(code: str, *, env: dict[str, str]) -> str:
    """What the code prints with the settings of the environment."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=env | {"DJANGO_SETTINGS_MODULE": "scheduling.settings"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_deploy_check_is_clean_in_the_compose_environment():
    done = manage("check", "--deploy", "--fail-level", "WARNING", env=production_environment())

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"SECRET_KEY": ""}, "SECRET_KEY must be set"),
        ({"SECRET_KEY": "", "REQUIRE_SECRET_KEY": ""}, "SECRET_KEY must be set: with PostgreSQL"),
        ({"SECRET_KEY": "short"}, "SECRET_KEY must have at least 32 characters"),
        ({"SECRET_KEY_FALLBACKS": "short"}, "SECRET_KEY_FALLBACKS must have at least 32"),
        ({"DATABASE_URL": "mysql://u:p@db/x"}, "DATABASE_URL must be a postgres:// or sqlite://"),
        ({"DATABASE_REPLICA_URL": "sqlite:///x"}, "DATABASE_REPLICA_URL must be a postgres://"),
        (
            {"DB_POOLED": "true", "DATABASE_DIRECT_URL": ""},
            "DB_POOLED needs DATABASE_DIRECT_URL",
        ),
        ({"DB_POOLED": "true", "DATABASE_URL": "sqlite:///x"}, "DB_POOLED needs PostgreSQL"),
        ({"PUBLIC_URL": "bookings.example.com"}, "PUBLIC_URL must be an address such as https://"),
        ({"PUBLIC_URL": "https://a..b"}, "PUBLIC_URL must be an address such as https://"),
        ({"PUBLIC_URL": "https://[::1"}, "PUBLIC_URL must be an address such as https://"),
        ({"REDIS_URL": "unix:///redis.sock"}, "REDIS_URL must begin with redis:// or rediss://"),
        ({"MESSAGE_BROKER_URL": "sqs://"}, "MESSAGE_BROKER_URL must begin with redis://"),
        ({"BROKER_URL": "redis://r"}, "Set MESSAGE_BROKER_URL instead of BROKER_URL"),
        ({"TRUST_PROXY": "perhaps"}, "TRUST_PROXY must be true or false"),
        ({"RATE_LIMIT_PER_MINUTE": "many"}, "RATE_LIMIT_PER_MINUTE must be an integer"),
        (
            {"PASSWORD_LOGIN": "off", "OIDC_ISSUER": ""},
            "PASSWORD_LOGIN=off needs OIDC_ISSUER: nobody could log in",
        ),
        ({"CELLS": "https://eu.example.com"}, "CELLS must be like `Europe=https://eu"),
        ({"CELLS": "Europe=eu.example.com"}, "CELLS must be like `Europe=https://eu"),
        ({"CELLS": "Europe=https://a.example/x"}, "CELLS must be like `Europe=https://eu"),
        ({"REQUIRE_SECOND_FACTOR": "all"}, "REQUIRE_SECOND_FACTOR must be one of off, staff"),
    ],
)
@pytest.mark.matrix
def test_wrong_environment_stops_the_start(changed, message):
    done = manage("check", env=production_environment(**changed))

    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_no_secret_key_is_generated_on_postgresql(tmp_path):
    """Of two nodes each would make its own, and neither could read what the other encrypts."""
    changed = {"SECRET_KEY": "", "REQUIRE_SECRET_KEY": "", "VAR_DIR": str(tmp_path)}

    url = f"sqlite:///{tmp_path / 'db.sqlite3'}"

    on_postgresql = manage("check", env=production_environment(**changed))
    made = list(tmp_path.iterdir())
    on_sqlite = manage("check", env=production_environment(**changed, DATABASE_URL=url))

    assert on_postgresql.stderr == (
        "SECRET_KEY must be set: with PostgreSQL, processes on several machines need the same key."
        f" If this machine served it before, use the key in {tmp_path}/secret_key.\n"
    )
    assert (on_postgresql.returncode, made) == (1, [])
    assert (on_sqlite.returncode, (tmp_path / "secret_key").exists()) == (0, True)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"EMAIL_URL": "smtp://a", "EMAIL_URL_FILE": "/x"}, "EMAIL_URL_FILE, not both"),
        ({"METRICS_TOKEN_FILE": "/nowhere/token"}, "METRICS_TOKEN_FILE can't be read"),
        ({"WEB_THREADS": "0"}, "WEB_THREADS must be an integer from 1 to 256"),
        ({"LOG_FORMAT": "xml"}, "LOG_FORMAT must be one of plain, json"),
        ({"LOG_LEVEL": "LOUD"}, "LOG_LEVEL must be one of DEBUG, INFO, WARNING, ERROR"),
        ({"WORKER_METRICS_ADDRESS": "9100"}, "WORKER_METRICS_ADDRESS must be an address"),
    ],
)
@pytest.mark.matrix
def test_wrong_operator_settings_stop_the_start(given, message):
    done = manage("check", env=production_environment() | given)

    assert (done.returncode, message in done.stderr) == (1, True), done.stderr


def test_every_secret_can_be_a_file():
    secrets = sorted(set(re.findall(r'env_secret\("(\w+)"\)', SETTINGS_SOURCE)))
    files = {name: f"{name.lower()}-" + "x" * 40 for name in secrets}
    files |= {
        "DATABASE_URL": "postgres://scheduling@db:5432/scheduling",
        "DATABASE_DIRECT_URL": "postgres://scheduling@server:5432/scheduling",
        "DATABASE_REPLICA_URL": "postgres://scheduling@standby:5432/scheduling",
        "REDIS_URL": "redis://r:6379/0",
        "MESSAGE_BROKER_URL": "amqp://r:5672//",
        "EMAIL_URL": "smtp://u:p@mail:25",
        "SENTRY_DSN": "",
        "OIDC_CLIENT_SECRET": "",
        "GOOGLE_CLIENT_SECRET": "",
        "MICROSOFT_CLIENT_SECRET": "",
    }
    folder = Path(os.environ["VAR_DIR"]) / "every-secret"
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_text(f"  {content}\n")
    env = BARE | {f"{name}_FILE": str(folder / name) for name in secrets}
    code = (
        "from django.conf import settings as s; d = s.DATABASES['default'];"
        "print([s.SECRET_KEY, *s.ENCRYPTION_KEYS, s.METRICS_TOKEN, s.REDIS_URL,"
        "s.CELERY_BROKER_URL, s.EMAIL_HOST,"
        "d['HOST'], d['PASSWORD'], *(s.DATABASES[n]['PASSWORD'] for n in ('direct', 'replica'))])"
    )

    printed = python_output(code, env=env)

    assert secrets == [
        *("DATABASE_DIRECT_URL", "DATABASE_PASSWORD", "DATABASE_REPLICA_URL", "DATABASE_URL"),
        *("EMAIL_URL", "ENCRYPTION_KEYS", "GOOGLE_CLIENT_SECRET", "MESSAGE_BROKER_URL"),
        *("METRICS_TOKEN", "MICROSOFT_CLIENT_SECRET"),
        *("OIDC_CLIENT_SECRET", "REDIS_URL", "SECRET_KEY", "SECRET_KEY_FALLBACKS", "SENTRY_DSN"),
    ]
    assert ast.literal_eval(printed) == [
        *(files[name] for name in ("SECRET_KEY", "ENCRYPTION_KEYS", "METRICS_TOKEN", "REDIS_URL")),
        *("amqp://r:5672//", "mail", "db", *[files["DATABASE_PASSWORD"]] * 3),
    ]


def test_earlier_secret_keys_decrypt_unless_there_are_encryption_keys():
    new, old, older, own = (letter * 40 for letter in "nopq")
    code = (
        "from django.conf import settings as s;"
        "print([s.SECRET_KEY, s.SECRET_KEY_FALLBACKS, s.ENCRYPTION_KEYS])"
    )
    env = BARE | {"SECRET_KEY": new, "SECRET_KEY_FALLBACKS": f"{old}, {older}"}

    without = python_output(code, env=env)
    given = python_output(code, env=env | {"ENCRYPTION_KEYS": own})

    assert ast.literal_eval(without) == [new, [old, older], [new, old, older]]
    assert ast.literal_eval(given) == [new, [old, older], [own]]


def test_make_secrets_keeps_existing_secrets(tmp_path):
    folder = tmp_path / "secrets"
    script = ["sh", str(ROOT / "deploy" / "make_secrets.sh"), str(folder)]
    subprocess.run(script, check=True)
    first = {file.name: file.read_text() for file in folder.iterdir()}
    subprocess.run(script, check=True)

    assert set(first) == {Path(one["file"]).name for one in COMPOSE["secrets"].values()}
    assert {file.name: file.read_text() for file in folder.iterdir()} == first
    made = {"secret_key", "postgres_password", "redis_url"}
    assert {name for name, text in first.items() if text} == made
    assert re.fullmatch(r"redis://:[\w-]{60,}@redis:6379/0\n", first["redis_url"])
    assert len(first["secret_key"]) >= 32
    assert {oct(file.stat().st_mode)[-3:] for file in folder.iterdir()} == {"444"}
    assert oct(folder.stat().st_mode)[-3:] == "700"


@pytest.mark.parametrize(
    ("given", "hosts"),
    [
        ({}, ["127.0.0.1", *THIS_MACHINE]),
        (
            {"PUBLIC_URL": "https://bookings.example.com:8443/x"},
            ["bookings.example.com", *THIS_MACHINE],
        ),
        ({"PUBLIC_URL": "http://[::2]:8000"}, ["[::2]", *THIS_MACHINE]),
        ({"PUBLIC_URL": "https://Bücher.example"}, ["xn--bcher-kva.example", *THIS_MACHINE]),
        # IDNA 2008: the domain strasse.example may have another owner.
        ({"PUBLIC_URL": "https://Straße.example"}, ["xn--strae-oqa.example", *THIS_MACHINE]),
        ({"ALLOWED_HOSTS": "a.example, .b.example"}, ["a.example", ".b.example"]),
    ],
)
@pytest.mark.matrix
def test_default_hosts_are_public_url_and_loopback(given, hosts):
    code = "from django.conf import settings as s; print(s.ALLOWED_HOSTS)"

    assert ast.literal_eval(python_output(code, env=BARE | given)) == hosts


@pytest.mark.parametrize(
    ("given", "header"),
    [
        ({}, "max-age=31536000"),
        (
            {"SECURE_HSTS_INCLUDE_SUBDOMAINS": "true", "SECURE_HSTS_PRELOAD": "true"},
            "max-age=31536000; includeSubDomains; preload",
        ),
        ({"PUBLIC_URL": "http://bookings.example.com"}, None),
    ],
)
def test_hsts_subdomains_and_preload_settings(given, header):
    code = (
        "import django; django.setup(); from django.test import Client;"
        "answer = Client().get('/healthz', secure=True, headers={'Host': 'bookings.example.com'});"
        "print(repr(answer.headers.get('Strict-Transport-Security')))"
    )

    printed = python_output(code, env=production_environment(**given))

    assert ast.literal_eval(printed.splitlines()[-1]) == header


@pytest.mark.parametrize("name", ["PUBLIC_URL", "DEFAULT_FROM_EMAIL"])
def test_compose_requires_variables(name):
    text = (ROOT / "docker-compose.yml").read_text()

    with pytest.raises(KeyError, match=name):
        substituted(text, EXAMPLE | {name: ""})


WORKERS = ["worker-email", "worker-webhook", "worker-calendar", "worker-tasks"]


def test_compose_services_and_published_ports():
    published = {name for name, service in SERVICES.items() if "ports" in service}
    others = {"proxy", "migrate", "web", "beat", "postgres", "pooler", "redis", "backup"}

    assert set(SERVICES) == {*WORKERS, *others}
    assert published == {"proxy"}
    assert SERVICES["beat"]["deploy"]["replicas"] == 1
    assert [name for name in SERVICES if "container_name" in SERVICES[name]] == []  # all can scale
    assert [name for name in SERVICES if "profiles" in SERVICES[name]] == ["pooler", "backup"]


def test_compose_has_a_worker_for_every_queue():
    code = "from django.conf import settings as s; print(sorted(s.CELERY_TASK_QUEUES))"
    queues = ast.literal_eval(python_output(code, env=production_environment()))

    served = [SERVICES[name]["command"][-1].removeprefix("--queues=") for name in WORKERS]

    assert sorted(served) == queues


def test_compose_waits_for_healthy_services():
    health = {
        name for name, service in SERVICES.items() if "test" in service.get("healthcheck", {})
    }
    ready = {
        "migrate": {"condition": "service_completed_successfully"},
        "postgres": {"condition": "service_healthy"},
        "redis": {"condition": "service_healthy"},
    }

    assert health == {*WORKERS, "beat", "postgres", "redis"}
    assert "HEALTHCHECK" in DOCKERFILE  # web's
    for name in ("web", "beat", *WORKERS):
        assert (name, SERVICES[name]["depends_on"]) == (name, ready)
    assert SERVICES["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    assert SERVICES["proxy"]["depends_on"] == {"web": {"condition": "service_healthy"}}


def read_settings() -> set[str]:
    """The variables that the settings read."""
    return set(re.findall(r'(?:env_\w+|os\.environ\.get)\(\s*"([A-Z_]+)"', SETTINGS_SOURCE)) | {
        name for name in OF_PACKAGES if name in SETTINGS_SOURCE
    }


def documented_settings() -> set[str]:
    """The first column of the table of docs/operations.md, "Settings"."""
    section = OPERATIONS.split("\n## Settings\n")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `([A-Z_]+)` \|", section, re.MULTILINE))


def test_settings_table_is_that_of_the_settings():
    """Otherwise run `manage.py write_settings_table`."""
    assert with_settings_table(OPERATIONS) == OPERATIONS


def test_docs_settings_and_compose_name_the_same_variables():
    of_service = SERVICES["web"]["environment"]
    passed = {*EXAMPLE, *(name.removesuffix("_FILE") for name in of_service)}

    assert documented_settings() == read_settings() | OF_PACKAGES
    assert set(EXAMPLE) - NOT_OF_THE_SETTINGS - documented_settings() == set()
    assert documented_settings() - set(EXAMPLE) - OF_PACKAGES == NOT_IN_THE_EXAMPLE
    assert NOT_IN_THE_EXAMPLE - passed == {
        *("VAR_DIR", "STATIC_ROOT", "DOCS_ROOT", "METRICS_DIR", "DEBUG")
    }
    for name in ("web", "beat", "migrate", *WORKERS):
        service = SERVICES[name]
        assert (name, service["env_file"], service["environment"]) == (name, ".env", of_service)


def test_compose_gives_each_secret_that_it_names():
    named = {
        Path(path).name
        for name, path in SERVICES["web"]["environment"].items()
        if name.endswith("_FILE")
    }

    assert named == set(SERVICES["web"]["secrets"]) == set(COMPOSE["secrets"]) == set(SECRETS)


def test_every_compose_variable_is_in_the_example():
    files = ("docker-compose.yml", "docker-compose.monitoring.yml")
    texts = "".join((ROOT / name).read_text() for name in files)
    used = set(re.findall(r"\$\{([A-Z_]+)", texts))

    assert used - set(EXAMPLE) == set()


def test_dockerfile_copies_existing_files_and_drops_root():
    copied = re.findall(r"^COPY (\w\S*)", DOCKERFILE, re.MULTILINE)
    let_in = re.findall(r"^!(\S+)", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    user = re.findall(r"^USER (\S+)", DOCKERFILE, re.MULTILINE)

    assert [path for path in copied if not (ROOT / path).exists()] == []
    assert copied == let_in
    assert user == ["10001:10001"]  # a number, so that Kubernetes knows that it is not root
    assert f"--uid {user[0].split(':')[0]} " in DOCKERFILE
    assert "compileall" in DOCKERFILE


def test_every_app_of_the_project_is_in_the_image():
    rooms = {path.parent.name for path in ROOT.glob("*/apps.py")} | {"scheduling"}

    assert rooms - set(re.findall(r"^COPY (\S+)", DOCKERFILE, re.MULTILINE)) == set()


# --- What a container may do ----------------------------------------------------------------------
def test_containers_are_read_only_and_unprivileged():
    confined = {"read_only": True, "cap_drop": ["ALL"], "security_opt": ["no-new-privileges:true"]}
    added = {"proxy": ["NET_BIND_SERVICE"], "backup": ["DAC_OVERRIDE"]}
    memory = ["/var/lib/scheduling:uid=10001,mode=0700", "/tmp"]
    tmpfs = {
        "proxy": ["/config", "/tmp"],
        "postgres": ["/var/run/postgresql", "/tmp"],
        "pooler": ["/tmp"],
        "redis": None,
        "backup": ["/tmp"],
    }

    for name, service in SERVICES.items():
        assert (name, {key: service.get(key) for key in confined}) == (name, confined)
        assert (name, service.get("cap_add")) == (name, added.get(name))
        assert (name, service.get("tmpfs")) == (name, tmpfs.get(name, memory))
    users = {name: service["user"] for name, service in SERVICES.items() if "user" in service}
    assert users == {"postgres": "postgres", "redis": "redis"}


def test_containers_have_limits_of_memory_and_logs():
    limits = {name: service.get("mem_limit") for name, service in SERVICES.items()}
    logs = {"driver": "json-file", "options": {"max-size": "20m", "max-file": "5"}}

    assert [name for name, limit in limits.items() if not limit] == []
    assert [name for name, service in SERVICES.items() if service["logging"] != logs] == []
    assert SERVICES["migrate"]["restart"] == "on-failure:5"
    assert SERVICES["postgres"]["shm_size"] == "256m"


def test_monitoring_is_confined_and_published_on_this_machine_only():
    names = ["prometheus", "alertmanager", "grafana", "node-exporter", "blackbox-exporter"]

    assert list(MONITORING) == names
    for name, service in MONITORING.items():
        confined = SERVICES["proxy"]
        for key in ("read_only", "cap_drop", "security_opt", "logging", "restart"):
            assert (name, key, service[key]) == (name, key, confined[key])
        assert (name, bool(service["mem_limit"])) == (name, True)
        assert [
            port for port in service.get("ports", ()) if not port.startswith("127.0.0.1:")
        ] == []
        mounted = [text.split(":")[0] for text in service.get("volumes", ()) if text[0] == "."]
        assert [path for path in mounted if not (ROOT / path).exists()] == []


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")
def test_monitoring_gives_prometheus_the_addresses_of_this_installation(tmp_path):
    (tmp_path / "token").touch()
    (command,) = MONITORING["prometheus"]["command"]
    prepare, _, start = command.replace("$$", "$").partition("&& exec ")
    changes = {
        "/deploy": str(ROOT / "deploy" / "prometheus"),
        "/tmp": str(tmp_path),
        "/run/secrets/metrics_token": str(tmp_path / "token"),
    }
    env = {"PUBLIC_URL": "https://book.example.org", "GRAFANA_URL": "https://graphs.example.org"}
    subprocess.run(["sh", "-c", replaced(prepare, changes)], env=BARE | env, check=True)

    checked = subprocess.run(
        ["promtool", "check", "config", tmp_path / "prometheus.yml"], capture_output=True, text=True
    )

    assert checked.returncode == 0, checked.stdout + checked.stderr
    text = (tmp_path / "prometheus.yml").read_text() + (tmp_path / "alerts.yml").read_text()
    assert text.count("example.com") == 0
    assert text.count("https://book.example.org/docs/guide/operations/#") > 20
    assert start.startswith("prometheus --config.file=/tmp/prometheus.yml")


def test_compose_networks():
    members = {
        network: {name for name, service in SERVICES.items() if network in service["networks"]}
        for network in COMPOSE["networks"]
    }

    assert COMPOSE["networks"] == {"public": None, "outside": None, "data": {"internal": True}}
    assert members == {
        "public": {"proxy", "web"},
        "outside": {"migrate", "beat", *WORKERS},
        "data": set(SERVICES) - {"proxy"},
    }


@pytest.mark.redis
def test_compose_redis_requires_the_password_of_its_url(tmp_path):
    port, password = free_port(), "p-w_1" * 12
    (tmp_path / "redis_url").write_text(f"redis://:{password}@redis:6379/0\n")
    redis_service = SERVICES["redis"]
    changes = {"$$": "$", "/run/secrets": str(tmp_path), "save": f"port {port}\nsave"}
    script = replaced(redis_service["command"][0], changes)
    changes |= {"redis-cli": f"redis-cli -p {port}"}
    check = replaced(redis_service["healthcheck"]["test"][1], changes)
    started = subprocess.Popen(
        [*redis_service["entrypoint"], script],
        stdout=subprocess.DEVNULL,
        preexec_fn=end_with_parent,
    )
    try:
        wait_for_port(port)
        healthy = subprocess.run(["sh", "-c", check], capture_output=True, text=True)
        with pytest.raises(redis.AuthenticationError):
            redis.Redis(port=port).ping()
        known = redis.Redis(port=port, password=password)
        stored = known.config_get("save") | known.config_get("maxmemory*")
        arguments = Path(f"/proc/{started.pid}/cmdline").read_bytes()
        known.close()
    finally:
        started.terminate()
        started.wait(10)

    assert (healthy.returncode, healthy.stdout) == (0, "PONG\n")
    stored = {name: stored[name] for name in ("save", "maxmemory", "maxmemory-policy")}
    assert stored == {
        "save": "",
        "maxmemory": str(256 * 2**20),
        "maxmemory-policy": "volatile-ttl",
    }
    assert password.encode() not in arguments


def replaced(text, changes):
    """Return the text with each key of `changes` replaced, but nothing within the replacements."""
    return re.sub("|".join(map(re.escape, changes)), lambda found: changes[found[0]], text)


def wait_for_port(port):
    deadline = time.monotonic() + 30
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), 1).close()
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


# --- Images ---------------------------------------------------------------------------------------
MONITORING = yaml.safe_load((ROOT / "docker-compose.monitoring.yml").read_text())["services"]
PINNED = ["Dockerfile", "docker-compose.yml", "deploy/helm/scheduling/values.yaml"]
DIGEST = re.compile(r"[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}")


def test_images_are_pinned_by_digest():
    values = yaml.safe_load((ROOT / "deploy/helm/scheduling/values.yaml").read_text())
    images = {service["image"] for service in SERVICES.values()} - {"scheduling"}
    images |= {*re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE), values["backup"]["image"]}

    assert sorted(image.partition("@")[0] for image in images) == [
        *("caddy:2", "edoburu/pgbouncer:v1.24.1-p1", "postgres:18", "python:3.13-slim", "redis:7")
    ]
    assert [image for image in images if not DIGEST.fullmatch(image)] == []


def test_pin_images_writes_current_digests(tmp_path):
    for name in (*PINNED, "docker-compose.monitoring.yml", "scripts/pin_images.sh"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text())
    docker = tmp_path / "docker"
    docker.write_text("#!/bin/sh\necho sha256:$(echo $6 | sha256sum | head -c 64)\n")
    docker.chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}

    subprocess.run(["sh", tmp_path / "scripts" / "pin_images.sh"], env=env, check=True)

    monitoring = (tmp_path / "docker-compose.monitoring.yml").read_text()
    assert yaml.safe_load(monitoring)["services"].keys() == MONITORING.keys()
    assert [one["image"] for one in yaml.safe_load(monitoring)["services"].values()] == [
        with_digest_of_tag(one["image"]) for one in MONITORING.values()
    ]
    for name in PINNED:
        before, after = ((folder / name).read_text() for folder in (ROOT, tmp_path))
        fresh = DIGEST.sub(lambda match: with_digest_of_tag(match[0]), before)
        assert (name, after) == (name, fresh)


def with_digest_of_tag(image):
    tag = image.partition("@")[0]
    digest = hashlib.sha256(f"{tag}\n".encode()).hexdigest()
    return f"{tag}@sha256:{digest}"
