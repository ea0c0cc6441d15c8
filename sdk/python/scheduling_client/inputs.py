"""What the service is sent.

Made by scripts/write_python_client.py: don't change it by hand."""

# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, Literal, Required, TypedDict


class ActionBody(TypedDict, total=False):
    """The input is under the action's name. `scope`: the affected bookings of a series, only
    `this` by default. `apply_to_bulked_bookings`: whether the action applies to the related
    bookings of a bulk request, to all or none; true by default.
    """

    scope: Literal["this", "following", "all"] | None
    apply_to_bulked_bookings: bool | None
    cancel: Mapping[str, Any] | None
    cancel_by_customer: Mapping[str, Any] | None
    cancel_by_owner: Mapping[str, Any] | None
    complete: Mapping[str, Any] | None
    confirm: Mapping[str, Any] | None
    create: Mapping[str, Any] | None
    decline: Mapping[str, Any] | None
    pay: Mapping[str, Any] | None
    timeout: Mapping[str, Any] | None


class Address(TypedDict, total=False):
    email: Required[str]


class AppInput(TypedDict, total=False):
    name: str
    settings: AppSettingsInput
    event_notifications: Sequence[EventNotificationInput]


class AppSettingsInput(TypedDict, total=False):
    disable_emails: bool | None
    from_name: str | None
    from_email: str | None
    contact_name: str | None
    contact_email: str | None
    callback: str | None
    redirect_urls: Sequence[str] | None
    default_timezone: str | None
    language: Literal["en", "ar", "de", "es", "fr", "it", "ja", "nl", "pl", "pt-BR", "sv"]
    accent_color: str | None
    cover_text: str | None
    address: str | None
    imprint_url: str | None
    privacy_url: str | None
    stale_calendars: Literal["warn", "block"] | None
    external_edits: Literal["warn", "follow"] | None
    public_bookings_per_address_per_hour: int | None
    public_bookings_per_email_per_day: int | None
    public_open_bookings_per_email: int | None
    public_bookings_per_app_per_minute: int | None
    blocked_customers: Sequence[str] | None
    public_challenge: Literal["off", "altcha"] | None
    delivery_cap: int | None
    publish_projects: bool | None
    public_resources: bool | None
    strict_bodies: bool | None


class BookingBody(TypedDict, total=False):
    project_id: str | None
    resource_id: str | None
    calendar_id: str | None
    resources: Mapping[str, str | Sequence[str]] | None
    requires: Sequence[Requirement] | Mapping[str, Any] | None
    steps: Sequence[StepInput] | None
    order: Literal["given", "any"] | None
    reservation_id: str | None
    quantity: int | None
    party_size: int | None
    place: str | None
    challenge: str | None
    graph: (
        Literal[
            "instant",
            "confirm_decline",
            "instant_payment",
            "group_owner",
            "group_customer",
            "group_customer_payment",
        ]
        | None
    )
    related: Related | None
    start: datetime | date | str
    end: datetime | date | str
    what: str
    where: str | None
    description: str | None
    invite: bool | None
    participants: Sequence[str] | None
    action: Literal["confirm", "create"] | None
    customer: CustomerInput
    customers: Sequence[CustomerInput]
    settings: BookingSettingsInput | None
    event_notifications: Sequence[EventNotificationInput] | None
    meta: Mapping[str, Any] | None
    external_id: str | None
    note: str | None
    recurrence: str | None
    on_conflict: Literal["fail", "skip"] | None
    notify_customer_by_email: MailSwitch | None
    notify_owner_by_email: MailSwitch | None
    event: BookingEvent


class BookingChange(TypedDict, total=False):
    customer: CustomerChange
    customers: Sequence[CustomerChange]
    what: str
    where: str | None
    description: str | None
    meta: Mapping[str, Any]
    external_id: str | None
    note: str | None
    outcome: Literal["attended", "no_show"] | None
    quantity: int
    settings: GroupChange


