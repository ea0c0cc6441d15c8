"""Resources, projects and schedules are deleted from their pages, after a confirmation."""

import re
from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.urls import reverse

from apps_config.models import Account
from tests.office.staff import member, superuser
from tests.world import Tenant

pytestmark = pytest.mark.usefixtures("clock")
SPAN = {"start": "2026-11-23T09:00:00Z", "end": "2026-11-23T10:00:00Z"}
KINDS = ["resource", "project", "schedule"]


@pytest.fixture
def rows(tenant: Tenant) -> dict[str, dict[str, Any]]:
    resource = tenant.make_resource("Ada")
    return {
        "resource": resource,
        "project": tenant.make_project(resource["id"], name="Check-up"),
        "schedule": tenant.post("/schedules", {"name": "Practice"}).data,
    }


def page(kind: str, row: dict[str, Any], name: str = "delete") -> str:
    return reverse(f"admin:availability_{kind}_{name}", args=[row["id"]])


def messages_of(answer: Any) -> list[str]:
    return [str(message) for message in get_messages(answer.wsgi_request)]


def is_there(tenant: Tenant, kind: str, row: dict[str, Any]) -> bool:
    return tenant.get(f"/{kind}s/{row['id']}").status == 200


@pytest.mark.parametrize("kind", KINDS)
def test_an_editor_deletes_a_row(tenant: Tenant, rows: Any, kind: str) -> None:
    client = member(tenant.app, "editor")
    row = rows[kind]

    linked = page(kind, row) in client.get(page(kind, row, "change")).content.decode()
    question = client.get(page(kind, row))
    kept = is_there(tenant, kind, row)
    answer = client.post(page(kind, row))

    assert linked
    assert (question.context["title"], question.context["button"], kept) == (
        f"Delete {row['name']}?",
        "Delete",
        True,
    )
    listed = reverse(f"admin:availability_{kind}_changelist")
    assert (answer.status_code, answer.url) == (302, listed)
    assert messages_of(answer) == [f"{row['name']} was deleted."]
    assert not is_there(tenant, kind, row)
    assert client.get(page(kind, row)).status_code == (404 if kind == "schedule" else 403)


@pytest.mark.parametrize(("language", "words"), [("en", "Delete"), ("de", "Löschen")])
@pytest.mark.parametrize("kind", KINDS)
def test_delete_button_is_one_word(
    tenant: Tenant, rows: Any, kind: str, language: str, words: str
) -> None:
    """Languages such as German put the name of the kind first."""
    address = page(kind, rows[kind], "change")
    shown = member(tenant.app, "editor").get(address, headers={"accept-language": language})

    link = re.search(
        rf'href="{page(kind, rows[kind])}[^>]*>(.*?)</a>', shown.content.decode(), re.S
    )
    assert link and link[1].split() == [words]


@pytest.mark.parametrize("kind", KINDS)
def test_row_in_use_cannot_be_deleted(tenant: Tenant, rows: Any, kind: str) -> None:
    """The refusal of the API, on the page of the row."""
    resource = rows["resource"]["id"]
    tenant.put(f"/resources/{resource}", {"schedule_id": rows["schedule"]["id"]})
    booked = tenant.book(project_id=rows["project"]["id"], **SPAN)
    client = superuser()

    answer = client.post(page(kind, rows[kind]))

    assert booked.status == 201
    assert (answer.status_code, answer.url) == (302, page(kind, rows[kind], "change"))
    reasons = {
        "resource": "The resource has bookings that are not completed.",
        "project": "The project has bookings that are not completed.",
        "schedule": "Resources have this schedule. Change them first.",
    }
    assert messages_of(answer) == [reasons[kind]]
    assert is_there(tenant, kind, rows[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_viewers_and_members_of_other_apps_cannot_delete(
    tenant: Tenant, rows: Any, kind: str
) -> None:
    """A viewer of the app, and an editor of another one."""
    viewer, stranger = member(tenant.app, "viewer"), member(Tenant("other").app, "editor")
    row = rows[kind]

    shown = viewer.get(page(kind, row, "change")).content.decode()
    answers = [client.post(page(kind, row)).status_code for client in (viewer, stranger)]

    assert page(kind, row) not in shown
    assert answers == [403, 404]
    assert is_there(tenant, kind, row)


def test_account_with_memberships_cannot_be_deleted(tenant: Tenant) -> None:
    staff, ann = superuser(), member(tenant.app, "viewer", "ann@example.com").account  # type: ignore[attr-defined]
    address = reverse("admin:apps_config_account_delete", args=[ann.pk])

    refused = staff.post(address)
    ann.memberships.all().delete()
    question = staff.get(address).context["title"]
    is_there = Account.objects.filter(pk=ann.pk).exists()
    answer = staff.post(address)

    assert messages_of(refused) == [
        f"ann@example.com is a member of: {tenant.app.name}. Remove the account there first."
    ]
    assert (question, is_there) == ("Delete ann@example.com?", True)
    assert messages_of(answer) == ["ann@example.com was deleted."]
    assert not Account.objects.filter(pk=ann.pk).exists()


@pytest.mark.parametrize("kind", KINDS)
def test_bulk_deletion_is_disabled(tenant: Tenant, rows: Any, kind: str) -> None:
    client = superuser()
    listed = reverse(f"admin:availability_{kind}_changelist")
    body = {"action": "delete_selected", "_selected_action": rows[kind]["id"], "post": "yes"}

    client.post(listed, body)

    assert is_there(tenant, kind, rows[kind])
