"""GET /bookings: filters, search, order, pages, exact totals (section 2)."""

import itertools
import re
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from apps_config.models import ListingTally
from availability.models import Event
from bookings.models import Booking
from tests.bookings.booking_drafts import MARTY, MONDAY, NINE, act, entry, span
from tests.queries import Queries
from tests.world import BERLIN, NOW, Tenant, at

MakeTenant = Callable[..., Tenant]
pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]

BASE = "http://127.0.0.1:8000/v2/bookings"
ONE_GRAPH = (
    "Must be one of instant, confirm_decline, instant_payment, group_owner, group_customer,"
    " group_customer_payment."
)
ONE_STATE = (
    "Must be one of initialized, confirmed, cancelled, cancelled_by_customer, completed, tentative,"
    " declined, paid, unpaid, cancelled_by_owner."
)


def listing(tenant: Tenant, **query: Any) -> Any:
    """The answer of GET /bookings; values are escaped as a client does."""
    response = tenant.client.get("/v2/bookings", query, headers=tenant.headers)
    return response.json()


def found(tenant: Tenant, **query: Any) -> list[str]:
    """The titles of the bookings that are listed, in their order; the total agrees."""
    answer = listing(tenant, include="attributes", **query)
    assert "data" in answer, answer
    assert answer["total"] == len(answer["data"])
    return [booking["attributes"]["event_info"]["what"] for booking in answer["data"]]


def errors(tenant: Tenant, **query: Any) -> dict[str, list[str]]:
    answer = listing(tenant, **query)
    assert answer["code"] == "invalid", answer
    return answer["errors"]


class Book:
    """Bookings of one tenant, a second apart, each an hour after the other."""

    def __init__(self, tenant: Tenant, clock: Any) -> None:
        self.tenant = tenant
        self.clock = clock
        self.resource = tenant.make_resource("Ada")
        self.hour = 0

    def __call__(self, what: str, **given: Any) -> Any:
        self.clock.shift(1)
        self.hour += 1
        times = span(f"{self.hour:02}:00", f"{self.hour + 1:02}:00")
        target = (
            {}
            if {"project_id", "resource_id"} & given.keys()
            else {"resource_id": self.resource["id"]}
        )
        answer = self.tenant.book(**{"what": what, **times, **target, **given})
        assert answer.status == 201, answer.json
        return answer.data


@pytest.fixture
def book(tenant: Tenant, clock: Any) -> Book:
    return Book(tenant, clock)


# --- Pages ----------------------------------------------------------------------------------------
def test_page_two_of_five(tenant: Tenant, book: Book) -> None:
    two = [book(what) for what in "ABCDE"][1::-1]

    answer = tenant.get("/bookings?limit=3&page=2")

    assert (answer.status, answer.json) == (
        200,
        {
            "total": 5,
            "per_page": "3",
            "current_page": 2,
            "last_page": 2,
            "first_page_url": f"{BASE}?limit=3&page=1",
            "last_page_url": f"{BASE}?limit=3&page=2",
            "next_page_url": None,
            "prev_page_url": f"{BASE}?limit=3&page=1",
            "from": 4,
            "to": 5,
            "data": [
                entry(one, "confirmed", created_at=one["created_at"], updated_at=one["updated_at"])
                for one in two
            ],
        },
    )


def test_an_entry_has_seven_fields(tenant: Tenant, book: Book) -> None:
    made = book("A")

    stamp = {"created_at": "2026-11-20T09:30:01+0000", "updated_at": "2026-11-20T09:30:01+0000"}
    assert tenant.get("/bookings").data == [entry(made, "confirmed", **stamp)]


def test_list_without_includes_selects_only_the_columns_of_an_entry(
    tenant: Tenant, book: Book
) -> None:
    for what in "ABC":
        book(what)

    with Queries(connection) as sent:
        entries = tenant.get("/bookings").data

    (selected,) = [
        each["sql"].partition(" FROM ")[0]
        for each in sent.captured_queries
        if 'FROM "bookings_booking"' in each["sql"]
    ]
    columns = re.findall(r'"bookings_booking"\."(\w+)"', selected)
    assert sorted(columns) == sorted(entries[0])


