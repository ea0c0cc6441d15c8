"""The TypeScript SDK as its users get it: built, packed, and installed into an empty folder."""

import base64
import json
import re
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from standardwebhooks import Webhook, WebhookVerificationError

from common.openapi.document import document_bytes
from ops.typescript_types import typescript_files
from tests.live import LiveApp
from tests.node_tools import install_tools
from tests.services import ROOT, Service

SDK = ROOT / "sdk" / "typescript"
PROGRAMS = Path(__file__).parent / "typescript"
MAX_PACKED = 60_000  # bytes
# As strict as TypeScript gets, with the package's own declarations checked too.
STRICT = {
    "compilerOptions": {
        "strict": True,
        "skipLibCheck": False,
        "target": "es2022",
        "lib": ["es2022", "dom", "dom.iterable"],
        "module": "nodenext",
        "types": [],
    }
}


def run(*command: str | Path, cwd: Path, given: str | None = None) -> str:
    done = subprocess.run(
        command, cwd=cwd, input=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def example(name: str) -> str:
    (code,) = re.findall(
        rf"^```ts {name}\n(.*?)^```$", (SDK / "README.md").read_text(), re.M | re.S
    )
    return code


@pytest.fixture(scope="module")
def tarball(tmp_path_factory: pytest.TempPathFactory) -> Path:
    modules = install_tools(SDK)
    ignored = shutil.ignore_patterns("node_modules", "dist", "*.tgz")
    folder = shutil.copytree(SDK, tmp_path_factory.mktemp("sdk") / "typescript", ignore=ignored)
    (folder / "node_modules").symlink_to(modules)
    (packed,) = json.loads(run("npm", "pack", "--json", "--loglevel=error", cwd=folder))
    return folder / packed["filename"]


@pytest.fixture(scope="module")
def caller(tarball: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder in which the tarball is installed, with nothing else."""
    folder = tmp_path_factory.mktemp("caller")
    (folder / "package.json").write_text('{"private": true, "type": "module"}')
    (folder / "tsconfig.json").write_text(json.dumps(STRICT))
    options = ("--offline", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
    run("npm", "install", *options, tarball, cwd=folder)
    installed = sorted(each.name for each in (folder / "node_modules").iterdir())
    assert installed == [".package-lock.json", "scheduling-client"]
    for program in PROGRAMS.iterdir():
        shutil.copy(program, folder)
    return folder


# --- The package ----------------------------------------------------------------------------------
def test_generated_types_are_those_of_the_api() -> None:
    """After a change of the API: manage.py write_openapi."""
    folder = SDK / "src" / "generated"

    written = {each.name: each.read_text() for each in folder.iterdir()}

    assert written == typescript_files(json.loads(document_bytes()))


def test_package_has_the_version_of_the_service() -> None:
    package = json.loads((SDK / "package.json").read_text())
    lock = json.loads((SDK / "package-lock.json").read_text())

    versions = [package["version"], lock["version"], lock["packages"][""]["version"]]

    assert versions == [settings.VERSION] * 3


def test_lock_file_records_no_registry() -> None:
    assert "resolved" not in (SDK / "package-lock.json").read_text()


def test_tarball_is_small_and_has_only_what_it_needs(tarball: Path) -> None:
    names = run("tar", "--list", "--file", tarball, cwd=tarball.parent).splitlines()

    others = [name for name in names if not name.startswith("package/dist/")]
    assert sorted(others) == ["package/LICENSE", "package/README.md", "package/package.json"]
    assert {name.partition(".")[2] for name in names if "/dist/" in name} <= {
        *("js", "d.ts", "node.js", "node.d.ts"),
    }
    assert tarball.stat().st_size < MAX_PACKED


@pytest.mark.parametrize("name", ["requests", "iterators"])
def test_programs_against_a_scripted_service(caller: Path, name: str) -> None:
    run("node", "--test", f"{name}.test.mjs", cwd=caller)


# --- The examples of the README -------------------------------------------------------------------
@pytest.fixture(scope="module")
def app(live_service: Service) -> LiveApp:
    return LiveApp(live_service)


@pytest.fixture(scope="module")
def project(app: LiveApp) -> Any:
    hours = [{"allow_hours": {"start": 8, "end": 18}}]
    ada = {"name": "Ada", "timezone": "UTC", "availability_constraints": hours}
    body = {
        "name": "Check-up",
        "slug": f"check-up-{app.slug}",
        "resources": [app.post("/v2/resources", ada).data["id"]],
        "availability": {"length": "30 minutes", "from": "1 day"},
        "booking": {"what": "Check-up"},
    }
    return app.post("/v2/projects", body).data


@pytest.fixture(scope="module")
def compiled(caller: Path, app: LiveApp, project: Any) -> Path:
    """The folder, with the README's examples and `wrong.ts`, which expects errors."""
    code = example("quick-start")
    for text, own in (
        ("http://127.0.0.1:8000", app.url),
        ("live_api_key_...", app.key),
        ("slug:check-up", f"slug:{project['slug']}"),
    ):
        assert text in code
        code = code.replace(text, str(own))
    (caller / "quick-start.ts").write_text(code)
    for name in ("errors", "changes", "webhooks"):
        (caller / f"{name}.ts").write_text(example(name))
    run(install_tools(SDK) / ".bin" / "tsc", "--project", "tsconfig.json", cwd=caller)
    return caller


def test_quick_start_compiles_strictly_and_runs(app: LiveApp, project: Any, compiled: Path) -> None:
    before = app.get("/v2/changes").json["next_cursor"]

    said = run("node", "quick-start.js", cwd=compiled)

    (booking,) = app.get(f"/v2/bookings?project_id={project['id']}").data
    made = datetime.fromisoformat(booking["created_at"]).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    assert said == f"cancelled {made}\n"
    rows = app.get(f"/v2/changes?cursor={before}&types=booking").json["data"]
    assert [row["action"] for row in rows] == ["confirm", "reschedule", "cancel"]


def test_changes_and_errors_of_the_live_service(app: LiveApp, project: Any, caller: Path) -> None:
    """Each change of two bookings once, resumed after every one; then a time that is taken."""
    start = (datetime.now(UTC) + timedelta(days=3)).replace(hour=9, minute=0, second=0)
    given = {
        "options": {"url": app.url, "key": app.key},
        "project_id": project["id"],
        "start": start.isoformat(timespec="seconds"),
        "cursor": app.get("/v2/changes").json["next_cursor"],
    }

    said = json.loads(run("node", "live.mjs", json.dumps(given), cwd=caller))

    rows = app.get(f"/v2/changes?cursor={given['cursor']}&types=booking").json["data"]
    assert [row["action"] for row in rows] == ["confirm", "cancel", "confirm"]
    assert said == {
        "changes": [[row["id"], row["action"], row["cursor"]] for row in rows],
        "types": ["Date", "Date", "Date"],
        "code": "slot_taken",
        "alternatives": "Date",
    }


# --- Webhooks -------------------------------------------------------------------------------------
OLD, NEW, FOREIGN = (f"whsec_{base64.b64encode(bytes([n]) * 24).decode()}" for n in (1, 2, 3))
CALL = {
    "id": "b-1",
    "state": "confirmed",
    "what": "Zoë ☕",
    "created_at": "2026-11-20T09:30:00+0000",
}
READ = {**CALL, "created_at": "2026-11-20T09:30:00.000Z"}
BODY = json.dumps(CALL, ensure_ascii=False)
REFUSED = "WebhookVerificationError"


def signed(
    *secrets: str, body: str = BODY, age: int = 0, id_: str = "msg_1", names: Any = str
) -> dict[str, Any]:
    """The headers of a call, signed by the package with each secret."""
    at = datetime.now(UTC) - timedelta(seconds=age)
    return {
        names("webhook-id"): id_,
        names("webhook-timestamp"): str(int(at.timestamp())),
        names("webhook-signature"): " ".join(Webhook(each).sign(id_, at, body) for each in secrets),
    }


def signed_calls() -> list[tuple[dict[str, Any], list[str], str, bool]]:
    """Headers, the receiver's secrets, the body, and whether the call is genuine."""
    genuine = signed(OLD)
    unsigned = {name: genuine[name] for name in ("webhook-id", "webhook-timestamp")}
    return [
        (genuine, [OLD], BODY, True),
        (signed(OLD, names=str.title), [OLD], BODY, True),
        (signed(OLD), [OLD.removeprefix("whsec_")], BODY, True),
        # After a rotation: either secret, and either of the receiver's.
        (signed(NEW, OLD), [OLD], BODY, True),
        (signed(NEW, OLD), [NEW], BODY, True),
        (signed(OLD), [NEW, OLD], BODY, True),
        (signed(NEW), [NEW, OLD], BODY, True),
        (signed(FOREIGN), [NEW, OLD], BODY, False),
        (signed(OLD), [OLD], BODY.replace("confirmed", "cancelled"), False),
        (signed(OLD), [OLD], BODY + "\n", False),
        (genuine | {"webhook-id": "msg_2"}, [OLD], BODY, False),
        (
            genuine | {"webhook-timestamp": signed(OLD, age=9)["webhook-timestamp"]},
            [OLD],
            BODY,
            False,
        ),
        # Five minutes in both directions.
        (signed(OLD, age=280), [OLD], BODY, True),
        (signed(OLD, age=-280), [OLD], BODY, True),
        (signed(OLD, age=400), [OLD], BODY, False),
        (signed(OLD, age=-400), [OLD], BODY, False),
        (genuine | {"webhook-timestamp": "soon"}, [OLD], BODY, False),
        (genuine | {"webhook-signature": "v1,"}, [OLD], BODY, False),
        (genuine | {"webhook-signature": "v1,%%%"}, [OLD], BODY, False),
        (
            genuine | {"webhook-signature": genuine["webhook-signature"].replace("v1,", "v2,")},
            *([OLD], BODY, False),
        ),
        (unsigned, [OLD], BODY, False),
        ({**genuine, "webhook-id": ""}, [OLD], BODY, False),
    ]


def verdict_of_package(headers: dict[str, Any], secrets: list[str], body: str) -> bool:
    def accepts(secret: str) -> bool:
        try:
            Webhook(secret).verify(body, {name.lower(): text for name, text in headers.items()})
        except (WebhookVerificationError, ValueError):  # of what is no base64
            return False
        return True

    return any(accepts(secret) for secret in secrets)


def verify(caller: Path, calls: list[dict[str, Any]]) -> list[Any]:
    encoded = [{**each, "body": base64.b64encode(each["body"].encode()).decode()} for each in calls]
    return json.loads(run("node", "verify_calls.mjs", cwd=caller, given=json.dumps(encoded)))


def test_verify_and_the_package_agree_on_every_call(caller: Path) -> None:
    calls = signed_calls()
    given = [{"headers": one, "secrets": own, "body": body} for one, own, body, _ in calls]

    verdicts = verify(caller, given)

    assert [verdict_of_package(*call[:3]) for call in calls] == [call[3] for call in calls]
    assert verdicts == [READ if is_genuine else REFUSED for *_, is_genuine in calls]


def test_tolerance_can_be_chosen(caller: Path) -> None:
    old = {"headers": signed(OLD, age=400), "secrets": OLD, "body": BODY}

    verdicts = verify(caller, [{**old, "tolerance": 500}, {**old, "tolerance": 300}])

    assert verdicts == [READ, REFUSED]


def test_call_by_get_has_no_body(caller: Path) -> None:
    """An event notification's."""
    headers = signed(OLD, body="")
    foreign = signed(FOREIGN, body="")

    verdicts = verify(
        caller,
        [
            {"headers": headers, "secrets": OLD, "body": ""},
            {"headers": headers, "secrets": OLD, "body": "{}"},
            {"headers": foreign, "secrets": OLD, "body": ""},
        ],
    )

    assert verdicts == [None, REFUSED, REFUSED]


def test_every_format_has_dates(caller: Path) -> None:
    at = {"at": "2026-11-20T09:30:00+0000"}
    stamp = "2026-11-20T09:30:00+00:00"
    bodies: list[dict[str, Any]] = [
        {"type": "booking.confirmed", "timestamp": stamp, "data": CALL},
        {"kind": "booking.confirmed", "id": "b-1", "cursor": "1-a"},
        {"kind": "resource.created", "object_id": "r", "object": None, **at},
        {"kind": "calendar.problem", "calendar": {}, "problem": {"since": at["at"]}},
    ]
    texts = [json.dumps(body) for body in bodies]

    verdicts = verify(
        caller,
        [{"headers": signed(OLD, body=text), "secrets": OLD, "body": text} for text in texts],
    )

    read = "2026-11-20T09:30:00.000Z"
    assert verdicts == [
        {**bodies[0], "timestamp": read, "data": READ},
        bodies[1],
        {**bodies[2], "at": read},
        {**bodies[3], "problem": {"since": read}},
    ]
