"""Staff's view of what leaves the house. Secrets are never shown."""

from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils import timezone
from unfold.contrib.filters.admin import DropdownFilter

from apps_config.office import AppFilter, DaysFilter, ReadOnlyAdmin, ReadOnlyInline
from notifications.models import (
    LATE,
    Attempt,
    Delivery,
    EmailTemplate,
    Endpoint,
    Heartbeat,
    Plan,
    Webhook,
)
from notifications.services import change_webhook, redeliver
from scheduling.api.errors import NotFound


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


class AttemptInline(ReadOnlyInline):
    model = Attempt
    fields = ("at", "response_code", "seconds", "error", "excerpt")


@admin.register(Delivery)
class DeliveryAdmin(ReadOnlyAdmin):
    app_paths = ("app",)
    list_display = ("id", "type", "kind", "recipient", "state", "reason")
    list_display += ("due_at", "tries", "booking_id", "app")
    list_filter = (TroubleFilter, "type", "state", ("due_at", DaysFilter), ("app", AppFilter))
    list_select_related = ("app",)
    search_fields = ("id", "booking__id", "booking__customers__email")
    search_help_text = "The id of a delivery or a booking, or a customer's e-mail."
    show_full_result_count = False
    inlines = (AttemptInline,)
    actions = ("send_again",)

    def get_queryset(self, request: HttpRequest) -> Any:
        """A list shows no bodies."""
        return super().get_queryset(request).defer("body", "content")

    @admin.action(description="Send again", permissions=["send"])
    def send_again(self, request: HttpRequest, deliveries: Any) -> None:
        for delivery in deliveries:
            try:
                delivery = redeliver(delivery, now=timezone.now())
            except NotFound:
                self.message_user(request, f"{delivery.id} is gone.", "ERROR")
                continue
            told = "is being sent" if delivery.state == Delivery.SENDING else "will be sent again"
            self.message_user(request, f"{delivery.id} {told}.")

    def has_send_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("notifications.change_delivery")


@admin.register(Webhook)
class WebhookAdmin(ReadOnlyAdmin):
    app_paths = ("app",)
    list_display = ("url", "app", "graph", "active", "disabled_reason", "failures", "created_at")
    list_filter = ("active", "graph")
    list_select_related = ("app",)
    search_fields = ("id", "url", "description", "app__slug")
    show_full_result_count = False
    fields = ("id", "app", "url", "method", "graph", "states", "expected_response_code")
    fields += ("description", "active", "disabled_reason", "failures", "failing_since")
    fields += ("created_at", "updated_at", "deleted_at")
    actions = ("switch_on", "switch_off")

    @admin.action(description="Switch on", permissions=["switch"])
    def switch_on(self, request: HttpRequest, webhooks: Any) -> None:
        self._switch(request, webhooks, active=True)

    @admin.action(description="Switch off", permissions=["switch"])
    def switch_off(self, request: HttpRequest, webhooks: Any) -> None:
        self._switch(request, webhooks, active=False)

    def _switch(self, request: HttpRequest, webhooks: Any, *, active: bool) -> None:
        for webhook in webhooks:
            try:
                change_webhook(webhook, {"active": active})
                self.message_user(request, f"{webhook} is {'on' if active else 'off'}.")
            except NotFound:
                self.message_user(request, f"{webhook} is deleted.", "ERROR")

    def has_switch_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("notifications.change_webhook")


@admin.register(EmailTemplate)
class EmailTemplateAdmin(ReadOnlyAdmin):
    app_paths = ("app",)
    list_display = ("slug", "app", "subject", "updated_at")
    list_select_related = ("app",)
    search_fields = ("slug", "subject", "app__slug")


@admin.register(Endpoint)
class EndpointAdmin(ReadOnlyAdmin):
    list_display = ("address", "failures", "is_slow", "open_until")
    list_filter = ("is_slow",)
    search_fields = ("address",)


@admin.register(Attempt)
class AttemptAdmin(ReadOnlyAdmin):
    app_paths = ("delivery__app",)
    list_display = ("at", "delivery_id", "response_code", "seconds", "error")
    search_fields = ("delivery__id", "delivery__booking__id")
    show_full_result_count = False


@admin.register(Plan)
class PlanAdmin(ReadOnlyAdmin):
    app_paths = ("change__booking__app",)
    list_display = ("change_id", "planned", "purged")
    search_fields = ("change__booking__id",)
    show_full_result_count = False


@admin.register(Heartbeat)
class HeartbeatAdmin(ReadOnlyAdmin):
    list_display = ("name", "seen_at")
    search_fields = ("name",)
