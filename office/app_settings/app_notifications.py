"""The admin of an app's default event notifications."""

from django.contrib import admin

from apps_config.models import AppNotification
from office.base.event_notification_forms import EventNotificationForm
from office.base.model_admin import OfficeAdmin


@admin.register(AppNotification)
class AppNotificationAdmin(OfficeAdmin[AppNotification]):
    app_paths = ("app",)
    list_display = ("app", "type", "when_time", "when_unit", "when_type")
    list_select_related = ("app",)
    search_fields = ("app__slug",)
    autocomplete_fields = ("app",)
    form = EventNotificationForm
    fields = ("app", *EventNotificationForm.Meta.fields)
