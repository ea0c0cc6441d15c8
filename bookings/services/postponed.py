"""Carry out what staff decided about several bookings, some seconds later: until then they can undo
it.

The time that a task closes is closed at once. Its steps are rows. A worker claims the task, which
ends the undo, and carries out each step in one transaction with the step's result. So a step is
done once, whatever is lost in between, and several workers share the steps of a task.
"""

import logging
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Coalesce

from apps_config.models import App
from availability.models import Calendar, Event
from availability.services import create_event, delete_event
from bookings.models import Booking, PostponedStep, PostponedTask
from bookings.services.bulk_request import bulk_request
from bookings.services.errors import ActionNotAllowed
from bookings.services.offer_new_times import offer_new_times
from bookings.services.reschedule import reschedule_booking
from bookings.services.send_message import send_message
from bookings.services.transition_log import Actor
from bookings.services.transitions import apply_action
from common.db.batching import iterate_batches
from common.db.calls_outside_transaction import NeedsAnswer, with_calls_outside_transaction
from common.db.sql import database_now
from common.errors import Invalid, NotFound, is_outage, refusal_of
from common.messages import Message

# Why a step is not possible, as the back office finds when it is decided.
NOBODY_FREE = Message("Nobody else is free.")
NO_ACTION = Message("This booking can't be cancelled.")

logger = logging.getLogger(__name__)

UNDO_FOR = timedelta(seconds=10)
MAX_MESSAGE = 8000
BATCH = 20  # tasks that one run reads
RUN_SECONDS = 15.0  # of one run; the next one continues
KEPT_FOR = timedelta(days=30)
PURGE_SLICE = 1000
SOURCE = "admin"


class PlannedStep(NamedTuple):
    """What is to become of a booking.

    start, end, resource_id: of a move. refusal: why it is not possible; then it only is on record.
    """

    booking: Booking
    action: str
    start: datetime | None = None
    end: datetime | None = None
    resource_id: uuid.UUID | None = None
    refusal: str = ""


class ClosedTime(NamedTuple):
    """A stretch of time to close for new bookings: an event in the calendar, with its fields."""

    calendar: Calendar
    event: Mapping[str, Any]


def postpone(
    *,
    app: App,
    actor: str,
    steps: Sequence[PlannedStep],
    closed: Sequence[ClosedTime] = (),
    message: str = "",
    now: datetime,
) -> PostponedTask:
    """Close the times now; carry out the steps in ten seconds, with the message for everybody.

    Raises Invalid for a calendar in which no event can be made; then nothing is written.
    """
    with transaction.atomic():
        events = [create_event(calendar=each.calendar, given=each.event) for each in closed]
        task = PostponedTask.objects.create(
            app=app,
            actor=actor,
            message=message,
            event_ids=[str(event.id) for event in events],
            created_at=now,
            run_at=database_now() + UNDO_FOR,
        )
        PostponedStep.objects.bulk_create(
            PostponedStep(
                task=task,
                booking=step.booking,
                action=step.action,
                version=step.booking.reschedules,
                start=step.start,
                end=step.end,
                resource_id=step.resource_id,
                state=PostponedStep.REFUSED if step.refusal else PostponedStep.PENDING,
                reason=step.refusal,
            )
            for step in steps
        )
    return task


def undo(*, app: App, task_id: uuid.UUID) -> bool:
    """Delete the task and open the times again. False: it has begun, or was undone before."""
    with transaction.atomic():
        task = _lock_to_undo(app, task_id)
        if task is None or task.started_at:
            return False
        events = Event.objects.filter(app=app, id__in=task.event_ids)
        for event in events.select_related("calendar", "main"):
            delete_event(event)
        task.delete()
    return True


def _lock_to_undo(app: App, task_id: uuid.UUID) -> PostponedTask | None:
    """Lock the task: the claim of a worker waits, or has come first and is seen here."""
    tasks = PostponedTask.objects.filter(app=app, id=task_id)
    return tasks.select_for_update().first()


def carry_out_due(*, now: datetime, stopping: Callable[[], bool] = lambda: False) -> None:
    """Carry out the tasks that are due by the database's clock, for some seconds."""
    ends = time.monotonic() + RUN_SECONDS

    def is_over() -> bool:
        return stopping() or time.monotonic() > ends

    due = PostponedTask.objects.filter(finished_at=None, run_at__lte=now).select_related("app")
    for task in due.order_by("run_at", "id")[:BATCH]:
        if is_over():
            return
        if _claim(task, now):
            _carry_out(task, now, is_over)


