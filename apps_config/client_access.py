"""What members allow programs: OAuth clients, which act for an account in one app.

allauth.idp.oidc issues the tokens. What a member allowed is a row of Credential, so that an OAuth
token ends, is limited and is listed like an access token. There is one row for each account and
client: another choice replaces it.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from allauth.idp.oidc.adapter import get_adapter
from allauth.idp.oidc.models import Client, Token
from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from apps_config.models import Account, App, Credential
from apps_config.services import issue_key, revoke_key
from common.errors import AGENTS

# A program is given no keys: it could make one that outlives its own permission.
CLIENT_SCOPES = tuple(scope for scope in Credential.SCOPES if scope != Credential.KEYS_WRITE)
API_AUDIENCE, AGENTS_AUDIENCE = f"{settings.PUBLIC_URL}/v2", f"{settings.PUBLIC_URL}{AGENTS}"
AUDIENCES = frozenset({API_AUDIENCE, AGENTS_AUDIENCE})
CLIENT_TOKEN_LENGTH = 86  # longer than any key


class ClientToken(NamedTuple):
    credential: Credential
    scopes: frozenset[str]


def find_client_token(text: str, *, audience: str, now: datetime) -> ClientToken | None:
    """Return what a valid OAuth token allows; None for one of another audience, or if the member
    allows it no more. A token without an audience is for the API, not for agents.
    """
    if not settings.OAUTH_SERVER:
        return None
    token = Token.objects.filter(
        type=Token.Type.ACCESS_TOKEN, hash=get_adapter().hash_token(text), expires_at__gt=now
    ).first()
    if token is None or audience not in (token.get_resources() or [API_AUDIENCE]):
        return None
    credential = _allowed(token.user_id, token.client_id).select_related("account").first()
    return ClientToken(credential, frozenset(token.get_scopes())) if credential else None


def allowed_clients(account: Account) -> QuerySet[Credential]:
    """What the account allows programs, newest first."""
    rows = Credential.objects.filter(account=account, revoked_at=None)
    return rows.exclude(client_id="").order_by("-id")


def allow_client(
    client: Client,
    *,
    account: Account,
    app: App,
    scopes: Collection[str],
    projects: Collection[UUID] | None,
) -> Credential:
    """Let a program act for the account in the app. projects: None: all.

    The same choice again keeps earlier tokens of the program; another one ends them.
    """
    limits: dict[str, Any] = {
        "only_app_id": app.id,
        "scopes": sorted(scopes),
        "projects": None if projects is None else sorted(map(str, projects)),
    }
    with transaction.atomic():
        Account.objects.select_for_update(no_key=True).get(pk=account.pk)
        current = _allowed(account.pk, client.pk).first()
        if current and all(getattr(current, name) == limit for name, limit in limits.items()):
            return current
        if current:
            revoke_key(current)
        Token.objects.filter(user=account, client=client).delete()
        credential, _ = issue_key(
            Credential.ACCESS,
            mode=app.mode,
            account=account,
            client_id=client.pk,
            description=client.name,
            **limits,
        )
    return credential


def end_client_access(credential: Credential) -> None:
    """Allow a program nothing more, effective at once."""
    with transaction.atomic():
        revoke_key(credential)
        Token.objects.filter(user=credential.account_id, client=credential.client_id).delete()


def give_back_token(text: str, client_id: str) -> None:
    """End what a member allowed the client whose token this is. Other texts change nothing."""
    types = (Token.Type.ACCESS_TOKEN, Token.Type.REFRESH_TOKEN)
    token = Token.objects.by_value(text).filter(type__in=types, client=client_id).first()
    if token:
        for credential in _allowed(token.user_id, token.client_id):
            end_client_access(credential)


def _allowed(account_id: UUID | None, client_id: str | None) -> QuerySet[Credential]:
    return Credential.objects.filter(account=account_id, client_id=client_id, revoked_at=None)
