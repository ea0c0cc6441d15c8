"""Form fields that derive from the API's serializers."""

from typing import Any

import pytest
from django import forms
from rest_framework import serializers

from common.api.fields import (
    BoundedIntegerField,
    DurationField,
    EmailField,
    FewField,
    LanguageField,
    ListOf,
    OneLineField,
    SecondsField,
    StrictBooleanField,
    TextField,
    ZoneField,
)
from common.api.serializers import ObjectSerializer
from office.base import form_fields, setting_fields
from office.base.api_forms import ApiForm, setting_paths
from office.base.labels import language_names
from office.base.setting_fields import make_field, names_of_part, setting_field


class RoomSerializer(ObjectSerializer):
    greeting = OneLineField(50)
    seats = FewField(0, 3, initial=1)
    dark = StrictBooleanField(initial=False)
    edits = serializers.ChoiceField(["warn", "follow"], initial="warn")


DOOR, INSIDE = "Door", "Inside"


class RoomForm(ApiForm):
    greeting = setting_field(RoomSerializer, "settings", "greeting", DOOR, "Greeting", "Said.")
    seats = setting_field(RoomSerializer, "", "seats", INSIDE, "Seats", choices={"": "One"})
    dark = setting_field(RoomSerializer, "settings", "dark", INSIDE, "Light", is_inverted=True)


def test_setting_has_its_words_path_and_part() -> None:
    fields = RoomForm.base_fields

    assert fields["greeting"].label == "Greeting"
    assert fields["greeting"].help_text == "Said."
    assert setting_paths(fields) == {
        "greeting": "settings.greeting",
        "seats": "seats",
        "dark": "settings.dark",
    }
    assert names_of_part(RoomForm, DOOR) == ("greeting",)
    assert names_of_part(RoomForm, INSIDE) == ("seats", "dark")


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        (OneLineField(50), setting_fields.TextSettingField),
        (TextField(50), setting_fields.TextSettingField),
        (EmailField(), setting_fields.TextSettingField),
        (StrictBooleanField(), setting_fields.SwitchField),
        (BoundedIntegerField(0, 9), setting_fields.NumberSettingField),
        (SecondsField(60, 3600), form_fields.SecondsField),
        (ZoneField(), setting_fields.ZoneSettingField),
        (DurationField(), form_fields.DurationField),
        (ListOf(OneLineField(50), 3), setting_fields.ListSettingField),
        (ListOf(DurationField(), 3), form_fields.DurationListField),
    ],
)
def test_type_of_the_form_field(field: serializers.Field, expected: type[forms.Field]) -> None:
    assert type(make_field(field, {})) is expected


def test_number_has_the_bounds_of_the_serializer() -> None:
    field: Any = make_field(BoundedIntegerField(1, 9), {})

    assert (field.min_value, field.max_value) == (1, 9)


@pytest.mark.parametrize(
    ("field", "stored", "shown"),
    [
        (OneLineField(50), "Welcome", "Welcome"),
        (OneLineField(50), 5, ""),
        (BoundedIntegerField(0, 9), 5, 5),
        (BoundedIntegerField(0, 9), True, None),
        (BoundedIntegerField(0, 9), "5", None),
        (ZoneField(), "Asia/Calcutta", "Asia/Kolkata"),
        (ZoneField(), 5, ""),
        (ListOf(OneLineField(50), 3), ["a", "b"], "a\nb"),
        (ListOf(OneLineField(50), 3), "a", ""),
        (StrictBooleanField(initial=True), False, False),
        (StrictBooleanField(initial=True), None, True),
    ],
)
def test_shown_value(field: serializers.Field, stored: Any, shown: Any) -> None:
    made: Any = make_field(field, {})

    assert made.shown_value(stored) == shown


@pytest.mark.parametrize(("stored", "shown"), [(True, False), (False, True), (None, True)])
def test_inverted_switch_is_on_where_the_setting_is_false(stored: Any, shown: bool) -> None:
    switch: Any = make_field(StrictBooleanField(initial=False), {"is_inverted": True})

    assert switch.shown_value(stored) is shown
    assert switch.sent_value(shown) is bool(stored)


def test_empty_list_removes_the_setting() -> None:
    field: Any = make_field(ListOf(OneLineField(50), 3), {})

    assert [field.sent_value(text) for text in ("a\nb", "")] == [["a", "b"], None]


EDITS = serializers.ChoiceField(["warn", "follow"], initial="warn")


@pytest.mark.parametrize(
    ("stored", "shown", "more"),
    [
        (None, "", []),
        ("warn", "warn", []),
        ("follow", "follow", []),
        ("ignore", "ignore", [("ignore", "ignore (unknown)")]),
        (5, "5", [("5", "5 (unknown)")]),
    ],
)
def test_choice_shows_an_unknown_value(stored: Any, shown: str, more: list[Any]) -> None:
    known = {"": "Warn (default)", "warn": "Warn", "follow": "Follow"}
    field: Any = make_field(EDITS, {"choices": known})

    assert field.shown_value(stored) == shown
    assert list(field.choices) == [*known.items(), *more]
    assert field.sent_value(shown) == (shown or None)


def test_default_without_words_is_the_empty_choice() -> None:
    field: Any = make_field(EDITS, {"choices": {"": "Warn (default)", "follow": "Follow"}})

    assert field.shown_value("warn") == ""
    assert field.sent_value("") is None


def test_few_numbers_are_choices_except_the_default() -> None:
    field: Any = make_field(FewField(0, 3, initial=1), {"choices": {"": "1 (default)"}})

    assert list(field.choices) == [("", "1 (default)"), ("0", "0"), ("2", "2"), ("3", "3")]
    assert [field.sent_value(text) for text in ("", "0", "3")] == [None, 0, 3]


def test_switch_with_words_is_a_choice() -> None:
    words = {"": "As the app", True: "Yes", False: "No"}
    field: Any = make_field(StrictBooleanField(), {"choices": words})

    assert list(field.choices) == [("", "As the app"), ("yes", "Yes"), ("no", "No")]
    assert [field.sent_value(text) for text in ("", "yes", "no")] == [None, True, False]


def test_languages_are_choices() -> None:
    field: Any = make_field(LanguageField(), {"choices": {"": "English (default)"}})

    assert list(field.choices) == [("", "English (default)"), *language_names().items()]


def test_words_for_an_impossible_value_are_refused() -> None:
    with pytest.raises(ValueError, match=r"can't be \['ignore'\]"):
        setting_field(RoomSerializer, "", "edits", None, "Edits", choices={"ignore": "Ignore"})