class BookingDefaultsInput(TypedDict, total=False):
    graph: (
        Literal[
            "instant",
            "confirm_decline",
            "instant_payment",
            "group_owner",
            "group_customer",
            "group_customer_payment",
        ]
        | None
    )
    what: str | None
    where: str | None
    description: str | None
    rescheduling_url: str | None
    payment_url: str | None


class BookingEvent(TypedDict, total=False):
    start: datetime | date | str
    end: datetime | date | str
    what: str
    where: str | None
    calendar_id: str | None
    description: str | None
    invite: bool | None
    participants: Sequence[str] | None


class BookingSettingsInput(TypedDict, total=False):
    allow_double_bookings: bool | None
    enforce_availability: bool | None
    max_seats: int | None
    places: Mapping[str, int | None] | None
    min_cancel_time: str | int | None
    min_booking_time: str | int | None
    max_booking_time: str | int | None


class BulkChanges(TypedDict, total=False):
    message: str | None
    stop_on_first_error: bool | None
    delete_all_on_error: bool | None
    bookings: Required[Sequence[Mapping[str, Any]]]


class CalendarInput(TypedDict, total=False):
    address: str
    username: str | None
    password: str | None
    name: str
    description: str | None
    backgroundcolor: str | None
    foregroundcolor: str | None
    provider_primary: bool


class ChangeNotices(TypedDict, total=False):
    value: Required[Sequence[Mapping[str, Any]]]


class ConferenceSettingsInput(TypedDict, total=False):
    provider: Literal["meet", "teams", "jitsi", "template"] | None
    template: str | None


Constraint = dict[str, Any]


class CustomerChange(TypedDict, total=False):
    id: str
    external_id: str | None
    name: str
    email: str
    phone: str | None
    voip: str | None
    timezone: str | None
    language: Literal["en", "ar", "de", "es", "fr", "it", "ja", "nl", "pl", "pt-BR", "sv"]
    meta: Mapping[str, Any] | None


class CustomerField(TypedDict, total=False):
    title: str
    format: str
    required: bool
    readonly: bool
    prefilled: Mapping[str, Any]
    enum: Sequence[str]
    split_name: bool
    position: int


class CustomerInput(TypedDict, total=False):
    external_id: str | None
    name: Required[str]
    email: Required[str]
    phone: str | None
    voip: str | None
    timezone: str | None
    language: Literal["en", "ar", "de", "es", "fr", "it", "ja", "nl", "pl", "pt-BR", "sv"]
    meta: Mapping[str, Any] | None


class CustomerNote(TypedDict, total=False):
    email: Required[str]
    note: Required[str | None]


class EmailTemplateInput(TypedDict, total=False):
    subject: str | None
    text: str | None
    html: str | None


class EventInput(TypedDict, total=False):
    what: str
    where: str | None
    description: str | None
    start: datetime | date | str
    end: datetime | date | str | None
    allDay: bool
    all_day: bool
    rsvp: str | None
    participants: Sequence[str]
    busy: bool


class EventNotificationInput(TypedDict, total=False):
    type: Required[Literal["email", "webhook"]]
    settings: Mapping[str, Any]
    when: Required[RelativeTimeInput]


class Extension(TypedDict, total=False):
    reservation_time: int | None
    reservation_id: Required[str]


class Findtime(TypedDict, total=False):
    resource_ids: Sequence[str]
    resources: Sequence[str]
    calendar_ids: Sequence[str]
    project_id: str | None
    filters: Sequence[Constraint] | Mapping[str, Any]
    constraints: Sequence[Constraint] | Mapping[str, Any]
    start: datetime | date | str
    future: datetime | date | str
    length: str
    buffer: str | int
    sort: Literal["asc", "desc"]
    ignore_all_day_events: bool
    all_solutions: bool
    no_day_span: bool


class FindtimeQueries(TypedDict, total=False):
    queries: Required[Sequence[Findtime]]


class GapInput(TypedDict, total=False):
    min: str | int
    max: str | int | None


class GetCustomersReport(TypedDict, total=False):
    by: str | Sequence[str]
    from_: date | str
    to: date | str


