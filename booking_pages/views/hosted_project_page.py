"""The hosted booking page of a project. It includes the first free slots; a script does the rest.

The script uses the public API with the project's own widget key, like any other client. The page
has no cookie and no session, so other sites may frame it: they gain nothing beyond the public key.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from itertools import chain, groupby
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from django.conf import settings
from django.http import HttpResponse
from django.templatetags.static import static
from django.utils.translation import get_language, gettext, pgettext
from rest_framework.request import Request

from apps_config.base_views import add_test_mode_header
from apps_config.models import App
from apps_config.services import public_key
from availability.core.matching import FixedChoice
from availability.graph_names import DEFAULT_GRAPH
from availability.models import Project
from availability.payment_links import lacks_payment_link
from availability.project_texts import ProjectTexts, original_texts, project_texts
from availability.reserve.policies import policy_query
from availability.search.availability_query import (
    AvailabilityQuery,
    SearchResource,
    for_party,
    load_project_resources,
    party_limits,
    takes_party,
)
from availability.search.cost import public_days
from availability.search.fair_turns import with_fair_turns
from availability.search.parameters import SlotParameters, with_parameters
from availability.search.remaining import find_remaining
from availability.search.visits import requirements_of_project
from booking_pages.form_fields import form_fields
from booking_pages.group_sessions import GroupSession, find_group_sessions
from booking_pages.picture_paths import picture_paths
from booking_pages.slots import (
    SHOWN_DAYS,
    OfferedSlots,
    find_slots_to_offer,
    parse_day_parameter,
    slot_words,
    slots_by_day,
    week_of,
)
from booking_pages.texts import (
    CODES,
    NO_PAGE,
    NOT_HERE,
    NOT_HERE_WITH_CONTACT,
    NOTHING_FREE,
    NOTHING_FREE_WITH_CONTACT,
    PAGE,
    SCRIPT,
    SEATS,
    SUCCESS,
    UNAVAILABLE,
    confirmation_of,
    needs_approval,
)
from booking_pages.views.rate_limited_page_base import RateLimitedPageView
from bookings.graphs import GRAPHS, Graph
from bookings.pages.action_links import own_bookings_path
from bookings.pages.base import ORIGIN, SOURCES
from bookings.pages.formatting import (
    clean_lines,
    date_words,
    english_dates_tag,
    first_english,
    first_known_zone,
    has_two_clocks,
    language_of,
    language_tag_of,
    length_words,
    month_range_words,
    short_month_words,
    shorten_text,
    style_of_region,
    to_one_line,
    weekday_words,
)
from bookings.pages.refusal_texts import REFUSAL_TEXTS
from bookings.public_booking_checks import needs_challenge
from bookings.services import needs_verification
from common.api.fields import CANONICAL_ID, is_web_address
from common.errors import Invalid, NotFound
from common.shipped_languages import SOURCE_LANGUAGE
from common.time.durations import DurationError, duration_in_words, elapsed_seconds
from common.time.instants import format_instant, local_date, local_midnight, to_datetime
from common.time.zone_names import current_browser_zones

# seconds; a hold that expires while the form is filled in would be useless
MIN_HOLD = 120  # seconds
MAX_NUMBERS = 20  # to choose from
CHOICES = (
    "resource",
    "length",
    "quantity",
    "party_size",
    "timezone",
)  # of the address: links to other days keep them
MAX_LISTED = 500  # projects on the page of an app
MAX_SHARED = 200  # letters of the text that others show of a link
SOLVER = "booking_pages/solve.js"
ZONE_SEARCH = "booking_pages/zones.js"
DONE_STEP = "booking_pages/done.js"


class BookPageView(RateLimitedPageView):
    sources = {
        **SOURCES,
        "script-src": "'self'",
        "connect-src": "'self'",
        "frame-ancestors": "*",
    }
    refusals = {**REFUSAL_TEXTS, "not_found": NO_PAGE, "invalid": UNAVAILABLE}

    def get(self, request: Request, project_slug: str) -> HttpResponse:
        project = find_project(project_slug)
        if project is None and (app := find_app(project_slug)):
            return self._app_page(app)
        self.app = project.app if project else None
        if project is None or not project.is_published:
            raise NotFound("Project")
        if origins := embed_origins(project):
            self.sources = {**self.sources, "frame-ancestors": " ".join(["'self'", *origins])}
        return self.render_page(
            "booking_pages/book.html",
            lambda: self._values(project, request),
            languages=[project.settings.get("language")],
        )

    def _app_page(self, app: App) -> HttpResponse:
        projects = bookable_projects(app)
        if not projects:
            raise NotFound("App")
        self.app = app
        return self.render_page(
            "booking_pages/app.html",
            lambda: {
                "heading": to_one_line(app.name),
                "words": PAGE,
                "projects": [project_entry(project) for project in projects],
                "own_bookings": own_bookings_path(app),
            },
        )

    def _values(self, project: Project, request: Request) -> Mapping[str, Any]:
        graph = booking_graph_of(project)
        texts = project_texts(project, get_language())
        resources = load_project_resources(project.app, project, now=self.now)
        requirement = requirement_to_choose(project)
        people = resources_to_choose(project, resources, graph)
        person = next(
            (each for each in people if str(each.id) == request.GET.get("resource")), None
        )
        if person and not project.derives_resources:
            resources = [person]
        rules = with_fair_turns(policy_query(project, resources, now=self.now), project)
        if person and project.derives_resources:
            rules = replace(rules, fixed=FixedChoice({requirement: (person.id,)}))
        lengths = lengths_to_choose(rules.terms, graph)
        rules = with_length(rules, read_length_parameter(request.GET, lengths))
        quantities, party_sizes = numbers_to_choose(project, rules, graph)
        rules = for_party(
            replace(
                rules,
                quantity=read_number_parameter(request.GET, "quantity", quantities) or 1,
                party_size=read_number_parameter(request.GET, "party_size", party_sizes)
                or next(iter(party_sizes), None),
            )
        )
        has_count = not (graph.is_seat or rules.takes_several_resources)
        shows_remaining = has_count and project.settings.get("show_remaining") is True
        zone_name = first_known_zone(page_zone(project, rules))
        verifies = needs_verification(project)
        is_mailed = mails_customers(project.app)
        is_bookable = can_be_booked(project, graph)
        contact = contact_address(project.app)
        offer = OfferedSlots([], 0, 0)
        wanted = read_wanted(request.GET, today=local_date(self.now, zone_name))
        if is_bookable:
            offer = (
                find_group_sessions(project, now=self.now)
                if graph.is_seat
                else find_offer(rules, zone_name, wanted)
            )
            if shows_remaining:
                offer = with_remaining(offer, rules)
        weeks = week_values(
            offer, zone_name, wanted, request.GET, with_end=rules.terms.length is None
        )
        return {
            "heading": to_one_line(texts.name),
            "sharing": sharing_values(project, texts, weeks.get("soonest", {})),
            "description": clean_lines(texts.description),
            "translated": texts.translated,
            "facts": project_facts(texts, rules, person, has_lengths=bool(lengths)),
            "words": PAGE,
            "verifies": verifies,
            "people": resource_links(people, person, request.GET),
            "lengths": length_links(lengths, rules.terms.length, request.GET),
            "numbers": [
                (PAGE[name], number_links(numbers, chosen, request.GET, name))
                for name, numbers, chosen in (
                    ("quantity", quantities, rules.quantity),
                    ("party_size", party_sizes, rules.party_size),
                )
                if numbers
            ],
            "is_group": graph.is_seat,
            "is_pending": graph.is_paid_later or needs_approval(graph),
            "zone": zone_name,
            "fields": form_fields(project.customer_fields, texts.questions),
            "submit": to_one_line(texts.submit_button) or submit_text(graph),
            "step": "times" if wanted.day else "days",
            "has_clock": has_two_clocks(),
            "contact": contact,
            "own_bookings": own_bookings_path(project.app),
            "hint": hint_without_times(is_bookable=is_bookable, contact=contact),
            **weeks,
            "for_script": {
                "key": public_key(project.app, project.id, now=self.now),
                "project": str(project.id),
                "zone": zone_name,
                "language": page_language_if_not_projects(project, self.browser_languages()),
                "english_dates": english_dates_tag(),
                "resource": str(person.id) if person else None,
                "requirement": requirement or None,
                "length": duration_in_words(rules.terms.length)
                if lengths and rules.terms.length
                else None,
                "quantity": rules.quantity if rules.quantity > 1 else None,
                "party_size": rules.party_size,
                "shows_remaining": shows_remaining,
                "is_group": graph.is_seat,
                "max_seats": project.settings.get("max_quantity") or 1,
                "redirect": redirect_url(project),
                "embed_origins": embed_origins(project) or None,
                "shows_ends": rules.terms.length is None,
                "offer": {**offer._asdict(), "slots": pack_slots(offer.slots)},
                "search_days": public_days(len(resources)),
                "hold": 0 if graph.is_seat else page_hold_seconds(project),
                "translations": translations_of_event_texts(project, texts),
                "outcome": [
                    str(sentence) for sentence in confirmation_of(graph, is_mailed=is_mailed)
                ],
                "success": clean_lines(texts.success_message)
                or success_texts(graph, is_mailed=is_mailed),
                "payment": payment_seconds(project, graph),
                "needs_challenge": needs_challenge(project.app),
                "solver": static(SOLVER),
                "zones": static(ZONE_SEARCH),
                "done": static(DONE_STEP),
                "zone_names": current_browser_zones(),
                "reservation": reservation_of(request) if verifies else None,
                "words": script_words(graph, verifies=verifies),
            },
        }

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = super().finalize_response(request, response, *args, **kwargs)
        # Answers change within minutes, but the browser's back button may reuse one.
        response.headers["Cache-Control"] = "no-cache"
        add_test_mode_header(response, self.app)
        if self.app:
            response.headers.pop("X-Robots-Tag", None)
            vars(response)["xframe_options_exempt"] = True  # as Django's decorator sets it
        return response


def sharing_values(
    project: Project, texts: ProjectTexts, soonest: Mapping[str, str]
) -> dict[str, str]:
    """Return what others show of a link to the page: the next free time, and the description."""
    shown = [soonest.get("words", ""), to_one_line(texts.description)]
    return {
        "service": settings.PUBLIC_URL,
        "address": f"{settings.PUBLIC_URL}/book/{quote(project.slug)}",
        "text": shorten_text(" · ".join(filter(None, shown)), MAX_SHARED),
    }


def translations_of_event_texts(project: Project, texts: ProjectTexts) -> dict[str, str]:
    """Return the project's title and place -> their translations, for the script: the API returns
    a booking with the project's own texts.
    """
    own = original_texts(project)
    names = [name for name in ("what", "where") if name in texts.translated]
    return {own[name]: getattr(texts, name) for name in names}


def script_words(graph: Graph, *, verifies: bool) -> dict[str, str]:
    """Return the script's texts, without those of steps that the page does not have."""
    words = {**SCRIPT, **(SEATS if graph.is_seat else {}), **(CODES if verifies else {})}
    return {name: str(sentence) for name, sentence in words.items()}


