"""404 names the kind of what is not there, whatever is asked for (section 1, Errors)."""

import re
import uuid
from typing import Any

import pytest

from tests.bookings.booking_drafts import NINE
from tests.description import Operation, description
from tests.world import Tenant, clock_at_now

# Path parameter -> the `model` of the answer.
MODELS = {
    "action": "Action",
    "booking_id": "Booking",
    "calendar_id": "Calendar",
    "credential_id": "Credential",
    "delivery_id": "Delivery",
    "email": "Resource",
    "event_id": "Event",
    "group_id": "Booking",
    "member_id": "Member",
    "project_id": "Project",
    "project_slug": "Project",
    "provider": "Provider",
    "reservation_id": "Hold",
    "resource_id": "Resource",
    "schedule_id": "Schedule",
    "slug": "App",
    "template_slug": "Template",
    "webhook_id": "Webhook",
}
BODIES: dict[str, Any] = {
    "/v2/bookings/{booking_id}/reschedule": NINE,
    "/v2/bookings/reserve/{reservation_id}/verify": {"code": "123456"},
}
PAGES = ("/external_action/{action}", "/password", "/unsubscribe")  # answered by pages, for people


def parameters(operation: Operation) -> list[str]:
    return re.findall(r"\{(\w+)\}", operation.path)


NAMING = [
    (operation, name)
    for operation in description().operations
    if not operation.path.endswith(PAGES)
    for name in parameters(operation)
    if name != "external_id"  # makes the object that is not there
]


@pytest.fixture(scope="module")
def tenant_with_rows(module_transaction: None) -> tuple[Tenant, dict[str, str]]:
    """A tenant, and what stands before the one that is not there."""
    with clock_at_now():
        tenant = Tenant("known")
        return tenant, make_known(tenant)


def make_known(tenant: Tenant) -> dict[str, str]:
    resource = tenant.make_resource()
    return {
        "action": "cancel",
        "booking_id": tenant.book(resource_id=resource["id"], **NINE).data["id"],
        "project_id": tenant.make_project(resource["id"])["id"],
        "provider": "google",
        "slug": tenant.app.slug,
    }


def unknown(name: str) -> str:
    return {"action": "explode", "email": "nobody@example.com"}.get(name, str(uuid.uuid4()))


def test_every_kind_of_id_has_its_model() -> None:
    assert {name for _, name in NAMING} == MODELS.keys()


@pytest.mark.usefixtures("clock", "db")
@pytest.mark.parametrize(
    ("operation", "missing"), NAMING, ids=[f"{one}, no {name}" for one, name in NAMING]
)
@pytest.mark.matrix
def test_not_found_names_the_model(
    tenant_with_rows: tuple[Tenant, dict[str, str]], operation: Operation, missing: str
) -> None:
    tenant, ids = tenant_with_rows
    ids = ids | {missing: unknown(missing)}
    names = parameters(operation)
    values = {name: ids.get(name) or unknown(name) for name in names}
    path = operation.path.removeprefix("/v2").format(**values)
    body = None if operation.method == "GET" else BODIES.get(operation.path, {})

    answer = tenant.call(operation.method, path, body)

    model = MODELS[missing]
    assert (answer.status, answer.json) == (
        404,
        {
            "error": f"{model} not found.",
            "code": "not_found",
            "model": model,
            "request_id": answer.headers["Service-Request-Id"],
        },
    )


@pytest.mark.parametrize("path", ["/nowhere", "/bookings/x", "/resources/1/calendars"])
def test_unknown_path_is_page_not_found(tenant: Tenant, path: str) -> None:
    answer = tenant.get(path)

    assert (answer.status, answer.error) == (
        404,
        {
            "error": "No endpoint has this path. Ids in paths are UUIDs.",
            "code": "not_found",
            "model": "Page",
        },
    )
