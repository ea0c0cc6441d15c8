"""The demo: the booking that `./run` proposes is free by the demo's rules."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from ops.management.commands.up import welcome_text
from tests.world import Caller

pytestmark = pytest.mark.both_databases


def proposed(folder: Path) -> tuple[Caller, dict[str, Any]]:
    """A client with the demo's key, and the booking that is printed."""
    call_command("seed_demo", quiet=True)
    made = json.loads((folder / "demo.json").read_text())
    body = re.findall(r"-d '(.*?)' http://demo/v2/bookings", welcome_text("http://demo", demo=True))
    return Caller(made["api_key"]), json.loads(body[0])


@pytest.mark.parametrize(
    "now",
    [
        datetime(2026, 11, 22, 3, tzinfo=UTC),  # a Sunday before dawn
        datetime(2026, 11, 27, 22, tzinfo=UTC),  # a Friday night
        datetime(2026, 10, 20, 11, 30, tzinfo=UTC),  # a week before the clock change
    ],
)
def test_the_proposed_booking_is_free_by_the_demos_rules(
    db: None, settings: Any, tmp_path: Path, time_machine: Any, now: datetime
) -> None:
    settings.VAR_DIR = tmp_path
    time_machine.move_to(now, tick=False)

    caller, booking = proposed(tmp_path)
    explained = caller.post(
        "/availability/explain",
        {"project_id": booking["project_id"], "from": booking["start"], "to": booking["end"]},
    ).data
    answer = caller.post("/bookings", booking)
    _, next_booking = proposed(tmp_path)

    free = [all(one["available"] for one in found["segments"]) for found in explained]
    assert any(free)
    assert (answer.status, answer.data["graph"]) == (201, "instant")
    assert next_booking["start"] >= booking["start"]
    assert caller.post("/bookings", next_booking).status == 201
