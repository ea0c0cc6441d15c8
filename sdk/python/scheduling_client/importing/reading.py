"""Requests to a source: with its secret, within limits."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import httpx

from scheduling_client.core import retry_after
from scheduling_client.importing.records import SourceFailed

MAX_ROWS = 20_000  # of one kind
MAX_BYTES = 20_000_000  # of one answer, or of a file
MAX_WAIT = 60.0  # seconds, if the source asks for a pause
ATTEMPTS = 5
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def read_secret(variable: str, file: str | None) -> str:
    """Return a source's key from a file, else from a variable of the environment.

    Raises SourceFailed if there is none, or if it could not be sent in a header.
    """
    text = read_file(Path(file)).decode("utf-8", "replace") if file else os.environ.get(variable)
    secret = (text or "").strip()
    if not secret:
        raise SourceFailed(f"Set {variable}, or name a file with --key-file.")
    if not (secret.isascii() and secret.isprintable()):
        raise SourceFailed("The key of the source has characters that no key has.")
    return secret


def read_file(path: Path) -> bytes:
    """Return a file's bytes. Raises SourceFailed, also above MAX_BYTES."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SourceFailed(f"{path}: {error.strerror}.") from error
    if len(content) > MAX_BYTES:
        raise SourceFailed(f"{path} has more than {MAX_BYTES // 1_000_000} MB.")
    return content


class SourceClient:
    """Reads JSON from one server. The secret goes to this server alone: redirects are refused."""

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        auth: tuple[str, str] | None = None,
        timeout: float = 30.0,
    ) -> None:
        parts = urlsplit(url)
        is_safe = parts.scheme == "https" or parts.hostname in LOOPBACK
        if parts.scheme not in ("http", "https") or not parts.hostname or not is_safe:
            raise SourceFailed("The address of the source begins with https://.")
        self._url = url.rstrip("/")
        self._shown = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl().rstrip("/")
        self._http = httpx.Client(headers=headers, auth=auth, timeout=timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._http.close()

    def get(
        self,
        path: str,
        query: Mapping[str, str | int] | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        is_optional: bool = False,
    ) -> Any:
        """Return the JSON of an answer. Raises SourceFailed, which names the address and the
        status.

        429, 502, 503 and 504 are repeated, as late as `Retry-After` says. is_optional: None if the
        source does not know the path.
        """
        for attempt in range(1, ATTEMPTS + 1):
            status, wait, content = self._read(path, query, headers)
            if status not in (429, 502, 503, 504) or attempt == ATTEMPTS:
                break
            time.sleep(min(wait if wait is not None else 2.0**attempt, MAX_WAIT))
        if status == 404 and is_optional:
            return None
        if status != 200:
            raise SourceFailed(f"The source answered GET {self._shown}{path} with {status}.")
        try:
            return json.loads(content)
        except ValueError:
            address = f"{self._shown}{path}"
            raise SourceFailed(f"The source answered GET {address} without JSON.") from None

    def _read(
        self, path: str, query: Mapping[str, Any] | None, headers: Mapping[str, str] | None
    ) -> tuple[int, float | None, bytes]:
        try:
            with self._http.stream(
                "GET", self._url + path, params=query, headers=headers
            ) as response:
                content = bytearray()
                for piece in response.iter_bytes():
                    content += piece
                    if len(content) > MAX_BYTES:
                        raise SourceFailed(f"The answer to GET {path} is too large.")
                return response.status_code, retry_after(response.headers), bytes(content)
        except httpx.HTTPError as error:
            kind = type(error).__name__
            raise SourceFailed(
                f"The source did not answer GET {self._shown}{path} ({kind})."
            ) from error


def member(answer: Any, name: str, path: str) -> Any:
    """Return a member of an answer. Raises SourceFailed."""
    if not isinstance(answer, Mapping) or name not in answer:
        raise SourceFailed(f"The answer to GET {path} has no `{name}`.")
    return answer[name]


def rows_of(value: Any, path: str) -> list[Any]:
    """Return a list of an answer. Raises SourceFailed."""
    if not isinstance(value, list):
        raise SourceFailed(f"The answer to GET {path} is no list.")
    return value


def check_number(rows: list[Any], path: str) -> None:
    """Raise SourceFailed if there are too many rows."""
    if len(rows) > MAX_ROWS:
        raise SourceFailed(f"GET {path} lists more than {MAX_ROWS} rows.")
