"""Staff's view of what belongs to bookings; the bookings themselves: office/bookings.py."""

from django.contrib import admin

from apps_config.office import ReadOnlyAdmin
from bookings.models import (
    BookingNotification,
    BookingTally,
    Bulk,
    Customer,
    Series,
    StateChange,
)


@admin.register(BookingNotification)
class BookingNotificationAdmin(ReadOnlyAdmin):
    app_paths = ("booking__app",)
    list_display = ("booking_id", "type", "when_time", "when_unit", "when_type")
    search_fields = ("booking__id",)


@admin.register(Customer)
class CustomerAdmin(ReadOnlyAdmin):
    app_paths = ("booking__app",)
    list_display = ("name", "email", "phone", "booking_id")
    search_fields = ("name", "email", "phone")
    ordering = ("-id",)
    sortable_by = ()


@admin.register(StateChange)
class StateChangeAdmin(ReadOnlyAdmin):
    app_paths = ("booking__app",)
    list_display = ("created_at", "booking_id", "from_state", "action", "to_state", "source")
    list_filter = ("source",)
    search_fields = ("booking__id",)


@admin.register(Series)
class SeriesAdmin(ReadOnlyAdmin):
    app_paths = ("app",)
    list_display = ("rrule", "app", "created_at")
    list_select_related = ("app",)
    search_fields = ("id", "rrule", "app__slug")


@admin.register(Bulk)
class BulkAdmin(ReadOnlyAdmin):
    app_paths = ("app",)
    list_display = ("id", "app", "created_at")
    list_select_related = ("app",)
    search_fields = ("id", "app__slug")


@admin.register(BookingTally)
class BookingTallyAdmin(ReadOnlyAdmin):
    app_paths = ("app",)
    list_display = ("app", "state", "slot", "count")
    list_filter = ("state",)
    list_select_related = ("app",)
    search_fields = ("app__slug", "state")
