"""The upgrade from the release before: `migrate` beside its web, which serves all the while."""

import subprocess
import sys
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.live import CUSTOMER, LiveApp, Rows
from tests.services import Service, own_database
from tests.setup.test_previous_release import MISSING, previous_release  # noqa: F401

pytestmark = pytest.mark.postgresql

CLIENTS = 4
START = datetime(2031, 1, 6, tzinfo=UTC)


class Traffic:
    """Clients that book, move, cancel and list until they are stopped."""

    def __init__(self, app: LiveApp) -> None:
        self.app = app
        self.codes: Counter[int] = Counter()
        self.booked: list[str] = []
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._serve, args=(n,)) for n in range(CLIENTS)]

    def __enter__(self) -> "Traffic":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def _serve(self, client: int) -> None:
        resource = {"name": f"Ada {client}", "timezone": "UTC"}
        ada = self.app.call("POST", "/v2/resources", resource).data["id"]
        number = 0
        while not self._stopped.is_set():
            number += 1
            booking = {"resource_id": ada, "what": "Visit", "customer": CUSTOMER}
            booked = self._count("POST", "/v2/bookings", booking | span(number))
            if booked:
                self.booked.append(booked["id"])
                path = f"/v2/bookings/{booked['id']}"
                self._count("POST", f"{path}/reschedule", span(number + 100_000))
                if number % 2:
                    self._count("PUT", f"{path}/cancel")
            self._count("GET", "/v2/bookings?limit=10")

    def _count(self, method: str, path: str, body: object = None) -> dict | None:
        answer = self.app.call(method, path, body)
        self.codes[answer.status] += 1
        return answer.data if answer.status == 201 else None


def span(number: int) -> dict[str, str]:
    start = START + number * timedelta(minutes=30)
    return {"start": start.isoformat(), "end": (start + timedelta(minutes=30)).isoformat()}


def fill(service: Service, bookings: int) -> None:
    """Rows of another app, by the release's own code."""
    command = [sys.executable, "-m", "benchmarks.listing_rows", str(bookings)]
    env = service.env | {"DJANGO_SETTINGS_MODULE": "scheduling.settings"}
    done = subprocess.run(command, cwd=service.code, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("bookings", "rounds"), [(2_000, 1), pytest.param(200_000, 3, marks=pytest.mark.deep)]
)
def test_migrate_succeeds_under_traffic(
    previous_release: Path | None,  # noqa: F811
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    bookings: int,
    rounds: int,
) -> None:
    if previous_release is None:
        with capsys.disabled():
            print(f"\nnot tested: {MISSING}")
        return
    for number in range(rounds):
        folders = [tmp_path / f"{name}-{number}" for name in ("database", "old", "new")]
        for folder in folders:
            folder.mkdir()
        with own_database(folders[0], migrated=False) as url:
            old = Service(folders[1], url, {}, previous_release)
            new = Service(folders[2], url, {})
            try:
                upgrade_once(old, new, bookings)
            finally:
                old.stop()
                new.stop()


def upgrade_once(old: Service, new: Service, bookings: int) -> None:
    old.manage("migrate")
    fill(old, bookings)
    old.start_web()
    with Traffic(LiveApp(old)) as traffic:
        printed = new.manage("migrate")
        before = sum(traffic.codes.values())
    stored = {str(row[0]) for row in Rows(new).read("SELECT id FROM bookings_booking")}

    assert "Applying" in printed
    assert before > 0
    assert {code for code in traffic.codes if code >= 400} <= {503}, traffic.codes
    assert [one for one in traffic.booked if one not in stored] == []
    assert "UNEXPECTED" not in old.log("web")
    assert new.manage("migrate", "--check") == ""
