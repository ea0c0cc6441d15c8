"""The addresses of broker and Redis as kombu and redis-py get them; both check certificates."""

import contextlib
import ssl
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import kombu
import pytest
import redis
from cryptography import x509
from django.core.exceptions import ImproperlyConfigured

from common.broker_address import (
    REDIS_OPTIONS,
    SENTINEL_OPTIONS,
    Broker,
    parse_broker_url,
    parse_redis_url,
)
from tests.certificates import write_certificate
from tests.services import Redis, find_program, redis_problem


@pytest.mark.parametrize(
    ("url", "broker"),
    [
        ("redis://r:6379/0", Broker("redis://r:6379/0", REDIS_OPTIONS)),
        ("redis:///0", Broker("redis:///0", REDIS_OPTIONS)),
        (
            "rediss://:p%40ss@r:6380/0",
            Broker("rediss://:p%40ss@r:6380/0?ssl_cert_reqs=required", REDIS_OPTIONS),
        ),
        (
            "rediss://r/0?ssl_cert_reqs=none",
            Broker("rediss://r/0?ssl_cert_reqs=none", REDIS_OPTIONS),
        ),
        (
            "rediss://r/0?ssl_ca_certs=/ca.pem",
            Broker("rediss://r/0?ssl_ca_certs=/ca.pem&ssl_cert_reqs=required", REDIS_OPTIONS),
        ),
        ("amqp://u:p@r:5672//", Broker("amqp://u:p@r:5672//", {})),
        (
            "amqps://u:p@r/x",
            Broker("amqps://u:p@r/x", {}, {"cert_reqs": ssl.CERT_REQUIRED, "server_hostname": "r"}),
        ),
        (
            "sentinel://u:p@one,two:26380/2?master_name=m",
            Broker(
                "sentinel://u:p@one:26379/2;sentinel://u:p@two:26380/2",
                {**REDIS_OPTIONS, **SENTINEL_OPTIONS, "master_name": "m"},
            ),
        ),
    ],
)
def test_parse_broker_url_for_kombu(url: str, broker: Broker) -> None:
    assert parse_broker_url("BROKER", url) == broker


SCHEMES = "BROKER must begin with redis://, rediss://, sentinel://, amqp:// or amqps://"
MASTER = "BROKER must end with ?master_name=<name> for sentinel://"
INVALID = "BROKER has an invalid host or port"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("valkey://:secret@r", SCHEMES),
        ("unix:///run/redis.sock", SCHEMES),
        ("sqs://", SCHEMES),
        (":secret@r:6379", SCHEMES),
        ("redis://:secret@r:port", INVALID),
        ("amqp://u:secret@r:99999", INVALID),
        ("redis://:secret@[r", INVALID),
        ("sentinel://:secret@one:26379;sentinel://two:26379/0?master_name=m", INVALID),
        ("sentinel://:secret@one", MASTER),
        ("sentinel://:secret@one?master_name=m&ssl_cert_reqs=none", MASTER),
        (
            "rediss://:secret@r?ssl_cert_reqs=CERT_NONE",
            "ssl_cert_reqs in BROKER must be one of required, optional, none",
        ),
    ],
)
def test_refusal_of_a_broker_url_hides_the_password(url: str, message: str) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        parse_broker_url("BROKER", url)

    assert str(refused.value) == message


@pytest.mark.parametrize("url", ["unix:///run/redis.sock", "amqp://r", "sentinel://r"])
def test_redis_url_must_be_an_address_of_redis(url: str) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        parse_redis_url("REDIS_URL", url)

    assert str(refused.value) == "REDIS_URL must begin with redis:// or rediss://"


# --- TLS ------------------------------------------------------------------------------------------
class TlsRedis(Redis):
    """Redis with TLS only; `url` is without parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.url = f"rediss://127.0.0.1:{self.port}/0"
        self.certificate = self.make_certificate("server")
        self.other_certificate = self.make_certificate("other")

    def make_certificate(self, name: str) -> Path:
        address = x509.IPAddress(ip_address("127.0.0.1"))
        path = write_certificate(self.folder / f"{name}.pem", address)
        path.chmod(0o644)  # the server may run as another user
        return path

    def command(self) -> list[str]:
        words = f"--port 0 --tls-port {self.port} --bind 127.0.0.1 --tls-auth-clients no"
        words += f" --tls-cert-file {self.certificate} --tls-key-file {self.certificate}"
        return [find_program("redis-server"), *words.split(), "--save", ""]

    def answers(self) -> bool:
        return redis_problem(f"{self.url}?ssl_ca_certs={self.certificate}") is None


@pytest.fixture(scope="module")
def server() -> Iterator[TlsRedis]:
    server = TlsRedis()
    server.start()
    yield server
    server.stop()


def ping_by_kombu(url: str) -> None:
    broker = parse_broker_url("BROKER", url)
    with kombu.Connection(broker.url, transport_options=broker.transport_options) as connection:
        connection.connect()


def ping_by_redis(url: str) -> None:
    with contextlib.closing(redis.Redis.from_url(parse_redis_url("REDIS_URL", url))) as client:
        client.ping()


@pytest.mark.redis
@pytest.mark.parametrize("ping", [ping_by_kombu, ping_by_redis])
def test_rediss_checks_the_certificate_unless_the_url_says_otherwise(
    server: TlsRedis, ping: Any
) -> None:
    ping(f"{server.url}?ssl_ca_certs={server.certificate}")
    ping(f"{server.url}?ssl_cert_reqs=none")
    for query in ("", f"?ssl_ca_certs={server.other_certificate}"):
        with pytest.raises(redis.ConnectionError, match="CERTIFICATE_VERIFY_FAILED"):
            ping(server.url + query)
