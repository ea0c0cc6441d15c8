"""Serializers of request bodies for keys and log-ins (api.md section 3)."""

from typing import Any

from rest_framework import serializers

from apps_config.models import Credential, Membership
from availability.serializers.fields import CLEARABLE
from common.api.fields import (
    EmailField,
    IdField,
    InstantField,
    ListOf,
    ObjectSerializer,
    OneLineField,
    OriginField,
    StringField,
)

# Kinds that an app issues. Access tokens belong to an account: POST /auth issues them.
APP_KINDS = (Credential.SERVER, Credential.WIDGET, Credential.RESOURCE)
MAX_PROJECTS, MAX_ORIGINS = 100, 50


class NewCredentialSerializer(ObjectSerializer):
    """The body of POST /credentials. `context["now"]`: the time of the request."""

    kind = serializers.ChoiceField(APP_KINDS)
    description = OneLineField(200, allow_blank=True, **CLEARABLE)
    expires_at = InstantField(
        help_text="Must be in the future. Absent: the key never expires.", **CLEARABLE
    )
    resource_id = IdField(
        help_text="The resource of the key. Only for the kind `resource`.", **CLEARABLE
    )

    projects = ListOf(
        IdField(),
        MAX_PROJECTS,
        allow_empty=False,
        help_text="The only projects that a widget key may use. Null: any, published or not.",
        **CLEARABLE,
    )
    origins = ListOf(
        OriginField(),
        MAX_ORIGINS,
        allow_empty=False,
        help_text="The only web sites that may use a widget key: requests with another `Origin`"
        " are 403. Null: any.",
        **CLEARABLE,
    )

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        for name in ("projects", "origins"):
            if given.get(name) and given["kind"] != Credential.WIDGET:
                raise serializers.ValidationError(
                    {name: [f"Only keys of the kind widget take {name}."]}
                )
        expires_at = given.get("expires_at")
        if expires_at and expires_at <= self.context["now"]:
            raise serializers.ValidationError({"expires_at": ["Must be in the future."]})
        is_resources = given["kind"] == Credential.RESOURCE
        if is_resources and not given.get("resource_id"):
            raise serializers.ValidationError({"resource_id": ["This field is required."]})
        if given.get("resource_id") and not is_resources:
            raise serializers.ValidationError(
                {"resource_id": ["Only keys of the kind resource take a resource_id."]}
            )
        return given


class NewMemberSerializer(ObjectSerializer):
    """The body of POST /apps/:slug/members."""

    email = EmailField()
    role = serializers.ChoiceField(Membership.ROLES, default=Membership.VIEWER)


class LogInSerializer(ObjectSerializer):
    """The body of POST /auth."""

    email = EmailField()
    password = StringField(4096)
    code = StringField(
        64,
        allow_blank=True,
        help_text="A code of the authenticator app, or a recovery code, of an account with a second"
        " factor. Each works once.",
        **CLEARABLE,
    )
