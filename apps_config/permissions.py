"""Who may call what: the table of all actions, and DRF's permissions that read it."""

from typing import Any, NamedTuple

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from apps_config.models import Credential, Membership
from common.errors import Forbidden

VIEWER, EDITOR, OWNER = Membership.VIEWER, Membership.EDITOR, Membership.OWNER
RESOURCE, WIDGET = Credential.RESOURCE, Credential.WIDGET
RANKS = {role: rank for rank, role in enumerate(Membership.ROLES)}


class Access(NamedTuple):
    """The least role of an account, and the kinds of key that may call an action. A server key may
    call every action, unless it is `only_accounts`.
    """

    role: str
    kinds: tuple[str, ...] = ()
    only_accounts: bool = False

    def __str__(self) -> str:
        """Return the kinds of key for the API's description."""
        others = [f"{kind} key" for kind in (WIDGET, RESOURCE) if kind in self.kinds]
        servers = [] if self.only_accounts else ["server key"]
        return ", ".join([*servers, f"access token ({self.role})", *others])


def all_of(role: str, *kinds: str, actions: str) -> dict[str, Access]:
    return dict.fromkeys(actions.split(), Access(role, kinds))


# By the name of the viewset on the router, and its action.
ACCESS: dict[str, dict[str, Access]] = {
    "app": {"retrieve": Access(VIEWER)},
    "apps": {
        "list": Access(VIEWER),
        "create": Access(OWNER, only_accounts=True),
        "retrieve": Access(VIEWER),
        "update": Access(EDITOR),
        "destroy": Access(OWNER),
    },
    "members": all_of(OWNER, actions="list create destroy"),
    "credentials": all_of(OWNER, actions="list create destroy"),
    "resources": {
        "list": Access(VIEWER, (RESOURCE,)),
        "create": Access(EDITOR),
        "retrieve": Access(VIEWER, (RESOURCE,)),
        "update": Access(EDITOR, (RESOURCE,)),
        "destroy": Access(EDITOR),
        "retrieve_timezone": Access(VIEWER, (RESOURCE,)),
    },
    "password-resets": {"create": Access(EDITOR)},
    "schedules": {
        "list": Access(VIEWER),
        "create": Access(EDITOR),
        "retrieve": Access(VIEWER),
        "update": Access(EDITOR),
        "destroy": Access(EDITOR),
    },
    "calendars": {
        "list": Access(VIEWER, (RESOURCE,)),
        "create": Access(EDITOR, (RESOURCE,)),
        "retrieve": Access(VIEWER, (RESOURCE,)),
        "update": Access(EDITOR, (RESOURCE,)),
        "destroy": Access(EDITOR, (RESOURCE,)),
        "connect": Access(EDITOR, (RESOURCE,)),
        "test": Access(VIEWER, (RESOURCE,)),
        "sync": Access(EDITOR, (RESOURCE,)),
        "disconnect": Access(EDITOR, (RESOURCE,)),
    },
    "calendar-clients": all_of(OWNER, actions="list update destroy"),
    "feeds": all_of(EDITOR, RESOURCE, actions="create destroy"),
    "events": {
        "list": Access(VIEWER, (RESOURCE,)),
        "create": Access(EDITOR, (RESOURCE,)),
        "retrieve": Access(VIEWER, (RESOURCE,)),
        "update": Access(EDITOR, (RESOURCE,)),
        "destroy": Access(EDITOR, (RESOURCE,)),
    },
    "projects": {
        "list": Access(VIEWER),
        "create": Access(EDITOR),
        "retrieve": Access(VIEWER),
        "update": Access(EDITOR),
        "destroy": Access(EDITOR),
        "list_resources": Access(VIEWER),
        "set_resources": Access(EDITOR),
        "add_resource": Access(EDITOR),
        "remove_resource": Access(EDITOR),
    },
    "embedded-pages": {"retrieve": Access(VIEWER, (WIDGET,))},
    "availability": {
        "search": Access(VIEWER, (WIDGET, RESOURCE)),
        "list_dates": Access(VIEWER, (WIDGET, RESOURCE)),
        "count_slots": Access(VIEWER, (WIDGET, RESOURCE)),
        "explain": Access(VIEWER, (RESOURCE,)),
        "list_unavailable": Access(VIEWER, (RESOURCE,)),
    },
    "findtime": {
        "find_time": Access(VIEWER, (WIDGET, RESOURCE)),
        "find_times": Access(VIEWER, (RESOURCE,)),
        "find_team_times": Access(VIEWER, (RESOURCE,)),
    },
    "bookings": {
        "list": Access(VIEWER, (RESOURCE,)),
        "create": Access(EDITOR, (WIDGET, RESOURCE)),
        "retrieve": Access(VIEWER, (RESOURCE,)),
        "update": Access(EDITOR, (RESOURCE,)),
        "destroy": Access(EDITOR, (RESOURCE,)),
        "reschedule": Access(EDITOR, (WIDGET, RESOURCE)),
        "reschedule_by_put": Access(EDITOR, (RESOURCE,)),
        "apply_action": Access(EDITOR, (RESOURCE,)),
    },
    "bulk": all_of(EDITOR, RESOURCE, actions="create update"),
    "holds": {
        "create": Access(EDITOR, (WIDGET, RESOURCE)),
        "extend": Access(EDITOR, (WIDGET, RESOURCE)),
        "destroy": Access(EDITOR, (WIDGET, RESOURCE)),
        "verify": Access(EDITOR, (WIDGET, RESOURCE)),
        "code": Access(EDITOR, (WIDGET, RESOURCE)),
    },
    "groups": all_of(VIEWER, WIDGET, RESOURCE, actions="list retrieve"),
    "challenge": {"retrieve": Access(VIEWER, (WIDGET,))},
    "customers": {
        "list": Access(VIEWER),
        "export": Access(VIEWER),
        "set_note": Access(EDITOR),
        "erase": Access(EDITOR),
    },
    "reports": all_of(VIEWER, actions="utilisation outcomes lead_time sources customers"),
    "changes": {"list": Access(VIEWER)},
    "webhooks": {
        "list": Access(VIEWER),
        "create": Access(EDITOR),
        "retrieve": Access(VIEWER),
        "update": Access(EDITOR),
        "destroy": Access(EDITOR),
        "rotate": Access(EDITOR),
        "test": Access(EDITOR),
    },
    "webhook-deliveries": {"list": Access(VIEWER)},
    "deliveries": {
        "list": Access(VIEWER),
        "retrieve": Access(VIEWER),
        "redeliver": Access(EDITOR),
    },
    "templates": {
        "list": Access(VIEWER),
        "retrieve": Access(VIEWER),
        "update": Access(EDITOR),
        "preview": Access(VIEWER),
    },
}


class OriginPermission(BasePermission):
    """A widget key with `origins` works on these web sites only."""

    def has_permission(self, request: Request, view: Any) -> bool:
        origin = request.META.get("HTTP_ORIGIN")
        if request.auth and not view.caller.allows_origin(origin):
            raise Forbidden("This key can't be used on this web site: see `origins` of the key.")
        return True


class KeyPermission(BasePermission):
    """The kind of key, and the role of the account, by the table above. A method that the path
    does not have is 405 for every key.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        if request.method == "OPTIONS":
            return True
        if not request.auth:
            return False
        caller = view.caller
        if view.action is None:
            return True
        if caller.kind in (WIDGET, RESOURCE):
            return caller.kind in view.access.kinds
        if caller.kind == Credential.SERVER:
            if view.access.only_accounts:
                raise Forbidden("Only accounts may do this: use an access token.")
            return True
        return not view.needs_app or view.has_role(view.access.role)


def may_call(caller: Any, access: Access) -> bool:
    """Whether a Caller passes KeyPermission for an action of its app."""
    if caller.kind in (WIDGET, RESOURCE):
        return caller.kind in access.kinds
    if caller.kind == Credential.SERVER:
        return not access.only_accounts
    return RANKS[caller.role] >= RANKS[access.role]
