"""manage.py sync_calendars [--calendar ID]: look at calendars elsewhere now; say how it goes."""

import uuid
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from external_calendars.claims import claim
from external_calendars.models import Connection
from external_calendars.providers.base import TROUBLES
from external_calendars.sync import LOST, TROUBLED, sync


class Command(BaseCommand):
    help = "Look once at every connected calendar, due or not, and keep what is new there."

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
            raise CommandError(f"{failed} could not be brought in step.")

    def _sync(self, calendar_id: uuid.UUID) -> bool:
        claimed = claim(1, calendar_id=calendar_id)
        if not claimed:
            self.stdout.write(f"{calendar_id}: another worker is at it")
            return True
        connection = claimed[0]
        name = connection.calendar.name

        def tell(done: int, total: int) -> None:
            self.stdout.write(f"{name}: {done} of {total}")

        result = sync(connection, told=tell)
        if result == LOST:
            self.stdout.write(f"{name}: it was disconnected, or taken over")
            return True
        connection.refresh_from_db()
        if result == TROUBLED:
            self.stdout.write(f"{name}: {TROUBLES[connection.problem]}")
            return False
        unread = f", {connection.unread} objects can't be read" if connection.unread else ""
        self.stdout.write(f"{name}: in step{unread}")
        return True
