"""Password reset of a resource: the request for an e-mail, and the page behind its link."""

from django.http import HttpResponse, QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from rest_framework.response import Response

from access.resource_password_reset_request import MAX_PASSWORD_MAILS, request_password_reset
from apps_config.base_views import TenantView
from availability.models import Resource
from availability.serializers.resources import PasswordResetSerializer, PasswordSerializer
from availability.services import replace_password
from bookings.pages.base import PAGE_HEADERS, PageView, page_response
from bookings.pages.formatting import to_one_line
from common.api.fields import CANONICAL_ID
from common.api.json_parser import read_body
from common.api.validated_input import read_body_as, read_values_as
from common.api.views import ApiRequest
from common.errors import Invalid
from common.openapi.components import EmptyRecord, text_response
from common.openapi.generator import data_object, describe_endpoint
from notifications.links.resource_password_reset import BadPasswordLink, check_password_link

CHOOSE = _("Choose a new password")
SET = _("Your password is set")
CLOSE = _("You can close this page.")
BAD_LINK = (
    _("This link is no longer valid"),
    _("The link was already used, is older than an hour, or is incomplete. Request a new link."),
)
HINT = _("Use 12 to 200 characters.")
UNFIT = _("The password was too short or too long.")
DIFFERENT = _("The passwords do not match.")
REFUSED: dict[str, tuple[str | Promise, str | Promise]] = {
    "unavailable": (
        _("The service is busy"),
        _("Nothing was changed. Please try again in a moment."),
    ),
    "internal": (
        _("Something went wrong on our side"),
        _("Nothing was changed. Please try again later."),
    ),
}
UNREADABLE = (
    _("The request is not valid"),
    _("Please open the link in the e-mail again."),
)


class RequestPasswordResetView(TenantView):
    operation_ids = {"POST": "requestResourcePassword"}
    tag = "resources"

    @describe_endpoint(
        summary="Send a password reset link to a resource",
        description="The response is the same for an unknown address. The link works once, for an"
        f" hour, until the password changes. At most {MAX_PASSWORD_MAILS} e-mails per hour and"
        " resource, also with `disable_emails`. A test app sends e-mails only to its members.",
        request=PasswordResetSerializer,
        response=data_object(EmptyRecord),
        request_examples={"Ada": {"email": "ada@example.com"}},
    )
    def post(self, request: ApiRequest) -> Response:
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

    resource: Resource | None = None

    @describe_endpoint(
        summary="Show the page to choose a password",
        description="Changes nothing. Needs no key: the signature is the capability.",
        path=PATH,
        query=SIGNATURE,
        headers=PAGE_HEADERS,
        others={200: page_response("The form."), **FAILURES},
    )
    def get(self, request: ApiRequest, resource_id: str) -> HttpResponse:
        self._admit_link(request, resource_id)
        return self._form(200)

    @describe_endpoint(
        summary="Set the password",
        description="The form of the page, `application/x-www-form-urlencoded`: `password` (12 to"
        " 200 characters) and the same value as `again`. A new password ends the"
        " tokens of earlier log-ins.",
        path=PATH,
        query=SIGNATURE,
        headers=PAGE_HEADERS,
        others={
            200: page_response("The password is set."),
            **FAILURES,
            413: page_response("The body is larger than 256 kB."),
            422: page_response(
                "The form again, with an error: too short, too long, or two different inputs."
            ),
        },
    )
    def post(self, request: ApiRequest, resource_id: str) -> HttpResponse:
        resource = self._admit_link(request, resource_id)
        form = QueryDict(read_body(request._request))
        try:
            password = read_values_as(PasswordSerializer, form.dict())["password"]
        except Invalid:
            return self._form(422, UNFIT)
        if form.get("again") != password:
            return self._form(422, DIFFERENT)
        if not replace_password(resource, password, now=self.now):
            raise BadPasswordLink("This link has been used.")
        return self._page(200, SET, CLOSE)

    def _admit_link(self, request: ApiRequest, resource_id: str) -> Resource:
        """Return the resource of a valid link. A forged link does not reveal whether the resource
        exists.
        """
        rows = Resource.objects.filter(deleted_at=None, app__archived_at=None)
        rows = rows.select_related("app").exclude(email=None)
        is_id = CANONICAL_ID.fullmatch(resource_id)
        resource = rows.filter(id=resource_id).first() if is_id else None
        self.resource = check_password_link(
            resource, request.GET.get("signature", ""), now=self.now
        )
        return self.resource

    def refusal_page(self, exc: Exception, status: int, code: str) -> HttpResponse:
        is_link = isinstance(exc, BadPasswordLink)
        return self._page(status, *(BAD_LINK if is_link else REFUSED.get(code, UNREADABLE)))

    def _form(self, status: int, sentence: str | Promise = "") -> HttpResponse:
        email = (self.resource and self.resource.email) or ""
        return self._page(status, CHOOSE, sentence, email=to_one_line(email, 254))

    def _page(
        self, status: int, heading: str | Promise, sentence: str | Promise = "", email: str = ""
    ) -> HttpResponse:
        """Render the page. `email`: whose password the form sets; empty: no form."""
        return self.render_page(
            "access/password.html",
            lambda: {
                "heading": heading,
                "sentence": sentence,
                "email": email,
                "labels": {
                    "password": _("New password"),
                    "again": _("Repeat the password"),
                    "hint": HINT,
                    "button": _("Set the password"),
                },
            },
            status=status,
            app=self.resource.app if self.resource and status < 500 else None,
        )
