"""Resources and projects in the back office: saved by the services, refused as the API refuses."""

import json
import re
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from django.urls import reverse

from apps_config.models import Membership
from availability.models import Project, Resource
from office.resources.project_form import DEFAULT_MODE, MODE_WORDS
from tests.office.conftest import WORKDAYS, Enter
from tests.office.staff import faults, form_of, messages_of
from tests.world import Tenant

ADD_RESOURCE = reverse("admin:availability_resource_add")
ADD_PROJECT = reverse("admin:availability_project_add")
LONG = "Entry 2: Ensure this field has no more than 200 characters."


def page_of(row: Any, kind: str) -> str:
    return reverse(f"admin:availability_{kind}_change", args=[row["id"]])


def save(client: Client, path: str, **given: Any) -> Any:
    """The page's form with some fields changed, as a browser sends it."""
    values = {
        name: json.dumps(value) if isinstance(value, dict | list) and name == "meta" else value
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


@pytest.mark.parametrize(
    ("page", "heading"),
    [
        (ADD_PROJECT, ["Projects", "New"]),
        (reverse("admin:availability_project_changelist"), ["Projects"]),
        (reverse("admin:usersessions_usersession_changelist"), ["Sessions"]),
    ],
)
def test_heading_of_an_add_page(
    tenant: Tenant, enter: Enter, page: str, heading: list[str]
) -> None:
    shown = enter().get(page).content.decode()

    title = re.search(r"<h1.*?</h1>", shown, re.DOTALL)[0]
    parts = re.findall(r"tracking-tight\">\s*(.*?)\s*</", title)
    assert parts == heading


def test_heading_keeps_urls(tenant: Tenant, enter: Enter) -> None:
    webhook = tenant.post("/webhooks", {"url": "https://example.com/hook"}).data

    page = enter(tenant).get(reverse("admin:notifications_webhook_change", args=[webhook["id"]]))

    title = re.search(r"<h1.*?</h1>", page.content.decode(), re.DOTALL)[0]
    assert "https://example.com/hook" in title


def test_add_page_has_one_save_button(tenant: Tenant, enter: Enter) -> None:
    shown = enter(tenant).get(ADD_PROJECT).content.decode()

    assert "Save and add another" in shown
    assert "Save and continue editing" not in shown


ZONE = "Must be a time zone such as Europe/Berlin."
LEAST = "Ensure this value is greater than or equal to 1."
DURATION = "Must be a duration such as '30 minutes' or '3 days 2 weeks'."


QUESTION_KINDS = {"questions-kind": ["string", "email", "select", "string"]}


@pytest.mark.parametrize(
    ("kind", "given", "errors"),
    [
        (
            "resource",
            {"timezone": "Atlantis", "image": "ftp://a.b", "tags": f"x-ray\n{'a' * 201}"}
            | {"capacity": "0", "hours_2": "9 to five", "meta": ["a"]},
            {
                "timezone": [ZONE],
                "image": ["Must be an http or https address."],
                "tags": [LONG],
                "capacity": [LEAST],
                "hours": ["Check the hours of Wednesday."],
                "meta": ["Must be an object."],
            },
        ),
        (
            "resource",
            {"name": "a\x85b", "capacity": "many", "hours_0": "12-9", "meta": '{"a": "\\u0000"}'},
            {
                "name": ["May not contain control characters or line breaks."],
                "capacity": ["Enter a whole number."],
                "hours": ["Check the hours of Monday."],
                "meta": ["This contains a NUL character."],
            },
        ),
        (
            "project",
            {
                **{"length": "x", "length_unit": "minutes", "slug": "a slug", "graph": "nonsense"},
                **{"max_per_day": "0", "hold_time": "0"},
                "questions-title": ["Name", "E-mail", "Room", ""],
                "questions-key": ["name", "email", "", ""],
                "questions-required": [""] * 4,
                "questions-options": [""] * 4,
            }
            | QUESTION_KINDS,
            {
                "length": [DURATION],
                "slug": ["May have a to z, 0 to 9, hyphens and underscores."],
                "graph": ["Select a valid choice. nonsense is not one of the available choices."],
                "max_per_day": [LEAST],
                "hold_time": [LEAST],
                "questions": ["Room: Add at least one option."],
            },
        ),
        (
            "project",
            {"length": "0", "length_unit": "minutes"}
            | {"questions-options": ["", "", "a" * 201, ""]}
            | QUESTION_KINDS,
            {
                "length": ["Must be from 1 minute to 366 days."],
                "questions": ["Phone: Ensure this field has no more than 200 characters."],
            },
        ),
        (
            "project",
            {"notice": "2", "notice_unit": "weeks", "horizon": "1", "horizon_unit": "weeks"},
            {"horizon": ["Must be 1 s to 366 days after the minimum notice."]},
        ),
        (
            "project",
            {"graph": "instant_payment", "published": "yes"},
            {"pay_url": ["Add a payment link, or do not publish the page."]},
        ),
        ("project", {"other_ui": "{'a': 1}"}, None),
    ],
)
def test_wrong_values_are_refused_at_their_field(
    tenant: Tenant, ada: Any, project: Any, enter: Enter, kind: str, given: Any, errors: Any
) -> None:
    row, model = (ada, Resource) if kind == "resource" else (project, Project)
    before = model.objects.values().get()

    answer = save(enter(tenant), page_of(row, kind), **given)

    if errors is None:  # with the place of the fault
        (sentence,) = faults(answer)["other_ui"]
        assert sentence.startswith("This is not valid JSON: ")
        assert "line 1 column 2" in sentence
    else:
        assert faults(answer) == errors
    assert model.objects.values().get() == before


@pytest.mark.parametrize(
    ("count", "unit", "seconds", "shown"),
    [
        ("5", "minutes", 300, ("5", "minutes")),
        ("90", "seconds", 90, ("90", "seconds")),
        ("", "minutes", None, ("", "minutes")),
    ],
)
def test_hold_time_in_minutes_or_seconds(
    tenant: Tenant, project: Any, enter: Enter, count: str, unit: str, seconds: Any, shown: Any
) -> None:
    client, path = enter(tenant), page_of(project, "project")

    save(client, path, hold_time=count, hold_time_unit=unit)

    form = form_of(client, path)
    assert tenant.get(f"/projects/{project['id']}").data["reservation_time"] == seconds
    assert (form["hold_time"], form["hold_time_unit"]) == shown


def test_a_new_resource_has_a_calendar_and_its_hours(tenant: Tenant, enter: Enter) -> None:
    client = enter(tenant)

    answer = save(client, ADD_RESOURCE, name="Bob", timezone="tokyo", hours_0="9-12, 13-17")

    bob = Resource.objects.get()
    assert answer.redirect_chain[-1] == (page_of({"id": bob.pk}, "resource"), 302)
    assert (bob.app, bob.name, bob.timezone, bob.email) == (tenant.app, "Bob", "Asia/Tokyo", None)
    assert [calendar.name for calendar in bob.calendars.all()] == ["Bookings"]
    days = ("Tuesday", "Wednesday", "Thursday", "Friday")
    assert bob.availability_constraints == [
        open_on("Monday", 9, 12),
        open_on("Monday", 13, 17),
        *(open_on(day, 9, 17) for day in days),
    ]


def open_on(day: str, start: int, end: int) -> Any:
    return {"allow_day_and_time": {"day": day, "start": start, "end": end}}


def test_a_new_project_has_its_address_and_resources(
    tenant: Tenant, ada: Any, enter: Enter
) -> None:
    given = {"name": "Big Check-up", "length": "45", "graph": "confirm_decline"}

    answer = save(enter(tenant), ADD_PROJECT, **given)

    project = Project.objects.get()
    assert (project.slug, project.availability) == ("big-check-up", {"length": "45 minutes"})
    assert (project.booking, project.settings) == (
        {"graph": "confirm_decline"},
        {"published": True},
    )
    assert [str(resource.pk) for resource in project.resources.all()] == [ada["id"]]
    assert messages_of(answer) == [
        "Big Check-up was created. Customers can book at"
        ' <a href="http://127.0.0.1:8000/book/big-check-up">'
        "http://127.0.0.1:8000/book/big-check-up</a>."
    ]


def test_form_of_a_new_project_offers_no_owners_side_of_a_class(
    tenant: Tenant, enter: Enter
) -> None:
    form = enter(tenant).get(ADD_PROJECT)

    kinds = [kind for kind, _ in form.context["adminform"].form.fields["graph"].choices]

    assert kinds == [
        *("instant", "confirm_decline", "instant_payment"),
        *("group_customer", "group_customer_payment"),
    ]


def test_message_about_a_new_project_without_payment_link(tenant: Tenant, enter: Enter) -> None:
    given = {"name": "Check-up", "graph": "instant_payment", "published": ""}

    answer = save(enter(tenant), ADD_PROJECT, **given)

    assert messages_of(answer) == [
        "Add a payment link: without it, the booking page takes no bookings.",
        "Check-up was created. Customers can't book it online yet.",
    ]


def test_only_changed_fields_are_saved(tenant: Tenant, project: Any, enter: Enter) -> None:
    """What a client changes while the page is open stays, and so does what the page left alone."""
    client, path = enter(tenant), page_of(project, "project")
    form = form_of(client, path)
    tenant.put(
        f"/projects/{project['id']}",
        {"meta": {"size": "XL"}, "availability": {"mode": "mutual"}, "name": "Renamed"}
        | {"ui": {"colour": "red", "localization": {"title": "Hi"}}},
    )

    changed = {
        "length": "45",
        "buffer": "",
        "meta": json.dumps({"colour": "blue"}),
        "submit_button": "Reserve",
        "questions-title": ["Name", "E-mail", "Mobile", ""],
    }
    client.post(path, form | changed)

    row = Project.objects.get()
    assert (row.name, row.slug) == ("Renamed", project["slug"])
    assert row.availability == {"length": "45 minutes", "mode": "mutual"}
    assert row.meta == {"colour": "blue", "size": "XL"}
    assert row.ui == {"colour": "red", "localization": {"title": "Hi", "submit_button": "Reserve"}}
    assert row.customer_fields == {"phone": {"title": "Mobile", "required": True, "position": 2}}
    assert row.settings == {"max_per_day": 3}


def test_saving_an_untouched_page_changes_nothing(tenant: Tenant, ada: Any, enter: Enter) -> None:
    given = {
        "availability": {
            "length": None,
            "buffer": "1 hour 30 mins",
            "from": "2 days",
            "to": "3 weeks",
        }
        | {"mode": "exclusive", "round_to_nearest_hour": False, "timeslot_increments": "15 min"},
        "booking": {"graph": "group_customer", "what": "A\nb".replace("\n", " ")},
        "customer_fields": {
            "comment": {},
            "name": {"title": "Who", "split_name": True},
            "room": {"enum": ["a", "b"], "prefilled": 7, "readonly": False},
            "agreed": {"format": "boolean", "title": "Agreed"},
        },
        "ui": {"localization": {"success_message": "Bye", "x": 1}, "y": [1]},
        "settings": {"min_cancel_time": "1 day", "enforce_availability": False, "language": "en"},
        "availability_constraints": WORKDAYS,
        "meta": {"a": {"b": [1, "2"]}},
    }
    project = tenant.make_project(ada["id"], **given)
    before = tenant.get(f"/projects/{project['id']}").data
    client = enter(tenant)

    save(client, page_of(project, "project"))
    resource = tenant.make_resource("Eve", tags=["a, b", "c"], availability_constraints=WORKDAYS)
    seen = tenant.get(f"/resources/{resource['id']}?include=availability_constraints").data
    save(client, page_of(resource, "resource"))

    same = {"updated_at": None}
    assert tenant.get(f"/projects/{project['id']}").data | same == before | same
    again = tenant.get(f"/resources/{resource['id']}?include=availability_constraints").data
    assert again | same == seen | same


def test_calendars_are_added_and_renamed(tenant: Tenant, ada: Any, enter: Enter) -> None:
    client, path = enter(tenant), page_of(ada, "resource")
    new = {"calendars-TOTAL_FORMS": "2", "calendars-1-name": "Holidays"}

    save(client, path, **new, **{"calendars-0-name": "Main", "calendars-1-description": "Off"})
    refused = save(client, path, **{"calendars-0-name": "a\x85b"})

    rows = Resource.objects.get().calendars.order_by("id").values_list("name", "description")
    assert list(rows) == [("Main", ""), ("Holidays", "Off")]
    assert refused.status_code == 200


def test_hours_replace_weekly_rules_and_keep_dates(tenant: Tenant, enter: Enter) -> None:
    dates = {"block_period": {"start": "2030-01-01 00:00:00", "end": "2030-01-02 00:00:00"}}
    rules = [*WORKDAYS, dates, {"block_hours": {"start": 12, "end": 13}}]
    ada = tenant.make_resource("Ada", availability_constraints=rules)
    client, path = enter(tenant), page_of(ada, "resource")
    shown = [form_of(client, path)[f"hours_{day}"] for day in range(7)]

    closed = {f"hours_{day}": "" for day in range(1, 7)}
    save(client, path, hours_0="9:30-12, 12-16", **closed)

    assert shown == ["09:00-12:00, 13:00-17:00"] * 5 + ["", ""]
    assert tenant.get(f"/resources/{ada['id']}?include=availability_constraints").data[
        "availability_constraints"
    ] == [{"allow_day_and_time": {"day": "Monday", "start": "09:30", "end": 16}}, dates]


def test_a_question_is_added_moved_and_removed(tenant: Tenant, project: Any, enter: Enter) -> None:
    client, path = enter(tenant), page_of(project, "project")
    form = form_of(client, path)
    rows = {
        "questions-key": ["name", "", "email", "phone"],
        "questions-title": ["Name", "Which room?", "E-mail", ""],
        "questions-kind": ["string", "select", "email", "tel"],
        "questions-required": ["yes", "yes", "yes", ""],
        "questions-options": ["", "Red\r\nBlue", "", ""],
    }

    client.post(path, form | rows)

    assert Project.objects.get().customer_fields == {
        "which_room": {
            "title": "Which room?",
            "format": "select",
            "required": True,
            "enum": ["Red", "Blue"],
            "position": 1,
        },
        "email": {"position": 2},
    }
    page = client.get(f"/book/{project['slug']}").context["fields"]
    assert [field.title for field in page] == ["Name", "Which room?", "E-mail"]


def test_first_reminder_replaces_reminders_of_the_app(
    tenant: Tenant, project: Any, enter: Enter
) -> None:
    client, path = enter(tenant), page_of(project, "project")
    reminder = {"when_time": "24", "when_unit": "hours", "when_type": "before", "type": "email"}
    row = {f"event_notifications-0-{name}": value for name, value in reminder.items()}
    row["event_notifications-0-recipient"] = "customer"

    save(client, path, **row, **{"event_notifications-TOTAL_FORMS": "1"})

    assert tenant.get(f"/projects/{project['id']}").data["event_notifications"] == [
        {
            "type": "email",
            "settings": {"recipient": "customer"},
            "when": {"type": "before", "unit": "hours", "time": 24},
        }
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('{"a": 1}', ""),
        ("", ""),
        ("[1]", "Must be an object."),
        ('{"a": 1,\n "b" 2}', "This is not valid JSON: "),
    ],
)
def test_json_check_of_input(tenant: Tenant, enter: Enter, text: str, error: str) -> None:
    answer = enter(tenant).post(reverse("admin:json_check"), text, content_type="text/plain")

    found = answer.json()["data"]["error"]
    assert found[: len("This is not valid JSON: ")] == error
    assert ("line 2 column 6" in found) is error.startswith("This is")


