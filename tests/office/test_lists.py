"""Every list of the back office asks as much of the database for one row as for 300."""

import uuid
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from django.contrib import admin
from django.db import connection, models, transaction
from django.test import Client
from django.urls import reverse

from apps_config.models import Account
from bookings.models import Booking
from tests.office.conftest import Enter
from tests.office.test_rights import foreign_tenant
from tests.queries import Queries
from tests.world import Tenant

__all__ = ["foreign_tenant"]

# The page of mails has a line for each kind of them.
NO_LIST = ("EmailTemplate",)
MODELS = [
    model
    for model, page in admin.site._registry.items()
    if page.app_paths and model.__name__ not in NO_LIST
]
MAX_SHOWN = 50  # rows of a list


def copy(row: Any, **given: Any) -> Any:
    """An unsaved row with the same values and an id of its own."""
    names = [field.attname for field in row._meta.concrete_fields if not field.primary_key]
    values = {name: getattr(row, name) for name in names} | given
    if isinstance(row._meta.pk, models.UUIDField):
        values["id"] = uuid.uuid4()
    return type(row)(**values)


def other(row: Any, **given: Any) -> Any:
    """A saved copy of a row."""
    made = copy(row, **given)
    type(row)._default_manager.bulk_create([made])
    return made


# What has to differ between two rows of a kind.
DIFFERENT: dict[str, Callable[[Any, int], dict[str, Any]]] = {
    "App": lambda row, n: {"slug": f"copy-{n}"},
    "Membership": lambda row, n: {
        "account_id": Account.objects.create(email=f"copy-{n}@example.com").pk
    },
    "Credential": lambda row, n: {"prefix": f"copy-{n}_"},
    "Resource": lambda row, n: {"email": None, "address": None},
    "Project": lambda row, n: {"slug": f"copy-{n}"},
    "Event": lambda row, n: {"exclusive": False},
    "ProjectResource": lambda row, n: {"resource_id": other(row.resource, email=None).pk},
    "Booking": lambda row, n: {"event_id": other(row.event, exclusive=False).pk},
    "AppCustomer": lambda row, n: {"address": f"copy-{n}@example.com"},
    "Delivery": lambda row, n: {
        "number": 1000 + n,
        "booking_id": row.app.bookings.first().pk,
    },
    "ProviderClient": lambda row, n: {"provider": f"copy-{n}"},
    "Suppression": lambda row, n: {"address": f"copy-{n}@example.com"},
}


def count_queries(
    client: Client, foreign_tenant: Tenant, model: Any, counts: Sequence[int]
) -> list[int]:
    """Of the model's list, with as many rows."""
    address, rows = list_of(model), model._default_manager
    row = rows.first()
    if model is Booking:
        rows.filter(max_seats__isnull=False).update(max_seats=1000)  # for copies of a seat
    client.get(address)

    asked, shown = [], []
    for count in counts:
        present = rows.count()
        different = DIFFERENT.get(model.__name__, lambda row, n: {})
        rows.bulk_create([copy(row, **different(row, n)) for n in range(present, count)])
        with Queries(connection) as queries:
            page = client.get(address)
        asked.append(len(queries))
        shown.append(len(page.context["cl"].result_list))

    assert rows.count() >= counts[-1]
    assert (model, shown[-1]) == (model, min(rows.count(), MAX_SHOWN))
    return asked


def test_query_count_of_each_list_is_constant(
    tenant: Tenant, foreign_tenant: Tenant, enter: Enter
) -> None:
    client, found = enter(), {}

    for model in MODELS:
        with transaction.atomic():  # the rows of one model are none of the next one's
            found[model.__name__] = count_queries(client, foreign_tenant, model, (1, 3))
            transaction.set_rollback(True)

    assert found == {name: [asked[0]] * 2 for name, asked in found.items()}
    assert len(found) == len(MODELS)


@pytest.mark.parametrize(
    "model",
    [pytest.param(model, marks=() if model is Booking else pytest.mark.deep) for model in MODELS],
    ids=lambda model: model.__name__,
)
def test_query_count_is_constant_for_many_rows(
    tenant: Tenant, foreign_tenant: Tenant, enter: Enter, model: Any
) -> None:
    asked = count_queries(enter(), foreign_tenant, model, (1, 3, 300))

    assert asked == [asked[0]] * 3


def list_of(model: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
