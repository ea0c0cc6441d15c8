"""Which addresses and URLs may be called (protection against server-side request forgery).

A URL is checked when it is saved, for an early error, and again with the resolved addresses when it
is called: only the second check protects.
"""

import re
import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NamedTuple
from urllib.parse import urlsplit

import idna
from django.conf import settings

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

NOT_IN_URL = re.compile(r"[\x00-\x20\x7f-\xa0\\\s]")
LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
NAME = re.compile(rf"(?=.{{1,253}}$){LABEL}(\.{LABEL})*", re.ASCII)
# A host with such an end is not a name (WHATWG URL): some resolvers read it as an address.
NUMBER_AT_END = re.compile(r"(.*\.)?([0-9]+|0x[0-9a-f]*)", re.ASCII)
AUTHORITY = re.compile(r"(?ai)(\[[0-9a-f.]*:[0-9a-f:.]*\]|[^\[\]:@]+)(:[0-9]*)?")
DEFAULT_PORTS = {"http": 80, "https": 443}
LOOPBACK = (ip_address("127.0.0.1"), ip_address("::1"))

GLOBAL_V6 = IPv6Network("2000::/3")
# Networks that some versions of the standard library consider global, or that are no public host's.
NEVER = tuple(
    ip_network(text)
    for text in (
        "168.63.129.16/32",  # Azure's platform services
        "192.0.0.0/24",  # protocol assignments; Oracle's metadata service
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # automatic multicast tunnels
        "192.88.99.0/24",  # 6to4 relays
        "192.175.48.0/24",  # AS112
        "2001::/23",  # protocol assignments: Teredo, ORCHID, AS112
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: a v4 address inside
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
    )
)

NO_WEB_ADDRESS = "Must be an http or https address."
NOT_PUBLIC = "Must be a public address."


class UrlRefused(ValueError):
    """The URL may not be called; the message is a sentence for its author."""


class UrlTarget(NamedTuple):
    """`https://Bücher.example/a?b` -> `("https", "xn--bcher-kva.example", 443, "/a?b")`."""

    scheme: str
    host: str  # ASCII, in lower case; an IPv6 address without brackets
    port: int
    path: str  # with the query


def address_problem(ip: Address, allowed: Sequence[Network] = ()) -> str | None:
    """Why `ip` is refused; None for a public address and for one in an allowed network."""
    if isinstance(ip, IPv6Address) and ip.ipv4_mapped:
        ip = ip.ipv4_mapped
    if is_in_networks(ip, allowed) or (is_public(ip) and not is_in_networks(ip, NEVER)):
        return None
    return NOT_PUBLIC


def is_in_networks(ip: Address, networks: Sequence[Network]) -> bool:
    return any(ip in network for network in networks)


def is_public(ip: Address) -> bool:
    """Whether the address is global by the registries; NAT64 and all else outside of 2000::/3 is
    not.
    """
    if isinstance(ip, IPv6Address) and ip not in GLOBAL_V6:
        return False
    return ip.is_global and not (ip.is_multicast or ip.is_reserved or ip.is_link_local)


def addresses_problem(addresses: Sequence[Address], port: int) -> str | None:
    """Why a host with these addresses is refused; None if every address is allowed.

    Any port is allowed within the allowed networks, elsewhere only WEBHOOK_PORTS.
    """
    allowed = settings.WEBHOOK_ALLOWED_NETWORKS
    if any(address_problem(ip, allowed) for ip in addresses):
        return NOT_PUBLIC
    is_allowed = bool(addresses) and all(is_in_networks(ip, allowed) for ip in addresses)
    if is_allowed or port in settings.WEBHOOK_PORTS:
        return None
    return f"The port must be one of {', '.join(map(str, settings.WEBHOOK_PORTS))}."


def url_problem(url: str) -> str | None:
    """Why `url` is refused, without resolving its name; None if it is allowed."""
    try:
        checked_target(url)
    except UrlRefused as refused:
        return str(refused)
    return None


def checked_target(url: str) -> UrlTarget:
    """The target of `url`. Raises UrlRefused, also for an address or a port that is not allowed."""
    target = parse_url_target(url)
    if settings.WEBHOOK_HTTPS_ONLY and target.scheme != "https":
        raise UrlRefused("Must be an https address.")
    known = addresses_without_resolver(target.host)
    # A name may resolve to an allowed network, where any port is allowed.
    is_open = bool(settings.WEBHOOK_ALLOWED_NETWORKS) and not known
    problem = None if is_open else addresses_problem(known, target.port)
    if problem:
        raise UrlRefused(problem)
    return target


def addresses_without_resolver(host: str) -> Sequence[Address]:
    """The addresses of a host that needs no resolver: a literal, or a name of this machine (RFC
    6761).
    """
    if host == "localhost" or host.endswith(".localhost"):
        return LOOPBACK
    literal = literal_address(host)
    return [literal] if literal else []


def literal_address(host: str) -> Address | None:
    """The address that a resolver reads in `host`: also `2130706433`, `0177.0.0.1`, `0x7f.1`,
    `10.1`.
    """
    try:
        return ip_address(host)
    except ValueError:
        pass
    try:
        return IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


def parse_url_target(url: str) -> UrlTarget:
    """Parse a URL that may be called by its form. Raises UrlRefused."""
    if len(url) > 2048:
        raise UrlRefused("Must be at most 2,048 characters.")
    if NOT_IN_URL.search(url):
        raise UrlRefused(NO_WEB_ADDRESS)
    if "#" in url:
        raise UrlRefused("May not have a fragment.")
    try:
        parts = urlsplit(url)
        host, port = ascii_host(parts.hostname or ""), parts.port
    except ValueError:
        raise UrlRefused(NO_WEB_ADDRESS) from None
    is_plain = AUTHORITY.fullmatch(parts.netloc) and port != 0
    if parts.scheme not in DEFAULT_PORTS or not is_plain:
        raise UrlRefused(NO_WEB_ADDRESS)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return UrlTarget(parts.scheme, host, port or DEFAULT_PORTS[parts.scheme], path)


def ascii_host(host: str) -> str:
    """The host as passed to the resolver. Raises ValueError for neither a name nor an address."""
    if ":" in host:
        return str(IPv6Address(host))
    if not host.isascii():
        # Convert before any check: full-width digits and dots become an ASCII address here.
        host = idna.encode(host, uts46=True).decode()
    host = host.lower().removesuffix(".")
    is_broken_address = NUMBER_AT_END.fullmatch(host) and not literal_address(host)
    if not NAME.fullmatch(host) or is_broken_address:
        raise ValueError(host)
    return host
