"""From a person's consent at a provider to a connected calendar."""

from datetime import datetime

from availability.models import Calendar
from common.errors import Invalid
from common.messages import Message
from external_calendars.grants import Consent, WrongAccount, grant_of_consent, refuse_consent
from external_calendars.models import ConsentRequest
from external_calendars.providers.base import ProviderError
from external_calendars.services import (
    NotConnectable,
    connect_calendar,
    grant_access,
    reconnect_calendar,
)

DENIED = Message("The permission was not given at the provider.")


class ConsentRefused(Invalid):
    """The person did not agree (`access_denied`), or chose another account (`wrong_account`)."""

    def __init__(self, problem: str, text: str) -> None:
        super().__init__({"provider": [text]}, problem=problem)


def receive_consent(request: ConsentRequest, code: str, error: str, *, now: datetime) -> Consent:
    """Return the consent, whose grant is stored, for a code or an error of the provider.

    Raises ConsentEnded, ConsentRefused, NotConnectable, Invalid.
    """
    if error or not code:
        refuse_consent(request)
        raise ConsentRefused("access_denied", DENIED)
    try:
        return grant_of_consent(request, code, now=now)
    except WrongAccount as wrong:
        text = Message(
            "You chose the account %(chosen)s, but the calendar belongs to %(expected)s.",
            chosen=wrong.chosen,
            expected=wrong.expected,
        )
        raise ConsentRefused("wrong_account", text) from wrong
    except ProviderError as provider_error:
        raise NotConnectable(provider_error) from provider_error


def restore_calendar(calendar: Calendar, *, now: datetime) -> Calendar:
    """Connect a calendar again that has a new permission. Raises as `reconnect_calendar`."""
    with_new_tokens = Calendar.objects.select_related("resource", "connection__grant")
    return reconnect_calendar(with_new_tokens.get(pk=calendar.pk), {}, now=now)


def finish_consent(request: ConsentRequest, code: str, error: str, *, now: datetime) -> Calendar:
    """Connect the calendar of a request that a program made. Raises as `receive_consent`."""
    _, grant = receive_consent(request, code, error, now=now)
    if request.calendar is not None:
        return restore_calendar(request.calendar, now=now)
    return connect_calendar(
        resource=request.resource,
        provider=request.provider,
        access=grant_access(grant, request.wanted),
        grant=grant,
        given={},
        is_primary=request.is_primary,
        now=now,
    )
