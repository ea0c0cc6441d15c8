"""Resources and projects in the back office: saved by the services, refused as the API refuses."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps_config.models import Account, Membership
from availability.models import Project, Resource
from tests.office.conftest import Enter, Visit, keep
from tests.office.staff import faults, form_of, told
from tests.world import Tenant

ADD_RESOURCE = reverse("admin:availability_resource_add")
ADD_PROJECT = reverse("admin:availability_project_add")


def page_of(row: Any, kind: str) -> str:
    return reverse(f"admin:availability_{kind}_change", args=[row["id"]])


def save(client: Client, path: str, **given: Any) -> Any:
    """The page's form with some fields changed, as a browser sends it."""
    values = {
        name: json.dumps(value) if isinstance(value, dict | list) else value
        for name, value in given.items()
    }
    return client.post(path, form_of(client, path) | values, follow=True)


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource("Ada", timezone="Europe/Berlin", email="ada@example.com")


@pytest.fixture
def project(tenant: Tenant, ada: Any) -> Any:
    return tenant.make_project(
        ada["id"],
        availability={"length": "30 minutes", "buffer": "5 minutes"},
        booking={"what": "Check-up"},
        customer_fields={"phone": {"title": "Phone", "required": True}},
        settings={"max_per_day": 3},
        meta={"colour": "red"},
    )


ZONE = "Select a valid choice. Berlin is not one of the available choices."
GRAPHS = (
    "graph: Must be one of instant, confirm_decline, instant_payment, group_owner,"
    " group_customer, group_customer_payment."
)


@pytest.mark.parametrize(
    ("kind", "given", "errors"),
    [
        ("resource", {"timezone": "Berlin"}, {"timezone": [ZONE]}),
        (
            "resource",
            {"name": "a\x85b"},
            {"name": ["May not contain control characters or line breaks."]},
        ),
        ("resource", {"image": "ftp://a.b"}, {"image": ["Must be an http or https address."]}),
        ("resource", {"tags": {"a": 1}}, {"tags": ["Must be a list."]}),
        ("resource", {"tags": ["a", 7]}, {"tags": ["1: Must be a string."]}),
        ("resource", {"meta": ["a"]}, {"meta": ["Must be an object."]}),
        ("resource", {"meta": '{"a": "\\u0000"}'}, {"meta": ["This contains a NUL character."]}),
        (
            "project",
            {"availability": {"length": "banana"}},
            {
                "availability": [
                    "length: Must be a duration such as '30 minutes' or '3 days 2 weeks'."
                ]
            },
        ),
        (
            "project",
            {"availability": {"lenght": "1 hour"}},
            {"availability": ["lenght: Is not known."]},
        ),
        (
            "project",
            {"availability": {"from": "2 weeks", "to": "1 week"}},
            {"availability": ["to: Must be 1 s to 366 days after `from`."]},
        ),
        ("project", {"booking": {"graph": "nonsense"}}, {"booking": [GRAPHS]}),
        ("project", {"customer_fields": ["a"]}, {"customer_fields": ["Must be an object."]}),
        (
            "project",
            {"customer_fields": {"phone": {"enum": "a"}}},
            {"customer_fields": ["phone.enum: Must be a list."]},
        ),
        (
            "project",
            {"settings": {"max_per_day": 0}},
            {"settings": ["max_per_day: Ensure this value is greater than or equal to 1."]},
        ),
        ("project", {"ui": "{'a': 1}"}, None),
        (
            "project",
            {"slug": "a slug"},
            {"slug": ["May have a to z, 0 to 9, hyphens and underscores."]},
        ),
        (
            "project",
            {"reservation_time": "0"},
            {"reservation_time": ["Ensure this value is greater than or equal to 1."]},
        ),
    ],
)
def test_what_the_api_refuses_is_refused_at_its_field(
    tenant: Tenant, ada: Any, project: Any, enter: Enter, kind: str, given: Any, errors: Any
) -> None:
    row, model = (ada, Resource) if kind == "resource" else (project, Project)
    before = model.objects.values().get()

    answer = save(enter(tenant), page_of(row, kind), **given)

    if errors is None:  # with the place of the fault
        (sentence,) = faults(answer)["ui"]
        assert sentence.startswith("This is not valid JSON: ")
        assert "line 1 column 2" in sentence
    else:
        assert faults(answer) == errors
    assert model.objects.values().get() == before


