"""The page behind a mail's link on which a customer chooses another time. It needs no script.

Looking changes nothing, since mail scanners follow links: the form posts to the same address.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse, QueryDict
from django.utils.functional import Promise
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from availability.placement import NotAvailable, SlotTaken, with_companions
from availability.reading import to_datetime
from availability.search import Query
from booking_pages.offers import by_day, day_of, find_offer, midnight, slot_words
from booking_pages.views.counted import CountedPageView
from bookings.external import (
    CLOSE,
    REFUSED,
    LinkPageView,
    customers_zone,
    describe,
    reasons_of,
)
from bookings.links import RESCHEDULE
from bookings.models import Booking
from bookings.services import Actor, check_may_move, place_of, reschedule_once
from bookings.wording import date_words, languages_of, span_words
from scheduling.api.errors import NotFound
from scheduling.api.instants import InstantError, format_instant, parse_date, parse_instant
from scheduling.api.parsers import read_body

CUSTOMER = Actor(name="customer", source="link")
BETWEEN = "/"  # start and end of a choice, as ISO 8601 writes an interval

ZONE = _("All times are those of {zone}.")
QUESTION = _("Choose another time")
MOVED = _("Your booking has been moved")
NOTHING_CHOSEN = _("Please choose a time.")
NOTHING_FREE = _("There is no other free time. Your booking stays as it is.")
STAYS = _("Your booking stays as it is. Please choose another time.")


class ReschedulePageView(CountedPageView, LinkPageView):
    link_action = RESCHEDULE

    def get(self, request: Any, booking_id: str) -> HttpResponse:
        booking = self._find_booking(request, booking_id)
        check_may_move(booking, CUSTOMER, self.now)
        return self._chooser(booking, 200)

    def post(self, request: Any, booking_id: str) -> HttpResponse:
        booking = self._find_booking(request, booking_id)
        choice = read_choice(QueryDict(read_body(request._request)).get("time", ""))
        if choice is None:
            check_may_move(booking, CUSTOMER, self.now)
            return self._chooser(booking, 422, notice=NOTHING_CHOSEN)
        try:
            self.booking = reschedule_once(
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
                notice=REFUSED[refusal.code].heading,
                reasons=reasons_of(refusal),
                instead=[span_of(one) for one in refusal.fields["alternatives"]],
            )
        return self._page(200, MOVED, CLOSE)

    def _find_booking(self, request: Any, booking_id: str) -> Booking:
        """The booking of a link that holds. Raises NotFound, BadLink."""
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
        reasons: Sequence[str] = (),
        instead: Sequence[tuple[int, int]] = (),
    ) -> HttpResponse:
        chooser = Chooser(booking, self.request.GET, now=self.now)
        return self._page(
            status,
            QUESTION,
            chooser=lambda: {
                **chooser.values(instead),
                "notice": notice,
                "reasons": reasons,
            },
        )

    def show_refusal(
        self, status: int, heading: str | Promise, sentence: str | Promise, reasons: Sequence[str]
    ) -> HttpResponse:
        return self._page(status, heading, sentence)

    def _page(
        self,
        status: int,
        heading: str | Promise,
        sentence: str | Promise = "",
        chooser: Any = dict,
    ) -> HttpResponse:
        booking = self.booking if status < 500 else None
        return self.render_page(
            "booking_pages/reschedule.html",
            lambda: {
                "heading": heading,
                "sentence": sentence,
                "rows": describe(booking, "customer") if booking else [],
                **chooser(),
            },
            status=status,
            app=booking.app if booking else None,
            languages=languages_of(booking) if booking else (),
        )


class Chooser:
    """The free times to choose from: the days as links, the times of one day as a form."""

    def __init__(self, booking: Booking, asked: Mapping[str, str], *, now: datetime) -> None:
        self.booking = booking
        self.zone = customers_zone(booking)
        self.signature = asked.get("signature", "")
        self.since = read_day(asked.get("since", ""))
        self.wanted = read_day(asked.get("day", ""))
        self.rules = rules_for_move(booking, now)
        since = max(now, midnight(self.since, self.zone)) if self.since else now
        offer = find_offer(self.rules, zone_name=self.zone, since=since)
        own = (int(booking.event.start.timestamp()), int(booking.event.end.timestamp()))
        self.days = by_day([slot for slot in offer.slots if slot != own], self.zone)
        self.until = offer.until if offer.has_more else None

    def values(self, instead: Sequence[tuple[int, int]]) -> dict[str, Any]:
        """What the template shows."""
        chosen = self.wanted if self.wanted in self.days else next(iter(self.days), None)
        return {
            "words": WORDS,
            "zone": format_lazy(ZONE, zone=self.zone),
            "days": [
                {
                    "date": day,
                    "words": date_words(day),
                    "is_chosen": day == chosen,
                    "link": self._link("times", day=day),
                }
                for day in self.days
            ],
            "day": date_words(chosen) if chosen else "",
            "times": [
                (choice_of(slot), slot_words(slot, self.zone, with_end=False))
                for slot in self.days.get(chosen, [])
            ],
            "instead": [
                (choice_of(slot), span_words(*map(to_datetime, slot), self.zone))
                for slot in instead
            ],
            "nothing": "" if self.days or instead else NOTHING_FREE,
            "earlier": self._link("days", since=None) if self.since else "",
            "later": self._link("days", since=day_of(self.until, self.zone)) if self.until else "",
        }

    def _link(self, place: str, **days: date | None) -> str:
        """A place of the same page with another day; the signature goes along."""
        named = {"signature": self.signature, "since": self.since, **days}
        return f"?{urlencode({name: value for name, value in named.items() if value})}#{place}"


WORDS: Mapping[str, str | Promise] = {
    "days": _("Days with free times"),
    "earlier": _("Earlier days"),
    "later": _("Later days"),
    "instead": _("These are free"),
    "stays": STAYS,
    "button": _("Move the booking"),
    "now": _("Your booking now"),
}


def rules_for_move(booking: Booking, now: datetime) -> Query:
    """What the move will be held to; the booking itself is not in its way."""
    rules = place_of(booking, now).rules
    own = rules.own
    if own.length is None:
        own = replace(own, length=int((booking.event.end - booking.event.start).total_seconds()))
    without = [event.id for event in with_companions(booking.event)]
    return replace(rules, terms=own, own=own, without=without)


def choice_of(slot: tuple[int, int]) -> str:
    return BETWEEN.join(format_instant(to_datetime(one)) for one in slot)


def span_of(record: Mapping[str, str]) -> tuple[int, int]:
    """Of an alternative, as a refusal names it."""
    start, end = (parse_instant(record[name], "UTC") for name in ("start", "end"))
    return int(start.timestamp()), int(end.timestamp())


def read_day(text: str) -> date | None:
    try:
        return parse_date(text)
    except InstantError:
        return None


def read_choice(text: str) -> tuple[datetime, datetime] | None:
    """Start and end; None where it is none."""
    try:
        start, end = (parse_instant(part, "UTC") for part in text.split(BETWEEN))
    except (InstantError, ValueError):
        return None
    return (start, end) if start < end else None
