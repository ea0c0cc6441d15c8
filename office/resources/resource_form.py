"""The form of a resource, checked by the API's serializer and saved by its services."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from django import forms
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminSelectWidget

from availability.core.constraints import (
    ConstraintError,
    ConstraintRules,
    parse_constraints,
    render_constraint,
)
from availability.models import Project, Resource, Schedule
from availability.resources_by_email import with_email
from availability.serializers.resources import (
    PartySerializer,
    ResourceSerializer,
    ScheduleSerializer,
)
from availability.services import store_picture
from booking_pages.picture_paths import picture_paths
from common.errors import Invalid
from common.images import square_picture
from office.base.api_forms import ApiForm, choice_field
from office.base.form_fields import ImageFileField, LinesField, SwitchField, ZoneField, json_field
from office.base.opening_hours_text import hours_of_rules, merge_hours_and_dates, weekly_rules
from office.base.rule_rows import DATE_KINDS
from office.base.setting_fields import setting_field
from office.resources.external_id_field import ExternalIdForm
from office.resources.hours_field import NEW_HOURS, HoursField
from office.resources.rules_field import RulesField, rows_of, rules_of

MAX_SCHEDULES = 200  # to choose from


class OpeningHoursForm(ApiForm):
    """Weekly hours and dates, which together are the constraints of a resource or schedule."""

    hours = HoursField(
        label=_("Weekly hours"),
        help_text=_(
            "For example 9:00-12:00, 13:00-17:00. An empty day is closed. Default: Monday to"
            " Friday, 9:00 to 17:00."
        ),
    )
    dates = RulesField(
        DATE_KINDS,
        label=_("Dates"),
        help_text=_("Days and hours that differ from the weekly hours. Default: none."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.is_new:
            self.initial["hours"] = "\n".join(NEW_HOURS)
            return
        rules = stored_rules(self.instance)
        weekly = weekly_rules(rules)
        self.initial["hours"] = "\n".join(hours_of_rules(rules))
        self.initial["dates"] = rows_of(rule for rule in rules if rule not in weekly)

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean()
        is_changed = {"hours", "dates"} & set(self.changed_data)
        if self.is_new or not is_changed or {"hours", "dates"} & set(self.errors):
            return values
        weekly = values["hours"] if "hours" in self.changed_data else None
        dates = [render_constraint(rule) for rule in rules_of(values["dates"])]
        try:
            rules = parse_constraints(
                merge_hours_and_dates(stored_rules(self.instance), weekly, dates)
            )
        except ConstraintError as error:
            self.add_error("dates", next(iter(error.errors.values())))
        else:
            self.given = {**self.given, "availability_constraints": rules}
        return values


PARTY = ("party_min", "party_max")
party_setting = partial(setting_field, PartySerializer, "party")


class ResourceForm(ExternalIdForm, OpeningHoursForm):
    serializer_class = ResourceSerializer
    paths = {"id_elsewhere": "external_id", "tags": "tags", "schedule_id": "schedule_id"}
    documents = {"meta": ("meta",)}

    timezone = ZoneField(
        label=_("Time zone"),
        help_text=_(
            "Type a city or an offset, such as Berlin or +1. Default: the app's time zone."
        ),
    )
    schedule_id = forms.ChoiceField(
        label=_("Schedule"),
        help_text=_(
            "Hours that several resources share. The weekly hours below narrow them:"
            " 00:00-24:00 leaves them as they are. Default: none."
        ),
        required=False,
        widget=UnfoldAdminSelectWidget,
    )
    tags = LinesField(
        label=_("Tags"),
        help_text=_("Your own words, to group resources. Separate them with Enter. Default: none."),
    )
    party_min = party_setting(
        "min",
        None,
        _("People, at least"),
        _("How many people it suits, such as a table. Default: any number."),
    )
    party_max = party_setting(
        "max", None, _("People, at most"), _("The same, at most. Default: any number.")
    )
    picture_file = ImageFileField(
        shrink=square_picture,
        label=_("Picture"),
        use=_("Customers who choose a person see it. Default: initials."),
    )
    removes_picture = SwitchField(
        label=_("Remove the picture"),
        help_text=_("Customers see the initials again. Default: off."),
    )
    meta = json_field(
        _("Custom data"), _("Your own keys, for your own programs. JSON. Default: none.")
    )

    class Meta:
        model = Resource
        fields: tuple[str, ...] = (
            "app",
            "name",
            "first_name",
            "last_name",
            "email",
            "image",
            "capacity",
        )
        labels = {
            "email": _("E-mail address"),
            "image": _("Picture link"),
            "capacity": _("Capacity"),
        }
        help_texts = {
            "name": _("Customers see this name: a person, a room or a thing."),
            "email": _(
                "Gets the owner's e-mails about bookings. Default: the app's contact address."
            ),
            "capacity": _("How many bookings may overlap, such as 12 for a pool. Default: 1."),
            "first_name": _("For your own programs. Default: none."),
            "last_name": _("For your own programs. Default: none."),
            "image": _("The https address of a picture, for your own programs. Default: none."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "schedule_id" in self.fields:
            stored = self.instance.schedule
            self.initial["schedule_id"] = str(stored.pk) if stored else ""
            rows = Schedule.objects.for_app(self.instance.app_id).order_by("name", "id")
            offered = dict(rows.values_list("id", "name")[:MAX_SCHEDULES])
            offered |= {stored.pk: stored.name} if stored else {}
            choices = [(str(pk), name) for pk, name in offered.items()]
            choice_field(self, "schedule_id").choices = [("", gettext("None")), *choices]

        if "picture_file" in self.fields:
            self._show_picture()

    def _show_picture(self) -> None:
        for name in ("picture_file", "removes_picture"):
            self.fields[name].show_hidden_initial = False
        if path := picture_paths([self.instance.pk]).get(self.instance.pk):
            field = self.fields["picture_file"]
            field.help_text = format_html("{}<br>{}", picture_image(path), field.help_text)

    def clean_email(self) -> str | None:
        email = self.cleaned_data["email"]
        app_id = self.instance.app_id or getattr(self.cleaned_data.get("app"), "pk", None)
        others = Resource.objects.filter(app=app_id, deleted_at=None).exclude(pk=self.instance.pk)
        if email and with_email(others, email).exists():
            raise forms.ValidationError(gettext("Another resource has this e-mail address."))
        return email

    def _is_sent(self, name: str, value: Any) -> bool:
        # Each half needs the other.
        is_half = name in PARTY and not set(PARTY).isdisjoint(self.changed_data)
        return super()._is_sent(name, value) or (is_half and not self.is_new)

    def document(self, name: str, values: Mapping[str, Any]) -> dict[str, Any]:
        return {} if values["meta"] in (None, "") else values["meta"]


class NewResourceForm(ResourceForm):
    """The few fields of a new resource; its page has the others."""

    paths = {"hours": "availability_constraints"}
    documents = {}
    asked = ("name", "timezone", "hours", "email")

    class Meta(ResourceForm.Meta):
        fields: tuple[str, ...] = ("app", "name", "email")


class ScheduleForm(OpeningHoursForm):
    serializer_class = ScheduleSerializer

    class Meta:
        model = Schedule
        fields: tuple[str, ...] = ("app", "name")
        labels = {"name": _("Name")}
        help_texts = {"name": _("For the back office, such as Practice hours.")}


class NewScheduleForm(ScheduleForm):
    """The few fields of a new schedule; its page has the others."""

    paths = {"hours": "availability_constraints"}
    asked = ("name", "hours")


def picture_image(path: str) -> SafeString:
    image = '<img src="{}" alt="{}" width="68" height="68">'
    return format_html(image, path, gettext("Current picture"))


def save_picture(resource: Resource, given: Mapping[str, Any]) -> None:
    """Store the picture that was chosen, or remove it."""
    if picture := given.get("picture_file"):
        store_picture(resource, picture)
    elif given.get("removes_picture"):
        store_picture(resource, None)


def stored_rules(owner: Resource | Schedule | Project) -> ConstraintRules:
    """Return the stored rules; none if they were written without the services and are invalid."""
    try:
        return parse_constraints(owner.availability_constraints)
    except ConstraintError:
        return ()


def stored_window(project: Project, key: str) -> ConstraintRules:
    """Return the stored rules of `start_window` or `end_window`, as `stored_rules` does."""
    try:
        return parse_constraints(project.availability.get(key) or [])
    except ConstraintError:
        return ()


def checked(rules: list[dict[str, Any]]) -> ConstraintRules:
    """Parse the API's constraints. Raises Invalid."""
    try:
        return parse_constraints(rules)
    except ConstraintError as error:
        raise Invalid({"availability_constraints": next(iter(error.errors.values()))}) from error
