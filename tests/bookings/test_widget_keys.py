"""Bookings with a widget key: a key that stands in public pages (section 3)."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from bookings.models import Booking
from bookings.services import reschedule
from tests.bookings.booking_drafts import MARTY, NINE, answered, shown, signature_of, span, whole
from tests.world import Answer, Caller, Tenant

MakeTenant = Callable[..., Tenant]
pytestmark = pytest.mark.usefixtures("clock")


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource(
        "Ada", email="ada@example.com", image="https://example.com/a.png", meta={"secret": 1}
    )


@pytest.fixture
def project(tenant: Tenant, ada: Any) -> str:
    rules = [{"allow_hours": {"start": 8, "end": 18}}]
    return tenant.make_project(ada["id"], availability_constraints=rules)["id"]


@pytest.fixture
def widget(tenant: Tenant) -> Caller:
    return tenant.widget()


def open_resources(tenant: Tenant) -> None:
    """Widget keys may book resources that are in no project."""
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"public_resources": True}})


def book(widget: Caller, query: str = "", **given: Any) -> Answer:
    body = {"what": "Check-up", "customer": MARTY, **NINE, **given}
    return widget.post(f"/bookings{query}", body)


# --- What counts, what is ignored -----------------------------------------------------------------
def test_fields_accepted_from_a_widget_key(
    tenant: Tenant, widget: Caller, ada: Any, project: str
) -> None:
    given = {
        "project_id": project,
        "resource_id": ada["id"],
        "where": "Room 2",
        "description": "Words",
        "meta": {"a": 1},
    }

    answer = book(widget, **given)

    found = whole(tenant, answer.data)
    assert (answer.status, answer.json) == (201, {"data": answered(answer.data, "confirmed")})
    assert found["attributes"]["event_info"] == {
        **shown("09:00", "10:00"),
        "what": "Check-up",
        "where": "Room 2",
        "description": "Words",
        "calendar_id": ada["calendars"][0]["id"],
        "invite": True,
        "participants": [],
    }
    assert (found["meta"], found["project"]["id"]) == ({"a": 1}, project)


def test_the_nested_form_and_several_customers(
    tenant: Tenant, widget: Caller, project: str
) -> None:
    people = [{**MARTY, "city": "Hill Valley"}, {"name": "Doc", "email": "doc@example.com"}]
    body = {"event": {**NINE, "what": "A"}, "customers": people, "project_id": project}
    tenant.put(f"/projects/{project}", {"settings": {"public_customers": 2}})

    answer = widget.post("/bookings", body)

    found = whole(tenant, answer.data)["customers"]
    assert [(one["name"], one["meta"]) for one in found] == [
        ("Marty McFly", {"city": "Hill Valley"}),
        ("Doc", {}),
    ]


REMINDER = {
    "type": "email",
    "settings": {"recipient": "customer"},
    "when": {"type": "before", "unit": "mins", "time": 60},
}


@pytest.mark.parametrize(
    "ignored",
    [
        {"action": "create"},
        {"action": "nonsense"},
        {"settings": {"allow_double_bookings": True, "enforce_availability": False}},
        {"settings": "nonsense"},
        {"event_notifications": [REMINDER]},
        {"event_notifications": "nonsense"},
        {"participants": ["bob@example.com"]},
        {"participants": "nonsense"},
        {"invite": False},
        {"recurrence": "FREQ=DAILY;COUNT=3", "on_conflict": "skip"},
        {"reservation_time": 3600},
        {"state": "completed", "completed": True, "id": str(uuid.uuid4())},
        {"calendar_id": str(uuid.uuid4())},
        {"event": {"calendar_id": "nonsense", "invite": "nonsense"}},
    ],
)
def test_fields_ignored_from_a_widget_key(
    tenant: Tenant, widget: Caller, ada: Any, project: str, ignored: dict[str, Any]
) -> None:
    answer = book(widget, project_id=project, **ignored)

    found = whole(tenant, answer.data)
    assert (answer.status, found["state"], found["event_notifications"]) == (201, "confirmed", [])
    assert found["attributes"]["settings"] == {
        "allow_double_bookings": False,
        "enforce_availability": True,
    }
    assert found["attributes"]["event_info"]["invite"] is True
    assert found["attributes"]["event_info"]["participants"] == []
    assert found["calendar"]["id"] == ada["calendars"][0]["id"]


@pytest.mark.parametrize("recipient", ["customer", "owner"])
def test_widget_key_cannot_disable_mails(
    tenant: Tenant, widget: Caller, project: str, recipient: str
) -> None:
    book(widget, project_id=project, **{f"notify_{recipient}_by_email": {"enabled": False}})

    rows = tenant.get("/deliveries").data
    assert sorted((row["recipient"], row["state"]) for row in rows) == [
        ("customer", "scheduled"),
        ("owner", "scheduled"),
    ]


def test_reminders_of_app_and_project_are_created(tenant: Tenant, widget: Caller, ada: Any) -> None:
    project = tenant.make_project(ada["id"], event_notifications=[REMINDER])["id"]

    booking = book(widget, project_id=project, event_notifications=[]).data

    assert whole(tenant, booking)["event_notifications"] == [REMINDER]


@pytest.mark.parametrize(
    ("own", "asked", "expected"),
    [
        ("confirm_decline", "instant", ("confirm_decline", "tentative")),
        ("instant", "confirm_decline", ("instant", "confirmed")),
        (None, "confirm_decline", ("instant", "confirmed")),
        ("confirm_decline", "group_owner", ("confirm_decline", "tentative")),
    ],
)
def test_graph_is_that_of_the_project(
    tenant: Tenant,
    widget: Caller,
    ada: Any,
    own: str | None,
    asked: str,
    expected: tuple[str, str],
) -> None:
    project = tenant.make_project(ada["id"], booking={"graph": own})["id"]

    answer = book(widget, project_id=project, graph=asked)

    assert (answer.data["graph"], answer.data["state"]) == expected


def test_the_graph_is_free_without_a_project(tenant: Tenant, widget: Caller, ada: Any) -> None:
    open_resources(tenant)

    answer = book(widget, resource_id=ada["id"], graph="confirm_decline")

    assert (answer.status, answer.data["graph"]) == (201, "confirm_decline")


# --- The resource must be the project's -----------------------------------------------------------
@pytest.mark.parametrize("kind", ["other", "foreign", "unknown"])
def test_resource_must_belong_to_the_project(
    tenant: Tenant, make_tenant: MakeTenant, widget: Caller, project: str, kind: str
) -> None:
    ids = {
        "other": tenant.make_resource("Other")["id"],
        "foreign": make_tenant().make_resource()["id"],
        "unknown": str(uuid.uuid4()),
    }

    answer = book(widget, project_id=project, resource_id=ids[kind])

    assert (answer.status, answer.json["errors"]) == (
        422,
        {"resource_id": ["There is no such resource."]},
    )
    assert not Booking.objects.exists()


def test_reschedule_only_to_resources_of_the_project(
    tenant: Tenant, widget: Caller, project: str
) -> None:
    bob, cleo = tenant.make_resource("Bob")["id"], tenant.make_resource("Cleo")["id"]
    tenant.post(f"/projects/{project}/resources", {"resource_id": bob})
    booking = book(widget, project_id=project).data
    path, signature = f"/bookings/{booking['id']}/reschedule", signature_of(booking)

    answers = [
        widget.post(
            path, {**span("11:00", "12:00"), "resource_id": resource, "signature": signature}
        )
        for resource in (cleo, bob)
    ]

    assert [answer.status for answer in answers] == [422, 200]
    assert answers[0].json["errors"] == {"resource_id": ["There is no such resource."]}
    assert whole(tenant, booking)["resource"]["name"] == "Bob"


# --- Rules are always enforced --------------------------------------------------------------------
def test_rules_are_enforced_regardless_of_the_project_setting(
    tenant: Tenant, widget: Caller, ada: Any
) -> None:
    project = tenant.make_project(
        ada["id"],
        availability_constraints=[{"block_day": {"day": "Monday"}}],
        settings={"enforce_availability": False},
    )["id"]

    free, bound = tenant.book(project_id=project, **NINE), book(widget, project_id=project)

    assert (free.status, free.json) == (201, {"data": answered(free.data, "confirmed")})
    assert (bound.status, bound.error) == (
        409,
        {
            "error": "The time is not available.",
            "code": "not_available",
            "reasons": [
                {"type": "constraint", "text": "Blocked by the project's rule: Mondays."},
                {"type": "event", "text": "Overlaps an event."},
            ],
            "alternatives": [
                shown(f"{hour:02}:00", f"{hour + 1:02}:00", "2026-11-24") for hour in range(3)
            ],
        },
    )


def test_rules_of_the_resource_apply_without_a_project(tenant: Tenant, widget: Caller) -> None:
    resource = tenant.make_resource(
        availability_constraints=[{"allow_hours": {"start": 9, "end": 12}}]
    )["id"]
    open_resources(tenant)

    answers = [
        book(widget, resource_id=resource, **times)
        for times in (span("08:30", "09:30"), span("09:00", "09:17"), past())
    ]

    assert [answer.status for answer in answers] == [409, 201, 409]


def past() -> dict[str, str]:
    return span("09:00", "09:30", "2026-11-20")


def test_reasons_have_only_type_and_text(
    tenant: Tenant, widget: Caller, ada: Any, project: str
) -> None:
    """Who is in the way, and by which rule, is no stranger's business."""
    tenant.put(f"/projects/{project}", {"availability": {"buffer": "30 minutes"}})
    tenant.make_event(ada["calendars"][0]["id"], **span("08:30", "09:00"), what="Surgery")

    answers = [
        book(widget, project_id=project, **times)
        for times in (span("07:30", "08:30"), span("09:15", "10:15"))
    ]

    assert [answer.error for answer in answers] == [
        {
            "error": "The time is not available.",
            "code": "not_available",
            "reasons": [
                {
                    "type": "constraint",
                    "text": "Outside the project's opening hours: 08:00 to 18:00.",
                },
                {"type": "buffer", "text": "Within the buffer of 30 minutes around an event."},
            ],
            "alternatives": ALTERNATIVES,
        },
        {
            "error": "The time is not available.",
            "code": "not_available",
            "reasons": [
                {"type": "buffer", "text": "Within the buffer of 30 minutes around an event."}
            ],
            "alternatives": ALTERNATIVES,
        },
    ]


