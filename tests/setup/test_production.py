"""The container files, read as far as can be without an engine, and the settings they lead to."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.services import FORK_SERVER, ROOT

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
}
# Of the image, of one container, or not for production.
NOT_IN_THE_EXAMPLE = {
    *("VAR_DIR", "STATIC_ROOT", "METRICS_DIR", "DEBUG", "REQUIRE_SECRET_KEY"),
    *("DATABASE_URL", "DATABASE_PASSWORD", "REDIS_URL", "SECRET_KEY", "ENCRYPTION_KEYS"),
    *("DATABASE_DIRECT_URL", "EMAIL_URL", "METRICS_TOKEN", "SENTRY_DSN", "OIDC_CLIENT_SECRET"),
}
# Read by compose, and by the packages of OpenTelemetry and Sentry.
NOT_OF_THE_SETTINGS = {"HTTP_PORT", "HTTPS_PORT", "BACKUP_KEEP_DAYS", "DATABASE_HOST"}
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
    base = {"PATH": os.environ["PATH"], "VAR_DIR": os.environ["VAR_DIR"]}
    return base | example | made | changed


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
        ({"DATABASE_URL": "mysql://u:p@db/x"}, "DATABASE_URL must be a postgres:// or sqlite://"),
        ({"DATABASE_REPLICA_URL": "sqlite:///x"}, "DATABASE_REPLICA_URL must be a postgres://"),
        (
            {"DB_POOLED": "true", "DATABASE_DIRECT_URL": ""},
            "DB_POOLED needs DATABASE_DIRECT_URL",
        ),
        ({"DB_POOLED": "true", "DATABASE_URL": "sqlite:///x"}, "DB_POOLED needs PostgreSQL"),
        ({"TRUST_PROXY": "perhaps"}, "TRUST_PROXY must be true or false"),
        ({"RATE_LIMIT_PER_MINUTE": "many"}, "RATE_LIMIT_PER_MINUTE must be an integer"),
        (
            {"PASSWORD_LOGIN": "off", "OIDC_ISSUER": ""},
            "PASSWORD_LOGIN=off needs OIDC_ISSUER: nobody could log in",
        ),
        ({"REQUIRE_SECOND_FACTOR": "all"}, "REQUIRE_SECOND_FACTOR must be one of off, staff"),
    ],
)
@pytest.mark.matrix
def test_nonsense_in_the_environment_stops_the_start(changed, message):
    done = manage("check", env=production_environment(**changed))

    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_postgresql_without_a_secret_key_makes_none(tmp_path):
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
def test_nonsense_in_the_settings_of_operators(given, message):
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
        "EMAIL_URL": "smtp://u:p@mail:25",
        "SENTRY_DSN": "",
        "OIDC_CLIENT_SECRET": "",
    }
    folder = Path(os.environ["VAR_DIR"]) / "every-secret"
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_text(f"  {content}\n")
    env = {"PATH": os.environ["PATH"], "VAR_DIR": os.environ["VAR_DIR"]}
    env |= {f"{name}_FILE": str(folder / name) for name in secrets}
    code = (
        "from django.conf import settings as s; d = s.DATABASES['default'];"
        "print([s.SECRET_KEY, *s.ENCRYPTION_KEYS, s.METRICS_TOKEN, s.REDIS_URL, s.EMAIL_HOST,"
        "d['HOST'], d['PASSWORD'], *(s.DATABASES[n]['PASSWORD'] for n in ('direct', 'replica'))])"
    )

    printed = python_output(code, env=env)

    assert secrets == [
        *("DATABASE_DIRECT_URL", "DATABASE_PASSWORD", "DATABASE_REPLICA_URL", "DATABASE_URL"),
        *("EMAIL_URL", "ENCRYPTION_KEYS", "METRICS_TOKEN", "OIDC_CLIENT_SECRET", "REDIS_URL"),
        *("SECRET_KEY", "SENTRY_DSN"),
    ]
    assert ast.literal_eval(printed) == [
        *(files[name] for name in ("SECRET_KEY", "ENCRYPTION_KEYS", "METRICS_TOKEN", "REDIS_URL")),
        *("mail", "db", *[files["DATABASE_PASSWORD"]] * 3),
    ]


def test_make_secrets_fills_what_can_be_made_and_keeps_what_is_there(tmp_path):
    folder = tmp_path / "secrets"
    script = ["sh", str(ROOT / "deploy" / "make_secrets.sh"), str(folder)]
    subprocess.run(script, check=True)
    first = {file.name: file.read_text() for file in folder.iterdir()}
    subprocess.run(script, check=True)

    assert set(first) == {Path(one["file"]).name for one in COMPOSE["secrets"].values()}
    assert {file.name: file.read_text() for file in folder.iterdir()} == first
    assert {name for name, text in first.items() if text} == {"secret_key", "postgres_password"}
    assert len(first["secret_key"]) >= 32
    assert {oct(file.stat().st_mode)[-3:] for file in folder.iterdir()} == {"444"}
    assert oct(folder.stat().st_mode)[-3:] == "700"


@pytest.mark.parametrize("name", ["PUBLIC_URL", "ALLOWED_HOSTS", "DEFAULT_FROM_EMAIL"])
def test_compose_refuses_to_start_without(name):
    text = (ROOT / "docker-compose.yml").read_text()

    with pytest.raises(KeyError, match=name):
        substituted(text, EXAMPLE | {name: ""})


WORKERS = ["worker-email", "worker-webhook", "worker-calendar", "worker-tasks"]


def test_compose_services_and_what_they_publish():
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


def test_compose_waits_for_what_is_healthy():
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


def test_docs_settings_and_compose_name_the_same_variables():
    of_service = SERVICES["web"]["environment"]
    passed = {*EXAMPLE, *(name.removesuffix("_FILE") for name in of_service)}

    assert documented_settings() == read_settings() | OF_PACKAGES
    assert set(EXAMPLE) - NOT_OF_THE_SETTINGS - documented_settings() == set()
    assert documented_settings() - set(EXAMPLE) - OF_PACKAGES == NOT_IN_THE_EXAMPLE
    assert NOT_IN_THE_EXAMPLE - passed == {"VAR_DIR", "STATIC_ROOT", "METRICS_DIR", "DEBUG"}
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


def test_every_variable_of_compose_stands_in_the_example():
    used = set(re.findall(r"\$\{([A-Z_]+)", (ROOT / "docker-compose.yml").read_text()))

    assert used - set(EXAMPLE) == set()


def test_dockerfile_copies_what_is_there_and_drops_root():
    copied = re.findall(r"^COPY (\S+)", DOCKERFILE, re.MULTILINE)
    let_in = re.findall(r"^!(\S+)", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    user = re.findall(r"^USER (\S+)", DOCKERFILE, re.MULTILINE)

    assert [path for path in copied if not (ROOT / path).exists()] == []
    assert copied == let_in
    assert user == ["scheduling"]


def test_every_app_of_the_project_is_in_the_image():
    rooms = {path.parent.name for path in ROOT.glob("*/apps.py")} | {"scheduling"}

    assert rooms - set(re.findall(r"^COPY (\S+)", DOCKERFILE, re.MULTILINE)) == set()


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt"])
def test_locked_requirements_pin_every_package(name):
    lines = (ROOT / name).read_text().splitlines()

    assert [line for line in lines if not re.match(r"[\w.\[\],-]+==\S+", line)] == []
