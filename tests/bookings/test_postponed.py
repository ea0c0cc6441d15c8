"""What staff decide about several bookings happens ten seconds later, once, unless they undo it."""

import threading
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.utils import timezone

from availability.models import Calendar, Event
from bookings.models import Booking, PostponedStep, PostponedTask, StateChange
from bookings.services import (
    Actor,
    PolicyViolated,
    customer_may_move,
    postponed,
    reschedule_booking,
)
from bookings.services.postponed import ClosedTime, PlannedStep, carry_out_due, postpone, undo
from notifications.models import Delivery
from tests.notifications.test_dispatcher import soon
from tests.waiters import wait_for_a_waiter
from tests.world import Tenant, hours

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]
in_threads = pytest.mark.postgresql
LATER = timedelta(seconds=11)
STAFF = "desk@example.com"


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource("Ada", email="ada@example.com")


@pytest.fixture
def bob(tenant: Tenant) -> Any:
    return tenant.make_resource("Bob", email="bob@example.com")


def booked(tenant: Tenant, resource: Any, start: datetime, **given: Any) -> Booking:
    times = {"start": start.isoformat(), "end": (start + hours(1)).isoformat()}
    answer = tenant.book(resource_id=resource["id"], **times, **given)
    return Booking.objects.select_related("event").get(id=answer.data["id"])


@pytest.fixture
def three(tenant: Tenant, ada: Any) -> list[Booking]:
    return [booked(tenant, ada, soon(hours=30 + 2 * number)) for number in range(3)]


def decide(tenant: Tenant, *steps: PlannedStep, **given: Any) -> PostponedTask:
    return postpone(app=tenant.app, actor=STAFF, steps=steps, now=timezone.now(), **given)


def cancel_all(tenant: Tenant, bookings: list[Booking], **given: Any) -> PostponedTask:
    steps = [PlannedStep(booking, PostponedStep.CANCEL) for booking in bookings]
    return decide(tenant, *steps, **given)


def carry_out() -> None:
    carry_out_due(now=timezone.now() + LATER)


def results(task: PostponedTask) -> list[tuple[str, str]]:
    return [(step.state, str(step.reason)) for step in task.steps.order_by("id")]


def states() -> list[str]:
    return list(Booking.objects.order_by("event__start").values_list("state", flat=True))


def closed(resource: Any, start: datetime) -> ClosedTime:
    calendar = Calendar.objects.select_related("resource").get(resource=resource["id"])
    times = {"start": start, "end": start + hours(24)}
    return ClosedTime(calendar, {"what": "Away", "busy": True, "all_day": False, **times})


def test_steps_are_carried_out_when_the_time_to_undo_is_over(
    tenant: Tenant, three: list[Booking]
) -> None:
    task = cancel_all(tenant, three[:2], message="Ada is ill.")

    carry_out_due(now=timezone.now())
    early = states()
    carry_out()

    logs = StateChange.objects.filter(action="cancel").values_list("actor", "source", "message")
    task.refresh_from_db()
    assert early == ["confirmed"] * 3
    assert states() == ["cancelled", "cancelled", "confirmed"]
    assert list(logs) == [(STAFF, "admin", "Ada is ill.")] * 2
    assert results(task) == [("done", ""), ("done", "")]
    assert (bool(task.finished_at), task.message) == (True, "")


def test_undo_opens_the_time_and_nothing_happens(
    tenant: Tenant, ada: Any, three: list[Booking]
) -> None:
    task = cancel_all(tenant, three, closed=[closed(ada, soon(hours=20))])
    blocked = Event.objects.filter(what="Away").count()

    undone = undo(app=tenant.app, task_id=task.id)
    carry_out()

    assert (blocked, undone) == (1, True)
    assert Event.objects.filter(what="Away").count() == 0
    assert states() == ["confirmed"] * 3
    assert PostponedTask.objects.count() == PostponedStep.objects.count() == 0
    assert undo(app=tenant.app, task_id=task.id) is False


def test_task_of_another_app_is_not_undone(
    tenant: Tenant, make_tenant: Any, three: list[Booking]
) -> None:
    task = cancel_all(tenant, three)

    assert undo(app=make_tenant().app, task_id=task.id) is False
    assert PostponedTask.objects.count() == 1


