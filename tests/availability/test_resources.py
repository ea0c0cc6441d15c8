"""/resources: who or what can be booked (section 4)."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from apps_config.models import Credential
from availability.models import Resource
from tests.world import BERLIN, STAMP, Caller, Tenant

MakeTenant = Callable[..., Tenant]
pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]

NOT_FOUND = {"error": "Resource not found.", "code": "not_found", "model": "Resource"}
BOOKED = {"error": "The resource has bookings that are not completed.", "code": "in_use"}
TAKEN = {"error": "Another resource has this e-mail address.", "code": "already_exists"}
FULL = {
    "name": "Dr. Ada Berg",
    "first_name": "Ada",
    "last_name": "Berg",
    "email": "Ada@example.com",
    "image": "https://example.com/ada.png",
    "timezone": BERLIN,
    "tags": ["dentist", "room 2"],
    "capacity": 12,
    "party": {"min": 2, "max": 4},
    "meta": {"room": "2", "deep": {"a": [1, None]}},
}


def record(made: Any, **given: Any) -> dict[str, Any]:
    """A resource as it is written where only name and zone were given."""
    return {
        "id": made["id"],
        "external_id": None,
        "name": "Ada",
        "first_name": "",
        "last_name": "",
        "email": None,
        "image": "",
        "timezone": "UTC",
        "tags": [],
        "capacity": 1,
        "party": None,
        "schedule_id": None,
        "meta": {},
        "created_at": STAMP,
        "updated_at": STAMP,
        **given,
    }


def calendar_record(calendar: Any, **given: Any) -> dict[str, Any]:
    return {
        "id": calendar["id"],
        "resource_id": calendar["resource_id"],
        "name": "Bookings",
        "description": "",
        "backgroundcolor": "",
        "foregroundcolor": "",
        "provider": "service",
        "provider_id": None,
        "provider_access": None,
        "provider_primary": False,
        "provider_sync": False,
        "grant_id": None,
        "account": None,
        "synced_at": None,
        "problem": None,
        "progress": None,
        "unread": 0,
        "created_at": STAMP,
        "updated_at": STAMP,
        **given,
    }


# --- POST -----------------------------------------------------------------------------------------
def test_create_resource_with_required_fields(tenant: Tenant) -> None:
    answer = tenant.post("/resources", {"name": "Ada", "timezone": "UTC"})

    row = Resource.objects.get()
    calendar = row.calendars.get()
    key = Credential.objects.get(resource=row)
    assert (answer.status, answer.data["id"]) == (201, str(row.id))
    assert answer.data == record(
        answer.data,
        calendars=[calendar_record({"id": str(calendar.id), "resource_id": str(row.id)})],
        api_token=answer.data["api_token"],
    )
    assert answer.data["api_token"][:-43] == key.prefix


def test_create_resource_with_every_field(tenant: Tenant) -> None:
    rules = [{"block_weekends": {}}, {"allow_hours": {"start": 9, "end": "17:30"}}]
    body = {**FULL, "availability_constraints": rules, "unknown": 1}

    answer = tenant.post("/resources?include=availability_constraints", body)

    assert (answer.status, answer.data) == (
        201,
        record(
            answer.data,
            **FULL,
            availability_constraints=rules,
            calendars=answer.data["calendars"],
            api_token=answer.data["api_token"],
        ),
    )


def test_the_key_of_a_resource_is_shown_once_and_works(tenant: Tenant) -> None:
    made = tenant.post_resource(email="ada@example.com")

    shown = Caller(made["api_token"], user="ada@example.com").get(f"/resources/{made['id']}")

    assert (shown.status, shown.data) == (200, record(made, email="ada@example.com"))


@pytest.mark.parametrize(
    ("given", "errors"),
    [
        ({"name": None}, {"name": ["This field may not be null."]}),
        ({"name": ""}, {"name": ["This field may not be blank."]}),
        ({"name": 5}, {"name": ["Must be a string."]}),
        ({"name": "x" * 201}, {"name": ["Ensure this field has no more than 200 characters."]}),
        ({"name": "a\nb"}, {"name": ["May not contain control characters or line breaks."]}),
        ({"timezone": "Berlin"}, {"timezone": ["Must be a time zone such as Europe/Berlin."]}),
        (
            {"timezone": "europe/berlin"},
            {"timezone": ["Must be a time zone such as Europe/Berlin."]},
        ),
        ({"timezone": None}, {"timezone": ["This field may not be null."]}),
        ({"email": "ada"}, {"email": ["Must be an e-mail address."]}),
        ({"email": ""}, {"email": ["This field may not be blank."]}),
        ({"image": "data:x"}, {"image": ["Must be an http or https address."]}),
        ({"tags": "a"}, {"tags": ["Must be a list."]}),
        ({"tags": ["a", 1]}, {"tags.1": ["Must be a string."]}),
        ({"tags": ["a"] * 51}, {"tags": ["Must have at most 50 items."]}),
        ({"meta": "a"}, {"meta": ["Must be an object."]}),
        (
            {"meta": {str(n): n for n in range(51)}},
            {"meta": ["Must have at most 50 keys."]},
        ),
        ({"meta": {"a": "x" * 16_384}}, {"meta": ["Must be at most 16 kB."]}),
        (
            {"availability_constraints": [{"allow_hours": {"start": 9, "end": 25}}]},
            {
                "availability_constraints.0.allow_hours.end": [
                    'Expected a time such as 9 or "09:30", from 0 to 24.'
                ]
            },
        ),
    ],
)
@pytest.mark.matrix
def test_wrong_values_are_refused(
    tenant: Tenant, given: dict[str, Any], errors: dict[str, list[str]]
) -> None:
    made = tenant.post_resource()

    answers = [
        tenant.post("/resources", {"name": "Bob", "timezone": "UTC", **given}),
        tenant.put(f"/resources/{made['id']}", given),
    ]

    found = [(answer.status, answer.json["code"], answer.json["errors"]) for answer in answers]
    assert found == [(422, "invalid", errors)] * 2
    assert tenant.get("/resources").data == [record(made)]


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        ({}, {"name": ["This field is required."], "timezone": ["This field is required."]}),
        ([], {"name": ["This field is required."], "timezone": ["This field is required."]}),
        ("Ada", {"body": ["Must be an object."]}),
        ([1], {"body": ["Must be an object."]}),
        (None, {"name": ["This field is required."], "timezone": ["This field is required."]}),
    ],
)
def test_required_fields_are_checked(
    tenant: Tenant, body: Any, errors: dict[str, list[str]]
) -> None:
    answer = tenant.post("/resources", body)

    assert (answer.status, answer.json["errors"]) == (422, errors)


@pytest.mark.parametrize(
    "given",
    [
        {"name": "x" * 200},
        {"meta": {str(n): n for n in range(50)}},
        {"meta": []},
        {"tags": []},
        {"email": None, "image": None, "first_name": None, "last_name": ""},
        {"name": "Zoë 李 🦷"},
        {"timezone": "Australia/Lord_Howe"},
    ],
)
def test_values_at_their_bounds(tenant: Tenant, given: dict[str, Any]) -> None:
    answer = tenant.post("/resources", {"name": "Ada", "timezone": "UTC", **given})

    empty = {"meta": {}, "tags": [], "image": "", "first_name": ""}
    shown = {key: value or empty.get(key, value) for key, value in given.items()}
    assert answer.status == 201
    assert tenant.get(f"/resources/{answer.data['id']}").data == record(answer.data, **shown)


# --- E-mail addresses -----------------------------------------------------------------------------
def test_addresses_are_unique_in_any_case(tenant: Tenant) -> None:
    tenant.post_resource(email="ada@example.com")
    other = tenant.post_resource("Bob", email="bob@example.com")

    answers = [
        tenant.post("/resources", {"name": "A", "timezone": "UTC", "email": "ADA@example.com"}),
        tenant.put(f"/resources/{other['id']}", {"email": "Ada@Example.com"}),
    ]

    assert [(answer.status, answer.error) for answer in answers] == [(409, TAKEN)] * 2
    assert tenant.get("/resources").json["total"] == 2


def test_addresses_are_free_in_other_apps_and_after_removal(
    tenant: Tenant, make_tenant: MakeTenant
) -> None:
    first = tenant.post_resource(email="ada@example.com")
    make_tenant().post_resource(email="ada@example.com")
    tenant.delete(f"/resources/{first['id']}")

    again = tenant.post_resource(email="ada@example.com")

    assert [row["id"] for row in tenant.get("/resources").data] == [again["id"]]


def test_address_is_optional(tenant: Tenant) -> None:
    for _ in range(2):
        tenant.post_resource(email=None)

    assert [row["email"] for row in tenant.get("/resources").data] == [None, None]


# --- GET ------------------------------------------------------------------------------------------
def test_includes_of_one_resource(tenant: Tenant, clock: Any) -> None:
    rules = [{"allow_day": {"day": "Monday"}}]
    made = tenant.post_resource(availability_constraints=rules)
    clock.shift(1)
    second = tenant.post("/calendars", {"name": "B", "resource_id": made["id"]}).data
    path = f"/resources/{made['id']}"

    shown = {
        "": record(made),
        "calendars": record(made, calendars=[made["calendars"][0], second]),
        "availability_constraints": record(made, availability_constraints=rules),
        "calendars,availability_constraints,calendars": record(
            made,
            calendars=[made["calendars"][0], second],
            availability_constraints=rules,
        ),
    }

    for include, expected in shown.items():
        answer = tenant.get(f"{path}?include={include}")
        assert (answer.status, answer.json) == (200, {"data": expected})


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_foreign_unknown_and_deleted_ids_are_not_found(
    tenant: Tenant, make_tenant: MakeTenant, method: str
) -> None:
    removed = tenant.post_resource()["id"]
    tenant.delete(f"/resources/{removed}")
    foreign = make_tenant().post_resource()["id"]

    answers = [
        tenant.call(method, f"/resources/{unknown_id}", {})
        for unknown_id in (foreign, uuid.uuid4(), removed)
    ]

    assert [(answer.status, answer.error) for answer in answers] == [(404, NOT_FOUND)] * 3
    assert Resource.objects.get(id=foreign).deleted_at is None


@pytest.mark.parametrize("include", ["events", "calendars.events", "Calendars"])
def test_unknown_includes(tenant: Tenant, include: str) -> None:
    path = f"/resources/{tenant.post_resource()['id']}"
    body = {"name": "B", "timezone": "UTC"}

    answers = [
        tenant.get(f"{path}?include={include}"),
        tenant.put(f"{path}?include={include}", {"name": "Changed"}),
        tenant.get(f"/resources?include={include}"),
        tenant.post(f"/resources?include={include}", body),
    ]

    assert [(answer.status, answer.json["errors"]) for answer in answers] == [
        (422, {"include": [f"{include} can't be included."]})
    ] * 4
    assert [row["name"] for row in tenant.get("/resources").data] == ["Ada"]


# --- The listing ----------------------------------------------------------------------------------
def make_five(tenant: Tenant, clock: Any) -> list[Any]:
    """Newest first, as they are listed."""
    made = []
    for name in ("A", "B", "C", "D", "E"):
        clock.shift(1)
        made.insert(0, tenant.post_resource(name))
    return made


BASE = "http://127.0.0.1:8000/v2/resources"


def test_page_two_of_five(tenant: Tenant, clock: Any) -> None:
    names = [one["name"] for one in make_five(tenant, clock)]

    answer = tenant.get("/resources?limit=3&page=2")

    body = {key: value for key, value in answer.json.items() if key != "data"}
    assert (answer.status, body) == (
        200,
        {
            "total": 5,
            "per_page": "3",
            "current_page": 2,
            "last_page": 2,
            "first_page_url": f"{BASE}?limit=3&page=1",
            "last_page_url": f"{BASE}?limit=3&page=2",
            "next_page_url": None,
            "prev_page_url": f"{BASE}?limit=3&page=1",
            "from": 4,
            "to": 5,
        },
    )
    assert list(answer.json)[-1] == "data"
    assert [row["name"] for row in answer.data] == names[3:] == ["B", "A"]


def test_a_page_past_the_end(tenant: Tenant, clock: Any) -> None:
    make_five(tenant, clock)

    answer = tenant.get("/resources?limit=2&page=9&search=name:*")

    base = f"{BASE}?search=name%3A%2A&limit=2&page="
    assert (answer.status, answer.json) == (
        200,
        {
            "total": 5,
            "per_page": "2",
            "current_page": 9,
            "last_page": 3,
            "first_page_url": f"{base}1",
            "last_page_url": f"{base}3",
            "next_page_url": None,
            "prev_page_url": f"{base}3",
            "from": None,
            "to": None,
            "data": [],
        },
    )


def test_an_empty_listing(tenant: Tenant) -> None:
    answer = tenant.get("/resources")

    assert answer.json == {
        "total": 0,
        "per_page": 50,
        "current_page": 1,
        "last_page": 1,
        "first_page_url": f"{BASE}?limit=50&page=1",
        "last_page_url": f"{BASE}?limit=50&page=1",
        "next_page_url": None,
        "prev_page_url": None,
        "from": None,
        "to": None,
        "data": [],
    }


def test_pages_follow_one_another(tenant: Tenant, clock: Any) -> None:
    """As a client walks: until next_page_url is null."""
    expected = [one["id"] for one in make_five(tenant, clock)]
    path, found = "/resources?limit=2", []

    while path:
        page = tenant.get(path).json
        found.append([row["id"] for row in page["data"]])
        path = (page["next_page_url"] or "").removeprefix("http://127.0.0.1:8000/v2")

    assert found == [expected[:2], expected[2:4], expected[4:]]


def test_rows_created_at_once_are_ordered(tenant: Tenant) -> None:
    made = {tenant.post_resource(str(number))["id"] for number in range(6)}

    pages = [tenant.get(f"/resources?limit=2&page={page}").data for page in (1, 2, 3)]

    found = [row["id"] for page in pages for row in page]
    assert found == sorted(made, reverse=True)


@pytest.mark.parametrize(
    ("search", "names"),
    [
        ("name:Ada Berg", ["Ada Berg"]),
        ("name:ada berg", ["Ada Berg"]),
        ("name:Ada", []),
        ("name:ada*", ["Ada Berg"]),
        ("name:*berg", ["Ada Berg"]),
        ("name:*a*", ["Ada Berg", "a;b:c"]),
        ("name:*", ["100% \\ *", "Ada Berg", "a;b:c"]),
        ("name:*\\%*", []),
        ("name:*%*", ["100% \\ *"]),
        ("name:*_*", []),
        ("name:100% \\\\ \\*", ["100% \\ *"]),
        ("name:a\\;b:c", ["a;b:c"]),
        ("name:*\\**", ["100% \\ *"]),
        ("email:ADA@example.com", ["Ada Berg"]),
        ("email:*@example.com", ["Ada Berg", "a;b:c"]),
        ("email:*@example.com;name:a*", ["Ada Berg", "a;b:c"]),
        ("email:*@example.com;name:*c", ["a;b:c"]),
        ("name:nobody", []),
        ("", ["100% \\ *", "Ada Berg", "a;b:c"]),
    ],
)
@pytest.mark.matrix
def test_search(tenant: Tenant, make_tenant: MakeTenant, search: str, names: list[str]) -> None:
    tenant.post_resource("Ada Berg", email="ada@example.com")
    tenant.post_resource("100% \\ *", email=None)
    tenant.post_resource("a;b:c", email="b@example.com")
    make_tenant().post_resource("Ada Berg", email="ada@example.com")

    answer = tenant.client.get("/v2/resources", {"search": search}, headers=tenant.headers).json()

    assert sorted(row["name"] for row in answer["data"]) == names
    assert answer["total"] == len(names)


@pytest.mark.parametrize(
    ("query", "errors"),
    [
        ("search=first_name:a", {"search": ["first_name can't be searched."]}),
        ("search=name", {"search": ["Must be written as field:value;field:value."]}),
        ("limit=0", {"limit": ["Must be one integer from 1 to 1000."]}),
        ("limit=1001", {"limit": ["Must be one integer from 1 to 1000."]}),
        ("limit=a", {"limit": ["Must be one integer from 1 to 1000."]}),
        ("page=0", {"page": ["Must be one integer from 1 to 1000000."]}),
        ("page=1000001", {"page": ["Must be one integer from 1 to 1000000."]}),
        ("name=a", {"name": ["Is not a known query parameter."]}),
        ("limit=1&limit=2", {"limit": ["Is given 2 times."]}),
    ],
)
def test_wrong_query_parameters_are_refused(
    tenant: Tenant, query: str, errors: dict[str, list[str]]
) -> None:
    answer = tenant.get(f"/resources?{query}")

    assert (answer.status, answer.json["code"], answer.json["errors"]) == (422, "invalid", errors)


def test_includes_of_the_listing(tenant: Tenant, clock: Any) -> None:
    rules = [{"block_weekends": {}}]
    first = tenant.post_resource("A", availability_constraints=rules)
    clock.shift(1)
    second = tenant.post_resource("B")

    answer = tenant.get("/resources?include=calendars,availability_constraints")

    later = dict.fromkeys(("created_at", "updated_at"), second["created_at"])
    assert answer.data == [
        record(
            second,
            **{"name": "B", "calendars": second["calendars"], "availability_constraints": []},
            **later,
        ),
        record(first, name="A", calendars=first["calendars"], availability_constraints=rules),
    ]


# --- PUT ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("given", "changed"),
    [
        ({}, {}),
        ([], {}),
        (None, {}),
        ({"name": "Eve"}, {"name": "Eve"}),
        ({"email": None}, {"email": None}),
        ({"email": "Ada@Example.com"}, {"email": "Ada@Example.com"}),
        ({"first_name": None, "last_name": ""}, {"first_name": "", "last_name": ""}),
        ({"image": ""}, {"image": ""}),
        ({"timezone": "Asia/Tokyo"}, {"timezone": "Asia/Tokyo"}),
        ({"tags": ["new"]}, {"tags": ["new"]}),
        ({"tags": []}, {"tags": []}),
        ({"meta": {}}, {}),
        ({"meta": []}, {}),
        ({"meta": {"room": None}}, {"meta": {"deep": {"a": [1, None]}}}),
        (
            {"meta": {"floor": 3, "deep": {"b": 2}}},
            {"meta": {"room": "2", "floor": 3, "deep": {"a": [1, None], "b": 2}}},
        ),
        ({"meta": {"deep": {"a": None}}}, {"meta": {"room": "2", "deep": {}}}),
        ({"updated_at": "2026-11-20T09:00:00+0000"}, {}),
    ],
)
def test_update_is_partial(tenant: Tenant, clock: Any, given: Any, changed: dict[str, Any]) -> None:
    made = tenant.post("/resources", FULL).data
    clock.shift(60)

    answer = tenant.put(f"/resources/{made['id']}", given)

    expected = record(made, **{**FULL, **changed, "updated_at": "2026-11-20T09:31:00+0000"})
    assert (answer.status, answer.json) == (200, {"data": expected})
    assert tenant.get(f"/resources/{made['id']}").data == expected


def test_update_replaces_all_constraints(tenant: Tenant) -> None:
    made = tenant.post_resource(
        availability_constraints=[{"block_weekends": {}}, {"block_hours": {"start": 1, "end": 2}}]
    )
    path = f"/resources/{made['id']}?include=availability_constraints"
    rules = [{"allow_day": {"day": "Friday"}}]

    shown = [
        tenant.put(path, body).data["availability_constraints"]
        for body in (
            {"availability_constraints": rules},
            {"name": "Eve"},
            {"availability_constraints": []},
        )
    ]

    assert shown == [rules, rules, []]


def test_size_of_meta_is_limited(tenant: Tenant) -> None:
    made = tenant.post_resource(meta={f"a{n}": n for n in range(30)})

    answer = tenant.put(f"/resources/{made['id']}", {"meta": {f"b{n}": n for n in range(30)}})

    assert (answer.status, answer.json["errors"]) == (422, {"meta": ["Must have at most 50 keys."]})
    assert len(tenant.get(f"/resources/{made['id']}").data["meta"]) == 30


# --- DELETE ---------------------------------------------------------------------------------------
def book(tenant: Tenant, resource: Any, hour: str = "09", **given: Any) -> Any:
    span = {"start": f"2026-11-20T{hour}:00:00Z", "end": f"2026-11-20T{hour}:30:00Z"}
    return tenant.book(resource_id=resource["id"], **{**span, **given}).data


def test_a_removed_resource_is_hidden_everywhere(tenant: Tenant) -> None:
    made = tenant.post_resource(email="ada@example.com")
    kept = tenant.post_resource("Bob")
    calendar = made["calendars"][0]["id"]
    event = tenant.make_event(calendar, "2026-11-23T09:00:00Z", "2026-11-23T10:00:00Z")
    project = tenant.post_project(made["id"], kept["id"])

    answer = tenant.delete(f"/resources/{made['id']}")

    span = "start=2026-11-20T00:00:00Z&end=2026-11-30T00:00:00Z"
    assert (answer.status, answer.content) == (204, b"")
    assert [row["id"] for row in tenant.get("/resources").data] == [kept["id"]]
    assert [row["id"] for row in tenant.get("/calendars").data] == [kept["calendars"][0]["id"]]
    assert tenant.get(f"/events?{span}").data == []
    assert tenant.get(f"/events/{event['id']}").status == 404
    assert tenant.get(f"/calendars/{calendar}").status == 404
    assert tenant.get(f"/projects/{project['id']}").data["resources"] == [kept["id"]]
    assert Caller(made["api_token"], user="ada@example.com").get("/resources").status == 401
    query = tenant.post("/availability", {"resources": [made["id"]]})
    assert (query.status, query.json["errors"]) == (
        422,
        {"resources.0": ["There is no such resource."]},
    )


@pytest.mark.parametrize(
    ("hour", "given", "actions", "status"),
    [
        ("10", {}, [], 409),
        ("10", {"action": "create"}, [], 409),
        ("10", {"graph": "confirm_decline"}, [], 409),
        ("10", {}, ["cancel"], 204),
        ("10", {"graph": "confirm_decline"}, ["decline"], 204),
        ("10", {}, ["complete"], 204),
        ("08", {}, [], 204),
        ("09", {}, [], 204),  # ends at half past nine: now
        ("08", {"action": "create"}, [], 409),  # could still be confirmed
        ("08", {"graph": "confirm_decline"}, [], 409),
        ("08", {"graph": "confirm_decline"}, ["decline"], 204),
    ],
)
def test_booked_resource_cannot_be_deleted(
    tenant: Tenant, hour: str, given: dict[str, Any], actions: list[str], status: int
) -> None:
    made = tenant.post_resource()
    booking = book(tenant, made, hour, **given)
    for action in actions:
        tenant.put(f"/bookings/{booking['id']}/{action}")

    answer = tenant.delete(f"/resources/{made['id']}")

    assert answer.status == status
    if status == 409:
        assert answer.error == BOOKED
        assert tenant.get(f"/resources/{made['id']}").status == 200


def test_resource_of_a_companion_event_cannot_be_deleted(tenant: Tenant) -> None:
    """In a mutual booking the second resource holds a companion event."""
    first, second = tenant.post_resource("A"), tenant.post_resource("B")
    project = tenant.post_project(first["id"], second["id"], availability={"mode": "mutual"})
    booking = tenant.book(
        project_id=project["id"],
        start="2026-11-23T09:00:00Z",
        end="2026-11-23T10:00:00Z",
    ).data

    before = tenant.delete(f"/resources/{second['id']}")
    tenant.put(f"/bookings/{booking['id']}/cancel")
    after = tenant.delete(f"/resources/{second['id']}")

    assert (before.status, before.error) == (409, BOOKED)
    assert (after.status, after.content) == (204, b"")
