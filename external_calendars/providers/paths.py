"""Addresses and paths of calendars in one form each, so that they can be compared and stored.

A path has every byte percent-encoded that is not unreserved (RFC 3986 2.3), whichever way its
server writes it: a stray "+" or "@" means the same to all of them only when it is encoded.
"""

import re
from urllib.parse import quote, unquote_to_bytes, urljoin, urlsplit

from external_calendars.providers.base import Trouble
from scheduling.api.addresses import DEFAULT_PORTS, UrlRefused, read_target

HREF_LENGTH = 1000
ETAG_LENGTH = 300
PLAIN_PATH = re.compile(r"(/[^/.?#\s\\][^/?#\s\\]*)+", re.ASCII)

Origin = tuple[str, str, int]


def full_address(text: str) -> str:
    """What a person gave, as a URL: "ada@example.com" and "example.com" are https://example.com/.

    webcal:// is https://. Raises Trouble.
    """
    text = text.strip()
    scheme, mark, rest = text.partition("://")
    if not mark:
        text = "https://" + (text if "/" in text else text.rpartition("@")[2])
    elif scheme.lower() in ("webcal", "webcals", "caldavs"):
        text = f"https://{rest}"
    elif scheme.lower() == "caldav":
        text = f"http://{rest}"
    return normal_url(text.partition("#")[0])


def normal_url(url: str) -> str:
    """Raises Trouble for what is no web address."""
    try:
        scheme, host, port, path = read_target(url)
    except UrlRefused as refused:
        raise Trouble("address_refused", detail=str(refused)) from None
    path, mark, query = path.partition("?")
    host = f"[{host}]" if ":" in host else host
    port_part = "" if port == DEFAULT_PORTS[scheme] else f":{port}"
    return f"{scheme}://{host}{port_part}{normal_path(path)}{mark}{query}"


def normal_path(path: str) -> str:
    """`/a b/ü@x` and `/a%20b/%c3%bc%40x` are `/a%20b/%C3%BC%40x`; `%2F` stays what it is."""
    return "/".join(quote(unquote_to_bytes(part), safe="") for part in path.split("/"))


def origin_of(url: str) -> Origin:
    """Scheme, host and port. Raises Trouble."""
    try:
        return read_target(url)[:3]
    except UrlRefused as refused:
        raise Trouble("address_refused", detail=str(refused)) from None


def joined(url: str, link: str) -> str:
    """Where a link in an answer from `url` leads. Raises Trouble."""
    try:
        there = urljoin(url, link.strip().partition("#")[0])
    except ValueError:
        raise Trouble("bad_answer", detail="The server leads to what is no address.") from None
    return normal_url(there)


def as_collection(url: str) -> str:
    """Without a query, and with the slash at its end (RFC 4918 5.2)."""
    bare = url.partition("?")[0]
    return bare if bare.endswith("/") else f"{bare}/"


def path_of(url: str) -> str:
    return urlsplit(url).path or "/"


def path_within(collection: str, href: str) -> str | None:
    """The path of an object in the collection at the URL; None for what lies elsewhere, for the
    collection itself and those in it, and for what is too long to be kept."""
    if PLAIN_PATH.fullmatch(href):  # as nearly all are: the other way takes ten times as long
        path = normal_path(href)
    else:
        try:
            there = joined(collection, href)
            if origin_of(there) != origin_of(collection):
                return None
        except Trouble:
            return None
        path = path_of(there)
    base = path_of(collection)
    is_object = path.startswith(base) and path != base and not path.endswith("/")
    return path if is_object and len(path) <= HREF_LENGTH else None


def object_url(collection: str, href: str) -> str:
    """The URL of an object by its path. Raises Trouble."""
    return joined(collection, href)


def normal_etag(text: str) -> str:
    """As it can be compared and sent in If-Match, which knows no weak ones (RFC 9110 13.1.1); ""
    for one that is too long to be kept."""
    etag = text.strip().removeprefix("W/")
    return etag if len(etag) <= ETAG_LENGTH and etag.isascii() and etag.isprintable() else ""
