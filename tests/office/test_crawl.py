"""Every page of the back office as owner, editor and viewer, and what a person reads there: no JSON
outside "Advanced", no UUID in a list or heading, no name of an enum, no former name of a zone.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import Resolver404, resolve, reverse

from apps_config.models import App, Membership
from availability.models import Resource
from availability.search.parameters import MODES
from bookings.graphs import GRAPHS, STATES
from bookings.models import OUTCOMES
from common.time.instants import ZONES
from common.time.zone_names import current_zone_name
from notifications.mail import SLUGS
from notifications.models import Attempt
from notifications.planning import KINDS
from office.base.labels import RULE_WORDS
from tests.bookings.group_world import make_group, seat_in
from tests.office.conftest import Enter
from tests.office.test_rights import foreign_tenant
from tests.world import Tenant

__all__ = ["foreign_tenant"]

MAX_OF_ROUTE = 2  # pages with the same view
SUPERUSER = "superuser"
MIN_ROUTES = {
    **{Membership.OWNER: 60, Membership.EDITOR: 55, Membership.VIEWER: 45},
    SUPERUSER: 90,
}
ISO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.I)
JSON_TEXT = re.compile(r"""[\[{]\s*(?:"[^"]*"\s*[:,\]]|[\]}])""")
NAME = re.compile(r"[\w./+-]+")
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}
READ_ATTRIBUTES = ("placeholder", "title", "aria-label")
FIELDS = ("text", "search", "url", "email", "number")


class Place(NamedTuple):
    """An open element, and what its text counts as."""

    tag: str
    is_silent: bool
    is_advanced: bool
    is_heading: bool  # or a list or history


class PageTexts(HTMLParser):
    """What a person reads on a page, without what is below "Advanced", and where its links lead."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.places = [Place("", False, False, False)]
        self.texts: list[str] = []
        self.headings: list[str] = []  # and the texts of lists
        self.links: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        given = dict(attrs)
        names = (given.get("class") or "").split()
        around = self.places[-1]
        place = Place(
            tag,
            around.is_silent
            or tag in ("script", "style", "template")
            or not {"material-symbols-outlined", "empty-form"}.isdisjoint(names),
            around.is_advanced,
            around.is_heading
            or tag in ("h1", "h2", "h3", "h4", "title")
            or given.get("id") in ("result_list", "steps"),  # the steps of a history
        )
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        is_field = tag == "input" and given.get("type", "text") in FIELDS
        for name in (*READ_ATTRIBUTES, *(["value"] if is_field else [])):
            self.note(given.get(name) or "", place)
        if tag == "option" and given.get("value") in ZONES:
            self.note(given["value"], place)
        if tag not in VOID:
            self.places.append(place)

    def handle_endtag(self, tag: str) -> None:
        if tag in [place.tag for place in self.places]:
            while self.places.pop().tag != tag:
                pass

    def handle_data(self, data: str) -> None:
        self.note(data, self.places[-1])
        is_summary = "summary" in {place.tag for place in self.places}
        if is_summary and data.strip().startswith("Advanced"):
            self.places = [
                place._replace(is_advanced=place.is_advanced or place.tag == "details")
                for place in self.places
            ]

    def note(self, text: str, place: Place) -> None:
        is_advanced = any(around.is_advanced for around in self.places)
        if not text.strip() or place.is_silent or is_advanced:
            return
        self.texts.append(text.strip())
        if place.is_heading:
            self.headings.append(text.strip())


def enum_names() -> set[str]:
    """Values of enums that are not the words for people."""
    found = {*GRAPHS, *STATES, *OUTCOMES, *KINDS, *RULE_WORDS, *MODES, *SLUGS}
    for model in admin.site._registry:
        for field in model._meta.concrete_fields:
            found |= {str(value) for value, _ in field.flatchoices or ()}
    return {name for name in found if re.search(r"[_.]", name)} | {
        *("initialized", "tentative", "secs", "mins")
    }


def faults_of(texts: PageTexts, names: set[str]) -> Iterator[tuple[str, str]]:
    for text in texts.texts:
        if JSON_TEXT.search(text):
            yield "JSON", text[:100]
        if ISO_TIME.search(text):
            yield "ISO time", text[:100]
        if "security key" in text.lower():
            yield "another word for passkey", text[:100]
        for word in NAME.findall(text):
            if word.rstrip(".") in names:
                yield "enum", text[:100]
            if "/" in word and word in ZONES and current_zone_name(word) != word:
                yield "zone", text[:100]
    for text in texts.headings:
        if UUID.search(text):
            yield "UUID", text[:100]


def crawl(
    client: Client, read: Callable[[str], PageTexts] = PageTexts, *, most: int = MAX_OF_ROUTE
) -> Iterator[tuple[str, str, PageTexts]]:
    """Yield (route, path, texts) of the pages that links lead to, from the first page and all
    lists: of each route as many as `most`."""
    lists = [
        reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        for model in admin.site._registry
    ]
    waiting = [reverse("admin:index"), *lists]
    seen, counts = set(waiting), Counter[str]()
    while waiting:
        path = waiting.pop(0)
        route = route_of(path)
        counts[route] += 1
        if not route or counts[route] > most:
            continue
        answer = client.get(path)
        links = [answer.headers.get("Location", "")]
        assert answer.status_code in (200, 301, 302) or path in lists, (path, answer.status_code)
        is_page = answer.headers.get("Content-Type", "").startswith("text/html")
        if answer.status_code == 200 and is_page:
            texts = read(answer.content.decode())
            links = texts.links
            yield route, path, texts
        for link in links:
            to = urljoin(path, link).split("#")[0]
            if to.startswith("/admin/") and to not in seen:
                seen.add(to)
                waiting.append(to)


def route_of(path: str) -> str:
    """The name of the page's view; of a list also its query. "" for what is no page to open."""
    try:
        name = resolve(urlsplit(path).path).view_name
    except Resolver404:
        return ""
    if name in ("admin:logout", "account_logout") or name.endswith("_export_rows"):
        return ""
    return name


