"""Deliveries that are missing or duplicate, in this process and in a live service."""

from django.utils import timezone

from notifications.delivery_check import find_delivery_faults
from tests.services import Service

CODE = """
from common.db.sql import database_now
from notifications.delivery_check import find_delivery_faults
print(find_delivery_faults(database_now(), limit=1_000_000))
"""


def delivery_faults() -> list[str]:
    return find_delivery_faults(timezone.now())


def live_delivery_faults(service: Service) -> str:
    return service.run(CODE).strip()
