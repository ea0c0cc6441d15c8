"""One booking in the back office: all about it, and what may be done with it."""

import uuid
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.views.decorators.http import require_POST

from bookings.graphs import GRAPHS
from bookings.models import Booking
from bookings.services import Actor, apply_action, reschedule
from bookings.wording import days_words, known_zone, span_words
from notifications.addressees import Addressees
from office.asking import ask_first, is_confirmed
from office.calendar_copies import copies_of
from office.mail_preview import mail_lines
from office.timeline import timeline
from office.words import STATE_COLOURS, booking_words, state_words
from scheduling.api.errors import Refusal
from scheduling.api.instants import parse_instant, zone

MOST_MESSAGE = 8000
MOST_SEATS = 500
# The service does this one by itself.
NOT_BY_HAND = frozenset({"timeout"})
BUTTONS = {
    "confirm": "primary",
    "pay": "primary",
    "complete": "default",
    "decline": "danger",
    "cancel": "danger",
    "cancel_by_customer": "danger",
    "cancel_by_owner": "danger",
}


def show_booking(page: Any, request: HttpRequest, object_id: str) -> HttpResponse:
    """`page` is the booking's admin class."""
    booking = find_booking(page, request, object_id)
    may_act = page.may_act(request, booking)
    event, place = booking.event, known_zone(booking.resource.timezone)
    if event.all_day:
        when = days_words(event.start_date, event.end_date, place)
    else:
        when = span_words(event.start, event.end, place)
    context = {
        **page.admin_site.each_context(request),
        "opts": Booking._meta,
        "title": f"{event.what}",
        "subtitle": None,
        "original": booking,
        "booking": booking,
        "state": state_words(booking.state),
        "colour": STATE_COLOURS.get(booking.state, "info"),
        "when": when,
        "copies": copies_of(booking),
        "customers": booking.people,
        "seats": list(booking.seats.prefetch_related("customers")[:MOST_SEATS])
        if booking.max_seats is not None
        else [],
        "reminders": list(booking.event_notifications.all()),
        "occurrences": list(
            booking.series.bookings.select_related("event").order_by("event__start")
        )
        if booking.series
        else [],
        "entries": timeline(booking),
        "may_act": may_act,
        "may_move": may_act and not booking.completed and booking.owner_booking_id is None,
        "actions": [
            (name, state_words(name).capitalize(), BUTTONS.get(name, "default"))
            for name in GRAPHS[booking.graph].actions(booking.state)
            if name not in NOT_BY_HAND
        ]
        if may_act
        else [],
        "zone": place,
        "start_value": _field_value(event.start, place),
        "end_value": _field_value(event.end, place),
        "media": page.media,
    }
    return TemplateResponse(request, "office/booking.html", context)


def find_booking(page: Any, request: HttpRequest, object_id: str) -> Booking:
    """A booking that may be seen. Raises Http404 for any other id."""
    try:
        key = uuid.UUID(object_id)
    except ValueError:
        raise Http404 from None
    rows = page.get_queryset(request).select_related("event", "resource", "project", "app")
    booking = rows.select_related("series", "owner_booking").filter(id=key).first()
    if booking is None:
        raise Http404
    return booking


def _find_to_change(page: Any, request: HttpRequest, object_id: str) -> Booking:
    booking = find_booking(page, request, object_id)
    if not page.may_act(request, booking):
        raise PermissionDenied
    return booking


def _back(booking: Booking) -> HttpResponse:
    return HttpResponseRedirect(reverse("admin:bookings_booking_change", args=[booking.id]))


def _actor(request: HttpRequest) -> Actor:
    return Actor(name=request.user.email, source="admin")


# What calls a booking off asks first: the question.
QUESTIONS = {
    "decline": ("Decline this booking?", "Decline the booking"),
    "cancel": ("Cancel this booking?", "Cancel the booking"),
    "cancel_by_customer": (
        "Cancel this booking on the customer's behalf?",
        "Cancel the booking",
    ),
    "cancel_by_owner": ("Cancel this seat on the owner's behalf?", "Cancel the seat"),
}


