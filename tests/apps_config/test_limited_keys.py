"""Keys with scopes, projects or addresses: what they see, and that they can't get around it."""

from typing import Any

import pytest
from django.conf import LazySettings

from apps_config.models import Credential
from apps_config.services import issue_key
from notifications.outbox.expansion import expand_changes
from tests.bookings.booking_drafts import MARTY
from tests.world import Answer, Caller, Tenant

pytestmark = pytest.mark.usefixtures("clock")

EVERY_SCOPE = list(Credential.SCOPES)
WITHOUT_PEOPLE = [scope for scope in EVERY_SCOPE if scope != Credential.PEOPLE_READ]
MORNING = {"start": "2026-11-23T09:00:00Z", "end": "2026-11-23T10:00:00Z"}
NOON = {"start": "2026-11-23T12:00:00Z", "end": "2026-11-23T13:00:00Z"}
TYPED = ("marty@example.com", "+1 555 0100", "peanuts", "secret words", "a sister", "rings twice")
MARTY_IN_FULL = {
    "name": "Marty McFly",
    "email": "marty@example.com",
    "phone": "+1 555 0100",
    "voip": "+1 555 0100",
    "meta": {"allergy": "peanuts"},
}
WIDER = "A key can't make or revoke a key that may do more than itself."


def limited(tenant: Tenant, **limits: Any) -> Caller:
    return Caller(issue_key(Credential.SERVER, app=tenant.app, **limits)[1])


def lacks(answer: Answer) -> str:
    """The scope that the refusal names."""
    assert answer.json is not None, answer.status
    assert (answer.status, answer.json["code"]) == (403, "forbidden"), answer.json
    return answer.json["error"].removeprefix("This key lacks the scope ").removesuffix(".")


def outcome(answer: Answer) -> tuple[int, str | None]:
    return answer.status, answer.json and answer.json.get("error")


# --- People ---------------------------------------------------------------------------------------
@pytest.fixture
def booked(tenant: Tenant) -> dict[str, str]:
    """A booking and a group's seat with all that a customer can type."""
    resource = tenant.make_resource()
    texts = {"description": "secret words", "meta": {"with": "a sister"}}
    typed = {"customer": MARTY_IN_FULL, **texts}
    booking = tenant.book(
        resource_id=resource["id"],
        participants=["marty@example.com"],
        note="rings twice",
        **typed,
        **MORNING,
    ).data
    group = tenant.book(
        resource_id=resource["id"], graph="group_owner", settings={"max_seats": 5}, **NOON
    ).data
    tenant.book(graph="group_customer", related={"owner_booking_id": group["id"]}, **typed)
    moved = tenant.post(
        f"/bookings/{booking['id']}/reschedule",
        {"start": "2026-11-23T15:00:00Z", "end": "2026-11-23T16:00:00Z", "message": "secret words"},
    )
    assert moved.status == 200
    event = tenant.get(f"/bookings/{booking['id']}?include=event").data["event"]["id"]
    return {"booking": booking["id"], "group": group["id"], "event": event}


PARTS = (
    "attributes,event,calendar,resource,resource.calendars,user,resources,steps,customers,project,"
    "project.resources,meta,outcome,quantity,party_size,place,logs,conference,available_actions,"
    "customer_action_links,event_notifications,owner_booking,seats,bulked_bookings,series,"
    "provider_event"
)


def read_paths(booked: dict[str, str]) -> list[str]:
    return [
        f"/bookings?include={PARTS}",
        f"/bookings/{booked['booking']}?include={PARTS}",
        f"/bookings/groups?include={PARTS}",
        f"/bookings/groups/{booked['group']}?include={PARTS}",
        "/events?start=2026-11-01&end=2026-12-01",
        f"/events/{booked['event']}",
    ]


