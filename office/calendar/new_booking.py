"""What the form of a new booking asks for: known customers, a project's questions; its series."""

import re
import uuid
from collections.abc import Mapping
from itertools import chain
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from availability.models import Project, Resource
from availability.search.availability_query import MAX_UNITS
from availability.search.visits import requirements_of_project
from bookings.models import AppCustomer
from bookings.privacy import customer_records
from bookings.serializers.bodies import TargetSerializer
from bookings.services import NewBooking, NewSeat, NewSeries
from common.api.fields import StrictBooleanField
from common.api.json import parse_body
from common.api.serializers import read_values_as
from common.errors import Invalid, Refusal
from common.ical.rrule import expand_recurrence
from office.base.lazy_text import LazyText
from office.base.local_time import parse_day
from office.bookings.answers import project_questions, question_records
from office.bookings.customer_search import search_customers

MIN_LETTERS = 3  # the index of names has groups of three letters
MAX_MATCHES = 200  # rows of customers that are read
MAX_SUGGESTED = 8
MAX_TIMES = 366
REPEATS: Mapping[str, str] = {
    "daily": "FREQ=DAILY",
    "weekly": "FREQ=WEEKLY",
    "two_weeks": "FREQ=WEEKLY;INTERVAL=2",
}
REPEAT_WORDS: Mapping[str, LazyText] = {
    # Translators: this and the next ones: how often a booking repeats.
    "daily": _("Daily"),
    "weekly": _("Weekly"),
    "two_weeks": _("Every two weeks"),
}
NO_MAIL = {"enabled": False}


def suggest_customers(resource: Resource, term: str) -> list[dict[str, str]]:
    """Return name, e-mail and phone of customers of the resource's app, as of their last booking:
    those with the latest bookings of the first matches. Five queries.
    """
    term = term.strip()[:200]
    if len(term) < MIN_LETTERS:
        return []
    rows = search_customers(term).filter(app=resource.app_id, booking__deleted_at=None)
    addresses = set(rows.order_by().values_list("address", flat=True)[:MAX_MATCHES]) - {""}
    people = AppCustomer.objects.filter(app=resource.app_id, address__in=addresses)
    latest = list(people.order_by("-last_booking_at", "address")[:MAX_SUGGESTED])
    return [
        {name: str(record[name]) for name in ("name", "email", "phone")}
        for record in customer_records(latest, timezone.now())
    ]


def read_question_fields(project: Project | None) -> list[dict[str, Any]]:
    """Return the project's own questions for the script."""
    return question_records(project_questions(project))


class WantedSerializer(TargetSerializer):
    """What the free times of a new booking depend on, beside its time."""

    any_resource = StrictBooleanField(required=False)


def read_wanted(text: str) -> dict[str, Any]:
    """Parse `quantity`, `party_size`, `resources` and `any_resource`, as JSON. Raises Invalid."""
    return read_values_as(WantedSerializer, parse_body(text.encode()) if text else {})


def read_choices(resource: Resource, project: Project | None) -> dict[str, Any]:
    """Return what can be chosen in a booking through the project: `most` units, a party
    (`takes_party`), any of several resources (`takes_any`), and the resources by requirement. Three
    queries at most.
    """
    lists = requirements_of_project(project) if project else []
    named: dict[str, dict[uuid.UUID, None]] = {}
    for requirement in chain.from_iterable(lists):
        named.setdefault(requirement.name, {}).update(dict.fromkeys(requirement.ids))
    rows = [resource]
    if project:
        own = Resource.objects.for_app(project.app_id).filter(project_resources__project=project)
        rows = list(own) or rows
    is_single = not (named or (project and project.is_mutual))
    names = {row.id: row.name for row in rows}
    return {
        "most": min(max(row.capacity for row in rows), MAX_UNITS) if is_single else 1,
        "takes_party": any(row.party for row in rows),
        "takes_any": is_single and len(rows) > 1,
        "requirements": [
            {
                "name": name,
                "resources": [
                    {"id": str(each), "name": names[each]} for each in ids if each in names
                ],
            }
            for name, ids in named.items()
        ],
    }


def booking_body(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of POST /v2/bookings: `repeat` with `times` or `until` (a day) becomes a
    recurrence, `skip_conflicts` its `on_conflict`, `notify: false` switches the e-mails off, and
    `any_resource` leaves the choice to the project. Raises Invalid.
    """
    body = dict(given)
    if body.pop("any_resource", False) is True and body.get("project_id"):
        body.pop("resource_id", None)
    own = ("repeat", "times", "until", "skip_conflicts", "notify")
    repeat, times, until, skips, notify = (body.pop(name, None) for name in own)
    if repeat:
        body["recurrence"] = _rule(repeat, times, until)
        body["on_conflict"] = "skip" if skips else "fail"
    if notify is False:
        body |= {"notify_customer_by_email": NO_MAIL, "notify_owner_by_email": NO_MAIL}
    return body


def _rule(repeat: Any, times: Any, until: Any) -> str:
    if not isinstance(repeat, str) or repeat not in REPEATS:
        raise Invalid.at("repeat", gettext("There is no such choice."))
    if until:
        return f"{REPEATS[repeat]};UNTIL={parse_day('until', str(until)):%Y%m%d}"
    if not re.fullmatch(r"[0-9]{1,3}", str(times)) or not 2 <= int(times) <= MAX_TIMES:
        raise Invalid.at(
            "times", gettext("Enter 2 to %(most)s times, or a day.") % {"most": MAX_TIMES}
        )
    return f"{REPEATS[repeat]};COUNT={int(times)}"


def add_bookable_count(refusal: Refusal, new: NewBooking | NewSeat, resource: Resource) -> None:
    """Add to the refusal of a series how many of its times can be booked."""
    if isinstance(new, NewSeries) and "occurrences" in refusal.fields:
        times = expand_recurrence(new.rule, new.start, new.end, resource.timezone)
        refusal.fields["bookable"] = len(times) - len(refusal.fields["occurrences"])
