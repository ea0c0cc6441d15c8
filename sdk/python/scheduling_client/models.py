"""What the service answers.

Made by scripts/write_python_client.py: don't change it by hand."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, Literal

from scheduling_client.model import Model


class App(Model):
    id: str
    slug: str
    name: str
    mode: Literal["live", "test"]
    settings: AppSettings
    event_notifications: list[EventNotification]
    created_at: datetime
    updated_at: datetime
    signing_secret: str | None


class AppSettings(Model):
    """The known settings. Other keys are stored unchanged."""

    disable_emails: bool
    from_name: str | None
    from_email: str | None
    contact_name: str | None
    contact_email: str | None
    callback: str | None
    redirect_urls: list[str] | None
    default_timezone: str | None
    language: str | None
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
    blocked_customers: list[str] | None
    public_challenge: Literal["off", "altcha"] | None
    delivery_cap: int | None
    publish_projects: bool | None
    public_resources: bool | None
    strict_bodies: bool | None


class Attempt(Model):
    at: datetime
    response_code: int | None
    seconds: float
    error: str | None
    excerpt: str | None


class BookedStep(Model):
    """A step of a visit."""

    name: str
    start: datetime
    end: datetime
    resources: list[PublicResource]


class Booking(Model):
    """Seven fields and the parts in `include`. Responses to requests that create or change a
    booking also contain `resource_id`, `project_id`, `start` and `end`.
    """

    id: str
    external_id: str | None
    state: Literal[
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
    ]
    graph: Literal[
        "instant",
        "confirm_decline",
        "instant_payment",
        "group_owner",
        "group_customer",
        "group_customer_payment",
    ]
    completed: bool
    created_at: datetime
    updated_at: datetime
    resource_id: str | None
    project_id: str | None
    start: datetime | None
    end: datetime | None
    attributes: BookingAttributes | None
    event: Event | PublicEvent | None
    calendar: Calendar | None
    resource: Resource | PublicResource | None
    user: Resource | PublicResource | None
    resources: list[Resource | PublicResource] | None
    steps: list[BookedStep] | None
    customers: list[Customer] | None
    project: ProjectOfBooking | None
    meta: dict[str, Any] | None
    note: str | None
    outcome: Literal["attended", "no_show"] | None
    quantity: int | None
    party_size: int | None
    place: str | None
    logs: list[LogEntry] | None
    available_actions: list[str] | None
    customer_action_links: dict[str, str] | None
    event_notifications: list[EventNotification] | None
    owner_booking: BookingEntry | None
    seats: list[Seat] | None
    bulked_bookings: list[BookingEntry] | None
    series: Series | None
    full: bool | None
    conference: Conference | None
    provider_event: ProviderEvent | None


class BookingAttributes(Model):
    """Widget keys see only start, end, what and where of `event_info`."""

    event_info: EventInfo
    customer: Customer | None
    settings: BookingSettings | None
    group_booking: GroupSeats | None


class BookingCall(Model):
    """The booking of GET /v2/bookings/:id, and the change that the call is about."""

    id: str
    external_id: str | None
    state: Literal[
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
    ]
    graph: Literal[
        "instant",
        "confirm_decline",
        "instant_payment",
        "group_owner",
        "group_customer",
        "group_customer_payment",
    ]
    completed: bool
    created_at: datetime
    updated_at: datetime
    resource_id: str | None
    project_id: str | None
    start: datetime | None
    end: datetime | None
    attributes: BookingAttributes | None
    event: Event | PublicEvent | None
    calendar: Calendar | None
    resource: Resource | PublicResource | None
    user: Resource | PublicResource | None
    resources: list[Resource | PublicResource] | None
    steps: list[BookedStep] | None
    customers: list[Customer] | None
    project: ProjectOfBooking | None
    meta: dict[str, Any] | None
    note: str | None
    outcome: Literal["attended", "no_show"] | None
    quantity: int | None
    party_size: int | None
    place: str | None
    logs: list[LogEntry] | None
    available_actions: list[str] | None
    customer_action_links: dict[str, str] | None
    event_notifications: list[EventNotification] | None
    owner_booking: BookingEntry | None
    seats: list[Seat] | None
    bulked_bookings: list[BookingEntry] | None
    series: Series | None
    full: bool | None
    conference: Conference | None
    provider_event: ProviderEvent | None
    change: Change
    cursor: str


class BookingDefaults(Model):
    """The default values of bookings of this project."""

    graph: str | None
    what: str | None
    where: str | None
    description: str | None
    rescheduling_url: str | None
    payment_url: str | None


class BookingEntry(Model):
    """The seven fields of a booking in lists."""

    id: str
    external_id: str | None
    state: Literal[
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
    ]
    graph: Literal[
        "instant",
        "confirm_decline",
        "instant_payment",
        "group_owner",
        "group_customer",
        "group_customer_payment",
    ]
    completed: bool
    created_at: datetime
    updated_at: datetime


class BookingSettings(Model):
    allow_double_bookings: bool
    enforce_availability: bool
    min_cancel_time: str | None
    min_booking_time: str | None
    max_booking_time: str | None


class BulkOutcome(Model):
    """A booking, or why there is none: one of the two."""

    status: int
    booking: Booking | None
    error: ErrorOfOne | None


class Calendar(Model):
    id: str
    resource_id: str
    name: str
    description: str
    backgroundcolor: str
    foregroundcolor: str
    provider: str
    provider_id: str | None
    provider_access: Literal["reader", "writer"] | None
    provider_primary: bool
    provider_sync: bool
    grant_id: str | None
    account: str | None
    synced_at: datetime | None
    problem: Problem | None
    progress: Progress | None
    unread: int
    created_at: datetime
    updated_at: datetime


class CalendarCall(Model):
    """A connected calendar whose syncs have stopped."""

    kind: str
    calendar: Calendar
    problem: Problem
    cursor: str


class CalendarFeed(Model):
    """Shown once. The service stores only a hash."""

    url: str | None
    token: str | None
    secret_shown: bool | None
    details: bool


class CalendarTest(Model):
    ok: bool
    problem: (
        Literal[
            "unauthorized",
            "not_a_calendar",
            "several_calendars",
            "no_write_access",
            "address_refused",
            "unreachable",
            "rate_limited",
            "server_error",
            "bad_answer",
            "too_large",
            "secret_unreadable",
            "grant_ended",
            "not_permitted",
            "client_refused",
            "token_refused",
        ]
        | None
    )
    text: str
    access: Literal["reader", "writer"] | None
    seconds: float


class Challenge(Model):
    algorithm: Literal["SHA-256"]
    challenge: str
    maxnumber: int
    salt: str
    signature: str


class Change(Model):
    """The change that a call is about."""

    kind: str
    at: datetime
    action: str
    from_state: Literal[
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
    ]
    actor: str
    source: Literal["api", "widget", "admin", "link", "timer", "calendar", "mail", "mcp"]
    message: str
    previous: PreviousTime | None


class Conference(Model):
    """The video call of a booking that takes place; null without one."""

    provider: Literal["meet", "teams", "jitsi", "template"]
    url: str | None
    problem: Literal["no_calendar", "calendar_problem", "not_offered"] | None


class ConferenceSettings(Model):
    """The video call of bookings. The link is made for the booking and stays with it."""

    provider: Literal["meet", "teams", "jitsi", "template"] | None
    template: str | None


class ConsentUrl(Model):
    url: str


Constraint = dict[str, Any]


class Count(Model):
    date: date
    count: int


class Credential(Model):
    id: str
    kind: Literal["server", "widget", "resource"]
    prefix: str
    key: str | None
    secret_shown: bool | None
    description: str
    resource_id: str | None
    projects: list[str] | None
    origins: list[str] | None
    scopes: (
        list[
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
    addresses: list[str] | None
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    created_at: datetime
    updated_at: datetime


class Customer(Model):
    """A customer's data at the time of the booking, and the customer's answer to the
    invitation.
    """

    id: str
    external_id: str | None
    name: str
    email: str
    phone: str
    voip: str
    timezone: str
    meta: dict[str, Any]
    response: Literal["needs_action", "accepted", "tentative", "declined"]
    responded_at: datetime | None
    source: Literal["calendar", "mail"] | None


class CustomerField(Model):
    title: str | None
    format: str | None
    required: bool | None
    readonly: bool | None
    prefilled: dict[str, Any] | None
    enum: list[str] | None
    split_name: bool | None
    position: int | None


class CustomerOfBooking(Model):
    """One of the `customers` of a booking."""

    id: str
    external_id: str | None
    name: str
    email: str
    phone: str
    voip: str
    timezone: str
    meta: dict[str, Any]
    response: Literal["needs_action", "accepted", "tentative", "declined"]
    responded_at: datetime | None
    source: Literal["calendar", "mail"] | None
    booking_id: str


class Customers(Model):
    """The bookings' customers, without erased ones. One of several bookings counts in each."""

    resource: Named | None
    project: Named | None
    tag: str | None
    week: date | None
    month: date | None
    new: int
    returning: int
    new_rate: float | None


