"""Forms of event notifications, with fields by type, checked as by the API."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from apps_config.models import EventNotification
from apps_config.serializers import MAX_NOTIFICATIONS, EventNotificationSerializer
from office.base.api_forms import CheckedForm, choice_field, flatten_faults
from office.base.event_notification_words import event_notification_words
from office.base.lazy_text import LazyText
from office.base.model_admin import StackedOfficeInline

FIELDS_OF = {
    EventNotification.EMAIL: ("recipient", "subject"),
    EventNotification.WEBHOOK: ("url", "method", "expected_response_code"),
}


CHOICE_WORDS: Mapping[str, Mapping[str, LazyText]] = {
    "type": {EventNotification.EMAIL: _("E-mail"), EventNotification.WEBHOOK: _("Webhook call")},
    "when_type": {
        EventNotification.BEFORE: _("before the start"),
        EventNotification.AFTER: _("after the start"),
    },
    "when_unit": {
        "hours": _("hours"),
        "days": _("days"),
        "mins": _("minutes"),
        "secs": _("seconds"),
    },
    "recipient": {"": "---------", "customer": _("customer"), "owner": _("owner")},
    "method": {"": "---------", **{name: name.upper() for name in EventNotification.METHODS}},
}
NEW_REMINDER = {
    "when_time": 24,
    "when_unit": "hours",
    "when_type": EventNotification.BEFORE,
    "type": EventNotification.EMAIL,
    "recipient": "customer",
}


class EventNotificationForm(CheckedForm, forms.ModelForm):
    # The form's fields for the API's errors.
    field_of = {"when.type": "when_type", "when.unit": "when_unit", "when.time": "when_time"}

    class Meta:
        fields = (
            *("position", "when_time", "when_unit", "when_type", "type"),
            *("recipient", "subject", "url", "method", "expected_response_code"),
        )
        labels = {
            "position": _("Order"),
            "when_time": _("Time"),
            "when_unit": _("Unit"),
            "when_type": _("When"),
            "type": _("Send"),
            "recipient": _("To"),
            "url": _("Webhook URL"),
            "expected_response_code": _("Expected status code"),
        }
        help_texts = {
            "subject": _("Default: “Reminder:” with title and time."),
            "expected_response_code": _("Default: any 2xx."),
            "url": _("A public http or https address."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance._state.adding:
            self.initial = {**NEW_REMINDER, **self.initial}
        else:
            # The theme's heading of the row.
            vars(self.instance)["get_inline_title"] = event_notification_words(self.instance)
        if "position" in self.fields:
            self.fields["position"].required = False
        for name, words in CHOICE_WORDS.items():
            if name in self.fields:
                choice_field(self, name).choices = self._choices(name, words)

    def _choices(self, name: str, words: Mapping[str, LazyText]) -> list[tuple[str, LazyText]]:
        """Return the choices in words; seconds are offered only where they are stored."""
        stored = getattr(self.instance, name)
        hidden = {"secs"} - {stored}
        return [(value, text) for value, text in words.items() if value not in hidden]

    def has_changed(self) -> bool:
        """A new row counts with its defaults, too: it was added by a click."""
        return self.instance._state.adding or super().has_changed()

    def clean_position(self) -> int:
        return self.cleaned_data["position"] or 0

    def clean(self) -> dict[str, Any]:
        super().clean()
        given = self.cleaned_data
        kind = given.get("type")
        if kind not in FIELDS_OF:
            return given  # the field itself has the error
        settings = {name: given.get(name) for name in FIELDS_OF[kind]}
        body = {
            "type": kind,
            "settings": {key: value for key, value in settings.items() if value not in ("", None)},
            "when": {
                "type": given.get("when_type"),
                "unit": given.get("when_unit"),
                "time": given.get("when_time"),
            },
        }
        serializer = EventNotificationSerializer(data=body)
        if serializer.is_valid():
            return given | self._cleared_fields_of_other_kinds(kind) | serializer.validated_data
        for path, faults in flatten_faults(serializer.errors):
            self.add_faults({path.removeprefix("settings."): faults})
        return given

    def _cleared_fields_of_other_kinds(self, kind: str) -> dict[str, Any]:
        others = {name for key, names in FIELDS_OF.items() if key != kind for name in names}
        return {name: None if name == "expected_response_code" else "" for name in others}


class EventNotificationInline(StackedOfficeInline[EventNotification]):
    """Each row has a summary as its heading, which the script updates."""

    form = EventNotificationForm
    extra = 0
    max_num = MAX_NOTIFICATIONS
    classes = ("office-reminders",)
    ordering_field = "position"
    verbose_name = _("reminder")
    verbose_name_plural = _("Reminders")
    readonly_fields = ("summary",)
    fieldsets = (
        (
            None,
            {
                "fields": (
                    ("when_time", "when_unit", "when_type", "type", "position"),
                    ("recipient", "subject"),
                    ("url", "method", "expected_response_code"),
                )
            },
        ),
    )

    @display(description=_("Reminder"))
    def summary(self, row: EventNotification) -> str:
        return event_notification_words(row)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Show reminders in words to accounts that may not change them."""
        if self.has_change_permission(request, obj):
            return self.fieldsets
        return ((None, {"fields": ("summary",)}),)

    class Media:
        js = ("office/rows.js", "office/reminders.js")
