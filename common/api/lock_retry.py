"""Further attempts after a deadlock."""

from typing import Any

from django.db import OperationalError
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from common.api.views import ApiViewSet, Handler
from common.errors import sqlstate_of

# Serialization failure and deadlock: rolled back, and another attempt usually succeeds.
TRY_AGAIN = frozenset({"40001", "40P01"})
# Under load, the transaction that won is soon followed by another one.
ATTEMPTS = 3


class LockRetry(ApiViewSet):
    """Runs an action again if the database ended its transaction for another one."""

    def run(
        self, handler: Handler, request: Request, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        for _ in range(ATTEMPTS - 1):
            try:
                return super().run(handler, request, *args, **kwargs)
            except OperationalError as error:
                if sqlstate_of(error) not in TRY_AGAIN:
                    raise
        return super().run(handler, request, *args, **kwargs)
