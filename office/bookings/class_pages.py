"""Pages of a class: its participants in print, one more of them, and a message to all."""

import uuid
from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.translation import gettext, pgettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from bookings.booking_input import parse_new_booking
from bookings.models import Booking, Customer, PostponedStep, PostponedTask
from bookings.pages.formatting import first_known_zone
from bookings.serializers.bodies import BookingChangeSerializer
from bookings.services import change_booking, make_booking
from bookings.services.postponed import MAX_MESSAGE, PlannedStep, postpone
from common.api.serializers import read_values_as
from common.errors import Invalid, Refusal
from notifications.mail.template_editing import preview_change
from office.base.labels import booking_words, sends_emails
from office.base.local_time import span_text
from office.base.model_admin import refusal_words
from office.base.model_admin_pages import TitledRow
from office.base.permissions import actor_of, editor_caller_of
from office.base.scope import account_of
from office.bookings.detail import BookingDetail
from office.bookings.details import CustomerForm
from office.bookings.participants import read_participants, seats_to_mail
from office.calendar.new_booking import booking_body
from office.desk.day_sheet import sheet_rows
from office.resources.class_dates import is_class

SEAT = "group_customer"
NEW_CUSTOMER = uuid.UUID(int=0)
CUSTOMER_PATH = "customer."


class MessageForm(forms.Form):
    message = forms.CharField(
        label=_("Message to all"),
        max_length=MAX_MESSAGE,
        widget=forms.Textarea({"class": "office-input", "rows": 5, "autofocus": True}),
    )


