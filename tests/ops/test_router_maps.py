"""`manage.py write_router_maps`: what a router must know of a cell."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from apps_config.models import Account, Credential
from apps_config.services import issue_key, revoke_key
from tests.world import Tenant

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.django_db]


def test_maps_name_the_host_and_the_keys_of_moved_apps(
    make_tenant: Callable[..., Tenant], settings: Any, tmp_path: Path
) -> None:
    settings.HOME_NUMBER = 7
    moved = make_tenant()
    moved.make_resource()
    account = Account.objects.create_user("ada@example.com")
    issue_key("access", account=account)
    revoked = issue_key("widget", app=moved.app)[0]
    revoke_key(revoked)
    settings.HOME_NUMBER = 12
    settings.PUBLIC_URL = "https://cell12.example.com"
    own = make_tenant()

    call_command("write_router_maps", tmp_path, verbosity=0)

    keys = Credential.objects.filter(app=moved.app, revoked_at=None)
    lines = sorted(f"{key.prefix} home_12" for key in keys)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hosts-12.map", "moved-12.map"]
    assert (tmp_path / "hosts-12.map").read_text() == "cell12.example.com home_12\n"
    assert (tmp_path / "moved-12.map").read_text().splitlines() == lines
    assert len(lines) == 2
    assert Credential.objects.filter(app=own.app).count() == 1
