"""/projects: saved set-ups of booking pages, and their resources (section 4)."""

import re
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from availability.models import Project
from tests.queries import Queries
from tests.world import STAMP, Tenant

MakeTenant = Callable[..., Tenant]
pytestmark = pytest.mark.usefixtures("clock")

NOT_FOUND = {"error": "Project not found.", "code": "not_found", "model": "Project"}
TAKEN = {"error": "Another project has this slug.", "code": "already_exists"}
LATER = "2026-11-20T09:31:00+0000"
REMINDER = {
    "type": "email",
    "settings": {"recipient": "customer", "subject": "Soon"},
    "when": {"type": "before", "unit": "mins", "time": 60},
}
SPAN = {"start": "2026-11-23T09:00:00Z", "end": "2026-11-23T10:00:00Z"}
FULL: dict[str, Any] = {
    "slug": "harbour-check_up",
    "name": "Check-up",
    "availability": {
        "mode": "mutual",
        "length": "30 minutes",
        "from": "2 hours",
        "to": "4 weeks",
        "buffer": "10 minutes",
        "ignore_all_day_events": True,
        "timeslot_increments": "15 minutes",
        "round_to_nearest_hour": False,
    },
    "availability_constraints": [{"block_weekends": {}}, {"allow_hours": {"start": 9, "end": 17}}],
    "booking": {
        "graph": "confirm_decline",
        "what": "Check-up",
        "where": "Room 2",
        "description": "Bring\nyour card.",
        "rescheduling_url": "https://example.com/move",
    },
    "customer_fields": {
        "name": {"title": "Your name", "required": True, "readonly": False, "split_name": True},
        "insurer": {"title": "Insurer", "enum": ["A", "B"], "prefilled": "A", "format": "select"},
    },
    "ui": {"theme": {"colour": "red"}, "localization": {"submit_button": "Book"}},
    "translations": {
        "de": {
            "name": "Kontrolle",
            "what": "Kontrolltermin",
            "where": "Raum 2",
            "description": "Bringen Sie\nIhre Karte mit.",
            "submit_button": "Reservieren",
            "success_message": "Bis bald!\nNachricht an %s.",
            "questions": {"insurer": {"title": "Versicherer", "choices": {"A": "Erster"}}},
        },
        "pt-BR": {"name": "Consulta"},
    },
    "event_notifications": [REMINDER],
    "settings": {
        "allow_double_bookings": False,
        "enforce_availability": True,
        "pending_blocks": True,
        "min_cancel_time": "1 day",
        "min_reschedule_time": "2 hours",
        "max_reschedules": 2,
        "max_per_day": 5,
    },
    "reservation_time": 90,
    "meta": {"branch": 7},
}


def record(project_id: str, **given: Any) -> dict[str, Any]:
    """A project as it is written where only its name was given."""
    return {
        "id": project_id,
        "external_id": None,
        "slug": "check-up",
        "name": "Check-up",
        "resources": [],
        "requires": None,
        "steps": None,
        "order": None,
        "availability": {},
        "availability_constraints": [],
        "booking": {},
        "customer_fields": {},
        "ui": {},
        "translations": {},
        "event_notifications": None,
        "settings": {},
        "reservation_time": None,
        "meta": {},
        "created_at": STAMP,
        "updated_at": STAMP,
        **given,
    }


# --- POST -----------------------------------------------------------------------------------------
def test_create_project_with_only_a_name(tenant: Tenant) -> None:
    answer = tenant.post("/projects", {"name": "Check-up"})

    assert (answer.status, answer.json) == (201, {"data": record(answer.data["id"])})


def test_create_project_with_every_field(tenant: Tenant) -> None:
    ids = [tenant.post_resource(name)["id"] for name in "AB"]

    answer = tenant.post("/projects", {**FULL, "resources": ids[::-1], "unknown": 1})

    expected = record(answer.data["id"], **FULL, resources=ids[::-1])
    assert (answer.status, answer.json) == (201, {"data": expected})
    assert tenant.get(f"/projects/{answer.data['id']}").data == expected