class GetLeadTimeReport(TypedDict, total=False):
    by: str | Sequence[str]
    from_: date | str
    to: date | str


class GetOutcomesReport(TypedDict, total=False):
    by: str | Sequence[str]
    from_: date | str
    to: date | str


class GetSourcesReport(TypedDict, total=False):
    by: str | Sequence[str]
    from_: date | str
    to: date | str


class GetUtilisationReport(TypedDict, total=False):
    by: str | Sequence[str]
    from_: date | str
    to: date | str


class GroupChange(TypedDict, total=False):
    max_seats: int
    places: Mapping[str, int | None]


class HoldBody(TypedDict, total=False):
    project_id: str | None
    resource_id: str | None
    calendar_id: str | None
    resources: Mapping[str, str | Sequence[str]] | None
    requires: Sequence[Requirement] | Mapping[str, Any] | None
    steps: Sequence[StepInput] | None
    order: Literal["given", "any"] | None
    quantity: int | None
    party_size: int | None
    place: str | None
    challenge: str | None
    related: Related | None
    reservation_time: int | None
    start: datetime | date | str
    end: datetime | date | str
    settings: BookingSettingsInput | None


class ListAppMembers(TypedDict, total=False):
    limit: int
    page: int
    cursor: str


class ListApps(TypedDict, total=False):
    orderBy: Literal["created_at", "updated_at", "name", "slug"]
    sortedBy: Literal["asc", "desc"]
    updated_since: datetime | date | str
    limit: int
    page: int
    cursor: str


class ListBookings(TypedDict, total=False):
    calendar_id: str
    completed: bool
    customer_email: str
    customer_external_id: str
    end: datetime | date | str
    external_id: str
    graph: Literal[
        "instant",
        "confirm_decline",
        "instant_payment",
        "group_owner",
        "group_customer",
        "group_customer_payment",
    ]
    include: str | Sequence[str]
    orderBy: Literal[
        "created_at",
        "updated_at",
        "completed",
        "graph",
        "state",
        "start",
        "end",
        "event.start",
        "event.end",
    ]
    outcome: Literal["attended", "no_show"]
    owner_booking_id: str
    project_id: str
    resource_id: str
    search: str
    series_id: str
    sortedBy: Literal["asc", "desc"]
    start: datetime | date | str
    state: str | Sequence[str]
    updated_since: datetime | date | str
    limit: int
    page: int
    cursor: str


class ListCalendars(TypedDict, total=False):
    orderBy: Literal["created_at", "updated_at", "name"]
    search: str
    sortedBy: Literal["asc", "desc"]
    updated_since: datetime | date | str
    limit: int
    page: int
    cursor: str


class ListChanges(TypedDict, total=False):
    cursor: str
    limit: int
    types: str


class ListCredentials(TypedDict, total=False):
    orderBy: Literal["created_at", "updated_at"]
    search: str
    sortedBy: Literal["asc", "desc"]
    updated_since: datetime | date | str
    limit: int
    page: int
    cursor: str


class ListCustomers(TypedDict, total=False):
    external_id: str
    orderBy: Literal["last_booking_at", "first_booking_at", "bookings", "email"]
    search: str
    sortedBy: Literal["asc", "desc"]
    updated_since: datetime | date | str
    limit: int
    page: int
    cursor: str


class ListDeliveries(TypedDict, total=False):
    booking: str
    orderBy: Literal["created_at", "updated_at"]
    sortedBy: Literal["asc", "desc"]
    state: Literal["scheduled", "sending", "delivered", "failed", "cancelled", "skipped", "expired"]
    type: Literal["email", "webhook", "calendar"]
    updated_since: datetime | date | str
    webhook: str
    limit: int
    page: int
    cursor: str


class ListEvents(TypedDict, total=False):
    end: Required[datetime | date | str]
    orderBy: Literal["created_at", "updated_at", "start", "end"]
    search: str
    sortedBy: Literal["asc", "desc"]
    start: Required[datetime | date | str]
    updated_since: datetime | date | str
    limit: int
    page: int
    cursor: str


