"""Keys, log-ins and the people who may use an app (api.md section 3)."""

from typing import Any

from rest_framework import serializers

from apps_config.models import Credential, Membership
from apps_config.serializers import WIDGET_KEY_EXAMPLE
from common.api.fields import (
    CLEARABLE,
    ChoiceField,
    EmailField,
    IdField,
    ListOf,
    NetworkField,
    OneLineField,
    OriginField,
    StampField,
    StringField,
)
from common.api.response_schemas import STAMP_EXAMPLE, example_id
from common.api.serializers import ObjectSerializer
from common.messages import Message
from common.openapi.component_registry import Json

# Kinds that an app issues. Access tokens belong to an account: POST /auth issues them.
APP_KINDS = (Credential.SERVER, Credential.WIDGET, Credential.RESOURCE)
MAX_PROJECTS, MAX_ORIGINS, MAX_NETWORKS = 100, 50, 50
KINDS_WITH = {
    "projects": (Credential.SERVER, Credential.WIDGET),
    "origins": (Credential.WIDGET,),
    "scopes": (Credential.SERVER,),
    "addresses": (Credential.SERVER,),
}


def scopes_field(help_text: str) -> ListOf:
    choices = ChoiceField(Credential.SCOPES)
    return ListOf(
        choices, len(Credential.SCOPES), allow_empty=False, help_text=help_text, **CLEARABLE
    )


class CredentialSerializer(ObjectSerializer):
    # For bodies, `context["now"]` is the time of the request.
    examples = {
        "id": example_id(15),
        "kind": Credential.WIDGET,
        "prefix": "live_widget_key_1c2d3e4f_",
        "key": WIDGET_KEY_EXAMPLE,
        "description": "www.example.com",
        "origins": ["https://shop.example"],
        "scopes": None,
        "last_used_at": STAMP_EXAMPLE,
    }
    on_request = ("key", "secret_shown")
    in_example = ("key",)

    id = IdField(read_only=True)
    kind = ChoiceField(APP_KINDS)
    prefix = serializers.CharField(
        read_only=True, help_text="The beginning of the key, which identifies it."
    )
    key = serializers.CharField(
        source="public_text",
        read_only=True,
        allow_null=True,
        help_text="The full key: always for widget keys, for other keys only in the response of"
        " POST.",
    )
    secret_shown = serializers.BooleanField(
        read_only=True,
        help_text="Only in the response to a repeated request with an Idempotency-Key: the secret"
        " was in the first one.",
    )
    description = OneLineField(200, allow_blank=True, **CLEARABLE)
    resource_id = IdField(
        help_text="The resource of a key of the kind `resource`; null for keys of the app.",
        **CLEARABLE,
    )
    projects = ListOf(
        IdField(),
        MAX_PROJECTS,
        allow_empty=False,
        help_text="The only projects that a server key or widget key may use. Null: any, published"
        " or not.",
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
    scopes = scopes_field("What a server key may do. Null: everything.")
    addresses = ListOf(
        NetworkField(),
        MAX_NETWORKS,
        allow_empty=False,
        help_text="The only networks from which a server key may be used: requests from other"
        " addresses are 403 `address_not_allowed`. Null: any.",
        **CLEARABLE,
    )
    expires_at = StampField(
        read_only=False,
        help_text="In a body, it must be in the future. Absent or null: the key never expires.",
        **CLEARABLE,
    )
    revoked_at = StampField(allow_null=True)
    last_used_at = StampField(allow_null=True, help_text="Rounded to the minute.")
    created_at = StampField()
    updated_at = StampField(help_text="Using the key does not change this time.")

    @classmethod
    def render(cls, row: Credential, *_: Any) -> Json:
        """Without its secret, unless everybody may read that."""
        return super().render(row, include=("key",) if row.public_text else ())

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        for name, kinds in KINDS_WITH.items():
            if given.get(name) and given["kind"] not in kinds:
                text = f"Only keys of the kind {' or '.join(kinds)} take {name}."
                raise serializers.ValidationError({name: [text]})
        expires_at = given.get("expires_at")
        if expires_at and expires_at <= self.context["now"]:
            raise serializers.ValidationError({"expires_at": [Message("Must be in the future.")]})
        is_resources = given["kind"] == Credential.RESOURCE
        if is_resources and not given.get("resource_id"):
            raise serializers.ValidationError({"resource_id": ["This field is required."]})
        if given.get("resource_id") and not is_resources:
            raise serializers.ValidationError(
                {"resource_id": ["Only keys of the kind resource take a resource_id."]}
            )
        return given


class MemberSerializer(ObjectSerializer):
    """A person with a role in the app, or an invitation that is still open."""

    examples = {
        "id": example_id(31),
        "email": "doc@example.com",
        "role": Membership.VIEWER,
        "state": "invited",
    }

    id = IdField(
        read_only=True,
        help_text="Of the person, or of the invitation: accepting an invitation ends its id.",
    )
    email = EmailField()
    role = ChoiceField(Membership.ROLES, default=Membership.VIEWER)
    state = ChoiceField(["active", "invited"], read_only=True)
    expires_at = StampField(
        allow_null=True, help_text="When the invitation's link expires; null: a member."
    )


class LogInInputSerializer(ObjectSerializer):
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
    scopes = scopes_field("What the access token of an account may do. Null: everything.")


class LogInSerializer(ObjectSerializer):
    examples = {
        "id": example_id(2),
        "name": "Ada Berg",
        "email": "owner@example.com",
        "api_token": "1c2d3e4f_Vb0GfXk1hJ3v8qz5WcYt7uR2nE6sLdA9oPiMxKjHgQw",
        "expires_at": "2026-12-20T09:30:00+0000",
    }

    kind = ChoiceField(["access", "resource"], source="credential.kind")
    id = IdField(source="person.id", help_text="The id of the account or resource.")
    name = serializers.CharField(source="person.name")
    email = serializers.CharField(source="person.email")
    api_token = serializers.CharField(
        help_text="The password of HTTP Basic, with `email` as the user name. Shown once."
    )
    expires_at = StampField(source="credential.expires_at")
