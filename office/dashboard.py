"""The first page: the desk, pending requests, and problems.

Each number is the length of a list and links to it; counts stop at MAX_COUNTED.
"""

from datetime import date, datetime
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.db.models import F, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html_join
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from apps_config.models import App
from apps_config.public_limits import (
    BLOCKED_CUSTOMERS,
    BOOKING_LINKS,
    CHALLENGE,
    CODES,
    HELD_SHARE,
    HOLDS,
    OPEN_PER_EMAIL,
    PER_ADDRESS,
    PER_APP,
    PER_EMAIL,
    refusals_of_a_day,
    saw_unknown_proxy,
)
from availability.models import Calendar
from bookings.models import Booking, Customer
from common.time.instants import local_date
from notifications.models import LATE, Delivery, DeliveryQuerySet, Webhook
from office.base.dates import DAY, days_span_in_zone, moment_words, office_zone
from office.base.permissions import MOVE, has_permission
from office.base.scope import Scope, scope_of
from office.bookings.postponed import refused_steps
from office.bookings.tabs import CALLED_OFF, open_requests
from office.calendar.grid_data import counted_words
from office.calendars.sync_status import (
    NEEDS_ATTENTION,
    STATES,
    account_words,
    calendars_in_first_sync,
    need_attention,
    problem_words,
    progress_words,
    silent_calendars,
    state_of,
)
from office.desk.columns import action_buttons
from office.desk.views import desk_context
from office.first_steps import first_steps
from office.navigation import (
    APPS,
    AWAY,
    BLOCK_TIME,
    BOOKINGS,
    CALENDARS,
    DELIVERIES,
    WEBHOOKS,
    may_open,
    only_app_id,
)
from office.offline.device_files import offline_files

MAX_COUNTED = 1000  # a count stops here
MAX_LISTED = 8
DAYS_BEFORE, DAYS_AFTER = 6, 7
KEPT = 60  # seconds
Bookings = QuerySet[Booking]
Part = dict[str, Any]


class Figure(NamedTuple):
    """A number with the link to the list that it counts."""

    words: str
    number: str
    link: str
    is_bad: bool = False


class Today(NamedTuple):
    """What the parts of the page are about: `start` to `end` is the local day in `zone`."""

    request: HttpRequest
    now: datetime
    zone: str
    day: date
    start: datetime
    end: datetime

    @property
    def scope(self) -> Scope:
        return scope_of(self.request)


def today_context(request: HttpRequest) -> dict[str, Any]:
    """Return the template's values: each part needs the permission of the list that it is about."""
    now, zone = timezone.now(), office_zone(request)
    day = local_date(now, zone)
    today = Today(request, now, zone, day, *days_span_in_zone(day, day, zone))
    parts = [read(today) for page, read in PARTS if may_open(request, page)]
    context: Part = {"today": day, "zone": zone}
    for part in parts:
        context |= part
    figures = [figure for part in parts for figure in part.get("figures", ())]
    may_block = may_open(request, BLOCK_TIME)
    may_be_away = may_open(request, AWAY)
    context["first_steps"] = first_steps(request, only_app_id(request))
    return context | {
        "figures": figures,
        "is_empty": not parts,
        "may_block": may_block,
        "may_be_away": may_be_away,
        "offline_files": offline_files(),
    }


def _bookings_part(today: Today) -> Part:
    rows = Booking.objects.filter(today.scope.rows("app"), deleted_at=None)
    return {
        "figures": [_bookings_today_figure(rows, today), _waiting(rows)],
        "requests": _pending_request_lines(today.request, rows),
        "declined": _declined_lines(today),
        "refused_steps": refused_steps(today.scope.rows("app")),
        **desk_context(today.request, today.day, today.zone, today.now),
    }


def _deliveries_part(today: Today) -> Part:
    rows = Delivery.objects.filter(today.scope.rows("app"))
    return {"figures": _problems(_failed(rows, today.now), _overdue(rows, today.now))}


def _webhooks_part(today: Today) -> Part:
    return {"figures": _problems(_disabled(today.scope))}


