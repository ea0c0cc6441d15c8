"""The pages on which customers see and change their own bookings, behind a one-time link by e-mail.

They work without scripts. Mail programs open links, so the link's page only shows a button, and its
POST uses up the link.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from django.http import HttpResponse, QueryDict, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy
from rest_framework.request import Request
from rest_framework.serializers import ValidationError

from apps_config.base_views import add_test_mode_header
from apps_config.history import change_actor
from apps_config.models import App, SecurityEvent
from apps_config.public_limits import LimitReached, record_unknown_proxy
from apps_config.security_events import record_export
from availability.models import Project
from booking_pages.own_bookings import (
    OwnBookingsSession,
    begin_session,
    end_session,
    has_valid_form_token,
    read_session,
    request_link,
)
from booking_pages.texts import NO_PAGE, SCRIPT
from booking_pages.views.rate_limited_page_base import RateLimitedPageView
from bookings.graphs import GRAPHS
from bookings.models import Booking, Customer
from bookings.pages.action_links import (
    CALENDAR,
    RESCHEDULE,
    action_url,
    own_bookings_path,
    payment_address,
    project_page_path,
)
from bookings.pages.base import StepLink, form_field
from bookings.pages.email_links import BOOK_AGAIN, CLOSE, STATE_SENTENCES, booking_facts
from bookings.pages.formatting import to_one_line
from bookings.pages.refusal_texts import REFUSAL_TEXTS, UNREADABLE
from bookings.privacy import erase_person, write_own_export
from bookings.services import Actor, change_booking, movable_bookings
from common.api.fields import CANONICAL_ID, EmailField, OneLineField
from common.api.json import read_body
from common.api.views import found_or_404
from common.errors import Forbidden, NotFound
from common.limits.rate_limit import customer_network
from notifications.links.own_bookings import BadOwnBookingsLink, read_link, use_link

CUSTOMER = Actor(name="customer", source="link")
CANCEL = "cancel_by_customer"
MAX_UPCOMING = 100
PAGE_SIZE = 20  # past bookings
MAX_PAGE = 10_000
EMAIL_FIELD = EmailField()
NAME_FIELD = OneLineField(200)
PHONE_FIELD = OneLineField(200, allow_blank=True)

HEADING = _("Your bookings")
ASK = _("Enter your e-mail address. We will send you a link to your bookings.")
SEND = _("Send the link")
SENT = (
    _("Check your inbox"),
    _("If this address has bookings, a link is on its way. It works once, for 15 minutes."),
)
OPEN = _("The link works once. Then your bookings are shown for 30 minutes.")
SHOW = _("Show my bookings")
BAD_LINK = (
    _("This link no longer works"),
    _("It has expired or was already used. Please request a new one."),
)
NEW_LINK = _("Request a new link")
TOO_MANY = _("Nothing was changed. Please try again later.")
CORRECT = _("Correct name or phone")
NAME = pgettext_lazy("of a person", "Name")
PHONE = _("Phone")
EMAIL = _("E-mail")
SAVE = _("Save")
BACK = _("Back to your bookings")
ERASE = _("Erase my data?")
ERASES = _(
    "Your name, address and answers are removed from all bookings here. This can't be undone."
)
ERASE_BUTTON = _("Erase my data")
CANCEL_FIRST = _("Please cancel your upcoming bookings first.")
ERASED = _("Your data is erased")

WORDS: Mapping[str, str | Promise] = {
    "of": _("Bookings of {email}"),
    "upcoming": _("Upcoming bookings"),
    "past": _("Past and cancelled bookings"),
    "none": _("There are no bookings."),
    "saved": _("Your details are saved."),
    "earlier": _("Earlier"),
    "later": _("Later"),
    "export": _("Download my data"),
    "erase": ERASE_BUTTON,
    "close": _("Log out"),
}


class OwnBookingsPageView(RateLimitedPageView):
    """A page of an app's customers."""

    stylesheet = "booking_pages/book.css"
    refusals = {
        **REFUSAL_TEXTS,
        "not_found": NO_PAGE,
        "forbidden": UNREADABLE,
        LimitReached: (REFUSAL_TEXTS["rate_limited"].heading, TOO_MANY),
        BadOwnBookingsLink: BAD_LINK,
    }

    def find_app(self, slug: str) -> App:
        """Return the app, if it has a booking page. Raises NotFound."""
        app = found_or_404(App.objects.filter(slug=slug, archived_at=None).first(), "App")
        projects = Project.objects.filter(app=app, deleted_at=None)
        if not any(app.publishes(each) for each in projects.values_list("settings", flat=True)):
            raise NotFound("App")
        self.app = app
        return app

    def find_session(self, app: App) -> OwnBookingsSession | None:
        return read_session(self.request, app, now=self.now)

    def check_form(self, app: App) -> tuple[OwnBookingsSession | None, QueryDict]:
        """Return the session and the form. Raises Forbidden for a form of another site."""
        form = self.read_form()
        session = self.find_session(app)
        if session and not has_valid_form_token(session, form.get("token", "")):
            raise Forbidden("The form belongs to another session.")
        return session, form

    def read_form(self) -> QueryDict:
        return QueryDict(read_body(self.request))

    def refusal_page(self, exc: Exception, status: int, code: str) -> HttpResponse:
        is_link = isinstance(exc, BadOwnBookingsLink)
        links = [StepLink(NEW_LINK, self.home)] if is_link else []
        return self.show_step(status, *self.refusal_text(exc, code), links=links)

    @property
    def home(self) -> str:
        return own_bookings_path(self.app) if self.app else ""

    def redirect_to_home(self) -> HttpResponse:
        return HttpResponse(status=303, headers={"Location": self.home})

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        add_test_mode_header(response, self.app)
        return super().finalize_response(request, response, *args, **kwargs)


