"""Verify the customer's e-mail address before a public page's booking is made.

The time (of a group: a seat) is held, and an e-mail contains a code. The code is derived from the
row's id and the code's number, and stored nowhere.
"""

import hmac
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet

from apps_config.models import App
from apps_config.public_limits import CODES, count_subjects
from availability.models import Project
from availability.reserve.holds import HoldExpired, extend_hold, find_hold, release_hold
from bookings.booking_target import BookingTarget
from bookings.models import Booking, UnverifiedBooking
from bookings.public_booking_checks import count_public_booking, count_public_hold
from bookings.services.create import NewBooking
from bookings.services.create_seat import NewSeat, lock_group_with_free_seat
from bookings.services.customer_limits import check_unverified_booking
from bookings.services.hold import NewHold, hold_time
from bookings.services.public_hold_limits import check_held_seats
from bookings.services.transition_log import Actor
from common.db.batching import delete_in_batches
from common.db.calls_outside_transaction import with_calls_outside_transaction
from common.db.ids import new_tenant_id
from common.db.sql import wait_for_turn
from common.email_address import limit_key
from common.errors import Invalid, NotFound
from common.hooks import Hook
from common.keyed_digests import keyed_digest

HELD_SECONDS = 900
MAX_CODES_TRIED = 5
CODE_DIGITS = 6
KEPT_FOR = timedelta(days=1)  # as holds
PURGE_SLICE = 5000

# Called in the transaction with each row that waits for a new code, and the instant, to mail it.
on_unverified_booking = Hook[Callable[[UnverifiedBooking, datetime], None]]()

Make = Callable[..., Booking]


class WrongCode(Invalid):
    """The code is wrong; `attempts_left` says how many more can be tried."""


def needs_verification(project: Project | None) -> bool:
    return bool(project and project.settings.get("verify_email"))


def hold_until_verified(
    new: NewBooking | NewSeat,
    *,
    target: BookingTarget,
    body: Mapping[str, Any],
    zone: str,
    client_address: str,
    now: datetime,
) -> UnverifiedBooking:
    """Hold the time or seat of the booking for 15 minutes and mail a code to its first customer.

    If the hold already waits for a code, its 15 minutes go on. The same request again changes
    nothing; another body replaces the first one, and a new code the first code.

    body: of the request; it is parsed again after the verification. zone: of the wall times in the
    body. Raises what `hold_time`, `extend_hold` and `lock_group_with_free_seat` raise; LimitReached
    for a fourth code in an hour and above the limits of public callers; PolicyViolated for a limit
    of the customer's bookings.
    """
    email = new.customers[0]["email"]
    project = target.project
    if project is None:
        raise ValueError("only a project verifies addresses")
    content = {
        "project": project,
        "email": email,
        "body": dict(body),
        "zone": zone,
        "quantity": target.quantity,
        "place": new.place if isinstance(new, NewSeat) else None,
    }
    with transaction.atomic():
        row = _lock_row_of_hold(target, now)
        if row and (row.body, row.zone) == (content["body"], zone):
            return row
        count_subjects(target.app, [(CODES, limit_key(email))], now)
        if row:
            _replace(row, content)
        else:
            row = UnverifiedBooking(
                id=_hold(new, target, client_address, now),
                app=target.app,
                group_id=new.owner_id if isinstance(new, NewSeat) else None,
                created_at=now,
                expires_at=now + timedelta(seconds=HELD_SECONDS),
                **content,
            )
            row.save(force_insert=True)
        check_unverified_booking(row, now=now)
        for listener in on_unverified_booking:
            listener(row, now)
        if target.public_request:
            count_public_booking(
                target.app, target.public_request, quantity=target.quantity, now=now
            )
    return row


def _lock_row_of_hold(target: BookingTarget, now: datetime) -> UnverifiedBooking | None:
    """Return the locked row if the target's hold already waits for a code. Raises HoldExpired.

    Two first requests with one hold run one after another.
    """
    if not target.holds:
        return None
    hold_id = target.holds[0].id
    wait_for_turn(f"verification {hold_id}")
    row = UnverifiedBooking.objects.select_for_update(no_key=True).filter(id=hold_id).first()
    if row and (row.ended_at or row.expires_at <= now):
        raise HoldExpired
    return row


def send_new_code(app: App, row_id: uuid.UUID, *, now: datetime) -> UnverifiedBooking:
    """Mail another code for the same request: the earlier one ends, the 15 minutes go on.

    Raises NotFound, HoldExpired; LimitReached for a fourth code in an hour.
    """
    with transaction.atomic():
        rows = UnverifiedBooking.objects.select_for_update(no_key=True)
        row = rows.filter(app=app, id=row_id).first()
        if row is None:
            raise NotFound("Hold")
        if row.ended_at or row.expires_at <= now:
            raise HoldExpired
        count_subjects(app, [(CODES, limit_key(row.email))], now)
        _replace(row, {})
        for listener in on_unverified_booking:
            listener(row, now)
    return row


def _replace(row: UnverifiedBooking, content: Mapping[str, Any]) -> None:
    """Store other values in the row, which then waits for a new code."""
    for name, value in content.items():
        setattr(row, name, value)
    row.code_number += 1
    row.codes_tried = 0
    row.save()


