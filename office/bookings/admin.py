"""Bookings in the back office: search, filters and bulk actions."""

import uuid
from collections.abc import Callable, Iterable
from typing import Any, cast
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.contrib.admin import SimpleListFilter
from django.contrib.admin.options import BaseModelAdmin
from django.contrib.admin.views.main import SEARCH_VAR
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext, ngettext, ngettext_lazy, pgettext_lazy
from django.utils.translation import gettext_lazy as _
from unfold.decorators import action, display

from bookings.graphs import GRAPHS, STATES
from bookings.models import OUTCOMES, Booking, Customer, further_events
from bookings.pages.formatting import plain_date_words
from bookings.services import apply_action
from bookings.services.bulk_request import bulk_request
from common.errors import Refusal
from notifications.mail.recipients import Recipients
from office.base.change_list import OfficeChangeList, Shortcut
from office.base.dates import days_span_in_zone, moment_words, office_zone, parse_iso_day
from office.base.labels import (
    GRAPH_WORDS,
    STATE_COLOURS,
    LabelledWords,
    booking_words,
    shown_state,
    state_words,
)
from office.base.list_filters import AppFilter, ChoiceFilter, DaysFilter, ScopedChoiceFilter
from office.base.local_time import today_in
from office.base.model_admin_pages import ACTION_FIELDS, ExtraPage, is_confirmed
from office.base.permissions import BLOCK, MAKE, actor_of
from office.bookings.action_email_list import MAX_NAMED, mail_lines
from office.bookings.bulk_actions import BulkActionForm, postpone_actions
from office.bookings.class_pages import ClassPages
from office.bookings.customer_search import search_customers
from office.bookings.detail import QUESTIONS, action_refusal_words
from office.bookings.export import export_rows, show_export
from office.bookings.external_id_search import booking_ids_by_external_id
from office.bookings.former_bookings import former_bookings
from office.bookings.periods import PERIOD, PERIODS, period_days
from office.bookings.saved_filters import change_filter, filter_state, save_filter
from office.bookings.tabs import CALLED_OFF, PAST, PENDING, TABS, UPCOMING

# The order of each tab.
ORDERS = {
    UPCOMING: ("event__start", "id"),
    PAST: ("-event__start", "-id"),
    PENDING: ("-created_at", "-id"),
}
# Parameters of the list's days: a period takes the place of all.
OTHER_DAYS = (PERIOD, "tab", "day", "event__start_from", "event__start_to")
FIRST_NAME = Customer.objects.filter(booking=OuterRef("pk")).values("name")[:1]
# Each booking is changed separately: a refusal does not affect the others.
ACTION_NAMES = {
    "confirm": _("Confirm bookings"),
    "decline": _("Decline bookings"),
    "cancel": _("Cancel bookings"),
}
DONE_SENTENCES = {
    "confirm": ngettext_lazy(
        "%(count)s booking confirmed.", "%(count)s bookings confirmed.", "count"
    ),
}
# Actions on several bookings that need confirmation, and can be undone: title and button.
BULK_QUESTIONS = {
    "decline": (
        ngettext_lazy("Decline %(count)s booking?", "Decline %(count)s bookings?", "count"),
        ngettext_lazy("Decline %(count)s booking", "Decline %(count)s bookings", "count"),
    ),
    "cancel": (
        ngettext_lazy("Cancel %(count)s booking?", "Cancel %(count)s bookings?", "count"),
        ngettext_lazy("Cancel %(count)s booking", "Cancel %(count)s bookings", "count"),
    ),
}


def offer_action(name: str) -> Callable[..., HttpResponse | None]:
    """Return a list action that applies the graph's action to the selected bookings via the
    service.
    """

    def run(
        self: "BookingAdmin", request: HttpRequest, bookings: QuerySet[Booking]
    ) -> HttpResponse | None:
        if name in QUESTIONS and not is_confirmed(request):
            return self.confirm_bulk_action(request, bookings, name)
        if name in QUESTIONS:
            return self.postpone_bulk_action(request, bookings, name)
        actor, done = actor_of(request), 0
        with bulk_request():
            for booking in bookings.select_related("app", "event"):
                if not self.has_act_permission(request, booking):
                    words = _("%(booking)s: you can only view it.")
                    messages.error(request, words % {"booking": booking_words(booking)})
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
                    reason = action_refusal_words(refusal, name)
                    # Translators: why a booking was not changed: "Ann – Haircut: not possible, …".
                    words = _("%(booking)s: %(reason)s")
                    given = {"booking": booking_words(booking), "reason": reason}
                    messages.error(request, words % given)
        if done:
            messages.success(request, _counted(DONE_SENTENCES[name], done))
        return None

    run.__name__ = f"apply_{name}"
    return action(description=ACTION_NAMES[name], permissions=["act"])(run)


