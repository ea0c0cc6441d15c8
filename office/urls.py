"""The pages of the back office that belong to no single model."""

from collections.abc import Callable
from typing import Any

from django.urls import URLPattern, path

from office import calendar_pages, rule_pages, why_pages

PAGES: tuple[tuple[str, Callable[..., Any], str], ...] = (
    ("calendar/", calendar_pages.show_calendar, "calendar"),
    ("calendar/events", calendar_pages.read_events, "calendar_events"),
    ("calendar/bookings", calendar_pages.make_from_calendar, "calendar_book"),
    ("calendar/bookings/<uuid:booking_id>/move", calendar_pages.move_booking, "calendar_move"),
    ("why/", why_pages.show_any, "why"),
    ("why/<uuid:resource_id>/", why_pages.show_resource, "why_resource"),
    ("rules/picture", rule_pages.draw_rules, "rules_picture"),
)


def paths(admin_view: Callable[..., Any]) -> list[URLPattern]:
    """Each behind the log-in of the site."""
    return [path(address, admin_view(view), name=name) for address, view, name in PAGES]
