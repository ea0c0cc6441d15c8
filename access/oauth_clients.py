"""Programs that may ask members for a permission: public OAuth clients of allauth.idp.oidc."""

from collections.abc import Sequence
from urllib.parse import SplitResult, urlsplit

from allauth.idp.oidc.models import Client

from apps_config.client_access import CLIENT_SCOPES

LOOPBACK = ("127.0.0.1", "::1", "localhost")
MAX_NAME = 100


class BadClient(ValueError):
    """What an operator typed about a program is not valid; the text says why."""


def register_client(name: str, redirect_uris: Sequence[str]) -> Client:
    """Register a program, by the addresses to which a browser returns. Raises BadClient."""
    if not 1 <= len(name) <= MAX_NAME:
        raise BadClient(f"The name must have 1 to {MAX_NAME} characters.")
    for uri in redirect_uris:
        _check_redirect_uri(uri)
    client = Client(name=name, type=Client.Type.PUBLIC)
    client.set_redirect_uris(list(redirect_uris))
    client.set_scopes(list(CLIENT_SCOPES))
    client.set_default_scopes(list(CLIENT_SCOPES))
    client.set_grant_types(["authorization_code", "refresh_token"])
    client.save(force_insert=True)
    return client


def _check_redirect_uri(uri: str) -> None:
    target = _split(uri)
    is_local = target.scheme == "http" and target.hostname in LOOPBACK
    if not target.hostname or not (target.scheme == "https" or is_local):
        raise BadClient(f"{uri}: must be https, or http on this machine.")
    if target.fragment or target.username is not None or "*" in uri or not uri.isprintable():
        raise BadClient(f"{uri}: must have no fragment, user or wildcard.")


def _split(uri: str) -> SplitResult:
    """Raises BadClient for what is no address."""
    try:
        target = urlsplit(uri)
        target.port  # noqa: B018  # ValueError for a wrong one
    except ValueError as error:
        raise BadClient(f"{uri}: is no address.") from error
    return target


def is_redirect_uri_of(client: Client, uri: str) -> bool:
    """Whether the program has registered exactly this address. A program on the person's machine
    may choose its port (RFC 8252).
    """
    registered = client.get_redirect_uris()
    if uri in registered:
        return True
    try:
        target = _split(uri)
    except BadClient:
        return False
    is_local = target.scheme == "http" and target.hostname in ("127.0.0.1", "::1")
    return is_local and any(
        _split(each)._replace(netloc="") == target._replace(netloc="")
        and _split(each).hostname == target.hostname
        and target.username is None
        for each in registered
    )
