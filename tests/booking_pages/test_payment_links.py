"""The link to pay: its address and signature, where it stands, and what can't be published."""

import base64
import hmac
from datetime import timedelta
from typing import Any

import pytest

from apps_config.models import Membership
from availability.models import Project
from bookings.models import Booking
from notifications.mail import compose_mail
from tests.booking_pages.test_book_page import Shown, make_page
from tests.booking_pages.test_own_bookings import Visitor, book
from tests.bookings.booking_drafts import act, whole
from tests.notifications.mails import html_of, make_letter
from tests.world import NOW, Tenant

pytestmark = pytest.mark.usefixtures("clock")

PAYMENT = {"graph": "instant_payment", "what": "Check-up"}
SHOP = "https://pay.example.com/checkout"
DEADLINE = NOW + timedelta(minutes=5)
REQUIRED = {"settings.pay_url": ["Required to publish a project with payment."]}
FAULT = (
    "Must be an http or https address whose placeholders are {booking_id}, {start}, {until},"
    " {signature}, none of them in the host."
)


def pay_link(tenant: Tenant, **given: Any) -> tuple[str, str]:
    """The id of a booking that awaits its payment, and its link."""
    make_page(tenant, **{"booking": PAYMENT, **given})
    made = book(tenant)
    return made["id"], whole(tenant, made)["customer_action_links"].get("pay", "")


def signature_of(tenant: Tenant, booking_id: str) -> str:
    """As a shop computes it, by the key that the API tells."""
    project = tenant.app.projects.get().id
    key = tenant.get(f"/projects/{project}?include=payment_key").data["payment_key"]
    deadline = int(DEADLINE.timestamp())
    text = f"{booking_id}.{deadline}".encode()
    return f"{deadline}.{hmac.new(base64.b64decode(key), text, 'sha256').hexdigest()}"


# --- The address ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("template", "address"),
    [
        (SHOP, "?booking_id={id}&signature={signature}"),
        (f"{SHOP}?shop=7#top", "?shop=7&booking_id={id}&signature={signature}#top"),
        (f"{SHOP}/{{booking_id}}", "/{id}?signature={signature}"),
        (f"{SHOP}/{{booking_id}}/{{signature}}", "/{id}/{signature}"),
        (
            f"{SHOP}?at={{start}}&by={{until}}",
            "?at=2026-11-23T08%3A00%3A00%2B00%3A00&by=2026-11-20T09%3A35%3A00%2B00%3A00"
            "&booking_id={id}&signature={signature}",
        ),
        (f"{SHOP}?booking_id=1&signature=2", "?booking_id={id}&signature={signature}"),
    ],
)
def test_placeholders_are_replaced_and_the_link_is_signed(
    tenant: Tenant, template: str, address: str
) -> None:
    booking_id, link = pay_link(tenant, settings={"pay_url": template})

    signature = signature_of(tenant, booking_id)
    assert link == SHOP + address.format(id=booking_id, signature=signature)


def test_payment_url_gets_only_the_booking_id(tenant: Tenant) -> None:
    booking_id, link = pay_link(tenant, booking={**PAYMENT, "payment_url": f"{SHOP}?shop=7"})

    assert link == f"{SHOP}?shop=7&booking_id={booking_id}"


def test_pay_url_takes_precedence_over_payment_url(tenant: Tenant) -> None:
    booking = {**PAYMENT, "payment_url": "https://old.example.com/"}
    _, link = pay_link(tenant, booking=booking, settings={"pay_url": SHOP})

    assert link.startswith(f"{SHOP}?booking_id=")


@pytest.mark.parametrize(
    "template",
    ["javascript:pay()", "https://{booking_id}.example.com/", "https://a.example/{email}", "https://a.example/{"],
)  # fmt: skip
def test_wrong_pay_urls_are_refused(tenant: Tenant, template: str) -> None:
    answer = tenant.post("/projects", {"name": "A", "settings": {"pay_url": template}})

    assert (answer.status, answer.json["errors"]) == (422, {"settings.pay_url": [FAULT]})


def test_payment_key_is_per_project_and_included_on_request(tenant: Tenant) -> None:
    first, second = (tenant.make_project() for _ in range(2))

    keys = [
        tenant.get(f"/projects/{project['id']}?include=payment_key").data["payment_key"]
        for project in (first, second, first)
    ]

    assert (keys[0] == keys[1], keys[0] == keys[2]) == (False, True)
    assert len(base64.b64decode(keys[0])) == 32
    assert "payment_key" not in first


@pytest.mark.parametrize("role", [Membership.VIEWER, Membership.EDITOR])
def test_only_owners_and_server_keys_read_the_payment_key(tenant: Tenant, role: str) -> None:
    project = tenant.make_project(name="A")
    owner, other = tenant.member("owner@example.com"), tenant.member("x@example.com", role)
    at = f"/projects/{project['id']}"
    refused = (
        403,
        {
            "error": "Only server keys and owners can read the key of payment links.",
            "code": "forbidden",
        },
    )

    key = tenant.get(f"{at}?include=payment_key").data["payment_key"]
    answers = [other.get(f"{path}?include=resources,payment_key") for path in ("/projects", at)]

    assert [(answer.status, answer.error) for answer in answers] == [refused, refused]
    assert other.get(f"{at}?include=resources").status == 200
    assert owner.get(f"{at}?include=payment_key").data["payment_key"] == key


