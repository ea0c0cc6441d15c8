"""Deliveries in the back office: why a mail or a call did not arrive, or a calendar was not written
to, and sending it again."""

import json
import uuid
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin import SimpleListFilter
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.db.models.functions import Coalesce
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from unfold.contrib.filters.admin import DropdownFilter
from unfold.decorators import display

from apps_config.office import AppFilter, DaysFilter, ReadOnlyAdmin
from apps_config.scope import is_allowed, scope_of
from availability.models import Calendar
from bookings.models import Customer
from external_calendars.models import WrittenEvent
from notifications.models import LATE, Delivery, Webhook
from notifications.relevance import outdated_reason
from notifications.services import redeliver
from office.asking import ACTION_FIELDS, ask_first, is_confirmed
from office.words import DELIVERY_COLOURS, DELIVERY_WORDS, receiver_words, state_words
from scheduling.api.errors import NotFound, Outdated

NAMED = 10  # of a list that is asked about
CONTENT_WORDS = {
    Delivery.EMAIL: "One e-mail leaves at once.",
    Delivery.WEBHOOK: "The call carries the body that is logged, as it was at that change.",
    Delivery.CALENDAR: "The calendar gets the booking as it is now.",
}


class TroubleFilter(DropdownFilter):
    """What somebody should look at."""

    title = "trouble"
    parameter_name = "trouble"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("failed", "failed in 24 hours"), ("overdue", "overdue")]

    def queryset(self, request: HttpRequest, deliveries: Any) -> Any:
        now = timezone.now()
        if self.value() == "failed":
            return deliveries.failed_since(now - timedelta(days=1))
        if self.value() == "overdue":
            return deliveries.filter(next_at__lte=now - LATE)
        return deliveries


class WebhookFilter(SimpleListFilter):
    """Of one webhook: where its page leads. Another app's is as good as none."""

    title = "webhook"
    parameter_name = "webhook"

    def has_output(self) -> bool:
        return bool(self.value())

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        webhook = self._find(request, self.used_parameters.get(self.parameter_name))
        return [(str(webhook.pk), webhook.url[:80])] if webhook else []

    def queryset(self, request: HttpRequest, deliveries: Any) -> Any:
        if not self.value():
            return deliveries
        webhook = self._find(request, self.value())
        return deliveries.filter(webhook=webhook) if webhook else deliveries.none()

    def _find(self, request: HttpRequest, text: str | None) -> Webhook | None:
        try:
            key = uuid.UUID(text or "")
        except ValueError:
            return None
        return Webhook.objects.filter(scope_of(request).rows("app"), pk=key).first()


class CalendarFilter(SimpleListFilter):
    """Writes to one connected calendar: where its page leads. Another app's is as good as none."""

    title = "calendar"
    parameter_name = "calendar"

    def has_output(self) -> bool:
        return bool(self.value())

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        calendar = self._find(request, self.used_parameters.get(self.parameter_name))
        return [(str(calendar.pk), calendar.name)] if calendar else []

    def queryset(self, request: HttpRequest, deliveries: Any) -> Any:
        if not self.value():
            return deliveries
        calendar = self._find(request, self.value())
        if calendar is None:
            return deliveries.none()
        # By the bookings of which a copy stands or stood there: that way indexes lead.
        copies = WrittenEvent.objects.filter(calendar=calendar)
        events = copies.values(main_event=Coalesce("event__main", "event"))
        rows = deliveries.filter(type=Delivery.CALENDAR, booking__event__in=events)
        return rows.filter(content__calendar_id=str(calendar.pk))

    def _find(self, request: HttpRequest, text: str | None) -> Calendar | None:
        try:
            key = uuid.UUID(text or "")
        except ValueError:
            return None
        return Calendar.objects.filter(scope_of(request).rows("resource__app"), pk=key).first()


