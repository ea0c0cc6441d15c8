import sys
from typing import Any

from django.core.management.base import BaseCommand

from common.db.sql import database_now
from notifications.mail.bounces import record_bounce

MAX_MESSAGE = 10 * 2**20


class Command(BaseCommand):
    help = "Read a bounce (RFC 3464) on standard input and stop e-mails to addresses that fail."

    def handle(self, *args: Any, **options: Any) -> None:
        content = sys.stdin.buffer.read(MAX_MESSAGE)
        for sentence in record_bounce(content, now=database_now()):
            self.stdout.write(sentence)
