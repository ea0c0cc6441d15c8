"""Second factors of accounts: allauth.mfa stores them, and its pages set them up."""

from datetime import datetime

from allauth.mfa.models import Authenticator
from django.conf import settings

from apps_config.authentication import clear_failed_codes, count_failed_code, mark_code_used
from apps_config.models import Account, Membership

OFF, STAFF, OWNERS = "off", "staff", "owners"  # values of REQUIRE_SECOND_FACTOR
FACTORS = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)


def has_second_factor(account: Account) -> bool:
    return Authenticator.objects.filter(user=account, type__in=FACTORS).exists()


def must_have_second_factor(account: Account) -> bool:
    """Whether REQUIRE_SECOND_FACTOR names the account."""
    if settings.REQUIRE_SECOND_FACTOR == OFF:
        return False
    if account.is_staff or account.is_superuser:
        return True
    owned = account.memberships.filter(role=Membership.OWNER, app__archived_at=None)
    return settings.REQUIRE_SECOND_FACTOR == OWNERS and owned.exists()


def takes_codes(account: Account) -> bool:
    """Whether the account has codes of an authenticator app: a passkey needs a browser."""
    return Authenticator.objects.filter(user=account, type=Authenticator.Type.TOTP).exists()


def use_code(account: Account, code: str, *, now: datetime) -> bool:
    """Use up a code of an authenticator app, or a recovery code; return whether it was right.

    Raises RateLimited after ten wrong codes of the account in a quarter of an hour.
    """
    count_failed_code(account, now=now)
    rows = Authenticator.objects.filter(user=account).exclude(type=Authenticator.Type.WEBAUTHN)
    used = next((row for row in rows if row.wrap().validate_code(code)), None)
    if used is None or not mark_code_used(account, code, now=now):
        return False
    used.record_usage()
    clear_failed_codes(account, now=now)
    return True