def test_a_page_past_the_end(tenant: Tenant, book: Book) -> None:
    for what in "ABC":
        book(what)

    answer = tenant.get("/bookings?state=confirmed&page=1000000&limit=2")

    base = f"{BASE}?state=confirmed&limit=2&page="
    assert (answer.status, answer.json) == (
        200,
        {
            "total": 3,
            "per_page": "2",
            "current_page": 1_000_000,
            "last_page": 2,
            "first_page_url": f"{base}1",
            "last_page_url": f"{base}2",
            "next_page_url": None,
            "prev_page_url": f"{base}2",
            "from": None,
            "to": None,
            "data": [],
        },
    )


def test_an_empty_listing(tenant: Tenant) -> None:
    answer = tenant.get("/bookings")

    assert (answer.json["total"], answer.json["last_page"], answer.data) == (0, 1, [])
    assert (answer.json["per_page"], answer.json["from"], answer.json["to"]) == (50, None, None)


def test_next_page_url_visits_all_bookings(tenant: Tenant, book: Book) -> None:
    made = [book(str(number))["id"] for number in range(7)][::-1]
    path, pages = "/bookings?limit=3&orderBy=created_at&search=customer.name:M*", []

    while path:
        answer = tenant.get(path).json
        pages.append([booking["id"] for booking in answer["data"]])
        path = (answer["next_page_url"] or "").removeprefix("http://127.0.0.1:8000/v2")

    assert pages == [made[:3], made[3:6], made[6:]]


@pytest.mark.parametrize(
    ("query", "faults"),
    [
        ({"limit": "0"}, {"limit": ["Must be one integer from 1 to 1000."]}),
        ({"limit": "1001"}, {"limit": ["Must be one integer from 1 to 1000."]}),
        ({"page": "0"}, {"page": ["Must be one integer from 1 to 1000000."]}),
        ({"page": "x"}, {"page": ["Must be one integer from 1 to 1000000."]}),
        ({"customer": "x"}, {"customer": ["Is not a known query parameter."]}),
        ({"order_by": "state"}, {"order_by": ["Is not a known query parameter."]}),
    ],
)
def test_wrong_query_parameters_are_refused(
    tenant: Tenant, query: dict[str, str], faults: dict[str, list[str]]
) -> None:
    assert errors(tenant, **query) == faults


# --- Filters --------------------------------------------------------------------------------------
@pytest.fixture
def mixed(tenant: Tenant, book: Book) -> list[Any]:
    """One in every state; titles are the states, drafts and pending ones first."""
    made = [
        book("initialized", action="create"),
        book("tentative", graph="confirm_decline"),
        book("confirmed"),
    ]
    for action, state in (
        ("cancel", "cancelled"),
        ("cancel_by_customer", "cancelled_by_customer"),
        ("complete", "completed"),
    ):
        made.append(book(state))
        act(tenant, made[-1], action)
    made.append(book("declined", graph="confirm_decline"))
    act(tenant, made[-1], "decline")
    return made


LIVE = ["confirmed", "tentative", "initialized"]
OVER = ["declined", "completed", "cancelled_by_customer", "cancelled"]


STATE_QUERIES: list[tuple[dict[str, str], list[str]]] = [
    ({}, OVER + LIVE),
    *(({"state": state}, [state]) for state in OVER + LIVE),
    *(({"search": f"state:{state}"}, [state]) for state in OVER + LIVE),
    ({"state": "paid"}, []),
    ({"search": "state:unpaid"}, []),
    ({"graph": "confirm_decline"}, ["declined", "tentative"]),
    ({"search": "graph:confirm_decline"}, ["declined", "tentative"]),
    ({"graph": "group_owner"}, []),
    *(({"completed": value}, OVER) for value in ("true", "1")),
    *(({"completed": value}, LIVE) for value in ("false", "0")),
    ({"search": "completed:true"}, OVER),
    ({"search": "completed:0"}, LIVE),
    ({"completed": "true", "graph": "confirm_decline"}, ["declined"]),
    ({"state": "confirmed", "completed": "true"}, []),
    ({"search": "state:confirmed;graph:instant;completed:false"}, ["confirmed"]),
    ({"search": "state:confirmed", "state": "cancelled"}, []),
]