def test_key_without_people_reads_nothing_that_customers_typed(
    tenant: Tenant, booked: dict[str, str]
) -> None:
    key = limited(tenant, scopes=WITHOUT_PEOPLE)

    answers = {path: key.get(path) for path in read_paths(booked)}
    answers["PUT"] = key.put(f"/bookings/{booked['booking']}?include={PARTS}", {"outcome": None})
    answers["bulk"] = key.put(
        f"/bookings/bulk?include={PARTS}",
        {"bookings": [{"id": booked["booking"], "meta": {}}]},
    )

    assert {path: answer.status for path, answer in answers.items()} == dict.fromkeys(answers, 200)
    leaks = [
        (path, text)
        for path, answer in answers.items()
        for text in TYPED
        if text in answer.content.decode()
    ]
    assert leaks == []


def test_all_of_it_is_there_with_the_scope(tenant: Tenant, booked: dict[str, str]) -> None:
    """The control: the paths of the other test show what was typed."""
    path = f"/bookings/{booked['booking']}?include={PARTS},note"
    key = limited(tenant, scopes=["bookings:read", "people:read"])

    text = key.get(path).content.decode()

    assert [typed for typed in TYPED if typed not in text] == []


def test_customer_as_a_key_without_people_sees_it(tenant: Tenant, booked: dict[str, str]) -> None:
    path = f"/bookings/{booked['booking']}?include=customers"
    whole = tenant.get(path).data

    seen = limited(tenant, scopes=["bookings:read"]).get(path).data

    customer = whole["customers"][0] | {"email": "", "phone": "", "voip": "", "meta": {}}
    assert seen == whole | {
        "customers": [customer],
        "attributes": whole["attributes"]
        | {
            "customer": customer,
            "event_info": whole["attributes"]["event_info"]
            | {"description": "", "participants": []},
        },
        "event": whole["event"] | {"description": "", "participants": []},
        "meta": {},
        "customer_action_links": {},
    }


@pytest.mark.parametrize(
    "query",
    [
        "customer_email=marty@example.com",
        "search=customer.email:marty*",
        "search=customer.phone:*0100",
        "search=state:confirmed;meta.with:a sister",
        "include=note",
    ],
)
def test_key_without_people_asks_for_nobody(tenant: Tenant, query: str) -> None:
    key = limited(tenant, scopes=WITHOUT_PEOPLE)

    assert lacks(key.get(f"/bookings?{query}")) == "people:read"


def test_key_without_people_finds_by_name(tenant: Tenant, booked: dict[str, str]) -> None:
    key = limited(tenant, scopes=["bookings:read"])

    found = key.get("/bookings?search=customer.name:marty*").data

    assert booked["booking"] in [row["id"] for row in found]


def test_key_without_people_changes_no_customer(tenant: Tenant, booked: dict[str, str]) -> None:
    """Who sets the address gets the e-mails about the booking."""
    key = limited(tenant, scopes=WITHOUT_PEOPLE)
    path = f"/bookings/{booked['booking']}"

    answers = [
        key.put(path, {"customer": {"email": "thief@example.com"}}),
        key.put(path, {"customers": [{"phone": "1"}]}),
        key.put(path, {"note": "x"}),
        key.put(path, {"note": None}),
    ]

    assert [lacks(answer) for answer in answers] == ["people:read"] * 4


def test_key_that_only_reads_gets_no_links_that_act_for_customers(
    tenant: Tenant, booked: dict[str, str]
) -> None:
    key = limited(tenant, scopes=["bookings:read", "people:read"])

    record = key.get(f"/bookings/{booked['booking']}").data

    assert record["customer_action_links"] == {}
    assert record["customers"][0]["email"] == "marty@example.com"


def test_viewer_gets_no_links_that_act_for_customers(
    tenant: Tenant, booked: dict[str, str]
) -> None:
    callers = [tenant.member(f"{role}@example.com", role) for role in ("viewer", "editor")]

    links = [
        list(caller.get(f"/bookings/{booked['booking']}").data["customer_action_links"])
        for caller in callers
    ]

    assert links == [[], ["cancel_by_customer"]]


