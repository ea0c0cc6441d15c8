"""What the back office registers itself: pages that show several rooms at once."""

from office.app_page import AppAdmin
from office.bookings import BookingAdmin
from office.calendars import CalendarAdmin
from office.deliveries import DeliveryAdmin
from office.keys import CredentialAdmin
from office.mail_words import EmailTemplateAdmin
from office.members import MembershipAdmin
from office.webhooks import WebhookAdmin

__all__ = [
    "AppAdmin",
    "BookingAdmin",
    "CalendarAdmin",
    "CredentialAdmin",
    "DeliveryAdmin",
    "EmailTemplateAdmin",
    "MembershipAdmin",
    "WebhookAdmin",
]
