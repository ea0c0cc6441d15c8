"""Deliveries in the back office: state, attempts, reasons for failure, and sending again."""

import json
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar, Generic, cast

from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin import SimpleListFilter
from django.contrib.admin.options import BaseModelAdmin
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce, Concat
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext, ngettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from availability.models import Calendar
from bookings.graphs import INITIALIZED
from bookings.models import Customer
from common.email_address import canonical_address
from common.errors import NotFound, Outdated
from external_calendars.models import WrittenEvent
from notifications.hidden_links import hide_links_in_values
from notifications.mail import EmailCopy
from notifications.models import CALL_BODY, LATE, Delivery, DeliveryQuerySet, SentEmail, Webhook
from notifications.outbox.outdated_reasons import outdated_reason
from notifications.outbox.redeliver import redeliver
from office.base.dates import moment_words
from office.base.event_notification_forms import CHOICE_WORDS
from office.base.labels import (
    DELIVERY_COLOURS,
    DELIVERY_STATE_WORDS,
    EMAILS_OFF,
    LabelledWords,
    booking_words,
    delivery_words,
    json_words,
    receiver_words,
    sends_emails,
    state_words,
)
from office.base.lazy_text import LazyText
from office.base.list_filters import AppFilter, ChoiceFilter, DaysFilter
from office.base.message_translations import translate_message
from office.base.model_admin import ALL_EDITS, RowPageAdmin, booking_link
from office.base.model_admin_pages import (
    ACTION_FIELDS,
    ExtraPage,
    Row,
    TitledRow,
    find_row,
    is_confirmed,
)
from office.base.scope import is_allowed, scope_of
from office.notifications.mail_frame import mail_frame

RECIPIENT_WORDS = {"customer": _("the customer"), "owner": _("the owner")}
# Names in the content of e-mails and calendar entries.
NAMED = 10  # rows named on the confirmation page
CONTENT_WORDS = {
    Delivery.EMAIL: _("One e-mail is sent now."),
    Delivery.WEBHOOK: _("The call contains the logged body."),
    Delivery.CALENDAR: _("The current booking is written to the calendar."),
}


def _time_words(text: Any) -> str:
    return moment_words(datetime.fromisoformat(text)) if text else ""


def _former_state_words(state: Any) -> str:
    return state_words(state) if state and state != INITIALIZED else ""


# The content of deliveries for people: name -> label, and how to show the value.
FACTS: Mapping[str, tuple[LazyText, Callable[[Any], str]]] = {
    "subject": (_("Subject"), json_words),
    "what": (_("What"), json_words),
    "where": (_("Where"), json_words),
    "start": (pgettext_lazy("of a time span", "Start"), _time_words),
    "end": (pgettext_lazy("of a time span", "End"), _time_words),
    "old_start": (_("Previous start"), _time_words),
    "old_end": (_("Previous end"), _time_words),
    "times": (_("Bookings in the series"), json_words),
    "until": (_("Start of the last one"), _time_words),
    "from_state": (_("Previous state"), _former_state_words),
    "message": (_("Message"), json_words),
    "url": (_("Address"), json_words),
    "method": (_("Method"), lambda method: str(method or "").upper()),
    "expected_response_code": (_("Expected status code"), json_words),
    "reason": (_("Reason"), json_words),
    "former": (_("Former addresses"), json_words),
    "sent_at": (_("Sent"), _time_words),
}


class ProblemFilter(ChoiceFilter):
    """Filter by failed or overdue deliveries."""

    # Translators: filter for failed and overdue deliveries.
    title, parameter_name = _("trouble"), "trouble"
    options = (("failed", _("failed in 24 hours")), ("overdue", _("overdue")))

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet[Delivery]:
        now = timezone.now()
        if self.value() == "failed":
            return cast(DeliveryQuerySet, queryset).failed_since(now - timedelta(days=1))
        if self.value() == "overdue":
            return queryset.filter(next_at__lte=now - LATE)
        return queryset


class DeliveryTypeFilter(ChoiceFilter):
    title, parameter_name = _("type"), "type"
    options = (
        (Delivery.EMAIL, _("E-mail")),
        (Delivery.WEBHOOK, _("Webhook call")),
        (Delivery.CALENDAR, _("Calendar entry")),
    )


class DeliveryStateFilter(ChoiceFilter):
    title, parameter_name = _("state"), "state"
    options = tuple(DELIVERY_STATE_WORDS.items())