@pytest.mark.parametrize(
    ("scopes", "has_links"),
    [
        (["bookings:read", "people:read"], False),
        (["bookings:read", "bookings:write", "people:read"], True),
    ],
)
def test_links_in_stored_calls_are_for_keys_that_may_act(
    tenant: Tenant, scopes: list[str], has_links: bool
) -> None:
    """Also those that a customer pasted; a key without them still reads who booked."""
    pasted = "https://other.example/?token=abc"
    tenant.post("/webhooks", {"url": "https://example.com/hook"})
    tenant.book(
        resource_id=tenant.make_resource()["id"],
        customer=MARTY,
        description=f'Quote "{pasted}" end',
        **MORNING,
    )
    expand_changes()
    delivery = tenant.get("/deliveries?type=webhook").data[0]["id"]

    payload = limited(tenant, scopes=scopes).get(f"/deliveries/{delivery}").data["payload"]
    exported = tenant.get(f"/customers/export?email={MARTY['email']}").content.decode()

    links = payload["customer_action_links"]
    assert [link.startswith("http") for link in links.values()] == [has_links]
    shown = pasted if has_links else "[link]"
    assert payload["event"]["description"] == f'Quote "{shown}" end'
    assert payload["customers"][0]["email"] == MARTY["email"]
    assert "signature=" not in exported
    assert "[link]" in exported


@pytest.mark.django_db(transaction=True)
def test_feed_has_people_for_keys_that_may_read_them(
    tenant: Tenant, booked: dict[str, str]
) -> None:
    key = limited(tenant, scopes=["bookings:read", "people:read"])
    before = key.get("/changes").json["next_cursor"]
    move = {"start": "2026-11-23T17:00:00Z", "end": "2026-11-23T18:00:00Z"}
    tenant.post(f"/bookings/{booked['booking']}/reschedule", move)

    rows = key.get(f"/changes?types=booking,event&cursor={before}").data
    shown = {row["object_id"]: row["object"] for row in rows}
    booking = key.get(f"/bookings/{booked['booking']}").data

    assert shown[booking["id"]] == booking
    assert booking["customers"][0]["email"] == "marty@example.com"
    assert shown[booking["event"]["id"]] == key.get(f"/events/{booking['event']['id']}").data


def test_key_without_people_reads_no_blocked_customers(tenant: Tenant) -> None:
    path = f"/apps/{tenant.app.slug}"
    tenant.put(path, {"settings": {"blocked_customers": ["marty@example.com"]}})
    key = limited(tenant, scopes=WITHOUT_PEOPLE)

    answers = [key.get("/app").data, key.get(path).data, key.get("/apps").data[0]]
    answers.append(key.put(path, {"name": "Other"}).data)

    assert ["blocked_customers" in answer["settings"] for answer in answers] == [False] * 4


CALL = {
    "type": "webhook",
    "settings": {"url": "https://thief.example/"},
    "when": {"type": "before", "unit": "mins", "time": 60},
}


def test_key_without_people_has_bookings_sent_nowhere(tenant: Tenant) -> None:
    resource = tenant.make_resource()
    project = tenant.make_project(resource["id"])["id"]
    key = limited(tenant, scopes=WITHOUT_PEOPLE)
    group = {"graph": "group_owner", "what": "Class", "settings": {"max_seats": 5}}

    answers = [
        key.post("/webhooks", {"url": "https://thief.example/"}),
        key.put(f"/resources/{resource['id']}", {"email": "thief@example.com"}),
        key.post("/resources", {"name": "B", "timezone": "UTC", "email": "thief@example.com"}),
        key.put(f"/apps/{tenant.app.slug}", {"event_notifications": [CALL]}),
        key.put(f"/projects/{project}", {"event_notifications": [CALL]}),
        key.put(f"/projects/{project}", {"reminders": [CALL]}),
        key.post("/projects", {"name": "B", "event_notifications": [CALL]}),
        key.post(
            "/bookings",
            {"resource_id": resource["id"], "event_notifications": [CALL], **group, **MORNING},
        ),
        key.post(f"/calendars/{resource['calendars'][0]['id']}/feed"),
        *(
            key.put(f"/apps/{tenant.app.slug}", {"settings": {name: "thief@example.com"}})
            for name in ("contact_email", "from_email")
        ),
    ]

    assert [lacks(answer) for answer in answers] == ["people:read"] * len(answers)


