"""Makes or mends the virtual environment and installs requirement files that have changed.

Called by scripts/venv.sh; needs nothing but the standard library. Prints the environment's Python.
"""

import fcntl
import hashlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def print_line(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def runs(*command: str | Path) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def make_venv(venv: Path) -> Path:
    """The Python of a working environment at `venv`; one that was left half made is made anew."""
    python = venv / "bin" / "python"
    wanted = "import pip, sys; sys.exit(sys.version_info < (3, 11))"
    if runs(python, "-c", wanted):
        return python
    if not importlib.util.find_spec("ensurepip"):
        # Debian and Ubuntu split it from Python itself.
        sys.exit(
            "Python cannot make virtual environments here: install python3-venv, then try again."
        )
    print_line(f"Making a virtual environment in {venv} ...")
    made = subprocess.run([sys.executable, "-m", "venv", "--clear", venv], check=False)
    if made.returncode or not runs(python, "-c", wanted):
        sys.exit(f"Could not make a virtual environment in {venv}.")
    return python


def install(python: Path, venv: Path, name: str) -> None:
    """Install the list `name`, unless this environment already has that very list.

    Every file must have a hash that the list names, whichever index it comes from.
    pip does it, as its settings may name another index. Where .ci/run has installed uv, which takes
    a tenth of the time, uv is tried first.
    """
    listing = ROOT / name
    listed = hashlib.sha256(listing.read_bytes()).hexdigest()
    stamp = venv / f".{Path(name).stem}.installed"
    if stamp.exists() and stamp.read_text() == listed:
        return
    print_line(f"Installing {name} (the first time takes about half a minute) ...")
    commands = [[str(python), "-m", "pip", "install", "--disable-pip-version-check"]]
    uv = venv / "bin" / "uv"
    if uv.exists():
        commands.insert(0, [str(uv), "pip", "install", "--python", str(python)])
    total = count_packages(listing)
    listed_files = ["--require-hashes", "-r", str(listing)]
    if not any(run_with_progress([*start, *listed_files], total) for start in commands):
        sys.exit(f"pip could not install {name}; its own words are above.")
    stamp.write_text(listed)  # last, so that an interrupted installation is done again


def count_packages(listing: Path) -> int:
    lines = listing.read_text("utf-8").splitlines()
    return sum(1 for line in lines if line[:1].isalnum())


def run_with_progress(command: list[str], total: int) -> bool:
    """Run pip or uv and count the packages that pip mentions; print its own words only if it fails.

    On a terminal the count is one line that is rewritten, elsewhere a line per ten packages.
    """
    is_terminal = sys.stderr.isatty()
    words, found = [], 0
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as pip:
        for line in pip.stdout or ():
            words.append(line)
            if line.startswith(("Collecting ", "Requirement already satisfied: ")):
                found = min(found + 1, total)
                if is_terminal or found % 10 == 0:
                    end = "\r" if is_terminal else "\n"
                    print(f"  {found} of {total} packages", end=end, file=sys.stderr, flush=True)
            elif line.startswith("Installing collected packages"):
                print_line("  Unpacking ...                ")
    if pip.returncode:
        sys.stderr.writelines(words)
    return pip.returncode == 0


def main(requirement_files: list[str]) -> None:
    venv = Path(os.environ.get("RUN_VENV") or ROOT / ".venv").absolute()
    try:
        # Two scripts started at once must not install into one environment together. The lock is
        # on the folder above, since the environment itself may be thrown away and made anew.
        fcntl.flock(os.open(venv.parent, os.O_RDONLY), fcntl.LOCK_EX)
        python = make_venv(venv)
        for name in requirement_files:
            install(python, venv, name)
    except OSError as error:
        sys.exit(
            f"Cannot use the virtual environment in {venv}: {error.strerror} ({error.filename})"
        )
    print(python)


if __name__ == "__main__":
    main(sys.argv[1:])
