"""Who may call what: the table of all actions, and DRF's permissions that read it."""

from collections.abc import Collection
from typing import Any, NamedTuple
from uuid import UUID

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from apps_config.authentication import WHOLE_BOOKINGS, Caller
from apps_config.models import Credential, Membership
from common.errors import AddressNotAllowed, Forbidden
from common.limits.rate_limit import Network, read_client_address

VIEWER, EDITOR, OWNER = Membership.VIEWER, Membership.EDITOR, Membership.OWNER
RESOURCE, WIDGET = Credential.RESOURCE, Credential.WIDGET
AVAILABILITY_READ, PEOPLE_READ = Credential.AVAILABILITY_READ, Credential.PEOPLE_READ
BOOKINGS_READ, BOOKINGS_WRITE = Credential.BOOKINGS_READ, Credential.BOOKINGS_WRITE
SETTINGS_READ, SETTINGS_WRITE = Credential.SETTINGS_READ, Credential.SETTINGS_WRITE
KEYS_WRITE = Credential.KEYS_WRITE
OUTSIDE_PROJECTS = "A key with `projects` can't do this: it belongs to the whole app."
WIDER_KEY = "A key can't make or revoke a key that may do more than itself."
RANKS = {role: rank for rank, role in enumerate(Membership.ROLES)}


class Access(NamedTuple):
    """Who may call an action.

    role: the least role of an account. scope: what a key or token with scopes needs; `also`:
    further scopes, where an action sends what it may not read to an address of the caller's choice.
    kinds: the kinds of key that may call it beside server keys, which may call every action unless
    it is `only_accounts`. by_project: a server key with `projects` may call it, for these projects.
    """

    role: str
    scope: str
    kinds: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    by_project: bool = False
    only_accounts: bool = False

    def __str__(self) -> str:
        """Return the kinds of key for the API's description."""
        others = [f"{kind} key" for kind in (WIDGET, RESOURCE) if kind in self.kinds]
        servers = [] if self.only_accounts else ["server key"]
        return ", ".join([*servers, f"access token ({self.role})", *others])

    @property
    def scopes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.scope, *self.also)))


def all_of(role: str, scope: str, *kinds: str, actions: str, **others: Any) -> dict[str, Access]:
    return dict.fromkeys(actions.split(), Access(role, scope, kinds, **others))


