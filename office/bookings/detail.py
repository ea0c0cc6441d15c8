"""The page of one booking, and its actions."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.urls import reverse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.html import format_html, format_html_join
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST

from apps_config.models import Membership
from availability.models import Calendar
from bookings.conferences import (
    CALENDAR_PROBLEM,
    NO_CALENDAR,
    NOT_OFFERED,
    MissingLinks,
    conference_url,
)
from bookings.graphs import CUSTOMER_ACTIONS, GRAPHS
from bookings.models import MAX_NOTE, Booking, Customer, further_events
from bookings.pages.formatting import days_words, first_known_zone, span_words
from bookings.serializers.bodies import MAX_SEATS, BookingChangeSerializer
from bookings.services import (
    ActionNotAllowed,
    apply_action,
    change_booking,
    end_links,
    reschedule_booking,
)
from bookings.services.postponed import PlannedStep, postpone
from bookings.services.transitions import check_notice
from common.api.serializers import read_values_as
from common.errors import Invalid, Refusal
from common.time.instants import find_zone, parse_instant
from common.time.zone_names import current_zone_name
from notifications.mail.recipients import Recipients
from office.base.dates import moment_words
from office.base.event_notification_words import event_notification_words
from office.base.labels import (
    ACTION_WORDS,
    GRAPH_WORDS,
    RESPONSE_SOURCE_WORDS,
    RESPONSE_WORDS,
    STATE_COLOURS,
    booking_words,
    sends_emails,
    shown_state,
    state_words,
)
from office.base.lazy_text import LazyText
from office.base.local_time import day_and_clock, parse_moment
from office.base.message_translations import translate_message
from office.base.model_admin import ALL_EDITS, RowPageAdmin, refusal_words
from office.base.model_admin_pages import TitledRow, find_row, is_confirmed
from office.base.permissions import actor_of, json_view
from office.base.scope import account_of, is_allowed
from office.bookings.action_email_list import mail_lines
from office.bookings.answers import labelled_values
from office.bookings.buttons import BUTTONS, OUTCOME_BUTTONS, outcome_buttons
from office.bookings.customers import customer_links
from office.bookings.details import CustomerForm, customer_forms, read_changes, show_faults
from office.bookings.free_times import find_free_times, find_other_calendar, resources_to_move_to
from office.bookings.mirror_status import mirror_status_of
from office.bookings.participants import read_participants
from office.bookings.places import chosen_resources, places_of, with_others
from office.bookings.postponed import pending_task_of
from office.bookings.timeline import booking_timeline

MAX_MESSAGE = 8000
# Only the service itself applies this action.
NOT_BY_HAND = frozenset({"timeout"})
# Of a request, behind its answers.
AFTER_ANSWER = frozenset({"cancel", "cancel_by_customer"})
COMPLETE = "complete"  # shown once the booking has begun
RETURN_TO = "return_to"  # a form's field: the page to return to
MOVE_FIELDS = ("start", "end", "resource_id")
# Actions that need confirmation: title and button.
QUESTIONS = {
    "decline": (_("Decline this booking?"), _("Decline the booking")),
    "cancel": (_("Cancel this booking?"), _("Cancel the booking")),
    "cancel_by_customer": (
        _("Cancel this booking on the customer's behalf?"),
        _("Cancel the booking"),
    ),
    "cancel_by_owner": (
        _("Cancel this seat on the owner's behalf?"),
        _("Cancel the seat"),
    ),
}


class BookingDetail(RowPageAdmin[Booking]):
    """The page of one booking. Its buttons POST and return to the page."""

    never = ALL_EDITS

    def has_act_permission(self, request: HttpRequest, booking: Booking | None = None) -> bool:
        """Return whether the account may change the booking; without one, any booking."""
        return is_allowed(request, "bookings.change_booking", self.app_id_of_row(booking))

    def show_row(self, request: HttpRequest, object_id: str) -> HttpResponse:
        booking = self.find(request, object_id)
        may_act = self.has_act_permission(request, booking)
        links = customer_links(booking.customers.all())
        event, place = booking.event, first_known_zone(booking.resource.timezone)
        if event.all_day:
            when = days_words(*event.dates, place)
        else:
            when = span_words(event.start, event.end, place)
        places = places_of(booking)
        # A refused form is shown with what it had.
        kept = {name: request.POST.get(name, "") for name in (*MOVE_FIELDS, "message")}
        may_move = may_act and not booking.completed and booking.owner_booking_id is None
        graph = GRAPHS[booking.graph]
        actions = [
            name
            for name in (graph.actions(booking.state) if may_act else ())
            if name not in NOT_BY_HAND and (name != COMPLETE or event.start <= timezone.now())
        ]
        later = AFTER_ANSWER if graph.awaits_answer(booking.state) else ()
        return self.show_page(
            request,
            "office/booking.html",
            title=booking_words(booking),
            subtitle=None,
            original=TitledRow(booking, booking_words(booking)),
            booking=booking,
            state=state_words(shown_state(booking)),
            colour=STATE_COLOURS.get(shown_state(booking), "info"),
            when=when,
            conference=conference_url(booking),
            conference_problem=conference_problem(booking),
            copies=mirror_status_of(booking),
            pending_task=pending_task_of(booking),
            customers=[
                (
                    customer,
                    links.get(customer.address, ""),
                    current_zone_name(customer.timezone),
                    labelled_values(customer.meta, booking.project),
                    _answer_words(customer),
                )
                for customer in booking.customers.all()
            ],
            participants=read_participants(booking) if booking.max_seats is not None else None,
            reminders=[event_notification_words(row) for row in booking.event_notifications.all()],
            occurrences=[
                (other, state_words(shown_state(other))) for other in _occurrences(booking)
            ],
            entries=booking_timeline(booking),
            may_act=may_act,
            may_see_deliveries=is_allowed(
                request, "notifications.view_delivery", booking.app_id, Membership.VIEWER
            ),
            may_move=may_move,
            resources=resources_to_move_to(booking) if may_move else [],
            places=[
                (each, span_words(each.start, each.end, place) if each.start and each.end else "")
                for each in places
            ],
            replaceable=with_others(booking, places) if may_move else [],
            kind=GRAPH_WORDS.get(booking.graph, booking.graph),
            custom=labelled_values(booking.meta),
            actions=[_action_button(name) for name in actions if name not in later],
            more_actions=[_action_button(name) for name in actions if name in later],
            may_edit_details=may_act and any(row.email for row in booking.customers.all()),
            note=request.POST.get("note", booking.note or ""),
            max_note=MAX_NOTE,
            max_seats=MAX_SEATS,
            sends_emails=sends_emails(booking.app),
            outcome=state_words(booking.outcome or ""),
            outcomes=outcome_buttons(booking, event) if may_act else [],
            has_links=may_act and event.end > timezone.now(),
            zone=place,
            start_value=kept["start"] or _field_value(event.start, place),
            end_value=kept["end"] or _field_value(event.end, place),
            resource_value=kept["resource_id"] or str(booking.resource_id),
            move_message=kept["message"],
            media=self.media,
        )

    def row_title(self, row: Booking) -> str:
        return booking_words(row)

    def find(self, request: HttpRequest, object_id: str) -> Booking:
        rows = self.get_queryset(request).select_related("event", "resource", "project", "app")
        rows = rows.prefetch_related(further_events())
        return find_row(rows.select_related("series", "owner_booking"), object_id)

    def find_to_change(self, request: HttpRequest, object_id: str) -> Booking:
        booking = self.find(request, object_id)
        if not self.has_act_permission(request, booking):
            raise PermissionDenied
        return booking

    @method_decorator(require_http_methods(["GET", "HEAD", "POST"]))
    def act(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Apply the graph's `action`, with a `message`; cancelling actions ask first. A link with
        `?action=` only asks.
        """
        booking = self.find_to_change(request, object_id)
        name = (request.POST or request.GET).get("action", "")[:32]
        message = _message(request)
        is_possible = GRAPHS[booking.graph].next_state(booking.state, name) is not None
        if is_possible and name in QUESTIONS and not is_confirmed(request):
            return self._confirm_action(request, booking, name, message)
        if request.method != "POST":
            is_outdated = name in QUESTIONS
            return (
                self.redirect_to_row(booking) if is_outdated else HttpResponseNotAllowed(["POST"])
            )
        if is_possible and name in QUESTIONS:
            return self._postpone(request, booking, name, message)
        try:
            done = apply_action(
                app=booking.app,
                booking_id=booking.id,
                action=name,
                actor=actor_of(request),
                now=timezone.now(),
                message=message,
            )
            # Translators: state: such as "confirmed" or "cancelled by customer".
            words = _("The booking is %(state)s.") % {"state": state_words(done.state)}
            messages.success(request, words)
        except ActionNotAllowed as refusal:
            messages.error(request, action_refusal_words(refusal, name))
        except Refusal as refusal:
            show_refusal(request, booking, refusal)
            return self.redirect_to_row(booking)  # which has the alternatives
        return self._redirect_back(request, booking)

    def _postpone(
        self, request: HttpRequest, booking: Booking, name: str, message: str
    ) -> HttpResponse:
        """Have the action applied in ten seconds; until then it can be undone."""
        now = timezone.now()
        if name in CUSTOMER_ACTIONS:
            try:
                check_notice(booking, "min_cancel_time", now)
            except Refusal as refusal:  # at once, instead of in ten seconds
                show_refusal(request, booking, refusal)
                return self.redirect_to_row(booking)
        task = postpone(
            app=booking.app,
            actor=account_of(request).email,
            steps=[PlannedStep(booking, name)],
            message=message,
            now=now,
        )
        if return_page(request):  # the booking's own page says so anyway
            words = gettext('{booking} is about to be changed. <a href="{link}">Show and undo</a>')
            link = reverse("admin:postponed", args=[task.pk])
            given = {"booking": booking_words(booking), "link": link}
            messages.success(request, format_html(words, **given))
        return self._redirect_back(request, booking)

    def _redirect_back(self, request: HttpRequest, booking: Booking) -> HttpResponse:
        """Return to the page that sent the form, if it named itself, else to the booking's."""
        page = return_page(request)
        return HttpResponseRedirect(page) if page else self.redirect_to_row(booking)

    def _confirm_action(
        self, request: HttpRequest, booking: Booking, name: str, message: str
    ) -> HttpResponse:
        title, button = QUESTIONS[name]
        lines = mail_lines(booking, name, Recipients([booking.app_id]))
        return self.ask_confirmation(
            request,
            booking,
            title=str(title),
            sentence=booking_words(booking),
            button=str(button),
            lines=[
                *lines,
                *([_("Your message: %(message)s") % {"message": message}] if message else []),
                gettext("You can undo it for ten seconds."),
            ],
            back=return_page(request),
            repeated=("action", "message", RETURN_TO),
        )

    @method_decorator(require_POST)
    def outcome(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Store `outcome`: whether the customer came; an empty one clears it."""
        booking = self.find_to_change(request, object_id)
        outcome = request.POST.get("outcome", "")
        if outcome not in dict(OUTCOME_BUTTONS):
            raise Http404
        try:
            change_booking(
                app=booking.app,
                booking_id=booking.id,
                changes={"outcome": outcome or None},
                actor=actor_of(request),
                now=timezone.now(),
            )
            # Translators: outcome: whether the customer came, such as "attended" or "no show".
            noted = _("Outcome noted: %(outcome)s.") % {"outcome": state_words(outcome)}
            messages.success(request, noted if outcome else _("Outcome cleared."))
        except Refusal as refusal:
            messages.error(request, translate_message(refusal.message))
        return self._redirect_back(request, booking)

    @method_decorator(require_POST)
    def save_note(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Store `note`, an internal one. A refused form is shown again."""
        booking = self.find_to_change(request, object_id)
        body = {"note": request.POST.get("note", "").replace("\r\n", "\n").strip()}
        try:
            change_booking(
                app=booking.app,
                booking_id=booking.id,
                changes=read_values_as(BookingChangeSerializer, body),
                actor=actor_of(request),
                now=timezone.now(),
            )
        except Refusal as refusal:
            messages.error(request, refusal_words(refusal))
            return self.show_row(request, object_id)
        messages.success(request, _("The note was saved."))
        return self.redirect_to_row(booking)

    def edit_details(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show the form of the customers' data; a POST saves what was changed."""
        booking = self.find_to_change(request, object_id)
        customers = customer_forms(booking, request.POST if request.method == "POST" else None)
        if request.method == "POST" and self._save_details(request, booking, customers):
            messages.success(request, _("The details were saved."))
            return self.redirect_to_row(booking)
        title = gettext("Edit details")
        return self.show_page(
            request,
            "office/booking_details.html",
            title=title,
            original=TitledRow(booking, booking_words(booking)),
            booking=booking,
            words=booking_words(booking),
            customers=customers,
            sends_emails=sends_emails(booking.app),
        )

    def _save_details(
        self, request: HttpRequest, booking: Booking, customers: Sequence[CustomerForm]
    ) -> bool:
        changes = read_changes(customers)
        if changes is None:
            return False
        try:
            change_booking(
                app=booking.app,
                booking_id=booking.id,
                changes=changes,
                actor=actor_of(request),
                now=timezone.now(),
            )
        except Invalid as refusal:
            show_faults(customers, refusal)
            return False
        return True

    def end_links(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """End the links of all e-mails about the booking so far; GET asks first."""
        booking = self.find_to_change(request, object_id)
        if request.method != "POST":
            return self.ask_confirmation(
                request,
                booking,
                title=gettext("End all links of this booking?"),
                sentence=booking_words(booking),
                button=gettext("End all links"),
                lines=[gettext("The links in earlier e-mails stop working. No e-mail is sent.")],
            )
        end_links(
            app=booking.app, booking_id=booking.id, actor=actor_of(request), now=timezone.now()
        )
        messages.success(request, _("All links have ended. Later e-mails have new ones."))
        return self.redirect_to_row(booking)

    @method_decorator(require_POST)
    def move(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Reschedule to `start` and `end`, local times of the resource or instants. A refused form
        is shown again.
        """
        booking = self.find_to_change(request, object_id)
        place = first_known_zone(booking.resource.timezone)
        # One of the offered times, or the fields' values.
        chosen = request.POST.get("alternative", "").split("/")
        fields = [request.POST.get(name, "").strip() for name in MOVE_FIELDS]
        texts = chosen if chosen[1:] else fields
        try:
            start, end = (_read_moment(booking, text.strip(), place) for text in texts[:2])
            if end <= start:
                messages.error(request, _("The end must be after the start."))
                return self.show_row(request, object_id)
            calendar = find_other_calendar(booking, texts[2] if texts[2:] else "")
            resources = chosen_resources(booking, request.POST)
            reschedule_booking(
                app=booking.app,
                booking_id=booking.id,
                start=start,
                end=end,
                calendar=calendar,
                actor=actor_of(request),
                now=timezone.now(),
                message=_message(request),
                resources=resources,
            )
            messages.success(request, _rescheduled_words(span_words(start, end, place), calendar))
            return self.redirect_to_row(booking)
        except ValueError as error:
            messages.error(
                request,
                _("Invalid time: %(problem)s") % {"problem": translate_message(error)},
            )
        except Refusal as refusal:
            show_refusal(request, booking, refusal, resource_id=texts[2] if texts[2:] else "")
        return self.show_row(request, object_id)

    def free_times(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return read_free_times(request, self.find_to_change(request, object_id))


def _rescheduled_words(times: str, calendar: Calendar | None) -> str:
    if calendar is None:
        return _("Rescheduled to %(times)s.") % {"times": times}
    # Translators: resource: the person or room with which the booking now takes place.
    words = _("Rescheduled to %(times)s, with %(resource)s.")
    return words % {"times": times, "resource": calendar.resource.name}


@json_view("GET")
def read_free_times(request: HttpRequest, booking: Booking) -> dict[str, Any]:
    """?resource_id&start: returns `times` to move the booking to, as the form sends them, with
    their days and clock times in words, from the day of `start` on (a local time of the resource;
    default: the booking's).
    """
    resource_id = request.GET.get("resource_id", "")
    calendar = find_other_calendar(booking, resource_id)
    place = first_known_zone(booking.resource.timezone)
    now, text = timezone.now(), request.GET.get("start", "")
    start = parse_moment("start", text, place) if text else booking.event.start
    spans = find_free_times(booking, calendar, start=start, now=now)
    return {
        "times": [
            {"value": _time_value(start, end, resource_id), **day_and_clock(start, place)}
            for start, end in spans
        ]
    }


def _time_value(start: datetime, end: datetime, resource_id: str) -> str:
    return "/".join(filter(None, (start.isoformat(), end.isoformat(), resource_id)))


def _read_moment(booking: Booking, text: str, place: str) -> datetime:
    """Return an unchanged field's own instant: its local time may occur twice."""
    for moment in (booking.event.start, booking.event.end):
        if text == _field_value(moment, place):
            return moment
    return parse_instant(text, place)


CONFERENCE_PROBLEMS: Mapping[str, LazyText] = {
    NO_CALENDAR: _("No link: the booking is not in a connected calendar that makes it."),
    CALENDAR_PROBLEM: _("No link: the connected calendar has a problem."),
    NOT_OFFERED: _("No link: the account of the connected calendar has no such video calls."),
}


def conference_problem(booking: Booking) -> str:
    """Return why the booking has no link for its video call; "" if it has one, or wants none."""
    missing = MissingLinks([booking])
    if missing.is_coming(booking):
        return gettext("The connected calendar has not made the link yet.")
    problem = missing.problem(booking)
    return str(CONFERENCE_PROBLEMS[problem]) if problem else ""


def return_page(request: HttpRequest) -> str:
    """Return the page of this site to which a form returns; "": it named none."""
    page = request.POST.get(RETURN_TO, "")
    return page if page and url_has_allowed_host_and_scheme(page, None) else ""


def _answer_words(customer: Customer) -> str:
    """Return `declined (calendar), Mon 23 Nov 2026, 09:00 CET`; "" without an answer."""
    if customer.response is None:
        return ""
    source = RESPONSE_SOURCE_WORDS[customer.response_source or Customer.MAIL]
    answer = f"{RESPONSE_WORDS[customer.response]} ({source})"
    return f"{answer}, {moment_words(customer.responded_at)}"


def _message(request: HttpRequest) -> str:
    return request.POST.get("message", "").replace("\0", "")[:MAX_MESSAGE].strip()


def _occurrences(booking: Booking) -> list[Booking]:
    if booking.series is None:
        return []
    return list(booking.series.bookings.select_related("event").order_by("event__start"))


def show_refusal(
    request: HttpRequest, booking: Booking, refusal: Refusal, *, resource_id: str = ""
) -> None:
    """Show the reasons for the refusal, and a button for each free alternative."""
    place = first_known_zone(booking.resource.timezone)
    reasons = [reason.text for reason in getattr(refusal, "reasons", ())]
    sentences = [refusal.message, *dict.fromkeys(reasons)]
    sentence = " ".join(map(translate_message, sentences))
    spans = [
        (parse_instant(span["start"], "UTC"), parse_instant(span["end"], "UTC"))
        for span in refusal.fields.get("alternatives", ())
    ]
    if not spans:
        messages.error(request, sentence)
        return
    times = [
        {"value": _time_value(start, end, resource_id), **day_and_clock(start, place)}
        for start, end in spans
    ]
    days = format_html_join(
        " ",
        "<strong>{}</strong> {}",
        ((day, _time_buttons(each)) for day, each in groupby(times, itemgetter("day"))),
    )
    # Translators: problem: a sentence that says why the booking was not rescheduled.
    words = gettext("{problem} Free times: {times}")
    messages.error(request, format_html(words, problem=sentence, times=days))


def _time_buttons(times: Iterable[dict[str, str]]) -> SafeString:
    return format_html_join(
        " ",
        '<button class="office-chip" form="office-move" name="alternative" value="{}">{}</button>',
        ((time["value"], time["clock"]) for time in times),
    )


def action_refusal_words(refusal: Refusal, action: str) -> str:
    """Return why the action was refused: `Confirm: not possible, the booking is cancelled.`"""
    if not isinstance(refusal, ActionNotAllowed):
        return translate_message(refusal.message)
    words = ACTION_WORDS.get(action, state_words(action).capitalize())
    # Translators: action: such as "Confirm"; state: such as "cancelled by customer".
    sentence = _("%(action)s: not possible, the booking is %(state)s.")
    return sentence % {"action": words, "state": state_words(refusal.fields["state"])}


def _action_button(name: str) -> tuple[str, LazyText, str]:
    """Return the action, its words and the style of its button."""
    words = ACTION_WORDS.get(name, state_words(name).capitalize())
    return name, words, BUTTONS.get(name, "default")


def _field_value(moment: datetime, place: str) -> str:
    """Return the value of a datetime-local field."""
    return moment.astimezone(find_zone(place)).strftime("%Y-%m-%dT%H:%M")
