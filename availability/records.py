"""Resources, calendars, events and projects in answers, and the rows that their records need."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from django.db.models import Prefetch, QuerySet

from apps_config.models import Credential
from apps_config.records import EventNotificationRecord
from availability.core.constraints import CONSTRAINT_NAMES, MAX_CATEGORIES, MAX_LABEL, MAX_WINDOWS
from availability.core.date_rules import MAX_DURATION
from availability.models import Calendar, Event, Project, Resource
from availability.payment_links import payment_key
from availability.search.parameters import MODE_ALIASES, MODES
from common.api.fields import ONE_LINE, duration_schema
from common.api.response_records import (
    END_EXAMPLE,
    Id,
    Json,
    Record,
    Stamp,
    Time,
    example_id,
    field,
)
from common.openapi.components import text_response

# --- Constraints ----------------------------------------------------------------------------------
_DAY_TIME = {
    "type": ["integer", "string"],
    "description": "A full hour as a number, or a time as text. 24 is midnight at the end of the"
    " day.",
    "minimum": 0,
    "maximum": 24,
    "pattern": "^([01]?[0-9]|2[0-3])(:[0-5][0-9])?$|^24(:00)?$",
    "examples": [9, "09:30"],
}
_DAY = text_response("Upper or lower case.", pattern="^[A-Za-z]+day$", examples=["Monday"])
_BOUND = text_response(
    "Wall-clock time, a date (its midnight), or an instant with its offset.",
    pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]+)?"
    "(Z|[+-][0-9]{2}:?[0-9]{2})?)?$",
    examples=["2026-08-01 00:00:00"],
)
_TIMES = {"start": _DAY_TIME, "end": _DAY_TIME}
_RECURRENCE = {
    "start": text_response(
        "The wall-clock time of the first occurrence, or a date (its midnight).",
        pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}:[0-9]{2})?$",
        examples=["2026-12-01 14:00:00"],
    ),
    "duration": {**duration_schema(60, MAX_DURATION), "description": "At most 7 days."},
    "rrule": text_response(
        "RFC 5545, DAILY to YEARLY; COUNT and UNTIL may be absent.",
        maxLength=500,
        examples=["FREQ=WEEKLY;INTERVAL=2"],
    ),
}
_DATE = text_response(
    "A local date.", pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$", examples=["2026-12-24"]
)
_LABEL = {
    "name": text_response(
        "The rule's name in explanations.",
        maxLength=MAX_LABEL,
        pattern=ONE_LINE,
        examples=["Renovation"],
    )
}
# The required parameters of each constraint without its verb; the others have none.
_PARAMETERS: Mapping[str, Json] = {
    "hours": _TIMES,
    "day": {"day": _DAY},
    "day_and_time": {"day": _DAY, **_TIMES},
    "period": {"start": _BOUND, "end": _BOUND},
    "recurring": _RECURRENCE,
    "replace_day": {
        "date": _DATE,
        "windows": {
            "type": "array",
            "description": "The open hours of the date; none: closed.",
            "maxItems": MAX_WINDOWS,
            "items": {"type": "object", "required": ["start", "end"], "properties": _TIMES},
        },
    },
    "holidays": {
        "country": text_response(
            "ISO 3166-1, two letters.", pattern="^[A-Za-z]{2}$", examples=["DE"]
        )
    },
}
_OPTIONAL: Mapping[str, Json] = {
    "holidays": {
        "subdivision": text_response("A part of the country.", maxLength=40, examples=["BY"]),
        "categories": {
            "type": "array",
            "description": "Kinds of holidays. Absent: public ones.",
            "maxItems": MAX_CATEGORIES,
            "items": {"type": "string"},
            "examples": [["public"]],
        },
    }
}


def _constraint_parameters_schema(name: str) -> Json:
    noun = name if name in _PARAMETERS else name.split("_", 1)[1]
    parameters = _PARAMETERS.get(noun)
    if parameters is None:
        # Clients that can't write an empty object send an empty array.
        return {"type": ["object", "array"], "items": {}, "maxItems": 0, "properties": _LABEL}
    properties = {**parameters, **_OPTIONAL.get(noun, {}), **_LABEL}
    return {"type": "object", "required": list(parameters), "properties": properties}


class ConstraintRecord(
    Record,
    minProperties=1,
    maxProperties=1,
    properties={name: _constraint_parameters_schema(name) for name in CONSTRAINT_NAMES},
    additionalProperties=False,
    examples=[{"allow_day_and_time": {"day": "Monday", "start": 9, "end": "17:30"}}],
):
    """A rule for when time is open, on the wall clock of each resource: one key, the rule's name,
    with its parameters. Allow rules of the same kind in one list form a union (Monday, Tuesday).
    Different kinds and different lists form an intersection (weekdays, 9 to 17). Block rules apply
    last. Without rules, time is always open. If `start` is later than `end`, the rule runs over
    midnight.

    One list applies its rules in this order: weekly hours (allow and block rules of days and
    hours), plus `open_recurring`, less `block_holidays`; the windows of `replace_day` on its date;
    cut by `allow_period`; plus `open_period`; less `block_period` and `block_recurring`. A list
    that opens time and allows none is closed otherwise."""

    @classmethod
    def of(cls, row: Json, *_: Any) -> Json:
        """Rules are stored in this form."""
        return row


MAX_CONSTRAINTS = 200


# --- Calendars ------------------------------------------------------------------------------------
class ProblemRecord(Record):
    code: str = field("A stable code for programs.")
    text: str = field("A text for people.")
    since: Stamp


class ProgressRecord(Record):
    done: int = field(minimum=0)
    total: int = field(minimum=0)


def _of_connection(read: Callable[[Any], Any], default: Any = None) -> Callable[[Calendar], Any]:
    """What is read of a connected calendar's connection; the default where it is kept here."""

    def of(calendar: Calendar) -> Any:
        connection = getattr(calendar, "connection", None) if calendar.is_connected else None
        return read(connection) if connection else default

    return of


