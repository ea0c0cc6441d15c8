"""Log-in of the back office by e-mail address, for staff and members of apps."""

from math import ceil
from typing import Any

from allauth.account.internal.flows.login import record_authentication
from allauth.account.utils import perform_login
from django.conf import settings
from django.contrib.admin import site
from django.contrib.auth.views import LoginView
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from unfold.forms import AuthenticationForm

from access.known_devices import read_device
from access.log_in_failures import record_failure
from access.log_in_limits import TooManyFailures, count_log_in_attempt, typed_address
from apps_config.models import Account
from bookings.pages.formatting import in_minutes_words
from common.limits.hashing_slots import TooManyLogIns, hashing_slot
from common.limits.rate_limit import customer_network
from office.base.scope import load_account_scope


class LogInForm(AuthenticationForm):
    def clean(self) -> dict[str, Any]:
        """Raises TooManyFailures before the password is checked, and TooManyLogIns."""
        if not self.cleaned_data.get("username") or not self.cleaned_data.get("password"):
            return super().clean()
        email, now = typed_address(self.cleaned_data["username"]), timezone.now()
        account = Account.objects.filter(email=email).first()
        device, network = read_device(self.request, account), customer_network(self.request)
        attempt = count_log_in_attempt(email=email, network=network, device=device, now=now)
        try:
            with hashing_slot():
                found = super().clean()
        except ValidationError:
            record_failure(attempt, [account] if account else [], now=now)
            raise
        except TooManyLogIns:
            attempt.take_back()
            raise
        attempt.take_back()
        return found

    def confirm_login_allowed(self, user: Account) -> None:
        """Raises ValidationError unless the account is staff or a member of an open app."""
        if not load_account_scope(user).may_enter_office:
            raise ValidationError(
                self.error_messages["invalid_login"],
                code="invalid_login",
                params={"username": self.username_field.verbose_name},
            )


class LogInView(LoginView):
    """The log-in page. A correct password leads to the second factor, if the account has one."""

    template_name = "office/log_in.html"

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not settings.PASSWORD_LOGIN:
            raise PermissionDenied
        try:
            return super().post(request, *args, **kwargs)
        except (TooManyFailures, TooManyLogIns) as refusal:
            return show_refused(request, refusal)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        account = form.get_user()
        record_authentication(self.request, account, method="password")
        return perform_login(self.request, account, redirect_url=self.get_success_url())


def show_refused(request: HttpRequest, refusal: TooManyFailures | TooManyLogIns) -> HttpResponse:
    """Return the page that says when to try again."""
    seconds = int(refusal.headers["Retry-After"])
    is_limit = isinstance(refusal, TooManyFailures)
    when = in_minutes_words(ceil(seconds / 60)) if is_limit else ""
    context = site.each_context(request) | {"when": when}
    response = render(request, "office/locked.html", context, status=refusal.status)
    response["Retry-After"] = str(seconds)
    return response
