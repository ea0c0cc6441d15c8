"""Read-only admins of idempotency records, failed log-ins and request counts."""

from django.contrib import admin

from apps_config.models import FailedLogin, IdempotencyRecord, RequestCount
from office.base.model_admin import ReadOnlyAdmin


@admin.register(IdempotencyRecord)
class IdempotencyRecordAdmin(ReadOnlyAdmin[IdempotencyRecord]):
    list_display = ("key", "credential", "status", "created_at")
    list_select_related = ("credential",)
    search_fields = ("key",)
    fields = ("credential", "key", "status", "created_at")


@admin.register(FailedLogin)
class FailedLoginAdmin(ReadOnlyAdmin[FailedLogin]):
    list_display = ("address", "minute", "count")
    search_fields = ("address",)


@admin.register(RequestCount)
class RequestCountAdmin(ReadOnlyAdmin[RequestCount]):
    app_paths = ("app",)
    list_display = ("kind", "app", "count", "expires_at")
    list_filter = ("kind",)
    list_select_related = ("app",)
    search_fields = ("kind", "app__slug")
