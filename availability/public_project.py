"""The public configuration of a booking page (api.md section 4).

It omits what the page does not show: policies, meta, and event notifications, whose URLs are
secrets.
"""

from rest_framework import serializers

from apps_config.serializers import WIDGET_KEY_EXAMPLE
from availability.graph_names import DEFAULT_GRAPH
from availability.models import Project
from availability.serializers.fields import ConstraintsField
from availability.serializers.projects import (
    PROJECT_EXAMPLE,
    BookingDefaultsSerializer,
    CustomerFieldsField,
    ProjectAvailabilitySerializer,
    TranslationsField,
    reservation_time_field,
    resource_ids,
)
from common.api.fields import IdField
from common.api.merge_patch import merge_keys, without_empty
from common.api.serializers import ObjectSerializer
from common.openapi.component_registry import Json

# Every customer enters these two; a project sets how they are asked for, and adds its own fields.
CUSTOMER_FIELDS = {
    "name": {"title": "Name", "required": True},
    "email": {"title": "E-mail", "format": "email", "required": True},
}
# What existing booking pages expect: some fail without a view and a format of times. `%s` is the
# customer's address.
UI = {
    "availability_view": "agendaWeek",
    "time_date_format": "24h-dmy-mon",
    "show_timezone_helper": True,
    "localization": {
        "submit_button": "Book",
        "success_message": "Thank you. A message to %s is on its way.",
    },
}
AMERICAN_UI = UI | {"time_date_format": "12h-mdy-sun"}
BOOKING = {"graph": DEFAULT_GRAPH}


class EmbeddedPageSerializer(ObjectSerializer):
    examples = {
        "id": PROJECT_EXAMPLE["id"],
        "slug": "check-up",
        "name": "Check-up",
        "resources": PROJECT_EXAMPLE["resources"],
        "availability_constraints": PROJECT_EXAMPLE["availability_constraints"],
        "customer_fields": CUSTOMER_FIELDS,
        "ui": UI,
    }
    on_request = (
        *("resources", "availability", "availability_constraints", "reservation_time"),
        "translations",
    )
    in_example = ("resources", "availability", "availability_constraints")

    id = IdField()
    slug = serializers.CharField()
    name = serializers.CharField()
    resources = serializers.ListField(child=IdField())
    availability = ProjectAvailabilitySerializer()
    availability_constraints = ConstraintsField()
    booking = BookingDefaultsSerializer()
    customer_fields = CustomerFieldsField()
    ui = serializers.DictField(
        help_text="The project's settings, merged over defaults for the calendar and"
        " `localization`."
    )
    translations = TranslationsField()
    reservation_time = reservation_time_field()

    get_resources = staticmethod(resource_ids)

    @staticmethod
    def get_booking(project: Project) -> Json:
        return merge_keys(BOOKING, project.booking)

    @staticmethod
    def get_customer_fields(project: Project) -> Json:
        return merge_keys(CUSTOMER_FIELDS, project.customer_fields)

    @staticmethod
    def get_ui(project: Project) -> Json:
        return merge_keys(AMERICAN_UI if _is_american(project) else UI, project.ui)


class HostedPageSerializer(EmbeddedPageSerializer):
    examples = {"app_key": WIDGET_KEY_EXAMPLE}

    app_key = serializers.CharField(
        help_text="A widget key for this project, for the page's requests."
    )


def public_project_record(project: Project) -> Json:
    """The page configuration of a project that was read by `with_project_rows`.

    Without empty values: pages merge it over their own defaults, which empty values would hide.
    Without names of rules, which are the owner's.
    """
    record = EmbeddedPageSerializer.render(project, include=EmbeddedPageSerializer.on_request)
    record["availability_constraints"] = [
        {kind: {key: value for key, value in params.items() if key != "name"}}
        for rule in record["availability_constraints"]
        for kind, params in rule.items()
    ]
    return without_empty(record)


def _is_american(project: Project) -> bool:
    """Return whether the language of the project, else of its app, is stored as `en-US`."""
    language = project.settings.get("language") or project.app.settings.get("language")
    return isinstance(language, str) and language.lower().replace("_", "-") == "en-us"
