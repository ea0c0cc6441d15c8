"""What the providers' APIs have: paths, parameters, fields and values, for the fakes of the tests.

    python scripts/provider_fields.py      # writes the files of tests/external_calendars/fakes

Each file is made from a published package, which is downloaded, read and not installed. To follow a
new revision, raise the version here and run it.
"""

import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "external_calendars" / "fakes"
GOOGLE_PACKAGE = "google-api-python-client==2.202.0"
GOOGLE_DOCUMENT = "googleapiclient/discovery_cache/documents/calendar.v3.json"
# Resource -> methods of the API that the fake has.
GOOGLE_METHODS = {
    "calendarList": ("get", "list"),
    "calendars": ("get",),
    "channels": ("stop",),
    "events": (
        "delete",
        "get",
        "import",
        "insert",
        "instances",
        "list",
        "patch",
        "update",
        "watch",
    ),
    "freebusy": ("query",),
}

Json = dict[str, Any]


def main() -> None:
    for name, fields in FILES.items():
        (FOLDER / name).write_text(file_text(fields()))


def file_text(fields: Json) -> str:
    """Return the text of a file, with a line for each object of the upper levels."""
    return json.dumps(fields, indent=1, sort_keys=True) + "\n"


def downloaded_package(requirement: str, folder: str) -> zipfile.ZipFile:
    """Return the wheel of "name==version" from the package index, downloaded to the folder."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--disable-pip-version-check", "--only-binary", ":all:", "--dest", folder]
    subprocess.run([*command, requirement], check=True)
    [wheel] = Path(folder).glob("*.whl")
    return zipfile.ZipFile(wheel)


# --- Google Calendar ------------------------------------------------------------------------------
def google_calendar() -> Json:
    """Return what the fake needs of Google's discovery document, without descriptions.

    Where only a description names the values of a field, or says that it is read-only, the schema
    gets `enum` and `readOnly`.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        downloaded_package(GOOGLE_PACKAGE, folder) as wheel,
    ):
        document = json.loads(wheel.read(GOOGLE_DOCUMENT))
    resources = {
        resource: {
            "methods": {name: document["resources"][resource]["methods"][name] for name in names}
        }
        for resource, names in GOOGLE_METHODS.items()
    }
    schemas = {
        name: document["schemas"][name]
        for name in sorted(used_schemas(resources, document["schemas"]))
    }
    return {
        "source": f"{GOOGLE_PACKAGE}, {GOOGLE_DOCUMENT}; licence: Apache-2.0; excerpt",
        **{name: document[name] for name in ("id", "revision", "rootUrl", "servicePath")},
        "scopes": sorted(document["auth"]["oauth2"]["scopes"]),
        "parameters": without_descriptions(document["parameters"]),
        "resources": without_descriptions(resources),
        "schemas": without_descriptions(schemas),
    }


def used_schemas(part: Any, schemas: Json) -> set[str]:
    """Return the names of the schemas to which the part refers, and to which these refer."""
    found: set[str] = set()
    waiting = [part]
    while waiting:
        for name in set(list_references(waiting.pop())) - found:
            found.add(name)
            waiting.append(schemas[name])
    return found


def list_references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        for inner in part.values():
            yield from list_references(inner)


def without_descriptions(part: Any) -> Any:
    if isinstance(part, list):
        return [without_descriptions(inner) for inner in part]
    if not isinstance(part, dict):
        return part
    kept = {
        name: without_descriptions(inner)
        for name, inner in part.items()
        if name != "enumDescriptions" and not (name == "description" and isinstance(inner, str))
    }
    text = part.get("description")
    return described_facts(text) | kept if isinstance(text, str) else kept


def described_facts(text: str) -> Json:
    """Return {"enum": [...]} and {"readOnly": True} where a description says so.

    Example: 'Status of the event. Possible values are:  \\n- "confirmed" - ... \\n- "tentative"'.
    """
    facts: Json = {}
    if re.search(r"(?<!Some of the )[Pp]ossible values are:", text):
        facts["enum"] = sorted(re.findall(r'^- "(\w+)"', text, re.MULTILINE))
    if "Valid values are" in text:
        facts["enum"] = sorted(re.findall(r'(?<=")\w+(?=")|\w+(?=, meaning)', text))
    if re.search(r"\bRead-[oO]nly\b(?!, except)", text):
        facts["readOnly"] = True
    return {name: value for name, value in facts.items() if value}


# File -> its contents.
FILES: dict[str, Callable[[], Json]] = {"calendar.v3.json": google_calendar}

if __name__ == "__main__":
    main()
