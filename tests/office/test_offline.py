"""What a device gets to install the back office and to keep today's list: whole answers, and who
gets them.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test import Client
from django.urls import reverse

from apps_config.models import Account, Membership
from office.middleware import CONTENT_SECURITY_POLICY
from office.offline.today_list import first_name
from tests.bookings.group_world import make_group, seat_in
from tests.office.conftest import logged_in, member_of
from tests.queries import Queries
from tests.world import BERLIN, Tenant

TUESDAY = datetime(2030, 3, 5, 9, 20, tzinfo=UTC)  # 10:20 in Berlin
OPEN = [{"allow_hours": {"start": 0, "end": 24}}]
LIST = reverse("admin:offline_today")


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"default_timezone": BERLIN}})
    tenant.app.refresh_from_db()
    return tenant.make_resource("Ada", timezone=BERLIN, availability_constraints=OPEN)


@pytest.fixture
def viewer(tenant: Tenant) -> Account:
    return member_of(tenant, Membership.VIEWER)


def book(
    tenant: Tenant, resource: Any, start: str, end: str, name: str, day: str = "05", **more: Any
) -> Any:
    """A booking in March, with whatever else a customer tells."""
    customer = {"name": name, "email": "una@example.com", "phone": "+49 30 1", "meta": {"tooth": 1}}
    times = {"start": f"2030-03-{day}T{start}:00", "end": f"2030-03-{day}T{end}:00"}
    body = {"resource_id": resource["id"], "customer": customer, "what": "Check-up"}
    return tenant.book(**body | times | more).data


def get(account: Account, tenant: Tenant, now: datetime = TUESDAY, language: str = "en") -> Any:
    with time_machine.travel(now, tick=False):
        client = logged_in(account)
        return client.get(f"{LIST}?app={tenant.app.pk}", headers={"Accept-Language": language})


def test_list_has_first_names_and_times_only(tenant: Tenant, ada: Any, viewer: Account) -> None:
    with time_machine.travel(TUESDAY.replace(hour=6), tick=False):
        book(tenant, ada, "11:00", "11:30", "Ann Lee", graph="confirm_decline")
        book(tenant, ada, "09:00", "09:30", "Una Wolf", note="Afraid of needles")
        off = book(tenant, ada, "12:00", "12:30", "Off")
        tenant.put(f"/bookings/{off['id']}/cancel", {})
        book(tenant, ada, "09:00", "09:30", "Tomorrow", day="06")
        times = {"start": "2030-03-05T14:00:00", "end": "2030-03-05T15:00:00"}
        group = make_group(tenant, ada, **times)
        seat_in(tenant, group)
        seat_in(tenant, group, {"name": "Bob Ray", "email": "bob@example.com"})
        lunch = {"start": "2030-03-05T15:00:00", "end": "2030-03-05T16:00:00", "what": "Lunch"}
        tenant.post("/events", {"calendar_id": ada["calendars"][0]["id"], **lunch}, status=201)

    answer = get(viewer, tenant)

    assert answer.status_code == 200
    assert "no-store" in answer.headers["Cache-Control"]
    assert answer.json() == {
        "data": {
            "day": "Tuesday, 5 March 2030",
            "as_of": "As of 10:20.",
            "zone": "All times in Europe/Berlin.",
            "entries": [
                {"time": "09:00 – 09:30", "names": "Una"},
                {"time": "11:00 – 11:30", "names": "Ann"},
                {"time": "14:00 – 15:00", "names": "Ann, Bob"},
            ],
            "pending": 1,
            "seconds": 7200,  # SESSION_IDLE
        }
    }


def test_list_is_kept_until_the_day_ends(tenant: Tenant, ada: Any, viewer: Account) -> None:
    answer = get(viewer, tenant, TUESDAY.replace(hour=22, minute=40))  # 23:40 in Berlin

    assert answer.json()["data"]["seconds"] == 20 * 60


def test_list_is_in_the_language_of_the_office(tenant: Tenant, ada: Any, viewer: Account) -> None:
    found = get(viewer, tenant, language="de").json()["data"]

    assert (found["day"], found["as_of"]) == ("Dienstag, 5. März 2030", "Stand: 10:20.")


def test_list_is_for_members(tenant: Tenant, make_tenant: Callable[..., Tenant], ada: Any) -> None:
    staff = Account.objects.create_user("clerk@example.com", "x" * 12, is_staff=True)
    accounts = {
        **{role: member_of(tenant, role) for role in Membership.ROLES},
        "other app": member_of(make_tenant(), Membership.OWNER),
        "staff without permissions": staff,
    }

    found = {who: get(account, tenant).status_code for who, account in accounts.items()}
    stranger = Client().get(f"{LIST}?app={tenant.app.pk}")
    without_app = logged_in(accounts["viewer"]).get(LIST)

    assert found == {
        **dict.fromkeys(Membership.ROLES, 200),
        "other app": 404,
        "staff without permissions": 403,
    }
    assert (stranger.status_code, stranger.url.partition("?")[0]) == (302, "/admin/login/")
    assert without_app.status_code == 404


def test_list_has_the_app_alone(
    tenant: Tenant, make_tenant: Callable[..., Tenant], ada: Any, viewer: Account
) -> None:
    other = make_tenant()
    Membership.objects.create(account=viewer, app=other.app, role=Membership.VIEWER)
    bob = other.make_resource("Bob", timezone=BERLIN, availability_constraints=OPEN)
    with time_machine.travel(TUESDAY.replace(hour=6), tick=False):
        book(tenant, ada, "09:00", "09:30", "Una")
        book(other, bob, "09:00", "09:30", "Ann", graph="confirm_decline")

    found = get(viewer, tenant).json()["data"]

    assert [row["names"] for row in found["entries"]] == ["Una"]
    assert found["pending"] == 0


def test_list_has_a_constant_number_of_queries(tenant: Tenant, ada: Any, viewer: Account) -> None:
    counts = []
    for hours in (range(10, 11), range(11, 14)):
        with time_machine.travel(TUESDAY.replace(hour=6), tick=False):
            for hour in hours:
                book(tenant, ada, f"{hour}:00", f"{hour}:15", f"Una {hour}")
                start, end = f"2030-03-05T{hour}:30:00", f"2030-03-05T{hour}:45:00"
                seat_in(tenant, make_group(tenant, ada, start=start, end=end))
        with time_machine.travel(TUESDAY, tick=False):
            client = logged_in(viewer)
            with Queries(connection) as queries:
                client.get(f"{LIST}?app={tenant.app.pk}")
        counts.append(len(queries))

    assert counts[0] == counts[1]
    assert counts[0] <= 12


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("Marty McFly", "Marty"),
        ("Marty", "Marty"),
        ("McFly, Marty", "Marty"),
        ("Dr. Marty McFly", "Marty"),
        ("Dr. McFly", "Dr."),
        ("J. McFly", "J."),
        ("Anne-Marie O’Neil", "Anne-Marie"),
        ("山田 太郎", "太郎"),
        ("김 민준", "민준"),
        ("marty@example.com", ""),
        ("030 1234567", ""),
        ("Marty 030 1234567", "Marty"),
        ("McFly,", ""),
        ("", ""),
    ],
)
def test_first_name(name: str, first: str) -> None:
    assert first_name(name) == first


# --- What is the same for everybody ---------------------------------------------------------------
def test_manifest(db: None) -> None:
    answer = Client().get(reverse("admin:manifest"), headers={"Accept-Language": "de"})

    icon = {"type": "image/png", "purpose": "any"}
    assert answer.json() == {
        "id": "/admin/",
        "name": "Termine und Buchung",
        "short_name": "Terminplanung",
        "lang": "de",
        "dir": "ltr",
        "start_url": "/admin/",
        "scope": "/admin/",
        "display": "standalone",
        "theme_color": "#9333ea",
        "background_color": "#ffffff",
        "icons": [
            {**icon, "src": "/static/office/icon-192.png", "sizes": "192x192"},
            {**icon, "src": "/static/office/icon-512.png", "sizes": "512x512"},
            {
                **icon,
                "src": "/static/office/icon-maskable-512.png",
                "sizes": "512x512",
                "purpose": "maskable",
            },
        ],
    }
    assert answer.headers["Content-Type"] == "application/manifest+json"
    assert answer.headers["Cache-Control"] == "private, max-age=86400"
    assert answer.headers["Content-Security-Policy"] == CONTENT_SECURITY_POLICY


def test_policy_admits_manifest_and_worker() -> None:
    parts = CONTENT_SECURITY_POLICY.split("; ")

    assert {"manifest-src 'self'", "worker-src 'self'"} <= set(parts)


def test_worker_is_a_script_of_the_office(db: None) -> None:
    path = reverse("admin:offline_worker")

    answer = Client().get(path)

    # A worker's scope is the folder of its path.
    assert path.rpartition("/")[0] == reverse("admin:index").rstrip("/")
    assert answer.headers["Content-Type"] == "text/javascript"
    assert answer.headers["Cache-Control"] == "no-store"
    files = (
        "/admin/offline/ /static/office/offline_page.js /static/office/offline_page.css"
        " /static/bookings/page.css"
    )
    assert f'const FILES = "{files}".split(" ");' in answer.content.decode()


def test_offline_page_is_the_same_for_everybody(tenant: Tenant, viewer: Account) -> None:
    path = reverse("admin:offline")

    assert logged_in(viewer).get(path).content == Client().get(path).content
