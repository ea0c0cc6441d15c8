"""The form of a project, checked by the API's serializer and saved by its services."""

import re
from collections.abc import Mapping
from typing import Any, cast

from django import forms
from django.db.models import QuerySet
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminRadioSelectWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from availability.models import Project, Resource
from availability.requirements import load_requirements
from availability.serializers.projects import (
    MAX_PUBLIC_CUSTOMERS,
    NewProjectSerializer,
    ProjectSerializer,
)
from common.errors import Invalid
from office.base.api_forms import ApiForm, choice_field, switch_field
from office.base.form_fields import (
    DurationField,
    DurationListField,
    LinesField,
    SecondsField,
    json_field,
)
from office.base.labels import GRAPH_WORDS, language_names
from office.base.rule_rows import KINDS
from office.resources.questions import QuestionsField, questions_of, rows_of
from office.resources.requirements_field import CHECK_ROWS, RequirementsField
from office.resources.resource_form import stored_rules
from office.resources.rules_field import RulesField, rules_of
from office.resources.rules_field import rows_of as rule_rows_of

USUAL_LENGTH = "1 hour"
# The first unit is that of an empty field.
POLICY_UNITS = ("hours", "days", "minutes")
NOTICE_UNITS = ("hours", "days", "weeks", "months", "minutes")
HORIZON_UNITS = ("weeks", "days", "months", "hours", "minutes")
WHOLE = "whole"
DEFAULT_GRAPH, DEFAULT_MODE = "instant", "roundrobin_random"
GRAPH_HELP: Mapping[str, str] = {
    "instant": "The booking is confirmed as soon as the customer books (default).",
    "confirm_decline": "You accept or decline each request.",
    "instant_payment": "The booking is confirmed once the customer has paid.",
    "group_owner": "Several customers share one time, each with a seat.",
    "group_customer": "A seat in a group session.",
    "group_customer_payment": "A seat in a group session, which the customer pays for.",
}
MODE_WORDS: Mapping[str, str] = {
    "roundrobin_random": "Anyone who is free: each booking goes to one of them at random (default)",
    "roundrobin_prioritized": "In order: each booking goes to the first who is free",
    "roundrobin_fair": "Fair turns: each booking goes to whoever is furthest behind their share",
    "mutual": "Everyone together: only times when all are free, and all are booked",
    "exclusive": "One of several: times when at least one is free, each with all who are free",
}
NAMED_FIELD = re.compile(r"`(\w+)`")
# Names of the API in error texts -> the fields' labels.
FIELD_LABELS = {
    "from": "the minimum notice",
    "to": "“How far ahead”",
    "length": "the length above",
    "lengths": "the lengths to choose from",
}
# The texts of the booking page within `ui`.
PAGE_TEXTS = ("submit_button", "success_message")


def _label_of(name: re.Match[str]) -> str:
    return FIELD_LABELS.get(name[1], name[0])


def text_field(
    label: str,
    help_text: str,
    widget: forms.Widget | type[forms.Widget] = UnfoldAdminTextInputWidget,
) -> forms.CharField:
    return forms.CharField(label=label, help_text=help_text, required=False, widget=widget)


def number_field(label: str, help_text: str) -> forms.IntegerField:
    return forms.IntegerField(
        label=label, help_text=help_text, required=False, widget=UnfoldAdminIntegerFieldWidget
    )


def choice(label: str, help_text: str, choices: Mapping[str, str]) -> forms.ChoiceField:
    return forms.ChoiceField(
        label=label,
        help_text=help_text,
        choices=list(choices.items()),
        required=False,
        widget=UnfoldAdminSelectWidget,
    )


def radio_field(
    label: str, choices: Mapping[str, str], initial: str, help_text: str = ""
) -> forms.ChoiceField:
    return forms.ChoiceField(
        label=label,
        help_text=help_text,
        choices=list(choices.items()),
        initial=initial,
        required=False,
        widget=UnfoldAdminRadioSelectWidget,
    )


