"""Show the page of an e-mail link: it shows a booking and one button that applies the action.

GET changes nothing, since mail scanners follow links. Errors are pages too.
"""

import re
import uuid
from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from django.http import HttpResponse, QueryDict
from django.utils.encoding import iri_to_uri
from django.utils.functional import Promise, lazy
from django.utils.html import format_html
from django.utils.text import format_lazy
from django.utils.translation import gettext, pgettext
from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request

from apps_config.models import App
from availability.models import Event, Hold
from availability.reserve.events import NotAvailable
from availability.reserve.holds import held_span, with_companions
from bookings.conferences import conference_url
from bookings.graphs import GRAPHS
from bookings.models import Booking, further_events
from bookings.pages.action_links import BadLink, own_bookings_path, project_page_path, read_expiry
from bookings.pages.base import PAGE_HEADERS, PageView, StepLink, form_field, page_response
from bookings.pages.formatting import (
    days_words,
    first_known_zone,
    languages_of,
    notice_words,
    span_words,
    step_lines,
    to_one_line,
)
from bookings.pages.refusal_texts import REFUSAL_TEXTS, RefusalText
from bookings.pages.translated_texts import customer_text
from bookings.services import ActionNotAllowed, Actor, PolicyViolated, apply_action
from common.api.fields import CANONICAL_ID, NOT_IN_URL, TextField, is_web_address
from common.api.json import read_body
from common.errors import NotFound
from common.openapi.components import ID, text_response
from common.openapi.generator import parameters

MAX_REASON = 2000
REASON_FIELD = TextField(MAX_REASON, allow_blank=True)
KEEPS = "keep"  # the query parameter of a link that changes nothing
QUERY_OR_FRAGMENT = re.compile(r"[?#]")


class LinkAction(NamedTuple):
    """An action that a link can apply: its actor and its texts.

    keep: the link that leaves the booking as it is, with the heading and sentence after it; ends a
    booking if set, so that the page also asks for a reason.
    """

    actor: str
    question: str | Promise
    button: str | Promise
    done: str | Promise
    keep: str | Promise = ""
    kept: str | Promise = ""
    stays: str | Promise = ""


LINK_ACTIONS: Mapping[str, LinkAction] = {
    "confirm": LinkAction(
        "owner",
        _("Confirm this booking?"),
        _("Confirm the booking"),
        _("The booking is confirmed"),
    ),
    "decline": LinkAction(
        "owner",
        _("Decline this booking?"),
        _("Decline the booking"),
        _("The booking is declined"),
        _("Keep the request"),
        _("The request is kept"),
        _("It still waits for your answer."),
    ),
    "cancel_by_customer": LinkAction(
        "customer",
        _("Cancel this booking?"),
        _("Cancel the booking"),
        _("The booking is cancelled"),
        _("Keep the booking"),
        _("The booking is kept"),
        _("Nothing was changed."),
    ),
}
STATE_SENTENCES: Mapping[str, str | Promise] = {
    "initialized": _("The booking is a draft."),
    "tentative": _("The booking is requested, but not confirmed yet."),
    "confirmed": _("The booking is confirmed."),
    "paid": _("The booking is paid."),
    "unpaid": _("The booking was not paid in time."),
    "declined": _("The booking was declined."),
    "cancelled": _("The booking was cancelled."),
    "cancelled_by_customer": _("The booking was cancelled by the customer."),
    "cancelled_by_owner": _("The booking was cancelled by the owner."),
    "completed": _("The booking is over."),
}


# Policies with texts of their own.
POLICIES: Mapping[str, RefusalText] = {
    "max_reschedules": RefusalText(
        _("The booking can't be moved again"),
        _("It was already moved as often as allowed. Please contact us."),
    ),
    "max_per_customer_per_day": RefusalText(
        _("No more bookings on that day"),
        _("You have as many bookings on that day as allowed. Please choose another day."),
    ),
}
# Type of a reason why a time is not free -> the sentence for customers and owners.
REASON_SENTENCES: Mapping[str, str | Promise] = {
    "constraint": _("It is outside the opening hours."),
    "event": _("It overlaps another appointment."),
    "hold": _("Someone else is booking it at the moment."),
    "capacity": _("All places are taken."),
    "buffer": _("It is too close to another appointment."),
    "notice": _("It starts too soon."),
    "past": _("It is in the past."),
    "limit": _("This time is not offered."),
    "calendar": _("It can't be checked at the moment whether it is free."),
    "requirement": _("Not everyone and everything needed is available."),
}
EXPIRED = RefusalText(
    _("This link has expired"),
    _("The link was valid until the end of the booking."),
)

