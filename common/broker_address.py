"""The addresses of the broker and of Redis: checked, and as kombu and redis-py expect them.

Errors do not contain an address, because it may contain a password.
"""

import ssl
from collections.abc import Collection
from typing import Any, NamedTuple
from urllib.parse import SplitResult, parse_qsl, urlsplit

from django.core.exceptions import ImproperlyConfigured

# Schemes of a broker's address, and what `doctor` calls them.
TRANSPORTS = {
    "redis": "Redis",
    "rediss": "Redis with TLS",
    "sentinel": "Redis through Sentinel",
    "amqp": "AMQP",
    "amqps": "AMQP with TLS",
}
CERTIFICATE_CHECKS = ("required", "optional", "none")
SENTINEL_PORT = 26379
SOCKET_OPTIONS: dict[str, Any] = {
    "socket_timeout": 5,
    "socket_connect_timeout": 1,
    "socket_keepalive": True,
}
REDIS_OPTIONS: dict[str, Any] = {
    "visibility_timeout": 300,
    "unacked_restore_interval": 10,
    "unacked_restore_throttle": 1,
    **SOCKET_OPTIONS,
    "health_check_interval": 10,
}
# A Sentinel that is away is not asked again, which would take eight seconds: there are others.
SENTINEL_OPTIONS: dict[str, Any] = {"sentinel_kwargs": {**SOCKET_OPTIONS, "retry": None}}


class Broker(NamedTuple):
    """The settings CELERY_BROKER_URL, CELERY_BROKER_TRANSPORT_OPTIONS and CELERY_BROKER_USE_SSL."""

    url: str
    transport_options: dict[str, Any]
    use_ssl: dict[str, Any] | None = None


def parse_broker_url(name: str, url: str) -> Broker:
    """Return how Celery connects to the address that the setting `name` has.

    Raises ImproperlyConfigured.
    """
    parts = split_url(name, url, TRANSPORTS)
    if parts.scheme == "sentinel":
        return parse_sentinel_url(name, parts)
    if parts.scheme == "amqps":
        # By default, kombu does not check that the certificate is the host's.
        checks = {"cert_reqs": ssl.CERT_REQUIRED, "server_hostname": parts.hostname}
        return Broker(url, {}, checks)
    if parts.scheme == "amqp":
        return Broker(url, {})
    return Broker(parse_redis_url(name, url), REDIS_OPTIONS)


def parse_redis_url(name: str, url: str) -> str:
    """Return the address; rediss:// checks the certificate unless the address says otherwise.

    By default, kombu does not check it:
    rediss://cache:6380/0 -> rediss://cache:6380/0?ssl_cert_reqs=required

    Raises ImproperlyConfigured.
    """
    parts = split_url(name, url, ("redis", "rediss"))
    if parts.scheme == "redis":
        return url
    check = dict(parse_qsl(parts.query)).get("ssl_cert_reqs")
    if check is None:
        return f"{url}{'&' if parts.query else '?'}ssl_cert_reqs=required"
    if check not in CERTIFICATE_CHECKS:
        choices = ", ".join(CERTIFICATE_CHECKS)
        raise ImproperlyConfigured(f"ssl_cert_reqs in {name} must be one of {choices}")
    return url


def parse_sentinel_url(name: str, parts: SplitResult) -> Broker:
    """Return one address per Sentinel. Login and database are those of the master.

    sentinel://:secret@one,two:26380/0?master_name=wakeups ->
    sentinel://:secret@one:26379/0;sentinel://:secret@two:26380/0
    """
    query = dict(parse_qsl(parts.query))
    if set(query) != {"master_name"}:
        raise ImproperlyConfigured(f"{name} must end with ?master_name=<name> for sentinel://")
    login, at, hosts = parts.netloc.rpartition("@")
    addresses = []
    for host in hosts.split(","):
        port = "" if urlsplit(f"//{host}").port else f":{SENTINEL_PORT}"
        addresses.append(f"sentinel://{login}{at}{host}{port}{parts.path}")
    return Broker(";".join(addresses), {**REDIS_OPTIONS, **SENTINEL_OPTIONS, **query})


def split_url(name: str, url: str, schemes: Collection[str]) -> SplitResult:
    """Split the URL and check its scheme and its hosts. Raises ImproperlyConfigured."""
    if url.partition("://")[0] not in schemes:
        *others, last = (f"{scheme}://" for scheme in schemes)
        raise ImproperlyConfigured(f"{name} must begin with {', '.join(others)} or {last}")
    try:
        parts = urlsplit(url)
        for host in parts.netloc.rpartition("@")[2].split(","):
            _ = urlsplit(f"//{host}").port
    except ValueError:
        raise ImproperlyConfigured(f"{name} has an invalid host or port") from None
    return parts
