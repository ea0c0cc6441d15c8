"""The allowed names of a project's `booking.graph`, and states of the graphs.

Filled at start-up by `bookings.apps`, since this layer must not import the graphs.
"""

GRAPH_NAMES: list[str] = []
DEFAULT_GRAPH = "instant"
# Graphs whose bookings await a payment.
PAYMENT_GRAPHS: list[str] = []
# Graphs of seats in a group session.
SEAT_GRAPHS: list[str] = []
# The last states of bookings that do not take place.
ENDED_EARLY: list[str] = []
