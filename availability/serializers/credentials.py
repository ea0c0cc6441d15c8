"""The shapes of keys and log-ins in bodies (api.md section 3)."""

from typing import Any

from rest_framework import serializers

from apps_config.models import Credential
from availability.serializers.fields import CLEARABLE
from scheduling.api.fields import (
    EmailField,
    IdField,
    InstantField,
    ObjectSerializer,
    OneLineField,
    StringField,
)

# Those of an app. Access tokens belong to an account: POST /auth gives them.
APP_KINDS = (Credential.SERVER, Credential.WIDGET, Credential.RESOURCE)


class NewCredentialSerializer(ObjectSerializer):
    """The body of POST /credentials. `context["now"]`: when it is read."""

    kind = serializers.ChoiceField(APP_KINDS)
    description = OneLineField(200, allow_blank=True, **CLEARABLE)
    expires_at = InstantField(help_text="Never, if absent. Must lie ahead.", **CLEARABLE)
    resource_id = IdField(help_text="Whose key: for the kind `resource` alone.", **CLEARABLE)

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        expires_at = given.get("expires_at")
        if expires_at and expires_at <= self.context["now"]:
            raise serializers.ValidationError({"expires_at": ["Must lie in the future."]})
        is_resources = given["kind"] == Credential.RESOURCE
        if is_resources and not given.get("resource_id"):
            raise serializers.ValidationError({"resource_id": ["This field is required."]})
        if given.get("resource_id") and not is_resources:
            raise serializers.ValidationError(
                {"resource_id": ["Only a key of the kind resource belongs to one."]}
            )
        return given


class LogInSerializer(ObjectSerializer):
    """The body of POST /auth."""

    email = EmailField()
    password = StringField(4096)
