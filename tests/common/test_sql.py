"""Values of bulk inserts."""

import uuid
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, connections
from django.db.models import Model

from availability.models import Calendar, Event
from bookings.models import Booking, Customer
from common.db.sql import _column_values
from notifications.models import Attempt, Delivery

pytestmark = pytest.mark.both_databases

ID = uuid.UUID("0193a4c2-0000-7000-8000-000000000030")
VALUES: dict[str, Any] = {
    "BooleanField": True,
    "CharField": "Check-up",
    "DateField": date(2026, 11, 20),
    "DateTimeField": datetime(2026, 11, 20, 9, 30, tzinfo=UTC),
    "DurationField": timedelta(minutes=5),
    "ForeignKey": ID,
    "JSONField": {"ward": "7"},
    "TextField": "Bring your card.",
    "UUIDField": ID,
}


@pytest.mark.parametrize("model", [Event, Calendar, Booking, Customer, Delivery, Attempt])
def test_bulk_values_equal_those_of_the_orm(model: type[Model]) -> None:
    rows = [model(), model()]
    for field in model._meta.concrete_fields:
        setattr(rows[0], field.attname, VALUES.get(field.get_internal_type(), 7))
        setattr(rows[1], field.attname, None if field.null else getattr(rows[0], field.attname))
    database = connections[connection.alias]

    now = {"created_at", "updated_at"}
    fields = [field for field in model._meta.concrete_fields if field.name not in now]
    for field in fields:
        expected = [
            repr(field.get_db_prep_save(getattr(row, field.attname), database)) for row in rows
        ]
        assert [repr(value) for value in _column_values(field, rows, database)] == expected
