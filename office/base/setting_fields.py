"""Form fields of settings.

A serializer of the API has type, bounds, choices and default; a form adds the part of the page and
the words:

    setting = partial(setting_field, AppSettingsSerializer, "settings")

    class AppForm(ApiForm):
        from_name = setting("from_name", EMAILS, _("Sender's name"), _("Default: none."))
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, cast

from django import forms
from django.utils.translation import gettext
from rest_framework import serializers
from unfold.decorators import display
from unfold.widgets import (
    UnfoldAdminEmailInputWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from common.api import fields as api
from office.base.api_forms import ApiForm, ShownField
from office.base.form_fields import (
    DurationField,
    DurationListField,
    LinesField,
    SecondsField,
    ZoneField,
    value_words,
)
from office.base.labels import language_names
from office.base.lazy_text import LazyText

# Choices of settings that are true or false.
YES, NO = "yes", "no"


class SwitchField(ShownField, forms.BooleanField):
    """A switch. `is_inverted`: the setting is true where the switch is off."""

    def __init__(self, *, default: bool, is_inverted: bool, **options: Any) -> None:
        super().__init__(
            initial=default is not is_inverted, widget=UnfoldBooleanSwitchWidget, **options
        )
        self.is_inverted = is_inverted

    def shown_value(self, stored: Any) -> Any:
        return stored is not self.is_inverted if isinstance(stored, bool) else self.initial

    def sent_value(self, value: Any) -> Any:
        return value is not self.is_inverted


class SettingChoiceField(ShownField, forms.ChoiceField):
    """A setting with few values. A stored value that has no words is shown as unknown.

    words: value -> its words, in order; "" stands for the default, and is shown for it.
    """

    def __init__(
        self, field: serializers.Field, words: Mapping[Any, LazyText], **options: Any
    ) -> None:
        offered = words if isinstance(field, api.LanguageField) else known_words(field, words)
        self.values = {_choice(value): value for value in offered if value != ""}
        self.default = _choice(field.initial)
        choices: Any = [(_choice(value), text) for value, text in offered.items()]
        if isinstance(field, api.LanguageField):
            first = choices
            choices = lambda: [*first, *language_names().items()]  # noqa: E731
        initial = "" if "" in words else self.default
        options = {"widget": UnfoldAdminSelectWidget, "initial": initial, **options}
        super().__init__(choices=choices, **options)

    def shown_value(self, stored: Any) -> str:
        text, known = _choice(stored), dict(cast(Any, self.choices))
        if text in known:
            return text
        if text == self.default and "" in known:
            return ""
        unknown = gettext("%(value)s (unknown)") % {"value": text}
        self.choices = [*known.items(), (text, unknown)]
        return text

    def sent_value(self, value: str) -> Any:
        return self.values.get(value, value or None)


def _choice(value: Any) -> str:
    """Return the text in the form for a value of the API."""
    if isinstance(value, bool):
        return YES if value else NO
    return "" if value is None else str(value)


def known_words(field: serializers.Field, words: Mapping[Any, LazyText]) -> dict[Any, LazyText]:
    """Return the values that a form offers; numbers are their own words. Raises ValueError for a
    value that the setting can't have.
    """
    if isinstance(field, api.FewField):
        numbers = field.numbers
        return {**words, **{each: str(each) for each in numbers if each != field.initial}}
    is_switch = isinstance(field, serializers.BooleanField)
    values = (True, False) if is_switch else tuple(getattr(field, "choices", words))
    if wrong := [value for value in words if value not in ("", *values)]:
        raise ValueError(f"{field.field_name} can't be {wrong}")
    return dict(words)


class ListSettingField(LinesField):
    """A list of texts; an empty one removes the setting."""

    def sent_value(self, value: str) -> Any:
        return super().sent_value(value) or None


class TextSettingField(ShownField, forms.CharField):
    """One text. A stored value of another type is shown as empty."""

    def shown_value(self, stored: Any) -> str:
        return stored if isinstance(stored, str) else ""


class NumberSettingField(ShownField, forms.IntegerField):
    """A whole number. A stored value of another type is shown as empty."""

    def shown_value(self, stored: Any) -> Any:
        return stored if type(stored) is int else None


class ZoneSettingField(ShownField, ZoneField):
    """A time zone, shown by its current name."""

    def shown_value(self, stored: Any) -> Any:
        return self.prepare_value(stored) if isinstance(stored, str) else ""


@cache
def fields_of(serializer: type[serializers.Serializer]) -> Mapping[str, serializers.Field]:
    return serializer().fields


def setting_field(
    serializer: type[serializers.Serializer],
    place: str,
    name: str,
    part: LazyText | None,
    label: LazyText,
    help_text: LazyText = "",
    **options: Any,
) -> Any:
    """Return the form field of a setting.

    place: the key of the body with the serializer's object; "" for the body itself. part: the
    heading of its part of the page; None: the page places it. options: those of the form field,
    such as the `units` of a duration or the words of `choices`.
    """
    field = fields_of(serializer)[name]
    made: Any = make_field(field, options | {"label": label, "help_text": help_text})
    made.path = f"{place}.{name}" if place else name
    made.part = part
    return made


def make_field(field: serializers.Field, options: dict[str, Any]) -> forms.Field:
    """Return the form field for a field of the API."""
    if "choices" in options:
        words = options.pop("choices")
        return SettingChoiceField(field, words, required=False, **options)
    if isinstance(field, serializers.BooleanField):
        is_inverted = options.pop("is_inverted", False)
        default = bool(field.initial)
        return SwitchField(default=default, is_inverted=is_inverted, required=False, **options)
    if isinstance(field, api.SecondsField):
        return SecondsField(**options)
    if isinstance(field, serializers.IntegerField):
        return NumberSettingField(
            min_value=field.min_value,
            max_value=field.max_value,
            required=False,
            widget=UnfoldAdminIntegerFieldWidget,
            **options,
        )
    if isinstance(field, serializers.ListField):
        is_durations = isinstance(field.child, api.DurationField)
        return DurationListField(**options) if is_durations else ListSettingField(**options)
    if isinstance(field, api.ZoneField):
        return ZoneSettingField(required=False, **options)
    return make_text_field(field, options)


def make_text_field(field: serializers.Field, options: dict[str, Any]) -> forms.Field:
    """Return the form field for a text: a duration or a moment, lines, or one line."""
    if not isinstance(field, serializers.CharField):
        return DurationField(**options)
    if isinstance(field, api.TextField):
        widget: Any = UnfoldAdminTextareaWidget
    elif isinstance(field, api.EmailField):
        widget = UnfoldAdminEmailInputWidget
    else:
        widget = UnfoldAdminTextInputWidget
    return TextSettingField(**{"required": False, "widget": widget, **options})


def names_of_part(form: type[ApiForm], part: LazyText) -> tuple[str, ...]:
    """Return the names of the part's settings, in the order of the form."""
    fields = form.base_fields.items()
    return tuple(name for name, field in fields if getattr(field, "part", None) is part)


def show_fields(admin: type, form: type[ApiForm], names: Iterable[str]) -> None:
    """Give the admin the display functions of a form's fields, for accounts that may not change
    the row.
    """
    for name in names:
        setattr(admin, name, _shown_field(form, name))


def _shown_field(form: type[ApiForm], name: str) -> Callable[..., str]:
    @display(description=form.base_fields[name].label)
    def show(self: Any, row: Any) -> str:
        shown = shown_form(form, row)
        field = shown.fields[name]
        return value_words(field, shown.get_initial_for_field(field, name))

    return show


def shown_form(form: type[ApiForm], row: Any) -> ApiForm:
    """Return the form that all fields of a page read: it runs queries."""
    cached = vars(row)
    if "shown_form" not in cached:
        cached["shown_form"] = form(instance=row)
    return cached["shown_form"]
