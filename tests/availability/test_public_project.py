"""What a booking page is told: GET /projects/embed/:id and /projects/hosted/:slug (section 4)."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from apps_config.models import App, Credential
from apps_config.services import archive_app, issue_key
from availability.models import Project
from tests.availability.test_projects import FULL
from tests.world import NOW, Answer, Caller, Tenant, at

MakeTenant = Callable[..., Tenant]
pytestmark = pytest.mark.usefixtures("clock")

NOT_FOUND = {"error": "Project not found.", "code": "not_found", "model": "Project"}
FIELDS = {
    "name": {"title": "Name", "required": True},
    "email": {"title": "E-mail", "format": "email", "required": True},
}
LOCALIZATION = {
    "submit_button": "Book",
    "success_message": "Thank you. A message to %s is on its way.",
}
UI = {
    "availability_view": "agendaWeek",
    "time_date_format": "24h-dmy-mon",
    "show_timezone_helper": True,
    "localization": LOCALIZATION,
}


def page(project: Any, **given: Any) -> dict[str, Any]:
    """The configuration of a project of which only the name was given."""
    return {
        "id": project["id"],
        "slug": "check-up",
        "name": "Check-up",
        "booking": {"graph": "instant"},
        "customer_fields": FIELDS,
        "ui": UI,
        **given,
    }


def hosted(slug: str, **headers: str) -> Answer:
    """GET /projects/hosted/:slug without any key."""
    return Answer(Client().get(f"/v2/projects/hosted/{slug}", headers=headers))


def make_full(tenant: Tenant) -> tuple[Any, list[str]]:
    ids = [tenant.post_resource(name, meta={"secret": 1})["id"] for name in "AB"]
    return tenant.post_project(*ids[::-1], **FULL), ids[::-1]


WHOLE = {
    **{
        key: FULL[key]
        for key in (
            *("slug", "name", "availability", "availability_constraints", "booking"),
            "translations",
        )
    },
    "customer_fields": {
        "name": {"title": "Your name", "required": True, "readonly": False, "split_name": True},
        "email": FIELDS["email"],
        "insurer": FULL["customer_fields"]["insurer"],
    },
    "ui": UI
    | {
        "theme": {"colour": "red"},
        "localization": LOCALIZATION | {"submit_button": "Book"},
    },
    "reservation_time": 90,
}


# --- GET /projects/embed/:id ----------------------------------------------------------------------
def test_embedded_page_of_a_minimal_project(tenant: Tenant) -> None:
    project = tenant.post_project()

    answer = tenant.widget().get(f"/projects/embed/{project['id']}")

    assert (answer.status, answer.json) == (200, {"data": page(project)})
    assert answer.headers["Cache-Control"] == "private, max-age=60"


def test_embedded_page_with_every_field(tenant: Tenant) -> None:
    """No policies, no meta, no reminders: they are not shown, and calls have secret addresses."""
    project, ids = make_full(tenant)

    answers = [
        caller.get(f"/projects/embed/{project['id']}")
        for caller in (tenant, tenant.widget(), tenant.member("ada@example.com", "viewer"))
    ]

    expected = {"id": project["id"], **WHOLE, "resources": ids}
    assert [(answer.status, answer.json) for answer in answers] == [(200, {"data": expected})] * 3


def test_empty_values_are_left_out_at_any_depth(tenant: Tenant) -> None:
    project = tenant.post_project(
        availability={"length": None, "mode": "mutual"},
        booking={"what": "Cut", "where": "", "description": ""},
        ui={"avatar": "", "show": False, "nested": {"deeper": {}, "list": []}, "count": 0},
        customer_fields={"note": {"title": "", "required": False}},
    )

    answer = tenant.widget().get(f"/projects/embed/{project['id']}")

    assert answer.data == page(
        project,
        availability={"mode": "mutual"},
        booking={"graph": "instant", "what": "Cut"},
        ui=UI | {"show": False, "count": 0},
        customer_fields={**FIELDS, "note": {"required": False}},
    )


def test_texts_of_the_project_override_the_app(tenant: Tenant) -> None:
    own = {"submit_button": "Reserve", "other": "Words"}
    view = {"availability_view": "listing", "show_timezone_helper": False}
    project = tenant.post_project(
        ui={"localization": own, **view},
        booking={"graph": "confirm_decline"},
        customer_fields={"email": {"title": "Address"}},
    )

    answer = tenant.widget().get(f"/projects/embed/{project['id']}")

    assert answer.data == page(
        project,
        ui=UI | view | {"localization": LOCALIZATION | own},
        booking={"graph": "confirm_decline"},
        customer_fields={**FIELDS, "email": {**FIELDS["email"], "title": "Address"}},
    )


@pytest.mark.parametrize(
    ("of_app", "of_project", "expected"),
    [
        ("en-US", None, "12h-mdy-sun"),
        ("en_us", None, "12h-mdy-sun"),
        ("de", "en-US", "12h-mdy-sun"),
        ("en-US", "en-GB", "24h-dmy-mon"),
        ("en", None, "24h-dmy-mon"),
        (7, None, "24h-dmy-mon"),  # of an old row
    ],
)
def test_time_format_follows_the_language(
    tenant: Tenant, of_app: Any, of_project: str | None, expected: str
) -> None:
    project = tenant.post_project()
    App.objects.filter(id=tenant.app.id).update(settings={"language": of_app})
    Project.objects.filter(id=project["id"]).update(settings={"language": of_project})

    answers = [tenant.widget().get(f"/projects/embed/{project['id']}"), hosted("check-up")]

    expected_ui = UI | {"time_date_format": expected}
    assert [answer.data["ui"] for answer in answers] == [expected_ui] * 2


def test_time_format_of_the_project_overrides_the_language(tenant: Tenant) -> None:
    App.objects.filter(id=tenant.app.id).update(settings={"language": "en-US"})
    project = tenant.post_project(ui={"time_date_format": "24h-dmy-mon"})

    answer = tenant.widget().get(f"/projects/embed/{project['id']}")

    assert answer.data["ui"] == UI


def test_deleted_resources_are_not_offered(tenant: Tenant) -> None:
    ada, bob = (tenant.post_resource(name)["id"] for name in ("Ada", "Bob"))
    project = tenant.post_project(ada, bob)
    tenant.delete(f"/resources/{ada}")

    answer = tenant.widget().get(f"/projects/embed/{project['id']}")

    assert answer.data == page(project, resources=[bob])


@pytest.mark.parametrize("kind", ["unknown", "foreign", "deleted"])
def test_unknown_foreign_and_deleted_projects_have_no_page(
    tenant: Tenant, make_tenant: MakeTenant, kind: str
) -> None:
    gone = tenant.post_project()
    tenant.delete(f"/projects/{gone['id']}")
    ids = {
        "unknown": str(uuid.uuid4()),
        "foreign": make_tenant().post_project(slug="theirs")["id"],
        "deleted": gone["id"],
    }

    answer = tenant.widget().get(f"/projects/embed/{ids[kind]}")

    assert (answer.status, answer.error) == (404, NOT_FOUND)


def test_embedded_values_are_accepted_in_queries(tenant: Tenant) -> None:
    """Pages of this family send a project's own values along: that is no loosening."""
    given = {key: FULL[key] for key in ("availability", "availability_constraints")}
    project = tenant.post_project(tenant.post_resource()["id"], **given)
    widget = tenant.widget()
    told = widget.get(f"/projects/embed/{project['id']}").data

    answers = [
        widget.post("/availability", {"project_id": told["id"], **more})
        for more in (
            {},
            {
                **told["availability"],
                "resources": told["resources"],
                "constraints": told["availability_constraints"],
            },
        )
    ]

    assert [answer.status for answer in answers] == [200, 200]
    assert answers[0].json == answers[1].json != {"data": []}