def test_key_that_does_not_book_has_bookings_sent_nowhere(tenant: Tenant) -> None:
    """They have links that act for customers."""
    key = limited(tenant, scopes=[each for each in EVERY_SCOPE if each != "bookings:write"])

    assert lacks(key.post("/webhooks", {"url": "https://thief.example/"})) == "bookings:write"


def test_unchanged_address_of_an_app_can_be_sent_back(tenant: Tenant) -> None:
    path = f"/apps/{tenant.app.slug}"
    tenant.put(path, {"settings": {"contact_email": "desk@example.com"}})
    key = limited(tenant, scopes=["settings:write"])

    kept = key.put(path, {"settings": {"contact_email": "desk@example.com", "language": "de"}})
    removed = key.put(path, {"settings": {"contact_email": None}})

    assert (kept.status, kept.data["settings"]["language"]) == (200, "de")
    assert lacks(removed) == "bookings:read"


# --- Projects -------------------------------------------------------------------------------------
@pytest.fixture
def two_projects(tenant: Tenant) -> dict[str, str]:
    """A project of the key and another one, each with a resource, a booking, a group and a hold."""
    found = {}
    for name in ("own", "other"):
        resource = tenant.make_resource(name)
        project = tenant.make_project(resource["id"], name=name)["id"]
        where = {"project_id": project, "resource_id": resource["id"]}
        group = {"graph": "group_owner", "settings": {"max_seats": 5}}
        hold = {"start": "2026-11-23T16:00:00Z", "end": "2026-11-23T17:00:00Z", **where}
        found |= {
            f"{name}_resource": resource["id"],
            f"{name}_calendar": resource["calendars"][0]["id"],
            f"{name}_project": project,
            f"{name}_booking": tenant.book(**where, **MORNING).data["id"],
            f"{name}_group": tenant.book(**where, **group, **NOON).data["id"],
            f"{name}_hold": tenant.post("/bookings/reserve", hold).data["reservation_id"],
        }
    return found


@pytest.fixture
def bound(tenant: Tenant, two_projects: dict[str, str]) -> Caller:
    return limited(tenant, projects=[two_projects["own_project"]])


def ids(answer: Answer) -> list[str]:
    return [row["id"] for row in answer.data]


def test_lists_of_a_key_with_projects(
    tenant: Tenant, bound: Caller, two_projects: dict[str, str]
) -> None:
    answer = bound.get("/bookings")

    assert sorted(ids(answer)) == sorted([two_projects["own_booking"], two_projects["own_group"]])
    assert answer.json["total"] == 2
    assert ids(bound.get("/bookings/groups")) == [two_projects["own_group"]]
    assert ids(bound.get("/projects")) == [two_projects["own_project"]]
    resources = bound.get(f"/projects/{two_projects['own_project']}/resources")
    assert ids(resources) == [two_projects["own_resource"]]
    assert tenant.get("/bookings").json["total"] == 4


def test_objects_of_other_projects_are_not_found(
    bound: Caller, two_projects: dict[str, str]
) -> None:
    named = two_projects
    calls = [
        bound.get(f"/bookings/{named['other_booking']}"),
        bound.put(f"/bookings/{named['other_booking']}", {"meta": {"a": 1}}),
        bound.put(f"/bookings/{named['other_booking']}/cancel"),
        bound.post(f"/bookings/{named['other_booking']}/reschedule", NOON),
        bound.delete(f"/bookings/{named['other_booking']}"),
        bound.get(f"/bookings/groups/{named['other_group']}"),
        bound.delete(f"/bookings/reserve/{named['other_hold']}"),
        bound.get(f"/projects/{named['other_project']}"),
        bound.put(f"/projects/{named['other_project']}", {"name": "B"}),
        bound.delete(f"/projects/{named['other_project']}"),
        bound.get(f"/projects/{named['other_project']}/resources"),
        bound.get(f"/projects/embed/{named['other_project']}"),
    ]

    assert [answer.status for answer in calls] == [404] * len(calls)


