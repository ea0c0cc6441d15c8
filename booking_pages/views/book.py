"""The hosted page of a project: the first free times stand in it, a script does the rest.

The script is a client of the public API like any other, with the app's widget key. The page has no
cookie and no session, so other sites may frame it: they gain nothing that the key, which anyone can
read, would not give them.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.utils.translation import gettext

from apps_config.endpoints import mark_test_mode
from apps_config.services import public_key
from availability.enforcement import enforced_query
from availability.models import Project
from availability.search import Query, load_project_resources
from booking_pages.fields import form_fields
from booking_pages.offers import Offer, by_day, find_offer, slot_words
from booking_pages.views.counted import CountedPageView
from booking_pages.words import (
    NO_PAGE,
    NOT_HERE,
    NOTHING_FREE,
    PAGE,
    SCRIPT,
    SUCCESS,
    UNAVAILABLE,
    outcome_of,
)
from bookings.external import REFUSED, UNREADABLE
from bookings.graphs import GRAPHS, Graph
from bookings.pages import SOURCES
from bookings.requests import DEFAULT_GRAPH
from bookings.wording import date_words, known_zone, lines_of, one_line
from scheduling.api.errors import Invalid, NotFound
from scheduling.api.fields import is_web_address

# A form takes a while: a hold that lapses while it is filled in would be of no use.
LEAST_HOLD = 120  # seconds


class BookPageView(CountedPageView):
    sources = SOURCES | {
        "script-src": "'self'",
        "connect-src": "'self'",
        "frame-ancestors": "*",
    }

    project: Project | None = None

    def get(self, request: Any, project_slug: str) -> HttpResponse:
        rows = Project.objects.filter(deleted_at=None, app__archived_at=None, slug=project_slug)
        self.project = rows.select_related("app").first()
        if self.project is None:
            raise NotFound("Project")
        return self.render_page(
            "booking_pages/book.html",
            lambda: self._values(self.project, request.GET.get("day", "")),
            status=200,
            app=self.project.app,
            languages=[self.project.settings.get("language")],
        )

    def _values(self, project: Project, day: str) -> Mapping[str, Any]:
        graph = graph_of(project)
        resources = load_project_resources(project.app, project, now=self.now)
        rules = enforced_query(project, resources, now=self.now)
        zone_name = zone_of(project, rules)
        payment = payment_of(project, graph)
        is_bookable = can_be_booked(graph, payment)
        offer = Offer([], 0, 0)
        if is_bookable:
            offer = find_offer(rules, zone_name=zone_name, since=self.now)
        return {
            "heading": one_line(project.name),
            "description": lines_of(text_in(project.booking, "description")),
            "facts": facts_of(project, rules),
            "words": PAGE,
            "zone": zone_name,
            "fields": form_fields(project.customer_fields),
            "submit": one_line(own_words(project, "submit_button")) or gettext("Book"),
            "hint": NOTHING_FREE if is_bookable else NOT_HERE,
            **days_values(offer, zone_name, day, with_end=rules.terms.length is None),
            "for_script": {
                "key": public_key(project.app, now=self.now),
                "project": str(project.id),
                "zone": zone_name,
                "shows_ends": rules.terms.length is None,
                "offer": offer._asdict(),
                "hold": hold_of(project),
                "outcome": [str(one) for one in outcome_of(graph)],
                "success": own_words(project, "success_message") or success_of(graph),
                "payment": payment,
                "words": {name: str(sentence) for name, sentence in SCRIPT.items()},
            },
        }

    def refusal_page(self, exc: Exception, status: int, code: str) -> HttpResponse:
        known = {**REFUSED, "not_found": NO_PAGE, "invalid": UNAVAILABLE}
        heading, sentence = known.get(code, UNREADABLE)
        return self.render_page(
            "bookings/page.html",
            lambda: {"heading": heading, "sentence": sentence},
            status=status,
            app=self.project.app if self.project and status < 500 else None,
        )

    def decorate(self, response: Any) -> None:
        super().decorate(response)
        # Answers differ by the minute, but a browser may go back to one.
        response.headers["Cache-Control"] = "no-cache"
        mark_test_mode(response, self.project and self.project.app)
        if self.project:
            response.headers.pop("X-Robots-Tag", None)
            response.xframe_options_exempt = True


def graph_of(project: Project) -> Graph:
    """Raises Invalid where a name was stored past the services."""
    name = project.booking.get("graph") or DEFAULT_GRAPH
    if not isinstance(name, str) or name not in GRAPHS:
        raise Invalid.at("booking.graph", "The project's graph is not known.")
    return GRAPHS[name]


def payment_of(project: Project, graph: Graph) -> dict[str, Any] | None:
    """Where a booking of the graph is paid, and within how many seconds."""
    url = text_in(project.booking, "payment_url")
    if not graph.is_paid_later or not is_web_address(url):
        return None
    return {"url": url, "seconds": settings.PAYMENT_TIMEOUT}


def can_be_booked(graph: Graph, payment: Mapping[str, Any] | None) -> bool:
    """Whether the page can lead a booking to its end."""
    is_group = graph.is_group or graph.is_seat
    return not is_group and (payment is not None or not graph.is_paid_later)


def success_of(graph: Graph) -> str:
    """Of a booking that waits for its payment no e-mail is sent until it is paid."""
    return "" if graph.is_paid_later else str(SUCCESS)


def text_in(values: Mapping[str, Any], name: str) -> str:
    """ "" for anything but text."""
    text = values.get(name)
    return text if isinstance(text, str) else ""


def own_words(project: Project, name: str) -> str:
    """What the project's `ui.localization` says; "" where it says nothing that can be read."""
    words = project.ui.get("localization")
    return lines_of(text_in(words, name)) if isinstance(words, Mapping) else ""


