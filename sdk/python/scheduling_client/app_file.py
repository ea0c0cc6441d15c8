"""An app as a file: its settings, schedules, resources, projects, webhooks and e-mail texts.

The file has no ids: objects refer to each other as `@resource/Dr. Ada Berg`. It has no secrets
either: no keys, no secrets of webhooks, no connected calendars.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, NamedTuple

from scheduling_client import inputs
from scheduling_client.client import Client
from scheduling_client.core import part
from scheduling_client.errors import Refused, SchedulingError
from scheduling_client.model import as_json

Record = dict[str, Any]
MAX_SHOWN = 100  # characters of a value in a plan
REFERENCE = re.compile(r"@(schedule|resource|project)/.+", re.DOTALL)


class Section(NamedTuple):
    """Objects of one kind. fields: what a file has of them. keys: what names one of them, unless it
    has an `external_id`."""

    name: str
    singular: str
    fields: frozenset[str]
    keys: tuple[str, ...]

    def name_of(self, record: Mapping[str, Any]) -> str:
        named = (
            [record.get("external_id")]
            if record.get("external_id")
            else [record.get(key) for key in self.keys]
        )
        return " ".join(str(value) for value in named if value)


# In the order in which objects are made: each refers to those before it.
SECTIONS = (
    Section("schedules", "schedule", frozenset(inputs.ScheduleInput.__annotations__), ("name",)),
    Section("resources", "resource", frozenset(inputs.ResourceInput.__annotations__), ("name",)),
    Section("projects", "project", frozenset(inputs.ProjectInput.__annotations__), ("slug",)),
    Section(
        "webhooks", "webhook", frozenset(inputs.WebhookInput.__annotations__), ("url", "graph")
    ),
)
APP = frozenset(inputs.AppInput.__annotations__)
TEMPLATE = frozenset(inputs.EmailTemplateInput.__annotations__)
NAMES = {"app", "templates", *(section.name for section in SECTIONS)}


class AppFileError(SchedulingError):
    """A file that can't be carried out, or an app that has no file: the text says why."""


@dataclass(frozen=True)
class Present:
    """An app as it is. slug: its own. content: as in a file. ids: of the objects, by reference."""

    slug: str
    content: Record
    ids: dict[str, str]


@dataclass(frozen=True)
class Difference:
    """action: `create`, `update` or `delete`. kind: such as `project`, `app` or `template`. values:
    what is sent, with references. lines: each value that changes."""

    action: str
    kind: str
    name: str
    values: Record
    lines: Sequence[str] = ()

    def __str__(self) -> str:
        sign = {"create": "+", "update": "~", "delete": "-"}[self.action]
        return "\n".join(
            [f"{sign} {self.kind} {self.name}", *(f"    {line}" for line in self.lines)]
        )


# --- Reading --------------------------------------------------------------------------------------
def read_app(client: Client) -> Present:
    """Read the app of the client's key. Raises AppFileError for two objects of one name."""
    app = client.app.get().to_dict()
    listed = list_objects(client)
    ids = {
        reference(section, record): record["id"]
        for section in SECTIONS
        for record in listed[section.name]
    }
    references = {id_: text for text, id_ in ids.items()}
    content: Record = {"app": shown(app, APP)}
    for section in SECTIONS:
        check_names(section, listed[section.name], "The app has")
        records = [
            shown(without_derived(record), section.fields) for record in listed[section.name]
        ]
        records.sort(key=section.name_of)
        content[section.name] = replace(records, references)
    content["templates"] = {
        template.slug: shown(template.to_dict(), TEMPLATE)
        for template in client.templates.list()
        if template.custom
    }
    return Present(app["slug"], content, ids)


def list_objects(client: Client) -> dict[str, list[Record]]:
    include = "availability_constraints"
    return {
        "schedules": [each.to_dict() for each in client.schedules.list()],
        "resources": [each.to_dict() for each in client.resources.list(include=include)],
        "projects": [each.to_dict() for each in client.projects.list(include=include)],
        "webhooks": [each.to_dict() for each in client.webhooks.list()],
    }


def shown(record: Mapping[str, Any], fields: frozenset[str]) -> Record:
    return {key: value for key, value in record.items() if key in fields}


