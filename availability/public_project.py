"""The public configuration of a booking page (api.md section 4).

It omits what the page does not show: policies, meta, and event notifications, whose URLs are
secrets.
"""

from typing import Any

from availability.models import Project
from availability.records import (
    MAX_CONSTRAINTS,
    PROJECT_EXAMPLE,
    QUESTIONS,
    RESERVATION_TIME,
    BookingDefaultsRecord,
    ConstraintRecord,
    CredentialRecord,
    CustomerFieldRecord,
    ProjectAvailabilityRecord,
    resource_ids,
)
from common.api.merge_patch import merge_keys
from common.api.response_records import Id, Json, Record, field

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
BOOKING = {"graph": "instant"}


class EmbeddedPageRecord(Record, shows=["resources", "availability", "availability_constraints"]):
    id: Id = field(example=PROJECT_EXAMPLE["id"])
    slug: str = field(example="check-up")
    name: str = field(example="Check-up")
    resources: list[Id] = field(
        optional=True, of=resource_ids, example=PROJECT_EXAMPLE["resources"]
    )
    availability: ProjectAvailabilityRecord = field(optional=True)
    availability_constraints: list[ConstraintRecord] = field(
        optional=True,
        maxItems=MAX_CONSTRAINTS,
        example=PROJECT_EXAMPLE["availability_constraints"],
    )
    booking: BookingDefaultsRecord = field(of=lambda project: merge_keys(BOOKING, project.booking))
    customer_fields: dict[str, CustomerFieldRecord] = field(
        QUESTIONS,
        of=lambda project: merge_keys(CUSTOMER_FIELDS, project.customer_fields),
        example=CUSTOMER_FIELDS,
    )
    ui: Json = field(
        "The project's settings, merged over defaults for the calendar and `localization`.",
        of=lambda project: merge_keys(UI, project.ui),
        example=UI,
    )
    reservation_time: int = field(optional=True, **RESERVATION_TIME)


class HostedPageRecord(EmbeddedPageRecord):
    app_key: str = field(
        "A widget key for this project, for the page's requests.",
        example=CredentialRecord.example()["key"],
    )


def public_project_record(project: Project) -> Json:
    """The page configuration of a project that was read by `with_project_rows`.

    Without empty values: pages merge it over their own defaults, which empty values would hide.
    Without names of rules, which are the owner's.
    """
    record = EmbeddedPageRecord.of(project, include=EmbeddedPageRecord.fields)
    record["availability_constraints"] = [
        {kind: {key: value for key, value in params.items() if key != "name"}}
        for rule in record["availability_constraints"]
        for kind, params in rule.items()
    ]
    return without_empty(record)


def without_empty(value: Any) -> Any:
    """Remove keys with empty values from objects, at any depth; false and 0 are not empty."""
    if not isinstance(value, dict):
        return value
    kept = {key: without_empty(element) for key, element in value.items()}
    return {key: element for key, element in kept.items() if element not in (None, "", [], {})}