def test_filters_by_state(tenant: Tenant, mixed: list[Any]) -> None:
    answers = [(query, found(tenant, **query)) for query, _ in STATE_QUERIES]

    assert answers == STATE_QUERIES


@pytest.mark.parametrize(
    ("query", "faults"),
    [
        (
            {"state": "open"},
            {"state": [ONE_STATE]},
        ),
        (
            {"graph": "x"},
            {"graph": [ONE_GRAPH]},
        ),
        ({"completed": "yes"}, {"completed": ["Must be true or false."]}),
        ({"state": ""}, {"state": ["May not be empty."]}),
        (
            {"start": "soon"},
            {
                "start": [
                    "Must be a date, a date and time such as 2026-11-20T10:30:00+01:00, `now`, or"
                    " relative to now such as -2 days."
                ]
            },
        ),
        ({"end": ""}, {"end": ["May not be empty."]}),
        ({"start": "2026-02-30"}, {"start": ["There is no such date or time."]}),
        (
            {"state": "confirmed,open"},
            {"state": [ONE_STATE]},
        ),
        ({"state": "confirmed,"}, {"state": ["May not contain an empty value."]}),
        ({"resource_id": "5"}, {"resource_id": ["Must be a UUID."]}),
        ({"series_id": ""}, {"series_id": ["May not be empty."]}),
        ({"customer_email": ""}, {"customer_email": ["May not be empty."]}),
        (
            {"updated_since": "2026-02-30 00:00:00"},
            {"updated_since": ["There is no such date or time."]},
        ),
        ({"search": "completed:maybe"}, {"search": ["completed must be true or false."]}),
        ({"search": "resource.id:5"}, {"search": ["resource.id must be a UUID."]}),
        ({"search": "project.id:*"}, {"search": ["project.id must be a UUID."]}),
        ({"search": "calendar.id:"}, {"search": ["calendar.id must be a UUID."]}),
        ({"search": "what:a"}, {"search": ["what can't be searched."]}),
        ({"search": "customer.name"}, {"search": ["Must be written as field:value;field:value."]}),
        ({"search": "meta.:a"}, {"search": ["meta. can't be searched."]}),
        ({"search": "meta:a"}, {"search": ["meta can't be searched."]}),
    ],
)
def test_wrong_filters_are_refused(
    tenant: Tenant, query: dict[str, str], faults: dict[str, list[str]]
) -> None:
    assert errors(tenant, **query) == faults


@pytest.mark.parametrize("field", ["state", "graph"])
@pytest.mark.parametrize("value", ["open", "confirm*", "*", ""])
def test_search_for_unknown_state_or_graph_is_refused(
    tenant: Tenant, field: str, value: str
) -> None:
    (fault,) = errors(tenant, search=f"{field}:{value}")["search"]

    assert fault.startswith(f"{field} must be one of i")


