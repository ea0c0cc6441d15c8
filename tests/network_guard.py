"""No network inside a transaction: notes every socket that is connected while one is open.

A transaction that waits for another server holds its locks meanwhile; on SQLite that is the whole
database. The transaction that pytest-django puts around a test is not counted.
"""

import os
import socket
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.db import connection


class NetworkGuard:
    """`offences`: the address of each such socket, with the lines of ours that led there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.offences: list[tuple[Any, str]] = []
        self._waited_for = threading.local()
        self._own_ports = _own_ports()
        for name in ("connect", "connect_ex"):
            monkeypatch.setattr(socket.socket, name, self._recording(getattr(socket.socket, name)))
        submit = ThreadPoolExecutor.submit
        monkeypatch.setattr(
            ThreadPoolExecutor,
            "submit",
            lambda pool, run, *args, **kwargs: submit(pool, self._carried(run), *args, **kwargs),
        )

    def check(self) -> None:
        """Fail where there is one."""
        if self.offences:
            address, stack = self.offences[0]
            pytest.fail(f"Connected to {address} inside a transaction:\n{stack}", pytrace=False)

    def _recording(self, connect: Callable[..., Any]) -> Callable[..., Any]:
        def recording(sock: socket.socket, address: Any) -> Any:
            is_own = sock.family == socket.AF_UNIX or address[1] in self._own_ports
            if not is_own and self._is_in_transaction():
                self.offences.append((address, "".join(traceback.format_stack(limit=25)[:-1])))
            return connect(sock, address)

        return recording

    def _carried(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """A pool's thread has no transaction of its own, but its caller waits for it in one."""
        is_in_transaction = self._is_in_transaction()

        def carried(*args: Any, **kwargs: Any) -> Any:
            self._waited_for.value = is_in_transaction
            return run(*args, **kwargs)

        return carried

    def _is_in_transaction(self) -> bool:
        own = [block for block in connection.atomic_blocks if not block._from_testcase]
        return bool(own) or getattr(self._waited_for, "value", False)


def _own_ports() -> set[int]:
    """Those of the database and of Redis."""
    addresses = (os.environ.get(name, "") for name in ("DATABASE_URL", "REDIS_URL"))
    ports = {urlsplit(address).port for address in addresses if "://" in address}
    return {port for port in ports if port}