def test_refused_include_of_payment_key_changes_nothing(tenant: Tenant) -> None:
    project = tenant.make_project(name="A")
    editor = tenant.member("editor@example.com", Membership.EDITOR)
    at = f"/projects/{project['id']}"

    answers = [
        editor.post("/projects?include=payment_key", {"name": "B"}),
        editor.put(f"{at}?include=payment_key", {"name": "B"}),
        editor.put(f"{at}/resources?include=payment_key", []),
        editor.post(f"{at}/resources?include=payment_key", {"resource_id": project["id"]}),
    ]

    assert [answer.status for answer in answers] == [403] * 4
    assert [each["name"] for each in tenant.get("/projects").data] == ["A"]


def test_payment_key_is_not_in_stored_responses(tenant: Tenant) -> None:
    again = {"Idempotency-Key": "4f0e"}

    refused = tenant.post("/projects?include=payment_key", {"name": "B"}, **again)

    assert (refused.status, refused.json["errors"]) == (
        422,
        {"Idempotency-Key": ["Not supported here: the response contains a secret."]},
    )
    assert tenant.get("/projects").data == []
    assert "payment_key" in tenant.post("/projects?include=payment_key", {"name": "B"}).data
    assert tenant.post("/projects", {"name": "C"}, **again).status == 201


# --- Where it stands ------------------------------------------------------------------------------
def test_link_ends_with_the_payment(tenant: Tenant) -> None:
    make_page(tenant, booking=PAYMENT, settings={"pay_url": SHOP})
    made = book(tenant)

    act(tenant, made, "pay")

    assert list(whole(tenant, made)["customer_action_links"]) == ["cancel_by_customer"]


def test_own_bookings_show_the_payment_link(tenant: Tenant, mailoutbox: list[Any]) -> None:
    tenant.set_public_limits()
    _, link = pay_link(tenant, settings={"pay_url": SHOP})

    page = Visitor(tenant).log_in(mailoutbox).get()

    assert f'<a class="quiet" href="{link.replace("&", "&amp;")}">Pay now</a>' in page.html


def test_mails_of_unpaid_bookings_have_the_link() -> None:
    """The graph mails nothing when such a booking is made; a later mail has the link."""
    letter = make_letter(
        "updated_customer", graph="instant_payment", state="tentative", project="Check-up"
    )
    paid = make_letter(
        "updated_customer", graph="instant_payment", state="paid", project="Check-up"
    )
    for each in (letter, paid):
        each.booking.project.settings = {"pay_url": SHOP}
        each.booking.expires_at = DEADLINE

    mails = [compose_mail(each) for each in (letter, paid)]

    assert [f"\nPay now:\n{SHOP}?booking_id=" in mail.body for mail in mails] == [True, False]
    assert ['<a class="button first" ' in html_of(mail) for mail in mails] == [True, False]


# --- Publishing -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "given",
    [
        {"booking": PAYMENT, "settings": {"published": True}},
        {"booking": {"graph": "group_customer_payment"}, "settings": {"published": True}},
    ],
)
def test_payment_project_without_link_cannot_be_published(
    tenant: Tenant, given: dict[str, Any]
) -> None:
    answer = tenant.post("/projects", {"name": "A", **given})

    assert (answer.status, answer.json["errors"]) == (422, REQUIRED)
    assert Project.objects.count() == 0


@pytest.mark.parametrize(
    ("stored", "change"),
    [
        ({"booking": PAYMENT}, {"settings": {"published": True}}),
        ({"settings": {"published": True}}, {"booking": PAYMENT}),
        (
            {"booking": PAYMENT, "settings": {"published": True, "pay_url": SHOP}},
            {"settings": {"pay_url": None}},
        ),
        (
            {"booking": {**PAYMENT, "payment_url": SHOP}, "settings": {"published": True}},
            {"booking": {"payment_url": None}},
        ),
    ],
)
def test_update_cannot_remove_link_of_published_project(
    tenant: Tenant, stored: dict[str, Any], change: dict[str, Any]
) -> None:
    project = tenant.make_project(**stored)

    refused = tenant.put(f"/projects/{project['id']}", change)
    link = {"settings": {**change.get("settings", {}), "pay_url": SHOP}}
    saved = tenant.put(f"/projects/{project['id']}", {**change, **link})

    assert (refused.status, refused.json["errors"]) == (422, REQUIRED)
    assert (saved.status, saved.data["settings"]) == (200, {"published": True, "pay_url": SHOP})


@pytest.mark.parametrize("graph", ["instant_payment", "group_customer_payment"])
def test_unpublished_payment_project_takes_no_bookings(tenant: Tenant, graph: str) -> None:
    path = make_page(tenant, booking={"graph": graph})

    assert Shown(path).visible_texts == ["Check-up", "You can't book this online."]
    assert Booking.objects.count() == 0
