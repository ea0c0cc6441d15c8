"""The allowed names of a project's `booking.graph`.

Filled at start-up by `bookings.apps`, since this layer must not import the graphs.
"""

GRAPH_NAMES: list[str] = []
# Graphs whose bookings await a payment on a hosted page.
PAYMENT_GRAPHS: list[str] = []
