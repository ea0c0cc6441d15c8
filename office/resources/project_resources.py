"""Rows of a project's resources; saved as a whole by the API's service."""

import uuid
from typing import Any

from django import forms
from django.forms.models import BaseInlineFormSet
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminIntegerFieldWidget

from availability.models import Project, ProjectResource
from availability.serializers.fields import MAX_RESOURCES, MAX_WEIGHT


def make_position_optional(form: forms.ModelForm) -> None:
    """Ask for no position: a new row comes last."""
    if "position" in form.fields:
        form.fields["position"].required = False
        if form.instance._state.adding:
            form.initial["position"] = None


def _position(form: forms.BaseForm) -> float:
    text = str(form["position"].value())
    return int(text) if text.isdigit() else float("inf")


class ProjectResourceForm(forms.ModelForm):
    class Meta:
        model = ProjectResource
        fields = ("project", "resource", "position")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        make_position_optional(self)

    def clean_position(self) -> int:
        return self.cleaned_data["position"] or 0

    def clean(self) -> dict[str, Any]:
        super().clean()
        values = self.cleaned_data
        project, resource = values.get("project"), values.get("resource")
        if not project or not resource or "resource" not in self.changed_data:
            return values
        if resource.app_id != project.app_id or resource.deleted_at:
            self.add_error("resource", gettext("There is no such resource."))
        return values


class WeightedResourceForm(ProjectResourceForm):
    weight = forms.IntegerField(
        label=_("Weight in fair turns"),
        help_text=_("2: twice as many bookings as the others. 0: only if chosen. Default: 1."),
        min_value=0,
        max_value=MAX_WEIGHT,
        required=False,
        show_hidden_initial=True,
        widget=UnfoldAdminIntegerFieldWidget(attrs={"placeholder": "1"}),
    )


def stored_weight(project: Project, resource_id: uuid.UUID | None) -> int | None:
    """Return the weight of a resource in fair turns; None: the default."""
    weights = project.availability.get("weights")
    found = weights.get(str(resource_id)) if isinstance(weights, dict) else None
    return found if type(found) is int else None


class ProjectResourceFormSet(BaseInlineFormSet):
    """Rows that a service replaces as a whole, with the API's limit of rows."""

    def add_fields(self, form: Any, index: int | None) -> None:
        super().add_fields(form, index)
        row = form.instance
        row.project = self.instance
        form.initial["weight"] = stored_weight(self.instance, row.resource_id)

    def clean(self) -> None:
        super().clean()
        if len(self.kept_forms()) > MAX_RESOURCES:
            sentence = gettext("Must have at most %(limit)s items.")
            raise forms.ValidationError(sentence % {"limit": MAX_RESOURCES})

    def kept_forms(self) -> list[Any]:
        """Return the forms of the rows that stay or are new, in their order."""
        kept = [form for form in self.forms if form.has_changed() or form.instance.pk]
        kept = [form for form in kept if form not in self.deleted_forms]
        return sorted(kept, key=_position)

    def resource_ids(self) -> list[Any]:
        return [form.cleaned_data["resource"].pk for form in self.kept_forms()]

    def weights(self, project: Project) -> dict[str, int]:
        """Return the weights of the rows' resources: changed ones from here, others as stored."""
        weights_by_id = {}
        for form in self.kept_forms():
            resource_id = form.cleaned_data["resource"].pk
            is_changed = {"resource", "weight"} & set(form.changed_data)
            kept = stored_weight(project, resource_id)
            weights_by_id[str(resource_id)] = form.cleaned_data["weight"] if is_changed else kept
        return {each: weight for each, weight in weights_by_id.items() if weight is not None}

    def save(self, commit: bool = True) -> list[Any]:
        """The admin calls the service; the lists are for Django's log of changes."""
        self.new_objects: list[Any] = []
        self.changed_objects: list[Any] = []
        self.deleted_objects: list[Any] = []
        return []