def test_bulk_changes_nothing_of_other_projects(
    bound: Caller, two_projects: dict[str, str]
) -> None:
    body = {"bookings": [{"id": two_projects["other_booking"], "action": "cancel"}]}

    assert [each["status"] for each in bound.put("/bookings/bulk", body).data] == [404]


def test_action_on_related_bookings_stays_in_the_projects(
    tenant: Tenant, bound: Caller, two_projects: dict[str, str]
) -> None:
    time = {"start": "2026-11-24T09:00:00Z", "end": "2026-11-24T10:00:00Z"}
    bookings = [
        {"what": "A", "customer": MARTY, "project_id": two_projects[f"{name}_project"], **time}
        for name in ("own", "other")
    ]
    related = tenant.post("/bookings/bulk", {"relate_bookings": True, "bookings": bookings}).data
    own, other = (each["booking"]["id"] for each in related)

    cancelled = bound.put(f"/bookings/{own}/cancel")

    assert cancelled.status == 200
    assert tenant.get(f"/bookings/{own}").data["state"] == "cancelled"
    assert tenant.get(f"/bookings/{other}").data["state"] == "confirmed"
    assert bound.get(f"/bookings/{own}?include=bulked_bookings").status == 422


def test_key_with_projects_books_through_them(bound: Caller, two_projects: dict[str, str]) -> None:
    named = two_projects
    booking = {"what": "A", "customer": MARTY, "start": "2026-11-25T09:00:00Z"}
    booking |= {"end": "2026-11-25T10:00:00Z"}
    own, other = ({"project_id": named[f"{name}_project"]} for name in ("own", "other"))
    requires = [{"name": "x", "any_of": [named["other_resource"]]}]
    seat = {"graph": "group_customer", "customer": MARTY}
    found = {
        "other project": bound.post("/bookings", booking | other),
        "no project": bound.post("/bookings", booking | {"resource_id": named["own_resource"]}),
        "other resource": bound.post(
            "/bookings", booking | own | {"resource_id": named["other_resource"]}
        ),
        "other calendar": bound.post(
            "/bookings", booking | own | {"calendar_id": named["other_calendar"]}
        ),
        "own rules": bound.post("/bookings", booking | own | {"requires": requires}),
        "other group": bound.post(
            "/bookings", seat | own | {"related": {"owner_booking_id": named["other_group"]}}
        ),
        "other hold": bound.post(
            "/bookings", booking | own | {"reservation_id": named["other_hold"]}
        ),
        "other's time": bound.post(
            f"/bookings/{named['own_booking']}/reschedule",
            {"resource_id": named["other_resource"], **NOON},
        ),
        "hold of another": bound.post(
            "/bookings/reserve", {"resource_id": named["other_resource"], **own, **MORNING}
        ),
        "its own": bound.post("/bookings", booking | own),
    }

    assert {name: answer.status for name, answer in found.items()} == {
        "other project": 422,
        "no project": 403,
        "other resource": 422,
        "other calendar": 422,
        "own rules": 403,
        "other group": 422,
        "other hold": 422,
        "other's time": 422,
        "hold of another": 422,
        "its own": 201,
    }


def test_key_with_projects_searches_in_them(bound: Caller, two_projects: dict[str, str]) -> None:
    own, other = ({"project_id": two_projects[f"{name}_project"]} for name in ("own", "other"))
    when = {"from": "2026-11-23", "to": "2026-11-24", "length": "1 hour"}
    requires = [{"name": "x", "any_of": [two_projects["other_resource"]]}]
    statuses = [
        bound.post(path, when | given).status
        for path in ("/availability", "/availability/explain", "/unavailable/slots")
        for given in (
            own,
            other,
            {"resources": [two_projects["own_resource"]]},
            own | {"resources": [two_projects["other_resource"]]},
            own | {"requires": requires},
        )
    ]

    assert statuses == [200, 422, 403, 422, 403] * 3


