"""The fields of a booking form, from a project's `customer_fields`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from availability.project_texts import QuestionTexts
from availability.serializers.projects import MAX_POSITION
from bookings.booking_input import NOT_ASKED
from bookings.pages.formatting import to_one_line
from common.api.merge_patch import merge_keys

# format -> (HTML element, input type)
KINDS: Mapping[str, tuple[str, str]] = {
    "email": ("input", "email"),
    "tel": ("input", "tel"),
    "phone": ("input", "tel"),
    "telephone": ("input", "tel"),
    "url": ("input", "url"),
    "number": ("input", "number"),
    "integer": ("input", "number"),
    "date": ("input", "date"),
    "textarea": ("textarea", ""),
    "checkbox": ("checkbox", "checkbox"),
    "boolean": ("checkbox", "checkbox"),
    "select": ("select", ""),
}
# Required for every booking, whatever the project says.
NEEDED: Mapping[str, Any] = {"name": {"required": True}, "email": {"required": True}}
TITLES: Mapping[str, str | Promise] = {
    "name": pgettext_lazy("of a person", "Name"),
    "email": _("E-mail"),
    "phone": _("Phone"),
}
USUAL_FORMATS = {"email": "email", "phone": "tel", "comment": "textarea", "voip": "string"}
# key -> autocomplete token
AUTOCOMPLETE: Mapping[str, str] = {
    "name": "name",
    "first_name": "given-name",
    "last_name": "family-name",
    "email": "email",
    "phone": "tel",
    "company": "organization",
    "organization": "organization",
    "address": "street-address",
    "street": "street-address",
    "city": "address-level2",
    "zip": "postal-code",
    "postal_code": "postal-code",
    "country": "country-name",
}
FIRST = ("name", "first_name", "last_name", "email", "phone")
LENGTHS = {"name": 200, "email": 254, "phone": 200, "voip": 200}
MAX_FIELDS = 2000


class FormField(NamedTuple):
    """One field of the form. A readonly one shows the project's prefilled value.

    choice_texts: the translated choices, by the choice that is sent. error: of what was typed.
    """

    id: str
    key: str
    title: str
    is_own: bool  # whether the title is the project's, not one of ours
    is_translated: bool  # whether it is in the language of the page
    element: str  # input, textarea, select or checkbox
    type: str
    autocomplete: str
    required: bool
    readonly: bool
    value: Any
    choices: Sequence[str]
    choice_texts: Mapping[str, str]
    length: int
    error: str | Promise = ""

    @property
    def options(self) -> list[tuple[str, str]]:
        """Return each choice and its translation; "" if it has none."""
        return [(choice, self.choice_texts.get(choice, "")) for choice in self.choices]


def form_fields(
    questions: Mapping[str, Any], translations: Mapping[str, QuestionTexts] | None = None
) -> list[FormField]:
    """Return the fields in the order of `ordered_questions`. translations: the texts of questions
    in the language of the page, by key.
    """
    texts = translations or {}
    fields = [
        field
        for key, question in ordered_questions(questions)
        for field in _fields(key, question, texts.get(key, QuestionTexts()))
    ]
    return [field._replace(id=f"field-{number}") for number, field in enumerate(fields, start=1)]


def ordered_questions(questions: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return key and question by `position`. Without one: name and contact data come first, others
    last, checkboxes after all (PostgreSQL does not keep the order of an object's keys).
    """
    extra_questions = [
        (key, question)
        for key, question in merge_keys(NEEDED, questions).items()
        if key not in NOT_ASKED and isinstance(question, Mapping)
    ]
    return sorted(extra_questions, key=lambda item: _place(*item))


def _place(key: str, question: Mapping[str, Any]) -> tuple[int, int, bool]:
    rank = FIRST.index(key) if key in FIRST else len(FIRST)
    is_checkbox = element_of(key, question)[0] == "checkbox"
    position = question.get("position")
    if type(position) is int:
        return position, rank, is_checkbox
    return (-1 if key in FIRST else MAX_POSITION + 1), rank, is_checkbox


def element_of(key: str, question: Mapping[str, Any]) -> tuple[str, str]:
    """Return the HTML element of a question without choices, and its input type."""
    question_format = str(question.get("format") or USUAL_FORMATS.get(key, "string")).lower()
    return KINDS.get(question_format, ("input", "text"))


def title_of(key: str, question: Mapping[str, Any]) -> str:
    usual = TITLES.get(key, key.replace("_", " "))
    return to_one_line(str(question["title"] if has_own_title(question) else usual))


def has_own_title(question: Mapping[str, Any]) -> bool:
    title = question.get("title")
    return isinstance(title, str) and bool(title)


def _fields(key: str, question: Mapping[str, Any], texts: QuestionTexts) -> Iterable[FormField]:
    field = _field(key, question, texts)
    if key == "name" and question.get("split_name"):
        yield from _split_name(field)
    else:
        yield field


def _field(key: str, question: Mapping[str, Any], texts: QuestionTexts) -> FormField:
    element, kind = element_of(key, question)
    enum = question.get("enum")
    choices = (
        [choice for choice in enum if isinstance(choice, str)] if isinstance(enum, list) else []
    )
    if choices:
        element = "select"
    elif element == "select":
        element, kind = "input", "text"
    value = _prefilled(question.get("prefilled"), element)
    return FormField(
        id="",
        key=key,
        title=to_one_line(texts.title) or title_of(key, question),
        is_own=has_own_title(question),
        is_translated=bool(texts.title),
        element=element,
        type=kind,
        autocomplete=AUTOCOMPLETE.get(key, ""),
        required=bool(question.get("required")) or key in NEEDED,
        readonly=bool(question.get("readonly")) and value not in ("", False),
        value=value,
        choices=choices,
        choice_texts=texts.choices,
        length=LENGTHS.get(key, MAX_FIELDS),
    )


def _prefilled(value: Any, element: str) -> Any:
    if element == "checkbox":
        return value in (True, "true", "1", 1, "yes", "on")
    return "" if value is None or isinstance(value, bool | dict | list) else str(value)


def _split_name(field: FormField) -> Iterable[FormField]:
    first, _, last = field.value.partition(" ")
    yield field._replace(
        title=gettext("First name"),
        is_own=False,
        is_translated=False,
        autocomplete="given-name",
        value=first,
        length=99,
    )
    yield field._replace(
        title=gettext("Last name"),
        is_own=False,
        is_translated=False,
        autocomplete="family-name",
        value=last,
        length=99,
    )
