"""The page behind a mail's link on which a customer reschedules. It works without scripts.

GET changes nothing, since mail scanners follow links: the form posts to the same address.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse, QueryDict
from django.templatetags.static import static
from django.utils.functional import Promise
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from rest_framework.request import Request

from availability.reserve.events import NotAvailable, SlotTaken, event_with_companions
from availability.search.availability_query import AvailabilityQuery
from booking_pages.slots import find_slots_to_offer, parse_day_parameter, slot_words, slots_by_day
from booking_pages.texts import PAGE, SCRIPT
from booking_pages.views.rate_limited_page_base import RateLimitedPageView
from bookings.models import Booking
from bookings.pages.action_links import RESCHEDULE
from bookings.pages.base import SOURCES
from bookings.pages.email_links import (
    CLOSE,
    LinkPageView,
    booking_facts,
    customer_zone,
    reason_sentences,
)
from bookings.pages.formatting import (
    date_words,
    first_known_zone,
    short_month_words,
    span_words_without_zone,
    weekday_words,
)
from bookings.pages.refusal_texts import REFUSAL_TEXTS
from bookings.services import Actor, check_may_move, reschedule_unless_done, target_of
from common.api.json import read_body
from common.errors import NotFound
from common.time.instants import (
    InstantError,
    format_instant,
    local_date,
    local_midnight,
    parse_instant,
    to_datetime,
)
from common.time.zone_names import current_browser_zones

CUSTOMER = Actor(name="customer", source="link")
ZONE_SEARCH = "booking_pages/zones.js"
BETWEEN = "/"  # separates start and end of a choice, as in ISO 8601 intervals

ZONE = _("All times are in {zone}.")
QUESTION = _("Choose another time")
MOVED = _("Your booking has been moved")
NOTHING_CHOSEN = _("Please choose a time.")
NOTHING_FREE = _("There is no other free time. Your booking does not change.")
STAYS = _("Your booking does not change. Please choose another time.")


class ReschedulePageView(RateLimitedPageView, LinkPageView):
    link_action = RESCHEDULE
    sources = {**SOURCES, "script-src": "'self'"}
    stylesheet = "booking_pages/book.css"

    def get(self, request: Request, booking_id: str) -> HttpResponse:
        booking = self._find_booking(request, booking_id)
        check_may_move(booking, CUSTOMER, self.now)
        return self._chooser(booking, 200)

    def post(self, request: Request, booking_id: str) -> HttpResponse:
        booking = self._find_booking(request, booking_id)
        choice = parse_choice(QueryDict(read_body(request)).get("time", ""))
        if choice is None:
            check_may_move(booking, CUSTOMER, self.now)
            return self._chooser(booking, 422, notice=NOTHING_CHOSEN)
        try:
            self.booking = reschedule_unless_done(
                app=booking.app,
                booking_id=booking.id,
                start=choice[0],
                end=choice[1],
                actor=CUSTOMER,
                now=self.now,
            )
        except (SlotTaken, NotAvailable) as refusal:
            return self._chooser(
                booking,
                refusal.status,
                notice=REFUSAL_TEXTS[refusal.code].heading,
                reasons=reason_sentences(refusal),
                instead=[alternative_span(field) for field in refusal.fields["alternatives"]],
            )
        return self.show_step(200, MOVED, CLOSE)

    def _find_booking(self, request: Request, booking_id: str) -> Booking:
        """Return the booking of a valid link. Raises NotFound, BadLink."""
        booking = self.find_booking(request, booking_id)
        if booking.project is None:
            raise NotFound("Project")
        return booking

    def _chooser(
        self,
        booking: Booking,
        status: int,
        *,
        notice: str | Promise = "",
        reasons: Sequence[str | Promise] = (),
        instead: Sequence[tuple[int, int]] = (),
    ) -> HttpResponse:
        chooser = SlotChooser(booking, self.request.GET, now=self.now)
        return self.render_page(
            "booking_pages/reschedule.html",
            lambda: {
                **chooser.values(instead),
                "heading": QUESTION,
                "rows": booking_facts(booking, "customer"),
                "notice": notice,
                "reasons": reasons,
            },
            status=status,
        )


class SlotChooser:
    """The free slots to choose from: the days as links, one day's times as a form."""

    def __init__(self, booking: Booking, asked: Mapping[str, str], *, now: datetime) -> None:
        self.booking = booking
        self.zone = first_known_zone(asked.get("timezone", ""), customer_zone(booking))
        self.signature = asked.get("signature", "")
        self.since = parse_day_parameter(asked.get("since", ""))
        self.wanted = parse_day_parameter(asked.get("day", ""))
        self.rules = rules_for_move(booking, now)
        since = max(now, local_midnight(self.since, self.zone)) if self.since else now
        offer = find_slots_to_offer(self.rules, zone_name=self.zone, since=since)
        own = int(booking.event.start.timestamp()), int(booking.event.end.timestamp())
        self.days = slots_by_day([slot for slot in offer.slots if slot != own], self.zone)
        self.until = offer.until if offer.has_more else None

    def values(self, instead: Sequence[tuple[int, int]]) -> dict[str, Any]:
        """Return the template's values."""
        chosen = self.wanted if self.wanted in self.days else next(iter(self.days), None)
        times = self.days[chosen] if chosen else []
        return {
            "words": WORDS,
            "zone": format_lazy(ZONE, zone=self.zone),
            "zone_name": self.zone,
            "hidden": self._kept_parameters(),
            "for_script": {
                "zones": static(ZONE_SEARCH),
                "zone_names": current_browser_zones(),
                "words": {name: str(SCRIPT[name]) for name in ("zone_none", "zone_now")},
            },
            "days": [
                {
                    "date": day,
                    "words": date_words(day),
                    "weekday": weekday_words(day),
                    "month": short_month_words(day),
                    "is_chosen": day == chosen,
                    "link": self._link("times", day=day),
                }
                for day in self.days
            ],
            "day": date_words(chosen) if chosen else "",
            "times": [
                (choice_value(slot), slot_words(slot, self.zone, with_end=False)) for slot in times
            ],
            "instead": [
                (
                    choice_value((start, end)),
                    span_words_without_zone(to_datetime(start), to_datetime(end), self.zone),
                )
                for start, end in instead
            ],
            "nothing": "" if self.days or instead else NOTHING_FREE,
            "earlier": self._link("days", since=None) if self.since else "",
            "later": self._link("days", since=local_date(to_datetime(self.until), self.zone))
            if self.until
            else "",
        }

    def _kept_parameters(self) -> dict[str, Any]:
        """Return the parameters of the page without day and zone."""
        named = {"signature": self.signature, "since": self.since}
        return {name: str(value) for name, value in named.items() if value}

    def _link(self, target: str, **days: date | None) -> str:
        """Return a link to the same page with another day; signature and zone are kept."""
        zone = {"timezone": self.zone} if self.zone != customer_zone(self.booking) else {}
        named = {**self._kept_parameters(), **days, **zone}
        return f"?{urlencode({name: value for name, value in named.items() if value})}#{target}"