# By the name of the viewset on the router, and its action.
ACCESS: dict[str, dict[str, Access]] = {
    "app": {"retrieve": Access(VIEWER, SETTINGS_READ, by_project=True)},
    "apps": {
        "list": Access(VIEWER, SETTINGS_READ),
        "create": Access(OWNER, KEYS_WRITE, only_accounts=True),
        "retrieve": Access(VIEWER, SETTINGS_READ),
        "update": Access(EDITOR, SETTINGS_WRITE),
        "destroy": Access(OWNER, KEYS_WRITE),
    },
    "members": all_of(OWNER, KEYS_WRITE, actions="list create destroy"),
    "credentials": {
        "list": Access(OWNER, KEYS_WRITE),
        "create": Access(OWNER, KEYS_WRITE, by_project=True),
        "destroy": Access(OWNER, KEYS_WRITE, by_project=True),
    },
    "resources": {
        "list": Access(VIEWER, SETTINGS_READ, (RESOURCE,)),
        "create": Access(EDITOR, SETTINGS_WRITE),
        "retrieve": Access(VIEWER, SETTINGS_READ, (RESOURCE,)),
        "update": Access(EDITOR, SETTINGS_WRITE, (RESOURCE,)),
        "destroy": Access(EDITOR, SETTINGS_WRITE),
        "retrieve_timezone": Access(VIEWER, SETTINGS_READ, (RESOURCE,)),
        "put_by_external_id": Access(EDITOR, SETTINGS_WRITE),
    },
    "password-resets": {"create": Access(EDITOR, KEYS_WRITE)},
    "schedules": {
        "list": Access(VIEWER, SETTINGS_READ),
        "create": Access(EDITOR, SETTINGS_WRITE),
        "retrieve": Access(VIEWER, SETTINGS_READ),
        "update": Access(EDITOR, SETTINGS_WRITE),
        "destroy": Access(EDITOR, SETTINGS_WRITE),
    },
    "calendars": {
        "list": Access(VIEWER, SETTINGS_READ, (RESOURCE,)),
        "create": Access(EDITOR, SETTINGS_WRITE, (RESOURCE,), also=WHOLE_BOOKINGS),
        "retrieve": Access(VIEWER, SETTINGS_READ, (RESOURCE,)),
        "update": Access(EDITOR, SETTINGS_WRITE, (RESOURCE,), also=WHOLE_BOOKINGS),
        "destroy": Access(EDITOR, SETTINGS_WRITE, (RESOURCE,)),
        "connect": Access(EDITOR, SETTINGS_WRITE, (RESOURCE,), also=WHOLE_BOOKINGS),
        "test": Access(VIEWER, SETTINGS_READ, (RESOURCE,)),
        "sync": Access(EDITOR, SETTINGS_WRITE, (RESOURCE,)),
        "disconnect": Access(EDITOR, SETTINGS_WRITE, (RESOURCE,)),
    },
    "calendar-clients": all_of(OWNER, KEYS_WRITE, actions="list update destroy"),
    "feeds": {
        "create": Access(EDITOR, SETTINGS_WRITE, (RESOURCE,), also=WHOLE_BOOKINGS),
        "destroy": Access(EDITOR, SETTINGS_WRITE, (RESOURCE,)),
    },
    "events": {
        "list": Access(VIEWER, BOOKINGS_READ, (RESOURCE,)),
        "create": Access(EDITOR, BOOKINGS_WRITE, (RESOURCE,)),
        "retrieve": Access(VIEWER, BOOKINGS_READ, (RESOURCE,)),
        "update": Access(EDITOR, BOOKINGS_WRITE, (RESOURCE,)),
        "destroy": Access(EDITOR, BOOKINGS_WRITE, (RESOURCE,)),
    },
    "projects": {
        "list": Access(VIEWER, SETTINGS_READ, by_project=True),
        "create": Access(EDITOR, SETTINGS_WRITE),
        "retrieve": Access(VIEWER, SETTINGS_READ, by_project=True),
        "update": Access(EDITOR, SETTINGS_WRITE, by_project=True),
        "destroy": Access(EDITOR, SETTINGS_WRITE, by_project=True),
        "put_by_external_id": Access(EDITOR, SETTINGS_WRITE),
        "list_resources": Access(VIEWER, SETTINGS_READ, by_project=True),
        "set_resources": Access(EDITOR, SETTINGS_WRITE),
        "add_resource": Access(EDITOR, SETTINGS_WRITE),
        "remove_resource": Access(EDITOR, SETTINGS_WRITE, by_project=True),
    },
    "embedded-pages": {"retrieve": Access(VIEWER, AVAILABILITY_READ, (WIDGET,), by_project=True)},
    "availability": {
        "search": Access(VIEWER, AVAILABILITY_READ, (WIDGET, RESOURCE), by_project=True),
        "list_dates": Access(VIEWER, AVAILABILITY_READ, (WIDGET, RESOURCE), by_project=True),
        "count_slots": Access(VIEWER, AVAILABILITY_READ, (WIDGET, RESOURCE), by_project=True),
        "explain": Access(VIEWER, AVAILABILITY_READ, (RESOURCE,), by_project=True),
        "list_unavailable": Access(VIEWER, AVAILABILITY_READ, (RESOURCE,), by_project=True),
    },
    "findtime": {
        "find_time": Access(VIEWER, AVAILABILITY_READ, (WIDGET, RESOURCE)),
        "find_times": Access(VIEWER, AVAILABILITY_READ, (RESOURCE,)),
        "find_team_times": Access(VIEWER, AVAILABILITY_READ, (RESOURCE,)),
    },
    "bookings": {
        "list": Access(VIEWER, BOOKINGS_READ, (RESOURCE,), by_project=True),
        "create": Access(EDITOR, BOOKINGS_WRITE, (WIDGET, RESOURCE), by_project=True),
        "retrieve": Access(VIEWER, BOOKINGS_READ, (RESOURCE,), by_project=True),
        "update": Access(EDITOR, BOOKINGS_WRITE, (RESOURCE,), by_project=True),
        "destroy": Access(EDITOR, BOOKINGS_WRITE, (RESOURCE,), by_project=True),
        "reschedule": Access(EDITOR, BOOKINGS_WRITE, (WIDGET, RESOURCE), by_project=True),
        "reschedule_by_put": Access(EDITOR, BOOKINGS_WRITE, (RESOURCE,), by_project=True),
        "apply_action": Access(EDITOR, BOOKINGS_WRITE, (RESOURCE,), by_project=True),
    },
    "bulk": all_of(EDITOR, BOOKINGS_WRITE, RESOURCE, actions="create update", by_project=True),
    "holds": all_of(
        *(EDITOR, BOOKINGS_WRITE, WIDGET, RESOURCE),
        actions="create extend destroy verify code",
        by_project=True,
    ),
    "groups": all_of(
        *(VIEWER, BOOKINGS_READ, WIDGET, RESOURCE), actions="list retrieve", by_project=True
    ),
    "challenge": {"retrieve": Access(VIEWER, AVAILABILITY_READ, (WIDGET,), by_project=True)},
    "customers": {
        "list": Access(VIEWER, PEOPLE_READ),
        "export": Access(VIEWER, PEOPLE_READ, also=(BOOKINGS_READ,)),
        "set_note": Access(EDITOR, BOOKINGS_WRITE, also=(PEOPLE_READ,)),
        "erase": Access(EDITOR, BOOKINGS_WRITE, also=(PEOPLE_READ,)),
    },
    "reports": all_of(
        *(VIEWER, BOOKINGS_READ), actions="utilisation outcomes lead_time sources customers"
    ),
    "changes": {"list": Access(VIEWER, BOOKINGS_READ, by_project=True)},
    "webhooks": {
        "list": Access(VIEWER, SETTINGS_READ),
        "create": Access(EDITOR, SETTINGS_WRITE, also=WHOLE_BOOKINGS),
        "retrieve": Access(VIEWER, SETTINGS_READ),
        "update": Access(EDITOR, SETTINGS_WRITE, also=WHOLE_BOOKINGS),
        "destroy": Access(EDITOR, SETTINGS_WRITE),
        "rotate": Access(EDITOR, SETTINGS_WRITE, also=WHOLE_BOOKINGS),
        "test": Access(EDITOR, SETTINGS_WRITE, also=WHOLE_BOOKINGS),
    },
    "webhook-deliveries": {"list": Access(VIEWER, BOOKINGS_READ, also=(PEOPLE_READ,))},
    "deliveries": {
        "list": Access(VIEWER, BOOKINGS_READ, also=(PEOPLE_READ,)),
        "retrieve": Access(VIEWER, BOOKINGS_READ, also=(PEOPLE_READ,)),
        "redeliver": Access(EDITOR, BOOKINGS_WRITE, also=WHOLE_BOOKINGS),
    },
    "templates": {
        "list": Access(VIEWER, SETTINGS_READ),
        "retrieve": Access(VIEWER, SETTINGS_READ),
        "update": Access(EDITOR, SETTINGS_WRITE),
        "preview": Access(VIEWER, SETTINGS_READ, also=(BOOKINGS_READ, PEOPLE_READ)),
    },
}