LONG = ["Ensure this field has no more than 200 characters."]
ONE_MODE = (
    "Must be one of roundrobin_random, roundrobin_prioritized, roundrobin_fair, mutual, exclusive,"
    " all_free."
)
GRAPHS = (
    "instant, confirm_decline, instant_payment, group_owner, group_customer, group_customer_payment"
)
DURATION = "Must be a duration such as '30 minutes' or '3 days 2 weeks'."
MODE = {"availability.mode": [ONE_MODE]}


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("given", "errors"),
    [
        ({"name": ""}, {"name": ["This field may not be blank."]}),
        ({"name": "x" * 201}, {"name": LONG}),
        ({"name": "a\nb"}, {"name": ["May not contain control characters or line breaks."]}),
        ({"slug": "A b"}, {"slug": ["May have a to z, 0 to 9, hyphens and underscores."]}),
        ({"slug": ""}, {"slug": ["This field may not be blank."]}),
        ({"resources": ["5"]}, {"resources.0": ["Must be a UUID."]}),
        ({"resources": "all"}, {"resources": ["Must be a list."]}),
        ({"availability": "always"}, {"availability": ["Must be an object."]}),
        ({"availability": {"mode": "random"}}, MODE),
        ({"availability": {"length": "long"}}, {"availability.length": [DURATION]}),
        (
            {"availability": {"length": "59 seconds"}},
            {"availability.length": ["Must be from 1 minute to 366 days."]},
        ),
        (
            {"availability": {"length": "1 month"}},
            {"availability.length": ["Months are not allowed here."]},
        ),
        (
            {"availability": {"buffer": "-1 minute"}},
            {"availability.buffer": ["Must be from 0 seconds to 366 days."]},
        ),
        (
            {"availability": {"timeslot_increments": "25 hours"}},
            {"availability.timeslot_increments": ["Must be from 1 minute to 1 day."]},
        ),
        (
            {"availability": {"lengths": ["30 minutes", "30 mins"]}},
            {"availability.lengths": ["Must not repeat a length."]},
        ),
        (
            {"availability": {"length": "1 hour", "lengths": ["30 minutes", "45 minutes"]}},
            {"availability.lengths": ["Must contain `length`."]},
        ),
        (
            {"availability": {"length": None, "lengths": ["30 minutes"]}},
            {"availability.lengths": ["Must contain `length`."]},
        ),
        (
            {"availability": {"lengths": ["30 minutes", "1 second"]}},
            {"availability.lengths.1": ["Must be from 1 minute to 366 days."]},
        ),
        ({"availability": {"lengths": []}}, {"availability.lengths": ["Must have 1 to 20 items."]}),
        (
            {"availability": {"lengths": ["1 hour"] * 21}},
            {"availability.lengths": ["Must have at most 20 items."]},
        ),
        (
            {"availability": {"from": "soon"}},
            {"availability.from": [DURATION]},
        ),
        (
            {"availability": {"from": "2 days", "to": "1 day"}},
            {"availability.to": ["Must be 1 s to 366 days after `from`."]},
        ),
        (
            {"availability": {"to": "367 days"}},
            {"availability.to": ["Must be 1 s to 366 days after `from`."]},
        ),
        (
            {"availability": {"from": "5 weeks"}},
            {"availability.to": ["Must be 1 s to 366 days after `from`."]},
        ),
        (
            {"availability": {"round_to_nearest_hour": 1}},
            {"availability.round_to_nearest_hour": ["Must be true or false."]},
        ),
        (
            {"booking": {"graph": "no_such_graph"}},
            {"booking.graph": ["Must be one of " + GRAPHS + "."]},
        ),
        ({"booking": {"what": "x" * 201}}, {"booking.what": LONG}),
        (
            {"booking": {"rescheduling_url": "javascript:1"}},
            {"booking.rescheduling_url": ["Must be an http or https address."]},
        ),
        (
            {"customer_fields": {"name": {"required": "yes"}, "a": {"enum": "b"}}},
            {
                "customer_fields.name.required": ["Must be true or false."],
                "customer_fields.a.enum": ["Must be a list."],
            },
        ),
        ({"customer_fields": {"name": "x"}}, {"customer_fields.name": ["Must be an object."]}),
        ({"ui": "x"}, {"ui": ["Must be an object."]}),
        ({"ui": {"a": "x" * 16_384}}, {"ui": ["Must be at most 16 kB."]}),
        ({"settings": {"max_per_day": 0}},
         {"settings.max_per_day": ["Ensure this value is greater than or equal to 1."]}),
        ({"settings": {"max_reschedules": -1}},
         {"settings.max_reschedules": ["Ensure this value is greater than or equal to 0."]}),
        ({"settings": {"min_cancel_time": "soon"}}, {"settings.min_cancel_time": [DURATION]}),
        (
            {"settings": {"pending_blocks": "yes"}},
            {"settings.pending_blocks": ["Must be true or false."]},
        ),
        (
            {"event_notifications": [{**REMINDER, "when": {"unit": "weeks"}}]},
            {
                "event_notifications.0.when.type": ["This field is required."],
                "event_notifications.0.when.unit": ["Must be one of secs, mins, hours, days."],
                "event_notifications.0.when.time": ["This field is required."],
            },
        ),
        ({"meta": {str(n): n for n in range(51)}}, {"meta": ["Must have at most 50 keys."]}),
    ],
)  # fmt: skip
def test_wrong_values_are_refused(
    tenant: Tenant, given: dict[str, Any], errors: dict[str, list[str]]
) -> None:
    made = tenant.post_project()

    answers = [
        tenant.post("/projects", {"name": "Other", **given}),
        tenant.put(f"/projects/{made['id']}", given),
    ]

    found = [(answer.status, answer.json["code"], answer.json["errors"]) for answer in answers]
    assert found == [(422, "invalid", errors)] * 2
    assert tenant.get("/projects").data == [made]


