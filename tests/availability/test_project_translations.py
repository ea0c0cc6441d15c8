"""`translations` of projects: their texts in further languages."""

from typing import Any

import pytest

from availability.models import Project
from availability.project_texts import ProjectTexts, QuestionTexts, project_texts
from tests.world import Tenant

pytestmark = pytest.mark.usefixtures("clock")

BLANK = ["This field may not be blank."]
LANGUAGES = ["Must be one of en, ar, de, es, fr, it, ja, nl, pl, pt-BR, sv."]
OBJECT = ["Must be an object."]
GERMAN = {
    "name": "Kontrolle",
    "where": "Praxis am Hafen",
    "questions": {"insurance": {"title": "Versicherung", "choices": {"Public": "Gesetzlich"}}},
}


def long(length: int) -> list[str]:
    return [f"Ensure this field has no more than {length} characters."]


# --- The API --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({}, {"de": GERMAN}),
        ([], {"de": GERMAN}),
        ({"de": None}, {}),
        ({"fr": None, "de": {}}, {"de": GERMAN}),
        (
            {"de": {"name": "Vorsorge", "where": None}},
            {"de": {"name": "Vorsorge", "questions": GERMAN["questions"]}},
        ),
        ({"PT-br": {"name": "Consulta"}}, {"de": GERMAN, "pt-BR": {"name": "Consulta"}}),
        (
            {"de": {"questions": {"insurance": {"title": None, "choices": {"Private": "Privat"}}}}},
            {
                "de": {
                    **GERMAN,
                    "questions": {
                        "insurance": {"choices": {"Public": "Gesetzlich", "Private": "Privat"}}
                    },
                }
            },
        ),
        # What has no text left is not stored.
        (
            {"de": {"questions": {"insurance": {"title": None, "choices": {"Public": None}}}}},
            {"de": {key: GERMAN[key] for key in ("name", "where")}},
        ),
        ({"de": {"name": None, "where": None, "questions": None}}, {}),
        ({"fr": {"name": None, "questions": {"a": None}}}, {"de": GERMAN}),
        # A question that the project does not have, or has no more.
        (
            {"fr": {"questions": {"other": {"title": "Autre"}}}},
            {"de": GERMAN, "fr": {"questions": {"other": {"title": "Autre"}}}},
        ),
    ],
)
def test_a_change_is_merged(tenant: Tenant, given: Any, stored: dict[str, Any]) -> None:
    made = tenant.post_project(translations={"de": GERMAN})

    answer = tenant.put(f"/projects/{made['id']}", {"translations": given})

    assert (answer.status, answer.data) == (200, {**made, "translations": stored})
    assert tenant.get(f"/projects/{made['id']}").data == answer.data


@pytest.mark.parametrize(
    ("given", "errors"),
    [
        (None, {"translations": ["This field may not be null."]}),
        ("de", {"translations": OBJECT}),
        (["de"], {"translations": OBJECT}),
        (
            {"xx": {"name": "A"}, "de-AT": {}},
            {
                "translations.xx": LANGUAGES,
                "translations.de-AT": LANGUAGES,
            },
        ),
        ({"de": "Kontrolle"}, {"translations.de": OBJECT}),
        (
            {"de": {"name": "", "what": "a\nb", "description": "a" * 8001, "where": "a" * 201}},
            {
                "translations.de.name": BLANK,
                "translations.de.what": ["May not contain control characters or line breaks."],
                "translations.de.description": long(8000),
                "translations.de.where": long(200),
            },
        ),
        (
            {"de": {"submit_button": "a" * 201, "success_message": "a" * 8001, "questions": "x"}},
            {
                "translations.de.submit_button": long(200),
                "translations.de.success_message": long(8000),
                "translations.de.questions": OBJECT,
            },
        ),
        (
            {"de": {"questions": {"a": "x", "b": {"title": "a" * 201, "choices": ["A"]}}}},
            {
                "translations.de.questions.a": OBJECT,
                "translations.de.questions.b.title": long(200),
                "translations.de.questions.b.choices": OBJECT,
            },
        ),
        (
            {"de": {"questions": {"b": {"choices": {"Public": 5, "a" * 201: "x"}}}}},
            {
                "translations.de.questions.b.choices.Public": ["Must be a string."],
                f"translations.de.questions.b.choices.{'a' * 201}": long(200),
            },
        ),
        (
            {"de": {"questions": {f"a{number}": {} for number in range(51)}}},
            {"translations.de.questions": ["Must have at most 50 keys."]},
        ),
    ],
)
def test_wrong_translations_are_refused(
    tenant: Tenant, given: Any, errors: dict[str, list[str]]
) -> None:
    made = tenant.post_project()

    answers = [
        tenant.post("/projects", {"name": "New", "translations": given}),
        tenant.put(f"/projects/{made['id']}", {"translations": given}),
    ]

    assert [(answer.status, answer.json["errors"]) for answer in answers] == [(422, errors)] * 2
    assert tenant.get("/projects").data == [made]


