"""Keys: made by owners, shown once, revoked."""

import io
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.urls import reverse
from django.utils import timezone

from apps_config.models import Credential
from apps_config.services import issue_key, revoke_key
from tests import corpus
from tests.office.staff import faults, form_of, member, messages_of, secret_on, superuser
from tests.world import Caller, Tenant

pytestmark = pytest.mark.django_db

LIST = reverse("admin:apps_config_credential_changelist")
ADD = reverse("admin:apps_config_credential_add")


def page_of(key: Credential) -> str:
    return reverse("admin:apps_config_credential_change", args=[key.pk])


def whole_database() -> str:
    out = io.StringIO()
    call_command("dumpdata", stdout=out)
    history = [model for model in apps.get_models() if hasattr(model, "tracked_fields")]
    return out.getvalue() + repr([list(model.objects.values()) for model in history])


def make(client: Any, tenant: Tenant, **given: Any) -> Any:
    form = form_of(client, f"{ADD}?app={tenant.app.pk}")
    return client.post(ADD, form | given)


def test_a_server_key_is_shown_once(tenant: Tenant, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    owner = member(tenant.app, "owner")

    answer = make(owner, tenant, kind="server", description="Night job")

    text = secret_on(answer)
    assert Caller(text).get("/app").data["slug"] == tenant.app.slug
    key = Credential.objects.get(description="Night job")
    assert (key.kind, key.app, key.resource, key.expires_at) == ("server", tenant.app, None, None)
    secret = text.removeprefix(key.prefix)
    later = [owner.get(path).content.decode() for path in (LIST, page_of(key), ADD)]
    assert [key.prefix in page for page in later] == [True, True, False]
    held = "".join([*later, whole_database(), caplog.text, str(owner.cookies)])
    assert len(secret) == 43
    assert secret not in held
    assert "no-store" in answer.headers["Cache-Control"]


def test_a_widget_key_has_a_scope(tenant: Tenant) -> None:
    owner = member(tenant.app, "owner")
    project = tenant.make_project(name="Check-up")
    sites = "https://shop.example\nHTTPS://WWW.shop.example/"

    text = secret_on(make(owner, tenant, kind="widget", projects=[project["id"]], web_sites=sites))

    key = Credential.objects.get(kind="widget")
    assert (key.public_text, key.projects) == (text, [project["id"]])
    assert key.origins == ["https://shop.example", "https://www.shop.example"]
    words = "projects: check-up; web sites: https://shop.example, https://www.shop.example"
    assert words in owner.get(page_of(key)).content.decode()


def test_wrong_scope_is_refused(tenant: Tenant, make_tenant: Callable[..., Tenant]) -> None:
    foreign = make_tenant().make_project(slug="foreign")["id"]
    deleted = tenant.make_project(slug="deleted")["id"]
    tenant.delete(f"/projects/{deleted}")
    owner = member(tenant.app, "owner")
    given = {"kind": "widget", "web_sites": "shop.example"}

    answers = [
        make(owner, tenant, projects=[project], **given)
        for project in (foreign, deleted, corpus.UNKNOWN_ID)
    ]

    assert [faults(answer) for answer in answers] == 3 * [
        {
            "projects": ["The app has no such project."],
            "web_sites": ["Must be an origin such as https://shop.example."],
        }
    ]
    assert not Credential.objects.filter(kind="widget").exists()


def test_server_key_has_limits(tenant: Tenant) -> None:
    owner = member(tenant.app, "owner")
    project = tenant.make_project(name="Check-up")
    form = form_of(owner, f"{ADD}?app={tenant.app.pk}")
    given = {
        "kind": "server",
        "access": "chosen",
        "scopes": ["availability:read", "bookings:write"],
        "projects": [project["id"]],
        "networks": "127.0.0.0/8\n2001:db8::1",
        "web_sites": "nonsense",
    }

    text = secret_on(owner.post(ADD, form | given))

    key = Credential.objects.get(prefix=text[:-43])
    assert (key.scopes, key.projects, key.addresses, key.origins) == (
        ["availability:read", "bookings:write"],
        [project["id"]],
        ["127.0.0.0/8", "2001:db8::1/128"],
        None,
    )
    words = (
        "rights: availability:read, bookings:write; projects: check-up;"
        " networks: 127.0.0.0/8, 2001:db8::1/128"
    )
    assert words in owner.get(page_of(key)).content.decode()
    listed = owner.get(LIST)
    limits = [
        listed.context["cl"].model_admin.limits(row) for row in Credential.objects.order_by("id")
    ]
    assert limits == [None, "Rights, Projects, Networks"]
    assert "Rights, Projects, Networks" in listed.content.decode()
    assert Caller(text).get("/bookings").json["error"] == "This key lacks the scope bookings:read."


def test_chosen_rights_agree_with_access(tenant: Tenant) -> None:
    owner = member(tenant.app, "owner")

    none = make(owner, tenant, kind="server", access="chosen")
    both = make(owner, tenant, kind="server", access="everything", scopes="bookings:read")
    unknown = make(owner, tenant, kind="server", access="chosen", scopes="bookings:erase")

    assert faults(none) == {"scopes": ["This list may not be empty."]}
    assert faults(both) == {
        "access": ["Some rights are chosen below. Choose none for access to everything."]
    }
    assert faults(unknown)["scopes"] == [
        "Select a valid choice. bookings:erase is not one of the available choices."
    ]
    assert Credential.objects.count() == 1


def test_wrong_network_is_refused(tenant: Tenant) -> None:
    answer = make(member(tenant.app, "owner"), tenant, kind="server", networks="office")

    assert faults(answer) == {
        "networks": ["Must be a network such as 203.0.113.0/24, or an address."]
    }


def test_kind_has_only_its_own_limits(tenant: Tenant) -> None:
    owner = member(tenant.app, "owner")

    make(owner, tenant, kind="server", description="Job", web_sites="nonsense")
    make(owner, tenant, kind="widget", networks="nonsense", scopes="keys:write")

    job, widget = (
        Credential.objects.get(kind="server", description="Job"),
        Credential.objects.get(kind="widget"),
    )
    assert (job.origins, widget.addresses, widget.scopes) == (None, None, None)


def test_widget_key_is_shown_on_its_page(tenant: Tenant) -> None:
    owner = member(tenant.app, "owner")

    text = secret_on(make(owner, tenant, kind="widget"))

    key = Credential.objects.get(kind="widget")
    assert text in owner.get(page_of(key)).content.decode()


def test_resource_key_of_one_resource(tenant: Tenant, make_tenant: Callable[..., Tenant]) -> None:
    ada, foreign = tenant.make_resource(), make_tenant().make_resource()
    owner = member(tenant.app, "owner")
    expires = timezone.now() + timedelta(days=2)
    when = {"expires_at_0": f"{expires:%Y-%m-%d}", "expires_at_1": f"{expires:%H:%M:%S}"}

    none = make(owner, tenant, kind="resource")
    other = make(owner, tenant, kind="resource", resource=foreign["id"])
    text = secret_on(make(owner, tenant, kind="resource", resource=ada["id"], **when))

    assert faults(none) == {"resource": ["This field is required."]}
    assert list(faults(other)) == ["resource"]
    key = Credential.objects.get(kind="resource", prefix=text[:-43])
    assert str(key.resource_id) == ada["id"]
    assert key.expires_at == expires.replace(microsecond=0)


def test_wrong_values_are_refused_as_in_the_api(tenant: Tenant) -> None:
    owner = member(tenant.app, "owner")
    past = {"expires_at_0": "2020-01-01", "expires_at_1": "00:00:00"}

    answers = [
        make(owner, tenant, kind="server", **past),
        make(owner, tenant, kind="access"),
        make(owner, tenant, kind="server", description="x" * 201),
    ]

    assert [list(faults(answer)) for answer in answers] == [
        ["expires_at"],
        ["kind"],
        ["description"],
    ]
    assert Credential.objects.count() == 1


@pytest.mark.parametrize("role", ["viewer", "editor"])
def test_only_owners_see_keys(tenant: Tenant, role: str) -> None:
    key = Credential.objects.get()
    client = member(tenant.app, role)
    revoke = reverse("admin:apps_config_credential_revoke", args=[key.pk])

    answers = [client.get(LIST), client.get(ADD), client.get(page_of(key)), client.post(revoke)]

    assert [answer.status_code for answer in answers] == [403, 403, 403, 403]
    assert not Credential.objects.exclude(revoked_at=None).exists()
    home = client.get(reverse("admin:index")).content.decode()
    assert LIST not in home


def test_keys_of_another_app_are_hidden(tenant: Tenant, make_tenant: Callable[..., Tenant]) -> None:
    other = make_tenant()
    foreign = other.app.credentials.get()
    owner = member(tenant.app, "owner")
    # As a viewer of the other app it is in the lists of apps, and still makes no keys of it.
    owner.account.memberships.create(app=other.app, role="viewer")

    made = make(owner, other, kind="server", app=str(other.app.pk))
    listed = owner.get(LIST)
    revoked = owner.post(reverse("admin:apps_config_credential_revoke", args=[foreign.pk]))

    assert faults(made) == {
        "app": ["Select a valid choice. That choice is not one of the available choices."]
    }
    assert [key.app for key in listed.context["cl"].result_list] == [tenant.app]
    assert revoked.status_code == 404
    assert other.app.credentials.count() == 1


def test_revoke_after_confirmation(tenant: Tenant) -> None:
    owner = member(tenant.app, "owner")
    key = Credential.objects.get()
    path = reverse("admin:apps_config_credential_revoke", args=[key.pk])

    asked = owner.get(path)
    before = tenant.get("/app").status
    done = owner.post(path, follow=True)

    assert "Revoke this key?" in asked.content.decode()
    assert (before, tenant.get("/app").status) == (200, 401)
    assert messages_of(done) == [f"{key} is revoked."]
    assert "Revoke…" not in owner.get(page_of(key)).content.decode()


def test_list_shows_the_state_of_each_key(tenant: Tenant) -> None:
    now = timezone.now()
    revoked, _ = issue_key("server", app=tenant.app, description="revoked")
    revoke_key(revoked)
    issue_key("server", app=tenant.app, description="expired", expires_at=now - timedelta(days=1))
    staff = superuser()

    page = staff.get(LIST)

    shown = [
        (key.description, page.context["cl"].model_admin.shown_state(key))
        for key in page.context["cl"].result_list
    ]
    assert shown == [
        ("expired", ("expired", "expired")),
        ("revoked", ("revoked", "revoked")),
        ("", ("valid", "valid")),
    ]
