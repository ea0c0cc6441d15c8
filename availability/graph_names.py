"""The names that a project's `booking.graph` may have.

Filled at start-up by the room above, which knows the graphs (bookings.apps).
"""

GRAPH_NAMES: list[str] = []
# Those whose bookings wait for a payment, and are made on a hosted page.
PAYMENT_GRAPHS: list[str] = []