lazy_notice_words = lazy(notice_words, str)  # in the language of the page

DONE_ALREADY = _("This is already done")
CLOSE = _("You can close this page.")
REASON = _("Reason (optional)")
BOOK_AGAIN = _("Book again")
OWN_BOOKINGS = _("Your bookings")

QUERY = {
    "signature": text_response(
        "From the e-mail: signs the booking, the action and the expiry, which is the event's end.",
        required=True,
        examples=["1795597200.W9hY0T0mC6nnAPGxQvDqWr6d2yPHVlNQn4gJ3EIh5xQ"],
    ),
    "redirect": text_response(
        "The URL to redirect to after the action: one of the app's `redirect_urls`, with any"
        " query; others are ignored.",
        examples=["https://www.example.com/thanks"],
    ),
}
PATH = {
    "booking_id": ID | {"description": "Id of the booking."},
    "action": text_response("What the link does.", enum=list(LINK_ACTIONS)),
}


FAILURES = {
    400: page_response("The request is malformed."),
    403: page_response("The signature is invalid, or the link has expired or was ended."),
    404: page_response("The action or the booking does not exist."),
    405: page_response("The path does not support the method."),
    409: page_response(
        "The action is already done or not allowed, a policy forbids it, or the time is taken."
    ),
    500: page_response("A bug."),
    503: page_response("The database is busy, restarting or down: try again."),
}


class LinkExpired(BadLink):
    """The link is valid, but too old."""


class LinkPageView(PageView):
    """A page about one booking for whoever has the link."""

    refusals = {**REFUSAL_TEXTS, LinkExpired: EXPIRED}

    booking: Booking | None = None
    link_action: str
    # The path of the customer's own bookings, whose link is shown below a bad link too.
    own_bookings = ""

    def find_booking(self, request: Request, booking_id: str) -> Booking:
        """Return the booking of a valid link. Raises NotFound, BadLink.

        The page of a bad link has the brand of the booking's app, and nothing of the booking: its
        id is known only from a link, or from the API.
        """
        if not CANONICAL_ID.fullmatch(booking_id):
            raise NotFound("Booking")
        rows = Booking.objects.select_related("app", "event__calendar", "resource", "project")
        booking = rows.prefetch_related("customers", further_events()).filter(id=booking_id).first()
        is_there = booking and not booking.deleted_at and not booking.app.archived_at
        if booking and is_there:
            self.app, self.languages = booking.app, languages_of(booking)
            if self.reader == "customer" and project_page_path(booking):
                self.own_bookings = own_bookings_path(booking.app)
        expiry = read_expiry(
            uuid.UUID(booking_id),
            self.link_action,
            request.GET.get("signature", ""),
            version=booking.link_version if booking else 0,
        )
        if booking is None or not is_there:
            raise NotFound("Booking")
        self.booking = booking
        if self.reader == "customer":
            self.customer = next(iter(booking.customers.all()), None)
        if self.now >= expiry:
            raise LinkExpired("This link has expired.")
        return booking

    def page_facts(self) -> Sequence[tuple[str, str]]:
        return booking_facts(self.booking, self.reader) if self.booking else ()

    def page_links(self) -> Sequence[StepLink]:
        """Return, below a bad link, the customer's way on."""
        is_bad = self.booking is None and self.own_bookings
        return [StepLink(OWN_BOOKINGS, self.own_bookings)] if is_bad else []

    @property
    def reader(self) -> str:
        """Return `customer` or `owner`."""
        action = LINK_ACTIONS.get(self.link_action)
        return action.actor if action else "customer"

    def refusal_page(self, exc: Exception, status: int, code: str) -> HttpResponse:
        heading, sentence = self.refusal_text(exc, code)
        if isinstance(exc, ActionNotAllowed):
            sentence = STATE_SENTENCES[exc.fields["state"]]
            if self.booking and is_done(self.booking, self.link_action, exc.fields["state"]):
                heading = DONE_ALREADY
        if isinstance(exc, PolicyViolated):
            heading, sentence = POLICIES.get(exc.fields["policy"], REFUSAL_TEXTS[code])
            sentence = format_lazy(
                cast(str, sentence), limit=lazy_notice_words(exc.fields["limit"])
            )
        return self.show_step(status, heading, sentence, reasons=reason_sentences(exc))


