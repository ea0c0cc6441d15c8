"""Static files are sent as `collectstatic` has compressed them, and pages are compressed."""

import gzip
import os
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from django.contrib.staticfiles import finders
from django.core.management import call_command
from django.http import HttpResponse
from django.test import Client, RequestFactory

from common.static_files import StaticFilesMiddleware
from tests.world import Tenant

BOOK = "booking_pages/book.js"

pytestmark = pytest.mark.django_db  # the end of an answer looks after connections


@pytest.fixture
def collected(settings: Any, tmp_path: Path) -> Path:
    settings.STATIC_ROOT, settings.WHITENOISE_AUTOREFRESH = tmp_path, False
    call_command("collectstatic", verbosity=0, interactive=False)
    return tmp_path


def served(**headers: str) -> Any:
    middleware = StaticFilesMiddleware(lambda request: HttpResponse(status=404))
    answer = middleware(RequestFactory().get(f"/static/{BOOK}", **headers))
    with closing(answer):
        return answer.headers.get("Content-Encoding"), b"".join(answer)


def test_a_collected_file_is_sent_compressed(collected: Path) -> None:
    source = Path(str(finders.find(BOOK))).read_bytes()

    encoding, body = served(HTTP_ACCEPT_ENCODING="gzip")

    assert (encoding, gzip.decompress(body)) == ("gzip", source)
    assert len(body) < len(source) / 3
    assert served() == (None, source)


def test_a_file_that_is_newer_than_the_collected_one_is_sent_as_it_is(collected: Path) -> None:
    source = Path(str(finders.find(BOOK)))
    old = source.stat().st_mtime - 60
    (collected / BOOK).write_text("old")
    for path in (collected / BOOK, collected / f"{BOOK}.gz"):
        os.utime(path, (old, old))

    assert served(HTTP_ACCEPT_ENCODING="gzip") == (None, source.read_bytes())


def test_collecting_again_compresses_only_what_has_changed(collected: Path) -> None:
    compressed = collected / f"{BOOK}.gz"
    compressed.write_bytes(b"as it was")

    call_command("collectstatic", verbosity=0, interactive=False)

    assert compressed.read_bytes() == b"as it was"


def test_pages_are_compressed_but_not_the_api(tenant: Tenant) -> None:
    page = Client().get("/admin/login/", HTTP_ACCEPT_ENCODING="gzip")
    answer = Client().get("/v2/projects", HTTP_ACCEPT_ENCODING="gzip")

    assert page.headers["Content-Encoding"] == "gzip"
    assert page.headers["Content-Length"] == str(len(page.content))
    assert "Content-Encoding" not in answer.headers
