"""Forms of resources and projects, checked by the API's serializers and saved by its services."""

from typing import Any

from django import forms
from django.forms.models import BaseInlineFormSet
from unfold.widgets import UnfoldAdminSelectWidget

from availability.core.constraints import MAX_RULES
from availability.models import Project, ProjectResource, Resource
from availability.parameters import SlotParameters
from availability.serializers.fields import MAX_RESOURCES
from availability.serializers.projects import MAX_PUBLIC_CUSTOMERS, ProjectSerializer
from availability.serializers.resources import ResourceSerializer
from common.instants import ZONES
from office.base.api_forms import ApiForm, JsonField, choice_field, switch_field

SLUG_HELP = "Used in the address of the booking page."
USUAL_LENGTH = f"{(SlotParameters().length or 0) // 3600} hour"


class ResourceForm(ApiForm):
    serializer_class = ResourceSerializer
    free_objects = ("meta",)
    nullable = ("email",)

    timezone = forms.ChoiceField(label="Time zone", widget=UnfoldAdminSelectWidget)

    class Meta:
        model = Resource
        fields = (
            *("app", "name", "timezone", "first_name", "last_name", "email", "image"),
            *("tags", "meta"),
        )
        field_classes = dict.fromkeys(("tags", "meta"), JsonField)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "timezone" in self.fields:
            names = [(name, name) for name in sorted(ZONES)]
            kept = self.instance.timezone
            if kept and kept not in ZONES:
                names.append((kept, f"{kept} (unknown)"))
            choice_field(self, "timezone").choices = [("", "---------"), *names]

    def clean_email(self) -> str | None:
        email = self.cleaned_data["email"]
        app_id = self.instance.app_id or getattr(self.cleaned_data.get("app"), "pk", None)
        others = Resource.objects.filter(app=app_id, deleted_at=None).exclude(pk=self.instance.pk)
        if email and others.filter(email__iexact=email).exists():
            raise forms.ValidationError("Another resource has this e-mail address.")
        return email


# Settings that the form shows outside of the JSON.
PUBLIC_SETTINGS = {"published", "public_customers", "public_reschedule"}


def public_setting(project: Project, name: str) -> str:
    """The setting as its field writes it; "" for the default."""
    value = project.settings.get(name)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value in (None, 1, "link") else str(value)


# Settings of projects with a switch: label and help text.
PROJECT_SWITCHES = {
    "verify_email": (
        "Verify e-mail addresses",
        "Customers of the booking page get a code by e-mail, which completes the booking.",
    ),
}


class ProjectForm(ApiForm):
    verify_email = switch_field(*PROJECT_SWITCHES["verify_email"])

    serializer_class = ProjectSerializer
    objects = ("availability", "booking", "settings")
    free_objects = ("customer_fields", "ui", "meta")

    published = forms.TypedChoiceField(
        label="Booking page",
        help_text="Whether the project has a public booking page.",
        choices=[("", "As the app says"), ("yes", "Published"), ("no", "Not published")],
        coerce=lambda word: word == "yes",
        empty_value=None,
        required=False,
        widget=UnfoldAdminSelectWidget,
    )
    public_customers = forms.TypedChoiceField(
        label="Customers per booking",
        help_text="How many customers a visitor can enter for one booking.",
        choices=[("", "1"), *[(count, count) for count in range(2, MAX_PUBLIC_CUSTOMERS + 1)]],
        coerce=int,
        empty_value=None,
        required=False,
        widget=UnfoldAdminSelectWidget,
    )
    public_reschedule = forms.TypedChoiceField(
        label="Choosing another time",
        help_text="What a widget key needs to move a booking.",
        choices=[("", "The link in an e-mail"), ("id", "The booking's id")],
        empty_value=None,
        required=False,
        widget=UnfoldAdminSelectWidget,
    )

    class Meta:
        model = Project
        fields = (
            *("app", "name", "slug", "availability", "booking", "customer_fields", "ui"),
            *("settings", "meta", "replaces_notifications", "reservation_time"),
        )
        field_classes = dict.fromkeys(
            ("availability", "booking", "customer_fields", "ui", "settings", "meta"), JsonField
        )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in PUBLIC_SETTINGS & self.fields.keys():
            self.fields[name].show_hidden_initial = True
            self.initial[name] = public_setting(self.instance, name)
        for name in PROJECT_SWITCHES:
            self.initial[name] = self.instance.settings.get(name) is True
        if "slug" in self.fields:
            is_new = self.instance._state.adding
            self.fields["slug"].required = not is_new
            self.fields["slug"].help_text = SLUG_HELP + (" Empty: from the name." if is_new else "")

    def clean_slug(self) -> str:
        slug = self.cleaned_data["slug"]
        others = Project.objects.filter(slug=slug, deleted_at=None).exclude(pk=self.instance.pk)
        if slug and others.exists():
            raise forms.ValidationError("Another project has this slug.")
        return slug

    def clean(self) -> dict[str, Any]:
        super().clean()
        values = self.cleaned_data
        if "replaces_notifications" in self.changed_data:
            self.given["replaces_notifications"] = values["replaces_notifications"]
        shown = {*PUBLIC_SETTINGS, *PROJECT_SWITCHES}
        for name in shown & values.keys() & set(self.changed_data):
            self.given.setdefault("settings", {})[name] = values[name]
        # Null has a meaning: whole free intervals.
        availability = self.given.get("availability", {})
        if "length" in availability and "length" not in (values["availability"] or {}):
            availability["length"] = USUAL_LENGTH
        return values


class ProjectResourceForm(forms.ModelForm):
    class Meta:
        model = ProjectResource
        fields = ("project", "resource", "position")

    def clean(self) -> dict[str, Any]:
        super().clean()
        values = self.cleaned_data
        project, resource = values.get("project"), values.get("resource")
        if not project or not resource or "resource" not in self.changed_data:
            return values
        if resource.app_id != project.app_id or resource.deleted_at:
            self.add_error("resource", "There is no such resource.")
        return values


class BoundedFormSet(BaseInlineFormSet):
    """A formset with the API's limit of rows."""

    most = 0

    def clean(self) -> None:
        super().clean()
        kept = [form for form in self.forms if form.has_changed() or form.instance.pk]
        if len([form for form in kept if form not in self.deleted_forms]) > self.most:
            raise forms.ValidationError(f"Must have at most {self.most} items.")


class ConstraintFormSet(BoundedFormSet):
    most = MAX_RULES


class ProjectResourceFormSet(BoundedFormSet):
    most = MAX_RESOURCES
