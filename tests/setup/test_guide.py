"""The chapters of docs/guide, and their code but for the client: test_run.py runs that one."""

import re
import time

import pytest
from rest_framework import serializers

from notifications.webhooks.signing import new_secret, signature_headers
from ops.guide_settings import SERIALIZERS
from ops.management.commands.write_guide_tables import with_tables
from tests.guide import CHAPTERS, block_of_guide
from tests.services import ROOT


def test_contents_match_the_headings() -> None:
    listed = re.findall(r"^\| \[(.+)\]\((.+)\.md\) \|", CHAPTERS["index"], re.MULTILINE)
    headings = {name: re.match("# (.+)", text)[1] for name, text in CHAPTERS.items()}
    order = re.findall(r"^ +- guide/([\w-]+)\.md$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)

    assert listed == [(headings[name], name) for name in order if name != "index"]
    assert sorted(order) == sorted(CHAPTERS)


def test_tables_of_the_guide_are_those_of_the_code() -> None:
    """Otherwise run `manage.py write_guide_tables`."""
    marks = ("<!-- settings of ", "<!-- table of ")
    written = {
        name: sum(text.count(mark) for mark in marks)
        for name, text in CHAPTERS.items()
        if any(mark in text for mark in marks)
    }

    assert {name: with_tables(text) for name, text in CHAPTERS.items()} == CHAPTERS
    assert written == {"holds-and-public-booking": 2, "keys": 1, "projects": 1, "settings": 4}


SETTINGS = [
    pytest.param(name, field, id=f"{owner} {name}")
    for owner, serializer in SERIALIZERS.items()
    for name, field in serializer().fields.items()
]


@pytest.mark.parametrize(("name", "field"), SETTINGS)
def test_setting_has_a_text_with_its_default_if_any(name: str, field: serializers.Field) -> None:
    """Such as "`link` (the default)", "20 by default" or "True by default"."""
    text = field.help_text or ""
    found = re.search(r"`(\w+)` \(the default\)|`([^`]+)` by default|(\w+) by default", text)

    assert text.endswith(".")
    assert found is None or found[found.lastindex].lower() == str(field.initial).lower()


@pytest.mark.parametrize(
    ("name", "function", "answers"),
    [
        ("with-the-package", "receive", [204, 400, 400]),
        ("by-hand", "is_genuine", [True, False, False]),
    ],
)
def test_example_receivers_verify_signatures(name, function, answers) -> None:
    code = block_of_guide(f"python {name}")
    secret, body = new_secret(), '{"what": "Prüfung"}'.encode()
    headers = {"service-event": "booking.confirmed"} | signature_headers(
        message_id="1", timestamp=int(time.time()), body=body, secrets=[new_secret(), secret]
    )
    names = {"keep_for_later": lambda *given: None}

    exec(code.replace("whsec_...", secret), names)
    answered = [
        names[function](body, headers),
        names[function](body + b" ", headers),
        names[function](body, headers | {"webhook-timestamp": "1795167000"}),
    ]

    assert answered == answers
