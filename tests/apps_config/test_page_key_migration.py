"""Migration 0005: an older release had one key for all hosted pages of an app."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.db import transaction

from apps_config.models import Credential
from apps_config.services import issue_key
from tests.world import Caller, Tenant

pytestmark = pytest.mark.both_databases

migration: Any = import_module("apps_config.migrations.0005_public_key_scope")


def old_key(tenant: Tenant, description: str = "Hosted pages", kind: str = "widget") -> Any:
    return issue_key(kind, app=tenant.app, description=description)[0]


def test_keys_of_hosted_pages_are_bound(make_tenant: Callable[..., Tenant]) -> None:
    one, several, none = (make_tenant() for _ in range(3))
    project = one.make_project(slug="one")["id"]
    ids = [several.make_project(slug=slug)["id"] for slug in ("two", "three")]
    gone = several.make_project(slug="gone")["id"]
    several.delete(f"/projects/{gone}")
    keys = [old_key(tenant) for tenant in (one, several, none)]
    others = [old_key(one, "www.example.com"), old_key(one, kind="server")]

    with transaction.atomic():
        migration.bind_page_keys(apps, None)

    bound = [Credential.objects.get(id=key.id) for key in keys]
    assert [key.projects for key in bound] == [[project], sorted(ids), None]
    assert [str(key.hosted_project_id) for key in bound] == [project, "None", "None"]
    assert [Credential.objects.get(id=key.id).projects for key in others] == [None, None]
    # A page of an app with one project keeps the key that visitors have.
    assert one.get("/projects/hosted/one").data["app_key"] == keys[0].public_text
    own = several.get("/projects/hosted/two").data["app_key"]
    assert own != keys[1].public_text
    assert Caller(keys[1].public_text).get(f"/projects/embed/{ids[1]}").status == 200
