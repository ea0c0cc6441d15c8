"""Pages of the back office that belong to no single model."""

from collections.abc import Callable

from django.http.response import HttpResponseBase
from django.urls import URLPattern, path

from office.base import json_check_view
from office.calendar import views as calendar_views
from office.explain import rules_preview
from office.explain import views as explain_views
from office.notifications import mail_file_viewer

View = Callable[..., HttpResponseBase]
PAGES: tuple[tuple[str, View, str], ...] = (
    ("calendar/", calendar_views.show_calendar, "calendar"),
    ("calendar/events", calendar_views.read_events, "calendar_events"),
    ("calendar/free-times", calendar_views.read_free_times, "calendar_times"),
    ("calendar/bookings", calendar_views.make_from_calendar, "calendar_book"),
    ("calendar/bookings/<uuid:booking_id>/move", calendar_views.move_booking, "calendar_move"),
    ("why/", explain_views.show_default_resource, "why"),
    ("why/<uuid:resource_id>/", explain_views.show_resource, "why_resource"),
    ("json/check", json_check_view.check_json, "json_check"),
    ("e-mails/", mail_file_viewer.show_sent_mails, "sent_mails"),
    ("e-mails/<str:name>/", mail_file_viewer.show_sent_mail, "sent_mail"),
    ("e-mails/<str:name>/html", mail_file_viewer.show_sent_html, "sent_mail_html"),
    ("rules/picture", rules_preview.preview_rules, "rules_picture"),
    ("rules/regions", rules_preview.list_regions, "rules_regions"),
)


def paths(admin_view: Callable[[View], View]) -> list[URLPattern]:
    """Return the URL patterns, with views that require a log-in."""
    return [path(address, admin_view(view), name=name) for address, view, name in PAGES]
