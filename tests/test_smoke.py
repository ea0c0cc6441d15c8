"""The main job once, end to end in one process."""

import pytest

from tests.world import Tenant

pytestmark = pytest.mark.both_databases


def test_free_time_is_offered_and_booked_once(tenant: Tenant) -> None:
    resource = tenant.make_resource(
        availability_constraints=[{"allow_hours": {"start": 9, "end": 11}}]
    )
    query = {
        "resources": [resource["id"]],
        "from": "2030-01-01 00:00:00",
        "to": "2030-01-02 00:00:00",
    }
    slot = tenant.post("/availability", query).data[0]
    asked = {"resource_id": resource["id"], "start": slot["start"], "end": slot["end"]}

    first, second = tenant.book(**asked), tenant.book(**asked)

    assert (first.status, second.status) == (201, 409)
    assert second.error == {
        "error": "The time is taken.",
        "code": "slot_taken",
        "conflicts": [{"start": "2030-01-01T09:00:00+00:00", "end": "2030-01-01T10:00:00+00:00"}],
        "alternatives": [
            {"start": "2030-01-01T10:00:00+00:00", "end": "2030-01-01T11:00:00+00:00"},
            {"start": "2030-01-01T11:00:00+00:00", "end": "2030-01-01T12:00:00+00:00"},
            {"start": "2030-01-01T12:00:00+00:00", "end": "2030-01-01T13:00:00+00:00"},
        ],
    }
    assert tenant.post("/availability", query).data == [
        {
            "start": "2030-01-01T10:00:00+00:00",
            "end": "2030-01-01T11:00:00+00:00",
            "resources": [{"id": resource["id"], "name": "Ada", "timezone": "UTC"}],
        }
    ]
