"""Members of an app, their roles, and how they get a password."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps_config.models import Account, Credential, Invitation, Membership
from notifications.models import Delivery
from office.notifications.mail_file_viewer import FILE_BACKEND
from tests.office.staff import log_in_now, member, messages_of, secret_on, superuser
from tests.world import Tenant

pytestmark = pytest.mark.django_db


def page_of(tenant: Tenant) -> str:
    return reverse("admin:apps_config_membership_of", args=[tenant.app.pk])


def roles(tenant: Tenant) -> dict[str, str]:
    return dict(tenant.app.memberships.values_list("account__email", "role"))


def post(client: Client, tenant: Tenant, **given: Any) -> Any:
    return client.post(page_of(tenant), given, follow=True)


def number_of(tenant: Tenant, email: str) -> int:
    return tenant.app.memberships.get(account__email=email).pk


def invitation_in(tenant: Tenant, email: str) -> str:
    return str(tenant.app.invitations.open().get(email=email).pk)


@pytest.mark.parametrize(
    ("email", "sentence"),
    [
        ("ıda@example.com", "May have no letters except a to z before the @."),
        ("ida@ſpam.example", "Must have a valid domain after the @."),
    ],
)
def test_lookalike_addresses_are_refused(tenant: Tenant, email: str, sentence: str) -> None:
    staff = superuser()
    account = {"email": email, "usable_password": "false"}
    app = {"slug": "new", "name": "New", "mode": "live", "invited_email": email}

    pages = [
        post(member(tenant.app, "owner"), tenant, invite="1", email=email, role="viewer"),
        staff.post(reverse("admin:apps_config_account_add"), account),
        staff.post(reverse("admin:apps_config_app_add"), app),
    ]

    assert [sentence in page.content.decode() for page in pages] == [True] * 3
    assert set(Account.objects.values_list("email", flat=True)) == {
        "staff@example.com",
        f"owner@{tenant.app.slug}.example.com",
    }
    assert not Invitation.objects.exists()


def test_account_logs_in_by_every_spelling(tenant: Tenant) -> None:
    password = "harbour-lights-7"
    given = {"email": "Ada@MÜLLER.de", "password1": password, "password2": password}
    staff = superuser()

    staff.post(reverse("admin:apps_config_account_add"), given | {"usable_password": "true"})
    again = staff.post(
        reverse("admin:apps_config_account_add"),
        {"email": "ada@xn--mller-kva.de", "usable_password": "false"},
    )
    account = Account.objects.exclude(email="staff@example.com").get()
    Membership.objects.create(app=tenant.app, account=account, role="viewer")
    found = [
        Client().post(reverse("admin:login"), {"username": email, "password": password}).status_code
        for email in ("ada@müller.de", "ADA@xn--mller-kva.de")
    ]

    assert account.email == "ada@xn--mller-kva.de"
    assert "already exists" in again.content.decode()
    assert found == [302, 302]


def test_invitation_message_is_the_same_for_every_address(
    tenant: Tenant, mailoutbox: list[Any]
) -> None:
    Account.objects.create_user("bob@example.com", "x" * 12)
    owner = member(tenant.app, "owner", "ann@example.com")

    page = owner.get(page_of(tenant)).content.decode()
    new = post(owner, tenant, invite="1", email="Cid@Example.com", role="viewer")
    known = post(owner, tenant, invite="1", email="bob@example.com", role="editor")
    twice = post(owner, tenant, invite="1", email="bob@example.com", role="owner")
    bad = post(owner, tenant, invite="1", email="nobody", role="owner")

    assert re.search(r'<option value="viewer" selected>', page.partition('id="id_role"')[2])
    assert messages_of(new) == ["Invitation sent to cid@example.com."]
    assert messages_of(known) == ["Invitation sent to bob@example.com."]
    assert messages_of(twice) == ["This person is already invited."]
    assert "Enter a valid email address." in bad.content.decode()
    assert roles(tenant) == {"ann@example.com": "owner"}
    kinds = Delivery.objects.values_list("kind", flat=True)
    assert (list(kinds), mailoutbox) == (["invitation", "invitation"], [])


def test_invitations_are_sent_again_and_revoked(tenant: Tenant) -> None:
    owner = member(tenant.app, "owner", "ann@example.com")
    post(owner, tenant, invite="1", email="cid@example.com", role="viewer")
    number = invitation_in(tenant, "cid@example.com")

    soon = post(owner, tenant, invitation=number, resend="1")
    tenant.app.invitations.update(sent_at=timezone.now() - timedelta(minutes=6))
    later = post(owner, tenant, invitation=number, resend="1")
    asked = owner.post(page_of(tenant), {"invitation": number, "revoke": "1"})
    still_open = tenant.app.invitations.open().count()
    revoked = post(owner, tenant, **dict(asked.context["fields"]))
    gone = owner.post(page_of(tenant), {"invitation": number, "revoke": "1"})

    assert messages_of(soon) == [
        "This invitation was just sent. Wait five minutes to send it again."
    ]
    assert messages_of(later) == ["Invitation sent to cid@example.com again."]
    assert asked.context["title"] == "Revoke the invitation of cid@example.com?"
    assert still_open == 1
    assert messages_of(revoked) == ["The invitation of cid@example.com is revoked."]
    assert gone.status_code == 404


@pytest.mark.parametrize("is_staff", [True, False])
def test_page_names_the_folder_of_mail_files(tenant: Tenant, settings: Any, is_staff: bool) -> None:
    settings.EMAIL_BACKEND = FILE_BACKEND
    client = superuser() if is_staff else member(tenant.app, "owner", "ann@example.com")

    answer = post(client, tenant, invite="1", email="cid@example.com", role="viewer")

    tail = (
        "find the e-mail under Sent e-mails."
        if is_staff
        else ("ask the platform's staff for the e-mail with the link.")
    )
    assert messages_of(answer) == [
        f"Invitation sent to cid@example.com. No mail server is set: {tail}"
    ]


def test_members_are_changed_and_removed(tenant: Tenant) -> None:
    owner = member(tenant.app, "owner", "ann@example.com")
    for name in ("bob", "cid"):
        member(tenant.app, "editor", f"{name}@example.com")

    post(owner, tenant, member=number_of(tenant, "bob@example.com"), role="viewer")
    gone = post(
        owner,
        tenant,
        member=number_of(tenant, "cid@example.com"),
        remove="1",
        role="owner",
        confirmed="yes",
    )

    assert messages_of(gone) == ["cid@example.com is no longer a member."]
    assert roles(tenant) == {"ann@example.com": "owner", "bob@example.com": "viewer"}


def test_only_staff_see_details_of_accounts(tenant: Tenant) -> None:
    Account.objects.create_user("bob@example.com", name="Robert Tables")
    owner = member(tenant.app, "owner", "ann@example.com")
    account = Account.objects.get(email="bob@example.com")
    Membership.objects.create(app=tenant.app, account=account, role="viewer")

    pages = [client.get(page_of(tenant)).content.decode() for client in (owner, superuser())]

    shown = [("Robert Tables" in page, "has no password yet" in page) for page in pages]
    assert shown == [(False, False), (True, True)]


def test_last_owner_cannot_be_removed(tenant: Tenant) -> None:
    owner = member(tenant.app, "owner", "ann@example.com")
    number = number_of(tenant, "ann@example.com")

    answers = [
        post(owner, tenant, member=number, remove="1", confirmed="yes"),
        post(owner, tenant, member=number, role="editor"),
    ]

    words = "An app must have at least one owner: add another owner first."
    assert [messages_of(answer) for answer in answers] == [[words], [words]]
    assert roles(tenant) == {"ann@example.com": "owner"}


def test_owner_who_steps_down_is_redirected(tenant: Tenant) -> None:
    owner = member(tenant.app, "owner", "ann@example.com")
    member(tenant.app, "owner", "bob@example.com")

    answer = post(owner, tenant, member=number_of(tenant, "ann@example.com"), role="viewer")

    assert answer.redirect_chain == [(reverse("admin:index"), 302)]
    assert roles(tenant) == {"ann@example.com": "viewer", "bob@example.com": "owner"}


@pytest.mark.parametrize("role", ["viewer", "editor"])
def test_only_owners_see_members(tenant: Tenant, role: str) -> None:
    client = member(tenant.app, role)

    answers = [client.get(page_of(tenant)), client.post(page_of(tenant), {"invite": "1"})]
    answers.append(client.get(reverse("admin:apps_config_membership_changelist")))

    assert [answer.status_code for answer in answers] == [403, 403, 403]


def test_members_of_another_app_are_404(tenant: Tenant, make_tenant: Callable[..., Tenant]) -> None:
    other = make_tenant()
    member(other.app, "owner", "theirs@example.com")
    owner = member(tenant.app, "owner", "ann@example.com")
    number = number_of(other, "theirs@example.com")

    seen = owner.get(page_of(other))
    through_own = owner.post(page_of(tenant), {"member": number, "remove": "1"})
    listed = owner.get(reverse("admin:apps_config_membership_changelist"))

    assert (seen.status_code, through_own.status_code) == (404, 404)
    assert b"theirs@example.com" not in listed.content
    assert roles(other) == {"theirs@example.com": "owner"}


def test_staff_change_members_of_every_app(tenant: Tenant) -> None:
    member(tenant.app, "viewer", "ann@example.com")

    post(superuser(), tenant, member=number_of(tenant, "ann@example.com"), role="owner")

    assert roles(tenant) == {"ann@example.com": "owner"}


# --- Passwords ------------------------------------------------------------------------------------
def link_page(email: str) -> str:
    account = Account.objects.get(email=email)
    return reverse("admin:apps_config_account_link", args=[account.pk])


def test_password_link_works_once(tenant: Tenant) -> None:
    staff = superuser()
    caller = tenant.member("new@example.com", "viewer")
    Credential.objects.filter(account__email="new@example.com").update(description="POST /auth")
    assert staff.get(link_page("new@example.com")).status_code == 200

    link = secret_on(staff.post(link_page("new@example.com")))
    visitor = Client()
    form = visitor.get(link, follow=True)
    path = form.redirect_chain[-1][0]
    unlike = visitor.post(path, {"new_password1": "harbour-lights-7", "new_password2": "x"})
    done = visitor.post(
        path, {"new_password1": "harbour-lights-7", "new_password2": "harbour-lights-7"}
    )
    again = Client().get(link, follow=True)

    assert link.startswith("http://127.0.0.1:8000/admin/password/")
    token = link.rstrip("/").rpartition("/")[2]
    assert token not in form.content.decode()
    assert "new@example.com" in form.content.decode()
    assert re.search("two password fields didn.{1,6}t match", unlike.content.decode())
    assert b"Your password is set" in done.content
    assert b"This link is no longer valid" in again.content
    assert caller.get("/app").status == 401  # what was logged in before is not any more
    fresh = Client()
    answer = fresh.post(
        reverse("admin:login"),
        {"username": "new@example.com", "password": "harbour-lights-7", "next": "/admin/"},
    )
    assert (answer.status_code, answer.url) == (302, "/admin/")


def test_permissions_of_password_links(tenant: Tenant) -> None:
    owner = member(tenant.app, "owner", "ann@example.com")
    boss = superuser("boss@example.com")
    clerk = Account.objects.create_user("clerk@example.com", is_staff=True)
    clerk.user_permissions.set(
        Permission.objects.filter(codename__in=["change_account", "view_account"])
    )
    desk = Client()
    log_in_now(desk, clerk)

    answers = [
        owner.post(link_page("ann@example.com")),
        desk.post(link_page("ann@example.com")),
        desk.post(link_page("boss@example.com")),
        desk.post(link_page("clerk@example.com")),
        boss.post(link_page("clerk@example.com")),
    ]

    assert [answer.status_code for answer in answers] == [403, 200, 403, 403, 200]


# --- The log-in -----------------------------------------------------------------------------------
def log_in(email: str, password: str = "harbour-lights-7", client: Client | None = None) -> Any:
    body = {"username": email, "password": password, "next": "/admin/"}
    return (client or Client()).post(reverse("admin:login"), body)


def test_only_members_log_in_with_equal_refusals(tenant: Tenant) -> None:
    accounts = [
        Account.objects.create_user(f"{name}@example.com", "harbour-lights-7")
        for name in ("member", "plain")
    ]
    Membership.objects.create(account=accounts[0], app=tenant.app, role="viewer")

    entered = log_in("member@example.com")
    refused = [log_in("plain@example.com"), log_in("member@example.com", "wrong")]

    assert (entered.status_code, entered.url) == (302, "/admin/")
    errors = [list(answer.context["form"].non_field_errors()) for answer in refused]
    assert [answer.status_code for answer in refused] == [200, 200]
    assert errors[0] == errors[1] != []


def links_to_team(client: Client, path: str) -> list[str]:
    pattern = r'href="(/admin/apps_config/membership/[^"?]*)"'
    return list(dict.fromkeys(re.findall(pattern, client.get(path).content.decode())))


def test_menu_links_to_the_invitations(tenant: Tenant) -> None:
    owner = member(tenant.app, "owner", "ann@example.com")
    account = Account.objects.get()
    one_app = links_to_team(owner, "/admin/apps_config/app/")

    other = Tenant("other")
    Membership.objects.create(account=account, app=other.app, role="owner")
    listing = reverse("admin:apps_config_membership_changelist")

    assert one_app == [page_of(tenant)]
    assert links_to_team(owner, "/admin/apps_config/app/") == [listing]
    assert set(links_to_team(owner, listing)) >= {listing, page_of(tenant), page_of(other)}
