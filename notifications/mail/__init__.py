"""The words of the mails: which there are, what they say by default, and how they are put together.

Nothing here looks anything up or sends: a `Letter` goes in, a message that is ready to be sent
comes out.
"""

from notifications.mail.compose import Letter, compose_mail, entry_of, merge_override, render_mail
from notifications.mail.copies import EmailCopy, copy_booking_mail, copy_notice, copy_subject
from notifications.mail.defaults import (
    BLOCKS,
    PLACEHOLDERS,
    SLUGS,
    MailWords,
    WrittenMail,
    default_mail_words,
    default_written_mail,
    find_faults,
)
from notifications.mail.system_mails import (
    compose_calendar_mail,
    compose_code_mail,
    compose_invitation_mail,
    compose_own_bookings_mail,
    compose_password_mail,
    compose_security_mail,
    compose_webhook_notice,
)

__all__ = [
    "BLOCKS",
    "PLACEHOLDERS",
    "SLUGS",
    "EmailCopy",
    "Letter",
    "MailWords",
    "WrittenMail",
    "compose_calendar_mail",
    "compose_code_mail",
    "compose_invitation_mail",
    "compose_mail",
    "compose_own_bookings_mail",
    "compose_password_mail",
    "compose_security_mail",
    "compose_webhook_notice",
    "copy_booking_mail",
    "copy_notice",
    "copy_subject",
    "default_mail_words",
    "default_written_mail",
    "entry_of",
    "find_faults",
    "merge_override",
    "render_mail",
]