def test_a_new_project_needs_a_name(tenant: Tenant) -> None:
    answer = tenant.post("/projects", {})

    assert (answer.status, answer.json["errors"]) == (422, {"name": ["This field is required."]})


def test_unknown_resources_are_refused(tenant: Tenant, make_tenant: MakeTenant) -> None:
    removed = tenant.post_resource()["id"]
    tenant.delete(f"/resources/{removed}")
    foreign = make_tenant().post_resource()["id"]
    ids = [foreign, tenant.post_resource()["id"], str(uuid.uuid4()), removed]
    project = tenant.post_project()

    answers = [
        tenant.post("/projects", {"name": "A", "resources": ids}),
        tenant.put(f"/projects/{project['id']}", {"resources": ids}),
        tenant.put(f"/projects/{project['id']}/resources", ids),
        tenant.put(f"/projects/{project['id']}/resources", {"resources": ids}),
    ]

    errors = {f"resources.{n}": ["There is no such resource."] for n in (0, 2, 3)}
    assert [(answer.status, answer.json["errors"]) for answer in answers] == [(422, errors)] * 4
    assert tenant.get("/projects").data == [project]


# --- Slugs ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Check-up", r"check-up"),
        ("  Ünïcode & Co.  ", r"unicode-co"),
        ("x" * 200, "x" * 80),
        ("歯科", r"project-[a-z0-9]{8}"),
        ("Taken", r"taken-[a-z0-9]{8}"),
    ],
)
def test_slugs_are_made_from_names(
    tenant: Tenant, make_tenant: MakeTenant, name: str, slug: str
) -> None:
    make_tenant().post_project(name="Taken")

    project = tenant.post_project(name=name)

    assert re.fullmatch(slug, project["slug"])


def test_slugs_are_unique_in_the_whole_service(tenant: Tenant, make_tenant: MakeTenant) -> None:
    make_tenant().post_project(slug="taken")
    made = tenant.post_project(slug="mine")

    answers = [
        tenant.post("/projects", {"name": "A", "slug": "taken"}),
        tenant.post("/projects", {"name": "A", "slug": "mine"}),
        tenant.put(f"/projects/{made['id']}", {"slug": "taken"}),
    ]

    assert [(answer.status, answer.error) for answer in answers] == [(409, TAKEN)] * 3
    assert tenant.get("/projects").data == [made]


def test_the_slug_of_a_removed_project_is_free(tenant: Tenant, make_tenant: MakeTenant) -> None:
    made = tenant.post_project(slug="mine")
    tenant.delete(f"/projects/{made['id']}")

    assert make_tenant().post_project(slug="mine")["slug"] == "mine"


def test_a_project_may_keep_its_slug(tenant: Tenant) -> None:
    made = tenant.post_project(slug="mine")

    answers = [tenant.put(f"/projects/{made['id']}", {"slug": one}) for one in ("mine", "new")]

    assert [(answer.status, answer.data["slug"]) for answer in answers] == [
        (200, "mine"),
        (200, "new"),
    ]