class CustomersReport(Model):
    data: list[Customers]
    from_: date
    to: date
    timezone: str
    counted_until: str | None


class Date(Model):
    date: date
    resources: list[str]


class Delivery(Model):
    """One e-mail, call or calendar write, with every attempt."""

    id: str
    type: Literal["email", "webhook", "calendar"]
    kind: str
    booking_id: str | None
    webhook_id: str | None
    recipient: Literal["customer", "owner"] | None
    state: Literal["scheduled", "sending", "delivered", "failed", "cancelled", "skipped", "expired"]
    reason: str | None
    due_at: datetime
    next_at: datetime | None
    attempts: list[Attempt]
    created_at: datetime
    updated_at: datetime
    payload: dict[str, Any] | None


class Description(Model):
    pass


class EmailSettings(Model):
    recipient: Literal["customer", "owner"]
    subject: str | None


class EmailTemplate(Model):
    """What one kind of mail says. In a body: texts, or null for all three."""

    slug: Literal[
        "tentative_owner",
        "tentative_customer",
        "confirmed_customer",
        "confirmed_owner",
        "declined_customer",
        "cancelled_customer",
        "cancelled_owner",
        "cancelled_by_customer_owner",
        "cancelled_by_customer_customer",
        "unpaid_customer",
        "rescheduled_customer",
        "rescheduled_owner",
        "reassigned_customer",
        "reassigned_owner",
        "unassigned_owner",
        "updated_customer",
        "updated_owner",
        "conference_customer",
        "conference_owner",
        "new_times_customer",
        "message_customer",
        "reminder_customer",
        "reminder_owner",
    ]
    subject: str
    text: str
    html: str
    custom: bool
    updated_at: datetime | None