# --- GET /projects/hosted/:slug -------------------------------------------------------------------
def test_hosted_page_includes_a_key(tenant: Tenant) -> None:
    project, ids = make_full(tenant)
    tenant.post("/credentials", {"kind": "widget"})

    answer = hosted(project["slug"])

    key = Credential.objects.get(hosted_project=project["id"])
    expected = {"id": project["id"], **WHOLE, "resources": ids, "app_key": key.public_text}
    assert (answer.status, answer.json) == (200, {"data": expected})
    assert answer.headers["Cache-Control"] == "public, max-age=60"
    assert (key.kind, key.projects, key.origins) == ("widget", [project["id"]], None)
    assert Caller(key.public_text).get(f"/projects/embed/{project['id']}").status == 200


def test_key_is_created_on_first_use(tenant: Tenant) -> None:
    tenant.post_project()

    answers = [hosted("check-up") for _ in range(2)]

    made = Credential.objects.get(kind="widget")
    assert [answer.data["app_key"] for answer in answers] == [made.public_text] * 2
    assert (made.app_id, made.description) == (tenant.app.id, "Hosted page")


def test_the_newest_key_that_is_valid_is_shown(tenant: Tenant, clock: Any) -> None:
    project = tenant.post_project()["id"]
    keys = []
    for expires_at in (None, None, at("2026-11-20 09:31"), None):
        scope = {"projects": [project], "hosted_project_id": project}
        key, _ = issue_key(Credential.WIDGET, app=tenant.app, expires_at=expires_at, **scope)
        keys.append(key)
        clock.shift(1)
    tenant.delete(f"/credentials/{keys[3].id}")

    before = hosted("check-up").data["app_key"]
    clock.shift(60)

    found = (before, hosted("check-up").data["app_key"])
    assert found == (keys[2].public_text, keys[1].public_text)


