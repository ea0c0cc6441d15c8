"""Sessions of the back office: list and end."""

from collections import Counter

from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from apps_config.models import Account, SecurityEvent
from apps_config.security_events import record_event


def open_sessions(account: Account | None = None) -> QuerySet[UserSession]:
    """The sessions that have not ended, newest first; of one account or of all."""
    valid = Session.objects.filter(expire_date__gt=timezone.now()).values("session_key")
    rows = UserSession.objects.filter(session_key__in=valid).order_by("-created_at", "-id")
    return rows.filter(user=account) if account else rows


def end_sessions(rows: QuerySet[UserSession]) -> int:
    """End these sessions: their next request asks for a log-in. Returns their number."""
    with transaction.atomic(savepoint=False):
        accounts = dict(rows.values_list("session_key", "user"))
        Session.objects.filter(session_key__in=accounts).delete()
        UserSession.objects.filter(session_key__in=accounts).delete()
        for account_id, count in Counter(accounts.values()).items():
            about = {"sessions": count}
            record_event(SecurityEvent.SESSIONS_ENDED, account_id=account_id, about=about)
    return len(accounts)


def list_new_session(request: HttpRequest) -> None:
    """List the session again after a change of a password: Django has given it another key."""
    UserSession.objects.create_from_request(request)
