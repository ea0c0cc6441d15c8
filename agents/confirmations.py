"""Signed confirmations: what was shown to a person is what is done, or nothing is."""

import hashlib
import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.core import signing

from apps_config.authentication import Caller

LASTS = timedelta(minutes=5)
# By which way a confirmation comes back: from the person through the client, or with the arguments.
PERSON, ARGUMENT = "person", "argument"
# Arguments that do not say what is done.
ABOUT_THE_CALL = ("confirm", "dry_run")


class BadConfirmation(Exception):
    """It has expired, or was made for another call or another key."""


def sign_confirmation(
    version: str, *, caller: Caller, tool: str, arguments: Mapping[str, Any], way: str
) -> str:
    """Return a confirmation of one call of a tool. version: the ETag of what it changes, or ""."""
    return _signer(caller, tool, arguments, way).sign(version.strip('"'))


def read_confirmation(
    text: str, *, caller: Caller, tool: str, arguments: Mapping[str, Any], way: str
) -> str:
    """Return the version of a valid confirmation. Raises BadConfirmation."""
    try:
        version = _signer(caller, tool, arguments, way).unsign(text, max_age=LASTS)
    except signing.BadSignature as error:
        raise BadConfirmation from error
    return f'"{version}"' if version else ""


def _signer(
    caller: Caller, tool: str, arguments: Mapping[str, Any], way: str
) -> signing.TimestampSigner:
    meant = {name: arguments[name] for name in arguments if name not in ABOUT_THE_CALL}
    call = [str(caller.credential_id), str(caller.only_app.id), tool, meant, way]
    digest = hashlib.sha256(json.dumps(call, sort_keys=True).encode()).hexdigest()
    return signing.TimestampSigner(salt=f"agents.confirmations {digest}")
