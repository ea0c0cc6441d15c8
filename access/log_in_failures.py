"""Security events of wrong passwords: bounded in number, because strangers cause them."""

from collections.abc import Sequence
from datetime import datetime

from access.log_in_limits import LogInAttempt
from apps_config.models import Account, SecurityEvent
from apps_config.security_events import count_event
from availability.models import Resource


def record_failure(
    attempt: LogInAttempt, people: Sequence[Account | Resource], *, now: datetime
) -> None:
    """Count and record a wrong password, and the limit that it reaches.

    people: whose address was typed. That of nobody is not stored: it may be a password.
    """
    failure = attempt.count_failure()
    count_person_event(SecurityEvent.LOG_IN_FAILED, people, now=now)
    if failure.is_last_free_failure and people:
        count_person_event(SecurityEvent.LOG_IN_LOCKED, people, now=now)
    if failure.reaches_network_limit:
        about = {"network": attempt.network}
        count_event(SecurityEvent.LOG_IN_LOCKED, about=about, now=now)


def count_person_event(kind: str, people: Sequence[Account | Resource], *, now: datetime) -> None:
    person = people[0] if people else None
    if isinstance(person, Resource):
        about = {"resource": str(person.pk)}
        count_event(kind, app_id=person.app_id, about=about, now=now)
    else:
        count_event(kind, account_id=person.pk if person else None, now=now)


def record_wrong_code(account: Account, *, now: datetime) -> None:
    about = {"factor": "code"}
    count_event(SecurityEvent.LOG_IN_FAILED, account_id=account.pk, about=about, now=now)
