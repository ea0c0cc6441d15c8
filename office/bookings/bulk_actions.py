"""Cancel or decline several bookings of the list: postponed, so that it can be undone."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext, pgettext
from django.utils.translation import gettext_lazy as _

from apps_config.models import App
from availability.models import Resource
from availability.reserve.policies import first_own_calendars
from bookings.models import Booking
from bookings.pages.formatting import first_known_zone
from bookings.services.postponed import MAX_MESSAGE, ClosedTime, PlannedStep, postpone
from common.errors import Invalid, Refusal
from common.time.instants import local_date
from office.base.model_admin import refusal_words
from office.base.permissions import BLOCK, has_permission
from office.base.scope import account_of
from office.calendar.time_span import closed_time, day_span

MAX_CLOSED_DAYS = 100  # days and resources together


class BulkActionForm(forms.Form):
    """What goes with the action: a message, and whether the days are closed, too."""

    message = forms.CharField(
        label=_("Message to all"),
        required=False,
        max_length=MAX_MESSAGE,
        widget=forms.Textarea({"class": "office-input", "rows": 3}),
    )
    close_days = forms.BooleanField(
        label=_("Close the day for new bookings"),
        required=False,
        help_text=_("The days of the bookings, for their people and rooms, at once."),
    )

    def __init__(self, *args: Any, may_close: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not may_close:
            del self.fields["close_days"]


def postpone_actions(
    request: HttpRequest, bookings: Sequence[Booking], action: str, given: Mapping[str, Any]
) -> HttpResponse | None:
    """Postpone the action for the bookings, one task per app; return the page of a single task."""
    together: dict[App, list[Booking]] = {}
    for booking in bookings:
        together.setdefault(booking.app, []).append(booking)
    pages = []
    for app, of_app in together.items():
        closes = bool(given.get("close_days")) and has_permission(request, app.id, BLOCK)
        try:
            task = postpone(
                app=app,
                actor=account_of(request).email,
                steps=[PlannedStep(booking, action) for booking in of_app],
                closed=list(_closed_days(request, of_app)) if closes else (),
                message=given["message"].strip(),
                now=timezone.now(),
            )
        except Refusal as refusal:
            messages.error(request, f"{app.name}: {refusal_words(refusal)}")
            continue
        pages.append((app, reverse("admin:postponed", args=[task.pk])))
    if len(pages) == 1:
        return HttpResponseRedirect(pages[0][1])
    for app, page in pages:
        words = gettext('{app}: <a href="{page}">show and undo</a>')
        messages.success(request, format_html(words, app=app.name, page=page))
    return None


def _closed_days(request: HttpRequest, bookings: Sequence[Booking]) -> Iterator[ClosedTime]:
    """Yield the local days of the bookings from today on, each once per resource.

    Says which resources can't be closed here. Raises Invalid for too many days.
    """
    days = _days_by_resource(bookings)
    if sum(map(len, days.values())) > MAX_CLOSED_DAYS:
        words = gettext("At most %(count)s days can be closed at once. Nothing was changed.")
        raise Invalid.at("close_days", words % {"count": MAX_CLOSED_DAYS})
    calendars = first_own_calendars([resource.pk for resource in days])
    for resource, of_resource in days.items():
        zone = first_known_zone(resource.timezone)
        for day in sorted(of_resource):
            try:
                yield closed_time(
                    resource,
                    calendars.get(resource.pk),
                    *day_span(day, day, zone),
                    pgettext("day", "Closed"),
                )
            except Refusal as refusal:
                messages.warning(request, f"{resource.name}: {refusal_words(refusal)}")
                break


def _days_by_resource(bookings: Sequence[Booking]) -> dict[Resource, set[date]]:
    days: dict[Resource, set[date]] = {}
    now = timezone.now()
    for booking in bookings:
        for resource in booking.all_resources():
            zone = first_known_zone(resource.timezone)
            day = local_date(booking.event.start, zone)
            if day >= local_date(now, zone):
                days.setdefault(resource, set()).add(day)
    return days