def test_a_payment_project_without_a_payment_link_is_warned_of(
    tenant: Tenant, project: Any, enter: Enter
) -> None:
    client, path = enter(tenant), page_of(project, "project")
    address = {"payment_url": "https://pay.example.com/"}

    without = save(client, path, graph="instant_payment")
    with_link = save(client, path, **address)

    assert messages_of(without)[0] == (
        "Add a payment link: without it, the booking page takes no bookings."
    )
    assert len(messages_of(with_link)) == 1
    booking = {"what": "Check-up", "graph": "instant_payment"}
    assert Project.objects.get().booking == booking | address


def test_removed_length_is_the_default(tenant: Tenant, project: Any, enter: Enter) -> None:
    save(enter(tenant), page_of(project, "project"), length="")

    assert Project.objects.get().availability == {"length": "1 hour", "buffer": "5 minutes"}


def test_new_buffer_keeps_before_and_after(tenant: Tenant, project: Any, enter: Enter) -> None:
    client, path = enter(tenant), page_of(project, "project")

    save(client, path, buffer_before="", buffer_after="20")
    save(client, path, buffer="10")

    assert Project.objects.get().availability == {
        "length": "30 minutes",
        "buffer": "10 minutes",
        "buffer_after": "20 minutes",
    }


def test_pace_of_a_project_is_changed_and_removed(
    tenant: Tenant, project: Any, enter: Enter
) -> None:
    client, path = enter(tenant), page_of(project, "project")

    def pace() -> Any:
        return Project.objects.get().availability.get("max_starts")

    half = save(client, path, starts_quantity="4")
    assert list(half.context["adminform"].form.errors) == ["starts_per"]
    save(client, path, starts_quantity="4", starts_per="15")
    assert pace() == {"quantity": 4, "per": "15 minutes"}
    save(client, path, starts_quantity="5")
    assert pace() == {"quantity": 5, "per": "15 minutes"}
    save(client, path, starts_quantity="", starts_per="")
    assert pace() is None


