"""Proof of work by the ALTCHA protocol, version 1 (altcha.org): the client finds the number below
`maxnumber` for which SHA-256(salt + number) is the challenge.
"""

import base64
import binascii
import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from common.time.instants import to_datetime

ALGORITHM = "SHA-256"
MAX_NUMBER = 50_000  # about a second of a phone
MAX_PAYLOAD = 2000


class Solution(NamedTuple):
    """A solved challenge. Each challenge may be used once, until it expires."""

    challenge: str
    expires_at: datetime


def make_challenge(key: bytes, expires_at: datetime) -> dict[str, Any]:
    """A challenge signed with `key`. The number follows the salt after a `&`, so that none of its
    digits can be moved into the salt.
    """
    salt = f"{secrets.token_hex(12)}?expires={int(expires_at.timestamp())}&"
    challenge = _digest(salt, secrets.randbelow(MAX_NUMBER + 1))
    return {
        "algorithm": ALGORITHM,
        "challenge": challenge,
        "maxnumber": MAX_NUMBER,
        "salt": salt,
        "signature": _sign(key, challenge),
    }


def read_solution(key: bytes, payload: str) -> Solution | None:
    """The solution of a challenge that was made with `key`; None if the payload is no solution.

    `payload`: Base64 of a JSON object with `algorithm`, `challenge`, `number`, `salt` and
    `signature`. The caller checks the expiry.
    """
    given = _decode(payload)
    texts = [given.get(name) for name in ("algorithm", "challenge", "salt", "signature")]
    number = given.get("number")
    if type(number) is not int or not 0 <= number <= MAX_NUMBER:
        return None
    if not all(isinstance(text, str) and text.isascii() for text in texts):
        return None
    algorithm, challenge, salt, signature = map(str, texts)
    is_ours = hmac.compare_digest(signature, _sign(key, challenge)) and salt.endswith("&")
    is_solved = hmac.compare_digest(challenge, _digest(salt, number))
    expires = parse_qs(salt.partition("?")[2]).get("expires", [""])[0]
    if algorithm != ALGORITHM or not (is_ours and is_solved and expires.isdigit()):
        return None
    return Solution(challenge, to_datetime(int(expires)))


def _decode(payload: str) -> Mapping[str, Any]:
    try:
        given = json.loads(base64.b64decode(payload[:MAX_PAYLOAD], validate=True))
    except (binascii.Error, ValueError, RecursionError):
        return {}
    return given if isinstance(given, dict) else {}


def _digest(salt: str, number: int) -> str:
    return hashlib.sha256(f"{salt}{number}".encode()).hexdigest()


def _sign(key: bytes, challenge: str) -> str:
    return hmac.new(key, challenge.encode(), hashlib.sha256).hexdigest()
