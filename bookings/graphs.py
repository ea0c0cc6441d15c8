"""The graphs (workflows) as data (api.md section 5): state and action -> next state.

A booking stores its graph's name. No other module depends on a particular graph.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

INITIALIZED, COMPLETED = "initialized", "completed"
# Applied by the service when a payment is overdue, and when a request gets no answer.
TIMEOUT, DECLINE = "timeout", "decline"
# Recipients of event notifications; WEBHOOK: the URL of a call.
CUSTOMER, OWNER, WEBHOOK = "customer", "owner", "webhook"
EVERYBODY = frozenset({CUSTOMER, OWNER, WEBHOOK})
# Actions of the customer: the project's policies apply, whoever carries them out.
CUSTOMER_ACTIONS = frozenset({"cancel_by_customer"})


@dataclass(frozen=True, slots=True)
class Graph:
    """One workflow. `start` is the default action of a new booking.

    aliases: further names of actions, which the log and `available_actions` do not use.
    """

    name: str
    start: str
    steps: Mapping[tuple[str, str], str]  # (state, action) -> state
    blocking: frozenset[str]
    # Also block if the project sets `pending_blocks`.
    blocking_if_pending: frozenset[str] = frozenset()
    # Group owner: its action -> the action of its seats. Seat: the states that occupy a seat.
    seats_follow: Mapping[str, str] = field(default_factory=dict)
    seated: frozenset[str] = frozenset()
    reminds: frozenset[str] = EVERYBODY
    aliases: Mapping[str, str] = field(default_factory=dict)
    _live: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        live = frozenset(state for state, action in self.steps if action == "complete")
        object.__setattr__(self, "_live", live)

    def actions(self, state: str) -> list[str]:
        """Return the actions that `state` offers, in the table's order; none: completed."""
        return [action for from_state, action in self.steps if from_state == state]

    def next_state(self, state: str, action: str) -> str | None:
        """Return the state after `action`; None: the action is not allowed."""
        return self.steps.get((state, self.canonical_action(state, action)))

    def canonical_action(self, state: str, action: str) -> str:
        """Return the name that the action has in the graph."""
        return action if (state, action) in self.steps else self.aliases.get(action, action)

    def is_completed(self, state: str) -> bool:
        return not self.actions(state)

    def is_live(self, state: str) -> bool:
        """Whether the booking will take place: the service reminds and completes it."""
        return state in self._live

    def takes_place(self, state: str) -> bool:
        """Whether the booking takes place or has taken place."""
        return state == COMPLETED or self.is_live(state)

    def awaits_payment(self, state: str) -> bool:
        return (state, TIMEOUT) in self.steps

    def awaits_answer(self, state: str) -> bool:
        """Whether the booking is a request that the owner confirms or declines."""
        return (state, DECLINE) in self.steps

    def expiry_action(self, state: str) -> str:
        """Return the action of the clock for a booking that has expired in `state`."""
        return TIMEOUT if self.awaits_payment(state) else DECLINE

    @property
    def is_paid_later(self) -> bool:
        """Whether a new booking awaits payment."""
        return self.awaits_payment(self.steps[INITIALIZED, self.start])

    @property
    def is_group(self) -> bool:
        """Whether this is the graph of a group's owner, whose booking has seats and no customer."""
        return bool(self.seats_follow)

    @property
    def is_seat(self) -> bool:
        """Whether this is the graph of a seat in a group, which shares the owner's time."""
        return bool(self.seated)

    def blocks(self, state: str, *, pending_blocks: bool) -> bool:
        """Return whether a booking in `state` blocks its time."""
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
            aliases={"cancel": "cancel_by_owner"},
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
# The last states of bookings that do not take place, in any graph.
ENDED_EARLY = frozenset(
    state
    for graph in GRAPHS.values()
    for state in graph.steps.values()
    if graph.is_completed(state) and state != COMPLETED
)
# The states that occupy a seat, in any graph.
SEATED = frozenset(state for graph in GRAPHS.values() for state in graph.seated)
