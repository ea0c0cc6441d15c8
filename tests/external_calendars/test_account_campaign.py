"""Bookings, own events of the owner, syncs and faults in random order: both sides agree."""

import random
from collections import Counter
from typing import Any

import pytest
from django.utils import timezone

from availability.models import Event
from bookings.models import Booking
from external_calendars.grants import claim_renewals, renew_grant
from external_calendars.models import Connection, Grant
from external_calendars.sync.run import SYNCED
from tests.external_calendars.accounts import EMAIL, AccountHome, connect_account
from tests.external_calendars.memory import look
from tests.external_calendars.mirrored import make_due, write
from tests.external_calendars.test_mirror import _at_home, span_of, times
from tests.world import Tenant

__all__ = ["_at_home"]
pytestmark = pytest.mark.django_db(transaction=True)

STEPS = 14
SEEDS = [*range(3), *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(3, 250))]


class Campaign:
    """`step()` does one random thing. foreign: id of an event of the owner -> its start."""

    def __init__(
        self, tenant: Tenant, home: AccountHome, resource: Any, connection: Connection, seed: int
    ) -> None:
        self.tenant, self.home, self.connection = tenant, home, connection
        self.resource, self.random = resource, random.Random(seed)
        self.hours = iter(range(1, 2000))
        self.bookings: list[str] = []
        self.foreign: list[str] = []

    def step(self) -> None:
        acts = {
            self.book: 3,
            self.move: 2,
            self.cancel: 1,
            self.add_foreign: 2,
            self.change_foreign: 2,
            self.write: 3,
            self.sync: 3,
            self.renew: 1,
            self.break_something: 4,
        }
        [act] = self.random.choices(list(acts), weights=list(acts.values()))
        act()

    # --- What people do ---------------------------------------------------------------------------
    def free_span(self) -> dict[str, str]:
        hour = next(self.hours)
        return times(1 + hour // 8, 8 + hour % 8)

    def book(self) -> None:
        answer = self.tenant.book(
            resource_id=self.resource["id"],
            customer={"name": "Marty", "email": "marty@example.com"},
            what=f"Booking {len(self.bookings)}",
            **self.free_span(),
        )
        assert answer.status == 201, answer.json
        self.bookings.append(answer.data["id"])

    def move(self) -> None:
        live = self.live()
        if live:
            path = f"/bookings/{self.random.choice(live)}/reschedule"
            assert self.tenant.post(path, self.free_span()).status == 200

    def cancel(self) -> None:
        live = self.live()
        if live:
            path = f"/bookings/{self.random.choice(live)}/cancel"
            assert self.tenant.put(path, {}).status == 200

    def live(self) -> list[str]:
        found = Booking.objects.filter(id__in=self.bookings, state="confirmed")
        return sorted(str(each) for each in found.values_list("id", flat=True))

    def add_foreign(self) -> None:
        start, end = span_of(self.free_span())
        self.foreign.append(self.home.add(f"Own {len(self.foreign)}", start, end))

    def change_foreign(self) -> None:
        if not self.foreign:
            return
        event_id = self.random.choice(self.foreign)
        if self.random.random() < 0.5:
            self.home.remove(event_id)
            self.foreign.remove(event_id)
        else:
            self.home.move(event_id, *span_of(self.free_span()))

    # --- What workers do --------------------------------------------------------------------------
    def write(self) -> None:
        make_due()
        write()

    def sync(self) -> str:
        return look(self.connection)

    def renew(self) -> None:
        Grant.objects.filter(failures__gt=0).update(renew_at=timezone.now())
        for grant in claim_renewals(10):
            renew_grant(grant)

    # --- What goes wrong --------------------------------------------------------------------------
    def break_something(self) -> None:
        gateway = self.home.gateway
        path = self.random.choice(["/events", "calendarView", "/token"])
        faults: list[Any] = [
            lambda: gateway.lose_answer("/events", method="POST", times=2),
            lambda: gateway.lose_answer("/events", times=self.random.randint(1, 3)),
            lambda: gateway.hang_up(path, times=self.random.randint(1, 3)),
            lambda: gateway.fail(path, status=503, times=self.random.randint(1, 2)),
            lambda: self.home.throttle(times=self.random.randint(1, 2)),
            self.home.expire_tokens,
            self.home.forget_marks,
        ]
        self.random.choice(faults)()

    def settle(self) -> None:
        """Without faults, until nothing is left to do."""
        self.home.gateway.stop_faults()
        for _ in range(4):
            Grant.objects.update(renew_at=timezone.now(), lease_token=None)
            self.renew()
            self.write()
            ended = self.sync()
        assert ended == SYNCED


@pytest.mark.parametrize("seed", SEEDS)
def test_both_sides_agree_after_faults(tenant: Tenant, account: AccountHome, seed: int) -> None:
    ada = tenant.make_resource("Ada Lovelace", email=EMAIL, timezone="Europe/Berlin")
    connection = connect_account(tenant, account, ada)
    campaign = Campaign(tenant, account, ada, connection, seed)
    for _ in range(STEPS):
        campaign.step()

    campaign.settle()

    bookings = Booking.objects.filter(id__in=campaign.live()).select_related("event")
    booked = {(row.event.what, row.event.start, row.event.end) for row in bookings}
    there = [(shown.title, shown.start, shown.end) for shown in account.events()]
    assert {each for each in there if each[0].startswith("Booking")} == booked
    assert max(Counter(there).values(), default=1) == 1
    read = Event.objects.filter(calendar=connection.pk, bookings=None)
    assert set(read.values_list("what", "start", "end")) == set(there) - booked
    assert len(read) == len(campaign.foreign)
    assert max(Counter(account.invited()).values(), default=1) == 1
    assert len(account.invited()) <= len(campaign.bookings)
