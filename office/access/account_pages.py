"""Pages of one's own account: second factors (allauth's pages) and sessions."""

from typing import Any

from allauth.account.views import logout, reauthenticate
from django.contrib import messages
from django.contrib.admin import site
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import include, path, reverse
from django.utils.translation import gettext as _
from django.views.i18n import set_language

from access.sessions import end_sessions, open_sessions
from apps_config.client_access import allowed_clients, end_client_access
from apps_config.models import Account, App
from office.access.accept_invitation import show_invitation
from office.access.keys import SCOPE_WORDS
from office.access.programs import authorize
from office.access.sign_in import finish_oidc, start_oidc
from office.base.model_admin_pages import CONFIRMED, find_row, is_confirmed
from office.base.scope import account_of

PREFIX = "/admin/account/"
# In the order in which they are looked for: Edge names Chrome, and Chrome names Safari.
BROWSERS = (
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)


def office_context(request: HttpRequest) -> dict[str, Any]:
    """Context processor: what the theme's templates need, on allauth's pages too."""
    if not request.path.startswith(PREFIX):
        return {}
    return site.each_context(request) | {"title": _("Security")}


def name_browser(user_agent: str) -> str:
    """Return a short name of a User-Agent header.

    >>> name_browser("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
    'Firefox on Linux'
    """
    browser = next((name for mark, name in BROWSERS if mark in user_agent), _("Unknown browser"))
    system = next((name for mark, name in SYSTEMS if mark in user_agent), "")
    # Translators: "Firefox on Linux".
    browser_and_system = _("%(browser)s on %(system)s")
    return browser_and_system % {"browser": browser, "system": system} if system else browser


@login_required
def show_sessions(request: HttpRequest) -> HttpResponse:
    """List one's sessions; a POST ends one of them, or all others."""
    account = account_of(request)
    rows = open_sessions(account)
    current = request.session.session_key
    if request.method == "POST":
        if "program" in request.POST:
            row = find_row(allowed_clients(account), request.POST["program"])
            end_client_access(row)
            messages.success(
                request, _("%(program)s has no more access.") % {"program": row.description}
            )
            return HttpResponseRedirect(reverse("account_sessions"))
        if "others" in request.POST and not is_confirmed(request):
            return _confirm_ending_sessions(request, rows.exclude(session_key=current).count())
        if "others" in request.POST:
            ended = end_sessions(rows.exclude(session_key=current))
            messages.success(request, _("Sessions ended: %(count)s.") % {"count": ended})
        else:
            row = find_row(rows, request.POST.get("session", ""))
            end_sessions(rows.filter(pk=row.pk))
            messages.success(request, _("The session has ended."))
        return HttpResponseRedirect(reverse("account_sessions"))
    sessions = [
        {
            "row": row,
            "browser": name_browser(row.user_agent),
            "is_current": row.session_key == current,
        }
        for row in rows
    ]
    context = {
        "title": _("Your sessions"),
        "sessions": sessions,
        "programs": list_programs(account),
    }
    return render(request, "office/sessions.html", context)


def list_programs(account: Account) -> list[dict[str, Any]]:
    """What the account allows programs, for its page."""
    rows = list(allowed_clients(account))
    apps = App.objects.in_bulk([row.only_app_id for row in rows])
    return [
        {
            "row": row,
            "app": apps.get(row.only_app_id),
            "may": [SCOPE_WORDS[scope] for scope in row.scopes or ()],
        }
        for row in rows
    ]


def _confirm_ending_sessions(request: HttpRequest, count: int) -> HttpResponse:
    context = {
        "title": _("End all other sessions?"),
        "sentence": _("Other browsers and devices have to log in again."),
        "lines": [_("Sessions to end: %(count)s") % {"count": count}],
        "fields": [("others", "1"), (CONFIRMED, "yes")],
        "button": _("End the sessions"),
        "button_style": "danger",
        "back": reverse("account_sessions"),
    }
    return render(request, "office/confirm.html", context)


def redirect_to_log_in(request: HttpRequest) -> HttpResponse:
    return HttpResponseRedirect(reverse("admin:login"))


urlpatterns = [
    path("language/", set_language, name="set_language"),
    path("account/programs/authorize", authorize, name="oauth_authorize"),
    path("account/sessions/", show_sessions, name="account_sessions"),
    path("account/security/", include("allauth.mfa.urls")),
    # Names that allauth's pages refer to.
    path("account/log-in/", redirect_to_log_in, name="account_login"),
    path("account/log-out/", logout, name="account_logout"),
    path("account/confirm/", reauthenticate, name="account_reauthenticate"),
    path("oidc/", start_oidc, name="oidc_login"),
    path("oidc/callback/", finish_oidc, name="oidc_callback"),
    path("invitations/<uuid:invitation_id>/", show_invitation, name="invitation"),
]
