from datetime import timedelta

from allauth.idp.oidc.models import Token
from allauth.usersessions.models import UserSession
from celery import shared_task
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.utils import timezone

from apps_config.authentication import PURGE_SLICE, purge_failed_logins
from apps_config.changes import purge_changes
from apps_config.idempotency import purge_records
from apps_config.public_limits import purge_request_counts
from apps_config.security_events import purge_security_events
from common.db.batching import delete_in_batches, finish_within
from common.db.sql import database_now

PURGE_SECONDS = 10.0  # of one purge: a worker that is shutting down waits for it


@shared_task
def purge_idempotency_records() -> None:
    """Delete idempotency records older than a day, failed log-ins of earlier minutes, and expired
    counts of public requests and OAuth tokens.

    A follow-up task continues if time runs out.
    """
    now = database_now()
    purges = (
        purge_records(now=now),
        purge_failed_logins(now=now),
        purge_request_counts(now=now),
        delete_in_batches(Token.objects.expired(), "id", PURGE_SLICE),
    )
    if not all(finish_within(PURGE_SECONDS, purge) for purge in purges):
        purge_idempotency_records.apply_async(expires=3600, retry=False)


@shared_task
def purge_sessions_and_security_events() -> None:
    """Delete sessions that have ended, and events after 400 days.

    A follow-up task continues if time runs out.
    """
    call_command("clearsessions")
    ended = UserSession.objects.exclude(session_key__in=Session.objects.values("session_key"))
    # The row of a session that is just beginning is older than the session's.
    ended.filter(last_seen_at__lt=timezone.now() - timedelta(hours=1)).delete()
    if not finish_within(PURGE_SECONDS, purge_security_events(now=database_now())):
        purge_sessions_and_security_events.apply_async(expires=3600, retry=False)


@shared_task
def purge_old_changes() -> None:
    """Delete changes after 30 days; a follow-up task continues if time runs out."""
    if not finish_within(PURGE_SECONDS, purge_changes(now=database_now())):
        purge_old_changes.apply_async(expires=3600, retry=False)