TIME_QUERIES = [
    ({"start": f"{MONDAY}T02:00:00Z"}, ["C", "B"]),
    ({"start": f"{MONDAY}T01:59:59Z"}, ["C", "B", "A"]),
    ({"end": f"{MONDAY}T02:00:00Z"}, ["A"]),
    ({"end": f"{MONDAY}T02:00:01Z"}, ["B", "A"]),
    ({"start": f"{MONDAY}T02:00:00Z", "end": f"{MONDAY}T03:00:00Z"}, ["B"]),
    ({"start": f"{MONDAY}T02:30:00Z", "end": f"{MONDAY}T02:30:01Z"}, ["B"]),
    ({"start": f"{MONDAY}T03:30:00+01:00", "end": f"{MONDAY}T03:45:00+0100"}, ["B"]),
    ({"start": f"{MONDAY} 02:30:00", "end": f"{MONDAY} 02:31:00"}, ["B"]),
    ({"start": "2026-11-24T00:00:00Z"}, []),
    ({"end": "2026-11-23T00:00:00Z"}, []),
    ({"start": MONDAY, "end": "2026-11-24"}, ["C", "B", "A"]),
    ({"end": MONDAY}, []),
    ({"start": "now", "end": "2 days"}, []),
    ({"start": "now", "end": "4 days"}, ["C", "B", "A"]),
    ({"start": "tomorrow"}, ["C", "B", "A"]),
    ({"updated_since": "now"}, ["C"]),
    ({"updated_since": "-1 sec"}, ["C", "B"]),
    ({"updated_since": "2026-11-20"}, ["C", "B", "A"]),
    ({"updated_since": "2026-11-20T09:30:02Z"}, ["C", "B"]),
    ({"updated_since": "2026-11-20 09:30:03"}, ["C"]),
    ({"updated_since": "2026-11-20T09:30:04Z"}, []),
    ({"updated_since": "2026-11-20T09:30:02Z", "end": f"{MONDAY}T03:00:00Z"}, ["B"]),
]


def test_filters_by_time(tenant: Tenant, book: Book) -> None:
    """Bookings whose event overlaps the range; each bound is open where it is absent."""
    for what in "ABC":
        book(what)

    answers = [(query, found(tenant, **query)) for query, _ in TIME_QUERIES]

    assert answers == TIME_QUERIES


@pytest.mark.parametrize(
    ("header", "default", "titles"),
    [({}, None, ["A"]), ({}, BERLIN, []), ({"Service-Timezone": BERLIN}, None, [])],
)
def test_wall_times_of_a_listing(
    tenant: Tenant, book: Book, header: dict[str, str], default: str | None, titles: list[str]
) -> None:
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"default_timezone": default}})
    book("A")

    answer = tenant.get(
        f"/bookings?include=attributes&start={MONDAY} 01:00:00&end={MONDAY} 01:30:00", **header
    )

    assert [record["attributes"]["event_info"]["what"] for record in answer.data] == titles


def test_updated_since_sees_every_change(tenant: Tenant, book: Book, clock: Any) -> None:
    made = [book(what) for what in "ABCD"]
    clock.move_to(at("2026-11-20 10:00"))
    act(tenant, made[0], "cancel")
    tenant.put(f"/bookings/{made[1]['id']}", {"meta": {"a": 1}})
    tenant.post(f"/bookings/{made[2]['id']}/reschedule", span("20:00", "21:00"))

    assert found(tenant, updated_since="2026-11-20T10:00:00Z") == ["C", "B", "A"]


# --- Search ---------------------------------------------------------------------------------------
def test_search_by_ids(tenant: Tenant, book: Book, clock: Any) -> None:
    bob = tenant.make_resource("Bob")
    clock.shift(1)
    second = tenant.post("/calendars", {"name": "B", "resource_id": bob["id"]}).data["id"]
    project = tenant.make_project(bob["id"])["id"]
    book("A")
    book("B", project_id=project)
    book("C", resource_id=bob["id"], calendar_id=second)

    answers = {
        search: found(tenant, search=search)
        for search in (
            f"resource.id:{book.resource['id']}",
            f"resource.id:{bob['id'].upper()}",
            f"project.id:{project}",
            f"calendar.id:{second}",
            f"calendar.id:{bob['calendars'][0]['id']};resource.id:{bob['id']}",
            f"calendar.id:{second};project.id:{project}",
            f"resource.id:{uuid.uuid4()}",
        )
    }

    assert list(answers.values()) == [["A"], ["C", "B"], ["B"], ["C"], ["B"], [], []]


CUSTOMERS = {
    "A": {"name": "Ann Lee", "email": "Ann@example.com", "phone": "+1 (555) 0100"},
    "B": {"name": "Hanna Berg", "email": "h_b%x@example.com", "phone": ""},
    "C": {"name": "a;b:c\\d*", "email": "semi@example.com", "phone": "100%"},
    "D": {"name": "Zoë (Ümit) 李", "email": "zoe@example.com"},
}


