from django.apps import AppConfig

from availability.graph_names import GRAPH_NAMES, PAYMENT_GRAPHS
from bookings.graphs import GRAPHS


class BookingsConfig(AppConfig):
    name = "bookings"
    verbose_name = "Bookings"

    def ready(self) -> None:
        GRAPH_NAMES[:] = GRAPHS
        PAYMENT_GRAPHS[:] = [
            name for name, graph in GRAPHS.items() if graph.is_paid_later and not graph.is_seat
        ]