# --- The link -------------------------------------------------------------------------------------
class OwnBookingsView(OwnBookingsPageView):
    """Without a session: the form for the address. With one: the bookings."""

    def get(self, request: Request, app_slug: str) -> HttpResponse:
        app = self.find_app(app_slug)
        session = self.find_session(app)
        return self._show_bookings(session) if session else self._show_request_form(200)

    def post(self, request: Request, app_slug: str) -> HttpResponse:
        app = self.find_app(app_slug)
        given = self.read_form().get("email", "")
        try:
            email = EMAIL_FIELD.run_validation(given)
        except ValidationError:
            return self._show_request_form(
                422, given=to_one_line(given, 254), error=SCRIPT["email"]
            )
        record_unknown_proxy(app, request, now=self.now)
        request_link(app, email, network=customer_network(request), now=self.now)
        return self.show_step(200, *SENT)

    def _show_request_form(
        self, status: int, given: str = "", error: str | Promise = ""
    ) -> HttpResponse:
        field = form_field(
            "email", EMAIL, given, error=error, type="email", autocomplete="email", required=True
        )
        return self.show_step(status, HEADING, ASK, button=SEND, fields=[field])

    def _show_bookings(self, session: OwnBookingsSession) -> HttpResponse:
        page = read_page(self.request.GET.get("page", ""))
        first = (page - 1) * PAGE_SIZE
        past = session.past(self.now).order_by("-event__start", "-id")
        shown = [*past[first : first + PAGE_SIZE + 1]]
        upcoming = session.upcoming(self.now).order_by("event__start", "id")
        lists = [[*upcoming[:MAX_UPCOMING]] if page == 1 else [], shown[:PAGE_SIZE]]
        movable = {booking.id for booking in movable_bookings(lists[0])}
        newest = next((booking for rows in lists for booking in rows), None)
        self.customer = own_customer(newest, session) if newest else None
        return self.render_page(
            "booking_pages/own_bookings.html",
            lambda: {
                "heading": HEADING,
                "sentence": str(WORDS["of"]).format(email=session.person.email),
                "words": WORDS,
                "is_saved": "saved" in self.request.GET,
                "upcoming": [
                    upcoming_values(each, self.home, each.id in movable) for each in lists[0]
                ],
                "past": [past_values(each) for each in lists[1]],
                "later": f"?page={page - 1}" if page > 1 else "",
                "earlier": f"?page={page + 1}" if len(shown) > PAGE_SIZE else "",
                "home": self.home,
                "token": session.form_token,
            },
        )


