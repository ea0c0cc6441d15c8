from django.urls import path

from bookings.pages import email_links
from bookings.views import bookings, bulk, customers, groups, holds, proof_of_work, reports
from common.api.router import ApiRouter

router = ApiRouter()
router.register("bookings/reserve", holds.HoldViewSet, "holds")
router.register("bookings/bulk", bulk.BulkViewSet, "bulk")
router.register("bookings/groups", groups.GroupViewSet, "groups")
router.register("bookings", bookings.BookingViewSet, "bookings")
router.register("challenge", proof_of_work.ChallengeViewSet, "challenge")
router.register("customers", customers.CustomerViewSet, "customers")
router.register("reports", reports.ReportViewSet, "reports")

urlpatterns = [
    # Any text: a malformed link gets an HTML error page too.
    path(
        "bookings/<str:booking_id>/external_action/<str:action>",
        email_links.ExternalActionView.as_view(),
    ),
    *router.urls,
]
