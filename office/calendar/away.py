"""Away: close a person's time, and decide what becomes of the bookings in it."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, cast

from django import forms
from django.contrib import messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext, ngettext, pgettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from apps_config.models import App, Membership
from availability.models import Event, Resource
from availability.reserve.policies import first_own_calendars
from bookings.graphs import GRAPHS
from bookings.models import Booking, PostponedStep, PostponedTask
from bookings.pages.formatting import first_known_zone
from bookings.replacements import Replacement, find_replacements, names_of_others_free
from bookings.services.offer_new_times import NO_MOVE_LINK
from bookings.services.postponed import MAX_MESSAGE, NO_ACTION, NOBODY_FREE, PlannedStep, postpone
from bookings.services.reschedule import has_move_link
from common.errors import Invalid, Refusal
from common.time.instants import format_instant, parse_instant
from notifications.mail.template_editing import preview_change
from office.base.labels import sends_emails
from office.base.local_time import days_or_span_text, span_text, today_in
from office.base.model_admin import refusal_words
from office.base.model_admin_pages import find_row
from office.base.permissions import BLOCK, MOVE, require, show_page, visible_resources
from office.base.scope import account_of, scope_of
from office.bookings.tabs import CALLED_OFF
from office.calendar.time_span import INPUT, TimeSpanForm, closed_time, read_span
from office.calendar.views import app_choice

MAX_RESOURCES = 500
MAX_BOOKINGS = 500  # of one absence
MAX_LISTED = 50
MAX_REASON = 200
KEEP = "keep"  # a choice besides the actions of steps
DEFAULTS = {
    PostponedStep.CANCEL: pgettext_lazy("step", "Cancel"),
    PostponedStep.MOVE: _("Move to somebody else who is free"),
    PostponedStep.OFFER: _("Offer new times by e-mail"),
    KEEP: _("Leave as they are"),
}


class AwayForm(TimeSpanForm):
    """Who is away, and when."""

    resource = forms.ModelChoiceField(
        Resource.objects.none(),
        label=_("Who"),
        empty_label="",
        widget=forms.Select(INPUT),
    )
    reason = forms.CharField(
        label=_("Reason"),
        required=False,
        max_length=MAX_REASON,
        widget=forms.TextInput(INPUT),
        help_text=_("For the team only. Customers do not see it."),
    )

    def __init__(self, *args: Any, offered: QuerySet[Resource], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = cast(forms.ModelChoiceField, self.fields["resource"])
        field.queryset = offered
        if not self.is_bound:
            field.widget.attrs["autofocus"] = True


class ConcernedBooking(NamedTuple):
    """A booking in the time, with what can become of it. choices: (value, words)."""

    booking: Booking
    when: str
    customers: str
    choices: Sequence[tuple[str, str]]
    chosen: str
    is_pending: bool


class MailPreview(NamedTuple):
    receiver: str
    subject: str
    text: str


@require_http_methods(["GET", "HEAD", "POST"])
def away(request: HttpRequest) -> HttpResponse:
    """?app=id&resource=id&first_day=2026-11-23&last_day=&start=&end=&reason="""
    app = _chosen_app(request)
    offered = visible_resources(request, least=Membership.EDITOR).filter(app=app)
    form = _form(request, offered.order_by("name", "id"))
    plan = None
    if form.is_bound and form.is_valid():
        resource = form.cleaned_data["resource"]
        require(request, resource.app_id, BLOCK)
        require(request, resource.app_id, MOVE)
        try:
            plan = AwayPlan(form.cleaned_data, request.POST, now=timezone.now())
        except Refusal as refusal:
            messages.error(request, refusal_words(refusal))
    if plan and request.method == "POST" and "preview" not in request.POST:
        try:
            return HttpResponseRedirect(reverse("admin:postponed", args=[_save(request, plan).pk]))
        except Refusal as refusal:
            messages.error(request, refusal_words(refusal))
    return show_page(
        request,
        "office/away.html",
        # Translators: title of a page: somebody is ill or on leave.
        title=pgettext("person", "Away"),
        app_choice=app_choice(request, app),
        app=app,
        form=form,
        rows=[[form[name] for name in names] for names in ROWS],
        plan=plan,
        is_preview="preview" in request.POST,
        may_mail=app is not None and sends_emails(app),
    )


ROWS = (("resource", "reason"), ("first_day", "start"), ("last_day", "end"))


def _chosen_app(request: HttpRequest) -> App | None:
    """The app in the query, else the first one in which the account may block time."""
    apps = scope_of(request).apps(least=Membership.EDITOR)
    app = find_row(apps, request.GET["app"]) if "app" in request.GET else apps.first()
    if app:
        require(request, app.id, BLOCK)
        require(request, app.id, MOVE)
    return app


def _form(request: HttpRequest, offered: QuerySet[Resource]) -> AwayForm:
    ids = offered.values_list("id", flat=True)[:MAX_RESOURCES]
    offered = offered.filter(id__in=list(ids))
    if "first_day" in request.GET:  # also of a POST: its form has the page's address
        return AwayForm(request.GET, offered=offered)
    first = offered.first()
    zone = first.timezone if first else "UTC"
    chosen = request.GET.get("resource") or (first.pk if first and len(ids) == 1 else None)
    return AwayForm(
        initial={"resource": chosen, "first_day": today_in(zone, timezone.now())}, offered=offered
    )


class AwayPlan:
    """The bookings in the time, and what is chosen for them. Raises Refusal for a wrong span."""

    def __init__(self, given: Mapping[str, Any], chosen: QueryDict, *, now: datetime) -> None:
        self.resource: Resource = given["resource"]
        self.reason = given["reason"].strip()
        self.zone = first_known_zone(self.resource.timezone)
        self.start, self.end = read_span(given, self.zone)
        self.now, self.posted = now, chosen
        self.message = chosen.get("message", "").replace("\0", "")[:MAX_MESSAGE].strip()
        default = chosen.get("for_all", "")
        self.for_all = default if default in DEFAULTS else PostponedStep.CANCEL
        found = _bookings_in(self.resource, self.start, self.end, now)
        self.count = found.count()
        self.bookings = list(found.order_by("event__start", "id")[:MAX_BOOKINGS])
        self.replacements = find_replacements(self.bookings, now=now)

    @property
    def when(self) -> str:
        return days_or_span_text(self.start, self.end, self.zone)

    @property
    def is_too_long(self) -> bool:
        return self.count > MAX_BOOKINGS

    @property
    def most(self) -> int:
        return MAX_BOOKINGS

    @property
    def defaults(self) -> list[tuple[str, Any]]:
        return list(DEFAULTS.items())

    @property
    def further(self) -> int:
        """Further bookings that the page does not list; the choice for all applies."""
        return len(self.bookings[MAX_LISTED:])

    @property
    def button(self) -> str:
        if not self.bookings:
            return gettext("Close the time")
        words = ngettext(
            "Close the time and handle %(count)s booking",
            "Close the time and handle %(count)s bookings",
            len(self.bookings),
        )
        return words % {"count": len(self.bookings)}

    def lines(self) -> list[ConcernedBooking]:
        listed = self.bookings[:MAX_LISTED]
        pending = set(
            PostponedStep.objects.filter(
                booking__in=listed, state=PostponedStep.PENDING
            ).values_list("booking", flat=True)
        )
        return [
            ConcernedBooking(
                booking=booking,
                when=span_text(booking.event.start, booking.event.end, self.zone),
                customers=", ".join(customer.name for customer in booking.customers.all()),
                choices=list(self._choices(booking)),
                chosen=self.posted.get(f"booking-{booking.pk}", ""),
                is_pending=booking.pk in pending,
            )
            for booking in listed
        ]

    def _choices(self, booking: Booking) -> Iterator[tuple[str, str]]:
        yield "", gettext("As for all")
        for offer in self.replacements.get(booking.pk, ()):
            yield _value_of(offer), _offer_words(offer, booking, self.zone)
        if has_move_link(booking):
            yield PostponedStep.OFFER, gettext("Offer new times by e-mail")
        if _end_action(booking):
            yield PostponedStep.CANCEL, pgettext("step", "Cancel")
        yield KEEP, gettext("Leave as it is")

    def steps(self) -> list[PlannedStep]:
        steps = (self._step(booking) for booking in self.bookings)
        return [step for step in steps if step]

    def _step(self, booking: Booking) -> PlannedStep | None:
        choice = self.posted.get(f"booking-{booking.pk}") or self.for_all
        if choice == KEEP:
            return None
        if choice == PostponedStep.OFFER:
            refusal = "" if has_move_link(booking) else NO_MOVE_LINK
            return PlannedStep(booking, PostponedStep.OFFER, refusal=refusal)
        if choice == PostponedStep.MOVE:
            offers = self.replacements.get(booking.pk)
            if not offers:
                return PlannedStep(booking, PostponedStep.MOVE, refusal=NOBODY_FREE)
            return _move(booking, _value_of(offers[0]))
        if choice.startswith(f"{PostponedStep.MOVE}/"):
            return _move(booking, choice)
        action = _end_action(booking)
        return PlannedStep(
            booking, action or PostponedStep.CANCEL, refusal="" if action else NO_ACTION
        )

    def previews(self) -> Iterator[MailPreview]:
        """Yield the first e-mail of each kind."""
        seen = set()
        for step in self.steps():
            slug, facts = self._mail_of(step)
            if step.refusal or slug in seen:
                continue
            seen.add(slug)
            others = (
                names_of_others_free(step.booking, step.booking.event.start, now=self.now)
                if slug == "cancelled_customer"
                else ()
            )
            facts |= {"message": self.message}
            mail = preview_change(step.booking, slug, facts, also_free=others)
            customers = ", ".join(customer.name for customer in step.booking.customers.all())
            yield MailPreview(customers, mail.subject, mail.text)

    def _mail_of(self, step: PlannedStep) -> tuple[str, dict[str, Any]]:
        """Return the name of the e-mail's template, and its facts."""
        booking = step.booking
        if step.action == PostponedStep.OFFER:
            return "new_times_customer", {}
        if step.action != PostponedStep.MOVE or not (step.start and step.end):
            is_declined = step.action == PostponedStep.DECLINE
            return ("declined_customer" if is_declined else "cancelled_customer"), {}
        names = {offer.resource.id: offer.resource.name for offer in self._offers_of(booking)}
        new = names.get(step.resource_id, "") if step.resource_id else ""
        facts: dict[str, Any] = {"resources": [new], "old_resources": [self.resource.name]}
        facts |= {"start": format_instant(step.start), "end": format_instant(step.end)}
        if step.start == booking.event.start:
            return "reassigned_customer", facts
        event = booking.event
        old = {"old_start": format_instant(event.start), "old_end": format_instant(event.end)}
        return "rescheduled_customer", facts | old

    def _offers_of(self, booking: Booking) -> Sequence[Replacement]:
        return self.replacements.get(booking.pk, ())


