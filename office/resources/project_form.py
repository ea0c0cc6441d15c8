"""The form of a project, checked by the API's serializer and saved by its services."""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, cast

from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminRadioSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from availability.conferences import JITSI, MEET, TEAMS, TEMPLATE
from availability.models import Project, Resource
from availability.search.parameters import SlotParameters
from availability.search.requirements import load_requirements
from availability.search.visits import ANY, load_visit
from availability.serializers.projects import (
    BookingDefaultsSerializer,
    ConferenceSettingsSerializer,
    MaxStartsSerializer,
    ProjectSerializer,
    ProjectSettingsSerializer,
    TermsSerializer,
)
from availability.services import cannot_be_paid
from common.api.merge_patch import merge_keys
from common.errors import Invalid
from office.base.api_forms import choice_field
from office.base.form_fields import json_field
from office.base.labels import GRAPH_WORDS
from office.base.lazy_text import LazyText
from office.base.rule_rows import KINDS
from office.base.setting_fields import setting_field
from office.resources.class_dates import FIELDS as DATE_FIELDS
from office.resources.class_dates import ClassDatesForm
from office.resources.external_id_field import ExternalIdForm
from office.resources.questions import QuestionsField, questions_of, rows_of
from office.resources.requirements_field import CHECK_ROWS, RequirementsField
from office.resources.resource_form import stored_rules, stored_window
from office.resources.rules_field import RulesField, rules_of
from office.resources.rules_field import rows_of as rule_rows_of
from office.resources.steps_field import StepsField, requirement_choices
from office.resources.translations_field import TranslationsField

USUAL_LENGTH = "1 hour"
# The first unit is that of an empty field.
POLICY_UNITS = ("hours", "days", "minutes")
NOTICE_UNITS = ("hours", "days", "weeks", "months", "minutes")
HORIZON_UNITS = ("weeks", "days", "months", "hours", "minutes")
WHOLE = "whole"
DEFAULT_MODE = SlotParameters().mode
GRAPH_HELP: Mapping[str, LazyText] = {
    "instant": _("The booking is confirmed as soon as the customer books (default)."),
    "confirm_decline": _("You accept or decline each request."),
    "instant_payment": _("The booking is confirmed once the customer has paid."),
    "group_owner": _("Several customers share one time, each with a seat."),
    "group_customer": _("Several customers share dates that you set, each with a seat."),
    "group_customer_payment": _("The same; a seat is confirmed once the customer has paid."),
}
CLASS_WORDS: Mapping[str, LazyText] = {
    "group_customer": _("Class or group"),
    "group_customer_payment": _("Class or group, paid first"),
}
MODE_WORDS: Mapping[str, LazyText] = {
    "roundrobin_random": _(
        "Anyone who is free: each booking goes to one of them at random (default)"
    ),
    "roundrobin_prioritized": _("In order: each booking goes to the first who is free"),
    "roundrobin_fair": _("Fair turns: each booking goes to whoever is furthest behind their share"),
    "mutual": _("Everyone together: only times when all are free, and all are booked"),
    "exclusive": _("One of several: times when at least one is free, each with all who are free"),
}
CONFERENCE_WORDS: Mapping[str, LazyText] = {
    "": _("None (default)"),
    MEET: _("Google Meet: the resource's connected Google Calendar makes the link"),
    TEAMS: _("Microsoft Teams: the resource's connected Microsoft 365 calendar makes the link"),
    JITSI: _("Jitsi: a room with a random name"),
    TEMPLATE: _("Your own address"),
}
NAMED_FIELD = re.compile(r"`(\w+)`")
# Names of the API in error texts -> the fields' labels.
FIELD_LABELS: Mapping[str, LazyText] = {
    # Translators: in an error text, such as "Must be 1 s to 366 days after the minimum notice."
    "from": _("the minimum notice"),
    "to": _("“How far ahead”"),
    # Translators: in an error text: "Must contain the length above."
    "length": _("the length above"),
    "lengths": _("the lengths to choose from"),
    # Translators: in an error text: "Must be at least the least pause."
    "min": _("the least pause"),
    # Translators: in an error text: "Is not used with the steps of a visit."
    "steps": _("the steps of a visit"),
}
# Of a visit, whose steps have lengths and resources of their own.
NOT_OF_VISITS = ("length", "lengths", "mode")
PACE = ("starts_quantity", "starts_per")
WINDOWS = {"start_rules": "start_window", "end_rules": "end_window"}
# The texts of the booking page within `ui`.
PAGE_TEXTS = ("submit_button", "success_message")


