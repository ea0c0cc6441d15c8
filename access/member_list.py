"""Members of an app and open invitations to it, as one list."""

from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import CharField, DateTimeField, F, Q, QuerySet, Value

from apps_config.models import App, Invitation

ACTIVE, INVITED = "active", "invited"


class Member(NamedTuple):
    """A row of `list_members_and_invitations`. `expires_at`: of an invitation."""

    id: UUID
    email: str
    role: str
    state: str
    expires_at: Any


ORDER = ("address", "member_id")


def list_members_and_invitations(app: App, after: Q | None = None) -> QuerySet[Any, Any]:
    """Return rows with the columns of `Member`, in ORDER: a union, which takes slices and counts,
    but no further filters.

    after: a condition on the columns of ORDER.
    """
    after = after or Q()
    members = app.memberships.annotate(
        member_id=F("account_id"),
        address=F("account__email"),
        state=Value(ACTIVE, CharField()),
        until=Value(None, DateTimeField()),
    )
    invited = (
        app.invitations.open()
        .order_by()
        .annotate(
            member_id=F("id"),
            address=F("email"),
            state=Value(INVITED, CharField()),
            until=F("expires_at"),
        )
    )
    columns = ("member_id", "address", "role", "state", "until")
    parts = [rows.filter(after).values_list(*columns) for rows in (members, invited)]
    return parts[0].union(parts[1], all=True).order_by(*ORDER)


def member_of(invitation: Invitation) -> Member:
    return Member(invitation.id, invitation.email, invitation.role, INVITED, invitation.expires_at)