class ExternalActionView(LinkPageView):
    operation_ids = {"GET": "showActionPage", "POST": "submitActionPage"}
    tag = "bookings"

    @extend_schema(
        summary="Show the page of an e-mail link",
        description="Shows the booking and one button that posts to the same address. Changes"
        " nothing. Needs no key: the signature is the capability.",
        responses={200: page_response("The booking, and the button."), **FAILURES},
        parameters=parameters(query=QUERY, path=PATH, headers=PAGE_HEADERS),
    )
    def get(self, request: Request, booking_id: str, action: str) -> HttpResponse:
        offer, booking = self._admit_link(request, booking_id, action)
        if GRAPHS[booking.graph].next_state(booking.state, action) is None:
            raise ActionNotAllowed(booking, action)
        if not offer.keep:
            return self.show_step(200, offer.question, button=offer.button)
        if KEEPS in request.GET:
            return self.show_step(200, offer.kept, offer.stays)
        reason = form_field("reason", REASON, type="textarea", rows=3, maxlength=MAX_REASON)
        return self.show_step(
            200,
            offer.question,
            fields=[reason],
            button=offer.button,
            is_danger=True,
            keep=StepLink(offer.keep, f"?{request.GET.urlencode()}&{KEEPS}=1"),
        )

    @extend_schema(
        summary="Perform the action of an e-mail link",
        description="The request of the page's button; `reason` in the form is stored with the"
        " action and mailed to the other side. The policies of the project apply.",
        responses={
            200: page_response("Done."),
            303: OpenApiResponse(description="Done; redirects to `redirect`."),
            **FAILURES,
            413: page_response("The body is larger than 256 kB."),
            422: page_response("The reason is too long or has control characters."),
        },
        parameters=parameters(query=QUERY, path=PATH, headers=PAGE_HEADERS),
    )
    def post(self, request: Request, booking_id: str, action: str) -> HttpResponse:
        offer, booking = self._admit_link(request, booking_id, action)
        self.booking = apply_action(
            app=booking.app,
            booking_id=booking.id,
            action=action,
            actor=Actor(name=offer.actor, source="link"),
            now=self.now,
            message=read_reason(request) if offer.keep else "",
        )
        if self.redirect:
            return HttpResponse(status=303, headers={"Location": iri_to_uri(self.redirect)})
        return self.show_step(200, offer.done, CLOSE)

    def _admit_link(
        self, request: Request, booking_id: str, action: str
    ) -> tuple[LinkAction, Booking]:
        """Return the action and booking of a valid link. Raises NotFound, BadLink."""
        if action not in LINK_ACTIONS:
            raise NotFound("Action")
        self.link_action = action
        booking = self.find_booking(request, booking_id)
        self.redirect = allowed_redirect(booking.app, request.GET.get("redirect", ""))
        return LINK_ACTIONS[action], booking

    def page_links(self) -> Sequence[StepLink]:
        """Return a customer's links if the project has a booking page: to it after the booking's
        end, and to all bookings.
        """
        booking = self.booking
        if booking is None or not self.own_bookings:
            return super().page_links()
        own_bookings = StepLink(OWN_BOOKINGS, self.own_bookings)
        if not GRAPHS[booking.graph].is_completed(booking.state):
            return [own_bookings]
        return [StepLink(BOOK_AGAIN, project_page_path(booking), is_button=True), own_bookings]


