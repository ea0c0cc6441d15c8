"""The hosted booking page of a project. It includes the first free slots; a script does the rest.

The script uses the public API with the project's own widget key, like any other client. The page
has no cookie and no session, so other sites may frame it: they gain nothing beyond the public key.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.templatetags.static import static
from django.utils.translation import gettext

from apps_config.base_views import add_test_mode_header
from apps_config.services import public_key
from availability.booking_policies import policy_query
from availability.models import Project
from availability.public_project import lacks_payment_link
from availability.search import AvailabilityQuery, load_project_resources
from booking_pages.form_fields import form_fields
from booking_pages.slots import OfferedSlots, find_slots_to_offer, slot_words, slots_by_day
from booking_pages.texts import (
    NO_PAGE,
    NOT_HERE,
    NOTHING_FREE,
    PAGE,
    SCRIPT,
    SUCCESS,
    UNAVAILABLE,
    outcome_of,
)
from booking_pages.views.rate_limited import RateLimitedPageView
from bookings.booking_input import DEFAULT_GRAPH
from bookings.formatting import clean_lines, date_words, first_known_zone, to_one_line
from bookings.graphs import GRAPHS, Graph
from bookings.public_page_view import SOURCES
from bookings.public_requests import needs_challenge
from bookings.services import needs_verification
from bookings.views.email_links import REFUSAL_TEXTS, UNREADABLE
from common.api.fields import CANONICAL_ID
from common.api.views import ApiRequest
from common.errors import Invalid, NotFound

# seconds; a hold that expires while the form is filled in would be useless
MIN_HOLD = 120  # seconds
SOLVER = "booking_pages/solve.js"


class BookPageView(RateLimitedPageView):
    sources = {
        **SOURCES,
        "script-src": "'self'",
        "connect-src": "'self'",
        "frame-ancestors": "*",
    }

    project: Project | None = None

    def get(self, request: ApiRequest, project_slug: str) -> HttpResponse:
        rows = Project.objects.filter(deleted_at=None, app__archived_at=None, slug=project_slug)
        project = self.project = rows.select_related("app").first()
        if project is None or not project.is_published:
            raise NotFound("Project")
        return self.render_page(
            "booking_pages/book.html",
            lambda: self._values(project, request),
            status=200,
            app=project.app,
            languages=[project.settings.get("language")],
        )

    def _values(self, project: Project, request: ApiRequest) -> Mapping[str, Any]:
        graph = graph_of(project)
        resources = load_project_resources(project.app, project, now=self.now)
        rules = policy_query(project, resources, now=self.now)
        zone_name = page_zone(project, rules)
        payment = payment_link(project, graph)
        verifies = needs_verification(project)
        is_bookable = can_be_booked(project, graph)
        offer = OfferedSlots([], 0, 0)
        if is_bookable:
            offer = find_slots_to_offer(rules, zone_name=zone_name, since=self.now)
        return {
            "heading": to_one_line(project.name),
            "description": clean_lines(text_value(project.booking, "description")),
            "facts": project_facts(project, rules),
            "words": PAGE,
            "verifies": verifies,
            "zone": zone_name,
            "fields": form_fields(project.customer_fields),
            "submit": to_one_line(project_words(project, "submit_button")) or gettext("Book"),
            "hint": NOTHING_FREE if is_bookable else NOT_HERE,
            **days_values(
                offer, zone_name, request.GET.get("day", ""), with_end=rules.terms.length is None
            ),
            "for_script": {
                "key": public_key(project.app, project.id, now=self.now),
                "project": str(project.id),
                "zone": zone_name,
                "shows_ends": rules.terms.length is None,
                "offer": offer._asdict(),
                "hold": page_hold_seconds(project),
                "outcome": [str(sentence) for sentence in outcome_of(graph)],
                "success": project_words(project, "success_message") or success_texts(graph),
                "payment": payment,
                "solver": static(SOLVER) if needs_challenge(project.app) else None,
                "reservation": reservation_of(request) if verifies else None,
                "words": {name: str(sentence) for name, sentence in SCRIPT.items()},
            },
        }

    def refusal_page(self, exc: Exception, status: int, code: str) -> HttpResponse:
        known = {**REFUSAL_TEXTS, "not_found": NO_PAGE, "invalid": UNAVAILABLE}
        heading, sentence = known.get(code, UNREADABLE)
        return self.render_page(
            "bookings/page.html",
            lambda: {"heading": heading, "sentence": sentence},
            status=status,
            app=self.project.app if self.project and status < 500 else None,
        )

    def decorate(self, response: HttpResponseBase) -> None:
        super().decorate(response)
        # Answers change within minutes, but the browser's back button may reuse one.
        response.headers["Cache-Control"] = "no-cache"
        add_test_mode_header(response, self.project.app if self.project else None)
        if self.project:
            response.headers.pop("X-Robots-Tag", None)
            vars(response)["xframe_options_exempt"] = True  # as Django's decorator sets it


def reservation_of(request: ApiRequest) -> str | None:
    """Return the id in the link of a code's e-mail."""
    given = request.GET.get("reservation", "")
    return given if CANONICAL_ID.fullmatch(given) else None


