"""The wheel and the source archive of sdk/python, and an environment that has only the wheel."""

import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.services import ROOT

SOURCE = ROOT / "sdk" / "python"
BLOCK = re.compile(r"^```python ([\w-]+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BUILD = "from flit_core import buildapi; print(buildapi.build_{kind}({folder!r}))"


def run(*command: str | Path, cwd: Path, **env: str) -> str:
    """What the program printed; it has to succeed. Its environment has no packages of the tests."""
    done = subprocess.run(
        command, cwd=cwd, env=plain_environment(**env), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def plain_environment(**env: str) -> dict[str, str]:
    left_out = ("PYTHONPATH", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if name not in left_out} | env


def build(kind: str, folder: Path) -> Path:
    """`kind`: wheel or sdist. The backend is called as pip calls it, but with the installed one."""
    code = BUILD.format(kind=kind, folder=str(folder))
    return folder / run(sys.executable, "-c", code, cwd=SOURCE).strip()


def install(package: str, folder: Path) -> Path:
    """Install a wheel (with extras) into a new, empty environment; return its Python.

    Its dependencies have the versions that the tests have. Skips without a package index.
    """
    venv.create(folder, symlinks=True)
    pins = re.findall(r"^([\w.-]+==\S+)", (ROOT / "requirements-dev.txt").read_text(), re.MULTILINE)
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join(pins))
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
    done = subprocess.run(
        [*pip, "install", "--quiet", "--only-binary=:all:", "--constraint", constraints, package],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        if "No matching distribution found" in done.stderr or "Retrying" in done.stderr:
            pytest.skip("pip can't install packages here")
        pytest.fail(done.stderr)
    return python


def blocks_of_readme() -> dict[str, str]:
    """The code of each example, by its name."""
    return dict(BLOCK.findall((SOURCE / "README.md").read_text()))
