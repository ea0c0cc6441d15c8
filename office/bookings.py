"""Bookings in the back office: found by what the customer says, led on by what the graph allows."""

import re
import uuid
from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin import SimpleListFilter
from django.db.models import Prefetch, Q, QuerySet, prefetch_related_objects
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils import timezone
from unfold.contrib.filters.admin import DropdownFilter
from unfold.decorators import action, display

from apps_config.days import moment_words, read_day, span_of, zone_of
from apps_config.office import AppFilter, DaysFilter, ReadOnlyAdmin, ScopedChoiceFilter
from apps_config.scope import is_allowed, scope_of
from bookings.graphs import GRAPHS, STATES
from bookings.models import Booking, Customer
from bookings.services import Actor, apply_action
from notifications.addressees import Addressees
from office.asking import ACTION_FIELDS, ask_first, is_confirmed
from office.booking_page import QUESTIONS, act, move, show_booking
from office.export import export_page, export_rows
from office.mail_preview import MAX_NAMED, mail_lines
from office.words import STATE_COLOURS, booking_words, state_words
from scheduling.api.errors import Refusal

# What is done to many at once; each booking for itself, whatever the others say.
BULK_ACTIONS = ("confirm", "decline", "cancel")


def offer_action(name: str) -> Callable[..., None]:
    """An action of the list that leads the selected bookings on, each through the service."""

    def run(self: "BookingAdmin", request: HttpRequest, bookings: QuerySet) -> HttpResponse | None:
        if name in QUESTIONS and not is_confirmed(request):
            return ask_for_several(self, request, bookings, name)
        actor, done = Actor(name=request.user.email, source="admin"), 0
        for booking in bookings.select_related("app"):
            if not self.may_act(request, booking):
                messages.error(request, f"{booking.id}: you may look at it only.")
                continue
            try:
                apply_action(
                    app=booking.app,
                    booking_id=booking.id,
                    action=name,
                    actor=actor,
                    now=timezone.now(),
                )
                done += 1
            except Refusal as refusal:
                messages.error(request, f"{booking.id}: {refusal.message}")
        if done:
            messages.success(request, f"{name}: done for {done} of the selected bookings.")
        return None

    run.__name__ = f"apply_{name}"
    return action(description=f"{name.capitalize()} the selected", permissions=["act"])(run)


def ask_for_several(page: Any, request: HttpRequest, bookings: QuerySet, name: str) -> HttpResponse:
    """Names the first of them, with the mails that leave."""
    count = bookings.count()
    rows = list(bookings.select_related("app", "event", "resource")[:MAX_NAMED])
    prefetch_related_objects(rows, "customers")
    addressees = Addressees({booking.app_id for booking in rows})
    lines = []
    for booking in rows:
        if GRAPHS[booking.graph].next_state(booking.state, name) is None:
            mails = [f"Will be refused: it is {state_words(booking.state)}."]
        else:
            mails = mail_lines(booking, name, addressees)
        lines.append("\n".join([booking_words(booking), *mails]))
    if count > MAX_NAMED:
        lines.append(f"and {count - MAX_NAMED} more bookings")
    words = name.capitalize()
    return ask_first(
        page,
        request,
        None,
        title=f"{words} {count} {'booking' if count == 1 else 'bookings'}?",
        sentence="Each is called off by itself, and these e-mails leave:",
        button=f"{words} {'it' if count == 1 else 'them'}",
        back=request.get_full_path(),
        lines=lines,
        repeated=ACTION_FIELDS,
    )


class StateFilter(DropdownFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(state, state_words(state)) for state in STATES]

    def queryset(self, request: HttpRequest, bookings: QuerySet) -> QuerySet:
        return bookings.filter(state=self.value()) if self.value() else bookings


class DayFilter(SimpleListFilter):
    """One day of the clock of the back office: where the first page's number leads."""

    title = "day"
    parameter_name = "day"

    def has_output(self) -> bool:
        return bool(self.value())

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(self.value(), self.value())] if self.value() else []

    def queryset(self, request: HttpRequest, bookings: QuerySet) -> QuerySet:
        day = read_day(self.value())
        if day is None:
            return bookings
        start, end = span_of(day, day, zone_of(request))
        return bookings.filter(event__start__gte=start, event__start__lt=end)


class GraphFilter(DropdownFilter):
    title = "graph"
    parameter_name = "graph"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(graph, graph) for graph in GRAPHS]

    def queryset(self, request: HttpRequest, bookings: QuerySet) -> QuerySet:
        return bookings.filter(graph=self.value()) if self.value() else bookings