def test_key_with_projects_adds_no_resources_to_them(
    bound: Caller, two_projects: dict[str, str]
) -> None:
    path, other = f"/projects/{two_projects['own_project']}", two_projects["other_resource"]
    text = "A key with `projects` can't change which resources a project has."

    answers = [
        bound.put(path, {"resources": [other]}),
        bound.put(path, {"requires": [{"name": "x", "any_of": [other]}]}),
        bound.put(f"{path}/resources", [other]),
        bound.post(f"{path}/resources", {"resource_id": other}),
    ]

    assert [answer.status for answer in answers] == [403] * 4
    assert [outcome(answer) for answer in answers[:2]] == [(403, text)] * 2


# --- Addresses ------------------------------------------------------------------------------------
ELSEWHERE = {
    "error": "This key can't be used from your network address.",
    "code": "address_not_allowed",
}


@pytest.mark.parametrize(
    ("addresses", "address", "status"),
    [
        (["203.0.113.0/24"], "203.0.113.7", 200),
        (["203.0.113.0/24"], "203.0.114.7", 403),
        (["203.0.113.7/32", "2001:db8::/32"], "2001:db8::1", 200),
        (["203.0.113.0/24"], "::ffff:203.0.113.7", 200),
        (["0.0.0.0/0"], "2001:db8::1", 403),
        (["0.0.0.0/0"], "", 403),
    ],
)
def test_address_of_the_client(
    tenant: Tenant, addresses: list[str], address: str, status: int
) -> None:
    key = limited(tenant, addresses=addresses)
    key.client.defaults["REMOTE_ADDR"] = address

    answer = key.get("/app")

    assert answer.status == status
    assert status == 200 or answer.error == ELSEWHERE


def test_header_of_the_client_is_no_address(tenant: Tenant, settings: LazySettings) -> None:
    key = limited(tenant, addresses=["203.0.113.0/24"])
    forwarded = {"X-Forwarded-For": "203.0.113.7"}

    settings.TRUSTED_PROXIES = 0
    assert key.get("/app", **forwarded).error == ELSEWHERE
    settings.TRUSTED_PROXIES = 1
    assert key.get("/app", **forwarded).status == 200
    assert key.get("/app", **{"X-Forwarded-For": "203.0.113.7, 192.0.2.1"}).error == ELSEWHERE


# --- No wider key ---------------------------------------------------------------------------------
READS = ["availability:read", "bookings:read", "keys:write"]


def test_scoped_key_makes_no_wider_key(tenant: Tenant) -> None:
    key = limited(tenant, scopes=READS)
    resource = tenant.make_resource()["id"]

    bodies: list[dict[str, Any]] = [
        {"kind": "server"},
        {"kind": "server", "scopes": ["people:read"]},
        {"kind": "server", "scopes": [*READS, "bookings:write"]},
        {"kind": "widget"},
        {"kind": "resource", "resource_id": resource},
    ]
    refused = [outcome(key.post("/credentials", body)) for body in bodies]
    made = key.post("/credentials", {"kind": "server", "scopes": ["bookings:read"]})

    assert refused == [(403, WIDER)] * len(bodies)
    assert (made.status, made.data["scopes"]) == (201, ["bookings:read"])
    assert lacks(Caller(made.data["key"]).post("/credentials", {"kind": "server"})) == "keys:write"


def test_widget_key_needs_the_scopes_of_all_that_it_may_do(tenant: Tenant) -> None:
    key = limited(tenant, scopes=[*READS, "bookings:write"])

    assert key.post("/credentials", {"kind": "widget"}).status == 201


def test_bound_key_makes_no_wider_key(
    tenant: Tenant, bound: Caller, two_projects: dict[str, str]
) -> None:
    own, other = two_projects["own_project"], two_projects["other_project"]
    bodies: list[dict[str, Any]] = [
        {"kind": "server"},
        {"kind": "server", "projects": [own, other]},
        {"kind": "widget"},
        {"kind": "resource", "resource_id": two_projects["own_resource"]},
    ]

    refused = [outcome(bound.post("/credentials", body)) for body in bodies]
    made = bound.post("/credentials", {"kind": "widget", "projects": [own]})

    assert refused == [(403, WIDER)] * len(bodies)
    assert (made.status, made.data["projects"]) == (201, [own])
    assert bound.delete(f"/credentials/{made.data['id']}").status == 204