def graph_of(project: Project) -> Graph:
    """Return the project's graph. Raises Invalid for an unknown name that bypassed the services."""
    name = project.booking.get("graph") or DEFAULT_GRAPH
    if not isinstance(name, str) or name not in GRAPHS:
        raise Invalid.at("booking.graph", "The project's graph is not known.")
    return GRAPHS[name]


def payment_link(project: Project, graph: Graph) -> dict[str, Any] | None:
    """Return the payment URL and the payment timeout in seconds; None if the graph needs none."""
    if not graph.is_paid_later or lacks_payment_link(project):
        return None
    return {"url": project.booking["payment_url"], "seconds": settings.PAYMENT_TIMEOUT}


def can_be_booked(project: Project, graph: Graph) -> bool:
    """Return whether the page can complete a booking of the graph."""
    return not (graph.is_group or graph.is_seat or lacks_payment_link(project))


def success_texts(graph: Graph) -> str:
    """Return the success text. A booking that waits for payment sends no e-mail until it is
    paid.
    """
    return "" if graph.is_paid_later else str(SUCCESS)


def text_value(values: Mapping[str, Any], name: str) -> str:
    """Return the text at `name`; "" for any other type."""
    text = values.get(name)
    return text if isinstance(text, str) else ""


def project_words(project: Project, name: str) -> str:
    """Return a text of the project's `ui.localization`; "" if there is none."""
    words = project.ui.get("localization")
    return clean_lines(text_value(words, name)) if isinstance(words, Mapping) else ""


def page_zone(project: Project, rules: AvailabilityQuery) -> str:
    """Return the resources' time zone if they share one, else the app's."""
    zones = {resource.zone for resource in rules.resources}
    return zones.pop() if len(zones) == 1 else first_known_zone(project.app.default_timezone)


def page_hold_seconds(project: Project) -> int:
    """Return the seconds for which the page holds a slot; 0: no hold."""
    seconds = project.reservation_time or 0
    return seconds if seconds >= MIN_HOLD else 0


def project_facts(project: Project, rules: AvailabilityQuery) -> Sequence[tuple[str, str]]:
    """Return (label, value) for length, place and person, without empty ones."""
    names = [resource.name for resource in rules.resources]
    rows = [
        (gettext("Length"), length_words(rules.terms.length)),
        (gettext("Where"), to_one_line(text_value(project.booking, "where"))),
        (gettext("With"), to_one_line(names[0]) if len(names) == 1 else ""),
    ]
    return [(label, value) for label, value in rows if value]


def length_words(seconds: int | None) -> str:
    """Return `1 h 30 min`."""
    if seconds is None:
        return ""
    hours, rest = divmod(seconds, 3600)
    parts = [(hours, "h"), (rest // 60, "min"), (rest % 60, "s")]
    return " ".join(f"{count} {unit}" for count, unit in parts if count)


def days_values(
    offer: OfferedSlots, zone_name: str, wanted: str, *, with_end: bool
) -> dict[str, Any]:
    """Return the template's values: the days, and the times of the day `wanted`, else of the
    first.
    """
    slots = slots_by_day(offer.slots, zone_name)
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