CUSTOMER_SEARCHES = [
    ("customer.name:Ann Lee", ["A"]),
    ("customer.name:ANN LEE", ["A"]),
    ("customer.name:Ann", []),
    ("customer.name:ann*", ["A"]),
    ("customer.name:*LEE", ["A"]),
    ("customer.name:*ann*", ["B", "A"]),
    ("customer.name:*", ["D", "C", "B", "A"]),
    ("customer.name:A_n Lee", []),
    ("customer.name:%", []),
    ("customer.name:*%*", []),
    (r"customer.name:a\;b:c\\d\*", ["C"]),
    (r"customer.name:*\;b*", ["C"]),
    (r"customer.name:*\*", ["C"]),
    (r"customer.name:*\\d*", ["C"]),
    ("customer.name:a;state:confirmed", []),
    ("customer.email:ann@EXAMPLE.com", ["A"]),
    ("customer.email:ann", []),
    ("customer.email:h_b%x@example.com", ["B"]),
    ("customer.email:h_bAx@example.com", []),
    ("customer.email:hxb%x@example.com", []),
    ("customer.phone:+1 (555) 0100", ["A"]),
    ("customer.phone:+1 (555)", []),
    ("customer.phone:100%", ["C"]),
    ("customer.name:*ann*;customer.email:*@example.com;customer.phone:", ["B"]),
    ("customer.name:Zoë (Ümit) 李", ["D"]),
    ("customer.name:ZOË (ÜMIT) 李", ["D"]),
    ("customer.name:zoë*", ["D"]),
    ("customer.name:*李", ["D"]),
    ("customer.name:*(ÜM*", ["D"]),
    ("customer.name:zoë", []),
    ("customer.name:*ü", []),
    ("customer.name:zoë.*李", []),
    (";;customer.name:ann*;;", ["A"]),
    ("", ["D", "C", "B", "A"]),
]


def test_search_by_customers(tenant: Tenant, make_tenant: MakeTenant, book: Book) -> None:
    for what, customer in CUSTOMERS.items():
        book(what, customer=customer)
    stranger = make_tenant()
    stranger.book(resource_id=stranger.make_resource()["id"], customer=CUSTOMERS["A"], **NINE)

    answers = [(search, found(tenant, search=search)) for search, _ in CUSTOMER_SEARCHES]

    assert answers == CUSTOMER_SEARCHES


def test_search_matches_any_customer_once(tenant: Tenant, book: Book) -> None:
    guests = [{"name": f"Guest {n}", "email": f"g{n}@example.com"} for n in range(3)]
    body = {"resource_id": book.resource["id"], "what": "A", "customers": guests, **NINE}
    tenant.post("/bookings", body)

    assert found(tenant, search="customer.name:guest*") == ["A"]
    assert found(tenant, search="customer.name:Guest 0;customer.name:Guest 2") == ["A"]


META = {
    "plain": "text",
    "number": 5,
    "float": 1.5,
    "yes": True,
    "no": False,
    "none": [None],
    "with.dot": "d",
    "with'quote": "q",
    'with"double': "dq",
    "with\\slash": "s",
    "7": "digit",
    "a b": "blank",
    "ü": "ö",
    "": "empty key",
    "deep": {"plain": "inside"},
    "semi": "a;b",
    "star": "a*",
    "$": "dollar",
    "[0]": "bracket",
    "%s": "percent",
}


META_SEARCHES = [
    ("meta.plain:text", True),
    ("meta.plain:TEXT", False),
    ("meta.plain:tex", False),
    ("meta.plain:", False),
    ("meta.number:5", True),
    ("meta.number:5.0", False),
    ("meta.float:1.5", True),
    ("meta.yes:true", True),
    ("meta.yes:1", False),
    ("meta.no:false", True),
    ("meta.with.dot:d", True),
    ("meta.with'quote:q", True),
    ('meta.with"double:dq', True),
    ("meta.with\\slash:s", True),
    ("meta.7:digit", True),
    ("meta.0:digit", False),
    ("meta.a b:blank", True),
    ("meta.ü:ö", True),
    ("meta.deep.plain:inside", False),
    ("meta.unknown:text", False),
    (r"meta.semi:a\;b", True),
    (r"meta.star:a\*", True),
    ("meta.$:dollar", True),
    ("meta.[0]:bracket", True),
    ("meta.%s:percent", True),
    ("meta.plain:text;meta.number:5", True),
    ("meta.plain:text;meta.number:6", False),
    ("meta.x') OR 1=1 --:1", False),
]


