"""Answers to the questions of a project's booking form: shown, and as fields of forms."""

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from availability.models import Project
from booking_pages.form_fields import FormField, form_fields, title_of

# Every form of a customer has them.
CONTACT = ("name", "email", "phone")
INPUT = {"class": "office-input", "autocomplete": "off"}
TEXTAREA, CHECKBOX, SELECT = "textarea", "checkbox", "select"


def questions_of(project: Project | None) -> Mapping[str, Any]:
    """Return the questions by key, as far as they are well-formed."""
    questions = project.customer_fields if project else {}
    found = questions.items() if isinstance(questions, Mapping) else ()
    return {key: question for key, question in found if isinstance(question, Mapping)}


def project_questions(project: Project | None) -> list[FormField]:
    """Return the project's questions in their order, without those for name and contact data."""
    return [field for field in form_fields(questions_of(project)) if field.key not in CONTACT]


def labelled_values(meta: Any, project: Project | None = None) -> list[tuple[str, str]]:
    """Return the texts, numbers and answers of custom data, each with the question that it answers,
    in the order of the questions; without a question, with its key in words.
    """
    values = meta if isinstance(meta, dict) else {}
    questions = questions_of(project)
    asked = [field.key for field in project_questions(project) if field.key in values]
    words = {True: gettext("yes"), False: gettext("no")}
    shown = [
        (key, values[key])
        for key in dict.fromkeys([*asked, *values])
        if isinstance(values[key], str | int | float | bool)
    ]
    return [
        (
            title_of(key, questions[key])
            if key in questions
            else key.replace("_", " ").capitalize(),
            words[value] if isinstance(value, bool) else str(value),
        )
        for key, value in shown
    ]


def answer_field(question: FormField, value: Any) -> forms.Field:
    """Return the form field of a question with its present answer."""
    given: dict[str, Any] = {
        "label": question.title,
        "required": False,
        "initial": value,
        "show_hidden_initial": True,
    }
    if question.element == CHECKBOX:
        return forms.BooleanField(**given)
    if question.element == SELECT:
        # An answer that is no choice any more stays one.
        known = dict.fromkeys(["", *question.choices, *([value] if value else [])])
        choices = [(choice, choice or _("No answer")) for choice in known]
        return forms.ChoiceField(**given, choices=choices, widget=forms.Select(INPUT))
    if question.element == TEXTAREA:
        widget: forms.Widget = forms.Textarea(INPUT | {"rows": 3})
    else:
        widget = forms.TextInput(INPUT | {"type": question.type})
    return forms.CharField(**given, max_length=question.length, strip=False, widget=widget)


def question_records(questions: Iterable[FormField]) -> list[dict[str, Any]]:
    """Return what the script of a new booking makes fields of."""
    names = ("key", "title", "element", "type", "choices", "length", "value")
    return [{name: getattr(question, name) for name in names} for question in questions]
