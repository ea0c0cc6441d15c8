"""The chapters of docs/guide, and their code but for the client: test_run.py runs that one."""

import re
import time

import pytest

from notifications.webhooks.signing import new_secret, signature_headers
from tests.guide import CHAPTERS, block_of_guide
from tests.services import ROOT


def test_contents_match_the_headings() -> None:
    listed = re.findall(r"^\| \[(.+)\]\((.+)\.md\) \|", CHAPTERS["index"], re.MULTILINE)
    headings = {name: re.match("# (.+)", text)[1] for name, text in CHAPTERS.items()}
    order = re.findall(r"^ +- guide/([\w-]+)\.md$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)

    assert listed == [(headings[name], name) for name in order if name != "index"]
    assert sorted(order) == sorted(CHAPTERS)


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
