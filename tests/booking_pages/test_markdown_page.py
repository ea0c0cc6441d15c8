"""/book/<slug>.md: what agents read, and whether what it says books."""

import json
import re
import shlex
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from apps_config.services import archive_app
from availability.models import Project
from booking_pages.markdown import plain, quoted
from tests.booking_pages.shop import FIELDS, MONDAY, Shop
from tests.booking_pages.test_book_page import NINE_TO_NOON, hosted_page, make_page
from tests.live import LiveApp
from tests.queries import Queries
from tests.world import Tenant

NOT_FOUND = (
    "# Nothing was found here\n\n"
    "This booking page does not exist or was removed. Please check the address.\n"
)
COMMAND = re.compile(r"^```sh\n(.*?)\n```$", re.M | re.S)


class Shown:
    def __init__(self, path: str) -> None:
        self.response = Client().get(f"{path}.md")
        self.status = self.response.status_code
        self.text = self.response.content.decode()

    def section(self, heading: str) -> str:
        """What follows a heading, or the first one; up to the next."""
        parts = re.split("^## (.*)\n\n", "\n" + self.text, flags=re.M)
        return dict(zip(["", *parts[1::2]], parts[::2], strict=True))[heading].strip("\n")

    @property
    def times(self) -> list[str]:
        return re.findall("^- (20.*)$", self.text, re.M)

    @property
    def needs(self) -> list[str]:
        """What a request needs beyond the usual."""
        rows = self.text.partition("What else to know:\n\n")[2].split("\n")
        return [row for row in rows if row][:-5]


# --- The text -------------------------------------------------------------------------------------
@pytest.mark.usefixtures("clock")
def test_page_of_a_project(tenant: Tenant) -> None:
    path = make_page(
        tenant,
        customer_fields=FIELDS,
        availability={"to": "3 days"},
        booking={"where": "Quay 5", "description": "Look\n\n- and *talk*"},
        settings={"min_cancel_time": "1 day"},
    )

    page = Shown(path)

    key, project = hosted_page(path).data["app_key"], str(tenant.app.projects.get().id)
    url = "http://127.0.0.1:8000"
    assert page.status == 200
    assert (
        page.text
        == f"""\
# Check-up

> Look
>
> \\- and \\*talk\\*

- Business: {tenant.app.name}
- Length: 30 min
- Where: Quay 5
- With: Ada
- Time zone: Europe/Berlin
- After booking: it is confirmed at once
- Customers can cancel until: 1 day before the start
- Page for people: {url}{path}
- Customers see their bookings at: {url}/book/{tenant.app.slug}/mine

## Next free times

- 2026-11-20T11:00:00+01:00 to 2026-11-20T11:30:00+01:00
- 2026-11-20T11:30:00+01:00 to 2026-11-20T12:00:00+01:00
- 2026-11-23T09:00:00+01:00 to 2026-11-23T09:30:00+01:00
- 2026-11-23T09:30:00+01:00 to 2026-11-23T10:00:00+01:00
- 2026-11-23T10:00:00+01:00 to 2026-11-23T10:30:00+01:00

## Other times

Each entry of `data` is a free time, with `start` and `end`. Times can be booked from \
2026-11-20T10:30:00+01:00 to 2026-11-23T10:30:00+01:00.

```sh
curl -sS -X POST {url}/v2/availability \\
  -H 'Authorization: Bearer {key}' \\
  -H 'Content-Type: application/json' \\
  -d '{{
  "project_id": "{project}",
  "from": "2026-11-20",
  "to": "2026-11-27",
  "output_timezone": "Europe/Berlin"
}}'
```

## How to book

Ask the customer for the answers below, and for consent to book. Choose an `Idempotency-Key` for \
each booking: a repeated request with the same one books once.

```sh
curl -sS -X POST {url}/v2/bookings \\
  -H 'Authorization: Bearer {key}' \\
  -H 'Idempotency-Key: choose-one-per-booking' \\
  -H 'Content-Type: application/json' \\
  -d '{{
  "project_id": "{project}",
  "start": "2026-11-20T11:00:00+01:00",
  "end": "2026-11-20T11:30:00+01:00",
  "customer": {{
    "name": "<Name>",
    "email": "name@example.com",
    "insurance": "Public",
    "terms": true
  }}
}}'
```

The answer is 201 with `data.id` and `data.state`.

Answers of the customer, in `customer`:

- `name`: Name (required, text)
- `email`: E-mail (required, email)
- `phone`: Phone (optional, tel)
- `comment`: What is it about? (optional, text)
- `insurance`: Insurance (required, one of "Public", "Private")
- `terms`: I have read the terms (required, true or false)

What else to know:

- 409 `slot_taken`: somebody was faster; `alternatives` has the next free times
- 422 `invalid`: `errors` names each wrong value
- 429: wait for the seconds in `Retry-After`
- To move or cancel: the customer uses the links in the confirmation e-mail
- The whole API: {url}/v2/openapi.json
"""
    )


