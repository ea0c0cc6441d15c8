"""Daily and hourly tasks that beat missed are made up for, each once."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest
from celery import current_app
from django.conf import settings as django_settings
from django.db import connection

from notifications import overdue_periodic_tasks
from notifications.models import TaskRun
from notifications.overdue_periodic_tasks import RETRY_AFTER, due_time, start_overdue_periodic_tasks
from scheduling.celery import app

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]

DAILY, HOURLY = "notifications.tasks.record_heartbeat", "availability.tasks.purge_holds"
NOW = datetime(2026, 11, 23, 10, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch, settings: Any) -> list[tuple[str, str]]:
    """(task, queue) of what was published, of two tasks."""
    settings.PERIODIC_TASKS = {DAILY: ("03:17", "celery"), HOURLY: (":07", "calendar")}
    found: list[tuple[str, str]] = []

    def send_task(name: str, *, queue: str, **options: Any) -> None:
        found.append((name, queue))

    monkeypatch.setattr(current_app, "send_task", send_task)
    return found


def succeed(at: datetime) -> None:
    TaskRun.objects.update(succeeded_at=at)


@pytest.mark.parametrize(
    ("at", "now", "due"),
    [
        ("03:17", "2026-11-23 03:17:00", "2026-11-23 03:17:00"),
        ("03:17", "2026-11-23 03:16:59", "2026-11-22 03:17:00"),
        ("03:17", "2026-03-01 00:00:00", "2026-02-28 03:17:00"),
        (":07", "2026-11-23 03:07:00", "2026-11-23 03:07:00"),
        (":07", "2026-11-23 00:06:59", "2026-11-22 23:07:00"),
    ],
)
def test_due_time_of_a_task(at: str, now: str, due: str) -> None:
    assert due_time(at, datetime.fromisoformat(now)) == datetime.fromisoformat(due)


def test_new_task_is_started_in_its_queue(published: list) -> None:
    assert start_overdue_periodic_tasks(NOW) == [DAILY, HOURLY]
    assert published == [(DAILY, "celery"), (HOURLY, "calendar")]


def test_second_beat_starts_no_tasks(published: list) -> None:
    assert [start_overdue_periodic_tasks(NOW), start_overdue_periodic_tasks(NOW)] == [
        [DAILY, HOURLY],
        [],
    ]


def test_task_is_started_when_due_again(published: list) -> None:
    start_overdue_periodic_tasks(NOW)
    succeed(NOW)

    soon = [start_overdue_periodic_tasks(NOW + timedelta(minutes=minutes)) for minutes in (36, 37)]
    succeed(NOW + HOUR)
    next_day = start_overdue_periodic_tasks(NOW + timedelta(days=1))

    assert (soon, next_day) == ([[], [HOURLY]], [DAILY, HOURLY])


def test_task_missed_for_days_is_started_once(published: list) -> None:
    start_overdue_periodic_tasks(NOW)
    succeed(NOW)
    late = NOW + timedelta(days=5)

    assert [start_overdue_periodic_tasks(late), start_overdue_periodic_tasks(late)] == [
        [DAILY, HOURLY],
        [],
    ]


def test_failed_task_is_started_again(published: list) -> None:
    start_overdue_periodic_tasks(NOW)
    TaskRun.objects.filter(task=HOURLY).update(succeeded_at=NOW + HOUR)

    again = [start_overdue_periodic_tasks(NOW + wait) for wait in (RETRY_AFTER, RETRY_AFTER * 1.01)]

    assert again == [[], [DAILY]]


def test_broker_outage_delays_tasks_to_the_next_tick(
    published: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(current_app, "send_task", _refuse)
        with pytest.raises(ConnectionError):
            start_overdue_periodic_tasks(NOW)

    assert start_overdue_periodic_tasks(NOW) == [DAILY, HOURLY]


def _refuse(*args: Any, **options: Any) -> None:
    raise ConnectionError


def test_success_is_recorded_and_failure_is_not(
    published: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.loader.import_default_modules()
    start_overdue_periodic_tasks(NOW)
    app.tasks[DAILY].apply()
    monkeypatch.setattr("availability.reserve.holds.purge_lapsed", _refuse)
    app.tasks[HOURLY].apply()

    ended = dict(TaskRun.objects.values_list("task", "succeeded_at"))

    assert [task for task, at in ended.items() if at] == [DAILY]


def test_every_periodic_task_exists() -> None:
    app.loader.import_default_modules()

    assert django_settings.PERIODIC_TASKS.keys() <= app.tasks.keys()
    queues = {queue for _, queue in django_settings.PERIODIC_TASKS.values()}
    assert queues <= django_settings.CELERY_TASK_QUEUES.keys()


# --- Two beats at once ----------------------------------------------------------------------------
def start_twice_at_once(*barriers: Barrier) -> list[list[str]]:
    def start() -> list[str]:
        try:
            return start_overdue_periodic_tasks(NOW)
        except BaseException:
            for barrier in barriers:  # so that the other thread ends too
                barrier.abort()
            raise
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(start) for _ in range(2)]
    # The thread that failed first says why; the other only says that its barrier broke.
    for error in (run.exception() for run in runs):
        if error and not isinstance(error, BrokenBarrierError):
            raise error
    return [run.result() for run in runs]


def meet_before_claims(monkeypatch: pytest.MonkeyPatch, claim: Any) -> Barrier:
    barrier = Barrier(2)

    def claim_together(*args: Any) -> bool:
        barrier.wait()
        return claim(*args)

    monkeypatch.setattr(overdue_periodic_tasks, "_claim", claim_together)
    return barrier


def test_concurrent_beats_start_each_task_once(
    published: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    barrier = meet_before_claims(monkeypatch, overdue_periodic_tasks._claim)

    start_twice_at_once(barrier)

    assert sorted(published) == [(HOURLY, "calendar"), (DAILY, "celery")]


def test_control_read_before_claim_starts_twice(
    published: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Barrier(2)

    def claim(name: str, due: datetime, now: datetime) -> bool:
        is_idle = TaskRun.objects.get(task=name).started_at is None
        read.wait()
        TaskRun.objects.filter(task=name).update(started_at=now)
        return is_idle

    start_twice_at_once(read, meet_before_claims(monkeypatch, claim))

    assert len(published) == 4
