"""scripts/release in a clone with a history of its own."""

import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.conf import settings

from tests.setup.test_run import copy_tree

NEXT = "9.0.0"
TAG = f"v{NEXT}"
READY = f"Everything is ready for {TAG}.\n"
NO_RELEASE_YET = "There is no release yet: no API to compare with.\n"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clean clone on main of which the version NEXT may be released."""
    folder = copy_tree(tmp_path / "a clone")
    changelog = "# Changelog\n\n## Unreleased: 9.0.0\n\nAll is new.\n\n## 8.0.0 - 2026-01-02\n"
    (folder / "CHANGELOG.md").write_text(changelog)
    project = folder / "pyproject.toml"
    project.write_text(project.read_text().replace(settings.VERSION, NEXT, 1))
    document = folder / "docs" / "openapi.json"
    document.write_text(document.read_text().replace(f'"version": "{settings.VERSION}"', VERSION))
    git(folder, "init", "--quiet", "--initial-branch", "main")
    commit(folder)
    return folder


VERSION = f'"version": "{NEXT}"'


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=A Maintainer", "-c", "user.email=maintainer@example.com")
    command = ["git", *who, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def commit(folder: Path) -> None:
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "Work")


def release(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """The exit code, and what was printed to both outputs."""
    names = ("AUTHOR", "COMMITTER")
    identity = {f"GIT_{name}_NAME": "A Maintainer" for name in names}
    identity |= {f"GIT_{name}_EMAIL": "maintainer@example.com" for name in names}
    done = subprocess.run(
        [folder / "scripts" / "release", *arguments],
        cwd="/",
        env={"PATH": os.environ["PATH"], "RUN_VENV": sys.prefix, **identity},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_release_dates_the_changelog_commits_and_tags(clone: Path) -> None:
    before = git(clone, "rev-parse", "HEAD")

    dry = release(clone, "--dry-run")
    unchanged = (
        git(clone, "rev-parse", "HEAD"),
        git(clone, "status", "--porcelain"),
        git(clone, "tag"),
    )
    done = release(clone)
    today = datetime.now(UTC).date()
    again = release(clone)

    assert dry == (0, NO_RELEASE_YET + READY, "")
    assert unchanged == (before, "", "")
    said = f"Tagged {TAG}. To publish it: git push origin main {TAG}\n"
    assert done == (0, NO_RELEASE_YET + said, "")
    assert (
        git(clone, "log", "--format=%s %D") == f"Release {NEXT} HEAD -> main, tag: {TAG}\nWork \n"
    )
    assert git(clone, "cat-file", "-t", TAG) == "tag\n"
    assert git(clone, "diff", "HEAD~", "--unified=0", "--no-color").splitlines()[-2:] == [
        f"-## Unreleased: {NEXT}",
        f"+## {NEXT} - {today}",
    ]
    assert git(clone, "status", "--porcelain") == ""
    message = f'No release: CHANGELOG.md has no line "## Unreleased: {NEXT}".\n'
    assert again == (1, "", message)


def test_release_refuses_what_is_not_ready(clone: Path) -> None:
    """Each state in turn, back to the ready one before the next."""

    def refusal(*arguments: str) -> str:
        code, _, said = release(clone, *arguments, "--dry-run")
        assert code == 1
        return said.removeprefix("No release: ")

    git(clone, "switch", "--quiet", "--create", "other")
    on_branch = refusal()
    git(clone, "switch", "--quiet", "main")
    (clone / "new").touch()
    unclean = refusal()
    (clone / "new").unlink()
    git(clone, "tag", TAG)
    tagged = refusal()
    git(clone, "tag", "--delete", TAG)
    option = refusal("--force")

    assert on_branch == "this is not the branch main.\n"
    assert unclean == "there are changes that are not committed.\n"
    assert tagged == f"the tag {TAG} exists.\n"
    assert option == "the only option is --dry-run.\n"


def test_release_needs_a_fresh_document_and_its_changes_in_the_changelog(clone: Path) -> None:
    document = clone / "docs" / "openapi.json"
    described = json.loads(document.read_text())
    del described["paths"]["/v2/app"]
    document.write_text(json.dumps(described))
    commit(clone)
    git(clone, "tag", "v8.0.0")
    old = release(clone)
    document.write_bytes(git(clone, "show", "HEAD~:docs/openapi.json").encode())
    commit(clone)
    unlisted = release(clone)
    lines = re.findall(r"^- API.*", unlisted[2], re.MULTILINE)
    changelog = clone / "CHANGELOG.md"
    listed = changelog.read_text().replace("All is new.", "\n".join(lines))
    changelog.write_text(listed)
    commit(clone)
    ready = release(clone, "--dry-run")

    assert old == (1, "", "No release: docs/openapi.json is old: run manage.py write_openapi.\n")
    assert unlisted == (
        1,
        "",
        "CHANGELOG.md lacks these changes since v8.0.0:\n- API: added GET /v2/app\n"
        "No release: CHANGELOG.md must list the changes of the API.\n",
    )
    assert ready == (0, f"CHANGELOG.md lists every change of the API since v8.0.0.\n{READY}", "")
