"""Public keys: which projects they may use, from which web sites, and what is closed without one
(additions A1 to A3, A8).
"""

from collections.abc import Callable
from typing import Any

import pytest

from apps_config.models import Credential
from availability.models import Hold
from bookings.models import Booking
from tests.bookings.booking_drafts import MARTY, NINE, shown, signature_of, span, whole
from tests.bookings.group_world import make_group, take_seat
from tests.world import Answer, Caller, Tenant

MakeTenant = Callable[..., Tenant]
pytestmark = pytest.mark.usefixtures("clock")

NEEDS_PROJECT = {
    "error": "A widget key books through a project: send `project_id`. Without a project it can"
    " only book resources that are in no project, if the app's setting `public_resources` is on"
    " and the key is not bound to projects.",
    "code": "forbidden",
}
IN_PROJECT = {
    "error": "A widget key books this resource through a project: send `project_id`.",
    "code": "forbidden",
}
NO_SUCH_PROJECT = {"project_id": ["There is no such project."]}
SHOP = "https://shop.example"


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource("Ada")


@pytest.fixture
def project(tenant: Tenant, ada: Any) -> str:
    return tenant.make_project(ada["id"], name="Check-up")["id"]


@pytest.fixture
def other(tenant: Tenant, ada: Any) -> str:
    return tenant.make_project(ada["id"], name="Surgery")["id"]


def set_app(tenant: Tenant, **settings: Any) -> None:
    assert tenant.put(f"/apps/{tenant.app.slug}", {"settings": settings}).status == 200


def set_project(tenant: Tenant, project: str, **settings: Any) -> None:
    assert tenant.put(f"/projects/{project}", {"settings": settings}).status == 200


def key_for(tenant: Tenant, **scope: Any) -> Caller:
    answer = tenant.post("/credentials", {"kind": "widget", **scope})
    assert answer.status == 201, answer.json
    return Caller(answer.data["key"])


def page_key(tenant: Tenant, slug: str = "check-up") -> Caller:
    """The key that a hosted page hands out."""
    return Caller(tenant.get(f"/projects/hosted/{slug}").data["app_key"])


def body_of(**given: Any) -> dict[str, Any]:
    return {"what": "Check-up", "customer": MARTY, **NINE, **given}


def refused(answer: Answer) -> tuple[int, Any]:
    return answer.status, answer.error


# --- Without a project ----------------------------------------------------------------------------
PATHS: list[tuple[str, Callable[[str], dict[str, Any]]]] = [
    ("/bookings", lambda resource: body_of(resource_id=resource)),
    ("/bookings/reserve", lambda resource: {**NINE, "resource_id": resource}),
    ("/availability", lambda resource: {"resources": [resource], "to": "1 day"}),
    ("/availability/dates", lambda resource: {"resources": [resource], "to": "1 day"}),
    ("/availability/count", lambda resource: {"resources": [resource], "to": "1 day"}),
    ("/findtime", lambda resource: {"resource_ids": [resource], "future": "1 day"}),
]


@pytest.mark.parametrize(("path", "make_body"), PATHS)
def test_a_widget_key_needs_a_project(
    tenant: Tenant, ada: Any, project: str, path: str, make_body: Any
) -> None:
    free = tenant.make_resource("Free")["id"]

    by_default = [refused(tenant.widget().post(path, make_body(id_))) for id_ in (ada["id"], free)]
    set_app(tenant, public_resources=True)
    bound = refused(key_for(tenant, projects=[project]).post(path, make_body(free)))
    of_project = refused(tenant.widget().post(path, make_body(ada["id"])))
    opened = tenant.widget().post(path, make_body(free))

    assert by_default == [(403, NEEDS_PROJECT)] * 2
    assert (bound, of_project) == ((403, NEEDS_PROJECT), (403, IN_PROJECT))
    assert opened.status in (200, 201)
    assert Booking.objects.count() + Hold.objects.count() == (opened.status == 201)


