"""The editor of e-mails: heading and text, from which text and HTML are made."""

from typing import Any

import pytest
from django.urls import reverse

from apps_config.models import Account, App
from notifications.mail import compose_mail
from notifications.models import EmailTemplate
from tests.browser import viewports
from tests.notifications.mails import html_of, make_letter
from tests.office.conftest import Visit
from tests.office.staff import form_of, member, messages_of
from tests.office.test_email_templates import ask, page_of
from tests.office.test_tasks_in_a_browser import KeyboardPerson, Person
from tests.world import Tenant

SLUG = "confirmed_customer"
HEADING, BODY = "See you, {{ name }}", "Dear {{ name }},\n\nplease come early.\nRing <twice>."


def save(tenant: Tenant, **changed: str) -> Any:
    editor = member(tenant.app, "editor")
    form = form_of(editor, page_of(tenant.app))
    return editor.post(page_of(tenant.app), form | changed, follow=True)


def parts_of(answer: Any) -> dict[str, Any]:
    return {part.name: part for part in answer.context["parts"]}


def stored_template() -> EmailTemplate:
    return EmailTemplate.objects.get()


@pytest.mark.django_db
def test_default_template_is_shown_as_heading_and_text(tenant: Tenant) -> None:
    parts = parts_of(member(tenant.app, "viewer").get(page_of(tenant.app)))

    assert list(parts) == ["subject", "heading", "body", "text", "html"]
    assert (parts["heading"].value, parts["body"].value) == (
        "Your booking is confirmed",
        "Hello {{ name }},\n\n"
        "We look forward to seeing you. An invitation for your calendar is attached.",
    )


@pytest.mark.django_db
def test_text_and_html_are_made_from_heading_and_text(tenant: Tenant) -> None:
    default = tenant.get(f"/templates/{SLUG}").data

    answer = save(tenant, heading=HEADING, body=BODY)

    assert messages_of(answer) == ["Saved."]
    assert (
        stored_template().heading,
        stored_template().body,
        stored_template().text,
        stored_template().html,
    ) == (HEADING, BODY, "", "")
    record = tenant.get(f"/templates/{SLUG}").data
    blocks = ["{{ message }}", "{{ details }}", "{{ actions }}", "{{ links }}"]
    assert (record["subject"], record["custom"]) == (default["subject"], True)
    assert record["text"] == "\n\n".join(
        [HEADING, *BODY.split("\n\n"), *blocks, "{{ app }}", "{{ footer }}\n"]
    )
    paragraph, last = "Dear {{ name }},", "please come early.<br>\nRing &lt;twice&gt;."
    sentence = "We look forward to seeing you. An invitation for your calendar is attached."
    heading = "Your booking is confirmed"
    assert record["html"] == (
        default["html"]
        .replace("Hello {{ name }},", paragraph)
        .replace(sentence, last)
        .replace(heading, HEADING)
    )
    preview = ask(member(tenant.app, "viewer"), page_of(tenant.app, SLUG, "preview"), {})
    assert preview.json() == tenant.post(f"/templates/{SLUG}/preview", {}).json


@pytest.mark.django_db
def test_preview_has_what_is_typed(tenant: Tenant) -> None:
    viewer = member(tenant.app, "viewer")

    shown = ask(
        viewer, page_of(tenant.app, SLUG, "preview"), {"heading": HEADING, "body": BODY}
    ).json()["data"]

    assert shown["text"].startswith("See you, Marty McFly\n\nDear Marty McFly,\n\nplease come")
    assert ">See you, Marty McFly</h1>" in shown["html"]
    assert not EmailTemplate.objects.exists()


@pytest.mark.django_db
def test_one_part_leaves_the_others_at_their_default(tenant: Tenant) -> None:
    save(tenant, heading=HEADING)

    parts = parts_of(member(tenant.app, "viewer").get(page_of(tenant.app)))

    assert (stored_template().heading, stored_template().body) == (HEADING, "")
    assert parts["body"].value.startswith("Hello {{ name }},\n\nWe look forward")


