"""The code of docs/guide.md, but for its client: test_run.py runs that one."""

import re
import time

import pytest

from notifications.webhooks.signing import new_secret, signature_headers
from tests.services import ROOT

GUIDE = (ROOT / "docs" / "guide.md").read_text()


def block_of_guide(name: str) -> str:
    (code,) = re.findall(rf"^```{name}\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
    return code


def test_the_guides_contents_are_its_headings() -> None:
    headings = re.findall(r"^## (.+)$", GUIDE, re.MULTILINE)
    listed = re.findall(
        r"^- \[(.+)\]\(#([\w-]+)\)$", GUIDE.partition("## A client")[0], re.MULTILINE
    )

    assert [title for title, _ in listed] == [title for title in headings if title != "Contents"]
    assert [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title, _ in listed] == [
        anchor for _, anchor in listed
    ]


@pytest.mark.parametrize(
    ("name", "function", "answers"),
    [
        ("with-the-package", "receive", [204, 400, 400]),
        ("by-hand", "is_genuine", [True, False, False]),
    ],
)
def test_the_guides_receivers_know_a_genuine_call(name, function, answers) -> None:
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