def test_bookings_that_changed_meanwhile_are_skipped(tenant: Tenant, three: list[Booking]) -> None:
    task = cancel_all(tenant, three)
    gone, moved, _ = three
    tenant.put(f"/bookings/{gone.id}/cancel_by_customer")
    times = {"start": soon(hours=50).isoformat(), "end": soon(hours=51).isoformat()}
    assert tenant.post(f"/bookings/{moved.id}/reschedule", times).status == 200

    carry_out()

    assert results(task) == [
        ("skipped", "The booking has changed meanwhile."),
        ("skipped", "The booking was moved."),
        ("done", ""),
    ]
    assert sorted(states()) == ["cancelled", "cancelled_by_customer", "confirmed"]


def test_move_to_a_time_that_is_taken_meanwhile_is_refused(
    tenant: Tenant, bob: Any, three: list[Booking]
) -> None:
    first, second, _ = three
    task = decide(
        tenant,
        *(
            PlannedStep(
                booking, PostponedStep.MOVE, booking.event.start, booking.event.end, bob["id"]
            )
            for booking in (first, second)
        ),
        message="You will see Bob.",
    )
    booked(tenant, bob, second.event.start)

    carry_out()

    first.refresh_from_db()
    second.refresh_from_db()
    assert results(task) == [("done", ""), ("refused", "The time is taken.")]
    assert (str(first.resource_id), second.resource.name) == (bob["id"], "Ada")
    kinds = Delivery.objects.filter(booking=first, change__action="reassign", type="email")
    assert set(kinds.values_list("kind", flat=True)) == {"reassigned", "unassigned"}


def test_move_to_a_resource_of_another_app_is_refused(
    tenant: Tenant, make_tenant: Any, three: list[Booking]
) -> None:
    foreign = make_tenant().make_resource("Eve")
    booking = three[0]
    times = booking.event.start, booking.event.end
    task = decide(tenant, PlannedStep(booking, PostponedStep.MOVE, *times, foreign["id"]))

    carry_out()

    assert results(task) == [("refused", "resource_id: The resource no longer exists.")]


def test_crash_between_two_steps_is_repeated_without_doubling(
    tenant: Tenant, three: list[Booking], monkeypatch: pytest.MonkeyPatch
) -> None:
    task = cancel_all(tenant, three)
    apply = postponed._apply

    def lose_the_database(task: Any, step: PostponedStep, now: Any) -> None:
        apply(task, step, now)
        if step.booking_id == three[1].id:
            raise OperationalError("server closed the connection unexpectedly")

    with monkeypatch.context() as patch:
        patch.setattr(postponed, "_apply", lose_the_database)
        with pytest.raises(OperationalError):
            carry_out()
    after_crash = [state for state, _ in results(task)]
    undone = undo(app=tenant.app, task_id=task.id)
    carry_out()

    assert after_crash == ["done", "pending", "pending"]
    assert undone is False
    assert [state for state, _ in results(task)] == ["done"] * 3
    assert StateChange.objects.filter(action="cancel").count() == 3
    mails = Delivery.objects.filter(kind="cancelled", recipient="customer")
    assert mails.count() == 3


def test_error_in_one_step_leaves_the_others(
    tenant: Tenant, three: list[Booking], monkeypatch: pytest.MonkeyPatch
) -> None:
    task = cancel_all(tenant, three[:2])
    apply = postponed._apply

    def fail_once(task: Any, step: PostponedStep, now: Any) -> None:
        apply(task, step, now)
        if step.booking_id == three[0].id:
            raise RuntimeError("a bug")

    monkeypatch.setattr(postponed, "_apply", fail_once)
    carry_out()

    assert [state for state, _ in results(task)] == ["refused", "done"]
    assert states() == ["confirmed", "cancelled", "confirmed"]


@in_threads
def test_two_workers_share_a_task(tenant: Tenant, three: list[Booking]) -> None:
    cancel_all(tenant, three)
    together = threading.Barrier(2)

    def work() -> None:
        together.wait()
        carry_out()

    workers = [in_thread(work), in_thread(work)]
    for worker in workers:
        worker.join()
    carry_out()

    assert states() == ["cancelled"] * 3
    assert StateChange.objects.filter(action="cancel").count() == 3
    assert PostponedTask.objects.filter(finished_at=None).count() == 0


