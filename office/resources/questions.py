"""The builder of a booking form's questions: one row each, in their order."""

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.utils.text import slugify
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from availability.serializers.projects import MAX_POSITION
from booking_pages.form_fields import NEEDED, element_of, ordered_questions, title_of
from common.api.fields import META_KEYS
from office.base.lazy_text import LazyText
from office.base.rows_field import Row, RowsField, RowsWidget, read_texts

CHOICE, SPLIT_NAME = "select", "split"
KIND_WORDS: Mapping[str, LazyText] = {
    "string": _("Short text"),
    "textarea": _("Long text"),
    CHOICE: _("Choice from a list"),
    "checkbox": _("Checkbox"),
    "email": _("E-mail address"),
    "tel": _("Phone number"),
    "number": _("Number"),
    "date": _("Date"),
    "url": _("Web address"),
}
NAME_KINDS: Mapping[str, LazyText] = {
    "string": _("Full name"),
    SPLIT_NAME: _("First and last name"),
}
EMAIL_KINDS: Mapping[str, LazyText] = {"email": _("E-mail address")}
ROW = ("key", "title", "kind", "required", "options")
YES = "yes"


class QuestionsWidget(RowsWidget):
    """Rows of parallel lists, so that their order on the page is their order in the form. Columns:
    `options` are lines, `position` is the stored one.
    """

    template_name = "office/widgets/questions.html"
    columns = (*ROW, "position")
    filled_by = ("title",)

    def is_filled(self, row: Row) -> bool:
        return super().is_filled(row) or row["key"] in NEEDED

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        rows = [*self.parse(value), *self.parse([{"kind": "string"}])]
        own = {"rows": [{**row, "kinds": _kinds_of(row)} for row in rows], "needed": list(NEEDED)}
        return super().get_context(name, value, attrs) | own

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[Row]:
        columns = [read_texts(data, f"{name}-{column}") for column in ROW]
        if len({len(column) for column in columns}) > 1:
            return []  # cut off on the way
        rows = [dict(zip(ROW, values, strict=True)) for values in zip(*columns, strict=True)]
        return [row for row in self.parse(rows) if self.is_filled(row)]

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return f"{name}-key" not in data

    def parse_value(self, column: str, value: Any) -> Any:
        return value if column == "position" else super().parse_value(column, value)


class QuestionsField(RowsField):
    """Rows of questions."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(widget=QuestionsWidget(), **kwargs)

    def compared(self, row: Row) -> Any:
        return [row[column] for column in ROW]

    def validate(self, value: list[Row]) -> None:
        if not set(NEEDED) <= {row["key"] for row in value}:
            raise forms.ValidationError(gettext("This page is out of date. Please reload."))
        for row in value:
            if row["kind"] == CHOICE and not row["options"].strip():
                sentence = gettext("%(question)s: Add at least one option.")
                raise forms.ValidationError(sentence % {"question": row["title"]})
        if len(value) > META_KEYS:
            sentence = gettext("Must have at most %(limit)s questions.")
            raise forms.ValidationError(sentence % {"limit": META_KEYS})


def rows_of(questions: Any) -> list[Row]:
    """Return the rows of a project's `customer_fields`."""
    if not isinstance(questions, Mapping):
        questions = {}
    return [_row_of(key, question) for key, question in ordered_questions(questions)]


def _row_of(key: str, question: Mapping[str, Any]) -> Row:
    options = question.get("enum")
    options = (
        [text for text in options if isinstance(text, str)] if isinstance(options, list) else []
    )
    element, kind = element_of(key, question)
    kind = kind if kind in KIND_WORDS else element if element in KIND_WORDS else "string"
    position = question.get("position")
    return {
        "key": key,
        "title": title_of(key, question),
        "kind": SPLIT_NAME if question.get("split_name") else CHOICE if options else kind,
        "required": YES if question.get("required") else "",
        "options": "\n".join(options),
        "position": position if type(position) is int else None,
    }


def questions_of(rows: Iterable[Row], *, renumber: bool) -> dict[str, dict[str, Any]]:
    """Return the `customer_fields` of the rows. `renumber`: positions by the order of the rows."""
    questions: dict[str, dict[str, Any]] = {}
    for number, row in enumerate(rows):
        key = row["key"] or _new_key(row["title"], questions)
        position = row.get("position")
        if renumber:
            is_in_place = key in NEEDED and list(NEEDED).index(key) == number
            position = None if is_in_place else min(number, MAX_POSITION)
        questions[key] = _question_of(key, row)
        if position is not None:
            questions[key]["position"] = position
    return questions


def _question_of(key: str, row: Row) -> dict[str, Any]:
    kind = row["kind"]
    question: dict[str, Any] = {"title": row["title"].strip()}
    if key not in NEEDED:
        question |= {"format": kind, "required": row["required"] == YES}
    if key == "name":
        question["split_name"] = kind == SPLIT_NAME
    if kind == CHOICE:
        lines = [line.strip() for line in row["options"].splitlines()]
        question["enum"] = [line for line in lines if line]
    return question


def _new_key(title: str, taken: Mapping[str, Any]) -> str:
    """Return a key made of the title that no other question has."""
    start = slugify(title).replace("-", "_")[:40] or "question"
    names = [start, *(f"{start}_{number}" for number in range(2, META_KEYS + 2))]
    return next(name for name in names if name not in taken)


def _kinds_of(row: Row) -> list[tuple[str, LazyText]]:
    kinds = {"name": NAME_KINDS, "email": EMAIL_KINDS}.get(row["key"], KIND_WORDS)
    return list(kinds.items())
