"""Rows for benchmarks: python -m benchmarks.fill NAME [COUNT], one of `fills`.

Prints keys and ids as JSON.
"""

import hashlib
import json
import random
import sys
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import django

django.setup()

from django.contrib import admin  # noqa: E402
from django.db import connection  # noqa: E402
from django.urls import reverse  # noqa: E402
from django.utils import timezone  # noqa: E402

from apps_config.models import App, Credential  # noqa: E402
from apps_config.services import create_app, issue_key  # noqa: E402
from availability.core.constraints import parse_constraints  # noqa: E402
from availability.models import Calendar, Event, Project, ProjectResource, Resource, Schedule  # noqa: E402
from availability.services import create_resource  # noqa: E402
from bookings.models import Booking, Customer  # noqa: E402
from external_calendars.models import Connection, PushChannel  # noqa: E402
from notifications.models import Webhook  # noqa: E402
from notifications.webhooks.services import create_webhook  # noqa: E402
from tests.office import staff  # noqa: E402

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
    add_events(resources)
    return found


def add_events(resources: list[Resource]) -> None:
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


def fill_large_projects(most: int) -> dict[str, Any]:
    """Create `most` resources, projects of 1, 500 and all of them, and one resource with events."""
    found, resources = make_app("projects", most + 1)
    busy, *free = resources
    sizes = (1, 500, most)
    given = {"app": busy.app, "availability": {"to": "365 days"}}
    projects = [Project(**given, name=f"{size}", slug=f"of-{size}") for size in sizes]
    Project.objects.bulk_create(projects)
    ProjectResource.objects.bulk_create(
        ProjectResource(project=project, resource=resource, position=position)
        for project, size in zip(projects, sizes, strict=True)
        for position, resource in enumerate(free[:size])
    )
    add_events([busy])
    return {
        "key": found["key"],
        "projects": {project.name: str(project.id) for project in projects},
        "busy": [str(busy.id)],
        "free": [str(resource.id) for resource in free[:500]],
    }


def fill_channels() -> dict[str, Any]:
    """Create 1,000 connected calendars, each with a push channel of Google; return the headers of a
    message to each.
    """
    now, token = timezone.now(), "benchmark"
    filled, resources = make_app("pushed", 1000)
    calendars = Calendar.objects.filter(resource__in=resources)
    calendars.update(provider="google")
    connections = Connection.objects.bulk_create(
        Connection(calendar=calendar, next_at=now + timedelta(days=1)) for calendar in calendars
    )
    channels = PushChannel.objects.bulk_create(
        PushChannel(
            connection=connection,
            channel_id=f"benchmark-{number}",
            token_hash=hashlib.sha256(token.encode()).hexdigest(),
            renew_at=now + timedelta(days=1),
            ends_at=now + timedelta(days=2),
            heard_at=now,
        )
        for number, connection in enumerate(connections)
    )
    messages = [
        {"X-Goog-Channel-ID": channel.channel_id, "X-Goog-Channel-Token": token}
        for channel in channels
    ]
    return filled | {"messages": messages}


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


def fill_load() -> dict[str, Any]:
    """Create 32 free resources."""
    return make_app("load", 32)[0]


