"""Workers that are killed, stopped, doubled or alone (R10, R11, R24, R25, R28)."""

import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import icalendar
import pytest

from tests.chaos.conftest import IN_FLIGHT, House, p99, slug, surplus
from tests.external_calendars.servers import Radicale
from tests.live import Rows
from tests.sinks import Answer, Call, hook_sink

WRITES = """SELECT state, count(*) FROM notifications_delivery WHERE type = 'calendar'
GROUP BY state"""


@pytest.mark.chaos
@pytest.mark.redis
@pytest.mark.postgresql
def test_killed_workers_lose_nothing(house: House) -> None:
    calls, mails = house.size(10_000, 600), house.size(2000, 80)
    house.hooks.answers["/hook"] = Answer(delay=0.02)
    ids = house.fill(f"make_calls({slug()!r}, {[house.hooks.url()]!r}, {calls}, 0)")
    mail_ids = house.fill(f"make_mails({slug()!r}, {mails})")
    for name in ("one", "two"):
        house.start_worker(name)
    house.service.start_beat()

    while not house.hooks.calls:
        time.sleep(0.02)

    pause, rounds = (2.0, 40) if house.full else (0.4, 4)
    for number in range(rounds):
        time.sleep(pause)
        if not house.count_open():
            break
        if number % 4 == 3:
            house.kill_worker(("one", "two")[number // 4 % 2])
        else:
            house.kill_busiest("one", "two")
    if not house.full:  # whose few kills may all have come between two batches
        house.kill_while_sending("one", "two")
    seconds = house.wait_until_done()

    counts = house.hooks.count_by_id()
    letters = [mail.id for mail in house.mails.mails]
    print(
        f"{calls} calls, {mails} mails, {house.kills} kills, {house.count_lapses()} leases lapsed:"
        f" {surplus(counts)} calls and"
        f" {len(letters) - len(set(letters))} mails twice, {seconds:.0f} s after the last kill"
    )
    assert set(counts) == set(ids)
    assert {letter.strip("<>").split("@")[0] for letter in letters} == set(mail_ids)
    assert house.count_lapses() > 0, "no kill hit a worker that was sending"
    assert surplus(counts) <= house.kills * IN_FLIGHT
    assert len(letters) - len(set(letters)) <= house.kills * IN_FLIGHT
    assert house.states() == {"delivered": calls + mails}
    house.verify()


@pytest.mark.redis
@pytest.mark.postgresql
@pytest.mark.chaos
def test_killed_workers_write_each_event_once(house: House) -> None:
    """Into a calendar elsewhere: made, moved and removed while the workers are killed."""
    count, app = house.size(2400, 60), slug()
    server = Radicale()
    server.start()
    try:
        home = server.make_calendar()
        opened = threading.Event()

        def hold_up(call: Call) -> None:
            """The first ones, until their workers are dead."""
            opened.wait(10)

        home.server.front.answer = hold_up
        house.fill(f"make_writes({app!r}, {list(home.access)!r}, {count})")
        for name in ("one", "two"):
            house.start_worker(name)
        house.service.start_beat()
        house.kill_while_sending("one", "two")
        opened.set()
        with ThreadPoolExecutor(1) as pool:
            changes = pool.submit(house.fill, f"change_writes({app!r})")
            for number in range(house.size(15, 2)):
                time.sleep(house.size(3, 1))
                house.kill_worker(("one", "two")[number % 2])
            changes.result()
        seconds = house.wait_until_done(400)

        expected = house.fill(f"expected_writes({app!r})")
        objects = [home.get(name) or "" for name in home.names()]
        found = sorted((field(text, "UID"), field(text, "DTSTART")) for text in objects)
        print(
            f"{count} bookings elsewhere, {len(server.front.calls)} requests, {house.kills} kills,"
            f" {house.count_lapses()} leases lapsed, {seconds:.0f} s after the last kill"
        )
        assert found == sorted(expected.items())
        assert len(found) == count - count // 3
        assert house.count_lapses() > 0, "no kill hit a worker that was sending"
        assert Rows(house.service).read(WRITES) == [("delivered", count + 2 * (count // 3))]
        house.verify()
    finally:
        server.stop()


def field(text: str, name: str) -> str:
    """Of an object with one event: `20270101T090000Z` of `DTSTART`."""
    [event] = icalendar.Calendar.from_ical(text).events
    return event[name].to_ical().decode()


@pytest.mark.redis
@pytest.mark.postgresql
@pytest.mark.chaos
def test_a_worker_that_is_stopped_gives_back_what_it_has_not_sent(
    make_house: Callable[..., House],
) -> None:
    """SIGTERM in the middle, then a new one: nothing lost, nothing twice."""
    house = make_house(DELIVERY_THREADS=4)
    count = house.size(1000, 200)
    house.hooks.answers["/slow"] = Answer(delay=0.05)
    ids = house.fill(f"make_calls({slug()!r}, {[house.hooks.url('/slow')]!r}, {count}, 0)")
    house.start_worker("old")
    house.service.start_beat()
    while len(house.hooks.calls) < count // 10:
        time.sleep(0.02)
    began = time.monotonic()
    house.service.kill("old", signal.SIGTERM)
    stopped = time.monotonic() - began
    sent, left = len(house.hooks.calls), house.states()
    house.start_worker("new")
    seconds = house.wait_until_done()

    print(f"stopped in {stopped:.1f} s with {sent} of {count} sent, done {seconds:.1f} s later")
    assert 0 < sent < count
    assert left == {"delivered": sent, "scheduled": count - sent}
    assert house.hooks.count_by_id() == dict.fromkeys(ids, 1)
    house.verify()


@pytest.mark.redis
@pytest.mark.chaos
def test_two_beats_and_three_workers_send_once(house: House) -> None:
    count = house.size(500, 100)
    ids = house.fill(
        f"make_calls({slug()!r}, {[house.hooks.url()]!r}, {count}, {house.size(60, 5)})"
    )
    for name in ("one", "two", "three"):
        house.start_worker(name)
    house.service.start_beat()
    beat = house.service.processes.pop("beat")
    house.service.processes["first-beat"] = beat
    house.service.env["VAR_DIR"] = str(house.service.folder / "other")
    house.service.start_beat()
    house.wait_until_done()

    assert house.hooks.count_by_id() == dict.fromkeys(ids, 1)


@pytest.mark.redis
@pytest.mark.chaos
def test_without_a_beat_the_workers_look_for_themselves(house: House) -> None:
    count = house.size(100, 20)
    house.start_worker()
    ids = house.fill(f"make_calls({slug()!r}, {[house.hooks.url()]!r}, {count}, 3)")
    house.wait_until_done(60)

    late = [call.at - ids[call.id] for call in house.hooks.calls]
    print(f"no beat: {count} sent, p99 {p99(late):.1f} s late")
    assert house.hooks.count_by_id() == dict.fromkeys(ids, 1)


@pytest.mark.redis
@pytest.mark.postgresql
@pytest.mark.chaos
def test_a_server_that_hangs_holds_up_no_other(make_house: Callable[..., House]) -> None:
    """Rows to it stand ahead of all others; a dispatcher has eight threads, half of them for it."""
    house = make_house(DELIVERY_THREADS=8)
    house.hooks.answers["/good"] = Answer(delay=0.01)
    with hook_sink() as hanging:
        hanging.answers["/hang"] = Answer(delay=20)  # the deadline of a call is 15 s
        app, bad, good = slug(), house.size(500, 60), house.size(200, 40)
        house.fill(f"make_calls({app!r}, {[hanging.url('/hang')]!r}, {bad}, 0)")
        ids = house.fill(f"make_calls({app!r}, {[house.hooks.url('/good')]!r}, {good}, 0)")
        house.start_worker()
        house.service.start_beat()
        while len(house.hooks.calls) < good:
            time.sleep(0.05)
        held = len(hanging.calls)

    began = min(call.at for call in (*house.hooks.calls, *hanging.calls))
    took = [call.at - began for call in house.hooks.calls]
    print(f"{good} good ones behind {bad} hanging: p99 {p99(took):.1f} s, {held} hung meanwhile")
    assert house.hooks.count_by_id() == dict.fromkeys(ids, 1)
    assert held <= 4
