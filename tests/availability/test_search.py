"""What is searched: a project's values, those of the request, and how far each key may go."""

from typing import Any

import pytest

from apps_config.models import Membership
from tests.availability.queries import MORNING, ask, lines, refusal, starts
from tests.world import Caller, Tenant

pytestmark = [pytest.mark.usefixtures("monday"), pytest.mark.both_databases]


# --- Projects -------------------------------------------------------------------------------------
@pytest.fixture
def project(tenant: Tenant, three: list[str]) -> Any:
    """Half an hour with Bob before Ada, a day's notice, half a day long."""
    ada, bob, _ = three
    return tenant.post_project(
        bob,
        ada,
        availability={
            "mode": "roundrobin_prioritized",
            "length": "30 minutes",
            "from": "1 day",
            "to": "1 day 12 hours",
            "buffer": "15 minutes",
            "timeslot_increments": "1 hour",
            "round_to_nearest_hour": False,
            "ignore_all_day_events": True,
        },
    )


def test_fields_default_to_those_of_the_project(tenant, project):
    bob = tenant.get(f"/resources/{project['resources'][0]}?include=calendars").data
    calendar = bob["calendars"][0]["id"]
    tenant.make_event(calendar, "2026-11-24T10:40:00Z", "2026-11-24T10:50:00Z")
    tenant.make_event(calendar, "2026-11-24", "2026-11-25", all_day=True)

    answer = tenant.post("/availability", {"project_id": project["id"]})

    assert lines(answer) == [
        "2026-11-24 09:00-09:30 +00:00 Bob",
        "2026-11-24 10:00-10:30 +00:00 Ada",
    ]


def test_request_overrides_the_project(tenant, project, three):
    body = {
        "project_id": project["id"],
        "resources": [three[2]],
        "mode": "exclusive",
        "length": "1 hour",
        **MORNING,
        "timeslot_increments": "15 minutes",
    }

    assert lines(tenant.post("/availability", body)) == [
        f"2026-11-23 {span} +00:00 Cleo"
        for span in ("09:15-10:15", "09:30-10:30", "09:45-10:45", "10:00-11:00", "10:15-11:15")
    ]


def test_length_null_overrides_the_project(tenant, project):
    body = {"project_id": project["id"], "length": None}

    assert lines(tenant.post("/availability", body)) == [
        "2026-11-24 09:00-11:00 +00:00 Ada",
        "2026-11-24 09:00-12:00 +00:00 Bob",
    ]


def test_null_keeps_the_value_of_the_project(tenant, project):
    names = ["resources", "mode", "from", "to", "buffer", "timeslot_increments"]
    names += ["round_to_nearest_hour", "ignore_all_day_events", "constraints"]
    plain = tenant.post("/availability", {"project_id": project["id"]})

    answer = tenant.post("/availability", {"project_id": project["id"], **dict.fromkeys(names)})

    assert answer.json == plain.json


def test_full_days_of_a_project_are_closed(tenant):
    ada = tenant.make_resource("Ada", "Asia/Kathmandu")
    project = tenant.make_project(
        ada["id"], availability={"length": None, "to": "2 days"}, settings={"max_per_day": 1}
    )
    tenant.book(
        project_id=project["id"],
        start="2026-11-23T12:00:00Z",
        end="2026-11-23T12:30:00Z",
        settings={"enforce_availability": False},
    )

    by_project = tenant.post("/availability", {"project_id": project["id"]})
    by_resource = tenant.post(
        "/availability", {"resources": [ada["id"]], "length": None, "to": "2 days"}
    )

    # The Monday of Kathmandu ends at 18:15 UTC.
    assert lines(by_project) == ["2026-11-23 18:15+00:00 to 2026-11-25 08:10+00:00 Ada"]
    assert lines(by_resource) == [
        "2026-11-23 08:15-12:00 +00:00 Ada",
        "2026-11-23 12:30+00:00 to 2026-11-25 08:10+00:00 Ada",
    ]


# --- Who asks -------------------------------------------------------------------------------------
def test_foreign_and_deleted_ids_are_unknown(tenant, make_tenant, ada):
    other = make_tenant()
    theirs = other.make_resource("Eve")
    their_project = other.make_project(theirs["id"])
    gone = tenant.make_resource("Gone")
    tenant.delete(f"/resources/{gone['id']}")

    resources = ask(tenant, ada["id"], theirs["id"], gone["id"])
    project = tenant.post("/availability", {"project_id": their_project["id"]})

    assert resources.error == refusal(
        resources__1="There is no such resource.", resources__2="There is no such resource."
    )
    assert project.error == refusal(project_id="There is no such project.")


def test_a_deleted_resource_of_a_project_is_left_out(tenant):
    ada, bob = (tenant.make_resource(name) for name in ("Ada", "Bob"))
    project = tenant.make_project(ada["id"], bob["id"], availability={"mode": "exclusive"})
    tenant.delete(f"/resources/{ada['id']}")

    answer = tenant.post("/availability", {"project_id": project["id"], "to": "2 hours"})

    assert lines(answer) == ["2026-11-23 09:00-10:00 +00:00 Bob"]


def test_viewer_may_query(tenant, ada):
    viewer = tenant.member("viewer@example.com", Membership.VIEWER)

    assert ask(viewer, ada["id"]).json == ask(tenant, ada["id"]).json


