from django.apps import AppConfig

from availability.graph_names import ENDED_EARLY, GRAPH_NAMES, PAYMENT_GRAPHS, SEAT_GRAPHS
from bookings import graphs


class BookingsConfig(AppConfig):
    name = "bookings"
    verbose_name = "Bookings"

    def ready(self) -> None:
        GRAPH_NAMES[:] = graphs.GRAPHS
        ENDED_EARLY[:] = sorted(graphs.ENDED_EARLY)
        by_name = graphs.GRAPHS.items()
        PAYMENT_GRAPHS[:] = [name for name, graph in by_name if graph.is_paid_later]
        SEAT_GRAPHS[:] = [name for name, graph in by_name if graph.is_seat]
