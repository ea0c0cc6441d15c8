"""PostgreSQL is shut down hard and comes back (R15)."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from signal import SIGQUIT

import pytest

from tests.chaos.conftest import House, slug
from tests.live import LiveCaller

START = datetime(2031, 1, 6, tzinfo=UTC)


@pytest.mark.redis
@pytest.mark.postgresql
@pytest.mark.chaos
def test_postgresql_is_restarted_under_load(make_house: Callable[..., House]) -> None:
    """Only 503 while it is down; each 201 is kept; a repeated key ends in one booking."""
    house = make_house(own_postgres=True)
    clients = house.size(20, 6)
    made = house.fill(f"make_app({slug()!r}, {clients})")
    house.service.start_web()
    house.start_worker()
    house.service.start_beat()
    answers: list[Counter[str]] = [Counter() for _ in range(clients)]
    kept: list[dict[str, str]] = [{} for _ in range(clients)]
    until = time.monotonic() + house.size(40, 9)

    def work(client: int) -> None:
        caller = LiveCaller(house.service.url, made["key"])
        number = 0
        while time.monotonic() < until:
            start = START + timedelta(hours=number)
            key = f"{client}-{number}"
            answer = caller.call(
                "POST",
                "/v2/bookings",
                {
                    "resource_id": made["resources"][client],
                    "what": "Meeting",
                    "start": start.isoformat(),
                    "end": (start + timedelta(hours=1)).isoformat(),
                    "customer": {"name": "Ada", "email": "ada@example.com"},
                },
                headers={"Idempotency-Key": key},
            )
            answers[client][answer.code] += 1
            if answer.status == 201:
                kept[client][key] = answer.data["id"]
                number += 1
                time.sleep(0.3)
            else:
                time.sleep(0.5)

    threads = [threading.Thread(target=work, args=(client,)) for client in range(clients)]
    for thread in threads:
        thread.start()
    for _ in range(house.size(3, 1)):
        time.sleep(3)
        house.postgres.kill(SIGQUIT)
        time.sleep(2)
        house.postgres.start()
    for thread in threads:
        thread.join()
    seconds = house.wait_until_done(90)

    total = sum(answers, Counter())
    acknowledged = {booking for client in kept for booking in client.values()}
    reader = LiveCaller(house.service.url, made["key"])
    stored = {
        row["id"]
        for page in range(1, 20)
        for row in reader.get(f"/v2/bookings?limit=1000&page={page}").json["data"]
    }
    print(f"{dict(total)}, queue empty after {seconds:.0f} s")
    assert set(total) == {"201", "503 unavailable"}
    assert stored == acknowledged
    assert sum(len(client) for client in kept) == len(acknowledged)
    assert Counter(mail.id for mail in house.mails.mails).keys() == {
        mail.id for mail in house.mails.mails
    }
    assert len({mail.id for mail in house.mails.mails}) == len(acknowledged)
    assert all(process.poll() is None for process in house.service.processes.values())
    house.verify()
