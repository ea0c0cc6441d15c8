"""Base of public pages, rate-limited by client network like the API's public endpoints."""

from typing import Any

from rest_framework.request import Request

from apps_config.throttling import NetworkThrottle, add_rate_headers
from bookings.pages.base import PageView
from common.limits.rate_limit import CountedRequest


class RateLimitedPageView(PageView):
    schema = None  # no part of the API
    throttle_classes = (NetworkThrottle,)

    rate: CountedRequest | None = None

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        add_rate_headers(response, self.rate)
        return super().finalize_response(request, response, *args, **kwargs)
