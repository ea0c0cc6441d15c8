"""Imports all admin modules of the back office: Django only discovers this one."""

from office.access import accounts, keys, members, security_events, sessions
from office.app_settings import admin as app_settings
from office.app_settings import default_reminders
from office.bookings import admin as bookings
from office.bookings import customers
from office.calendars import admin as calendars
from office.calendars import clients as calendar_clients
from office.notifications import deliveries, email_templates, suppressions, webhooks
from office.resources import admin as resources
from office.resources import project_admin as projects

__all__ = [
    "accounts",
    "app_settings",
    "bookings",
    "calendar_clients",
    "calendars",
    "customers",
    "default_reminders",
    "deliveries",
    "email_templates",
    "keys",
    "members",
    "projects",
    "resources",
    "security_events",
    "sessions",
    "suppressions",
    "webhooks",
]