def read_reason(request: Request) -> str:
    """Return the form's reason, which the other side reads. Raises ValidationError."""
    form = QueryDict(read_body(request))
    text = form.get("reason", "").replace("\r\n", "\n").strip()
    return REASON_FIELD.run_validation(text)


def is_done(booking: Booking, action: str, state: str) -> bool:
    """Return whether `state` is a result of the action."""
    steps = GRAPHS[booking.graph].steps.items()
    return any(next_state == action and to_state == state for (_, next_state), to_state in steps)


def reason_sentences(exc: Exception) -> Sequence[str | Promise]:
    """Return one sentence per type of reason of NotAvailable."""
    reasons = exc.reasons if isinstance(exc, NotAvailable) else ()
    return [REASON_SENTENCES[type_] for type_ in dict.fromkeys(each.type for each in reasons)]


def booking_facts(booking: Booking, reader: str) -> list[tuple[str, str]]:
    """Return (label, value) pairs of the booking in the active language, without empty values.

    Times are in the customer's zone for the customer, in the resource's for the owner.
    """
    event, customers = booking.event, list(booking.customers.all())
    is_customers = reader == "customer"
    what, where = (
        customer_text(booking, name) if is_customers else getattr(event, name)
        for name in ("what", "where")
    )
    zone_name = (
        customer_zone(booking) if is_customers else first_known_zone(booking.resource.timezone)
    )
    contact = to_one_line(str(booking.app.settings.get("contact_email") or ""))
    names = "\n".join(to_one_line(customer.name) for customer in customers)
    rows = [
        (gettext("What"), to_one_line(booking.counted(what) if what else what)),
        (gettext("When"), event_time_words(event, zone_name)),
        (pgettext("how many come", "People"), str(booking.party_size or "")),
        (pgettext("of a visit", "Steps"), "\n".join(step_lines(booking.steps(), zone_name))),
        (gettext("Where"), to_one_line(where)),
        (gettext("Video call"), web_link(conference_url(booking))),
        (
            gettext("With") if is_customers else gettext("Resource"),
            to_one_line(", ".join(resource.name for resource in booking.all_resources())),
        ),
        (gettext("Customer"), "" if is_customers else names),
        (gettext("Contact"), contact if is_customers else ""),
    ]
    return [(label, value) for label, value in rows if value]


def held_time_facts(hold: Hold, *, what: str, where: str, zone_name: str) -> list[tuple[str, str]]:
    """Return (label, value) pairs of a time that is held, as `booking_facts` for a customer."""
    start, end = held_span(hold)
    names = dict.fromkeys(row.resource.name for row in with_companions(hold))
    rows = [
        (gettext("What"), to_one_line(what)),
        (gettext("When"), span_words(start, end, zone_name)),
        (gettext("Where"), to_one_line(where)),
        (gettext("With"), to_one_line(", ".join(names))),
    ]
    return [(label, value) for label, value in rows if value]


def web_link(address: str) -> str:
    """Return the address as HTML that links to it; "" without one."""
    return format_html('<a href="{}">{}</a>', address, address) if address else ""


def customer_zone(booking: Booking) -> str:
    """Return the first customer's zone; the resource's for all-day events."""
    customers = [] if booking.event.all_day else list(booking.customers.all())
    own = customers[0].timezone if customers else ""
    return first_known_zone(own, booking.resource.timezone)


def event_time_words(event: Event, zone_name: str) -> str:
    if event.all_day:
        return days_words(*event.dates, zone_name)
    return span_words(event.start, event.end, zone_name)


def allowed_redirect(app: App, address: str) -> str:
    """Return the address if one of the app's `redirect_urls` equals it up to the query; else ""."""
    allowed = app.settings.get("redirect_urls") or []
    if not is_web_address(address) or NOT_IN_URL.search(address):
        return ""
    places = {
        without_query(allowed_address)
        for allowed_address in allowed
        if isinstance(allowed_address, str)
    }
    return address if without_query(address) in places else ""


def without_query(address: str) -> str:
    return QUERY_OR_FRAGMENT.split(address, maxsplit=1)[0]
