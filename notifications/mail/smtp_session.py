"""Send one e-mail, in a session that a thread may keep for further ones. Uses no database."""

import re
import smtplib
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.core.mail.message import BadHeaderError

from apps_config.models import App
from common.email_address import ascii_address
from common.messages import Message
from common.net.deadline_watchdog import interrupt_at_deadline
from notifications.mail.envelope import without_addresses
from notifications.mail.smtp_backend import Conversation
from notifications.mail.suppressions import is_address_failure, suppress_bounced
from notifications.outbox.results import SendResult

# Exim delays the delivery of further mails (smtp_accept_queue_per_connection); other servers accept
# more.
MAILS_PER_SESSION = 10
UNCONFIRMED = "The mail server did not confirm the e-mail. It may have been delivered."
EXCERPT = 1000  # characters of a server's answer
NOT_SMTP = Message("The response of the mail server is not SMTP.")
STATUS = re.compile(r"[245]\.\d{1,3}\.\d{1,3}(?!\S)")  # RFC 2034

Refusals = Mapping[str, tuple[int, bytes]]


class _ThreadSession(threading.local):
    """The mail server session that a thread keeps after a mail, and how many mails it has sent."""

    is_kept = False
    backend: Any = None
    mails = 0


_of_thread = _ThreadSession()


@contextmanager
def kept_mail_session() -> Iterator[None]:
    """Within the block, one session sends several mails of this thread: a new one for each mail
    costs a connection, a TLS handshake and a login.
    """
    _of_thread.is_kept = True
    try:
        yield
    finally:
        _of_thread.is_kept = False
        _close_kept_session()


def _close_kept_session() -> None:
    backend, _of_thread.backend, _of_thread.mails = _of_thread.backend, None, 0
    if backend is not None:
        with suppress(smtplib.SMTPException, OSError):
            backend.close()


class MailSession:
    """The mail server session of one attempt, which can be cut at its deadline."""

    def __init__(self, ends: float) -> None:
        self.ends = ends
        self.was_cut = self.is_unconfirmed = False
        self.backend: Any = _of_thread.backend or get_connection()

    @property
    def conversation(self) -> Conversation | None:
        """None: not connected, or a backend of another kind than SMTP."""
        found = getattr(self.backend, "connection", None)
        return found if isinstance(found, Conversation) else None

    def send(self, message: EmailMessage) -> Refusals:
        """Send the mail; return the answers about refused recipients if others are accepted."""
        if self.backend is _of_thread.backend and not self._is_session_open():
            _close_kept_session()
            self.backend = get_connection()
        is_usable = False
        try:
            self.backend.open()
            self.backend.send_messages([message])
            is_usable = _of_thread.is_kept and self.conversation is not None
            return self.conversation.refused if self.conversation else {}
        except Exception:
            self.is_unconfirmed = bool(self.conversation and self.conversation.awaits_answer)
            raise
        finally:
            # A failure affects no other mail: the next one gets a new session.
            _of_thread.backend = self.backend
            _of_thread.mails += 1
            if not is_usable or _of_thread.mails == MAILS_PER_SESSION:
                _close_kept_session()

    def _is_session_open(self) -> bool:
        """Return whether the kept session is open: a server may end it at any time. Asked before
        the mail, so that none is sent twice.
        """
        try:
            return self.conversation is None or self.conversation.noop()[0] == 250
        except (smtplib.SMTPException, OSError):
            if self.was_cut:
                raise
            return False

    def cut(self) -> None:
        self.was_cut = True
        conversation = self.conversation
        if conversation and conversation.sock:
            with suppress(OSError):
                conversation.sock.shutdown(socket.SHUT_RDWR)


def send_mail(message: EmailMessage, app: App) -> SendResult:
    """Send one mail, in the thread's kept session or in one of its own (`kept_mail_session`)."""
    began = time.monotonic()
    session = MailSession(began + settings.EMAIL_DEADLINE)
    with interrupt_at_deadline(session):
        result = _try_to_send(message, app, session)
    if session.is_unconfirmed:
        result = SendResult(ok=False, error=UNCONFIRMED, is_unconfirmed=True)
    elif session.was_cut and not result.ok:
        # A truncated answer is meaningless.
        result = SendResult(ok=False, error=Message("The mail server took too long."))
    result.seconds = time.monotonic() - began
    return result


def _try_to_send(message: EmailMessage, app: App, session: MailSession) -> SendResult:
    try:
        refusals = session.send(message)
    except smtplib.SMTPRecipientsRefused as refused:
        refusals = refused.recipients
    except smtplib.SMTPResponseException as answer:
        return _result_of_answer(answer)
    except (smtplib.SMTPException, OSError) as trouble:
        error = f"The mail server could not be reached ({type(trouble).__name__})."
        return SendResult(ok=False, error=error)
    except (BadHeaderError, ValueError) as poison:
        error = f"The e-mail can't be encoded ({type(poison).__name__})."
        return SendResult(ok=False, error=error, final=True)
    return _result_of_refusals(message, app, refusals)


def _result_of_answer(answer: smtplib.SMTPResponseException) -> SendResult:
    """Return the result of a negative answer about the whole mail or the session."""
    code, text = answer.smtp_code, answer.smtp_error
    if code < 0:
        return SendResult(ok=False, error=NOT_SMTP)
    is_about_mail = isinstance(answer, smtplib.SMTPSenderRefused | smtplib.SMTPDataError)
    return SendResult(
        ok=False,
        response_code=code,
        error=Message("The mail server returned %(code)s.", code=code),
        excerpt=_words(code, text) if is_about_mail else "",
        final=code >= 500,
    )


def _result_of_refusals(message: EmailMessage, app: App, refusals: Refusals) -> SendResult:
    """Return the result of a mail that all recipients get but those of `refusals`."""
    if not refusals:
        return SendResult(ok=True)
    recipients = {ascii_address(address): address for address in message.recipients()}
    code, text = max(refusals.values())
    if code < 0:
        return SendResult(ok=False, error=NOT_SMTP)
    is_partial = len(refusals) < len(recipients)
    bounced = {
        recipients.get(address, address): _words(*answer)
        for address, answer in refusals.items()
        if is_address_failure(_status(answer[1]))
    }
    return SendResult(
        ok=is_partial,
        response_code=code,
        error=_refusal_words(code, _status(text), len(refusals), len(recipients)),
        excerpt="\n".join(sorted({_words(*answer) for answer in refusals.values()})),
        final=min(code for code, _ in refusals.values()) >= 500,
        keep=partial(suppress_bounced, app, bounced) if bounced else None,
    )


def _refusal_words(code: int, status: str, refused: int, recipients: int) -> str:
    answer = f"{code} {status}".strip()
    if refused < recipients:
        return Message(
            "The server refused %(refused)s of %(total)s addresses (%(answer)s).",
            refused=refused,
            total=recipients,
            answer=answer,
        )
    if code < 500:
        return Message(
            "The server accepts no e-mail for the address at the moment (%(answer)s).",
            answer=answer,
        )
    return Message("The server refused the address (%(answer)s).", answer=answer)


def _status(text: bytes | str) -> str:
    """Return the enhanced status code, such as `5.1.1`, with which the text begins; else ""."""
    found = STATUS.match(_decode(text))
    return found[0] if found else ""


def _words(code: int, text: bytes | str) -> str:
    return without_addresses(" ".join(f"{code} {_decode(text)}".split()))[:EXCERPT]


def _decode(text: bytes | str) -> str:
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else text
