"""Programs from npm, pinned by a lock file: installed once, and kept in var/."""

import hashlib
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from tests.services import ROOT

INSTALL = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")


def install_tools(source: Path) -> Path:
    """The `node_modules` of a folder with package.json and its lock; skips where there is no npm,
    or no registry that it reaches."""
    lock = (source / "package-lock.json").read_bytes()
    folder = ROOT / "var" / f"{source.name}-{hashlib.sha256(lock).hexdigest()[:12]}"
    if not (folder / "node_modules").exists():
        if not (shutil.which("node") and shutil.which("npm")):
            pytest.skip("Node.js and npm are needed")
        _install(source, folder)
    return folder / "node_modules"


def _install(source: Path, folder: Path) -> None:
    """Beside the folder, which then appears whole: other runs may be waiting for it too."""
    folder.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        place = shutil.copytree(source, Path(made) / source.name)
        if subprocess.run(INSTALL, cwd=place, capture_output=True, check=False).returncode:
            pytest.skip("npm can't install packages here")
        with suppress(OSError):  # another run was quicker
            place.rename(folder)
