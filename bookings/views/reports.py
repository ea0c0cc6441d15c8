"""Endpoints of reports."""

from datetime import date, timedelta
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps_config.base_views import TenantViewSet
from bookings.reports.figures import WHAT, WHEN, Period, counted_until, read_report
from bookings.serializers.reports import (
    CustomersSerializer,
    LeadTimeSerializer,
    OutcomesSerializer,
    SourcesSerializer,
    UtilisationSerializer,
)
from common.api.serializers import ObjectSerializer
from common.errors import Invalid
from common.messages import find_message
from common.openapi.components import list_of, text_response
from common.openapi.generator import envelope, parameters
from common.time.instants import InstantError, format_stamp, local_date, parse_date

DEFAULT_DAYS = 28
DAY = timedelta(days=1)
STAMP: dict[str, Any] = {"type": ["string", "null"], "examples": ["2026-11-20T09:17:00+0000"]}
ABOUT = {
    "from": text_response("The first day.", format="date", examples=["2026-10-26"]),
    "to": text_response("The day after the last one.", format="date", examples=["2026-11-23"]),
    "timezone": text_response("The app's zone: its days.", examples=["Europe/Berlin"]),
    "counted_until": STAMP
    | {"description": "Changes before are counted; null: nothing is counted yet."},
}
QUERY = {
    "from": text_response(
        f"The first day. Default: {DEFAULT_DAYS} days before `to`.",
        format="date",
        examples=["2026-10-26"],
    ),
    "to": text_response(
        "The day after the last one. Default: tomorrow.", format="date", examples=["2026-11-23"]
    ),
    "by": text_response(
        f"What the rows are: one of {', '.join(WHAT)}, one of {', '.join(WHEN)}, or one of each,"
        " separated by a comma. Absent or empty: one row.",
        pattern=f"^({'|'.join(WHAT)}|({'|'.join(WHAT)}),({'|'.join(WHEN)})|{'|'.join(WHEN)})?$",
        examples=["resource,week"],
    ),
}


def describe_report(summary: str, description: str, row: type[ObjectSerializer], name: str) -> Any:
    properties = {"data": list_of(row.schema), **ABOUT}
    return extend_schema(
        operation_id=f"get{name}Report",
        summary=summary,
        description=f"{description} A booking counts on the day of its start, in the app's time"
        " zone. Numbers are counted once an hour: see `counted_until`.",
        responses={200: envelope(f"{name}Report", properties)},
        parameters=parameters(query=QUERY),
    )


class ReportViewSet(TenantViewSet):
    """Numbers of an app's bookings, of any days."""

    tag = "reports"

    @describe_report(
        "Utilisation",
        "Booked time and open hours of resources. Open hours are those of the resource's rules,"
        " less time that is blocked by other events, times its capacity. Those of a past day stay"
        " as they were then. 422 on `to` for more than 53 weeks, and for more than 185,500 days of"
        " all resources together (500 resources in 53 weeks) that are not over yet.",
        UtilisationSerializer,
        "Utilisation",
    )
    @action(detail=False)
    def utilisation(self, request: Request) -> Response:
        return self.answer("utilisation")

    @describe_report("Outcomes", "Cancellations and no-shows.", OutcomesSerializer, "Outcomes")
    @action(detail=False)
    def outcomes(self, request: Request) -> Response:
        return self.answer("outcomes")

    @describe_report(
        "Lead times",
        "How long before their start bookings are made.",
        LeadTimeSerializer,
        "LeadTime",
    )
    @action(detail=False, url_path="lead-time")
    def lead_time(self, request: Request) -> Response:
        return self.answer("lead-time")

    @describe_report("Sources", "Where bookings come from.", SourcesSerializer, "Sources")
    @action(detail=False)
    def sources(self, request: Request) -> Response:
        return self.answer("sources")

    @describe_report(
        "New and returning customers",
        "A customer is an e-mail address; one of several bookings counts in each.",
        CustomersSerializer,
        "Customers",
    )
    @action(detail=False)
    def customers(self, request: Request) -> Response:
        return self.answer("customers")

    def answer(self, name: str) -> Response:
        period, groups = self.read_query()
        rows = read_report(name, self.app, period, groups, now=self.now)
        until = counted_until(self.app)
        return Response(
            {
                "data": rows,
                "from": period.start.isoformat(),
                "to": period.end.isoformat(),
                "timezone": self.app.default_timezone,
                "counted_until": format_stamp(until) if until else None,
            }
        )

    def read_query(self) -> tuple[Period, list[str]]:
        """Return the days and the groups. Raises Invalid, with each wrong parameter."""
        days: dict[str, date | None] = {}
        errors: dict[str, list[str]] = {}
        for name in ("from", "to"):
            text = self.query.text(name)
            try:
                days[name] = parse_date(text) if text is not None else None
            except InstantError as error:
                errors[name] = [find_message(error)]
        by = self.query.text("by")
        groups = by.split(",") if by else []
        if groups and not _is_known(groups):
            errors["by"] = [f"Must be one of {', '.join(WHAT)}, {', '.join(WHEN)}."]
        if errors:
            raise Invalid(errors)
        end = days["to"] or local_date(self.now, self.app.default_timezone) + DAY
        return Period(days["from"] or end - DEFAULT_DAYS * DAY, end), groups


def _is_known(groups: list[str]) -> bool:
    """Whether there is at most one of each kind, in this order."""
    if len(groups) == 1:
        return groups[0] in (*WHAT, *WHEN)
    return len(groups) == 2 and groups[0] in WHAT and groups[1] in WHEN
