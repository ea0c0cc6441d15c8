"""Log-in to the back office: with a password and a second factor, or with OpenID Connect.

allauth runs both; the adapters adapt it to this service's accounts.
"""

import logging
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.authentication import get_authentication_records
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from allauth.mfa.models import Authenticator
from allauth.mfa.stages import AuthenticateStage
from allauth.mfa.webauthn.forms import (
    AddWebAuthnForm,
    AuthenticateWebAuthnForm,
    LoginWebAuthnForm,
    ReauthenticateWebAuthnForm,
)
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialLogin
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView, OAuth2LoginView
from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.admin import site
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from requests import RequestException

from access.known_devices import is_new_device, read_device, remember_device
from access.log_in_failures import record_wrong_code
from access.oidc_accounts_and_roles import Claims, SignInRefused, admit
from access.provider import OidcAdapter
from apps_config.authentication import clear_failed_codes, count_failed_code, mark_code_used
from apps_config.history import change_actor
from apps_config.models import Account, SecurityEvent
from apps_config.security_events import record_event
from common.encryption import decrypt_text, encrypt_text
from common.errors import RateLimited
from common.limits.rate_limit import client_address, customer_network
from office.access.own_password import check_own_password
from office.access.session_age import begin_session
from office.base.lazy_text import LazyText
from office.base.message_translations import translate_message

logger = logging.getLogger(__name__)


# --- Passwords ------------------------------------------------------------------------------------
class AccountAdapter(DefaultAccountAdapter):
    def get_login_stages(self) -> list[str]:
        return [f"{__name__}.SecondFactorStage"]

    def get_client_ip(self, request: HttpRequest) -> str:
        return client_address(request) or "0.0.0.0"  # noqa: S104 # nosec B104

    def login(self, request: HttpRequest, user: Account) -> None:
        about: dict[str, Any] = {"method": log_in_method(request, user)}
        if is_new_device(user, customer_network(request), read_device(request, user)):
            about["is_new_device"] = True
        with transaction.atomic(), change_actor(user.pk, user.email):
            super().login(request, user)
            begin_session(request.session, now=timezone.now())
            record_event(SecurityEvent.LOG_IN, account_id=user.pk, about=about)

    def post_login(self, request: HttpRequest, user: Account, **kwargs: Any) -> HttpResponse:
        response = super().post_login(request, user, **kwargs)
        remember_device(response, user)
        return response

    def logout(self, request: HttpRequest) -> None:
        with transaction.atomic():
            if request.user.is_authenticated:
                record_event(SecurityEvent.LOG_OUT, account_id=request.user.pk)
            super().logout(request)

    def reauthenticate(self, user: Account, password: str) -> bool:
        """Whether the password, asked again before a change, is right. Raises ValidationError."""
        return check_own_password(self.request, user, password)

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def respond_user_inactive(self, request: HttpRequest, user: Account) -> HttpResponse:
        return HttpResponseRedirect(reverse("admin:login"))

    def add_message(self, request: HttpRequest, level: int, *args: Any, **kwargs: Any) -> None:
        """Add errors only: pages show what has changed."""
        if level >= messages.ERROR:
            super().add_message(request, level, *args, **kwargs)


def log_in_method(request: HttpRequest, account: Account) -> str:
    """Return `password`, `totp`, `recovery_codes`, `webauthn` or `oidc`."""
    record = get_authentication_records(request, account)[-1]
    return "oidc" if record["method"] == "socialaccount" else record.get("type") or record["method"]


class SecondFactorStage(AuthenticateStage):
    """Asks for the second factor after a password; an identity provider has its own."""

    def handle(self) -> tuple[HttpResponse | None, bool]:
        if "sociallogin" in (self.login.signal_kwargs or {}):
            return None, True
        return super().handle()


class CountedCode(forms.Form):
    """Counts wrong codes of an account over all processes, and takes each code once."""

    user: Account

    def clean_code(self) -> str:
        now = timezone.now()
        try:
            count_failed_code(self.user, now=now)
        except RateLimited as limited:
            raise forms.ValidationError(
                gettext("Too many wrong codes. Wait fifteen minutes, or use a passkey.")
            ) from limited
        try:
            code = super().clean_code()  # type: ignore[misc]
        except forms.ValidationError:
            record_wrong_code(self.user, now=now)
            raise
        if not mark_code_used(self.user, code, now=now):
            raise forms.ValidationError(
                gettext("This code was already used. Wait for the next one.")
            )
        clear_failed_codes(self.user, now=now)
        return code


