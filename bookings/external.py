"""The page behind a link in a mail: it shows a booking, and one button that carries the action out.

Looking changes nothing, since mail scanners follow links. Whatever happens is answered as a page.
"""

import re
import uuid
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.http import HttpResponse
from django.utils.encoding import iri_to_uri
from django.utils.functional import Promise
from django.utils.text import format_lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import OpenApiResponse

from availability.answers import reason_record
from availability.models import Event
from availability.placement import NotAvailable
from bookings.graphs import GRAPHS
from bookings.links import BadLink, read_expiry
from bookings.models import Booking
from bookings.pages import PAGE_HEADERS, PageView, page_response
from bookings.services import ActionNotAllowed, Actor, PolicyViolated, apply_action
from bookings.wording import days_words, known_zone, languages_of, one_line, span_words
from scheduling.api.components import ID, text_of
from scheduling.api.errors import NotFound
from scheduling.api.fields import CANONICAL_ID, NOT_IN_URL, is_web_address
from scheduling.api.schema import described

QUERY_OR_FRAGMENT = re.compile(r"[?#]")


class Offer(NamedTuple):
    """An action that can be done by a link: by whom, and the words for it."""

    actor: str
    question: str | Promise
    button: str | Promise
    done: str | Promise


OFFERS: Mapping[str, Offer] = {
    "confirm": Offer(
        "owner",
        _("Confirm this booking?"),
        _("Confirm the booking"),
        _("The booking is confirmed"),
    ),
    "decline": Offer(
        "owner",
        _("Decline this booking?"),
        _("Decline the booking"),
        _("The booking is declined"),
    ),
    "cancel_by_customer": Offer(
        "customer",
        _("Cancel this booking?"),
        _("Cancel the booking"),
        _("The booking is cancelled"),
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


class Refused(NamedTuple):
    """What a page says to an error of that code."""

    heading: str | Promise
    sentence: str | Promise


REFUSED: Mapping[str, Refused] = {
    "forbidden": Refused(
        _("This link does not work"),
        _("It is incomplete, or was changed on the way. Please open it from the mail again."),
    ),
    "not_found": Refused(
        _("Nothing was found here"),
        _("There is no such booking, or it was removed."),
    ),
    "action_not_allowed": Refused(_("This can't be done any more"), ""),
    "policy": Refused(
        _("It is too late for this"),
        _("It has to be done at least {limit} before the start. Please get in touch instead."),
    ),
    "slot_taken": Refused(
        _("The time is taken"),
        _("It was given to another booking in the meantime."),
    ),
    "not_available": Refused(_("The time is not available any more"), ""),
    "rate_limited": Refused(
        _("Too many requests"),
        _("Nothing was changed. Please try again in a minute."),
    ),
    "unavailable": Refused(
        _("The service is busy"),
        _("Nothing was changed. Please try again in a moment."),
    ),
    "internal": Refused(
        _("Something went wrong on our side"),
        _("Nothing was changed. Please try again later."),
    ),
}
# A policy that has words of its own.
POLICIES: Mapping[str, Refused] = {
    "max_reschedules": Refused(
        _("It can't be moved again"),
        _("It was moved as often as it may be. Please get in touch instead."),
    ),
}
UNREADABLE = Refused(
    _("This could not be understood"),
    _("Please open the link from the mail again."),
)
EXPIRED = Refused(
    _("This link has expired"),
    _("It worked until the end of the time that was booked."),
)

DONE_ALREADY = _("This is done already")
CLOSE = _("You can close this page.")

QUERY = {
    "signature": text_of(
        "From the mail: stands for the booking, the action and the event's end, until which it"
        " works.",
        required=True,
        examples=["1795597200.W9hY0T0mC6nnAPGxQvDqWr6d2yPHVlNQn4gJ3EIh5xQ"],
    ),
    "redirect": text_of(
        "Where to go when it is done: one of the app's `redirect_urls`, with any query; others are"
        " ignored.",
        examples=["https://www.example.com/thanks"],
    ),
}
PATH = {
    "booking_id": ID | {"description": "Id of the booking."},
    "action": text_of("What the link does.", enum=list(OFFERS)),
}


FAILURES = {
    400: page_response("The request can't be read."),
    403: page_response("The signature is not right, or the link has expired."),
    404: page_response("No such action, or the booking is gone."),
    405: page_response("The path does not know the method."),
    409: page_response(
        "It is done already or not allowed any more; a policy forbids it; the time is taken."
    ),
    500: page_response("A bug."),
    503: page_response("The database is busy, restarting or away: try again."),
}


class LinkPageView(PageView):
    """A page about one booking, for whoever has the link. Subclasses show it."""

    booking: Booking | None = None
    link_action: str

    def find_booking(self, request: Any, booking_id: str) -> Booking:
        """The booking of a link that holds. Raises NotFound, BadLink."""
        if not CANONICAL_ID.fullmatch(booking_id):
            raise NotFound("Booking")
        signature = request.GET.get("signature", "")
        expiry = read_expiry(uuid.UUID(booking_id), self.link_action, signature)
        rows = Booking.objects.filter(deleted_at=None, app__archived_at=None)
        rows = rows.select_related("app", "event__calendar", "resource", "project")
        self.booking = rows.filter(id=booking_id).first()
        if self.booking is None:
            raise NotFound("Booking")
        if self.now >= expiry:
            raise BadLink("This link has expired.")
        return self.booking

    def refusal_page(self, exc: Exception, status: int, code: str) -> HttpResponse:
        """In the app's language as soon as the app is known."""
        heading, sentence = REFUSED.get(code, UNREADABLE)
        if isinstance(exc, BadLink) and self.booking:
            heading, sentence = EXPIRED
        if isinstance(exc, ActionNotAllowed):
            sentence = STATE_SENTENCES[exc.fields["state"]]
            if leads_to(self.booking, self.link_action, exc.fields["state"]):
                heading = DONE_ALREADY
        if isinstance(exc, PolicyViolated):
            heading, sentence = POLICIES.get(exc.fields["policy"], REFUSED[code])
            sentence = format_lazy(sentence, limit=exc.fields["limit"])
        return self.show_refusal(status, heading, sentence, reasons_of(exc))

    @abstractmethod
    def show_refusal(
        self, status: int, heading: str | Promise, sentence: str | Promise, reasons: Sequence[str]
    ) -> HttpResponse:
        """The page that says so, with what is known of the booking."""


class ExternalActionView(LinkPageView):
    tag = "bookings"
    # Others are let pass: mail programs and trackers add their own.
    query_names = {"GET": tuple(QUERY), "POST": tuple(QUERY)}

    redirect = ""

    @property
    def link_action(self) -> str:
        return self.kwargs["action"]

    @described(
        summary="The page behind a link in a mail",
        description="Shows the booking and one button that posts to the same address. Changes"
        " nothing. Needs no key: the signature is the capability.",
        path=PATH,
        query=QUERY,
        headers=PAGE_HEADERS,
        others={200: page_response("The booking, and the button."), **FAILURES},
    )
    def get(self, request: Any, booking_id: str, action: str) -> HttpResponse:
        offer = self._admit_link(request, booking_id, action)
        if GRAPHS[self.booking.graph].next_state(self.booking.state, action) is None:
            raise ActionNotAllowed(self.booking, action)
        return self._page(200, offer.question, button=offer.button)

    @described(
        summary="Carry out the action of a link",
        description="What the button of the page does. Binding are the policies of the project.",
        path=PATH,
        query=QUERY,
        headers=PAGE_HEADERS,
        others={
            200: page_response("Done."),
            303: OpenApiResponse(description="Done; goes on to `redirect`."),
            **FAILURES,
            413: page_response("The body is larger than 256 kB; none is needed."),
        },
    )
    def post(self, request: Any, booking_id: str, action: str) -> HttpResponse:
        offer = self._admit_link(request, booking_id, action)
        self.booking = apply_action(
            app=self.booking.app,
            booking_id=self.booking.id,
            action=action,
            actor=Actor(name=offer.actor, source="link"),
            now=self.now,
        )
        if self.redirect:
            return HttpResponse(status=303, headers={"Location": iri_to_uri(self.redirect)})
        return self._page(200, offer.done, sentence=CLOSE)

    def _admit_link(self, request: Any, booking_id: str, action: str) -> Offer:
        """The offer of a link that holds. Raises NotFound, BadLink."""
        if action not in OFFERS:
            raise NotFound("Action")
        booking = self.find_booking(request, booking_id)
        self.redirect = allowed_redirect(booking, request.GET.get("redirect", ""))
        return OFFERS[action]

    def show_refusal(
        self, status: int, heading: str | Promise, sentence: str | Promise, reasons: Sequence[str]
    ) -> HttpResponse:
        return self._page(status, heading, sentence=sentence, reasons=reasons)

    def _page(
        self,
        status: int,
        heading: str | Promise,
        *,
        sentence: str | Promise = "",
        reasons: Sequence[str] = (),
        button: str | Promise = "",
    ) -> HttpResponse:
        # Where the service is in trouble the page asks nothing of the database.
        booking = self.booking if status < 500 else None

        def values() -> Mapping[str, Any]:
            return {
                "heading": heading,
                "sentence": sentence,
                "reasons": reasons,
                "button": button,
                "rows": describe(booking, OFFERS[self.link_action].actor) if booking else [],
            }

        return self.render_page(
            "bookings/external_action.html",
            values,
            status=status,
            app=booking.app if booking else None,
            redirect=self.redirect if button else "",
            languages=languages_of(booking) if booking else (),
        )


def leads_to(booking: Booking, action: str, state: str) -> bool:
    """Whether the state is one that the action leads to."""
    steps = GRAPHS[booking.graph].steps.items()
    return any(one == action and to_state == state for (_, one), to_state in steps)


def reasons_of(exc: Exception) -> Sequence[str]:
    """Why a time is not available, a sentence each."""
    reasons = exc.reasons if isinstance(exc, NotAvailable) else ()
    return [reason_record(reason)["text"] for reason in reasons]


def describe(booking: Booking, reader: str) -> list[tuple[str, str]]:
    """(label, value) of what, when and with whom, in the active language; empty ones left out.

    The customer's page goes by the customer's clock, the owner's by the resource's.
    """
    event, customers = booking.event, list(booking.customers.all())
    is_customers = reader == "customer"
    zone_name = customers_zone(booking) if is_customers else known_zone(booking.resource.timezone)
    contact = one_line(str(booking.app.settings.get("contact_email") or ""))
    names = "\n".join(one_line(customer.name) for customer in customers)
    rows = [
        (gettext("What"), one_line(event.what)),
        (gettext("When"), when(event, zone_name)),
        (gettext("Where"), one_line(event.where)),
        (gettext("With") if is_customers else gettext("Resource"), one_line(booking.resource.name)),
        (gettext("Customer"), "" if is_customers else names),
        (gettext("Contact"), contact if is_customers else ""),
    ]
    return [(label, value) for label, value in rows if value]


def customers_zone(booking: Booking) -> str:
    """Of the clock that the first customer reads; whole days are the resource's."""
    customers = [] if booking.event.all_day else list(booking.customers.all())
    own = customers[0].timezone if customers else ""
    return known_zone(own, booking.resource.timezone)


def when(event: Event, zone_name: str) -> str:
    if event.all_day:
        return days_words(event.start_date, event.end_date, zone_name)
    return span_words(event.start, event.end, zone_name)


def allowed_redirect(booking: Booking, address: str) -> str:
    """The address if, without its query and fragment, it is one that the app allows; else ""."""
    allowed = booking.app.settings.get("redirect_urls") or []
    if not is_web_address(address) or NOT_IN_URL.search(address):
        return ""
    places = {place_of(one) for one in allowed if isinstance(one, str)}
    return address if place_of(address) in places else ""


def place_of(address: str) -> str:
    return QUERY_OR_FRAGMENT.split(address, maxsplit=1)[0]
