"""A database belongs to a home, and processes with another HOME_NUMBER do not start."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apps_config.home_check import home_problem
from apps_config.models import Account, DatabaseHome
from tests.services import FORK_SERVER, ROOT, Service, own_database
from tests.world import Tenant

pytestmark = pytest.mark.both_databases

SENTENCE = (
    "HOME_NUMBER is 8, but this database belongs to home 7."
    " Set DATABASE_URL or HOME_NUMBER to those of this cell."
)


def stored() -> list[int]:
    return sorted(DatabaseHome.objects.values_list("number", flat=True))


@pytest.mark.django_db
def test_home_of_an_empty_database_is_the_setting(settings: Any) -> None:
    homes = []
    for settings.HOME_NUMBER in (7, 9):
        homes.append((home_problem(), stored()))

    assert homes == [("", [7]), ("", [9])]


@pytest.mark.django_db
def test_home_of_a_database_from_before_is_the_setting(tenant: Tenant, settings: Any) -> None:
    DatabaseHome.objects.all().delete()
    settings.HOME_NUMBER = 7

    assert (home_problem(), stored()) == ("", [7])


@pytest.mark.django_db
@pytest.mark.parametrize("has_app", [False, True])
def test_database_with_an_account_or_an_app_keeps_its_home(
    make_tenant: Callable[..., Tenant], settings: Any, has_app: bool
) -> None:
    settings.HOME_NUMBER = 7
    problems = [home_problem()]
    if has_app:
        make_tenant()
    else:
        Account.objects.create_user("ada@example.com")
    settings.HOME_NUMBER = 8
    problems.append(home_problem())

    assert (problems, stored()) == (["", SENTENCE], [7])


@pytest.mark.django_db
def test_database_that_is_being_split_has_two_homes(tenant: Tenant, settings: Any) -> None:
    DatabaseHome.objects.all().delete()
    DatabaseHome.objects.bulk_create([DatabaseHome(number=7), DatabaseHome(number=12)])

    problems = []
    for settings.HOME_NUMBER in (7, 12, 8):
        problems.append(home_problem())

    assert problems == ["", "", SENTENCE.replace("home 7", "home 7 or 12")]


@pytest.mark.django_db
def test_migrate_refuses_the_database_of_another_cell(tenant: Tenant, settings: Any) -> None:
    settings.HOME_NUMBER = 8
    DatabaseHome.objects.all().delete()
    DatabaseHome.objects.create(number=7)

    with pytest.raises(CommandError, match=SENTENCE):
        call_command("migrate", verbosity=0)


@pytest.fixture
def cell(tmp_path: Path) -> Any:
    with own_database(tmp_path) as url:
        service = Service(tmp_path, url, {"HOME_NUMBER": 7})
        service.run("""
from apps_config.home_check import home_problem
from apps_config.services import create_app
assert home_problem() == ""
create_app(slug="harbour", name="Harbour")
""")
        yield service
        service.stop()


@pytest.mark.parametrize(
    "command",
    [
        "gunicorn scheduling.wsgi --bind 127.0.0.1:0 --preload",
        "gunicorn scheduling.wsgi --bind 127.0.0.1:0",
        "celery --app scheduling worker",
    ],
)
def test_process_of_another_cell_does_not_start(cell: Service, command: str) -> None:
    name, *words = command.split()

    done = FORK_SERVER.run(name, *words, cwd=ROOT, env=cell.env | {"HOME_NUMBER": "8"}, timeout=60)

    assert done.returncode != 0
    assert SENTENCE in done.stdout + done.stderr


def test_web_starts_without_a_database(tmp_path: Path) -> None:
    service = Service(tmp_path, "postgres://nobody@127.0.0.1:1/none", {})
    service.start_web(workers=1, threads=1)
    logged = service.log()
    service.stop()

    assert "the home of the database was not checked" in logged
