"""The booking page of a project as Markdown, for agents: /book/<slug>.md; also an app's page.

It says the same as the HTML page, and how to book with the page's public key. Everything in it is
English but for the owner's own texts.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.http import HttpResponse
from django.utils.translation import override
from rest_framework.request import Request

from apps_config.base_views import add_test_mode_header
from apps_config.models import App
from apps_config.services import public_key
from availability.models import Project
from availability.project_texts import ProjectTexts, project_texts
from availability.reserve.policies import policy_query
from availability.search.availability_query import (
    AvailabilityQuery,
    SearchResource,
    for_party,
    load_project_resources,
)
from booking_pages.form_fields import FormField, form_fields
from booking_pages.group_sessions import GroupSession, find_group_sessions
from booking_pages.markdown import bullets, code, plain, quoted
from booking_pages.slots import OfferedSlots
from booking_pages.texts import needs_approval
from booking_pages.views.hosted_project_page import (
    BookPageView,
    Wanted,
    bookable_projects,
    booking_graph_of,
    can_be_booked,
    contact_address,
    find_app,
    find_offer,
    find_project,
    hint_without_times,
    lengths_to_choose,
    mails_customers,
    numbers_to_choose,
    page_zone,
    project_entry,
    requirement_to_choose,
    resources_to_choose,
)
from booking_pages.views.rate_limited_page_base import RateLimitedPageView
from bookings.graphs import Graph
from bookings.pages.action_links import own_bookings_path
from bookings.pages.formatting import first_known_zone, length_words, to_one_line
from bookings.public_booking_checks import needs_challenge
from bookings.services import needs_verification
from common.errors import NotFound
from common.shipped_languages import SOURCE_LANGUAGE
from common.time.durations import duration_in_words
from common.time.instants import find_zone, local_date, to_datetime

MAX_TIMES = 20
SEARCHED = timedelta(days=7)  # by the request in the text
MARKDOWN = "text/markdown; charset=utf-8"
# What fits a question's `format`, for the example of a booking.
SAMPLES: Mapping[str, Any] = {
    "email": "name@example.com",
    "tel": "+1 555 0100",
    "url": "https://example.com",
    "number": "1",
    "date": "2030-01-31",
}


class MarkdownPageView(RateLimitedPageView):
    refusals = BookPageView.refusals

    def get(self, request: Request, slug: str) -> HttpResponse:
        project = find_project(slug)
        self.app = project.app if project else find_app(slug)
        with override(SOURCE_LANGUAGE):
            if project and project.is_published:
                return markdown_response(write_project(ProjectPage(project, self.now)))
            projects = bookable_projects(self.app) if self.app and not project else []
            if self.app and projects:
                return markdown_response(write_app(self.app, projects))
        raise NotFound("Project")

    def refusal_page(self, exc: Exception, status: int, code: str) -> HttpResponse:
        with override(SOURCE_LANGUAGE):
            heading, sentence = self.refusal_text(exc, code)
            return markdown_response(f"# {heading}\n\n{sentence}\n", status=status)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = super().finalize_response(request, response, *args, **kwargs)
        response.headers["Cache-Control"] = "no-cache"
        add_test_mode_header(response, self.app)
        return response


def markdown_response(text: str, *, status: int = 200) -> HttpResponse:
    return HttpResponse(text, status=status, content_type=MARKDOWN)


# --- An app ---------------------------------------------------------------------------------------
def write_app(app: App, projects: Sequence[Project]) -> str:
    lines = [f"# {plain(app.name)}", "", "What can be booked here:", ""]
    for project in projects:
        entry = project_entry(project)
        about = ", ".join(filter(None, [entry["length"], plain(entry["description"])]))
        lines.append(
            f"- [{plain(entry['name'])}]({page_address(project.slug)}.md)"
            + (f": {about}" if about else "")
        )
    return "\n".join([*lines, ""])


def page_address(slug: str) -> str:
    return f"{settings.PUBLIC_URL}/book/{quote(slug)}"


# --- A project ------------------------------------------------------------------------------------
class ProjectPage:
    """What the page says: the project's texts and rules, and its next free times.

    rules: those of a booking with the project's default length and the smallest party.
    """

    def __init__(self, project: Project, now: Any) -> None:
        self.project = project
        self.app: App = project.app
        self.graph: Graph = booking_graph_of(project)
        self.texts: ProjectTexts = project_texts(project, None)
        self.resources: Sequence[SearchResource] = load_project_resources(
            project.app, project, now=now
        )
        rules = policy_query(project, self.resources, now=now)
        self.lengths = lengths_to_choose(rules.terms, self.graph)
        self.quantities, self.party_sizes = numbers_to_choose(project, rules, self.graph)
        self.party_size = next(iter(self.party_sizes), None)
        self.rules: AvailabilityQuery = for_party(replace(rules, party_size=self.party_size))
        self.people = resources_to_choose(project, self.resources, self.graph)
        self.fields: list[FormField] = form_fields(with_whole_names(project.customer_fields))
        self.zone = first_known_zone(page_zone(project, rules))
        self.is_bookable = can_be_booked(project, self.graph)
        self.offer = OfferedSlots([], 0, 0)
        if self.is_bookable:
            self.offer = (
                find_group_sessions(project, now=now)
                if self.graph.is_seat
                else find_offer(self.rules, self.zone, Wanted())
            )
        self.key = public_key(self.app, project.id, now=now) if self.is_bookable else ""

    def time(self, seconds: int) -> str:
        """Return the instant in ISO 8601, in the zone of the page."""
        return to_datetime(seconds).astimezone(find_zone(self.zone)).isoformat()


def with_whole_names(questions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the questions with the name as one, as a request has it."""
    name = questions.get("name")
    if not isinstance(name, Mapping):
        return questions
    return {**questions, "name": {**name, "split_name": False}}


