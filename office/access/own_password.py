"""The password of the logged-in account, asked again: wrong ones count as at the log-in, so that a
stolen session does not help to guess it.
"""

from math import ceil
from typing import Any

from django import forms
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.views import PasswordChangeView
from django.http import HttpRequest, HttpResponse
from django.urls import reverse_lazy
from django.utils import timezone
from django.utils.translation import gettext as _
from unfold.forms import AdminOwnPasswordChangeForm

from access.known_devices import read_device
from access.log_in_failures import record_failure
from access.log_in_limits import TooManyFailures, count_log_in_attempt
from access.sessions import list_new_session
from apps_config.models import Account
from bookings.pages.formatting import in_minutes_words
from common.limits.hashing_slots import TooManyLogIns, hashing_slot
from common.limits.rate_limit import customer_network


def check_own_password(request: HttpRequest, account: Account, password: str) -> bool:
    """Return whether the password is the account's. Raises ValidationError beyond the limits."""
    try:
        return _count_and_check(request, account, password)
    except TooManyFailures as limit:
        when = in_minutes_words(ceil(limit.seconds / 60))
        sentence = _("Too many wrong passwords. You can try again %(when)s.")
        raise forms.ValidationError(sentence % {"when": when}) from limit
    except TooManyLogIns as busy:
        sentence = _("Many people are logging in at the moment. Please try again in a few seconds.")
        raise forms.ValidationError(sentence) from busy


def _count_and_check(request: HttpRequest, account: Account, password: str) -> bool:
    now, network = timezone.now(), customer_network(request)
    attempt = count_log_in_attempt(
        email=account.email, network=network, device=read_device(request, account), now=now
    )
    try:
        with hashing_slot():
            is_right = account.check_password(password)
    except TooManyLogIns:
        attempt.take_back()
        raise
    if is_right:
        attempt.take_back()
    else:
        record_failure(attempt, [account], now=now)
    return is_right


class OwnPasswordForm(AdminOwnPasswordChangeForm):
    def __init__(self, *args: Any, request: HttpRequest, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.request = request

    def clean_old_password(self) -> str:
        password = self.cleaned_data["old_password"]
        if not check_own_password(self.request, self.user, password):
            raise forms.ValidationError(self.error_messages["password_incorrect"])
        return password


class OwnPasswordView(PasswordChangeView):
    """The page to change one's own password."""

    form_class = OwnPasswordForm
    success_url = reverse_lazy("admin:password_change_done")

    def get_form_kwargs(self) -> dict[str, Any]:
        return super().get_form_kwargs() | {"request": self.request}

    def form_valid(self, form: PasswordChangeForm) -> HttpResponse:
        response = super().form_valid(form)
        list_new_session(self.request)
        return response
