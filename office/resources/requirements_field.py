"""The form field for what a project's bookings need at once: a row for each requirement."""

import uuid
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from availability.models import Project, Resource
from availability.search.requirements import stored_alternatives
from availability.serializers.fields import MAX_RESOURCES
from common.api.fields import is_short_number
from office.base.rows_field import Row, RowsField, RowsWidget

CHECK_ROWS = _("Check the marked rows.")


class RequirementsWidget(RowsWidget):
    """Columns: `resources` are ids, `tags` have commas between them.

    app_id: the app whose resources are offered; set by the form.
    """

    template_name = "office/widgets/requirements.html"
    columns = ("name", "resources", "tags", "count")
    filled_by = ("name", "resources", "tags")
    lists = frozenset({"resources"})
    app_id: uuid.UUID

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        rows = self.parse(value)
        chosen = {each for row in rows for each in row["resources"]}
        offered = offered_resources(self.app_id, chosen)
        own = {
            "rows": [
                {
                    **row,
                    "faults": self.faults_at(number),
                    "options": [
                        (each, words, each in row["resources"])
                        for each, words in offered.items()
                        if each in row["resources"] or words
                    ],
                }
                for number, row in enumerate([*rows, *self.parse([{}])])
            ],
        }
        return super().get_context(name, value, attrs) | own


class RequirementsField(RowsField):
    """Rows of requirements, checked by the API."""

    widget: RequirementsWidget

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(widget=RequirementsWidget(), **kwargs)

    def validate(self, value: list[Row]) -> None:
        for number, row in enumerate(value):
            if row["resources"] and _tags_of(row):
                exclusive = gettext("Choose resources or enter tags, not both.")
                self.add_fault(number, "tags", [exclusive])
            elif not row["resources"] and not _tags_of(row):
                self.add_fault(number, "resources", [gettext("Choose resources or enter tags.")])
        if self.widget.errors:
            raise forms.ValidationError(CHECK_ROWS)

    def shown_value(self, stored: Any) -> list[Row]:
        return rows_of(stored)

    def sent_value(self, value: list[Row]) -> list[dict[str, Any]] | None:
        return [_requirement_of(row) for row in value] or None


def rows_of(requires: Any) -> list[Row]:
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


def _requirement_of(row: Row) -> dict[str, Any]:
    requirement = {
        "name": row["name"],
        "any_of": row["resources"] or {"tags": _tags_of(row)},
    }
    count = row["count"]
    if count:
        requirement["count"] = int(count) if is_short_number(count) else count
    return requirement


def _tags_of(row: Row) -> list[str]:
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


def requirement_choices(project: Project) -> list[tuple[str, str]]:
    """Return the names of the project's requirements, to choose one from."""
    rows = chain.from_iterable(stored_alternatives(project.requires))
    return [(name, name) for name in dict.fromkeys(each["name"] for each in rows)]


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


def _is_id(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True