def test_key_with_addresses_makes_no_wider_key(tenant: Tenant) -> None:
    key = limited(tenant, addresses=["127.0.0.0/8", "2001:db8::/32"])
    bodies: list[dict[str, Any]] = [
        {"kind": "server"},
        {"kind": "server", "addresses": ["127.0.0.0/8", "203.0.113.0/24"]},
        {"kind": "server", "addresses": ["2001::/16"]},
        {"kind": "widget"},
    ]

    refused = [outcome(key.post("/credentials", body)) for body in bodies]
    made = key.post("/credentials", {"kind": "server", "addresses": ["127.0.0.1", "127.1.0.0/16"]})

    assert refused == [(403, WIDER)] * len(bodies)
    assert (made.status, made.data["addresses"]) == (201, ["127.0.0.1/32", "127.1.0.0/16"])


def test_limited_key_revokes_itself_and_no_wider_key(tenant: Tenant) -> None:
    text = issue_key(Credential.SERVER, app=tenant.app, scopes=READS)
    key, own = Caller(text[1]), text[0].id
    whole = Credential.objects.get(scopes__isnull=True, kind=Credential.SERVER, app=tenant.app)

    assert outcome(key.delete(f"/credentials/{whole.id}")) == (403, WIDER)
    assert key.delete(f"/credentials/{own}").status == 204
    assert (tenant.get("/app").status, key.get("/app").status) == (200, 401)


def test_limited_key_gets_no_key_of_a_resource(tenant: Tenant) -> None:
    """Neither the key of a new resource, nor a password to log in as one."""
    resource = tenant.make_resource(email="ada@example.com")["id"]
    key = limited(tenant, scopes=[scope for scope in EVERY_SCOPE if scope != "keys:write"])
    password = "correct horse battery"

    made = key.post("/resources", {"name": "New", "timezone": "UTC"})
    answers = [
        key.put(f"/resources/{resource}", {"password": password}),
        key.post("/resources", {"name": "B", "timezone": "UTC", "password": password}),
        key.post("/resources/resetpassword", {"email": "ada@example.com"}),
        key.get("/app?include=signing_secret"),
        key.get("/projects?include=payment_key"),
    ]

    assert (made.status, made.data["api_token"]) == (201, None)
    assert not Credential.objects.filter(resource=made.data["id"]).exists()
    assert [lacks(answer) for answer in answers] == ["keys:write"] * len(answers)


def test_limited_key_invites_nobody(tenant: Tenant) -> None:
    key = limited(tenant, scopes=EVERY_SCOPE)

    answer = key.post(f"/apps/{tenant.app.slug}/members", {"email": "doc@example.com"})

    assert outcome(answer) == (403, "A key with limits can't invite members, who have none.")


@pytest.mark.parametrize(
    ("given", "errors"),
    [
        ({"scopes": []}, {"scopes": ["This list may not be empty."]}),
        ({"scopes": ["all"]}, {"scopes.0": [f"Must be one of {', '.join(Credential.SCOPES)}."]}),
        ({"scopes": "keys:write"}, {"scopes": ["Must be a list."]}),
        (
            {"addresses": ["203.0.113.7/24"]},
            {"addresses.0": ["Must be a network such as 203.0.113.0/24, or an address."]},
        ),
        (
            {"kind": "widget", "scopes": ["keys:write"]},
            {"scopes": ["Only keys of the kind server take scopes."]},
        ),
        (
            {"kind": "widget", "addresses": ["10.0.0.0/8"]},
            {"addresses": ["Only keys of the kind server take addresses."]},
        ),
        (
            {"kind": "resource", "projects": ["0193a4c2-0000-7000-8000-000000000014"]},
            {"projects": ["Only keys of the kind server or widget take projects."]},
        ),
    ],
)
def test_bad_limits(tenant: Tenant, given: dict[str, Any], errors: dict[str, list[str]]) -> None:
    answer = tenant.post("/credentials", {"kind": "server", **given})

    assert (answer.status, answer.json["errors"]) == (422, errors)