def test_a_body_without_any_target_names_the_setting(tenant: Tenant) -> None:
    answers = [tenant.widget().post(path, {}) for path, _ in PATHS]

    assert [refused(answer) for answer in answers] == [(403, NEEDS_PROJECT)] * len(PATHS)


def test_a_resource_without_a_project_has_bounds(tenant: Tenant) -> None:
    set_app(tenant, public_resources=True)
    resource, widget = tenant.make_resource()["id"], tenant.widget()
    day_long = {"start": "2026-11-23T09:00:00Z", "end": "2026-11-24T09:00:00Z"}
    longer = {**day_long, "end": "2026-11-24T09:00:01Z"}
    late = {"start": "2027-11-21T08:30:00Z", "end": "2027-11-21T09:30:00Z"}
    too_late = {**late, "end": "2027-11-21T09:30:01Z"}

    answers = {
        path: [
            widget.post(path, {**body_of(resource_id=resource), **times}).status
            for times in (longer, too_late)
        ]
        for path in ("/bookings", "/bookings/reserve")
    }
    error = widget.post("/bookings", {**body_of(resource_id=resource), **longer}).json["errors"]
    query = {"resources": [resource], "from": "364 days", "to": "700 days", "length": "1 day"}
    offered = widget.post("/availability", query).data
    made = [
        widget.post("/bookings", {**body_of(resource_id=resource), **times}).status
        for times in (day_long, late)
    ]

    assert answers == {"/bookings": [422, 409], "/bookings/reserve": [422, 409]}
    assert error == {"end": ["Must be at most 24 hours after the start."]}
    assert made == [201, 201]
    assert [slot["end"][:10] for slot in offered] == ["2027-11-20"]
    assert widget.post("/availability", {**query, "length": "25 hours"}).json["errors"] == {
        "length": ["Must be at most 24 hours."]
    }


def test_reschedule_without_a_project(tenant: Tenant, ada: Any, project: str) -> None:
    free, widget = tenant.make_resource("Free")["id"], tenant.widget()
    bookings = [tenant.book(resource_id=id_, **NINE).data for id_ in (free, ada["id"])]

    def move(booking: Any, times: dict[str, str], **more: Any) -> Answer:
        body = {**times, "signature": signature_of(booking), **more}
        return widget.post(f"/bookings/{booking['id']}/reschedule", body)

    hidden = [move(booking, span("11:00", "12:00")).status for booking in bookings]
    set_app(tenant, public_resources=True)
    long = {"start": "2026-11-24T09:00:00Z", "end": "2026-11-25T09:00:01Z"}
    answers = [
        move(bookings[0], long),
        move(bookings[0], span("13:00", "14:00"), resource_id=ada["id"]),
        move(bookings[1], span("11:00", "12:00")),
        move(bookings[0], span("11:00", "12:00")),
    ]

    assert hidden == [404, 404]
    assert [answer.status for answer in answers] == [422, 403, 403, 200]


# --- The scope of a key ---------------------------------------------------------------------------
def test_a_key_shows_its_scope(tenant: Tenant, project: str) -> None:
    scope = {
        "projects": [project, project],
        "origins": ["HTTPS://Shop.Example:443/", SHOP + ":8443"],
    }

    made = tenant.post("/credentials", {"kind": "widget", **scope})

    shown = {"projects": [project], "origins": [SHOP, f"{SHOP}:8443"]}
    assert made.status == 201
    assert {key: made.data[key] for key in shown} == shown
    assert {key: tenant.get("/credentials").data[0][key] for key in shown} == shown


NO_PROJECT = {"projects.0": ["There is no such project."]}


