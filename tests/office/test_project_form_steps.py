"""The steps of a visit on a project's form."""

from typing import Any

import pytest
from django.db import connection
from django.urls import reverse

from availability.models import Project
from tests.office.conftest import Enter
from tests.office.staff import faults, form_of
from tests.queries import Queries
from tests.world import Tenant

MARKED = {"visit_steps": ["Check the marked rows."]}


@pytest.fixture
def dentist(tenant: Tenant) -> Any:
    return tenant.make_resource("Dr. Who", tags=["dentist"])


@pytest.fixture
def room(tenant: Tenant) -> Any:
    return tenant.make_resource("Room 1", tags=["room"])


@pytest.fixture
def project(tenant: Tenant, dentist: Any) -> Any:
    return tenant.make_project(dentist["id"])


def page_of(project: Any) -> str:
    return reverse("admin:availability_project_change", args=[project["id"]])


def step(number: int, name: str, minutes: str = "30", **given: Any) -> dict[str, Any]:
    """The fields of a row. `requires`: the rows of what the step needs."""
    start = f"visit_steps-{number}"
    requires = given.pop("requires", ())
    row = {"name": name, "length": minutes, "length_unit": "minutes", "resources": []} | given
    fields = {f"{start}-{column}": value for column, value in row.items()}
    for position, requirement in enumerate(requires):
        fields |= {f"{start}-requires-{position}-{key}": each for key, each in requirement.items()}
    return fields


def row_faults(answer: Any) -> Any:
    return answer.context["adminform"].form.fields["visit_steps"].widget.errors


def stored(project: Any) -> tuple[Any, Any, list[str]]:
    row = Project.objects.get(pk=project["id"])
    rows = row.project_resources.order_by("position").values_list("resource__name", flat=True)
    return row.steps, row.order, list(rows)


def test_steps_are_added_changed_and_removed(
    tenant: Tenant, dentist: Any, room: Any, project: Any, enter: Enter
) -> None:
    client, path = enter(tenant), page_of(project)
    needs = [{"name": "nurse", "tags": "nurse, help"}, {"name": "room", "resources": [room["id"]]}]
    rows = step(0, "cleaning", requires=needs)
    pause = {"gap_min": "5", "gap_min_unit": "minutes", "gap_max": "1", "gap_max_unit": "hours"}
    rows |= step(1, "check-up", "1", length_unit="hours", resources=[dentist["id"]], **pause)

    client.post(path, form_of(client, path) | rows | {"visit_order": "any"})
    added = stored(project)
    again = form_of(client, path)
    client.post(path, again | {"name": "Cleaning"})
    untouched = stored(project)
    client.post(path, again | step(2, "talk", same_as="check-up", resources=[dentist["id"]]))
    changed = stored(project)
    sent = form_of(client, path)
    gone = {name: [] for name in sent if name.startswith("visit_steps-")}
    client.post(path, sent | gone)

    cleaning = {
        "name": "cleaning",
        "length": "30 minutes",
        "requires": [
            {"name": "nurse", "any_of": {"tags": ["nurse", "help"]}},
            {"name": "room", "any_of": [room["id"]]},
        ],
    }
    check_up = {
        "name": "check-up",
        "length": "1 hour",
        "resources": [dentist["id"]],
        "gap": {"min": "5 minutes", "max": "1 hour"},
    }
    talk = {
        "name": "talk",
        "length": "30 minutes",
        "resources": [dentist["id"]],
        "same_as": "check-up",
    }
    assert added == untouched == ([cleaning, check_up], "any", ["Room 1", "Dr. Who"])
    assert changed == ([cleaning, check_up, talk], "any", ["Room 1", "Dr. Who"])
    assert stored(project) == (None, "any", ["Room 1", "Dr. Who"])


def test_all_keys_of_the_api_are_kept(
    tenant: Tenant, dentist: Any, room: Any, project: Any, enter: Enter
) -> None:
    person = {
        "name": "nurse",
        "any_of": [dentist["id"], room["id"]],
        "count": 2,
        "mode": "fair",
        "weights": {room["id"]: 3},
        "calibrate_from": "2026-11-01T00:00:00Z",
        "shown": False,
    }
    steps = [
        {"name": "cleaning", "length": "30 minutes", "requires": [person]},
        {
            "name": "check-up",
            "length": "2 hours",
            "resources": [room["id"], dentist["id"]],
            "gap": {"max": "30 minutes"},
        },
    ]
    answer = tenant.put(f"/projects/{project['id']}", {"steps": steps})
    assert answer.status == 200
    client, path = enter(tenant), page_of(project)
    # What `form_of` reads of the last resource alone.
    shares = {
        "visit_steps-0-requires-0-weight_ids": [room["id"], dentist["id"]],
        "visit_steps-0-requires-0-weights": ["3", ""],
    }

    client.post(path, form_of(client, path) | shares | {"visit_steps-1-name": "talk"})

    assert stored(project)[0] == [steps[0], steps[1] | {"name": "talk"}]


def test_a_visit_has_no_length_of_its_own(
    tenant: Tenant, dentist: Any, project: Any, enter: Enter
) -> None:
    client, path = enter(tenant), page_of(project)
    rows = step(0, "cleaning", resources=[dentist["id"]])
    rows |= step(1, "check-up", resources=[dentist["id"]])
    before = form_of(client, path)

    client.post(path, before | rows | {"mode": "roundrobin_fair"})

    hidden = {"length", "lengths", "mode"}
    assert Project.objects.get().availability == {}
    assert hidden <= before.keys()
    assert not hidden & form_of(client, path).keys()


