"""Video calls in the back office: the form of a project, and the page of a booking."""

from typing import Any

import pytest
from django.urls import reverse

from availability.models import Project
from external_calendars.models import Connection
from tests.external_calendars.mirrored import connect
from tests.office.conftest import Enter
from tests.office.staff import faults, form_of, messages_of
from tests.office.test_bookings import book, page_of
from tests.world import Tenant

TEMPLATE = "https://video.example/{booking_id}"


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource("Ada", timezone="Europe/Berlin")


def make_project(tenant: Tenant, ada: Any, conference: Any) -> str:
    return tenant.make_project(ada["id"], settings={"conference": conference})["id"]


def path_of(project_id: str) -> str:
    return reverse("admin:availability_project_change", args=[project_id])


def save(client: Any, project_id: str, **fields: str) -> Any:
    path = path_of(project_id)
    return client.post(path, form_of(client, path) | fields, follow=True)


def stored(project_id: str) -> Any:
    return Project.objects.get(id=project_id).settings.get("conference")


def test_form_sets_changes_and_removes_the_video_call(
    tenant: Tenant, ada: Any, enter: Enter
) -> None:
    project_id = tenant.make_project(ada["id"])["id"]
    client = enter(tenant)

    found = []
    for fields in (
        {"conference": "jitsi"},
        {"conference": "template", "conference_template": TEMPLATE},
        {},
        {"conference": "meet"},
        {"conference": ""},
    ):
        save(client, project_id, **fields)
        found.append(stored(project_id))

    assert found == [
        {"provider": "jitsi"},
        {"provider": "template", "template": TEMPLATE},
        {"provider": "template", "template": TEMPLATE},
        {"provider": "meet", "template": TEMPLATE},
        None,
    ]


def test_form_refuses_an_address_without_the_id(tenant: Tenant, ada: Any, enter: Enter) -> None:
    project_id = tenant.make_project(ada["id"])["id"]
    fields = {"conference": "template", "conference_template": "https://video.example/"}

    answer = save(enter(tenant), project_id, **fields)

    text = "Must be an https address with {booking_id} behind its host."
    assert faults(answer) == {"conference_template": [text]}
    assert stored(project_id) is None


def test_form_warns_of_resources_without_a_calendar(tenant: Tenant, ada: Any, enter: Enter) -> None:
    bob = tenant.make_resource("Bob")
    project_id = tenant.make_project(ada["id"], bob["id"])["id"]
    connect(ada, provider="google")
    client = enter(tenant)

    meet, teams, jitsi = (
        messages_of(save(client, project_id, conference=provider))
        for provider in ("meet", "teams", "jitsi")
    )

    words = (
        "These resources have no connected calendar that makes links for video calls, so their"
        " bookings have none: "
    )
    assert [f"{words}Bob." in meet, f"{words}Ada, Bob." in teams] == [True, True]
    assert not any(message.startswith(words) for message in jitsi)


def test_page_of_a_booking_links_to_the_video_call(tenant: Tenant, ada: Any, enter: Enter) -> None:
    conference = {"provider": "template", "template": TEMPLATE}
    project_id = make_project(tenant, ada, conference)
    booking = book(tenant, ada, project_id=project_id, settings={"enforce_availability": False})

    page = enter(tenant).get(page_of(booking)).content.decode()

    assert f'<a href="https://video.example/{booking["id"]}"' in page


@pytest.mark.parametrize(
    ("provider", "problem", "words"),
    [
        ("caldav", "", "No link: the booking is not in a connected calendar that makes it."),
        ("google", "unauthorized", "No link: the connected calendar has a problem."),
        ("google", "", "The connected calendar has not made the link yet."),
    ],
)
def test_page_of_a_booking_says_why_the_link_is_missing(
    tenant: Tenant, ada: Any, enter: Enter, provider: str, problem: str, words: str
) -> None:
    calendar = connect(ada, provider=provider)
    Connection.objects.filter(calendar=calendar).update(problem=problem)
    project_id = make_project(tenant, ada, {"provider": "meet"})
    booking = book(tenant, ada, project_id=project_id, settings={"enforce_availability": False})

    page = enter(tenant).get(page_of(booking)).content.decode()

    assert words in page