class ListGroups(TypedDict, total=False):
    end: datetime | date | str
    full: bool
    include: str | Sequence[str]
    orderBy: Literal[
        "created_at",
        "updated_at",
        "completed",
        "graph",
        "state",
        "start",
        "end",
        "event.start",
        "event.end",
    ]
    search: str
    sortedBy: Literal["asc", "desc"]
    start: datetime | date | str
    updated_since: datetime | date | str
    limit: int
    page: int
    cursor: str


class ListProjectResources(TypedDict, total=False):
    external_id: str
    include: str | Sequence[str]
    orderBy: Literal["position", "created_at", "updated_at", "name"]
    sortedBy: Literal["asc", "desc"]
    updated_since: datetime | date | str
    limit: int
    page: int
    cursor: str


class ListProjects(TypedDict, total=False):
    external_id: str
    include: str | Sequence[str]
    orderBy: Literal["created_at", "updated_at", "name"]
    search: str
    sortedBy: Literal["asc", "desc"]
    updated_since: datetime | date | str
    limit: int
    page: int
    cursor: str


class ListResources(TypedDict, total=False):
    external_id: str
    include: str | Sequence[str]
    orderBy: Literal["created_at", "updated_at", "name"]
    search: str
    sortedBy: Literal["asc", "desc"]
    updated_since: datetime | date | str
    limit: int
    page: int
    cursor: str


class ListSchedules(TypedDict, total=False):
    orderBy: Literal["created_at", "updated_at", "name"]
    search: str
    sortedBy: Literal["asc", "desc"]
    updated_since: datetime | date | str
    limit: int
    page: int
    cursor: str


class ListUsers(TypedDict, total=False):
    external_id: str
    include: str | Sequence[str]
    orderBy: Literal["created_at", "updated_at", "name"]
    search: str
    sortedBy: Literal["asc", "desc"]
    updated_since: datetime | date | str
    limit: int
    page: int
    cursor: str


class ListWebhookDeliveries(TypedDict, total=False):
    booking: str
    orderBy: Literal["created_at", "updated_at"]
    sortedBy: Literal["asc", "desc"]
    state: Literal["scheduled", "sending", "delivered", "failed", "cancelled", "skipped", "expired"]
    type: Literal["email", "webhook", "calendar"]
    updated_since: datetime | date | str
    webhook: str
    limit: int
    page: int
    cursor: str


class ListWebhooks(TypedDict, total=False):
    orderBy: Literal["created_at", "updated_at", "url"]
    sortedBy: Literal["asc", "desc"]
    updated_since: datetime | date | str


class LogInInput(TypedDict, total=False):
    email: Required[str]
    password: Required[str]
    code: str | None
    scopes: (
        Sequence[
            Literal[
                "availability:read",
                "bookings:read",
                "bookings:write",
                "people:read",
                "settings:read",
                "settings:write",
                "keys:write",
            ]
        ]
        | None
    )


class MailSwitch(TypedDict, total=False):
    enabled: bool | None


class MaxStartsInput(TypedDict, total=False):
    quantity: int | None
    per: str | None


class NewApp(TypedDict, total=False):
    slug: Required[str]
    name: Required[str]
    mode: Literal["live", "test"]
    settings: AppSettingsInput
    event_notifications: Sequence[EventNotificationInput]


class NewBulk(TypedDict, total=False):
    message: str | None
    stop_on_first_error: bool | None
    delete_all_on_error: bool | None
    bookings: Required[Sequence[BookingBody]]
    relate_bookings: bool | None


class NewCalendar(TypedDict, total=False):
    address: str
    username: str | None
    password: str | None
    resource_id: Required[str]
    name: str
    description: str | None
    backgroundcolor: str | None
    foregroundcolor: str | None
    provider: Literal["service", "caldav", "ics", "google", "microsoft"]
    provider_primary: bool
    grant_id: str