def in_thread(work: Any) -> threading.Thread:
    def run() -> None:
        try:
            work()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


@in_threads
def test_undo_and_start_at_the_same_time_exclude_each_other(
    tenant: Tenant, three: list[Booking], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker starts between the look and the deletion of the undo: it has to wait."""
    task = cancel_all(tenant, three)
    workers = []
    lock = postponed._lock_to_undo

    def lock_and_start(*args: Any) -> PostponedTask | None:
        found = lock(*args)
        workers.append(in_thread(carry_out))
        wait_for_a_waiter()
        return found

    monkeypatch.setattr(postponed, "_lock_to_undo", lock_and_start)
    undone = undo(app=tenant.app, task_id=task.id)
    workers[0].join()

    assert undone is True
    assert states() == ["confirmed"] * 3


@in_threads
def test_control_without_the_lock_bookings_are_cancelled_and_undone(
    tenant: Tenant, three: list[Booking], monkeypatch: pytest.MonkeyPatch
) -> None:
    task = cancel_all(tenant, three)

    def read_then_start(app: Any, task_id: Any) -> PostponedTask | None:
        found = PostponedTask.objects.filter(app=app, id=task_id).first()
        in_thread(carry_out).join()
        return found

    monkeypatch.setattr(postponed, "_lock_to_undo", read_then_start)
    undone = undo(app=tenant.app, task_id=task.id)

    assert undone is True
    assert states() == ["cancelled"] * 3


def test_started_task_is_not_undone(tenant: Tenant, ada: Any, three: list[Booking]) -> None:
    task = cancel_all(tenant, three, closed=[closed(ada, soon(hours=20))])
    carry_out()

    assert undo(app=tenant.app, task_id=task.id) is False
    assert Event.objects.filter(what="Away").count() == 1
    assert states() == ["cancelled"] * 3


# --- Offer new times ------------------------------------------------------------------------------
@pytest.fixture
def strict(tenant: Tenant, ada: Any) -> Any:
    """A project whose customers can't move what begins in less than three days, nor twice."""
    settings = {"min_reschedule_time": "3 days", "max_reschedules": 0}
    return tenant.make_project(ada["id"], settings=settings)


def test_offer_mails_the_link_and_leaves_the_booking(tenant: Tenant, ada: Any, strict: Any) -> None:
    booking = booked(tenant, ada, soon(hours=30), project_id=strict["id"])
    Delivery.objects.all().delete()
    task = decide(tenant, PlannedStep(booking, PostponedStep.OFFER), message="Ada is ill.")

    carry_out()

    assert results(task) == [("done", "")]
    shown = tenant.get(f"/bookings/{booking.id}?include=logs").data
    assert shown["state"] == "confirmed"
    assert [(log["action"], log["message"]) for log in shown["logs"]] == [
        ("confirm", ""),
        ("offer_new_times", "Ada is ill."),
    ]
    rows = Delivery.objects.values_list("type", "kind", "recipient", "content__message")
    assert list(rows) == [("email", "new_times", "customer", "Ada is ill.")]


def test_offer_lets_customers_move_once_against_notice_and_limit(
    tenant: Tenant, ada: Any, strict: Any
) -> None:
    customer = Actor(name="customer", source="link")
    booking = booked(tenant, ada, soon(hours=30), project_id=strict["id"])

    def move(start: datetime) -> Booking:
        return reschedule_booking(
            app=tenant.app,
            booking_id=booking.id,
            start=start,
            end=start + hours(1),
            calendar=None,
            actor=customer,
            now=timezone.now(),
        )

    with pytest.raises(PolicyViolated):
        move(soon(hours=32))
    before = customer_may_move(booking)
    decide(tenant, PlannedStep(booking, PostponedStep.OFFER))
    carry_out()
    offered = customer_may_move(booking)
    moved = move(soon(hours=32))
    with pytest.raises(PolicyViolated):
        move(soon(hours=34))

    assert (before, offered, customer_may_move(moved)) == (False, True, False)
    assert moved.event.start == soon(hours=32)


def test_offer_for_a_booking_without_a_link_is_refused(
    tenant: Tenant, three: list[Booking]
) -> None:
    task = decide(tenant, PlannedStep(three[0], PostponedStep.OFFER))

    carry_out()

    assert results(task) == [("refused", "Customers can't move this booking by a link.")]