WORDS: Mapping[str, str | Promise] = {
    "days": _("Days with free times"),
    "earlier": _("Earlier days"),
    "later": _("Later days"),
    "instead": _("Free times"),
    "stays": STAYS,
    "button": _("Move the booking"),
    "zone": PAGE["zone"],
    "change_zone": _("Change time zone"),
    "now": _("Your current booking"),
}


def rules_for_move(booking: Booking, now: datetime) -> AvailabilityQuery:
    """Return the rules for the move; the booking's own events are ignored. It keeps its buffers,
    and its length unless the project no longer permits it.
    """
    target = target_of(booking, now)
    rules = target.with_buffers(target.rules, target.buffers_of(booking.event))
    own = replace(rules.own or rules.terms, buffers=rules.terms.buffers)
    length = int((booking.event.end - booking.event.start).total_seconds())
    if own.permits_length(length):
        own = replace(own, length=length)
    without = [event.id for event in event_with_companions(booking.event)]
    return replace(rules, terms=own, own=own, without=without)


def choice_value(slot: tuple[int, int]) -> str:
    return BETWEEN.join(format_instant(to_datetime(instant)) for instant in slot)


def alternative_span(record: Mapping[str, str]) -> tuple[int, int]:
    """Return the span of an alternative in a refusal."""
    start, end = (parse_instant(record[name], "UTC") for name in ("start", "end"))
    return int(start.timestamp()), int(end.timestamp())


def parse_choice(text: str) -> tuple[datetime, datetime] | None:
    """Return start and end; None if `text` is not a valid choice."""
    try:
        start, end = (parse_instant(part, "UTC") for part in text.split(BETWEEN))
    except (InstantError, ValueError):
        return None
    return (start, end) if start < end else None