def _calendars_part(today: Today) -> Part:
    rows = Calendar.objects.filter(today.scope.rows("app"))
    in_need = need_attention(rows, today.now)
    return {
        "figures": _problems(_calendars_figure(in_need)),
        "calendars": _calendar_lines(in_need),
        "silent_calendars": _calendar_lines(silent_calendars(rows, today.now)),
        "first_syncs": _first_syncs(calendars_in_first_sync(rows, today.now)),
    }


def _apps_part(today: Today) -> Part:
    without_emails = _apps_with_emails_off(today.request)
    return {
        "refusals": _refusals(today.scope, today.now),
        "apps_without_emails": without_emails,
        "links_of_apps_without_emails": _links_of(without_emails),
        "is_behind_unknown_proxy": saw_unknown_proxy(today.scope.rows("app"), today.now),
    }


# (the list, the part about it), in the order of the figures
PARTS = (
    (BOOKINGS, _bookings_part),
    (DELIVERIES, _deliveries_part),
    (WEBHOOKS, _webhooks_part),
    (CALENDARS, _calendars_part),
    (APPS, _apps_part),
)


def _problems(*figures: Figure) -> list[Figure]:
    """Return the figures about machines that are not zero."""
    return [figure for figure in figures if figure.is_bad]


def _count(rows: QuerySet) -> str:
    number = rows.order_by()[: MAX_COUNTED + 1].count()
    return f"{MAX_COUNTED}+" if number > MAX_COUNTED else str(number)


def _whole(count: str) -> int:
    return int(count.rstrip("+"))


def _list(page: str, **query: str) -> str:
    return f"{reverse(f'admin:{page}')}?{urlencode(query)}"


def _bookings_today_figure(bookings: Bookings, today: Today) -> Figure:
    rows = bookings.filter(event__start__gte=today.start, event__start__lt=today.end)
    rows = rows.exclude(state__in=CALLED_OFF)
    link = _list(BOOKINGS, day=today.day.isoformat())
    number = _count(rows)
    return Figure(ngettext("booking today", "bookings today", _whole(number)), number, link)


def _waiting(bookings: Bookings) -> Figure:
    number = _count(open_requests(bookings))
    link = _list(BOOKINGS, state="tentative", graph="confirm_decline")
    return Figure(ngettext("pending request", "pending requests", _whole(number)), number, link)


def _failed(deliveries: DeliveryQuerySet, now: datetime) -> Figure:
    number = _count(deliveries.failed_since(now - DAY))
    link = _list(DELIVERIES, trouble="failed")
    return Figure(_("deliveries failed in 24 hours"), number, link, number != "0")


def _overdue(deliveries: DeliveryQuerySet, now: datetime) -> Figure:
    number = _count(deliveries.filter(next_at__lte=now - LATE))
    link = _list(DELIVERIES, trouble="overdue")
    return Figure(_("deliveries overdue"), number, link, number != "0")


def _apps_with_emails_off(request: HttpRequest) -> list[App]:
    """Return the account's apps that send no e-mails; staff see those of a single app only."""
    scope = scope_of(request)
    if scope.is_staff and only_app_id(request) is None:
        return []
    return list(scope.apps().filter(settings__disable_emails=True)[:MAX_LISTED])


def _links_of(apps: list[App]) -> str:
    """Return links to the apps' settings of e-mails."""
    links = ((reverse("admin:apps_config_app_change", args=[app.pk]), app.name) for app in apps)
    return format_html_join(", ", '<a href="{}#part-e-mails">{}</a>', links)


def _disabled(scope: Scope) -> Figure:
    rows = Webhook.objects.filter(scope.rows("app"), active=False, deleted_at=None)
    number = _count(rows)
    return Figure(
        _("webhooks disabled"),
        number,
        _list(WEBHOOKS, active__exact="0"),
        number != "0",
    )


def _calendars_figure(calendars: QuerySet[Calendar]) -> Figure:
    number = _count(calendars)
    link = _list(CALENDARS, state=NEEDS_ATTENTION)
    return Figure(_("calendars need attention"), number, link, number != "0")