class EmbeddedPage(Model):
    id: str
    slug: str
    name: str
    resources: list[str] | None
    availability: ProjectAvailability | None
    availability_constraints: list[Constraint] | None
    booking: BookingDefaults
    customer_fields: dict[str, CustomerField]
    ui: dict[str, Any]
    translations: dict[str, ProjectTexts] | None
    reservation_time: int | None


class Empty(Model):
    """Nothing."""


class Erased(Model):
    bookings: int
    log_entries: int
    unverified_bookings: int
    deliveries: int
    suppressions: int


class ErrorOfOne(Model):
    """The error that a request of its own would have got, without `request_id`. Paths start
    at the top of the body.
    """

    error: str
    code: Literal[
        "malformed",
        "unauthenticated",
        "second_factor_required",
        "forbidden",
        "address_not_allowed",
        "not_found",
        "method_not_allowed",
        "not_acceptable",
        "request_timeout",
        "slot_taken",
        "not_available",
        "action_not_allowed",
        "policy",
        "hold_expired",
        "group_full",
        "in_use",
        "already_exists",
        "outdated",
        "idempotency_in_progress",
        "cursor_expired",
        "precondition_failed",
        "too_large",
        "unsupported_media_type",
        "misdirected",
        "idempotency_mismatch",
        "invalid",
        "not_attempted",
        "not_kept",
        "rate_limited",
        "internal",
        "unavailable",
    ]
    errors: dict[str, list[str]] | None
    model: str | None
    conflicts: list[Span] | None
    reasons: list[Reason] | None
    alternatives: list[Span] | None
    occurrences: list[FailedOccurrence] | None
    state: str | None
    available_actions: list[str] | None
    policy: str | None
    limit: str | int | None
    booking_id: str | None
    problem: str | None


