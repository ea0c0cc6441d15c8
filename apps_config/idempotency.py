"""Idempotency-Key: a repeated request takes effect once and gets the same response (api.md section
1). Without the views of DRF, which a worker does not load.
"""

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
from django.http.response import HttpResponseBase
from django.utils import timezone

from apps_config.models import App, Credential, IdempotencyRecord
from common.api.json import render_json
from common.db.batching import delete_in_batches, iterate_batches
from common.db.calls_outside_transaction import with_calls_outside_transaction
from common.db.sql import id_param
from common.errors import Invalid, Refusal, Unauthenticated, sqlstate_of

KEPT_FOR = timedelta(hours=24)
MAX_CLAIMS = 3
PURGE_SLICE = 5000
_KEY = re.compile(r"[\x21-\x7e]{1,255}")


class IdempotencyInProgress(Refusal):
    code = "idempotency_in_progress"


class IdempotencyMismatch(Refusal):
    code = "idempotency_mismatch"


def read_key(text: str) -> str:
    """The validated value of the header. Raises Invalid on `Idempotency-Key`."""
    if not _KEY.fullmatch(text):
        raise Invalid.at("Idempotency-Key", "Must be 1 to 255 visible ASCII characters.")
    return text


def hash_request(method: str, path: str, body: bytes) -> str:
    """A hash that identifies a request: method, path with query, body."""
    return hashlib.sha256(b"\0".join([method.encode(), path.encode(), body])).hexdigest()


def stored_key(key: str, app_id: uuid.UUID | None) -> str:
    """The key as stored in its record. `app_id`: the app, if the credential has several.

    A client's key contains no space, so the two forms never collide.
    """
    return f"{app_id.hex} {hashlib.sha256(key.encode()).hexdigest()}" if app_id else key


@with_calls_outside_transaction
def run_once(
    *,
    credential_id: uuid.UUID,
    app_id: uuid.UUID | None,
    key: str,
    request_hash: str,
    answer: Callable[[], HttpResponseBase],
    stored_body: Callable[[bytes], bytes],
) -> HttpResponseBase:
    """Run `answer` and store its rendered response in the same transaction, or replay the stored
    response. stored_body: returns what is stored of a body.

    A key belongs to a credential, and to `app_id` if the credential acts in several apps. A
    concurrent request waits at the unique index for the first to commit; after the lock timeout it
    gets IdempotencyInProgress. An exception of `answer` rolls everything back, so refusals are not
    stored.
    """
    try:
        with transaction.atomic():
            kept = _claim(credential_id, key, app_id)
            if kept is None:
                response = answer()
                own = IdempotencyRecord.objects.filter(
                    credential_id=credential_id, key=stored_key(key, app_id)
                )
                body = stored_body(response.content) if isinstance(response, HttpResponse) else b""
                own.update(request_hash=request_hash, status=response.status_code, body=body)
                return response
    except IntegrityError as error:
        if Credential.objects.filter(id=credential_id).exists():
            raise
        # The credential was deleted meanwhile; the record's foreign key fails at the commit.
        raise Unauthenticated from error
    return replay_answer(kept, request_hash)


def find_answer(
    *, credential_id: uuid.UUID, app_id: uuid.UUID | None, key: str, now: datetime
) -> IdempotencyRecord | None:
    """The response stored for the key, if it is younger than a day at `now`."""
    return IdempotencyRecord.objects.filter(
        credential_id=credential_id,
        key=stored_key(key, app_id),
        created_at__gt=now - KEPT_FOR,
    ).first()


def replay_answer(stored: IdempotencyRecord, request_hash: str) -> HttpResponse:
    """Raises IdempotencyMismatch for the response to another request."""
    if stored.request_hash != request_hash:
        raise IdempotencyMismatch(
            "This Idempotency-Key was used for another request.",
            errors={"Idempotency-Key": ["Was used for another request."]},
        )
    return HttpResponse(
        bytes(stored.body or b""),
        status=stored.status,
        content_type="application/json",
        headers={"Idempotent-Replayed": "true"},
    )


def _claim(
    credential_id: uuid.UUID, key: str, app_id: uuid.UUID | None
) -> IdempotencyRecord | None:
    """Claim the key: None if it was free, else the record of the earlier request."""
    now = timezone.now()
    own_key = stored_key(key, app_id)
    record = IdempotencyRecord(credential_id=credential_id, key=own_key, created_at=now)
    records = IdempotencyRecord.objects.filter(credential_id=credential_id, key=own_key)
    try:
        records.filter(created_at__lte=now - KEPT_FOR).delete()
        for _ in range(MAX_CLAIMS):
            if _insert_unless_there(record):
                return None
            if kept := records.first():
                return kept
            # The record was deleted between the two statements.
    except OperationalError as error:
        if sqlstate_of(error) != "55P03":  # lock_not_available
            raise
        raise _in_progress_error() from error
    raise _in_progress_error()


def _in_progress_error() -> IdempotencyInProgress:
    return IdempotencyInProgress(
        "A request with this Idempotency-Key is still running.", headers={"Retry-After": "1"}
    )


def _insert_unless_there(record: IdempotencyRecord) -> bool:
    """Insert, waiting for a concurrent transaction to end; False if that one committed first."""
    created_at = connection.ops.adapt_datetimefield_value(record.created_at)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO apps_config_idempotencyrecord"
            " (credential_id, key, request_hash, created_at) VALUES (%s, %s, '', %s)"
            " ON CONFLICT (credential_id, key) DO NOTHING",
            [id_param(record.credential_id), record.key, created_at],
        )
        return cursor.rowcount == 1


# The fields that remain of a response about an erased person.
OUTLINE = frozenset(
    {
        *("data", "status", "booking", "id", "external_id", "state", "graph", "completed"),
        *("created_at", "updated_at", "resource_id", "project_id", "start", "end"),
    }
)
_ID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
SLICE = 200


def redact_answers(app: App, *, about: Collection[uuid.UUID]) -> None:
    """Reduce the app's stored responses that mention one of the ids to an outline.

    They are not deleted: a repeated request must not take effect again.
    """
    named = {str(mentioned_id).encode() for mentioned_id in about}
    if not named:
        return
    of_app = Q(credential__app=app) | Q(credential__account__memberships__app=app)
    ids = IdempotencyRecord.objects.filter(of_app).values("id")
    for found in iterate_batches(IdempotencyRecord.objects.filter(id__in=ids), SLICE):
        for record in found:
            body = bytes(record.body or b"")
            if not named.isdisjoint(_ID.findall(body)):
                outline = render_json(_without_personal_data(orjson.loads(body)))
                IdempotencyRecord.objects.filter(pk=record.pk).update(body=outline)


def _without_personal_data(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_personal_data(element) for key, element in value.items() if key in OUTLINE
        }
    return (
        [_without_personal_data(element) for element in value] if isinstance(value, list) else value
    )


def purge_records(*, now: datetime) -> Iterator[int]:
    """Delete records older than a day in batches; yields the size of each."""
    old = IdempotencyRecord.objects.filter(created_at__lte=now - KEPT_FOR)
    yield from delete_in_batches(old, "created_at", PURGE_SLICE)