def graph_choices(stored: Any) -> dict[str, str]:
    """Return the kinds of a project. Seats are offered only where they are stored: clients book
    them with a group session's id.
    """
    known = {
        name: GRAPH_WORDS[name] for name in GRAPH_HELP if not name.startswith("group_customer")
    }
    if isinstance(stored, str) and stored not in known:
        known[stored] = GRAPH_WORDS.get(stored, f"{stored} (unknown)")
    return {
        name: f"{words}. {GRAPH_HELP[name]}" if name in GRAPH_HELP else words
        for name, words in known.items()
    }


class ProjectForm(ApiForm):
    serializer_class = ProjectSerializer
    paths = {
        "graph": "booking.graph",
        "what": "booking.what",
        "where": "booking.where",
        "description": "booking.description",
        "payment_url": "booking.payment_url",
        "rescheduling_url": "booking.rescheduling_url",
        "length": "availability.length",
        "lengths": "availability.lengths",
        "timeslot_increments": "availability.timeslot_increments",
        "buffer": "availability.buffer",
        "buffer_before": "availability.buffer_before",
        "buffer_after": "availability.buffer_after",
        "notice": "availability.from",
        "horizon": "availability.to",
        "mode": "availability.mode",
        "requirements": "requires",
        "ignore_all_day_events": "availability.ignore_all_day_events",
        "round_to_nearest_hour": "availability.round_to_nearest_hour",
        "max_per_day": "settings.max_per_day",
        "max_per_week": "settings.max_per_week",
        "max_per_month": "settings.max_per_month",
        "max_per_customer_per_day": "settings.max_per_customer_per_day",
        "max_open_per_customer": "settings.max_open_per_customer",
        "min_cancel_time": "settings.min_cancel_time",
        "min_reschedule_time": "settings.min_reschedule_time",
        "max_reschedules": "settings.max_reschedules",
        "public_reschedule": "settings.public_reschedule",
        "pending_blocks": "settings.pending_blocks",
        "allow_double_bookings": "settings.allow_double_bookings",
        "enforce_availability": "settings.enforce_availability",
        "check_external": "settings.check_external",
        "published": "settings.published",
        "public_customers": "settings.public_customers",
        "choose_resource": "settings.choose_resource",
        "redirect_url": "settings.redirect_url",
        "embed_origins": "settings.embed_origins",
        "verify_email": "settings.verify_email",
        "language": "settings.language",
        "hold_time": "reservation_time",
    }
    documents = {
        "customer_fields": ("questions",),
        "ui": ("other_ui", *PAGE_TEXTS),
        "meta": ("meta",),
    }

    def _is_sent(self, name: str, value: Any) -> bool:
        # A new `buffer` would replace both sides.
        is_side = name in ("buffer_before", "buffer_after") and value not in ("", None)
        return super()._is_sent(name, value) or (is_side and "buffer" in self.changed_data)

    # Service
    graph = radio_field("Kind", {}, DEFAULT_GRAPH, "Default: confirmed at once.")
    what = text_field("Title of bookings", "Shown in e-mails and calendars. Default: the name.")
    description = text_field(
        "Description",
        "Shown on the booking page, in e-mails and calendars. Default: none.",
        UnfoldAdminTextareaWidget(attrs={"rows": 3}),
    )
    where = text_field("Place", "An address, a room or a link. Default: none.")
    payment_url = text_field(
        "Payment link",
        "For “Pay first”: customers pay there; the booking's id is added to the address. Without a"
        " link, the booking page takes no bookings. Default: none.",
    )

    # Times
    length = DurationField(
        label="Length",
        help_text="How long a booking takes. Default: 1 hour.",
        more={WHOLE: "all of the free time"},
    )
    lengths = DurationListField(
        label="Lengths to choose from",
        help_text="For customers, such as 30 minutes, 1 hour. The length above must be one of them."
        " Default: that length alone.",
    )
    timeslot_increments = DurationField(
        label="Starts every",
        help_text="The distance between start times, such as every 15 minutes. Default: one booking"
        " after another.",
    )
    buffer = DurationField(
        label="Buffer",
        help_text="Free time before and after each booking and event. Default: none.",
    )
    buffer_before = DurationField(
        label="Buffer before",
        help_text="Free time before each booking, if it differs. Default: the buffer above.",
    )
    buffer_after = DurationField(
        label="Buffer after",
        help_text="Free time after each booking, if it differs. Default: the buffer above.",
    )
    notice = DurationField(
        label="Minimum notice",
        help_text="How long before the start customers must book. Default: none.",
        units=NOTICE_UNITS,
        more={"tomorrow": "from tomorrow on"},
    )
    horizon = DurationField(
        label="How far ahead",
        help_text="How far in the future customers can book. Default: 4 weeks.",
        units=HORIZON_UNITS,
    )
    max_per_day = number_field(
        "Bookings per day", "For each resource, through this project. Default: no limit."
    )
    max_per_week = number_field(
        "Bookings per week", "For each resource, Monday to Sunday. Default: no limit."
    )
    max_per_month = number_field(
        "Bookings per month", "For each resource and calendar month. Default: no limit."
    )
    max_per_customer_per_day = number_field(
        "Bookings per day and customer", "For each e-mail address. Default: no limit."
    )
    max_open_per_customer = number_field(
        "Upcoming bookings per customer", "For each e-mail address. Default: no limit."
    )
    mode = radio_field("Who gets the booking", MODE_WORDS, DEFAULT_MODE)
    requirements = RequirementsField(
        label="Several resources at once",
        help_text="What each booking needs, such as a dentist and a room: one row each. The"
        " resources of the project are then those of the rows, and “Who gets the booking” does not"
        " count. Clear a row to remove it. Default: one resource.",
    )
    ignore_all_day_events = switch_field(
        "Ignore all-day events",
        "All-day events in calendars, such as birthdays, do not block time. Default: they do.",
    )
    check_external = switch_field(
        "Check connected calendars live",
        "Asks the calendars' servers once more before each booking, for at most 3 seconds. Default:"
        " the last sync counts.",
    )

    # Rules
    rules = RulesField(
        KINDS,
        label="Rules",
        help_text="They narrow the hours of the project's resources. Default: no rules.",
    )

    # Questions
    questions = QuestionsField(
        label="Questions for the customer",
        help_text="Name and e-mail address are always asked. Clear a question's text to remove it."
        " Default: no further questions.",
    )
    public_customers = choice(
        "Customers per booking",
        "How many customers can be entered for one booking.",
        {
            "": "1 (default)",
            **{str(count): str(count) for count in range(2, MAX_PUBLIC_CUSTOMERS + 1)},
        },
    )

    # Policies
    min_cancel_time = DurationField(
        label="Cancel until",
        units=POLICY_UNITS,
        help_text="How long before the start customers can still cancel. Default: until the start.",
    )
    min_reschedule_time = DurationField(
        label="Reschedule until",
        units=POLICY_UNITS,
        help_text="How long before the start customers can still choose another time. Default:"
        " until the start.",
    )
    max_reschedules = number_field(
        "Reschedules", "How often customers can move a booking. Default: 20. 0: never."
    )
    public_reschedule = choice(
        "Rescheduling on web sites",
        "What a widget on your web site needs to move a booking.",
        {"": "The link from an e-mail (default)", "id": "The booking's id"},
    )
    rescheduling_url = text_field(
        "Your own rescheduling page",
        "E-mails link to this address. Default: the page of this service.",
    )
    pending_blocks = switch_field(
        "Requests block their time",
        "For “Needs approval”: nobody else can book a requested time. Default: it stays open.",
    )
    allow_double_bookings = switch_field(
        "Allow overlapping bookings", "Several bookings can take place at once. Default: off."
    )
    enforce_availability = choice(
        "Bookings by your own programs (API)",
        "Whether they must keep to the opening hours and limits. Booking pages always do.",
        {"": "Keep to opening hours and limits (default)", "no": "May ignore them"},
    )

    # Booking page
    published = choice(
        "Booking page",
        "A published page is open to everyone who knows its address.",
        {"": "As the app's settings say (default)", "yes": "Published", "no": "Not published"},
    )
    submit_button = text_field("Button", "The text of the button that books. Default: Book.")
    success_message = text_field(
        "Message after booking",
        "%s stands for the customer's e-mail address. Default: a message is on its way.",
    )
    choose_resource = switch_field(
        "Customers choose the person",
        "They can also choose anyone. Default: the service chooses.",
    )
    redirect_url = text_field(
        "Page after booking",
        "The address of your own page; the booking's id is added. Default: the booking page shows"
        " the booking.",
    )
    embed_origins = LinesField(
        label="Web sites that embed the page",
        help_text="Such as https://shop.example. Separate them with Enter. Default: any.",
    )
    verify_email = switch_field(
        "Verify e-mail addresses",
        "Customers enter a code that is sent to them before the booking is made. Default: off.",
    )
    language = choice("Language", "Of the page and of e-mails. Default: the app's language.", {})
    hold_time = SecondsField(
        label="Hold a time for",
        help_text="How long a chosen time is held while the customer fills in the form. The booking"
        " page holds times from 2 minutes on. Default: 30 seconds.",
    )

    # Advanced
    round_to_nearest_hour = switch_field(
        "Begin at full hours", "Rounds the minimum notice up to the next full hour. Default: on."
    )
    other_ui = json_field(
        "Other page settings", "Further keys of `ui`, for your own pages. JSON. Default: none."
    )
    meta = json_field("Custom data", "Your own keys, for your own programs. JSON. Default: none.")

    class Meta:
        model = Project
        fields: tuple[str, ...] = (*("app", "name", "slug", "replaces_notifications"),)
        labels = {
            "name": "Name",
            "slug": "Link name",
            "replaces_notifications": "Use this project's own reminders",
        }
        help_texts = {
            "name": "The heading of the booking page.",
            "slug": "The last part of the booking page's address: a to z, 0 to 9, hyphens. Old"
            " links stop working if you change it. Default: made from the name.",
            "replaces_notifications": "Off: the reminders of the app are used (default).",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        project = self.instance
        if "graph" in self.fields:
            stored = project.booking.get("graph")
            choice_field(self, "graph").choices = list(graph_choices(stored).items())
        if "language" in self.fields:
            names = {"": "The app's language (default)", **language_names()}
            choice_field(self, "language").choices = list(names.items())
        if "requirements" in self.fields:
            cast(RequirementsField, self.fields["requirements"]).widget.app_id = project.app_id
        availability = project.availability
        if "length" in availability and availability["length"] is None:
            self.initial["length"] = WHOLE
        self.initial.setdefault("round_to_nearest_hour", True)
        self.initial["enforce_availability"] = (
            "no" if project.settings.get("enforce_availability") is False else ""
        )
        if project.settings.get("public_customers") == 1:
            self.initial["public_customers"] = ""
        if project.settings.get("public_reschedule") == "link":
            self.initial["public_reschedule"] = ""
        texts = page_texts(project.ui)
        self.initial.update({name: _text(texts.get(name)) for name in PAGE_TEXTS})
        self.initial["other_ui"] = other_ui(project.ui)
        self.initial["questions"] = rows_of(project.customer_fields)
        if not self.is_new:
            self.initial["rules"] = rule_rows_of(stored_rules(project))

    def clean_slug(self) -> str:
        slug = self.cleaned_data["slug"]
        others = Project.objects.filter(slug=slug, deleted_at=None).exclude(pk=self.instance.pk)
        if slug and others.exists():
            raise forms.ValidationError("Another project has this address.")
        return slug

    def clean_length(self) -> str:
        return self.cleaned_data["length"] or USUAL_LENGTH

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean()
        if "replaces_notifications" in self.changed_data:
            replaces = {"replaces_notifications": values["replaces_notifications"]}
            self.given = {**self.given, **replaces}
        if "rules" in self.changed_data and "rules" in values:
            self.given = {**self.given, "availability_constraints": rules_of(values["rules"])}
        self._check_requirements(values)
        return values

    def _check_requirements(self, values: Mapping[str, Any]) -> None:
        """Report at their fields what the service would refuse."""
        if values.get("requirements") and values.get("length") == WHOLE:
            self.add_error("length", "Must be a duration: bookings need several resources.")
        try:
            load_requirements(self.instance.app_id, self.given.get("requires") or ())
        except Invalid as error:
            for path, faults in error.fields["errors"].items():
                self.add_path_faults("requirements", path.split(".")[1:], faults)

    def serializer_context(self) -> dict[str, Any]:
        return {"project": self.instance}

    def api_value(self, name: str, value: Any) -> Any:
        if name == "length" and value == WHOLE:
            return None
        if name in ("published", "enforce_availability"):
            return {"yes": True, "no": False}.get(value)
        if name == "public_customers":
            return int(value) if value else None
        if name == "embed_origins":
            return value.splitlines() or None
        return super().api_value(name, value)

    def document(self, name: str, values: Mapping[str, Any]) -> dict[str, Any]:
        if name == "customer_fields":
            is_new_order = values is self.cleaned_data
            return questions_of(values["questions"], renumber=is_new_order)
        if name == "meta":
            return _object(values["meta"])
        ui = dict(_object(values["other_ui"]))
        texts = {key: values[key] for key in PAGE_TEXTS if values.get(key)}
        kept = ui.get("localization")
        if texts or isinstance(kept, dict):
            ui["localization"] = {**(kept if isinstance(kept, dict) else {}), **texts}
        return ui

    def add_path_faults(self, field: str | None, steps: list[str], faults: list[str]) -> None:
        if field == "questions" and steps:
            titles = {row["key"]: row["title"] for row in self.cleaned_data.get("questions", ())}
            title = titles.get(steps[0]) or steps[0].replace("_", " ")
            faults = [f"{title}: {fault}" for fault in faults]
            steps = []
        if field == "requirements" and len(steps) > 1:
            column = "tags" if "tags" in steps else "resources" if "any_of" in steps else steps[1]
            rows = cast(RequirementsField, self.fields["requirements"])
            rows.add_fault(int(steps[0]), column, faults)
            steps, faults = [], [] if "requirements" in self.errors else [CHECK_ROWS]
        labelled = [NAMED_FIELD.sub(_label_of, fault) for fault in faults]
        super().add_path_faults(field, steps, labelled)


class ResourcesField(forms.ModelMultipleChoiceField):
    names_app = False

    def label_from_instance(self, obj: Any) -> str:
        return f"{obj.name} ({obj.app.name})" if self.names_app else obj.name


class NewProjectForm(ProjectForm):
    """The few fields of a new project; its page has the others."""

    serializer_class = NewProjectSerializer
    documents = {}
    asked = ("name", "length", "graph", "resources", "published")
    # Set by the admin: the resources to choose from, and whether there are more.
    offered: QuerySet[Resource]
    has_more = False

    published = choice(
        "Booking page",
        "A published page is open to everyone who knows its address.",
        {"yes": "Publish at once (default)", "no": "Do not publish yet"},
    )
    resources = ResourcesField(
        label="Who can be booked",
        help_text="Choose one or several. Default: the only resource, else nobody.",
        queryset=Resource.objects.none(),
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
    )

    class Meta(ProjectForm.Meta):
        fields: tuple[str, ...] = ("app", "name")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        resources = cast(ResourcesField, self.fields["resources"])
        resources.queryset = self.offered
        resources.names_app = self.only_app is None
        if self.has_more:
            resources.help_text = "The first by name. Add others on the project's page."

    def api_value(self, name: str, value: Any) -> Any:
        if name == "resources":
            return [str(resource.pk) for resource in value]
        return super().api_value(name, value)


def page_texts(ui: Any) -> Mapping[str, Any]:
    found = ui.get("localization") if isinstance(ui, dict) else None
    return found if isinstance(found, dict) else {}


def other_ui(ui: Any) -> dict[str, Any]:
    """Return the keys of `ui` that have no field of their own."""
    rest = dict(ui) if isinstance(ui, dict) else {}
    texts = {key: text for key, text in page_texts(ui).items() if key not in PAGE_TEXTS}
    if isinstance(rest.get("localization"), dict):
        del rest["localization"]
    return rest | ({"localization": texts} if texts else {})


def _object(value: Any) -> Any:
    return {} if value in (None, "") else value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