def test_each_page_has_a_key_of_its_own(tenant: Tenant) -> None:
    ids = [tenant.post_project(slug=slug)["id"] for slug in ("one", "two")]
    callers = [Caller(hosted(slug).data["app_key"]) for slug in ("one", "two")]

    statuses = [[caller.get(f"/projects/embed/{id_}").status for id_ in ids] for caller in callers]

    assert statuses == [[200, 404], [404, 200]]


def test_a_revoked_key_is_replaced(tenant: Tenant) -> None:
    tenant.post_project()
    first = hosted("check-up").data["app_key"]
    tenant.delete(f"/credentials/{Credential.objects.get(kind='widget').id}")

    second = hosted("check-up").data["app_key"]
    body = {"project_id": tenant.get("/projects").data[0]["id"]}

    assert (first != second, Caller(second).post("/bookings", body).status) == (True, 422)


@pytest.mark.parametrize("kind", ["unknown", "deleted", "archived"])
def test_deleted_and_archived_projects_have_no_hosted_page(tenant: Tenant, kind: str) -> None:
    project = tenant.post_project()
    if kind == "deleted":
        tenant.delete(f"/projects/{project['id']}")
    if kind == "archived":
        archive_app(tenant.app, now=NOW)

    answer = hosted("unknown" if kind == "unknown" else "check-up")

    assert (answer.status, answer.error) == (404, NOT_FOUND)
    assert not Credential.objects.filter(kind="widget").exists()


def test_test_mode_is_shown(make_tenant: MakeTenant) -> None:
    tenant = make_tenant(mode="test")
    tenant.post_project()

    answer = hosted("check-up")

    assert answer.headers["Service-TestMode"] == "true"
    assert answer.data["app_key"].startswith("test_widget_key_")


def test_unknown_query_parameters_are_refused_and_cors_is_allowed(tenant: Tenant) -> None:
    tenant.post_project()

    strict = hosted("check-up?x=1")
    browser = hosted("check-up", Origin="https://www.example.com")

    assert (strict.status, strict.json["errors"]) == (
        422,
        {"x": ["Is not a known query parameter."]},
    )
    assert browser.headers["Access-Control-Allow-Origin"] == "*"


def test_query_count_is_constant(
    tenant: Tenant, django_assert_num_queries: Callable[..., Any]
) -> None:
    for count in (1, 4):
        ids = [tenant.post_resource(f"R{number}")["id"] for number in range(count)]
        rules = [{"allow_hours": {"start": hour, "end": hour + 1}} for hour in range(count)]
        tenant.post_project(*ids, slug=f"with-{count}", availability_constraints=rules)

    for count in (1, 4):
        hosted(f"with-{count}")  # makes the key
        with django_assert_num_queries(4):
            assert len(hosted(f"with-{count}").data["resources"]) == count


# --- reservation_time, graphs ---------------------------------------------------------------------
@pytest.mark.parametrize(
    ("given", "fault"),
    [
        (0, "Ensure this value is greater than or equal to 1."),
        (3601, "Ensure this value is less than or equal to 3600."),
        ("30", "Must be an integer."),
        (1.0, "Must be an integer."),
    ],
)
def test_reservation_time_has_bounds(tenant: Tenant, given: Any, fault: str) -> None:
    answer = tenant.post("/projects", {"name": "A", "reservation_time": given})

    assert (answer.status, answer.json["errors"]) == (422, {"reservation_time": [fault]})


def test_reservation_time_is_set_and_cleared(tenant: Tenant) -> None:
    project = tenant.post_project(reservation_time=3600)
    path = f"/projects/{project['id']}"

    seen = [
        tenant.put(path, body).data["reservation_time"]
        for body in ({}, {"reservation_time": 1}, {"name": "B"}, {"reservation_time": None})
    ]

    assert (project["reservation_time"], seen) == (3600, [3600, 1, 1, None])


@pytest.mark.parametrize(
    "graph",
    [
        "instant",
        "confirm_decline",
        "instant_payment",
        "group_owner",
        "group_customer",
        "group_customer_payment",
    ],
)
def test_every_graph_is_accepted(tenant: Tenant, graph: str) -> None:
    assert tenant.post_project(booking={"graph": graph})["booking"] == {"graph": graph}