def test_party_of_a_resource_is_changed_and_removed(tenant: Tenant, ada: Any, enter: Enter) -> None:
    client, path = enter(tenant), page_of(ada, "resource")

    def party() -> Any:
        return Resource.objects.get().party

    half = save(client, path, party_min="2")
    assert list(half.context["adminform"].form.errors) == ["party_max"]
    save(client, path, party_min="2", party_max="4")
    assert party() == {"min": 2, "max": 4}
    save(client, path, party_max="6")
    assert party() == {"min": 2, "max": 6}
    save(client, path, party_min="", party_max="")
    assert party() is None


def test_new_zone_moves_all_day_events(tenant: Tenant, ada: Any, enter: Enter) -> None:
    event = {"calendar_id": ada["calendars"][0]["id"], "what": "Holiday", "all_day": True}
    tenant.post("/events", event | {"start": "2026-11-23", "end": "2026-11-24"})

    save(enter(tenant), page_of(ada, "resource"), timezone="America/New_York")

    event = Resource.objects.get().events.get()
    assert event.start.isoformat() == "2026-11-23T05:00:00+00:00"


def test_taken_addresses_and_slugs_are_refused_at_their_field(
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
        {"slug": ["Another project has this address."]},
    ]


@pytest.mark.parametrize(
    ("email", "sentence"),
    [
        ("ada@MÜLLER.de", "Another resource has this e-mail address."),
        ("ada@ſpam.example", "Must have a valid domain after the @."),
        ("ıda@example.com", "May have no letters except a to z before the @."),
    ],
)
def test_the_address_of_a_resource_is_checked(
    tenant: Tenant, ada: Any, enter: Enter, email: str, sentence: str
) -> None:
    tenant.make_resource("Bob", email="Ada@xn--mller-kva.de")

    answer = save(enter(tenant), page_of(ada, "resource"), email=email)

    assert faults(answer) == {"email": [sentence]}


