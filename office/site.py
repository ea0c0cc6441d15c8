"""The back office: platform staff see every app, an app's members see theirs."""

from typing import Any

from django.http import HttpRequest
from django.template.response import TemplateResponse
from unfold.sites import UnfoldAdminSite

from apps_config.scope import scope_of
from office.today import today_context


class OfficeSite(UnfoldAdminSite):
    index_title = "Today"
    index_template = "office/today.html"

    def has_permission(self, request: HttpRequest) -> bool:
        """Staff, and whoever is a member of an app that is not archived."""
        return bool(request.user.is_active and scope_of(request).is_open)

    def index(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        return super().index(request, today_context(request) | (extra_context or {}))
