"""The Idempotency-Key of a viewset's actions (api.md section 1)."""

import json
import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from apps_config.authentication import Caller
from apps_config.idempotency import find_answer, hash_request, read_key, replay_answer, run_once
from apps_config.models import Credential, IdempotencyRecord
from common.api.views import BODY_METHODS, ApiViewSet, Handler
from common.errors import Invalid


def secret_response() -> Invalid:
    """Return the refusal of an Idempotency-Key where the stored response would contain a secret."""
    return Invalid.at("Idempotency-Key", "Not supported here: the response contains a secret.")


class IdempotentActions(ApiViewSet):
    """POST, PUT and PATCH with an Idempotency-Key run once; a repeated request gets the same
    response.
    """

    # Actions whose responses contain secrets, with their names in `data`: a repeated request gets
    # null for them.
    secret_actions: ClassVar[Mapping[str, Sequence[str]]] = {}
    # Actions that take no Idempotency-Key.
    unrepeatable_actions: ClassVar[frozenset[str]] = frozenset()
    needs_app: ClassVar[bool]
    caller: Caller
    keeps_answer = False  # the request has an Idempotency-Key
    stored_answer: IdempotencyRecord | None = None  # see `repeats_stored_answer`

    @property
    def is_unrepeatable(self) -> bool:
        """Whether the action takes no Idempotency-Key."""
        return self.action in self.unrepeatable_actions

    def is_retry_safe(self, request: Request) -> bool:
        """With an Idempotency-Key the whole handler is one transaction."""
        return "HTTP_IDEMPOTENCY_KEY" in request.META or super().is_retry_safe(request)

    def run(
        self, handler: Handler, request: Request, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        answer = partial(super().run, handler, request, *args, **kwargs)
        key = self._idempotency_key(request)
        if key is None:
            return answer()
        if self.is_unrepeatable:
            raise secret_response()
        self.keeps_answer = True
        request_hash = hash_request(request.method or "", request.get_full_path(), request.body)
        if self.stored_answer:
            return replay_answer(self.stored_answer, request_hash)
        return run_once(
            credential_id=self.caller.credential_id,
            app_id=self._app_of_idempotency_key(),
            key=read_key(key),
            request_hash=request_hash,
            answer=lambda: self.render(answer()),
            stored_body=self._without_secrets,
        )

    def _without_secrets(self, body: bytes) -> bytes:
        """Return the body of a response as it is stored."""
        record = json.loads(body) if self.action in self.secret_actions else {}
        names = self.secret_actions.get(self.action, ())
        shown = [name for name in names if record["data"].get(name)]
        if not shown:
            return body
        record["data"] |= {**dict.fromkeys(shown), "secret_shown": True}
        return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()

    def repeats_stored_answer(self, request: Request) -> bool:
        """Whether the request repeats one that was answered, by its Idempotency-Key.

        If so, it gets this answer and its handler does not run, so that checks can be skipped. Only
        this query checks the answer's age: a second one could find it a day old, and run the
        handler without the checks.
        """
        key = self._idempotency_key(request)
        if key is not None and self.stored_answer is None:
            self.stored_answer = find_answer(
                credential_id=self.caller.credential_id,
                app_id=self._app_of_idempotency_key(),
                key=read_key(key),
                now=self.now,
            )
        return self.stored_answer is not None

    def _idempotency_key(self, request: Request) -> str | None:
        """The header's value; None if the request's method ignores it."""
        if request.method not in BODY_METHODS or self.is_query:
            return None
        return request.META.get("HTTP_IDEMPOTENCY_KEY")

    def _app_of_idempotency_key(self) -> uuid.UUID | None:
        """The app of an Idempotency-Key, if the credential may act in several apps."""
        is_of_account = self.caller.kind == Credential.ACCESS and self.needs_app
        return self.caller.only_app.id if is_of_account else None