class NewCalendarFeed(TypedDict, total=False):
    details: bool


class NewConsent(TypedDict, total=False):
    provider: Required[Literal["google", "microsoft"]]
    resource_id: str
    calendar_id: str
    redirect_url: Required[str]
    name: str
    provider_primary: bool


class NewCredential(TypedDict, total=False):
    kind: Required[Literal["server", "widget", "resource"]]
    description: str | None
    resource_id: str | None
    projects: Sequence[str] | None
    origins: Sequence[str] | None
    scopes: (
        Sequence[
            Literal[
                "availability:read",
                "bookings:read",
                "bookings:write",
                "people:read",
                "settings:read",
                "settings:write",
                "keys:write",
            ]
        ]
        | None
    )
    addresses: Sequence[str] | None
    expires_at: datetime | date | str | None


class NewEvent(TypedDict, total=False):
    calendar_id: Required[str]
    what: Required[str]
    where: str | None
    description: str | None
    start: Required[datetime | date | str]
    end: datetime | date | str | None
    allDay: bool
    all_day: bool
    rsvp: str | None
    participants: Sequence[str]
    busy: bool


class NewMember(TypedDict, total=False):
    email: Required[str]
    role: Literal["viewer", "editor", "owner"]


class NewProject(TypedDict, total=False):
    external_id: str | None
    slug: str
    name: Required[str]
    resources: Sequence[str]
    requires: Sequence[Requirement] | Mapping[str, Any] | None
    steps: Sequence[StepInput] | None
    order: Literal["given", "any"] | None
    availability: ProjectAvailabilityInput
    availability_constraints: Sequence[Constraint]
    booking: BookingDefaultsInput
    customer_fields: Mapping[str, CustomerField | None]
    ui: Mapping[str, Any]
    translations: Mapping[str, ProjectTextsInput | None]
    event_notifications: Sequence[EventNotificationInput] | None
    reminders: Sequence[EventNotificationInput] | None
    settings: ProjectSettingsInput
    reservation_time: int | None
    meta: Mapping[str, Any]


class NewProviderClient(TypedDict, total=False):
    client_id: Required[str]
    client_secret: Required[str]


class NewResource(TypedDict, total=False):
    external_id: str | None
    name: Required[str]
    first_name: str | None
    last_name: str | None
    email: str | None
    image: str | None
    timezone: Required[str]
    schedule_id: str | None
    tags: Sequence[str]
    capacity: int
    party: PartyInput | None
    meta: Mapping[str, Any]
    password: str | None
    availability_constraints: Sequence[Constraint]


class NewSchedule(TypedDict, total=False):
    name: Required[str]
    availability_constraints: Sequence[Constraint]


class NewWebhook(TypedDict, total=False):
    url: Required[str]
    method: str
    graph: (
        Literal[
            "instant",
            "confirm_decline",
            "instant_payment",
            "group_owner",
            "group_customer",
            "group_customer_payment",
        ]
        | None
    )
    states: Sequence[
        Literal[
            "initialized",
            "confirmed",
            "cancelled",
            "cancelled_by_customer",
            "completed",
            "tentative",
            "declined",
            "paid",
            "unpaid",
            "cancelled_by_owner",
            "rescheduled",
        ]
    ]
    kinds: Sequence[
        Literal[
            "booking.initialized",
            "booking.confirmed",
            "booking.cancelled",
            "booking.cancelled_by_customer",
            "booking.completed",
            "booking.tentative",
            "booking.declined",
            "booking.paid",
            "booking.unpaid",
            "booking.cancelled_by_owner",
            "booking.rescheduled",
            "booking.reassigned",
            "booking.updated",
            "booking.response",
            "calendar.problem",
            "resource.created",
            "resource.updated",
            "resource.deleted",
            "project.created",
            "project.updated",
            "project.deleted",
            "delivery.failed",
        ]
    ]
    format: Literal["standard", "thin"] | None
    expected_response_code: int | str | None
    active: bool
    description: str | None