@pytest.mark.parametrize(
    ("given", "errors"),
    [
        ({"projects": ["0193a4c2-0000-7000-8000-000000000014"]}, NO_PROJECT),
        ({"projects": []}, {"projects": ["This list may not be empty."]}),
        ({"projects": "all"}, {"projects": ["Must be a list."]}),
        ({"origins": []}, {"origins": ["This list may not be empty."]}),
        *[
            (
                {"origins": [origin]},
                {"origins.0": ["Must be an origin such as https://shop.example."]},
            )
            for origin in (
                *("shop.example", "https://shop.example/path", "https://a@shop.example", "null"),
                *("https://shop.example?a", "ftp://shop.example", "https://shop example", "*"),
            )
        ],
        (
            {"kind": "server", "origins": [SHOP]},
            {"origins": ["Only keys of the kind widget take origins."]},
        ),
    ],
)
def test_wrong_scopes_are_refused(
    tenant: Tenant, given: dict[str, Any], errors: dict[str, Any]
) -> None:
    answer = tenant.post("/credentials", {"kind": "widget", **given})

    assert (answer.status, answer.json["errors"]) == (422, errors)
    assert not Credential.objects.filter(kind="widget").exists()


def test_project_of_another_app_is_refused_as_scope(
    tenant: Tenant, make_tenant: MakeTenant
) -> None:
    foreign = make_tenant().make_project()["id"]

    answer = tenant.post("/credentials", {"kind": "widget", "projects": [foreign]})

    assert (answer.status, answer.json["errors"]) == (422, NO_PROJECT)


@pytest.mark.parametrize("kind", ["made", "hosted"])
def test_bound_key_cannot_use_other_projects(
    tenant: Tenant, ada: Any, project: str, other: str, kind: str
) -> None:
    key = page_key(tenant) if kind == "hosted" else key_for(tenant, projects=[project])
    everywhere = tenant.widget()
    booking = everywhere.post("/bookings", body_of(project_id=other)).data
    later = span("13:00", "14:00")
    hold = everywhere.post("/bookings/reserve", {"project_id": other, **later}).data
    group = make_group(tenant, ada, project_id=other, **span("15:00", "16:00"))
    move = {**span("11:00", "12:00"), "signature": signature_of(booking)}
    named = {"reservation_id": hold["reservation_id"]}

    bodies = [
        key.post("/bookings", body_of(project_id=other)),
        key.post("/bookings/reserve", {"project_id": other, **span("11:00", "12:00")}),
        key.post("/availability", {"project_id": other}),
        key.post("/availability/dates", {"project_id": other}),
        key.post("/availability/count", {"project_id": other}),
        key.post("/findtime", {"project_id": other}),
        take_seat(key, group, project_id=other),
    ]
    holds = [
        key.put("/bookings/reserve/extend", named),
        key.post("/bookings", {**body_of(project_id=project), **later, **named}),
    ]
    paths = [
        key.get(f"/projects/embed/{other}"),
        key.get(f"/bookings/groups/{group['id']}"),
        key.delete(f"/bookings/reserve/{hold['reservation_id']}"),
        key.post(f"/bookings/{booking['id']}/reschedule", move),
    ]

    assert [(answer.status, answer.json["errors"]) for answer in bodies] == [
        (422, NO_SUCH_PROJECT)
    ] * len(bodies)
    assert [(answer.status, answer.json["errors"]) for answer in holds] == [
        (422, {"reservation_id": ["There is no such hold."]})
    ] * 2
    assert [answer.status for answer in paths] == [404] * len(paths)
    assert key.get("/bookings/groups").data == []
    assert [one["id"] for one in everywhere.get("/bookings/groups").data] == [group["id"]]
    assert Booking.objects.count() == 2


def test_a_bound_key_uses_its_own_project(tenant: Tenant, ada: Any, project: str) -> None:
    set_project(tenant, project, public_reschedule="id")
    key = key_for(tenant, projects=[project])
    group = make_group(tenant, ada, project_id=project, **span("15:00", "16:00"))

    booking = key.post("/bookings", body_of(project_id=project))
    hold = key.post("/bookings/reserve", {"project_id": project, **span("12:00", "13:00")}).data
    named = {"reservation_id": hold["reservation_id"]}
    answers = [
        key.get(f"/projects/embed/{project}"),
        key.post("/availability", {"project_id": project}),
        key.post("/findtime", {"project_id": project}),
        key.get(f"/bookings/groups/{group['id']}"),
        key.put("/bookings/reserve/extend", named),
        key.delete(f"/bookings/reserve/{hold['reservation_id']}"),
        key.post(f"/bookings/{booking.data['id']}/reschedule", span("11:00", "12:00")),
    ]

    assert booking.status == 201
    assert [answer.status for answer in answers] == [200, 200, 200, 200, 200, 204, 200]
    assert [one["id"] for one in key.get("/bookings/groups").data] == [group["id"]]


