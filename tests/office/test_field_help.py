"""Fields of the set-up forms say what they do and what counts if nothing is entered."""

import pytest
from django import forms

from apps_config.serializers import AppSettingsSerializer
from office.app_settings.admin import AppForm
from office.resources.project_form import NewProjectForm, ProjectForm
from office.resources.resource_form import NewResourceForm, ResourceForm, ScheduleForm

FORMS = (ProjectForm, NewProjectForm, ResourceForm, NewResourceForm, ScheduleForm, AppForm)
# What a row is of, or is called: without it there is no row.
NEEDED = {"app", "name"}
FIELDS = [
    pytest.param(field, id=f"{form.__name__}-{name}")
    for form in FORMS
    for name, field in form.base_fields.items()
    if name not in NEEDED and not (form is AppForm and name == "slug")
]


@pytest.mark.parametrize("field", FIELDS)
def test_help_text_names_the_default(field: forms.Field) -> None:
    choices = [str(text) for _, text in getattr(field, "choices", ())]

    assert "default" in " ".join([str(field.help_text), *choices]).lower()


@pytest.mark.parametrize("name", ["publish_projects", "public_resources"])
def test_help_text_of_a_switch_names_the_default(name: str) -> None:
    words = {True: "Default: on.", False: "Default: off."}

    assert AppForm.base_fields[name].help_text.endswith(
        words[AppSettingsSerializer.defaults()[name]]
    )


@pytest.mark.parametrize(
    ("form", "name"),
    [(ProjectForm, "name"), (ResourceForm, "name"), (ScheduleForm, "name"), (AppForm, "slug")],
)
def test_help_text_of_names(form: type[forms.BaseForm], name: str) -> None:
    assert form.base_fields[name].help_text