@admin.register(Delivery)
class DeliveryAdmin(ReadOnlyAdmin):
    app_paths = ("app",)
    list_display = ("due_at", "shown_kind", "recipient", "shown_state", "reason")
    list_display += ("tries", "booking_id", "app")
    list_display_links = ("due_at", "shown_kind")
    list_filter = (
        TroubleFilter,
        WebhookFilter,
        CalendarFilter,
        "type",
        "state",
        ("due_at", DaysFilter),
        ("app", AppFilter),
    )
    list_select_related = ("app",)
    search_fields = ("id",)  # what is looked at: `get_search_results`
    search_help_text = "The id of a delivery, a booking or a webhook, or a customer's e-mail"
    ordering = ("-id",)  # by their making: ids carry the moment
    sortable_by = ()
    actions = ("send_again",)

    # --- the list ---------------------------------------------------------------------------------
    def get_queryset(self, request: HttpRequest) -> Any:
        """A list shows no bodies."""
        return super().get_queryset(request).defer("body", "content")

    def get_search_results(self, request: HttpRequest, deliveries: Any, term: str) -> Any:
        return deliveries.filter(find(term)) if term.strip() else deliveries, False

    @display(description="what")
    def shown_kind(self, delivery: Delivery) -> str:
        return what_words(delivery)

    @display(description="state", label=DELIVERY_COLOURS)
    def shown_state(self, delivery: Delivery) -> str:
        return delivery.state

    # --- sending again ----------------------------------------------------------------------------
    def has_send_permission(self, request: HttpRequest) -> bool:
        return is_allowed(request, "notifications.change_delivery", None)

    def may_send(self, request: HttpRequest, delivery: Delivery) -> bool:
        return is_allowed(request, "notifications.change_delivery", delivery.app_id)

    @admin.action(description="Send again", permissions=["send"])
    def send_again(self, request: HttpRequest, deliveries: Any) -> HttpResponse | None:
        if not is_confirmed(request):
            return self._ask_to_send_again(request, deliveries)
        for delivery in deliveries:
            if not self.may_send(request, delivery):
                messages.error(request, f"{delivery.id}: you may look at it only.")
                continue
            say_sent_again(request, delivery)
        return None

    def _ask_to_send_again(self, request: HttpRequest, deliveries: Any) -> HttpResponse:
        count = deliveries.count()
        rows = deliveries.select_related("booking", "change", "webhook", "customer")
        lines = []
        for delivery in rows[:NAMED]:
            reason = outdated_reason(delivery) if delivery.is_final else ""
            line = f"{what_words(delivery)} {receiver_words(delivery)}"
            lines.append(f"{line}. Will be refused: {reason}" if reason else line)
        more = [f"and {count - NAMED} more"] if count > NAMED else []
        return ask_first(
            self,
            request,
            None,
            title=f"Send {count} {'delivery' if count == 1 else 'deliveries'} again?",
            sentence="They leave at once. A call carries the body that is logged, as it was at"
            " that change.",
            button="Send again",
            look="primary",
            back=request.get_full_path(),
            lines=lines + more,
            repeated=ACTION_FIELDS,
        )

    # --- its page ---------------------------------------------------------------------------------
    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        again = path(
            "<path:object_id>/again/", wrap(self.again), name="notifications_delivery_again"
        )
        return [again, *super().get_urls()]

    def find(self, request: HttpRequest, object_id: str) -> Delivery:
        """One that may be seen, whole. Raises Http404 for any other id."""
        try:
            key = uuid.UUID(object_id)
        except ValueError:
            raise Http404 from None
        rows = super().get_queryset(request)
        rows = rows.select_related("app", "booking", "change", "webhook", "customer")
        delivery = rows.prefetch_related("attempts").filter(pk=key).first()
        if delivery is None:
            raise Http404
        return delivery

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method != "GET":
            raise PermissionDenied
        delivery = self.find(request, object_id)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.model._meta,
            "title": what_words(delivery),
            "original": delivery,
            "delivery": delivery,
            "colour": DELIVERY_COLOURS[delivery.state],
            "attempts": list(delivery.attempts.all()),
            "payload": pretty(delivery.body),
            "facts": facts_of(delivery),
            "has_booking": bool(delivery.booking and not delivery.booking.deleted_at),
            "may_send": self.may_send(request, delivery),
            "outdated": outdated_reason(delivery) if delivery.is_final else "",
        }
        return TemplateResponse(request, "office/delivery.html", context)

    def again(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Asks; a POST sends it (again)."""
        delivery = self.find(request, object_id)
        if not self.may_send(request, delivery):
            raise PermissionDenied
        back = reverse("admin:notifications_delivery_change", args=[delivery.pk])
        if request.method == "POST":
            say_sent_again(request, delivery)
            return HttpResponseRedirect(back)
        if delivery.is_final and (reason := outdated_reason(delivery)):
            messages.error(request, f"It can't be sent again. {reason}")
            return HttpResponseRedirect(back)
        words = "Send again" if delivery.is_final else "Send now"
        return ask_first(
            self,
            request,
            delivery,
            title=f"{words}?",
            sentence=f"{what_words(delivery)} {receiver_words(delivery)}.",
            button=words,
            look="primary",
            back=back,
            lines=[CONTENT_WORDS[delivery.type]],
        )


def say_sent_again(request: HttpRequest, delivery: Delivery) -> None:
    try:
        delivery = redeliver(delivery, now=timezone.now())
    except NotFound:
        messages.error(request, f"{delivery.id} is gone.")
        return
    except Outdated as refusal:
        messages.error(request, f"{delivery.id}: {refusal.message}")
        return
    told = "is being sent" if delivery.state == Delivery.SENDING else "will be sent again"
    messages.success(request, f"{delivery.id} {told}.")


def find(term: str) -> Q:
    """Deliveries by an id: theirs, a booking's, a webhook's; or by a customer's address, or by
    what comes after the @ in it."""
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
        customers = Customer.objects.filter(email__iexact=term)
    return Q(booking_id__in=customers.values("booking_id"))


def what_words(delivery: Delivery) -> str:
    return f"{DELIVERY_WORDS[delivery.type].capitalize()}: {state_words(delivery.kind)}"


def facts_of(delivery: Delivery) -> list[tuple[str, str]]:
    """What a mail tells beside the booking, how a reminder calls, or what is written where."""
    content: Mapping[str, Any] = delivery.content
    return [
        (state_words(name).capitalize(), value if isinstance(value, str) else json.dumps(value))
        for name, value in content.items()
        if value not in ("", None)
    ]


def pretty(body: str) -> str:
    """The JSON of a call, in lines."""
    if not body:
        return ""
    try:
        return json.dumps(json.loads(body), indent=2, ensure_ascii=False)
    except ValueError:
        return body
