"""The builder of a booking form's questions: one row each, in their order."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django import forms
from django.utils.text import slugify
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from availability.serializers.projects import MAX_POSITION
from booking_pages.form_fields import NEEDED, element_of, ordered_questions, title_of
from common.api.fields import META_KEYS
from office.base.form_fields import TemplateWidget
from office.base.lazy_text import LazyText

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

# One row as the form sends it: the names of ROW, `options` in lines. `position`: the stored one.
QuestionRow = dict[str, Any]


class QuestionsWidget(TemplateWidget):
    """Rows of parallel lists, so that their order on the page is their order in the form. The last
    row is empty: a new question needs no script.
    """

    template_name = "office/widgets/questions.html"

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        blank = {"key": "", "title": "", "kind": "string", "required": "", "options": ""}
        rows = [{**row, "kinds": _kinds_of(row)} for row in [*read_rows(value), blank]]
        own = {"rows": rows, "needed": list(NEEDED)}
        return super().get_context(name, value, attrs) | own

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[QuestionRow]:
        columns = [_list_of(data, f"{name}-{column}") for column in ROW]
        if len({len(column) for column in columns}) > 1:
            return []  # cut off on the way
        rows = [dict(zip(ROW, values, strict=True)) for values in zip(*columns, strict=True)]
        return [row for row in rows if row["title"].strip() or row["key"] in NEEDED]

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return f"{name}-key" not in data

    def id_for_label(self, id_: str, index: str | None = None) -> str:
        return ""


class HiddenRowsInput(forms.HiddenInput):
    def format_value(self, value: Any) -> str:
        return json.dumps(read_rows(value))


class QuestionsField(forms.Field):
    """Rows of questions; the value: the rows."""

    hidden_widget = HiddenRowsInput

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=False, widget=QuestionsWidget(), **kwargs)

    def to_python(self, value: Any) -> list[QuestionRow]:
        return read_rows(value)

    def validate(self, value: list[QuestionRow]) -> None:
        if not set(NEEDED) <= {row["key"] for row in value}:
            raise forms.ValidationError(gettext("This page is out of date. Please reload."))
        for row in value:
            if row["kind"] == CHOICE and not row["options"].strip():
                sentence = gettext("%(question)s: Add at least one option.")
                raise forms.ValidationError(sentence % {"question": row["title"]})
        if len(value) > META_KEYS:
            sentence = gettext("Must have at most %(limit)s questions.")
            raise forms.ValidationError(sentence % {"limit": META_KEYS})

    def has_changed(self, initial: Any, data: Any) -> bool:
        return _normalised(read_rows(initial)) != _normalised(read_rows(data))


def rows_of(questions: Any) -> list[QuestionRow]:
    """Return the rows of a project's `customer_fields`."""
    if not isinstance(questions, Mapping):
        questions = {}
    return [_row_of(key, question) for key, question in ordered_questions(questions)]


def _row_of(key: str, question: Mapping[str, Any]) -> QuestionRow:
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


def questions_of(rows: Iterable[QuestionRow], *, renumber: bool) -> dict[str, dict[str, Any]]:
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


def _question_of(key: str, row: QuestionRow) -> dict[str, Any]:
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


def _kinds_of(row: QuestionRow) -> list[tuple[str, LazyText]]:
    kinds = {"name": NAME_KINDS, "email": EMAIL_KINDS}.get(row["key"], KIND_WORDS)
    return list(kinds.items())


def read_rows(value: Any) -> list[QuestionRow]:
    """Return the rows of a form's value, which is JSON if it is the hidden one."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return []
    rows = value if isinstance(value, list) else []
    return [
        {name: str(row.get(name) or "") for name in ROW} | {"position": row.get("position")}
        for row in rows
        if isinstance(row, dict)
    ]


def _normalised(rows: Sequence[QuestionRow]) -> list[list[str]]:
    return [[row[name].replace("\r\n", "\n").strip() for name in ROW] for row in rows]


def _list_of(data: Any, name: str) -> list[str]:
    found = data.getlist(name) if hasattr(data, "getlist") else data.get(name, [])
    return [str(text) for text in found] if isinstance(found, list) else [str(found)]
