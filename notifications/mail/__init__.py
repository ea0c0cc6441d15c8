"""The words of the mails: which there are, what they say by default, and how they are put together.

Nothing here looks anything up or sends: a `Letter` goes in, a message that is ready to be sent
comes out.
"""

from notifications.mail.letters import Letter, compose, merge_words, render
from notifications.mail.notices import compose_notice, compose_password_mail
from notifications.mail.templates import (
    BLOCKS,
    PLACEHOLDERS,
    SLUGS,
    Words,
    default_words,
    find_faults,
)

__all__ = [
    "BLOCKS",
    "PLACEHOLDERS",
    "SLUGS",
    "Letter",
    "Words",
    "compose",
    "compose_notice",
    "compose_password_mail",
    "default_words",
    "find_faults",
    "merge_words",
    "render",
]
