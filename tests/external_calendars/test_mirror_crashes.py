"""The worker dies, between any two steps of a write: there is one event then, or none, as it should
be; never a second one."""

from collections.abc import Callable
from typing import Any

import pytest

from availability.models import Calendar
from external_calendars.models import WrittenEvent
from notifications.models import Attempt, Delivery
from notifications.outbox.leases import claim_due
from notifications.outbox.results import record_results
from notifications.outbox.senders import prepare_batch
from tests.external_calendars.mirrored import Dies, Memory, change, copies, make_due, shown, write
from tests.external_calendars.test_mirror import (
    _at_home,
    act,
    ada,
    book,
    memory,
    move,
    path_of,
    span_of,
    times,
    work,
)
from tests.world import Tenant

__all__ = ["_at_home", "ada", "memory", "work"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]

LOST = "The worker was lost. The message may have been sent."


def book_it(tenant: Tenant, resource: Any, memory: Memory) -> Any:
    return book(tenant, resource)


def move_it(tenant: Tenant, resource: Any, memory: Memory) -> Any:
    booking = book(tenant, resource)
    write()
    move(tenant, booking)
    return booking


def move_it_while_it_is_changed_there(tenant: Tenant, resource: Any, memory: Memory) -> Any:
    booking = book(tenant, resource)
    write()
    text = memory.text(path_of(booking))
    memory.set(path_of(booking), change(text, categories=["Important"]))
    move(tenant, booking)
    return booking


def cancel_it(tenant: Tenant, resource: Any, memory: Memory) -> Any:
    booking = book(tenant, resource)
    write()
    act(tenant, booking, "cancel")
    return booking


def cancel_it_while_it_is_changed_there(tenant: Tenant, resource: Any, memory: Memory) -> Any:
    booking = book(tenant, resource)
    write()
    text = memory.text(path_of(booking))
    memory.set(path_of(booking), change(text, summary="Mine"))
    act(tenant, booking, "cancel")
    return booking


def move_it_to_another(tenant: Tenant, resource: Any, memory: Memory) -> Any:
    """What is to be written there is written when it is taken away here: two deliveries."""
    booking = book(tenant, resource)
    write()
    other = tenant.make_resource("Ben")
    move(tenant, booking, resource_id=other["id"])
    return booking


# What is done -> the requests of its write, and when the event is then (None: it is gone).
Case = tuple[Callable[[Tenant, Any, Memory], Any], int, dict[str, str] | None]
CASES: list[Case] = [
    (book_it, 1, times()),
    (move_it, 2, times(2)),
    (move_it_while_it_is_changed_there, 2, times(2)),
    (cancel_it, 1, None),
    (cancel_it_while_it_is_changed_there, 3, None),
    (move_it_to_another, 1, None),
]
STEPS = [
    (do, expected, moment, number)
    for do, requests, expected in CASES
    for moment in ("before", "after")
    for number in range(requests)
] + [(do, expected, "result", 0) for do, _, expected in CASES]
# In each run one moment of each deed, at another step each time.
ALWAYS = {
    (do, ("before", "after", "result")[number % 3], 0) for number, (do, _, _) in enumerate(CASES)
}


def run_and_die(memory: Memory, moment: str, number: int) -> None:
    """One claim, whose worker dies before or after the request of that number, or when all are
    done and nothing of it is written down."""
    begin = len(memory.calls)

    def die(call: str) -> None:
        if len(memory.calls) - begin == number + 1:
            raise Dies

    rows = claim_due(Delivery.CALENDAR, 10)
    sends, unsent = prepare_batch(rows, now=rows[0].created_at)
    assert unsent == []
    if moment != "result":
        setattr(memory, moment, die)
    for _, send in sends:
        if moment == "result":
            send()
            continue
        with pytest.raises(Dies):
            send()
    memory.before = memory.after = lambda call: None


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("do", "expected", "moment", "number"),
    [
        pytest.param(*step, marks=() if (step[0], *step[2:]) in ALWAYS else pytest.mark.deep)
        for step in STEPS
    ],
)
def test_worker_killed_at_every_step(
    tenant: Tenant,
    ada: Any,
    work: Calendar,
    memory: Memory,
    do: Callable[[Tenant, Any, Memory], Any],
    expected: dict[str, str] | None,
    moment: str,
    number: int,
) -> None:
    booking = do(tenant, ada, memory)
    run_and_die(memory, moment, number)

    make_due()
    write()

    path = path_of(booking)
    assert list(memory.objects) == ([path] if expected else [])
    assert copies() == [("written" if expected else "removed", "")]
    if expected:
        assert shown(memory.text(path))[1:3] == span_of(expected)
        row = WrittenEvent.objects.get()
        assert (row.href, row.etag) == (path, memory.objects[path][0])
    last = Delivery.objects.filter(type="calendar").latest("id")
    assert (last.state, last.lapses) == ("delivered", 1)
    attempts = Attempt.objects.filter(delivery=last).order_by("id")
    assert list(attempts.values_list("error", flat=True)) == [LOST, ""]


def test_worker_killed_repeatedly_during_one_write(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory
) -> None:
    """Four times in a row, each time a step further; a fifth would be its last."""
    booking = book(tenant, ada)
    for moment in ("before", "after", "result", "after"):
        run_and_die(memory, moment, 0)
        make_due()
    write()

    assert list(memory.objects) == [path_of(booking)]
    assert copies() == [("written", "")]


def test_late_result_is_discarded(tenant: Tenant, ada: Any, work: Calendar, memory: Memory) -> None:
    """The worker was not dead: what it brings back finds another's lease, or that it is over."""
    booking = book(tenant, ada)
    [row] = claim_due(Delivery.CALENDAR, 10)
    [(_, send)], _ = prepare_batch([row], now=row.created_at)
    late = send()
    make_due()
    move(tenant, booking)
    write()
    now_there = WrittenEvent.objects.values().get()

    record_results([(row, late)])

    assert WrittenEvent.objects.values().get() == now_there
    assert shown(memory.text(path_of(booking)))[1:3] == span_of(times(2))


def test_booking_changes_during_the_write(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory
) -> None:
    """A worker holds what it read before: what comes behind it settles it."""
    booking = book(tenant, ada)
    [row] = claim_due(Delivery.CALENDAR, 10)
    [(_, send)], _ = prepare_batch([row], now=row.created_at)
    act(tenant, booking, "cancel")
    assert write() == 0

    record_results([(row, send())])
    assert list(memory.objects) == [path_of(booking)]
    write()

    assert memory.objects == {}
    assert copies() == [("removed", "")]
