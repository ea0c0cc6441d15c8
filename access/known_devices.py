"""Browsers and networks from which an account has logged in before.

A browser has a cookie, which ends with the account's password. `POST /auth` has no cookies: there,
only the network counts.
"""

import secrets
from datetime import datetime, timedelta

from django.conf import settings
from django.core.signing import BadSignature, TimestampSigner
from django.http import HttpRequest, HttpResponse

from apps_config.models import Account, SecurityEvent
from common.db.ids import least_id
from common.limits.rate_limit import digest_key

SALT = "access.known_devices"
COOKIE_LASTS = timedelta(days=90)
NETWORK_LASTS = timedelta(days=30)
PATH = "/admin/"
LOG_INS = (SecurityEvent.LOG_IN, SecurityEvent.TOKEN_MADE)


def remember_device(response: HttpResponse, account: Account) -> None:
    """Mark the browser as one in which the account has logged in."""
    response.set_cookie(
        cookie_name(account),
        _signer(account).sign(secrets.token_urlsafe(12)),
        max_age=COOKIE_LASTS,
        path=PATH,
        secure=settings.HTTPS,
        httponly=True,
        samesite="Strict",
    )


def read_device(request: HttpRequest, account: Account | None) -> str:
    """Return the id of a browser in which the account has logged in, "" for any other."""
    if account is None:
        return ""
    cookie = request.COOKIES.get(cookie_name(account), "")
    try:
        return _signer(account).unsign(cookie, max_age=COOKIE_LASTS)
    except BadSignature:
        return ""


def has_logged_in_from(network: str, email: str, *, now: datetime) -> bool:
    """Whether the account with this address has logged in from the network lately."""
    rows = SecurityEvent.objects.filter(account__email=email, network=network, kind__in=LOG_INS)
    return bool(network) and rows.filter(id__gte=least_id(now - NETWORK_LASTS)).exists()


def is_new_device(account: Account, network: str, device: str = "") -> bool:
    """Whether an account that has logged in before does so in another browser and network."""
    if device or not network:
        return False
    log_ins = SecurityEvent.objects.filter(account=account, kind__in=LOG_INS)
    if log_ins.filter(network=network).exists():
        return False
    return account.last_login is not None or log_ins.exists()


def cookie_name(account: Account) -> str:
    """One cookie for each account: several people share a browser at a reception desk."""
    return f"known_device_{digest_key(str(account.pk))[:12]}"


def _signer(account: Account) -> TimestampSigner:
    return TimestampSigner(salt=f"{SALT} {account.pk} {account.get_session_auth_hash()}")