class PartyInput(TypedDict, total=False):
    min: int | None
    max: int | None


class PasswordReset(TypedDict, total=False):
    email: Required[str]


class Preview(TypedDict, total=False):
    subject: str | None
    text: str | None
    html: str | None
    booking_id: str | None


ProjectAvailabilityInput = TypedDict(
    "ProjectAvailabilityInput",
    {
        "from": "datetime | date | str | None",
        "mode": 'Literal["roundrobin_random", "roundrobin_prioritized", "roundrobin_fair", "mutual", "exclusive", "all_free"] | None',
        "weights": "Mapping[str, int] | None",
        "calibrate_from": "datetime | date | str | None",
        "length": "str | None",
        "lengths": "Sequence[str] | None",
        "to": "datetime | date | str | None",
        "buffer": "str | int | None",
        "buffer_before": "str | int | None",
        "buffer_after": "str | int | None",
        "timeslot_increments": "str | None",
        "start_window": "Sequence[Constraint] | None",
        "end_window": "Sequence[Constraint] | None",
        "max_starts": "MaxStartsInput | None",
        "round_to_nearest_hour": "bool | None",
        "ignore_all_day_events": "bool | None",
    },
    total=False,
)


class ProjectInput(TypedDict, total=False):
    external_id: str | None
    slug: str
    name: str
    resources: Sequence[str]
    requires: Sequence[Requirement] | Mapping[str, Any] | None
    steps: Sequence[StepInput] | None
    order: Literal["given", "any"] | None
    availability: ProjectAvailabilityInput
    availability_constraints: Sequence[Constraint]
    booking: BookingDefaultsInput
    customer_fields: Mapping[str, CustomerField | None]
    ui: Mapping[str, Any]
    translations: Mapping[str, ProjectTextsInput | None]
    event_notifications: Sequence[EventNotificationInput] | None
    reminders: Sequence[EventNotificationInput] | None
    settings: ProjectSettingsInput
    reservation_time: int | None
    meta: Mapping[str, Any]


class ProjectSettingsInput(TypedDict, total=False):
    allow_double_bookings: bool | None
    enforce_availability: bool | None
    pending_blocks: bool | None
    pending_expires: str | None
    min_cancel_time: str | int | None
    min_reschedule_time: str | int | None
    max_reschedules: int | None
    guest_declines: Literal["note", "cancel"] | None
    max_per_day: int | None
    max_per_week: int | None
    max_per_month: int | None
    max_per_customer_per_day: int | None
    max_open_per_customer: int | None
    check_external: bool | None
    published: bool | None
    public_customers: int | None
    max_quantity: int | None
    show_remaining: bool | None
    public_reschedule: Literal["link", "id"] | None
    choose_resource: bool | str | None
    redirect_url: str | None
    pay_url: str | None
    embed_origins: Sequence[str] | None
    verify_email: bool | None
    language: Literal["en", "ar", "de", "es", "fr", "it", "ja", "nl", "pl", "pt-BR", "sv"]
    conference: ConferenceSettingsInput | None


class ProjectTextsInput(TypedDict, total=False):
    name: str | None
    what: str | None
    description: str | None
    where: str | None
    submit_button: str | None
    success_message: str | None
    questions: Mapping[str, QuestionTextsInput | None] | None


class Query(TypedDict, total=False):
    from_: datetime | date | str | None
    mode: (
        Literal[
            "roundrobin_random",
            "roundrobin_prioritized",
            "roundrobin_fair",
            "mutual",
            "exclusive",
            "all_free",
        ]
        | None
    )
    weights: Mapping[str, int] | None
    calibrate_from: datetime | date | str | None
    length: str | None
    lengths: Sequence[str] | None
    to: datetime | date | str | None
    buffer: str | int | None
    buffer_before: str | int | None
    buffer_after: str | int | None
    timeslot_increments: str | None
    start_window: Sequence[Constraint] | None
    end_window: Sequence[Constraint] | None
    max_starts: MaxStartsInput | None
    round_to_nearest_hour: bool | None
    ignore_all_day_events: bool | None
    project_id: str | None
    resources: Sequence[str] | Mapping[str, str | Sequence[str]] | None
    requires: Sequence[Requirement] | Mapping[str, Any] | None
    steps: Sequence[StepInput] | None
    order: Literal["given", "any"] | None
    constraints: Sequence[Constraint] | None
    quantity: int | None
    party_size: int | None
    include_past: bool | None
    output_timezone: str | None