def pack_slots(slots: Sequence[Any]) -> list[list[Any]]:
    """Return the slots in runs of (how many, seconds after the start before, length, ...): those
    of a day without a break are one run.

    >>> pack_slots([(900, 2700), (1800, 3600), (3600, 5400)])
    [[2, 900, 1800], [1, 1800, 1800]]
    """
    starts = [0, *(slot[0] for slot in slots)]
    rows = (
        [start - before, end - start, *rest]
        for before, (start, end, *rest) in zip(starts, slots, strict=False)
    )
    return [[len(list(run)), *row] for row, run in groupby(rows)]


def page_language_if_not_projects(project: Project, accepted: Sequence[str]) -> str | None:
    """Return the page's language, for the customer's e-mails, if the browser chose another one than
    the project's, or the English of another region.
    """
    usual = language_tag_of(project.app, project.settings.get("language"))
    language = get_language()
    tag = (first_english(accepted) if language == SOURCE_LANGUAGE else "") or language
    is_usual = language_of(None, usual) == language
    return None if is_usual and style_of_region(usual) == style_of_region(tag) else tag


def reservation_of(request: Request) -> str | None:
    """Return the id in the link of a code's e-mail."""
    given = request.GET.get("reservation", "")
    return given if CANONICAL_ID.fullmatch(given) else None


