"""The desk on the first page, and its printed form, the day sheet."""

from datetime import date, datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from apps_config.models import App
from common.time.instants import local_date
from office.base.dates import DAY, office_zone, parse_iso_day
from office.base.model_admin_pages import find_row
from office.base.permissions import MAKE, MOVE, SEE, has_permission, read_ids, require, show_page
from office.base.scope import scope_of
from office.calendar.views import app_choice
from office.desk.columns import Desk, DeskRequest, desk_day, read_desk
from office.desk.day_sheet import read_sheet

LAST_APP = "office_desk_app"  # in the session


def desk_context(request: HttpRequest, today: date, zone: str, now: datetime) -> dict[str, Any]:
    """?app=id&day=2026-11-23: return the template's values; without a day today, or the next day
    with bookings.
    """
    app = _chosen_app(request)
    if app is None:
        return {"desk": None}
    chosen = parse_iso_day(request.GET.get("day"))
    day = chosen or desk_day(app, today, zone, now)
    may_act = has_permission(request, app.id, MOVE)
    return {
        "desk": read_desk(DeskRequest(app, day, zone, now, may_act)),
        "desk_app": app,
        "app_choice": app_choice(request, app),
        "is_today": day == today,
        "is_next_day": chosen is None and day != today,
        "day_before": day - DAY,
        "day_after": day + DAY,
        "may_make": has_permission(request, app.id, MAKE),
    }


def _chosen_app(request: HttpRequest) -> App | None:
    """Return the app in the query, else the last one that was chosen, else the first by name."""
    apps = scope_of(request).apps()
    if "app" in request.GET:
        app = find_row(apps, request.GET["app"])
        request.session[LAST_APP] = str(app.pk)
        return app
    last = request.session.get(LAST_APP)
    return (apps.filter(pk=last).first() if last else None) or apps.first()


@require_safe
def show_day_sheet(request: HttpRequest) -> HttpResponse:
    """?app=id&day=2026-11-23&resources=id: one table per person, to be printed."""
    app = _chosen_app(request)
    zone, now = office_zone(request), timezone.now()
    day = parse_iso_day(request.GET.get("day")) or local_date(now, zone)
    desk = Desk(day, (), 0)
    if app is not None:
        require(request, app.id, SEE)
        only = read_ids(request.GET.get("resources", ""))
        desk = read_desk(DeskRequest(app, day, zone, now, only=only))
    return show_page(
        request,
        "office/day_sheet.html",
        title=_("Day sheet"),
        desk=desk,
        desk_app=app,
        zone=zone,
        tables=read_sheet(desk.columns),
        back=f"{reverse('admin:index')}?day={day.isoformat()}",
    )
