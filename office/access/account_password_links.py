"""Password links for new members, created by staff.

Owners of an app can't create them: the ability to set a person's password would give access to all
apps of that person.
"""

import uuid
from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.contrib.admin import site
from django.contrib.auth.forms import SetPasswordForm
from django.contrib.auth.tokens import default_token_generator
from django.contrib.auth.views import PasswordResetConfirmView
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps_config.models import Account, SecurityEvent
from apps_config.security_events import record_event
from office.access.fresh_log_in import require_fresh_log_in
from office.base.model_admin import OfficeAdmin
from office.base.model_admin_pages import ExtraPage, find_row
from office.base.scope import account_of


class PasswordLinks(OfficeAdmin[Account]):
    def extra_pages(self) -> Iterable[ExtraPage]:
        at = "<uuid:account_id>/password-link/"
        return [ExtraPage(at, self.show_password_link, "link", "change")]

    def show_password_link(self, request: HttpRequest, account_id: uuid.UUID) -> HttpResponse:
        """Ask for confirmation; a POST creates the link and shows it once."""
        if not settings.PASSWORD_LOGIN:
            raise PermissionDenied
        account = find_row(Account.objects.filter(is_active=True), account_id)
        # Otherwise an account that may change accounts could take over a superuser's.
        if (account.is_staff or account.is_superuser) and not account_of(request).is_superuser:
            raise PermissionDenied
        require_fresh_log_in(request)
        if request.method == "POST":
            with transaction.atomic():
                self.log_change(request, account, "A password link was created.")
                record_event(SecurityEvent.PASSWORD_LINK_MADE, account_id=account.pk)
            return self.show_secret(
                request,
                title=gettext("A link to choose a password"),
                heading=gettext("For %(email)s") % {"email": account.email},
                label=gettext("Link"),
                secret=password_link(account),
                back=self.url_of(account),
            )
        return self.ask_confirmation(
            request,
            account,
            title=gettext("Create a password link?"),
            sentence=gettext(
                "Anyone with the link can choose the password of %(email)s: send it only to this"
                " person. The link works once, until the next log-in, for three days."
            )
            % {"email": account.email},
            button=gettext("Create the link"),
        )


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
