"""A new SECRET_KEY: what was made with the old one works while that is in SECRET_KEY_FALLBACKS."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from django.db import transaction
from django.http import HttpResponse
from django.test import Client, RequestFactory

from access.invitations import invite_member
from apps_config.models import Account
from availability.models import Project, Resource
from availability.payment_links import payment_key
from booking_pages.own_bookings import begin_session, has_valid_form_token, read_session
from bookings.models import Booking, Customer
from bookings.pages.action_links import action_url
from bookings.public_booking_checks import new_challenge, use_challenge
from bookings.services.verification import code_of
from common.encryption import SecretUnreadable, decrypt_text
from common.errors import Refusal
from common.limits.rate_limit import digest_key
from notifications.links.invitations import invitation_url
from notifications.links.own_bookings import own_bookings_url, read_link
from notifications.links.resource_password_reset import password_url
from notifications.links.unsubscribe import unsubscribe_headers
from notifications.webhooks.services import create_webhook
from office.access.account_password_links import password_link
from tests.bookings.test_proof_of_work import solve
from tests.office.staff import superuser
from tests.services import ROOT
from tests.world import NOW, Tenant

pytestmark = pytest.mark.usefixtures("clock")

OLD, NEW = "the old key " * 3, "the new key " * 3
SOON = NOW + timedelta(minutes=10)
ROW = UUID("0193a4c2-0000-7000-8000-000000000001")
EMAIL = "marty@example.com"

TIMES = {"start": "2026-11-23 10:00:00", "end": "2026-11-23 11:00:00"}

Works = Callable[[], bool]


def use_keys(settings: Any, key: str, *fallbacks: str) -> None:
    """As the settings do without ENCRYPTION_KEYS."""
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = key, [*fallbacks]
    settings.ENCRYPTION_KEYS = [key, *fallbacks]


def opens(url: str, text: str) -> Works:
    """Whether the page behind the link shows the text."""
    parts = urlsplit(url)
    path = f"{parts.path}?{parts.query}"
    return lambda: text in Client().get(path, follow=True).content.decode()


def is_accepted(check: Callable[[], Any]) -> bool:
    try:
        check()
    except (Refusal, SecretUnreadable):
        return False
    return True


def is_same(compute: Callable[[], Any]) -> Works:
    before = compute()
    return lambda: compute() == before


# --- What is made with the key --------------------------------------------------------------------
def make_booking(tenant: Tenant) -> Booking:
    resource_id = tenant.make_resource()["id"]
    assert tenant.book(resource_id=resource_id, **TIMES).status == 201
    return Booking.objects.select_related("event").get()


def booking_link(tenant: Tenant) -> Works:
    booking = make_booking(tenant)
    return opens(action_url(booking, "cancel_by_customer", booking.event.end), "Cancel this")


def own_bookings_link(tenant: Tenant) -> Works:
    url = own_bookings_url(tenant.app, EMAIL, nonce=ROW, expires_at=SOON)
    token = url.partition("token=")[2].replace("%3A", ":")
    return lambda: is_accepted(lambda: read_link(tenant.app, token, now=NOW))


def own_bookings_session(tenant: Tenant) -> Works:
    response, request = HttpResponse(), RequestFactory().get("/")
    begin_session(response, tenant.app, EMAIL, now=NOW)
    request.COOKIES = {name: morsel.value for name, morsel in response.cookies.items()}
    begun = read_session(request, tenant.app, now=NOW)

    def works() -> bool:
        session = read_session(request, tenant.app, now=NOW)
        return bool(session) and has_valid_form_token(session, begun.form_token)

    return works


def unsubscribe_link(tenant: Tenant) -> Works:
    customer = Customer.objects.get(booking=make_booking(tenant))
    link = unsubscribe_headers(customer, NOW)["List-Unsubscribe"].strip("<>")
    return opens(link, "<form")


def resource_password_link(tenant: Tenant) -> Works:
    resource = Resource.objects.get(id=tenant.make_resource(email="ada@example.com")["id"])
    return opens(password_url(resource, SOON), "<form")


def account_password_link(tenant: Tenant) -> Works:
    return opens(password_link(Account.objects.create_user(EMAIL, "x" * 12)), "<form")


def invitation_link(tenant: Tenant) -> Works:
    invitation = invite_member(app=tenant.app, email=EMAIL, role="editor", now=NOW)
    return opens(invitation_url(invitation), "<form")


def webhook_secret(tenant: Tenant) -> Works:
    webhook, _ = create_webhook(app=tenant.app, given={"url": "https://example.com/hook"})
    return lambda: is_accepted(lambda: decrypt_text(webhook.secret))


def challenge(tenant: Tenant) -> Works:
    tenant.app.settings["public_challenge"] = "altcha"
    body = {"challenge": solve(new_challenge(tenant.app, now=NOW))}

    def works() -> bool:
        with transaction.atomic():
            accepted = is_accepted(lambda: use_challenge(tenant.app, body, now=NOW))
            transaction.set_rollback(True)  # a challenge works once
        return accepted

    return works


def payment_page_key(tenant: Tenant) -> Works:
    project = Project.objects.get(id=tenant.make_project()["id"])
    return is_same(lambda: payment_key(project))


def verification_code(tenant: Tenant) -> Works:
    return is_same(lambda: code_of(ROW))


def count_of_a_limit(tenant: Tenant) -> Works:
    return is_same(lambda: digest_key("198.51.100.7"))


MADE = [
    *(booking_link, own_bookings_link, own_bookings_session, unsubscribe_link),
    *(resource_password_link, account_password_link, invitation_link, webhook_secret),
    *(challenge, payment_page_key, verification_code, count_of_a_limit),
]


@pytest.mark.parametrize("make", MADE)
def test_old_key_works_until_it_is_removed(
    tenant: Tenant, settings: Any, make: Callable[[Tenant], Works]
) -> None:
    use_keys(settings, OLD)
    works = make(tenant)
    before = works()
    use_keys(settings, NEW, OLD)
    rotated = works()
    use_keys(settings, NEW)
    removed = works()

    assert (before, rotated, removed) == (True, True, False)


def test_session_used_during_rotation_survives_the_old_key(tenant: Tenant, settings: Any) -> None:
    use_keys(settings, OLD)
    used, unused = superuser(), superuser("other@example.com")
    use_keys(settings, NEW, OLD)
    rotated = used.get("/admin/").status_code
    use_keys(settings, NEW)

    assert rotated == 200
    assert [client.get("/admin/").status_code for client in (used, unused)] == [200, 302]


def test_new_links_are_signed_with_the_new_key(tenant: Tenant, settings: Any) -> None:
    use_keys(settings, NEW, OLD)
    works = unsubscribe_link(tenant)
    use_keys(settings, NEW)

    assert works()


def test_digests_are_keyed_in_one_place() -> None:
    """Django's salted_hmac knows no fallbacks."""
    sources = [file for file in ROOT.glob("[!.]*/**/*.py") if "tests" not in file.parts]
    users = [str(file.relative_to(ROOT)) for file in sources if "salted_hmac(" in file.read_text()]

    assert users == ["common/keyed_digests.py"]
