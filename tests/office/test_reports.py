"""Reports in the back office: the API's numbers, as pictures that are tables."""

import csv
import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from apps_config.models import Membership
from bookings.models import ReportState
from bookings.reports import counting
from tests.office.conftest import WORKDAYS, Enter
from tests.queries import Queries
from tests.world import BERLIN, Tenant

PAGE = reverse("admin:reports")
NOVEMBER = "?period=own&from=2026-11-23&to=2026-12-06"


@pytest.fixture
def week(tenant: Tenant, clock: Any) -> None:
    """Ada has worked for an hour on Tuesday; Bob's only booking was cancelled."""
    given = {"timezone": BERLIN, "availability_constraints": WORKDAYS, "tags": ["dentist"]}
    ada, bob = (tenant.make_resource(name, **given) for name in ("Ada", "=Bob"))
    for resource, hour in ((ada, 9), (bob, 10)):
        times = {"start": f"2026-11-24T{hour:02}:00Z", "end": f"2026-11-24T{hour + 1:02}:00Z"}
        made = tenant.book(resource_id=resource["id"], **times).data
    tenant.put(f"/bookings/{made['id']}/cancel")
    count(tenant)


def count(tenant: Tenant) -> None:
    ReportState.objects.get_or_create(app=tenant.app)
    later = timezone.now() + timedelta(minutes=1)
    for _ in counting.count_app(tenant.app.pk, until=later, now=timezone.now()):
        pass


def tables(html: str) -> list[list[list[str]]]:
    """The texts of the cells of each table."""
    found = []
    for table in re.findall(
        r"<table class=\"office-(?:heat|bars)\">(.*?)</table>", html, re.DOTALL
    ):
        rows = re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)
        cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in rows]
        texts = [[unescape(re.sub(r"<.*?>", "", cell)).strip() for cell in row] for row in cells]
        found.append(texts)
    return found


def test_page_shows_each_report_as_a_table(tenant: Tenant, week: None, enter: Enter) -> None:
    html = enter(tenant, Membership.VIEWER).get(PAGE + NOVEMBER).content.decode()

    assert tables(html) == [
        [
            ["Resource", "23 Nov", "30 Nov"],
            ["=Bob", "0%", "0%"],
            ["Ada", "2%", "0%"],
        ],
        [
            ["Week of", "", "Bookings", "Kept", "Cancelled by staff", "No-shows"],
            ["23 Nov 2026", "", "2", "1", "1", "0"],
            ["30 Nov 2026", "", "0", "0", "0", "0"],
        ],
        [
            ["Week of", "", "Average in days", "3 to 7 days"],
            ["23 Nov 2026", "", "4.0", "2"],
            ["30 Nov 2026", "", "–", "0"],
        ],
        [["Week of", "", "API"], ["23 Nov 2026", "", "2"], ["30 Nov 2026", "", "0"]],
        [
            ["Week of", "", "New", "Returning", "Share of new"],
            ["23 Nov 2026", "", "1", "1", "50%"],
            ["30 Nov 2026", "", "0", "0", "–"],
        ],
    ]


def test_page_by_tag(tenant: Tenant, week: None, enter: Enter) -> None:
    html = enter(tenant, Membership.VIEWER).get(f"{PAGE}{NOVEMBER}&by=tag").content.decode()

    assert [table[0][0] for table in tables(html)] == ["Tag"] * 5
    assert tables(html)[0][1] == ["dentist", "1%", "0%"]


def test_file_has_the_rows_of_the_endpoint(tenant: Tenant, week: None, enter: Enter) -> None:
    client = enter(tenant, Membership.VIEWER)
    answer = client.get(f"{reverse('admin:report_file', args=['outcomes'])}{NOVEMBER}&by=resource")
    rows = tenant.get("/reports/outcomes?from=2026-11-23&to=2026-12-07&by=resource").data

    expected = [
        {name: "" if value is None else str(value) for name, value in row.items()}
        | {"resource": {"=Bob": "'=Bob", "Ada": "Ada"}[row["resource"]["name"]]}
        for row in rows
    ]
    assert list(csv.DictReader(answer.content.decode().splitlines())) == expected
    assert answer["Content-Disposition"] == (
        'attachment; filename="outcomes-2026-11-23-2026-12-06.csv"'
    )


@pytest.mark.parametrize(
    ("period", "days"),
    [
        ("last-weeks", "19 Oct 2026 – 15 Nov 2026"),
        ("this-month", "1 Nov 2026 – 30 Nov 2026"),
        ("last-month", "1 Oct 2026 – 31 Oct 2026"),
        ("this-year", "1 Jan 2026 – 31 Dec 2026"),
        ("own", "19 Oct 2026 – 15 Nov 2026"),
        ("unknown", "19 Oct 2026 – 15 Nov 2026"),
    ],
)
def test_periods(tenant: Tenant, week: None, enter: Enter, period: str, days: str) -> None:
    answer = enter(tenant, Membership.VIEWER).get(PAGE, {"period": period})

    assert answer.context["days"] == days


def test_too_long_a_period_has_no_heat_map(tenant: Tenant, week: None, enter: Enter) -> None:
    query = {"period": "own", "from": "2024-01-01", "to": "2026-11-30"}
    client = enter(tenant, Membership.VIEWER)
    answer = client.get(PAGE, query)

    html = answer.content.decode()
    assert "Choose at most 53 weeks, or fewer with more than 500 resources." in html
    assert len(tables(html)) == 4
    file = reverse("admin:report_file", args=["utilisation"])
    assert client.get(file, query).content == b"to: Must be at most 53 weeks after `from`."


def test_page_before_the_first_count(tenant: Tenant, enter: Enter) -> None:
    html = enter(tenant, Membership.VIEWER).get(PAGE).content.decode()

    assert "The bookings are not counted yet. They are counted once an hour." in html
    assert tables(html) == []


def test_other_apps_are_not_shown(tenant: Tenant, week: None, enter: Enter) -> None:
    other = Tenant("other")
    client = enter(other, Membership.OWNER)
    paths = [PAGE, reverse("admin:report_file", args=["outcomes"])]

    answers = [client.get(path, {"app": str(tenant.app.pk)}).status_code for path in paths]
    assert answers == [404, 404]


def test_unknown_report_has_no_file(tenant: Tenant, week: None, enter: Enter) -> None:
    path = reverse("admin:report_file", args=["revenue"])

    assert enter(tenant, Membership.VIEWER).get(path).status_code == 404


def test_queries_do_not_grow_with_rows(tenant: Tenant, week: None, enter: Enter) -> None:
    client = enter(tenant, Membership.VIEWER)

    def queries() -> int:
        with Queries(connection) as found:
            assert client.get(PAGE + NOVEMBER).status_code == 200
        return len(found)

    queries()
    before = queries()
    for number in range(3):
        resource = tenant.make_resource(f"R{number}", timezone=BERLIN)
        times = {"start": "2026-11-30T09:00Z", "end": "2026-11-30T10:00Z"}
        tenant.book(resource_id=resource["id"], **times)
    count(tenant)

    assert queries() == before