class OpenLinkView(OwnBookingsPageView):
    def get(self, request: Request, app_slug: str) -> HttpResponse:
        app = self.find_app(app_slug)
        read_link(app, request.GET.get("token", ""), now=self.now)
        return self.show_step(200, HEADING, OPEN, button=SHOW)

    def post(self, request: Request, app_slug: str) -> HttpResponse:
        app = self.find_app(app_slug)
        email = use_link(app, request.GET.get("token", ""), now=self.now)
        response = self.redirect_to_home()
        begin_session(response, app, email, now=self.now)
        return response


class CloseView(OwnBookingsPageView):
    def post(self, request: Request, app_slug: str) -> HttpResponse:
        app = self.find_app(app_slug)
        session, _form = self.check_form(app)
        response = self.redirect_to_home()
        if session:
            end_session(response, session)
        return response


# --- One booking ----------------------------------------------------------------------------------
class DetailsView(OwnBookingsPageView):
    """Correct name and phone of an upcoming booking."""

    shown_booking: Booking | None = None

    def get(self, request: Request, app_slug: str, booking_id: str) -> HttpResponse:
        app = self.find_app(app_slug)
        session = self.find_session(app)
        if session is None:
            return self.redirect_to_home()
        booking, customer = self._find_upcoming(session, booking_id)
        return self._form(200, session, booking, {"name": customer.name, "phone": customer.phone})

    def post(self, request: Request, app_slug: str, booking_id: str) -> HttpResponse:
        app = self.find_app(app_slug)
        session, form = self.check_form(app)
        if session is None:
            return self.redirect_to_home()
        booking, customer = self._find_upcoming(session, booking_id)
        given = {name: form.get(name, "").strip() for name in ("name", "phone")}
        values, errors = {}, {}
        for name, field in (("name", NAME_FIELD), ("phone", PHONE_FIELD)):
            try:
                values[name] = field.run_validation(given[name])
            except ValidationError:
                errors[name] = SCRIPT["unfit"] if given[name] else SCRIPT["required"]
        if errors:
            shown = {name: to_one_line(text) for name, text in given.items()}
            return self._form(422, session, booking, shown, errors)
        change_booking(
            app=app,
            booking_id=booking.id,
            changes={"customers": [{"id": customer.id, **values}]},
            actor=CUSTOMER,
            now=self.now,
        )
        response = self.redirect_to_home()
        response.headers["Location"] += "?saved=1"
        return response

    def page_facts(self) -> Sequence[tuple[str, str]]:
        return booking_facts(self.shown_booking, "customer") if self.shown_booking else ()

    def _find_upcoming(
        self, session: OwnBookingsSession, booking_id: str
    ) -> tuple[Booking, Customer]:
        """Return an upcoming booking and its customer. Raises NotFound."""
        rows = session.upcoming(self.now)
        is_id = CANONICAL_ID.fullmatch(booking_id)
        booking = found_or_404(rows.filter(id=booking_id).first() if is_id else None, "Booking")
        self.customer = own_customer(booking, session)
        return booking, self.customer

    def _form(
        self,
        status: int,
        session: OwnBookingsSession,
        booking: Booking,
        given: Mapping[str, str],
        errors: Mapping[str, str | Promise] | None = None,
    ) -> HttpResponse:
        errors = errors or {}
        self.shown_booking = booking
        return self.show_step(
            status,
            CORRECT,
            button=SAVE,
            fields=[
                form_field(
                    "name",
                    NAME,
                    given["name"],
                    error=errors.get("name", ""),
                    autocomplete="name",
                    required=True,
                ),
                form_field(
                    "phone",
                    PHONE,
                    given["phone"],
                    error=errors.get("phone", ""),
                    type="tel",
                    autocomplete="tel",
                ),
            ],
            links=[StepLink(BACK, self.home)],
            token=session.form_token,
        )


