"""Hours, time zone and tags of several resources at once: previewed, then saved by the service."""

from typing import Any

import pytest
from django.db import connection
from django.urls import reverse

from apps_config.models import Membership
from availability.models import Resource
from office.resources.bulk_edit import hours_words
from tests.office.conftest import WORKDAYS, Enter
from tests.office.staff import messages_of
from tests.queries import Queries
from tests.world import Tenant

PAGE = reverse("admin:availability_resource_bulk_edit")
HOURS = {f"hours_{day}": "9-12, 13-17" if day < 5 else "closed" for day in range(7)}
NO_HOURS = dict.fromkeys(HOURS, "")
NEW = "Mon–Fri 09:00-12:00, 13:00-17:00, Sat–Sun closed"
OFF = {"block_period": {"start": "2030-01-01 00:00:00", "end": "2030-01-02 00:00:00"}}


@pytest.fixture
def pair(tenant: Tenant) -> list[Any]:
    given = {"timezone": "Europe/Berlin", "tags": ["x-ray"]}
    return [
        tenant.make_resource("Ada", availability_constraints=[*WORKDAYS, OFF], **given),
        tenant.make_resource("Bob", **given),
    ]


def form(*resources: Any, **given: str) -> dict[str, Any]:
    empty = {"zone": "", "added_tags": "", "removed_tags": ""}
    return {"resources": [row["id"] for row in resources], **NO_HOURS, **empty, **given}


def stored(row: Any) -> tuple[str, list[str], list[str]]:
    resource = Resource.objects.get(pk=row["id"])
    names = [name for rule in resource.availability_constraints for name in rule]
    return resource.timezone, resource.tags, names


def test_changes_are_previewed_before_saving(tenant: Tenant, pair: list[Any], enter: Enter) -> None:
    ada, bob = pair
    client = enter(tenant)
    given = form(ada, bob, **HOURS, zone="tokyo", added_tags="late", removed_tags="x-ray")
    before = [stored(ada), stored(bob)]

    question = client.post(PAGE, given)
    asked = [stored(ada), stored(bob)]
    fields = question.context["fields"]
    sent = {name: [value for key, value in fields if key == name] for name, _ in fields}
    answer = client.post(PAGE, sent, follow=True)

    others = "Time zone: Europe/Berlin → Asia/Tokyo\nTags: x-ray → late"
    old = ("Mon–Fri 09:00-17:00, Sat–Sun closed", "always open")
    assert question.context["title"] == "Change 2 resources?"
    assert question.context["lines"] == [
        f"Ada\nHours: {old[0]} → {NEW}\n{others}",
        f"Bob\nHours: {old[1]} → {NEW}\n{others}",
    ]
    assert asked == before
    assert messages_of(answer) == ["Changed resources: 2."]
    weekly = ["allow_day_and_time"] * 10
    assert stored(ada) == ("Asia/Tokyo", ["late"], [*weekly, "block_period"])
    assert stored(bob) == ("Asia/Tokyo", ["late"], weekly)


def test_omitted_fields_are_kept(tenant: Tenant, pair: list[Any], enter: Enter) -> None:
    ada, bob = pair
    client = enter(tenant)
    before = stored(bob)

    question = client.post(PAGE, form(ada, bob, added_tags="x-ray\nlate"))
    client.post(PAGE, form(ada, added_tags="late", confirmed="yes"))
    nothing = client.post(PAGE, form(bob, added_tags="x-ray"))

    assert [line.splitlines()[1] for line in question.context["lines"]] == [
        "Tags: x-ray → x-ray, late"
    ] * 2
    names = ["allow_weekdays", "allow_hours", "block_period"]
    assert stored(ada) == ("Europe/Berlin", ["x-ray", "late"], names)
    assert stored(bob) == before
    assert nothing.context["title"] == "Change 0 resources?"


def test_empty_day_keeps_its_hours(tenant: Tenant, pair: list[Any], enter: Enter) -> None:
    question = enter(tenant).post(PAGE, form(*pair, hours_4="9 to 12", hours_5="Closed"))

    assert question.context["lines"] == [
        "Ada\nHours: Mon–Fri 09:00-17:00, Sat–Sun closed"
        " → Mon–Thu 09:00-17:00, Fri 09:00-12:00, Sat–Sun closed",
        "Bob\nHours: always open → Mon–Thu closed, Fri 09:00-12:00, Sat–Sun closed",
    ]


