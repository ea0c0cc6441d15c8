"""Staff's view of bookings: to look after, changed only by what the graph allows."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils import timezone

from apps_config.office import ReadOnlyAdmin, ReadOnlyInline
from bookings.models import (
    Booking,
    BookingNotification,
    BookingTally,
    Bulk,
    Customer,
    Series,
    StateChange,
)
from bookings.services import Actor, apply_action
from scheduling.api.errors import Refusal


class CustomerInline(ReadOnlyInline):
    model = Customer
    fields = ("name", "email", "phone", "voip", "timezone")


class StateChangeInline(ReadOnlyInline):
    model = StateChange
    fields = ("created_at", "from_state", "action", "to_state", "actor", "source", "message")


class BookingNotificationInline(ReadOnlyInline):
    model = BookingNotification


class SeatInline(ReadOnlyInline):
    """The seats of a group."""

    model = Booking
    fk_name = "owner_booking"
    verbose_name_plural = "seats"
    fields = ("id", "state", "graph", "created_at")
    readonly_fields = fields
    show_change_link = True


def offer_action(action: str) -> Any:
    """An admin action that leads the selected bookings on, each through the service."""

    def run(self: "BookingAdmin", request: HttpRequest, bookings: Any) -> None:
        actor = Actor(name=request.user.email, source="admin")
        for booking in bookings.select_related("app"):
            try:
                apply_action(
                    app=booking.app,
                    booking_id=booking.id,
                    action=action,
                    actor=actor,
                    now=timezone.now(),
                )
                self.message_user(request, f"{booking.id}: {action} is done.")
            except Refusal as refusal:
                self.message_user(request, f"{booking.id}: {refusal.message}", "ERROR")

    run.__name__ = f"apply_{action}"
    return admin.action(description=f"{action.capitalize()} the selected", permissions=["act"])(run)


@admin.register(Booking)
class BookingAdmin(ReadOnlyAdmin):
    app_paths = ("app",)
    list_display = ("id", "state", "graph", "start", "resource", "app", "created_at")
    list_filter = ("state", "graph", "completed")
    list_select_related = ("event", "resource", "app")
    search_fields = ("id", "customers__name", "customers__email", "customers__phone")
    show_full_result_count = False
    date_hierarchy = "created_at"
    actions = [
        offer_action(action) for action in ("confirm", "decline", "pay", "cancel", "complete")
    ]
    inlines = (CustomerInline, SeatInline, StateChangeInline, BookingNotificationInline)

    def get_inlines(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        is_group = obj is not None and obj.max_seats is not None
        return [one for one in self.inlines if is_group or one is not SeatInline]

    @admin.display(description="start", ordering="event__start")
    def start(self, booking: Booking) -> Any:
        return booking.event.start

    def has_act_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("bookings.change_booking")


@admin.register(BookingNotification)
class BookingNotificationAdmin(ReadOnlyAdmin):
    app_paths = ("booking__app",)
    list_display = ("booking_id", "type", "when_time", "when_unit", "when_type")
    search_fields = ("booking__id",)
    show_full_result_count = False


@admin.register(Customer)
class CustomerAdmin(ReadOnlyAdmin):
    app_paths = ("booking__app",)
    list_display = ("name", "email", "phone", "booking_id")
    search_fields = ("name", "email", "phone")
    show_full_result_count = False


@admin.register(StateChange)
class StateChangeAdmin(ReadOnlyAdmin):
    app_paths = ("booking__app",)
    list_display = ("created_at", "booking_id", "from_state", "action", "to_state", "source")
    list_filter = ("source",)
    search_fields = ("booking__id",)
    show_full_result_count = False


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
