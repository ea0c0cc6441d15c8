"""Whether the operator's mail server has verified the sender of an e-mail by DKIM.

It says so in the message's Authentication-Results header (RFC 8601), under the name that
MAIL_AUTHSERV_ID has. A sender can write such headers too. The mail server removes those with its
own name, and adds its own one above the others: only the topmost one with the name counts.
"""

import re
from email.message import Message
from email.utils import getaddresses

from django.conf import settings

from common.email_address import canonical_address

MAX_HEADER = 4000
# Of a result: `dkim=pass header.d=example.com`.
PROPERTY = re.compile(r"([A-Za-z0-9.\-]+)\s*=\s*(\S+)")


def is_sender_verified(message: Message, address: str) -> bool:
    """Return whether the message is certainly from the canonical address: it is the only one in
    From, and a valid DKIM signature of its domain, or of a parent domain, covers the message.

    False if MAIL_AUTHSERV_ID is not set.
    """
    domain = address.rpartition("@")[2]
    return _sender_of(message) == address and any(
        domain == signer or domain.endswith(f".{signer}") for signer in _signers(message)
    )


def _sender_of(message: Message) -> str:
    """Return the canonical address in From; "" without one or with several."""
    senders = getaddresses([str(value) for value in message.get_all("From", [])])
    return canonical_address(senders[0][1]) if len(senders) == 1 else ""


def _signers(message: Message) -> list[str]:
    """Return the domains whose DKIM signatures the mail server has verified."""
    results = _trusted_results(message)
    found = []
    for result in results:
        properties = PROPERTY.findall(result.lower())
        if properties[:1] == [("dkim", "pass")]:
            found += [value for name, value in properties if name == "header.d"]
    return [domain for domain in found if "." in domain]


def _trusted_results(message: Message) -> list[str]:
    """Return the results in the topmost header of the operator's mail server; [] without one."""
    own_name = settings.MAIL_AUTHSERV_ID.lower()
    for value in message.get_all("Authentication-Results", []) if own_name else ():
        server, *results = _without_free_text(str(value)[:MAX_HEADER]).split(";")
        if server.lower().split()[:1] == [own_name]:
            return results
    return []


def _without_free_text(value: str) -> str:
    """Return the header without comments and quoted strings: the sender's own text may be in both,
    such as `smtp.mailfrom="; dkim=pass header.d=example.com; "@example.org`.
    """
    kept, depth, is_quoted = [], 0, False
    characters = iter(value)
    for character in characters:
        if character == "\\":
            next(characters, "")
        elif character == '"' and not depth:
            is_quoted = not is_quoted
        elif is_quoted:
            continue
        elif character in "()":
            depth = max(depth + (1 if character == "(" else -1), 0)
        elif not depth:
            kept.append(character)
    return "".join(kept)
