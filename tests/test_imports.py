"""A module imports its own layer and the layers below it, never inside a function."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# From the bottom up: a layer may import itself and the layers before it.
LAYERS = (
    "common",
    "apps_config",
    "availability",
    "bookings",
    "notifications",
    "external_calendars",
    "access",
    "booking_pages",
    "office",
    "agents",
    "ops",
    "scheduling",
)
CORE = "availability.core"  # pure: the standard library, itself and what is as pure
PURE = ("common.messages", "common.time.durations", "common.ical", "dateutil", "holidays")


def is_in(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def layer_of(module: str) -> str | None:
    """The layer of a module; None for what is not ours."""
    return next((layer for layer in LAYERS if is_in(module, layer)), None)


def read_imports(source: str, module: str) -> Iterator[tuple[str, int, bool]]:
    """Each imported module with its line, and whether that is inside a function."""
    tree = ast.parse(source)
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        for name in imported_names(node, module):
            yield name, node.lineno, id(node) in inside


def imported_names(node: ast.AST, module: str) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        above = module.split(".")[: -node.level] if node.level else []
        base = ".".join([*above, *filter(None, [node.module])])
        # `from availability import core` names a module too.
        return [f"{base}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
        called = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
        if called in ("import_module", "__import__"):
            return [str(getattr(node.args[0], "value", "?"))]
    return []


def is_allowed(module: str, imported: str) -> bool:
    layer, wanted = layer_of(module), layer_of(imported)
    if is_in(module, CORE):
        is_pure = any(is_in(imported, package) for package in (CORE, *PURE))
        return is_pure or imported.split(".")[0] in sys.stdlib_module_names
    return wanted is None or LAYERS.index(wanted) <= LAYERS.index(layer)


def find_faults(source: str, module: str) -> list[str]:
    """What is wrong with a module's imports, a line each."""
    faults = []
    for imported, line, is_inside in read_imports(source, module):
        if is_inside:
            faults.append(f"{module}:{line} imports {imported} inside a function")
        if not is_allowed(module, imported):
            faults.append(f"{module}:{line} imports {imported}")
    return faults


def modules() -> Iterator[tuple[str, Path]]:
    for layer in LAYERS:
        for path in sorted((ROOT / layer).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            yield name, path


def test_layers_import_downwards() -> None:
    found = list(modules())

    faults = [fault for name, path in found for fault in find_faults(path.read_text(), name)]

    assert {layer_of(name) for name, _ in found} == set(LAYERS)
    assert faults == []


@pytest.mark.parametrize(
    ("module", "source", "faults"),
    [
        ("bookings.services", "from availability.models import Event", []),
        ("scheduling.urls", "import bookings.urls", []),
        ("scheduling.urls", "import notifications.urls, django.urls", []),
        (
            "booking_pages.views.hosted_project_page",
            "from bookings.pages.base import PageView",
            [],
        ),
        ("ops.metrics", "from office.dashboard import today_context", []),
        ("availability.core.slots", "import math\nfrom availability.core import zones", []),
        ("availability.models", "from . import core\nfrom .core.zones import DAY", []),
        ("apps_config.models", "import json", []),
        (
            "availability.services",
            "import os\nfrom bookings.models import Booking",
            ["availability.services:2 imports bookings.models.Booking"],
        ),
        (
            "apps_config.views",
            "from availability import models",
            ["apps_config.views:1 imports availability.models"],
        ),
        (
            "common.errors",
            "from scheduling import settings",
            ["common.errors:1 imports scheduling.settings"],
        ),
        (
            "common.errors",
            "from apps_config.models import App",
            ["common.errors:1 imports apps_config.models.App"],
        ),
        (
            "notifications.mail",
            "import booking_pages.urls",
            ["notifications.mail:1 imports booking_pages.urls"],
        ),
        (
            "notifications.outbox.dispatcher",
            "from access.resource_password_reset_request import start",
            [
                "notifications.outbox.dispatcher:1 imports"
                " access.resource_password_reset_request.start"
            ],
        ),
        (
            "external_calendars.sync.health_queries",
            "from ops.doctor import Check",
            ["external_calendars.sync.health_queries:1 imports ops.doctor.Check"],
        ),
        (
            "bookings.apps",
            "import notifications",
            ["bookings.apps:1 imports notifications"],
        ),
        (
            "notifications.tasks",
            "from scheduling.celery import app",
            ["notifications.tasks:1 imports scheduling.celery.app"],
        ),
        (
            "bookings.services",
            "if True:\n    from notifications.planning import plan",
            ["bookings.services:2 imports notifications.planning.plan"],
        ),
        (
            "bookings.services",
            "def one():\n    from availability import services",
            ["bookings.services:2 imports availability.services inside a function"],
        ),
        (
            "bookings.services",
            "async def one():\n    import json",
            ["bookings.services:2 imports json inside a function"],
        ),
        (
            "bookings.services",
            "class One:\n    def two(self):\n        import json",
            ["bookings.services:3 imports json inside a function"],
        ),
        (
            "availability.services",
            "one = import_module('bookings.services')",
            ["availability.services:1 imports bookings.services"],
        ),
        (
            "availability.core.slots",
            "from django.utils import timezone",
            ["availability.core.slots:1 imports django.utils.timezone"],
        ),
        (
            "availability.core.slots",
            "from common.time.instants import find_zone",
            ["availability.core.slots:1 imports common.time.instants.find_zone"],
        ),
        (
            "availability.core.slots",
            "from ..models import Event",
            ["availability.core.slots:1 imports availability.models.Event"],
        ),
        (
            "availability.core.slots",
            "import numpy",
            ["availability.core.slots:1 imports numpy"],
        ),
    ],
)
def test_control_bad_imports_are_found(module: str, source: str, faults: list[str]) -> None:
    assert find_faults(source, module) == faults


def test_modules_that_register_themselves_exist() -> None:
    """`autodiscover_modules` imports what is there and ignores any other name."""
    discovered = {
        f"{path.parent.name}.{constant.value}"
        for path in ROOT.glob("*/apps.py")
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "autodiscover_modules"
        for constant in call.args
        if isinstance(constant, ast.Constant)
    }

    files = {name: ROOT / f"{name.replace('.', '/')}.py" for name in discovered}
    assert files
    assert [name for name, file in files.items() if not file.exists()] == []
