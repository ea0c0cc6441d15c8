"""Pages that everybody may open: counted by the address, as what needs no key in the API."""

from functools import partial
from typing import Any

from apps_config.authentication import count_stranger
from apps_config.endpoints import Rate, count_hit, mark_rate
from bookings.pages import PageView
from scheduling.api.errors import RateLimited


class CountedPageView(PageView):
    schema = None  # no part of the API

    rate: Rate | None = None

    def admit(self, request: Any) -> None:
        allowed, self.rate = count_hit(partial(count_stranger, request))
        if not allowed:
            raise RateLimited(retry_after=self.rate[2])

    def decorate(self, response: Any) -> None:
        super().decorate(response)
        mark_rate(response, self.rate)