# --- All data -------------------------------------------------------------------------------------
class ExportView(OwnBookingsPageView):
    def get(self, request: Request, app_slug: str) -> HttpResponseBase:
        app = self.find_app(app_slug)
        session = self.find_session(app)
        if session is None:
            return self.redirect_to_home()
        with change_actor(None, CUSTOMER.name):
            record_export(SecurityEvent.CUSTOMER_EXPORTED, app_id=app.id)
        pieces = write_own_export(session.person, zone=app.default_timezone)
        headers = {"Content-Disposition": 'attachment; filename="bookings.json"'}
        return StreamingHttpResponse(pieces, content_type="application/json", headers=headers)


class EraseView(OwnBookingsPageView):
    def get(self, request: Request, app_slug: str) -> HttpResponse:
        app = self.find_app(app_slug)
        session = self.find_session(app)
        return self._question(session) if session else self.redirect_to_home()

    def post(self, request: Request, app_slug: str) -> HttpResponse:
        app = self.find_app(app_slug)
        session, _form = self.check_form(app)
        if session is None:
            return self.redirect_to_home()
        if session.upcoming(self.now).exists():
            return self._question(session)
        with change_actor(None, CUSTOMER.name):
            erase_person(app=app, email=session.person.email, now=self.now)
        response = self.show_step(200, ERASED, CLOSE)
        end_session(response, session)
        return response

    def _question(self, session: OwnBookingsSession) -> HttpResponse:
        """Ask, or refuse: staff would not know who comes."""
        links = [StepLink(BACK, self.home)]
        if session.upcoming(self.now).exists():
            return self.show_step(409, ERASE, CANCEL_FIRST, links=links)
        return self.show_step(
            200,
            ERASE,
            ERASES,
            button=ERASE_BUTTON,
            is_danger=True,
            links=links,
            token=session.form_token,
        )


# --- The template's values ------------------------------------------------------------------------
def own_customer(booking: Booking, session: OwnBookingsSession) -> Customer:
    return next(each for each in booking.customers.all() if session.person.is_of(each))


def upcoming_values(booking: Booking, home: str, is_movable: bool) -> dict[str, Any]:
    payment = payment_address(booking)
    links = [(SCRIPT["pay"], payment)] if payment else []
    if is_movable:
        links.append((SCRIPT["move"], link_path(booking, RESCHEDULE)))
    graph = GRAPHS[booking.graph]
    if graph.next_state(booking.state, CANCEL):
        links.append((SCRIPT["cancel"], link_path(booking, CANCEL)))
    if graph.takes_place(booking.state):
        links.append((SCRIPT["calendar"], link_path(booking, CALENDAR)))
    links.append((CORRECT, f"{home}/bookings/{booking.id}"))
    return booking_values(booking) | {"links": links}


def past_values(booking: Booking) -> dict[str, Any]:
    path = project_page_path(booking)
    return booking_values(booking) | {"links": [(BOOK_AGAIN, path)] if path else []}


def booking_values(booking: Booking) -> dict[str, Any]:
    return {
        "facts": booking_facts(booking, "customer"),
        "state": STATE_SENTENCES[booking.state],
    }


def link_path(booking: Booking, action: str) -> str:
    """Return the path of a signed link: these pages have the host of the request."""
    parts = urlsplit(action_url(booking, action, booking.event.end))
    return f"{parts.path}?{parts.query}"


def read_page(text: str) -> int:
    """Return the number of the page; 1 for any other text."""
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(MAX_PAGE))
    return max(1, min(int(text), MAX_PAGE)) if is_number else 1