def test_questions_of_a_language_are_limited_after_merging(tenant: Tenant) -> None:
    def texts(prefix: str, count: int, title: str = "A") -> dict[str, Any]:
        return {"de": {"questions": {f"{prefix}{n}": {"title": title} for n in range(count)}}}

    made = tenant.post_project(translations=texts("a", 30))

    answers = [
        tenant.put(f"/projects/{made['id']}", {"translations": given})
        for given in (texts("b", 30), texts("a", 30, "A" * 200), {"fr": texts("c", 30)["de"]})
    ]

    assert [(answer.status, answer.json.get("errors")) for answer in answers] == [
        (422, {"translations.de.questions": ["Must have at most 50 keys."]}),
        (200, None),
        (200, None),
    ]


def test_a_project_is_made_with_translations(tenant: Tenant) -> None:
    given = {
        "de": {**GERMAN, "what": None},
        "fr": None,
        "sv": {"questions": {"a": {"title": None}}},
    }

    answer = tenant.post("/projects", {"name": "New", "translations": given})

    assert (answer.status, answer.data["translations"]) == (201, {"de": GERMAN})


def test_a_viewer_reads_translations_and_does_not_write_them(tenant: Tenant) -> None:
    made = tenant.post_project(translations={"de": GERMAN})
    viewer = tenant.member("ada@example.com", "viewer")

    answer = viewer.put(f"/projects/{made['id']}", {"translations": {"de": None}})

    assert answer.status == 403
    assert viewer.get(f"/projects/{made['id']}").data == made


# --- The texts in a language ----------------------------------------------------------------------
OWN = {
    "name": "Check-up",
    "booking": {"what": "Your check-up", "where": "Harbour Dental"},
    "customer_fields": {"insurance": {"title": "Insurance", "enum": ["Public", "Private"]}},
    "ui": {"localization": {"submit_button": "Book now"}},
    "translations": {"de": GERMAN, "pt-BR": {"what": "Sua consulta"}},
}
ORIGINAL = ProjectTexts(
    name="Check-up",
    what="Your check-up",
    description="",
    where="Harbour Dental",
    submit_button="Book now",
    success_message="",
    questions={},
    translated=frozenset(),
)


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("en", ORIGINAL),
        ("fr", ORIGINAL),
        (None, ORIGINAL),
        (
            "de",
            ORIGINAL._replace(
                name="Kontrolle",
                where="Praxis am Hafen",
                questions={"insurance": QuestionTexts("Versicherung", {"Public": "Gesetzlich"})},
                translated=frozenset({"name", "where"}),
            ),
        ),
        ("pt-br", ORIGINAL._replace(what="Sua consulta", translated=frozenset({"what"}))),
    ],
)
def test_a_missing_text_is_the_projects_own(language: str | None, expected: ProjectTexts) -> None:
    assert project_texts(Project(**OWN), language) == expected


def test_the_name_is_the_title_of_bookings_without_one() -> None:
    project = Project(**{**OWN, "booking": {}})

    texts = project_texts(project, "de")

    assert (texts.what, texts.translated) == ("Kontrolle", frozenset({"name", "what"}))


def test_a_text_that_the_project_does_not_have_is_not_translated() -> None:
    """Those of the button and the message replace the service's own."""
    stored = {"description": "Karte", "where": "Kai 5", "success_message": "Bis bald"}
    project = Project(name="Check-up", translations={"de": stored})

    texts = project_texts(project, "de")

    assert (texts.description, texts.where, texts.success_message) == ("", "", "Bis bald")
    assert texts.translated == frozenset({"success_message"})


@pytest.mark.parametrize(
    "stored",
    [
        {"de": "x"},
        {"de": {"name": 5, "questions": "x", "where": ["x"]}},
        {"de": {"questions": {"insurance": "x"}}},
    ],
)
def test_malformed_translations_are_ignored(stored: Any) -> None:
    assert project_texts(Project(**{**OWN, "translations": stored}), "de") == ORIGINAL


def test_malformed_texts_of_questions_are_ignored() -> None:
    stored = {"de": {"questions": {"insurance": {"title": 5, "choices": {"Public": None}}}}}

    texts = project_texts(Project(**{**OWN, "translations": stored}), "de")

    assert texts == ORIGINAL._replace(questions={"insurance": QuestionTexts()})
