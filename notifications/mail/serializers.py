"""Templates of e-mails: texts with known placeholders only."""

from typing import Any

from rest_framework import serializers

from common.api.fields import ChoiceField, IdField, OneLineField, StampField, TextField
from common.api.response_schemas import STAMP_EXAMPLE
from common.api.serializers import ObjectSerializer
from common.messages import Message
from notifications.mail import SLUGS, find_faults

SUBJECT, HEADING, TEXT, HTML = 200, 200, 20_000, 100_000


class TemplateTextsSerializer(ObjectSerializer):
    """Any of the three parts; the placeholders in them are checked, everything else is text."""

    subject = OneLineField(SUBJECT, required=False, allow_null=True)
    text = TextField(TEXT, required=False, allow_null=True)
    html = TextField(HTML, required=False, allow_null=True, help_text="A whole HTML document.")

    def validate_subject(self, subject: str | None) -> str | None:
        if subject is not None and not subject.strip():
            raise serializers.ValidationError(Message("May not be blank."))
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


WORDS_EXAMPLE = {
    "subject": "See you on {{ date }}",
    "text": "Hello {{ name }},\n\n{{ details }}\n\n{{ actions }}\n",
    "html": "<p>Hello {{ name }},</p>\n{{ details }}\n{{ actions }}\n",
}


class EmailTemplateSerializer(TemplateTextsSerializer):
    """What one kind of mail says. In a body: texts, or null for all three."""

    never_null = ("subject", "text", "html")
    examples = {
        "slug": "confirmed_customer",
        **WORDS_EXAMPLE,
        "custom": True,
        "updated_at": STAMP_EXAMPLE,
    }

    custom = serializers.BooleanField(
        read_only=True, help_text="Whether the app has its own template."
    )
    updated_at = StampField(allow_null=True, help_text="null for the default template.")

    def get_fields(self) -> dict[str, serializers.Field]:
        return {
            "slug": ChoiceField(list(SLUGS), read_only=True),
            **super().get_fields(),
        }

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        empty = [part for part, value in given.items() if value is None]
        if empty and len(empty) < 3:
            fault = "To reset the template, send null for all three parts."
            raise serializers.ValidationError({part: [fault] for part in empty})
        return given


class WrittenTextsSerializer(serializers.Serializer):
    """Heading and text of the back office's editor; a blank one is the default's."""

    heading = OneLineField(HEADING, required=False, allow_blank=True)
    body = TextField(TEXT, required=False, allow_blank=True)

    def validate_heading(self, heading: str) -> str:
        return _without_blocks(heading)

    def validate_body(self, body: str) -> str:
        return _without_blocks(body)


def _without_blocks(text: str) -> str:
    if faults := find_faults(text, is_written=True):
        raise serializers.ValidationError(faults)
    return text


class PreviewSerializer(TemplateTextsSerializer):
    """The body of POST /templates/:slug/preview; a null is as good as nothing."""

    booking_id = IdField(required=False, allow_null=True)


class RenderedEmailSerializer(ObjectSerializer):
    examples = {
        "subject": "See you on Monday, 23 November 2026",
        "text": "Hello Marty McFly,\n\nWhat:  Check-up\n",
        "html": "<p>Hello Marty McFly,</p>\n",
    }

    subject = serializers.CharField()
    text = serializers.CharField()
    html = serializers.CharField(help_text="A whole HTML document.")
