"""A resource's forgotten password: the mail with a link, and the page behind it.

Here, because what leaves the house is planned in this room.
"""

from typing import Any

from django.http import HttpResponse, QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from rest_framework.response import Response

from apps_config.endpoints import TenantView
from availability.models import Resource
from availability.serializers.resources import PasswordResetSerializer, PasswordSerializer
from availability.services import replace_password
from bookings.pages import PAGE_HEADERS, PageView, page_response
from bookings.wording import one_line
from notifications.password_links import BadPasswordLink, check_link
from notifications.services import MOST_PASSWORD_MAILS, mail_password_link
from scheduling.api.bodies import read_body_as, read_values_as
from scheduling.api.components import text_of
from scheduling.api.errors import Invalid
from scheduling.api.fields import CANONICAL_ID
from scheduling.api.parsers import read_body
from scheduling.api.schema import described, one

CHOOSE = _("Choose a new password")
SET = _("Your password is set")
CLOSE = _("You can close this page.")
BAD_LINK = (
    _("This link does not work any more"),
    _("It was used already, an hour has passed, or it was changed on the way. Ask for another."),
)
HINT = _("Use 8 to 200 characters.")
UNFIT = _("It was too short or too long.")
DIFFERENT = _("The two are not the same.")
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
    _("This could not be understood"),
    _("Please open the link from the mail again."),
)


class ResetPasswordView(TenantView):
    tag = "resources"

    @described(
        summary="Mail a resource a link to choose a password",
        description="The answer is the same where nobody has the address. The link works once,"
        " for an hour, and no more when the password has changed. At most"
        f" {MOST_PASSWORD_MAILS} such mails an hour and resource; `disable_emails` does not stop"
        " them; a test app mails only its members.",
        request=PasswordResetSerializer,
        response=one({"type": "object", "examples": [{}]}),
        request_examples={"Ada": {"email": "ada@example.com"}},
    )
    def post(self, request: Any) -> Response:
        email = read_body_as(PasswordResetSerializer, request)["email"]
        mail_password_link(app=self.app, email=email, now=self.now)
        return Response({"data": {}})


SIGNATURE = {
    "signature": text_of(
        "From the mail.",
        required=True,
        examples=["1795597200.W9hY0T0mC6nnAPGxQvDqWr6d2yPHVlNQn4gJ3EIh5xQ"],
    )
}
PATH = {"resource_id": text_of("Id of the resource.")}
FAILURES = {
    400: page_response("The request can't be read."),
    403: page_response("The link was not made for this resource, was used, or has expired."),
    405: page_response("The path does not know the method."),
    500: page_response("A bug."),
    503: page_response("The database is busy, restarting or away: try again."),
}


class PasswordPageView(PageView):
    tag = "resources"
    # Others are let pass: mail programs and trackers add their own.
    query_names = {"GET": tuple(SIGNATURE), "POST": tuple(SIGNATURE)}

    resource: Resource | None = None

    @described(
        summary="The page on which a password is chosen",
        description="Changes nothing. Needs no key: the signature is the capability.",
        path=PATH,
        query=SIGNATURE,
        headers=PAGE_HEADERS,
        others={200: page_response("The form."), **FAILURES},
    )
    def get(self, request: Any, resource_id: str) -> HttpResponse:
        self._admit_link(request, resource_id)
        return self._form(200)

    @described(
        summary="Set the password",
        description="What the form of the page sends, `application/x-www-form-urlencoded`:"
        " `password` (8 to 200 characters), and the same as `again`. The log-ins that were made"
        " with the old one end.",
        path=PATH,
        query=SIGNATURE,
        headers=PAGE_HEADERS,
        others={
            200: page_response("It is set."),
            **FAILURES,
            413: page_response("The body is larger than 256 kB."),
            422: page_response("The form once more: too short, too long, or not twice the same."),
        },
    )
    def post(self, request: Any, resource_id: str) -> HttpResponse:
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

    def _admit_link(self, request: Any, resource_id: str) -> Resource:
        """The resource of a link that holds. Who made one up does not learn whether it exists."""
        rows = Resource.objects.filter(deleted_at=None, app__archived_at=None)
        rows = rows.select_related("app").exclude(email=None)
        known = CANONICAL_ID.fullmatch(resource_id)
        resource = rows.filter(id=resource_id).first() if known else None
        check_link(resource, request.GET.get("signature", ""), now=self.now)
        self.resource = resource
        return resource

    def refusal_page(self, exc: Exception, status: int, code: str) -> HttpResponse:
        is_link = isinstance(exc, BadPasswordLink)
        return self._page(status, *(BAD_LINK if is_link else REFUSED.get(code, UNREADABLE)))

    def _form(self, status: int, sentence: str | Promise = "") -> HttpResponse:
        return self._page(status, CHOOSE, sentence, email=one_line(self.resource.email, 254))

    def _page(
        self, status: int, heading: str | Promise, sentence: str | Promise = "", email: str = ""
    ) -> HttpResponse:
        """`email`: whose password the form is for; empty: no form."""
        return self.render_page(
            "notifications/password.html",
            lambda: {
                "heading": heading,
                "sentence": sentence,
                "email": email,
                "labels": {
                    "password": _("New password"),
                    "again": _("Once more"),
                    "hint": HINT,
                    "button": _("Set the password"),
                },
            },
            status=status,
            app=self.resource.app if self.resource and status < 500 else None,
        )
