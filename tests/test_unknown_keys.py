"""Unknown keys of request bodies: named in Service-Ignored, or refused in strict handling."""

import doctest
from typing import Any

import pytest

from apps_config.models import Credential
from availability.models import Project
from common.api import unknown_keys
from notifications.models import Webhook
from tests.bookings.booking_drafts import MARTY, NINE, span
from tests.world import Answer, Tenant

pytestmark = pytest.mark.usefixtures("clock")

STRICT = {"Prefer": "handling=strict"}


def test_doctests_of_unknown_keys_hold() -> None:
    assert doctest.testmod(unknown_keys).failed == 0


def unknown(*paths: str) -> dict[str, list[str]]:
    return {path: ["Is not a known key."] for path in paths}


def ignored(answer: Answer) -> tuple[int, str | None]:
    return answer.status, answer.headers.get("Service-Ignored")


# --- Named ----------------------------------------------------------------------------------------
@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource("Ada")


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("/resources", {"name": "Ada", "timezone": "UTC", "capcity": 5}, (201, "capcity")),
        (
            "/projects",
            {"name": "X", "settings": {"min_cancel_tme": "1 day"}, "availability": {"lenght": 1}},
            (201, "settings.min_cancel_tme, availability.lenght"),
        ),
        (
            "/projects",
            {"name": "X", "customer_fields": {"phone": {"titel": "Phone", "required": True}}},
            (201, "customer_fields.phone.titel"),
        ),
        (
            "/projects",
            {
                "name": "X",
                "event_notifications": [
                    {
                        "type": "email",
                        "settings": {"recipient": "owner", "subject": "S", "url": "x", "subjct": 1},
                        "when": {"type": "before", "unit": "hours", "time": 1, "at": 9},
                    }
                ],
            },
            (201, "event_notifications.0.settings.subjct, event_notifications.0.when.at"),
        ),
        ("/schedules", {"name": "Week", "rules": []}, (201, "rules")),
        ("/availability", {"lenght": "1 hour", "contraints": []}, (200, "lenght, contraints")),
        ("/customers/erase", {"email": "a@example.com", "mail": "x"}, (200, "mail")),
    ],
)
def test_unknown_keys_are_named(
    tenant: Tenant, ada: Any, path: str, body: dict[str, Any], expected: tuple[int, str]
) -> None:
    if path == "/availability":
        body = {**body, "resources": [ada["id"]]}

    assert ignored(tenant.post(path, body)) == expected


def test_unknown_keys_of_a_booking_are_named_in_both_forms(tenant: Tenant, ada: Any) -> None:
    customer = {**MARTY, "own_key": "goes to meta", "meta": {"any": 1}}
    given = {"customer": customer, "what": "Check-up", "resource_id": ada["id"]}

    flat = tenant.post("/bookings", {**given, **NINE, "amount": 2, "lenght": "1 hour"})
    nested = tenant.post(
        "/bookings", {**given, "event": {**span("11:00", "12:00"), "color": "red"}}
    )
    many = tenant.post(
        "/bookings/bulk", {"bookings": [{**given, **span("13:00", "14:00"), "x": 1}], "y": 2}
    )

    assert ignored(flat) == (201, "amount, lenght")
    assert ignored(nested) == (201, "event.color")
    assert ignored(many) == (200, "bookings.0.x, y")


def test_unknown_keys_of_actions_are_named(tenant: Tenant, ada: Any) -> None:
    booking = tenant.book(resource_id=ada["id"], **NINE).data["id"]

    moved = tenant.post(f"/bookings/{booking}/reschedule", {**span("10:00", "11:00"), "day": 1})
    changed = tenant.put("/bookings/bulk", {"bookings": [{"id": booking, "meta": {}, "note": "x"}]})
    cancelled = tenant.put(f"/bookings/{booking}/cancel", {"cancel": {"reason": "ill"}, "why": 1})

    assert ignored(moved) == (200, "day")
    assert ignored(changed) == (200, "bookings.0.note")
    assert ignored(cancelled) == (200, "cancel.reason, why")


def test_known_keys_are_not_named(tenant: Tenant, ada: Any) -> None:
    assert ignored(tenant.book(resource_id=ada["id"], **NINE)) == (201, None)
    assert ignored(tenant.put(f"/resources/{ada['id']}", {"name": "Eve"})) == (200, None)
    own_setting = {"settings": {"own_key": {"any": 1}}}
    assert ignored(tenant.put(f"/apps/{tenant.app.slug}", own_setting)) == (200, None)


def test_the_header_is_exposed_and_escaped(tenant: Tenant) -> None:
    body = {"name": "Ada", "timezone": "UTC", "a\r\nSet-Cookie: x=1": 1, "é": 1}

    answer = tenant.post("/resources", body, Origin="https://shop.example")

    assert ignored(answer) == (201, r"a\r\nSet-Cookie: x=1, \xe9")
    assert "Service-Ignored" in answer.headers["Access-Control-Expose-Headers"]