# --- PUT ------------------------------------------------------------------------------------------
@pytest.mark.matrix
@pytest.mark.parametrize(
    ("given", "changed"),
    [
        ({}, {}),
        ([], {}),
        (None, {}),
        ({"name": "Other"}, {"name": "Other"}),
        ({"availability": {}}, {}),
        ({"availability": []}, {}),
        (
            {"availability": {"length": "1 hour", "buffer": None}},
            {
                "availability": {
                    key: value
                    for key, value in {**FULL["availability"], "length": "1 hour"}.items()
                    if key != "buffer"
                }
            },
        ),
        # Null is a value of `length`: whole free intervals.
        (
            {"availability": {"length": None}},
            {"availability": {**FULL["availability"], "length": None}},
        ),
        (
            {"booking": {"what": "Other", "where": None}},
            {
                "booking": {
                    key: value
                    for key, value in {**FULL["booking"], "what": "Other"}.items()
                    if key != "where"
                }
            },
        ),
        (
            {"customer_fields": {"name": {"title": "N"}, "insurer": None, "age": {"title": "A"}}},
            {
                "customer_fields": {
                    "name": {**FULL["customer_fields"]["name"], "title": "N"},
                    "age": {"title": "A"},
                }
            },
        ),
        (
            {"ui": {"theme": {"font": "serif", "colour": None}, "x": [1]}},
            {
                "ui": {
                    "theme": {"font": "serif"},
                    "localization": {"submit_button": "Book"},
                    "x": [1],
                }
            },
        ),
        (
            {"settings": {"max_per_day": None, "max_reschedules": 3}},
            {
                "settings": {
                    key: value
                    for key, value in {**FULL["settings"], "max_reschedules": 3}.items()
                    if key != "max_per_day"
                }
            },
        ),
        ({"meta": {"branch": None, "b": 1}}, {"meta": {"b": 1}}),
        ({"availability_constraints": []}, {"availability_constraints": []}),
        (
            {"availability_constraints": [{"allow_weekends": {}}]},
            {"availability_constraints": [{"allow_weekends": {}}]},
        ),
        ({"event_notifications": []}, {"event_notifications": []}),
        ({"event_notifications": None}, {"event_notifications": None}),
        ({"event_notifications": [REMINDER] * 2}, {"event_notifications": [REMINDER] * 2}),
        ({"reminders": []}, {"event_notifications": []}),
        ({"reminders": None}, {"event_notifications": None}),
        ({"reminders": [REMINDER] * 3}, {"event_notifications": [REMINDER] * 3}),
        (
            {"reminders": [REMINDER] * 3, "event_notifications": []},
            {"event_notifications": []},
        ),
        ({"resources": []}, {"resources": []}),
    ],
)
def test_update_is_partial(tenant: Tenant, clock: Any, given: Any, changed: dict[str, Any]) -> None:
    ids = [tenant.post_resource(name)["id"] for name in "AB"]
    made = tenant.post("/projects", {**FULL, "resources": ids}).data
    clock.shift(60)

    answer = tenant.put(f"/projects/{made['id']}", given)

    values = {**FULL, "resources": ids, "updated_at": LATER, **changed}
    assert (answer.status, answer.json) == (200, {"data": record(made["id"], **values)})
    assert tenant.get(f"/projects/{made['id']}").data == answer.data


@pytest.mark.parametrize(
    ("kept", "given"),
    [
        ({"from": "1 day", "to": "1 week"}, {"from": "8 days"}),
        ({"from": "1 week", "to": "2 weeks"}, {"to": "3 days"}),
        ({"from": "5 weeks", "to": "6 weeks"}, {"to": None}),
        ({"from": "now", "to": "366 days"}, {"from": "-1 day"}),
    ],
)
def test_from_and_to_are_checked_together_after_an_update(
    tenant: Tenant, kept: dict[str, str], given: dict[str, Any]
) -> None:
    made = tenant.post_project(availability=kept)

    answer = tenant.put(f"/projects/{made['id']}", {"availability": given})

    assert (answer.status, answer.json["errors"]) == (
        422,
        {"availability.to": ["Must be 1 s to 366 days after `from`."]},
    )
    assert tenant.get(f"/projects/{made['id']}").data == made


