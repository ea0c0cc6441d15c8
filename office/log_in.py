"""The log-in of the back office: by e-mail, for staff and for members of apps."""

from typing import Any

from django.contrib.admin import site
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from unfold.forms import AuthenticationForm

from apps_config.scope import read_scope


class LogInForm(AuthenticationForm):
    def confirm_login_allowed(self, user: Any) -> None:
        """Raises ValidationError for an account that is no staff's and of no app."""
        if not read_scope(user).is_open:
            raise ValidationError(
                self.error_messages["invalid_login"],
                code="invalid_login",
                params={"username": self.username_field.verbose_name},
            )


def tried_address(request: HttpRequest, credentials: dict[str, Any] | None = None) -> str:
    """Whose password is tried: counted as one however the address is spelt, as accounts are found
    by it in lower case."""
    given = (credentials or {}).get("username") or request.POST.get("username") or ""
    return str(given).strip().lower()[:254].replace("\0", "")


def refuse(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
    """What is answered to too many wrong passwords."""
    response = render(request, "office/locked.html", site.each_context(request), status=429)
    response["Retry-After"] = "900"
    return response