def test_a_new_resource_has_a_calendar_and_its_rules(tenant: Tenant, enter: Enter) -> None:
    client = enter(tenant)
    given = {"app": str(tenant.app.pk), "name": "Bob", "timezone": "Asia/Tokyo"}

    answer = save(client, ADD_RESOURCE, **given, tags=["x-ray"])

    bob = Resource.objects.get()
    assert answer.redirect_chain[-1][1] == 302
    assert (bob.app, bob.name, bob.timezone, bob.email, bob.tags) == (
        tenant.app,
        "Bob",
        "Asia/Tokyo",
        None,
        ["x-ray"],
    )
    assert [calendar.name for calendar in bob.calendars.all()] == ["Bookings"]


def test_a_new_project_gets_its_slug_of_its_name(tenant: Tenant, enter: Enter) -> None:
    given = {"app": str(tenant.app.pk), "name": "Big Check-up"}

    save(enter(tenant), ADD_PROJECT, **given, availability={"length": "1 hour"})

    project = Project.objects.get()
    assert (project.slug, project.availability) == ("big-check-up", {"length": "1 hour"})


def test_only_what_was_changed_is_saved(tenant: Tenant, project: Any, enter: Enter) -> None:
    """What a client changes while the page is open stays, and so does what the page left alone."""
    client, path = enter(tenant), page_of(project, "project")
    form = form_of(client, path)
    tenant.put(
        f"/projects/{project['id']}",
        {"meta": {"size": "XL"}, "availability": {"mode": "mutual"}, "name": "Renamed"},
    )

    changed = {
        "availability": json.dumps({"length": "45 minutes"}),
        "meta": json.dumps({"colour": "blue"}),
        "customer_fields": json.dumps({"phone": {"title": "Mobile"}}),
    }
    client.post(path, form | changed)

    row = Project.objects.get()
    assert (row.name, row.slug) == ("Renamed", project["slug"])
    assert row.availability == {"length": "45 minutes", "mode": "mutual"}
    assert row.meta == {"colour": "blue", "size": "XL"}
    assert row.customer_fields == {"phone": {"title": "Mobile"}}
    assert row.settings == {"max_per_day": 3}


def test_a_payment_project_without_a_payment_link_is_warned_of(
    tenant: Tenant, project: Any, enter: Enter
) -> None:
    client, path = enter(tenant), page_of(project, "project")
    booking = {"what": "Check-up", "graph": "instant_payment"}

    without = save(client, path, booking=booking)
    address = {"payment_url": "https://pay.example.com/"}
    with_link = save(client, path, booking=booking | address)

    assert told(without)[0] == (
        "The booking page takes no bookings until the project has a payment link:"
        " payment_url in “Booking”."
    )
    assert len(told(with_link)) == 1
    assert Project.objects.get().booking == booking | address


def test_a_removed_length_is_the_usual_one(tenant: Tenant, project: Any, enter: Enter) -> None:
    save(enter(tenant), page_of(project, "project"), availability={"buffer": "5 minutes"})

    assert Project.objects.get().availability == {"length": "1 hour", "buffer": "5 minutes"}


def test_a_new_zone_moves_whole_days_with_it(tenant: Tenant, ada: Any, enter: Enter) -> None:
    event = {"calendar_id": ada["calendars"][0]["id"], "what": "Holiday", "all_day": True}
    tenant.post("/events", event | {"start": "2026-11-23", "end": "2026-11-24"})

    save(enter(tenant), page_of(ada, "resource"), timezone="America/New_York")

    event = Resource.objects.get().events.get()
    assert event.start.isoformat() == "2026-11-23T05:00:00+00:00"


def test_taken_addresses_and_slugs_are_said_at_their_field(
    tenant: Tenant, ada: Any, project: Any, enter: Enter
) -> None:
    bob = tenant.make_resource("Bob")
    other = tenant.make_project(ada["id"], name="Other")
    client = enter(tenant)

    answers = [
        save(client, page_of(bob, "resource"), email="ADA@example.com"),
        save(client, page_of(other, "project"), slug=project["slug"]),
    ]

    assert [faults(answer) for answer in answers] == [
        {"email": ["Another resource has this e-mail address."]},
        {"slug": ["Another project has this slug."]},
    ]


