"""Rows for benchmarks: python -m benchmarks.fill NAME, one of `fills`.

Prints keys and ids as JSON.
"""

import json
import random
import sys
from datetime import timedelta
from functools import partial
from typing import Any

import django

django.setup()

from django.db import connection  # noqa: E402
from django.utils import timezone  # noqa: E402

from apps_config.models import App, Credential  # noqa: E402
from apps_config.services import create_app, issue_key  # noqa: E402
from availability.core.constraints import parse_constraints  # noqa: E402
from availability.models import Calendar, Event, ProjectResource, Resource  # noqa: E402
from availability.services import create_project, create_resource  # noqa: E402
from notifications.webhooks.services import create_webhook  # noqa: E402

RULES = [
    {"allow_weekdays": {}},
    {"allow_hours": {"start": 9, "end": 17}},
    {"block_hours": {"start": 12, "end": 13}},
]


def make_app(slug: str, resources: int) -> tuple[dict[str, Any], list[Resource]]:
    app = create_app(slug=slug, name=slug)
    key = issue_key(Credential.SERVER, app=app)[1]
    made = [
        create_resource(
            app=app,
            given={
                "name": f"R{number}",
                "timezone": "Europe/Berlin",
                "availability_constraints": parse_constraints(RULES),
            },
        )[0]
        for number in range(resources)
    ]
    return {
        "key": key,
        "app": str(app.id),
        "resources": [str(resource.id) for resource in made],
    }, made


def fill_small() -> dict[str, Any]:
    """Create 100 resources with 500 events each in the next 28 days."""
    found, resources = make_app("small", 100)
    chance = random.Random(1)
    start = timezone.now().replace(minute=0, second=0, microsecond=0)
    for resource in resources:
        calendar = resource.calendars.get()
        starts = [start + timedelta(minutes=5 * chance.randrange(28 * 288)) for _ in range(500)]
        Event.objects.bulk_create(
            Event(
                app_id=calendar.app_id,
                calendar=calendar,
                resource=resource,
                start=begin,
                end=begin + timedelta(minutes=chance.choice((5, 10, 15))),
                what="Busy",
            )
            for begin in starts
        )
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    return found


def fill_webhooks() -> dict[str, Any]:
    """Create apps with no, one and a hundred webhooks, as many as an app may have."""
    found = {}
    for count in (0, 1, 100):
        filled, _ = make_app(f"webhooks-{count}", 1)
        app = App.objects.get(id=filled["app"])
        for number in range(count):
            create_webhook(app=app, given={"url": f"https://example.com/{number}"})
        found[str(count)] = filled
    return found


SIZES = (10, 500, 10_000)
ALONE = 33


def fill_many() -> dict[str, Any]:
    """Create projects of 10, 500 and 10,000 free resources, and resources without a project."""
    found, _ = make_app("many", 0)
    app = App.objects.get(id=found["app"])
    resources = Resource.objects.bulk_create(
        Resource(
            app=app, name=f"R{number}", timezone="Europe/Berlin", availability_constraints=RULES
        )
        for number in range(SIZES[-1] + ALONE)
    )
    Calendar.objects.bulk_create(
        Calendar(app=app, resource=resource, name="C") for resource in resources
    )
    projects = {}
    for size in SIZES:
        given = {"name": f"Of {size}", "availability": {"length": None, "to": "366 days"}}
        project = create_project(app=app, given=given)
        ProjectResource.objects.bulk_create(
            ProjectResource(project=project, resource=resource, position=position)
            for position, resource in enumerate(resources[:size])
        )
        projects[str(size)] = str(project.id)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    alone = [str(resource.id) for resource in resources[-ALONE:]]
    return {**found, "resources": alone, "projects": projects}


CALENDARS, IN_EACH = 10, 50


def fill_connected() -> dict[str, Any]:
    """Create resources with 500 events each in ten calendars: own, connected, and stale ones."""
    found, resources = make_app("connected", 3)
    now = timezone.now()
    kinds = ({}, {"provider": "caldav", "synced_at": now}, {"provider": "caldav"})
    for resource, kind in zip(resources, kinds, strict=True):
        calendars = Calendar.objects.bulk_create(
            Calendar(app_id=resource.app_id, resource=resource, name=f"C{number}", **kind)
            for number in range(CALENDARS)
        )
        chance = random.Random(1)
        Event.objects.bulk_create(
            Event(
                app_id=calendar.app_id,
                calendar=calendar,
                resource=resource,
                start=(begin := now + timedelta(minutes=5 * chance.randrange(28 * 288))),
                end=begin + timedelta(minutes=chance.choice((5, 10, 15))),
                what="Busy",
                provider_id=f"{number}@example.com" if kind else "",
            )
            for calendar in calendars
            for number in range(IN_EACH)
        )
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    return found


def fill_app(slug: str, resources: int = 0) -> dict[str, Any]:
    """An app of that slug, with free resources and nothing else."""
    return make_app(slug, resources)[0]


if __name__ == "__main__":
    fills = {"small": fill_small, "many": fill_many, "connected": fill_connected}
    fills |= {slug: partial(fill_app, slug) for slug in ("limited", "unlimited")}
    fills["webhooks"] = fill_webhooks
    fills["load"] = partial(fill_app, "load", 32)
    fills["page"] = partial(fill_app, "page", 1)
    print(json.dumps(fills[sys.argv[1]]()))
