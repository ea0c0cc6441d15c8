"""The form field for rules: one row each (office/static/office/rules.js)."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from availability.core.constraints import ConstraintRules, render_constraint
from office.base.lazy_text import LazyText
from office.base.rows_field import RowsField, RowsWidget
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


class RulesWidget(RowsWidget):
    """Rows with the fields of their kind."""

    template_name = "office/widgets/rules.html"
    columns = COLUMNS
    filled_by = ("kind",)

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        super().__init__()
        self.kinds = kinds

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        rows = [*self.parse(value), *self.parse([{}])]
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
        faults = self.faults_at(position)
        return {
            "values": row,
            "fault": faults.get("kind", ""),
            "fields": [
                {
                    "column": column,
                    "label": label,
                    "value": row[column],
                    "is_used": column in used,
                    "type": _input_type(column, row),
                    "options": _options_of(column, row, is_used=column in used),
                    "fault": faults.get(column, ""),
                }
                for column, label in COLUMN_LABELS.items()
            ],
        }


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


class RulesField(RowsField):
    """Rows of rules. `read_rows` returns their rules."""

    def __init__(self, kinds: Mapping[str, Kind], **kwargs: Any) -> None:
        super().__init__(widget=RulesWidget(kinds), **kwargs)

    def validate(self, value: list[RuleRow]) -> None:
        try:
            read_rows(value)
        except RowsError as error:
            self.widget.errors = error.errors
            whole = error.errors.get("", {}).get("")
            raise forms.ValidationError(whole or gettext("Check the marked rules.")) from error


def rows_of(rules: Iterable[Any]) -> list[RuleRow]:
    """Return the rows of parsed rules."""
    return [row_of_rule(render_constraint(rule)) for rule in rules]


def rules_of(rows: list[RuleRow]) -> ConstraintRules:
    """Return the rules of rows that are valid."""
    return read_rows(rows)