@admin.register(Booking)
class BookingAdmin(ReadOnlyAdmin):
    app_paths = ("app",)
    list_display = ("starts", "customer", "what", "resource", "project", "shown_state", "app")
    list_display_links = ("starts", "customer")
    list_filter = (
        DayFilter,
        StateFilter,
        GraphFilter,
        ("event__start", DaysFilter),
        ("resource", ScopedChoiceFilter),
        ("project", ScopedChoiceFilter),
        ("app", AppFilter),
    )
    list_select_related = ("event", "resource", "project", "app")
    search_fields = ("id", "customers__name")  # what is looked at: `get_search_results`
    search_help_text = "A customer's name, e-mail or phone number, or a booking's id"
    ordering = ("-id",)  # by their making: ids carry the moment
    sortable_by = ()
    actions = [offer_action(name) for name in BULK_ACTIONS]
    actions_list = ("export",)
    list_disable_select_all = False

    # --- the list ---------------------------------------------------------------------------------
    def get_queryset(self, request: HttpRequest) -> QuerySet:
        rows = super().get_queryset(request).filter(deleted_at=None)
        return rows.prefetch_related(Prefetch("customers", to_attr="people"))

    def get_list_display(self, request: HttpRequest) -> list[str]:
        """The app is named where there are several."""
        scope = scope_of(request)
        is_one = not scope.is_staff and len(scope.roles) == 1
        shown = super().get_list_display(request)
        return [name for name in shown if not (is_one and name == "app")]

    def get_search_results(
        self, request: HttpRequest, bookings: QuerySet, term: str
    ) -> tuple[QuerySet, bool]:
        return bookings.filter(find(term)) if term.strip() else bookings, False

    @display(description="start")
    def starts(self, booking: Booking) -> str:
        return moment_words(booking.event.start)

    @display(description="customer")
    def customer(self, booking: Booking) -> str:
        people = booking.people
        return f"{people[0].name}{f' +{len(people) - 1}' if people[1:] else ''}" if people else "–"

    @display(description="what")
    def what(self, booking: Booking) -> str:
        return booking.event.what

    @display(description="state", label=STATE_COLOURS)
    def shown_state(self, booking: Booking) -> tuple[str, str]:
        return booking.state, state_words(booking.state)

    # --- rights -----------------------------------------------------------------------------------
    def has_act_permission(self, request: HttpRequest) -> bool:
        """Whether bookings of some app may be led on."""
        return is_allowed(request, "bookings.change_booking", None)

    def may_act(self, request: HttpRequest, booking: Booking) -> bool:
        return is_allowed(request, "bookings.change_booking", booking.app_id)

    # --- pages ------------------------------------------------------------------------------------
    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        own = [
            path("export/rows/", wrap(self.export_rows), name="bookings_booking_export_rows"),
            path("<path:object_id>/act/", wrap(self.act), name="bookings_booking_act"),
            path("<path:object_id>/move/", wrap(self.move), name="bookings_booking_move"),
        ]
        return own + super().get_urls()

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        return show_booking(self, request, object_id)

    def act(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return act(self, request, object_id)

    def move(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return move(self, request, object_id)

    @action(description="Export as CSV", icon="download", url_path="export")
    def export(self, request: HttpRequest) -> HttpResponse:
        return export_page(self, request)

    def export_rows(self, request: HttpRequest) -> HttpResponse:
        return export_rows(self, request)


def find(term: str) -> Q:
    """Bookings by an id, by an e-mail address or its beginning, by the digits of a phone number, or
    by words of a name: one of their customers matches them all."""
    term = term.strip()
    try:
        return Q(id=uuid.UUID(term))
    except ValueError:
        pass
    if "\0" in term:
        return Q(pk__in=[])
    customers = Customer.objects.all()
    if "@" in term:
        customers = customers.filter(email__istartswith=term)
    elif re.fullmatch(r"[+\d][\d\s()/.-]{3,}", term):
        # As it was typed, or by its last digits: people write numbers in many ways.
        customers = customers.filter(Q(phone__icontains=term) | Q(phone__iregex=_digits(term)))
    else:
        for word in term.split():
            customers = customers.filter(Q(name__icontains=word) | Q(email__icontains=word))
    return Q(id__in=customers.values("booking_id"))


def _digits(term: str) -> str:
    """A pattern of a number's digits with anything else between them."""
    return r"\D*".join(re.sub(r"\D", "", term)[-12:])
