"""Every list, search and page of the back office opens; changes go through services."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps_config.models import Account
from bookings.models import Booking
from bookings.services.postponed import carry_out_due
from tests.bookings.group_world import make_group, seat_in
from tests.queries import Queries
from tests.world import Tenant

OURS = ("apps_config", "availability", "bookings")
MODELS = [model for model in admin.site._registry if model._meta.app_label in OURS]


@pytest.fixture
def staff(tenant: Tenant) -> Client:
    """A superuser's browser, with a row of nearly every model to look at."""
    ada = tenant.make_resource("Ada", availability_constraints=[{"block_weekends": {}}])
    reminder = {
        "type": "email",
        "settings": {"recipient": "customer"},
        "when": {"type": "before", "unit": "mins", "time": 60},
    }
    project = tenant.make_project(ada["id"], event_notifications=[reminder])
    tenant.put(f"/apps/{tenant.app.slug}", {"event_notifications": [reminder]})
    tenant.make_event(ada["calendars"][0]["id"], "2030-01-01 10:00:00", "2030-01-01 11:00:00")
    body = {"start": "2030-01-02 10:00:00", "end": "2030-01-02 11:00:00"}
    answer = tenant.book(
        project_id=project["id"],
        resource_id=ada["id"],
        graph="confirm_decline",
        settings={"enforce_availability": False},
        **body,
    )
    assert answer.status == 201
    client = Client()
    client.force_login(Account.objects.create_superuser("staff@example.com", "x" * 12))
    return client


def test_lists_searches_and_pages_open(staff: Client) -> None:
    paths = []
    for model in MODELS:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        paths += [reverse(f"{name}_changelist"), reverse(f"{name}_changelist") + "?q=ada"]
        row = model._default_manager.first()
        paths += [reverse(f"{name}_change", args=[row.pk])] if row else []

    assert {path: staff.get(path).status_code for path in paths} == dict.fromkeys(paths, 200)


def test_confirm_action_calls_the_service(staff: Client) -> None:
    booking = Booking.objects.get()

    staff.post(
        reverse("admin:bookings_booking_changelist"),
        {"action": "apply_confirm", "_selected_action": [str(booking.id)]},
    )

    booking.refresh_from_db()
    steps = booking.logs.values_list("action", "from_state", "to_state", "actor", "source")
    assert (booking.state, booking.event.busy) == ("confirmed", True)
    assert list(steps)[1:] == [
        ("confirm", "tentative", "confirmed", "staff@example.com", "admin"),
    ]


@pytest.fixture
def group(staff: Client, tenant: Tenant) -> Any:
    return make_group(tenant, tenant.make_resource("Bob"))


def apply_action(staff: Client, action: str, booking: Any) -> None:
    path = reverse("admin:bookings_booking_act", args=[booking["id"]])
    staff.post(path, {"action": action, "confirmed": "yes"})


def test_a_group_shows_its_seats(staff: Client, tenant: Tenant, group: Any) -> None:
    seats = [seat_in(tenant, group) for _ in range(2)]

    pages = [
        staff.get(reverse("admin:bookings_booking_change", args=[seat["id"]])).content.decode()
        for seat in (group, *seats)
    ]

    links = [reverse("admin:bookings_booking_change", args=[seat["id"]]) for seat in seats]
    assert [link in pages[0] for link in links] == [True, True]
    assert [group["id"] in page for page in pages] == [True] * 3
    assert ['id="participants"' in page for page in pages] == [True, False, False]


def test_query_count_of_group_pages_is_constant(staff: Client, tenant: Tenant) -> None:
    counts = []

    for seats in (1, 9):
        group = make_group(
            tenant, tenant.make_resource(f"R{seats}"), max_seats=seats, what=f"G{seats}"
        )
        people = [{"name": f"N{n}", "email": f"n{n}@example.com"} for n in range(seats)]
        seat = [seat_in(tenant, group, person) for person in people][-1]
        paths = [reverse("admin:bookings_booking_changelist")]
        paths += [
            reverse("admin:bookings_booking_change", args=[one["id"]]) for one in (group, seat)
        ]
        taken = []
        for path in paths:
            staff.get(path)  # what Django keeps of its own tables
            with Queries(connection) as queries:
                assert staff.get(path).status_code == 200
            taken.append(len(queries))
        counts.append(taken)

    assert counts[0] == counts[1]


@pytest.mark.parametrize(
    ("action", "states"),
    [("cancel", ["cancelled", "cancelled_by_owner"]), ("complete", ["completed", "completed"])],
)
def test_group_action_applies_to_its_seats(
    staff: Client, tenant: Tenant, group: Any, action: str, states: list[str]
) -> None:
    seat = seat_in(tenant, group)

    apply_action(staff, action, group)
    carry_out_due(now=timezone.now() + timedelta(seconds=11))

    found = [Booking.objects.get(id=one["id"]) for one in (group, seat)]
    assert [one.state for one in found] == states
    assert {one.logs.last().actor for one in found} == {"staff@example.com"}


def test_staff_mark_a_seat_as_paid(staff: Client, tenant: Tenant, group: Any) -> None:
    seat = seat_in(tenant, group, graph="group_customer_payment")

    apply_action(staff, "pay", seat)

    assert Booking.objects.get(id=seat["id"]).state == "paid"


def test_no_secret_is_shown(staff: Client, tenant: Tenant) -> None:
    credential = tenant.app.credentials.first()

    page = staff.get(reverse("admin:apps_config_credential_change", args=[credential.pk]))

    assert credential.prefix.encode() in page.content
    assert credential.secret_hash.encode() not in page.content


def test_anonymous_request_is_redirected_to_log_in(client: Client, db: None) -> None:
    answer = client.get("/admin/bookings/booking/")

    assert (answer.status_code, answer.url) == (302, "/admin/login/?next=/admin/bookings/booking/")
