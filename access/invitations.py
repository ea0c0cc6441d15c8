"""Invitations to an app: send, send again, revoke, accept."""

from datetime import datetime, timedelta

from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.db import transaction

from apps_config.models import Account, App, Invitation, Membership, SecurityEvent
from apps_config.security_events import record_event, record_role
from apps_config.services import end_tokens_of_new_owner
from common.email_address import canonical_address
from common.errors import AlreadyExists, NotFound, Refusal
from common.messages import Message
from notifications.links.invitations import INVITATION_LASTS, INVITATION_MAIL
from notifications.models import Delivery
from notifications.outbox.queueing import queue_delivery

RESEND_PAUSE = timedelta(minutes=5)


class SentRecently(Refusal):
    """The invitation was sent a moment ago."""

    code = "policy"

    def __init__(self) -> None:
        super().__init__(
            Message("This invitation was just sent. Wait five minutes to send it again.")
        )


def invite_member(*, app: App, email: str, role: str, now: datetime) -> Invitation:
    """Invite the person with this address; an e-mail with a link is queued.

    Nobody becomes a member before they accept, and no account is created. Raises AlreadyExists for
    a member and for an address with an open invitation. An expired one is replaced.
    """
    address = canonical_address(email.strip())
    with transaction.atomic():
        # Two requests at once: the second one finds the invitation of the first.
        App.objects.select_for_update(no_key=True).get(id=app.id)
        if Membership.objects.filter(app=app, account__email=address).exists():
            raise AlreadyExists(Message("This person is already a member."))
        earlier = app.invitations.open().filter(email=address).first()
        if earlier and earlier.expires_at > now:
            raise AlreadyExists(Message("This person is already invited."))
        if earlier:
            _end(earlier, now)
        invitation = Invitation(app=app, email=address, role=role)
        _send(invitation, now)
        _record(SecurityEvent.MEMBER_INVITED, invitation)
    return invitation


def resend_invitation(invitation: Invitation, *, now: datetime) -> Invitation:
    """Queue the e-mail again with a new link, which ends the old one.

    Raises NotFound if the invitation is no longer open, SentRecently within RESEND_PAUSE.
    """
    with transaction.atomic():
        locked = lock_invitation(invitation)
        if now < locked.sent_at + RESEND_PAUSE:
            raise SentRecently
        _send(locked, now)
    return locked


def revoke_invitation(invitation: Invitation, *, now: datetime) -> None:
    """End the invitation and its link. Raises NotFound if it is no longer open."""
    with transaction.atomic():
        row = lock_invitation(invitation)
        _end(row, now)
        _record(SecurityEvent.INVITATION_REVOKED, row)


def account_of_invitation(invitation: Invitation) -> Account | None:
    """The account with the invited address. Raises NotFound if it is disabled."""
    account = Account.objects.filter(email=invitation.email).first()
    if account and not account.is_active:
        raise NotFound("Invitation")
    return account


def needs_password(account: Account | None) -> bool:
    """Whether the person can't log in yet, so that the link lets them choose a password.

    Not for platform staff, and not for people whose identity provider knows them.
    """
    if not settings.PASSWORD_LOGIN:
        return False
    if account is None:
        return True
    is_known = account.is_staff or account.is_superuser or account.has_usable_password()
    return not is_known and not SocialAccount.objects.filter(user=account).exists()


def accept_invitation(invitation: Invitation, *, password: str | None, now: datetime) -> Membership:
    """Make the person a member; creates their account if there is none.

    password: for a person without one; None keeps the account as it is. A member keeps the higher
    of both roles. Raises NotFound if the invitation is no longer open.
    """
    with transaction.atomic():
        locked = lock_invitation(invitation)
        account = account_of_invitation(locked)
        takes_password = needs_password(account)
        if account is None:
            account = Account.objects.create_user(locked.email)
        if password is not None and takes_password:
            account.set_password(password)
            account.save(update_fields=["password"])
        member = Membership.objects.filter(app=locked.app_id, account=account).first()
        before = member.role if member else ""
        member = member or Membership(app=locked.app, account=account, role=locked.role)
        member.role = max(member.role, locked.role, key=Membership.ROLES.index)
        member.save()
        if member.role != before:
            record_role(member, before=before, actor=account.email)
            end_tokens_of_new_owner(member)
        locked.accepted_at = now
        locked.save(update_fields=["accepted_at"])
    return member


def lock_invitation(invitation: Invitation) -> Invitation:
    """Lock the app's members and return the open invitation. Raises NotFound."""
    App.objects.select_for_update(no_key=True).get(id=invitation.app_id)
    row = Invitation.objects.open().select_related("app").filter(pk=invitation.pk).first()
    if row is None:
        raise NotFound("Invitation")
    return row


def _record(event: str, invitation: Invitation) -> None:
    about = {"member": invitation.email, "role": invitation.role}
    record_event(event, app_id=invitation.app_id, about=about)


def _end(invitation: Invitation, now: datetime) -> None:
    invitation.revoked_at = now
    invitation.save(update_fields=["revoked_at"])


def _send(invitation: Invitation, now: datetime) -> None:
    """Save the invitation with a new expiry, and queue its e-mail.

    The link is created when the e-mail is sent, and is stored nowhere. An e-mail that is still
    queued is not sent: it has an older `sent_at`.
    """
    invitation.sent_at, invitation.expires_at = now, now + INVITATION_LASTS
    invitation.save()
    queue_delivery(
        app=invitation.app,
        type=Delivery.EMAIL,
        kind=INVITATION_MAIL,
        recipient="owner",
        content={"invitation_id": str(invitation.id), "sent_at": now.isoformat()},
        expires_at=invitation.expires_at,
        now=now,
    )