class Event(Model):
    id: str
    calendar_id: str
    what: str
    where: str
    description: str
    start: datetime
    end: datetime
    allDay: bool
    rsvp: str
    participants: list[str]
    busy: bool
    provider_id: str | None
    created_at: datetime
    updated_at: datetime


class EventInfo(Model):
    start: datetime
    end: datetime
    what: str
    where: str
    description: str | None
    calendar_id: str | None
    invite: bool | None
    participants: list[str] | None


class EventNotification(Model):
    """A reminder at a time relative to the booking's start."""

    type: Literal["email", "webhook"]
    settings: EmailSettings | WebhookSettings
    when: RelativeTime


class Explanation(Model):
    resource: SlotResource
    turn: Turn | None
    never_open: bool
    text: str | None
    segments: list[Segment]


class FailedOccurrence(Model):
    start: datetime
    end: datetime
    reason: Literal["slot_taken", "not_available"]


class Gap(Model):
    """The time between a step and the one before."""

    min: str | None
    max: str | None


class GroupSeats(Model):
    max_seats: int
    current_seats: int
    places: dict[str, int] | None


class Health(Model):
    status: Literal["ok"]


class Hold(Model):
    reservation_id: str
    start: datetime
    end: datetime
    resource: Resource | PublicResource
    quantity: int
    place: str | None
    expires_at: datetime


class HostedPage(Model):
    id: str
    slug: str
    name: str
    resources: list[str] | None
    availability: ProjectAvailability | None
    availability_constraints: list[Constraint] | None
    booking: BookingDefaults
    customer_fields: dict[str, CustomerField]
    ui: dict[str, Any]
    translations: dict[str, ProjectTexts] | None
    reservation_time: int | None
    app_key: str


class LeadTime(Model):
    """How long before their start the bookings were made, as it is now."""

    resource: Named | None
    project: Named | None
    tag: str | None
    week: date | None
    month: date | None
    bookings: int
    average_days: float | None
    lead_1_day: int
    lead_3_days: int
    lead_1_week: int
    lead_2_weeks: int
    lead_4_weeks: int
    lead_longer: int


class LeadTimeReport(Model):
    data: list[LeadTime]
    from_: date
    to: date
    timezone: str
    counted_until: str | None


class ListedChange(Model):
    """A change of an object."""

    id: str
    cursor: str
    type: Literal[
        "booking",
        "event",
        "resource",
        "project",
        "schedule",
        "calendar",
        "customer",
        "webhook",
        "delivery",
    ]
    action: str
    at: datetime
    actor: str | None
    source: Literal["api", "widget", "admin", "link", "timer", "calendar", "mail", "mcp"] | None
    object_id: str
    object: (
        Booking
        | Event
        | Resource
        | Project
        | Schedule
        | Calendar
        | CustomerOfBooking
        | Webhook
        | Delivery
        | None
    )


