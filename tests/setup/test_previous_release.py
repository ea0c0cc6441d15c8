"""The previous release's web on the new schema, as it serves while an upgrade goes on.

`.previous-release` names its commit; whoever makes a release writes the next one there. The file is
missing until there is a release.
"""

import re
import subprocess
import sys
import uuid
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.live import CUSTOMER, LiveApp, Rows
from tests.services import ROOT, Service

pytestmark = pytest.mark.both_databases

COMMIT_FILE = ROOT / ".previous-release"
COMMIT = COMMIT_FILE.read_text().strip() if COMMIT_FILE.exists() else ""
MISSING = (
    f"commit {COMMIT} of the previous release is not in this clone"
    if COMMIT
    else "there is no previous release"
)


def git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=False)


@pytest.fixture(scope="module")
def previous_release(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """Its code and packages in a folder; None without a release, or without its commit here."""
    if not COMMIT:
        return None
    archive = git("archive", COMMIT)
    if archive.returncode:
        return None
    folder = tmp_path_factory.mktemp("previous-release")
    subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
    install_missing_packages(folder)
    return folder


def install_missing_packages(folder: Path) -> None:
    """Beside the code in `folder`, what it requires in a version that this checkout lacks."""
    missing = [
        str(requirement).partition(";")[0].strip()
        for line in requirement_lines((folder / "requirements.txt").read_text())
        if (requirement := Requirement(line)).marker is None or requirement.marker.evaluate()
        if not is_installed(requirement)
    ]
    if missing:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        subprocess.run([*pip, "--target", str(folder), *missing], check=True)


def requirement_lines(text: str) -> list[str]:
    """Return the requirements of a file of uv, without their hashes."""
    lines = [line.removesuffix("\\").strip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith(("#", "--"))]


def is_installed(requirement: Requirement) -> bool:
    try:
        return requirement.specifier.contains(metadata.version(requirement.name))
    except metadata.PackageNotFoundError:
        return False


@pytest.fixture
def old_app(
    previous_release: Path | None,
    start_service: Callable[..., Service],
    capsys: pytest.CaptureFixture[str],
) -> LiveApp | None:
    if previous_release is None:
        with capsys.disabled():
            print(f"\nnot tested: {MISSING}")
        return None
    return LiveApp(start_service(workers=1, code=previous_release))


def use(app: LiveApp) -> list[str]:
    """The codes of requests that write to every table of a booking's way."""
    codes = []

    def call(method: str, path: str, body: Any = None, **headers: str) -> Any:
        answer = app.call(method, f"/v2/{path}", body, headers)
        codes.append(f"{method} {path.split('/')[0]} {answer.code}")
        return answer.json["data"] if answer.status < 300 and answer.json else {}

    def span(hour: int) -> dict[str, str]:
        return {"start": f"2031-01-02 {hour:02}:00:00", "end": f"2031-01-02 {hour:02}:30:00"}

    resource = call("POST", "resources", {"name": "Ada", "timezone": "UTC"})
    ada = resource.get("id")
    calendar = call("POST", "calendars", {"name": "Work", "resource_id": ada}).get("id")
    call("POST", "projects", {"name": "Check-up", "resources": [ada]})
    call("POST", "events", {"calendar_id": calendar, "what": "Congress", **span(8)})
    call("POST", "webhooks", {"url": "https://example.com/hook", "active": False})
    booking = {"resource_id": ada, "what": "Check-up", "customer": CUSTOMER}
    key = {"Idempotency-Key": uuid.uuid4().hex}
    first = call("POST", "bookings", {**booking, **span(9)}, **key)
    again = call("POST", "bookings", {**booking, **span(9)}, **key)
    assert first == again
    call("POST", f"bookings/{first.get('id')}/reschedule", span(10))
    call("PUT", f"bookings/{first.get('id')}/cancel")
    held = call("POST", "bookings/reserve", {"resource_id": ada, **span(11)})
    reserved = {**booking, **span(11), "reservation_id": held.get("reservation_id")}
    call("POST", "bookings", reserved)
    call("GET", "bookings")
    return codes


EXPECTED = [
    "POST resources 201",
    "POST calendars 201",
    "POST projects 201",
    "POST events 201",
    "POST webhooks 201",
    "POST bookings 201",
    "POST bookings 201",
    "POST bookings 200",
    "PUT bookings 200",
    "POST bookings 201",
    "POST bookings 201",
    "GET bookings 200",
]


def test_the_previous_release_serves_on_the_new_schema(old_app: LiveApp | None) -> None:
    if old_app is None:
        return

    codes = use(old_app)

    assert codes == EXPECTED
    assert "UNEXPECTED" not in old_app.service.log("web")


@pytest.mark.postgresql
def test_control_column_without_default_is_noticed(old_app: LiveApp | None) -> None:
    """The control: what the test above would say of a careless migration."""
    if old_app is None:
        return
    with Rows(old_app.service).cursor() as cursor:
        cursor.execute("ALTER TABLE availability_event ADD COLUMN colour text NOT NULL DEFAULT ''")
        cursor.execute("ALTER TABLE availability_event ALTER COLUMN colour DROP DEFAULT")
        cursor.connection.commit()

    codes = use(old_app)

    assert [code for code in codes if " 500 " in code] == [
        "POST events 500 internal",
        *["POST bookings 500 internal"] * 3,
    ]


def test_commit_of_the_previous_release_is_a_full_hash() -> None:
    assert not COMMIT_FILE.exists() or re.fullmatch("[0-9a-f]{40}", COMMIT)