def booking_graph_of(project: Project) -> Graph:
    """Return the project's graph. Raises Invalid for an unknown name that bypassed the services."""
    graph = find_graph(project)
    if graph is None:
        raise Invalid.at("booking.graph", "The project's graph is not known.")
    return graph


def find_graph(project: Project) -> Graph | None:
    name = project.booking.get("graph") or DEFAULT_GRAPH
    return GRAPHS.get(name) if isinstance(name, str) else None


def payment_seconds(project: Project, graph: Graph) -> int | None:
    """Return the payment timeout in seconds; None if bookings await no payment."""
    if not graph.is_paid_later or lacks_payment_link(project):
        return None
    return settings.PAYMENT_TIMEOUT


def can_be_booked(project: Project, graph: Graph) -> bool:
    """Return whether the page can complete a booking of the graph."""
    return not (graph.is_group or lacks_payment_link(project))


def redirect_url(project: Project) -> str | None:
    """Return where the page leads after a booking; None: it shows the booking."""
    url = project.settings.get("redirect_url")
    return url if isinstance(url, str) and is_web_address(url) else None


def embed_origins(project: Project) -> list[str]:
    """Return the only web sites that may frame the page; [] = any."""
    origins = project.settings.get("embed_origins")
    texts = origins if isinstance(origins, list) else []
    return [text for text in texts if isinstance(text, str) and ORIGIN.fullmatch(text)]


