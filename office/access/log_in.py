"""Log-in of the back office by e-mail address, for staff and members of apps."""

from typing import Any

from allauth.account.utils import perform_login
from django.contrib.admin import site
from django.contrib.auth.views import LoginView
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from unfold.forms import AuthenticationForm

from apps_config.models import Account
from common.email_address import canonical_address
from office.base.scope import load_account_scope


class LogInForm(AuthenticationForm):
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

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        return perform_login(self.request, form.get_user(), redirect_url=self.get_success_url())


def tried_email(request: HttpRequest, credentials: dict[str, Any] | None = None) -> str:
    """Return the e-mail address whose password is tried: counted in its canonical form, as accounts
    are found.
    """
    given = (
        (credentials or {}).get("username")
        or (credentials or {}).get("email")
        or request.POST.get("username")
        or ""
    )
    return canonical_address(str(given).strip())[:254].replace("\0", "")


def refuse_locked_out(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
    """Return the answer after too many failed log-ins."""
    response = render(request, "office/locked.html", site.each_context(request), status=429)
    response["Retry-After"] = "900"
    return response