WIDGET_DAY = {"from": "2026-11-24T09:00:00Z", "to": "2026-11-24T12:00:00Z"}


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, ["09:00-09:30 Bob", "10:00-10:30 Bob", "11:00-11:30 Bob"]),
        # Wider or other values do not count.
        ({"from": "now", "to": "3 weeks", "include_past": True},
         ["09:00-09:30 Bob", "10:00-10:30 Bob", "11:00-11:30 Bob"]),
        ({"length": "1 hour", "mode": "exclusive", "timeslot_increments": "15 minutes"},
         ["09:00-09:30 Bob", "10:00-10:30 Bob", "11:00-11:30 Bob"]),
        ({"length": None, "buffer": "0"},
         ["09:00-09:30 Bob", "10:00-10:30 Bob", "11:00-11:30 Bob"]),
        # Narrower ones do.
        ({"from": "2026-11-24T09:30:00Z", "to": "2026-11-24T11:00:00Z"}, ["10:00-10:30 Bob"]),
        ({"constraints": [{"block_hours": {"start": 11, "end": 12}}]},
         ["09:00-09:30 Bob", "11:00-11:30 Bob"]),
        ({"from": "2026-11-25T09:00:00Z", "to": "2026-11-26T09:00:00Z"}, []),
        ({"from": "2026-11-20T09:00:00Z", "to": "2026-11-21T09:00:00Z"}, []),
    ],
)  # fmt: skip
def test_widget_key_may_only_narrow(tenant, project, given, found):
    body = {"project_id": project["id"], "resources": [project["resources"][0]], **given}

    answer = tenant.widget().post("/availability", body)

    assert lines(answer) == [f"2026-11-24 {row[:11]} +00:00 {row[12:]}" for row in found]


def test_widget_key_narrows_buffer_and_all_day_events(tenant, project):
    """A longer buffer and counting whole days are narrower, the reverse is not."""
    ada, widget = project["resources"][1], tenant.widget()
    calendar = tenant.get(f"/resources/{ada}?include=calendars").data["calendars"][0]["id"]
    tenant.make_event(calendar, "2026-11-24T09:45:00Z", "2026-11-24T09:50:00Z")
    body = {"project_id": project["id"], "resources": [ada]}

    plain = starts(widget.post("/availability", body))
    shorter = starts(widget.post("/availability", {**body, "buffer": 0}))
    longer = starts(widget.post("/availability", {**body, "buffer": "16 minutes"}))
    tenant.make_event(calendar, "2026-11-24", "2026-11-25", all_day=True)
    ignored = starts(widget.post("/availability", body))
    counted = starts(widget.post("/availability", {**body, "ignore_all_day_events": False}))

    assert (plain, shorter) == (["2026-11-24 09:00+00:00"], ["2026-11-24 09:00+00:00"])
    assert (longer, ignored, counted) == ([], ["2026-11-24 09:00+00:00"], [])


def test_widget_key_sets_length_if_the_project_has_none(tenant, ada):
    project = tenant.make_project(ada["id"], availability={"length": None})
    body = {"project_id": project["id"], **MORNING}
    widget = tenant.widget()

    assert lines(widget.post("/availability", {**body, "length": "45 minutes"})) == [
        "2026-11-23 09:00-09:45 +00:00 Ada",
        "2026-11-23 10:30-11:15 +00:00 Ada",
        "2026-11-23 11:15-12:00 +00:00 Ada",
    ]
    assert lines(widget.post("/availability", body)) == [
        "2026-11-23 09:00-10:00 +00:00 Ada",
        "2026-11-23 10:30-12:00 +00:00 Ada",
    ]


def test_widget_key_with_other_resources_is_refused(tenant, project, three):
    """Those of the project; without one, those of no project, and nothing of the past."""
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"public_resources": True}})
    widget = tenant.widget()

    beside = widget.post("/availability", {"project_id": project["id"], "resources": [three[2]]})
    without = ask(widget, three[2], **{**MORNING, "from": "-3 hours"}, include_past=True)

    assert beside.error == refusal(resources__0="There is no such resource.")
    assert starts(without) == ["2026-11-23 09:15+00:00", "2026-11-23 10:15+00:00"]


def test_resource_key_sees_itself_only(tenant, ada):
    bob = tenant.make_resource("Bob", email="bob@example.com")
    caller = Caller(bob["api_token"], user="bob@example.com")
    project = tenant.make_project(ada["id"], bob["id"], availability={"mode": "exclusive"})

    implied = caller.post("/availability", MORNING)
    named = ask(caller, bob["id"])
    of_project = caller.post("/availability", {"project_id": project["id"], **MORNING})
    other = ask(caller, bob["id"], ada["id"])

    assert lines(implied) == [
        f"2026-11-23 {span} +00:00 Bob" for span in ("09:00-10:00", "10:00-11:00", "11:00-12:00")
    ]
    assert named.json == of_project.json == implied.json
    assert other.error == refusal(resources__1="There is no such resource.")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/availability", 200),
        ("/availability/dates", 200),
        ("/availability/count", 200),
        ("/unavailable/slots", 403),
        ("/availability/explain", 403),
        ("/findtime", 200),
        ("/findtime/bulk", 403),
        ("/findtime/team", 403),
    ],
)
def test_permissions_of_a_widget_key_per_endpoint(tenant, ada, path, status):
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"public_resources": True}})
    body = {"resources": [ada["id"]], "queries": [{"resources": [ada["id"]]}]}

    assert tenant.widget().post(path, body).status == status
    assert tenant.post(path, body).status == 200


def test_query_writes_nothing(tenant, ada, django_assert_max_num_queries):
    """And takes as many queries for fifty resources as for one."""
    many = [tenant.make_resource(f"R{number}")["id"] for number in range(50)]
    ask(tenant, ada["id"])

    with django_assert_max_num_queries(4) as one:
        ask(tenant, ada["id"])
    with django_assert_max_num_queries(4) as fifty:
        ask(tenant, *many)

    assert len(one) == len(fifty)
    assert all(query["sql"].lstrip().startswith("SELECT") for query in fifty.captured_queries)
