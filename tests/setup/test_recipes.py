"""The recipes of docs/architecture.md, carried out on a copy of the service.

A test makes the changes that a recipe lists, at the symbols that it names, in the files that it
names, and runs the changed service in one process. Then it makes them again without one required
step: the check of this step, and no other, must fail.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.services import FORK_SERVER, ROOT, Service, own_database

SECTION = "## Where do I add ..."
# What a check imports of the tests, and what no process of the service reads.
TESTS = ("tests/__init__.py", "tests/world.py", "tests/office/__init__.py", "tests/office/staff.py")
LEFT_OUT = ("tests/", "docs/", "benchmarks/", "deploy/")
NEW_NAMES = {"<name>": "dummy", "<package>": "welcome"}

BEGIN = """
import json
import django
django.setup()
from django.test.utils import setup_test_environment
setup_test_environment()
from tests.world import Tenant
tenant = Tenant("demo")
"""


class Step(NamedTuple):
    """A step of a recipe: its file, and the symbols that it names."""

    file: str
    symbols: tuple[str, ...]


class Edit(NamedTuple):
    """`text` is inserted behind `pattern`, in which `@` stands for the symbol."""

    pattern: str
    text: str


class Recipe(NamedTuple):
    """edits: step -> symbol -> edit; the symbol "" stands for the file's imports, or for all of a
    new file. code: prints the result of each check.
    """

    title: str
    edits: Mapping[int, Mapping[str, Edit]]
    code: str
    result: Mapping[str, object]


def steps_of(title: str) -> list[Step]:
    text = (ROOT / "docs/architecture.md").read_text().partition(f"\n{SECTION}\n")[2]
    recipe = text.partition(f"\n**{title}**\n")[2].partition("\n\n")[0]
    steps = []
    for step in re.split(r"^\d+\. ", recipe, flags=re.MULTILINE)[1:]:
        names = re.findall(r"`([^`]+)`", step)
        file = next((name for name in names if "/" in name), "")
        for placeholder, name in NEW_NAMES.items():
            file = file.replace(placeholder, name)
        steps.append(Step(file, tuple(name for name in names if name.isidentifier())))
    return steps


def program_files() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split("\0")
    own = [name for name in listed if name and not name.startswith(LEFT_OUT)]
    return [name for name in (*own, *TESTS) if (ROOT / name).exists()]


class Checkout:
    """A copy of the service, to be changed and restored."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in program_files():
            to = folder / name
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, to)

    def change(self, step: Step, symbol: str, edit: Edit) -> None:
        """Insert the edit's text. The step has to name the symbol, and its file to define it."""
        assert symbol == "" or symbol in step.symbols, f"no step names {symbol}"
        file = self.folder / step.file
        if not edit.pattern:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(edit.text)
            return
        before = file.read_text()
        pattern = edit.pattern.replace("@", symbol)
        found = re.search(pattern, before, re.MULTILINE | re.DOTALL)
        assert found, f"{step.file} has no {pattern}"
        file.write_text(before[: found.end()] + edit.text + before[found.end() :])

    def restore(self, steps: list[Step]) -> None:
        for step in steps:
            original, changed = ROOT / step.file, self.folder / step.file
            if original.is_file() and changed.exists():
                shutil.copyfile(original, changed)
            else:
                changed.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    folder = tmp_path_factory.mktemp("checkout")
    yield Checkout(folder)
    shutil.rmtree(folder)


def carry_out(
    recipe: Recipe, checkout: Checkout, folder: Path, *, control: Mapping[int, Mapping[str, Edit]]
) -> tuple[dict[str, object], str]:
    """Return the results of the recipe's checks, and what went wrong before them.

    control: the edits of some steps, instead of the recipe's.
    """
    steps = steps_of(recipe.title)
    edits = {**recipe.edits, **control}
    try:
        for number, of_symbols in edits.items():
            for symbol, edit in of_symbols.items():
                checkout.change(steps[number - 1], symbol, edit)
        (checkout.folder / "recipe_check.py").write_text(BEGIN + recipe.code)
        folder.mkdir()
        with own_database(folder) as url:
            env = Service(folder, url, {}, checkout.folder).env
            env |= {"DJANGO_SETTINGS_MODULE": "scheduling.settings"}
            env.pop("PYTHONDONTWRITEBYTECODE", None)  # the second process reads what is compiled
            done = FORK_SERVER.run("recipe_check", cwd=checkout.folder, env=env)
    finally:
        checkout.restore(steps)
    last = done.stdout.strip().rpartition("\n")[2]
    return json.loads(last) if done.returncode == 0 else {}, done.stderr


