"""Admins of idempotency records, failed log-ins, event notifications and request counts."""

from django.contrib import admin

from apps_config.models import AppNotification, FailedLogin, IdempotencyRecord, RequestCount
from office.base.event_notification_forms import EventNotificationForm
from office.base.model_admin import OfficeAdmin, ReadOnlyAdmin


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


@admin.register(AppNotification)
class AppNotificationAdmin(OfficeAdmin[AppNotification]):
    app_paths = ("app",)
    list_display = ("app", "type", "when_time", "when_unit", "when_type")
    list_select_related = ("app",)
    search_fields = ("app__slug",)
    autocomplete_fields = ("app",)
    form = EventNotificationForm
    fields = ("app", *EventNotificationForm.Meta.fields)


@admin.register(RequestCount)
class RequestCountAdmin(ReadOnlyAdmin[RequestCount]):
    app_paths = ("app",)
    list_display = ("kind", "app", "count", "expires_at")
    list_filter = ("kind",)
    list_select_related = ("app",)
    search_fields = ("kind", "app__slug")
