"""/webhooks: what is taken, what is shown, and that the secret is shown once."""

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from apps_config.models import Membership
from common.encryption import decrypt_text
from notifications.models import Delivery, Webhook
from notifications.webhooks.bodies import CALL_EXAMPLE
from notifications.webhooks.services import MAX_WEBHOOKS, disable_webhook, signing_secrets
from tests.bookings.booking_drafts import NINE, span
from tests.corpus import UNKNOWN_ID
from tests.world import NOW, STAMP, Caller, Tenant, call_body

URL = "https://example.com/hook"
PLAIN = {
    "url": URL,
    "method": "post",
    "graph": None,
    "states": [],
    "kinds": [],
    "expected_response_code": None,
    "format": None,
    "active": True,
    "description": "",
    "disabled_reason": None,
    "created_at": STAMP,
    "updated_at": STAMP,
}

pytestmark = pytest.mark.usefixtures("clock", "expanded_calls")


@pytest.fixture
def webhook(tenant: Tenant) -> Any:
    """A webhook as answers show it, but for its secret."""
    made = tenant.post("/webhooks", {"url": URL}).data
    return {key: value for key, value in made.items() if key != "secret"}


# --- Making, reading, changing, removing ----------------------------------------------------------
def test_create_with_defaults_shows_the_secret_once(tenant: Tenant) -> None:
    made = tenant.post("/webhooks", {"url": URL})

    row = Webhook.objects.get()
    assert made.status == 201
    assert made.data == {"id": str(row.id), **PLAIN, "secret": decrypt_text(row.secret)}
    assert made.data["secret"].startswith("whsec_")
    assert tenant.get(f"/webhooks/{row.id}").data == {"id": str(row.id), **PLAIN}
    assert tenant.get("/webhooks").json == {"data": [{"id": str(row.id), **PLAIN}]}


def test_create_with_every_field(tenant: Tenant) -> None:
    given = {
        "url": "https://example.com:8443/a?b=c",
        "method": "PATCH",
        "format": "thin",
        "graph": "confirm_decline",
        "states": ["confirmed", "rescheduled", "confirmed"],
        "expected_response_code": "202",
        "active": False,
        "description": "A display",
    }

    made = tenant.post("/webhooks", given).data

    assert made == {
        **PLAIN,
        "id": made["id"],
        "secret": made["secret"],
        "url": "https://example.com:8443/a?b=c",
        "method": "patch",
        "format": "thin",
        "graph": "confirm_decline",
        "states": ["confirmed", "rescheduled"],
        "expected_response_code": 202,
        "active": False,
        "description": "A display",
    }


def test_list_is_newest_first(tenant: Tenant, make_tenant: Callable[..., Tenant]) -> None:
    make_tenant().post("/webhooks", {"url": URL})
    ids = [tenant.post("/webhooks", {"url": f"{URL}/{n}"}).data["id"] for n in range(60)]

    listed = tenant.get("/webhooks").json

    assert [one["id"] for one in listed["data"]] == ids[::-1]
    assert set(listed) == {"data"}


@pytest.mark.parametrize(
    ("given", "changed"),
    [
        ({}, {}),
        ({"url": "http://example.com/b"}, {"url": "http://example.com/b"}),
        ({"method": "Put"}, {"method": "put"}),
        ({"graph": "instant"}, {"graph": "instant"}),
        ({"graph": None}, {}),
        ({"states": ["cancelled"]}, {"states": ["cancelled"]}),
        ({"expected_response_code": 100}, {"expected_response_code": 100}),
        ({"expected_response_code": "599"}, {"expected_response_code": 599}),
        ({"active": False}, {"active": False}),
        ({"description": "x" * 8000}, {"description": "x" * 8000}),
        ({"description": "a\nb"}, {"description": "a\nb"}),
        ({"description": None}, {}),
    ],
)
def test_update_is_partial(tenant: Tenant, webhook: Any, given: Any, changed: Any) -> None:
    answer = tenant.put(f"/webhooks/{webhook['id']}", given)

    assert (answer.status, answer.data) == (200, webhook | changed)
    assert tenant.get(f"/webhooks/{webhook['id']}").data == webhook | changed


def test_null_and_empty_lists_clear_fields(tenant: Tenant) -> None:
    whole = {
        "url": URL,
        "graph": "instant",
        "states": ["confirmed"],
        "expected_response_code": 201,
        "description": "x",
    }
    made = tenant.post("/webhooks", whole).data
    cleared = {"graph": None, "states": [], "expected_response_code": None, "description": ""}

    answer = tenant.put(f"/webhooks/{made['id']}", cleared)

    assert answer.data == {"id": made["id"], **PLAIN}


