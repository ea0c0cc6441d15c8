"""The workflows, as data (api.md section 5): which action leads from which state to which.

A graph is named in a booking; nothing outside this table knows one graph from another.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

INITIALIZED, COMPLETED = "initialized", "completed"
# The service does it by itself when a payment does not come in time.
TIMEOUT = "timeout"
# Who an event notification goes to: its recipient, or the address of its call.
CUSTOMER, OWNER, WEBHOOK = "customer", "owner", "webhook"
EVERYBODY = frozenset({CUSTOMER, OWNER, WEBHOOK})
# What the customer does: the policies of a project bind these, whoever carries them out.
CUSTOMER_ACTIONS = frozenset({"cancel_by_customer"})


@dataclass(frozen=True, slots=True)
class Graph:
    """One workflow. `start` is the action of a booking that names none."""

    name: str
    start: str
    steps: Mapping[tuple[str, str], str]  # (state, action) -> state
    blocking: frozenset[str]
    # Blocks too where the project says `pending_blocks`.
    blocking_if_pending: frozenset[str] = frozenset()
    # Of a group's owner: its action -> what its seats do then. Of a seat: the states that take it.
    seats_follow: Mapping[str, str] = field(default_factory=dict)
    seated: frozenset[str] = frozenset()
    reminds: frozenset[str] = EVERYBODY
    _live: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        live = frozenset(state for state, action in self.steps if action == "complete")
        object.__setattr__(self, "_live", live)

    def actions(self, state: str) -> list[str]:
        """The actions that `state` offers, in the table's order; none: completed."""
        return [action for from_state, action in self.steps if from_state == state]

    def next_state(self, state: str, action: str) -> str | None:
        """Where `action` leads from `state`; None where it is not allowed."""
        return self.steps.get((state, action))

    def is_completed(self, state: str) -> bool:
        return not self.actions(state)

    def is_live(self, state: str) -> bool:
        """A live booking takes place: the service completes it, and reminders go out."""
        return state in self._live

    def takes_place(self, state: str) -> bool:
        """Also a booking that is over."""
        return state == COMPLETED or self.is_live(state)

    def awaits_payment(self, state: str) -> bool:
        return (state, TIMEOUT) in self.steps

    @property
    def is_paid_later(self) -> bool:
        """Whether a booking that was just made waits for its payment."""
        return self.awaits_payment(self.steps[INITIALIZED, self.start])

    @property
    def is_group(self) -> bool:
        """An owner's booking, which has seats and no customer."""
        return bool(self.seats_follow)

    @property
    def is_seat(self) -> bool:
        """A seat in a group: its time is the owner's."""
        return bool(self.seated)

    def blocks(self, state: str, *, pending_blocks: bool) -> bool:
        """Whether a booking in `state` keeps others out of its time."""
        return state in self.blocking or (pending_blocks and state in self.blocking_if_pending)


_ENDS = {"cancel": "cancelled", "cancel_by_customer": "cancelled_by_customer"}
_CONFIRMED = {("confirmed", action): state for action, state in _ENDS.items()} | {
    ("confirmed", "complete"): "completed"
}
_PAYMENT = {
    (INITIALIZED, "create"): "tentative",
    ("tentative", "pay"): "paid",
    ("tentative", TIMEOUT): "unpaid",
    ("tentative", "cancel"): "cancelled",
    **{("paid", action): state for action, state in _ENDS.items()},
    ("paid", "complete"): "completed",
}
_BY_OWNER = "cancelled_by_owner"
_OF_SEATS = frozenset({CUSTOMER, WEBHOOK})

GRAPHS: Mapping[str, Graph] = {
    graph.name: graph
    for graph in (
        Graph(
            name="instant",
            start="confirm",
            steps={
                (INITIALIZED, "confirm"): "confirmed",
                (INITIALIZED, "create"): INITIALIZED,  # a draft
                **_CONFIRMED,
            },
            blocking=frozenset({"confirmed"}),
        ),
        Graph(
            name="confirm_decline",
            start="create",
            steps={
                (INITIALIZED, "create"): "tentative",
                ("tentative", "confirm"): "confirmed",
                ("tentative", "decline"): "declined",
                **{("tentative", action): state for action, state in _ENDS.items()},
                **_CONFIRMED,
            },
            blocking=frozenset({"confirmed"}),
            blocking_if_pending=frozenset({"tentative"}),
        ),
        Graph(
            name="instant_payment",
            start="create",
            steps=_PAYMENT,
            blocking=frozenset({"tentative", "paid"}),
        ),
        Graph(
            name="group_owner",
            start="create",
            steps={
                (INITIALIZED, "create"): "tentative",
                ("tentative", "cancel"): "cancelled",
                ("tentative", "complete"): "completed",
            },
            blocking=frozenset({"tentative"}),
            seats_follow={"cancel": "cancel_by_owner", "complete": "complete"},
            reminds=frozenset({OWNER}),
        ),
        Graph(
            name="group_customer",
            start="create",
            steps={
                (INITIALIZED, "create"): "confirmed",
                ("confirmed", "cancel_by_customer"): "cancelled_by_customer",
                ("confirmed", "cancel_by_owner"): _BY_OWNER,
                ("confirmed", "complete"): "completed",
            },
            blocking=frozenset(),
            seated=frozenset({"confirmed", "completed"}),
            reminds=_OF_SEATS,
        ),
        Graph(
            name="group_customer_payment",
            start="create",
            steps={
                **_PAYMENT,
                ("tentative", "cancel_by_owner"): _BY_OWNER,
                ("paid", "cancel_by_owner"): _BY_OWNER,
            },
            blocking=frozenset(),
            seated=frozenset({"tentative", "paid", "completed"}),
            reminds=_OF_SEATS,
        ),
    )
}

STATES = tuple(
    dict.fromkeys(
        state
        for graph in GRAPHS.values()
        for (from_state, _), to_state in graph.steps.items()
        for state in (from_state, to_state)
    )
)
# The states in which a seat is taken, whatever its graph.
SEATED = frozenset(state for graph in GRAPHS.values() for state in graph.seated)
