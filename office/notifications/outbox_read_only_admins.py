"""Read-only admins of the outbox: servers, attempts, plans, calls of changes, tasks, heartbeats."""

from typing import Any

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from notifications.models import Attempt, Endpoint, Heartbeat, LaneCheck, Plan, TaskRun
from office.base.dates import moment_words
from office.base.labels import delivery_words, state_words
from office.base.model_admin import ReadOnlyAdmin


@admin.register(Endpoint)
class EndpointAdmin(ReadOnlyAdmin[Endpoint]):
    list_display = ("address", "failures", "is_slow", "open_until")
    list_filter = ("is_slow",)
    search_fields = ("address",)


@admin.register(LaneCheck)
class LaneCheckAdmin(ReadOnlyAdmin[LaneCheck]):
    app_paths = ("app",)
    list_display = ("type", "endpoint", "app", "next_at", "waiting_since", "is_held")
    list_filter = ("type", "is_held")
    list_select_related = ("app",)
    search_fields = ("endpoint", "app__slug")
    show_full_result_count = False


@admin.register(Attempt)
class AttemptAdmin(ReadOnlyAdmin[Attempt]):
    app_paths = ("delivery__app",)
    list_display = ("time", "shown_delivery", "response_code", "seconds", "error")
    list_select_related = ("delivery",)
    search_fields = ("delivery__id", "delivery__booking__id")
    show_full_result_count = False
    sortable_by = ()
    fieldsets = (
        (None, {"fields": ("delivery", "time", "response_code", "seconds", "error")}),
        (_("Advanced"), {"classes": ("collapse",), "fields": ("excerpt", "id")}),
    )

    @display(description=_("time"))
    def time(self, attempt: Attempt) -> str:
        return moment_words(attempt.at)

    @display(description=_("delivery"))
    def shown_delivery(self, attempt: Attempt) -> str:
        page = reverse("admin:notifications_delivery_change", args=[attempt.delivery_id])
        link = '<a href="{}" class="office-link">{}</a>'
        return format_html(link, page, delivery_words(attempt.delivery))

    def row_title(self, row: Attempt) -> str:
        return f"{delivery_words(row.delivery)}, {moment_words(row.at)}"


class ChangeRowAdmin(ReadOnlyAdmin[Any]):
    """Of rows that belong to a change of a booking."""

    list_select_related = ("change",)
    search_fields = ("change__booking__id",)
    show_full_result_count = False

    @display(description=_("change"))
    def shown_change(self, row: Any) -> str:
        """The change in words, linked to its booking."""
        page = reverse("admin:bookings_booking_change", args=[row.change.booking_id])
        link = '<a href="{}" class="office-link">{}</a>'
        return format_html(link, page, self.row_title(row))

    def row_title(self, row: Any) -> str:
        """Return `new → confirmed, Mon 23 Nov 2026, 09:00 CET`."""
        change = row.change
        states = f"{state_words(change.from_state)} → {state_words(change.to_state)}"
        return f"{states}, {moment_words(change.created_at)}"


@admin.register(Plan)
class PlanAdmin(ChangeRowAdmin):
    list_display = fields = ("shown_change", "planned", "purged")


@admin.register(TaskRun)
class TaskRunAdmin(ReadOnlyAdmin[TaskRun]):
    list_display = ("shown_task", "started_at", "succeeded_at")
    search_fields = ("task",)

    @display(description=_("task"), ordering="task")
    def shown_task(self, row: TaskRun) -> str:
        """`Purge deliveries` for `notifications.purge_deliveries`."""
        return state_words(row.task.rpartition(".")[2]).capitalize()


@admin.register(Heartbeat)
class HeartbeatAdmin(ReadOnlyAdmin[Heartbeat]):
    list_display = ("name", "seen_at")
    search_fields = ("name",)