def test_the_header_is_cut_at_a_kilobyte(tenant: Tenant) -> None:
    body = {"name": "Ada", "timezone": "UTC", "k" * 1100: 1, "z": 1}

    assert ignored(tenant.post("/resources", body)) == (201, "k" * 1021 + "...")


# --- Equal to GET ---------------------------------------------------------------------------------
def test_put_accepts_the_response_of_get(tenant: Tenant, ada: Any) -> None:
    project = tenant.make_project(ada["id"], settings={"max_per_day": 3})
    paths = [f"/resources/{ada['id']}", f"/projects/{project['id']}"]

    answers = [tenant.put(path, tenant.get(path).data, **STRICT) for path in paths]

    assert [(answer.status, answer.json.get("errors")) for answer in answers] == [(200, None)] * 2


def test_put_refuses_changes_of_read_only_fields(tenant: Tenant, ada: Any) -> None:
    path = f"/resources/{ada['id']}"

    answer = tenant.put(path, {"name": "Eve", "id": "x", "created_at": "2020-01-01", "x": 1})

    assert (answer.status, answer.json["errors"]) == (
        422,
        {"id": ["Can't be changed here."], "created_at": ["Can't be changed here."]},
    )
    assert tenant.get(path).data["name"] == "Ada"


# --- Strict ---------------------------------------------------------------------------------------
def test_strict_handling_refuses_unknown_keys(tenant: Tenant) -> None:
    body = {"name": "X", "availability": {"lenght": "1 hour"}, "slugg": "x"}

    by_request = tenant.post("/projects", body, **STRICT)
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"strict_bodies": True}})
    by_app = tenant.post("/projects", body)

    assert [(answer.status, answer.json["errors"]) for answer in (by_request, by_app)] == [
        (422, unknown("availability.lenght", "slugg"))
    ] * 2
    assert Project.objects.count() == 0


def test_strict_bodies_do_not_apply_to_widget_keys(tenant: Tenant, ada: Any) -> None:
    project = tenant.make_project(ada["id"])
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"strict_bodies": True}})
    widget = tenant.widget()

    answer = widget.post("/availability", {"project_id": project["id"], "lenght": 1})
    by_request = widget.post("/availability", {"project_id": project["id"], "lenght": 1}, **STRICT)

    assert ignored(answer) == (200, "lenght")
    assert (by_request.status, by_request.json["errors"]) == (422, unknown("lenght"))


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        (
            "/credentials",
            {"kind": "widget", "project": "x", "origin": "https://a.example"},
            ("project", "origin"),
        ),
        ("/webhooks", {"url": "https://example.com/hook", "kind": ["x"]}, ("kind",)),
        ("/apps/{slug}/members", {"email": "doc@example.com", "rolle": "viewer"}, ("rolle",)),
    ],
)
def test_keys_members_and_webhooks_are_always_strict(
    tenant: Tenant, path: str, body: dict[str, Any], expected: tuple[str, ...]
) -> None:
    credentials = Credential.objects.count()

    answer = tenant.post(path.format(slug=tenant.app.slug), body)

    assert (answer.status, answer.json["errors"]) == (422, unknown(*expected))
    assert (Credential.objects.count(), Webhook.objects.count()) == (credentials, 0)
    assert tenant.app.invitations.count() == 0


def test_webhook_update_is_strict_but_accepts_the_response_of_get(tenant: Tenant) -> None:
    made = tenant.post("/webhooks", {"url": "https://example.com/hook"}).data
    path = f"/webhooks/{made['id']}"

    same = tenant.put(path, tenant.get(path).data)
    wrong = tenant.put(path, {"actve": False})

    assert same.status == 200
    assert (wrong.status, wrong.json["errors"]) == (422, unknown("actve"))


# --- Known elsewhere ------------------------------------------------------------------------------
def test_reschedule_refuses_resources_that_the_booking_has_not(tenant: Tenant, ada: Any) -> None:
    booking = tenant.book(resource_id=ada["id"], **NINE).data["id"]

    answer = tenant.post(
        f"/bookings/{booking}/reschedule",
        {**span("10:00", "11:00"), "resources": {"room": ada["id"]}},
    )

    errors = {"resources.room": ["The booking has no such resource."]}
    assert (answer.status, answer.json["errors"]) == (422, errors)


def test_mode_is_refused_together_with_requires(tenant: Tenant, ada: Any) -> None:
    requires = [{"name": "dentist", "any_of": [ada["id"]]}]
    given = {"name": "X", "requires": requires}
    errors = {"availability.mode": ["Is not used with `requires`."]}

    made = tenant.post("/projects", {**given, "availability": {"mode": "roundrobin_fair"}})
    path = f"/projects/{tenant.post('/projects', given).data['id']}"
    changed = tenant.put(path, {"availability": {"mode": "mutual"}})
    queried = tenant.post("/availability", {"requires": requires, "mode": "mutual"})

    assert [(answer.status, answer.json["errors"]) for answer in (made, changed, queried)] == [
        (422, errors),
        (422, errors),
        (422, {"mode": ["Is not used with `requires`."]}),
    ]