class CalendarRecord(Record):
    id: Id = field(example=example_id(12))
    resource_id: Id = field(example=example_id(11))
    name: str = field(example="Bookings")
    description: str
    backgroundcolor: str
    foregroundcolor: str
    provider: str = field(
        "`service` for a calendar of the service, otherwise the kind of provider.",
        example=Calendar.SERVICE,
    )
    provider_id: str | None = field(
        "The calendar's URL at the provider; for a feed only its server, because its URL is a"
        " secret."
    )
    provider_access: str | None = field(
        "The access at the provider; null for a calendar of the service.", enum=Calendar.ACCESS
    )
    provider_primary: bool = field("The resource's bookings are written to this calendar.")
    provider_sync: bool = field(
        "The calendar is connected and synced.",
        of=_of_connection(lambda connection: not connection.is_stopped, default=False),
    )
    synced_at: Stamp | None = field("The start of the last successful sync.")
    problem: ProblemRecord | None = field(
        "Why syncs fail; null without a problem.",
        of=_of_connection(lambda connection: connection.problem_record()),
    )
    progress: ProgressRecord | None = field(
        "The progress of the current sync, in objects.",
        of=_of_connection(lambda connection: connection.progress_record()),
    )
    unread: int = field(
        "The number of unreadable objects in the last sync.",
        of=_of_connection(lambda connection: connection.unread, default=0),
        minimum=0,
    )
    created_at: Stamp
    updated_at: Stamp


def visible_calendars() -> QuerySet[Calendar]:
    """The rows that `CalendarRecord` needs, of whichever resource, the oldest first."""
    calendars = Calendar.objects.filter(deleted_at=None).select_related("connection")
    return calendars.order_by("created_at", "id")


