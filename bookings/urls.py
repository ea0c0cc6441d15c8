from django.urls import path

from bookings.pages import email_links
from bookings.views import actions, bookings, bulk, customers, holds, proof_of_work
from bookings.views import groups as bookings_with_seats

urlpatterns = [
    path("bookings", bookings.BookingsView.as_view()),
    path("bookings/reserve", holds.ReserveView.as_view()),
    path("bookings/reserve/extend", holds.ExtendHoldView.as_view()),
    path("bookings/reserve/<uuid:reservation_id>", holds.HoldView.as_view()),
    path("bookings/reserve/<uuid:reservation_id>/verify", holds.VerifyHoldView.as_view()),
    path("challenge", proof_of_work.ChallengeView.as_view()),
    path("bookings/bulk", bulk.BulkView.as_view()),
    path("bookings/groups", bookings_with_seats.GroupBookingsView.as_view()),
    path("bookings/groups/<uuid:group_id>", bookings_with_seats.GroupBookingView.as_view()),
    path("bookings/<uuid:booking_id>", bookings.BookingView.as_view()),
    path("bookings/<uuid:booking_id>/reschedule", actions.RescheduleView.as_view()),
    # Any text: a malformed link gets an HTML error page too.
    path(
        "bookings/<str:booking_id>/external_action/<str:action>",
        email_links.ExternalActionView.as_view(),
    ),
    path("bookings/<uuid:booking_id>/<str:action>", actions.ActionView.as_view()),
    path("customers", customers.CustomersView.as_view()),
    path("customers/export", customers.CustomerExportView.as_view()),
    path("customers/erase", customers.CustomerEraseView.as_view()),
]
