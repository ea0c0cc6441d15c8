"""Rate limits as DRF's throttles: by key, or by client network where no key is needed."""

from typing import Any

from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from apps_config.authentication import count_request_with_key, count_request_without_key
from common.limits.rate_limit import WINDOW, CountedRequest


class NetworkThrottle(BaseThrottle):
    """Counts requests by client network."""

    rate: CountedRequest | None = None

    def allow_request(self, request: Request, view: Any) -> bool:
        """Count the request, once however often the view is retried; see `add_rate_headers`."""
        if request.method == "OPTIONS":
            return True
        self.rate = view.rate = getattr(view, "rate", None) or self.count(request, view)
        return self.rate is None or self.rate.is_allowed

    def count(self, request: Request, view: Any) -> CountedRequest | None:
        return count_request_without_key(request)

    def wait(self) -> float | None:
        return self.rate.reset if self.rate else None


class KeyThrottle(NetworkThrottle):
    """Counts requests by key; those of a widget key also by client network."""

    def count(self, request: Request, view: Any) -> CountedRequest | None:
        return count_request_with_key(view.caller, request)


def add_rate_headers(response: HttpResponseBase, rate: CountedRequest | None) -> None:
    """Count the CPU time of the request, and add what is left of the limit to its response."""
    if rate:
        rate.count_cpu_time()
        response.headers["RateLimit-Policy"] = f'"requests";q={rate.limit};w={WINDOW}'
        response.headers["RateLimit"] = f'"requests";r={rate.remaining};t={rate.reset}'
        response.headers["X-RateLimit-Limit"] = str(rate.limit)
        response.headers["X-RateLimit-Remaining"] = str(rate.remaining)
        response.headers["X-RateLimit-Reset"] = str(rate.reset)
