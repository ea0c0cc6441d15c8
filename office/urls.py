"""Pages of the back office that belong to no single model, each with its required permission."""

from collections.abc import Callable
from typing import NamedTuple

from django.urls import URLPattern, path

from office import first_steps
from office.base import json_check_view
from office.base.permissions import (
    BLOCK,
    MAKE,
    MOVE,
    SEE,
    PagePermission,
    View,
    is_superuser,
    may_enter_absences,
    with_permission,
)
from office.bookings import postponed
from office.calendar import away, block_time
from office.calendar import views as calendar_views
from office.desk import views as desk_views
from office.explain import rules_preview
from office.explain import views as explain_views
from office.notifications import mail_file_viewer
from office.offline import today_list
from office.reports import views as report_views
from office.resources import share


class OfficePage(NamedTuple):
    """`is_allowed(request)`: whether the account may open the page at all, for rows of some app.
    Whether it may see or change this very row is for the view to ask.
    """

    path: str
    view: View
    name: str
    is_allowed: PagePermission


PAGES = (
    OfficePage("calendar/", calendar_views.show_calendar, "calendar", SEE.is_held),
    OfficePage("calendar/events", calendar_views.read_events, "calendar_events", SEE.is_held),
    OfficePage(
        "calendar/free-times", calendar_views.read_free_times, "calendar_times", MAKE.is_held
    ),
    OfficePage(
        "calendar/customers", calendar_views.read_customers, "calendar_customers", MAKE.is_held
    ),
    OfficePage(
        "calendar/questions", calendar_views.read_questions, "calendar_questions", MAKE.is_held
    ),
    OfficePage(
        "calendar/bookings", calendar_views.make_from_calendar, "calendar_book", MAKE.is_held
    ),
    OfficePage(
        "calendar/bookings/<uuid:booking_id>/move",
        calendar_views.move_booking,
        "calendar_move",
        MOVE.is_held,
    ),
    OfficePage("calendar/block", block_time.block_time, "calendar_block", BLOCK.is_held),
    OfficePage("calendar/away", away.away, "calendar_away", may_enter_absences),
    OfficePage("postponed/<uuid:task_id>/", postponed.show_postponed, "postponed", MOVE.is_held),
    OfficePage("day-sheet/", desk_views.show_day_sheet, "day_sheet", SEE.is_held),
    OfficePage("offline/today", today_list.read_today_list, "offline_today", SEE.is_held),
    OfficePage("why/", explain_views.show_default_resource, "why", SEE.is_held),
    OfficePage("why/<uuid:resource_id>/", explain_views.show_resource, "why_resource", SEE.is_held),
    OfficePage("reports/", report_views.show_reports, "reports", SEE.is_held),
    OfficePage("reports/<str:name>.csv", report_views.save_report, "report_file", SEE.is_held),
    OfficePage("json/check", json_check_view.check_json, "json_check", SEE.is_held),
    OfficePage("e-mails/", mail_file_viewer.show_sent_mails, "sent_mails", is_superuser),
    OfficePage("e-mails/<str:name>/", mail_file_viewer.show_sent_mail, "sent_mail", is_superuser),
    OfficePage(
        "e-mails/<str:name>/html", mail_file_viewer.show_sent_html, "sent_mail_html", is_superuser
    ),
    OfficePage(
        "first-steps/<uuid:app_id>/end",
        first_steps.end_steps,
        "first_steps_end",
        first_steps.CHANGE.is_held,
    ),
    OfficePage(
        "projects/<uuid:project_id>/share/", share.show_share, "project_share", share.SHARE.is_held
    ),
    OfficePage(
        "projects/<uuid:project_id>/qr.svg", share.show_qr, "project_qr", share.SHARE.is_held
    ),
    OfficePage(
        "projects/<uuid:project_id>/poster",
        share.show_poster,
        "project_poster",
        share.SHARE.is_held,
    ),
    OfficePage("rules/picture", rules_preview.preview_rules, "rules_picture", SEE.is_held),
    OfficePage("rules/regions", rules_preview.list_regions, "rules_regions", SEE.is_held),
)


def paths(admin_view: Callable[[View], View]) -> list[URLPattern]:
    """Return the URL patterns, with views that require a log-in and the page's permission."""
    return [
        path(page.path, admin_view(with_permission(page.view, page.is_allowed)), name=page.name)
        for page in PAGES
    ]
