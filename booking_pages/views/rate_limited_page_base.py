"""Base of public pages, rate-limited by client address like the API's public endpoints."""

from functools import partial

from django.http.response import HttpResponseBase

from apps_config.authentication import count_request_without_key
from apps_config.base_views import Rate, add_rate_headers, count_hit
from bookings.html_page_base import PageView
from common.api.views import ApiRequest
from common.errors import RateLimited


class RateLimitedPageView(PageView):
    schema = None  # no part of the API

    rate: Rate | None = None

    def admit(self, request: ApiRequest) -> None:
        allowed, self.rate = count_hit(partial(count_request_without_key, request))
        if self.rate and not allowed:
            raise RateLimited(retry_after=self.rate[2])

    def decorate(self, response: HttpResponseBase) -> None:
        super().decorate(response)
        add_rate_headers(response, self.rate)
