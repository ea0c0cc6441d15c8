"""What was decided about several bookings: pending with Undo, then the result of each."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from django.contrib import messages
from django.db.models import F, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from availability.models import Event, Resource
from bookings.models import Booking, PostponedStep, PostponedTask
from bookings.pages.formatting import first_known_zone
from bookings.services.postponed import undo
from office.base.labels import booking_words
from office.base.lazy_text import LazyText
from office.base.local_time import days_or_span_text, span_text
from office.base.message_translations import translate_message
from office.base.permissions import MOVE, require, show_page
from office.base.scope import scope_of

MAX_LISTED = 100
MAX_CLOSED = 20
MAX_REFUSED = 8  # on Today
REFRESH_SECONDS = 5  # as often as workers look
# What a step does, until it has done it and then.
STEP_WORDS: Mapping[str, LazyText] = {
    # Translators: this and the next four: what will be done with a booking.
    PostponedStep.CANCEL: pgettext_lazy("step", "Cancel"),
    PostponedStep.DECLINE: pgettext_lazy("step", "Decline"),
    PostponedStep.MOVE: pgettext_lazy("step", "Move"),
    PostponedStep.OFFER: pgettext_lazy("step", "Offer new times"),
    PostponedStep.MESSAGE: pgettext_lazy("step", "Send the message"),
    PostponedStep.CANCEL_FOR_CUSTOMER: pgettext_lazy("step", "Cancel"),
    PostponedStep.CANCEL_FOR_OWNER: pgettext_lazy("step", "Cancel"),
}
STATE_WORDS: Mapping[str, LazyText] = {
    PostponedStep.PENDING: pgettext_lazy("state of a step", "pending"),
    PostponedStep.DONE: pgettext_lazy("state of a step", "done"),
    PostponedStep.SKIPPED: pgettext_lazy("state of a step", "skipped"),
    PostponedStep.REFUSED: pgettext_lazy("state of a step", "not possible"),
}
STATE_COLOURS: Mapping[str, str] = {
    PostponedStep.PENDING: "warning",
    PostponedStep.DONE: "success",
    PostponedStep.SKIPPED: "info",
    PostponedStep.REFUSED: "danger",
}


class StepLine(NamedTuple):
    """A step in words. link: the page of its booking."""

    link: str
    booking: str
    words: str
    state: str
    colour: str
    reason: str


@require_http_methods(["GET", "HEAD", "POST"])
def show_postponed(request: HttpRequest, task_id: uuid.UUID) -> HttpResponse:
    """The page of a task; a POST undoes it."""
    rows = PostponedTask.objects.filter(scope_of(request).rows("app")).select_related("app")
    task = rows.filter(pk=task_id).first()
    if task is None:
        raise Http404
    require(request, task.app_id, MOVE)
    if request.method == "POST":
        return _undo(request, task)
    now = timezone.now()
    steps = list(_with_bookings(task.steps.all())[: MAX_LISTED + 1])
    return show_page(
        request,
        "office/postponed.html",
        title=gettext("Changes of bookings") if steps else gettext("Time closed"),
        task=task,
        closed=_closed_times(task),
        lines=list(step_lines(steps[:MAX_LISTED])),
        further=max(task.steps.count() - MAX_LISTED, 0),
        seconds_left=0 if task.started_at else max(int((task.run_at - now).total_seconds()), 0),
        may_undo=task.started_at is None,
        refresh=REFRESH_SECONDS,
    )


def _undo(request: HttpRequest, task: PostponedTask) -> HttpResponse:
    if undo(app=task.app, task_id=task.pk):
        messages.success(request, _("Undone. No booking was changed, and no e-mail was sent."))
        return HttpResponseRedirect(reverse("admin:index"))
    messages.error(request, _("Too late to undo: the changes are being made."))
    return HttpResponseRedirect(reverse("admin:postponed", args=[task.pk]))


def _closed_times(task: PostponedTask) -> list[str]:
    """Return `Dr. Who: Mon 23 Nov 2026` of each closed time."""
    events = Event.objects.filter(app=task.app_id, id__in=task.event_ids[:MAX_CLOSED])
    return [
        f"{event.resource.name}: "
        + days_or_span_text(event.start, event.end, first_known_zone(event.resource.timezone))
        for event in events.select_related("resource").order_by("start", "id")
    ]


def _with_bookings(steps: QuerySet[PostponedStep]) -> QuerySet[PostponedStep]:
    related = steps.select_related("booking__event", "booking__resource")
    return related.prefetch_related("booking__customers").order_by("id")


def step_lines(steps: Sequence[PostponedStep]) -> Iterator[StepLine]:
    """Yield the steps in words. One query for the resources of moves."""
    new = Resource.objects.in_bulk({step.resource_id for step in steps} - {None})
    for step in steps:
        yield StepLine(
            link=reverse("admin:bookings_booking_change", args=[step.booking_id]),
            booking=booking_words(step.booking),
            words=_step_words(step, new),
            state=str(STATE_WORDS[step.state]),
            colour=STATE_COLOURS[step.state],
            reason=translate_message(step.reason),
        )


def _step_words(step: PostponedStep, resources: Mapping[Any, Resource]) -> str:
    resource = resources.get(step.resource_id)
    if resource is None or not (step.start and step.end):
        return str(STEP_WORDS[step.action])
    zone = first_known_zone(resource.timezone)
    given = {"resource": resource.name, "time": span_text(step.start, step.end, zone)}
    return gettext("Move to %(resource)s, %(time)s") % given


def pending_task_of(booking: Booking) -> uuid.UUID | None:
    """Return the id of the task that is about to change the booking."""
    steps = booking.postponed_steps.filter(state=PostponedStep.PENDING)
    return steps.values_list("task", flat=True).first()


def refused_steps(visible: Q) -> list[StepLine]:
    """Return steps that were not possible, of bookings that have not changed since.

    visible: which tasks.
    """
    steps = PostponedStep.objects.filter(
        task__in=PostponedTask.objects.filter(visible),
        state=PostponedStep.REFUSED,
        version=F("booking__reschedules"),
        booking__completed=False,
        booking__deleted_at=None,
        booking__event__end__gt=timezone.now(),
    )
    return list(step_lines(list(_with_bookings(steps)[:MAX_REFUSED])))
