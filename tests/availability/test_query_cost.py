"""The limits of what one query may compute."""

from typing import Any

import pytest

from availability.core import slots
from availability.search import availability_query as search
from availability.search import cost as query_cost
from tests.availability.queries import MONDAY, UNKNOWN, ask, open_hours, refusal
from tests.world import BERLIN, Caller, Tenant

pytestmark = [pytest.mark.usefixtures("monday")]

WEEKENDS = {"block_weekends": {}}
TOO_MANY_RULES = "At most 20 constraints with a widget key."
TOO_OFTEN = (
    "Repeat too often for so many resources: send fewer constraints, or request a shorter range."
)
QUERY_PATHS = ("/availability", "/availability/dates", "/availability/count")


def daily(minute: int) -> dict[str, Any]:
    start = f"{MONDAY} 10:{minute:02}:00"
    return {"block_recurring": {"start": start, "duration": "1 minute", "rrule": "FREQ=DAILY"}}


@pytest.fixture
def project(tenant: Tenant, ada: Any) -> str:
    return tenant.make_project(ada["id"], availability={"to": "366 days"})["id"]


# --- The number of rules --------------------------------------------------------------------------
@pytest.mark.parametrize("path", QUERY_PATHS)
def test_a_widget_key_sends_at_most_twenty_rules(tenant: Tenant, project: str, path: str) -> None:
    widget = tenant.widget()

    answers = [
        caller.post(path, {"project_id": project, "constraints": [WEEKENDS] * count})
        for caller, count in ((widget, 20), (widget, 21), (tenant, 200))
    ]

    assert [answer.status for answer in answers] == [200, 422, 200]
    assert answers[1].error == refusal(constraints=TOO_MANY_RULES)


SOME_HOURS = {"specific_time": {"start": 9, "end": 17}}


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"filters": [WEEKENDS] * 21}, "filters"),
        ({"filters": {"or": [SOME_HOURS] * 11, "and": [SOME_HOURS] * 10}}, "filters"),
        ({"constraints": [WEEKENDS] * 21}, "constraints"),
        ({"filters": [WEEKENDS] * 20, "constraints": [WEEKENDS]}, "constraints"),
    ],
)
def test_a_widget_key_sends_at_most_twenty_filters(
    tenant: Tenant, project: str, given: dict[str, Any], path: str
) -> None:
    answers = [
        caller.post("/findtime", {"project_id": project, **given})
        for caller in (tenant.widget(), tenant)
    ]

    assert [answer.status for answer in answers] == [422, 200]
    assert answers[0].error == refusal(**{path: TOO_MANY_RULES})


def test_too_many_rules_are_refused_before_parsing(tenant: Tenant, project: str) -> None:
    """To count through ten years takes milliseconds for each rule."""
    body = {"project_id": project, "constraints": [{"unknown": {}}] * 21}

    assert tenant.widget().post("/availability", body).error == refusal(constraints=TOO_MANY_RULES)


def test_the_rules_of_the_public_widget_pass(tenant: Tenant, project: str) -> None:
    """What booking-js sends: a few hours and days, as filters or as constraints."""
    hours = {"allow_hours": {"start": 9, "end": 17}}
    filters = {
        "or": [{"specific_day_and_time": {"day": day, "start": 9, "end": 17}} for day in WEEK],
        "and": [{"exclude_weekend": {}}, {"business_hours": {}}],
    }
    widget = tenant.widget()

    answers = [
        widget.post("/findtime", {"project_id": project, "future": "4 weeks", "filters": filters}),
        widget.post("/availability", {"project_id": project, "constraints": [WEEKENDS, hours]}),
    ]

    assert [answer.status for answer in answers] == [200, 200]
    assert all(answer.data for answer in answers)


WEEK = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