def _hold(
    new: NewBooking | NewSeat, target: BookingTarget, client_address: str, now: datetime
) -> uuid.UUID:
    """Hold the time; return the hold's id. A seat needs no hold: its row is counted."""
    if isinstance(new, NewSeat):
        group = lock_group_with_free_seat(new, target, now)
        if target.public_request:
            check_held_seats(group, new.quantity, now=now)
            count_public_hold(target.app, target.public_request, quantity=new.quantity, now=now)
        return new_tenant_id(target.app.id)
    if target.holds:
        return extend_hold(target.holds[0], seconds=HELD_SECONDS, now=now).id
    hold = NewHold(
        start=new.start,
        end=new.end,
        seconds=HELD_SECONDS,
        allow_double_bookings=new.allow_double_bookings,
        enforce_availability=new.enforce_availability,
        client_address=client_address,
    )
    return hold_time(hold, target=target, now=now).id


def code_of(row_id: uuid.UUID, number: int = 1) -> str:
    """Return the code of six digits. number: the row's `code_number`."""
    digest = keyed_digest("bookings.verification", f"{row_id} {number}")
    return f"{int.from_bytes(digest[:8]) % 10**CODE_DIGITS:0{CODE_DIGITS}}"


def check_code(app: App, row_id: uuid.UUID, code: str, *, now: datetime) -> None:
    """Compare the code. Call this outside a transaction, so that no rollback undoes the count.

    Each attempt is counted before the code is compared, so concurrent requests get no more than
    five attempts. Raises WrongCode (the fifth also ends the hold), HoldExpired, NotFound.
    """
    rows = UnverifiedBooking.objects.filter(app=app, id=row_id)
    unexpired = _unexpired(rows, now).filter(codes_tried__lt=MAX_CODES_TRIED)
    if not unexpired.update(codes_tried=F("codes_tried") + 1):
        if not rows.exists():
            raise NotFound("Hold")
        raise HoldExpired
    row = rows.get()
    if _is_code_of(row, code):
        rows.update(codes_tried=F("codes_tried") - 1)
        return
    if row.codes_tried >= MAX_CODES_TRIED:
        end_hold(app, row_id, now=now)
    raise _wrong_code(row)


def _is_code_of(row: UnverifiedBooking, code: str) -> bool:
    return hmac.compare_digest(code.encode(), code_of(row.id, row.code_number).encode())


def _wrong_code(row: UnverifiedBooking) -> WrongCode:
    left = max(0, MAX_CODES_TRIED - row.codes_tried)
    return WrongCode({"code": ["This code is wrong."]}, attempts_left=left)


def _unexpired(rows: QuerySet[UnverifiedBooking], now: datetime) -> QuerySet[UnverifiedBooking]:
    return rows.filter(ended_at=None, expires_at__gt=now)


def find_verified(app: App, row_id: uuid.UUID, code: str, *, now: datetime) -> UnverifiedBooking:
    """Return the row whose code `check_code` has accepted, if it still holds its time or seat.

    Raises NotFound, HoldExpired; WrongCode if another body has replaced what the code was for.
    """
    row = UnverifiedBooking.objects.filter(app=app, id=row_id).first()
    if row is None:
        raise NotFound("Hold")
    if row.ended_at or row.expires_at <= now:
        raise HoldExpired
    if not _is_code_of(row, code):
        raise _wrong_code(row)
    return row


@with_calls_outside_transaction
def make_verified(
    row: UnverifiedBooking,
    make: Make,
    new: NewBooking | NewSeat,
    *,
    target: BookingTarget,
    actor: Actor,
    now: datetime,
) -> Booking:
    """Create the booking of a verified address with `make`, which uses up the hold; empty the row.

    Raises HoldExpired if another request was first; otherwise what `make` raises.
    """
    verified = UnverifiedBooking.objects.filter(id=row.id, code_number=row.code_number)
    with transaction.atomic():
        if not empty_rows(verified.filter(ended_at=None), now=now):
            raise HoldExpired
        return make(new, target=target, actor=actor, now=now)


def end_hold(app: App, row_id: uuid.UUID, *, now: datetime) -> bool:
    """Stop waiting for the code and release the time or seat; return whether it was held."""
    with transaction.atomic():
        rows = UnverifiedBooking.objects.filter(app=app, id=row_id)
        if not empty_rows(_unexpired(rows, now), now=now):
            return False
        hold = find_hold(app, row_id)
        with suppress(HoldExpired, NotFound):
            if hold:
                release_hold(hold, now=now)
    return True


def empty_rows(rows: QuerySet[UnverifiedBooking], *, now: datetime) -> int:
    """End the rows and remove the customers' input; return the number of rows."""
    return rows.update(ended_at=now, email="", limit_key="", body={})


def purge_unverified(*, now: datetime) -> Iterator[int]:
    """Delete rows a day after they expire, like holds; yield the size of each batch."""
    expired = UnverifiedBooking.objects.filter(expires_at__lte=now - KEPT_FOR)
    yield from delete_in_batches(expired, "expires_at", PURGE_SLICE)
