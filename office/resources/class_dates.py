"""The dates of a class: bookings with seats of its project, which the booking page sells."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, cast
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from unfold.widgets import (
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
)

from availability.models import Project, Resource
from availability.reserve.policies import project_parameters
from bookings.booking_input import parse_new_booking
from bookings.graphs import GRAPHS
from bookings.models import Booking
from bookings.pages.formatting import first_known_zone
from bookings.serializers.bodies import MAX_SEATS
from bookings.services import make_booking
from common.errors import Invalid, Refusal
from common.time.instants import format_instant, parse_instant
from office.base.form_fields import SwitchField
from office.base.local_time import parse_moment, span_text
from office.base.model_admin import refusal_words
from office.base.permissions import MAKE, actor_of, editor_caller_of, has_permission, require
from office.calendar.grid_data import count_seats
from office.calendar.new_booking import REPEAT_WORDS, booking_body

GROUP = "group_owner"
MAX_SHOWN = 100  # coming dates
MAX_CONFLICTS = 10
FIELDS = ("seats", "first_date", "repeat", "until", "skip_conflicts")
ONCE = ""


class ClassDatesForm(forms.Form):
    """Seats, and dates in a row. Times are those of the person's or room's own clock."""

    seats = forms.IntegerField(
        label=_("Seats"),
        help_text=_("How many people can take part. Default: none."),
        min_value=1,
        max_value=MAX_SEATS,
        required=False,
        widget=UnfoldAdminIntegerFieldWidget(attrs={"min": 1, "max": MAX_SEATS}),
    )
    first_date = forms.CharField(
        label=_("First date"),
        help_text=_(
            "On the clock of the person or room. Dates may lie outside of the opening hours."
            " Default: none yet."
        ),
        required=False,
        widget=UnfoldAdminTextInputWidget(attrs={"type": "datetime-local", "step": "300"}),
    )
    repeat = forms.ChoiceField(
        label=_("Repeat"),
        choices=[(ONCE, _("Once (default)")), *REPEAT_WORDS.items()],
        required=False,
        widget=UnfoldAdminSelectWidget,
    )
    until = forms.DateField(
        label=_("Last day"),
        help_text=_("The last day, if the class repeats. Default: none."),
        required=False,
        widget=UnfoldAdminTextInputWidget(attrs={"type": "date"}),
    )
    skip_conflicts = SwitchField(
        label=_("Leave out dates that are taken"),
        help_text=_("Off: no date is added if one of them is taken (default)."),
    )

    def check_dates(self, values: Mapping[str, Any]) -> None:
        """Report at their fields what is missing beside a first date."""
        if not values.get("first_date"):
            return
        if "seats" not in self.errors and not values.get("seats"):
            self.add_error("seats", gettext("How many people can take part?"))
        if values.get("repeat") and "until" not in self.errors and not values.get("until"):
            self.add_error("until", gettext("Until when does it repeat?"))


class NewDatesForm(ClassDatesForm):
    """The form on the page of a class. `resources`: those of the project."""

    resource = forms.ModelChoiceField(
        Resource.objects.none(),
        label=_("Resource"),
        empty_label=None,
        widget=UnfoldAdminSelectWidget,
    )
    field_order = ("resource",)

    def __init__(self, *args: Any, resources: Sequence[Resource], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["first_date"].required = self.fields["seats"].required = True
        self.fields["seats"].help_text = ""
        self.fields["first_date"].help_text = gettext(
            "On the clock of the person or room. Dates may lie outside of the opening hours."
        )
        choice = cast(forms.ModelChoiceField, self.fields["resource"])
        choice.queryset = Resource.objects.filter(pk__in=[row.pk for row in resources])
        if len(resources) == 1:
            choice.widget = choice.hidden_widget()
        self.initial.setdefault("resource", resources[0].pk if resources else None)

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        self.check_dates(values)
        return values


class ClassDate(NamedTuple):
    link: str
    when: str
    resource: str
    seats: str


def is_class(project: Project) -> bool:
    """Return whether the bookings of the project are seats in groups."""
    graph = project.booking.get("graph")
    return isinstance(graph, str) and graph in GRAPHS and GRAPHS[graph].is_seat


def coming_dates(project: Project) -> list[ClassDate]:
    """Return the dates that are not over, with the seats that are taken. Two queries."""
    rows = Booking.objects.for_app(project.app_id).filter(
        project=project, max_seats__isnull=False, completed=False, event__end__gt=timezone.now()
    )
    rows = rows.select_related("event", "resource").order_by("event__start", "id")
    groups = list(rows[:MAX_SHOWN])
    taken = count_seats(groups)
    return [
        ClassDate(
            link=reverse("admin:bookings_booking_change", args=[group.pk]),
            when=span_text(
                group.event.start, group.event.end, first_known_zone(group.resource.timezone)
            ),
            resource=group.resource.name,
            seats=gettext("%(taken)s of %(seats)s")
            % {"taken": taken.get(group.pk, 0), "seats": group.max_seats},
        )
        for group in groups
    ]


def dates_in_words(project: Project) -> SafeString:
    """Return the first dates as lines, and the link to the page with all."""
    lines = format_html_join(
        "",
        '<a class="office-link" href="{}">{}</a> · {}<br>',
        ((date.link, date.when, date.seats) for date in coming_dates(project)[:5]),
    )
    return format_html(
        '{}<a class="office-link" href="{}">{}</a>',
        lines or format_html("{}<br>", gettext("There are no dates yet.")),
        reverse("admin:availability_project_dates", args=[project.pk]),
        gettext("All dates, add dates"),
    )


def make_dates(
    request: HttpRequest, project: Project, resource: Resource, given: Mapping[str, Any]
) -> None:
    """Book the dates with their seats, as POST /v2/bookings does; say how many. Raises Refusal.

    They keep no opening hours, which are those of appointments; times that are taken are refused.
    """
    require(request, project.app_id, MAKE)
    zone, now = first_known_zone(resource.timezone), timezone.now()
    start = parse_moment("first_date", given["first_date"], zone)
    length = project_parameters(project).length
    if length is None:
        raise Invalid.at("length", gettext("A class has a fixed length."))
    body = booking_body(
        {
            "project_id": str(project.pk),
            "resource_id": str(resource.pk),
            "graph": GROUP,
            "what": project.booking.get("what") or project.name,
            "start": format_instant(start),
            "end": format_instant(start + timedelta(seconds=length)),
            "settings": {"max_seats": given["seats"], "enforce_availability": False},
            "repeat": given["repeat"],
            "until": given["until"] if given["repeat"] else None,
            "skip_conflicts": given["skip_conflicts"],
        }
    )
    caller = editor_caller_of(request, project.app)
    new, target = parse_new_booking(body, app=project.app, caller=caller, zone=zone, now=now)
    booking = make_booking(new, target=target, actor=actor_of(request), now=now)
    count = booking.series.bookings.count() if booking.series else 1
    sentence = ngettext("%(count)s date was added.", "%(count)s dates were added.", count)
    messages.success(request, sentence % {"count": count})
    if booking.series and booking.series.skipped:
        words = gettext("Left out, because they are taken: %(times)s")
        messages.warning(request, words % {"times": _times(booking.series.skipped, zone)})


def refusal_with_times(refusal: Refusal, resource: Resource) -> str:
    """Return the refusal's words, with the dates in conflict."""
    spans = refusal.fields.get("occurrences") or ()
    times = _times(spans, first_known_zone(resource.timezone))
    return " ".join(filter(None, (refusal_words(refusal), times)))