def test_key_is_limited_to_its_origins(tenant: Tenant, project: str) -> None:
    key = key_for(tenant, origins=[SHOP, "http://localhost:3000"])
    body = {"project_id": project}

    statuses = {
        origin: key.post("/availability", body, **({"Origin": origin} if origin else {})).status
        for origin in (
            *("", SHOP, "HTTPS://SHOP.EXAMPLE", "http://localhost:3000"),
            *("null", "http://shop.example", "https://shop.example.evil.example"),
            *("https://shop.example:8443", "http://localhost"),
        )
    }
    refusal = key.post("/availability", body, Origin="https://evil.example")
    unbound = tenant.widget().post("/availability", body, Origin="https://evil.example")

    assert list(statuses.values()) == [200] * 4 + [403] * 5
    assert refused(refusal) == (
        403,
        {
            "error": "This key can't be used on this web site: see `origins` of the key.",
            "code": "forbidden",
        },
    )
    assert refusal.headers["Access-Control-Allow-Origin"] == "*"  # the page may read why
    assert unbound.status == 200


# --- Published ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("of_app", "own", "is_published"),
    [
        (None, None, True),
        (None, False, False),
        (False, None, False),
        (False, True, True),
        (True, None, True),
        (True, False, False),
    ],
)
def test_published_projects_have_a_page(
    tenant: Tenant, project: str, of_app: bool | None, own: bool | None, is_published: bool
) -> None:
    set_app(tenant, publish_projects=of_app)
    set_project(tenant, project, published=own)

    page = tenant.client.get("/book/check-up")
    hosted = tenant.get("/projects/hosted/check-up")

    assert (page.status_code, hosted.status) == ((200, 200) if is_published else (404, 404))
    assert Credential.objects.filter(kind="widget").count() == is_published


def test_keys_of_a_page_end_with_the_page(tenant: Tenant, project: str) -> None:
    handed_out, own = page_key(tenant), key_for(tenant, projects=[project])
    requests = [
        ("GET", f"/projects/embed/{project}", None),
        ("POST", "/availability", {"project_id": project}),
        ("POST", "/bookings", body_of(project_id=project)),
        ("POST", "/bookings/reserve", {"project_id": project, **NINE}),
        ("GET", "/bookings/groups", None),
        ("GET", "/app", None),
    ]

    set_project(tenant, project, published=False)
    closed = [handed_out.call(*request) for request in requests]
    open_ = [own.call(*request).status for request in requests[:3]]
    set_project(tenant, project, published=True)
    again = handed_out.get(f"/projects/embed/{project}").status

    gone = {"error": "Project not found.", "code": "not_found", "model": "Project"}
    assert [refused(answer) for answer in closed] == [(404, gone)] * len(requests)
    assert (open_, again) == ([200, 200, 201], 200)


