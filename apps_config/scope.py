"""What an account may see and do in the back office.

Staff of the platform (`is_staff`) see every app and are held to Django's permissions; everybody
else sees the apps they are a member of, and does there what the role allows (api.md section 3).
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Q
from django.http import HttpRequest

from apps_config.models import App, Membership

RANKS = {role: rank for rank, role in enumerate(Membership.ROLES)}


@dataclass(frozen=True, slots=True)
class Scope:
    """`is_staff`: every app. Else `roles`: the role in each app of the account."""

    is_staff: bool
    roles: Mapping[uuid.UUID, str]

    @property
    def is_open(self) -> bool:
        return self.is_staff or bool(self.roles)

    def ids(self, least: str = Membership.VIEWER) -> list[uuid.UUID]:
        """The apps in which the role is at least this one; for members alone."""
        return [app for app, role in self.roles.items() if RANKS[role] >= RANKS[least]]

    def allows(self, app_id: uuid.UUID | None, least: str) -> bool:
        """Whether a member has the role in that app; with None: in any."""
        known = self.ids(least)
        return bool(known) if app_id is None else app_id in known

    def rows(self, *paths: str, least: str = Membership.VIEWER) -> Q:
        """Of a model from which these lookups lead to the app: the rows of apps in which the role
        is at least this one, which is what it takes to see them."""
        if self.is_staff:
            return Q()
        found = Q(pk__in=[])
        for path in paths:
            found |= Q(**{f"{path}__in" if path == "pk" else f"{path}_id__in": self.ids(least)})
        return found

    def apps(self, least: str = Membership.VIEWER) -> Any:
        """The apps themselves, by name."""
        rows = App.objects.open().order_by("name", "slug")
        return rows if self.is_staff else rows.filter(id__in=self.ids(least))


def scope_of(request: HttpRequest) -> Scope:
    """The scope of a request's account: read once a request."""
    found = getattr(request, "_scope", None)
    if found is None or found[0] != request.user.pk:  # a log-in changes who is asking
        found = request._scope = (request.user.pk, read_scope(request.user))
    return found[1]


def read_scope(account: Any) -> Scope:
    if not account.is_authenticated or not account.is_active:
        return Scope(is_staff=False, roles={})
    if account.is_staff:
        return Scope(is_staff=True, roles={})
    rows = Membership.objects.filter(account=account, app__archived_at=None)
    return Scope(is_staff=False, roles=dict(rows.values_list("app_id", "role")))


def is_allowed(
    request: HttpRequest, permission: str, app_id: uuid.UUID | None, least: str = Membership.EDITOR
) -> bool:
    """Of staff: Django's permission ("bookings.change_booking"). Of a member: at least that role in
    the app; with None: in any."""
    scope = scope_of(request)
    return request.user.has_perm(permission) if scope.is_staff else scope.allows(app_id, least)
