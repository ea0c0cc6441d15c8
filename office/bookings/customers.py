"""Customers as people: one row per e-mail address of an app, with their bookings."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, NamedTuple

from django.contrib import admin, messages
from django.contrib.admin.views.main import ORDER_VAR
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Exists, Max, Min, OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.http import urlencode
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy
from django.views.decorators.http import require_POST
from unfold.decorators import display
from unfold.views import ChangeList

from apps_config.models import Membership
from bookings.models import MAX_NOTE, AppCustomer, Booking, Customer
from bookings.privacy import Person, erase_person, write_export
from bookings.serializers.bodies import CustomerNoteSerializer
from bookings.services.customer_notes import notes_of, set_customer_note
from common.api.serializers import read_values_as
from common.db.indexed_values import in_values
from common.errors import Refusal
from common.time.zone_names import current_zone_name
from notifications.models import Delivery, Suppression
from office.base.change_list import CappedPaginator, OfficeChangeList
from office.base.dates import moment_words, office_zone
from office.base.labels import STATE_COLOURS, state_words
from office.base.list_filters import AppFilter, ChoiceFilter
from office.base.model_admin import ALL_EDITS, RowPageAdmin, refusal_words
from office.base.model_admin_pages import ExtraPage, TitledRow, find_row
from office.base.permissions import MAKE, has_permission
from office.base.scope import is_allowed, scope_of
from office.bookings.customer_search import search_customers
from office.bookings.tabs import CALLED_OFF

APP_PARAMETER = "app__id__exact"  # of `AppFilter`
MAX_SHOWN = 50  # past bookings on a person's page
MAIL_PROBLEMS = {
    Suppression.BOUNCED: _("e-mails bounce"),
    Suppression.UNSUBSCRIBED: _("unsubscribed from reminders"),
}


class CustomerFacts(NamedTuple):
    """What the bookings and suppressions of an address say. name, email: of the last booking."""

    name: str = ""
    email: str = ""
    last: datetime | None = None  # the latest that has begun
    next: datetime | None = None
    no_shows: int = 0
    mail_problem: str = ""


def fetch_customer_facts(people: Sequence[AppCustomer], now: datetime) -> dict[int, CustomerFacts]:
    """Return the facts by the rows' ids. Three queries, however many rows."""
    if not people:
        return {}
    snapshots = _customer_rows(people)
    has_ended = Q(booking__event__start__lte=now) & ~Q(booking__state__in=CALLED_OFF)
    to_come = Q(booking__event__end__gt=now, booking__completed=False)
    of_bookings = snapshots.values("app_id", "address").annotate(
        last=Max("booking__event__start", filter=has_ended),
        next=Min("booking__event__start", filter=to_come),
        no_shows=Count("booking", filter=Q(booking__outcome="no_show"), distinct=True),
    )
    counted = {(row["app_id"], row["address"]): row for row in of_bookings}
    moments = {person.last_booking_at for person in people}
    latest = snapshots.filter(booking__created_at__in=moments).order_by("id")
    typed = {(row.app_id, row.address): (row.name, row.email) for row in latest}
    problems = _mail_problems(people)
    facts = {}
    for person in people:
        key = (person.app_id, person.address)
        row: Mapping[str, Any] = counted.get(key, {})
        facts[person.pk] = CustomerFacts(
            *typed.get(key, ("", person.address)),
            row.get("last"),
            row.get("next"),
            row.get("no_shows", 0),
            problems.get(key, ""),
        )
    return facts


def _customer_rows(people: Sequence[AppCustomer]) -> QuerySet[Any]:
    """Return the bookings' customers with these addresses."""
    return Customer.objects.order_by().filter(
        address__in={person.address for person in people},
        app__in={person.app_id for person in people},
        booking__deleted_at=None,
    )


