"""What can go wrong: one class for each `code` of the service, under `SchedulingError`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, get_type_hints

from scheduling_client.model import reader_of
from scheduling_client.models import FailedOccurrence, Reason, Span


class SchedulingError(Exception):
    """Everything that this package raises about the service."""


class ConnectionFailed(SchedulingError):
    """No answer, also not to the repeated requests. `__cause__` is the error of httpx.

    A write may have taken effect: repeat it with the same `idempotency_key`.
    """

    def __init__(self, message: str, idempotency_key: str | None) -> None:
        super().__init__(message)
        self.idempotency_key = idempotency_key

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return type(self), (str(self), self.idempotency_key)


class UnexpectedAnswer(SchedulingError):
    """An answer of success that is no JSON, such as a page of a proxy. status: of HTTP.

    A write may have taken effect: repeat it with the same `idempotency_key`.
    """

    def __init__(self, message: str, status: int, idempotency_key: str | None) -> None:
        super().__init__(message)
        self.status = status
        self.idempotency_key = idempotency_key

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return type(self), (str(self), self.status, self.idempotency_key)


class VerificationRequired(SchedulingError):
    """The time is held until `expires_at`, and the customer gets a code by e-mail, with which
    `bookings.verify(reservation_id, code)` books. Only with a widget key, and if the project asks
    for it (`settings.verify_email`).
    """

    def __init__(self, reservation_id: str, expires_at: datetime) -> None:
        super().__init__("The customer has to confirm the e-mail address.")
        self.reservation_id = reservation_id
        self.expires_at = expires_at

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return type(self), (self.reservation_id, self.expires_at)


class InvalidSignature(SchedulingError):
    """A webhook call that the service did not sign, or too long ago."""


class Refused(SchedulingError):
    """The service refused the request; nothing has changed.

    status: of HTTP. code: for programs, such as `slot_taken`. message: one sentence for a person.
    request_id: finds the request in the service's log. body: the whole answer.
    """

    code = ""

    def __init__(
        self, status: int, body: Mapping[str, Any], *, retry_after: float | None = None
    ) -> None:
        self.status = status
        self.body = dict(body)
        self.code = str(body.get("code") or self.code or f"http_{status}")
        self.message = str(body.get("error") or f"The service answered {status}.")
        self.request_id: str | None = body.get("request_id")
        self.retry_after = retry_after
        super().__init__(f"{self.code}: {self.message}")
        for name, hint in get_type_hints(type(self)).items():
            setattr(self, name, reader_of(hint)(body.get(name)))

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return partial(type(self), retry_after=self.retry_after), (self.status, self.body)


class Malformed(Refused):
    code = "malformed"


class Unauthenticated(Refused):
    code = "unauthenticated"


class SecondFactorRequired(Refused):
    code = "second_factor_required"


class Forbidden(Refused):
    code = "forbidden"


class AddressNotAllowed(Refused):
    """The key has `addresses`, and this client is in none of these networks."""

    code = "address_not_allowed"


class NotFound(Refused):
    """model: what was not found, such as `Booking`."""

    code = "not_found"
    model: str | None


class MethodNotAllowed(Refused):
    code = "method_not_allowed"


class NotAcceptable(Refused):
    code = "not_acceptable"


class RequestTimeout(Refused):
    code = "request_timeout"


class SlotTaken(Refused):
    """The time overlaps an event, a booking or a hold. alternatives: the next free times."""

    code = "slot_taken"
    conflicts: list[Span] | None
    alternatives: list[Span] | None
    occurrences: list[FailedOccurrence] | None


class NotAvailable(Refused):
    """The time breaks a rule. reasons: which. alternatives: the next free times."""

    code = "not_available"
    reasons: list[Reason] | None
    alternatives: list[Span] | None
    occurrences: list[FailedOccurrence] | None


class ActionNotAllowed(Refused):
    """The booking's state does not allow the action. available_actions: what it allows."""

    code = "action_not_allowed"
    state: str | None
    available_actions: list[str] | None


class PolicyViolated(Refused):
    """policy: the name of the project's setting. limit: its value."""

    code = "policy"
    policy: str | None
    limit: str | int | None


class HoldExpired(Refused):
    code = "hold_expired"


class GroupFull(Refused):
    code = "group_full"


class InUse(Refused):
    """booking_id: for an event, its booking."""

    code = "in_use"
    booking_id: str | None
    conflicts: list[Span] | None


class AlreadyExists(Refused):
    code = "already_exists"


class Outdated(Refused):
    code = "outdated"


class IdempotencyInProgress(Refused):
    code = "idempotency_in_progress"


class CursorExpired(Refused):
    """Changes after the cursor are no longer listed: read everything anew, begin without cursor."""

    code = "cursor_expired"


class PreconditionFailed(Refused):
    code = "precondition_failed"


class TooLarge(Refused):
    code = "too_large"


class UnsupportedMediaType(Refused):
    code = "unsupported_media_type"


class Misdirected(Refused):
    """A router sent the request to a cell that does not have the app."""

    code = "misdirected"


class IdempotencyMismatch(Refused):
    """The `idempotency_key` belongs to another request."""

    code = "idempotency_mismatch"


class Invalid(Refused):
    """errors: the sentences about each invalid value, by its path in the body."""

    code = "invalid"
    errors: dict[str, list[str]] | None
    problem: str | None


class NotAttempted(Refused):
    """In a bulk request: after the first error, with `stop_on_first_error`."""

    code = "not_attempted"


class NotKept(Refused):
    """In a bulk request: undone because of another one's error."""

    code = "not_kept"


class RateLimited(Refused):
    """retry_after: seconds."""

    code = "rate_limited"
    errors: dict[str, list[str]] | None


class Internal(Refused):
    code = "internal"


class Unavailable(Refused):
    """retry_after: seconds."""

    code = "unavailable"


BY_CODE: dict[str, type[Refused]] = {each.code: each for each in Refused.__subclasses__()}


def refusal(status: int, body: Any, *, retry_after: float | None = None) -> Refused:
    """Return the error of an answer; a code that this package does not know is a `Refused`."""
    body = body if isinstance(body, Mapping) else {}
    kind = BY_CODE.get(str(body.get("code")), Refused)
    return kind(status, body, retry_after=retry_after)