class LogEntry(Model):
    from_state: Literal[
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
    ]
    to_state: Literal[
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
    ]
    action: str
    actor: str
    source: Literal["api", "widget", "admin", "link", "timer", "calendar", "mail", "mcp"]
    message: str
    created_at: datetime


class LogIn(Model):
    kind: Literal["access", "resource"]
    id: str
    name: str
    email: str
    api_token: str
    expires_at: datetime


class MaxStarts(Model):
    quantity: int | None
    per: str | None


class Member(Model):
    """A person with a role in the app, or an invitation that is still open."""

    id: str
    email: str
    role: Literal["viewer", "editor", "owner"]
    state: Literal["active", "invited"]
    expires_at: datetime | None


class Named(Model):
    """An object with its present name."""

    id: str
    name: str


class ObjectCall(Model):
    """A change of a resource or a project, or a delivery that failed or expired."""

    id: str
    cursor: str
    type: Literal[
        "booking",
        "event",
        "resource",
        "project",
        "schedule",
        "calendar",
        "customer",
        "webhook",
        "delivery",
    ]
    action: str
    at: datetime
    actor: str | None
    source: Literal["api", "widget", "admin", "link", "timer", "calendar", "mail", "mcp"] | None
    object_id: str
    object: (
        Booking
        | Event
        | Resource
        | Project
        | Schedule
        | Calendar
        | CustomerOfBooking
        | Webhook
        | Delivery
        | None
    )
    kind: str


class Occurrence(Model):
    start: datetime
    end: datetime
    booking_id: str | None
    reason: str | None


class Outcomes(Model):
    """What has become of the bookings."""

    resource: Named | None
    project: Named | None
    tag: str | None
    week: date | None
    month: date | None
    bookings: int
    kept: int
    cancelled: int
    cancelled_by_customer: int
    declined: int
    unpaid: int
    pending: int
    attended: int
    no_show: int
    cancellation_rate: float | None
    no_show_rate: float | None


class OutcomesReport(Model):
    data: list[Outcomes]
    from_: date
    to: date
    timezone: str
    counted_until: str | None


class Party(Model):
    min: int | None
    max: int | None


class Person(Model):
    """All customers with the same e-mail address."""

    email: str
    external_id: str | None
    name: str
    phone: str
    timezone: str
    bookings: int
    upcoming: int
    first_booking_at: datetime
    last_booking_at: datetime
    note: str | None


class PersonExport(Model):
    email: str
    note: str | None
    bookings: list[Booking]
    events: list[Event]
    unverified_bookings: list[dict[str, Any]]
    deliveries: list[dict[str, Any]]
    suppressions: list[dict[str, Any]]


class PreviousResource(Model):
    """A resource that a booking had before a move."""

    id: str
    name: str
    requirement: str | None


class PreviousTime(Model):
    """The time and the resources of a booking before a move."""

    start: datetime
    end: datetime
    resource_id: str
    resources: list[PreviousResource] | None


class Problem(Model):
    code: str
    text: str
    since: datetime


class Progress(Model):
    done: int
    total: int


class Project(Model):
    id: str
    external_id: str | None
    slug: str
    name: str
    resources: list[str | Resource]
    requires: str | None
    steps: list[Step] | None
    order: Literal["given", "any"] | None
    availability: ProjectAvailability
    availability_constraints: list[Constraint]
    booking: BookingDefaults
    customer_fields: dict[str, CustomerField]
    ui: dict[str, Any]
    translations: dict[str, ProjectTexts]
    event_notifications: list[EventNotification] | None
    settings: ProjectSettings
    reservation_time: int | None
    meta: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    payment_key: str | None


