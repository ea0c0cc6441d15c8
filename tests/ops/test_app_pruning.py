"""After a split, each cell deletes the other's apps (docs/scaling.md)."""

import re
from collections.abc import Callable
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apps_config.models import App
from ops.app_pruning import close_apps, count_rows, delete_apps, tables_of_apps
from tests.setup.test_sharding_keys import rows as documented_keys
from tests.world import Tenant

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def fill(tenant: Tenant) -> None:
    """A few rows that refer to each other: a group with a seat, a visit's buffers, history."""
    resource = tenant.post_resource()
    tenant.post_project(resource["id"])
    tenant.put(f"/resources/{resource['id']}", {"name": "Ada Lovelace"})
    tenant.post("/webhooks", {"url": "https://example.com/hook", "active": False})
    times = {"start": "2031-01-06 09:00:00", "end": "2031-01-06 10:00:00"}
    group = {"graph": "group_owner", "settings": {"max_seats": 5}, "resource_id": resource["id"]}
    owner = tenant.book(**group, **times).data["id"]
    seat = {"graph": "group_customer", "related": {"owner_booking_id": owner}}
    assert tenant.book(**seat).status == 201
    times = {"start": "2031-01-07 09:00:00", "end": "2031-01-07 10:00:00"}
    assert tenant.book(resource_id=resource["id"], **times).status == 201


@pytest.fixture
def two(make_tenant: Callable[..., Tenant]) -> tuple[Tenant, Tenant]:
    harbour, station = make_tenant(slug="harbour"), make_tenant(slug="station")
    fill(harbour)
    fill(station)
    return harbour, station


def slugs() -> list[str]:
    return sorted(App.objects.values_list("slug", flat=True))


def test_every_table_of_apps_is_pruned() -> None:
    documented = {
        name.partition(".")[0] for key, names in documented_keys() if key == "app" for name in names
    }

    assert {model._meta.db_table for model in tables_of_apps()} == documented - {"apps_config_app"}


def test_pruning_leaves_the_rows_of_other_apps(two: tuple[Tenant, Tenant]) -> None:
    harbour, station = two
    before = count_rows(station.app)

    deleted = sum(count for _, count in delete_apps(App.objects.filter(slug="harbour"), batch=3))

    assert len(before) > 15
    assert deleted >= sum(before.values())
    assert (count_rows(station.app), count_rows(harbour.app)) == (before, {})
    assert slugs() == ["station"]


@pytest.mark.parametrize("batches", [0, 1, 7, 20])
def test_interrupted_pruning_can_be_repeated(two: tuple[Tenant, Tenant], batches: int) -> None:
    before = count_rows(two[1].app)
    gone = App.objects.filter(slug="harbour")

    list(islice(delete_apps(gone, batch=2), batches))
    half = slugs()
    list(delete_apps(gone, batch=2))

    assert (half, slugs()) == (["harbour", "station"], ["station"])
    assert count_rows(two[1].app) == before


def test_closed_apps_let_nobody_in(two: tuple[Tenant, Tenant]) -> None:
    count = close_apps(App.objects.filter(slug="harbour"))

    assert (count, close_apps(App.objects.filter(slug="harbour"))) == (1, 0)
    assert [tenant.get("/app").status for tenant in two] == [401, 200]


# --- The commands ---------------------------------------------------------------------------------
def prune(**options: Any) -> str:
    out = StringIO()
    call_command("prune_apps", stdout=out, **{"home": 0, **options})
    return out.getvalue()


@pytest.mark.parametrize(("option", "left"), [("delete", ["station"]), ("keep", ["harbour"])])
def test_prune_apps_takes_a_file_of_slugs(
    two: tuple[Tenant, Tenant], tmp_path: Path, option: str, left: list[str]
) -> None:
    named = tmp_path / "moved.txt"
    named.write_text("harbour\n")

    dry = prune(**{option: named, "dry_run": True})
    both = slugs()
    said = prune(**{option: named})

    assert dry == "1 apps to delete, 1 to keep.\n"
    assert both == ["harbour", "station"]
    assert re.search(r"^bookings_booking: 3 rows deleted$", said, re.MULTILINE)
    assert slugs() == left


def test_prune_apps_can_be_repeated_after_its_end(
    two: tuple[Tenant, Tenant], tmp_path: Path
) -> None:
    named = tmp_path / "moved.txt"
    named.write_text("harbour\n")
    prune(delete=named)

    assert prune(delete=named) == "0 apps to delete, 1 to keep.\n"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("harbour", {"home": 7}, "This is home 0, not 7."),
        ("harbour\nharbor", {}, "There is no app harbor."),
        (" \n", {}, "names no app."),
        (None, {}, "can't be read"),
    ],
)
def test_prune_apps_refuses_what_may_be_a_mistake(
    two: tuple[Tenant, Tenant],
    tmp_path: Path,
    text: str | None,
    options: dict[str, Any],
    message: str,
) -> None:
    named = tmp_path / "moved.txt"
    if text is not None:
        named.write_text(text)

    with pytest.raises(CommandError, match=message):
        prune(keep=named, **options)
    assert slugs() == ["harbour", "station"]


def test_count_app_rows_prints_a_line_for_each_app_and_table(
    two: tuple[Tenant, Tenant], tmp_path: Path
) -> None:
    named, out = tmp_path / "moved.txt", StringIO()
    named.write_text("station harbour")

    call_command("count_app_rows", named, stdout=out)

    lines = out.getvalue().splitlines()
    assert [line for line in lines if "bookings_booking\t" in line] == [
        "harbour\tbookings_booking\t3",
        "station\tbookings_booking\t3",
    ]
    assert len(lines) == sum(len(count_rows(tenant.app)) for tenant in two)