@pytest.mark.parametrize("name", ["customer_fields", "ui", "meta"])
def test_size_of_free_objects_is_limited(tenant: Tenant, name: str) -> None:
    made = tenant.post_project(**{name: {f"a{n}": {} for n in range(30)}})

    answer = tenant.put(f"/projects/{made['id']}", {name: {f"b{n}": {} for n in range(30)}})

    assert (answer.status, answer.json["errors"]) == (422, {name: ["Must have at most 50 keys."]})


# --- GET ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("method", "below"),
    [
        ("GET", ""),
        ("PUT", ""),
        ("DELETE", ""),
        ("GET", "/resources"),
        ("PUT", "/resources"),
        ("POST", "/resources"),
        ("DELETE", "/resources/0193a4c2-0000-7000-8000-000000000011"),
    ],
)
def test_foreign_unknown_and_deleted_ids_are_not_found(
    tenant: Tenant, make_tenant: MakeTenant, method: str, below: str
) -> None:
    removed = tenant.post_project()["id"]
    tenant.delete(f"/projects/{removed}")
    foreign = make_tenant().post_project()["id"]

    answers = [
        tenant.call(method, f"/projects/{unknown_id}{below}", {})
        for unknown_id in (foreign, uuid.uuid4(), removed)
    ]

    assert [(answer.status, answer.error) for answer in answers] == [(404, NOT_FOUND)] * 3


def test_included_resources_have_all_fields(tenant: Tenant) -> None:
    resources = [tenant.post_resource(name) for name in "AB"]
    ids = [resource["id"] for resource in resources]
    whole = [tenant.get(f"/resources/{identifier}").data for identifier in ids]
    made = tenant.post_project(*ids)
    path = f"/projects/{made['id']}"

    answers = [
        tenant.get(f"{path}?include=resources,availability_constraints"),
        tenant.put(f"{path}?include=resources", {}),
        tenant.get("/projects?include=resources"),
        tenant.post("/projects?include=resources", {"name": "New", "resources": ids}),
        tenant.put(f"{path}/resources?include=resources", ids),
        tenant.post(f"{path}/resources?include=resources", {"resource_id": ids[0]}),
    ]

    expected = {**made, "resources": whole}
    shown = [answer.json["data"] for answer in answers]
    assert [answer.status for answer in answers] == [200, 200, 200, 201, 200, 201]
    assert [shown[0], shown[1], *shown[2], *shown[4:]] == [expected] * 5
    assert shown[3]["resources"] == whole


@pytest.mark.parametrize(
    ("include", "columns"), [("", {"id"}), ("?include=resources", {"id", "name", "meta"})]
)
def test_resources_are_read_whole_only_if_included(
    tenant: Tenant, four: list[str], include: str, columns: set[str]
) -> None:
    """A project may have thousands."""
    project = tenant.make_project(*four)
    with Queries(connection) as queries:
        answer = tenant.get(f"/projects/{project['id']}{include}")

    (query,) = (sql["sql"] for sql in queries if "_prefetch_related_val" in sql["sql"])
    read = {name for name in ("id", "name", "meta") if f'"availability_resource"."{name}"' in query}
    ids = [row["id"] if include else row for row in answer.data["resources"]]
    assert (ids, read) == (four, columns)


def test_resources_of_a_project_with_includes(tenant: Tenant) -> None:
    rules = [{"allow_hours": {"start": 9, "end": 17}}]
    resource = tenant.post_resource(availability_constraints=rules)
    path = f"/projects/{tenant.post_project(resource['id'])['id']}/resources"
    includes = "include=calendars,availability_constraints"

    answer = tenant.get(f"{path}?{includes}")

    assert answer.data == [tenant.get(f"/resources/{resource['id']}?{includes}").data]
    assert tenant.get(f"{path}?include=projects").status == 422


def test_unknown_includes(tenant: Tenant) -> None:
    path = f"/projects/{tenant.post_project()['id']}"

    answers = [
        tenant.get(f"{path}?include=resources.calendars"),
        tenant.get("/projects?include=resources.calendars"),
        tenant.put(f"{path}?include=resources.calendars", {"name": "Changed"}),
        tenant.post("/projects?include=resources.calendars", {"name": "A"}),
    ]

    assert [(answer.status, answer.json["errors"]) for answer in answers] == [
        (422, {"include": ["resources.calendars can't be included."]})
    ] * 4
    assert [row["name"] for row in tenant.get("/projects").data] == ["Check-up"]


