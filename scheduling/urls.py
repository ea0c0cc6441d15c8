"""The roof: every path of the service. Unknown ones answer in the API's error shape below /v2."""

from django.contrib import admin
from django.urls import include, path

import apps_config.urls
import availability.urls
import booking_pages.urls
import bookings.urls
import external_calendars.urls
import notifications.urls
from scheduling.api.document import DocumentView
from scheduling.docs import show_docs
from scheduling.health import HealthView, ReadinessView
from scheduling.metrics import MetricsView

handler400 = "scheduling.api.errors.bad_request"
handler403 = "scheduling.api.errors.permission_denied"
handler404 = "scheduling.api.errors.not_found"
handler500 = "scheduling.api.errors.server_error"

urlpatterns = [
    path("healthz", HealthView.as_view()),
    path("readyz", ReadinessView.as_view()),
    path("metrics", MetricsView.as_view()),
    path("admin/", admin.site.urls),
    path("v2/", include(apps_config.urls)),
    path("v2/", include(availability.urls)),
    path("v2/", include(bookings.urls)),
    path("v2/", include(notifications.urls)),
    path("v2/", include(external_calendars.urls)),
    path("v2/openapi.json", DocumentView.as_view(), name="openapi"),
    path("book/", include(booking_pages.urls)),
    path("docs", show_docs, name="docs"),
]
