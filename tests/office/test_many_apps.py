"""Every page of the back office costs as much with 300 apps as with three."""

import re
import uuid
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from apps_config.models import Account, App, Membership
from availability.models import Calendar, Project, Resource, Schedule
from notifications.models import Webhook
from tests.office.conftest import Enter
from tests.office.test_crawl import crawl
from tests.office.test_lists import copy
from tests.office.test_rights import foreign_tenant
from tests.queries import Queries
from tests.world import Tenant

__all__ = ["foreign_tenant"]

FEW, MANY = 3, 300
NAMED = re.compile(r"Copy (\d+)")
MAX_NAMED = 100  # apps on a page: rows of a list, and choices that are found by name, too


class CountingClient:
    """Counts the queries of each page, and the apps that the page names."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.counts: dict[str, tuple[int, int]] = {}

    def get(self, path: str) -> Any:
        with Queries(connection) as queries:
            answer = self.client.get(path)
        text = b"" if answer.streaming else answer.content
        self.counts[path] = len(queries), len(set(NAMED.findall(text.decode())))
        return answer


def add_apps(foreign_tenant: Tenant, account: Account, numbers: range) -> None:
    """Add apps, each with a row of the kinds that its pages offer to choose from."""
    ada = foreign_tenant.app.resources.get()
    schedule = foreign_tenant.app.schedules.get()
    calendar = ada.calendars.order_by("id")[0]
    rows: dict[Any, list[Any]] = {App: [], Membership: [], Schedule: [], Resource: []}
    rows |= {Calendar: [], Project: [], Webhook: []}
    for number in numbers:
        name = f"Copy {number}"
        app = copy(foreign_tenant.app, name=name, slug=f"copy-{number}")
        of_app = {"app_id": app.id, "name": name}
        resource = copy(ada, **of_app, email=None, address=None)
        rows[App].append(app)
        rows[Membership].append(Membership(app=app, account=account, role=Membership.OWNER))
        rows[Schedule].append(copy(schedule, **of_app))
        rows[Resource].append(resource)
        rows[Calendar].append(copy(calendar, **of_app, resource_id=resource.id))
        rows[Project].append(
            copy(foreign_tenant.app.projects.get(), **of_app, slug=f"copy-{number}")
        )
        rows[Webhook].append(Webhook(app=app, url=f"https://example.com/{uuid.uuid4()}"))
    for model, new in rows.items():
        model._default_manager.bulk_create(new)


@pytest.mark.parametrize("who", ["superuser", pytest.param("owner", marks=pytest.mark.deep)])
def test_query_count_is_constant_with_many_apps(
    foreign_tenant: Tenant, enter: Enter, who: str
) -> None:
    client = enter() if who == "superuser" else enter(foreign_tenant, Membership.OWNER)
    account = Account.objects.get(pk=client.session["_auth_user_id"])
    add_apps(foreign_tenant, account, range(FEW - App.objects.count()))
    paths = {path: route for route, path, _ in crawl(client, most=1)}
    few, many = CountingClient(client), CountingClient(client)

    for path in paths:
        few.get(path)
    add_apps(foreign_tenant, account, range(FEW, MANY))
    for path in paths:
        many.get(path)

    assert len(paths) > (90 if who == "superuser" else 55)
    more_queries = {
        path: (few.counts[path][0], queries)
        for path, (queries, _) in many.counts.items()
        if queries > few.counts[path][0]
    }
    named = {path: apps for path, (_, apps) in many.counts.items() if apps > MAX_NAMED}
    assert (more_queries, named) == ({}, {})
