"""E-mails to the service's own sender address: bounces, and answers to invitations."""

from datetime import datetime
from email import message_from_bytes, policy
from email.message import Message

from notifications.mail.bounces import record_bounce
from notifications.mail.replies import record_reply


def record_incoming_mail(content: bytes, *, now: datetime) -> list[str]:
    """Store what the e-mail says; return a sentence about each thing that was done or ignored."""
    try:
        message = message_from_bytes(content, policy=policy.compat32)
        parts: list[Message] = list(message.walk())
    except RecursionError:
        return ["Ignored: the message is nested too deeply."]
    said = record_reply(message, now=now)
    return record_bounce(message, parts, now=now) if said is None else said
