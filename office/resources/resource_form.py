"""The form of a resource, checked by the API's serializer and saved by its services."""

from collections.abc import Mapping
from typing import Any

from django import forms

from availability.core.constraints import ConstraintError, ConstraintRules, parse_constraints
from availability.models import Resource
from availability.serializers.resources import NewResourceSerializer, ResourceSerializer
from office.base.api_forms import ApiForm
from office.base.form_fields import LinesField, ZoneField, json_field
from office.base.weekly_hours import hours_of_rules
from office.resources.hours_field import NEW_HOURS, HoursField


class ResourceForm(ApiForm):
    serializer_class = ResourceSerializer
    paths = {"tags": "tags"}
    documents = {"meta": ("meta",)}

    timezone = ZoneField(
        label="Time zone", help_text="Type a city or an offset, such as Berlin or +1."
    )
    hours = HoursField(
        label="Weekly hours",
        help_text="For example 9:00-12:00, 13:00-17:00. An empty day is closed.",
    )
    tags = LinesField(
        label="Tags", help_text="Your own words, to group resources. Separate them with Enter."
    )
    meta = json_field("Custom data", "Your own keys, for your own programs. JSON.")

    class Meta:
        model = Resource
        fields: tuple[str, ...] = ("app", "name", "first_name", "last_name", "email", "image")
        labels = {"email": "E-mail address", "image": "Picture"}
        help_texts = {
            "name": "Customers see this name: a person, a room or a thing.",
            "email": "Gets the owner's e-mails about bookings. Default: the app's contact address.",
            "first_name": "For your own programs. Default: none.",
            "last_name": "For your own programs. Default: none.",
            "image": "The https address of a picture, for your own pages. Default: none.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.is_new:
            self.initial["hours"] = "\n".join(hours_of_rules(stored_rules(self.instance)))

    def clean_email(self) -> str | None:
        email = self.cleaned_data["email"]
        app_id = self.instance.app_id or getattr(self.cleaned_data.get("app"), "pk", None)
        others = Resource.objects.filter(app=app_id, deleted_at=None).exclude(pk=self.instance.pk)
        if email and others.filter(email__iexact=email).exists():
            raise forms.ValidationError("Another resource has this e-mail address.")
        return email

    def document(self, name: str, values: Mapping[str, Any]) -> dict[str, Any]:
        return {} if values["meta"] in (None, "") else values["meta"]


class NewResourceForm(ResourceForm):
    """The few fields of a new resource; its page has the others."""

    serializer_class = NewResourceSerializer
    paths = {"hours": "availability_constraints"}
    documents = {}
    asked = ("name", "timezone", "hours", "email")

    class Meta(ResourceForm.Meta):
        fields: tuple[str, ...] = ("app", "name", "email")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["hours"] = "\n".join(NEW_HOURS)


def stored_rules(resource: Resource) -> ConstraintRules:
    """Return the stored rules; none if they were written without the services and are invalid."""
    try:
        return parse_constraints([row.as_json() for row in resource.constraints.all()])
    except ConstraintError:
        return ()
