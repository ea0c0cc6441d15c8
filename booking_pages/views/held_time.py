"""The page on which a person books a time that an agent holds. It works without scripts.

GET changes nothing, since programs follow links: the form posts to the same address.
"""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from django.http import HttpResponse, QueryDict
from django.utils.encoding import iri_to_uri
from django.utils.functional import Promise
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _
from rest_framework.request import Request

from apps_config.authentication import Caller, authenticate
from apps_config.base_views import add_test_mode_header
from apps_config.operations import Answer, Operation, call_operation
from apps_config.services import public_key
from availability.models import Hold, Project
from availability.project_texts import project_texts
from availability.reserve.holds import HoldExpired, held_span, with_companions
from booking_pages.form_fields import FormField, form_fields
from booking_pages.hold_links import BadHoldLink, check_link, held_until, is_booked_by_link
from booking_pages.texts import NO_PAGE, PAGE, SCRIPT, UNAVAILABLE, confirmation_of
from booking_pages.views.hosted_project_page import (
    booking_graph_of,
    mails_customers,
    page_language_if_not_projects,
    redirect_url,
    submit_text,
)
from booking_pages.views.rate_limited_page_base import RateLimitedPageView
from bookings.models import Booking, further_events
from bookings.pages.action_links import CALENDAR, PAY, RESCHEDULE, own_bookings_path
from bookings.pages.base import StepLink
from bookings.pages.email_links import booking_facts, held_time_facts
from bookings.pages.formatting import clean_lines, first_known_zone, instant_time_words, to_one_line
from bookings.pages.refusal_texts import REFUSAL_TEXTS
from common.api.fields import CANONICAL_ID
from common.api.json import read_body
from common.errors import NotFound

ENDED = (
    _("This link no longer works"),
    _("It has expired, or the time was already booked."),
)
HELD_UNTIL = _("Held for you until")
UNBOOKED = (UNAVAILABLE[0], SCRIPT["refused"])
LIMITED = (UNAVAILABLE[0], SCRIPT["policy"])
INCLUDES = {"include": "customer_action_links"}
# The links below a booking that was just made, by action.
NEXT_STEPS: Mapping[str, str | Promise] = {
    PAY: SCRIPT["pay"],
    CALENDAR: SCRIPT["calendar"],
    RESCHEDULE: SCRIPT["move"],
    "cancel_by_customer": SCRIPT["cancel"],
}


