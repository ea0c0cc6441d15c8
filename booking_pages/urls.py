from django.urls import path

from booking_pages.views import hosted_project_page, reschedule

urlpatterns = [
    # Any text: a link that was mangled on its way is answered by a page too.
    path("bookings/<str:booking_id>/reschedule", reschedule.ReschedulePageView.as_view()),
    path("<path:project_slug>", hosted_project_page.BookPageView.as_view()),
]