class LinkedRowFilter(SimpleListFilter, Generic[Row]):
    """Filter by one row of `model`, linked from the row's page. Rows of other apps match
    nothing.
    """

    model: type[Row]
    app_path: ClassVar[str]

    def has_output(self) -> bool:
        return bool(self.value())

    def lookups(self, request: HttpRequest, model_admin: BaseModelAdmin) -> list[tuple[str, str]]:
        row = self._find(request)
        return [(str(row.pk), self.name_of(row))] if row else []

    def queryset(self, request: HttpRequest, queryset: QuerySet[Delivery]) -> QuerySet[Delivery]:
        if not self.value():
            return queryset
        row = self._find(request)
        return self.narrowed(queryset, row) if row else queryset.none()

    def name_of(self, row: Row) -> str:
        raise NotImplementedError

    def narrowed(self, rows: QuerySet[Delivery], row: Row) -> QuerySet[Delivery]:
        raise NotImplementedError

    def _find(self, request: HttpRequest) -> Row | None:
        try:
            key = uuid.UUID(self.value() or "")
        except ValueError:
            return None
        seen = scope_of(request).rows(self.app_path)
        return self.model._default_manager.filter(seen, pk=key).first()


class WebhookFilter(LinkedRowFilter[Webhook]):
    title, parameter_name = _("webhook"), "webhook"
    model, app_path = Webhook, "app"

    def name_of(self, row: Webhook) -> str:
        return row.url[:80]

    def narrowed(self, rows: QuerySet[Delivery], row: Webhook) -> QuerySet[Delivery]:
        return rows.filter(webhook=row)


class CalendarFilter(LinkedRowFilter[Calendar]):
    """Filter by calendar: writes to one connected calendar."""

    title, parameter_name = _("calendar"), "calendar"
    model, app_path = Calendar, "app"

    def name_of(self, row: Calendar) -> str:
        return row.name

    def narrowed(self, rows: QuerySet[Delivery], row: Calendar) -> QuerySet[Delivery]:
        # By the bookings with a mirrored event in the calendar, since that way uses indexes.
        copies = WrittenEvent.objects.filter(calendar=row)
        events = copies.values(main_event=Coalesce("event__main", "event"))
        rows = rows.filter(type=Delivery.CALENDAR, booking__event__in=events)
        return rows.filter(content__calendar_id=str(row.pk))


