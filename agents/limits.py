"""How often a key may call tools: less often than the API, as an agent may run in circles."""

from typing import cast

from django.http import HttpRequest
from rest_framework.request import Request

from apps_config.authentication import Caller, counter_of_all_processes
from apps_config.throttling import NetworkThrottle
from common.errors import RateLimited
from common.limits.rate_limit import CountedRequest, RateKey, RateWindow, customer_network

CALLS_PER_MINUTE, WRITES_PER_MINUTE = 60, 10
call_rates = RateWindow(CALLS_PER_MINUTE, counter_of_all_processes)
write_rates = RateWindow(WRITES_PER_MINUTE, counter_of_all_processes)


class AgentThrottle(NetworkThrottle):
    """Counts the requests of a key; those of a widget key by client network."""

    def count(self, request: Request, view: object) -> CountedRequest:
        caller = cast(Caller, request.user)
        return CountedRequest(call_rates, _rate_key("calls", caller, request))


def count_write(caller: Caller, request: HttpRequest) -> None:
    """Count what a tool is about to change. Raises RateLimited above the limit."""
    is_allowed, _, reset = write_rates.hit(_rate_key("writes", caller, request))
    if not is_allowed:
        raise RateLimited(reset, f"At most {WRITES_PER_MINUTE} changes a minute.")


def _rate_key(what: str, caller: Caller, request: HttpRequest) -> RateKey:
    network = customer_network(request) if caller.is_widget else ""
    return RateKey(f"mcp {what} {caller.credential_id}", network)