def write_project(page: ProjectPage) -> str:
    name = f"# {plain(page.texts.name)}"
    parts = [name, quoted(page.texts.description), bullets(facts(page))]
    if not page.offer.slots:
        contact = contact_address(page.app)
        parts.append(hint_without_times(is_bookable=page.is_bookable, contact=contact))
    if page.is_bookable:
        parts += [times_section(page), search_section(page), booking_section(page)]
    return "\n\n".join(filter(None, parts)) + "\n"


def facts(page: ProjectPage) -> list[tuple[str, str]]:
    policies = page.project.settings
    lengths: Sequence[int | None] = page.lengths or [page.rules.terms.length]
    # As the HTML page: the choice, or the only one.
    people = page.people or (page.resources if len(page.resources) == 1 else ())
    return [
        ("Business", plain(page.app.name)),
        ("Length", " or ".join(map(length_words, lengths))),
        ("Where", plain(page.texts.where)),
        ("With", " or ".join(plain(each.name) for each in people)),
        ("Time zone", page.zone),
        ("After booking", outcome(page)),
        ("Customers can cancel until", until_words(policies.get("min_cancel_time"))),
        ("Customers can move the booking until", until_words(policies.get("min_reschedule_time"))),
        ("Contact", plain(contact_address(page.app))),
        ("Page for people", page_address(page.project.slug)),
        ("Customers see their bookings at", settings.PUBLIC_URL + own_bookings_path(page.app)),
    ]


def until_words(duration: Any) -> str:
    return f"{plain(duration)} before the start" if isinstance(duration, str) and duration else ""


def outcome(page: ProjectPage) -> str:
    if page.graph.is_paid_later:
        return "the customer has to pay, then it is confirmed"
    if needs_approval(page.graph):
        return "it is a request, which the business confirms or declines"
    return "it is confirmed at once"


def times_section(page: ProjectPage) -> str:
    slots = page.offer.slots[:MAX_TIMES]
    if not slots:
        return ""
    rows = [f"- {page.time(slot[0])} to {page.time(slot[1])}{seats_words(slot)}" for slot in slots]
    return "\n\n".join(["## Next free times", "\n".join(rows)])


def seats_words(slot: Any) -> str:
    """Return `, 3 seats, id 0193...` of a group; "" of other times."""
    if not isinstance(slot, GroupSession):
        return ""
    places = f", places: {', '.join(map(plain, slot.places))}" if slot.places else ""
    return f", free seats: {slot.seats}, id `{slot.id}`{places}"


def search_section(page: ProjectPage) -> str:
    """How to ask for other times."""
    heading = "## Other times"
    if page.graph.is_seat:
        return "\n\n".join([heading, code("sh", curl(page, "GET", "/v2/bookings/groups"))])
    first = page.offer.slots[0][0] if page.offer.slots else int(page.rules.now.timestamp())
    day = local_date(to_datetime(first), page.zone)
    body = {
        "project_id": str(page.project.id),
        "from": day.isoformat(),
        "to": (day + SEARCHED).isoformat(),
        "output_timezone": page.zone,
        **numbers(page),
    }
    text = ["Each entry of `data` is a free time, with `start` and `end`."]
    if page.offer.horizon:
        span = f"{page.time(page.offer.earliest)} to {page.time(page.offer.horizon)}"
        text.append(f"Times can be booked from {span}.")
    if page.lengths:
        words = " or ".join(f"`{duration_in_words(length)}`" for length in page.lengths)
        text.append(f"`length` selects the length: {words}.")
    command = curl(page, "POST", "/v2/availability", body)
    return "\n\n".join([heading, " ".join(text), code("sh", command)])


def numbers(page: ProjectPage) -> dict[str, Any]:
    return {"party_size": page.party_size} if page.party_size else {}


