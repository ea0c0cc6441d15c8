"""Rows of rules and of a project's resources; saved as a whole by the API's services."""

import re
from typing import Any

from django import forms
from django.forms.models import BaseInlineFormSet

from availability.core.constraints import (
    MAX_RULES,
    ConstraintError,
    parse_constraints,
    render_constraint,
)
from availability.models import Constraint, ProjectResource
from availability.serializers.fields import MAX_RESOURCES
from office.base.api_forms import choice_field
from office.base.labels import RULE_WORDS

DATE_RULES = ("block_period", "allow_period")
# The value of a datetime-local input, which omits zero seconds.
_DATE_INPUT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(:\d\d)?")


class ConstraintForm(forms.ModelForm):
    """A rule, checked as by the API; fields that its kind does not use are cleared."""

    rule_names = tuple(RULE_WORDS)

    class Meta:
        model = Constraint
        fields = ("name", "day", "start", "end", "position")
        labels = {"name": "Rule", "start": "From", "end": "To"}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "name" in self.fields:
            words = [(name, RULE_WORDS[name]) for name in self.rule_names]
            choice_field(self, "name").choices = [("", "Choose a rule"), *words]
        leave_position_open(self)

    def clean_position(self) -> int:
        return self.cleaned_data["position"] or 0

    def clean(self) -> dict[str, Any]:
        super().clean()
        given = self.cleaned_data
        values = {key: given.get(key) or "" for key in ("name", "day", "start", "end")}
        for key in ("start", "end"):
            if matched := _DATE_INPUT.fullmatch(values[key]):
                values[key] = f"{matched[1]} {matched[2]}{matched[3] or ':00'}"
        try:
            rules = parse_constraints([Constraint(**values).as_json()])
        except ConstraintError as error:
            for path, messages in error.errors.items():
                self.add_error(self._field_of(path), messages)
            return given
        used = render_constraint(rules[0])[values["name"]]
        return given | {key: values[key] if key in used else "" for key in ("day", "start", "end")}

    def _field_of(self, path: str) -> str | None:
        last = path.split(".")[-1]
        return last if last in self.fields else None


class DateRuleForm(ConstraintForm):
    """A rule for dates; weekly hours have rows of their own."""

    rule_names = DATE_RULES


def leave_position_open(form: forms.ModelForm) -> None:
    """Ask for no position: a new row comes last."""
    if "position" in form.fields:
        form.fields["position"].required = False
        if form.instance._state.adding:
            form.initial["position"] = None


def _position(form: forms.BaseForm) -> float:
    text = str(form["position"].value())
    return int(text) if text.isdigit() else float("inf")


class WholeFormSet(BaseInlineFormSet):
    """Rows that a service replaces as a whole, with the API's limit of rows."""

    most = 0

    def clean(self) -> None:
        super().clean()
        if len(self.kept_forms()) > self.most:
            raise forms.ValidationError(f"Must have at most {self.most} items.")

    def kept_forms(self) -> list[Any]:
        """Return the forms of the rows that stay or are new, in their order."""
        kept = [form for form in self.forms if form.has_changed() or form.instance.pk]
        kept = [form for form in kept if form not in self.deleted_forms]
        return sorted(kept, key=_position)

    def save(self, commit: bool = True) -> list[Any]:
        """The admin calls the service; the lists are for Django's log of changes."""
        self.new_objects: list[Any] = []
        self.changed_objects: list[Any] = []
        self.deleted_objects: list[Any] = []
        return []


class ConstraintFormSet(WholeFormSet):
    most = MAX_RULES

    def rules(self) -> list[dict[str, Any]]:
        """Return the rows as the API's constraints."""
        keys = ("name", "day", "start", "end")
        return [
            Constraint(**{key: form.cleaned_data.get(key) or "" for key in keys}).as_json()
            for form in self.kept_forms()
        ]


class ProjectResourceForm(forms.ModelForm):
    class Meta:
        model = ProjectResource
        fields = ("project", "resource", "position")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        leave_position_open(self)

    def clean_position(self) -> int:
        return self.cleaned_data["position"] or 0

    def clean(self) -> dict[str, Any]:
        super().clean()
        values = self.cleaned_data
        project, resource = values.get("project"), values.get("resource")
        if not project or not resource or "resource" not in self.changed_data:
            return values
        if resource.app_id != project.app_id or resource.deleted_at:
            self.add_error("resource", "There is no such resource.")
        return values


class ProjectResourceFormSet(WholeFormSet):
    most = MAX_RESOURCES

    def resource_ids(self) -> list[Any]:
        return [form.cleaned_data["resource"].pk for form in self.kept_forms()]