def _label_of(name: re.Match[str]) -> str:
    return str(FIELD_LABELS.get(name[1], name[0]))


def text_field(
    label: LazyText,
    help_text: LazyText,
    widget: forms.Widget | type[forms.Widget] = UnfoldAdminTextInputWidget,
) -> forms.CharField:
    return forms.CharField(label=label, help_text=help_text, required=False, widget=widget)


def kind_words(graph: str) -> str:
    """Return the kind of a project: that of the seats is the class."""
    return str(CLASS_WORDS.get(graph) or GRAPH_WORDS.get(graph, graph))


def graph_choices(stored: Any) -> dict[str, str]:
    """Return the kinds of a project. The owner's side of a class is offered only where it is
    stored: its page can't be booked.
    """
    known = {name: kind_words(name) for name in GRAPH_HELP if name != "group_owner"}
    if isinstance(stored, str) and stored not in known:
        unknown = gettext("%(value)s (unknown)") % {"value": stored}
        known[stored] = str(GRAPH_WORDS.get(stored, unknown))
    return {
        name: gettext("%(kind)s. %(explanation)s")
        % {"kind": words, "explanation": GRAPH_HELP[name]}
        if name in GRAPH_HELP
        else words
        for name, words in known.items()
    }


# Parts of the page.
SERVICE, TIMES, WHO, QUESTIONS = _("Service"), _("Times"), _("Who"), _("Questions")
POLICIES, PAGE, ADVANCED = _("Policies"), _("Booking page"), _("Advanced")
LANGUAGES = _("Languages")

project_field = partial(setting_field, ProjectSerializer, "")
term = partial(setting_field, TermsSerializer, "availability")
booking_default = partial(setting_field, BookingDefaultsSerializer, "booking")
setting = partial(setting_field, ProjectSettingsSerializer, "settings")
pace_setting = partial(setting_field, MaxStartsSerializer, "availability.max_starts")
conference_setting = partial(setting_field, ConferenceSettingsSerializer, "settings.conference")