REFUSAL_WORDS = {
    PER_ADDRESS: gettext_lazy("over the limit per network address"),
    PER_EMAIL: gettext_lazy("over the limit per e-mail address"),
    OPEN_PER_EMAIL: gettext_lazy("with too many upcoming bookings"),
    PER_APP: gettext_lazy("over the limit per minute"),
    HOLDS: gettext_lazy("for more holds than the app allows per minute"),
    HELD_SHARE: gettext_lazy("for more time than may be held on a day"),
    CODES: gettext_lazy("for more codes than an address gets per hour"),
    BOOKING_LINKS: gettext_lazy("for more links to own bookings than an address gets per hour"),
    BLOCKED_CUSTOMERS: gettext_lazy("of blocked customers"),
    CHALLENGE: gettext_lazy("without a solved proof of work"),
}


def _refusals(scope: Scope, now: datetime) -> list[tuple[int, str]]:
    """Return the refused public requests of 24 hours by reason, the most frequent first."""
    counts = refusals_of_a_day(scope.rows("app"), now)
    return sorted(
        ((count, str(REFUSAL_WORDS[reason])) for reason, count in counts.items()), reverse=True
    )


def _calendar_lines(calendars: QuerySet[Calendar]) -> list[dict[str, Any]]:
    """Return the calendars that need attention, the least recently synced first."""
    rows = calendars.select_related("resource", "connection__grant")
    rows = rows.order_by(F("synced_at").asc(nulls_first=True), "id")[:MAX_LISTED]
    lines = []
    for row in rows:
        since = moment_words(row.synced_at)
        lines.append(
            _calendar_line(row)
            | {
                "since": _("last synced %(moment)s") % {"moment": since}
                if since
                else _("never synced"),
                "problem": problem_words(row.connection),
            }
        )
    return lines


def _first_syncs(calendars: QuerySet[Calendar]) -> list[dict[str, Any]]:
    """Return the calendars in their first sync: stale too, but without a fault."""
    rows = calendars.select_related("resource", "connection__grant")
    rows = rows.order_by("-id")[:MAX_LISTED]
    return [
        _calendar_line(row) | {"since": progress_words(row.connection) or _("queued")}
        for row in rows
    ]


def _calendar_line(calendar: Calendar) -> dict[str, Any]:
    words, colour = STATES[state_of(calendar)]
    return {
        "link": reverse("admin:availability_calendar_change", args=[calendar.id]),
        "name": calendar.name,
        "resource": calendar.resource.name,
        "account": account_words(calendar.connection),
        "state": words,
        "colour": colour,
    }


def _declined_lines(today: Today) -> list[dict[str, Any]]:
    """Return the latest invitations that were declined since yesterday, of open bookings."""
    rows = Customer.objects.filter(
        today.scope.rows("app"),
        response=Customer.DECLINED,
        responded_at__gte=today.start - DAY,
        booking__completed=False,
        booking__deleted_at=None,
    )
    rows = rows.select_related("booking__event", "booking__resource")
    return [
        {
            "booking": row.booking,
            "when": moment_words(row.booking.event.start),
            "who": row.name or row.booking.event.what,
            "what": counted_words(row.booking),
        }
        for row in rows.order_by("-responded_at", "-id")[:MAX_LISTED]
    ]


def _pending_request_lines(request: HttpRequest, bookings: Bookings) -> list[dict[str, Any]]:
    """Return the latest requests, with the buttons that answer them."""
    rows = open_requests(bookings).order_by("-created_at", "-id")
    rows = rows.select_related("event", "resource").prefetch_related("customers")[:MAX_LISTED]
    return [
        {
            "booking": row,
            "when": moment_words(row.event.start),
            "who": ", ".join(person.name for person in row.customers.all()[:2]) or row.event.what,
            "what": counted_words(row),
            "actions": action_buttons(row) if has_permission(request, row.app_id, MOVE) else (),
        }
        for row in rows
    ]
