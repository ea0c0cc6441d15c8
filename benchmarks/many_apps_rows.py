"""Apps, each with a row of most kinds: python -m benchmarks.many_apps_rows 10000

Prints log-ins, a key of an app, an access key of its owner, and the pages and lists as JSON.
"""

import json
import sys
from datetime import timedelta
from typing import Any

import django

django.setup()

from django.contrib import admin  # noqa: E402
from django.db import connection  # noqa: E402
from django.urls import reverse  # noqa: E402
from django.utils import timezone  # noqa: E402

from apps_config.models import Account, App, Credential, Membership  # noqa: E402
from apps_config.services import create_app, issue_key  # noqa: E402
from availability.models import Calendar, Event, Project, ProjectResource, Resource, Schedule  # noqa: E402
from benchmarks.office_rows import log_in  # noqa: E402
from bookings.models import Booking, Customer  # noqa: E402
from notifications.models import Webhook  # noqa: E402

BATCH = 1_000
ADDED = ("resource", "schedule", "project", "calendar")  # models of availability with a form
PAGES = ("index", "calendar", "why", "availability_resource_bulk_edit")
LISTS = (
    *("/resources", "/projects", "/bookings", "/customers", "/calendars", "/webhooks"),
    *("/credentials", "/schedules", "/bookings/groups"),
)


def main() -> None:
    print(json.dumps(_fill(int(sys.argv[1]))))


def _fill(total: int) -> dict[str, Any]:
    app = create_app(slug="app-0", name="App 0")
    key = issue_key(Credential.SERVER, app=app)[1]
    staff = Account.objects.create_superuser("staff@example.com", "not used at all")
    member = Account.objects.create_user("member@example.com")
    others = [App(slug=f"app-{number}", name=f"App {number}") for number in range(1, total)]
    App.objects.bulk_create(others, batch_size=BATCH)
    _add_rows([app, *others])
    Membership.objects.create(account=member, app=app, role=Membership.OWNER)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    lists = [
        reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        for model, page in admin.site._registry.items()
        if page.app_paths
    ]
    forms = [reverse(f"admin:availability_{name}_add") for name in ADDED]
    forms += [reverse("admin:notifications_webhook_add")]
    choices = reverse("admin:autocomplete")
    choices += "?app_label=availability&model_name=resource&field_name=app"
    return {
        "key": key,
        "log_ins": {"staff": log_in(staff), "member": log_in(member)},
        "pages": [*(reverse(f"admin:{name}") for name in PAGES), *lists, *forms],
        "staff_pages": [f"{choices}&term={term}" for term in ("", "App+7")],
        "lists": LISTS,
    }


def _add_rows(apps: list[App]) -> None:
    """A resource, a project, a webhook, a key, a booking and so on of each app."""
    now = timezone.now()
    length = timedelta(minutes=30)
    rows: dict[Any, list[Any]] = {}

    def add(model: Any, **given: Any) -> Any:
        row = model(**given)
        rows.setdefault(model, []).append(row)
        return row

    for number, app in enumerate(apps):
        start = now + timedelta(minutes=number % 10_000)
        of_app = {"app": app, "name": app.name}
        add(Credential, app=app, kind=Credential.SERVER, prefix=f"b{number}", secret_hash="none")
        add(Schedule, **of_app)
        resource = add(Resource, **of_app, timezone="Europe/Berlin")
        calendar = add(Calendar, **of_app, resource=resource)
        project = add(Project, **of_app, slug=app.slug)
        add(ProjectResource, project=project, resource=resource)
        add(Webhook, app=app, url="https://example.com/in", secret="none")
        event = add(
            Event, app=app, calendar=calendar, resource=resource, what="Filled",
            start=start, end=start + length,
        )  # fmt: skip
        booking = add(
            Booking, app=app, resource=resource, project=project, event=event,
            graph="instant", state="confirmed", created_at=now, updated_at=now,
        )  # fmt: skip
        add(Customer, app=app, booking=booking, name=app.name, email="customer@example.com")
    for model, new in rows.items():
        model._default_manager.bulk_create(new, batch_size=BATCH)


if __name__ == "__main__":
    main()