def booking_section(page: ProjectPage) -> str:
    project = page.project
    body = {"project_id": str(project.id), **time_of_example(page), **numbers(page)}
    body["customer"] = {field.key: sample(field) for field in page.fields if is_shown(field)}
    parts = [
        "## How to book",
        "Ask the customer for the answers below, and for consent to book. Choose an"
        " `Idempotency-Key` for each booking: a repeated request with the same one books once.",
        code(
            "sh",
            curl(page, "POST", "/v2/bookings", body, "Idempotency-Key: choose-one-per-booking"),
        ),
        "The answer is 201 with `data.id` and `data.state`.",
        "\n".join(["Answers of the customer, in `customer`:", "", *questions(page.fields)]),
        notes(page),
    ]
    return "\n\n".join(filter(None, parts))


def time_of_example(page: ProjectPage) -> dict[str, Any]:
    if not page.offer.slots:
        return {"start": "2030-01-31T09:00:00Z", "end": "2030-01-31T10:00:00Z"}
    slot = page.offer.slots[0]
    times: dict[str, Any] = {"start": page.time(slot[0]), "end": page.time(slot[1])}
    if isinstance(slot, GroupSession):
        times["related"] = {"owner_booking_id": slot.id}
        if slot.places:
            times["place"] = slot.places[0]
    return times


def is_shown(field: FormField) -> bool:
    """Whether the example has it: what is required, and what the project prefills."""
    return field.required or field.readonly


def sample(field: FormField) -> Any:
    if field.readonly:
        return field.value
    if field.choices:
        return field.choices[0]
    if field.element == "checkbox":
        return True
    return SAMPLES.get(field.type, f"<{field.title}>")


def questions(fields: Sequence[FormField]) -> list[str]:
    return [
        f"- `{to_one_line(field.key).replace('`', '')}`: {plain(field.title)}"
        f" ({', '.join(demands(field))})"
        for field in fields
    ]


def demands(field: FormField) -> list[str]:
    if field.choices:
        values = f"one of {', '.join(plain(json.dumps(each)) for each in field.choices)}"
    elif field.element == "checkbox":
        values = "true or false"
    else:
        values = field.type or "text"
    required = "required" if field.required else "optional"
    return [required, values, *(["always as in the example"] if field.readonly else [])]


def notes(page: ProjectPage) -> str:
    """What else a request may need, and what its answers mean."""
    rows = [
        *needs_of_request(page),
        ("409 `slot_taken`", "somebody was faster; `alternatives` has the next free times"),
        ("422 `invalid`", "`errors` names each wrong value"),
        ("429", "wait for the seconds in `Retry-After`"),
        (
            "To move or cancel",
            "the customer uses the links in the confirmation e-mail"
            if mails_customers(page.app)
            else "the customer asks the business",
        ),
        ("The whole API", f"{settings.PUBLIC_URL}/v2/openapi.json"),
    ]
    return "\n\n".join(["What else to know:", bullets(rows)])


def needs_of_request(page: ProjectPage) -> list[tuple[str, str]]:
    rows = []
    if page.people:
        ids = " or ".join(f"`{each.id}` ({plain(each.name)})" for each in page.people)
        name = requirement_to_choose(page.project)
        field = f"`resources`, `{{{json.dumps(name)}: id}}`" if name else "`resource_id`"
        rows.append((field, f"the customer's choice, with the id {ids}"))
    if page.quantities:
        rows.append(("`quantity`", f"how many are booked, up to {page.quantities[-1]}"))
    if page.graph.is_seat:
        rows += needs_of_seats(page)
    if page.party_sizes:
        sizes = ", ".join(map(str, page.party_sizes))
        rows.append(("`party_size`", f"how many people come: {sizes}"))
    if needs_challenge(page.app):
        rows.append(
            ("`challenge`", "a solved ALTCHA challenge of GET `/v2/challenge`, for each booking")
        )
    if needs_verification(page.project):
        path = "/v2/bookings/reserve/<data.reservation_id>/verify"
        rows.append(
            (
                "202",
                "the customer gets a code by e-mail. Ask for it, and send it within 15 minutes:"
                f' POST `{path}` with `{{"code": "123456"}}`',
            )
        )
    return rows


def needs_of_seats(page: ProjectPage) -> list[tuple[str, str]]:
    rows = []
    most = page.project.settings.get("max_quantity") or 1
    if most > 1:
        rows.append(("`quantity`", f"how many free seats are booked, up to {most}"))
    if any(slot.places for slot in page.offer.slots if isinstance(slot, GroupSession)):
        rows.append(("`place`", "the customer's choice, if the session has places"))
    return rows


def curl(
    page: ProjectPage, method: str, path: str, body: Mapping[str, Any] | None = None, *more: str
) -> str:
    """Return the command for a shell; what the owner wrote stays in its quotes."""
    headers = [f"Authorization: Bearer {page.key}", *more]
    if body is not None:
        headers.append("Content-Type: application/json")
    lines = [f"curl -sS -X {method} {shlex.quote(settings.PUBLIC_URL + path)}"]
    lines += [f"  -H {shlex.quote(header)}" for header in headers]
    if body is not None:
        lines.append(f"  -d {shlex.quote(json.dumps(body, ensure_ascii=False, indent=2))}")
    return " \\\n".join(lines)
