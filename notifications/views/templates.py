"""Endpoints of the words of mails: /templates, /templates/:slug, /templates/:slug/preview."""

from typing import Any

from rest_framework.response import Response

from apps_config.endpoints import TenantView
from bookings.models import Booking
from notifications.mail import PLACEHOLDERS, SLUGS
from notifications.models import EmailTemplate
from notifications.own_words import change_words, preview, template_record
from notifications.serializers.templates import PreviewSerializer, TemplateSerializer
from scheduling.api.bodies import read_body_as
from scheduling.api.components import FLAG, STAMP, TEXT, component, nullable, text_of
from scheduling.api.errors import Invalid, NotFound
from scheduling.api.schema import described, many, one

_WORDS_EXAMPLE = {
    "subject": "See you on {{ date }}",
    "text": "Hello {{ name }},\n\n{{ details }}\n\n{{ actions }}\n",
    "html": "<p>Hello {{ name }},</p>\n{{ details }}\n{{ actions }}\n",
}
_TEMPLATE_EXAMPLE = {
    "slug": "confirmed_customer",
    **_WORDS_EXAMPLE,
    "custom": True,
    "updated_at": "2026-11-20T09:30:00+0000",
}
_PARTS = {
    "subject": TEXT,
    "text": TEXT,
    "html": TEXT | {"description": "A whole HTML document."},
}
TEMPLATE = component(
    "EmailTemplate",
    {
        "type": "object",
        "description": "What one kind of mail says.",
        "required": list(_TEMPLATE_EXAMPLE),
        "properties": {
            "slug": {"type": "string", "enum": list(SLUGS)},
            **_PARTS,
            "custom": FLAG | {"description": "Whether the app has words of its own."},
            "updated_at": nullable(STAMP) | {"description": "null for the service's words."},
        },
    },
    _TEMPLATE_EXAMPLE,
)
WORDS = component(
    "RenderedEmail",
    {"type": "object", "required": list(_WORDS_EXAMPLE), "properties": _PARTS},
    {
        "subject": "See you on Monday, 23 November 2026",
        "text": "Hello Marty McFly,\n\nWhat:  Check-up\n",
        "html": "<p>Hello Marty McFly,</p>\n",
    },
)
PATH = {"template_slug": text_of("Which mail, to whom.", enum=list(SLUGS))}
LANGUAGE_WORDS = (
    "`{{ name }}` stands for a value; everything else is text, and in `html` every value is"
    " escaped. What is unknown is refused. `details`, `message` and `actions` are prepared blocks,"
    " not for subjects, that are nothing where there is nothing to say.\n\n"
    "| name | value |\n|---|---|\n"
    + "\n".join(f"| {name} | {words} |" for name, words in PLACEHOLDERS.items())
)


class TemplateScopedView(TenantView):
    tag = "templates"

    def check_slug(self, slug: str) -> None:
        if slug not in SLUGS:
            raise NotFound("Template")


class TemplatesView(TemplateScopedView):
    @described(
        summary="List the words of all mails",
        description="One entry for each kind of mail and recipient, with the app's own words or"
        " the service's.",
        response=many(TEMPLATE),
    )
    def get(self, request: Any) -> Response:
        own = {one.slug: one for one in EmailTemplate.objects.filter(app=self.app)}
        records = [template_record(self.app, slug, own.get(slug)) for slug in SLUGS]
        return Response({"data": records})


class TemplateView(TemplateScopedView):
    @described(summary="The words of a mail", response=one(TEMPLATE), path=PATH)
    def get(self, request: Any, template_slug: str) -> Response:
        self.check_slug(template_slug)
        own = EmailTemplate.objects.filter(app=self.app, slug=template_slug).first()
        return Response({"data": template_record(self.app, template_slug, own)})

    @described(
        summary="Write the words of a mail",
        description="A part that is absent stays as it is. A PUT with null for all three parts goes"
        " back to the service's words; null for some of them is refused.\n\n" + LANGUAGE_WORDS,
        request=TemplateSerializer,
        response=one(TEMPLATE),
        path=PATH,
        request_examples={
            "own words": _WORDS_EXAMPLE,
            "another subject": {"subject": "See you at {{ time }}"},
            "the service's words": {"subject": None, "text": None, "html": None},
        },
    )
    def put(self, request: Any, template_slug: str) -> Response:
        self.check_slug(template_slug)
        own = change_words(self.app, template_slug, read_body_as(TemplateSerializer, request))
        return Response({"data": template_record(self.app, template_slug, own)})


class PreviewView(TemplateScopedView):
    query_like = True

    @described(
        summary="Show what a mail would say",
        description="With the parts that the body brings instead of the app's own, for one of its"
        " bookings or, without `booking_id`, for a made-up one. Keeps and sends nothing; the links"
        " in it lead nowhere.",
        request=PreviewSerializer,
        response=one(WORDS),
        path=PATH,
        request_examples={"a made-up booking": {}, "other words": _WORDS_EXAMPLE},
    )
    def post(self, request: Any, template_slug: str) -> Response:
        self.check_slug(template_slug)
        given = read_body_as(PreviewSerializer, request)
        booking = self._find_booking(given.pop("booking_id", None))
        words = preview(self.app, template_slug, given, booking, now=self.now)
        return Response({"data": words._asdict()})

    def _find_booking(self, booking_id: Any) -> Booking | None:
        if booking_id is None:
            return None
        rows = Booking.objects.for_app(self.app).select_related(
            "app", "event", "resource", "project"
        )
        booking = rows.filter(id=booking_id).first()
        if booking is None:
            raise Invalid.at("booking_id", "There is no such booking.")
        return booking