ALTERNATIVES = [
    shown("09:30", "10:30"),
    shown("10:30", "11:30"),
    shown("11:30", "12:30"),
]


def test_taken_slot_names_only_times(
    tenant: Tenant, widget: Caller, ada: Any, project: str
) -> None:
    tenant.make_event(ada["calendars"][0]["id"], **NINE, what="Surgery")

    answer = book(widget, project_id=project)

    assert (answer.status, answer.error) == (
        409,
        {
            "error": "The time is taken.",
            "code": "slot_taken",
            "conflicts": [shown("09:00", "10:00")],
            "alternatives": [
                shown("10:00", "11:00"),
                shown("11:00", "12:00"),
                shown("12:00", "13:00"),
            ],
        },
    )


def test_alternatives_respect_notice_and_window(
    tenant: Tenant, widget: Caller, project: str
) -> None:
    tenant.put(
        f"/projects/{project}",
        {"availability": {"from": "3 days 2 hours", "to": "3 days 4 hours"}},
    )

    answer = book(widget, project_id=project)

    assert answer.json["alternatives"] == [shown("12:00", "13:00")]


def test_reschedule_checks_rules_of_unenforced_bookings(
    tenant: Tenant, widget: Caller, project: str
) -> None:
    """A booking that staff made without rules, moved with a widget key."""
    booking = tenant.book(
        project_id=project, settings={"enforce_availability": False}, **span("06:00", "06:10")
    ).data
    path, signature = f"/bookings/{booking['id']}/reschedule", signature_of(booking)

    answers = [
        widget.post(path, {**times, "signature": signature})
        for times in (span("07:00", "08:00"), span("09:00", "09:10"), span("09:00", "10:00"))
    ]

    assert [answer.status for answer in answers] == [409, 409, 200]


