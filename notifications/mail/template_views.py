"""Endpoints of the words of mails: /templates, /templates/:slug, /templates/:slug/preview."""

from typing import Any

from rest_framework.response import Response

from apps_config.base_views import TenantView
from bookings.models import Booking
from common.api.validated_input import read_body_as
from common.api.views import ApiRequest
from common.errors import Invalid, NotFound
from common.openapi.components import text_response
from common.openapi.generator import data_list, data_object, describe_endpoint
from notifications.mail import PLACEHOLDERS, SLUGS
from notifications.mail.serializers import PreviewSerializer, TemplateSerializer
from notifications.mail.template_editing import change_override, preview_mail, template_record
from notifications.models import EmailTemplate
from notifications.records import WORDS_EXAMPLE, EmailTemplateRecord, RenderedEmailRecord

PATH = {"template_slug": text_response("The kind of e-mail and its recipient.", enum=list(SLUGS))}
LANGUAGE_WORDS = (
    "`{{ name }}` is a placeholder; everything else is text. In `html` every value is escaped."
    " Unknown placeholders are refused. `details`, `message` and `actions` are blocks and"
    " can't be used in subjects. An empty block is omitted.\n\n| name | value |\n|---|---|\n"
    + "\n".join(f"| {name} | {words} |" for name, words in PLACEHOLDERS.items())
)


class TemplateScopedView(TenantView):
    tag = "templates"

    def check_slug(self, slug: str) -> None:
        if slug not in SLUGS:
            raise NotFound("Template")


class TemplatesView(TemplateScopedView):
    @describe_endpoint(
        summary="List e-mail templates",
        description="One entry per kind of e-mail and recipient, with the app's template or the"
        " default.",
        response=data_list(EmailTemplateRecord),
    )
    def get(self, request: ApiRequest) -> Response:
        own = {
            email_template.slug: email_template
            for email_template in EmailTemplate.objects.filter(app=self.app)
        }
        records = [template_record(self.app, slug, own.get(slug)) for slug in SLUGS]
        return Response({"data": records})


class TemplateView(TemplateScopedView):
    @describe_endpoint(
        summary="Get an e-mail template", response=data_object(EmailTemplateRecord), path=PATH
    )
    def get(self, request: ApiRequest, template_slug: str) -> Response:
        self.check_slug(template_slug)
        own = EmailTemplate.objects.filter(app=self.app, slug=template_slug).first()
        return Response({"data": template_record(self.app, template_slug, own)})

    @describe_endpoint(
        summary="Change an e-mail template",
        description="Absent parts do not change. null for all three parts restores the default"
        " template; null for some parts is refused.\n\n" + LANGUAGE_WORDS,
        request=TemplateSerializer,
        response=data_object(EmailTemplateRecord),
        path=PATH,
        request_examples={
            "own words": WORDS_EXAMPLE,
            "another subject": {"subject": "See you at {{ time }}"},
            "the default template": {"subject": None, "text": None, "html": None},
        },
    )
    def put(self, request: ApiRequest, template_slug: str) -> Response:
        self.check_slug(template_slug)
        own = change_override(self.app, template_slug, read_body_as(TemplateSerializer, request))
        return Response({"data": template_record(self.app, template_slug, own)})


class PreviewView(TemplateScopedView):
    query_like = True

    @describe_endpoint(
        summary="Preview an e-mail template",
        description="Renders the template with the parts in the body, for a booking of the app"
        " or, without `booking_id`, for an example booking. Stores and sends nothing. The"
        " links do not work.",
        request=PreviewSerializer,
        response=data_object(RenderedEmailRecord),
        path=PATH,
        request_examples={"an example booking": {}, "other words": WORDS_EXAMPLE},
    )
    def post(self, request: ApiRequest, template_slug: str) -> Response:
        self.check_slug(template_slug)
        given = read_body_as(PreviewSerializer, request)
        booking = self._named_booking(given.pop("booking_id", None))
        words = preview_mail(self.app, template_slug, given, booking, now=self.now)
        return Response({"data": words._asdict()})

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