def _counted(sentence: Any, count: int) -> str:
    """Return the sentence, of `ngettext_lazy`, in its form for the count."""
    return sentence % {"count": count}


class BookingStateFilter(ChoiceFilter):
    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: BaseModelAdmin) -> list[tuple[str, str]]:
        return [(state, state_words(state)) for state in STATES]


class TabFilter(ChoiceFilter):
    """The tabs above the list."""

    # Translators: filter of bookings: upcoming, past, pending.
    title = _("time")
    parameter_name = "tab"
    options = tuple(TABS.items())

    def queryset(self, request: HttpRequest, queryset: QuerySet[Booking]) -> QuerySet[Booking]:
        now = timezone.now()
        if self.value() == UPCOMING:
            return queryset.filter(completed=False, event__end__gt=now)
        if self.value() == PAST:
            return queryset.filter(event__end__lte=now).exclude(state__in=CALLED_OFF)
        if self.value() == PENDING:
            return queryset.filter(state="tentative", max_seats=None)
        return queryset


class OutcomeFilter(ChoiceFilter):
    # Translators: whether the customer came to the booking.
    title = _("outcome")
    parameter_name = "outcome"

    def lookups(self, request: HttpRequest, model_admin: BaseModelAdmin) -> list[tuple[str, str]]:
        return [(outcome, state_words(outcome)) for outcome in OUTCOMES]


class GraphFilter(ChoiceFilter):
    # Translators: kind of a booking, such as "Confirmed at once" or "Needs approval".
    title = _("kind")
    parameter_name = "graph"
    options = [(graph, GRAPH_WORDS[graph]) for graph in GRAPHS]


class BookingDayFilter(SimpleListFilter):
    """Filter by one day in the back office's time zone; linked from the dashboard's count."""

    title = _("day")
    parameter_name = "day"

    def has_output(self) -> bool:
        return bool(self.value())

    def lookups(self, request: HttpRequest, model_admin: BaseModelAdmin) -> list[tuple[str, str]]:
        chosen = self.value()
        day = parse_iso_day(chosen)
        return [(chosen, plain_date_words(day) if day else chosen)] if chosen else []

    def queryset(self, request: HttpRequest, queryset: QuerySet[Booking]) -> QuerySet[Booking]:
        day = parse_iso_day(self.value())
        if day is None:
            return queryset
        start, end = days_span_in_zone(day, day, office_zone(request))
        return queryset.filter(event__start__gte=start, event__start__lt=end)


class PeriodFilter(ChoiceFilter):
    """The shortcuts above the list; a saved filter with one moves on with the days."""

    title = _("days")
    parameter_name = PERIOD
    options = tuple(PERIODS.items())

    def has_output(self) -> bool:
        return bool(self.value())

    def queryset(self, request: HttpRequest, queryset: QuerySet[Booking]) -> QuerySet[Booking]:
        if self.value() not in PERIODS:
            return queryset
        zone = office_zone(request)
        days = period_days(self.value(), today_in(zone, timezone.now()))
        start, end = days_span_in_zone(*days, zone)
        return queryset.filter(event__start__gte=start, event__start__lt=end)


