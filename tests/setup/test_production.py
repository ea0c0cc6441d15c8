"""The container files, read as far as can be without an engine, and the settings they lead to."""

import os
import re
import subprocess
import sys

import pytest
import yaml

from tests.services import ROOT

COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = COMPOSE["services"]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
EXAMPLE = dict(
    line.removeprefix("# ").split("=", 1)
    for line in (ROOT / ".env.example").read_text().splitlines()
    if re.match(r"(# )?[A-Z_]+=", line)
)
FILLED_IN = EXAMPLE | {
    "SECRET_KEY": "nq3tq8HVhHq2mGqf0oA8Fy0Jx1S5m4wYbV7cR9dLkPz6TgEuXi",
    "POSTGRES_PASSWORD": "secret",
    "EMAIL_URL": "smtp+tls://user:password@mail.example.com:587",
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


def production_environment(**changed: str) -> dict[str, str]:
    given = SERVICES["web"]["environment"]
    made = {name: substituted(text, FILLED_IN) for name, text in given.items()}
    return {"PATH": os.environ["PATH"], "VAR_DIR": os.environ["VAR_DIR"]} | made | changed


def manage(*args: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *args],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )


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
        ({"TRUST_PROXY": "perhaps"}, "TRUST_PROXY must be true or false"),
        ({"RATE_LIMIT_PER_MINUTE": "many"}, "RATE_LIMIT_PER_MINUTE must be an integer"),
    ],
)
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
    "name", ["SECRET_KEY", "POSTGRES_PASSWORD", "PUBLIC_URL", "ALLOWED_HOSTS", "EMAIL_URL"]
)
def test_compose_refuses_to_start_without(name):
    text = (ROOT / "docker-compose.yml").read_text()

    with pytest.raises(KeyError, match=name):
        substituted(text, FILLED_IN | {name: ""})


def test_compose_services_and_what_they_publish():
    published = {name for name, service in SERVICES.items() if "ports" in service}

    assert set(SERVICES) == {"migrate", "web", "worker", "beat", "postgres", "redis"}
    assert published == {"web"}
    assert SERVICES["beat"]["deploy"]["replicas"] == 1
    assert "container_name" not in SERVICES["worker"]  # or it could not be scaled


def test_compose_waits_for_what_is_healthy():
    health = {
        name for name, service in SERVICES.items() if "test" in service.get("healthcheck", {})
    }
    ready = {
        "migrate": {"condition": "service_completed_successfully"},
        "postgres": {"condition": "service_healthy"},
        "redis": {"condition": "service_healthy"},
    }

    assert health == {"worker", "beat", "postgres", "redis"}
    assert "HEALTHCHECK" in DOCKERFILE  # web's
    assert [SERVICES[name]["depends_on"] for name in ("web", "worker", "beat")] == [ready] * 3
    assert SERVICES["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}


def test_compose_sets_only_what_the_settings_read():
    settings = (ROOT / "scheduling" / "settings.py").read_text()

    unknown = [name for name in SERVICES["web"]["environment"] if f'"{name}"' not in settings]

    assert unknown == []


def test_every_variable_of_compose_stands_in_the_example():
    used = set(re.findall(r"\$\{([A-Z_]+)", (ROOT / "docker-compose.yml").read_text()))

    assert used == set(EXAMPLE)


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
