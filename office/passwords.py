"""How somebody who has been let in gets a password: a link that staff make and hand over.

Owners of an app can't: who could set another person's password would be in all of that person's
apps.
"""

import uuid
from typing import Any

from django.contrib.admin import site
from django.contrib.auth.forms import SetPasswordForm
from django.contrib.auth.tokens import default_token_generator
from django.contrib.auth.views import PasswordResetConfirmView
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from apps_config.models import Account
from apps_config.scope import scope_of
from apps_config.services import end_log_ins
from office.asking import ask_first
from office.shown_once import show_secret


def make_link(page: Any, request: HttpRequest, account_id: uuid.UUID) -> HttpResponse:
    """Asks; a POST makes the link and shows it once. `page` is the admin class of accounts."""
    if not scope_of(request).is_staff or not request.user.has_perm("apps_config.change_account"):
        raise PermissionDenied
    account = Account.objects.filter(pk=account_id, is_active=True).first()
    if account is None:
        raise Http404
    # Or who may change accounts could become who may do everything.
    if (account.is_staff or account.is_superuser) and not request.user.is_superuser:
        raise PermissionDenied
    back = reverse("admin:apps_config_account_change", args=[account.pk])
    if request.method == "POST":
        page.log_change(request, account, "A link to choose a password was made.")
        return show_secret(
            page,
            request,
            title="A link to choose a password",
            heading=f"For {account.email}",
            label="Link",
            secret=request.build_absolute_uri(link_of(account)),
            back=back,
        )
    return ask_first(
        page,
        request,
        account,
        title="Make a link to choose a password?",
        sentence=f"Whoever opens it chooses the password of {account.email}: hand it to that"
        " person alone. It works once, for three days, and no more after the next log-in.",
        button="Make the link",
        back=back,
    )


def link_of(account: Account) -> str:
    uid = urlsafe_base64_encode(force_bytes(account.pk))
    return reverse("admin:choose_password", args=[uid, default_token_generator.make_token(account)])


class ChoosePasswordView(PasswordResetConfirmView):
    """The page behind the link. The token leaves the address before the form is shown."""

    form_class = SetPasswordForm
    template_name = "office/choose_password.html"
    title = "Choose your password"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return site.each_context(self.request) | super().get_context_data(**kwargs)

    def form_valid(self, form: SetPasswordForm) -> HttpResponse:
        with transaction.atomic():
            super().form_valid(form)
            end_log_ins(account=form.user)
        context = site.each_context(self.request) | {"is_done": True}
        return render(self.request, "office/choose_password.html", context)

    def get_success_url(self) -> str:
        return reverse("admin:login")