def find_project(slug: str) -> Project | None:
    rows = Project.objects.filter(deleted_at=None, app__archived_at=None, slug=slug)
    return rows.select_related("app").first()


# --- The app's page -------------------------------------------------------------------------------
def find_app(slug: str) -> App | None:
    return App.objects.filter(slug=slug, archived_at=None).first()


def bookable_projects(app: App) -> list[Project]:
    """Return the app's published projects that can be booked on their page, by name."""
    rows = Project.objects.filter(app=app, deleted_at=None).order_by("name", "id")
    projects = [*rows[:MAX_LISTED]]
    for project in projects:
        project.app = app
    return [each for each in projects if each.is_published and is_bookable_project(each)]


def is_bookable_project(project: Project) -> bool:
    graph = find_graph(project)
    return graph is not None and can_be_booked(project, graph)


def project_entry(project: Project) -> dict[str, Any]:
    try:
        terms = with_parameters(SlotParameters(), project.availability)
        lengths: Sequence[int | None] = terms.lengths or [terms.length]
        if project.steps:
            lengths = []  # those of its steps count
    except ValueError:  # only writes without the services can leave it
        lengths = []
    texts = project_texts(project, get_language())
    return {
        "link": f"/book/{project.slug}",
        "name": to_one_line(texts.name),
        "length": " / ".join(map(length_words, lengths)),
        "description": to_one_line(clean_lines(texts.description)),
        "translated": texts.translated,
    }


# --- The length ----------------------------------------------------------------------------------
def lengths_to_choose(terms: SlotParameters, graph: Graph) -> Sequence[int]:
    """Return the lengths, in seconds, that customers can choose from; [] if they have no choice."""
    return terms.lengths if len(terms.lengths) > 1 and not graph.is_seat else ()


def read_length_parameter(parameters: Mapping[str, str], lengths: Sequence[int]) -> int | None:
    """Return the length in the address (`length=30 minutes`) if it can be chosen."""
    try:
        seconds = elapsed_seconds(parameters.get("length", ""))
    except DurationError:
        return None
    return seconds if seconds in lengths else None


def with_length(rules: AvailabilityQuery, length: int | None) -> AvailabilityQuery:
    """Return the rules for bookings of this length; None: of the project's default length."""
    if length is None or rules.own is None:
        return rules
    own = replace(rules.own, length=length)
    return replace(rules, terms=replace(rules.terms, length=length), own=own)


