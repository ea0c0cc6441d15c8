"""The checklist of a new app on the first page."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps_config.models import Account, App, Membership
from apps_config.services import store_logo
from common.images import SmallImage
from office.notifications.mail_file_viewer import FILE_BACKEND
from tests.office.conftest import Enter, Visit
from tests.office.staff import superuser
from tests.world import Tenant

NINE = {"start": "2030-03-05 09:00:00", "end": "2030-03-05 09:30:00"}
TEN = {"start": "2030-03-05 10:00:00", "end": "2030-03-05 10:30:00"}


@pytest.fixture(autouse=True)
def _mails_are_files(settings: Any) -> None:
    settings.EMAIL_BACKEND = FILE_BACKEND


def ticks(client: Client) -> list[tuple[str, bool]] | None:
    """The steps of the first page: (words, whether it is done); None without the list."""
    shown = client.get("/admin/").context["first_steps"]
    return shown and [(str(step.words), step.is_done) for step in shown["steps"]]


def all_steps(*done: str) -> list[tuple[str, bool]]:
    words = (
        "Set opening hours",
        "Add a service",
        "Upload your logo",
        "Set a mail server",
        "Book as a customer",
    )
    return [(step, step in done) for step in words]


def test_steps_tick_themselves_and_end_for_good(
    tenant: Tenant, enter: Enter, settings: Any
) -> None:
    client = enter(tenant)
    new = ticks(client)
    ada = tenant.make_resource("Ada")
    without_hours = ticks(client)
    hours = [{"allow_weekdays": {}}]
    tenant.put(f"/resources/{ada['id']}", {"availability_constraints": hours})
    window = {"from": "2030-03-01 00:00:00", "to": "2030-04-01 00:00:00", "length": "30 minutes"}
    project = tenant.make_project(ada["id"], availability=window)
    tenant.book(project_id=project["id"], **NINE)
    set_up = ticks(client)
    customer = {"name": "Doc", "email": "doc@example.com"}
    booked = tenant.widget().post(
        "/bookings", {"project_id": project["id"], "customer": customer, **TEN}
    )
    store_logo(tenant.app, SmallImage(b"x", "image/png"))
    nearly = ticks(client)
    settings.EMAIL_BACKEND = "notifications.mail.smtp_backend.SmtpBackend"
    done = ticks(client)
    store_logo(tenant.app, None)

    assert booked.status == 201
    assert new == without_hours == all_steps()
    assert set_up == all_steps("Set opening hours", "Add a service")
    assert nearly == [(words, words != "Set a mail server") for words, _ in all_steps()]
    assert (done, ticks(client)) == (None, None)


def test_list_is_closed_for_good(tenant: Tenant, enter: Enter) -> None:
    client = enter(tenant)
    action = client.get("/admin/").context["first_steps"]["action"]

    answer = client.post(action)

    assert (answer.status_code, answer["Location"]) == (302, "/admin/")
    assert ticks(client) is None
    assert client.get(action).status_code == 405


@pytest.mark.parametrize(
    ("role", "shown", "status"),
    [(Membership.VIEWER, None, 403), (Membership.EDITOR, all_steps(), 302)],
)
def test_only_people_who_change_the_app_see_the_list(
    tenant: Tenant, enter: Enter, role: str, shown: Any, status: int
) -> None:
    client = enter(tenant, role)
    end = reverse("admin:first_steps_end", args=[tenant.app.pk])

    found = ticks(client)
    ended = client.post(end).status_code

    assert (found, ended) == (shown, status)


def test_list_of_another_app_is_not_closed(tenant: Tenant, enter: Enter) -> None:
    other = Tenant("globex")

    answer = enter(tenant).post(reverse("admin:first_steps_end", args=[other.app.pk]))

    assert answer.status_code == 404
    assert App.objects.get(pk=other.app.pk).first_steps_ended_at is None


def test_staff_see_the_list_of_a_single_app(tenant: Tenant) -> None:
    client = superuser()
    of_one = ticks(client)
    Tenant("globex")

    assert (of_one, ticks(client)) == (all_steps(), None)


def test_links_lead_to_the_next_thing_to_do(tenant: Tenant, enter: Enter) -> None:
    client = enter(tenant)
    app_page = f"/admin/apps_config/app/{tenant.app.pk}/change/#part-branding"
    new = [step.link for step in client.get("/admin/").context["first_steps"]["steps"]]
    tenant.make_project(tenant.make_resource("Ada")["id"], slug="check-up")
    links = [step.link for step in client.get("/admin/").context["first_steps"]["steps"]]

    add = "/admin/availability/project/add/"
    assert new == ["/admin/availability/resource/add/", add, app_page, "", ""]
    assert links == ["/admin/availability/resource/", add, app_page, "", "/book/check-up"]


@pytest.mark.parametrize("width", [390, 1280])
def test_list_is_closed_with_one_click(
    office: Tenant, editor: Account, visit: Callable[..., Visit], width: int
) -> None:
    office.make_project(office.make_resource("Ada")["id"])
    page = visit(editor, "/admin/", width=width).page
    page.save_screenshot(f"today-first-steps-{width}", whole=True)
    heading = page.texts(".office-first-steps h2")

    page.click(".office-first-steps button")
    page.wait_for(
        "!document.querySelector('.office-first-steps') && document.readyState == 'complete'"
    )

    assert heading == ["First steps: 1 of 5 done"]
