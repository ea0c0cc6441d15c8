"""Forms whose values pass the API's serializers on their way to a service."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from django import forms
from rest_framework import serializers

from scheduling.api.errors import Refusal
from scheduling.api.parsers import parse_body


class JsonField(forms.JSONField):
    """JSON as the API reads it; a fault is named with its place."""

    def to_python(self, value: Any) -> Any:
        if not isinstance(value, str) or not value.strip():
            return super().to_python(value)
        try:
            return parse_body(value.encode("utf-8", "surrogatepass"))
        except Refusal as refusal:
            message = refusal.message.replace("The body", "This", 1)
            raise forms.ValidationError(message) from refusal


class ApiForm(forms.ModelForm):
    """Refused at the field with the API's words. `given`: what was changed, for the service.

    What a field showed comes back with the form: only what was changed here is saved, of an object
    only the keys, and what a client changes meanwhile stays.
    """

    serializer_class: ClassVar[type[serializers.Serializer]]
    # JSON objects whose keys are all known, and those that clients fill as they like.
    objects: ClassVar[tuple[str, ...]] = ()
    free_objects: ClassVar[tuple[str, ...]] = ()
    # Texts that are null where they are empty.
    nullable: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.given: dict[str, Any] = {}
        known = self.serializer_class().fields
        for name in self.fields.keys() & known.keys():
            self.fields[name].show_hidden_initial = True

    def clean(self) -> dict[str, Any]:
        values = super().clean()
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
        """The API would leave them out without a word."""
        for name in self.objects:
            if isinstance(body.get(name), dict):
                unknown = [key for key in body[name] if key not in fields[name].fields]
                if unknown:
                    self.add_error(name, [f"{key}: Is not known." for key in unknown])
                    del body[name]

    def _changes(self, name: str, value: Any) -> Any:
        """Of an object, what a client would send to change what the field showed."""
        if name not in (*self.objects, *self.free_objects):
            return value
        return patch_of(self._shown(name), value)

    def _shown(self, name: str) -> dict[str, Any]:
        raw = self.data.get(self.add_initial_prefix(name))
        try:
            shown = self.fields[name].to_python(raw) if raw else self.initial.get(name)
        except forms.ValidationError:
            shown = None
        return shown if isinstance(shown, dict) else {}


def patch_of(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """What makes the new object of the old one, key by key; null removes one.

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


def _sentences(faults: Any, path: str = "") -> Iterator[str]:
    """`length: Must be a duration.`"""
    if isinstance(faults, Mapping):
        for key, below in faults.items():
            yield from _sentences(below, f"{path}.{key}" if path else str(key))
        return
    for fault in faults:
        yield f"{path}: {fault}" if path else str(fault)
