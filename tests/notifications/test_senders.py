"""Who an app's e-mails are from: an address of its own only if the operator allows the domain."""

from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

import pytest
from django.utils import timezone

from notifications.mail import compose_mail
from notifications.models import Delivery
from notifications.outbox.senders import prepare_batch
from ops import doctor
from tests.common.test_ssrf import settings_of
from tests.notifications.mails import calendar_of, make_app, make_letter, sent
from tests.world import Tenant

SERVICE = "mail@service.example"
OWN, CONTACT = "desk@harbour.example", "hello@harbour.example"


@pytest.fixture(autouse=True)
def service(settings: Any) -> None:
    settings.DEFAULT_FROM_EMAIL = f"Service <{SERVICE}>"
    settings.SENDER_DOMAINS = frozenset({"service.example"})


@pytest.mark.parametrize(
    ("domains", "given", "address", "reply_to"),
    [
        ({"service.example"}, {}, SERVICE, None),
        ({"service.example"}, {"contact_email": CONTACT}, SERVICE, CONTACT),
        ({"service.example"}, {"from_email": OWN}, SERVICE, OWN),
        ({"service.example"}, {"from_email": OWN, "contact_email": CONTACT}, SERVICE, CONTACT),
        ({"harbour.example"}, {"from_email": OWN}, OWN, None),
        ({"harbour.example"}, {"from_email": OWN, "contact_email": CONTACT}, OWN, CONTACT),
        ({"harbour.example"}, {"from_email": "A@Harbour.EXAMPLE"}, "A@Harbour.EXAMPLE", None),
        ({"*"}, {"from_email": OWN}, OWN, None),
        # Neither a subdomain nor a domain that ends alike.
        ({"b.example"}, {"from_email": "a@x.b.example"}, SERVICE, "a@x.b.example"),
        ({"b.example"}, {"from_email": "a@xb.example"}, SERVICE, "a@xb.example"),
        ({"x.b.example"}, {"from_email": "a@b.example"}, SERVICE, "a@b.example"),
        ({"xn--bcher-kva.example"}, {"from_email": "a@bücher.example"},
         "a@xn--bcher-kva.example", None),
        # What is no address is neither.
        ({"*"}, {"from_email": "a@harbour.example, b@harbour.example"}, SERVICE, None),
    ],
)  # fmt: skip
def test_sender_is_an_allowed_address(
    settings: Any, domains: set[str], given: dict[str, str], address: str, reply_to: str | None
) -> None:
    settings.SENDER_DOMAINS = frozenset(domains)
    app = make_app(from_name="Dr. Ada", **given)

    message = compose_mail(make_letter("confirmed_customer", app=app))

    read = sent(message)
    (sender,) = read["From"].addresses
    assert (sender.display_name, sender.addr_spec) == ("Dr. Ada", address)
    assert (read["Reply-To"] and str(read["Reply-To"])) == reply_to
    calendar = (calendar_of(message) or "").replace("\r\n ", "").split("\r\n")
    (organizer,) = [line for line in calendar if line.startswith("ORGANIZER")]
    assert organizer.endswith(f":mailto:{address}")


def mails_of(tenant: Tenant) -> list[EmailMessage]:
    """What the workers would send now."""
    rows = Delivery.objects.filter(app=tenant.app, type="email", state="scheduled").order_by("id")
    sends, refused = prepare_batch(list(rows), now=timezone.now())
    assert refused == []
    return [
        message_from_bytes(send.args[0].message().as_bytes(), policy=policy.default)
        for _, send in sends
    ]


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("mode", ["live", "test"])
def test_every_kind_of_mail_has_this_sender(make_tenant: Any, settings: Any, mode: str) -> None:
    tenant = make_tenant(mode=mode, name="Harbour")
    given = {"from_email": OWN, "contact_email": CONTACT}
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": given})
    tenant.member("owner@example.com")
    ada = tenant.make_resource("Ada", email="owner@example.com")
    times = {"start": "2026-11-23T09:00:00Z", "end": "2026-11-23T10:00:00Z"}
    customer = {"name": "Owner", "email": "owner@example.com"}
    assert tenant.book(resource_id=ada["id"], customer=customer, **times).status == 201
    assert tenant.post("/resources/resetpassword", {"email": "owner@example.com"}).status == 200
    assert (
        tenant.post(f"/apps/{tenant.app.slug}/members", {"email": "new@example.com"}).status == 201
    )

    mails = mails_of(tenant)

    senders = {(str(mail["From"]), str(mail["Reply-To"])) for mail in mails}
    assert senders == {(f"Harbour <{SERVICE}>", CONTACT)}
    assert len(mails) >= 4


# --- What the operator sees -----------------------------------------------------------------------
@pytest.mark.both_databases
def test_doctor_names_apps_whose_address_only_gets_replies(make_tenant: Any) -> None:
    for slug, address in (
        ("bee", OWN),
        ("ant", "a@b.example"),
        ("cat", "bookings@service.example"),
    ):
        make_tenant(slug=slug, settings={"from_email": address})
    make_tenant(slug="dog")

    assert doctor.check_senders() == doctor.Finding(
        "WARN",
        "`from_email` is outside of SENDER_DOMAINS and only gets replies: ant, bee",
        "Add domains that authorise the mail server, or change the apps' settings.",
    )


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"DEFAULT_FROM_EMAIL": "Service <a@Service.example>"}, "frozenset({'service.example'})"),
        ({"SENDER_DOMAINS": "Bücher.example"}, "frozenset({'xn--bcher-kva.example'})"),
        ({"SENDER_DOMAINS": "*"}, "frozenset({'*'})"),
        (
            {"SENDER_DOMAINS": "*.example.com"},
            "django.core.exceptions.ImproperlyConfigured: SENDER_DOMAINS must be domains such as"
            " example.com, not ['*.example.com']",
        ),
        (
            {"SENDER_DOMAINS": "desk@example.com"},
            "django.core.exceptions.ImproperlyConfigured: SENDER_DOMAINS must be domains such as"
            " example.com, not ['desk@example.com']",
        ),
    ],
)
@pytest.mark.matrix
def test_domains_of_senders_are_read_from_the_environment(
    environment: dict[str, str], said: str
) -> None:
    assert settings_of("SENDER_DOMAINS", **environment) == said
