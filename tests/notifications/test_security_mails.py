"""E-mails about new keys, new owners and log-ins from new devices."""

from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core import mail
from django.test import Client
from django.utils import timezone, translation

from apps_config.models import Account, Credential, Membership, SecurityEvent
from apps_config.services import archive_app, change_role, issue_key
from notifications.mail import compose_security_mail
from notifications.mail.bounces import addresses_of
from notifications.models import Delivery
from notifications.outbox.senders import prepare_batch
from notifications.security_mails import SECURITY_MAILS
from tests.notifications.mails import DELIVERY_ID, html_of, make_app
from tests.world import Tenant

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]
PASSWORD = "harbour-lights-7"
URL = django_settings.PUBLIC_URL


@pytest.fixture
def ann(tenant: Tenant) -> Account:
    return make_member(tenant, "ann@example.com", "owner")


def make_member(tenant: Tenant, email: str, role: str, **given: Any) -> Account:
    account = Account.objects.create_user(email, PASSWORD, **given)
    Membership.objects.create(app=tenant.app, account=account, role=role)
    return account


def queued() -> list[tuple[str, dict[str, Any]]]:
    return [(row.kind, row.content) for row in Delivery.objects.order_by("id")]


def send() -> list[Any]:
    """The e-mails, whose deliveries are gone then."""
    mail.outbox = []
    rows = list(Delivery.objects.order_by("id"))
    sends, refused = prepare_batch(rows, now=timezone.now()) if rows else ([], [])
    assert refused == []
    for _row, send_one in sends:
        send_one()
    Delivery.objects.all().delete()
    return mail.outbox


# --- What is queued -------------------------------------------------------------------------------
def test_mail_to_owners_about_a_new_key(tenant: Tenant, ann: Account) -> None:
    make_member(tenant, "bob@example.com", "owner")
    make_member(tenant, "cid@example.com", "editor")

    made = tenant.post("/credentials", {"kind": "server"}).data

    actor = f"server key {str(Credential.objects.earliest('id').id)[:8]}"
    assert queued() == [
        ("new_key", {"actor": actor, "network": "127.0.0.1", "prefix": made["prefix"]})
    ]
    (sent,) = send()
    assert sorted(sent.to) == ["ann@example.com", "bob@example.com"]
    assert sent.subject == "A new key was created"
    assert sent.body == (
        "If nobody in your team needs this key, revoke it.\n\n"
        f"Key:      {made['prefix']}…\nBy:       {actor}\nNetwork:  127.0.0.1\n"
        f"App:      {tenant.app.name}\n\n"
        f"{URL}/admin/apps_config/credential/\n"
    )


@pytest.mark.parametrize("kind", ["resource", "page", "no owner"])
def test_no_mail_about_other_keys(tenant: Tenant, kind: str) -> None:
    if kind != "no owner":
        make_member(tenant, "ann@example.com", "owner")
    if kind == "resource":
        tenant.make_resource()
    if kind == "page":
        resource = tenant.make_resource()
        project = tenant.make_project(resource["id"], settings={"published": True})
        Client().get(f"/book/{project['slug']}")
        assert Credential.objects.filter(hosted_project=project["id"]).exists()
    if kind == "no owner":
        issue_key(Credential.SERVER, app=tenant.app)

    assert queued() == []


def test_mail_to_owners_about_a_new_owner(tenant: Tenant, ann: Account) -> None:
    tenant.member("bob@example.com", "editor")
    Delivery.objects.all().delete()

    change_role(Membership.objects.get(account__email="bob@example.com"), "owner")

    assert queued() == [
        ("new_owner", {"actor": "command", "network": "", "member": "bob@example.com"})
    ]
    (sent,) = send()
    assert sorted(sent.to) == ["ann@example.com", "bob@example.com"]
    assert f"{URL}/admin/apps_config/membership/of/{tenant.app.id}/" in sent.body


# --- New devices ----------------------------------------------------------------------------------
def log_in(client: Client, address: str, email: str = "ann@example.com") -> None:
    form = {"username": email, "password": PASSWORD}
    assert client.post("/admin/login/", form, REMOTE_ADDR=address).status_code == 302


def get_token(address: str, email: str = "ann@example.com") -> None:
    body = {"email": email, "password": PASSWORD}
    answer = Client().post("/v2/auth", body, content_type="application/json", REMOTE_ADDR=address)
    assert answer.status_code == 200


HERE, THERE, ELSEWHERE = "192.0.2.1", "192.0.2.2", "192.0.2.3"


def test_mail_about_a_log_in_from_a_new_device(tenant: Tenant, ann: Account) -> None:
    browser = Client()
    log_in(browser, HERE)  # the first one ever
    log_in(browser, THERE)  # a known browser
    log_in(Client(), HERE)  # a known network
    get_token(THERE)
    before = queued()

    log_in(Client(), ELSEWHERE)

    assert before == []
    assert queued() == [
        (
            "new_device",
            {"actor": "ann@example.com", "network": ELSEWHERE, "email": "ann@example.com"},
        )
    ]
    assert addresses_of(Delivery.objects.get()) == ["ann@example.com"]
    make_member(tenant, "bob@example.com", "owner")
    (sent,) = send()
    assert (sent.to, sent.subject) == (["ann@example.com"], "New log-in to your account")
    assert f"Account:  ann@example.com\nNetwork:  {ELSEWHERE}\n" in sent.body
    log_in(Client(), ELSEWHERE)  # told already
    assert queued() == []


def test_mail_about_a_token_from_a_new_network(tenant: Tenant, ann: Account) -> None:
    get_token(HERE)
    get_token(THERE)

    assert [kind for kind, _ in queued()] == ["new_device"]
    event = SecurityEvent.objects.filter(kind="token_made").latest("id")
    assert (event.account, event.network, event.about["is_new_device"]) == (ann, THERE, True)


@pytest.mark.parametrize(
    ("role", "is_staff", "count"),
    [("editor", False, 0), ("viewer", True, 1), ("owner", False, 1), ("archived", False, 0)],
)
def test_roles_that_get_mails_about_new_devices(
    tenant: Tenant, make_tenant: Any, role: str, is_staff: bool, count: int
) -> None:
    own = "owner" if role == "archived" else role
    account = make_member(tenant, "doc@example.com", own, is_staff=is_staff)
    if role == "archived":
        Membership.objects.create(app=make_tenant().app, account=account, role="editor")
        archive_app(tenant.app, now=timezone.now())
    for address in (HERE, THERE):
        log_in(Client(), address, "doc@example.com")

    assert len(queued()) == count


# --- In all languages -----------------------------------------------------------------------------
@pytest.mark.parametrize("kind", SECURITY_MAILS)
@pytest.mark.parametrize("language", ["de", "ar"])
def test_the_mails_are_translated(kind: str, language: str) -> None:
    facts = {"actor": "ann@example.com", "network": HERE, "prefix": "live_", "email": "a@b.example"}
    words = {
        name: compose_security_mail(
            app=make_app(language=name), delivery_id=DELIVERY_ID, to=["a@b.example"],
            kind=kind, facts=facts,
        )
        for name in ("en", language)
    }  # fmt: skip

    assert words["en"].subject != words[language].subject
    assert "{{" not in html_of(words[language]) + words[language].body
    with translation.override(language):
        assert words[language].subject == translation.gettext(words["en"].subject)
