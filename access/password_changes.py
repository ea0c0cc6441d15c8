"""What a new password ends: the account's sessions and access tokens."""

from contextlib import nullcontext

from allauth.usersessions.models import UserSession
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from access.sessions import end_sessions
from apps_config.history import change_actor, current_actor
from apps_config.models import Account, SecurityEvent
from apps_config.security_events import record_event
from apps_config.services import end_access_tokens
from common.middleware import request_origin


class EndLogIns:
    """A validator of AUTH_PASSWORD_VALIDATORS, which accepts every password.

    Django calls `password_changed` of the validators when an account with another password is
    saved, whoever changed it, and not when it hashes the same password anew. Django itself refuses
    sessions of the earlier password; without their rows, lists do not show them.
    """

    def validate(self, password: str, user: Account | None = None) -> None:
        """Accept the password: other validators check it."""

    def get_help_text(self) -> str | Promise:
        return _("A new password ends all other sessions and all access tokens.")

    def password_changed(self, password: str, user: Account) -> None:
        # A person with a link has no session: the link proves who it is.
        has_link = request_origin() and not current_actor()
        with change_actor(user.pk, user.email) if has_link else nullcontext():
            record_event(SecurityEvent.PASSWORD_CHANGED, account_id=user.pk)
            end_access_tokens(user)
            end_sessions(UserSession.objects.filter(user=user))