@pytest.mark.usefixtures("clock")
def test_headers_and_the_link_of_the_html_page(tenant: Tenant) -> None:
    path = make_page(tenant)

    response, html = Shown(path).response, Client().get(path).content.decode()

    names = ("Content-Type", "Cache-Control", "X-Robots-Tag", "Referrer-Policy", "X-Frame-Options")
    assert [response.headers[name] for name in names] == [
        *("text/markdown; charset=utf-8", "no-cache", "noindex, nofollow", "no-referrer", "DENY")
    ]
    assert response.headers["RateLimit-Policy"]
    link = f'<link rel="alternate" type="text/markdown" href="http://127.0.0.1:8000{path}.md">'
    assert link in html


@pytest.mark.usefixtures("clock")
def test_page_is_english_whatever_the_reader_and_the_project_speak(tenant: Tenant) -> None:
    path = make_page(tenant, settings={"language": "de"})

    german = Client().get(f"{path}.md", headers={"Accept-Language": "de"})

    assert german.content.decode() == Shown(path).text
    assert "## How to book" in Shown(path).text


def test_texts_of_owners_mean_nothing_in_markdown() -> None:
    texts = {
        "1. <b>Cut</b> & *colour*": r"1\. \<b\>Cut\</b\> \& \*colour\*",
        "## a-b": r"\## a-b",
        "- [a](http://b) `c` | ~~d~~ _e_": r"\- \[a\](http://b) \`c\` \| \~\~d\~\~ \_e\_",
        "=== \u2028\n---": r"\=== ---",
        "back\\slash": r"back\\slash",
        "": "",
    }
    assert {text: plain(text) for text in texts} == texts
    assert quoted("a\r\n\r\n    b\n```\n> c") == "> a\n>\n> b\n> \\`\\`\\`\n> \\> c"
    assert quoted(" \n ") == ""


@pytest.mark.usefixtures("clock")
def test_what_owners_wrote_stays_in_its_place(tenant: Tenant) -> None:
    hostile = "x'; rm -rf / #` ```"
    path = make_page(
        tenant,
        name="# <script>",
        customer_fields={
            "a`b": {"title": hostile, "required": True},
            "way": {"title": "Way", "enum": [hostile], "required": True},
            "told": {"title": "Told", "prefilled": hostile, "readonly": True},
        },
        booking={"description": f"{hostile}\n```\n## New"},
    )

    page = Shown(path)

    headings = re.findall("^#+ .*$", page.text, re.M)
    assert headings == [
        r"# \# \<script\>",
        *("## Next free times", "## Other times", "## How to book"),
    ]
    assert len(re.findall("^```", page.text, re.M)) == 4
    *_, body = shlex.split(COMMAND.findall(page.text)[1])
    customer = json.loads(body)["customer"]
    assert (customer["way"], customer["told"]) == (hostile, hostile)


