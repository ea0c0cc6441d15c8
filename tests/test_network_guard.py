"""The guard of the suite: a socket that is connected inside a transaction fails the test."""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.db import connection, transaction

from tests.network_guard import NetworkGuard


@pytest.fixture
def listener() -> Iterator[tuple[str, int]]:
    """The address of a server that accepts and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()


def connect_to(address: tuple[str, int]) -> None:
    socket.create_connection(address, timeout=5).close()


def connect_ex_to(address: tuple[str, int]) -> None:
    with socket.socket() as client:
        client.connect_ex(address)


def connect_in_pool(address: tuple[str, int]) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(connect_to, address).result()


def addresses_of(guard: NetworkGuard) -> list[Any]:
    """What was noted; the guard forgets it, so that this test passes."""
    found = [address for address, _ in guard.offences]
    guard.offences.clear()
    return found


@pytest.mark.django_db
@pytest.mark.parametrize("connect", [connect_to, connect_ex_to, connect_in_pool])
def test_connection_inside_a_transaction_is_recorded(
    network_guard: NetworkGuard, listener: tuple[str, int], connect: Callable[..., None]
) -> None:
    with transaction.atomic():
        connect(listener)

    stacks = [stack for _, stack in network_guard.offences]
    assert addresses_of(network_guard) == [listener]
    assert all("create_connection" in stack or "connect_ex_to" in stack for stack in stacks)


@pytest.mark.django_db(transaction=True)
def test_connection_is_recorded_without_a_test_transaction(
    network_guard: NetworkGuard, listener: tuple[str, int]
) -> None:
    with transaction.atomic():
        connect_to(listener)

    assert addresses_of(network_guard) == [listener]


@pytest.mark.django_db
@pytest.mark.parametrize("connect", [connect_to, connect_ex_to, connect_in_pool])
def test_transaction_around_a_test_is_ignored(
    network_guard: NetworkGuard, listener: tuple[str, int], connect: Callable[..., None]
) -> None:
    assert connection.in_atomic_block

    connect(listener)
    with transaction.atomic():
        pass
    connect(listener)

    assert addresses_of(network_guard) == []


@pytest.mark.django_db
def test_connection_of_another_thread_is_ignored(
    network_guard: NetworkGuard, listener: tuple[str, int]
) -> None:
    with transaction.atomic():
        thread = threading.Thread(target=connect_to, args=(listener,))
        thread.start()
        thread.join()

    assert addresses_of(network_guard) == []


@pytest.mark.redis
@pytest.mark.django_db
def test_connection_to_redis_is_ignored(network_guard: NetworkGuard) -> None:
    redis = urlsplit(os.environ["REDIS_URL"])

    with transaction.atomic():
        connect_to((redis.hostname or "127.0.0.1", redis.port or 6379))

    assert addresses_of(network_guard) == []


@pytest.mark.django_db
def test_recorded_connection_fails_the_test(
    network_guard: NetworkGuard, listener: tuple[str, int]
) -> None:
    """Whatever the code did with the connection, and with its error."""
    with transaction.atomic():
        connect_to(listener)

    with pytest.raises(pytest.fail.Exception, match=r"Connected to .* inside a transaction:"):
        network_guard.check()

    assert addresses_of(network_guard) == [listener]
    network_guard.check()