class ProjectForm(ExternalIdForm):
    serializer_class = ProjectSerializer
    paths = {"id_elsewhere": "external_id", "requirements": "requires", "visit_steps": "steps"}
    documents = {
        "customer_fields": ("questions",),
        "ui": ("other_ui", *PAGE_TEXTS),
        "translations": ("translated_texts",),
        "meta": ("meta",),
    }

    def _is_sent(self, name: str, value: Any) -> bool:
        # A new `buffer` would replace both sides.
        is_side = name in ("buffer_before", "buffer_after") and value not in ("", None)
        # Each half needs the other.
        is_half = name in PACE and not set(PACE).isdisjoint(self.changed_data)
        return (
            super()._is_sent(name, value)
            or (is_side and "buffer" in self.changed_data)
            or (is_half and not self.is_new)
        )

    # Service
    graph = booking_default(
        "graph",
        SERVICE,
        _("Kind"),
        _("Default: confirmed at once."),
        choices={},
        widget=UnfoldAdminRadioSelectWidget,
    )
    what = booking_default(
        "what",
        SERVICE,
        _("Title of bookings"),
        _("Shown in e-mails and calendars. Default: the name."),
    )
    description = booking_default(
        "description",
        SERVICE,
        _("Description"),
        _("Shown on the booking page, in e-mails and calendars. Default: none."),
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
    )
    where = booking_default(
        "where", SERVICE, _("Place"), _("An address, a room or a link. Default: none.")
    )
    conference = conference_setting(
        "provider",
        SERVICE,
        _("Video call"),
        _("Each booking gets a link of its own, in e-mails and calendars."),
        choices=CONFERENCE_WORDS,
    )
    conference_template = conference_setting(
        "template",
        SERVICE,
        _("Address of the video call"),
        _(
            "For “Your own address”: with {booking_id}, such as https://video.example/{booking_id}."
            " For Jitsi: your server. Default: meet.jit.si."
        ),
    )
    pay_url = setting(
        "pay_url",
        SERVICE,
        _("Payment link"),
        _(
            "For “Pay first”: the page where customers pay. {booking_id}, {start}, {until} and"
            " {signature} are replaced; id and signature are added if they are not in the address."
            " Without a link, the project can't be published. Default: none."
        ),
    )
    payment_url = booking_default(
        "payment_url",
        SERVICE,
        _("Payment link without a signature"),
        _(
            "Only the booking's id is added to the address. “Payment link” is used if both are set."
            " Default: none."
        ),
    )

    # Times
    length = term(
        "length",
        TIMES,
        _("Length"),
        _("How long a booking takes. Default: 1 hour."),
        more={WHOLE: _("all of the free time")},
    )
    lengths = term(
        "lengths",
        TIMES,
        _("Lengths to choose from"),
        _(
            "For customers, such as 30 minutes, 1 hour. The length above must be one of them."
            " Default: that length alone."
        ),
    )
    timeslot_increments = term(
        "timeslot_increments",
        TIMES,
        _("Starts every"),
        _(
            "The distance between start times, such as every 15 minutes. Default: one booking"
            " after another."
        ),
    )
    buffer = term(
        "buffer",
        TIMES,
        _("Buffer"),
        _("Free time before and after each booking and event. Default: none."),
    )
    buffer_before = term(
        "buffer_before",
        TIMES,
        _("Buffer before"),
        _("Free time before each booking, if it differs. Default: the buffer above."),
    )
    buffer_after = term(
        "buffer_after",
        TIMES,
        _("Buffer after"),
        _("Free time after each booking, if it differs. Default: the buffer above."),
    )
    starts_quantity = pace_setting(
        "quantity",
        TIMES,
        _("Starts at once"),
        _("How many bookings may start within the time below. Default: no limit."),
    )
    starts_per = pace_setting(
        "per",
        TIMES,
        _("Time of these starts"),
        _("Such as 4 starts within 15 minutes. Default: no limit."),
    )
    max_quantity = setting(
        "max_quantity",
        TIMES,
        _("Number per booking"),
        _(
            "How many units of a resource, or seats, customers can book at once, such as 3 bikes."
            " Default: 1."
        ),
    )
    notice = term(
        "from",
        TIMES,
        _("Minimum notice"),
        _("How long before the start customers must book. Default: none."),
        more={"tomorrow": _("from tomorrow on")},
        units=NOTICE_UNITS,
    )
    horizon = term(
        "to",
        TIMES,
        _("How far ahead"),
        _("How far in the future customers can book. Default: 4 weeks."),
        units=HORIZON_UNITS,
    )
    max_per_day = setting(
        "max_per_day",
        TIMES,
        _("Bookings per day"),
        _("For each resource, through this project. Default: no limit."),
    )
    max_per_week = setting(
        "max_per_week",
        TIMES,
        _("Bookings per week"),
        _("For each resource, Monday to Sunday. Default: no limit."),
    )
    max_per_month = setting(
        "max_per_month",
        TIMES,
        _("Bookings per month"),
        _("For each resource and calendar month. Default: no limit."),
    )
    max_per_customer_per_day = setting(
        "max_per_customer_per_day",
        TIMES,
        _("Bookings per day and customer"),
        _("For each e-mail address. Default: no limit."),
    )
    max_open_per_customer = setting(
        "max_open_per_customer",
        TIMES,
        _("Upcoming bookings per customer"),
        _("For each e-mail address. Default: no limit."),
    )
    mode = term(
        "mode",
        WHO,
        _("Who gets the booking"),
        choices=MODE_WORDS,
        widget=UnfoldAdminRadioSelectWidget,
    )
    requirements = RequirementsField(
        label=_("Several resources at once"),
        help_text=_(
            "What each booking needs, such as a dentist and a room: one row each. The"
            " resources of the project are then those of the rows, and “Who gets the booking” does"
            " not count. Clear a row to remove it. Default: one resource."
        ),
    )
    visit_steps = StepsField(
        label=_("Steps of a visit"),
        help_text=_(
            "For bookings of several steps, such as a cleaning, then a check-up: one row each, with"
            " its own length and resources. The length of the project does not count then. Clear a"
            " row to remove it. Default: one step."
        ),
    )
    visit_order = project_field(
        "order",
        None,
        _("Order of the steps"),
        choices={
            "": _("As they stand here (default)"),
            ANY: _("Any order that fits"),
        },
    )
    ignore_all_day_events = term(
        "ignore_all_day_events",
        TIMES,
        _("Ignore all-day events"),
        _("All-day events in calendars, such as birthdays, do not block time. Default: they do."),
    )
    check_external = setting(
        "check_external",
        TIMES,
        _("Check connected calendars live"),
        _(
            "Asks the calendars' servers once more before each booking, for at most 3 seconds."
            " Default: the last sync counts."
        ),
    )

    # Rules
    rules = RulesField(
        KINDS,
        label=_("Rules"),
        help_text=_("They narrow the hours of the project's resources. Default: no rules."),
    )

    start_rules = RulesField(
        KINDS,
        label=_("When bookings can start"),
        help_text=_(
            "For rentals over night: bookings start and end by these rules, and the time between"
            " need not be open. Default: the opening hours."
        ),
    )
    end_rules = RulesField(
        KINDS,
        label=_("When bookings can end"),
        help_text=_("The same for their end. Default: the opening hours."),
    )

    # Questions
    questions = QuestionsField(
        label=_("Questions for the customer"),
        help_text=_(
            "Name and e-mail address are always asked. Clear a question's text to remove it."
            " Default: no further questions."
        ),
    )
    public_customers = setting(
        "public_customers",
        QUESTIONS,
        _("Customers per booking"),
        _("How many customers can be entered for one booking."),
        choices={"": _("1 (default)")},
    )

    # Policies
    min_cancel_time = setting(
        "min_cancel_time",
        POLICIES,
        _("Cancel until"),
        _("How long before the start customers can still cancel. Default: until the start."),
        units=POLICY_UNITS,
    )
    min_reschedule_time = setting(
        "min_reschedule_time",
        POLICIES,
        _("Reschedule until"),
        _(
            "How long before the start customers can still choose another time. Default:"
            " until the start."
        ),
        units=POLICY_UNITS,
    )
    max_reschedules = setting(
        "max_reschedules",
        POLICIES,
        _("Reschedules"),
        _("How often customers can move a booking. Default: 20. 0: never."),
    )
    public_reschedule = setting(
        "public_reschedule",
        POLICIES,
        _("Rescheduling on web sites"),
        _("What a widget on your web site needs to move a booking."),
        choices={"": _("The link from an e-mail (default)"), "id": _("The booking's id")},
    )
    rescheduling_url = booking_default(
        "rescheduling_url",
        POLICIES,
        _("Your own rescheduling page"),
        _("E-mails link to this address. Default: the page of this service."),
    )
    guest_declines = setting(
        "guest_declines",
        POLICIES,
        _("Declined invitations"),
        _(
            "What happens if a customer declines the invitation in a calendar program."
            " The deadline for cancelling counts."
        ),
        choices={
            "": _("The booking shows it (default)"),
            "cancel": pgettext_lazy("declined invitation", "The booking is cancelled"),
        },
    )
    pending_blocks = setting(
        "pending_blocks",
        POLICIES,
        _("Requests block their time"),
        _("For “Needs approval”: nobody else can book a requested time. Default: it stays open."),
    )
    pending_expires = setting(
        "pending_expires",
        POLICIES,
        _("Decline requests after"),
        _(
            "For “Needs approval”: a request without an answer is declined, and the customer gets"
            " an e-mail. Default: never."
        ),
        units=POLICY_UNITS,
    )
    allow_double_bookings = setting(
        "allow_double_bookings",
        POLICIES,
        _("Allow overlapping bookings"),
        _("Several bookings can take place at once. Default: off."),
    )
    enforce_availability = setting(
        "enforce_availability",
        POLICIES,
        _("Bookings by your own programs (API)"),
        _("Whether they must keep to the opening hours and limits. Booking pages always do."),
        choices={"": _("Keep to opening hours and limits (default)"), False: _("May ignore them")},
    )

    # Booking page
    published = setting(
        "published",
        None,
        _("Booking page"),
        _("A published page is open to everyone who knows its address."),
        choices={
            "": _("As the app's settings say (default)"),
            True: _("Published"),
            False: _("Not published"),
        },
    )
    submit_button = text_field(_("Button"), _("The text of the button that books. Default: Book."))
    # Translators: keep %s as it is: it is typed into the message.
    success_message = text_field(
        _("Message after booking"),
        _("%s stands for the customer's e-mail address. Default: a message is on its way."),
    )
    choose_resource = setting(
        "choose_resource",
        PAGE,
        _("Customers choose the person"),
        _("They can also choose anyone. Of several requirements, one can be chosen from."),
        choices={"": _("No, the service chooses (default)"), True: _("Yes")},
    )
    show_remaining = setting(
        "show_remaining",
        PAGE,
        _("Show how many are left"),
        _("Beside each time, how many can still be booked. Default: off."),
    )
    redirect_url = setting(
        "redirect_url",
        PAGE,
        _("Page after booking"),
        _(
            "The address of your own page; the booking's id is added. Default: the booking page"
            " shows the booking."
        ),
    )
    embed_origins = setting(
        "embed_origins",
        PAGE,
        _("Web sites that embed the page"),
        _("Such as https://shop.example. Separate them with Enter. Default: any."),
    )
    verify_email = setting(
        "verify_email",
        PAGE,
        _("Verify e-mail addresses"),
        _("Customers enter a code that is sent to them before the booking is made. Default: off."),
    )
    language = setting(
        "language",
        PAGE,
        _("Language"),
        _("Of the page and of e-mails. Default: the app's language."),
        choices={"": _("The app's language (default)")},
    )
    hold_time = project_field(
        "reservation_time",
        PAGE,
        _("Hold a time for"),
        _(
            "How long a chosen time is held while the customer fills in the form. The booking"
            " page holds times from 2 minutes on. Default: 30 seconds."
        ),
    )

    # Languages
    translated_texts = TranslationsField(
        label=_("Texts in other languages"),
        help_text=_(
            "Customers read them on pages and in e-mails in their language. Default: the texts"
            " above."
        ),
    )

    # Advanced
    round_to_nearest_hour = term(
        "round_to_nearest_hour",
        ADVANCED,
        _("Begin at full hours"),
        _("Rounds the minimum notice up to the next full hour. Default: on."),
    )
    other_ui = json_field(
        _("Other page settings"),
        _("Further keys of `ui`, for your own pages. JSON. Default: none."),
    )
    meta = json_field(
        _("Custom data"), _("Your own keys, for your own programs. JSON. Default: none.")
    )

    class Meta:
        model = Project
        fields: tuple[str, ...] = (*("app", "name", "slug", "replaces_notifications"),)
        labels = {
            "name": _("Name"),
            "slug": _("Link name"),
            "replaces_notifications": _("Use this project's own reminders"),
        }
        help_texts = {
            "name": _("The heading of the booking page."),
            "slug": _(
                "The last part of the booking page's address: a to z, 0 to 9, hyphens. Old"
                " links stop working if you change it. Default: made from the name."
            ),
            "replaces_notifications": _("Off: the reminders of the app are used (default)."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        project = self.instance
        if "graph" in self.fields:
            stored = project.booking.get("graph")
            choice_field(self, "graph").choices = list(graph_choices(stored).items())
        if "requirements" in self.fields:
            cast(RequirementsField, self.fields["requirements"]).widget.app_id = project.app_id
            cast(StepsField, self.fields["visit_steps"]).widget.app_id = project.app_id
        for name in NOT_OF_VISITS if project.steps else ():
            del self.fields[name]
        if "choose_resource" in self.fields:
            choice = choice_field(self, "choose_resource")
            known = cast(list[tuple[str, str]], choice.choices)
            choice.choices = [*known, *requirement_choices(project)]
        availability = project.availability
        if "length" in availability and availability["length"] is None:
            self.initial["length"] = WHOLE
        texts = page_texts(project.ui)
        self.initial.update({name: _text(texts.get(name)) for name in PAGE_TEXTS})
        self.initial["other_ui"] = other_ui(project.ui)
        self.initial["questions"] = rows_of(project.customer_fields)
        if "translated_texts" in self.fields and not self.is_new:
            translations = cast(TranslationsField, self.fields["translated_texts"])
            self.initial["translated_texts"] = translations.show(project)
        if not self.is_new:
            self.initial["rules"] = rule_rows_of(stored_rules(project))
            for name, key in WINDOWS.items():
                self.initial[name] = rule_rows_of(stored_window(project, key))

    def clean_slug(self) -> str:
        slug = self.cleaned_data["slug"]
        others = Project.objects.filter(slug=slug, deleted_at=None).exclude(pk=self.instance.pk)
        if slug and others.exists():
            raise forms.ValidationError(gettext("Another project has this address."))
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
        for name, key in WINDOWS.items():
            if name in self.changed_data and name in values:
                window = rules_of(values[name]) or None
                terms = {**self.given.get("availability", {}), key: window}
                self.given = {**self.given, "availability": terms}
        self._check_requirements(values)
        self._require_payment_link()
        return values

    def _require_payment_link(self) -> None:
        """Report what the service would refuse, at the field that solves it."""
        stored = self.instance
        changed = Project(
            booking=merge_keys(stored.booking, self.given.get("booking", {})),
            settings=merge_keys(stored.settings, self.given.get("settings", {})),
        )
        if cannot_be_paid(changed):
            if "pay_url" in self.fields:
                self.add_error(
                    "pay_url", gettext("Add a payment link, or do not publish the page.")
                )
            else:
                self.add_error(
                    "published", gettext("Add a payment link before you publish the page.")
                )

    def _check_requirements(self, values: Mapping[str, Any]) -> None:
        """Report at their fields what the service would refuse. A mode is not used."""
        requires, steps = values.get("requirements"), values.get("visit_steps")
        if (requires or steps) and "mode" in self.given.get("availability", {}):
            terms = {key: each for key, each in self.given["availability"].items() if key != "mode"}
            self.given = {**self.given, "availability": terms}
        if requires and steps and "requirements" not in self.errors:
            fault = gettext("Fill in either these, or several resources at once.")
            self.add_error("visit_steps", fault)
        elif requires and values.get("length") == WHOLE:
            self.add_error(
                "length", gettext("Must be a duration: bookings need several resources.")
            )
        app_id, given = self.instance.app_id, self.given
        try:
            load_requirements(app_id, given.get("requires") or ())
            load_visit(app_id, given.get("steps") or (), given.get("order"))
        except Invalid as error:
            for path, faults in error.fields["errors"].items():
                rest = path.split(".")[1:]
                self.add_path_faults(
                    "visit_steps" if given.get("steps") else "requirements", rest, faults
                )

    def serializer_context(self) -> dict[str, Any]:
        return {"project": self.instance}

    def api_value(self, name: str, value: Any) -> Any:
        if name == "length" and value == WHOLE:
            return None
        return super().api_value(name, value)

    def document(self, name: str, values: Mapping[str, Any]) -> dict[str, Any]:
        if name == "customer_fields":
            is_new_order = values is self.cleaned_data
            return questions_of(values["questions"], renumber=is_new_order)
        if name == "translations":
            return values["translated_texts"]
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
        if field == "translated_texts" and steps:
            label = cast(TranslationsField, self.fields["translated_texts"]).label_of(steps)
            faults, steps = [f"{label}: {fault}" for fault in faults], []
        faults = [NAMED_FIELD.sub(_label_of, fault) for fault in faults]
        if field in ("requirements", "visit_steps") and len(steps) > 1:
            rows = cast(RequirementsField | StepsField, self.fields[field])
            if rows.add_api_fault(steps, faults):
                faults = [] if field in self.errors else [str(CHECK_ROWS)]
            steps = []
        super().add_path_faults(field, steps, faults)


class ResourcesField(forms.ModelMultipleChoiceField):
    names_app = False

    def label_from_instance(self, obj: Any) -> str:
        return f"{obj.name} ({obj.app.name})" if self.names_app else obj.name


class NewProjectForm(ClassDatesForm, ProjectForm):
    """The few fields of a new project; its page has the others."""

    documents = {}
    asked = ("name", "length", "graph", *DATE_FIELDS, "resources", "published")
    # Set by the admin: the resources to choose from, and whether there are more.
    offered: QuerySet[Resource]
    has_more = False

    published = setting(
        "published",
        None,
        _("Booking page"),
        _("A published page is open to everyone who knows its address."),
        choices={True: _("Publish at once (default)"), False: _("Do not publish yet")},
    )
    resources = ResourcesField(
        label=_("Who can be booked"),
        help_text=_("Choose one or several. Default: the only resource, else nobody."),
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
            resources.help_text = gettext("The first by name. Add others on the project's page.")

    @property
    def is_of_class(self) -> bool:
        return self.cleaned_data.get("graph") in CLASS_WORDS

    def clean(self) -> dict[str, Any]:
        values = super().clean()
        if self.is_of_class:
            self.check_dates(values)
            if values.get("first_date") and not values.get("resources"):
                self.add_error("resources", gettext("Who gives the class?"))
            if values.get("length") == WHOLE:
                self.add_error("length", gettext("A class has a fixed length."))
        return values

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
