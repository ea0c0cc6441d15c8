"""Create demo data: an admin, an app with its keys, a resource, a project, bookings."""

import contextlib
import json
import os
from argparse import ArgumentParser
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import transaction
from django.utils import timezone
from django.utils.crypto import get_random_string

from apps_config.models import Account, App, Credential
from apps_config.services import create_app, issue_key
from availability.core.constraints import parse_constraints
from availability.models import Project, Resource
from availability.reserve.events import EventDetails
from availability.search.engine import search_first_slots, search_slots
from availability.services import create_project, create_resource
from bookings.booking_target import BookingTarget
from bookings.graphs import GRAPHS
from bookings.services import Actor, NewBooking, create_booking
from common.errors import Invalid
from common.time.instants import format_instant, to_datetime

ADMIN_EMAIL = "admin@example.com"
APP_SLUG = "demo"
ZONE = "Europe/Berlin"
RESOURCES = (("Ada", "Berg"), ("Linus", "Holm"))
OPENING = [
    {"allow_weekdays": {}},
    {"allow_hours": {"start": 9, "end": 17}},
    {"block_hours": {"start": 12, "end": 13}},
]
CUSTOMERS = ("Grace Hopper", "Alan Turing", "Edsger Dijkstra", "Barbara Liskov")


class Command(BaseCommand):
    help = "Create the demo app once. Stores its keys in var/demo.json."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--quiet", action="store_true", help="print nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        path, now = Path(settings.VAR_DIR) / "demo.json", timezone.now()
        with transaction.atomic():
            seed = read_earlier_seed(path) or make_demo(now)
            seed["free_slot"] = find_free_slot(seed["project_id"], now)
            _write_private(path, json.dumps(seed, indent=2))
        if not options["quiet"]:
            self.stdout.write(path.read_text())


def read_earlier_seed(path: Path) -> dict[str, Any] | None:
    """Return the stored seed of an earlier start; None if its keys are not in this database."""
    if not path.exists():
        return None
    seed = json.loads(path.read_text())
    if "project_slug" not in seed:
        return None  # written by a version without booking pages
    prefix = seed["api_key"][:-43]
    keys = Credential.objects.filter(prefix=prefix, revoked_at=None)
    return seed if keys.exists() else None


def find_free_slot(project_id: str, now: datetime) -> dict[str, str] | None:
    """Return the demo project's first free slot from a week ahead, else its first free slot.

    Demo bookings lie in the next days.
    """
    project = Project.objects.filter(id=project_id, deleted_at=None).select_related("app").first()
    if project is None:
        return None
    query = BookingTarget(app=project.app, project=project, calendar=None, now=now).rules
    for earliest in ("7 days", query.terms.earliest):
        terms = replace(query.terms, earliest=earliest)
        with contextlib.suppress(Invalid):  # the project's `to` may lie before
            slots = search_first_slots(replace(query, terms=terms), mode=terms.mode, count=1)
            for start, end, _ in slots:
                return {
                    "start": format_instant(to_datetime(start)),
                    "end": format_instant(to_datetime(end)),
                }
    return None


def _write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read: it contains keys."""
    with open(path, "w", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(text)


def make_demo(now: datetime) -> dict[str, Any]:
    """Write the rows and return what `up` prints. Rows of an earlier seed are reused."""
    admin, password = _make_admin()
    app = App.objects.filter(slug=APP_SLUG).first() or create_app(
        slug=APP_SLUG, name="Demo", settings={"default_timezone": ZONE}, owner=admin
    )
    resources = _make_resources(app)
    project = _make_project(app, resources)
    if not app.bookings.exists():
        _make_bookings(app, project, now)
    _, api_key = issue_key(Credential.SERVER, app=app, description="demo")
    scope = [str(project.id)]
    _, widget_key = issue_key(Credential.WIDGET, app=app, description="demo", projects=scope)
    return {
        "admin_email": ADMIN_EMAIL,
        "admin_password": password,
        "app_slug": app.slug,
        "api_key": api_key,
        "widget_key": widget_key,
        "resource_id": str(resources[0].id),
        "project_id": str(project.id),
        "project_slug": project.slug,
    }


def _make_admin() -> tuple[Account, str]:
    password = get_random_string(16)
    admin = Account.objects.filter(email=ADMIN_EMAIL).first()
    if admin is None:
        return Account.objects.create_superuser(ADMIN_EMAIL, password, name="Admin"), password
    admin.set_password(password)
    admin.save(update_fields=["password"])
    return admin, password


def _make_resources(app: App) -> list[Resource]:
    found = list(Resource.objects.for_app(app).order_by("created_at", "id"))
    return found or [
        create_resource(
            app=app,
            given={
                "name": f"Dr. {first} {last}",
                "first_name": first,
                "last_name": last,
                "email": f"{first}.{last}@example.com".lower(),
                "timezone": ZONE,
                "availability_constraints": parse_constraints(OPENING),
            },
        )[0]
        for first, last in RESOURCES
    ]


def _make_project(app: App, resources: list[Resource]) -> Project:
    return Project.objects.for_app(app).first() or create_project(
        app=app,
        given={
            "name": "Check-up",
            "resources": [resource.id for resource in resources],
            "availability": {
                "length": "30 minutes",
                "timeslot_increments": "15 minutes",
                "buffer": "5 minutes",
                "mode": "roundrobin_random",
            },
            "booking": {
                "graph": "instant",
                "what": "Check-up",
                "where": "Harbour Dental",
                "description": "A look at your teeth. Please bring your insurance card.",
            },
            "customer_fields": {
                "phone": {"title": "Phone", "format": "tel"},
                "comment": {"title": "What is it about?", "format": "textarea"},
            },
            "reservation_time": 300,
        },
    )


def _make_bookings(app: App, project: Project, now: datetime) -> None:
    """Create a few bookings in the next days through `create_booking`."""
    for position, name in enumerate(CUSTOMERS):
        target = BookingTarget(app=app, project=project, calendar=None, now=now)
        slots = search_slots(target.rules)
        start = slots[position * 11 % len(slots)][0]
        begins = datetime.fromtimestamp(start, tz=now.tzinfo)
        new = NewBooking(
            start=begins,
            end=begins + timedelta(minutes=30),
            details=EventDetails(what="Check-up", where="Harbour Dental"),
            graph=GRAPHS["instant"],
            action="confirm",
            customers=[
                {"name": name, "email": f"{name.split()[0].lower()}@example.com", "meta": {}}
            ],
            enforce_availability=True,
        )
        create_booking(new, target=target, actor=Actor("demo", "api"), now=now)