class CodeForm(CountedCode, AuthenticateForm):
    """The second factor of a log-in."""


class ConfirmingCodeForm(CountedCode, ReauthenticateForm):
    """The second factor again, before a change of the account's security."""


class PasskeyField(forms.JSONField):
    """The browser's answer to a challenge, which no page shows again."""

    def __init__(self, refusal: LazyText) -> None:
        faults = {"required": refusal, "invalid": refusal}
        super().__init__(widget=forms.HiddenInput, error_messages=faults)

    def prepare_value(self, value: Any) -> str:
        return ""


class CheckedPasskey(forms.Form):
    """Refuses a wrong, removed or malformed passkey with one sentence."""

    refusal: LazyText = _("This passkey was not accepted. Use another one, or a code.")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["credential"] = PasskeyField(self.refusal)

    def clean_credential(self) -> Authenticator:
        """Return the passkey. Raises ValidationError, also for an inactive account."""
        try:
            passkey = super().clean_credential()  # type: ignore[misc]
        # The library reads the browser's JSON without checking its types.
        except (forms.ValidationError, AttributeError, KeyError, TypeError, ValueError) as fault:
            raise forms.ValidationError(self.refusal) from fault
        if not passkey.user.is_active:
            raise forms.ValidationError(self.refusal)
        return passkey


class AddPasskeyForm(AddWebAuthnForm):
    """The log-in page offers passkeys, so a new one works there unless it is switched off."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["passwordless"].initial = True


class PasskeyLogInForm(CheckedPasskey, LoginWebAuthnForm):
    """A passkey instead of a password."""

    refusal = _("This passkey was not accepted. Log in with your password, or use another passkey.")


class PasskeyForm(CheckedPasskey, AuthenticateWebAuthnForm):
    """A passkey as the second factor of a log-in."""


class ConfirmingPasskeyForm(CheckedPasskey, ReauthenticateWebAuthnForm):
    """A passkey again, before a change of the account's security."""


class SecondFactorAdapter(DefaultMFAAdapter):
    def encrypt(self, text: str) -> str:
        return encrypt_text(text)

    def decrypt(self, encrypted_text: str) -> str:
        return decrypt_text(encrypted_text)

    def get_totp_issuer(self) -> str:
        return str(site.site_header)

    def get_public_key_credential_rp_entity(self) -> dict[str, str]:
        return super().get_public_key_credential_rp_entity() | {"name": self.get_totp_issuer()}


# --- OpenID Connect -------------------------------------------------------------------------------
def show_refusal(request: HttpRequest, sentence: str, status: int) -> HttpResponse:
    context = site.each_context(request) | {"sentence": sentence}
    return render(request, "office/sign_in_refused.html", context, status=status)


class OidcAccountAdapter(DefaultSocialAccountAdapter):
    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Find or create the account and apply its groups, before the session begins."""
        known = sociallogin.user if sociallogin.is_existing else None
        claims = Claims.read(sociallogin.account.extra_data)
        try:
            account = admit(known, claims, provider=sociallogin.account.provider)
        except SignInRefused as refusal:
            logger.warning("log-in refused: %s", refusal)
            raise ImmediateHttpResponse(
                show_refusal(request, translate_message(refusal), 403)
            ) from refusal
        if known is None:
            sociallogin.connect(request, account)

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: Any,
        error: str | None = None,
        exception: Exception | None = None,
        extra_context: Any = None,
    ) -> None:
        logger.warning("log-in with OpenID Connect failed: %s %s", error, exception)
        sentence = gettext("The log-in was cancelled or failed. Please try again.")
        raise ImmediateHttpResponse(show_refusal(request, sentence, 400))


def oidc_page(
    request: HttpRequest, view: type[OAuth2LoginView] | type[OAuth2CallbackView]
) -> HttpResponseBase:
    if not settings.OIDC_ISSUER:
        raise Http404
    try:
        return view.adapter_view(OidcAdapter)(request)
    except (RequestException, KeyError, ValueError) as error:
        logger.error("the identity provider can't be used: %r", error)
        sentence = gettext("The identity provider can't be reached. Please try again later.")
        return show_refusal(request, sentence, 502)


def start_oidc(request: HttpRequest) -> HttpResponseBase:
    """Redirect to the identity provider."""
    return oidc_page(request, OAuth2LoginView)


def finish_oidc(request: HttpRequest) -> HttpResponseBase:
    """The address to which the identity provider returns."""
    return oidc_page(request, OAuth2CallbackView)
