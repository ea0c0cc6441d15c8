"""Codes of second factors, and what a new or removed factor causes.

allauth.mfa stores them, and its pages set them up. Who must have one: `second_factors`.
"""

from datetime import datetime
from typing import Any

from allauth.mfa.models import Authenticator
from django.db.models import QuerySet
from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver

from apps_config.authentication import clear_failed_codes, count_failed_code, mark_code_used
from apps_config.models import Account, SecurityEvent
from apps_config.second_factors import FACTORS
from apps_config.security_events import record_event
from apps_config.services import end_access_tokens


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


# --- Events ---------------------------------------------------------------------------------------
# Signals of allauth's model: its pages, actions of the back office and commands all write it, and
# allauth's own signals are sent after the commit.
@receiver(post_save, sender=Authenticator)
def record_new_factor(instance: Authenticator, created: bool, **kwargs: Any) -> None:
    """Record it. The first factor ends the access tokens: a password was enough for them."""
    if not created or instance.type not in FACTORS:
        return
    _record(SecurityEvent.SECOND_FACTOR_ADDED, instance)
    factors = Authenticator.objects.filter(user=instance.user_id, type__in=FACTORS)
    if not factors.exclude(pk=instance.pk).exists():
        end_access_tokens(instance.user)


@receiver(post_delete, sender=Authenticator)
def record_removed_factor(instance: Authenticator, origin: Any, **kwargs: Any) -> None:
    """Record it, unless the whole account is deleted."""
    deleted = origin.model if isinstance(origin, QuerySet) else type(origin)
    if deleted is Authenticator:
        _record(SecurityEvent.SECOND_FACTOR_REMOVED, instance)


def _record(kind: str, factor: Authenticator) -> None:
    if factor.type in FACTORS:
        record_event(kind, account_id=factor.user_id, about={"type": factor.type})
