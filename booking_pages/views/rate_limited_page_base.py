"""Base of public pages, rate-limited by client network like the API's public endpoints."""

from django.http.response import HttpResponseBase

from apps_config.authentication import count_request_without_key
from apps_config.base_views import finish_rate, refuse_above_limit
from bookings.pages.base import PageView
from common.api.views import ApiRequest
from common.limits.rate_limit import CountedRequest


class RateLimitedPageView(PageView):
    schema = None  # no part of the API

    rate: CountedRequest | None = None

    def admit(self, request: ApiRequest) -> None:
        self.rate = count_request_without_key(request)
        refuse_above_limit(self.rate)

    def decorate(self, response: HttpResponseBase) -> None:
        super().decorate(response)
        finish_rate(response, self.rate)
