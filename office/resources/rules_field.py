"""The form field for rules: one row each (office/static/office/rules.js)."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from availability.core.constraints import ConstraintRules, render_constraint
from office.base.form_fields import TemplateWidget
from office.base.lazy_text import LazyText
from office.base.rule_rows import (
    COLUMNS,
    DATE_KINDS,
    REPEATS,
    Kind,
    RowsError,
    RuleRow,
    country_names,
    read_rows,
    row_of_rule,
    subdivision_names,
    weekday_choices,
)

WALL_INPUT = re.compile(r"|\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?")
# Buttons that add a row of a kind.
ADDED = {
    "closed_on": _("Closed on…"),
    "extra_hours": _("Extra hours on…"),
    "replace_day": _("Special hours on…"),
    "block_holidays": _("Public holidays of…"),
    "": _("Other rule…"),
}


COLUMN_LABELS = {
    "day": _("Day"),
    "date": _("Date"),
    "last_date": _("Last day (optional)"),
    "hours": _("Hours"),
    "start": pgettext_lazy("of a time span", "From"),
    "end": pgettext_lazy("of a time span", "To"),
    "country": _("Country"),
    "subdivision": _("Region"),
    "repeats": _("Repeats"),
    "label": _("Note (optional)"),
}
SELECTS = ("day", "country", "subdivision", "repeats")


class RulesWidget(TemplateWidget):
    """Rows with the fields of their kind. The last row is empty: a new rule needs no script."""

    template_name = "office/widgets/rules.html"
    errors: Mapping[int | str, Mapping[str, list[str]]] = {}

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        super().__init__()
        self.kinds = kinds

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        rows = [*parse_rows(value), dict.fromkeys(COLUMNS, "")]
        own = {
            "rows": [self._row_context(position, row) for position, row in enumerate(rows)],
            "kinds": [(kind, given.words) for kind, given in self.kinds.items()],
            "uses": json.dumps({kind: given.columns for kind, given in self.kinds.items()}),
            "countries": list(country_names().items()),
            "added": list(ADDED.items()),
            "whole_error": " ".join(self.errors.get("", {}).get("", ())),
        }
        return super().get_context(name, value, attrs) | own

    def _row_context(self, position: int, row: RuleRow) -> dict[str, Any]:
        kind = self.kinds.get(row["kind"])
        used = (*kind.columns, "label") if kind else ()
        faults = self.errors.get(position, {})
        return {
            "values": row,
            "fault": " ".join(faults.get("kind", ())),
            "fields": [
                {
                    "column": column,
                    "label": label,
                    "value": row[column],
                    "is_used": column in used,
                    "type": _input_type(column, row),
                    "options": _options_of(column, row, is_used=column in used),
                    "fault": " ".join(faults.get(column, ())),
                }
                for column, label in COLUMN_LABELS.items()
            ],
        }

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[RuleRow]:
        """The rows by their numbers; one without a kind was emptied or never filled in."""
        rows: dict[int, RuleRow] = {}
        pattern = re.compile(rf"{re.escape(name)}-(\d{{1,4}})-([a-z_]+)")
        for key in data:
            matched = pattern.fullmatch(key)
            if matched and matched[2] in COLUMNS:
                row = rows.setdefault(int(matched[1]), dict.fromkeys(COLUMNS, ""))
                row[matched[2]] = str(data.get(key) or "")
        return [row for _, row in sorted(rows.items()) if row["kind"]]

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return name not in data

    def id_for_label(self, id_: str, index: str | None = None) -> str:
        return ""


def _input_type(column: str, row: RuleRow) -> str:
    if column in SELECTS:
        return "select"
    if column in ("date", "last_date"):
        return "date"
    is_moment = column in ("start", "end") and row["kind"] in DATE_KINDS
    return "datetime-local" if is_moment and WALL_INPUT.fullmatch(row[column]) else "text"


def _options_of(column: str, row: RuleRow, *, is_used: bool) -> list[tuple[str, LazyText]]:
    """Return the choices; those of countries only where they are shown, because they are many."""
    value = row[column]
    if column == "day":
        return [*weekday_choices()]
    if column == "repeats":
        other = (
            []
            if value in ("", *REPEATS)
            else [(value, gettext("as stored: %(value)s") % {"value": value})]
        )
        return [*REPEATS.items(), *other]
    if column == "country" and is_used:
        return [("", gettext("Choose a country")), *country_names().items()]
    if column == "subdivision" and is_used:
        return [("", gettext("the whole country")), *subdivision_names(row["country"]).items()]
    return [("", "")]


class HiddenRowsInput(forms.HiddenInput):
    def format_value(self, value: Any) -> str:
        return json.dumps(parse_rows(value))


class RulesField(forms.Field):
    """Rows of rules; cleaned: the rows. `read` returns their rules."""

    hidden_widget = HiddenRowsInput

    def __init__(self, kinds: Mapping[str, Kind], **kwargs: Any) -> None:
        super().__init__(required=False, widget=RulesWidget(kinds), **kwargs)

    def to_python(self, value: Any) -> list[RuleRow]:
        return parse_rows(value)

    def validate(self, value: list[RuleRow]) -> None:
        try:
            read_rows(value)
        except RowsError as error:
            self.widget.errors = error.errors
            whole = error.errors.get("", {}).get("")
            raise forms.ValidationError(whole or gettext("Check the marked rules.")) from error

    def has_changed(self, initial: Any, data: Any) -> bool:
        return parse_rows(initial) != parse_rows(data)


def rows_of(rules: Iterable[Any]) -> list[RuleRow]:
    """Return the rows of parsed rules."""
    return [row_of_rule(render_constraint(rule)) for rule in rules]


def rules_of(rows: list[RuleRow]) -> ConstraintRules:
    """Return the rules of rows that are valid."""
    return read_rows(rows)


def parse_rows(value: Any) -> list[RuleRow]:
    """Return the rows of a form's value, which is JSON if it is the hidden one."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return []
    rows = value if isinstance(value, list) else []
    return [
        {column: str(row.get(column) or "").strip() for column in COLUMNS}
        for row in rows
        if isinstance(row, dict)
    ]