def test_search_by_meta(tenant: Tenant, book: Book) -> None:
    book("A", meta=META)
    book("B", meta={"other": 1})

    answers = [(search, found(tenant, search=search) == ["A"]) for search, _ in META_SEARCHES]

    assert answers == META_SEARCHES
    assert found(tenant, search="meta.unknown:text") == []


@pytest.mark.parametrize("include", ["resource", "project", "resource.calendars,project.resources"])
def test_search_by_meta_ignores_meta_of_other_models(
    tenant: Tenant, book: Book, include: str
) -> None:
    """Resources and projects have a `meta` of their own."""
    resource = tenant.make_resource("Bob", meta={"key": "resource"})["id"]
    project = tenant.make_project(resource, meta={"key": "project"})["id"]
    book("A", project_id=project, meta={"key": "booking"})

    totals = [
        listing(tenant, include=include, search=f"meta.key:{value}")["total"]
        for value in ("booking", "resource", "project")
    ]

    assert totals == [1, 0, 0]


@pytest.mark.parametrize("value", ["te*", "*xt", "*e*", "*"])
def test_wildcards_in_meta_are_refused(tenant: Tenant, book: Book, value: str) -> None:
    """A star that would be ignored is refused."""
    book("A", meta=META)

    assert errors(tenant, search=f"meta.plain:{value}") == {
        "search": [r"meta.plain does not support wildcards; write \* for a star."]
    }


# --- Order ----------------------------------------------------------------------------------------
ORDERS = (
    *("created_at", "updated_at", "completed", "graph", "state"),
    *("start", "end", "event.start", "event.end"),
)


def key_of(booking: Booking, order: str) -> Any:
    value: Any = booking.event if order in ("start", "end") else booking
    for name in order.split("."):
        value = getattr(value, name)
    return value


def in_order(rows: list[Booking], query: dict[str, str]) -> list[str]:
    """The ids as `orderBy` and `sortedBy` ask for them; the id breaks ties the same way."""
    descending = query.get("sortedBy") != "asc"
    order = query.get("orderBy", "created_at")
    ordered = sorted(rows, key=lambda row: (key_of(row, order), row.id), reverse=descending)
    return [str(row.id) for row in ordered]


def test_every_order(tenant: Tenant, mixed: list[Any]) -> None:
    tenant.post(f"/bookings/{mixed[2]['id']}/reschedule", span("22:00", "23:00"))
    rows = list(Booking.objects.select_related("event"))

    for order, direction in itertools.product((None, *ORDERS), (None, "asc", "desc")):
        given = {"orderBy": order, "sortedBy": direction}
        query = {name: value for name, value in given.items() if value}
        pages = [listing(tenant, limit=3, page=page, **query)["data"] for page in (1, 2, 3)]
        assert [one["id"] for page in pages for one in page] == in_order(rows, query), query


@pytest.mark.parametrize(
    ("query", "faults"),
    [
        (
            {"orderBy": "what"},
            {"orderBy": [f"Must be one of {', '.join(ORDERS)}."]},
        ),
        ({"orderBy": ""}, {"orderBy": [f"Must be one of {', '.join(ORDERS)}."]}),
        ({"orderBy": "-state"}, {"orderBy": [f"Must be one of {', '.join(ORDERS)}."]}),
        ({"sortedBy": "ASC"}, {"sortedBy": ["Must be one of asc, desc."]}),
    ],
)
def test_wrong_orders_are_refused(
    tenant: Tenant, query: dict[str, str], faults: dict[str, list[str]]
) -> None:
    assert errors(tenant, **query) == faults