def test_the_listing_newest_first(tenant: Tenant, make_tenant: MakeTenant, clock: Any) -> None:
    make_tenant().post_project()
    made = []
    for name in "ABCDE":
        clock.shift(1)
        made.insert(0, tenant.post_project(name=name))

    answer = tenant.get("/projects?limit=3&page=2")

    base = "http://127.0.0.1:8000/v2/projects?limit=3&page="
    assert answer.json == {
        "total": 5,
        "per_page": "3",
        "current_page": 2,
        "last_page": 2,
        "first_page_url": f"{base}1",
        "last_page_url": f"{base}2",
        "next_page_url": None,
        "prev_page_url": f"{base}1",
        "from": 4,
        "to": 5,
        "data": made[3:],
    }


@pytest.mark.parametrize(
    ("search", "names"),
    [
        ("slug:check-up", ["Check-up"]),
        ("slug:CHECK*", ["Check-up"]),
        ("name:*a*", ["Braces", "Consultation"]),
        ("name:*a*;slug:b*", ["Braces"]),
        ("name:nothing", []),
    ],
)
def test_search(tenant: Tenant, search: str, names: list[str]) -> None:
    for name in ("Check-up", "Braces", "Consultation"):
        tenant.post_project(name=name)

    answer = tenant.get(f"/projects?search={search}")

    assert sorted(row["name"] for row in answer.data) == names
    assert answer.json["total"] == len(names)


@pytest.mark.parametrize(
    ("query", "errors"),
    [
        ("search=id:a", {"search": ["id can't be searched."]}),
        ("slug=a", {"slug": ["Is not a known query parameter."]}),
    ],
)
def test_wrong_query_parameters_are_refused(
    tenant: Tenant, query: str, errors: dict[str, list[str]]
) -> None:
    answer = tenant.get(f"/projects?{query}")

    assert (answer.status, answer.json["errors"]) == (422, errors)


# --- The resources of a project -------------------------------------------------------------------
@pytest.fixture
def four(tenant: Tenant) -> list[str]:
    return [tenant.post_resource(name)["id"] for name in "ABCD"]


@pytest.mark.parametrize("wrap", [list, lambda ids: {"resources": ids}])
def test_resources_are_set_in_the_order_given(
    tenant: Tenant, four: list[str], wrap: Callable[[list[str]], Any]
) -> None:
    a, b, c, d = four
    made = tenant.post_project(a, b)
    path = f"/projects/{made['id']}/resources"

    answers = [tenant.put(path, wrap(ids)) for ids in ([d, b, c], [b, b, a], [a.upper()], [])]

    assert [(answer.status, answer.json) for answer in answers] == [
        (200, {"data": {**made, "resources": ids}}) for ids in ([d, b, c], [b, a], [a], [])
    ]


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        ({}, {"resources": ["This field is required."]}),
        ({"resources": None}, {"resources": ["This field may not be null."]}),
        ("all", {"body": ["Must be an object."]}),
        (["5"], {"resources.0": ["Must be a UUID."]}),
        ([str(uuid.uuid4())] * 501, {"resources": ["Must have at most 500 items."]}),
    ],
)
def test_wrong_lists_of_resources_are_refused(
    tenant: Tenant, four: list[str], body: Any, errors: dict[str, list[str]]
) -> None:
    made = tenant.post_project(*four)

    answer = tenant.put(f"/projects/{made['id']}/resources", body)

    assert (answer.status, answer.json["errors"]) == (422, errors)
    assert tenant.get(f"/projects/{made['id']}").data == made


def test_a_resource_is_added_at_the_end_and_once(tenant: Tenant, four: list[str]) -> None:
    a, b, c, _ = four
    made = tenant.post_project(b)
    path = f"/projects/{made['id']}/resources"

    answers = [tenant.post(path, {"resource_id": one}) for one in (a, c, b)]

    assert [(answer.status, answer.json) for answer in answers] == [
        (201, {"data": {**made, "resources": ids}}) for ids in ([b, a], [b, a, c], [b, a, c])
    ]


@pytest.mark.parametrize("kind", ["foreign", "unknown", "removed"])
def test_unknown_resource_cannot_be_added(
    tenant: Tenant, make_tenant: MakeTenant, four: list[str], kind: str
) -> None:
    made = tenant.post_project()
    tenant.delete(f"/resources/{four[0]}")
    ids = {
        "foreign": make_tenant().post_resource()["id"],
        "unknown": str(uuid.uuid4()),
        "removed": four[0],
    }

    answer = tenant.post(f"/projects/{made['id']}/resources", {"resource_id": ids[kind]})

    assert (answer.status, answer.json["errors"]) == (
        422,
        {"resource_id": ["There is no such resource."]},
    )


