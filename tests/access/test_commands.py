"""manage.py create_app and issue_key."""

from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from apps_config.management.commands.create_app import this_command
from apps_config.models import Account, App, Credential, Membership
from tests.world import NOW, Caller, Tenant

pytestmark = pytest.mark.usefixtures("clock")


def run(*words: str) -> list[str]:
    """The lines that the command prints."""
    out = StringIO()
    call_command(*words, stdout=out)
    return out.getvalue().splitlines()


# --- create_app -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["harbour"], ("harbour", "harbour", "live")),
        (["harbour", "--name", "Harbour Dental"], ("harbour", "Harbour Dental", "live")),
        (["h-2_x", "--mode", "test"], ("h-2_x", "h-2_x", "test")),
    ],
)
def test_create_app(db: None, words: list[str], expected: tuple[str, str, str]) -> None:
    lines = run("create_app", *words)

    app = App.objects.get()
    assert (app.slug, app.name, app.mode) == expected
    assert lines == [
        f"Created app {app.slug} ({app.mode}). To issue a key:",
        f"  {this_command()} issue_key {app.slug} --kind server",
        f"Its settings: {settings.PUBLIC_URL}/admin/, Apps, {app.name}",
    ]
    assert this_command().endswith("python manage.py")


def test_create_app_with_an_owner(db: None) -> None:
    account = Account.objects.create_user("ada@xn--mller-kva.de")

    run("create_app", "harbour", "--owner", " Ada@Müller.de")

    assert list(Membership.objects.values_list("app__slug", "account", "role")) == [
        ("harbour", account.id, "owner")
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["Harbour!"], "slug: May have a to z, 0 to 9, hyphens and underscores."),
        (["taken"], "Another app has this slug."),
        (["new", "--owner", "nobody@example.com"], "There is no account nobody@example.com."),
        (["new", "--name", "x" * 201], "name: Ensure this field has no more than 200 characters."),
    ],
)
def test_create_app_refuses(
    make_tenant: Callable[..., Tenant], words: list[str], message: str
) -> None:
    make_tenant(slug="taken")

    with pytest.raises(CommandError) as refusal:
        run("create_app", *words)

    assert str(refusal.value) == message
    assert list(App.objects.values_list("slug", flat=True)) == ["taken"]


# --- issue_key ------------------------------------------------------------------------------------
@pytest.fixture
def harbour(make_tenant: Callable[..., Tenant]) -> Tenant:
    tenant = make_tenant(slug="harbour", mode="test")
    tenant.member("owner@example.com")
    tenant.make_resource("Desk", email="desk@example.com")
    return tenant


@pytest.mark.parametrize(
    ("words", "user", "start"),
    [
        ([], "", "test_api_key_"),
        (["--kind", "server"], "", "test_api_key_"),
        (["--kind", "widget"], "", "test_widget_key_"),
        (["--kind", "access"], "owner@example.com", ""),
        (["--kind", "access", "--account", "OWNER@example.com "], "owner@example.com", ""),
        (["--kind", "resource"], "desk@example.com", ""),
        (["--kind", "resource", "--resource", "desk@example.com"], "desk@example.com", ""),
    ],
)
def test_issue_key_prints_only_the_key(
    harbour: Tenant, words: list[str], user: str, start: str
) -> None:
    lines = run("issue_key", "harbour", *words)

    assert len(lines) == 1
    assert lines[0].startswith(start)
    assert Credential.objects.filter(prefix=lines[0][:-43]).count() == 1
    answer = Caller(lines[0], user).post("/availability", {})
    assert answer.status != 401  # known, whatever it asks


def test_issue_key_with_a_description_and_an_end(harbour: Tenant) -> None:
    (key,) = run("issue_key", "harbour", "--description", "desk " * 50, "--days", "30")

    credential = Credential.objects.get(prefix=key[:-43])
    assert (credential.description, credential.expires_at) == (
        ("desk " * 50)[:200],
        NOW + timedelta(days=30),
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "There is no app nowhere."),
        (["archived"], "There is no app archived."),
        (["harbour", "--days", "0"], "--days must be from 1 to 36500."),
        (["harbour", "--days", "36501"], "--days must be from 1 to 36500."),
        (
            ["harbour", "--kind", "access", "--account", "stranger@example.com"],
            "--account must be an e-mail address of this app.",
        ),
        (
            ["harbour", "--kind", "resource", "--resource", "nobody@example.com"],
            "--resource must be an e-mail address of this app.",
        ),
    ],
)
def test_issue_key_refuses(
    harbour: Tenant, make_tenant: Callable[..., Tenant], words: list[str], message: str
) -> None:
    make_tenant(slug="stranger").member("stranger@example.com")
    App.objects.filter(id=make_tenant(slug="archived").app.id).update(archived_at=NOW)
    before = Credential.objects.count()

    with pytest.raises(CommandError) as refusal:
        run("issue_key", *words)

    assert (str(refusal.value), Credential.objects.count()) == (message, before)


@pytest.mark.parametrize(("kind", "option"), [("access", "--account"), ("resource", "--resource")])
def test_issue_key_requires_a_holder_if_there_are_several(
    harbour: Tenant, kind: str, option: str
) -> None:
    harbour.member("second@example.com")
    harbour.make_resource("Second", email="second@example.com")

    with pytest.raises(CommandError) as refusal:
        run("issue_key", "harbour", "--kind", kind)

    assert str(refusal.value) == f"{option} must be an e-mail address of this app."


def test_a_key_of_a_resource_without_an_address(tenant: Tenant, capsys: Any) -> None:
    """Its user is empty, as its holder has none."""
    tenant.make_resource("Room")

    (key,) = run("issue_key", tenant.app.slug, "--kind", "resource")

    assert Caller(key).get("/resources").json["total"] == 1
