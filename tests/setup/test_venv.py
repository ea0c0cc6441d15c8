"""scripts/venv.sh: finds Python, makes or mends the environment, installs only what has changed."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.services import ROOT


@pytest.fixture
def checkout(tmp_path) -> Path:
    """A tree with the scripts and a list of no packages, so that nothing is downloaded."""
    folder = tmp_path / "a clean copy"
    (folder / "scripts").mkdir(parents=True)
    for name in ("venv.sh", "venv.py"):
        (folder / "scripts" / name).write_bytes((ROOT / "scripts" / name).read_bytes())
    (folder / "requirements.txt").write_text("# none\n")
    return folder


def prepare(checkout: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", checkout / "scripts" / "venv.sh", "requirements.txt"],
        cwd="/",
        env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")} | env,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.deep
def test_incomplete_environment_is_repaired(checkout):
    python = checkout / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)

    first = prepare(checkout)
    second = prepare(checkout)
    (checkout / "requirements.txt").write_text("# none, still\n")
    third = prepare(checkout)

    assert [done.stdout for done in (first, second, third)] == [f"{python}\n"] * 3
    assert "Making a virtual environment" in first.stderr
    assert second.stderr == ""
    assert third.stderr.startswith("Installing requirements.txt")
    assert subprocess.run([python, "-c", "import pip"], check=False).returncode == 0


@pytest.mark.deep
def test_failed_installation_is_reported_and_retried(checkout):
    (checkout / "requirements.txt").write_text("./not-there\n")

    first, second = prepare(checkout), prepare(checkout)

    assert (first.returncode, second.returncode) == (1, 1)
    assert "pip could not install requirements.txt" in second.stderr


@pytest.mark.deep
def test_uv_installs_with_pip_as_fallback(checkout):
    prepare(checkout)
    uv = checkout / ".venv" / "bin" / "uv"
    uv.write_text('#!/bin/sh\necho "$@" >> "$0.asked"\ntest -e "$0.works"\n')
    uv.chmod(0o755)
    (checkout / "requirements.txt").write_text("# none, still\n")

    by_pip, again = prepare(checkout), prepare(checkout)
    (checkout / ".venv" / "bin" / "uv.works").touch()
    (checkout / "requirements.txt").write_text("./not-there\n")
    by_uv = prepare(checkout)

    python, listing = checkout / ".venv" / "bin" / "python", checkout / "requirements.txt"
    asked = f"pip install --python {python} --require-hashes -r {listing}\n"
    assert [done.returncode for done in (by_pip, again, by_uv)] == [0, 0, 0]
    assert (checkout / ".venv" / "bin" / "uv.asked").read_text() == asked * 2


def test_missing_ensurepip_names_the_package(checkout, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['ensurepip'] = None\n")

    done = prepare(checkout, PYTHONPATH=str(tmp_path))

    assert (done.returncode, done.stdout) == (1, "")
    assert "install python3-venv" in done.stderr


@pytest.mark.deep
def test_missing_python_names_the_required_version(checkout, tmp_path):
    (tmp_path / "dirname").symlink_to("/usr/bin/dirname")

    done = prepare(checkout, PATH=str(tmp_path), PYTHON="/bin/false")

    # Where the system itself has a Python that is new enough, it is found all the same.
    if done.returncode:
        assert "Python 3.11 or newer is needed" in done.stderr
    else:
        assert done.stdout == f"{checkout}/.venv/bin/python\n"


def test_the_tests_run_with_the_packages_of_the_service() -> None:
    served, tested = (
        set(pinned(ROOT / name)) for name in ("requirements.txt", "requirements-dev.txt")
    )

    assert served - tested == set()


def pinned(listing: Path) -> dict[str, list[str]]:
    """`django==5.2.19` -> the hashes of its files."""
    requirements = listing.read_text().replace("\\\n", "").splitlines()
    words = [requirement.split() for requirement in requirements]
    return {first: [word for word in rest if word.startswith("--hash=")] for first, *rest in words}


@pytest.mark.parametrize(
    "name",
    ["requirements", "requirements-docs", "requirements-dev", ".ci/uv"],
)
def test_every_package_has_a_version_and_hashes_and_no_index(name: str) -> None:
    """scripts/lock_requirements.sh makes the lists from the `.in` files."""
    wanted = re.findall(r"^([\w.-]+)(?:\[.*\])?(==\S+)?", source_of(name), re.MULTILINE)
    text = (ROOT / f"{name}.txt").read_text()
    packages = pinned(ROOT / f"{name}.txt")

    without_hash = [
        package
        for package, hashes in packages.items()
        if not hashes or not all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", h) for h in hashes)
    ]
    missing = [
        package + version
        for package, version in wanted
        if not any(f"{pin}==".startswith(f"{package}{version or '=='}") for pin in packages)
    ]

    assert (without_hash, missing) == ([], [])
    assert [word for word in ("://", "--index", "--find-links") if word in text] == []


def source_of(name: str) -> str:
    lines = (ROOT / f"{name}.in").read_text().splitlines()
    return "\n".join(line for line in lines if not line.startswith(("#", "-")))


@pytest.mark.deep
def test_a_package_without_a_hash_is_not_installed(checkout: Path) -> None:
    (checkout / "requirements.txt").write_text("six==1.17.0\n")

    done = prepare(checkout)

    assert done.returncode == 1
    assert "Hashes are required in --require-hashes mode" in done.stderr
