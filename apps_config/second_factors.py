"""Which accounts have a second factor, and which must have one."""

from allauth.mfa.models import Authenticator
from django.conf import settings

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
