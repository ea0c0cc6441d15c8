"""Pages of lists with random rows, totals from tallies: the same as those of plain queries."""

import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from random import Random

import pytest
from django.db.models import Count, F, Max, Min, Q, Sum

from apps_config import pagination
from apps_config.models import App, ListingTally
from apps_config.pagination import tally_of
from availability.models import Event
from bookings.models import AppCustomer, Booking, Customer
from notifications.models import Delivery, Webhook
from tests.world import NOW, Tenant

pytestmark = [pytest.mark.usefixtures("clock", "deep_pages"), pytest.mark.both_databases]

STATES = ("confirmed", "tentative", "completed", "cancelled")
ADDRESSES = [f"person{number}@example.com" for number in range(30)]
LIMIT = 7


@pytest.fixture
def deep_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a hundred rows, most are many, and most pages are deep."""
    monkeypatch.setattr(pagination, "FEW", 30)
    monkeypatch.setattr(pagination, "DEEP", 20)


class World:
    """Random rows of one app, and random changes of them, past the services."""

    def __init__(self, tenant: Tenant, seed: int) -> None:
        self.tenant, self.app, self.chance = tenant, tenant.app, Random(seed)
        self.resources = [tenant.make_resource(name) for name in "AB"]
        self.webhooks = [
            Webhook.objects.create(app=self.app, url=f"https://{name}.example.com", secret="")
            for name in "ab"
        ]

    def add(self, count: int) -> None:
        for _ in range(count):
            booking = self.add_booking()
            emails = self.chance.choices(ADDRESSES, k=self.chance.randrange(3))
            if emails and self.chance.random() < 0.2:
                emails.append(emails[0].upper())
            Customer.objects.bulk_create(
                Customer(app=self.app, booking=booking, position=position, name="Ann", email=email)
                for position, email in enumerate(emails)
            )
            self.add_deliveries(booking)

    def add_booking(self) -> Booking:
        resource = self.chance.choice(self.resources)
        start = NOW + timedelta(hours=self.chance.randrange(-500, 500))
        event = Event.objects.create(
            app=self.app,
            calendar_id=resource["calendars"][0]["id"],
            resource_id=resource["id"],
            start=start,
            end=start + timedelta(hours=self.chance.randrange(1, 50)),
            busy=False,
        )
        state = self.chance.choice(STATES)
        # Few instants: many ties.
        made_at = NOW - timedelta(days=3 * self.chance.randrange(40))
        return Booking.objects.create(
            app=self.app,
            resource_id=resource["id"],
            event=event,
            graph=self.chance.choice(("instant", "confirm_decline")),
            state=state,
            completed=state in ("completed", "cancelled"),
            meta={"ward": self.chance.choice(["1", 1, True, "true", 1.5, {"a": 1}])},
            created_at=made_at,
            updated_at=made_at,
        )

    def add_deliveries(self, booking: Booking) -> None:
        for _ in range(2):
            sent_at = NOW - timedelta(minutes=self.chance.randrange(20 * 1440))
            kind = self.chance.choice(Delivery.TYPES)
            Delivery.objects.create(
                id=uuid.UUID(
                    int=(int(sent_at.timestamp() * 1000) << 80)
                    + (7 << 76) + (2 << 62) + self.chance.getrandbits(60)
                ),
                app=self.app,
                booking=booking,
                type=kind,
                webhook=self.chance.choice(self.webhooks) if kind == "webhook" else None,
                kind="confirmed",
                state=self.chance.choice(("delivered", "failed")),
                due_at=sent_at,
                expires_at=sent_at,
                created_at=sent_at,
                finished_at=sent_at,
            )  # fmt: skip

    def change(self, count: int) -> None:
        """Change some rows, by the doors that code and people use."""
        for _ in range(count):
            rows = Booking.objects.filter(app=self.app)
            some = self.chance.sample(sorted(rows.values_list("id", flat=True)), 3)
            first, few = rows.filter(id=some[0]), rows.filter(id__in=some)
            customer = self.chance.choice(sorted(Customer.objects.values_list("id", flat=True)))
            customers = Customer.objects.filter(id=customer)
            deliveries = Delivery.objects.filter(booking_id=some[0])
            changes: list[Callable[[], object]] = [
                partial(few.update, state=self.chance.choice(STATES)),
                partial(few.update, deleted_at=NOW),
                partial(few.update, deleted_at=None),
                partial(first.update, created_at=NOW - timedelta(days=500)),
                first.delete,
                customers.delete,
                partial(customers.update, email="", address=""),
                partial(customers.update, email=ADDRESSES[0], address=ADDRESSES[0]),
                deliveries.delete,
                partial(deliveries.update, state="failed"),
            ]
            self.chance.choice(changes)()


@pytest.fixture(params=[1, pytest.param(2, marks=pytest.mark.deep)])
def world(tenant: Tenant, request: pytest.FixtureRequest) -> World:
    world = World(tenant, request.param)
    world.add(60)
    world.change(30)
    world.add(15)
    return world


def pages_of(world: World, path: str, query: dict[str, str], key: str) -> Iterator[tuple]:
    """Yield number, total and keys of each page, and of one after the last."""
    page, last = 1, 1
    while page <= last + 1:
        answer = world.tenant.client.get(
            f"/v2/{path}", {**query, "limit": LIMIT, "page": page}, headers=world.tenant.headers
        ).json()
        assert "data" in answer, answer
        yield page, answer["total"], [row[key] for row in answer["data"]]
        last, page = answer["last_page"], page + 1


def check_pages(world: World, path: str, query: dict[str, str], key: str, expected: list) -> None:
    for page, total, found in pages_of(world, path, query, key):
        part = expected[(page - 1) * LIMIT : page * LIMIT]
        assert (total, found) == (len(expected), part), (path, query, page)


# --- Bookings -------------------------------------------------------------------------------------
def booking_queries(world: World) -> list[tuple[dict[str, str], Q]]:
    resource = world.resources[0]
    start, end = NOW - timedelta(hours=90), NOW + timedelta(hours=90)
    times = {"start": start.isoformat(), "end": end.isoformat()}
    return [
        ({}, Q()),
        ({"state": "confirmed"}, Q(state="confirmed")),
        ({"state": "confirmed,cancelled"}, Q(state__in=["confirmed", "cancelled"])),
        ({"state": "unpaid"}, Q(state="unpaid")),
        ({"graph": "instant"}, Q(graph="instant")),
        ({"completed": "false"}, Q(completed=False)),
        ({"resource_id": resource["id"]}, Q(resource_id=resource["id"])),
        (
            {"resource_id": resource["id"], "state": "confirmed"},
            Q(resource_id=resource["id"], state="confirmed"),
        ),
        (
            {"calendar_id": resource["calendars"][0]["id"]},
            Q(event__calendar_id=resource["calendars"][0]["id"]),
        ),
        (times, Q(event__start__lt=end, event__end__gt=start)),
        ({"start": times["start"]}, Q(event__end__gt=start)),
        ({"end": times["end"]}, Q(event__start__lt=end)),
        (
            {"start": times["end"], "end": times["start"]},
            Q(event__start__lt=start, event__end__gt=end),
        ),
        ({"customer_email": ADDRESSES[0].title()}, Q(customers__address=ADDRESSES[0])),
        ({"search": "meta.ward:1"}, Q(meta__ward="1") | Q(meta__ward=1)),
        ({"search": "meta.ward:true"}, Q(meta__ward="true") | Q(meta__ward=True)),
        ({"search": "meta.ward:1.5"}, Q(meta__ward=1.5)),
    ]


@pytest.mark.parametrize(
    ("order", "columns"),
    [
        ({}, ("-created_at", "-id")),
        ({"sortedBy": "asc"}, ("created_at", "id")),
        ({"orderBy": "event.start"}, ("-event__start", "-id")),
        ({"orderBy": "completed", "sortedBy": "asc"}, ("completed", "id")),
    ],
)
def test_pages_of_bookings_equal_a_plain_query(
    world: World, order: dict[str, str], columns: tuple[str, str]
) -> None:
    for query, condition in booking_queries(world):
        plain = Booking.objects.for_app(world.app).filter(condition).order_by(*columns).distinct()
        expected = [str(row.id) for row in plain]

        check_pages(world, "bookings", query | order, "id", expected)


# --- Customers ------------------------------------------------------------------------------------
def plain_customers(app: App, condition: Q, column: str) -> list[str]:
    rows = Customer.objects.filter(booking__app=app, booking__deleted_at=None).exclude(email="")
    rows = rows.order_by()
    wanted = rows.filter(condition).values("address")
    people = rows.filter(address__in=wanted).values("address").annotate(
        bookings=Count("booking", distinct=True),
        first=Min("booking__created_at"),
        last=Max("booking__created_at"),
    )  # fmt: skip
    return [row["address"] for row in people.order_by(column, "address")]


@pytest.mark.parametrize(
    ("order", "column"),
    [
        ({}, "-last"),
        ({"sortedBy": "asc"}, "last"),
        ({"orderBy": "bookings", "sortedBy": "desc"}, "-bookings"),
        ({"orderBy": "first_booking_at", "sortedBy": "asc"}, "first"),
        ({"orderBy": "email", "sortedBy": "asc"}, "address"),
    ],
)
def test_pages_of_customers_equal_a_plain_query(
    world: World, order: dict[str, str], column: str
) -> None:
    for query, condition in (
        ({}, Q()),
        ({"search": "email:person1*"}, Q(email__istartswith="person1")),
        ({"search": "name:*n*"}, Q(name__icontains="n")),
        ({"search": "phone:1"}, Q(phone="1")),
    ):
        expected = plain_customers(world.app, condition, column)

        for page, total, emails in pages_of(world, "customers", query | order, "email"):
            part = expected[(page - 1) * LIMIT : page * LIMIT]
            assert (total, list(map(str.lower, emails))) == (len(expected), part), (query, page)


# --- Deliveries -----------------------------------------------------------------------------------
@pytest.mark.parametrize("direction", ["desc", "asc"])
def test_pages_of_deliveries_equal_a_plain_query(world: World, direction: str) -> None:
    first, second = world.webhooks
    booking = Delivery.objects.filter(app=world.app).first().booking_id
    of_first = f"webhooks/{first.id}/deliveries"
    for path, query, condition in (
        ("deliveries", {}, Q()),
        ("deliveries", {"type": "email"}, Q(type="email")),
        ("deliveries", {"state": "failed"}, Q(state="failed")),
        ("deliveries", {"webhook": first.id}, Q(webhook=first)),
        ("deliveries", {"webhook": first.id, "type": "webhook"}, Q(webhook=first)),
        ("deliveries", {"webhook": first.id, "type": "email"}, Q(webhook=first, type="email")),
        ("deliveries", {"webhook": uuid.uuid4()}, Q(webhook=uuid.uuid4())),
        ("deliveries", {"booking": booking}, Q(booking=booking)),
        ("deliveries", {"type": "email", "state": "failed"}, Q(type="email", state="failed")),
        (of_first, {}, Q(webhook=first)),
        (of_first, {"webhook": second.id}, Q(webhook=first) & Q(webhook=second)),
        (of_first, {"state": "delivered"}, Q(webhook=first, state="delivered")),
    ):
        order = F("id").asc() if direction == "asc" else F("id").desc()
        plain = Delivery.objects.filter(condition, app=world.app).order_by(order)
        expected = [str(row.id) for row in plain]

        check_pages(world, path, {**query, "sortedBy": direction}, "id", expected)


# --- Tallies --------------------------------------------------------------------------------------
def differences(app: App) -> dict[str, tuple[int, int]]:
    """List -> its number of rows by the tally and in the database, where they differ."""
    counted = {
        ListingTally.BOOKINGS: Booking.objects.filter(app=app, deleted_at=None),
        ListingTally.CUSTOMERS: AppCustomer.objects.filter(app=app),
        ListingTally.DELIVERIES: Delivery.objects.filter(app=app),
    }
    found = {}
    for listing, rows in counted.items():
        tallied = tally_of(app, listing).aggregate(total=Sum("count"))["total"] or 0
        if tallied != rows.count():
            found[listing] = (tallied, rows.count())
    return found


def test_tallies_are_the_numbers_of_rows(world: World) -> None:
    """Of several connections, each of which has a slot of its own."""
    ListingTally.objects.filter(slot=ListingTally.objects.first().slot).update(slot=99)
    world.add(5)
    Booking.objects.filter(app=world.app).order_by("id")[0].delete()

    assert differences(world.app) == {}


def test_control_wrong_tally_is_found(world: World) -> None:
    """The control of the comparisons above: a total that a trigger missed is not overlooked."""
    tally = tally_of(world.app, ListingTally.BOOKINGS).first()
    ListingTally.objects.filter(pk=tally.pk).update(count=F("count") + 1)
    total = Booking.objects.filter(app=world.app, deleted_at=None).count()

    assert differences(world.app) == {"bookings": (total + 1, total)}