def _times(spans: Sequence[Mapping[str, str]], zone: str) -> str:
    words = [
        span_text(parse_instant(span["start"], "UTC"), parse_instant(span["end"], "UTC"), zone)
        for span in spans[:MAX_CONFLICTS]
    ]
    return "; ".join([*words, *(["…"] if len(spans) > MAX_CONFLICTS else [])])


def dates_page(project: Project, given: Mapping[str, Any]) -> str:
    """Return the address of the page with a refused form filled in."""
    query = {name: given.get(name) for name in FIELDS}
    address = reverse("admin:availability_project_dates", args=[project.pk])
    return f"{address}?{urlencode({name: value for name, value in query.items() if value})}"


def _last_seats(project: Project) -> dict[str, int | None]:
    """Return the seats of the date that was made last."""
    rows = Booking.objects.filter(app=project.app_id, project=project, max_seats__isnull=False)
    last = rows.order_by("-id").first()
    return {"seats": last.max_seats} if last else {}


def show_class_dates(admin: Any, request: HttpRequest, project: Project) -> HttpResponse:
    """The coming dates, and the form of further ones."""
    order = ("project_resources__position", "project_resources__id")
    rows = project.resources.filter(deleted_at=None, project_resources__project=project)
    resources = list(rows.order_by(*order))
    may_add = has_permission(request, project.app_id, MAKE)
    if request.method == "POST" and not may_add:
        raise PermissionDenied
    form = None
    if may_add and resources:
        values = request.GET.dict()
        form = NewDatesForm(
            request.POST if request.method == "POST" else None,
            initial=_last_seats(project)
            | {name: values[name] for name in FIELDS if name in values},
            resources=resources,
        )
    if form and request.method == "POST" and form.is_valid():
        resource = form.cleaned_data["resource"]
        try:
            make_dates(request, project, resource, form.cleaned_data)
            return HttpResponseRedirect(request.path)
        except Refusal as refusal:
            form.add_error(None, refusal_with_times(refusal, resource))
    return admin.show_page(
        request,
        "office/class_dates.html",
        title=gettext("Dates"),
        original=project,
        project=project,
        dates=coming_dates(project),
        form=form,
        lacks_resources=may_add and not resources,
    )
