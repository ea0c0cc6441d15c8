"""What is served for web sites that embed a booking page, and who may frame it."""

import html
import re
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from availability.models import Project
from tests.booking_pages.test_book_page import NO_PAGE, POLICY, Shown, make_page
from tests.world import Tenant

pytestmark = pytest.mark.usefixtures("clock")

SHOP = "https://shop.example"


def policy(page: Shown) -> dict[str, str]:
    header = page.response.headers["Content-Security-Policy"]
    return dict(part.split(" ", 1) for part in header.split("; "))


def test_the_script_is_small_and_kept_for_an_hour(client: Client, db: None) -> None:
    response = client.get("/book/embed.js")
    again = client.get("/book/embed.js", headers={"If-None-Match": response.headers["ETag"]})

    assert (response.status_code, response.headers["Content-Type"]) == (
        200,
        "text/javascript; charset=utf-8",
    )
    assert response.headers["Cache-Control"] == "public, max-age=3600"
    assert response.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert len(response.content) < 6000
    assert (again.status_code, again.content) == (304, b"")
    assert client.post("/book/embed.js").status_code == 405


@pytest.mark.parametrize(
    ("origins", "ancestors"),
    [
        (None, "*"),
        ([SHOP], f"'self' {SHOP}"),
        ([SHOP + "/", "http://localhost:3000"], f"'self' {SHOP} http://localhost:3000"),
    ],
)
def test_embed_origins_allow_framing(tenant: Tenant, origins: Any, ancestors: str) -> None:
    page = Shown(make_page(tenant, settings={"embed_origins": origins}))

    assert policy(page) == POLICY | {"frame-ancestors": ancestors}
    assert "X-Frame-Options" not in page.response.headers
    assert page.for_script["embed_origins"] == (ancestors.split()[1:] or None)


@pytest.mark.parametrize(
    "origins", [[], "https://a.example", ["https://a.example/b"], ["a.example"], ["x;y"], ["*"]]
)
def test_other_origins_are_refused(tenant: Tenant, origins: Any) -> None:
    given = {"name": "Check-up", "settings": {"embed_origins": origins}}

    answer = tenant.post("/projects", given)

    assert (answer.status, answer.json["code"]) == (422, "invalid")
    assert all(key.startswith("settings.embed_origins") for key in answer.json["errors"])


def test_invalid_stored_origins_are_not_in_the_header(tenant: Tenant) -> None:
    path = make_page(tenant)
    stored = {"embed_origins": ["https://a.example; script-src *", SHOP, 1]}
    Project.objects.update(settings=stored)

    assert policy(Shown(path)) == POLICY | {"frame-ancestors": f"'self' {SHOP}"}


def test_snippets_page(tenant: Tenant) -> None:
    path = make_page(tenant, name='A "cut" & <b>shave</b>')
    slug = path.rpartition("/")[2]

    page = Shown(f"{path}/embed")

    name = "A &quot;cut&quot; &amp; &lt;b&gt;shave&lt;/b&gt;"
    script = f'<script src="{settings.PUBLIC_URL}/book/embed.js" async></script>'
    link = f'<a href="{settings.PUBLIC_URL}{path}" data-booking-{{}}="{slug}"'
    link += f' data-booking-title="{name}" data-booking-close="Close">Book</a>\n{script}'
    assert (page.status, page.words("h1")) == (200, ["Show this booking page in your web site"])
    snippets = re.findall(r"<textarea[^>]*>(.*?)</textarea>", page.html, re.S)
    assert [html.unescape(text) for text in snippets] == [
        f'<div data-booking-inline="{slug}" data-booking-title="{name}"></div>\n{script}',
        link.format("popup"),
        link.format("button"),
    ]
    assert policy(page)["frame-ancestors"] == "'none'"


@pytest.mark.parametrize(
    ("language", "words"), [("de", ["Schließen", "Buchen"]), ("fr", ["Fermer", "Réserver"])]
)
def test_snippets_are_in_the_language_of_the_page(
    tenant: Tenant, language: str, words: list[str]
) -> None:
    path = make_page(tenant, settings={"language": language})

    page = Shown(f"{path}/embed")

    snippets = html.unescape(re.findall(r"<textarea[^>]*>(.*?)</textarea>", page.html, re.S)[1])
    assert re.findall(r'data-booking-close="([^"]*)">([^<]*)</a>', snippets) == [tuple(words)]


def test_only_published_projects_have_a_snippets_page(tenant: Tenant) -> None:
    path = make_page(tenant, settings={"published": False})

    pages = [Shown(f"{path}/embed"), Shown("/book/no-such-project/embed")]

    assert [(page.status, page.visible_texts) for page in pages] == [(404, NO_PAGE)] * 2