class QuestionTextsInput(TypedDict, total=False):
    title: str | None
    choices: Mapping[str, str | None] | None


class Related(TypedDict, total=False):
    owner_booking_id: str | None


class RelativeTimeInput(TypedDict, total=False):
    type: Required[Literal["before", "after"]]
    unit: Required[Literal["secs", "mins", "hours", "days"]]
    time: Required[int]


class Requirement(TypedDict, total=False):
    """One kind of resource that a booking needs."""

    name: Required[str]
    any_of: Required[Mapping[str, Any]]
    count: int
    mode: Literal["prioritized", "random", "fair"]
    weights: Mapping[str, int]
    calibrate_from: str | None
    offset: str
    length: str | None
    optional: bool
    shown: bool


class Reschedule(TypedDict, total=False):
    resource_id: str | None
    challenge: str | None
    scope: Literal["this", "following", "all"] | None
    start: datetime | date | str
    end: datetime | date | str
    resources: Mapping[str, str | Sequence[str]] | None
    step: str | None
    message: str | None
    signature: str | None


class ResourceId(TypedDict, total=False):
    resource_id: Required[str]


class ResourceInput(TypedDict, total=False):
    external_id: str | None
    name: str
    first_name: str | None
    last_name: str | None
    email: str | None
    image: str | None
    timezone: str
    schedule_id: str | None
    tags: Sequence[str]
    capacity: int
    party: PartyInput | None
    meta: Mapping[str, Any]
    password: str | None
    availability_constraints: Sequence[Constraint]


class ScheduleInput(TypedDict, total=False):
    name: str
    availability_constraints: Sequence[Constraint]


class StepInput(TypedDict, total=False):
    name: Required[str]
    length: Required[str]
    requires: Sequence[StepRequirementInput]
    resources: Sequence[str]
    gap: GapInput
    same_as: str


class StepRequirementInput(TypedDict, total=False):
    name: Required[str]
    any_of: Required[Sequence[str] | Mapping[str, Any]]
    count: int
    mode: Literal["prioritized", "random", "fair"]
    weights: Mapping[str, int]
    calibrate_from: datetime | date | str | None
    shown: bool


class Verification(TypedDict, total=False):
    code: Required[str]


class WebhookInput(TypedDict, total=False):
    url: str
    method: str
    graph: (
        Literal[
            "instant",
            "confirm_decline",
            "instant_payment",
            "group_owner",
            "group_customer",
            "group_customer_payment",
        ]
        | None
    )
    states: Sequence[
        Literal[
            "initialized",
            "confirmed",
            "cancelled",
            "cancelled_by_customer",
            "completed",
            "tentative",
            "declined",
            "paid",
            "unpaid",
            "cancelled_by_owner",
            "rescheduled",
        ]
    ]
    kinds: Sequence[
        Literal[
            "booking.initialized",
            "booking.confirmed",
            "booking.cancelled",
            "booking.cancelled_by_customer",
            "booking.completed",
            "booking.tentative",
            "booking.declined",
            "booking.paid",
            "booking.unpaid",
            "booking.cancelled_by_owner",
            "booking.rescheduled",
            "booking.reassigned",
            "booking.updated",
            "booking.response",
            "calendar.problem",
            "resource.created",
            "resource.updated",
            "resource.deleted",
            "project.created",
            "project.updated",
            "project.deleted",
            "delivery.failed",
        ]
    ]
    format: Literal["standard", "thin"] | None
    expected_response_code: int | str | None
    active: bool
    description: str | None