# --- Totals ---------------------------------------------------------------------------------------
def totals(tenant: Tenant) -> dict[str, int]:
    states = ("initialized", "tentative", "confirmed", "cancelled", "completed", "declined")
    counted = {state: listing(tenant, state=state, limit=1)["total"] for state in states}
    return {
        "all": listing(tenant, limit=1)["total"],
        **{state: count for state, count in counted.items() if count},
    }


def test_totals_are_exact_after_every_step(
    tenant: Tenant, make_tenant: MakeTenant, book: Book
) -> None:
    stranger = make_tenant()
    stranger.book(resource_id=stranger.make_resource()["id"], **NINE)
    seen = [totals(tenant)]

    def see(*_: Any) -> None:
        seen.append(totals(tenant))

    first = book("A")
    see()
    second = book("B", graph="confirm_decline")
    see()
    see(act(tenant, second, "confirm"))
    see(act(tenant, first, "cancel"))
    see(tenant.book(resource_id=book.resource["id"], **span("02:00", "03:00")))  # refused
    see(tenant.post(f"/bookings/{second['id']}/reschedule", span("20:00", "21:00")))
    see(act(tenant, second, "complete"))
    see(tenant.delete(f"/bookings/{first['id']}"))
    see(tenant.delete(f"/bookings/{second['id']}"))

    assert seen == [
        {"all": 0},
        {"all": 1, "confirmed": 1},
        {"all": 2, "confirmed": 1, "tentative": 1},
        {"all": 2, "confirmed": 2},
        {"all": 2, "confirmed": 1, "cancelled": 1},
        {"all": 2, "confirmed": 1, "cancelled": 1},
        {"all": 2, "confirmed": 1, "cancelled": 1},
        {"all": 2, "completed": 1, "cancelled": 1},
        {"all": 1, "completed": 1},
        {"all": 0},
    ]
    assert totals(stranger) == {"all": 1, "confirmed": 1}


def test_tally_counts_every_kind_of_write(tenant: Tenant, book: Book) -> None:
    """Bulk inserts, updates of many rows, deletions: the triggers see them all."""
    rows = make_rows(tenant, book.resource, 10)
    Booking.objects.filter(id__in=[row.id for row in rows[:4]]).update(state="cancelled")
    Booking.objects.filter(id=rows[5].id).update(deleted_at=NOW)
    Booking.objects.filter(id__in=[rows[0].id, rows[9].id]).delete()

    assert totals(tenant) == {"all": 7, "cancelled": 4, "confirmed": 3}
    tally = ListingTally.objects.filter(app=tenant.app, listing="bookings").values_list(
        "part", "count"
    )
    counted: dict[str, int] = {}
    for state, count in tally:
        counted[state] = counted.get(state, 0) + count
    assert {state: count for state, count in counted.items() if count} == {
        "cancelled": 4,
        "confirmed": 3,
    }


