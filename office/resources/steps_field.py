"""The form field for the steps of a visit: a row for each, with rows of what it needs."""

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext

from availability.models import Project
from office.base.form_fields import ELAPSED, DurationField, DurationWidget
from office.base.rows_field import Row, RowsField, RowsWidget
from office.resources.requirements_field import (
    CHECK_ROWS,
    RequirementsWidget,
    choice_faults,
    column_of,
    in_words,
    offered_resources,
    requirement_of,
    resource_options,
    resources_of,
    tags_of_resources,
)
from office.resources.requirements_field import rows_of as requirement_rows_of

DURATIONS = ("length", "gap_min", "gap_max")
DURATION = DurationField()
REQUIREMENTS = RequirementsWidget()


class StepsWidget(RowsWidget):
    """Columns: `resources` are ids, `requires` are rows of `RequirementsWidget`, whose errors stand
    at (position of the step, position of the row).

    app_id: the app whose resources are offered; set by the form.
    """

    template_name = "office/widgets/steps.html"
    columns = ("name", *DURATIONS, "same_as", "resources", "requires")
    filled_by = ("name", "resources", "requires")
    lists = frozenset({"resources"})
    app_id: uuid.UUID

    def parse_value(self, column: str, value: Any) -> Any:
        return (
            REQUIREMENTS.parse(value)
            if column == "requires"
            else super().parse_value(column, value)
        )

    def read_row(self, data: Any, files: Any, name: str, row: Row) -> Row:
        widget = DurationWidget(ELAPSED, {})
        durations = {
            column: widget.value_from_datadict(data, files, f"{name}-{column}")
            for column in DURATIONS
        }
        requires = REQUIREMENTS.value_from_datadict(data, files, f"{name}-requires")
        return {**row, **durations, "requires": requires}

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        rows = self.parse(value)
        offered = offered_resources(self.app_id, set(_resources_of_steps(rows)))
        tags = tags_of_resources(self.app_id, offered)
        shown = [
            {
                **row,
                "faults": self.faults_at(number),
                "options": resource_options(row["resources"], offered),
                "durations": {
                    column: DURATION.widget.get_context(
                        f"{name}-{number}-{column}", row[column], {}
                    )
                    for column in DURATIONS
                },
                "requirements": {
                    "widget": {"name": f"{name}-{number}-requires"},
                    "rows": self._widget_of_row(number).shown_rows(row["requires"], offered, tags),
                },
            }
            for number, row in enumerate([*rows, *self.parse([{}])])
        ]
        return super().get_context(name, value, attrs) | {"rows": shown}

    def _widget_of_row(self, number: int) -> RequirementsWidget:
        widget = RequirementsWidget()
        widget.errors = {
            key[1]: faults
            for key, faults in self.errors.items()
            if isinstance(key, tuple) and key[0] == number
        }
        return widget


class StepsField(RowsField):
    """Rows of steps, checked by the API."""

    widget: StepsWidget

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(widget=StepsWidget(), **kwargs)

    def validate(self, value: list[Row]) -> None:
        for number, row in enumerate(value):
            if row["resources"] and row["requires"]:
                fault = gettext("Choose resources, or fill in what the step needs, not both.")
                self.add_fault(number, "resources", [fault])
            elif not row["resources"] and not row["requires"]:
                fault = gettext("Choose resources, or fill in what the step needs.")
                self.add_fault(number, "resources", [fault])
            for position, requirement in enumerate(row["requires"]):
                for column, fault in choice_faults(requirement):
                    self.add_fault((number, position), column, [fault])
        if self.widget.errors:
            raise forms.ValidationError(CHECK_ROWS)

    def compared(self, row: Row) -> Any:
        return _step_of(row)

    def shown_value(self, stored: Any) -> list[Row]:
        return rows_of(stored)

    def sent_value(self, value: list[Row]) -> Any:
        return [_step_of(row) for row in value] or None

    def add_api_fault(self, steps: list[str], faults: list[str]) -> bool:
        """Add faults of the API, at their path within `steps`, to their row and column; return
        whether they have one.
        """
        if len(steps) < 2:
            return False
        number, column, *rest = steps
        if column == "gap":
            column = f"gap_{rest[0]}" if rest else "gap_min"
        elif column == "requires" and len(rest) > 1:
            self.add_fault((int(number), int(rest[0])), column_of(rest[1:]), faults)
            return True
        self.add_fault(int(number), column, faults)
        return True


def rows_of(steps: Any) -> list[Row]:
    """Return the rows of a project's `steps`."""
    return [
        {
            "name": str(step["name"]),
            "length": DURATION.shown_value(step["length"]),
            **_gap_of(step.get("gap")),
            "same_as": str(step.get("same_as") or ""),
            "resources": [str(each) for each in step.get("resources") or ()],
            "requires": requirement_rows_of(step.get("requires")),
        }
        for step in (steps if isinstance(steps, list) else ())
        if isinstance(step, Mapping) and {"name", "length"} <= step.keys()
    ]


def _gap_of(gap: Mapping[str, Any] | None) -> dict[str, str]:
    return {f"gap_{name}": DURATION.shown_value((gap or {}).get(name)) for name in ("min", "max")}


def _step_of(row: Row) -> dict[str, Any]:
    step: dict[str, Any] = {"name": row["name"], "length": DURATION.sent_value(row["length"])}
    if row["requires"]:
        step["requires"] = [requirement_of(each) for each in row["requires"]]
    if row["resources"]:
        step["resources"] = row["resources"]
    if gap := {name: row[f"gap_{name}"] for name in ("min", "max") if row[f"gap_{name}"]}:
        step["gap"] = {name: DURATION.sent_value(text) for name, text in gap.items()}
    if row["same_as"]:
        step["same_as"] = row["same_as"]
    return step


def _resources_of_steps(rows: Iterable[Row]) -> Iterator[str]:
    for row in rows:
        yield from row["resources"]
        yield from resources_of(row["requires"])


def requirement_choices(project: Project) -> list[tuple[str, str]]:
    """Return the names of the project's requirements, to choose one from: also of its steps."""
    names = [row["name"] for row in requirement_rows_of(project.requires)]
    for step in rows_of(project.steps):
        names += [row["name"] for row in step["requires"]] or [step["name"]]
    return [(name, name) for name in dict.fromkeys(names)]


def step_lines(project: Project) -> list[str]:
    """Return `cleaning, 30 minutes: room: Room 1` of each step."""
    rows = rows_of(project.steps)
    chosen = set(_resources_of_steps(rows))
    names = offered_resources(project.app_id, chosen) if chosen else {}
    return [_line_of(row, names) for row in rows]


def _line_of(row: Row, names: Mapping[str, str]) -> str:
    who: Sequence[str] = in_words(row["requires"], names) or [
        name for each in row["resources"] if (name := names[each])
    ]
    return f"{row['name']}, {DURATION.widget.in_words(row['length'])}: {', '.join(who)}"