def _mail_problems(people: Sequence[AppCustomer]) -> dict[tuple[Any, str], str]:
    rows = Suppression.objects.filter(
        app__in={person.app_id for person in people},
        address__in={person.address for person in people},
    )
    problems: dict[tuple[Any, str], list[str]] = {}
    for row in rows.order_by("reason"):
        problems.setdefault((row.app_id, row.address), []).append(str(MAIL_PROBLEMS[row.reason]))
    return {key: ", ".join(words) for key, words in problems.items()}


def _chosen_app(request: HttpRequest) -> uuid.UUID | None:
    try:
        return uuid.UUID(request.GET.get(APP_PARAMETER, ""))
    except ValueError:
        return None


class AddressFilter(ChoiceFilter):
    """Customers of the newest rows of `matching`, as many as a list shows.

    app_path: lookup from these rows, which have an `address`, to their app.
    """

    app_path: ClassVar[str]

    def matching(self) -> QuerySet[Any]:
        """Return the rows of the chosen option, the newest first."""
        raise NotImplementedError

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[AppCustomer]
    ) -> QuerySet[AppCustomer]:
        if self.value() not in dict(self.options):
            return queryset
        rows = self.matching().filter(scope_of(request).rows(self.app_path))
        if chosen := _chosen_app(request):
            rows = rows.filter(**{self.app_path: chosen})
        # For each row one step of the index; a join reads all customers.
        person = AppCustomer.objects.filter(
            app=OuterRef(self.app_path), address=OuterRef("address")
        ).order_by()
        people = rows.annotate(person=Subquery(person.values("pk"))).values("person")
        return queryset.filter(in_values("pk", people[: CappedPaginator.MOST]))


class NoShowFilter(AddressFilter):
    title, parameter_name = _("no-shows"), "no_shows"
    options = (("yes", _("with no-shows")),)
    app_path = "booking__app"

    def matching(self) -> QuerySet[Customer]:
        rows = Customer.objects.filter(booking__outcome="no_show", booking__deleted_at=None)
        return rows.order_by("-booking__created_at", "-booking_id")


class MailProblemFilter(AddressFilter):
    title, parameter_name = _("mail problem"), "mail_problem"
    options = (("yes", _("any problem")), *MAIL_PROBLEMS.items())
    app_path = "app"

    def matching(self) -> QuerySet[Suppression]:
        rows = Suppression.objects.order_by("-id")
        return rows.filter(reason=self.value()) if self.value() in MAIL_PROBLEMS else rows


class CustomerList(OfficeChangeList):
    """Reads the facts of the page's rows."""

    result_list: Any

    def get_ordering_field_columns(self) -> dict[int, str]:
        """The order without a click is no one column's."""
        return super().get_ordering_field_columns() if ORDER_VAR in self.params else {}

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = list(self.result_list)
        facts = fetch_customer_facts(self.result_list, timezone.now())
        for person in self.result_list:
            person.facts = facts[person.pk]


