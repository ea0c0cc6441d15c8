"""Password reset of a resource: the request for an e-mail, and the page behind its link."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse, QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from access.resource_password_reset_request import MAX_PASSWORD_MAILS, request_password_reset
from apps_config.base_views import TenantViewSet
from apps_config.permissions import check_may_make_resource_key
from availability.models import Resource
from availability.serializers.resources import PasswordResetSerializer, PasswordSerializer
from availability.services import replace_password
from bookings.pages.base import PAGE_HEADERS, PageView, form_field, page_response
from bookings.pages.email_links import CLOSE
from bookings.pages.formatting import to_one_line
from bookings.pages.refusal_texts import REFUSAL_TEXTS
from common.api.fields import CANONICAL_ID
from common.api.json import read_body
from common.api.serializers import read_body_as, read_values_as
from common.errors import Invalid
from common.openapi.component_registry import register_component
from common.openapi.components import EmptySerializer, text_response
from common.openapi.generator import named_examples, parameters
from notifications.links.resource_password_reset import BadPasswordLink, check_password_link

CHOOSE = _("Choose a new password")
SET = _("Your password is set")
BAD_LINK = (
    _("This link is no longer valid"),
    _("The link was already used, is older than an hour, or is incomplete. Request a new link."),
)
PASSWORD = _("New password")
AGAIN = _("Repeat the password")
HINT = _("Use 12 to 200 characters.")
BUTTON = _("Set the password")
UNFIT = _("The password was too short or too long.")
DIFFERENT = _("The passwords do not match.")
PASSWORD_RULES: Mapping[str, Any] = {
    "type": "password",
    "required": True,
    "minlength": 12,
    "maxlength": 200,
    "autocomplete": "new-password",
}


class PasswordResetViewSet(TenantViewSet):
    serializer_class = EmptySerializer
    is_singleton = True
    tag = "resources"

    @extend_schema(
        operation_id="requestResourcePassword",
        summary="Send a password reset link to a resource",
        description="The response is the same for an unknown address. The link works once, for an"
        f" hour, until the password changes. At most {MAX_PASSWORD_MAILS} e-mails per hour and"
        " resource, also with `disable_emails`. A test app sends e-mails only to its members.",
        request=PasswordResetSerializer,
        responses={200: EmptySerializer},
        examples=named_examples(request={"Ada": {"email": "ada@example.com"}}),
    )
    def create(self, request: Request) -> Response:
        check_may_make_resource_key(self.caller)
        email = read_body_as(PasswordResetSerializer, request)["email"]
        request_password_reset(app=self.app, email=email, now=self.now)
        return Response({"data": {}})


SIGNATURE = {
    "signature": text_response(
        "From the mail.",
        required=True,
        examples=["1795597200.W9hY0T0mC6nnAPGxQvDqWr6d2yPHVlNQn4gJ3EIh5xQ"],
    )
}
PATH = {"resource_id": text_response("Id of the resource.")}
FORM = "application/x-www-form-urlencoded"
_PASSWORD = {"type": "string", "minLength": 12, "maxLength": 200}
PASSWORD_FORM = register_component(
    "schemas",
    "PasswordForm",
    {
        "type": "object",
        "required": ["password", "again"],
        "properties": {"password": _PASSWORD, "again": _PASSWORD},
    },
)
FAILURES = {
    400: page_response("The request is malformed."),
    403: page_response("The link is for another resource, was used, or has expired."),
    405: page_response("The path does not support the method."),
    500: page_response("A bug."),
    503: page_response("The database is busy, restarting or down: try again."),
}


class PasswordPageView(PageView):
    operation_ids = {"GET": "showPasswordPage", "POST": "submitPasswordPage"}
    tag = "resources"
    refusals = {**REFUSAL_TEXTS, BadPasswordLink: BAD_LINK}

    @extend_schema(
        summary="Show the page to choose a password",
        description="Changes nothing. Needs no key: the signature is the capability.",
        responses={200: page_response("The form."), **FAILURES},
        parameters=parameters(query=SIGNATURE, path=PATH, headers=PAGE_HEADERS),
    )
    def get(self, request: Request, resource_id: str) -> HttpResponse:
        return self._form(200, self._admit_link(request, resource_id))

    @extend_schema(
        summary="Set the password",
        description="The form of the page: twice the same password. It ends the tokens of earlier"
        " log-ins.",
        request={FORM: PASSWORD_FORM},
        responses={
            200: page_response("The password is set."),
            **FAILURES,
            413: page_response("The body is larger than 256 kB."),
            422: page_response(
                "The form again, with an error: too short, too long, or two different inputs."
            ),
        },
        parameters=parameters(query=SIGNATURE, path=PATH, headers=PAGE_HEADERS),
        examples=named_examples(
            request={"a password": dict.fromkeys(("password", "again"), "correct horse battery")},
            media_type=FORM,
        ),
    )
    def post(self, request: Request, resource_id: str) -> HttpResponse:
        resource = self._admit_link(request, resource_id)
        form = QueryDict(read_body(request))
        try:
            password = read_values_as(PasswordSerializer, form.dict())["password"]
        except Invalid:
            return self._form(422, resource, UNFIT)
        if form.get("again") != password:
            return self._form(422, resource, DIFFERENT)
        if not replace_password(resource, password, now=self.now):
            raise BadPasswordLink("This link has been used.")
        return self.show_step(200, SET, CLOSE)

    def _admit_link(self, request: Request, resource_id: str) -> Resource:
        """Return the resource of a valid link. A forged link does not reveal whether the resource
        exists.
        """
        rows = Resource.objects.filter(deleted_at=None, app__archived_at=None)
        rows = rows.select_related("app").exclude(email=None)
        is_id = CANONICAL_ID.fullmatch(resource_id)
        resource = rows.filter(id=resource_id).first() if is_id else None
        resource = check_password_link(resource, request.GET.get("signature", ""), now=self.now)
        self.app = resource.app
        return resource

    def _form(self, status: int, resource: Resource, sentence: str | Promise = "") -> HttpResponse:
        email = to_one_line(resource.email or "", 254)
        return self.show_step(
            status,
            CHOOSE,
            sentence,
            fields=[
                # For password managers.
                form_field("username", "", email, hint=email, autocomplete="username", hidden=True),
                form_field("password", PASSWORD, hint=HINT, **PASSWORD_RULES),
                form_field("again", AGAIN, **PASSWORD_RULES),
            ],
            button=BUTTON,
        )
