"""The page behind a reminder's List-Unsubscribe link; its button and mail programs post to it."""

from django.http import HttpResponse
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from bookings.models import Customer
from bookings.pages.base import PAGE_HEADERS, PageView, page_response
from bookings.pages.formatting import languages_of, to_one_line
from common.api.fields import CANONICAL_ID
from common.openapi.components import text_response
from common.openapi.generator import parameters
from notifications.links.unsubscribe import BadUnsubscribeLink, check_unsubscribe_link
from notifications.mail.suppressions import suppress
from notifications.models import Suppression

QUESTION = _("Stop reminders?")
STOPS = _("{email} will get no more reminders. Confirmations and changes are still sent.")
BUTTON = _("Stop reminders")
DONE = (
    _("You will get no more reminders"),
    _("Confirmations and changes of your bookings are still sent. You can close this page."),
)
BAD_LINK = (
    _("This link does not work"),
    _("It is incomplete, or it has expired. Please open it from the e-mail again."),
)
TROUBLE = (_("Something went wrong on our side"), _("Please try again later."))

PATH = {"customer_id": text_response("Id of the customer.")}
SIGNATURE = {
    "signature": text_response(
        "From the e-mail.",
        required=True,
        examples=["1795597200.W9hY0T0mC6nnAPGxQvDqWr6d2yPHVlNQn4gJ3EIh5xQ"],
    )
}
FAILURES = {
    400: page_response("The request can't be read."),
    403: page_response("The signature is not right, or the link has expired."),
    405: page_response("The path does not support the method."),
    500: page_response("A bug."),
    503: page_response("The database is busy, restarting or down: try again."),
}


class UnsubscribeView(PageView):
    operation_ids = {"GET": "showUnsubscribePage", "POST": "submitUnsubscribePage"}
    tag = "customers"
    refusals = {BadUnsubscribeLink: BAD_LINK}
    other_refusal = TROUBLE

    @extend_schema(
        summary="The page on which a customer stops reminders",
        description="Changes nothing. Needs no key: the signature is the capability.",
        responses={200: page_response("The button."), **FAILURES},
        parameters=parameters(query=SIGNATURE, path=PATH, headers=PAGE_HEADERS),
    )
    def get(self, request: Request, customer_id: str) -> HttpResponse:
        customer = self._admit_link(request, customer_id)
        sentence = format_lazy(STOPS, email=to_one_line(customer.email, 254))
        return self.show_step(200, QUESTION, sentence, button=BUTTON)

    @extend_schema(
        summary="Stop an app's reminders to a customer",
        description="What the button of the page does, and the one click of a mail program"
        " (RFC 8058). The body is ignored. Staff can undo it in the back office.",
        responses={
            200: page_response("Done; also if it was done before."),
            **FAILURES,
            413: page_response("The body is larger than 256 kB."),
        },
        parameters=parameters(query=SIGNATURE, path=PATH, headers=PAGE_HEADERS),
    )
    def post(self, request: Request, customer_id: str) -> HttpResponse:
        customer = self._admit_link(request, customer_id)
        app = customer.booking.app
        suppress(app, customer.email, Suppression.UNSUBSCRIBED, now=self.now)
        return self.show_step(200, *DONE)

    def _admit_link(self, request: Request, customer_id: str) -> Customer:
        """Return the customer of a valid link. Raises BadUnsubscribeLink."""
        rows = Customer.objects.select_related("booking__app", "booking__project")
        found = rows.filter(pk=customer_id).first() if CANONICAL_ID.fullmatch(customer_id) else None
        self.customer = check_unsubscribe_link(
            found, request.GET.get("signature", ""), now=self.now
        )
        booking = self.customer.booking
        self.app, self.languages = booking.app, languages_of(booking)
        return self.customer
