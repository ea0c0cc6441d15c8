"""The texts of a project in the language of their reader."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from availability.models import Project
from common.shipped_languages import find_shipped

# Texts of the page, for which the service has its own. Any other text is only translated if the
# project has it.
WITH_DEFAULT = ("submit_button", "success_message")


class QuestionTexts(NamedTuple):
    """The translated texts of a question: "" or no entry stands for the original."""

    title: str = ""
    choices: Mapping[str, str] = {}


class ProjectTexts(NamedTuple):
    """The texts of a project. `translated`: the names of those that are translations; the others
    are the project's own, "" where it has none. `questions` has translations only.
    """

    name: str
    what: str
    description: str
    where: str
    submit_button: str
    success_message: str
    questions: Mapping[str, QuestionTexts]
    translated: frozenset[str]


def project_texts(project: Project, language: str | None) -> ProjectTexts:
    """Return the project's texts in a language, given by its code in any case. A missing text is
    the project's own. The title of bookings is the name, if the project has no other.
    """
    own = original_texts(project)
    given = project.translations.get(find_shipped(language or ""))
    stored = given if isinstance(given, Mapping) else {}
    translations = {name: text for name in translatable(own) if (text := text_value(stored, name))}
    has_title = bool(text_value(project.booking, "what"))
    if "name" in translations and not has_title:
        translations.setdefault("what", translations["name"])
    return ProjectTexts(
        **{**own, **translations},
        questions=_question_texts(stored.get("questions")),
        translated=frozenset(translations),
    )


def original_texts(project: Project) -> dict[str, str]:
    booking, words = project.booking, project.ui.get("localization")
    words = words if isinstance(words, Mapping) else {}
    return {
        "name": project.name,
        "what": text_value(booking, "what") or project.name,
        **{name: text_value(booking, name) for name in ("description", "where")},
        **{name: text_value(words, name) for name in ("submit_button", "success_message")},
    }


def translatable(own: Mapping[str, str]) -> list[str]:
    """Return the names of the texts that can be translated."""
    return [name for name, text in own.items() if text or name in WITH_DEFAULT]


def _question_texts(stored: Any) -> dict[str, QuestionTexts]:
    found = stored.items() if isinstance(stored, Mapping) else ()
    return {
        key: QuestionTexts(text_value(texts, "title"), _choice_texts(texts.get("choices")))
        for key, texts in found
        if isinstance(texts, Mapping)
    }


def _choice_texts(stored: Any) -> dict[str, str]:
    choices = stored if isinstance(stored, Mapping) else {}
    return {choice: text for choice in choices if (text := text_value(choices, choice))}


def text_value(values: Mapping[str, Any], name: str) -> str:
    """Return the text at `name`; "" for any other type."""
    text = values.get(name)
    return text if isinstance(text, str) else ""
