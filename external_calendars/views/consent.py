"""The way back from a provider's consent page."""

from typing import Any

from django.http import HttpResponse
from django.utils.encoding import iri_to_uri
from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request

from bookings.pages.base import PAGE_HEADERS, PageView, page_response
from common.errors import Refusal
from common.openapi.components import TEXT
from common.openapi.generator import parameters
from external_calendars.consent import finish_consent
from external_calendars.grants import ConsentEnded, find_consent_request, result_url

MAX_PARAMETER = 4000
ENDED = (
    _("This request has ended"),
    _("Go back to the page from which you came, and connect the calendar again."),
)


class ConsentCallbackView(PageView):
    """Gets the person's code, connects the calendar, and sends the person back.

    A request that somebody began in the back office goes on there, where the person is known.
    """

    operation_ids = {"GET": "finishCalendarConsent"}
    tag = "calendars"
    refusals = {ConsentEnded: ENDED}
    other_refusal = ENDED

    @extend_schema(
        summary="Come back from a provider's consent page",
        description="The address to register at Google and Microsoft. Redirects to the"
        " `redirect_url` of the request with `calendar_id`, or with `error`.",
        responses={
            302: OpenApiResponse(description="Back to where the person came from."),
            404: page_response("There is no such request, it is too old, or it was used."),
        },
        parameters=parameters(
            query={
                "state": TEXT | {"description": "Of the request.", "maxLength": MAX_PARAMETER},
                "code": TEXT | {"description": "Of the consent.", "maxLength": MAX_PARAMETER},
                "error": TEXT | {"description": "If there is none.", "maxLength": MAX_PARAMETER},
            },
            headers=PAGE_HEADERS,
        ),
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponse:
        given = {name: request.GET.get(name, "") for name in ("state", "code", "error")}
        try:
            consent = find_consent_request(given["state"][:MAX_PARAMETER], now=self.now)
        except ConsentEnded:
            return self.show_step(404, *ENDED)
        if consent.account_id is not None:
            return redirect(result_url(consent.redirect_url, **given))
        try:
            calendar = finish_consent(consent, given["code"], given["error"], now=self.now)
        except ConsentEnded:
            return self.show_step(404, *ENDED)
        except Refusal as refusal:
            code = refusal.fields.get("problem") or refusal.code
            return redirect(result_url(consent.redirect_url, error=str(code)))
        return redirect(result_url(consent.redirect_url, calendar_id=str(calendar.id)))


def redirect(url: str) -> HttpResponse:
    return HttpResponse(status=302, headers={"Location": iri_to_uri(url)})
