"""A client of the scheduling and booking service.

from scheduling_client import Client

client = Client("https://booking.example.com", "live_api_key_...")
slots = client.availability.search(project_id="...")
"""

from scheduling_client import errors, models, webhooks
from scheduling_client.aio import AsyncClient
from scheduling_client.client import Client
from scheduling_client.core import Answer, Retries
from scheduling_client.errors import ConnectionFailed, InvalidSignature, Refused, SchedulingError
from scheduling_client.pages import ChangesPage, Page
from scheduling_client.version import VERSION as __version__

__all__ = [
    "Answer",
    "AsyncClient",
    "ChangesPage",
    "Client",
    "ConnectionFailed",
    "InvalidSignature",
    "Page",
    "Refused",
    "Retries",
    "SchedulingError",
    "__version__",
    "errors",
    "models",
    "webhooks",
]