@admin.register(AppCustomer)
class AppCustomerAdmin(RowPageAdmin[AppCustomer]):
    never = ALL_EDITS
    app_paths = ("app",)
    list_display = (
        *("name", "email", "bookings", "last", "next", "no_shows", "mail_problem"),
        *("last_booked", "app"),
    )
    list_display_links = ("name", "email")
    list_filter = (NoShowFilter, MailProblemFilter, ("app", AppFilter))
    list_select_related = ("app",)
    search_fields = ("address",)  # only shows the search field: see `get_search_results`
    search_help_text = _("Name, e-mail, phone number or external id")
    index_sorted = ("last_booked",)
    actions = None

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return CustomerList

    def get_index_sorted(self, request: HttpRequest) -> tuple[str, ...]:
        """The index of addresses begins with the app: it sorts those of one app."""
        scope = scope_of(request)
        is_one = len(scope.roles) == 1 or _chosen_app(request)
        return (*self.index_sorted, *(["email"] if is_one else []))

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[AppCustomer], search_term: str
    ) -> tuple[QuerySet[AppCustomer], bool]:
        if not search_term.strip():
            return queryset, False
        theirs = search_customers(search_term)
        matching = theirs.filter(app=OuterRef("app"), address=OuterRef("address"))
        return queryset.filter(Exists(matching.order_by())), False

    @display(description=_("name"))
    def name(self, person: Any) -> str:
        return person.facts.name or person.facts.email

    @display(description=_("e-mail"), ordering="address")
    def email(self, person: Any) -> str:
        return person.facts.email

    # Translators: column with the time of a customer's last booking.
    @display(description=pgettext_lazy("booking", "last"))
    def last(self, person: Any) -> str:
        return moment_words(person.facts.last)

    # Translators: column with the time of a customer's next booking.
    @display(description=pgettext_lazy("booking", "next"))
    def next(self, person: Any) -> str:
        return moment_words(person.facts.next)

    # Translators: column with the number of bookings to which a customer did not come.
    @display(description=_("no-shows"))
    def no_shows(self, person: Any) -> str:
        return str(person.facts.no_shows or "")

    @display(description=_("mail problem"))
    def mail_problem(self, person: Any) -> str:
        return person.facts.mail_problem

    # Translators: column with the time at which a customer last made a booking.
    @display(description=_("last booked"), ordering="last_booking_at")
    def last_booked(self, person: AppCustomer) -> str:
        return moment_words(person.last_booking_at)

    # --- The page of a person ---------------------------------------------------------------------
    def extra_pages(self) -> Iterable[ExtraPage]:
        return (
            ExtraPage("<path:object_id>/note/", self.save_note, "note", "note"),
            ExtraPage("<path:object_id>/export/", self.export, "export", "view"),
            ExtraPage("<path:object_id>/erase/", self.erase, "erase", "erase"),
        )

    def find(self, request: HttpRequest, object_id: str) -> AppCustomer:
        return find_row(self.get_queryset(request).select_related("app"), object_id)

    def has_note_permission(self, request: HttpRequest, person: AppCustomer | None = None) -> bool:
        return is_allowed(request, "bookings.change_booking", self.app_id_of_row(person))

    def has_erase_permission(self, request: HttpRequest, person: AppCustomer | None = None) -> bool:
        return is_allowed(request, "bookings.delete_customer", self.app_id_of_row(person))

    def row_title(self, row: AppCustomer) -> str:
        facts = fetch_customer_facts([row], timezone.now())[row.pk]
        return facts.name or facts.email

    def show_row(self, request: HttpRequest, object_id: str) -> HttpResponse:
        person, now = self.find(request, object_id), timezone.now()
        facts = fetch_customer_facts([person], now)[person.pk]
        bookings = _bookings_of(person)
        snapshot = _customer_rows([person]).order_by("-id").first()
        is_to_come = Q(event__end__gt=now) & ~Q(state__in=CALLED_OFF)
        past = bookings.exclude(is_to_come).order_by("-event__start", "-id")[:MAX_SHOWN]
        to_come = bookings.filter(is_to_come).order_by("event__start", "id")[:MAX_SHOWN]
        title = facts.name or facts.email
        query = urlencode({"q": facts.email})
        return self.show_page(
            request,
            "office/customer.html",
            title=title,
            original=TitledRow(person, title),
            person=person,
            email=facts.email,
            facts=facts,
            snapshot=snapshot,
            zone=current_zone_name(snapshot.timezone) if snapshot else "",
            last=moment_words(facts.last),
            next=moment_words(facts.next),
            first_booked=moment_words(person.first_booking_at),
            upcoming=_booking_lines(to_come),
            history=_booking_lines(past),
            all_bookings=f"{reverse('admin:bookings_booking_changelist')}?{query}",
            new_booking=reverse("admin:calendar")
            + f"?{urlencode({'app': str(person.app_id), 'new': '1', 'customer': facts.email})}",
            may_make=has_permission(request, person.app_id, MAKE),
            mails=reverse("admin:notifications_delivery_changelist")
            + f"?{urlencode({'q': facts.email, 'type': Delivery.EMAIL})}",
            may_see_mails=is_allowed(
                request, "notifications.view_delivery", person.app_id, Membership.VIEWER
            ),
            may_erase=self.has_erase_permission(request, person),
            may_note=self.has_note_permission(request, person),
            note=request.POST.get(
                "note", notes_of([person]).get((person.app_id, person.address), "")
            ),
            max_note=MAX_NOTE,
        )

    @method_decorator(require_POST)
    def save_note(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Store `note`, an internal one. A refused form is shown again."""
        person = self.find(request, object_id)
        if not self.has_note_permission(request, person):
            raise PermissionDenied
        note = request.POST.get("note", "").replace("\r\n", "\n").strip()
        body = {"email": person.address, "note": note}
        try:
            given = read_values_as(CustomerNoteSerializer, body)
            set_customer_note(app=person.app, email=given["email"], note=given["note"])
        except Refusal as refusal:
            messages.error(request, refusal_words(refusal))
            return self.show_row(request, object_id)
        messages.success(request, _("The note was saved."))
        return self.redirect_to_row(person)

    def export(self, request: HttpRequest, object_id: str) -> StreamingHttpResponse:
        """Return what the API's export of a person returns, as a file."""
        person = self.find(request, object_id)
        facts = fetch_customer_facts([person], timezone.now())[person.pk]
        pieces = write_export(Person(person.app, facts.email), zone=office_zone(request))
        return StreamingHttpResponse(
            pieces,
            content_type="application/json",
            headers={"Content-Disposition": 'attachment; filename="customer.json"'},
        )

    def erase(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask for confirmation; a POST erases the person's data."""
        person = self.find(request, object_id)
        if not self.has_erase_permission(request, person):
            raise PermissionDenied
        now = timezone.now()
        facts = fetch_customer_facts([person], now)[person.pk]
        if request.method == "POST":
            counts = erase_person(app=person.app, email=facts.email, now=now)
            self.log_change(request, person.app, "Erased a customer.")
            messages.success(request, _("Erased. Changed bookings: %(bookings)s.") % counts)
            return HttpResponseRedirect(self.list_url())
        name = facts.name or facts.email
        without_name = _("Bookings without a name from now on: %(count)s")
        lines = [without_name % {"count": person.bookings}]
        if facts.next:
            stays = _(
                "The next booking, %(when)s, stays: cancel it first if it will not take place."
            )
            lines.append(stays % {"when": moment_words(facts.next)})
        return self.ask_confirmation(
            request,
            person,
            title=_("Erase the data of %(name)s?") % {"name": name},
            sentence=_(
                "Names, addresses, numbers and messages of %(name)s (%(email)s) are deleted from"
                " bookings, e-mails and calls. This can't be undone."
            )
            % {"name": name, "email": facts.email},
            button=_("Erase %(name)s") % {"name": name},
            lines=lines,
        )


def _bookings_of(person: AppCustomer) -> QuerySet[Booking]:
    theirs = _customer_rows([person]).values("booking_id")
    rows = Booking.objects.for_app(person.app_id).filter(id__in=theirs)
    return rows.select_related("event", "resource")


def _booking_lines(bookings: Iterable[Booking]) -> list[dict[str, Any]]:
    """Return the bookings as lines of `office/lines.html`."""
    return [
        {
            "link": reverse("admin:bookings_booking_change", args=[row.id]),
            "when": moment_words(row.event.start),
            "who": row.counted(row.event.what),
            "resource": row.resource.name,
            "state": state_words(row.outcome or row.state),
            "colour": STATE_COLOURS.get(row.outcome or row.state, "info"),
        }
        for row in bookings
    ]


def customer_links(customers: Iterable[Customer]) -> dict[str, str]:
    """Return the URLs of the persons' pages by canonical address, of customers of one app."""
    addresses = {row.address: row for row in customers if row.address}
    if not addresses:
        return {}
    rows = AppCustomer.objects.filter(
        app__in={row.app_id for row in addresses.values()}, address__in=addresses
    )
    return {
        row.address: reverse("admin:bookings_appcustomer_change", args=[row.pk]) for row in rows
    }