# --- Resources ------------------------------------------------------------------------------------
class ResourceRecord(Record):
    id: Id = field(example=example_id(11))
    name: str = field(example="Dr. Ada Berg")
    first_name: str = field(example="Ada")
    last_name: str = field(example="Berg")
    email: str | None = field(example="ada@example.com")
    image: str
    timezone: str = field("The IANA zone of the resource's rules.", example="Europe/Berlin")
    schedule_id: Id | None = field("The schedule under the resource's own rules.")
    tags: list[str] = field(example=["dentist"])
    capacity: int = field("So many bookings may overlap.", example=1)
    meta: Json = field(example={"room": "2"})
    created_at: Stamp
    updated_at: Stamp
    calendars: list[CalendarRecord] = field(
        "With include=calendars, and in the answer of POST /v2/resources.",
        optional=True,
        of="shown_calendars",
    )
    availability_constraints: list[ConstraintRecord] = field(
        optional=True, maxItems=MAX_CONSTRAINTS
    )
    api_token: str = field(
        "The resource's own key: only in the response of POST /v2/resources.",
        optional=True,
        example="1c2d3e4f_Vb0GfXk1hJ3v8qz5WcYt7uR2nE6sLdA9oPiMxKjHgQw",
    )


RESOURCE_INCLUDES = ("calendars", "availability_constraints")
RESOURCE_EXAMPLE = ResourceRecord.example()


def with_resource_includes(
    resources: QuerySet[Resource], includes: Collection[str]
) -> QuerySet[Resource]:
    """The rows that `ResourceRecord` needs for the includes: one query each."""
    if "calendars" in includes:
        calendars: Prefetch = Prefetch("calendars", visible_calendars(), to_attr="shown_calendars")
        resources = resources.prefetch_related(calendars)
    return resources


class ScheduleRecord(Record):
    """Rules that several resources share."""

    id: Id = field(example=example_id(16))
    name: str = field(example="Practice hours")
    availability_constraints: list[ConstraintRecord] = field(
        maxItems=MAX_CONSTRAINTS,
        example=[{"allow_weekdays": {}}, {"allow_hours": {"start": 9, "end": 17}}],
    )
    created_at: Stamp
    updated_at: Stamp


class PublicResourceRecord(Record):
    "A resource, as widget keys see it."

    id: Id = field(example=RESOURCE_EXAMPLE["id"])
    name: str = field(example=RESOURCE_EXAMPLE["name"])
    image: str
    timezone: str = field(example=RESOURCE_EXAMPLE["timezone"])


class ResourceZoneRecord(Record):
    timezone: str = field(example="Europe/Berlin")
    utc_offset: float = field("The current offset in hours.", example=1)


# --- Keys -----------------------------------------------------------------------------------------
class CredentialRecord(Record, shows=["key"]):
    id: Id = field(example=example_id(15))
    kind: str = field(enum=["server", "widget", "resource"], example="widget")
    prefix: str = field(
        "The beginning of the key, which identifies it.",
        example="live_widget_key_1c2d3e4f_",
    )
    key: str = field(
        "The full key: always for widget keys, for other keys only in the response of POST.",
        optional=True,
        of="public_text",
        example="live_widget_key_1c2d3e4f_Vb0GfXk1hJ3v8qz5WcYt7uR2nE6sLdA9oPiMxKjHgQw",
    )
    description: str = field(example="www.example.com")
    resource_id: Id | None = field("The resource of the key; null for keys of the app.")
    projects: list[Id] | None = field(
        "The only projects that a widget key may use; null: any.", example=None
    )
    origins: list[str] | None = field(
        "The only web origins that may use a widget key; null: any.",
        example=["https://shop.example"],
    )
    expires_at: Stamp | None
    revoked_at: Stamp | None
    last_used_at: Stamp | None = field("Rounded to the minute.", example="2026-11-20T09:30:00+0000")
    created_at: Stamp
    updated_at: Stamp = field("Using the key does not change this time.")

    @classmethod
    def of(cls, row: Credential, *_: Any) -> Json:
        """Without its secret, unless everybody may read that."""
        return super().of(row, include=("key",) if row.public_text else ())


class LogInRecord(Record):
    kind: str = field(of="credential.kind", enum=["access", "resource"])
    id: Id = field("The id of the account or resource.", of="person.id", example=example_id(2))
    name: str = field(of="person.name", example="Ada Berg")
    email: str = field(of="person.email", example="owner@example.com")
    api_token: str = field(
        "The password of HTTP Basic, with `email` as the user name. Shown once.",
        example="1c2d3e4f_Vb0GfXk1hJ3v8qz5WcYt7uR2nE6sLdA9oPiMxKjHgQw",
    )
    expires_at: Stamp = field(of="credential.expires_at", example="2026-12-20T09:30:00+0000")


