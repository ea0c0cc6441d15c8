"""Change notifications from a fake provider to the service: sent by a thread, or by the test."""

import contextlib
import ipaddress
import queue
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Notification:
    """One POST to the service. A test forges one with `dataclasses.replace`."""

    url: str
    headers: Mapping[str, str]
    body: bytes = b""


class NotificationSender:
    """Sends in the order of the changes, to addresses of this machine only. `sent`: notifications,
    each with the status of the service's answer, 0 for none.

    is_holding: notifications wait in `held` until `release` or `deliver`.
    """

    def __init__(self) -> None:
        self.sent: list[tuple[Notification, int]] = []
        self.lost: list[Notification] = []
        self.held: list[Notification] = []
        self.is_holding = False
        self._to_lose = 0
        self._to_double = 0
        self._queue: queue.Queue[Notification] = queue.Queue()
        self._thread: threading.Thread | None = None
        # No proxy of the environment.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def lose(self, times: int) -> None:
        """Never send the next ones."""
        self._to_lose += times

    def double(self, times: int) -> None:
        """Send each of the next ones twice."""
        self._to_double += times

    def send(self, notification: Notification) -> None:
        """Send it in the thread, unless a fault applies."""
        if self._to_lose:
            self._to_lose -= 1
            self.lost.append(notification)
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        copies = 1
        if self._to_double:
            self._to_double -= 1
            copies = 2
        for _ in range(copies):
            if self.is_holding:
                self.held.append(notification)
            else:
                self._queue.put(notification)

    def release(self) -> list[int]:
        """Deliver what is held, now and in order; return the statuses of the answers."""
        held, self.held = self.held, []
        return [self.deliver(notification) for notification in held]

    def deliver(self, notification: Notification) -> int:
        """Deliver this one now; return the status of the answer, 0 for none."""
        request = urllib.request.Request(
            notification.url, notification.body, dict(notification.headers), method="POST"
        )
        status = 0
        try:
            if not is_loopback(urllib.parse.urlsplit(notification.url).hostname or ""):
                raise ConnectionRefusedError
            with self._opener.open(request, timeout=10) as answer:
                status = answer.status
        except urllib.error.HTTPError as answer:
            status = answer.code
            answer.close()
        except OSError:
            pass
        self.sent.append((notification, status))
        return status

    def wait(self) -> None:
        """Return when the thread has sent everything."""
        self._queue.join()

    def _run(self) -> None:
        while True:
            notification = self._queue.get()
            with contextlib.suppress(ValueError):  # an address that is none
                self.deliver(notification)
            self._queue.task_done()


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
