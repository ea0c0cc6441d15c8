"""Read-only admins of rows that belong to bookings. Bookings: office/bookings/admin.py."""

from django.contrib import admin
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy
from unfold.decorators import display

from apps_config.models import ListingTally
from bookings.models import (
    BookingNotification,
    BookingTally,
    Bulk,
    Customer,
    Series,
    StateChange,
    UnverifiedBooking,
)
from common.zone_names import current_zone_name
from office.base.dates import moment_words
from office.base.event_notification_forms import CHOICE_WORDS
from office.base.event_notification_words import event_notification_words
from office.base.labels import ACTION_WORDS, STATE_WORDS, state_words
from office.base.model_admin import BookingPartAdmin, ChoiceFilter, ReadOnlyAdmin


@admin.register(BookingNotification)
class BookingNotificationAdmin(BookingPartAdmin[BookingNotification]):
    list_display = ("reminder", "shown_booking")
    search_fields = ("booking__id",)
    sortable_by = ()
    words = CHOICE_WORDS

    @display(description=_("reminder"))
    def reminder(self, row: BookingNotification) -> str:
        return event_notification_words(row)

    def row_title(self, row: BookingNotification) -> str:
        return event_notification_words(row)


@admin.register(Customer)
class CustomerAdmin(BookingPartAdmin[Customer]):
    list_display = ("name", "email", "phone", "shown_booking")
    search_fields = ("name", "email", "phone")
    ordering = ("-id",)
    sortable_by = ()

    @display(description=_("time zone"))
    def shown_timezone(self, row: Customer) -> str:
        return current_zone_name(row.timezone)


@admin.register(ListingTally)
class ListingTallyAdmin(ReadOnlyAdmin[ListingTally]):
    list_display = ("app", "listing", "shown_part", "period", "slot", "count")
    list_filter = ("listing",)
    list_select_related = ("app",)
    search_fields = ("app__slug", "part")

    @display(description=_("part"), ordering="part")
    def shown_part(self, row: ListingTally) -> str:
        return state_words(row.part)


SOURCE_WORDS = {
    # Translators: this and the next ones: by what a booking was changed.
    "api": _("API"),
    "widget": _("booking page"),
    "admin": _("back office"),
    "link": _("link in an e-mail"),
    "timer": _("the service"),
    "calendar": _("connected calendar"),
}


class SourceFilter(ChoiceFilter):
    # Translators: filter: by what a booking was changed, such as "API" or "booking page".
    title = _("by")
    parameter_name = "source"
    options = tuple(SOURCE_WORDS.items())


@admin.register(StateChange)
class StateChangeAdmin(BookingPartAdmin[StateChange]):
    list_display = ("creation_time", "shown_booking", "change", "shown_source")
    list_filter = (SourceFilter,)
    search_fields = ("booking__id",)
    sortable_by = ()
    words = {
        "from_state": STATE_WORDS,
        "to_state": STATE_WORDS,
        "action": ACTION_WORDS,
        "source": SOURCE_WORDS,
    }

    @display(description=_("time"))
    def creation_time(self, row: StateChange) -> str:
        return moment_words(row.created_at)

    # Translators: column with the change of a booking's state: "pending → confirmed".
    @display(description=pgettext_lazy("noun", "change"))
    def change(self, row: StateChange) -> str:
        return self.row_title(row)

    # Translators: column: by what a booking was changed, such as "API" or "booking page".
    @display(description=_("by"))
    def shown_source(self, row: StateChange) -> str:
        return str(SOURCE_WORDS[row.source])

    def row_title(self, row: StateChange) -> str:
        """Return `new → confirmed`."""
        return f"{state_words(row.from_state)} → {state_words(row.to_state)}"


@admin.register(Series)
class SeriesAdmin(ReadOnlyAdmin[Series]):
    app_paths = ("app",)
    list_display = ("rrule", "app", "created_at")
    list_select_related = ("app",)
    search_fields = ("id", "rrule", "app__slug")


@admin.register(Bulk)
class BulkAdmin(ReadOnlyAdmin[Bulk]):
    app_paths = ("app",)
    list_display = ("creation_time", "app")
    list_select_related = ("app",)
    search_fields = ("id", "app__slug")
    sortable_by = ()

    @display(description=_("created"))
    def creation_time(self, row: Bulk) -> str:
        return moment_words(row.created_at)

    def row_title(self, row: Bulk) -> str:
        return _("Bulk request, %(when)s") % {"when": moment_words(row.created_at)}


@admin.register(BookingTally)
class BookingTallyAdmin(ReadOnlyAdmin[BookingTally]):
    list_display = ("app", "shown_state", "slot", "count")
    list_select_related = ("app",)
    search_fields = ("app__slug", "state")

    @display(description=_("state"), ordering="state")
    def shown_state(self, row: BookingTally) -> str:
        return state_words(row.state)

    def row_title(self, row: BookingTally) -> str:
        return f"{state_words(row.state).capitalize()}: {row.count}"


@admin.register(UnverifiedBooking)
class UnverifiedBookingAdmin(ReadOnlyAdmin[UnverifiedBooking]):
    app_paths = ("app",)
    list_display = ("email", "project", "created_at", "expires_at", "ended_at")
    list_select_related = ("project",)
    search_fields = ("id", "email")
    sortable_by = ()

    def row_title(self, row: UnverifiedBooking) -> str:
        when = moment_words(row.created_at)
        # Translators: an unverified booking that has ended; its e-mail address is deleted.
        return f"{row.email}, {when}" if row.email else _("Ended, %(when)s") % {"when": when}