def test_resource_is_removed(tenant: Tenant, four: list[str]) -> None:
    a, b, c, d = four
    made = tenant.post_project(a, b, c)
    path = f"/projects/{made['id']}/resources"

    answers = [tenant.delete(f"{path}/{one}") for one in (b, b, d, uuid.uuid4())]

    error = {"error": "Resource not found.", "code": "not_found", "model": "Resource"}
    assert (answers[0].status, answers[0].content) == (204, b"")
    assert [(answer.status, answer.error) for answer in answers[1:]] == [(404, error)] * 3
    assert tenant.get(f"/projects/{made['id']}").data["resources"] == [a, c]


def test_the_resources_are_listed_in_their_order(tenant: Tenant, four: list[str]) -> None:
    a, b, c, d = four
    made = tenant.post_project(d, a, c, b)
    whole = {one: tenant.get(f"/resources/{one}").data for one in four}

    answer = tenant.get(f"/projects/{made['id']}/resources?limit=3&page=2")

    base = f"http://127.0.0.1:8000/v2/projects/{made['id']}/resources?limit=3&page="
    assert answer.json == {
        "total": 4,
        "per_page": "3",
        "current_page": 2,
        "last_page": 2,
        "first_page_url": f"{base}1",
        "last_page_url": f"{base}2",
        "next_page_url": None,
        "prev_page_url": f"{base}1",
        "from": 4,
        "to": 4,
        "data": [whole[b]],
    }
    shown = tenant.get(f"/projects/{made['id']}/resources").data
    assert shown == [whole[one] for one in (d, a, c, b)]


# --- DELETE ---------------------------------------------------------------------------------------
def test_project_with_future_bookings_cannot_be_deleted(tenant: Tenant, four: list[str]) -> None:
    path = f"/projects/{tenant.post_project(four[0])['id']}"
    booking = tenant.book(project_id=path.rpartition("/")[2], **SPAN).data["id"]

    before = tenant.delete(path)
    tenant.put(f"/bookings/{booking}/cancel")
    after = tenant.delete(path)

    assert (before.status, before.error) == (
        409,
        {"error": "The project has bookings that are not completed.", "code": "in_use"},
    )
    assert (after.status, after.content) == (204, b"")
    assert Project.objects.get().deleted_at is not None
    assert tenant.get("/projects").data == []
    assert tenant.get(f"/bookings/{booking}").data["project"]["name"] == "Check-up"


def test_project_with_ended_bookings_can_be_deleted(
    tenant: Tenant, four: list[str], clock: Any
) -> None:
    project = tenant.post_project(four[0])["id"]
    tenant.book(project_id=project, **SPAN)
    clock.move_to("2026-11-23T10:00:00Z")

    assert tenant.delete(f"/projects/{project}").status == 204


def test_deleted_project_cannot_be_booked_or_queried(tenant: Tenant, four: list[str]) -> None:
    project = tenant.post_project(four[0])["id"]
    tenant.delete(f"/projects/{project}")

    answers = [
        tenant.post("/availability", {"project_id": project}),
        tenant.book(project_id=project, **SPAN),
    ]

    assert [(answer.status, answer.json["errors"]) for answer in answers] == [
        (422, {"project_id": ["There is no such project."]})
    ] * 2


def test_lengths_are_merged_and_removed(tenant: Tenant) -> None:
    made = tenant.post_project(availability={"lengths": ["45 minutes", "1 hour"]})
    path = f"/projects/{made['id']}"

    answers = [
        tenant.put(path, {"availability": change})
        for change in (
            {"length": "1 hour"},
            {"length": "2 hours"},
            {"lengths": ["30 minutes", "1 hour"]},
            {"lengths": None, "length": "2 hours"},
        )
    ]

    assert [answer.status for answer in answers] == [200, 422, 200, 200]
    assert [answer.data["availability"] for answer in answers if answer.status == 200] == [
        {"lengths": ["45 minutes", "1 hour"], "length": "1 hour"},
        {"lengths": ["30 minutes", "1 hour"], "length": "1 hour"},
        {"length": "2 hours"},
    ]
