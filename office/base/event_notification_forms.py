"""Forms of event notifications, with fields by type, checked as by the API."""

from collections.abc import Iterator
from typing import Any

from django import forms

from apps_config.models import EventNotification
from apps_config.serializers import MAX_NOTIFICATIONS, EventNotificationSerializer
from office.base.api_forms import CheckedForm
from office.base.model_admin import StackedOfficeInline

FIELDS_OF = {
    EventNotification.EMAIL: ("recipient", "subject"),
    EventNotification.WEBHOOK: ("url", "method", "expected_response_code"),
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
            "position": "Order",
            "when_time": "How long",
            "when_unit": "Unit",
            "when_type": "When",
            "expected_response_code": "Expected code",
        }
        help_texts = {
            "subject": "Empty: “Reminder:” with title and time.",
            "expected_response_code": "Empty: any 2xx.",
            "url": "A public http or https address.",
        }

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
            return given | self._of_no_other_kind(kind) | serializer.validated_data
        for path, faults in flatten_faults(serializer.errors):
            self.add_faults({path.removeprefix("settings."): faults})
        return given

    def _of_no_other_kind(self, kind: str) -> dict[str, Any]:
        others = {name for key, names in FIELDS_OF.items() if key != kind for name in names}
        return {name: None if name == "expected_response_code" else "" for name in others}


def flatten_faults(errors: Any, path: str = "") -> Iterator[tuple[str, list[str]]]:
    """Yield the serializer's errors by dotted path."""
    for key, faults in errors.items():
        at = f"{path}{key}"
        if isinstance(faults, dict):
            yield from flatten_faults(faults, f"{at}.")
        else:
            yield at, [str(fault) for fault in faults]


class EventNotificationInline(StackedOfficeInline[EventNotification]):
    """Each row has a summary as its heading, which the script updates."""

    form = EventNotificationForm
    extra = 0
    max_num = MAX_NOTIFICATIONS
    classes = ("office-reminders",)
    ordering_field = "position"
    verbose_name = "reminder"
    verbose_name_plural = "reminders"
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

    class Media:
        js = ("office/reminders.js",)
