"""The shapes of templates in bodies: texts with known placeholders only."""

from typing import Any

from rest_framework import serializers

from common.api.fields import IdField, ObjectSerializer, OneLineField, TextField
from notifications.mail import find_faults

SUBJECT, TEXT, HTML = 200, 20_000, 100_000


class TemplateTextsSerializer(ObjectSerializer):
    """Any of the three parts; the placeholders in them are checked, everything else is text."""

    subject = OneLineField(SUBJECT, required=False, allow_null=True)
    text = TextField(TEXT, required=False, allow_null=True)
    html = TextField(HTML, required=False, allow_null=True)

    def validate_subject(self, subject: str | None) -> str | None:
        if subject is not None and not subject.strip():
            raise serializers.ValidationError("May not be blank.")
        return self._checked(subject, is_subject=True)

    def validate_text(self, text: str | None) -> str | None:
        return self._checked(text)

    def validate_html(self, html: str | None) -> str | None:
        return self._checked(html)

    def _checked(self, template: str | None, *, is_subject: bool = False) -> str | None:
        faults = find_faults(template or "", is_subject=is_subject)
        if faults:
            raise serializers.ValidationError(faults)
        return template


class TemplateSerializer(TemplateTextsSerializer):
    """The body of PUT /templates/:slug: texts, or null for all three."""

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        empty = [part for part, value in given.items() if value is None]
        if empty and len(empty) < 3:
            fault = "To reset the template, send null for all three parts."
            raise serializers.ValidationError({part: [fault] for part in empty})
        return given


class PreviewSerializer(TemplateTextsSerializer):
    """The body of POST /templates/:slug/preview; a null is as good as nothing."""

    booking_id = IdField(required=False, allow_null=True)