# --- Events ---------------------------------------------------------------------------------------
class EventRecord(Record):
    id: Id = field(example=example_id(13))
    calendar_id: Id = field(example=example_id(12))
    what: str = field(example="Dentists' congress")
    where: str = field(example="Hamburg")
    description: str
    start: Time = field(example="2026-12-01T09:00:00+01:00")
    end: Time = field(example="2026-12-01T17:00:00+01:00")
    allDay: bool = field(
        "An all-day event: start and end are local midnights of the resource.", of="all_day"
    )
    rsvp: str
    participants: list[str]
    busy: bool = field("Blocks the time.", example=True)
    provider_id: str | None
    created_at: Stamp
    updated_at: Stamp

    @classmethod
    def of(cls, row: Event, zone: str = "UTC", *_: Any) -> Json:
        """Times in `zone`; whole days are shown in the resource's own."""
        return super().of(row, row.resource.timezone if row.all_day else zone)


class HoldRecord(Record):
    reservation_id: Id = field(of="id", example=example_id(41))
    start: Time
    end: Time = field(example=END_EXAMPLE)
    resource: ResourceRecord | PublicResourceRecord = field(
        "In mode mutual, the first held resource.",
        of=lambda hold: ResourceRecord.of(hold.resource),
    )
    expires_at: Time = field(
        "The expiry, unless the hold is used or extended.", example="2026-11-20T10:30:30+01:00"
    )


# --- Projects -------------------------------------------------------------------------------------
class ProjectAvailabilityRecord(Record, total=False, shows=["length", "from", "to"]):
    """The default parameters of availability queries for this project. Absent parameters have the
    general default."""

    mode: str = field(enum=[*MODES, *MODE_ALIASES])
    weights: dict[str, int] = field("By resource id, for the mode `roundrobin_fair`.")
    calibrate_from: str = field(example="2026-11-01T00:00:00Z")
    length: str | None = field("Null: complete free intervals.", example="30 minutes")
    lengths: list[str] = field("The lengths to choose from.", example=["30 minutes", "1 hour"])
    from_: str = field(example="2 hours")
    to: str = field(example="4 weeks")
    buffer: str = field("Sets `buffer_before` and `buffer_after`.")
    buffer_before: str
    buffer_after: str
    timeslot_increments: str
    round_to_nearest_hour: bool
    ignore_all_day_events: bool


class BookingDefaultsRecord(Record, total=False, shows=["graph", "what", "where"]):
    "The default values of bookings of this project."

    graph: str = field(example="instant")
    what: str = field(example="Check-up")
    where: str = field(example="Harbour Dental")
    description: str
    rescheduling_url: str
    payment_url: str


class CustomerFieldRecord(Record, total=False, shows=["title", "required"]):
    title: str = field(example="Name")
    format: str
    required: bool = field(example=True)
    readonly: bool
    prefilled: Any = field("Any value.")
    enum: list[str]
    split_name: bool
    position: int = field("The order of the fields.", minimum=0, maximum=1000)


class ProjectSettingsRecord(Record, total=False, shows=["min_cancel_time"]):
    """Policies apply to widget keys and to actions of customers, but not to server keys.
    `max_reschedules` counts moves by the customer. `max_per_day`, `max_per_week` and
    `max_per_month` apply to everyone while availability is enforced; they count a resource's
    blocking bookings, completed bookings and holds. `max_per_customer_per_day` and
    `max_open_per_customer` apply to everyone, too, and to every seat of a group."""

    allow_double_bookings: bool
    enforce_availability: bool
    pending_blocks: bool = field("Tentative bookings block time.")
    pending_expires: str = field(
        "Requests without an answer are declined after this time.", example="2 days"
    )
    min_cancel_time: str = field(example="1 day")
    min_reschedule_time: str
    max_reschedules: int = field(minimum=0)
    max_per_day: int = field(minimum=1)
    max_per_week: int = field("ISO weeks in the resource's zone.", minimum=1)
    max_per_month: int = field("Calendar months in the resource's zone.", minimum=1)
    max_per_customer_per_day: int = field("Per e-mail address.", minimum=1)
    max_open_per_customer: int = field("Per e-mail address.", minimum=1)
    check_external: bool = field("Query connected calendars directly before a booking is created.")
    published: bool = field("The project has a hosted page.")
    public_customers: int = field("Customers per booking with a widget key.", minimum=1, maximum=5)
    public_reschedule: str = field(
        "What a widget key needs to move a booking: the signature of a link, or the id.",
        enum=["link", "id"],
    )
    choose_resource: bool = field("Customers can choose the resource on the hosted page.")
    redirect_url: str = field("Where the hosted page leads after a booking.")
    pay_url: str = field("The payment page, with placeholders.")
    embed_origins: list[str] = field("The only web sites that may show the hosted page in a frame.")
    verify_email: bool = field("Bookings with widget keys wait for the code of an e-mail.")


