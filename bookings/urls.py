from django.urls import path

from bookings import external
from bookings.views import actions, bookings, bulk, groups, people, reserve

urlpatterns = [
    path("bookings", bookings.BookingsView.as_view()),
    path("bookings/reserve", reserve.ReserveView.as_view()),
    path("bookings/reserve/extend", reserve.ExtendHoldView.as_view()),
    path("bookings/reserve/<uuid:reservation_id>", reserve.HoldView.as_view()),
    path("bookings/bulk", bulk.BulkView.as_view()),
    path("bookings/groups", groups.GroupsView.as_view()),
    path("bookings/groups/<uuid:group_id>", groups.GroupView.as_view()),
    path("bookings/<uuid:booking_id>", bookings.BookingView.as_view()),
    path("bookings/<uuid:booking_id>/reschedule", actions.RescheduleView.as_view()),
    # Any text: a link that was mangled on its way is answered by a page too.
    path(
        "bookings/<str:booking_id>/external_action/<str:action>",
        external.ExternalActionView.as_view(),
    ),
    path("bookings/<uuid:booking_id>/<str:action>", actions.ActionView.as_view()),
    path("customers", people.CustomersView.as_view()),
    path("customers/export", people.CustomerExportView.as_view()),
    path("customers/erase", people.CustomerEraseView.as_view()),
]