class ProjectAvailability(Model):
    """The default parameters of availability queries for this project. Absent parameters have
    the general default.
    """

    from_: str | None
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
    weights: dict[str, int] | None
    calibrate_from: str | None
    length: str | None
    lengths: list[str] | None
    to: str | None
    buffer: str | None
    buffer_before: str | None
    buffer_after: str | None
    timeslot_increments: str | None
    start_window: list[Constraint] | None
    end_window: list[Constraint] | None
    max_starts: MaxStarts | None
    round_to_nearest_hour: bool | None
    ignore_all_day_events: bool | None


class ProjectOfBooking(Model):
    id: str
    slug: str
    name: str
    availability: ProjectAvailability
    booking: BookingDefaults
    customer_fields: dict[str, CustomerField]
    ui: dict[str, Any]
    settings: ProjectSettings
    meta: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    resources: list[Resource] | None


class ProjectSettings(Model):
    """Policies apply to widget keys and to actions of customers, but not to server keys.
    `max_reschedules` counts moves by the customer. `max_per_day`, `max_per_week` and
    `max_per_month` apply to everyone while availability is enforced; they count a resource's
    blocking bookings, completed bookings and holds. `max_per_customer_per_day` and
    `max_open_per_customer` apply to everyone, too, and to every seat of a group.
    """

    allow_double_bookings: bool | None
    enforce_availability: bool | None
    pending_blocks: bool | None
    pending_expires: str | None
    min_cancel_time: str | None
    min_reschedule_time: str | None
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
    choose_resource: str | None
    redirect_url: str | None
    pay_url: str | None
    embed_origins: list[str] | None
    verify_email: bool | None
    language: str | None
    conference: ConferenceSettings | None


class ProjectTexts(Model):
    """The texts of a project in one language, each instead of the project's own. A text that
    is missing is the project's own. Null removes a text.
    """

    name: str | None
    what: str | None
    description: str | None
    where: str | None
    submit_button: str | None
    success_message: str | None
    questions: dict[str, QuestionTexts] | None


class ProviderClient(Model):
    """An OAuth client that the app has registered at a provider of calendars."""

    provider: Literal["google", "microsoft"]
    client_id: str
    redirect_uri: str


class ProviderEvent(Model):
    """The booking's event in a connected calendar; null without one."""

    calendar_id: str
    provider: str
    provider_id: str
    state: Literal["pending", "written", "removed", "moved_there", "removed_there", "refused"]
    reason: str | None
    start: datetime | None
    end: datetime | None
    written_at: datetime | None


class PublicEvent(Model):
    """What a widget key sees of a booking's event."""

    id: str
    calendar_id: str
    what: str
    where: str
    start: datetime
    end: datetime


class PublicResource(Model):
    """A resource, as widget keys see it."""

    id: str
    name: str
    image: str
    timezone: str


class QuestionTexts(Model):
    title: str | None
    choices: dict[str, str] | None


class Readiness(Model):
    status: Literal["ok", "unavailable"]
    database: Literal["ok", "read-only", "unreachable"]
    migrations: Literal["ok", "not applied", "unknown"]


class Reason(Model):
    """Why time is not free. Widget keys see only `type` and `text`."""

    type: Literal[
        "constraint",
        "event",
        "hold",
        "capacity",
        "buffer",
        "notice",
        "past",
        "limit",
        "calendar",
        "requirement",
    ]
    source: Literal["resource", "project", "request", "schedule"] | None
    constraint: dict[str, Any] | None
    constraints: list[dict[str, Any]] | None
    event_id: str | None
    reservation_id: str | None
    calendar_id: str | None
    text: str


class RelativeTime(Model):
    type: Literal["before", "after"]
    unit: Literal["secs", "mins", "hours", "days"]
    time: int


class RenderedEmail(Model):
    subject: str
    text: str
    html: str


class Resource(Model):
    id: str
    external_id: str | None
    name: str
    first_name: str
    last_name: str
    email: str | None
    image: str
    timezone: str
    schedule_id: str | None
    tags: list[str]
    capacity: int
    party: Party | None
    meta: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    calendars: list[Calendar] | None
    availability_constraints: list[Constraint] | None
    api_token: str | None
    secret_shown: bool | None


