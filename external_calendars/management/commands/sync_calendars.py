"""`manage.py sync_calendars [--calendar ID]`: sync connected calendars now."""

import uuid
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from external_calendars.models import Connection
from external_calendars.providers.base import PROVIDER_ERRORS
from external_calendars.sync.leases import claim_connections
from external_calendars.sync.run import FAILED, LEASE_LOST, sync_calendar


class Command(BaseCommand):
    help = "Sync every connected calendar now."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--calendar", type=uuid.UUID, metavar="ID", help="this one only")

    def handle(self, *args: Any, **options: Any) -> None:
        calendars = Connection.objects.filter(calendar__deleted_at=None).order_by("created_at")
        if options["calendar"]:
            calendars = calendars.filter(pk=options["calendar"])
            if not calendars:
                raise CommandError("There is no such connected calendar.")
        failed = sum(not self._sync(pk) for pk in calendars.values_list("pk", flat=True))
        if failed:
            raise CommandError(f"Failed syncs: {failed}.")

    def _sync(self, calendar_id: uuid.UUID) -> bool:
        claimed = claim_connections(1, calendar_id=calendar_id)
        if not claimed:
            self.stdout.write(f"{calendar_id}: another worker is syncing it")
            return True
        connection = claimed[0]
        name = connection.calendar.name

        def print_progress(done: int, total: int) -> None:
            self.stdout.write(f"{name}: {done} of {total}")

        result = sync_calendar(connection, report_progress=print_progress)
        if result == LEASE_LOST:
            self.stdout.write(f"{name}: disconnected, or taken over by another worker")
            return True
        connection.refresh_from_db()
        if result == FAILED:
            self.stdout.write(f"{name}: {PROVIDER_ERRORS[connection.problem]}")
            return False
        unread = f", unreadable objects: {connection.unread}" if connection.unread else ""
        self.stdout.write(f"{name}: synced{unread}")
        return True