CONSTRAINT_CHECKS = """
from availability.core.constraints import open_windows, parse_constraints
from availability.core.explain import explain
rule = {"block_mornings": {"end": 12}}
answer = tenant.post("/resources", {"name": "Ada", "timezone": "UTC",
                                    "availability_constraints": [rule]})
rules = parse_constraints([rule])
day = 86_400
segments = explain(zone="UTC", rules=(rules,), busy=(), start=0, end=day)
schema = tenant.get("/openapi.json").json["components"]["schemas"]["Constraint"]
from office.base.labels import RULE_WORDS
from office.base.rule_rows import KINDS
print(json.dumps({
    "accepted": answer.status,
    "free": open_windows((rules,), "UTC", 0, day),
    "reason": segments[0].reasons[0].text,
    "parameters": schema["properties"]["block_mornings"].get("required"),
    "office": [RULE_WORDS["block_mornings"], KINDS["block_mornings"].columns],
}))
"""
CONSTRAINT = Recipe(
    "A constraint",
    {
        1: {
            "_NAMES": Edit(
                r"^@ = .*?^\} \| \{\n", '    "block_mornings": (False, "mornings", ()),\n'
            ),
            "_PARAMS": Edit(
                r"^@: .*?= \{\n", '    ("mornings", ()): (("end", _read_end_time),),\n'
            ),
            "WEEKLY_KINDS": Edit(r"^@ = \(", '"mornings", '),
            "blocked_week": Edit(
                r"^def @\(.*?\n(?=    if )",
                '    if rule.kind == "mornings":\n'
                "        return windows_of_week((day, 0, rule.end) for day in EVERY_DAY)\n",
            ),
        },
        2: {
            "_when_text": Edit(
                r"^def @\([^\n]*\n",
                '    if rule.kind == "mornings":\n'
                '        return f"mornings until {_time_text(rule.end)}"\n',
            )
        },
        3: {"_PARAMETERS": Edit(r"^@: .*?= \{\n", '    "mornings": {"end": _TIMES["end"]},\n')},
        4: {
            "WEEKLY_KINDS": Edit(
                r"^@: .*?= \{\n",
                '    "block_mornings": Kind("Closed until", "block_mornings", ("end",)),\n',
            )
        },
        5: {"RULE_WORDS": Edit(r"^@: .*?= \{\n", '    "block_mornings": "Closed mornings",\n')},
    },
    CONSTRAINT_CHECKS,
    {
        "accepted": 201,
        "free": [[43_200, 86_400]],
        "reason": "Blocked by the resource's rule: mornings until 12:00.",
        "parameters": ["end"],
        "office": ["Closed mornings", ["end"]],
    },
)