class ResourceZone(Model):
    timezone: str
    utc_offset: float


class Schedule(Model):
    """Rules that several resources share."""

    id: str
    name: str
    availability_constraints: list[Constraint]
    created_at: datetime
    updated_at: datetime


class Seat(Model):
    """The seven fields of every booking, and whose it is."""

    id: str
    external_id: str | None
    state: Literal[
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
    ]
    graph: Literal[
        "instant",
        "confirm_decline",
        "instant_payment",
        "group_owner",
        "group_customer",
        "group_customer_payment",
    ]
    completed: bool
    created_at: datetime
    updated_at: datetime
    customers: list[Customer]


class Segment(Model):
    start: datetime
    end: datetime
    available: bool
    reasons: list[Reason]


class Series(Model):
    id: str
    rrule: str
    occurrences: list[Occurrence]


class Service(Model):
    """The service."""

    version: str
    limits: ServiceLimits
    links: ServiceLinks


class ServiceLimits(Model):
    """Limits of all requests."""

    requests_per_minute: int
    body_bytes: int
    page_rows: int
    idempotency_hours: int
    changes_days: int


class ServiceLinks(Model):
    """Addresses of the service."""

    description: str
    reference: str
    guide: str
    app: str
    changes: str


class Slot(Model):
    start: datetime
    end: datetime
    resources: list[SlotResource]
    remaining: int | None
    steps: list[SlotStep] | None


class SlotResource(Model):
    id: str
    name: str
    timezone: str


class SlotStep(Model):
    start: datetime
    end: datetime
    name: str
    resources: list[SlotResource]


class Sources(Model):
    """Where the bookings come from, by the source of their first log entry."""

    resource: Named | None
    project: Named | None
    tag: str | None
    week: date | None
    month: date | None
    bookings: int
    api: int
    widget: int
    admin: int
    link: int
    timer: int
    calendar: int
    mail: int
    mcp: int


class SourcesReport(Model):
    data: list[Sources]
    from_: date
    to: date
    timezone: str
    counted_until: str | None


class Span(Model):
    start: datetime
    end: datetime


class Step(Model):
    """A step of a visit."""

    name: str
    length: str
    requires: list[StepRequirement] | None
    resources: list[str] | None
    gap: Gap | None
    same_as: str | None


class StepRequirement(Model):
    """What a step of a visit needs for the whole step."""

    name: str
    any_of: dict[str, Any]
    count: int | None
    mode: Literal["prioritized", "random", "fair"] | None
    weights: dict[str, int] | None
    calibrate_from: str | None
    shown: bool | None


class Turn(Model):
    """When the resource gets a booking in the mode `roundrobin_fair`: the less it has of its
    share, the sooner.
    """

    position: int | None
    weight: int
    bookings: int
    share: float
    text: str


class Unverified(Model):
    """A hold until the customer's e-mail address is verified."""

    reservation_id: str
    expires_at: datetime
    verification: Literal["email"]


class Utilisation(Model):
    """How much of the open hours is booked."""

    resource: Named | None
    project: Named | None
    tag: str | None
    week: date | None
    month: date | None
    booked_seconds: int
    open_seconds: int | None
    utilisation: float | None


class UtilisationReport(Model):
    data: list[Utilisation]
    from_: date
    to: date
    timezone: str
    counted_until: str | None


class Webhook(Model):
    """A subscription to changes of bookings."""

    id: str
    url: str
    method: Literal["post", "put", "patch"]
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
    states: list[
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
    kinds: list[
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
    expected_response_code: int | None
    active: bool
    description: str
    disabled_reason: str | None
    created_at: datetime
    updated_at: datetime
    secret: str | None
    secret_shown: bool | None


class WebhookSettings(Model):
    url: str
    method: Literal["post", "put", "patch", "get"]
    expected_response_code: int | None
