"""What the form of a new booking asks the server: customers, questions, series, e-mails."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from bookings.models import Booking
from notifications.models import Delivery
from tests.office.conftest import WORKDAYS, logged_in, member_of
from tests.queries import Queries
from tests.world import BERLIN, Tenant

pytestmark = pytest.mark.usefixtures("clock")

NEW = "/admin/calendar/bookings"
CUSTOMERS, QUESTIONS = "/admin/calendar/customers", "/admin/calendar/questions"
MARTY = {"name": "Marty McFly", "email": "marty@example.com", "phone": "+1 555 0100"}
ANN = {"name": "Ann Lee", "email": "ann@example.com", "phone": ""}
HALF = {"length": "30 minutes"}
NOTHING_TO_CHOOSE = {"most": 1, "takes_party": False, "takes_any": False, "requirements": []}
TUESDAY = {"start": "2026-11-24T10:00", "end": "2026-11-24T10:30"}


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource("Ada", timezone=BERLIN, availability_constraints=WORKDAYS)


@pytest.fixture
def editor(tenant: Tenant) -> Client:
    return logged_in(member_of(tenant, "editor"))


def post(client: Client, body: Any) -> Any:
    return client.post(NEW, body, content_type="application/json")


def body_of(ada: Any, **given: Any) -> dict[str, Any]:
    who = {"customer": MARTY, "what": "Check-up", "resource_id": ada["id"]}
    return {**TUESDAY, **who, **given}


def book(tenant: Tenant, ada: Any, day: int, customer: Any = MARTY) -> Any:
    span = {"start": f"2026-11-{day}T10:00:00+01:00", "end": f"2026-11-{day}T10:30:00+01:00"}
    return tenant.book(resource_id=ada["id"], customer=customer, **span).data


def suggested(client: Client, ada: Any, term: str) -> Any:
    answer = client.get(CUSTOMERS, {"resource_id": ada["id"], "q": term})
    return answer.json()["data"]["customers"] if answer.status_code == 200 else answer.status_code


# --- Known customers ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("term", "found"),
    [
        ("mcfl", [MARTY]),
        ("marty@ex", [MARTY]),
        ("555 01 00", [MARTY]),
        ("example", [ANN, MARTY]),
        ("lee", [ANN]),
        ("le", []),
        ("doc brown", []),
        ("\0\0\0", []),
    ],
)
def test_customers_are_found_as_one_types(
    tenant: Tenant, ada: Any, editor: Client, clock: Any, term: str, found: Any
) -> None:
    """Those of the last booking come first, with what it has of them."""
    book(tenant, ada, 24, MARTY | {"name": "Martin"})
    clock.shift(60)
    book(tenant, ada, 25)
    clock.shift(60)
    book(tenant, ada, 26, ANN)

    assert suggested(editor, ada, term) == found


def test_customers_of_other_apps_are_not_suggested(
    tenant: Tenant, make_tenant: Callable[..., Tenant], ada: Any, editor: Client
) -> None:
    other = make_tenant()
    foreign = other.make_resource("Eve")
    book(other, foreign, 24)

    assert suggested(editor, ada, "marty") == []
    assert suggested(editor, foreign, "marty") == 404
    assert suggested(logged_in(member_of(tenant, "viewer")), ada, "marty") == 403


def test_query_count_of_suggestions_is_constant(tenant: Tenant, ada: Any, editor: Client) -> None:
    def count() -> tuple[int, int]:
        with Queries(connection) as queries:
            found = suggested(editor, ada, "example")
        return len(found), len(queries)

    book(tenant, ada, 24)
    suggested(editor, ada, "example")
    few = count()
    for number in range(12):
        who = {"name": f"Doc {number}", "email": f"doc{number}@example.com"}
        times = {"start": f"2026-12-01T{number:02}:00:00Z", "end": f"2026-12-01T{number:02}:30:00Z"}
        tenant.book(resource_id=ada["id"], customer=who, **times)

    assert (few[0], count()) == (1, (8, few[1]))


# --- Questions ------------------------------------------------------------------------------------
def test_questions_of_the_project_and_their_answers(
    tenant: Tenant, ada: Any, editor: Client
) -> None:
    questions = {
        "phone": {"title": "Mobile", "required": True},
        "insurance": {"title": "Insurance", "enum": ["Public", "Private"], "required": True},
        "first_visit": {"title": "First visit?", "format": "checkbox"},
    }
    project = tenant.make_project(ada["id"], customer_fields=questions, availability=HALF)
    query = {"resource_id": ada["id"], "project_id": project["id"]}

    asked = editor.get(QUESTIONS, query).json()["data"]["questions"]
    answers = MARTY | {"insurance": "Private", "first_visit": True}
    made = post(editor, body_of(ada, project_id=project["id"], customer=answers))

    common = {"length": 2000}
    assert asked == [
        {
            **common,
            **{"key": "insurance", "title": "Insurance", "element": "select", "type": "text"},
            **{"choices": ["Public", "Private"], "value": ""},
        },
        {
            **common,
            **{"key": "first_visit", "title": "First visit?", "element": "checkbox"},
            **{"type": "checkbox", "choices": [], "value": False},
        },
    ]
    assert made.status_code == 200
    customer = Booking.objects.get().customers.get()
    assert customer.meta == {"insurance": "Private", "first_visit": True}


def test_questions_of_another_app_are_not_found(
    tenant: Tenant, make_tenant: Callable[..., Tenant], ada: Any, editor: Client
) -> None:
    other = make_tenant()
    foreign = other.make_project(other.make_resource("Eve")["id"])

    answers = [
        editor.get(QUESTIONS, {"resource_id": ada["id"], "project_id": foreign["id"]}),
        editor.get(QUESTIONS, {"resource_id": ada["id"]}),
    ]

    assert [answer.status_code for answer in answers] == [404, 200]
    assert answers[1].json() == {"data": {"questions": [], **NOTHING_TO_CHOOSE}}


# --- Note and e-mails -----------------------------------------------------------------------------
@pytest.mark.parametrize("notify", [True, False])
def test_confirmation_is_sent_unless_switched_off(
    tenant: Tenant, ada: Any, editor: Client, notify: bool
) -> None:
    answer = post(editor, body_of(ada, notify=notify, note="Afraid of needles"))

    mails = Delivery.objects.filter(type="email").order_by("number")
    states = [(mail.recipient, mail.kind, mail.state) for mail in mails]
    state = "scheduled" if notify else "skipped"
    assert answer.status_code == 200
    assert states == [("customer", "confirmed", state), ("owner", "confirmed", state)]
    assert Booking.objects.get().note == "Afraid of needles"


# --- Series ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("given", "days"),
    [
        ({"repeat": "weekly", "times": "3"}, ["24", "01", "08"]),
        ({"repeat": "two_weeks", "times": 2}, ["24", "08"]),
        ({"repeat": "daily", "times": "6", "until": "2026-11-26"}, ["24", "25", "26"]),
        ({"repeat": "", "times": "6"}, ["24"]),
    ],
)
def test_series(tenant: Tenant, ada: Any, editor: Client, given: Any, days: list[str]) -> None:
    """A last day counts more than a number."""
    answer = post(editor, body_of(ada, **given))

    rows = Booking.objects.order_by("event__start").select_related("event")
    starts = [row.event.start.isoformat() for row in rows]
    assert [start[8:10] for start in starts] == days
    assert {start[11:16] for start in starts} == {"09:00"}
    assert answer.json()["data"] == {
        "id": str(rows[0].id),
        "state": "confirmed",
        "url": f"/admin/bookings/booking/{rows[0].id}/change/",
        "text": "Tue 24 Nov 2026, 10:00 to 10:30",
        "count": len(days),
        "skipped": [],
    }


def test_conflicts_of_a_series_are_listed_and_can_be_left_out(
    tenant: Tenant, ada: Any, editor: Client
) -> None:
    project = tenant.make_project(ada["id"], availability=HALF)
    book(tenant, ada, 26, ANN)
    body = body_of(ada, project_id=project["id"], repeat="daily", times="6")

    refused = post(editor, body)
    before = Booking.objects.filter(series__isnull=False).count()
    made = post(editor, body | {"skip_conflicts": True})

    conflicts = refused.json()
    assert (refused.status_code, conflicts["bookable"], before) == (409, 3, 0)
    assert [(each["text"], each["reason"]) for each in conflicts["occurrences"]] == [
        ("Thu 26 Nov 2026, 10:00 to 10:30", "slot_taken"),
        ("Sat 28 Nov 2026, 10:00 to 10:30", "not_available"),
        ("Sun 29 Nov 2026, 10:00 to 10:30", "not_available"),
    ]
    assert (made.json()["data"]["count"], made.json()["data"]["skipped"]) == (
        3,
        [each["text"] for each in conflicts["occurrences"]],
    )


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"repeat": "hourly", "times": "2"}, "repeat"),
        ({"repeat": ["weekly"], "times": "2"}, "repeat"),
        ({"repeat": "weekly"}, "times"),
        ({"repeat": "weekly", "times": "1"}, "times"),
        ({"repeat": "weekly", "times": "367"}, "times"),
        ({"repeat": "weekly", "until": "soon"}, "until"),
    ],
)
def test_wrong_repetition_books_nothing(
    tenant: Tenant, ada: Any, editor: Client, given: Any, path: str
) -> None:
    answer = post(editor, body_of(ada, **given))

    assert (answer.status_code, list(answer.json()["errors"])) == (422, [path])
    assert Booking.objects.count() == 0


def choices_of(client: Any, resource: Any, project: Any) -> Any:
    query = {"resource_id": resource["id"], "project_id": project["id"]}
    found = client.get("/admin/calendar/questions", query).json()["data"]
    return {name: value for name, value in found.items() if name != "questions"}


def test_choices_of_projects(tenant: Tenant, editor: Client) -> None:
    """Units and parties are those of the resources; requirements have their resources."""
    bikes, table = (
        tenant.make_resource("Bikes", capacity=4),
        tenant.make_resource("Table", party={"min": 1, "max": 6}),
    )
    both = tenant.make_project(bikes["id"], table["id"], name="Both")
    mutual = tenant.make_project(
        bikes["id"], table["id"], name="Mutual", availability={"mode": "mutual"}
    )
    steps = [
        {"name": "ride", "length": "1 hour", "resources": [bikes["id"]]},
        {"name": "meal", "length": "1 hour", "resources": [table["id"]]},
    ]
    tour = tenant.post("/projects", {"name": "Tour", "steps": steps}).data

    assert choices_of(editor, bikes, both) == {
        "most": 4,
        "takes_party": True,
        "takes_any": True,
        "requirements": [],
    }
    assert choices_of(editor, bikes, mutual) == NOTHING_TO_CHOOSE | {"takes_party": True}
    assert choices_of(editor, bikes, tour) == NOTHING_TO_CHOOSE | {
        "takes_party": True,
        "requirements": [
            {"name": "ride", "resources": [{"id": bikes["id"], "name": "Bikes"}]},
            {"name": "meal", "resources": [{"id": table["id"], "name": "Table"}]},
        ],
    }


@pytest.mark.parametrize(
    ("wanted", "status"),
    [("[1]", 422), ("{", 400), ('{"quantity": 0}', 422), ('{"resources": {"x": "y"}}', 422)],
)
def test_wanted_that_is_malformed_is_refused(
    tenant: Tenant, editor: Client, wanted: str, status: int
) -> None:
    bikes = tenant.make_resource("Bikes", capacity=4)
    query = {"resource_id": bikes["id"], "start": "2026-11-24", "wanted": wanted}

    assert editor.get(reverse("admin:calendar_times"), query).status_code == status