def _claim(task: PostponedTask, now: datetime) -> bool:
    """End the undo; False: the task was undone. After a crash a task is claimed again."""
    rows = PostponedTask.objects.filter(pk=task.pk, finished_at=None)
    return bool(rows.update(started_at=Coalesce(F("started_at"), now)))


def _carry_out(task: PostponedTask, now: datetime, is_over: Callable[[], bool]) -> None:
    pending = task.steps.filter(state=PostponedStep.PENDING)
    with bulk_request():
        for step_id in list(pending.values_list("pk", flat=True)):
            if is_over():
                return
            _carry_out_step(task, step_id, now)
    if not pending.exists():  # else another worker has the rest
        PostponedTask.objects.filter(pk=task.pk).update(finished_at=now, message="")


@with_calls_outside_transaction
def _carry_out_step(task: PostponedTask, step_id: int, now: datetime) -> None:
    """Carry out a step that no worker has done or locked, and store its result with it."""
    with transaction.atomic():
        rows = PostponedStep.objects.filter(pk=step_id, state=PostponedStep.PENDING)
        step = rows.select_for_update(of=("self",), skip_locked=True).first()
        if step is None:
            return
        step.state, step.reason = _try(task, step, now)
        step.save(update_fields=["state", "reason"])


def _try(task: PostponedTask, step: PostponedStep, now: datetime) -> tuple[str, str]:
    """Return the state of the step and the reason for it; a refusal rolls back its change."""
    try:
        with transaction.atomic():
            _check_is_not_moved(step)
            _apply(task, step, now)
    except NeedsAnswer:
        raise
    except _Moved:
        return PostponedStep.SKIPPED, Message("The booking was moved.")
    except (NotFound, ActionNotAllowed):
        return PostponedStep.SKIPPED, Message("The booking has changed meanwhile.")
    except Exception as error:
        if is_outage(error):
            raise  # the next run repeats the step
        refusal = refusal_of(error)
        if refusal.code == "internal":
            logger.exception("UNEXPECTED_ERROR in postponed step %s", step.pk)
        return PostponedStep.REFUSED, refusal.message
    return PostponedStep.DONE, ""


class _Moved(Exception):
    """The booking was moved since the decision."""


def _check_is_not_moved(step: PostponedStep) -> None:
    """Raise _Moved; other changes are for the graph to refuse."""
    rows = Booking.objects.filter(pk=step.booking_id).select_for_update(no_key=True)
    if rows.values_list("reschedules", flat=True).first() != step.version:
        raise _Moved


def _apply(task: PostponedTask, step: PostponedStep, now: datetime) -> None:
    change: dict[str, Any] = {
        "app": task.app,
        "booking_id": step.booking_id,
        "actor": Actor(name=task.actor, source=SOURCE),
        "now": now,
        "message": task.message,
    }
    if step.action == PostponedStep.MOVE and step.start and step.end:
        reschedule_booking(
            **change, start=step.start, end=step.end, calendar=_calendar_of_move(task.app, step)
        )
    elif step.action == PostponedStep.OFFER:
        offer_new_times(**change)
    elif step.action == PostponedStep.MESSAGE:
        send_message(**change)
    else:
        apply_action(**change, action=step.action)


def _calendar_of_move(app: App, step: PostponedStep) -> Calendar | None:
    """Return the first calendar of the new resource; None: it stays. Raises Invalid."""
    if step.resource_id is None:
        return None
    calendars = Calendar.objects.for_app(app).own().filter(resource=step.resource_id)
    calendar = calendars.select_related("resource").order_by("created_at", "id").first()
    if calendar is None:
        raise Invalid.at("resource_id", "The resource no longer exists.")
    return calendar


def purge_postponed(*, now: datetime) -> Iterator[int]:
    """Delete the tasks that ended a month ago, with their steps; yield the size of each batch."""
    ended = PostponedTask.objects.filter(finished_at__lte=now - KEPT_FOR)
    for tasks in iterate_batches(ended, PURGE_SLICE):
        PostponedTask.objects.filter(pk__in=[task.pk for task in tasks]).delete()
        yield len(tasks)
