"""Block time: events that keep bookings away, of one or several resources at once."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import date, datetime, timedelta
from typing import Any, cast
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.db.models import Prefetch, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from apps_config.models import App, Membership
from availability.models import Event, Resource
from availability.serializers.calendars import visible_calendars
from availability.serializers.events import EventSerializer
from availability.services import create_event
from bookings.models import Booking
from common.api.serializers import read_values_as
from common.errors import Invalid, Refusal
from office.base.local_time import parse_moment, span_text, today_in
from office.base.model_admin import refusal_words
from office.base.model_admin_pages import find_row
from office.base.permissions import BLOCK, require, show_page, visible_resources
from office.base.scope import scope_of
from office.bookings.tabs import CALLED_OFF
from office.calendar.time_span import INPUT, TimeSpanForm
from office.calendar.views import app_choice

MAX_RESOURCES = 500
MAX_LISTED = 10  # bookings in the blocked time
MAX_WHAT = 200
FIELDS = (("first_day", "start"), ("last_day", "end"), ("what",))


class BlockTimeForm(TimeSpanForm):
    """For whom, from when to when; times are those of each resource's own clock."""

    everybody = forms.BooleanField(label=_("All resources"), required=False)
    tags = forms.MultipleChoiceField(
        label=_("All with the tag"), widget=forms.CheckboxSelectMultiple, required=False
    )
    resources = forms.ModelMultipleChoiceField(
        Resource.objects.none(), widget=forms.CheckboxSelectMultiple, required=False
    )
    what = forms.CharField(
        label=_("Note"),
        required=False,
        max_length=MAX_WHAT,
        widget=forms.TextInput(INPUT),
        help_text=_("Customers do not see it. Empty: Blocked."),
    )

    def __init__(self, *args: Any, offered: Sequence[Resource], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.offered = offered
        self.known_tags = sorted({tag for row in offered for tag in row.tags})
        tags = cast(forms.MultipleChoiceField, self.fields["tags"])
        tags.choices = [(tag, tag) for tag in self.known_tags]
        resources = cast(forms.ModelMultipleChoiceField, self.fields["resources"])
        resources.queryset = Resource.objects.filter(pk__in=[row.pk for row in offered])

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        if not self.errors and not self.chosen_resources(given):
            self.add_error("resources", _("Select at least one resource."))
        return given

    def chosen_resources(self, given: dict[str, Any]) -> list[Resource]:
        """The chosen resources, each once, in the order of the page."""
        chosen = {row.pk for row in given.get("resources", ())}
        tags = set(given.get("tags", ()))
        return [
            row
            for row in self.offered
            if given.get("everybody") or row.pk in chosen or not tags.isdisjoint(row.tags)
        ]


@require_http_methods(["GET", "HEAD", "POST"])
def block_time(request: HttpRequest) -> HttpResponse:
    """?app=id&resources=id&start=2026-11-23T12:00&end=2026-11-23T13:00: of a dragged time or a
    command; ?start=2026-11-23: the whole day."""
    app = _chosen_app(request)
    offered = _offered_resources(request, app)
    form = _form(request, offered)
    if request.method == "POST" and form.is_valid():
        return _save(request, form)
    return show_page(
        request,
        "office/block_time.html",
        title=_("Block time"),
        app_choice=app_choice(request, app),
        form=form,
        chosen={str(pk) for pk in form["resources"].value() or ()},
        chosen_tags=set(form["tags"].value() or ()),
        rows=[[form[name] for name in names] for names in FIELDS],
        hours_link=reverse("admin:availability_resource_bulk_edit"),
    )


def _chosen_app(request: HttpRequest) -> App | None:
    """The app in the query, else the first one in which the account may block time."""
    apps = scope_of(request).apps(least=Membership.EDITOR)
    app = find_row(apps, request.GET["app"]) if "app" in request.GET else apps.first()
    if app:
        require(request, app.id, BLOCK)
    return app


def _offered_resources(request: HttpRequest, app: App | None) -> list[Resource]:
    calendars: Prefetch = Prefetch("calendars", visible_calendars(), to_attr="shown_calendars")
    rows = visible_resources(request, least=Membership.EDITOR).filter(app=app)
    return list(rows.order_by("name", "id").prefetch_related(calendars)[:MAX_RESOURCES])


def _form(request: HttpRequest, offered: Sequence[Resource]) -> BlockTimeForm:
    if request.method == "POST":
        return BlockTimeForm(request.POST, offered=offered)
    first_day, start = _day_and_time(request.GET.get("start", ""))
    last_day, end = _day_and_time(request.GET.get("end", ""))
    zone = offered[0].timezone if offered else "UTC"
    return BlockTimeForm(
        initial={
            "resources": request.GET.getlist("resources"),
            "first_day": first_day or today_in(zone, timezone.now()),
            "start": start,
            "last_day": last_day if last_day != first_day else None,
            "end": end,
        },
        offered=offered,
    )


def _day_and_time(text: str) -> tuple[date | None, str]:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None, ""
    return moment.date(), moment.strftime("%H:%M") if "T" in text else ""


def _save(request: HttpRequest, form: BlockTimeForm) -> HttpResponse:
    """Block the time of each resource for itself: a refusal does not affect the others."""
    given = form.cleaned_data
    made: list[Event] = []
    for resource in form.chosen_resources(given):
        require(request, resource.app_id, BLOCK)
        try:
            made.append(_block(resource, given))
        except Refusal as refusal:
            messages.error(request, f"{resource.name}: {refusal_words(refusal)}")
    if not made:
        return HttpResponseRedirect(request.get_full_path())
    event = made[0]
    sentence = ngettext(
        "Blocked for %(count)s resource: %(time)s.",
        "Blocked for %(count)s resources: %(time)s.",
        len(made),
    )
    span = span_text(event.start, event.end, event.resource.timezone)
    messages.success(request, sentence % {"count": len(made), "time": span})
    if kept := _bookings_in(made):
        messages.warning(request, _kept_bookings_words(kept))
    return HttpResponseRedirect(_calendar_address(made))


def _block(resource: Resource, given: dict[str, Any]) -> Event:
    """Create the event in the first calendar of the service. Raises Invalid."""
    calendar = next((row for row in resource.shown_calendars if not row.is_connected), None)
    if calendar is None:
        raise Invalid.at(
            "calendar_id", gettext("Has only connected calendars: block the time there.")
        )
    calendar.resource = resource
    first, last = given["first_day"], given["last_day"] or given["first_day"]
    body = {
        "calendar_id": str(calendar.id),
        "what": given["what"].strip() or gettext("Blocked"),
        "busy": True,
    }
    if given["start"] is None:
        times = {"start": first, "end": last + timedelta(days=1)}
        body |= {name: day.isoformat() for name, day in times.items()} | {"all_day": True}
    else:
        start = parse_moment("start", f"{first}T{given['start']}", resource.timezone)
        end = parse_moment("end", f"{last}T{given['end']}", resource.timezone, after=start)
        body |= {"start": start.isoformat(), "end": end.isoformat()}
    event = read_values_as(EventSerializer, body, zone=resource.timezone, event=None)
    return create_event(calendar=calendar, given=event)


def _bookings_in(events: Collection[Event]) -> list[Booking]:
    """The first bookings that overlap one of the events and may still take place."""
    # One condition per span: resources in one time zone have the same.
    resources = defaultdict(list)
    for event in events:
        resources[event.start, event.end].append(event.resource_id)
    inside = Q()
    for (start, end), ids in resources.items():
        inside |= Q(event__resource__in=ids, event__start__lt=end, event__end__gt=start)
    rows: QuerySet[Booking] = Booking.objects.filter(inside, deleted_at=None)
    rows = rows.exclude(state__in=CALLED_OFF).select_related("event", "resource")
    return list(rows.order_by("event__start", "id")[: MAX_LISTED + 1])


def _kept_bookings_words(bookings: Sequence[Booking]) -> SafeString:
    links = format_html_join(
        "; ",
        '<a href="{}">{}</a>',
        (
            (
                reverse("admin:bookings_booking_change", args=[booking.pk]),
                f"{booking.counted(booking.event.what)}, {booking.resource.name},"
                f" {span_text(booking.event.start, booking.event.end, booking.resource.timezone)}",
            )
            for booking in bookings[:MAX_LISTED]
        ),
    )
    more = "; …" if len(bookings) > MAX_LISTED else ""
    return format_html("{} {}{}", gettext("Bookings in this time stay as they are:"), links, more)


def _calendar_address(events: Sequence[Event]) -> str:
    """The calendar at the first day."""
    event = events[0]
    day = event.start_date or event.start.astimezone(timezone.get_current_timezone()).date()
    return f"{reverse('admin:calendar')}?{urlencode({'date': day.isoformat(), 'view': 'day'})}"
