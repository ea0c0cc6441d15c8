"""The back office: platform staff see every app, an app's members see theirs."""

import uuid
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from unfold.sites import UnfoldAdminSite

from apps_config.models import Account
from apps_config.scope import scope_of
from office import urls
from office.passwords import ChoosePasswordView, make_link
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

    def extra_urls(self) -> list[URLPattern]:
        return [
            *urls.paths(self.admin_view),
            path(
                "accounts/<uuid:account_id>/password-link/",
                self.admin_view(self.password_link),
                name="apps_config_account_link",
            ),
            # For who can't log in yet: the link itself is the right to it.
            path(
                "password/<uidb64>/<token>/", ChoosePasswordView.as_view(), name="choose_password"
            ),
        ]

    def password_link(self, request: HttpRequest, account_id: uuid.UUID) -> HttpResponse:
        return make_link(self._registry[Account], request, account_id)
