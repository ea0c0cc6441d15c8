"""Read-only admins of the outbox: endpoints, attempts, plans, daily tasks and heartbeats."""

from django.contrib import admin

from notifications.models import Attempt, Endpoint, Heartbeat, LaneCheck, Plan, TaskRun
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
    list_display = ("at", "delivery_id", "response_code", "seconds", "error")
    search_fields = ("delivery__id", "delivery__booking__id")
    show_full_result_count = False


@admin.register(Plan)
class PlanAdmin(ReadOnlyAdmin[Plan]):
    app_paths = ("change__booking__app",)
    list_display = ("change_id", "planned", "purged")
    search_fields = ("change__booking__id",)
    show_full_result_count = False


@admin.register(TaskRun)
class TaskRunAdmin(ReadOnlyAdmin[TaskRun]):
    list_display = ("task", "started_at", "succeeded_at")
    search_fields = ("task",)


@admin.register(Heartbeat)
class HeartbeatAdmin(ReadOnlyAdmin[Heartbeat]):
    list_display = ("name", "seen_at")
    search_fields = ("name",)