def _ask_to_act(
    request: HttpRequest, page: Any, booking: Booking, name: str, message: str
) -> HttpResponse:
    title, button = QUESTIONS[name]
    lines = mail_lines(booking, name, Addressees([booking.app_id]))
    return ask_first(
        page,
        request,
        booking,
        title=title,
        sentence=booking_words(booking),
        button=button,
        back=reverse("admin:bookings_booking_change", args=[booking.id]),
        lines=[*lines, f"Your message: {message}"] if message else lines,
        repeated=("action", "message"),
    )


@require_POST
def _act(request: HttpRequest, page: Any, object_id: str) -> HttpResponse:
    booking = _find_to_change(page, request, object_id)
    name = request.POST.get("action", "")[:32]
    message = request.POST.get("message", "").replace("\0", "")[:MOST_MESSAGE].strip()
    is_allowed = GRAPHS[booking.graph].next_state(booking.state, name) is not None
    if is_allowed and name in QUESTIONS and not is_confirmed(request):
        return _ask_to_act(request, page, booking, name, message)
    try:
        done = apply_action(
            app=booking.app,
            booking_id=booking.id,
            action=name,
            actor=_actor(request),
            now=timezone.now(),
            message=message,
        )
        messages.success(request, f"The booking is {state_words(done.state)}.")
    except Refusal as refusal:
        say_refusal(request, booking, refusal)
    return _back(booking)


@require_POST
def _move(request: HttpRequest, page: Any, object_id: str) -> HttpResponse:
    booking = _find_to_change(page, request, object_id)
    place = known_zone(booking.resource.timezone)
    try:
        # One of the times offered instead, or what stands in the fields.
        chosen = request.POST.get("alternative", "").partition("/")
        start_text, end_text = chosen[::2] if chosen[1] else map(request.POST.get, ("start", "end"))
        start = parse_instant((start_text or "").strip(), place)
        end = parse_instant((end_text or "").strip(), place)
        if end <= start:
            messages.error(request, "The end must lie after the start.")
            return _back(booking)
        reschedule(
            app=booking.app,
            booking_id=booking.id,
            start=start,
            end=end,
            calendar=None,
            actor=_actor(request),
            now=timezone.now(),
            message=request.POST.get("message", "").replace("\0", "")[:MOST_MESSAGE].strip(),
        )
        messages.success(request, f"Moved to {span_words(start, end, place)}.")
    except ValueError as error:
        messages.error(request, f"That is no time: {error}")
    except Refusal as refusal:
        say_refusal(request, booking, refusal)
    return _back(booking)


def act(page: Any, request: HttpRequest, object_id: str) -> HttpResponse:
    """Lead the booking on by `action`, with a `message`; what calls it off asks first."""
    return _act(request, page, object_id)


def move(page: Any, request: HttpRequest, object_id: str) -> HttpResponse:
    """Move it to `start` and `end`, wall times of its resource or instants."""
    return _move(request, page, object_id)


def say_refusal(request: HttpRequest, booking: Booking, refusal: Refusal) -> None:
    """Why it can't be done, and which times are free instead: each a button that moves it there."""
    place = known_zone(booking.resource.timezone)
    reasons = [reason.text for reason in getattr(refusal, "reasons", ())]
    sentence = " ".join([refusal.message, *dict.fromkeys(reasons)])
    spans = [
        (parse_instant(span["start"], "UTC"), parse_instant(span["end"], "UTC"))
        for span in refusal.fields.get("alternatives", ())
    ]
    if not spans:
        messages.error(request, sentence)
        return
    buttons = format_html_join(
        " ",
        '<button class="office-chip" form="office-move" name="alternative" value="{}">{}</button>',
        (
            (f"{start.isoformat()}/{end.isoformat()}", span_words(start, end, place))
            for start, end in spans
        ),
    )
    messages.error(request, format_html("{} Free instead: {}", sentence, buttons))


def _field_value(moment: datetime, place: str) -> str:
    """For a field of type datetime-local."""
    return moment.astimezone(zone(place)).strftime("%Y-%m-%dT%H:%M")
