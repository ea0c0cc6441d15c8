"""A project's texts in further languages, on its form."""

from typing import Any

import pytest
from django.db import connection
from django.urls import reverse

from availability.models import Project
from common.shipped_languages import shipped_languages
from office.resources import translations_field
from tests.office.conftest import Enter
from tests.office.staff import faults, form_of
from tests.queries import Queries
from tests.world import Tenant

QUESTIONS = {
    "insurance": {"title": "Insurance", "enum": ["Public", "Private"]},
    "email": {"format": "email"},
}
# The inputs of the project, in their order.
TEXTS = {
    "name": 0,
    "what": 1,
    "description": 2,
    "where": 3,
    "submit_button": 4,
    "success_message": 5,
    "insurance": 6,
    "Public": 7,
    "Private": 8,
}
GERMAN = {
    "name": "Kontrolle",
    "description": "Bringen Sie\nIhre Karte mit.",
    "questions": {"insurance": {"title": "Versicherung", "choices": {"Public": "Gesetzlich"}}},
}


@pytest.fixture
def project(tenant: Tenant) -> Any:
    return tenant.make_project(
        customer_fields=QUESTIONS,
        booking={"where": "Quay 5", "description": "Bring your\ncard."},
        translations={"de": GERMAN},
    )


def page_of(project: Any) -> str:
    return reverse("admin:availability_project_change", args=[project["id"]])


def inputs(language: str, **texts: str) -> dict[str, str]:
    return {f"translated_texts-{language}-{TEXTS[name]}": text for name, text in texts.items()}


def stored(project: Any) -> Any:
    return Project.objects.get(pk=project["id"]).translations


def test_form_shows_the_texts_of_each_language(tenant: Tenant, project: Any, enter: Enter) -> None:
    shown = form_of(enter(tenant), page_of(project))

    found = {name: text for name, text in shown.items() if name.startswith("translated_texts-")}
    given = inputs(
        "de",
        name="Kontrolle",
        description="Bringen Sie\nIhre Karte mit.",
        insurance="Versicherung",
        Public="Gesetzlich",
    )
    empty = {
        f"translated_texts-{code}-{number}": ""
        for code in shipped_languages()
        for number in TEXTS.values()
    }
    assert found == empty | given


def test_texts_are_added_changed_and_removed(tenant: Tenant, project: Any, enter: Enter) -> None:
    client, path = enter(tenant), page_of(project)

    given = inputs("de", name="Vorsorge", description="", Public="", Private=" Privat ")
    given |= inputs("fr", where="Quai 5", success_message="Merci\r\nà bientôt")
    answer = client.post(path, form_of(client, path) | given)

    assert answer.status_code == 302, faults(answer)
    assert stored(project) == {
        "de": {
            "name": "Vorsorge",
            "questions": {"insurance": {"title": "Versicherung", "choices": {"Private": "Privat"}}},
        },
        "fr": {"where": "Quai 5", "success_message": "Merci\nà bientôt"},
    }


def test_the_last_text_of_a_language_is_removed(tenant: Tenant, project: Any, enter: Enter) -> None:
    client, path = enter(tenant), page_of(project)

    given = inputs("de", name="", description="", insurance="", Public="")
    client.post(path, form_of(client, path) | given)

    assert stored(project) == {}


def test_an_untouched_form_changes_nothing(tenant: Tenant, project: Any, enter: Enter) -> None:
    client, path = enter(tenant), page_of(project)
    before = tenant.get(f"/projects/{project['id']}").data

    client.post(path, form_of(client, path))

    after = tenant.get(f"/projects/{project['id']}").data
    assert after | {"updated_at": None} == before | {"updated_at": None}


def test_changes_of_a_client_and_texts_that_are_not_shown_stay(
    tenant: Tenant, project: Any, enter: Enter
) -> None:
    """Those of a question that was removed, for one."""
    client, path = enter(tenant), page_of(project)
    shown = form_of(client, path)
    removed = {"removed": {"title": "Entfernt"}}
    changed = {"where": "Kai 5", "questions": removed}
    tenant.put(f"/projects/{project['id']}", {"translations": {"de": changed}})

    client.post(path, shown | inputs("de", name="Vorsorge"))

    assert stored(project) == {
        "de": {
            **GERMAN,
            "name": "Vorsorge",
            "where": "Kai 5",
            "questions": GERMAN["questions"] | removed,
        }
    }