def test_delete_skips_open_calls(tenant: Tenant, webhook: Any) -> None:
    resource = tenant.make_resource()
    tenant.book(resource_id=resource["id"], **NINE)
    path = f"/webhooks/{webhook['id']}"

    removed = tenant.delete(path)
    later = tenant.book(resource_id=resource["id"], **span("11:00", "12:00"))

    calls = tenant.get("/deliveries?type=webhook").data
    assert (removed.status, removed.content, later.status) == (204, b"", 201)
    assert tenant.get("/webhooks").data == []
    answers = [
        tenant.get(path),
        tenant.put(path, {}),
        tenant.delete(path),
        tenant.post(f"{path}/rotate"),
        tenant.post(f"{path}/test"),
        tenant.get(f"{path}/deliveries"),
    ]
    gone = {"error": "Webhook not found.", "code": "not_found", "model": "Webhook"}
    assert [(answer.status, answer.error) for answer in answers] == [(404, gone)] * 6
    assert [(call["state"], call["reason"]) for call in calls] == [
        ("skipped", "The webhook was deleted.")
    ]


def test_enabling_resets_failures(tenant: Tenant, webhook: Any) -> None:
    row = Webhook.objects.get()
    Webhook.objects.update(failures=25, failing_since=NOW)
    disable_webhook(row, "The receiver returned 410 Gone.", now=NOW)
    disabled = tenant.get(f"/webhooks/{row.id}").data

    untouched = tenant.put(f"/webhooks/{row.id}", {"description": "x"}).data
    switched_on = tenant.put(f"/webhooks/{row.id}", {"active": True, "description": ""}).data

    off = {"active": False, "disabled_reason": "The receiver returned 410 Gone."}
    assert disabled == webhook | off
    assert untouched == webhook | off | {"description": "x"}
    assert switched_on == webhook
    row.refresh_from_db()
    assert (row.failures, row.failing_since, row.disabled_reason) == (0, None, "")


def test_new_url_applies_to_open_calls(tenant: Tenant, webhook: Any) -> None:
    row = Webhook.objects.get()
    tenant.post(f"/webhooks/{row.id}/test")
    tenant.post(f"/webhooks/{row.id}/test")
    Delivery.objects.filter(id=Delivery.objects.last().id).update(state=Delivery.SENDING)
    disable_webhook(row, "x", now=NOW)

    tenant.put(f"/webhooks/{row.id}", {"url": "http://other.example.com/x"})

    rows = Delivery.objects.order_by("id").values_list("kind", "state", "endpoint")
    assert list(rows) == [
        ("test", "sending", "https://example.com:443"),
        ("test", "scheduled", "http://other.example.com:80"),
        ("webhook_disabled", "scheduled", ""),
    ]


# --- What is refused ------------------------------------------------------------------------------
ONE_GRAPH = (
    "Must be one of instant, confirm_decline, instant_payment, group_owner, group_customer,"
    " group_customer_payment."
)
ONE_STATE = (
    "Must be one of initialized, confirmed, cancelled, cancelled_by_customer, completed, tentative,"
    " declined, paid, unpaid, cancelled_by_owner, rescheduled."
)
PRIVATE = "Must be a public address."
NO_ADDRESS = "Must be an http or https address."
REFUSED = [
    ({"url": None}, {"url": ["This field may not be null."]}),
    ({"url": ""}, {"url": ["This field may not be blank."]}),
    ({"url": 5}, {"url": ["Must be a string."]}),
    ({"url": "example.com"}, {"url": [NO_ADDRESS]}),
    ({"url": "ftp://example.com"}, {"url": [NO_ADDRESS]}),
    ({"url": "https://user:pass@example.com"}, {"url": [NO_ADDRESS]}),
    ({"url": "http://127.0.0.1/x"}, {"url": [PRIVATE]}),
    ({"url": "http://localhost/x"}, {"url": [PRIVATE]}),
    ({"url": "http://10.1.2.3/x"}, {"url": [PRIVATE]}),
    ({"url": "http://169.254.169.254/latest"}, {"url": [PRIVATE]}),
    ({"url": "http://[::1]/x"}, {"url": [PRIVATE]}),
    ({"url": "https://example.com:22"}, {"url": ["The port must be one of 80, 443, 8443."]}),
    ({"method": "get"}, {"method": ["Must be one of post, put, patch."]}),
    ({"method": None}, {"method": ["This field may not be null."]}),
    ({"graph": "unknown"}, {"graph": [ONE_GRAPH]}),
    ({"graph": ""}, {"graph": [ONE_GRAPH]}),
    ({"states": None}, {"states": ["This field may not be null."]}),
    ({"states": "confirmed"}, {"states": ["Must be a list."]}),
    ({"states": ["confirmed", "moved"]}, {"states.1": [ONE_STATE]}),
    ({"states": ["confirmed"] * 12}, {"states": ["Must have at most 11 items."]}),
    (
        {"expected_response_code": 99},
        {"expected_response_code": ["Ensure this value is greater than or equal to 100."]},
    ),
    (
        {"expected_response_code": "600"},
        {"expected_response_code": ["Ensure this value is less than or equal to 599."]},
    ),
    ({"expected_response_code": "2xx"}, {"expected_response_code": ["Must be an integer."]}),
    ({"expected_response_code": True}, {"expected_response_code": ["Must be an integer."]}),
    ({"active": "true"}, {"active": ["Must be true or false."]}),
    ({"active": None}, {"active": ["This field may not be null."]}),
    (
        {"description": "x" * 8001},
        {"description": ["Ensure this field has no more than 8000 characters."]},
    ),
    (
        {"description": "a\x07b"},
        {"description": ["May not contain control characters."]},
    ),
]


