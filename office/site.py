"""The back office: platform staff see every app, an app's members see theirs."""

from django.http import HttpRequest
from unfold.sites import UnfoldAdminSite

from apps_config.scope import scope_of


class OfficeSite(UnfoldAdminSite):
    index_title = "Today"
    enable_nav_sidebar = False

    def has_permission(self, request: HttpRequest) -> bool:
        """Staff, and whoever is a member of an app that is not archived."""
        return bool(request.user.is_active and scope_of(request).is_open)