def test_dates_are_added_to_those_of_each_resource(
    tenant: Tenant, pair: list[Any], enter: Enter
) -> None:
    client = enter(tenant)
    dates = {"closed_on": "2030-12-24", "closed_until": "2030-12-26"}
    given = form(*pair, **dates, extra_day="2030-12-28", extra_hours="10-14")

    question = client.post(PAGE, given)
    client.post(PAGE, given | {"confirmed": "yes"})
    again = client.post(PAGE, given)

    lines = "Closed on: 24 Dec 2030, until 26 Dec 2030\nExtra hours on: 28 Dec 2030, 10:00-14:00"
    added = [
        {"block_period": {"start": "2030-12-24 00:00:00", "end": "2030-12-27 00:00:00"}},
        {"open_period": {"start": "2030-12-28 10:00:00", "end": "2030-12-28 14:00:00"}},
    ]
    ada, bob = Resource.objects.order_by("name")
    assert question.context["lines"] == [f"Ada\n{lines}", f"Bob\n{lines}"]
    assert ada.availability_constraints == [*WORKDAYS, OFF, *added]
    # Extra hours do not close the rest of a week that was always open.
    always = {"allow_hours": {"start": 0, "end": 24}}
    assert bob.availability_constraints == [always, *added]
    assert again.context["title"] == "Change 0 resources?"


def test_forty_resources_are_chosen_by_their_tag(tenant: Tenant, enter: Enter) -> None:
    for number in range(40):
        tags = ["room"] if number % 2 else ["dentist", "late"]
        tenant.make_resource(f"R{number:02}", tags=tags)
    client = enter(tenant)

    whole = client.get(PAGE)
    rooms = client.get(PAGE, {"tag": "room"})

    names = [f"R{number:02}" for number in range(1, 40, 2)]
    assert (whole.context["tags"], whole.context["chosen"]) == (["dentist", "late", "room"], set())
    assert [row.name for row in rooms.context["resources"]] == names
    assert rooms.context["chosen"] == {str(row.pk) for row in rooms.context["resources"]}


def test_unchanged_hours_are_no_change(tenant: Tenant, pair: list[Any], enter: Enter) -> None:
    question = enter(tenant).post(PAGE, form(pair[0], hours_0="9-17", hours_6="closed"))

    assert question.context["lines"] == ["Ada\nNo change."]


@pytest.mark.usefixtures("clock")
def test_bookings_outside_the_new_hours_are_named(
    tenant: Tenant, pair: list[Any], enter: Enter
) -> None:
    ada, _bob = pair
    for hour in (9, 10, 11, 12, 15):
        start, end = f"2026-11-27 {hour:02}:00:00", f"2026-11-27 {hour:02}:30:00"
        tenant.book(resource_id=ada["id"], start=start, end=end)
    client = enter(tenant)

    counts = []
    for rows in ([ada], pair):
        with Queries(connection) as queries:
            question = client.post(PAGE, form(*rows, hours_4="15-17"))
        counts.append(len(queries))

    outside = [
        f"Fri 27 Nov 2026, {hour}:00 to {hour}:30 Marty McFly" for hour in ("09", "10", "11")
    ]
    assert question.context["lines"][0].splitlines()[2:] == [
        *(f"Outside the new hours: {text}" for text in outside),
        "Outside the new hours: 1 more booking",
    ]
    assert question.context["lines"][1].splitlines()[2:] == []
    assert counts[0] == counts[1]