class HeldTimeView(RateLimitedPageView):
    stylesheet = "booking_pages/book.css"
    refusals = {
        **REFUSAL_TEXTS,
        BadHoldLink: ENDED,
        "hold_expired": ENDED,
        "idempotency_mismatch": ENDED,
        "not_found": NO_PAGE,
        "forbidden": UNBOOKED,
        "policy": LIMITED,
    }
    other_refusal = UNBOOKED
    page_path = ""  # of the project's booking page
    hold: Hold | None = None
    booking: Booking | None = None

    def get(self, request: Request, hold_id: str) -> HttpResponse:
        hold, project = self._find_hold(hold_id)
        if hold.used_at:
            raise HoldExpired
        return self._form(200, hold, project)

    def post(self, request: Request, hold_id: str) -> HttpResponse:
        hold, project = self._find_hold(hold_id)
        fields = with_typed(form_fields(project.customer_fields), QueryDict(read_body(request)))
        answer = self._book(hold, project, customer_of(fields))
        if answer.status == 201:
            return self._show_booking(answer.json["data"], project)
        if errors := faults(fields, answer.json.get("errors")):
            return self._form(answer.status, hold, project, fields, errors)
        code = answer.json["code"]
        page = self.show_step(answer.status, *self.refusals.get(code, self.other_refusal))
        if "Retry-After" in answer.headers:
            page.headers["Retry-After"] = answer.headers["Retry-After"]
        return page

    def _find_hold(self, hold_id: str) -> tuple[Hold, Project]:
        """Return the hold of a valid link, and its project; the hold may be used.

        Raises BadHoldLink, HoldExpired, NotFound.
        """
        if not CANONICAL_ID.fullmatch(hold_id):
            raise BadHoldLink("This link is not valid.")
        rows = Hold.objects.filter(id=hold_id, main=None).select_related("resource", "project__app")
        hold = rows.prefetch_related("companions__resource").first()
        project = hold.project if hold else None
        if project and not project.deleted_at and not project.app.archived_at:
            self.app, self.languages = project.app, [project.settings.get("language")]
            self.page_path = f"/book/{project.slug}" if project.is_published else ""
        check_link(
            uuid.UUID(hold_id), self.party_size, self.request.GET.get("signature", ""), now=self.now
        )
        if hold is None or project is None or self.app is None or not is_booked_by_link(project):
            raise NotFound("Project")
        if hold.expires_at <= self.now and not hold.used_at:
            raise HoldExpired
        self.hold = hold
        return hold, project

    @property
    def party_size(self) -> str:
        return self.request.GET.get("party_size", "")

    def _book(self, hold: Hold, project: Project, customer: Mapping[str, Any]) -> Answer:
        """Return the API's response to the booking, as the project's booking page would make it.

        The same form sent twice books once, and gets the same response.
        """
        start, end = held_span(hold)
        language = page_language_if_not_projects(project, self.browser_languages())
        body: dict[str, Any] = {
            "project_id": str(project.id),
            "reservation_id": str(hold.id),
            "start": start.isoformat(),
            "end": end.isoformat(),
            "customer": {**({"language": language} if language else {}), **customer},
        }
        if self.party_size:
            body["party_size"] = int(self.party_size)
        return call_operation(
            Operation("POST", "/bookings", INCLUDES, body),
            caller=page_caller(project, self.now),
            origin=self.request,
            HTTP_IDEMPOTENCY_KEY=f"hold-{hold.id}",
        )

    def _form(
        self,
        status: int,
        hold: Hold,
        project: Project,
        typed: Sequence[FormField] = (),
        errors: Mapping[str, str | Promise] | None = None,
    ) -> HttpResponse:
        graph = booking_graph_of(project)

        def values() -> dict[str, Any]:
            texts = project_texts(project, get_language())
            zone = zone_of(hold, project)
            facts = held_time_facts(hold, what=texts.what, where=texts.where, zone_name=zone)
            fields = form_fields(project.customer_fields, texts.questions)
            if typed:
                fields = [
                    field._replace(value=given.value, error=(errors or {}).get(field.id, ""))
                    for field, given in zip(fields, typed, strict=True)
                ]
            return {
                "heading": to_one_line(texts.name),
                "facts": [*facts, (HELD_UNTIL, instant_time_words(held_until(hold), zone))],
                "words": PAGE,
                "fields": fields,
                "submit": to_one_line(texts.submit_button) or submit_text(graph),
            }

        return self.render_page(
            "booking_pages/held_time.html",
            values,
            status=status,
            redirect=redirect_url(project) or "",
        )

    def _show_booking(self, record: Mapping[str, Any], project: Project) -> HttpResponse:
        """Show the booking that was made, or lead to the project's own page after one."""
        links = record["customer_action_links"]
        redirect = redirect_url(project)
        if redirect and PAY not in links:
            return HttpResponse(
                status=303, headers={"Location": with_booking(redirect, record["id"])}
            )
        rows = Booking.objects.select_related("app", "event__calendar", "resource", "project")
        self.booking = rows.prefetch_related("customers", further_events()).get(id=record["id"])
        heading, sentence = confirmation_of(
            booking_graph_of(project), is_mailed=mails_customers(project.app)
        )
        steps = [
            StepLink(label, links[action], is_button=action == PAY)
            for action, label in NEXT_STEPS.items()
            if action in links
        ]
        own_bookings = StepLink(PAGE["own_bookings"], own_bookings_path(project.app))
        return self.show_step(200, heading, sentence, links=[*steps, own_bookings])

    def page_facts(self) -> Sequence[tuple[str, str]]:
        return booking_facts(self.booking, "customer") if self.booking else ()

    def page_links(self) -> Sequence[StepLink]:
        """Return, below a refusal, the way to the booking page."""
        if self.booking or not self.page_path:
            return []
        return [StepLink(PAGE["choose"], self.page_path, is_button=True)]

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        add_test_mode_header(response, self.app)
        return super().finalize_response(request, response, *args, **kwargs)


def page_caller(project: Project, now: datetime) -> Caller:
    """Return whoever books on the project's page: the rules for the public apply."""
    return authenticate(f"Bearer {public_key(project.app, project.id, now=now)}", None, now=now)


def zone_of(hold: Hold, project: Project) -> str:
    """Return the zone of the held resources if they share one, else the app's."""
    zones = {row.resource.timezone for row in with_companions(hold)}
    return first_known_zone(zones.pop() if len(zones) == 1 else project.app.default_timezone)


def with_booking(url: str, booking_id: str) -> str:
    """Return the address with the booking's id in its query, as the booking page does."""
    parts = urlsplit(url)
    query = [pair for pair in parse_qsl(parts.query, True) if pair[0] != "booking_id"]
    return iri_to_uri(
        parts._replace(query=urlencode([*query, ("booking_id", booking_id)])).geturl()
    )


# --- The form -------------------------------------------------------------------------------------
def with_typed(fields: Sequence[FormField], form: QueryDict) -> list[FormField]:
    """Return the fields with what was typed. Readonly ones keep the project's value."""
    return [
        field
        if field.readonly
        else field._replace(
            value=field.id in form
            if field.element == "checkbox"
            else clean_lines(form.get(field.id, ""))
        )
        for field in fields
    ]


def customer_of(fields: Sequence[FormField]) -> dict[str, Any]:
    """Return the answers by key, without blank ones. A name in two parts is one."""
    answers: dict[str, Any] = {}
    for field in fields:
        if field.value != "":
            answers[field.key] = (
                f"{answers[field.key]} {field.value}" if field.key in answers else field.value
            )
    return answers


def faults(fields: Sequence[FormField], errors: Any) -> dict[str, str | Promise]:
    """Return the sentence of each field that the API refuses, by the field's id."""
    found = {}
    for field in fields:
        if f"customer.{field.key}" in (errors or {}):
            is_blank = field.value in ("", False)
            wrong = SCRIPT["email" if field.key == "email" else "unfit"]
            found[field.id] = SCRIPT["required"] if is_blank else wrong
    return found
