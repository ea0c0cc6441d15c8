"""The admin of an app's default event notifications."""

from django.contrib import admin
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from apps_config.models import AppNotification
from office.base.event_notification_forms import CHOICE_WORDS, EventNotificationForm
from office.base.event_notification_words import event_notification_words
from office.base.model_admin import ALL_EDITS, OfficeAdmin


@admin.register(AppNotification)
class AppNotificationAdmin(OfficeAdmin[AppNotification]):
    """The reminders of an app are changed on its page."""

    app_paths = ("app",)
    never = ALL_EDITS
    list_display = ("app", "reminder")
    sortable_by = ()
    list_select_related = ("app",)
    search_fields = ("app__slug",)
    fields = ("app", *EventNotificationForm.Meta.fields)
    words = CHOICE_WORDS

    @display(description=_("reminder"))
    def reminder(self, row: AppNotification) -> str:
        return event_notification_words(row)

    def row_title(self, row: AppNotification) -> str:
        return event_notification_words(row)
