"""The form field for a project's texts in further languages: one input for each text."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from availability.models import Project
from availability.project_texts import original_texts, translatable
from booking_pages.form_fields import TITLES, has_own_title, ordered_questions, title_of
from bookings.pages.formatting import text_language
from common.api.merge_patch import without_empty
from office.base.api_forms import ShownField
from office.base.form_fields import TemplateWidget
from office.base.labels import language_names
from office.base.lazy_text import LazyText
from office.base.rows_field import HiddenRows

# The texts of a project: label, and whether they have several lines.
TEXTS: Mapping[str, tuple[LazyText, bool]] = {
    "name": (_("Name"), False),
    "what": (_("Title of bookings"), False),
    "description": (_("Description"), True),
    "where": (_("Place"), False),
    "submit_button": (_("Button"), False),
    "success_message": (_("Message after booking"), True),
}
# A form must have fewer fields than DATA_UPLOAD_MAX_NUMBER_FIELDS: of a project with many questions
# only the first languages are shown. Texts that are not shown stay.
MAX_INPUTS = 500

Translations = dict[str, Any]


class Text(NamedTuple):
    """A text to translate: its path in the texts of a language, and the original."""

    path: Sequence[str]
    label: str
    original: str
    has_lines: bool = False


def texts_of(project: Project) -> Iterator[Text]:
    own = original_texts(project)
    for name in translatable(own):
        label, has_lines = TEXTS[name]
        yield Text((name,), str(label), own[name], has_lines)
    for key, question in ordered_questions(project.customer_fields):
        title = title_of(key, question)
        if has_own_title(question) or key not in TITLES:
            yield Text(("questions", key, "title"), title, title)
        choices = question.get("enum")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, str):
                path = ("questions", key, "choices", choice)
                yield Text(path, f"{title}: {choice}", choice)


def languages_of(project: Project) -> list[str]:
    """Return the languages into which the project can be translated, those with texts first."""
    own = text_language(project.app, project.settings.get("language"))
    stored = project.translations
    codes = [code for code in language_names() if code != own or code in stored]
    return sorted(codes, key=lambda code: code not in stored)


class TranslationsWidget(TemplateWidget):
    """Inputs for each language. The field `name` has the languages and the paths that are shown,
    `name-de-0` is the text at the first path.
    """

    template_name = "office/widgets/translations.html"
    texts: Sequence[Text] = ()
    languages: Sequence[str] = ()

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        names, stored = language_names(), _object(value)
        shown = {"languages": self.languages, "paths": [text.path for text in self.texts]}
        own = {
            "shown": json.dumps(shown),
            "languages": [
                {
                    "code": code,
                    "name": names[code],
                    "count": len(list(leaves(stored.get(code)))),
                    "inputs": [
                        (number, text, read_text(stored, (code, *text.path)))
                        for number, text in enumerate(self.texts)
                    ],
                }
                for code in self.languages
            ],
        }
        return super().get_context(name, value, attrs) | own

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Translations | None:
        """Return the texts that were sent; None if the form is cut off."""
        shown = _object(data.get(name))
        if not shown:
            return None
        texts: Translations = {}
        for code in shown.get("languages", ()):
            for number, path in enumerate(shown.get("paths", ())):
                text = data.get(f"{name}-{code}-{number}")
                if text is None:
                    return None
                write_text(texts, (code, *path), text.replace("\r\n", "\n").strip())
        return without_empty(texts)

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return name not in data

    def id_for_label(self, id_: str, index: str | None = None) -> str:
        return ""


class TranslationsField(ShownField):
    """Language -> texts, as in the API, of the texts that are shown."""

    widget: TranslationsWidget
    hidden_widget = HiddenRows

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=False, widget=TranslationsWidget(), **kwargs)

    def show(self, project: Project) -> Translations:
        """Show a project's texts; return the translations among them."""
        texts = list(texts_of(project))
        most = max(1, MAX_INPUTS // len(texts))
        self.widget.texts = texts
        self.widget.languages = list(islice(languages_of(project), most))
        shown: Translations = {}
        for code in self.widget.languages:
            for text in texts:
                path = (code, *text.path)
                write_text(shown, path, read_text(project.translations, path))
        return without_empty(shown)

    def to_python(self, value: Any) -> Translations | None:
        return None if value is None else _object(value)

    def validate(self, value: Translations | None) -> None:
        if value is None:
            raise forms.ValidationError(gettext("This page is out of date. Please reload."))

    def has_changed(self, initial: Any, data: Any) -> bool:
        return data is None or _object(initial) != _object(data)

    def label_of(self, steps: Sequence[str]) -> str:
        """Return `German, Name` for the path of a text."""
        code, *path = steps
        labels = (text.label for text in self.widget.texts if list(text.path) == path)
        return ", ".join(filter(None, [language_names().get(code, code), next(labels, "")]))


def _object(value: Any) -> dict[str, Any]:
    """Return a form's value, which is JSON if it is a hidden one."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def read_text(texts: Any, path: Sequence[str]) -> str:
    for step in path:
        texts = texts.get(step) if isinstance(texts, dict) else None
    return texts if isinstance(texts, str) else ""


def write_text(texts: Translations, path: Sequence[str], text: str) -> None:
    *steps, last = path
    for step in steps:
        texts = texts.setdefault(step, {})
    texts[last] = text


def translation_lines(project: Project) -> list[str]:
    """Return `German: Kontrolle · Praxis am Hafen` for each language."""
    stored = project.translations
    return [
        f"{name}: {' · '.join(leaves(stored[code]))}"
        for code, name in language_names().items()
        if code in stored
    ]


def leaves(texts: Any) -> Iterator[str]:
    """Yield the texts at any depth."""
    if isinstance(texts, dict):
        for each in texts.values():
            yield from leaves(each)
    elif isinstance(texts, str):
        yield texts