# --- Deep pages -----------------------------------------------------------------------------------
def make_rows(tenant: Tenant, resource: Any, count: int) -> list[Booking]:
    """Bookings by the hundred, past the API; several share an instant."""
    calendar = resource["calendars"][0]["id"]
    events = [
        Event(
            app=tenant.app,
            calendar_id=calendar,
            resource_id=resource["id"],
            start=NOW + timedelta(hours=number % 97),
            end=NOW + timedelta(hours=number % 97 + 1),
            what=str(number),
            busy=False,
        )
        for number in range(count)
    ]
    Event.objects.bulk_create(events)
    rows = [
        Booking(
            app=tenant.app,
            resource_id=resource["id"],
            event=event,
            graph="instant",
            state="confirmed" if number % 3 else "cancelled",
            completed=not number % 3,
            created_at=NOW + timedelta(seconds=number // 2),
            updated_at=NOW + timedelta(seconds=number % 50),
            meta={"parity": number % 2},
        )
        for number, event in enumerate(events)
    ]
    Booking.objects.bulk_create(rows)
    return rows


DEEP_QUERIES: list[dict[str, str]] = [
    {},
    {"sortedBy": "asc"},
    {"orderBy": "updated_at"},
    {"orderBy": "completed", "sortedBy": "asc"},
    {"orderBy": "event.start"},
    {"orderBy": "event.end", "sortedBy": "asc"},
    {"state": "confirmed"},
    {"state": "confirmed", "orderBy": "updated_at", "sortedBy": "asc"},
    {"search": "meta.parity:1"},
    {"completed": "true", "orderBy": "event.start"},
]


def matches_query(row: Booking, query: dict[str, str]) -> bool:
    return (
        query.get("state") in (None, row.state)
        and ("search" not in query or row.meta["parity"] == 1)
        and ("completed" not in query or row.completed)
    )


def test_deep_pages_are_plain_slices(tenant: Tenant, book: Book) -> None:
    """Far pages are found another way than near ones: the rows are the same."""
    rows = make_rows(tenant, book.resource, 1400)

    for query in DEEP_QUERIES:
        expected = in_order([row for row in rows if matches_query(row, query)], query)
        last = -(-len(expected) // 90)
        for page in (1, 6, 7, last // 2 + 1, last - 1, last, last + 1):
            answer = listing(tenant, limit=90, page=page, **query)
            first, part = (page - 1) * 90, expected[(page - 1) * 90 : page * 90]
            assert [one["id"] for one in answer["data"]] == part, (query, page)
            assert {name: answer[name] for name in ("total", "last_page", "from", "to")} == {
                "total": len(expected),
                "last_page": last,
                "from": first + 1 if part else None,
                "to": first + len(part) if part else None,
            }


def test_a_page_of_a_thousand(tenant: Tenant, book: Book) -> None:
    make_rows(tenant, book.resource, 1100)

    sizes = [len(listing(tenant, limit=1000, page=page)["data"]) for page in (1, 2)]

    assert sizes == [1000, 100]


# --- Other apps -----------------------------------------------------------------------------------
def test_other_apps_are_not_listed(tenant: Tenant, make_tenant: MakeTenant, book: Book) -> None:
    stranger = make_tenant()
    resource = stranger.make_resource()["id"]
    body = {"what": "Foreign", "customer": MARTY, "resource_id": resource, **NINE}
    stranger.post("/bookings", body)
    book("Mine")

    answers = [
        found(tenant),
        found(stranger),
        found(tenant, search=f"resource.id:{resource}"),
        found(tenant, state="confirmed"),
    ]

    assert answers == [["Mine"], ["Foreign"], [], ["Mine"]]


# --- Filters beside `search` ----------------------------------------------------------------------
def test_filters_by_resource_project_group_series_and_bulk(tenant: Tenant, book: Book) -> None:
    bob = tenant.make_resource("Bob")
    project = tenant.make_project(bob["id"])["id"]
    book("A")
    book("B", project_id=project)
    group = book("C", resource_id=bob["id"], graph="group_owner", settings={"max_seats": 2})
    book.tenant.post(
        "/bookings",
        {
            "graph": "group_customer",
            "related": {"owner_booking_id": group["id"]},
            "customer": {"name": "Ann", "email": "Ann@Example.com"},
        },
    )
    series = book("D", recurrence="FREQ=DAILY;COUNT=2")["series"]["id"]
    calendar = book.resource["calendars"][0]["id"]

    lists = {
        f"{name}={value}": found(tenant, orderBy="event.start", sortedBy="asc", **{name: value})
        for name, value in (
            ("resource_id", book.resource["id"]),
            ("resource_id", str(uuid.uuid4())),
            ("project_id", project),
            ("calendar_id", calendar),
            ("owner_booking_id", group["id"]),
            ("series_id", series),
            ("customer_email", "aNN@example.COM"),
            ("customer_email", "ann@example"),
            ("state", "tentative,cancelled"),
            ("state", "tentative,confirmed"),
        )
    }

    assert list(lists.values()) == [
        ["A", "D", "D"],
        [],
        ["B"],
        ["A", "D", "D"],
        ["C"],
        ["D", "D"],
        ["C"],
        [],
        ["C"],
        ["A", "B", "C", "C", "D", "D"],
    ]
    assert found(
        tenant, state="confirmed", resource_id=bob["id"], search=f"project.id:{project}"
    ) == ["B"]
