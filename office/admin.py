"""Imports all admin modules of the back office: Django only discovers this one."""

from office.access import accounts, keys, members, sessions
from office.app_settings import admin as app_settings
from office.bookings import admin as bookings
from office.bookings import read_only_admins
from office.calendars import admin as calendars
from office.notifications import deliveries, email_templates, outbox_tables, suppressions, webhooks
from office.resources import admin as resources

__all__ = [
    "accounts",
    "app_settings",
    "bookings",
    "calendars",
    "deliveries",
    "email_templates",
    "keys",
    "members",
    "outbox_tables",
    "read_only_admins",
    "resources",
    "sessions",
    "suppressions",
    "webhooks",
]