def test_app_of_a_row_cannot_be_changed(
    tenant: Tenant, ada: Any, project: Any, enter: Enter
) -> None:
    other = Tenant("other")
    client = enter()

    for row, kind in ((ada, "resource"), (project, "project")):
        save(client, page_of(row, kind), app=str(other.app.pk), name="Renamed")

    assert (Resource.objects.get().app, Project.objects.get().app) == (tenant.app, tenant.app)
    assert (Resource.objects.get().name, Project.objects.get().name) == ("Renamed", "Renamed")


@pytest.mark.parametrize(
    "mode",
    [
        DEFAULT_MODE,
        *(
            pytest.param(mode, marks=() if number == 0 else pytest.mark.deep)
            for number, mode in enumerate(mode for mode in MODE_WORDS if mode != DEFAULT_MODE)
        ),
    ],
)
def test_modes_are_chosen_by_label(tenant: Tenant, project: Any, enter: Enter, mode: str) -> None:
    client, path = enter(tenant), page_of(project, "project")
    page = client.get(path).content.decode()

    save(client, path, mode=mode)

    assert str(MODE_WORDS[mode]) in page
    stored = tenant.get(f"/projects/{project['id']}").data["availability"].get("mode")
    assert stored in ({mode, None} if mode == DEFAULT_MODE else {mode})


