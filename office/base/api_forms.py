"""Forms whose values are checked by the API's serializers and saved by services."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, cast

from django import forms
from django.utils.translation import gettext as _
from rest_framework import serializers
from unfold.widgets import UnfoldBooleanSwitchWidget

from apps_config.models import App
from common.api.json import parse_body
from common.api.serializers import ObjectSerializer
from common.errors import Refusal
from common.messages import find_message
from office.base.lazy_text import LazyText
from office.base.message_translations import translate_message


def check_value(field: serializers.Field, value: Any) -> Any:
    """Return the value, if a field of the API accepts it. Raises forms.ValidationError."""
    try:
        return field.run_validation(value)
    except serializers.ValidationError as error:
        faults = [translate_message(fault) for fault in error.detail]
        raise forms.ValidationError(faults) from error


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


def switch_field(label: LazyText, help_text: LazyText) -> forms.BooleanField:
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
        return [translate_message(fault) for fault in _leaves(faults)]


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


class ApiForm(CheckedForm, forms.ModelForm):
    """Form of a row whose fields are paths into the API's request body.

    `paths`: form field -> dotted path in the body, if they differ; fields of settings have their
    own. `documents`: free objects of the
    body, each built from several form fields by `document`.

    The shown values return with the form: only values changed here are saved, of documents only
    the changed keys, so concurrent changes by clients stay.
    """

    serializer_class: ClassVar[type[ObjectSerializer]]
    paths: Mapping[str, str] = {}
    documents: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    # The fields of a short form; empty: all.
    asked: ClassVar[tuple[str, ...]] = ()
    # The app of a new row, if the account has a single one.
    only_app: ClassVar[App | None] = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in set(self.fields) - {"app", *self.asked} if self.asked else ():
            del self.fields[name]
        if self.only_app:
            self.instance.app = self.only_app
        self.paths = {**self.paths, **setting_paths(self.fields)}
        for name, path in self._paths_by_field().items():
            # A new row has no stored values, and without an app no id to read related rows by.
            is_read = name in self.paths and not self.is_new
            stored = read_path(self.instance, path) if is_read else None
            if stored is not None:
                self.initial[name] = shown_value(self.fields[name], stored)
        for name in self.fields:
            self.fields[name].show_hidden_initial = name != "app"

    @property
    def is_new(self) -> bool:
        return self.instance._state.adding

    @property
    def is_partial(self) -> bool:
        """Whether the body is that of a change, which need not have what a new row must have."""
        return not self.is_new

    def serializer_context(self) -> dict[str, Any]:
        return {}

    def document(self, name: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return a free object of the body from the values of its fields."""
        raise NotImplementedError

    def clean(self) -> dict[str, Any]:
        super().clean()
        values = self.cleaned_data
        body: dict[str, Any] = {}
        for name, path in self._paths_by_field().items():
            if name in values and self._is_sent(name, values[name]):
                write_path(body, path, self.api_value(name, values[name]))
        shown = self._changed_documents(values, body)
        serializer = self.serializer_class(
            data=body, partial=self.is_partial, context=self.serializer_context()
        )
        self.given = {}
        if serializer.is_valid():
            patches = {name: patch_of(shown[name], body[name]) for name in shown}
            self.given = {**serializer.validated_data, **patches}
        else:
            self._add_paths(serializer.errors)
        return values

    def api_value(self, name: str, value: Any) -> Any:
        """Return the API's value of a cleaned one; null removes the stored value."""
        field = self.fields[name]
        if isinstance(field, ShownField):
            return field.sent_value(value)
        return None if value == "" else value

    def _is_sent(self, name: str, value: Any) -> bool:
        """Return whether a value is sent: all given ones of a new row, else the changed ones."""
        if name == "app":
            return False
        return value not in ("", None) if self.is_new else name in self.changed_data

    def _paths_by_field(self) -> dict[str, str]:
        """Return the path of each form field that is one value of the body."""
        fields = self.serializer_class(partial=self.is_partial).fields
        known = [name for name, field in fields.items() if not field.read_only]
        parts = {name for names in self.documents.values() for name in names}
        found = {name: self.paths.get(name, name) for name in self.fields if name not in parts}
        return {name: path for name, path in found.items() if path.split(".")[0] in known}

    def _changed_documents(self, values: Mapping[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        """Put changed documents into the body, to be checked whole; return them as shown."""
        shown = {}
        for document, names in self.documents.items():
            present = [name for name in names if name in self.fields]
            is_changed = bool(set(present) & set(self.changed_data))
            if is_changed and all(name in values for name in present):
                old = {name: self._value_as_shown(name) for name in present}
                shown[document] = self.document(document, old)
                body[document] = self.document(document, values)
        return shown

    def _value_as_shown(self, name: str) -> Any:
        raw = self.data.get(self.add_initial_prefix(name))
        field = self.fields[name]
        try:
            return field.to_python(field.initial if raw is None else raw)
        except forms.ValidationError:
            return field.to_python("")

    def _add_paths(self, errors: Mapping[str, Any]) -> None:
        """Add the serializer's errors to the fields of the longest matching paths."""
        fields = {path: name for name, path in self._paths_by_field().items()}
        fields |= {document: names[0] for document, names in self.documents.items()}
        for path, faults in flatten_faults(errors):
            steps = path.split(".")
            tails = (steps[:count] for count in range(len(steps), 0, -1))
            known = next((tail for tail in tails if ".".join(tail) in fields), [])
            self.add_path_faults(fields.get(".".join(known)), steps[len(known) :], faults)

    def add_path_faults(self, field: str | None, steps: list[str], faults: list[str]) -> None:
        """Add the errors of one path. `steps`: the path within the field's value."""
        if steps and steps[0].isdigit():
            entry = int(steps[0]) + 1
            faults = [
                _("Entry %(number)s: %(fault)s") % {"number": entry, "fault": fault}
                for fault in faults
            ]
        self.add_error(field, faults)


def setting_paths(fields: Mapping[str, forms.Field]) -> dict[str, str]:
    """Return the paths of the fields that `setting_field` has made."""
    return {name: field.path for name, field in fields.items() if hasattr(field, "path")}


def flatten_faults(errors: Any, path: str = "") -> Iterator[tuple[str, list[str]]]:
    """Yield the serializer's errors by dotted path."""
    for key, faults in errors.items():
        at = f"{path}{key}"
        if isinstance(faults, Mapping):
            yield from flatten_faults(faults, f"{at}.")
        else:
            yield at, [translate_message(fault) for fault in faults]


def read_path(row: Any, path: str) -> Any:
    """Return the stored value at a dotted path of a row; None if there is none."""
    first, *steps = path.split(".")
    found = getattr(row, first, None)
    for step in steps:
        found = found.get(step) if isinstance(found, dict) else None
    return found


def write_path(body: dict[str, Any], path: str, value: Any) -> None:
    *steps, last = path.split(".")
    for step in steps:
        body = body.setdefault(step, {})
    body[last] = value


def shown_value(field: forms.Field, stored: Any) -> Any:
    """Return the form's value of a stored one; None for values of another type."""
    if isinstance(field, ShownField):
        return field.shown_value(stored)
    if isinstance(stored, bool):
        is_switch = isinstance(field, forms.BooleanField)
        return stored if is_switch else "yes" if stored else "no"
    return stored if isinstance(stored, str | int) else None


class ShownField(forms.Field):
    """A form field that shows a stored value in another form than the API."""

    def shown_value(self, stored: Any) -> Any:
        raise NotImplementedError

    def sent_value(self, value: Any) -> Any:
        return None if value == "" else value


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
        yield find_message(faults)
