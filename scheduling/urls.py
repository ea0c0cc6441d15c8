"""URL configuration of the whole service. Unknown paths below /v2 get the API's error format."""

from django.contrib import admin
from django.urls import include, path

import access.urls
import agents.urls
import apps_config.urls
import availability.urls
import booking_pages.urls
import bookings.urls
import external_calendars.urls
import notifications.urls
from booking_pages.views.service_home_page import show_home
from common.documentation_site import show_documentation
from common.openapi.docs_page import show_docs
from common.openapi.document import DocumentView
from office.access import account_pages, programs
from ops.agent_documents import CATALOG_PATH, show_api_catalog, show_llms_text
from ops.api_root import ApiRootView
from ops.health import HealthView, ReadinessView
from ops.metrics import MetricsView

handler400 = "common.errors.bad_request"
handler403 = "common.errors.permission_denied"
handler404 = "common.errors.not_found"
handler500 = "common.errors.server_error"

urlpatterns = [
    path("", show_home, name="home"),
    path("llms.txt", show_llms_text),
    path(CATALOG_PATH.removeprefix("/"), show_api_catalog),
    path("healthz", HealthView.as_view()),
    path("readyz", ReadinessView.as_view()),
    path("metrics", MetricsView.as_view()),
    path("admin/", include(account_pages)),
    path(".well-known/oauth-authorization-server", programs.show_metadata),
    path("oauth/token", programs.issue_token, name="oauth_token"),
    path("oauth/revoke", programs.revoke_token, name="oauth_revoke"),
    path("admin/", admin.site.urls),
    path("v2", ApiRootView.as_view()),
    path("v2/", include(apps_config.urls)),
    path("v2/", include(access.urls)),
    path("v2/", include(availability.urls)),
    path("v2/", include(bookings.urls)),
    path("v2/", include(notifications.urls)),
    path("v2/", include(external_calendars.urls)),
    path("v2/openapi.json", DocumentView.as_view(), name="openapi"),
    path("", include(agents.urls)),
    path("book/", include(booking_pages.urls)),
    path("docs", show_docs, name="docs"),
    path("docs/<path:path>", show_documentation, name="documentation"),
]