def without_derived(record: Record) -> Record:
    """The service derives `resources` from the others."""
    if record.get("requires") or record.get("steps"):
        return {key: value for key, value in record.items() if key != "resources"}
    return record


def reference(section: Section, record: Mapping[str, Any]) -> str:
    return f"@{section.singular}/{section.name_of(record)}"


def replace(value: Any, texts: Mapping[str, str]) -> Any:
    """Return the value with other texts for these, at any depth, also as keys."""
    if isinstance(value, str):
        return texts.get(value, value)
    if isinstance(value, Mapping):
        return {replace(key, texts): replace(each, texts) for key, each in value.items()}
    return [replace(each, texts) for each in value] if isinstance(value, list) else value


def check_names(section: Section, records: Sequence[Mapping[str, Any]], whose: str) -> None:
    names = [section.name_of(record) for record in records]
    for name in names:
        if names.count(name) > 1:
            raise AppFileError(
                f"{whose} several {section.name} with the name {name!r}: a file tells objects apart"
                " by their names."
            )


# --- Comparing ------------------------------------------------------------------------------------
def check_file(content: Any) -> Record:
    """Return the content of a file, as JSON. Raises AppFileError."""
    if not isinstance(content, Mapping):
        raise AppFileError("The file has no sections.")
    checked: Record = as_json(content)
    if unknown := sorted(set(map(str, checked)) - NAMES):
        raise AppFileError(f"Unknown sections: {', '.join(unknown)}.")
    # A section without a value is as one that is left out.
    checked = {name: section for name, section in checked.items() if section is not None}
    check_fields("app", checked.get("app", {}), APP)
    templates = checked.get("templates", {})
    check_fields("templates", templates, frozenset(templates))
    for name, template in templates.items():
        check_fields(f"templates.{name}", template, TEMPLATE)
    for section in SECTIONS:
        records = checked.get(section.name, [])
        if not isinstance(records, list):
            raise AppFileError(f"{section.name} is no list.")
        for place, record in enumerate(records):
            check_fields(f"{section.name}.{place}", record, section.fields)
            if not section.name_of(record):
                raise AppFileError(f"{section.name}.{place} has no {section.keys[0]}.")
        check_names(section, records, "The file has")
    return checked


def check_fields(place: str, record: Any, fields: frozenset[str]) -> None:
    if not isinstance(record, Mapping):
        raise AppFileError(f"{place} has no fields.")
    if unknown := sorted(set(map(str, record)) - fields):
        raise AppFileError(f"{place} has unknown fields: {', '.join(unknown)}.")


def compare(present: Present, wanted: Record, *, prune: bool = False) -> list[Difference]:
    """Return what has to happen, in this order, for the app to be as the file wants it.

    What the file leaves out stays as it is; with `prune`, objects that a section of the file leaves
    out are deleted. Raises AppFileError for a reference to nothing.
    """
    check_references(present, wanted)
    found = []
    if lines := list(changed(present.content["app"], wanted.get("app", {}))):
        found.append(update("app", present.slug, present.content["app"], wanted["app"], lines))
    gone = []
    for section in SECTIONS:
        if section.name in wanted:
            has = by_name(section, present.content[section.name])
            wants = by_name(section, wanted[section.name])
            found += compare_section(section, has, wants)
            gone += [
                Difference("delete", section.singular, name, {}) for name in has.keys() - wants
            ]
    found += compare_templates(present, wanted, prune=prune)
    order = {section.singular: place for place, section in enumerate(SECTIONS)}
    gone.sort(key=lambda each: (-order[each.kind], each.name))
    return found + (gone if prune else [])


def by_name(section: Section, records: Sequence[Record]) -> dict[str, Record]:
    return {section.name_of(record): record for record in records}


def compare_section(
    section: Section, has: Mapping[str, Record], wants: Mapping[str, Record]
) -> Iterator[Difference]:
    for name, record in wants.items():
        if name not in has:
            values = {key: value for key, value in record.items() if value is not None}
            yield Difference("create", section.singular, name, values)
        elif lines := list(changed(has[name], record)):
            yield update(section.singular, name, has[name], record, lines)