def test_errors_name_language_and_text(tenant: Tenant, project: Any, enter: Enter) -> None:
    client, path = enter(tenant), page_of(project)

    given = inputs("de", name="a" * 201, Public="b\x07") | inputs("fr", description="a" * 8001)
    answer = client.post(path, form_of(client, path) | given)

    long = "Ensure this field has no more than {} characters."
    assert faults(answer) == {
        "translated_texts": [
            f"German, Name: {long.format(200)}",
            "German, Insurance: Public: May not contain control characters or line breaks.",
            f"French, Description: {long.format(8000)}",
        ]
    }
    assert stored(project) == {"de": GERMAN}
    assert f'value="{"a" * 201}"' in answer.content.decode()


@pytest.mark.parametrize("sent", ["", "x", "[]"])
def test_a_cut_off_form_removes_nothing(
    tenant: Tenant, project: Any, enter: Enter, sent: str
) -> None:
    client, path = enter(tenant), page_of(project)

    answers = [
        client.post(path, form_of(client, path) | {"translated_texts": sent}),
        client.post(
            path,
            {
                name: value
                for name, value in form_of(client, path).items()
                if name != "translated_texts-sv-8"
            },
        ),
    ]

    fault = {"translated_texts": ["This page is out of date. Please reload."]}
    assert [faults(answer) for answer in answers] == [fault] * 2
    assert stored(project) == {"de": GERMAN}


def test_the_projects_own_language_is_not_offered(
    tenant: Tenant, project: Any, enter: Enter
) -> None:
    tenant.put(f"/projects/{project['id']}", {"settings": {"language": "en"}})

    answer = enter(tenant).get(page_of(project))

    widget = answer.context["adminform"].form.fields["translated_texts"].widget
    assert widget.languages == [
        *("de", "ar", "es", "fr", "it", "ja", "nl", "pl", "pt-BR", "sv"),
    ]


def test_many_questions_leave_fewer_languages(
    tenant: Tenant, project: Any, enter: Enter, monkeypatch: Any
) -> None:
    tenant.put(f"/projects/{project['id']}", {"translations": {"sv": {"name": "Kontroll"}}})
    client, path = enter(tenant), page_of(project)
    monkeypatch.setattr(translations_field, "MAX_INPUTS", 10)

    shown = form_of(client, path)
    client.post(path, shown | inputs("de", name="Vorsorge"))

    assert {name.split("-")[1] for name in shown if name.startswith("translated_texts-")} == {"de"}
    assert stored(project) == {"de": {**GERMAN, "name": "Vorsorge"}, "sv": {"name": "Kontroll"}}


def test_a_text_that_the_project_does_not_have_is_not_asked_for(
    tenant: Tenant, project: Any, enter: Enter
) -> None:
    """What is stored of it stays."""
    tenant.put(f"/projects/{project['id']}", {"booking": {"description": None, "where": None}})
    client, path = enter(tenant), page_of(project)

    answer = client.get(path)
    client.post(path, form_of(client, path) | {"translated_texts-de-0": "Vorsorge"})

    texts = answer.context["adminform"].form.fields["translated_texts"].widget.texts
    assert [text.label for text in texts] == [
        *("Name", "Title of bookings", "Button", "Message after booking"),
        *("Insurance", "Insurance: Public", "Insurance: Private"),
    ]
    assert stored(project) == {"de": {**GERMAN, "name": "Vorsorge"}}


def test_a_viewer_reads_the_translations(tenant: Tenant, project: Any, enter: Enter) -> None:
    page = enter(tenant, role="viewer").get(page_of(project)).content.decode()

    line = page.partition("German: ")[2].partition("<")[0]
    texts = ["Kontrolle", "Bringen Sie\nIhre Karte mit.", "Versicherung", "Gesetzlich"]
    assert sorted(line.split(" · ")) == sorted(texts)
    assert 'name="translated_texts' not in page


def test_part_is_closed_and_new_projects_do_not_ask(
    tenant: Tenant, project: Any, enter: Enter
) -> None:
    client = enter(tenant)

    page = client.get(page_of(project))
    new = client.get(reverse("admin:availability_project_add"))

    [part] = [part for part in page.context["parts"] if part["id"] == "part-languages"]
    assert (part["fieldset"].is_collapsible, part["more"]) == (True, None)
    assert 'name="translated_texts' not in new.content.decode()


def test_query_count_is_constant(tenant: Tenant, project: Any, enter: Enter) -> None:
    client, path = enter(tenant), page_of(project)
    counts = []
    for texts in ({}, {code: {"name": code} for code in shipped_languages()}):
        tenant.put(f"/projects/{project['id']}", {"translations": texts})
        client.get(path)
        with Queries(connection) as queries:
            client.get(path)
        counts.append(len(queries))

    assert counts[0] == counts[1]
