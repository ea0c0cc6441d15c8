"""Reads of a viewset that a replica may answer."""

from functools import partial
from typing import Any, ClassVar

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from apps_config.authentication import Caller
from common.api.query import QueryParams
from common.api.views import ApiViewSet, Handler
from common.db.replica import note_write, read_on_replica


class ReplicaReads(ApiViewSet):
    """Pages of lists, and the queries of a viewset with `reads_replica`, may be a second old.

    A key reads its own writes: after one, its reads stay on the primary until the replica has it.
    """

    reads_replica: ClassVar[bool] = False
    caller: Caller
    query: QueryParams

    def run(
        self, handler: Handler, request: Request, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        answer = partial(super().run, handler, request, *args, **kwargs)
        reader = f"credential-{self.caller.credential_id}"
        if self.is_query or request.method in ("GET", "HEAD"):
            return read_on_replica(answer, reader) if self._may_read_replica() else answer()
        response = answer()
        note_write(reader)
        return response

    def _may_read_replica(self) -> bool:
        """Only the primary knows which changes are complete."""
        may_be_old = self.is_page or (self.is_query and self.reads_replica)
        return may_be_old and "updated_since" not in self.query.values
