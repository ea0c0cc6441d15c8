"""Password links for new members, created by staff.

Owners of an app can't create them: the ability to set a person's password would give access to all
apps of that person.
"""

from typing import Any

from django.conf import settings
from django.contrib.admin import site
from django.contrib.auth.forms import SetPasswordForm
from django.contrib.auth.tokens import default_token_generator
from django.contrib.auth.views import PasswordResetConfirmView
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from django.utils.translation import gettext_lazy as _

from apps_config.models import Account


def password_link(account: Account) -> str:
    uid = urlsafe_base64_encode(force_bytes(account.pk))
    token = default_token_generator.make_token(account)
    return f"{settings.PUBLIC_URL}{reverse('admin:choose_password', args=[uid, token])}"


class ChoosePasswordView(PasswordResetConfirmView):
    """The page behind the link. It removes the token from the URL before it shows the form."""

    template_name = "office/choose_password.html"
    title = _("Choose your password")

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return site.each_context(self.request) | super().get_context_data(**kwargs)

    def form_valid(self, form: SetPasswordForm) -> HttpResponse:
        super().form_valid(form)
        context = site.each_context(self.request) | {"is_done": True}
        return render(self.request, "office/choose_password.html", context)

    def get_success_url(self) -> str:
        return reverse("admin:login")