# --- Who has one ----------------------------------------------------------------------------------
@pytest.mark.usefixtures("clock")
def test_only_published_projects_have_a_text(
    tenant: Tenant, make_tenant: Callable[..., Tenant]
) -> None:
    hidden = make_page(tenant, settings={"published": False})
    archived = make_tenant()
    of_archived = make_page(archived)
    archive_app(archived.app, now=timezone.now())

    shown = [Shown(path) for path in (hidden, of_archived, "/book/nothing")]

    assert [(page.status, page.text) for page in shown] == [(404, NOT_FOUND)] * 3
    assert {page.response["Content-Type"] for page in shown} == {"text/markdown; charset=utf-8"}


@pytest.mark.usefixtures("clock")
def test_page_of_an_app_lists_its_published_projects(tenant: Tenant) -> None:
    make_page(tenant, slug="b-check", booking={"description": "Look\nand *talk*"})
    tenant.make_project(slug="a-cut", name="A <b> cut", availability={"length": None})
    tenant.make_project(slug="hidden", name="Hidden", settings={"published": False})

    page = Shown(f"/book/{tenant.app.slug}")

    url = "http://127.0.0.1:8000/book"
    assert (page.status, page.text) == (
        200,
        f"# {tenant.app.name}\n\nWhat can be booked here:\n\n"
        f"- [A \\<b\\> cut]({url}/a-cut.md)\n"
        f"- [Check-up]({url}/b-check.md): 30 min, Look and \\*talk\\*\n",
    )


@pytest.mark.usefixtures("clock")
def test_nothing_of_other_customers_is_in_it(tenant: Tenant) -> None:
    path = make_page(tenant)
    project = tenant.app.projects.get()
    before = Shown(path).times
    tenant.book(project_id=str(project.id), start="2026-11-20 11:00:00", end="2026-11-20 11:30:00")

    page = Shown(path)

    assert page.times[:3] == before[1:4]
    assert len(page.times) == 20
    assert not [word for word in ("Marty", "marty@") if word in page.text]


def test_number_of_queries_does_not_grow_with_resources(tenant: Tenant, clock: Any) -> None:
    def queries(path: str) -> int:
        Shown(path)  # which makes the key
        with Queries(connection) as asked:
            Shown(path)
        return len(asked)

    path = make_page(tenant)
    of_one = queries(path)
    rows = [tenant.make_resource(f"R{number}")["id"] for number in range(3)]
    tenant.make_project(*rows, slug="of-three", availability={"length": "30 minutes"})

    assert queries("/book/of-three") == of_one


# --- Kinds of projects ----------------------------------------------------------------------------
@pytest.mark.usefixtures("clock")
def test_choices_and_conditions_are_named(tenant: Tenant) -> None:
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"public_challenge": "altcha"}})
    rules = {"availability_constraints": NINE_TO_NOON, "capacity": 4, "party": {"min": 2, "max": 4}}
    ids = [tenant.make_resource(name, "UTC", **rules)["id"] for name in ("Ada", "Bo")]
    tenant.make_project(
        *ids,
        slug="whole",
        availability={"lengths": ["1 hour", "30 minutes"], "to": "1 week"},
        settings={"choose_resource": True, "max_quantity": 3, "verify_email": True},
    )

    page = Shown("/book/whole")

    assert page.needs == [
        f"- `resource_id`: the customer's choice, with the id `{ids[0]}` (Ada) or `{ids[1]}` (Bo)",
        "- `quantity`: how many are booked, up to 3",
        "- `party_size`: how many people come: 2, 3, 4",
        "- `challenge`: a solved ALTCHA challenge of GET `/v2/challenge`, for each booking",
        "- 202: the customer gets a code by e-mail. Ask for it, and send it within 15 minutes: POST"
        ' `/v2/bookings/reserve/<data.reservation_id>/verify` with `{"code": "123456"}`',
    ]
    assert "- Length: 1 h or 30 min\n" in page.text
    assert "- With: Ada or Bo\n" in page.text
    assert "`length` selects the length: `1 hour` or `30 minutes`." in page.text
    assert page.text.count('"party_size": 2') == 2


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(
    ("settings", "group", "needs"),
    [
        ({}, {"max_seats": 3}, []),
        (
            {"max_quantity": 2},
            {"places": {"stalls": 3}},
            [
                "- `quantity`: how many free seats are booked, up to 2",
                "- `place`: the customer's choice, if the session has places",
            ],
        ),
    ],
)
def test_seats_that_a_booking_may_have(
    tenant: Tenant, settings: Any, group: Any, needs: list[str]
) -> None:
    course = {"graph": "group_customer", "what": "Course"}
    project = tenant.make_project(
        tenant.make_resource("Ada", "UTC")["id"], slug="course", booking=course, settings=settings
    )
    tenant.book(
        project_id=project["id"],
        graph="group_owner",
        settings=group,
        start="2026-11-23T09:00:00Z",
        end="2026-11-23T10:00:00Z",
    )

    assert Shown("/book/course").needs == needs


