"""Normal forms of calendar URLs and paths, so that they can be compared and stored.

In a path every byte that is not unreserved (RFC 3986 2.3) is percent-encoded, however its server
writes it: all servers agree on "+" and "@" only when they are encoded.
"""

import re
from urllib.parse import quote, unquote_to_bytes, urljoin, urlsplit

from common.messages import Message
from common.net.ssrf import DEFAULT_PORTS, UrlRefused, parse_url_target
from external_calendars.providers.base import ProviderError

HREF_LENGTH = 1000
ETAG_LENGTH = 300
PLAIN_PATH = re.compile(r"(/[^/.?#\s\\][^/?#\s\\]*)+", re.ASCII)

Origin = tuple[str, str, int]


def full_address(text: str) -> str:
    """Return the URL for a user's input: "ada@example.com" and "example.com" are
    https://example.com/.

    webcal:// is https://. Raises ProviderError.
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
    """Return the URL's normal form. Raises ProviderError if it is not a web address."""
    try:
        scheme, host, port, path = parse_url_target(url)
    except UrlRefused as refused:
        raise ProviderError("address_refused", detail=str(refused)) from None
    path, mark, query = path.partition("?")
    host = f"[{host}]" if ":" in host else host
    port_part = "" if port == DEFAULT_PORTS[scheme] else f":{port}"
    return f"{scheme}://{host}{port_part}{normal_path(path)}{mark}{query}"


def normal_path(path: str) -> str:
    """Return the path percent-encoded: `/a b/ü@x` is `/a%20b/%C3%BC%40x`. `%2F` stays."""
    return "/".join(quote(unquote_to_bytes(part), safe="") for part in path.split("/"))


def origin_of(url: str) -> Origin:
    """Return scheme, host and port. Raises ProviderError."""
    try:
        return parse_url_target(url)[:3]
    except UrlRefused as refused:
        raise ProviderError("address_refused", detail=str(refused)) from None


def join_url(url: str, link: str) -> str:
    """Return the URL of a link in an answer from `url`. Raises ProviderError."""
    try:
        target = urljoin(url, link.strip().partition("#")[0])
    except ValueError:
        raise ProviderError(
            "bad_answer", detail=Message("The server redirects to an invalid address.")
        ) from None
    return normal_url(target)


def to_collection_url(url: str) -> str:
    """Return the URL without a query and with a final slash (RFC 4918 5.2)."""
    bare = url.partition("?")[0]
    return bare if bare.endswith("/") else f"{bare}/"


def url_path(url: str) -> str:
    return urlsplit(url).path or "/"


def path_in_collection(collection: str, href: str) -> str | None:
    """Return the normal path of an object in the collection.

    None for other paths, the collection itself, its subcollections, and paths that are too long.
    """
    if PLAIN_PATH.fullmatch(href):  # nearly all match; the general way takes ten times as long
        path = normal_path(href)
    else:
        try:
            target = join_url(collection, href)
            if origin_of(target) != origin_of(collection):
                return None
        except ProviderError:
            return None
        path = url_path(target)
    base = url_path(collection)
    is_object = path.startswith(base) and path != base and not path.endswith("/")
    return path if is_object and len(path) <= HREF_LENGTH else None


def object_url(collection: str, href: str) -> str:
    """Return the URL of an object from its path. Raises ProviderError."""
    return join_url(collection, href)


def normal_etag(text: str) -> str:
    """Return the etag for comparisons and If-Match: not weak (RFC 9110 13.1.1); "" if too long."""
    etag = text.strip().removeprefix("W/")
    return etag if len(etag) <= ETAG_LENGTH and etag.isascii() and etag.isprintable() else ""
