"""API records of the tenant."""

from typing import Any

from apps_config.models import App, EventNotification
from common.api.response_records import Id, Json, Record, Stamp, example_id, field


class EmailSettingsRecord(Record, title="of an e-mail"):
    recipient: str = field(enum=EventNotification.RECIPIENTS)
    subject: str = field(optional=True)


class WebhookSettingsRecord(Record, title="of a webhook call"):
    url: str
    method: str = field(enum=EventNotification.METHODS)
    expected_response_code: int = field("Absent: any 2xx.", optional=True, minimum=100, maximum=599)


class RelativeTimeRecord(Record):
    type: str = field(enum=["before", "after"])
    unit: str = field(enum=list(EventNotification.UNIT_SECONDS))
    time: int = field(minimum=0)


class EventNotificationRecord(Record):
    """A reminder at a time relative to the booking's start."""

    type: str = field(enum=["email", "webhook"])
    settings: EmailSettingsRecord | WebhookSettingsRecord = field(
        example={"recipient": "customer", "subject": "See you soon"}
    )
    when: RelativeTimeRecord = field(example={"type": "before", "unit": "mins", "time": 60})

    @classmethod
    def of(cls, row: EventNotification, *_: Any) -> Json:
        return row.as_json()


class MailSwitchesRecord(Record):
    disable_emails: bool


class KeptAppSettingsRecord(MailSwitchesRecord, total=False):
    "The known settings. Other keys are stored unchanged."

    from_name: str
    from_email: str
    contact_name: str
    contact_email: str
    callback: str
    redirect_urls: list[str]
    default_timezone: str
    language: str
    accent_color: str = field(example="#1f4f99")
    cover_text: str
    address: str
    imprint_url: str
    privacy_url: str
    stale_calendars: str = field(enum=App.STALE_CALENDARS)
    external_edits: str = field(enum=App.EXTERNAL_EDITS)
    public_bookings_per_address_per_hour: int = field(minimum=0)
    public_bookings_per_email_per_day: int = field(minimum=0)
    public_open_bookings_per_email: int = field(minimum=0)
    public_bookings_per_app_per_minute: int = field(minimum=0)
    blocked_customers: list[str]
    public_challenge: str = field(enum=App.CHALLENGES)
    delivery_cap: int = field(minimum=1)


class AppRecord(Record):
    id: Id = field(example=example_id(1))
    slug: str = field(example="demo")
    name: str = field(example="Demo")
    mode: str = field(
        "Can't be changed. A test app sends e-mails only to its members.", enum=["live", "test"]
    )
    settings: KeptAppSettingsRecord = field(
        of=lambda app: {"disable_emails": False} | app.settings,
        example={"disable_emails": False, "default_timezone": "Europe/Berlin"},
    )
    event_notifications: list[EventNotificationRecord]
    created_at: Stamp
    updated_at: Stamp
