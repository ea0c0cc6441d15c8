"""Sent e-mails, where no mail server is set and e-mails are files. For superusers only: the e-mails
have links that log their readers in.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from office.base.permissions import show_page
from office.notifications.mail_frame import mail_frame

FILE_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
MAX_MAILS = 100
MAX_MAIL_BYTES = 5_000_000
# Django's file backend writes this line after each message.
SEPARATOR = b"\n" + b"-" * 79 + b"\n"


def mails_are_files() -> bool:
    return bool(settings.EMAIL_BACKEND == FILE_BACKEND)


@dataclass(frozen=True, slots=True)
class SentMail:
    """`name`: of its file, which the backend chose."""

    name: str
    written_at: datetime
    message: EmailMessage

    @property
    def subject(self) -> str:
        return str(self.message["Subject"] or _("(no subject)"))

    @property
    def to(self) -> str:
        return str(self.message["To"] or "")

    def part(self, kind: str) -> str:
        """Return the first part of the content type as text; "" without one."""
        for part in self.message.walk():
            if part.get_content_type() == kind:
                content = part.get_content()
                return content if isinstance(content, str) else content.decode("utf-8", "replace")
        return ""


def mail_files() -> list[Path]:
    """Return the newest MAX_MAILS files, newest first. Raises Http404 with a mail server."""
    if not mails_are_files():
        raise Http404
    folder = Path(settings.EMAIL_FILE_PATH)
    found = [path for path in folder.glob("*.log") if path.is_file()] if folder.is_dir() else []
    return sorted(found, key=lambda path: (path.stat().st_mtime, path.name), reverse=True)[
        :MAX_MAILS
    ]


def read_mail(path: Path) -> SentMail:
    with open(path, "rb") as file:
        content = file.read(MAX_MAIL_BYTES)
    message = message_from_bytes(content.partition(SEPARATOR)[0], policy=policy.default)
    written_at = datetime.fromtimestamp(path.stat().st_mtime, tz=UTC)
    return SentMail(path.name, written_at, message)


def find_mail_file(name: str) -> SentMail:
    """Return the mail of a file that the list shows. Raises Http404."""
    for path in mail_files():
        if path.name == name:
            return read_mail(path)
    raise Http404


def show_sent_mails(request: HttpRequest) -> HttpResponse:
    mails: Sequence[SentMail] = [read_mail(path) for path in mail_files()]
    return show_page(
        request,
        "office/sent_mails.html",
        title=_("Sent e-mails"),
        mails=mails,
        folder=settings.EMAIL_FILE_PATH,
        limit=MAX_MAILS,
    )


def show_sent_mail(request: HttpRequest, name: str) -> HttpResponse:
    mail = find_mail_file(name)
    return show_page(
        request,
        "office/sent_mail.html",
        title=mail.subject,
        mail=mail,
        headers=[(key, str(value)) for key, value in mail.message.items()],
        text=mail.part("text/plain"),
        has_html=bool(mail.part("text/html")),
        calendar=mail.part("text/calendar"),
    )


def show_sent_html(request: HttpRequest, name: str) -> HttpResponse:
    return mail_frame(find_mail_file(name).part("text/html"))