RESERVATION_TIME: Any = {
    "description": "The length of a hold in seconds. Absent: 30.",
    "minimum": 1,
    "maximum": 3600,
}
QUESTIONS = "The fields of the booking form, by key."


def resource_ids(project: Project) -> list[str]:
    return [str(resource.id) for resource in project.shown_resources]


class RequirementRecord(Record):
    name: str = field(example="room")
    any_of: Any = field('Ids of resources, or `{"tags": [...]}`.', example={"tags": ["room"]})
    count: int = field(optional=True, minimum=1, maximum=100)


def well_formed_requirements(project: Project) -> list[dict[str, Any]] | None:
    """Return the project's requirements without broken rows; None if nothing is left."""
    stored = project.requires if isinstance(project.requires, list) else []
    return [row for row in stored if isinstance(row, dict)] or None


class ProjectRecord(Record):
    id: Id = field(example=example_id(14))
    slug: str = field(example="check-up")
    name: str = field(example="Check-up")
    resources: list[Id | ResourceRecord] = field(
        "Ids, or complete resources with include=resources.",
        of=resource_ids,
        example=[RESOURCE_EXAMPLE["id"]],
    )
    requires: list[RequirementRecord] | None = field(
        "A different resource for each; `resources` is then derived.", of=well_formed_requirements
    )
    availability: ProjectAvailabilityRecord
    availability_constraints: list[ConstraintRecord] = field(
        maxItems=MAX_CONSTRAINTS,
        example=[{"block_weekends": {}}, {"allow_hours": {"start": 9, "end": 17}}],
    )
    booking: BookingDefaultsRecord
    customer_fields: dict[str, CustomerFieldRecord] = field(
        QUESTIONS, example={"name": CustomerFieldRecord.example()}
    )
    ui: Json
    event_notifications: list[EventNotificationRecord] | None = field(
        "Null: the app's.",
        of=lambda project: project.event_notifications if project.replaces_notifications else None,
        example=[EventNotificationRecord.example()],
    )
    settings: ProjectSettingsRecord
    reservation_time: int | None = field(**RESERVATION_TIME)
    meta: Json
    created_at: Stamp
    updated_at: Stamp
    payment_key: str = field(
        "With include=payment_key, for server keys and owners only: the key in base64 that signs"
        " payment links.",
        optional=True,
        of=payment_key,
    )

    @classmethod
    def of(cls, row: Project, _: str = "", include: Collection[str] | None = None) -> Json:
        record = super().of(row)
        if include and "resources" in include:
            record["resources"] = [ResourceRecord.of(each) for each in row.shown_resources]
        if include and "payment_key" in include:
            record["payment_key"] = payment_key(row)
        return record


PROJECT_INCLUDES = ("resources", "availability_constraints", "payment_key")
PROJECT_EXAMPLE = ProjectRecord.example()


def with_project_rows(
    projects: QuerySet[Project], include: Collection[str] = ()
) -> QuerySet[Project]:
    """The rows that `ProjectRecord` needs: one query each, whatever the number of projects. Of
    resources only the ids, unless they are included: a project may have thousands.
    """
    rows = Resource.objects.filter(deleted_at=None).order_by(
        "project_resources__position", "project_resources__id"
    )
    if "resources" not in include:
        rows = rows.only("id")
    shown: Prefetch = Prefetch("resources", rows, to_attr="shown_resources")
    return projects.prefetch_related(shown, "event_notifications")