def length_links(
    lengths: Sequence[int], chosen: int | None, parameters: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return the links to choose a length; they keep the rest of the address."""
    return [
        {
            "words": length_words(length),
            "link": link_with(parameters, length=duration_in_words(length), time=None),
            "is_chosen": length == chosen,
        }
        for length in lengths
    ]


# --- How many ------------------------------------------------------------------------------------
def numbers_to_choose(
    project: Project, rules: AvailabilityQuery, graph: Graph
) -> tuple[Sequence[int], Sequence[int]]:
    """Return the quantities and the sizes of parties that customers can choose from; [] if they
    have no choice.
    """
    if graph.is_seat:
        return (), ()
    most = 1
    if not rules.takes_several_resources:
        allowed = project.settings.get("max_quantity") or 1
        most = min(allowed, max((each.capacity for each in rules.resources), default=1))
    least, largest = party_limits(rules) or (1, 0)
    sizes = range(least, min(largest, least + MAX_NUMBERS - 1) + 1)
    return (
        range(1, min(most, MAX_NUMBERS) + 1) if most > 1 else (),
        [size for size in sizes if takes_party(rules, size)],
    )


def read_number_parameter(
    parameters: Mapping[str, str], name: str, numbers: Sequence[int]
) -> int | None:
    """Return the number in the address (`quantity=2`) if it can be chosen."""
    text = parameters.get(name, "")
    return next((number for number in numbers if str(number) == text), None)


def number_links(
    numbers: Sequence[int], chosen: int | None, parameters: Mapping[str, str], name: str
) -> list[dict[str, Any]]:
    """Return the links to choose a number; they keep the rest of the address."""
    return [
        {
            "words": str(number),
            "link": link_with(parameters, **{name: number, "time": None}),
            "is_chosen": number == chosen,
        }
        for number in numbers
    ]


def with_remaining(offer: OfferedSlots, rules: AvailabilityQuery) -> OfferedSlots:
    """Return the offer with how many units are left of each slot, in the place of free seats."""
    if not offer.slots:
        return offer
    starts, ends = [slot[0] for slot in offer.slots], [slot[1] for slot in offer.slots]
    terms = replace(
        rules.terms,
        earliest=format_instant(to_datetime(min(starts))),
        latest=format_instant(to_datetime(max(ends))),
    )
    query = replace(rules, terms=terms, bounds=rules.own)
    resources = tuple(rules.resources)
    slots = [(start, end, resources) for start, end in offer.slots]
    remaining = find_remaining(query, slots)
    return offer._replace(
        slots=[(*slot, None, left) for slot, left in zip(offer.slots, remaining, strict=True)]
    )


# --- The person -----------------------------------------------------------------------------------
def resources_to_choose(
    project: Project, resources: Sequence[SearchResource], graph: Graph
) -> Sequence[SearchResource]:
    """Return the resources that customers can choose from; [] if they have no choice. Of a project
    with `requires` or `steps`, those of one requirement.
    """
    if project.derives_resources:
        name = requirement_to_choose(project)
        requirements = chain.from_iterable(requirements_of_project(project))
        named = {each for found in requirements if found.name == name for each in found.ids}
        resources = [each for each in resources if each.id in named]
    elif project.settings.get("choose_resource") is not True or project.is_mutual:
        return []
    return resources if len(resources) > 1 and not graph.is_seat else []


def requirement_to_choose(project: Project) -> str:
    """Return the name of the requirement whose resource customers choose; "" without."""
    chosen = project.settings.get("choose_resource")
    if not project.derives_resources or not chosen:
        return ""
    return requirements_of_project(project)[0][0].name if chosen is True else str(chosen)


def resource_links(
    people: Sequence[SearchResource], chosen: SearchResource | None, parameters: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return the links to choose a person, "anyone" first; they keep the rest of the address."""
    if not people:
        return []
    any_resource = {
        "name": gettext("Anyone"),
        "initials": "",
        "picture": None,
        "link": link_with(parameters, resource=None, time=None),
        "is_chosen": chosen is None,
    }
    pictures = picture_paths([person.id for person in people])
    return [
        any_resource,
        *(
            {
                "name": to_one_line(person.name),
                "initials": initials(person.name),
                "picture": pictures.get(person.id),
                "link": link_with(parameters, resource=person.id, time=None),
                "is_chosen": person is chosen,
            }
            for person in people
        ),
    ]


def link_with(parameters: Mapping[str, str], **values: Any) -> str:
    """Return the link to the same page with other values in its query; None removes one."""
    query = {**dict(parameters.items()), **values}
    kept = {name: value for name, value in query.items() if value is not None}
    return f"?{urlencode(kept, safe=':/')}"


def initials(name: str) -> str:
    """Return `AB` for `Dr. Ada Berg`: of the last two words."""
    words = [word for word in to_one_line(name).split() if word[0].isalnum()]
    return "".join(word[0] for word in words[-2:]).upper()


def success_texts(graph: Graph, *, is_mailed: bool) -> str:
    """Return the success text. A booking that waits for payment sends no e-mail until it is
    paid.
    """
    return str(SUCCESS) if is_mailed and not graph.is_paid_later else ""


def mails_customers(app: App) -> bool:
    """Return whether customers get e-mails: a test app mails only its members."""
    return app.mode != App.TEST and not app.settings.get("disable_emails")


def contact_address(app: App) -> str:
    """Return the app's contact address; "" without one."""
    address = app.settings.get("contact_email")
    return to_one_line(address) if isinstance(address, str) else ""


def hint_without_times(*, is_bookable: bool, contact: str) -> str:
    """Return the sentence of a page without times. It names the contact only if there is one."""
    if not is_bookable:
        return str(NOT_HERE_WITH_CONTACT if contact else NOT_HERE)
    return str(NOTHING_FREE_WITH_CONTACT if contact else NOTHING_FREE)


def page_zone(project: Project, rules: AvailabilityQuery) -> str:
    """Return the resources' time zone if they share one, else the app's."""
    zones = {resource.zone for resource in rules.resources}
    return zones.pop() if len(zones) == 1 else first_known_zone(project.app.default_timezone)


def page_hold_seconds(project: Project) -> int:
    """Return the seconds for which the page holds a slot; 0: no hold."""
    seconds = project.reservation_time or 0
    return seconds if seconds >= MIN_HOLD else 0


def project_facts(
    texts: ProjectTexts,
    rules: AvailabilityQuery,
    person: SearchResource | None,
    *,
    has_lengths: bool,
) -> Sequence[tuple[str, str]]:
    """Return (label, value) for length, place and person, without empty ones and without a length
    that customers choose. person: the chosen one.
    """
    names = [resource.name for resource in ([person] if person else rules.resources)]
    rows = [
        (gettext("Length"), "" if has_lengths else length_words(rules.terms.length)),
        (gettext("Where"), to_one_line(texts.where)),
        (gettext("With"), to_one_line(names[0]) if len(names) == 1 else ""),
    ]
    return [(label, value) for label, value in rows if value]


def seat_words(count: int) -> str:
    """Return `3 seats left`."""
    return str(SEATS["seats_left"] if count > 1 else SEATS["seat_left"]).format(count=count)


def submit_text(graph: Graph) -> str:
    """Return the text of the button: a booking that needs an approval is requested."""
    return pgettext("button", "Request") if needs_approval(graph) else gettext("Book")


class Wanted(NamedTuple):
    """What the address asks for: a day, or the weeks from that of a day."""

    day: date | None = None
    week: date | None = None


def read_wanted(parameters: Mapping[str, str], *, today: date) -> Wanted:
    """Return the day in the address: `date` (or `day`); or the weeks: `week`, or those from the
    first day of `month` (`2026-12`). Ignores what is over.
    """

    def read(*texts: str) -> date | None:
        days = (parse_day_parameter(text) for text in texts)
        return next((day for day in days if day and day >= today), None)

    if day := read(parameters.get("date", ""), parameters.get("day", "")):
        return Wanted(day=day)
    return Wanted(week=read(parameters.get("week", ""), parameters.get("month", "") + "-01"))


def find_offer(rules: AvailabilityQuery, zone_name: str, wanted: Wanted) -> OfferedSlots:
    """Return the free slots from the weeks of `wanted`; from now if there are none, or if the first
    weeks have the wanted day.
    """
    since = rules.now
    now_shown = week_of(local_date(rules.now, zone_name)) + timedelta(days=SHOWN_DAYS)
    if first := wanted.week or (wanted.day if wanted.day and wanted.day >= now_shown else None):
        # The visitor's week may begin on Saturday, and in the visitor's zone a day earlier.
        monday = local_midnight(week_of(first), zone_name)
        since = max(since, monday - timedelta(days=3))
    offer = find_slots_to_offer(rules, zone_name=zone_name, since=since)
    if offer.slots or since == rules.now:
        return offer
    return find_slots_to_offer(rules, zone_name=zone_name, since=rules.now)


def week_values(
    offer: OfferedSlots,
    zone_name: str,
    wanted: Wanted,
    parameters: Mapping[str, str],
    *,
    with_end: bool,
) -> dict[str, Any]:
    """Return the template's values: the five weeks of the chosen day, and that day's times. The
    chosen day is the first free one of what is wanted, else the first. Links keep the CHOICES in
    the address.
    """
    parameters = {name: parameters[name] for name in CHOICES if name in parameters}
    slots = slots_by_day(offer.slots, zone_name)
    days = list(slots)
    if not days:
        return {"weeks": []}
    since = wanted.day or wanted.week
    chosen = next((day for day in days if since and day >= since), days[0])
    monday = first_shown_day(chosen, days[0], offer, wanted)
    return {
        "month": month_range_words(
            max(monday, local_date(to_datetime(offer.earliest), zone_name)),
            min(
                monday + timedelta(days=SHOWN_DAYS - 1),
                local_date(to_datetime(offer.horizon - 1), zone_name),
            ),
        ),
        "weeks": shown_weeks(monday, chosen, slots, parameters),
        "day": date_words(chosen),
        "times": [
            {
                "words": slot_words(slot, zone_name, with_end=with_end),
                "seats": seat_words(slot.seats) if isinstance(slot, GroupSession) else "",
            }
            for slot in slots[chosen]
        ],
        "soonest": first_free_time_link(offer, zone_name, parameters, with_end=with_end),
        **week_links(monday, offer, zone_name, parameters),
    }


def first_shown_day(chosen: date, first_free: date, offer: OfferedSlots, wanted: Wanted) -> date:
    """Return the Monday from which five weeks are shown: of the week that is wanted, else of the
    first free day, if they have the chosen day; else that of the chosen day.
    """
    first = week_of(wanted.week or first_free)
    is_known = wanted.week or offer.since <= offer.earliest  # no earlier day was left out
    has_chosen = first <= chosen < first + timedelta(days=SHOWN_DAYS)
    return first if is_known and has_chosen else week_of(chosen)


def first_free_time_link(
    offer: OfferedSlots, zone_name: str, parameters: Mapping[str, str], *, with_end: bool
) -> dict[str, str]:
    """Return words and link of the first free time; {} if there may be earlier ones."""
    if offer.since > offer.earliest:
        return {}
    slot = offer.slots[0]
    start = to_datetime(slot[0])
    day = local_date(start, zone_name)
    time = slot_words(slot, zone_name, with_end=with_end)
    return {
        "words": str(SCRIPT["soonest"]).format(day=date_words(day), time=time),
        "link": link_with(parameters, date=day, time=f"{start:%Y-%m-%dT%H:%M:%SZ}"),
    }


def shown_weeks(
    monday: date, chosen: date, free: Collection[date], parameters: Mapping[str, str]
) -> list[list[dict[str, Any]]]:
    """Return the five weeks from a Monday."""
    days = [monday + timedelta(days=count) for count in range(SHOWN_DAYS)]
    cells = [
        {
            "date": day,
            "link": link_with(parameters, date=day),
            "words": date_words(day),
            "weekday": weekday_words(day),
            "month": short_month_words(day) if day.day == 1 else "",
            "is_free": day in free,
            "is_chosen": day == chosen,
        }
        for day in days
    ]
    return [cells[first : first + 7] for first in range(0, SHOWN_DAYS, 7)]


def week_links(
    monday: date, offer: OfferedSlots, zone_name: str, parameters: Mapping[str, str]
) -> dict[str, str]:
    """Return the links to the five weeks before and after; "" where nothing can be free."""
    earliest = week_of(local_date(to_datetime(offer.earliest), zone_name))
    if offer.since <= offer.earliest:
        earliest = week_of(local_date(to_datetime(offer.slots[0][0]), zone_name))
    before, after = monday - timedelta(days=SHOWN_DAYS), monday + timedelta(days=SHOWN_DAYS)
    is_latest = local_midnight(after, zone_name).timestamp() >= offer.horizon
    return {
        "earlier": link_with(parameters, week=max(before, earliest)) if monday > earliest else "",
        "later": "" if is_latest else link_with(parameters, week=after),
    }
