"""What an account may see and do in the back office.

Platform staff (`is_staff`) see every app and need Django's permissions. All other accounts see the
apps they are members of, with the permissions of their role (api.md section 3).
"""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import TypeVar

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from apps_config.models import Account, App, Membership

Value = TypeVar("Value")

RANKS = {role: rank for rank, role in enumerate(Membership.ROLES)}


@dataclass(frozen=True, slots=True)
class Scope:
    """`is_staff`: every app. Otherwise `roles`: app id -> the account's role."""

    is_staff: bool
    roles: Mapping[uuid.UUID, str]

    @property
    def may_enter_office(self) -> bool:
        return self.is_staff or bool(self.roles)

    @property
    def has_several_apps(self) -> bool:
        """Return whether the account may see rows of several apps; staff may."""
        return self.is_staff or len(self.roles) > 1

    def ids(self, least: str = Membership.VIEWER) -> list[uuid.UUID]:
        """Return the apps in which the role is at least `least`; for members only."""
        return [app for app, role in self.roles.items() if RANKS[role] >= RANKS[least]]

    def allows(self, app_id: uuid.UUID | None, least: str) -> bool:
        """Return whether a member has the role in that app; None: in any app."""
        app_ids = self.ids(least)
        return bool(app_ids) if app_id is None else app_id in app_ids

    def rows(self, *paths: str, least: str = Membership.VIEWER) -> Q:
        """Match rows of apps with the role `least` or a higher one; `paths`: lookups to the app."""
        if self.is_staff:
            return Q()
        condition = Q(pk__in=[])
        for path in paths:
            condition |= Q(**{f"{path}__in" if path == "pk" else f"{path}_id__in": self.ids(least)})
        return condition

    def apps(self, least: str = Membership.VIEWER) -> QuerySet[App]:
        rows = App.objects.open().order_by("name", "slug")
        return rows if self.is_staff else rows.filter(id__in=self.ids(least))


def account_of(request: HttpRequest) -> Account:
    """Return the logged-in account. Raises PermissionDenied for anonymous requests."""
    if not isinstance(request.user, Account):
        raise PermissionDenied
    return request.user


def reader_of(request: HttpRequest) -> str:
    """Return the account's name as a reader of the replica."""
    return f"account-{request.user.pk}"


def read_once(read: Callable[[HttpRequest], Value]) -> Callable[[HttpRequest], Value]:
    """Cache a function of the request's account for the request."""

    @wraps(read)
    def known(request: HttpRequest) -> Value:
        values: dict[object, Value] = vars(request).setdefault("_office_values", {})
        key = (read, request.user.pk)  # a log-in changes the account
        if key not in values:
            values[key] = read(request)
        return values[key]

    return known


def forget_values(request: HttpRequest) -> None:
    """Clear the cache of `read_once`, after a change of the account's roles."""
    vars(request).pop("_office_values", None)


@read_once
def scope_of(request: HttpRequest) -> Scope:
    return load_account_scope(request.user)


def load_account_scope(account: Account | AnonymousUser) -> Scope:
    if not isinstance(account, Account) or not account.is_active:
        return Scope(is_staff=False, roles={})
    if account.is_staff:
        return Scope(is_staff=True, roles={})
    rows = Membership.objects.filter(account=account, app__archived_at=None)
    return Scope(is_staff=False, roles=dict(rows.values_list("app_id", "role")))


def is_allowed(
    request: HttpRequest, permission: str, app_id: uuid.UUID | None, least: str = Membership.EDITOR
) -> bool:
    """Return whether staff have Django's `permission`, or a member the role `least` in the app.

    app_id: None for any app.
    """
    scope = scope_of(request)
    return request.user.has_perm(permission) if scope.is_staff else scope.allows(app_id, least)