@pytest.mark.usefixtures("clock")
def test_project_that_can_not_be_booked_here_says_so(tenant: Tenant) -> None:
    closed = make_page(
        tenant, rules=[{"block_period": {"start": "2026-01-01", "end": "2030-01-01"}}]
    )
    tenant.make_project(slug="unpaid", name="Unpaid", booking={"graph": "instant_payment"})

    nothing_free, unpaid = Shown(closed), Shown("/book/unpaid")

    assert (
        nothing_free.text.count("There is no free time at the moment. Please come back later.") == 1
    )
    assert nothing_free.times == []
    assert "## How to book" in nothing_free.text
    assert unpaid.text.count("You can't book this online.") == 1
    assert "##" not in unpaid.text


@pytest.mark.usefixtures("clock")
def test_broken_project_is_unavailable(tenant: Tenant) -> None:
    path = make_page(tenant)
    Project.objects.update(booking={"graph": "nonsense"})

    page = Shown(path)

    assert (page.status, page.text.split("\n")[0]) == (422, "# This booking page is unavailable")


# --- Doing what it says ---------------------------------------------------------------------------
def run_commands(text: str) -> list[Any]:
    """What each command of a text answers."""
    return [
        json.loads(
            subprocess.run(["sh", "-c", one], check=True, capture_output=True, timeout=60).stdout
        )
        for one in COMMAND.findall(text)
    ]


def read_live(app: LiveApp, slug: str) -> str:
    return app.get(f"/book/{slug}.md").content.decode()


def test_its_commands_book_a_time_once(app: LiveApp) -> None:
    shop = Shop(app, customer_fields=FIELDS)
    text = read_live(app, shop.project["slug"])

    free, made = run_commands(text)
    repeated = run_commands(text)[1]

    times = {"start": f"{MONDAY}T09:00:00+01:00", "end": f"{MONDAY}T09:30:00+01:00"}
    assert {name: free["data"][0][name] for name in times} == times
    assert made["data"]["state"] == "confirmed"
    assert repeated == made
    booking = app.get(f"/v2/bookings/{made['data']['id']}").data
    customer = booking["customers"][0]
    assert (customer["name"], customer["email"]) == ("<Name>", "name@example.com")
    assert (booking["meta"] or customer["meta"])["insurance"] == "Public"
    (again, *_) = re.findall("^- (20\\S+) to", read_live(app, shop.project["slug"]), re.M)
    assert again == f"{MONDAY}T09:30:00+01:00"


def test_its_commands_book_a_seat(app: LiveApp) -> None:
    shop = Shop(app, booking={"graph": "group_customer", "what": "Course"})
    group = app.post(
        "/v2/bookings",
        {
            "project_id": shop.project["id"],
            "resource_id": shop.resource["id"],
            "graph": "group_owner",
            "what": "Course",
            "settings": {"max_seats": 2},
            "start": f"{MONDAY}T09:00:00+01:00",
            "end": f"{MONDAY}T10:00:00+01:00",
        },
    ).data
    text = read_live(app, shop.project["slug"])

    groups, made = run_commands(text)

    assert [each["id"] for each in groups["data"]] == [group["id"]]
    assert f"free seats: 2, id `{group['id']}`" in text
    seat = app.get(f"/v2/bookings/{made['data']['id']}?include=owner_booking").data
    assert (seat["state"], seat["owner_booking"]["id"]) == ("confirmed", group["id"])
