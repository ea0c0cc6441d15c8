"""The guide's chapters, whose examples tests execute."""

import re

from tests.services import ROOT

CHAPTERS = {path.stem: path.read_text() for path in sorted((ROOT / "docs" / "guide").glob("*.md"))}
GUIDE = "\n".join(CHAPTERS.values())


def block_of_guide(name: str) -> str:
    """The code between "```<name>" and "```", which one chapter has."""
    (code,) = re.findall(rf"^```{name}\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
    return code
