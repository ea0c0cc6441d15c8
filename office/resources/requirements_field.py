"""The form field for what a project's bookings need at once: a row for each requirement."""

import json
import re
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from availability.models import Project, Resource
from availability.serializers.fields import MAX_RESOURCES
from common.api.fields import is_short_number
from office.base.api_forms import ShownField
from office.base.form_fields import TemplateWidget

COLUMNS = ("name", "resources", "tags", "count")
CHECK_ROWS = _("Check the marked rows.")

# One row as the form sends it: the names of COLUMNS. `resources`: ids; `tags`: with commas.
RequirementRow = dict[str, Any]


class RequirementsWidget(TemplateWidget):
    """Rows in their order on the page. The last row is empty: a new one needs no script.

    app_id: the app whose resources are offered; set by the form.
    errors: row -> column -> sentences.
    """

    template_name = "office/widgets/requirements.html"
    app_id: uuid.UUID
    errors: Mapping[int, Mapping[str, list[str]]] = {}

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        rows = parse_rows(value)
        chosen = {each for row in rows for each in row["resources"]}
        offered = offered_resources(self.app_id, chosen)
        blank: RequirementRow = {"name": "", "resources": [], "tags": "", "count": ""}
        own = {
            "rows": [
                {
                    **row,
                    "faults": {
                        column: " ".join(sentences)
                        for column, sentences in self.errors.get(number, {}).items()
                    },
                    "options": [
                        (each, words, each in row["resources"])
                        for each, words in offered.items()
                        if each in row["resources"] or words
                    ],
                }
                for number, row in enumerate([*rows, blank])
            ],
        }
        return super().get_context(name, value, attrs) | own

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[RequirementRow]:
        """The rows in the order of their fields; one without any text or choice was removed."""
        rows_by_number: dict[str, RequirementRow] = {}
        pattern = re.compile(rf"{re.escape(name)}-(\d{{1,4}})-([a-z]+)")
        for key in data:
            matched = pattern.fullmatch(key)
            if matched and matched[2] in COLUMNS:
                is_list = matched[2] == "resources"
                given = _list_of(data, key) if is_list else str(data.get(key) or "")
                rows_by_number.setdefault(matched[1], {})[matched[2]] = given
        rows = parse_rows(list(rows_by_number.values()))
        return [row for row in rows if row["name"] or row["resources"] or row["tags"]]

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return name not in data

    def id_for_label(self, id_: str, index: str | None = None) -> str:
        return ""


class HiddenRowsInput(forms.HiddenInput):
    def format_value(self, value: Any) -> str:
        return json.dumps(parse_rows(value))


class RequirementsField(ShownField):
    """Rows of requirements, checked by the API."""

    widget: RequirementsWidget
    hidden_widget = HiddenRowsInput

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=False, widget=RequirementsWidget(), **kwargs)

    def to_python(self, value: Any) -> list[RequirementRow]:
        return parse_rows(value)

    def validate(self, value: list[RequirementRow]) -> None:
        errors = {}
        for number, row in enumerate(value):
            if row["resources"] and _tags_of(row):
                errors[number] = {"tags": [gettext("Choose resources or enter tags, not both.")]}
            elif not row["resources"] and not _tags_of(row):
                errors[number] = {"resources": [gettext("Choose resources or enter tags.")]}
        if errors:
            self.widget.errors = errors
            raise forms.ValidationError(CHECK_ROWS)

    def has_changed(self, initial: Any, data: Any) -> bool:
        return _normalised(parse_rows(initial)) != _normalised(parse_rows(data))

    def shown_value(self, stored: Any) -> list[RequirementRow]:
        return rows_of(stored)

    def sent_value(self, value: list[RequirementRow]) -> list[dict[str, Any]] | None:
        return [_requirement_of(row) for row in value] or None

    def add_fault(self, number: int, column: str, faults: list[str]) -> None:
        at_row = self.widget.errors.get(number, {})
        changed = {**at_row, column: [*at_row.get(column, ()), *faults]}
        self.widget.errors = {**self.widget.errors, number: changed}


def rows_of(requires: Any) -> list[RequirementRow]:
    """Return the rows of a project's `requires`."""
    rows = []
    stored = requires if isinstance(requires, list) else []
    for each in filter(lambda found: isinstance(found, dict) and "any_of" in found, stored):
        any_of = each["any_of"]
        tags = any_of["tags"] if isinstance(any_of, Mapping) else []
        rows.append(
            {
                "name": each["name"],
                "resources": [] if tags else list(any_of),
                "tags": ", ".join(tags),
                "count": str(each.get("count") or ""),
            }
        )
    return rows


def _requirement_of(row: RequirementRow) -> dict[str, Any]:
    requirement = {
        "name": row["name"],
        "any_of": row["resources"] or {"tags": _tags_of(row)},
    }
    count = row["count"]
    if count:
        requirement["count"] = int(count) if is_short_number(count) else count
    return requirement


def _tags_of(row: RequirementRow) -> list[str]:
    return [tag.strip() for tag in row["tags"].split(",") if tag.strip()]


def offered_resources(app_id: uuid.UUID, chosen: Iterable[str]) -> dict[str, str]:
    """Return id -> name of the app's first resources by name, and of the chosen ones."""
    rows = Resource.objects.filter(app_id=app_id, deleted_at=None).order_by("name", "id")
    names = {str(each): name for each, name in rows.values_list("id", "name")[:MAX_RESOURCES]}
    others = [each for each in chosen if each not in names]
    if others:
        chosen_rows = rows.filter(id__in=[each for each in others if _is_id(each)])
        names |= {str(each): name for each, name in chosen_rows.values_list("id", "name")}
    return names | {each: "" for each in others if each not in names}


def requirement_lines(project: Project) -> list[str]:
    """Return `dentist: Ada, Bob`, `chair (2): with the tag x-ray` of each requirement."""
    rows = rows_of(project.requires)
    chosen = [each for row in rows for each in row["resources"]]
    names = offered_resources(project.app_id, chosen) if chosen else {}
    lines = []
    for row in rows:
        count = f" ({row['count']})" if row["count"] not in ("", "1") else ""
        who = ", ".join(names[each] for each in row["resources"] if names[each])
        lines.append(f"{row['name']}{count}: {who or row['tags']}")
    return lines


def parse_rows(value: Any) -> list[RequirementRow]:
    """Return the rows of a form's value, which is JSON if it is the hidden one."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return []
    rows = value if isinstance(value, list) else []
    return [
        {
            **{column: str(row.get(column) or "").strip() for column in COLUMNS},
            "resources": [str(each) for each in row.get("resources") or ()],
        }
        for row in rows
        if isinstance(row, dict)
    ]


def _normalised(rows: Iterable[RequirementRow]) -> list[RequirementRow]:
    """The page lists the resources by name."""
    return [{**row, "resources": sorted(row["resources"])} for row in rows]


def _list_of(data: Any, key: str) -> list[str]:
    found = data.getlist(key) if hasattr(data, "getlist") else data.get(key, [])
    return [str(text) for text in found] if isinstance(found, list) else [str(found)]


def _is_id(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True
