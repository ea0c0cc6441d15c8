"""Form fields whose value is a list of rows, such as rules: a dict each, column -> text."""

import json
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms

from office.base.api_forms import ShownField
from office.base.form_fields import TemplateWidget

Row = dict[str, Any]


class RowsWidget(TemplateWidget):
    """Rows in their order on the page. The last row is empty: a new one needs no script. The field
    `name` says that the rows are sent, `name-0-column` is a column of a row.

    columns   of each row
    filled_by the columns of which a row has one, at least
    lists     the columns whose value is a list of texts
    errors    position -> column -> sentences
    """

    columns: ClassVar[tuple[str, ...]]
    filled_by: ClassVar[tuple[str, ...]]
    lists: ClassVar[frozenset[str]] = frozenset()
    errors: Mapping[Any, Mapping[str, list[str]]] = {}

    def is_filled(self, row: Row) -> bool:
        """Return whether a row that was sent is one: it was not emptied, but filled in."""
        return any(row[column] for column in self.filled_by)

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[Row]:
        """Return the rows in the order of their fields."""
        rows_by_number: dict[str, Row] = {}
        pattern = re.compile(rf"{re.escape(name)}-(\d{{1,4}})-([a-z_]+)")
        for key in data:
            matched = pattern.fullmatch(key)
            if matched and matched[2] in self.columns:
                given = read_texts(data, key) if matched[2] in self.lists else data.get(key)
                rows_by_number.setdefault(matched[1], {})[matched[2]] = given
        rows = [
            self.read_row(data, files, f"{name}-{number}", row)
            for number, row in rows_by_number.items()
        ]
        return [row for row in self.parse(rows) if self.is_filled(row)]

    def read_row(self, data: Any, files: Any, name: str, row: Row) -> Row:
        """Return a row with the columns that are no plain text. name: that of its fields."""
        return row

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return name not in data

    def id_for_label(self, id_: str, index: str | None = None) -> str:
        return ""

    def parse(self, value: Any) -> list[Row]:
        """Return the rows of a form's value, which is JSON if it is the hidden one."""
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except ValueError:
                return []
        rows = value if isinstance(value, list) else []
        return [
            {column: self.parse_value(column, row.get(column)) for column in self.columns}
            for row in rows
            if isinstance(row, dict)
        ]

    def parse_value(self, column: str, value: Any) -> Any:
        if column in self.lists:
            return [str(text) for text in value] if isinstance(value, list) else []
        return str(value or "").replace("\r\n", "\n").strip()

    def faults_at(self, position: int) -> dict[str, str]:
        """Return column -> text of the errors of a row."""
        faults = self.errors.get(position, {})
        return {column: " ".join(sentences) for column, sentences in faults.items()}


class HiddenRows(forms.HiddenInput):
    def format_value(self, value: Any) -> str:
        return value if isinstance(value, str) else json.dumps(value or [])


class RowsField(ShownField):
    """Rows; the value: the rows as they were sent."""

    widget: RowsWidget
    hidden_widget = HiddenRows

    def __init__(self, *, widget: RowsWidget, **kwargs: Any) -> None:
        super().__init__(required=False, widget=widget, **kwargs)

    def to_python(self, value: Any) -> list[Row]:
        return self.widget.parse(value)

    def has_changed(self, initial: Any, data: Any) -> bool:
        before, after = self.widget.parse(initial), self.widget.parse(data)
        return list(map(self.compared, before)) != list(map(self.compared, after))

    def compared(self, row: Row) -> Any:
        """Return what makes a changed row: a list of texts in any order is the same."""
        return {
            column: sorted(value) if column in self.widget.lists else value
            for column, value in row.items()
        }

    def add_fault(self, position: Any, column: str, faults: list[str]) -> None:
        at_row = self.widget.errors.get(position, {})
        changed = {**at_row, column: [*at_row.get(column, ()), *faults]}
        self.widget.errors = {**self.widget.errors, position: changed}


def read_texts(data: Any, key: str) -> list[str]:
    """Return the texts of a field that is sent several times."""
    found = data.getlist(key) if hasattr(data, "getlist") else data.get(key, [])
    return [str(text) for text in found] if isinstance(found, list) else [str(found)]