# --- Moving ---------------------------------------------------------------------------------------
def test_a_move_needs_the_signature_of_a_link(tenant: Tenant, project: str, clock: Any) -> None:
    widget = tenant.widget()
    booking = widget.post("/bookings", body_of(project_id=project)).data
    other = tenant.book(project_id=project, **span("15:00", "16:00")).data
    links = whole(tenant, booking)["customer_action_links"]
    cancels = links["cancel_by_customer"].rpartition("=")[2]
    signature, path = signature_of(booking), f"/bookings/{booking['id']}/reschedule"
    eleven = span("11:00", "12:00")

    answers = [
        widget.post(path, {**eleven, "signature": given})
        for given in (None, "", "x", cancels, signature_of(other), signature[:-1], signature)
    ]
    own = tenant.post(path, span("13:00", "14:00"))
    clock.shift(86_400 * 4)
    late = widget.post(path, {**span("09:00", "10:00", "2026-11-30"), "signature": signature})

    assert [answer.status for answer in answers] == [403] * 6 + [200]
    assert answers[0].json["error"] == (
        "Moving this booking requires the `signature` of a link in an e-mail, unless the project's"
        " setting `public_reschedule` is `id`."
    )
    assert (own.status, late.status) == (200, 403)
    assert late.json["error"] == "This link has expired."
    assert whole(tenant, booking)["event"]["start"] == shown("13:00", "14:00")["start"]


# What the widget of this API family sends, with nothing of this service's own.
WIDGET_MOVE = {"resource_id": None, "what": "Check-up", "where": "", "description": ""}


@pytest.mark.parametrize(("setting", "status"), [("link", 403), (None, 403), ("id", 200)])
def test_widget_reschedules_by_id_if_allowed(
    tenant: Tenant, ada: Any, project: str, setting: str | None, status: int
) -> None:
    set_project(tenant, project, public_reschedule=setting)
    page = page_key(tenant)
    told = page.get(f"/projects/embed/{project}").data
    slots = page.post("/availability", {"project_id": told["id"]}).data
    body = {
        **{key: slots[3][key] for key in ("start", "end")},
        "resource_id": slots[3]["resources"][0]["id"],
        "graph": told["booking"]["graph"],
        "action": "confirm",
        "what": "Check-up",
        "where": "Online",
        "description": "Name: Marty\nE-mail: marty@example.com",
        "customer": {**MARTY, "timezone": "Europe/Berlin", "voip": "", "phone": "555"},
        "participants": ["marty@example.com"],
        "project_id": told["id"],
    }

    made = page.post("/bookings?include=user", body)
    move = {**WIDGET_MOVE, **{key: slots[9][key] for key in ("start", "end")}}
    moved = page.post(f"/bookings/{made.data['id']}/reschedule", move)

    assert (made.status, made.data["user"]["id"], moved.status) == (201, ada["id"], status)


# --- What a project would refuse ------------------------------------------------------------------
def test_reschedule_keeps_waived_rules(tenant: Tenant, ada: Any, project: str) -> None:
    """A booking over another, which the project does not allow; a resource that it lost."""
    set_project(tenant, project, public_reschedule="id")
    settings = {"allow_double_bookings": True, "enforce_availability": False}
    tenant.book(project_id=project, **span("11:00", "12:00"))
    booking = tenant.book(project_id=project, settings=settings, **span("11:00", "12:00")).data
    path, widget = f"/bookings/{booking['id']}/reschedule", tenant.widget()
    tenant.book(project_id=project, **span("13:00", "14:00"))

    over = widget.post(path, span("13:00", "14:00"))
    free = widget.post(path, span("15:00", "16:00"))
    tenant.delete(f"/projects/{project}/resources/{ada['id']}")
    lost = widget.post(path, NINE)

    assert [answer.status for answer in (over, free, lost)] == [409, 200, 409]
    assert lost.json["reasons"] == [
        {"type": "limit", "text": "The project no longer offers these resources."}
    ]


def test_public_booking_of_a_mutual_project(tenant: Tenant, ada: Any) -> None:
    bob = tenant.make_resource("Bob")
    terms = {"mode": "mutual"}
    project = tenant.make_project(ada["id"], bob["id"], availability=terms)["id"]
    tenant.make_event(bob["calendars"][0]["id"], **NINE)
    widget, named = tenant.widget(), {"project_id": project, "resource_id": ada["id"]}
    query = {"project_id": project, "resources": [ada["id"]]}
    monday = {"from": "2026-11-23T09:00:00Z", "to": "2026-11-23T11:00:00Z"}

    refusal = widget.post("/bookings", body_of(**named))
    held = widget.post("/bookings/reserve", {**NINE, **named})
    offered = widget.post("/availability", {**query, **monday}).data
    made = widget.post("/bookings", {**body_of(**named), **span("10:00", "11:00")})

    assert [refusal.status, held.status, made.status] == [409, 409, 201]
    assert [slot["start"][11:16] for slot in offered] == ["10:00"]
    row = Booking.objects.get(id=made.data["id"])
    assert [str(each.resource_id) for each in row.event.companions.all()] == [bob["id"]]


