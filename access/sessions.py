"""Sessions of the back office: list and end."""

from http import HTTPStatus

from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from apps_config.models import Account


def open_sessions(account: Account | None = None) -> QuerySet[UserSession]:
    """The sessions that have not ended, newest first; of one account or of all."""
    valid = Session.objects.filter(expire_date__gt=timezone.now()).values("session_key")
    rows = UserSession.objects.filter(session_key__in=valid).order_by("-created_at", "-id")
    return rows.filter(user=account) if account else rows


def end_sessions(rows: QuerySet[UserSession]) -> int:
    """End these sessions: their next request asks for a log-in. Returns their number."""
    with transaction.atomic(savepoint=False):
        keys = list(rows.values_list("session_key", flat=True))
        Session.objects.filter(session_key__in=keys).delete()
        UserSession.objects.filter(session_key__in=keys).delete()
    return len(keys)


def list_new_session(request: HttpRequest, response: HttpResponse) -> None:
    """List the session again after a change of a password: Django has given it another key."""
    if response.status_code == HTTPStatus.FOUND:
        UserSession.objects.create_from_request(request)
