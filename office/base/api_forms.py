"""Forms whose values are checked by the API's serializers and saved by services."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, cast

from django import forms
from rest_framework import serializers
from unfold.widgets import UnfoldBooleanSwitchWidget

from common.api.json_parser import parse_body
from common.errors import Refusal


class JsonField(forms.JSONField):
    """JSON, parsed as by the API; errors name their position."""

    def to_python(self, value: Any) -> Any:
        if not isinstance(value, str) or not value.strip():
            return super().to_python(value)
        try:
            return parse_body(value.encode("utf-8", "surrogatepass"))
        except Refusal as refusal:
            message = refusal.message.replace("The body", "This", 1)
            raise forms.ValidationError(message) from refusal


def choice_field(form: forms.BaseForm, name: str) -> forms.ChoiceField:
    return cast(forms.ChoiceField, form.fields[name])


def switch_field(label: str, help_text: str) -> forms.BooleanField:
    return forms.BooleanField(
        label=label,
        help_text=help_text,
        required=False,
        widget=UnfoldBooleanSwitchWidget,
        show_hidden_initial=True,
    )


class CheckedForm(forms.BaseForm):
    """Form checked by an API serializer. `given`: the validated data, for the service.

    `field_of`: API field -> form field, if they differ.
    """

    field_of: ClassVar[Mapping[str, str]] = {}
    given: Mapping[str, Any]

    def check(self, serializer: serializers.Serializer) -> None:
        self.given = serializer.validated_data if serializer.is_valid() else {}
        self.add_faults(serializer.errors)

    def add_faults(self, faults: Mapping[str, Any]) -> None:
        """Add each error to its field, unless the field already has one."""
        for name, found in faults.items():
            field = self.field_of.get(name, name)
            if field not in self.errors:
                self.add_error(field if field in self.fields else None, self.sentences(found))

    def sentences(self, faults: Any) -> list[str]:
        """Return the error texts of one field, without their paths within the value."""
        return list(_leaves(faults))


class ChangesForm(CheckedForm, forms.ModelForm):
    """Form checked as by the API. The shown values return with the form: only changes are saved.

    `sent`: the fields that the serializer checks.
    """

    sent: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in self.fields.keys() & set(self.sent):
            self.fields[name].show_hidden_initial = True

    @property
    def is_new(self) -> bool:
        return self.instance._state.adding

    def body(self) -> dict[str, Any]:
        """Return the API's request body: all values for a new row, else the changed ones."""
        given = self.cleaned_data
        names = [name for name in self.sent if name in given]
        body = {name: given[name] for name in names if self.is_new or name in self.changed_data}
        if "description" in body:
            body["description"] = body["description"].replace("\r\n", "\n")
        return body


class ApiForm(forms.ModelForm):
    """Form checked by an API serializer, with its errors at the fields. `given`: the changes.

    The shown values return with the form: only values changed here are saved, of objects only the
    changed keys, so concurrent changes by clients stay.
    """

    serializer_class: ClassVar[type[serializers.Serializer]]
    # JSON objects with known keys, and free-form ones.
    objects: ClassVar[tuple[str, ...]] = ()
    free_objects: ClassVar[tuple[str, ...]] = ()
    # Texts that are null if empty.
    nullable: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.given: dict[str, Any] = {}
        known = self.serializer_class().fields
        for name in self.fields.keys() & known.keys():
            self.fields[name].show_hidden_initial = True

    def clean(self) -> dict[str, Any]:
        super().clean()
        values = self.cleaned_data
        is_new = self.instance._state.adding
        serializer_fields = self.serializer_class().fields
        names = [name for name in self.fields if name in serializer_fields and name in values]
        body = {
            name: self._as_sent(name, values[name])
            for name in names
            if name in self.changed_data or (is_new and values[name] not in ("", None))
        }
        self._refuse_unknown_keys(body, serializer_fields)
        serializer = self.serializer_class(data=body)
        if serializer.is_valid():
            self.given = {
                name: self._changes(name, value)
                for name, value in serializer.validated_data.items()
            }
        else:
            for name, faults in serializer.errors.items():
                self.add_error(name, list(_sentences(faults)))
        return values

    def _as_sent(self, name: str, value: Any) -> Any:
        if name in (*self.objects, *self.free_objects):
            return {} if value in ("", None) else value
        return None if name in self.nullable and value == "" else value

    def _refuse_unknown_keys(self, body: dict[str, Any], fields: Mapping[str, Any]) -> None:
        """Add errors for unknown keys, which the API ignores."""
        for name in self.objects:
            if isinstance(body.get(name), dict):
                unknown = [key for key in body[name] if key not in fields[name].fields]
                if unknown:
                    self.add_error(name, [f"{key}: Is not known." for key in unknown])
                    del body[name]

    def _changes(self, name: str, value: Any) -> Any:
        """Return the merge patch of an object from the shown value; other values unchanged."""
        if name not in (*self.objects, *self.free_objects):
            return value
        return patch_of(self._value_as_shown(name), value)

    def _value_as_shown(self, name: str) -> dict[str, Any]:
        raw = self.data.get(self.add_initial_prefix(name))
        try:
            shown = self.fields[name].to_python(raw) if raw else self.initial.get(name)
        except forms.ValidationError:
            shown = None
        return shown if isinstance(shown, dict) else {}


def patch_of(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the merge patch from `old` to `new`; null removes a key.

    >>> patch_of({"a": 1, "b": {"x": 1, "y": 2}, "c": 3}, {"a": 1, "b": {"x": 5}})
    {'c': None, 'b': {'y': None, 'x': 5}}
    """
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        if key in old and isinstance(old[key], Mapping) and isinstance(value, Mapping):
            if changes := patch_of(old[key], value):
                patch[key] = changes
        elif key not in old or old[key] != value:
            patch[key] = value
    return patch


def _leaves(faults: object) -> Iterator[str]:
    if isinstance(faults, Mapping):
        for below in faults.values():
            yield from _leaves(below)
    elif isinstance(faults, list):
        for fault in faults:
            yield from _leaves(fault)
    else:
        yield str(faults)


def _sentences(faults: Any, path: str = "") -> Iterator[str]:
    """Yield errors with their paths: `length: Must be a duration.`"""
    if isinstance(faults, Mapping):
        for key, below in faults.items():
            yield from _sentences(below, f"{path}.{key}" if path else str(key))
        return
    for fault in faults:
        yield f"{path}: {fault}" if path else str(fault)