@pytest.mark.usefixtures("clock")
def test_preview_names_its_limit_of_bookings(
    tenant: Tenant, pair: list[Any], enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    for hour in (9, 10):
        start, end = f"2026-11-27 {hour:02}:00:00", f"2026-11-27 {hour:02}:30:00"
        tenant.book(resource_id=pair[0]["id"], start=start, end=end)
    monkeypatch.setattr("office.explain.rules_preview.MAX_LOOKED_AT", 2)

    question = enter(tenant).post(PAGE, form(*pair, hours_4="15-17"))

    assert question.context["lines"][-1] == "Only the next 5,000 bookings were checked."


def test_back_button_restores_the_form(tenant: Tenant, pair: list[Any], enter: Enter) -> None:
    client = enter(tenant)
    question = client.post(PAGE, form(pair[1], hours_4="9 to 12", added_tags="late"))
    fields = question.context["fields"]
    sent = {name: [value for key, value in fields if key == name] for name, _ in fields}

    page = client.post(PAGE, sent | {question.context["back_name"]: "yes"})

    assert page.context["chosen"] == {pair[1]["id"]}
    assert 'value="9 to 12"' in page.content.decode()
    assert ">late</textarea>" in page.content.decode()
    assert page.context["form"].errors == {}
    assert stored(pair[1])[1] == ["x-ray"]


@pytest.mark.parametrize(
    ("given", "field", "errors"),
    [
        ({}, "__all__", ["Enter hours, dates, a time zone or tags."]),
        (HOURS | {"hours_1": "9 to five"}, "hours", ["Check the hours of Tuesday."]),
        (
            {"zone": "Atlantis"},
            "zone",
            ["Must be a time zone such as Europe/Berlin."],
        ),
        ({"added_tags": "a", "resources": []}, "resources", ["Select at least one resource."]),
        ({"closed_until": "2030-12-26"}, "closed_on", ["Choose a date."]),
        ({"extra_day": "2030-12-28"}, "extra_hours", ["Enter hours such as 10:00-14:00."]),
    ],
)
def test_wrong_values_are_refused(
    tenant: Tenant,
    pair: list[Any],
    enter: Enter,
    given: dict[str, Any],
    field: str,
    errors: list[str],
) -> None:
    page = enter(tenant).post(PAGE, form(*pair) | given | {"confirmed": "yes"})

    assert page.context["form"].errors == {field: errors}
    assert stored(pair[1]) == ("Europe/Berlin", ["x-ray"], [])


def test_refused_resource_does_not_affect_others(
    tenant: Tenant, pair: list[Any], enter: Enter
) -> None:
    ada, bob = pair
    Resource.objects.filter(pk=ada["id"]).update(tags=["y" * 201])

    answer = enter(tenant).post(
        PAGE, form(ada, bob, added_tags="late", confirmed="yes"), follow=True
    )

    assert stored(ada)[1] == ["y" * 201]
    assert stored(bob)[1] == ["x-ray", "late"]
    refusal = "Ada: Ensure this field has no more than 200 characters."
    assert messages_of(answer) == [refusal, "Changed resources: 1."]


def test_permissions_of_each_role(tenant: Tenant, pair: list[Any], enter: Enter) -> None:
    foreign = Tenant("other")
    theirs = foreign.make_resource("Zoe")
    editor = enter(tenant)

    opened = editor.get(PAGE)
    refused = editor.post(PAGE, form(theirs, added_tags="late", confirmed="yes"))
    viewer = enter(tenant, Membership.VIEWER)
    codes = [viewer.get(PAGE).status_code, viewer.post(PAGE, form(*pair)).status_code]

    assert [row.name for row in opened.context["resources"]] == ["Ada", "Bob"]
    assert opened.context["chosen"] == {row["id"] for row in pair}
    assert list(refused.context["form"].errors) == ["resources"]
    assert stored(theirs)[1] == []
    assert codes == [403, 403]


def test_action_uses_the_selected_resources(tenant: Tenant, pair: list[Any], enter: Enter) -> None:
    given = {"action": "change_selected", "_selected_action": [pair[1]["id"]]}

    page = enter(tenant).post(reverse("admin:availability_resource_changelist"), given, follow=True)

    assert page.context["chosen"] == {pair[1]["id"]}


def test_form_from_a_filtered_list_selects_its_resources(
    tenant: Tenant, pair: list[Any], enter: Enter
) -> None:
    client, chosen = enter(tenant), pair[0]
    path = reverse("admin:availability_resource_open_bulk_edit")

    from_all = client.get(path)
    filtered = client.get(path, {"q": chosen["name"]})

    form = reverse("admin:availability_resource_bulk_edit")
    assert (from_all.url, filtered.url) == (form, f"{form}?ids={chosen['id']}")


def test_query_count_is_constant(tenant: Tenant, pair: list[Any], enter: Enter) -> None:
    client, counts = enter(tenant), []
    client.get(PAGE)
    for number in (0, 5):
        rows = [tenant.make_resource(f"R{index}", tags=["a"]) for index in range(number)]
        with Queries(connection) as queries:
            client.get(PAGE)
            client.post(PAGE, form(*pair, *rows, **HOURS))
        counts.append(len(queries))

    assert counts == [counts[0]] * 2


@pytest.mark.parametrize(
    ("days", "words"),
    [
        (["9-17"] * 5 + ["", ""], "Mon–Fri 9-17, Sat–Sun closed"),
        (["a", "b", "b", "a", "a", "a", ""], "Mon a, Tue–Wed b, Thu–Sat a, Sun closed"),
        ([""] * 7, "Mon–Sun closed"),
    ],
)
def test_hours_in_words(days: list[str], words: str) -> None:
    assert hours_words(days) == words
