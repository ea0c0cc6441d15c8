"""Read-only admins of rows that belong to bookings. Bookings: office/bookings/admin.py."""

from django.contrib import admin

from apps_config.models import ListingTally
from bookings.models import (
    AppCustomer,
    BookingNotification,
    BookingTally,
    Bulk,
    Customer,
    Series,
    StateChange,
    UnverifiedBooking,
)
from office.base.model_admin import ReadOnlyAdmin


@admin.register(BookingNotification)
class BookingNotificationAdmin(ReadOnlyAdmin[BookingNotification]):
    app_paths = ("booking__app",)
    list_display = ("booking_id", "type", "when_time", "when_unit", "when_type")
    search_fields = ("booking__id",)


@admin.register(Customer)
class CustomerAdmin(ReadOnlyAdmin[Customer]):
    app_paths = ("booking__app",)
    list_display = ("name", "email", "phone", "booking_id")
    search_fields = ("name", "email", "phone")
    ordering = ("-id",)
    sortable_by = ()


@admin.register(AppCustomer)
class AppCustomerAdmin(ReadOnlyAdmin[AppCustomer]):
    app_paths = ("app",)
    list_display = ("address", "app", "bookings", "first_booking_at", "last_booking_at")
    list_select_related = ("app",)
    search_fields = ("address",)


@admin.register(ListingTally)
class ListingTallyAdmin(ReadOnlyAdmin[ListingTally]):
    app_paths = ("app",)
    list_display = ("app", "listing", "part", "period", "slot", "count")
    list_filter = ("listing",)
    list_select_related = ("app",)
    search_fields = ("app__slug", "part")


@admin.register(StateChange)
class StateChangeAdmin(ReadOnlyAdmin[StateChange]):
    app_paths = ("booking__app",)
    list_display = ("created_at", "booking_id", "from_state", "action", "to_state", "source")
    list_filter = ("source",)
    search_fields = ("booking__id",)


@admin.register(Series)
class SeriesAdmin(ReadOnlyAdmin[Series]):
    app_paths = ("app",)
    list_display = ("rrule", "app", "created_at")
    list_select_related = ("app",)
    search_fields = ("id", "rrule", "app__slug")


@admin.register(Bulk)
class BulkAdmin(ReadOnlyAdmin[Bulk]):
    app_paths = ("app",)
    list_display = ("id", "app", "created_at")
    list_select_related = ("app",)
    search_fields = ("id", "app__slug")


@admin.register(BookingTally)
class BookingTallyAdmin(ReadOnlyAdmin[BookingTally]):
    app_paths = ("app",)
    list_display = ("app", "state", "slot", "count")
    list_filter = ("state",)
    list_select_related = ("app",)
    search_fields = ("app__slug", "state")


@admin.register(UnverifiedBooking)
class UnverifiedBookingAdmin(ReadOnlyAdmin[UnverifiedBooking]):
    app_paths = ("app",)
    list_display = ("email", "project", "created_at", "expires_at", "ended_at")
    list_select_related = ("project",)
    search_fields = ("id", "email")
