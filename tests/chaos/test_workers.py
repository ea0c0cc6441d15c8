"""Workers that are killed, stopped, doubled or alone (R10, R11, R24, R25, R28)."""

import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import icalendar
import pytest

from tests.chaos.conftest import IN_FLIGHT, Deployment, count_duplicates, p99, slug
from tests.external_calendars.servers import Radicale
from tests.live import Rows
from tests.sinks import Answer, Call, hook_sink

WRITES = """SELECT state, count(*) FROM notifications_delivery WHERE type = 'calendar'
GROUP BY state"""


@pytest.mark.chaos
@pytest.mark.redis
@pytest.mark.postgresql
def test_killed_workers_lose_no_deliveries(deployment: Deployment) -> None:
    calls, mails = deployment.size(10_000, 600), deployment.size(2000, 80)
    deployment.hooks.answers["/hook"] = Answer(delay=0.02)
    ids = deployment.fill(f"make_calls({slug()!r}, {[deployment.hooks.url()]!r}, {calls}, 0)")
    mail_ids = deployment.fill(f"make_mails({slug()!r}, {mails})")
    for name in ("one", "two"):
        deployment.start_worker(name)
    deployment.service.start_beat()

    while not deployment.hooks.calls:
        time.sleep(0.02)

    pause, rounds = (2.0, 40) if deployment.full else (0.4, 4)
    for number in range(rounds):
        time.sleep(pause)
        if not deployment.count_open():
            break
        if number % 4 == 3:
            deployment.kill_worker(("one", "two")[number // 4 % 2])
        else:
            deployment.kill_busiest("one", "two")
    if not deployment.full:  # whose few kills may all have come between two batches
        deployment.kill_while_sending("one", "two")
    seconds = deployment.wait_until_done()

    counts = deployment.hooks.count_by_id()
    letters = [mail.id for mail in deployment.mails.mails]
    print(
        f"{calls} calls, {mails} mails, {deployment.kills} kills, {deployment.count_lapses()}"
        f" leases lapsed: {count_duplicates(counts)} calls and"
        f" {len(letters) - len(set(letters))} mails twice, {seconds:.0f} s after the last kill"
    )
    assert set(counts) == set(ids)
    assert {letter.strip("<>").split("@")[0] for letter in letters} == set(mail_ids)
    assert deployment.count_lapses() > 0, "no kill hit a worker that was sending"
    assert count_duplicates(counts) <= deployment.kills * IN_FLIGHT
    assert len(letters) - len(set(letters)) <= deployment.kills * IN_FLIGHT
    assert deployment.states() == {"delivered": calls + mails}
    deployment.verify()


@pytest.mark.redis
@pytest.mark.postgresql
@pytest.mark.chaos
def test_killed_workers_write_each_event_once(deployment: Deployment) -> None:
    """Into a calendar elsewhere: made, moved and removed while the workers are killed."""
    count, app = deployment.size(2400, 60), slug()
    server = Radicale()
    server.start()
    try:
        home = server.make_calendar()
        opened = threading.Event()

        def block_call(call: Call) -> None:
            """The first ones, until their workers are dead."""
            opened.wait(10)

        home.server.front.answer = block_call
        deployment.fill(f"make_writes({app!r}, {list(home.access)!r}, {count})")
        for name in ("one", "two"):
            deployment.start_worker(name)
        deployment.service.start_beat()
        deployment.kill_while_sending("one", "two")
        opened.set()
        with ThreadPoolExecutor(1) as pool:
            changes = pool.submit(deployment.fill, f"change_writes({app!r})")
            for number in range(deployment.size(15, 2)):
                time.sleep(deployment.size(3, 1))
                deployment.kill_worker(("one", "two")[number % 2])
            changes.result()
        seconds = deployment.wait_until_done(400)

        expected = deployment.fill(f"expected_writes({app!r})")
        objects = [home.get(name) or "" for name in home.names()]
        found = sorted((field(text, "UID"), field(text, "DTSTART")) for text in objects)
        print(
            f"{count} bookings elsewhere, {len(server.front.calls)} requests,"
            f" {deployment.kills} kills, {deployment.count_lapses()} leases lapsed,"
            f" {seconds:.0f} s after the last kill"
        )
        assert found == sorted(expected.items())
        assert len(found) == count - count // 3
        assert deployment.count_lapses() > 0, "no kill hit a worker that was sending"
        assert Rows(deployment.service).read(WRITES) == [("delivered", count + 2 * (count // 3))]
        deployment.verify()
    finally:
        server.stop()


def field(text: str, name: str) -> str:
    """Of an object with one event: `20270101T090000Z` of `DTSTART`."""
    [event] = icalendar.Calendar.from_ical(text).events
    return event[name].to_ical().decode()


@pytest.mark.redis
@pytest.mark.postgresql
@pytest.mark.chaos
def test_stopped_worker_releases_unsent_deliveries(
    make_deployment: Callable[..., Deployment],
) -> None:
    """SIGTERM in the middle, then a new one: nothing lost, nothing twice."""
    deployment = make_deployment(DELIVERY_THREADS=4)
    count = deployment.size(1000, 200)
    deployment.hooks.answers["/slow"] = Answer(delay=0.05)
    ids = deployment.fill(
        f"make_calls({slug()!r}, {[deployment.hooks.url('/slow')]!r}, {count}, 0)"
    )
    deployment.start_worker("old")
    deployment.service.start_beat()
    while len(deployment.hooks.calls) < count // 10:
        time.sleep(0.02)
    began = time.monotonic()
    deployment.service.kill("old", signal.SIGTERM)
    stopped = time.monotonic() - began
    sent, left = len(deployment.hooks.calls), deployment.states()
    deployment.start_worker("new")
    seconds = deployment.wait_until_done()

    print(f"stopped in {stopped:.1f} s with {sent} of {count} sent, done {seconds:.1f} s later")
    assert 0 < sent < count
    assert left == {"delivered": sent, "scheduled": count - sent}
    assert deployment.hooks.count_by_id() == dict.fromkeys(ids, 1)
    deployment.verify()


@pytest.mark.redis
@pytest.mark.chaos
def test_two_beats_and_three_workers_send_once(deployment: Deployment) -> None:
    count = deployment.size(500, 100)
    ids = deployment.fill(
        f"make_calls({slug()!r}, {[deployment.hooks.url()]!r}, {count}, {deployment.size(60, 5)})"
    )
    for name in ("one", "two", "three"):
        deployment.start_worker(name)
    deployment.service.start_beat()
    beat = deployment.service.processes.pop("beat")
    deployment.service.processes["first-beat"] = beat
    deployment.service.env["VAR_DIR"] = str(deployment.service.folder / "other")
    deployment.service.start_beat()
    deployment.wait_until_done()

    assert deployment.hooks.count_by_id() == dict.fromkeys(ids, 1)


@pytest.mark.redis
@pytest.mark.chaos
def test_workers_poll_without_beat(deployment: Deployment) -> None:
    count = deployment.size(100, 20)
    deployment.start_worker()
    ids = deployment.fill(f"make_calls({slug()!r}, {[deployment.hooks.url()]!r}, {count}, 3)")
    deployment.wait_until_done(60)

    late = [call.at - ids[call.id] for call in deployment.hooks.calls]
    print(f"no beat: {count} sent, p99 {p99(late):.1f} s late")
    assert deployment.hooks.count_by_id() == dict.fromkeys(ids, 1)


@pytest.mark.redis
@pytest.mark.postgresql
@pytest.mark.chaos
def test_hanging_server_does_not_delay_others(make_deployment: Callable[..., Deployment]) -> None:
    """Rows to it stand ahead of all others; a dispatcher has eight threads, half of them for it."""
    deployment = make_deployment(DELIVERY_THREADS=8)
    deployment.hooks.answers["/good"] = Answer(delay=0.01)
    with hook_sink() as hanging:
        hanging.answers["/hang"] = Answer(delay=20)  # the deadline of a call is 15 s
        app, bad, good = slug(), deployment.size(500, 60), deployment.size(200, 40)
        deployment.fill(f"make_calls({app!r}, {[hanging.url('/hang')]!r}, {bad}, 0)")
        ids = deployment.fill(
            f"make_calls({app!r}, {[deployment.hooks.url('/good')]!r}, {good}, 0)"
        )
        deployment.start_worker()
        deployment.service.start_beat()
        while len(deployment.hooks.calls) < good:
            time.sleep(0.05)
        held = len(hanging.calls)

    began = min(call.at for call in (*deployment.hooks.calls, *hanging.calls))
    took = [call.at - began for call in deployment.hooks.calls]
    print(f"{good} good ones behind {bad} hanging: p99 {p99(took):.1f} s, {held} hung meanwhile")
    assert deployment.hooks.count_by_id() == dict.fromkeys(ids, 1)
    assert held <= 4
