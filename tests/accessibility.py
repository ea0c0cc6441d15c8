"""Whether everybody can use a page: axe-core, run inside it."""

import json
from pathlib import Path
from typing import Any

from tests.browser import Page
from tests.node_tools import install_tools

# How people move through a page; axe calls breaches moderate.
STRUCTURE = [
    *("bypass", "landmark-banner-is-top-level", "landmark-main-is-top-level"),
    *("landmark-no-duplicate-banner", "landmark-no-duplicate-main", "landmark-one-main"),
    *("landmark-unique", "page-has-heading-one", "region", "skip-link"),
]
RUN = f"""
axe.run(%s, {{preload: false, iframes: false, resultTypes: ["violations"]}}).then(found => {{
  window.axeFound = JSON.stringify(found.violations
    .filter(one => ["serious", "critical"].includes(one.impact)
      || {json.dumps(STRUCTURE)}.includes(one.id))
    .map(one => [one.id, one.nodes.map(node => node.html.slice(0, 300))]));
}})
"""
# Otherwise axe asks for the ::before and ::after of all ancestors of each text, which is three
# quarters of its time, and leaves the contrast of a text undecided where it finds one.
LOOK_BEHIND_PSEUDO_ELEMENTS = """
axe.configure({checks: [{id: "color-contrast", options: {ignorePseudo: true}}]})
"""


def load_axe() -> str:
    """The text of axe-core."""
    return (install_tools(Path(__file__).parent / "axe") / "axe-core" / "axe.min.js").read_text()


def find_faults(page: Page, axe: str, part: str = "document") -> Any:
    """What is serious or critical, and breaches of STRUCTURE: [[rule, [elements]], ...]. `part`: an
    expression of what to look at."""
    if not page.evaluate("!!window.axe"):
        page.evaluate(axe)
        page.evaluate(LOOK_BEHIND_PSEUDO_ELEMENTS)
    page.evaluate(f"delete window.axeFound; {RUN % part}")
    page.wait_for("!!window.axeFound")
    return json.loads(page.evaluate("window.axeFound"))