def test_errors_are_shown_at_their_field(
    tenant: Tenant, dentist: Any, room: Any, project: Any, enter: Enter
) -> None:
    client, path = enter(tenant), page_of(project)
    chosen = {"resources": [dentist["id"]]}
    rows = step(0, "cleaning", "", requires=[{"name": "nurse", "tags": "nurse", "count": "0"}])
    pause = {"gap_min": "9", "gap_max": "5", "gap_min_unit": "minutes", "gap_max_unit": "minutes"}
    rows |= step(1, "check-up", **chosen, **pause)

    answer = client.post(path, form_of(client, path) | rows)
    later = client.post(
        path, form_of(client, path) | step(0, "a", same_as="b", **chosen) | step(1, "b", **chosen)
    )

    assert faults(answer) == faults(later) == MARKED
    assert row_faults(answer) == {
        0: {"length": ["This field may not be null."]},
        (0, 0): {"count": ["Ensure this value is greater than or equal to 1."]},
        1: {"gap_max": ["Must be at least the least pause."]},
    }
    page = answer.content.decode()
    assert [
        page.count(f">{sentence}</span>")
        for found in row_faults(answer).values()
        for sentence in next(iter(found.values()))
    ] == [1, 1, 1]
    assert row_faults(later) == {0: {"same_as": ["Must be the name of an earlier step."]}}
    assert stored(project) == (None, None, ["Dr. Who"])


def test_a_step_without_resources_or_with_both_is_refused(
    tenant: Tenant, dentist: Any, project: Any, enter: Enter
) -> None:
    client, path = enter(tenant), page_of(project)
    both = {"resources": [dentist["id"]], "requires": [{"name": "nurse"}]}

    answer = client.post(
        path, form_of(client, path) | step(0, "cleaning") | step(1, "talk", **both)
    )

    assert faults(answer) == MARKED
    assert row_faults(answer) == {
        0: {"resources": ["Choose resources, or fill in what the step needs."]},
        1: {"resources": ["Choose resources, or fill in what the step needs, not both."]},
        (1, 0): {"resources": ["Choose resources or enter tags."]},
    }


def test_steps_beside_requirements_are_refused(
    tenant: Tenant, dentist: Any, project: Any, enter: Enter
) -> None:
    client, path = enter(tenant), page_of(project)
    chosen = {"resources": [dentist["id"]]}
    rows = step(0, "cleaning", **chosen) | step(1, "check-up", **chosen)
    rows |= {"requirements-0-name": "dentist", "requirements-0-resources": [dentist["id"]]}

    answer = client.post(path, form_of(client, path) | rows)
    tenant.put(
        f"/projects/{project['id']}",
        {"requires": [{"name": "dentist", "any_of": [dentist["id"]]}]},
    )
    stored_ones = client.post(
        path, form_of(client, path) | step(0, "a", **chosen) | step(1, "b", **chosen)
    )
    tenant.put(f"/projects/{project['id']}", {"requires": None})
    one = client.post(path, form_of(client, path) | step(0, "cleaning", **chosen))

    assert faults(answer) == {"requirements": ["Is not used with the steps of a visit."]}
    assert faults(stored_ones) == {
        "visit_steps": ["Fill in either these, or several resources at once."]
    }
    assert faults(one) == {"visit_steps": ["Must have at least 2 steps."]}
    assert stored(project) == (None, None, ["Dr. Who"])


def test_another_apps_resources_are_refused(
    tenant: Tenant, dentist: Any, project: Any, enter: Enter
) -> None:
    foreign = Tenant("other").make_resource("Stranger")
    client, path = enter(), page_of(project)
    rows = step(0, "cleaning", resources=[dentist["id"], foreign["id"]])
    rows |= step(1, "talk", requires=[{"name": "nurse", "resources": [foreign["id"]]}])

    answer = client.post(path, form_of(client, path) | rows)

    unknown = {"resources": ["There is no such resource."]}
    assert faults(answer) == MARKED
    assert row_faults(answer) == {0: unknown, (1, 0): unknown}
    assert "Stranger" not in answer.content.decode()


@pytest.fixture
def visit_project(tenant: Tenant, dentist: Any, room: Any) -> Any:
    nurse = {"name": "nurse", "any_of": {"tags": ["nurse"]}}
    steps = [
        {"name": "cleaning", "length": "30 mins", "requires": [nurse]},
        {"name": "check-up", "length": "1 hour", "resources": [dentist["id"], room["id"]]},
    ]
    return tenant.post("/projects", {"name": "Visit", "steps": steps}).data


def test_a_viewer_reads_the_steps(tenant: Tenant, visit_project: Any, enter: Enter) -> None:
    page = enter(tenant, "viewer").get(page_of(visit_project)).content.decode()

    assert "cleaning, 30 minutes: nurse: nurse<br>check-up, 1 hours: Dr. Who, Room 1<br>" in page


def test_customers_may_choose_of_a_steps_requirement(
    tenant: Tenant, visit_project: Any, enter: Enter
) -> None:
    client, path = enter(tenant), page_of(visit_project)

    client.post(path, form_of(client, path) | {"choose_resource": "nurse"})

    assert Project.objects.get().settings["choose_resource"] == "nurse"


@pytest.mark.parametrize("role", ["editor", "viewer"])
def test_query_count_is_constant(tenant: Tenant, dentist: Any, enter: Enter, role: str) -> None:
    client = enter(tenant, role)
    counts = []
    for number in (2, 5):
        requires = [{"name": "nurse", "any_of": [dentist["id"]]}]
        steps = [
            {"name": str(each), "length": "1 hour", "requires": requires} for each in range(number)
        ]
        project = tenant.post("/projects", {"name": "Visit", "steps": steps}).data
        client.get(page_of(project))
        with Queries(connection) as sent:
            client.get(page_of(project))
        counts.append(len(sent))

    assert counts[0] == counts[1]
