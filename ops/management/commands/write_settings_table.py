import ast
import re
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

SOURCE = settings.BASE_DIR / "scheduling" / "settings.py"
DOCUMENT = settings.BASE_DIR / "docs" / "operations.md"
TABLE = re.compile(r"(<!-- settings -->\n).*(<!-- end of settings -->\n)", re.DOTALL)
DESCRIPTION = re.compile(r"(?:^ *#: .*\n)+", re.MULTILINE)
NAMED = re.compile(r"[A-Z_]+")


class Command(BaseCommand):
    help = "Write the table of docs/operations.md from the settings' descriptions in settings.py."

    def handle(self, *args: Any, **options: Any) -> None:
        DOCUMENT.write_text(with_settings_table(DOCUMENT.read_text()))
        self.stdout.write(f"Wrote {DOCUMENT}.")


def with_settings_table(document: str) -> str:
    """Return the text of docs/operations.md with the table of the present settings."""
    return TABLE.sub(lambda found: found[1] + settings_table() + found[2], document)


def settings_table() -> str:
    source = SOURCE.read_text()
    readings = read_variables(source)
    rows = ["| variable | default | meaning |", "|---|---|---|"]
    for block in DESCRIPTION.finditer(source):
        lines = [line.strip().removeprefix("#: ") for line in block[0].splitlines()]
        meaning, _, default = " ".join(lines).partition(" Default: ")
        name, _, rest = meaning.partition(": ")
        if NAMED.fullmatch(name):
            meaning = rest
        else:
            end = source.count("\n", 0, block.end())
            call = next(call for call in readings if call.lineno > end)
            name = ast.literal_eval(call.args[0])
            default = default or default_of(call)
            meaning += bounds_of(call)
        rows.append(f"| `{name}` | {default} | {meaning} |")
    return "\n".join(rows) + "\n"


def read_variables(source: str) -> list[ast.Call]:
    """Return the calls that read the environment, such as `env_int("WEB_THREADS", 8)`, in order."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    reading = re.compile(r"env_\w+|os\.environ\.get")
    return sorted(
        (
            call
            for call in calls
            if reading.fullmatch(ast.unparse(call.func)) and isinstance(call.args[0], ast.Constant)
        ),
        key=lambda call: call.lineno,
    )


def default_of(call: ast.Call) -> str:
    """Return the call's last argument; "none" if it has only the variable's name."""
    if len(call.args) == 1:
        return "none"
    default = ast.literal_eval(call.args[-1])
    return str(default).lower() if isinstance(default, int) else f"`{default}`"


def bounds_of(call: ast.Call) -> str:
    """Return ` (1 to 512)` for `least=1, most=512`; "" without bounds or with a computed one."""
    bounds = {word.arg: word.value for word in call.keywords}
    if "most" not in bounds or not all(isinstance(one, ast.Constant) for one in bounds.values()):
        return ""
    least = ast.literal_eval(bounds.get("least", ast.Constant(0)))
    return f" ({least:,} to {ast.literal_eval(bounds['most']):,})"
