"""/llms.txt and the catalogue of the API: what they say, and that their addresses exist."""

import re
from typing import Any

import pytest
from django.test import Client

URL = "http://127.0.0.1:8000"
# The guide is built by scripts/docs; its chapters are files here.
BUILT = re.compile(r"/docs/guide/(.*?)/?$")


@pytest.fixture(autouse=True)
def _public_url(settings: Any) -> None:
    settings.PUBLIC_URL = URL


def test_llms_text_has_the_form_of_llmstxt_org_and_links_that_exist(
    db: None, settings: Any
) -> None:
    answer = Client().get("/llms.txt")

    text = answer.content.decode()
    assert (answer.status_code, answer["Content-Type"]) == (200, "text/plain; charset=utf-8")
    title, _, summary, *_ = text.split("\n")
    assert title == "# Scheduling and booking"
    assert summary.startswith("> A service on which businesses offer")
    assert re.findall("^## (.*)$", text, re.M) == ["API", "Documentation"]
    assert f"`{URL}/mcp`" in text
    links = re.findall(r"^- \[[^\]]+\]\((.*?)\): .+$", text, re.M)
    assert links == [
        f"{URL}/v2/openapi.json",
        f"{URL}/docs",
        f"{URL}/v2",
        f"{URL}/docs/guide/",
        f"{URL}/docs/guide/agents/",
        f"{URL}/docs/guide/holds-and-public-booking/",
        f"{URL}/docs/guide/errors-and-lists/",
    ]
    for link in links:
        path = link.removeprefix(URL)
        if chapter := BUILT.match(path):
            name = f"{chapter[1] or 'index'}.md"
            assert (settings.BASE_DIR / "docs" / "guide" / name).is_file()
        else:
            assert Client().get(path).status_code == 200


def test_catalog_is_a_linkset_with_addresses_that_exist() -> None:
    answer = Client().get("/.well-known/api-catalog")

    assert (answer.status_code, answer["Content-Type"]) == (
        200,
        'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"',
    )
    assert answer.json() == {
        "linkset": [
            {
                "anchor": f"{URL}/v2",
                "service-desc": [{"href": f"{URL}/v2/openapi.json", "type": "application/json"}],
                "service-doc": [
                    {"href": f"{URL}/docs", "type": "text/html"},
                    {"href": f"{URL}/docs/guide/", "type": "text/html"},
                    {"href": f"{URL}/llms.txt", "type": "text/plain"},
                ],
                "service-meta": [{"href": f"{URL}/v2", "type": "application/json"}],
                "status": [{"href": f"{URL}/healthz", "type": "application/json"}],
            }
        ]
    }
    (links,) = answer.json()["linkset"]
    for name in ("service-desc", "service-meta", "status"):
        (link,) = links[name]
        found = Client().get(link["href"].removeprefix(URL))
        assert (found.status_code, found["Content-Type"]) == (200, link["type"])


def test_head_names_the_catalog_and_other_methods_are_refused() -> None:
    path = "/.well-known/api-catalog"

    head = Client().head(path)

    assert (head.status_code, head.content) == (200, b"")
    assert head["Link"] == f'<{URL}{path}>; rel="api-catalog"'
    assert [Client().post(each).status_code for each in (path, "/llms.txt")] == [405, 405]
