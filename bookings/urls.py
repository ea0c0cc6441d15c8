from django.urls import path

from bookings import external, views

urlpatterns = [
    path("bookings", views.BookingsView.as_view()),
    path("bookings/<uuid:booking_id>", views.BookingView.as_view()),
    path("bookings/<uuid:booking_id>/reschedule", views.RescheduleView.as_view()),
    # Any text: a link that was mangled on its way is answered by a page too.
    path(
        "bookings/<str:booking_id>/external_action/<str:action>",
        external.ExternalActionView.as_view(),
    ),
    path("bookings/<uuid:booking_id>/<str:action>", views.ActionView.as_view()),
]
