"""What the back office asks of a session: a second factor, and a fresh log-in before keys and
members are added, and before somebody else's account is changed.
"""

import time
from collections.abc import Callable
from functools import wraps
from typing import Any

from allauth.account import app_settings
from allauth.account.authentication import get_authentication_records
from allauth.account.internal.flows.reauthentication import get_reauthentication_flows
from allauth.core.exceptions import ImmediateHttpResponse, ReauthenticationRequired
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from apps_config.second_factors import has_second_factor, must_have_second_factor
from office.base.scope import account_of

View = Callable[..., HttpResponseBase]


def came_from_provider(request: HttpRequest) -> bool:
    """Whether the session's log-in was with OpenID Connect, whose provider has its own factors."""
    records = get_authentication_records(request, account_of(request))
    return any(record["method"] == "socialaccount" for record in records)


def with_second_factor(view: View) -> View:
    """Send an account that must have a second factor, and has none, to the page to set one up."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        account = account_of(request)
        if not must_have_second_factor(account) or came_from_provider(request):
            return view(request, *args, **kwargs)
        if has_second_factor(account):
            return view(request, *args, **kwargs)
        messages.warning(request, _("Your account needs a second factor. Add one to continue."))
        return HttpResponseRedirect(reverse("mfa_index"))

    return guarded


def has_fresh_log_in(request: HttpRequest) -> bool:
    """Whether the session's last password or second factor is only minutes old."""
    records = get_authentication_records(request, account_of(request))
    return bool(records) and time.time() - records[-1]["at"] < app_settings.REAUTHENTICATION_TIMEOUT


def require_fresh_log_in(request: HttpRequest) -> None:
    """Ask for the password or second factor again, unless the last one is only minutes old.

    Then the request goes on; a POST is stored in the session until then. People whom only the
    identity provider knows log in there again. Raises ReauthenticationRequired or
    ImmediateHttpResponse, which allauth's middleware answers.
    """
    if has_fresh_log_in(request):
        return
    if settings.OIDC_ISSUER and not get_reauthentication_flows(account_of(request)):
        target = urlencode({"next": request.get_full_path()})
        raise ImmediateHttpResponse(HttpResponseRedirect(f"{reverse('oidc_login')}?{target}"))
    raise ReauthenticationRequired