def fill_apps(total: int) -> dict[str, Any]:
    """Create apps with a row of most kinds each; return a key, a session and the office's pages."""
    first = create_app(slug="app-0", name="App 0")
    apps = [first, *(App(slug=f"app-{i}", name=f"App {i}") for i in range(1, total))]
    App.objects.bulk_create(apps[1:], batch_size=1_000)
    rows: dict[Any, list[Any]] = {}

    def add(model: Any, **given: Any) -> Any:
        rows.setdefault(model, []).append(model(**given))
        return rows[model][-1]

    now = timezone.now().replace(microsecond=0)
    for app in apps:
        named = {"app": app, "name": app.name}
        add(Schedule, **named)
        add(Project, **named, slug=app.slug)
        add(Webhook, app=app, url="https://example.com/in", secret="none")
        resource = add(Resource, **named, timezone="Europe/Berlin")
        of_resource = {"app": app, "resource": resource}
        times = {"start": now, "end": now + timedelta(minutes=30), "what": "Filled"}
        event = add(Event, **of_resource, **times, calendar=add(Calendar, **of_resource))
        made = {"graph": "instant", "state": "confirmed", "created_at": now, "updated_at": now}
        booking = add(Booking, **of_resource, **made, event=event)
        add(Customer, **named, booking=booking, email="marty@example.com")
    for model, new in rows.items():
        model._default_manager.bulk_create(new, batch_size=1_000)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    names = ["index", "calendar", "why", "reports"]
    names += [f"availability_{name}_add" for name in ("resource", "schedule", "project")]
    for model, page in admin.site._registry.items():
        if page.app_paths:
            names.append(f"{model._meta.app_label}_{model._meta.model_name}_changelist")
    return {
        "key": issue_key(Credential.SERVER, app=first)[1],
        "session": staff.superuser().cookies["sessionid"].value,
        "pages": [reverse(f"admin:{name}") for name in names],
    }


def fill_desk(resources: int, customers: int, bookings: int) -> dict[str, Any]:
    """Create bookings of half an hour, four a day for each resource, half of them in the past;
    return a session and pages.
    """
    app = App.objects.get(id=make_app("desk", 0)[0]["app"])
    people = [
        Resource(
            app=app,
            name=f"Person {number:03}",
            timezone="Europe/Berlin",
            tags=[f"Team {number % 5}"],
            availability_constraints=RULES,
        )
        for number in range(resources)
    ]
    Resource.objects.bulk_create(people)
    calendars = Calendar.objects.bulk_create(Calendar(app=app, resource=one) for one in people)
    project = Project.objects.create(app=app, name="Check-up", slug="desk")
    now = timezone.now().replace(microsecond=0)
    today = now.astimezone(ZoneInfo("Europe/Berlin")).replace(hour=9, minute=0, second=0)
    first = today - timedelta(days=bookings // resources // 8)
    made, events, rows = [], [], []
    for number in range(bookings):
        calendar, turn = calendars[number % resources], number // resources
        start = first + timedelta(days=turn // 4, hours=2 * (turn % 4))
        times = {"start": start, "end": start + timedelta(minutes=30), "what": "Check-up"}
        of_person = {"app": app, "resource": calendar.resource}
        events.append(Event(**of_person, **times, calendar=calendar))
        written = {"graph": "instant", "state": "confirmed", "created_at": now, "updated_at": now}
        made.append(Booking(**of_person, **written, project=project, event=events[-1]))
        name = f"Customer {number % customers}"
        email = f"customer{number % customers}@example.com"
        rows.append(Customer(app=app, name=name, booking=made[-1], email=email))
    for model, new in ((Event, events), (Booking, made), (Customer, rows)):
        model._default_manager.bulk_create(new, batch_size=1_000)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    timeline = f"{reverse('admin:calendar')}?app={app.pk}&group=all&view=timeline"
    span = f"start={today:%Y-%m-%d}&end={today + timedelta(days=1):%Y-%m-%d}"
    return {
        "session": staff.superuser().cookies["sessionid"].value,
        "timeline": timeline,
        "pages": {
            "Today": [reverse("admin:index")],
            "day sheet": [reverse("admin:day_sheet")],
            "timeline and its entries": [
                timeline,
                f"{reverse('admin:calendar_events')}?app={app.pk}&group=all&{span}",
            ],
            "list of bookings": [reverse("admin:bookings_booking_changelist")],
            "list of customers": [reverse("admin:bookings_appcustomer_changelist")],
            "list of resources": [reverse("admin:availability_resource_changelist")],
        },
    }


if __name__ == "__main__":
    fills = {
        "small": fill_small,
        "large_projects": fill_large_projects,
        "channels": fill_channels,
        "webhooks": fill_webhooks,
        "load": fill_load,
        "apps": fill_apps,
        "desk": fill_desk,
    }
    print(json.dumps(fills[sys.argv[1]](*map(int, sys.argv[2:]))))