@pytest.mark.django_db
def test_own_html_takes_the_place_of_heading_and_text(tenant: Tenant) -> None:
    """By the API or under Advanced; the part that is not given stays as it was."""
    save(tenant, heading=HEADING, body=BODY)
    before = tenant.get(f"/templates/{SLUG}").data

    changed = tenant.put(f"/templates/{SLUG}", {"text": "Own\n"}).data

    assert (changed["text"], changed["html"]) == ("Own\n", before["html"])
    assert (stored_template().heading, stored_template().body, stored_template().html) == (
        "",
        "",
        before["html"],
    )
    page = member(tenant.app, "viewer").get(page_of(tenant.app))
    assert list(parts_of(page)) == ["subject", "text", "html"]
    assert page.context["opens_advanced"] is True


@pytest.mark.django_db
def test_subject_alone_keeps_heading_and_text(tenant: Tenant) -> None:
    save(tenant, heading=HEADING, body=BODY)
    before = tenant.get(f"/templates/{SLUG}").data

    changed = tenant.put(f"/templates/{SLUG}", {"subject": "Hi"}).data

    assert changed == before | {"subject": "Hi", "updated_at": changed["updated_at"]}
    assert (stored_template().heading, stored_template().body) == (HEADING, BODY)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("changed", "faults"),
    [
        ({"body": "{{ details }}"}, {"body": ["{{ details }} is part of the layout."]}),
        ({"heading": "{{ logo }}"}, {"heading": ["{{ logo }} is part of the layout."]}),
        ({"body": "{{ nobody }}"}, {"body": ["{{ nobody }} is not a placeholder."]}),
        (
            {"body": "Hi", "html": "<p>Hi</p>"},
            {"text": ["Change either the heading and text, or the parts under Advanced."]},
        ),
    ],
)
def test_faults_are_at_their_part(
    tenant: Tenant, changed: dict[str, str], faults: dict[str, list[str]]
) -> None:
    parts = parts_of(save(tenant, **changed))

    assert {name: part.faults for name, part in parts.items() if part.faults} == faults
    assert {name: parts[name].value for name in changed} == changed
    assert not EmailTemplate.objects.exists()


def test_text_without_a_name_greets_nobody() -> None:
    letter = make_letter(
        SLUG,
        customer={"name": ""},
        template={"subject": "", "text": "", "html": "", "heading": "Hi", "body": BODY},
    )

    message = compose_mail(letter)

    assert message.body.startswith("Hi\n\nDear,\n\nplease come early.\nRing <twice>.\n\n")
    assert ">Dear,</p>" in html_of(message)


# --- In a browser ---------------------------------------------------------------------------------
def edit_path(app: App) -> str:
    return reverse("admin:notifications_emailtemplate_edit", args=[app.pk, SLUG])


def value(visit: Visit, name: str) -> str:
    return str(visit.page.evaluate(f"document.getElementById({name!r}).value"))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("width", "scheme"), viewports())
def test_variable_goes_to_the_caret(
    visit: Any, office: Tenant, editor: Account, width: int, scheme: str
) -> None:
    opened = visit(editor, edit_path(office.app), width=width, scheme=scheme)
    person = Person(opened)

    person.fill("#heading", "Until ")
    person.click("[data-insert='{{ date }}']")
    opened.page.type("!")
    opened.page.wait_for(
        "document.querySelector('#preview-text').textContent.startsWith('Until Monday, ')"
    )
    person.go("form button.office-primary")

    assert person.actions == 3
    assert value(opened, "heading") == "Until {{ date }}!"
    assert stored_template().heading == "Until {{ date }}!"


@pytest.mark.django_db(transaction=True)
def test_variable_is_inserted_by_the_keyboard(visit: Any, office: Tenant, editor: Account) -> None:
    opened = visit(editor, edit_path(office.app))
    person = KeyboardPerson(opened)

    person.reach("#body")
    opened.page.evaluate(
        "document.getElementById('body').value = 'Bring: , please';"
        "document.getElementById('body').setSelectionRange(7, 7)"
    )
    person.click("[data-insert='{{ what }}']")

    assert opened.page.evaluate("document.activeElement.id") == "body"
    assert value(opened, "body") == "Bring: {{ what }}, please"
