"""The OpenID Connect provider of OIDC_ISSUER, for allauth, which finds it by this module's name.

Differs from allauth's own provider: the ID token is required, its signature is always verified, and
only a few claims are stored.
"""

from typing import Any

from allauth.socialaccount.internal import jwtkit
from allauth.socialaccount.models import SocialApp, SocialLogin, SocialToken
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

PROVIDER = "oidc"
MAX_SUBJECT = 191  # allauth's column


class OidcAdapter(OpenIDConnectOAuth2Adapter):
    def __init__(self, request: HttpRequest, provider_id: str = "") -> None:
        super().__init__(request, provider_id or settings.OIDC_PROVIDER_ID)

    def get_callback_url(self, request: HttpRequest, app: SocialApp) -> str:
        return f"{settings.PUBLIC_URL}{reverse('oidc_callback')}"

    def complete_login(
        self, request: HttpRequest, app: SocialApp, token: SocialToken, **kwargs: Any
    ) -> SocialLogin:
        """Return the log-in of the ID token and the user information. Raises OAuth2Error."""
        try:
            claims = self._read_claims(app, token, kwargs["response"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise OAuth2Error(f"The provider's answer is invalid: {error!r}") from error
        return self.get_provider().sociallogin_from_response(request, claims)

    def _read_claims(
        self, app: SocialApp, token: SocialToken, response: dict[str, Any]
    ) -> dict[str, Any]:
        claims = jwtkit.verify_and_decode(
            credential=response["id_token"],
            keys_url=self.openid_config["jwks_uri"],
            issuer=self.openid_config["issuer"],
            audience=app.client_id,
            lookup_kid=jwtkit.lookup_kid_jwk,
        )
        if not isinstance(claims["sub"], str) or not 1 <= len(claims["sub"]) <= MAX_SUBJECT:
            raise ValueError("sub")
        if "userinfo_endpoint" in self.openid_config:
            userinfo = self._fetch_user_info(token.token)
            if userinfo["sub"] != claims["sub"]:
                raise ValueError("sub of the user information")
            claims |= userinfo
        return claims


class OidcProvider(OpenIDConnectProvider):
    id = PROVIDER
    name = "OpenID Connect"
    oauth2_adapter_class = OidcAdapter

    def get_redirect_from_request_kwargs(self, request: HttpRequest) -> dict[str, Any]:
        """The page to return to; the address sets no other parameter of the provider's page."""
        given = super().get_redirect_from_request_kwargs(request)
        return {"process": "login", "next_url": given.get("next_url")}

    def extract_uid(self, data: dict[str, Any]) -> str:
        return str(data["sub"])

    def extract_common_fields(self, data: dict[str, Any]) -> dict[str, Any]:
        return {}

    def extract_email_addresses(self, data: dict[str, Any]) -> list[Any]:
        """None: `oidc_accounts_and_roles` finds accounts, not allauth's table of addresses."""
        return []

    def extract_extra_data(self, data: dict[str, Any]) -> dict[str, Any]:
        groups = settings.OIDC_GROUPS_CLAIM.partition(".")[0]
        kept = ("email", "email_verified", "name", groups, settings.OIDC_GROUPS_CLAIM)
        return {name: data[name] for name in kept if name in data}


provider_classes = [OidcProvider]