def _bookings_in(
    resource: Resource, start: datetime, end: datetime, now: datetime
) -> QuerySet[Booking]:
    """The bookings that still take place and need the resource in the time; of groups, without
    their seats. A customer who has arrived is no longer concerned.
    """
    events = Event.objects.filter(resource=resource, start__lt=end, end__gt=start)
    own, main = events.values("id"), events.exclude(main=None).values("main")
    rows: QuerySet[Booking] = Booking.objects.filter(
        Q(event__in=own) | Q(event__in=main),
        app=resource.app_id,
        deleted_at=None,
        owner_booking=None,
        completed=False,
        event__end__gt=now,
    )
    rows = rows.exclude(state__in=CALLED_OFF).exclude(outcome="attended")
    related = ("app", "event", "resource", "project")
    return rows.select_related(*related).prefetch_related("customers")


def _end_action(booking: Booking) -> str:
    """Return the action that ends the booking: a request is declined. "" without one."""
    for action in (PostponedStep.DECLINE, PostponedStep.CANCEL):
        if GRAPHS[booking.graph].next_state(booking.state, action):
            return action
    return ""


def _value_of(offer: Replacement) -> str:
    times = format_instant(offer.start), format_instant(offer.end)
    return "/".join((PostponedStep.MOVE, str(offer.resource.id), *times))