class ClassPages(BookingDetail):
    """The pages of a booking with seats; other bookings have none of them."""

    def _find_class(self, request: HttpRequest, object_id: str, *, to_change: bool) -> Booking:
        find = self.find_to_change if to_change else self.find
        booking = find(request, object_id)
        if booking.max_seats is None:
            raise Http404
        return booking

    def _show_class_page(
        self, request: HttpRequest, template: str, group: Booking, **values: Any
    ) -> HttpResponse:
        zone = first_known_zone(group.resource.timezone)
        return self.show_page(
            request,
            template,
            original=TitledRow(group, booking_words(group)),
            booking=group,
            when=span_text(group.event.start, group.event.end, zone),
            **values,
        )

    @method_decorator(require_safe)
    def print_participants(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The list on paper: name, phone, answers, note, a box to tick."""
        group = self._find_class(request, object_id, to_change=False)
        participants = read_participants(group)
        seats = [participant.seat for participant in participants.taken]
        return self._show_class_page(
            request,
            "office/participants.html",
            group,
            title=gettext("Participants"),
            count=participants.words,
            rows=sheet_rows(seats),
        )

    @method_decorator(require_POST)
    def change_seats(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Store `seats`, at least as many as are taken."""
        group = self._find_class(request, object_id, to_change=True)
        text = request.POST.get("seats", "").strip()[:8]
        body = {"settings": {"max_seats": int(text) if text.isdecimal() else text}}
        try:
            change_booking(
                app=group.app,
                booking_id=group.id,
                changes=read_values_as(BookingChangeSerializer, body),
                actor=actor_of(request),
                now=timezone.now(),
            )
            messages.success(request, gettext("The number of seats was saved."))
        except Refusal as refusal:
            messages.error(request, refusal_words(refusal))
        return self.redirect_to_row(group)

    @method_decorator(require_http_methods(["GET", "HEAD", "POST"]))
    def add_participant(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The form of one more participant; a POST books a seat as POST /v2/bookings does."""
        group = self._find_class(request, object_id, to_change=True)
        is_sent = request.method == "POST"
        customer = Customer(pk=NEW_CUSTOMER)
        form = CustomerForm(request.POST if is_sent else None, booking=group, customer=customer)
        notifies = not is_sent or "notify" in request.POST
        if is_sent and form.is_valid() and self._add(request, group, form, notifies=notifies):
            return self.redirect_to_row(group)
        return self._show_class_page(
            request,
            "office/participant_new.html",
            group,
            title=gettext("Add a person"),
            form=form,
            notifies=notifies,
            sends_emails=sends_emails(group.app),
            count=read_participants(group).words,
            places=list(group.places or ()),
            chosen=_seats_in(request.POST),
        )

    def _add(
        self, request: HttpRequest, group: Booking, form: CustomerForm, *, notifies: bool
    ) -> bool:
        body = booking_body(
            {
                **({} if group.project and is_class(group.project) else {"graph": SEAT}),
                "related": {"owner_booking_id": str(group.id)},
                "customer": {key: each for key, each in form.changes().items() if key != "id"},
                "notify": notifies,
                **_seats_in(request.POST),
            }
        )
        if group.project_id:
            body["project_id"] = str(group.project_id)
        now, caller = timezone.now(), editor_caller_of(request, group.app)
        zone = first_known_zone(group.resource.timezone)
        try:
            new, target = parse_new_booking(body, app=group.app, caller=caller, zone=zone, now=now)
            make_booking(new, target=target, actor=actor_of(request), now=now)
        except Invalid as refusal:
            for path, found in refusal.fields["errors"].items():
                form.add_fault(path.removeprefix(CUSTOMER_PATH), found)
            return False
        except Refusal as refusal:
            form.add_error(None, refusal_words(refusal))
            return False
        words = gettext("%(name)s has a seat.") % {"name": form.cleaned_data["name"]}
        messages.success(request, words)
        return True

    @method_decorator(require_http_methods(["GET", "HEAD", "POST"]))
    def message_all(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """A message to all participants; a POST shows a preview, or sends it in ten seconds."""
        group = self._find_class(request, object_id, to_change=True)
        seats = seats_to_mail(group)
        form = MessageForm(request.POST if request.method == "POST" else None)
        is_right = sends_emails(group.app) and form.is_valid()
        preview = None
        if is_right and seats and "send" in request.POST:
            task = _postpone_message(request, group, seats, form.cleaned_data["message"])
            return HttpResponseRedirect(reverse("admin:postponed", args=[task.pk]))
        if is_right and seats:
            facts = {"message": form.cleaned_data["message"]}
            seat = _with_relations(seats[0])
            preview = preview_change(seat, "message_customer", facts)
        return self._show_class_page(
            request,
            "office/class_message.html",
            group,
            title=pgettext("to participants", "Message all"),
            form=form,
            preview=preview,
            names=[
                customer.name
                for seat in seats
                for customer in seat.customers.all()
                if customer.email
            ],
            sends_emails=sends_emails(group.app),
        )


def _postpone_message(
    request: HttpRequest, group: Booking, seats: Sequence[Booking], message: str
) -> PostponedTask:
    """Return the task that sends the message; of a form that was sent twice, the first one."""
    with transaction.atomic():
        Booking.objects.select_for_update(no_key=True).get(pk=group.pk)
        same = PostponedTask.objects.filter(
            app=group.app_id,
            started_at=None,
            message=message,
            steps__booking=seats[0],
            steps__action=PostponedStep.MESSAGE,
        )
        return same.first() or postpone(
            app=group.app,
            actor=account_of(request).email,
            steps=[PlannedStep(seat, PostponedStep.MESSAGE) for seat in seats],
            message=message,
            now=timezone.now(),
        )


def _with_relations(seat: Booking) -> Booking:
    related = ("app", "event", "resource", "project")
    return Booking.objects.select_related(*related).prefetch_related("customers").get(pk=seat.pk)


def _seats_in(posted: QueryDict) -> dict[str, Any]:
    """Return how many seats the form asks for, and at which place, as in the API."""
    number, place = posted.get("quantity", "").strip()[:8], posted.get("place", "")
    quantity = {"quantity": int(number) if number.isdecimal() else number} if number else {}
    return quantity | ({"place": place} if place else {})