@admin.register(Delivery)
class DeliveryAdmin(RowPageAdmin[Delivery]):
    never = ALL_EDITS
    app_paths = ("app",)
    list_display = (
        *("due", "shown_kind", "receiver", "shown_state", "shown_reason"),
        *("attempts_made", "shown_booking", "app"),
    )
    list_display_links = ("due", "shown_kind")
    list_filter = (
        ProblemFilter,
        WebhookFilter,
        CalendarFilter,
        DeliveryTypeFilter,
        DeliveryStateFilter,
        ("due_at", DaysFilter),
        ("app", AppFilter),
    )
    list_select_related = ("app", "booking__event")
    search_fields = ("id",)  # only shows the search field: see `get_search_results`
    search_help_text = _("The id of a delivery, a booking or a webhook, or a customer's e-mail")
    ordering = ("-id",)  # by creation: ids are time-ordered
    actions = ("send_again",)

    # --- List -------------------------------------------------------------------------------------
    def get_queryset(self, request: HttpRequest) -> QuerySet[Delivery]:
        """Leave out the bodies."""
        rows = super().get_queryset(request).defer("body", "content")
        return rows.prefetch_related("booking__customers")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Delivery], search_term: str
    ) -> tuple[QuerySet[Delivery], bool]:
        is_narrowed = bool(search_term.strip())
        return queryset.filter(search_deliveries(search_term)) if is_narrowed else queryset, False

    @display(description=_("due"), ordering="due_at")
    def due(self, delivery: Delivery) -> str:
        return moment_words(delivery.due_at)

    # Translators: column: the address to which a message is sent.
    @display(description=_("to"), ordering=Concat("recipient", "endpoint"))
    def receiver(self, delivery: Delivery) -> str:
        if not delivery.recipient:
            return delivery.endpoint
        return str(CHOICE_WORDS["recipient"].get(delivery.recipient, delivery.recipient))

    @display(description=_("attempts"), ordering="tries")
    def attempts_made(self, delivery: Delivery) -> int:
        return delivery.tries

    @display(description=_("booking"), ordering="booking__event__start")
    def shown_booking(self, delivery: Delivery) -> str:
        return booking_link(delivery.booking)

    # Translators: column with the kind of a message, such as "Cancellation e-mail".
    @display(description=_("what"), ordering="kind")
    def shown_kind(self, delivery: Delivery) -> str:
        return delivery_words(delivery)

    @display(description=_("reason"), ordering="reason")
    def shown_reason(self, delivery: Delivery) -> str:
        return translate_message(delivery.reason)

    @display(description=_("state"), ordering="state", label=DELIVERY_COLOURS)
    def shown_state(self, delivery: Delivery) -> LabelledWords:
        return LabelledWords(delivery.state, str(DELIVERY_STATE_WORDS[delivery.state]))

    # --- Sending again ----------------------------------------------------------------------------
    def has_send_permission(self, request: HttpRequest, delivery: Delivery | None = None) -> bool:
        return is_allowed(request, "notifications.change_delivery", self.app_id_of_row(delivery))

    @admin.action(description=_("Send again"), permissions=["send"])
    def send_again(
        self, request: HttpRequest, deliveries: QuerySet[Delivery]
    ) -> HttpResponse | None:
        if not is_confirmed(request):
            return self._confirm_redelivery(request, deliveries)
        for delivery in deliveries:
            if not self.has_send_permission(request, delivery):
                sentence = gettext("%(name)s: you may only view it.")
                messages.error(request, sentence % {"name": delivery.id})
                continue
            redeliver_and_show_result(request, delivery)
        return None

    def _confirm_redelivery(
        self, request: HttpRequest, deliveries: QuerySet[Delivery]
    ) -> HttpResponse:
        count = deliveries.count()
        rows = deliveries.select_related("app", "booking", "change", "webhook", "customer")
        lines = []
        for delivery in rows[:NAMED]:
            reason = refusal_to_send(delivery)
            line = named_delivery(delivery)
            refused = gettext("%(delivery)s. Will be refused: %(reason)s")
            lines.append(refused % {"delivery": line, "reason": reason} if reason else line)
        left_out = count - NAMED
        # Translators: the last line of a list: so many more deliveries.
        more = ngettext("and %(count)s more", "and %(count)s more", left_out)
        return self.ask_confirmation(
            request,
            None,
            title=ngettext(
                "Send %(count)s delivery again?", "Send %(count)s deliveries again?", count
            )
            % {"count": count},
            sentence=gettext("They are sent now. A call contains the logged body."),
            button=gettext("Send again"),
            button_style="primary",
            back=request.get_full_path(),
            lines=[*lines, *([more % {"count": left_out}] if left_out > 0 else [])],
            repeated=ACTION_FIELDS,
        )

    # --- Page -------------------------------------------------------------------------------------
    def extra_pages(self) -> Iterable[ExtraPage]:
        return [
            ExtraPage("<path:object_id>/again/", self.again, "again", "send"),
            ExtraPage("<path:object_id>/html/", self.show_html, "html", "view"),
        ]

    def row_title(self, row: Delivery) -> str:
        return delivery_words(row)

    def find(self, request: HttpRequest, object_id: str) -> Delivery:
        """Return a visible delivery with all columns. Raises Http404 for any other id."""
        rows = super().get_queryset(request)
        rows = rows.select_related("app", "booking__event", "change", "webhook", "customer")
        rows = rows.prefetch_related("booking__customers").annotate(call_body=CALL_BODY)
        return find_row(rows.prefetch_related("attempts"), object_id)

    def show_row(self, request: HttpRequest, object_id: str) -> HttpResponse:
        delivery = self.find(request, object_id)
        return self.show_page(
            request,
            "office/delivery.html",
            title=delivery_words(delivery),
            original=TitledRow(delivery, delivery_words(delivery)),
            delivery=delivery,
            state=DELIVERY_STATE_WORDS[delivery.state],
            receiver=mail_receiver_words(delivery),
            colour=DELIVERY_COLOURS[delivery.state],
            booking=booking_words(delivery.booking) if delivery.booking else "",
            attempts=list(delivery.attempts.all()),
            payload=indented_json(delivery.call_body),  # type: ignore[attr-defined]
            facts=delivery_facts(delivery),
            further=further_content_json(delivery),
            has_booking=bool(delivery.booking and not delivery.booking.deleted_at),
            may_send=self.has_send_permission(request, delivery),
            outdated=refusal_to_send(delivery),
            **self._sent_email(request, delivery),
        )

    def _sent_email(self, request: HttpRequest, delivery: Delivery) -> dict[str, Any]:
        """Return what the e-mail said, as stored when it was sent: the last time, or `?sent=`."""
        if delivery.type != Delivery.EMAIL:
            return {}
        copies = copies_of(delivery)
        chosen = chosen_copy(request, copies)
        return {
            "copies": copies,
            "sent_copy": chosen,
            "sent": EmailCopy.read(chosen.content) if chosen else None,
            "was_sent": delivery.state == Delivery.DELIVERED,
            "days": settings.SENT_EMAIL_RETENTION_DAYS,
        }

    def show_html(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The HTML of the e-mail, for the frame of the page."""
        copy = chosen_copy(request, copies_of(self.find(request, object_id)))
        if copy is None:
            raise Http404
        return mail_frame(EmailCopy.read(copy.content).html)

    def again(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask for confirmation; a POST sends the delivery now or again."""
        delivery = self.find(request, object_id)
        if not self.has_send_permission(request, delivery):
            raise PermissionDenied
        if request.method == "POST":
            redeliver_and_show_result(request, delivery)
            return self.redirect_to_row(delivery)
        if reason := refusal_to_send(delivery):
            sentence = gettext("It can't be sent again. %(reason)s")
            messages.error(request, sentence % {"reason": reason})
            return self.redirect_to_row(delivery)
        title, button = gettext("Send now?"), gettext("Send now")
        if delivery.is_final:
            title, button = gettext("Send again?"), gettext("Send again")
        return self.ask_confirmation(
            request,
            delivery,
            title=title,
            sentence=f"{named_delivery(delivery)}.",
            button=button,
            button_style="primary",
            lines=[str(CONTENT_WORDS[delivery.type])],
        )


def copies_of(delivery: Delivery) -> list[SentEmail]:
    """Return the stored copies of the e-mail, the last one first: it may be sent again."""
    return list(delivery.sent_emails.exclude(content=b"").order_by("-id"))


def chosen_copy(request: HttpRequest, copies: Sequence[SentEmail]) -> SentEmail | None:
    """Return the copy that `?sent=` names, else the first."""
    chosen = request.GET.get("sent")
    return next((copy for copy in copies if str(copy.id) == chosen), next(iter(copies), None))


def mail_receiver_words(delivery: Delivery) -> str:
    """Return `the customer, Ann ann@example.com`; "" unless it is an e-mail."""
    if delivery.type != Delivery.EMAIL:
        return ""
    recipient = str(RECIPIENT_WORDS.get(delivery.recipient, delivery.recipient))
    customer = delivery.customer
    return f"{recipient}, {customer.name} {customer.email}" if customer else recipient


def refusal_to_send(delivery: Delivery) -> str:
    """Return why the sent delivery can't be sent again; "" if it can. Reads its app."""
    if not delivery.is_final:
        return ""
    if delivery.type == Delivery.EMAIL and delivery.booking_id and not sends_emails(delivery.app):
        return str(EMAILS_OFF)
    return translate_message(outdated_reason(delivery))


def redeliver_and_show_result(request: HttpRequest, delivery: Delivery) -> None:
    name = named_delivery(delivery)
    if reason := refusal_to_send(delivery):
        messages.error(request, f"{name}: {reason}")
        return
    try:
        delivery = redeliver(delivery, now=timezone.now())
    except NotFound:
        messages.error(request, gettext("%(delivery)s: deleted.") % {"delivery": name})
        return
    except Outdated as refusal:
        messages.error(request, f"{name}: {translate_message(refusal.message)}")
        return
    is_sending = delivery.state == Delivery.SENDING
    now, later = gettext("%(delivery)s is being sent."), gettext("%(delivery)s will be sent again.")
    messages.success(request, (now if is_sending else later) % {"delivery": name})


def named_delivery(delivery: Delivery) -> str:
    """Return `Cancellation e-mail to the customer, ann@example.com`."""
    # Translators: "Cancellation e-mail" and "to the customer, ann@example.com", in this order.
    words = gettext("%(message)s %(to_whom)s")
    return words % {"message": delivery_words(delivery), "to_whom": receiver_words(delivery)}


def search_deliveries(term: str) -> Q:
    """Return the filter by the id of a delivery, booking or webhook, or by a customer's e-mail
    address or its part from the @ on.
    """
    term = term.strip()
    try:
        key = uuid.UUID(term)
    except ValueError:
        pass
    else:
        return Q(id=key) | Q(booking_id=key) | Q(webhook_id=key)
    if "@" not in term or "\0" in term:
        return Q(pk__in=[])
    if term.startswith("@"):
        customers = Customer.objects.filter(email__iendswith=term)
    else:
        customers = Customer.objects.filter(address=canonical_address(term))
    return Q(booking_id__in=customers.values("booking_id"))


def delivery_facts(delivery: Delivery) -> list[tuple[str, str]]:
    """Return the delivery's content as (label, text): of a mail, a reminder or a calendar write."""
    content: Mapping[str, Any] = delivery.content
    facts = ((label, show(content.get(name))) for name, (label, show) in FACTS.items())
    return [(str(label), words) for label, words in facts if words]


def further_content_json(delivery: Delivery) -> str:
    """Return the ids and other data of the content as indented JSON; "" if there are none."""
    further = {name: value for name, value in delivery.content.items() if name not in FACTS}
    return json.dumps(further, indent=2, ensure_ascii=False) if further else ""


def indented_json(body: str) -> str:
    """Return the body with indentation and without signed links, if it is JSON."""
    if not body:
        return ""
    try:
        return json.dumps(hide_links_in_values(json.loads(body)), indent=2, ensure_ascii=False)
    except ValueError:
        return body