def compare_templates(present: Present, wanted: Record, *, prune: bool) -> Iterator[Difference]:
    has, wants = present.content["templates"], wanted.get("templates")
    for name, template in (wants or {}).items():
        if lines := list(changed(has.get(name, {}), template)):
            yield Difference("update", "template", name, template, lines)
    if prune and wants is not None:
        for name in sorted(has.keys() - wants):
            yield Difference("delete", "template", name, dict.fromkeys(sorted(TEMPLATE)))


def update(kind: str, name: str, has: Record, wants: Record, lines: list[str]) -> Difference:
    values = {key: value for key, value in wants.items() if any(changed(has.get(key), value))}
    return Difference("update", kind, name, values, lines)


def changed(has: Any, wants: Any, path: str = "") -> Iterator[str]:
    """Yield a line for each value that differs; keys that `wants` leaves out do not."""
    if isinstance(wants, Mapping) and isinstance(has, Mapping):
        for key, value in wants.items():
            yield from changed(has.get(key), value, f"{path}.{key}" if path else str(key))
    elif not is_covered(has, wants):
        if isinstance(wants, list) and isinstance(has, list) and has and is_long(has, wants):
            for place, (old, new) in enumerate(zip_longest(has, wants)):
                yield from changed_entry(old, new, f"{path}.{place}")
        else:
            yield f"{path}: {as_line(has)} -> {as_line(wants)}"


def changed_entry(has: Any, wants: Any, path: str) -> Iterator[str]:
    """As `changed`, for an entry of a list, which is replaced as a whole: keys that it loses are
    shown too."""
    if isinstance(wants, Mapping) and isinstance(has, Mapping) and wants.keys() != has.keys():
        if not is_covered(has, wants):
            yield f"{path}: {as_line(has)} -> {as_line(wants)}"
    else:
        yield from changed(has, wants, path)


def is_covered(has: Any, wants: Any) -> bool:
    if isinstance(wants, Mapping) and isinstance(has, Mapping):
        return all(is_covered(has.get(key), value) for key, value in wants.items())
    if isinstance(wants, list) and isinstance(has, list):
        return len(has) == len(wants) and all(map(is_covered, has, wants))
    return bool(has == wants)


def as_line(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."


def is_long(*values: Any) -> bool:
    return any(len(repr(value)) > MAX_SHOWN for value in values)


def check_references(present: Present, wanted: Record) -> None:
    made = {
        reference(section, record)
        for section in SECTIONS
        for record in wanted.get(section.name, [])
    }
    for text in texts_in(wanted):
        if REFERENCE.fullmatch(text) and text not in made and text not in present.ids:
            raise AppFileError(f"Neither the file nor the app has {text}.")


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from texts_in(key)
            yield from texts_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts_in(each)


# --- Writing --------------------------------------------------------------------------------------
def apply(client: Client, present: Present, differences: Sequence[Difference]) -> Iterator[str]:
    """Carry the differences out one by one; yield the text of each that is done.

    Raises Refused, with a note that names the object.
    """
    ids = dict(present.ids)
    for each in differences:
        try:
            carry_out(client, present.slug, each, ids)
        except Refused as refused:
            refused.add_note(f"{each.kind} {each.name}")
            raise
        yield str(each)


def carry_out(client: Client, slug: str, difference: Difference, ids: dict[str, str]) -> None:
    """Send one difference. ids: of the objects, by reference; gets that of a new object."""
    kind, name = difference.kind, difference.name
    path = {section.singular: section.name for section in SECTIONS}.get(kind)
    values = replace(difference.values, ids)
    token = f"@{kind}/{name}"
    if kind == "app":
        client.request("PUT", f"/v2/apps/{slug}", body=values)
    elif kind == "template":
        client.request("PUT", f"/v2/templates/{part(name)}", body=values)
    elif difference.action == "create":
        made = client.request("POST", f"/v2/{path}", body=values)
        ids[token] = made.data["id"]
    elif difference.action == "update":
        client.request("PUT", f"/v2/{path}/{ids[token]}", body=values)
    else:
        client.request("DELETE", f"/v2/{path}/{ids[token]}")
