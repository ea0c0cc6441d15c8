"""GET, POST /apps/:slug/members; DELETE /apps/:slug/members/:id; and the mails of invitations."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connections
from django.utils import timezone

from access.invitations import (
    SentRecently,
    accept_invitation,
    invite_member,
    resend_invitation,
    revoke_invitation,
)
from apps_config.models import Account, Invitation, Membership
from common.errors import NotFound
from notifications.links.invitations import BadInvitationLink, find_invitation
from notifications.models import Delivery
from notifications.outbox.dispatcher import run_dispatcher
from tests.sinks import Mail
from tests.world import Answer, Caller, Tenant

MakeTenant = Callable[..., Tenant]
NOT_FOUND = {"error": "Member not found.", "code": "not_found", "model": "Member"}


@pytest.fixture
def tenant(make_tenant: MakeTenant) -> Tenant:
    return make_tenant(slug="harbour", name="Harbour")


def invite(caller: Caller, email: str = "doc@example.com", **given: Any) -> Answer:
    return caller.post("/apps/harbour/members", {"email": email, **given})


def listed(caller: Caller) -> list[tuple[str, str, str]]:
    rows = caller.get("/apps/harbour/members").data
    return [(row["email"], row["role"], row["state"]) for row in rows]


# --- The API --------------------------------------------------------------------------------------
def test_invitation_defaults_to_viewer_and_creates_no_account(tenant: Tenant) -> None:
    answer = invite(tenant, "Doc@Example.com")

    invitation = Invitation.objects.get()
    record = {
        "id": str(invitation.id),
        "email": "doc@example.com",
        "role": "viewer",
        "state": "invited",
        "expires_at": invitation.expires_at.strftime("%Y-%m-%dT%H:%M:%S+0000"),
    }
    assert (answer.status, answer.json) == (201, {"data": record})
    assert tenant.get("/apps/harbour/members").data == [record]
    assert not Account.objects.filter(email="doc@example.com").exists()


def test_members_and_invitations_are_one_list_in_pages(tenant: Tenant) -> None:
    tenant.member("ann@example.com")
    tenant.member("cid@example.com", "editor")
    invite(tenant, "bob@example.com", role="owner")

    first = tenant.get("/apps/harbour/members?limit=2").json
    second = tenant.get("/apps/harbour/members?limit=2&page=2").json

    emails = [[row["email"] for row in page["data"]] for page in (first, second)]
    assert emails == [["ann@example.com", "bob@example.com"], ["cid@example.com"]]
    assert (first["total"], first["last_page"], second["from"]) == (3, 2, 3)
    assert first["data"][0] == {
        "id": str(Account.objects.get(email="ann@example.com").id),
        "email": "ann@example.com",
        "role": "owner",
        "state": "active",
        "expires_at": None,
    }


def test_members_by_cursor_are_each_read_once(tenant: Tenant) -> None:
    for name in ("ann", "cid", "eve"):
        tenant.member(f"{name}@example.com")
    for name in ("bob", "dan"):
        invite(tenant, f"{name}@example.com")
    expected = tenant.get("/apps/harbour/members").data

    found, cursor = [], ""
    while cursor is not None:
        page = tenant.get(f"/apps/harbour/members?limit=2&cursor={cursor}").json
        found.append(page["data"])
        cursor = page["next_cursor"]

    assert found == [expected[:2], expected[2:4], expected[4:]]


@pytest.mark.parametrize("role", ["viewer", "editor"])
def test_members_are_for_owners(tenant: Tenant, role: str) -> None:
    tenant.member("ann@example.com")
    caller = tenant.member("bob@example.com", role)
    path = f"/apps/harbour/members/{Account.objects.get(email='ann@example.com').id}"

    answers = [caller.get("/apps/harbour/members"), invite(caller), caller.delete(path)]

    assert [answer.status for answer in answers] == [403, 403, 403]
    assert Membership.objects.count() == 2


def test_members_of_another_app_are_unknown(tenant: Tenant, make_tenant: MakeTenant) -> None:
    other = make_tenant(slug="stranger")
    other.member("theirs@example.com")
    theirs = Account.objects.get(email="theirs@example.com").id
    invited = other.post("/apps/stranger/members", {"email": "doc@example.com"}).data["id"]

    answers = [tenant.delete(f"/apps/harbour/members/{id_}") for id_ in (theirs, invited)]
    apps = [tenant.get("/apps/stranger/members"), tenant.delete(f"/apps/stranger/members/{theirs}")]

    assert [(answer.status, answer.error) for answer in answers] == [(404, NOT_FOUND)] * 2
    assert [answer.error["model"] for answer in apps] == ["App", "App"]
    assert (Membership.objects.count(), Invitation.objects.open().count()) == (1, 1)


@pytest.mark.parametrize(
    ("body", "status", "errors"),
    [
        ({}, 422, ["email"]),
        ({"email": "nobody"}, 422, ["email"]),
        ({"email": "a@b.example\n"}, 422, ["email"]),
        ({"email": f"{'a' * 250}@b.example"}, 422, ["email"]),
        ({"email": "doc@example.com", "role": "boss"}, 422, ["role"]),
        ({"email": "doc@exa\0mple.com"}, 400, None),
    ],
)
def test_wrong_bodies_are_refused(
    tenant: Tenant, body: Any, status: int, errors: list[str] | None
) -> None:
    answer = tenant.post("/apps/harbour/members", body)

    assert (answer.status, errors and list(answer.error["errors"])) == (status, errors)
    assert not Invitation.objects.exists()


def test_second_invitation_is_refused(tenant: Tenant) -> None:
    tenant.member("ann@example.com")
    invite(tenant)

    again = [invite(tenant, "DOC@example.com"), invite(tenant, "ann@example.com")]

    assert [(answer.status, answer.error["error"]) for answer in again] == [
        (409, "This person is already invited."),
        (409, "This person is already a member."),
    ]
    assert Delivery.objects.count() == 1


def test_invitation_with_idempotency_key_is_replayed(tenant: Tenant) -> None:
    first, second = (
        tenant.post(
            "/apps/harbour/members", {"email": "doc@example.com"}, **{"Idempotency-Key": "one"}
        )
        for _ in range(2)
    )

    assert (second.status, second.json) == (201, first.json)
    assert second.headers["Idempotent-Replayed"] == "true"
    assert Delivery.objects.count() == 1


def test_members_and_invitations_are_removed(tenant: Tenant) -> None:
    tenant.member("ann@example.com")
    bob = tenant.member("bob@example.com", "editor")
    invite(tenant)
    paths = {
        row["email"]: f"/apps/harbour/members/{row['id']}"
        for row in tenant.get("/apps/harbour/members").data
    }

    answers = [
        *(tenant.delete(paths[email]) for email in ("bob@example.com", "doc@example.com")),
        *(tenant.delete(paths[email]) for email in ("bob@example.com", "doc@example.com")),
        tenant.delete(paths["ann@example.com"]),
    ]

    assert [answer.status for answer in answers] == [204, 204, 404, 404, 409]
    assert answers[-1].error["code"] == "in_use"
    assert listed(tenant) == [("ann@example.com", "owner", "active")]
    assert bob.get("/app").status == 403


def test_query_count_is_constant(tenant: Tenant, django_assert_num_queries: Any) -> None:
    tenant.get("/apps/harbour/members")  # notes the use of the key
    for count in (1, 3):
        for number in range(count):
            tenant.member(f"member-{count}-{number}@example.com")
            invite(tenant, f"invited-{count}-{number}@example.com")
        with django_assert_num_queries(3):
            tenant.get("/apps/harbour/members")


@pytest.mark.postgresql  # threads of a test share SQLite's database in memory
@pytest.mark.django_db(transaction=True)
def test_concurrent_invitations_send_one_mail(tenant: Tenant) -> None:
    def invite_in_thread(_: int) -> int:
        try:
            return invite(tenant).status
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as pool:
        answers = sorted(pool.map(invite_in_thread, range(2)))

    assert answers == [201, 409]
    assert (Invitation.objects.count(), Delivery.objects.count()) == (1, 1)


# --- The mail and its link ------------------------------------------------------------------------
def invitation_of(tenant: Tenant, email: str = "doc@example.com") -> Invitation:
    return invite_member(app=tenant.app, email=email, role="viewer", now=timezone.now())


def link_in(mail: Mail) -> tuple[str, str]:
    """(id, signature) of the link."""
    url = urlsplit(re.search(r"https?://\S+/admin/invitations/\S+", mail.text)[0])
    return url.path.split("/")[-2], parse_qs(url.query)["signature"][0]


def reasons() -> list[tuple[str, str]]:
    return list(Delivery.objects.order_by("id").values_list("state", "reason"))


@pytest.mark.parametrize("mode", ["live", "test"])
@pytest.mark.django_db(transaction=True)
def test_mail_link_finds_the_invitation(make_tenant: MakeTenant, mails: Any, mode: str) -> None:
    tenant = make_tenant(mode=mode, name="Harbour")
    invitation = invitation_of(tenant)

    run_dispatcher(Delivery.EMAIL)

    (mail,) = mails.mails
    number, signature = link_in(mail)
    found = find_invitation(number, signature, now=timezone.now())
    assert (mail.to, mail.subject) == (["doc@example.com"], "You are invited to join Harbour")
    assert (found, found.app) == (invitation, tenant.app)
    for bad in (signature + "x", "", "0.x"):
        with pytest.raises(BadInvitationLink, match="no longer valid"):
            find_invitation(number, bad, now=timezone.now())
    with pytest.raises(BadInvitationLink, match="expired"):
        find_invitation(number, signature, now=timezone.now() + timedelta(days=8))


@pytest.mark.django_db(transaction=True)
def test_resent_invitation_ends_first_link_and_mail(tenant: Tenant, mails: Any) -> None:
    invitation = invitation_of(tenant)
    run_dispatcher(Delivery.EMAIL)
    with pytest.raises(SentRecently):
        resend_invitation(invitation, now=timezone.now())
    later = timezone.now() + timedelta(minutes=6)
    resend_invitation(invitation, now=later)
    resend_invitation(invitation, now=later + timedelta(minutes=6))

    run_dispatcher(Delivery.EMAIL)

    first, second = mails.mails
    with pytest.raises(BadInvitationLink):
        find_invitation(*link_in(first), now=timezone.now())
    assert find_invitation(*link_in(second), now=timezone.now()) == invitation
    ended = ("cancelled", "The invitation has ended or was sent again.")
    assert reasons() == [("delivered", ""), ended, ("delivered", "")]


@pytest.mark.django_db(transaction=True)
def test_a_revoked_invitation_is_not_sent(tenant: Tenant, mails: Any) -> None:
    invitation = invitation_of(tenant)
    revoke_invitation(invitation, now=timezone.now())

    run_dispatcher(Delivery.EMAIL)

    assert mails.mails == []
    assert reasons() == [("cancelled", "The invitation has ended or was sent again.")]
    with pytest.raises(NotFound):
        resend_invitation(invitation, now=timezone.now() + timedelta(hours=1))


def test_an_expired_invitation_can_be_replaced(tenant: Tenant) -> None:
    old = invitation_of(tenant)
    Invitation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    new = invitation_of(tenant)

    assert list(Invitation.objects.open()) == [new] != [old]


# --- Accepting ------------------------------------------------------------------------------------
def test_accepting_creates_account_and_membership_once(tenant: Tenant) -> None:
    invitation = invitation_of(tenant)

    member = accept_invitation(invitation, password="harbour-lights-7", now=timezone.now())

    assert (str(member), member.account.check_password("harbour-lights-7")) == (
        "doc@example.com is viewer of Harbour",
        True,
    )
    with pytest.raises(NotFound):
        accept_invitation(invitation, password="another-one-8", now=timezone.now())
    assert Account.objects.get(email="doc@example.com").check_password("harbour-lights-7")


def test_accepting_keeps_an_existing_account(tenant: Tenant) -> None:
    Account.objects.create_user("doc@example.com", "harbour-lights-7")
    invitation = invitation_of(tenant)

    accept_invitation(invitation, password="stolen-words-9", now=timezone.now())

    assert Account.objects.get(email="doc@example.com").check_password("harbour-lights-7")
    assert listed(tenant) == [("doc@example.com", "viewer", "active")]


def test_accepting_keeps_a_higher_role(tenant: Tenant) -> None:
    invitation = invitation_of(tenant)
    tenant.member("doc@example.com", "owner")

    accept_invitation(invitation, password=None, now=timezone.now())

    assert listed(tenant) == [("doc@example.com", "owner", "active")]