# --- How often rules repeat -----------------------------------------------------------------------
def test_rules_that_repeat_too_often_are_refused(
    tenant: Tenant, project: str, ada: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two rules a day for a week, for one resource in one zone: 14 windows times 1 + 10."""
    rules = [daily(0), daily(1)]
    whole_week = {"from": f"{MONDAY}T09:00:00Z", "to": "2026-11-30T09:00:00Z", "constraints": rules}
    monkeypatch.setattr(query_cost, "MAX_RULE_WORK", 15 * 11)
    widget = tenant.widget()

    def requests(caller: Caller, **given: Any) -> list[Any]:
        body = {"project_id": project, **whole_week, **given}
        return [caller.post(path, body) for path in QUERY_PATHS]

    assert [answer.status for answer in requests(widget)] == [200] * 3
    monkeypatch.setattr(query_cost, "MAX_RULE_WORK", 15 * 11 - 1)
    refused = [
        *requests(widget),
        *requests(tenant),
        *[
            tenant.post(path, {"resources": [ada["id"]], **whole_week})
            for path in ("/availability/explain", "/unavailable/slots")
        ],
    ]
    assert [answer.error for answer in refused] == [refusal(constraints=TOO_OFTEN)] * 8
    assert [answer.status for answer in requests(widget, to="2026-11-29T09:00:00Z")] == [200] * 3
    assert [answer.status for answer in requests(widget, constraints=rules[:1])] == [200] * 3


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"filters": [daily(0)]}, "filters"),
        ({"constraints": [daily(0)]}, "constraints"),
    ],
)
def test_findtime_errors_name_the_sent_parameter(
    tenant: Tenant,
    project: str,
    given: dict[str, Any],
    path: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(query_cost, "MAX_RULE_WORK", 10)

    answer = tenant.widget().post("/findtime", {"project_id": project, **given})

    assert answer.error == refusal(**{path: TOO_OFTEN})


def test_200_rules_for_30_resources_and_a_year_are_refused(tenant: Tenant) -> None:
    ids = [tenant.make_resource(f"R{number}", BERLIN)["id"] for number in range(30)]
    rules = [daily(minute % 60) for minute in range(200)]

    answers = [
        ask(tenant, *ids[:count], **{"from": "now"}, to=to, constraints=rules)
        for count, to in ((30, "366 days"), (30, "4 weeks"), (1, "4 weeks"))
    ]

    assert [answer.status for answer in answers] == [422, 200, 200]
    assert answers[0].error == refusal(constraints=TOO_OFTEN)


def test_rules_are_expanded_once_for_each_zone(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    zones = ("UTC", "UTC", BERLIN, BERLIN)
    ids = [
        tenant.make_resource(f"R{number}", zone, **open_hours(9, 12 + number))["id"]
        for number, zone in enumerate(zones)
    ]
    project = tenant.make_project(*ids)["id"]
    expanded = []
    open_windows = search.open_windows

    def expand(lists: Any, zone: str, start: int, end: int) -> Any:
        expanded.append(zone)
        return open_windows(lists, zone, start, end)

    monkeypatch.setattr(search, "open_windows", expand)
    widget = tenant.widget()

    for path in QUERY_PATHS:
        widget.post(path, {"project_id": project, "constraints": [daily(0)]})

    assert sorted(expanded) == sorted(["UTC", BERLIN] * 3)


def test_the_grid_of_a_mutual_project_is_checked_once(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of all resources together: for each of 500 it took seconds."""
    ids = [tenant.make_resource(f"R{number}", **open_hours(9, 17))["id"] for number in range(4)]
    terms = {"mode": "mutual", "length": "30 minutes", "timeslot_increments": "15 minutes"}
    project = tenant.make_project(*ids, availability=terms)["id"]
    checked = []
    starts_on_grid = slots.starts_on_grid

    def check(rules: Any, start: int, increment: int) -> bool:
        checked.append(len(rules))
        return starts_on_grid(rules, start, increment)

    monkeypatch.setattr(search, "starts_on_grid", check)

    span = {"start": f"{MONDAY}T09:05:00Z", "end": f"{MONDAY}T09:35:00Z"}
    answer = tenant.widget().post("/bookings/reserve", {"project_id": project, **span})

    assert (answer.status, checked) == (409, [4])


# --- The days of many resources -------------------------------------------------------------------
def test_days_of_a_widget_query_are_limited(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_cost, "MAX_PUBLIC_DAYS", 100)
    ids = [tenant.make_resource(f"R{number}")["id"] for number in range(2)]
    project = tenant.make_project(*ids, availability={"to": "366 days"})["id"]
    widget = tenant.widget()

    answers = [
        caller.post(path, {"project_id": project, "to": to})
        for caller, to in ((widget, "50 days"), (widget, "52 days"), (tenant, "52 days"))
        for path in QUERY_PATHS
    ]
    one = widget.post(
        "/availability", {"project_id": project, "resources": ids[:1], "to": "99 days"}
    )
    late = widget.post("/findtime", {"project_id": project, "future": "52 days"})

    assert [answer.status for answer in answers] == [200] * 3 + [422] * 3 + [200] * 3
    text = "At most 50 days at once for so many resources: request a shorter range."
    assert [answer.error for answer in answers[3:6]] == [refusal(to=text)] * 3
    assert one.status == 200
    assert late.error == refusal(future=text)


def test_a_month_is_always_allowed(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page shows a month of every project."""
    monkeypatch.setattr(query_cost, "MAX_PUBLIC_DAYS", 1)

    assert [query_cost.public_days(count) for count in (0, 1, 500)] == [35] * 3


def test_allowed_days_by_number_of_resources() -> None:
    assert [query_cost.public_days(count) for count in (0, 1, 47, 48, 100, 500, 10_000)] == [
        *(366, 366, 366, 364, 175, 35, 35)
    ]


def test_a_year_fits_in_zones_a_day_apart(tenant: Tenant) -> None:
    """Their local days begin up to 26 hours apart."""
    zones = ("Pacific/Kiritimati", "Pacific/Pago_Pago")
    ids = [tenant.make_resource(zone, zone)["id"] for zone in zones]
    project = tenant.make_project(*ids, availability={"to": "366 days"})["id"]
    year = {"project_id": project, "from": "tomorrow", "to": "365 days"}

    assert tenant.widget().post("/availability/dates", year).status == 200


def test_query_without_resources_is_always_allowed(tenant: Tenant) -> None:
    project = tenant.make_project(availability={"to": "366 days"})["id"]
    widget = tenant.widget()

    assert [widget.post(path, {"project_id": project}).data for path in QUERY_PATHS] == [[]] * 3
    assert widget.post("/availability", {"project_id": UNKNOWN}).status == 422
