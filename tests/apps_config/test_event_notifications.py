"""The list of reminders: its form, its faults, and that it is replaced whole (section 4)."""

from typing import Any

import pytest

from apps_config.models import AppNotification
from tests.world import Tenant

pytestmark = pytest.mark.usefixtures("clock")

EMAIL: dict[str, Any] = {
    "type": "email",
    "settings": {"recipient": "customer"},
    "when": {"type": "before", "unit": "mins", "time": 60},
}
CALL: dict[str, Any] = {
    "type": "webhook",
    "settings": {"url": "https://example.com/x", "method": "post", "expected_response_code": 200},
    "when": {"type": "after", "unit": "hours", "time": 24},
}

LONGEST = "https://example.com/".ljust(2048, "x")


def put(tenant: Tenant, notifications: Any) -> Any:
    return tenant.put(f"/apps/{tenant.app.slug}", {"event_notifications": notifications})


def email(**given: Any) -> dict[str, Any]:
    return {**EMAIL, "settings": {**EMAIL["settings"], **given}}


def call(**given: Any) -> dict[str, Any]:
    return {**CALL, "settings": {**CALL["settings"], **given}}


def when(**given: Any) -> dict[str, Any]:
    return {**EMAIL, "when": {**EMAIL["when"], **given}}


def test_two_reminders(tenant: Tenant) -> None:
    """To customer and owner, an hour before the start."""
    both = [email(subject="Soon"), email(recipient="owner", subject="Soon")]

    answer = put(tenant, both)

    assert (answer.status, answer.data["event_notifications"]) == (200, both)
    assert tenant.get("/app").data["event_notifications"] == both


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (CALL, CALL),
        (email(), EMAIL),
        (email(subject=""), EMAIL),
        (email(colour="red"), EMAIL),
        (email(url="no address", method="", expected_response_code=""), EMAIL),
        (call(recipient=5, subject="two\nlines"), CALL),
        (call(url=LONGEST), call(url=LONGEST)),
        (email(subject="x" * 200), email(subject="x" * 200)),
        (call(method="POST"), CALL),
        (call(method="Put"), call(method="put")),
        (call(method="patch"), call(method="patch")),
        (call(method="GET"), call(method="get")),
        (call(expected_response_code="204"), call(expected_response_code=204)),
        (
            call(expected_response_code=None),
            {**CALL, "settings": {"url": "https://example.com/x", "method": "post"}},
        ),
        (
            {**CALL, "settings": {"url": "https://example.com/x"}},
            {**CALL, "settings": {"url": "https://example.com/x", "method": "post"}},
        ),
        (when(unit="secs", time=0), when(unit="secs", time=0)),
        (when(unit="secs", time=31_536_000), when(unit="secs", time=31_536_000)),
        (when(unit="mins", time=525_600), when(unit="mins", time=525_600)),
        (when(unit="hours", time=8760), when(unit="hours", time=8760)),
        (when(unit="days", time=365), when(unit="days", time=365)),
        (when(type="after"), when(type="after")),
    ],
)
def test_accepted_forms_of_a_reminder(tenant: Tenant, given: Any, shown: Any) -> None:
    answer = put(tenant, [given])

    assert (answer.status, answer.data["event_notifications"]) == (200, [shown])


WHEN = "event_notifications.0.when"
SETTINGS = "event_notifications.0.settings"
REQUIRED = ["This field is required."]
YEAR = ["Must be at most one year."]