def test_a_row_stays_in_its_app(tenant: Tenant, ada: Any, project: Any, enter: Enter) -> None:
    other = Tenant("other")
    client = enter()

    for row, kind in ((ada, "resource"), (project, "project")):
        save(client, page_of(row, kind), app=str(other.app.pk), name="Renamed")

    assert (Resource.objects.get().app, Project.objects.get().app) == (tenant.app, tenant.app)
    assert (Resource.objects.get().name, Project.objects.get().name) == ("Renamed", "Renamed")


def test_another_apps_resource_cant_be_put_into_a_project(
    tenant: Tenant, ada: Any, project: Any, enter: Enter
) -> None:
    foreign = Tenant("other").make_resource("Eve")
    client, path = enter(), page_of(project, "project")
    form = form_of(client, path)
    row = {
        "project_resources-TOTAL_FORMS": "2",
        "project_resources-1-resource": foreign["id"],
        "project_resources-1-position": "1",
        "project_resources-1-project": project["id"],
        "project_resources-1-id": "",
    }

    client.post(path, form | row)
    alone = client.post(
        reverse("admin:availability_projectresource_add"),
        {"project": project["id"], "resource": foreign["id"], "position": "1"},
    )

    assert alone.status_code == 200
    assert [str(resource.pk) for resource in Project.objects.get().resources.all()] == [ada["id"]]


def test_a_member_adds_to_no_app_where_it_may_only_look(tenant: Tenant, enter: Enter) -> None:
    other = Tenant("other")
    client = enter(tenant)
    Membership.objects.create(
        app=other.app,
        account=Membership.objects.get(app=tenant.app, role="editor").account,
        role="viewer",
    )

    for path in (ADD_RESOURCE, ADD_PROJECT):
        given = {"app": str(other.app.pk), "name": "Eve", "timezone": "UTC"}
        client.post(path, form_of(client, path) | given)

    assert (Resource.objects.count(), Project.objects.count()) == (0, 0)


def test_saving_says_so(tenant: Tenant, ada: Any, enter: Enter) -> None:
    answer = save(enter(tenant), page_of(ada, "resource"), first_name="Ada")

    assert len(told(answer)) == 1
    assert Resource.objects.get().first_name == "Ada"


@pytest.mark.parametrize("width", [1280, 390])
def test_a_refused_value_stands_at_its_field(
    visit: Callable[..., Visit], office: Tenant, editor: Account, width: int
) -> None:
    resource = office.make_resource("Ada", timezone="Europe/Berlin")
    project = office.make_project(resource["id"], availability={"length": "30 minutes"})
    page = (shown := visit(editor, page_of(project, "project"), width=width)).page

    page.wait_for("!!document.querySelector('#id_availability')")
    page.evaluate("document.querySelector('#id_availability').value = '{\"length\": \"banana\"}'")
    page.click("[name=_save]")
    page.wait_for("document.body?.innerText.includes('length: Must be a duration')")
    page.evaluate("document.querySelector('#id_availability').scrollIntoView({block: 'center'})")
    keep(shown, f"project-refused-{width}")

    assert Project.objects.get().availability == {"length": "30 minutes"}
    shown = visit(editor, page_of(resource, "resource"), width=width)
    keep(shown, f"resource-form-{width}")


# --- Booking on the web ---------------------------------------------------------------------------
def test_a_project_says_what_the_public_may(tenant: Tenant, project: Any, enter: Enter) -> None:
    path, client = page_of(project, "project"), enter(tenant)
    given = {"published": "no", "public_customers": "3", "public_reschedule": "id"}

    save(client, path, **given)
    changed = Project.objects.get(id=project["id"]).settings
    shown = {name: form_of(client, path)[name] for name in given}
    save(client, path, **dict.fromkeys(given, ""))

    assert changed == {
        "max_per_day": 3,
        "published": False,
        "public_customers": 3,
        "public_reschedule": "id",
    }
    assert shown == given
    assert Project.objects.get(id=project["id"]).settings == {"max_per_day": 3}


def test_a_new_project_is_asked_for_its_page(tenant: Tenant, enter: Enter) -> None:
    client = enter(tenant)

    save(client, ADD_PROJECT, app=str(tenant.app.id), name="Secret", published="no")

    assert Project.objects.get(name="Secret").settings == {"published": False}


def test_a_viewer_sees_what_the_public_may(tenant: Tenant, project: Any, enter: Enter) -> None:
    page = enter(tenant, "viewer").get(page_of(project, "project")).content.decode()

    assert all(words in page for words in (">published<", "the link in an e-mail"))