@pytest.fixture
def clinic(foreign_tenant: Tenant) -> Tenant:
    """An app with a row of every kind, whose zone has a former name, and with custom data."""
    ada = foreign_tenant.app.resources.get()
    Resource.objects.filter(pk=ada.pk).update(meta={"room": {"floor": 2}}, timezone="Asia/Calcutta")
    settings = foreign_tenant.app.settings | {"default_timezone": "Europe/Kiev", "own": {"a": [1]}}
    App.objects.filter(pk=foreign_tenant.app.pk).update(settings=settings)
    day = datetime.now(UTC).date() + timedelta(days=2)
    for graph in ("instant", "confirm_decline"):
        times = {"start": f"{day} 10:00:00", "end": f"{day} 10:20:00"}
        given = {"graph": graph, "meta": {"answers": {"a": [1]}}, "allow_double_bookings": True}
        person = {"name": "Ann", "email": "ann@example.com", "timezone": "Asia/Calcutta"}
        booked = foreign_tenant.book(resource_id=str(ada.pk), customer=person, **given, **times)
        assert booked.status == 201, booked.json
    project = foreign_tenant.app.projects.get()
    given = {"meta": {"colour": "red"}, "ui": {"own": {"b": 1}}, "availability": {"mode": "mutual"}}
    foreign_tenant.put(f"/projects/{project.pk}", given)
    booking = {"graph": "group_customer"}
    yoga = foreign_tenant.make_project(str(ada.pk), name="Yoga", booking=booking)
    evening = {"start": f"{day} 18:00:00", "end": f"{day} 19:00:00", "project_id": yoga["id"]}
    settings = {"enforce_availability": False}
    group = make_group(foreign_tenant, {"id": str(ada.pk)}, settings=settings, **evening)
    seat_in(foreign_tenant, group, project_id=yoga["id"])
    hook = {"url": "https://example.com/states", "states": ["cancelled_by_customer"]}
    foreign_tenant.post("/webhooks", hook)
    schedule = foreign_tenant.post("/schedules", {"name": "Shop hours"}).data["id"]
    foreign_tenant.put(f"/resources/{ada.pk}", {"schedule_id": schedule})
    add_attempts(foreign_tenant)
    return foreign_tenant


def add_attempts(tenant: Tenant) -> None:
    """An attempt of each delivery, with a response that is JSON."""
    Attempt.objects.bulk_create(
        Attempt(
            app=tenant.app,
            delivery=delivery,
            at=delivery.created_at,
            seconds=0.1,
            response_code=400,
            excerpt='{"ok": false}',
        )
        for delivery in tenant.app.deliveries.all()
    )


@pytest.mark.parametrize(
    ("role", "most"),
    [
        (SUPERUSER, 1),  # who reads most pages
        pytest.param(Membership.VIEWER, 1, marks=pytest.mark.deep),
        *(
            pytest.param(role, MAX_OF_ROUTE, marks=pytest.mark.deep)
            for role in (SUPERUSER, Membership.OWNER, Membership.EDITOR, Membership.VIEWER)
        ),
    ],
)
def test_pages_show_no_technical_texts(clinic: Tenant, enter: Enter, role: str, most: int) -> None:
    names = enum_names()
    routes, found = set(), defaultdict(set)
    client = enter() if role == SUPERUSER else enter(clinic, role)

    for route, _, texts in crawl(client, most=most):
        routes.add(route)
        for kind, text in faults_of(texts, names):
            found[kind, route].add(text)

    assert dict(found) == {}
    assert len(routes) >= MIN_ROUTES[role]


@pytest.mark.parametrize(
    ("page", "kinds"),
    [
        ("<p>{&quot;a&quot;: 1}</p>", ["JSON"]),
        ("<textarea>[]</textarea>", ["JSON"]),
        ("<details><summary>Advanced</summary><pre>{}</pre></details><p>x</p>", []),
        ("<details><summary>Advanced</summary></details><p>{}</p>", ["JSON"]),
        ("<h2>01a20759-2789-8000-8028-76ec6aa11e97</h2>", ["UUID"]),
        ("<td>01a20759-2789-8000-8028-76ec6aa11e97</td>", []),
        (
            "<table id=result_list><td>01a20759-2789-8000-8028-76ec6aa11e97</td></table>",
            ["UUID"],
        ),
        ("<ol id=steps><dd>01a20759-2789-8000-8028-76ec6aa11e97</dd></ol>", ["UUID"]),
        ("<dd>2026-11-23T08:00:00+00:00</dd>", ["ISO time"]),
        ("<dd>roundrobin_random</dd>", ["enum"]),
        ("<h2>confirmed_customer</h2>", ["enum"]),
        ("<td>confirm_decline</td>", ["enum"]),
        ("<input value='booking.paid'>", ["enum"]),
        ("<input type=hidden value='booking.paid'>", []),
        ("<span>Asia/Calcutta</span>", ["zone"]),
        ("<select><option value='Europe/Kiev'>x</option></select>", ["zone"]),
        ("<span>Europe/Kyiv, confirmed</span>", []),
    ],
)
def test_control_technical_texts_are_found(page: str, kinds: list[str]) -> None:
    assert [kind for kind, _ in faults_of(PageTexts(page), enum_names())] == kinds
