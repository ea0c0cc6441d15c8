"""Idempotency-Key: the same request twice has one effect and one answer (api.md section 1)."""

import hashlib
import re
import uuid
from collections.abc import Callable, Collection, Iterator
from datetime import datetime, timedelta
from typing import Any

import orjson
from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.models import Q
from django.http import HttpResponse
from django.utils import timezone

from apps_config.models import App, Credential, IdempotencyRecord
from scheduling.api.beforehand import asks_first
from scheduling.api.errors import Invalid, Refusal, Unauthenticated, sqlstate_of
from scheduling.api.renderers import render_json
from scheduling.api.slices import by_slices, delete_in_slices
from scheduling.api.sql import raw_id

KEPT_FOR = timedelta(hours=24)
MAX_CLAIMS = 3
PURGE_SLICE = 5000
_KEY = re.compile(r"[\x21-\x7e]{1,255}")


class IdempotencyInProgress(Refusal):
    code = "idempotency_in_progress"


class IdempotencyMismatch(Refusal):
    code = "idempotency_mismatch"


def read_key(text: str) -> str:
    """The header's value, if it has the form. Raises Invalid on `Idempotency-Key`."""
    if not _KEY.fullmatch(text):
        raise Invalid.at("Idempotency-Key", "Must be 1 to 255 visible ASCII characters.")
    return text


def hash_request(method: str, path: str, body: bytes) -> str:
    """What makes two requests the same: method, path with query, body bytes."""
    return hashlib.sha256(b"\0".join([method.encode(), path.encode(), body])).hexdigest()


def stored_key(key: str, app_id: uuid.UUID | None) -> str:
    """A key as its record has it. `app_id`: the app of a request whose credential has several.

    A key of the client contains no space, so the two forms never meet. The app is part of the text
    and not of the unique index, because the previous release still inserts by that index.
    """
    return f"{app_id.hex} {hashlib.sha256(key.encode()).hexdigest()}" if app_id else key


@asks_first
def answer_once(
    *,
    credential_id: uuid.UUID,
    app_id: uuid.UUID | None,
    key: str,
    request_hash: str,
    answer: Callable[[], HttpResponse],
) -> HttpResponse:
    """Run `answer` and keep its rendered response in the same transaction, or replay what was kept.

    A key belongs to a credential, and where that acts in several apps also to `app_id`. A second
    call meanwhile waits at the unique index for the first to commit; past the lock timeout it gets
    IdempotencyInProgress. An exception of `answer` rolls everything back, so refusals are not kept.
    """
    try:
        with transaction.atomic():
            kept = _claim(credential_id, key, app_id)
            if kept is None:
                response = answer()
                own = IdempotencyRecord.objects.filter(
                    credential_id=credential_id, key=stored_key(key, app_id)
                )
                own.update(
                    request_hash=request_hash, status=response.status_code, body=response.content
                )
                return response
    except IntegrityError as error:
        if Credential.objects.filter(id=credential_id).exists():
            raise
        # Deleted since it was read, which the record's foreign key finds out at the commit.
        raise Unauthenticated from error
    if kept.request_hash != request_hash:
        raise IdempotencyMismatch(
            "This Idempotency-Key was used for another request.",
            errors={"Idempotency-Key": ["Was used for another request."]},
        )
    return HttpResponse(
        bytes(kept.body or b""),
        status=kept.status,
        content_type="application/json",
        headers={"Idempotent-Replayed": "true"},
    )


def _claim(
    credential_id: uuid.UUID, key: str, app_id: uuid.UUID | None
) -> IdempotencyRecord | None:
    """None: the key is ours now. Else the record of the request that had it before."""
    now = timezone.now()
    own_key = stored_key(key, app_id)
    mine = IdempotencyRecord(credential_id=credential_id, key=own_key, created_at=now)
    records = IdempotencyRecord.objects.filter(credential_id=credential_id, key__in={own_key, key})
    try:
        records.filter(created_at__lte=now - KEPT_FOR).delete()
        if app_id and (earlier := records.filter(key=key).first()):
            return earlier  # of the previous release, which stored all keys without an app
        for _ in range(MAX_CLAIMS):
            if _insert_unless_there(mine):
                return None
            if kept := records.filter(key=own_key).first():
                return kept
            # It was removed between the two statements.
    except OperationalError as error:
        if sqlstate_of(error) != "55P03":  # lock_not_available
            raise
        raise _in_progress() from error
    raise _in_progress()


def _in_progress() -> IdempotencyInProgress:
    return IdempotencyInProgress(
        "A request with this Idempotency-Key is still running.", headers={"Retry-After": "1"}
    )


def _insert_unless_there(record: IdempotencyRecord) -> bool:
    """Insert, waiting for a rival's transaction to end; False when the rival committed first."""
    created_at = connection.ops.adapt_datetimefield_value(record.created_at)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO apps_config_idempotencyrecord"
            " (credential_id, key, request_hash, created_at) VALUES (%s, %s, '', %s)"
            " ON CONFLICT (credential_id, key) DO NOTHING",
            [raw_id(record.credential_id), record.key, created_at],
        )
        return cursor.rowcount == 1


# All that is left of an answer that told of somebody.
OUTLINE = frozenset(
    {
        *("data", "status", "booking", "id", "state", "graph", "completed"),
        *("created_at", "updated_at", "resource_id", "project_id", "start", "end"),
    }
)
_ID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
SLICE = 200


def outline_answers(app: App, *, about: Collection[uuid.UUID]) -> None:
    """Leave of the app's kept answers that name one of the ids no more than an outline.

    They are not removed: a request that is sent again must not take effect again.
    """
    named = {str(one).encode() for one in about}
    if not named:
        return
    of_app = Q(credential__app=app) | Q(credential__account__memberships__app=app)
    ids = IdempotencyRecord.objects.filter(of_app).values("id")
    for found in by_slices(IdempotencyRecord.objects.filter(id__in=ids), SLICE):
        for record in found:
            body = bytes(record.body or b"")
            if not named.isdisjoint(_ID.findall(body)):
                outline = render_json(_outlined(orjson.loads(body)))
                IdempotencyRecord.objects.filter(pk=record.pk).update(body=outline)


def _outlined(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _outlined(one) for key, one in value.items() if key in OUTLINE}
    return [_outlined(one) for one in value] if isinstance(value, list) else value


def purge_records(*, now: datetime) -> Iterator[int]:
    """Delete what is older than a day, a slice at a time; yields how many records each had."""
    old = IdempotencyRecord.objects.filter(created_at__lte=now - KEPT_FOR)
    yield from delete_in_slices(old, "created_at", PURGE_SLICE)