@pytest.mark.parametrize(
    ("given", "errors"),
    [
        (5, {"event_notifications.0": ["Must be an object."]}),
        (
            {},
            {"event_notifications.0.type": REQUIRED, WHEN: REQUIRED},
        ),
        (
            {**EMAIL, "type": "sms"},
            {"event_notifications.0.type": ["Must be one of email, webhook."]},
        ),
        ({**EMAIL, "type": 1}, {"event_notifications.0.type": ["Must be one of email, webhook."]}),
        ({**EMAIL, "settings": "x"}, {SETTINGS: ["Must be an object."]}),
        ({**EMAIL, "settings": []}, {f"{SETTINGS}.recipient": REQUIRED}),
        ({"type": "email", "when": EMAIL["when"]}, {f"{SETTINGS}.recipient": REQUIRED}),
        (email(recipient="all"), {f"{SETTINGS}.recipient": ["Must be one of customer, owner."]}),
        (
            email(subject="a\nb"),
            {f"{SETTINGS}.subject": ["May not contain control characters or line breaks."]},
        ),
        (
            email(subject="x" * 201),
            {f"{SETTINGS}.subject": ["Ensure this field has no more than 200 characters."]},
        ),
        ({**CALL, "settings": {}}, {f"{SETTINGS}.url": REQUIRED}),
        (call(url="example.com"), {f"{SETTINGS}.url": ["Must be an http or https address."]}),
        (
            call(url=f"{LONGEST}x"),
            {f"{SETTINGS}.url": ["Ensure this field has no more than 2048 characters."]},
        ),
        (
            call(url="http://169.254.169.254/latest"),
            {f"{SETTINGS}.url": ["Must be a public address."]},
        ),
        (
            call(url="https://example.com:22/"),
            {f"{SETTINGS}.url": ["The port must be one of 80, 443, 8443."]},
        ),
        (call(method="delete"), {f"{SETTINGS}.method": ["Must be one of post, put, patch, get."]}),
        (
            call(expected_response_code=99),
            {
                f"{SETTINGS}.expected_response_code": [
                    "Ensure this value is greater than or equal to 100."
                ]
            },
        ),
        (
            call(expected_response_code="600"),
            {
                f"{SETTINGS}.expected_response_code": [
                    "Ensure this value is less than or equal to 599."
                ]
            },
        ),
        (
            call(expected_response_code="2xx"),
            {f"{SETTINGS}.expected_response_code": ["Must be an integer."]},
        ),
        ({**EMAIL, "when": "soon"}, {WHEN: ["Must be an object."]}),
        (
            {**EMAIL, "when": []},
            {f"{WHEN}.type": REQUIRED, f"{WHEN}.unit": REQUIRED, f"{WHEN}.time": REQUIRED},
        ),
        (when(unit="weeks"), {f"{WHEN}.unit": ["Must be one of secs, mins, hours, days."]}),
        (when(type="at"), {f"{WHEN}.type": ["Must be one of before, after."]}),
        (when(time="60"), {f"{WHEN}.time": ["Must be an integer."]}),
        (when(time=1.5), {f"{WHEN}.time": ["Must be an integer."]}),
        (when(time=True), {f"{WHEN}.time": ["Must be an integer."]}),
        (when(time=-1), {f"{WHEN}.time": ["Ensure this value is greater than or equal to 0."]}),
        (when(unit="mins", time=525_601), {f"{WHEN}.time": YEAR}),
        (when(unit="hours", time=8761), {f"{WHEN}.time": YEAR}),
        (when(unit="days", time=366), {f"{WHEN}.time": YEAR}),
        (
            {**email(recipient="all"), "when": {**EMAIL["when"], "unit": "weeks"}},
            {
                f"{WHEN}.unit": ["Must be one of secs, mins, hours, days."],
                f"{SETTINGS}.recipient": ["Must be one of customer, owner."],
            },
        ),
    ],
)  # fmt: skip
def test_errors_are_named_by_their_paths(
    tenant: Tenant, given: Any, errors: dict[str, list[str]]
) -> None:
    answer = put(tenant, [given])

    assert (answer.status, answer.json["code"], answer.json["errors"]) == (422, "invalid", errors)
    assert not AppNotification.objects.exists()


@pytest.mark.parametrize(
    ("given", "errors"),
    [
        ({}, {"event_notifications": ["Must be a list."]}),
        (None, {"event_notifications": ["This field may not be null."]}),
        ([EMAIL] * 21, {"event_notifications": ["Must have at most 20 items."]}),
        (
            [EMAIL, when(unit="weeks"), EMAIL, when(time="1")],
            {
                "event_notifications.1.when.unit": ["Must be one of secs, mins, hours, days."],
                "event_notifications.3.when.time": ["Must be an integer."],
            },
        ),
    ],
)
def test_wrong_lists_are_refused(tenant: Tenant, given: Any, errors: dict[str, list[str]]) -> None:
    answer = put(tenant, given)

    assert (answer.status, answer.json["errors"]) == (422, errors)


def test_update_replaces_the_list_in_order(tenant: Tenant) -> None:
    lists = [[EMAIL, CALL, when(time=5)], [when(time=7), EMAIL], [EMAIL] * 20]

    shown = [put(tenant, given).data["event_notifications"] for given in lists]

    assert shown == lists
    assert AppNotification.objects.count() == 20


def test_empty_list_removes_all_reminders(tenant: Tenant) -> None:
    put(tenant, [EMAIL, CALL])

    answer = put(tenant, [])

    assert (answer.status, answer.data["event_notifications"]) == (200, [])
    assert not AppNotification.objects.exists()


def test_update_without_the_list_keeps_it(tenant: Tenant) -> None:
    put(tenant, [EMAIL])

    answer = tenant.put(f"/apps/{tenant.app.slug}", {"name": "Other"})

    assert answer.data["event_notifications"] == [EMAIL]