@admin.register(Booking)
class BookingAdmin(ClassPages):
    app_paths = ("app",)
    list_display = ("starts", "customer", "what", "resource", "project", "shown_state", "app")
    list_display_links = ("starts", "customer")
    list_filter = (
        TabFilter,
        PeriodFilter,
        BookingDayFilter,
        BookingStateFilter,
        OutcomeFilter,
        GraphFilter,
        ("event__start", DaysFilter),
        ("resource", ScopedChoiceFilter),
        ("project", ScopedChoiceFilter),
        ("app", AppFilter),
    )
    list_select_related = ("event", "resource", "project", "app")
    # Only makes the search field appear: `get_search_results` does the search.
    search_fields = ("id", "customers__name")
    search_help_text = _(
        "A customer's name, e-mail or phone number, or the id of a booking or customer"
    )
    ordering = ("-id",)  # by creation: ids are time-ordered
    index_sorted = ("starts",)
    actions = [offer_action(name) for name in ACTION_NAMES]
    actions_list = ("new_booking", "export")
    list_disable_select_all = False
    list_before_template = "office/saved_filters.html"
    filters_shown_elsewhere = (TabFilter.parameter_name, PERIOD)

    # --- List -------------------------------------------------------------------------------------
    def get_queryset(self, request: HttpRequest) -> QuerySet[Booking]:
        rows = super().get_queryset(request).filter(deleted_at=None)
        return rows.prefetch_related("customers")

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        own: dict[str, Any] = {}
        if request.method == "GET":
            is_by_creation = self.get_ordering(request) == self.ordering and "o" not in request.GET
            term, tab = (
                request.GET.get(name, "") for name in (SEARCH_VAR, TabFilter.parameter_name)
            )
            own = {
                "saved_filter": filter_state(request),
                "is_by_creation": is_by_creation,
                "search_in_all": urlencode({SEARCH_VAR: term}) if term and tab else "",
            }
        return super().changelist_view(request, own | (extra_context or {}))

    def get_changelist_instance(self, request: HttpRequest) -> OfficeChangeList:
        """Give an empty list of upcoming bookings what became of those that the search finds."""
        changelist = cast(OfficeChangeList, super().get_changelist_instance(request))
        is_upcoming = changelist.params.get(TabFilter.parameter_name) == UPCOMING
        if is_upcoming and changelist.query.strip() and not changelist.result_list:
            found = self.get_queryset(request)
            found = found.filter(search_bookings_by_term(changelist.query, found))
            changelist.former_bookings = former_bookings(request, found)
        return changelist

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Booking], search_term: str
    ) -> tuple[QuerySet[Booking], bool]:
        is_narrowed = bool(search_term.strip())
        return queryset.filter(
            search_bookings_by_term(search_term, queryset)
        ) if is_narrowed else queryset, False

    def list_shortcuts(self, changelist: OfficeChangeList) -> list[Shortcut]:
        """Return the periods: each takes the place of the tab and of other days."""
        chosen = changelist.params.get(PERIOD)
        return [
            Shortcut(
                str(words),
                changelist.get_query_string(
                    {} if period == chosen else {PERIOD: period}, remove=OTHER_DAYS
                ),
                period == chosen,
            )
            for period, words in PERIODS.items()
        ]

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        if request.GET.get(PERIOD) in PERIODS:
            return ORDERS[UPCOMING]
        return ORDERS.get(request.GET.get(TabFilter.parameter_name, ""), self.ordering)

    # Translators: column with the time at which a booking starts.
    @display(description=_("start"), ordering="event__start")
    def starts(self, booking: Booking) -> str:
        return moment_words(booking.event.start)

    @display(description=_("customer"), ordering=Subquery(FIRST_NAME))
    def customer(self, booking: Booking) -> str:
        people = booking.customers.all()
        return f"{people[0].name}{f' +{len(people) - 1}' if people[1:] else ''}" if people else "–"

    # Translators: column with what is booked, such as "Haircut".
    @display(description=pgettext_lazy("booking", "what"), ordering="event__what")
    def what(self, booking: Booking) -> str:
        return booking.counted(booking.event.what)

    @display(description=_("state"), ordering="state", label=STATE_COLOURS)
    def shown_state(self, booking: Booking) -> LabelledWords:
        state = shown_state(booking)
        return LabelledWords(state, state_words(state))

    @action(description=_("New booking"), icon="add", url_path="new", permissions=["make"])
    def new_booking(self, request: HttpRequest) -> HttpResponse:
        """Open the calendar's form of a new booking."""
        return redirect(f"{reverse('admin:calendar')}?new=1")

    @action(
        description=_("Export as CSV"), icon="download", url_path="export", permissions=["view"]
    )
    def export(self, request: HttpRequest) -> HttpResponse:
        return show_export(self, request)

    def export_rows(self, request: HttpRequest) -> HttpResponse:
        return export_rows(self, request)

    def has_make_permission(self, request: HttpRequest) -> bool:
        return MAKE.is_held(request)

    # --- Actions ----------------------------------------------------------------------------------
    def confirm_bulk_action(
        self, request: HttpRequest, bookings: QuerySet[Booking], name: str
    ) -> HttpResponse:
        """Ask for confirmation; list the first bookings with their e-mails."""
        count = bookings.count()
        rows = list(bookings.select_related("app", "event", "resource")[:MAX_NAMED])
        addressees = Recipients({booking.app_id for booking in rows})
        lines = []
        for booking in rows:
            if GRAPHS[booking.graph].next_state(booking.state, name) is None:
                # Translators: state: such as "confirmed" or "cancelled by customer".
                refused = _("Will be refused: the booking is %(state)s.")
                mails = [refused % {"state": state_words(booking.state)}]
            else:
                mails = mail_lines(booking, name, addressees)
            lines.append("\n".join([booking_words(booking), *mails]))
        if count > MAX_NAMED:
            left = count - MAX_NAMED
            more = ngettext("and %(count)s more booking", "and %(count)s more bookings", left)
            lines.append(more % {"count": left})
        title, button = BULK_QUESTIONS[name]
        return self.ask_confirmation(
            request,
            None,
            title=_counted(title, count),
            sentence=gettext(
                "Each booking is processed separately. You can undo it for ten seconds, then these"
                " e-mails will be sent:"
            ),
            button=_counted(button, count),
            back=request.get_full_path(),
            back_words=ngettext("Keep the booking", "Keep the bookings", count),
            form=BulkActionForm(may_close=BLOCK.is_held(request)),
            lines=lines,
            repeated=ACTION_FIELDS,
        )

    def postpone_bulk_action(
        self, request: HttpRequest, bookings: QuerySet[Booking], name: str
    ) -> HttpResponse | None:
        """Postpone the action for each booking that the account may change."""
        form = BulkActionForm(request.POST, may_close=BLOCK.is_held(request))
        if not form.is_valid():
            messages.error(request, _("The message is too long."))
            return None
        allowed = []
        rows = bookings.select_related("app", "event", "resource")
        for booking in rows.prefetch_related(further_events()):
            if self.has_act_permission(request, booking):
                allowed.append(booking)
            else:
                words = _("%(booking)s: you can only view it.")
                messages.error(request, words % {"booking": booking_words(booking)})
        return postpone_actions(request, allowed, name, form.cleaned_data)

    # --- Pages ------------------------------------------------------------------------------------
    def extra_pages(self) -> Iterable[ExtraPage]:
        return (
            ExtraPage("filters/", save_filter, "filters", "view"),
            ExtraPage("filters/<uuid:filter_id>/", change_filter, "filter", "view"),
            ExtraPage("export/rows/", self.export_rows, "export_rows", "view"),
            ExtraPage("<path:object_id>/act/", self.act, "act", "act"),
            ExtraPage("<path:object_id>/outcome/", self.outcome, "outcome", "act"),
            ExtraPage("<path:object_id>/note/", self.save_note, "note", "act"),
            ExtraPage("<path:object_id>/details/", self.edit_details, "details", "act"),
            ExtraPage("<path:object_id>/end-links/", self.end_links, "end_links", "act"),
            ExtraPage("<path:object_id>/move/", self.move, "move", "act"),
            ExtraPage("<path:object_id>/free-times/", self.free_times, "free_times", "act"),
            ExtraPage("<path:object_id>/print/", self.print_participants, "print", "view"),
            ExtraPage("<path:object_id>/seats/", self.change_seats, "seats", "act"),
            ExtraPage("<path:object_id>/add/", self.add_participant, "participant", "act"),
            ExtraPage("<path:object_id>/message/", self.message_all, "message", "act"),
        )


def search_bookings_by_term(term: str, rows: QuerySet[Booking]) -> Q:
    """Return the filter by booking id, external id, e-mail address or its start, phone digits, or
    words of a name: one customer of the booking matches all words.

    rows: the bookings that are searched.
    """
    term = term.strip()
    ids = booking_ids_by_external_id(rows, term)
    by_external_id = Q(id__in=ids) if ids else Q()
    try:
        return by_external_id | Q(id=uuid.UUID(term))
    except ValueError:
        return by_external_id | Q(id__in=search_customers(term).values("booking_id"))