GRAPH = Recipe(
    "A graph",
    {
        1: {
            "GRAPHS": Edit(
                r"^@: .*?for graph in \(\n",
                '        Graph(name="drop_in", start="confirm", steps={\n'
                '            (INITIALIZED, "confirm"): "confirmed",\n'
                '            ("confirmed", "arrive"): "arrived",\n'
                '            ("arrived", "complete"): COMPLETED, **_CONFIRMED,\n'
                '        }, blocking=frozenset({"confirmed", "arrived"})),\n',
            )
        },
        2: {"MAILS": Edit(r"^@: .*?= \{\n", '    "arrived": (CUSTOMER,),\n')},
        3: {
            "DEFAULTS": Edit(
                r"^@: .*?= \{\n",
                '    "arrived_customer": DefaultMail(POSITIVE, _CONFIRMED, "Welcome",\n'
                '        "Welcome", "Please take a seat."),\n',
            )
        },
        4: {"STATE_SENTENCES": Edit(r"^@: .*?= \{\n", '    "arrived": "The customer is here.",\n')},
        5: {
            "STATE_COLOURS": Edit(r"^@: .*?= \{\n", '    "arrived": "success",\n'),
            "STATE_WORDS": Edit(r"^@: .*?= \{\n", '    "arrived": "has arrived",\n'),
            "GRAPH_WORDS": Edit(r"^@: .*?= \{\n", '    "drop_in": "Drop-in",\n'),
        },
    },
    """
resource = tenant.make_resource()
project = tenant.make_project(resource["id"], booking={"graph": "drop_in"})
from datetime import date, timedelta
day = date.today() + timedelta(days=2)
times = {"start": f"{day} 10:00:00", "end": f"{day} 11:00:00"}
booking = tenant.book(project_id=project["id"], **times).data
moved = tenant.put(f"/bookings/{booking['id']}/arrive", {}).data
from bookings.pages.email_links import STATE_SENTENCES
from notifications.models import Delivery
from office.base.labels import GRAPH_WORDS, STATE_COLOURS, state_words
print(json.dumps({
    "states": [booking["state"], moved["state"]],
    "mails": list(Delivery.objects.filter(change__to_state="arrived", type="email")
                  .values_list("recipient", flat=True)),
    "words": [STATE_SENTENCES["arrived"], state_words("arrived"), STATE_COLOURS["arrived"],
              GRAPH_WORDS["drop_in"]],
}))
""",
    {
        "states": ["confirmed", "arrived"],
        "mails": ["customer"],
        "words": ["The customer is here.", "has arrived", "success", "Drop-in"],
    },
)

PROVIDER = Recipe(
    "A calendar provider",
    {
        1: {
            "": Edit(
                "",
                "from external_calendars.providers.ics import IcsFeed\n\n\n"
                'class Dummy(IcsFeed):\n    name = "dummy"\n    label = "Dummy"\n',
            )
        },
        2: {
            "": Edit(r'"""\n\n', "from external_calendars.providers.dummy import Dummy\n"),
            "PROVIDERS": Edit(r"^@\b[^\n]*IcsFeed\(\)", ", Dummy()"),
        },
    },
    """
text = json.dumps(tenant.get("/openapi.json").json)
offered = '["service", "caldav", "ics", "dummy", "google", "microsoft"]'
print(json.dumps({"offered": offered in text}))
""",
    {"offered": True},
)

APP_SETTING = Recipe(
    "A setting of apps",
    {
        1: {
            "AppSettingsSerializer": Edit(
                r"^class @\(.*?    always = \(\"disable_emails\",\)\n\n",
                "    greeting = OneLineField(50, help_text='Hello.', **CLEARABLE)\n",
            )
        },
        2: {
            "AppForm": Edit(
                r"^class @\(.*?    is_partial = True[^\n]*\n\n",
                '    greeting = setting("greeting", CLIENT, "Greeting", "Default: none.")\n',
            ),
        },
    },
    """
from tests.office.staff import member
kept = tenant.put("/apps/demo", {"settings": {"greeting": "Welcome"}}).data["settings"]
refused = tenant.put("/apps/demo", {"settings": {"greeting": "x" * 51}}).status
page = member(tenant.app, "owner").get(f"/admin/apps_config/app/{tenant.app.id}/change/")
schemas = tenant.get("/openapi.json").json["components"]["schemas"]
print(json.dumps({
    "kept": kept["greeting"],
    "refused": refused,
    "described": [schemas[name]["properties"].get("greeting", {}).get("description")
                  for name in ("AppSettingsInput", "AppSettings")],
    "shown": 'name="greeting"' in page.content.decode(),
}))
""",
    {"kept": "Welcome", "refused": 422, "described": ["Hello.", "Hello."], "shown": True},
)

