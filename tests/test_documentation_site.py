"""The documentation's site below /docs/: complete, searched, and nothing on it from elsewhere."""

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urldefrag, urljoin, urlsplit

import pytest
from django.test import Client

from tests.browser import Browser, viewports
from tests.live import LiveCaller
from tests.services import ROOT, Service

SEARCH = "input[data-md-component='search-query']"
RESULT = "[data-md-component='search-result'] .md-search-result__item"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = ["mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder


@pytest.fixture(scope="module")
def service(start_service: Callable[..., Service], site: Path) -> Service:
    return start_service(workers=1, DOCS_ROOT=site)


class Contents(HTMLParser):
    """What a page names: addresses, in links and as a part of the page, and its own anchors."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.parts: list[str] = []
        self.anchors: set[str] = {""}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        found = [named[name] for name in ("src", "href") if named.get(name)]
        (self.links if tag == "a" else self.parts).extend(found)
        self.anchors |= {named[name] for name in ("id", "name") if named.get(name)}


def read_pages(site: Path) -> dict[str, Contents]:
    """The page at each address. The page of the theme for other addresses is not used."""
    files = [file for file in site.rglob("*.html") if file != site / "404.html"]
    return {f"/docs/{file.parent.relative_to(site)}/": Contents(file.read_text()) for file in files}


def test_every_link_of_the_site_leads_to_a_page_and_its_anchor(site: Path) -> None:
    pages = read_pages(site)

    dead = []
    for address, page in pages.items():
        for link in page.links + page.parts:
            target, anchor = urldefrag(urljoin(address, link))
            if urlsplit(target).netloc:
                assert link in page.links, (address, link)
            elif target in pages:
                dead += [] if anchor in pages[target].anchors else [(address, link)]
            elif not (site / target.removeprefix("/docs/")).is_file():
                dead.append((address, link))

    assert dead == []
    documents = {f"/docs/{name}/" for name in re.findall(r"- (.+)\.md$", NAVIGATION, re.MULTILINE)}
    assert set(pages) == {name.replace("/index/", "/") for name in documents}


NAVIGATION = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]


def test_search_index_has_the_chapters(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text())

    places = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert places == {address.removeprefix("/docs/") for address in read_pages(site)}


def policy(page: bytes) -> str:
    scripts = re.findall(rb"<script>(.*?)</script>", page, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(one).digest()).decode() for one in scripts]
    own = "".join(f" 'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src 'self'{own}; worker-src 'self'; style-src 'self'; "
        "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )


def test_site_is_served_with_a_policy(service: Service, site: Path) -> None:
    caller = LiveCaller(service.url)
    page = caller.get("/docs/guide/keys/")
    index = caller.get("/docs/search/search_index.json")
    known = {"If-Modified-Since": page.headers["Last-Modified"]}
    again = caller.call("GET", "/docs/guide/keys/", headers=known)
    moved = caller.get("/docs/guide/keys")
    doubled = caller.get("/docs//guide/keys/index.html")
    unknown = ("guide/none/", "", "none.js", "/etc/passwd.html", "%00")
    absent = [caller.get(f"/docs/{path}").status for path in unknown]
    outside = caller.get("/docs/..%2f..%2fetc/passwd.txt")

    content = (site / "guide" / "keys" / "index.html").read_bytes()
    assert (page.status, page.content) == (200, content)
    assert page.headers["Content-Security-Policy"] == policy(content)
    assert page.headers["Content-Type"] == "text/html"
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    assert "Set-Cookie" not in page.headers
    assert (index.status, index.headers["Content-Type"]) == (200, "application/json")
    assert index.headers["Content-Security-Policy"] == policy(b"")
    assert again.status == 304
    assert (moved.status, moved.headers["Location"]) == (302, "/docs/guide/keys/")
    assert (doubled.status, doubled.content) == (200, content)
    assert absent == [404] * len(unknown)
    assert outside.status == 400


def test_site_that_is_not_built_says_how_to_build_it() -> None:
    response = Client().get("/docs/guide/")

    assert (response.status_code, response.content.decode()) == (
        404,
        "The documentation is not built here. Build it with scripts/docs, or read the files of"
        " docs/.\n",
    )


@pytest.mark.parametrize(("width", "scheme"), viewports())
def test_search_finds_a_chapter(
    browser: Browser, service: Service, width: int, scheme: str
) -> None:
    page = browser.open(f"{service.url}/docs/guide/", width=width, scheme=scheme)

    if width < 600:
        page.click("label.md-header__button[for='__search']")
    page.type_into(SEARCH, "verifying signatures")
    page.wait_for(f"!!document.querySelector({RESULT!r})")
    page.save_screenshot(f"documentation-search-{width}-{scheme}")
    page.evaluate(f"document.querySelector({f'{RESULT} a'!r}).click()")
    page.wait_for("location.pathname === '/docs/guide/webhooks/'")
    page.wait_for("document.readyState === 'complete'")
    page.save_screenshot(f"documentation-{width}-{scheme}")

    hosts = {urlsplit(url).netloc for url in page.requests if not url.startswith("data:")}
    assert hosts == {urlsplit(service.url).netloc}
    assert (page.complaints, page.failures) == ([], [])
    assert page.evaluate("document.documentElement.scrollWidth") <= width