def test_public_extension_of_a_server_hold_checks_the_rules(
    tenant: Tenant, ada: Any, project: str
) -> None:
    rules = [{"allow_hours": {"start": 9, "end": 12}}]
    tenant.put(f"/projects/{project}", {"availability_constraints": rules})
    settings = {"enforce_availability": False}
    holds = [
        tenant.post("/bookings/reserve", {"project_id": project, "settings": settings, **times})
        for times in (NINE, span("12:00", "13:00"))
    ]

    answers = [
        tenant.widget().put(
            "/bookings/reserve/extend", {"reservation_id": hold.data["reservation_id"]}
        )
        for hold in holds
    ]

    assert [answer.status for answer in answers] == [200, 409]
    assert Hold.objects.get(id=holds[1].data["reservation_id"]).extensions == 0


def test_server_hold_does_not_waive_the_notice(tenant: Tenant, ada: Any) -> None:
    terms = {"from": "2 days", "to": "3 days 12 hours"}
    project = tenant.make_project(ada["id"], availability=terms)["id"]
    soon = span("09:00", "10:00", "2026-11-21")
    hold = tenant.post(
        "/bookings/reserve",
        {"project_id": project, "settings": {"enforce_availability": False}, **soon},
    ).data

    named = {"project_id": project, "reservation_id": hold["reservation_id"]}
    answers = [
        tenant.widget().post("/bookings", {**body_of(**named), **soon}),
        tenant.book(settings={"enforce_availability": False}, **named, **soon),
    ]

    assert [answer.status for answer in answers] == [409, 201]


@pytest.mark.parametrize("headers", [{}, {"X-Forwarded-For": "8.8.8.8"}], ids=["direct", "proxy"])
def test_public_hold_satisfies_the_notice(
    tenant: Tenant, ada: Any, clock: Any, headers: dict[str, str]
) -> None:
    """Behind an unknown proxy no address is stored, but the hold is still a public one."""
    project = tenant.make_project(
        ada["id"], availability={"from": "1 hour"}, reservation_time=3600
    )["id"]
    soon = span("11:00", "12:00", "2026-11-20")
    widget = tenant.widget()
    held = widget.post("/bookings/reserve", {"project_id": project, **soon}, **headers)
    clock.shift(35 * 60)

    named = {"project_id": project, "reservation_id": held.data["reservation_id"]}
    booked = widget.post("/bookings", {**body_of(**named), **soon}, **headers)

    assert [held.status, booked.status] == [201, 201]


def test_rules_of_a_query_do_not_move_the_grid(tenant: Tenant) -> None:
    """Otherwise the offered starts could not be booked."""
    rules = [{"allow_hours": {"start": 9, "end": 12}}]
    ada = tenant.make_resource("Ada", availability_constraints=rules)
    terms = {"timeslot_increments": "1 hour", "length": "30 minutes"}
    project = tenant.make_project(ada["id"], availability=terms)["id"]
    narrower = [{"allow_hours": {"start": "09:20", "end": 12}}]
    monday = {"from": "2026-11-23T00:00:00Z", "to": "2026-11-24T00:00:00Z"}

    found = [
        [
            slot["start"][11:16]
            for slot in caller.post(
                "/availability", {"project_id": project, "constraints": narrower, **monday}
            ).data
        ]
        for caller in (tenant, tenant.widget())
    ]

    assert found == [["09:20", "10:20", "11:20"], ["10:00", "11:00"]]