PROJECT_SETTING = Recipe(
    "A setting of projects",
    {
        1: {
            "ProjectSettingsSerializer": Edit(
                r'^class @\(.*?"""\n\n',
                "    greeting = OneLineField(50, help_text='Hello.', **CLEARABLE)\n",
            )
        },
        2: {
            "ProjectForm": Edit(
                r"^class @\(.*?    # Service\n",
                '    greeting = setting("greeting", SERVICE, "Greeting", "Default: none.")\n',
            ),
        },
    },
    """
from tests.office.staff import member
project = tenant.make_project(tenant.make_resource()["id"], settings={"greeting": "Welcome"})
path = f"/projects/{project['id']}"
refused = tenant.put(path, {"settings": {"greeting": "x" * 51}}).status
page = member(tenant.app, "owner").get(f"/admin/availability/project/{project['id']}/change/")
schemas = tenant.get("/openapi.json").json["components"]["schemas"]
print(json.dumps({
    "kept": tenant.get(path).data["settings"]["greeting"],
    "refused": refused,
    "described": [schemas[name]["properties"].get("greeting", {}).get("description")
                  for name in ("ProjectSettings", "ProjectSettingsInput")],
    "shown": 'name="greeting"' in page.content.decode(),
}))
""",
    {"kept": "Welcome", "refused": 422, "described": ["Hello.", "Hello."], "shown": True},
)

VIEW = """
from django.http import HttpRequest, HttpResponse
from office.base.permissions import show_page


def show_welcome(request: HttpRequest) -> HttpResponse:
    return show_page(request, "office/why_nothing.html", title="Welcome here")
"""
PAGE = Recipe(
    "A page of the back office",
    {
        1: {"": Edit("", VIEW)},
        2: {
            "": Edit(r'"""\n\n', "from office.welcome.views import show_welcome\n"),
            "PAGES": Edit(
                r"^@ = \(\n",
                '    OfficePage("welcome/", show_welcome, "welcome", SEE.is_held),\n',
            ),
        },
        3: {
            "GROUPS": Edit(
                r'^@: .*?"today", INDEX\),\n', '            ("Hello", "flag", "welcome"),\n'
            )
        },
    },
    """
from tests.office.staff import member
page = member(tenant.app, "owner").get("/admin/welcome/")
text = page.content.decode()
print(json.dumps({
    "opened": [page.status_code, "Welcome here" in text],
    "in the side bar": 'href="/admin/welcome/"' in text,
}))
""",
    {"opened": [200, True], "in the side bar": True},
)

NOTHING: Mapping[str, Edit] = {}
# A recipe, the step that is left out, and what its check says then.
CASES = (
    (CONSTRAINT, 3, {"parameters": None}),
    (GRAPH, 2, {"mails": []}),
    (PROVIDER, 2, {"offered": False}),
    (APP_SETTING, 2, {"shown": False}),
    (PROJECT_SETTING, 2, {"shown": False}),
    (PAGE, 3, {"in the side bar": False}),
)


@pytest.mark.parametrize(
    ("recipe", "left_out", "failed"), CASES, ids=[case[0].title for case in CASES]
)
def test_recipe_works_but_not_without_required_step(
    recipe: Recipe, left_out: int, failed: dict[str, object], checkout: Checkout, tmp_path: Path
) -> None:
    result, fault = carry_out(recipe, checkout, tmp_path / "whole", control={})
    without, _ = carry_out(recipe, checkout, tmp_path / "part", control={left_out: NOTHING})

    assert result == recipe.result, fault
    assert without == {**recipe.result, **failed}


def test_page_without_permission_does_not_start(checkout: Checkout, tmp_path: Path) -> None:
    without = page_edits_without_permission()

    result, fault = carry_out(PAGE, checkout, tmp_path / "part", control={2: without})

    assert result == {}
    assert "missing 1 required positional argument: 'is_allowed'" in fault


def page_edits_without_permission() -> Mapping[str, Edit]:
    edit = PAGE.edits[2]["PAGES"]
    return {**PAGE.edits[2], "PAGES": edit._replace(text=edit.text.replace(", SEE.is_held", ""))}


@pytest.mark.parametrize("title", [case[0].title for case in CASES])
def test_files_and_symbols_of_recipe_exist(title: str) -> None:
    missing = [
        f"{step.file}: {symbol}"
        for step in steps_of(title)
        if (ROOT / step.file).is_file()
        for symbol in step.symbols
        if not re.search(rf"\b{symbol}\b", (ROOT / step.file).read_text())
    ]

    assert len(steps_of(title)) > 1
    assert missing == []
