"""Endpoints of the words of mails: /templates, /templates/:slug, /templates/:slug/preview."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps_config.base_views import TenantViewSet
from apps_config.models import App
from bookings.models import Booking
from common.api.serializers import read_body_as
from common.errors import Invalid, NotFound
from common.openapi.components import text_response
from common.openapi.generator import named_examples, parameters
from notifications.mail import PLACEHOLDERS, SLUGS
from notifications.mail.serializers import (
    WORDS_EXAMPLE,
    EmailTemplateSerializer,
    PreviewSerializer,
    RenderedEmailSerializer,
)
from notifications.mail.template_editing import change_override, preview_mail, template_record
from notifications.models import EmailTemplate

PATH = {"template_slug": text_response("The kind of e-mail and its recipient.", enum=list(SLUGS))}
LANGUAGE_WORDS = (
    "`{{ name }}` is a placeholder; everything else is text. In `html` every value is escaped."
    " Unknown placeholders are refused. `details`, `message` and `actions` are blocks and"
    " can't be used in subjects. An empty block is omitted.\n\n| name | value |\n|---|---|\n"
    + "\n".join(f"| {name} | {words} |" for name, words in PLACEHOLDERS.items())
)


class TemplateViewSet(TenantViewSet):
    serializer_class = EmailTemplateSerializer
    optional_bodies = frozenset({"preview"})
    lookup_url_kwarg = "template_slug"
    lookup_value_converter = "str"
    tag = "templates"
    query_actions = frozenset({"preview"})
    pagination_class = None

    def lock_object(self) -> None:
        """Lock the app: its template may have no row yet."""
        App.objects.select_for_update(no_key=True).filter(id=self.app.id).values("pk").first()

    @extend_schema(
        summary="List e-mail templates",
        description="One entry per kind of e-mail and recipient, with the app's template or the"
        " default.",
    )
    def list(self, request: Request) -> Response:
        own = {
            email_template.slug: email_template
            for email_template in EmailTemplate.objects.filter(app=self.app)
        }
        records = [template_record(self.app, slug, own.get(slug)) for slug in SLUGS]
        return Response({"data": records})

    @extend_schema(
        summary="Get an e-mail template",
        parameters=parameters(path=PATH),
    )
    def retrieve(self, request: Request, template_slug: str) -> Response:
        self.check_slug(template_slug)
        own = EmailTemplate.objects.filter(app=self.app, slug=template_slug).first()
        return Response({"data": template_record(self.app, template_slug, own)})

    @extend_schema(
        summary="Change an e-mail template",
        description="Absent parts do not change. null for all three parts restores the default"
        " template; null for some parts is refused.\n\n" + LANGUAGE_WORDS,
        request=EmailTemplateSerializer,
        parameters=parameters(path=PATH),
        examples=named_examples(
            request={
                "own words": WORDS_EXAMPLE,
                "another subject": {"subject": "See you at {{ time }}"},
                "the default template": {"subject": None, "text": None, "html": None},
            }
        ),
    )
    def update(self, request: Request, template_slug: str) -> Response:
        self.check_slug(template_slug)
        own = change_override(
            self.app, template_slug, read_body_as(EmailTemplateSerializer, request)
        )
        return Response({"data": template_record(self.app, template_slug, own)})

    @extend_schema(
        summary="Preview an e-mail template",
        description="Renders the template with the parts in the body, for a booking of the app"
        " or, without `booking_id`, for an example booking. Stores and sends nothing. The"
        " links do not work.",
        request=PreviewSerializer,
        responses={200: RenderedEmailSerializer},
        parameters=parameters(path=PATH),
        examples=named_examples(request={"an example booking": {}, "other words": WORDS_EXAMPLE}),
    )
    @action(detail=True, methods=["post"])
    def preview(self, request: Request, template_slug: str) -> Response:
        self.check_slug(template_slug)
        given = read_body_as(PreviewSerializer, request)
        booking = self._named_booking(given.pop("booking_id", None))
        words = preview_mail(self.app, template_slug, given, booking, now=self.now)
        return Response({"data": words._asdict()})

    def check_slug(self, slug: str) -> None:
        if slug not in SLUGS:
            raise NotFound("Template")

    def _named_booking(self, booking_id: Any) -> Booking | None:
        if booking_id is None:
            return None
        rows = Booking.objects.for_app(self.app).select_related(
            "app", "event", "resource", "project"
        )
        booking = rows.filter(id=booking_id).first()
        if booking is None:
            raise Invalid.at("booking_id", "There is no such booking.")
        return booking