def scopes_of_kind(kind: str) -> frozenset[str]:
    """Return the scopes of all that a widget key or a resource's key may do."""
    actions = (access for of_view in ACCESS.values() for access in of_view.values())
    scopes = {scope for access in actions if kind in access.kinds for scope in access.scopes}
    # A resource's key reads the customers of its bookings.
    return frozenset(scopes | ({PEOPLE_READ} if kind == RESOURCE else set()))


def may_make_key(
    caller: Caller,
    kind: str,
    *,
    scopes: Collection[str] | None = None,
    projects: Collection[UUID] | None = None,
    addresses: Collection[Network] | None = None,
) -> bool:
    """Whether a key of the kind with these limits can do no more than the caller's own key. None:
    no limit.
    """
    if kind != Credential.SERVER:
        scopes = scopes_of_kind(kind)
    return (
        _is_within(scopes, caller.scopes)
        and _is_within(projects, caller.projects)
        and (
            caller.addresses is None
            or (
                addresses is not None
                and all(_lies_in(each, caller.addresses) for each in addresses)
            )
        )
    )


def check_may_make_resource_key(caller: Caller) -> None:
    """Raise Forbidden unless the caller may set what gets somebody the key of a resource."""
    caller.check_scopes(KEYS_WRITE)
    if not may_make_key(caller, RESOURCE):
        raise Forbidden(WIDER_KEY)


def _is_within(narrow: Collection[Any] | None, wide: frozenset[Any] | None) -> bool:
    return wide is None or (narrow is not None and wide.issuperset(narrow))


def _lies_in(network: Network, others: Collection[Network]) -> bool:
    return any(
        network.version == other.version and network.subnet_of(other)  # type: ignore[arg-type]
        for other in others
    )


class OriginPermission(BasePermission):
    """A widget key with `origins` works on these web sites only."""

    def has_permission(self, request: Request, view: Any) -> bool:
        origin = request.META.get("HTTP_ORIGIN")
        if request.auth and not view.caller.allows_origin(origin):
            raise Forbidden("This key can't be used on this web site: see `origins` of the key.")
        return True


class AddressPermission(BasePermission):
    """A key with `addresses` works in these networks only."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if request.auth and not view.caller.allows_address(read_client_address(request)):
            raise AddressNotAllowed()
        return True


class KeyPermission(BasePermission):
    """The kind of key, the role of the account and the limits of the key, by the table above. A
    method that the path does not have is 405 for every key.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        if request.method == "OPTIONS":
            return True
        if not request.auth:
            return False
        caller = view.caller
        if view.action is None:
            return True
        access = view.access
        if caller.kind in (WIDGET, RESOURCE):
            if caller.kind not in access.kinds:
                raise Forbidden(f"A {caller.kind} key can't do this.")
            return True
        caller.check_scopes(*access.scopes)
        if caller.projects is not None and not access.by_project:
            raise Forbidden(OUTSIDE_PROJECTS)
        if caller.kind == Credential.SERVER:
            if access.only_accounts:
                raise Forbidden("Only accounts may do this: use an access token.")
            return True
        if view.needs_app and not view.has_role(access.role):
            raise Forbidden(f"Only the role {access.role} or a higher one may do this.")
        return True


def may_call(caller: Any, access: Access) -> bool:
    """Whether a Caller passes KeyPermission for an action of its app."""
    if caller.kind in (WIDGET, RESOURCE):
        return caller.kind in access.kinds
    is_limited = caller.projects is not None and not access.by_project
    if is_limited or not caller.has_scopes(*access.scopes):
        return False
    if caller.kind == Credential.SERVER:
        return not access.only_accounts
    return RANKS[caller.role] >= RANKS[access.role]