@pytest.mark.parametrize(
    ("given", "errors"), REFUSED, ids=[json.dumps(one)[:80] for one, _ in REFUSED]
)
def test_wrong_values_are_refused(tenant: Tenant, webhook: Any, given: Any, errors: Any) -> None:
    made = tenant.post("/webhooks", {"url": URL, **given})
    changed = tenant.put(f"/webhooks/{webhook['id']}", given)

    (path, (sentence,)) = next(iter(errors.items()))
    refusal = {"error": f"{path}: {sentence}", "code": "invalid", "errors": errors}
    assert [(one.status, one.error) for one in (made, changed)] == [(422, refusal)] * 2
    assert tenant.get("/webhooks").data == [webhook]


def test_url_is_required(tenant: Tenant) -> None:
    answer = tenant.post("/webhooks", {"method": "post"})

    assert (answer.status, answer.json["errors"]) == (422, {"url": ["This field is required."]})


def test_number_of_webhooks_is_limited(tenant: Tenant, make_tenant: Callable[..., Tenant]) -> None:
    Webhook.objects.bulk_create(
        Webhook(app=tenant.app, url=URL, secret="x") for _ in range(MAX_WEBHOOKS)
    )

    refused = tenant.post("/webhooks", {"url": URL})
    elsewhere = make_tenant().post("/webhooks", {"url": URL})
    tenant.delete(f"/webhooks/{tenant.get('/webhooks').data[0]['id']}")
    again = tenant.post("/webhooks", {"url": URL})

    assert MAX_WEBHOOKS == 100
    assert (refused.status, refused.json["errors"]) == (
        422,
        {"body": ["An app has at most 100 webhooks."]},
    )
    assert (elsewhere.status, again.status) == (201, 201)


def test_foreign_webhook_is_not_found(
    tenant: Tenant, webhook: Any, make_tenant: Callable[..., Tenant]
) -> None:
    stranger = make_tenant()
    tails = [("GET", ""), ("PUT", ""), ("DELETE", "")]
    tails += [("POST", "/rotate"), ("POST", "/test"), ("GET", "/deliveries")]

    answers = {
        (method, tail, name): stranger.call(method, f"/webhooks/{webhook_id}{tail}")
        for method, tail in tails
        for name, webhook_id in (("foreign", webhook["id"]), ("unknown", UNKNOWN_ID))
    }

    gone = {"error": "Webhook not found.", "code": "not_found", "model": "Webhook"}
    assert {key: (answer.status, answer.error) for key, answer in answers.items()} == dict.fromkeys(
        answers, (404, gone)
    )
    assert tenant.get("/webhooks").data == [webhook]


# --- Who may --------------------------------------------------------------------------------------
def test_permissions_of_each_role(tenant: Tenant, webhook: Any) -> None:
    resource = tenant.make_resource(email="room@example.com")
    callers: dict[str, Caller] = {
        "viewer": tenant.member("viewer@example.com", Membership.VIEWER),
        "editor": tenant.member("editor@example.com", Membership.EDITOR),
        "owner": tenant.member("owner@example.com", Membership.OWNER),
        "widget": tenant.widget(),
        "resource": Caller(resource["api_token"], user="room@example.com"),
    }
    path = f"/webhooks/{webhook['id']}"
    delivery = tenant.post(f"{path}/test").data
    calls = [
        ("GET", "/webhooks", None),
        ("GET", path, None),
        ("GET", f"{path}/deliveries", None),
        ("GET", "/deliveries", None),
        ("GET", f"/deliveries/{delivery['id']}", None),
        ("POST", "/webhooks", {"url": URL}),
        ("PUT", path, {}),
        ("POST", f"{path}/rotate", None),
        ("POST", f"{path}/test", None),
        ("POST", f"/deliveries/{delivery['id']}/redeliver", None),
    ]

    statuses = {
        name: [caller.call(*call).status for call in calls] for name, caller in callers.items()
    }
    own = {name: tenant.post("/webhooks", {"url": URL}).data["id"] for name in callers}
    removed = {
        name: caller.delete(f"/webhooks/{own[name]}").status for name, caller in callers.items()
    }

    everything = [200] * 5 + [201, 200, 200, 201, 200]
    assert statuses == {
        "viewer": [200] * 5 + [403] * 5,
        "editor": everything,
        "owner": everything,
        "widget": [403] * 10,
        "resource": [403] * 10,
    }
    assert removed == {
        "viewer": 403,
        "editor": 204,
        "owner": 204,
        "widget": 403,
        "resource": 403,
    }