def _move(booking: Booking, value: str) -> PlannedStep:
    """Return the step of a chosen `move/<resource>/<start>/<end>`; the service checks it again.

    A value that the page did not offer is a step that can't be carried out.
    """
    try:
        _, resource_id, *times = value.split("/")
        start, end = (parse_instant(text, "UTC") for text in times)
        return PlannedStep(booking, PostponedStep.MOVE, start, end, uuid.UUID(resource_id))
    except ValueError:
        return PlannedStep(booking, PostponedStep.MOVE, refusal=NOBODY_FREE)


def _offer_words(offer: Replacement, booking: Booking, zone: str) -> str:
    if offer.start == booking.event.start:
        return gettext("Move to %(resource)s, same time") % {"resource": offer.resource.name}
    given = {"resource": offer.resource.name, "time": span_text(offer.start, offer.end, zone)}
    return gettext("Move to %(resource)s, %(time)s") % given


def _save(request: HttpRequest, plan: AwayPlan) -> PostponedTask:
    """Close the time, and postpone the rest. Raises Refusal."""
    if plan.is_too_long:
        raise Invalid.at("last_day", gettext("Choose a shorter time."))
    resource = plan.resource
    calendar = first_own_calendars([resource.id]).get(resource.id)
    # Translators: title of the time in the calendar at which somebody is ill or on leave.
    what = plan.reason or pgettext("person", "Away")
    return postpone(
        app=resource.app,
        actor=account_of(request).email,
        steps=plan.steps(),
        closed=[closed_time(resource, calendar, plan.start, plan.end, what)],
        message=plan.message,
        now=plan.now,
    )
