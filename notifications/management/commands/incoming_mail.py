import sys
from typing import Any

from django.core.management.base import BaseCommand

from common.db.sql import database_now
from notifications.mail.incoming import record_incoming_mail

MAX_MESSAGE = 10 * 2**20


class Command(BaseCommand):
    help = (
        "Read an e-mail to the service's sender on standard input: a bounce (RFC 3464) stops"
        " e-mails to addresses that fail, an answer to an invitation (RFC 6047) is stored."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        content = sys.stdin.buffer.read(MAX_MESSAGE)
        for sentence in record_incoming_mail(content, now=database_now()):
            self.stdout.write(sentence)