# --- What it sees ---------------------------------------------------------------------------------
def test_includes_are_limited(tenant: Tenant, widget: Caller, ada: Any, project: str) -> None:
    answer = book(
        widget,
        "?include=event,resource,user,resources,available_actions,attributes",
        project_id=project,
        participants=["bob@example.com"],
        description="Private words",
    )

    event = whole(tenant, answer.data)["event"]
    resource = {
        "id": ada["id"],
        "name": "Ada",
        "image": "https://example.com/a.png",
        "timezone": "UTC",
    }
    info = {**shown("09:00", "10:00"), "what": "Check-up", "where": ""}
    assert answer.data == answered(
        answer.data,
        "confirmed",
        event={"id": event["id"], "calendar_id": event["calendar_id"], **info},
        resource=resource,
        user=resource,
        resources=[resource],
        available_actions=["cancel", "cancel_by_customer", "complete"],
        attributes={"event_info": info, "group_booking": None},
    )


@pytest.mark.parametrize(
    "include",
    [
        "calendar",
        "customers",
        "project",
        "meta",
        "logs",
        "event_notifications",
        "resource.calendars",
        "project.resources",
    ],
)
def test_other_includes_are_refused(widget: Caller, project: str, include: str) -> None:
    booking = book(widget, project_id=project).data

    answers = [
        book(widget, f"?include={include}", project_id=project, **span("11:00", "12:00")),
        widget.post(f"/bookings/{booking['id']}/reschedule?include={include}", NINE),
    ]

    assert [(answer.status, answer.json["errors"]) for answer in answers] == [
        (422, {"include": [f"{include} can't be included."]})
    ] * 2
    assert Booking.objects.count() == 1