# --- The secret -----------------------------------------------------------------------------------
def test_rotated_and_old_secret_sign_for_a_day(tenant: Tenant, clock: Any) -> None:
    made = tenant.post("/webhooks", {"url": URL}).data
    row = Webhook.objects.get()
    clock.shift(60)

    rotated = tenant.post(f"/webhooks/{made['id']}/rotate")

    row.refresh_from_db()
    first, second = made["secret"], rotated.data["secret"]
    later = made | {"secret": second, "updated_at": "2026-11-20T09:31:00+0000"}
    assert (rotated.status, rotated.data) == (200, later)
    assert first != second
    day = row.previous_until
    assert (day - NOW).total_seconds() == 86_460
    assert signing_secrets(row, now=NOW) == [second, first]
    assert signing_secrets(row, now=day) == [second]


def test_repeated_requests_of_a_webhook_act_once(tenant: Tenant, webhook: Any) -> None:
    key = {"Idempotency-Key": "k"}
    path = f"/webhooks/{webhook['id']}"

    tested = [tenant.post(f"{path}/test", **key) for _ in range(2)]
    changed = tenant.put(path, {"description": "x"}, **{"Idempotency-Key": "l"})

    assert Webhook.objects.count() == 1
    assert tested[0].data == tested[1].data
    assert tested[1].headers["Idempotent-Replayed"] == "true"
    assert changed.status == 200
    assert Delivery.objects.count() == 1


def test_secret_is_in_no_other_response_or_log(
    tenant: Tenant, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    made = tenant.post("/webhooks", {"url": URL}).data
    path = f"/webhooks/{made['id']}"
    rotated = tenant.post(f"{path}/rotate").data
    resource = tenant.make_resource()
    booking = tenant.book(resource_id=resource["id"], **NINE).data

    answers = [
        tenant.get("/webhooks"),
        tenant.get(path),
        tenant.put(path, {"active": True}),
        tenant.post(f"{path}/test"),
        tenant.get(f"{path}/deliveries"),
        tenant.get("/deliveries"),
        *(tenant.get(f"/deliveries/{one['id']}") for one in tenant.get("/deliveries").data),
        tenant.get(f"/bookings/{booking['id']}"),
        tenant.post("/webhooks", {"url": "x"}),
        tenant.get("/app"),
    ]

    written = b"".join(answer.content for answer in answers).decode() + caplog.text
    stored = Webhook.objects.values_list("secret", "previous_secret").get()
    for secret in (made["secret"], rotated["secret"], *stored):
        assert secret.removeprefix("whsec_") not in written
    assert len({made["secret"], rotated["secret"], *stored}) == 4
    assert '"secret"' not in written


# --- The test call --------------------------------------------------------------------------------
def test_test_call_has_the_newest_booking(tenant: Tenant, webhook: Any) -> None:
    resource = tenant.make_resource()
    tenant.book(resource_id=resource["id"], **NINE)
    newest = tenant.book(
        resource_id=resource["id"], **span("11:00", "12:00"), event_notifications=[]
    ).data

    answer = tenant.post(f"/webhooks/{webhook['id']}/test")

    row = Delivery.objects.get(kind="test")
    assert answer.status == 201
    assert answer.data == {
        "id": str(row.id),
        "type": "webhook",
        "kind": "test",
        "booking_id": newest["id"],
        "webhook_id": webhook["id"],
        "recipient": None,
        "state": "scheduled",
        "reason": None,
        "due_at": STAMP,
        "next_at": STAMP,
        "attempts": [],
        "created_at": STAMP,
        "updated_at": STAMP,
        "payload": call_body(tenant, newest["id"], "webhook.test"),
    }
    assert tenant.get(f"/deliveries/{row.id}").data == answer.data
    assert (row.next_at, row.endpoint) == (NOW, "https://example.com:443")


def test_test_call_without_bookings_has_an_example(
    tenant: Tenant, webhook: Any, make_tenant: Callable[..., Tenant]
) -> None:
    other = make_tenant()
    other.book(resource_id=other.make_resource()["id"], **NINE)

    answer = tenant.post(f"/webhooks/{webhook['id']}/test")

    change = CALL_EXAMPLE["change"] | {"kind": "webhook.test"}
    expected = CALL_EXAMPLE | {"change": change}
    assert (answer.data["booking_id"], answer.data["payload"]) == (None, expected)