def test_resource_of_another_app_cannot_be_added(
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

    assert [str(resource.pk) for resource in Project.objects.get().resources.all()] == [ada["id"]]


def test_add_permission_is_per_app(tenant: Tenant, enter: Enter) -> None:
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

    assert (Resource.objects.get().app, Project.objects.get().app) == (tenant.app, tenant.app)


def test_member_of_several_apps_adds_a_project(tenant: Tenant, ada: Any, enter: Enter) -> None:
    """The row has no id until its app is chosen."""
    client = enter(tenant)
    account = Membership.objects.get(app=tenant.app, role="editor").account
    Membership.objects.create(app=Tenant("other").app, account=account, role="editor")

    page = client.get(ADD_PROJECT)
    given = {"app": str(tenant.app.pk), "name": "Check-up", "resources": [ada["id"]]}
    client.post(ADD_PROJECT, form_of(client, ADD_PROJECT) | given)

    assert page.status_code == 200
    assert [row.pk for row in Project.objects.get(name="Check-up").resources.all()] == [
        UUID(ada["id"])
    ]


def test_saving_shows_a_message(tenant: Tenant, ada: Any, enter: Enter) -> None:
    answer = save(enter(tenant), page_of(ada, "resource"), first_name="Ada")

    assert len(messages_of(answer)) == 1
    assert Resource.objects.get().first_name == "Ada"


# --- Booking on the web ---------------------------------------------------------------------------
def test_public_settings_of_a_project_are_saved(tenant: Tenant, project: Any, enter: Enter) -> None:
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


def test_new_project_can_be_unpublished(tenant: Tenant, enter: Enter) -> None:
    client = enter(tenant)

    save(client, ADD_PROJECT, name="Secret", published="no")

    assert Project.objects.get(name="Secret").settings == {"published": False}


def test_a_new_payment_project_is_not_published_at_once(tenant: Tenant, enter: Enter) -> None:
    client = enter(tenant)
    given = {"name": "Massage", "graph": "instant_payment"}

    refused = save(client, ADD_PROJECT, **given, published="yes")
    made = Project.objects.count()
    save(client, ADD_PROJECT, **given, published="no")

    assert (faults(refused), made) == (
        {"published": ["Add a payment link before you publish the page."]},
        0,
    )
    assert Project.objects.get().settings == {"published": False}


def test_viewer_sees_public_settings(tenant: Tenant, project: Any, enter: Enter) -> None:
    page = enter(tenant, "viewer").get(page_of(project, "project")).content.decode()

    assert all(words in page for words in ("settings say (default)", "The link from an e-mail"))


def test_a_project_names_the_reminders_of_its_app(
    tenant: Tenant, project: Any, enter: Enter
) -> None:
    client, path = enter(tenant), page_of(project, "project")

    def note() -> str:
        parts = client.get(path).context["parts"]
        return re.sub("<[^>]*>", "", next(p["note"] for p in parts if p["title"] == "Reminders"))

    without = note()
    tenant.put(
        f"/apps/{tenant.app.slug}",
        {
            "event_notifications": [
                {
                    "type": "email",
                    "settings": {"recipient": "customer"},
                    "when": {"type": "before", "unit": "hours", "time": 24},
                }
            ]
        },
    )

    words = "The app's reminders, for projects without their own: "
    assert without == f"{words}none."
    assert note() == f"{words}24 hours before the start, e-mail to the customer."


def test_the_list_links_to_published_booking_pages(
    tenant: Tenant, project: Any, enter: Enter
) -> None:
    client = enter(tenant)

    def shown() -> str:
        page = client.get("/admin/availability/project/").content.decode()
        (cell,) = re.findall(r'class="[^"]*field-booking_page[^"]*"[^>]*>(.*?)</td>', page, re.S)
        return re.sub("<[^>]*>", "", cell).strip()

    before = shown()
    tenant.put(f"/projects/{project['id']}", {"settings": {"published": False}})

    assert (before, shown()) == (f"/book/{project['slug']}", "not published")


def more_of(answer: Any) -> dict[str, bool]:
    """Part of the project's page -> whether its rarer fields are shown."""
    parts = answer.context["parts"]
    return {str(part["title"]): part["is_more_open"] for part in parts if part["more"]}


FIRST = ["name", "graph", "length", "notice", "mode", "questions", "min_cancel_time", "published"]
CLOSED = dict.fromkeys(
    ["Service", "Times", "Who", "Rules", "Questions", "Policies", "Booking page", "Reminders"],
    False,
)


def test_a_projects_form_begins_with_eight_fields(tenant: Tenant, ada: Any, enter: Enter) -> None:
    page = page_of(tenant.make_project(ada["id"]), "project")

    answer = enter(tenant).get(page)

    shown = [
        name
        for part in answer.context["parts"]
        if part["fieldset"] and not part["fieldset"].is_collapsible
        for name in part["fieldset"].fields
    ]
    assert [name for name in shown if name != "page_address"] == FIRST
    assert more_of(answer) == CLOSED


def test_parts_with_changed_values_or_errors_are_open(
    tenant: Tenant, project: Any, enter: Enter
) -> None:
    client, page = enter(tenant), page_of(project, "project")

    changed = more_of(client.get(page))
    refused = more_of(save(client, page, max_reschedules="-1"))

    assert changed == CLOSED | {"Service": True, "Times": True}
    assert refused == CLOSED | {"Service": True, "Times": True, "Policies": True}


def test_viewers_see_all_fields_of_a_project(tenant: Tenant, project: Any, enter: Enter) -> None:
    assert more_of(enter(tenant, Membership.VIEWER).get(page_of(project, "project"))) == {}
