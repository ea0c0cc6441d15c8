import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
import time_machine
from django.conf import LazySettings
from django.db import connection
from django.test.utils import CaptureQueriesContext as Queries

from apps_config.models import App, Credential
from availability.models import Calendar, Event, Project, Resource
from bookings.models import Customer
from common.db.ids import home_of_id, least_id, new_id, new_tenant_id
from common.db.sql import insert_rows
from external_calendars.models import WrittenEvent

OLD_ID = uuid.UUID("019aa0b6-7d40-7fff-bfff-ffffffffffff")  # of version 7
HOMES = [0, 1, 7, 128, 255]


def test_id_contains_time_and_home(settings: LazySettings) -> None:
    settings.HOME_NUMBER = 201
    with time_machine.travel(datetime(2026, 11, 20, 9, 30, tzinfo=UTC), tick=False):
        made = new_id()

    moment = datetime.fromtimestamp((made.int >> 80) / 1000, UTC)
    assert (made.version, made.variant, moment, home_of_id(made)) == (
        8,
        uuid.RFC_4122,
        datetime(2026, 11, 20, 9, 30, tzinfo=UTC),
        201,
    )


def test_ids_of_one_instant_are_ascending() -> None:
    with time_machine.travel(datetime(2026, 11, 20, tzinfo=UTC), tick=False):
        made = [new_id() for _ in range(10_000)]

    assert made == sorted(made)
    assert len(set(made)) == len(made)


@pytest.mark.parametrize("home", HOMES)
def test_a_row_has_the_home_of_its_app(settings: LazySettings, home: int) -> None:
    settings.HOME_NUMBER = home
    app_id = new_id()
    settings.HOME_NUMBER = 99

    made = new_tenant_id(app_id)

    assert (home_of_id(made), home_of_id(new_tenant_id(made))) == (home, home)
    assert made.version == 8


@pytest.mark.parametrize("home", HOMES)
def test_least_id_is_below_later_ids(settings: LazySettings, home: int) -> None:
    settings.HOME_NUMBER = home
    with time_machine.travel(datetime(2026, 11, 20, 9, 30, tzinfo=UTC), tick=False) as clock:
        before = new_id()
        clock.shift(0.001)
        least = least_id(datetime(2026, 11, 20, 9, 30, 0, 1000, tzinfo=UTC))
        since = new_id()

    assert before < least < since


# --- The field ------------------------------------------------------------------------------------
@pytest.fixture
def app(settings: LazySettings) -> App:
    settings.HOME_NUMBER = 42
    app = App(slug="a", name="A")
    assert home_of_id(app.id) == 42
    settings.HOME_NUMBER = 0
    return app


def test_id_is_created_on_first_read(app: App) -> None:
    project = Project(app=app, name="Check-up")

    assert "id" not in project.__dict__
    assert (project.id, project.pk, home_of_id(project.id)) == (project.id, project.id, 42)


def test_app_can_be_set_after_creation(app: App) -> None:
    resource = Resource(name="Ada")
    resource.app = app

    assert home_of_id(resource.id) == 42


def test_given_id_is_kept(app: App) -> None:
    assert Resource(app=app, id=OLD_ID).id == OLD_ID


def test_home_is_found_through_the_parent(app: App) -> None:
    event = Event(app=app)

    assert home_of_id(WrittenEvent(event=event).id) == 42


@pytest.mark.django_db
@pytest.mark.both_databases
@pytest.mark.parametrize("save", [lambda row: row.save(), lambda row: insert_rows([row])])
@pytest.mark.parametrize("model", [Resource, Calendar, Customer, WrittenEvent])
def test_a_row_without_an_app_is_not_saved(model: Any, save: Callable[[Any], None]) -> None:
    row = model()
    assert row.id is None

    with pytest.raises(ValueError, match=f"{model.__name__}: a row without an app has no id"):
        save(row)


def test_an_access_token_has_the_home_of_this_installation(
    app: App, settings: LazySettings
) -> None:
    settings.HOME_NUMBER = 3

    keys = [Credential(kind="server", app=app), Credential(kind="access")]

    assert [home_of_id(key.id) for key in keys] == [42, 3]


@pytest.mark.django_db
@pytest.mark.both_databases
def test_ids_with_every_way_of_saving(app: App) -> None:
    app.save()
    resource = Resource(app=app, name="Saved", timezone="UTC")
    with Queries(connection) as queries:
        resource.save()
    statements = [query["sql"].partition(" ")[0] for query in queries]
    assert (statements.count("INSERT"), statements.count("UPDATE")) == (2, 0)  # with its history
    created = Resource.objects.create(app=app, name="Created", timezone="UTC")
    bulk = Resource.objects.bulk_create([Resource(app=app, name="Bulk", timezone="UTC")])
    copied = Resource.objects.get(id=resource.id)
    copied.pk, copied._state.adding, copied.name = None, True, "Copied"
    copied.save()
    resource.name = "Saved twice"
    resource.save()

    rows = Resource.objects.order_by("id")
    assert [(row.name, home_of_id(row.id)) for row in rows] == [
        ("Saved twice", 42),
        ("Created", 42),
        ("Bulk", 42),
        ("Copied", 42),
    ]
    assert [row.id for row in rows] == [resource.id, created.id, bulk[0].id, copied.id]
