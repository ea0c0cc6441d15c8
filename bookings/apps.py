from django.apps import AppConfig

from availability.graph_names import GRAPH_NAMES
from bookings.graphs import GRAPHS


class BookingsConfig(AppConfig):
    name = "bookings"
    verbose_name = "Bookings"

    def ready(self) -> None:
        GRAPH_NAMES[:] = GRAPHS