def zone_of(project: Project, rules: Query) -> str:
    """That of the resources if they share one, else the app's."""
    zones = {resource.zone for resource in rules.resources}
    return zones.pop() if len(zones) == 1 else known_zone(project.app.default_timezone)


def hold_of(project: Project) -> int:
    """The seconds for which the page keeps a time; 0: it does not."""
    seconds = project.reservation_time or 0
    return seconds if seconds >= LEAST_HOLD else 0


def facts_of(project: Project, rules: Query) -> Sequence[tuple[str, str]]:
    """(label, value) of length, place and person; empty ones left out."""
    names = [resource.name for resource in rules.resources]
    rows = [
        (gettext("Length"), length_words(rules.terms.length)),
        (gettext("Where"), one_line(text_in(project.booking, "where"))),
        (gettext("With"), one_line(names[0]) if len(names) == 1 else ""),
    ]
    return [(label, value) for label, value in rows if value]


def length_words(seconds: int | None) -> str:
    """`1 h 30 min`."""
    if seconds is None:
        return ""
    hours, rest = divmod(seconds, 3600)
    parts = [(hours, "h"), (rest // 60, "min"), (rest % 60, "s")]
    return " ".join(f"{count} {unit}" for count, unit in parts if count)


def days_values(offer: Offer, zone_name: str, wanted: str, *, with_end: bool) -> dict[str, Any]:
    """The days of an offer, and the times of the wanted one, else of the first."""
    slots = by_day(offer.slots, zone_name)
    days = list(slots)
    chosen = next((day for day in days if day.isoformat() == wanted), days[0] if days else None)
    return {
        "days": [
            {"date": day, "words": date_words(day), "is_chosen": day == chosen} for day in days
        ],
        "day": date_words(chosen) if chosen else "",
        "times": [
            {"slot": slot, "words": slot_words(slot, zone_name, with_end=with_end)}
            for slot in slots.get(chosen or date.min, [])
        ],
        "has_more": offer.has_more,
    }
