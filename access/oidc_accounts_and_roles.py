"""Log-in with OpenID Connect: which account a person gets, and what their groups allow.

The identity provider is trusted by the operator (OIDC_ISSUER). An account is found by the
provider's subject; at its first log-in by its verified e-mail address.
"""

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.db import transaction

from apps_config.models import Account, App, Membership
from apps_config.security_events import PLATFORM_RIGHTS, platform_rights, record_role, record_staff
from apps_config.services import LastOwner, change_role, end_tokens_of_new_owner, remove_member
from common.email_address import canonical_address, is_address
from common.messages import Message

logger = logging.getLogger(__name__)


class SignInRefused(Exception):
    """The provider knows the person, but they may not enter. The message is for this person."""


@dataclass(frozen=True, slots=True)
class Claims:
    """What the provider says about a person. email: canonical form, "" unless it is verified."""

    email: str
    name: str
    groups: frozenset[str]

    @classmethod
    def read(cls, claims: Mapping[str, Any]) -> "Claims":
        email, name = claims.get("email"), claims.get("name")
        is_verified = claims.get("email_verified") is True or settings.OIDC_TRUST_EMAIL
        address = email.strip() if isinstance(email, str) else ""
        return cls(
            email=canonical_address(address) if is_verified and is_address(address) else "",
            name=name[:200] if isinstance(name, str) else "",
            groups=frozenset(read_groups(claims, settings.OIDC_GROUPS_CLAIM)),
        )


def read_groups(claims: Mapping[str, Any], name: str) -> Collection[str]:
    """Return the groups in the claim: a list or one text.

    >>> read_groups({"realm_access": {"roles": ["dentists"]}}, "realm_access.roles")
    ['dentists']
    """
    groups: Any = claims.get(name)
    if groups is None:
        groups = claims
        for part in name.split("."):
            groups = groups.get(part) if isinstance(groups, Mapping) else None
    if isinstance(groups, str):
        return [groups]
    return [each for each in groups if isinstance(each, str)] if isinstance(groups, list) else []


def admit(account: Account | None, claims: Claims, *, provider: str) -> Account:
    """Return the person's account with the roles of their groups.

    account: of the provider's subject, if it has logged in before. Otherwise the account with the
    verified address, or a new one if a group gives it a role. Raises SignInRefused.
    """
    account = account or find_or_create_account(claims, provider)
    if not account.is_active:
        raise SignInRefused(Message("Your account is disabled."))
    apply_groups(account, claims.groups)
    if not account.is_staff and not account.memberships.filter(app__archived_at=None).exists():
        raise SignInRefused(
            Message("Your account has no access to any app. Ask an owner to invite you.")
        )
    return account


def find_or_create_account(claims: Claims, provider: str) -> Account:
    """Return the account with the verified address. Raises SignInRefused."""
    if not claims.email:
        raise SignInRefused(Message("Your identity provider did not confirm your e-mail address."))
    account = Account.objects.filter(email=claims.email).first()
    if account is None:
        if not granted_roles(claims.groups) and not is_platform_staff(claims.groups):
            raise SignInRefused(
                Message("There is no account for you yet. Ask an owner to invite you.")
            )
        return Account.objects.create_user(claims.email, name=claims.name)
    # Providers can give an address to another person: one account has one subject.
    if SocialAccount.objects.filter(user=account, provider=provider).exists():
        raise SignInRefused(
            Message("Your account belongs to another identity. Ask the platform's staff.")
        )
    return account


def granted_roles(groups: Collection[str]) -> dict[str, str]:
    """Return app slug -> the highest role that the groups give (OIDC_ROLES)."""
    roles: dict[str, str] = {}
    for group, slug, role in settings.OIDC_ROLES:
        if group in groups and slug:
            roles[slug] = max(roles.get(slug, role), role, key=Membership.ROLES.index)
    return roles


def is_platform_staff(groups: Collection[str]) -> bool:
    return any(group in groups and not slug for group, slug, _ in settings.OIDC_ROLES)


def apply_groups(account: Account, groups: Collection[str]) -> None:
    """Give the account the roles of its groups; take those away that no group gives any more.

    Only apps that OIDC_ROLES names are touched, and platform staff only if OIDC_ROLES names it.
    The last owner of an app stays an owner.
    """
    granted = granted_roles(groups)
    named = {slug for _, slug, _ in settings.OIDC_ROLES if slug}
    with transaction.atomic():
        # In one order, as several log-ins of one person may run at once.
        apps = App.objects.open().filter(slug__in=named).order_by("id")
        for app in apps.select_for_update(no_key=True):
            _apply_role(account, app, granted.get(app.slug))
        if any(not slug for _, slug, _ in settings.OIDC_ROLES):
            _apply_staff(account, is_platform_staff(groups))


def _apply_role(account: Account, app: App, role: str | None) -> None:
    member = Membership.objects.filter(account=account, app=app).first()
    if member is None:
        if role:
            member = Membership.objects.create(account=account, app=app, role=role)
            record_role(member)
            end_tokens_of_new_owner(member)
        return
    try:
        if role is None:
            remove_member(member)
        elif role != member.role:
            change_role(member, role)
    except LastOwner:
        logger.warning("%s stays the last owner of %s against their groups", account.pk, app.slug)


def _apply_staff(account: Account, is_staff: bool) -> None:
    before = platform_rights(account)
    account.is_staff = account.is_superuser = is_staff
    if platform_rights(account) != before:
        account.save(update_fields=PLATFORM_RIGHTS)
        record_staff(account, before=before)