def test_reschedule_by_id_if_the_project_allows(
    tenant: Tenant, make_tenant: MakeTenant, widget: Caller, project: str
) -> None:
    """Whoever knows a booking's id may then move it, within its own app."""
    tenant.put(f"/projects/{project}", {"settings": {"public_reschedule": "id"}})
    booking = tenant.book(project_id=project, **NINE).data
    stranger = make_tenant().widget()
    path = f"/bookings/{booking['id']}/reschedule"

    answers = [caller.post(path, span("11:00", "12:00")) for caller in (stranger, widget)]

    assert [answer.status for answer in answers] == [404, 200]
    assert answers[1].json == {"data": answered(booking, "confirmed")}


def test_forbidden_actions_of_a_widget_key(widget: Caller, project: str) -> None:
    path = f"/bookings/{book(widget, project_id=project).data['id']}"

    answers = [
        widget.get("/bookings"),
        widget.get(path),
        widget.put(path, {"meta": {}}),
        widget.put(f"{path}/cancel_by_customer"),
        widget.delete(path),
    ]

    assert [(answer.status, answer.json["code"]) for answer in answers] == [(403, "forbidden")] * 5


# --- What keeps it from mailing strangers ---------------------------------------------------------
@pytest.mark.parametrize(
    ("most", "sentence"),
    [
        (None, "Must have at most 1 item."),
        (1, "Must have at most 1 item."),
        (5, "Must have at most 5 items."),
    ],
)
def test_number_of_customers_is_limited_by_the_project(
    tenant: Tenant, widget: Caller, project: str, most: int | None, sentence: str
) -> None:
    tenant.put(f"/projects/{project}", {"settings": {"public_customers": most}})
    people = [{"name": f"P{number}", "email": f"p{number}@example.com"} for number in range(6)]
    body = {"what": "Check-up", "project_id": project, **NINE}

    refused = widget.post("/bookings", {**body, "customers": people[: (most or 1) + 1]})
    made = widget.post("/bookings", {**body, "customers": people[: most or 1]})

    assert (refused.status, refused.json["errors"]) == (422, {"customers": [sentence]})
    assert (made.status, tenant.get("/bookings").json["total"]) == (201, 1)


def test_number_of_reschedules_is_limited(
    widget: Caller, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every move is mailed, also where the project sets no limit."""
    monkeypatch.setattr(reschedule, "MAX_MOVES_BY_CUSTOMER", 1)
    booking = book(widget, project_id=project).data
    path, signature = f"/bookings/{booking['id']}/reschedule", signature_of(booking)

    answers = [
        widget.post(path, {**span(start, end), "signature": signature})
        for start, end in (("11:00", "12:00"), ("13:00", "14:00"))
    ]

    assert [answer.status for answer in answers] == [200, 409]
    assert (answers[1].json["policy"], answers[1].json["limit"]) == ("max_reschedules", 1)


def test_related_needs_a_group_graph(tenant: Tenant, ada: Any) -> None:
    group = tenant.book(
        resource_id=ada["id"], graph="group_owner", settings={"max_seats": 2}, **NINE
    ).data

    answer = tenant.book(related={"owner_booking_id": group["id"]}, **NINE)

    assert (answer.status, answer.json["errors"]) == (
        422,
        {"related.owner_booking_id": ["Only seats have a group: use the graph group_customer."]},
    )


def test_widget_key_cannot_reschedule_a_group(tenant: Tenant, widget: Caller, ada: Any) -> None:
    """Every page lists the ids of groups."""
    settings = {"public_reschedule": "id"}
    project = tenant.make_project(ada["id"], settings=settings)["id"]
    group = tenant.book(
        project_id=project, graph="group_owner", settings={"max_seats": 2}, **NINE
    ).data

    answer = widget.post(f"/bookings/{group['id']}/reschedule", span("11:00", "12:00"))

    assert (answer.status, answer.error) == (
        403,
        {"error": "Only the owner can move a group.", "code": "forbidden"},
    )
    assert whole(tenant, group)["event"]["start"] == NINE["start"].replace("Z", "+00:00")
