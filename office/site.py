"""The back office's admin site: platform staff see every app, members see theirs."""

from typing import Any, cast

from allauth.account.adapter import get_adapter
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.functional import SimpleLazyObject
from django.utils.http import urlencode
from django.utils.module_loading import import_string
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.sites import UnfoldAdminSite

from office import urls
from office.access.account_password_links import ChoosePasswordView
from office.access.fresh_log_in import View, with_second_factor
from office.access.log_in import LogInView
from office.access.own_password import OwnPasswordView
from office.base.dates import office_zone
from office.base.permissions import MAKE
from office.base.row_choices import RowChoices
from office.base.scope import scope_of
from office.bookings.tabs import booking_tabs
from office.dashboard import today_context
from office.offline.device_files import show_manifest, show_offline_page, show_worker
from office.script_words import all_script_words

# Imports the admins, which need this site.
SEARCH = "office.command_search.find_everything"


class OfficeSite(UnfoldAdminSite):
    index_title = _("Today")
    index_template = "office/today.html"

    def register(self, model_or_iterable: Any, admin_class: Any = None, **options: Any) -> None:
        """Register a list, except allauth's own: they know no roles, and show secrets."""
        if admin_class is None or not admin_class.__module__.startswith("allauth."):
            super().register(model_or_iterable, admin_class, **options)

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """Add the time zone of lists and pages, and the texts of scripts: both when a page shows
        them.
        """
        return {
            **super().each_context(request),
            "office_zone": SimpleLazyObject(lambda: office_zone(request)),
            "office_words": all_script_words,
            "may_make_bookings": SimpleLazyObject(lambda: MAKE.is_held(request)),
        }

    def get_app_list(
        self, request: HttpRequest, app_label: str | None = None
    ) -> list[dict[str, Any]]:
        """Return the lists of one package for its page. No other page shows them, and to check the
        account's rights on every list would be a part of each page's time.
        """
        return super().get_app_list(request, app_label) if app_label else []

    def get_tabs_list(self, request: HttpRequest) -> list[dict[str, Any]]:
        return [booking_tabs(request)]

    def search(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Return the results for the dialog of Ctrl+K. Not cached, as the theme does: a right that
        was taken away counts at once.
        """
        term = request.GET.get("s", "").strip()
        if not term:
            return HttpResponse()
        find = import_string(SEARCH)
        results = find(request, term)
        return TemplateResponse(
            request, "unfold/helpers/command_results.html", {"results": results}
        )

    def admin_view(self, view: View, cacheable: bool = False) -> View:
        """Also require the second factor that REQUIRE_SECOND_FACTOR demands."""
        is_open = view in (self.logout, self.i18n_javascript)
        return super().admin_view(view if is_open else with_second_factor(view), cacheable)

    def has_permission(self, request: HttpRequest) -> bool:
        """Admit staff, and members of apps that are not archived."""
        return bool(request.user.is_active and scope_of(request).may_enter_office)

    def login(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the log-in page, or go to the first page if the account may enter."""
        start = reverse("admin:index", current_app=self.name)
        if request.method == "GET" and self.has_permission(request):
            return HttpResponseRedirect(start)
        target = request.POST.get("next") or request.GET.get("next") or start
        context = {
            **self.each_context(request),
            "title": gettext("Log in"),
            "app_path": request.get_full_path(),
            "username": request.user.get_username(),
            "next": target,
            "next_query": urlencode({"next": target}),
            "oidc_name": settings.OIDC_NAME if settings.OIDC_ISSUER else "",
            "has_passwords": settings.PASSWORD_LOGIN,
            **(extra_context or {}),
        }
        request.current_app = self.name
        page = LogInView.as_view(extra_context=context, authentication_form=self.login_form)
        return cast(HttpResponse, page(request))

    def logout(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if request.method == "POST" and request.user.is_authenticated:
            get_adapter().logout(request)
        return super().logout(request, extra_context)

    def autocomplete_view(self, request: HttpRequest) -> HttpResponse:
        return cast(HttpResponse, RowChoices.as_view(admin_site=self)(request))

    def password_change(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        request.current_app = self.name
        context = {**self.each_context(request), **(extra_context or {})}
        return cast(HttpResponse, OwnPasswordView.as_view(extra_context=context)(request))

    def index(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        return super().index(request, today_context(request) | (extra_context or {}))

    def extra_urls(self) -> list[URLPattern]:
        return [
            *urls.paths(self.admin_view),
            # For a device, without a log-in: none has anybody's data.
            path("office.webmanifest", show_manifest, name="manifest"),
            path("offline.js", show_worker, name="offline_worker"),
            path("offline/", show_offline_page, name="offline"),
            # For people who can't log in yet: the link itself grants access.
            path(
                "password/<uidb64>/<token>/", ChoosePasswordView.as_view(), name="choose_password"
            ),
        ]
