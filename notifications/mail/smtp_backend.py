"""Django's SMTP backend with the deadlines of RFC 5321, refused recipients, and 7-bit mails."""

import smtplib
from collections.abc import Mapping, Sequence
from email import message_from_bytes, policy
from typing import Any

from django.conf import settings
from django.core.mail.backends.smtp import EmailBackend

# Text in 7 bits: base64 where it has other characters.
SEVEN_BIT = policy.compat32.clone(cte_type="7bit", linesep="\r\n")


class Conversation(smtplib.SMTP):
    """One session. `smtplib` has one timeout, from the connection to the answer to a mail.

    Servers scan a whole mail before they answer. A client that gives up earlier sends the mail
    again, and its recipient gets it several times (RFC 5321, 4.5.3.2.6).
    """

    # The answers of the last mail, by refused recipient; the others have been accepted.
    refused: Mapping[str, tuple[int, bytes]] = {}
    # A whole mail was sent, and not answered: it may be delivered.
    awaits_answer = False

    def sendmail(
        self,
        from_addr: str,
        to_addrs: str | Sequence[str],
        msg: Any,
        mail_options: Sequence[str] = (),
        rcpt_options: Sequence[str] = (),
    ) -> dict[str, tuple[int, bytes]]:
        self.ehlo_or_helo_if_needed()
        if not msg.isascii() and self.has_extn("8bitmime"):
            mail_options = [*mail_options, "BODY=8BITMIME"]
        elif not msg.isascii():
            msg = message_from_bytes(msg).as_bytes(policy=SEVEN_BIT)
        self.refused = super().sendmail(from_addr, to_addrs, msg, mail_options, rcpt_options)
        return self.refused

    def send(self, s: Any) -> None:
        self.awaits_answer = False
        super().send(s)
        self.awaits_answer = isinstance(s, bytes)  # commands are text

    def getreply(self) -> tuple[int, bytes]:
        if self.sock:
            is_mail = self.awaits_answer
            self.sock.settimeout(
                settings.EMAIL_MESSAGE_TIMEOUT if is_mail else settings.EMAIL_COMMAND_TIMEOUT
            )
        answer = super().getreply()
        self.awaits_answer = False
        return answer


class ConversationOverTls(Conversation, smtplib.SMTP_SSL):
    """The same over TLS from the first byte."""


class SmtpBackend(EmailBackend):
    @property
    def connection_class(self) -> type[smtplib.SMTP]:
        return ConversationOverTls if self.use_ssl else Conversation
