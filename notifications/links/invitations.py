"""Links that let the reader of an e-mail accept an invitation to an app.

The signature covers the invitation, its address and its expiry. A link ends when the invitation is
accepted, revoked or sent again, or expires.
"""

import uuid
from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.conf import settings

from apps_config.models import App, Invitation
from common.errors import Forbidden
from common.messages import Message
from common.signed_links import read_link_expiry, sign_link

INVITATION_MAIL = "invitation"

SALT = "notifications.links.invitations"
INVITATION_LASTS = timedelta(days=7)


class BadInvitationLink(Forbidden):
    """The link is damaged, or its invitation is no longer open."""


def invitation_url(invitation: Invitation) -> str:
    """The absolute address of the page on which the invitation is accepted."""
    signature = sign_link(SALT, _subject(invitation), invitation.expires_at)
    address = f"{settings.PUBLIC_URL}/admin/invitations/{invitation.id}/"
    return f"{address}?{urlencode({'signature': signature})}"


def find_invitation(invitation_id: uuid.UUID, signature: str, *, now: datetime) -> Invitation:
    """The open invitation of a link, with its app. Raises BadInvitationLink."""
    rows = Invitation.objects.open().filter(app__in=App.objects.open(), id=invitation_id)
    invitation = rows.select_related("app").first()
    if invitation is None:
        raise BadInvitationLink(Message("This invitation is no longer valid."))
    expiry = read_link_expiry(SALT, _subject(invitation), signature)
    if expiry is None or expiry != invitation.expires_at.replace(microsecond=0):
        raise BadInvitationLink(Message("This invitation is no longer valid."))
    if now >= expiry:
        raise BadInvitationLink(Message("This invitation has expired."))
    return invitation


def _subject(invitation: Invitation) -> str:
    return f"{invitation.id}.{invitation.email}"
