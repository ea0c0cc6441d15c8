"""Staff's view of what leaves the house: lists, searches, pages; changes go through services."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.urls import reverse

from apps_config.models import Account
from bookings.models import Booking
from notifications.mail import SLUGS
from notifications.models import Attempt, Delivery, EmailTemplate, Suppression, Webhook
from notifications.webhooks.services import disable_webhook
from tests.bookings.booking_drafts import span
from tests.queries import Queries
from tests.world import NOW, Tenant

MODELS = [model for model in admin.site._registry if model._meta.app_label == "notifications"]
URL = "https://example.com/hook"

pytestmark = pytest.mark.usefixtures("clock", "expanded_calls")


def path_of(model: type, *args: Any) -> str:
    page = "change" if args else "changelist"
    return reverse(f"admin:notifications_{model.__name__.lower()}_{page}", args=args)


def fill(tenant: Tenant, rows: int) -> None:
    """So many bookings and webhooks, a mail and a call of each pair, each delivery tried twice."""
    for number in range(rows):
        resource = tenant.make_resource(f"R{number}")
        tenant.post("/webhooks", {"url": f"{URL}/{number}"})
        customer = {"name": "Ann", "email": f"ann{number}@example.com"}
        booked = tenant.book(
            resource_id=resource["id"], **span("09:00", "10:00"), customer=customer
        )
        assert booked.status == 201
        EmailTemplate.objects.create(app=tenant.app, slug=SLUGS[number], subject="x", text="x")
        Suppression.objects.create(
            app=tenant.app,
            address=customer["email"],
            reason=Suppression.UNSUBSCRIBED,
            created_at=NOW,
        )
    for delivery in Delivery.objects.filter(app=tenant.app):
        for _ in range(2):
            Attempt.objects.create(
                app=delivery.app, delivery=delivery, at=NOW, seconds=1.0, excerpt="<b>no</b>"
            )


@pytest.fixture
def staff(db: None) -> Client:
    client = Client()
    client.force_login(Account.objects.create_superuser("staff@example.com", "x" * 12))
    return client


def found(staff: Client, model: type, search: str) -> list[Any]:
    """The primary keys that a search lists."""
    answer = staff.get(path_of(model), {"q": search})
    assert answer.status_code == 200
    return [row.pk for row in answer.context["cl"].result_list]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
@pytest.mark.matrix
def test_query_count_of_lists_and_pages_is_constant(
    staff: Client, make_tenant: Callable[..., Tenant], model: type
) -> None:
    counts = []

    for rows in (1, 2):
        fill(make_tenant(), rows)
        paths = [path_of(model), path_of(model, model._default_manager.first().pk)]
        taken = []
        for path in paths:
            staff.get(path)  # what Django keeps of its own tables
            with Queries(connection) as queries:
                assert staff.get(path, follow=True).status_code == 200
            taken.append(len(queries))
        counts.append(taken)

    assert counts[0] == counts[1]


def test_deliveries_cannot_be_edited(staff: Client, tenant: Tenant) -> None:
    fill(tenant, 1)
    before = list(Delivery.objects.order_by("pk").values())
    name, pk = "admin:notifications_delivery", before[0]["id"]

    answers = [
        staff.post(reverse(f"{name}_add"), {}),
        staff.post(reverse(f"{name}_change", args=[pk]), {"state": "failed"}),
        staff.post(reverse(f"{name}_delete", args=[pk]), {"post": "yes"}),
    ]

    assert [answer.status_code for answer in answers] == [403, 403, 403]
    assert list(Delivery.objects.order_by("pk").values()) == before


def test_deliveries_are_found_by_booking_and_by_the_customers_address(
    staff: Client, tenant: Tenant
) -> None:
    fill(tenant, 2)
    first, second = tenant.get("/bookings?sortedBy=asc").data
    of_first, of_second = (
        [*Delivery.objects.filter(booking=one["id"]).values_list("pk", flat=True)]
        for one in (first, second)
    )

    assert (len(of_first), len(of_second)) == (3, 4)
    assert found(staff, Delivery, first["id"]) == of_first
    assert found(staff, Delivery, "ANN1@example.com") == of_second
    assert found(staff, Delivery, "@example.com") == [*of_second, *of_first]
    assert found(staff, Delivery, str(of_second[0])) == of_second[:1]
    assert found(staff, Delivery, "bob@example.com") == []


def test_deliveries_are_filtered_by_type_and_state(staff: Client, tenant: Tenant) -> None:
    fill(tenant, 1)

    answer = staff.get(path_of(Delivery), {"type__exact": "webhook", "state__exact": "scheduled"})

    calls = [*Delivery.objects.filter(type="webhook").values_list("pk", flat=True)]
    assert [row.pk for row in answer.context["cl"].result_list] == calls


def test_delivery_page_shows_its_attempts(staff: Client, tenant: Tenant) -> None:
    fill(tenant, 1)
    delivery = Delivery.objects.first()

    page = staff.get(path_of(Delivery, delivery.pk)).content.decode()

    assert page.count("&lt;b&gt;no&lt;/b&gt;") == 2
    assert "<b>no</b>" not in page


# --- Send again -----------------------------------------------------------------------------------
def send_again(staff: Client, *deliveries: Delivery) -> list[str]:
    """What is told after the action."""
    answer = staff.post(
        path_of(Delivery),
        {
            "action": "send_again",
            "_selected_action": [str(delivery.pk) for delivery in deliveries],
            "confirmed": "yes",
        },
        follow=True,
    )
    return [str(message) for message in answer.context["messages"]]


def test_redeliver_action_calls_the_service(staff: Client, tenant: Tenant, clock: Any) -> None:
    fill(tenant, 1)
    call, _, customer = Delivery.objects.all()
    Delivery.objects.filter(pk=customer.pk).update(
        state="failed", reason="x", next_at=None, finished_at=NOW, tries=4
    )
    Delivery.objects.filter(pk=call.pk).update(state="sending", tries=1)
    clock.shift(60)

    told = send_again(staff, customer, call)

    assert sorted(told) == [
        "Confirmation e-mail to the customer, ann0@example.com will be sent again.",
        "Webhook call: confirmed to https://example.com/hook/0 is being sent.",
    ]
    states = [
        (delivery.state, delivery.next_at, delivery.tries) for delivery in Delivery.objects.all()
    ]
    assert states == [
        ("sending", NOW, 1),
        ("scheduled", NOW, 0),
        ("scheduled", NOW + timedelta(seconds=60), 0),
    ]


def test_redeliver_action_asks_for_confirmation(staff: Client, tenant: Tenant) -> None:
    fill(tenant, 1)
    call, _, customer = Delivery.objects.all()
    Delivery.objects.update(state="delivered", next_at=None, finished_at=NOW)
    Booking.objects.update(state="cancelled")
    selected = [str(customer.pk), str(call.pk)]

    asked = staff.post(path_of(Delivery), {"action": "send_again", "_selected_action": selected})

    assert (asked.context["title"], asked.context["lines"], asked.context["fields"]) == (
        "Send 2 deliveries again?",
        [
            f"Webhook call: confirmed to {URL}/0",
            "Confirmation e-mail to the customer, ann0@example.com. Will be refused:"
            " The booking is cancelled.",
        ],
        [
            ("action", "send_again"),
            *(("_selected_action", key) for key in selected),
            ("confirmed", "yes"),
        ],
    )
    assert {delivery.state for delivery in Delivery.objects.all()} == {"delivered"}


def test_view_permission_cannot_redeliver(tenant: Tenant) -> None:
    fill(tenant, 1)
    reader = Account.objects.create_user("reader@example.com", is_staff=True)
    reader.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    client = Client()
    client.force_login(reader)
    Delivery.objects.update(next_at=NOW + timedelta(hours=1))

    told = send_again(client, *Delivery.objects.all())

    assert told == []
    assert {delivery.next_at for delivery in Delivery.objects.all()} == {NOW + timedelta(hours=1)}
    assert client.get(path_of(Delivery)).status_code == 200


# --- Webhooks -------------------------------------------------------------------------------------
def test_secrets_are_not_shown(staff: Client, tenant: Tenant) -> None:
    secrets = [tenant.post("/webhooks", {"url": URL}).data["secret"]]
    row = Webhook.objects.get()
    secrets.append(tenant.post(f"/webhooks/{row.pk}/rotate").data["secret"])
    tenant.post(f"/webhooks/{row.pk}/test")
    row.refresh_from_db()
    secrets += [row.secret, row.previous_secret]

    paths = [path_of(Webhook), path_of(Webhook, row.pk), path_of(Delivery)]
    paths.append(path_of(Delivery, Delivery.objects.get().pk))
    shown = "".join(staff.get(path).content.decode() for path in paths)

    assert URL in shown
    for secret in secrets:
        assert secret.removeprefix("whsec_")[:20] not in shown
        assert found(staff, Webhook, secret) == []


def test_enabling_a_webhook_calls_the_service(staff: Client, tenant: Tenant) -> None:
    fill(tenant, 2)
    on, gone = Webhook.objects.all()
    disable_webhook(on, "It is gone.", now=NOW)
    Webhook.objects.filter(pk=on.pk).update(failures=30, failing_since=NOW)
    Webhook.objects.filter(pk=gone.pk).update(deleted_at=NOW, active=False)

    def switch(action: str) -> tuple[list[str], list[Any]]:
        answer = staff.post(
            f"{path_of(Webhook)}?deleted=all",
            {"action": action, "_selected_action": [str(on.pk), str(gone.pk)]},
            follow=True,
        )
        rows = Webhook.objects.values_list("active", "disabled_reason", "failures")
        return sorted(str(one) for one in answer.context["messages"]), list(rows)

    is_gone = f"{gone.url} is deleted."
    assert switch("switch_on") == (
        [is_gone, f"{on.url} is enabled."],
        [(True, "", 0), (False, "", 0)],
    )
    assert switch("switch_off") == (
        [is_gone, f"{on.url} is disabled."],
        [(False, "", 0), (False, "", 0)],
    )
