"""Lists of set-up take as many queries for many rows as for one."""

import re
from typing import Any

import pytest
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from apps_config.models import Account, App, Credential, Membership
from availability.models import Project, Resource
from notifications.models import Webhook
from tests.office.staff import member, superuser
from tests.queries import Queries
from tests.world import Tenant

pytestmark = pytest.mark.django_db


def fill(app: App, count: int) -> None:
    """So many more keys and members of the app, and so many more apps."""
    Credential.objects.bulk_create(
        Credential(app=app, kind="server", prefix=f"{count}-{number}_", secret_hash="x")
        for number in range(count)
    )
    accounts = Account.objects.bulk_create(
        Account(email=f"{count}-{number}@example.com", password="!") for number in range(count)
    )
    Membership.objects.bulk_create(Membership(account=account, app=app) for account in accounts)
    App.objects.bulk_create(App(slug=f"{count}-{number}", name="More") for number in range(count))


@pytest.mark.parametrize("kind", ["resource", "project", "webhook"])
def test_deleted_rows_are_behind_a_filter(tenant: Tenant, kind: str) -> None:
    ada = tenant.make_resource("Ada")
    tenant.make_project(ada["id"])
    tenant.post("/webhooks", {"url": "https://example.com/hook"})
    model = {"resource": Resource, "project": Project, "webhook": Webhook}[kind]
    kept = model.objects.get(app=tenant.app)
    copied = {
        field.attname: getattr(kept, field.attname)
        for field in model._meta.concrete_fields
        if field.attname not in ("id", "slug")
    }
    given = {"slug": "gone"} if kind == "project" else {}
    gone = model.objects.create(**copied | given | {"deleted_at": timezone.now()})
    client = member(tenant.app, "viewer")

    def found(**query: str) -> tuple[set[Any], bool]:
        """The rows, and whether there is a column of deletions."""
        page = client.get(
            reverse(f"admin:{model._meta.label_lower.replace('.', '_')}_changelist"), query
        )
        listed = page.context["cl"]
        assert page.context["title"] == f"{kind.title()}s"
        return {row.pk for row in listed.result_list}, "deletion_time" in listed.list_display

    is_shown = kind != "webhook"  # whose state says it
    assert found() == ({kept.pk}, False)
    assert found(deleted="only") == ({gone.pk}, is_shown)
    assert found(deleted="all") == ({kept.pk, gone.pk}, is_shown)


def test_archived_apps_are_behind_a_filter(tenant: Tenant, make_tenant: Any) -> None:
    archived = make_tenant().app
    App.objects.filter(pk=archived.pk).update(archived_at=timezone.now())
    staff, path = superuser(), reverse("admin:apps_config_app_changelist")

    found = [
        {row.pk for row in staff.get(path, query).context["cl"].result_list}
        for query in ({}, {"archived": "only"}, {"archived": "all"})
    ]

    assert found == [{tenant.app.pk}, {archived.pk}, {tenant.app.pk, archived.pk}]


def test_lists_are_sorted_by_their_headings(tenant: Tenant) -> None:
    """Both ways, by the column that says so."""
    for name in ("Bob", "Ada"):
        customer = {"name": name, "email": f"{name.lower()}@example.com"}
        times = {"start": "2030-01-07 09:00:00", "end": "2030-01-07 10:00:00"}
        ada = tenant.make_resource(name)
        assert tenant.book(resource_id=ada["id"], customer=customer, **times).status == 201
        tenant.post("/webhooks", {"url": f"https://{name.lower()}.example.com/hook"})
    owner = member(tenant.app, "owner")
    lists = {
        "bookings_appcustomer": ("email", "address"),
        "availability_resource": ("name", "name"),
        "notifications_webhook": ("url", "url"),
    }

    for model, (column, field) in lists.items():
        path = reverse(f"admin:{model}_changelist")
        place = owner.get(path).context["cl"].list_display.index(column)
        ways = [
            [getattr(row, field) for row in owner.get(path, {"o": way}).context["cl"].result_list]
            for way in (f"{place}", f"-{place}")
        ]
        assert ways[0] == sorted(ways[0])
        assert ways[1] == ways[0][::-1]
        assert len(ways[0]) == 2


def test_resources_are_listed_with_their_opening_hours(tenant: Tenant) -> None:
    """Own hours within those of the schedule; with as many queries for many rows."""
    workdays, mornings = [{"allow_weekdays": {}}], [{"allow_hours": {"start": 8, "end": 12}}]
    given = {"name": "Shop", "availability_constraints": workdays}
    shop = tenant.post("/schedules", given).data["id"]
    tenant.make_resource("Ada", availability_constraints=mornings, schedule_id=shop, tags=["x-ray"])
    tenant.make_resource("Bob", availability_constraints=[])
    viewer, counts = member(tenant.app, "viewer"), []
    path = reverse("admin:availability_resource_changelist")

    shown = viewer.get(path).content.decode()
    for number in range(2):
        for name in ("Cleo", "Dora", "Eve"):
            tenant.make_resource(f"{name} {number}", availability_constraints=mornings)
        with Queries(connection) as queries:
            viewer.get(path)
        counts.append(len(queries))

    columns = re.findall(r"field-(?:opening_hours|shown_tags)[^>]*>(.*?)</td>", shown, re.S)
    assert [re.sub(r"<[^>]+>", "", text).strip() for text in columns] == [
        *("Mon–Fri 08:00-12:00, Sat–Sun closed", "x-ray"),
        *("always open", ""),
    ]
    assert counts[0] == counts[1]


@pytest.mark.parametrize("who", ["staff", "owner"])
@pytest.mark.parametrize("counts", [(1, 3), pytest.param((1, 3, 300), marks=pytest.mark.deep)])
def test_query_count_of_lists_and_pages_is_constant(
    tenant: Tenant, who: str, counts: tuple[int, ...]
) -> None:
    client = superuser() if who == "staff" else member(tenant.app, "owner")
    paths = [
        reverse("admin:apps_config_app_changelist"),
        reverse("admin:apps_config_app_change", args=[tenant.app.pk]),
        reverse("admin:apps_config_credential_changelist"),
        reverse("admin:apps_config_credential_add"),
        reverse("admin:apps_config_membership_changelist"),
        reverse("admin:apps_config_membership_of", args=[tenant.app.pk]),
    ]
    asked = []

    for count in counts:
        fill(tenant.app, count)
        taken = []
        for path in paths:
            client.get(path)  # what Django keeps of its own tables
            with Queries(connection) as queries:
                assert client.get(path).status_code == 200
            taken.append(len(queries))
        asked.append(taken)

    assert asked == [asked[0]] * len(counts)
