"""What a project's bookings need at once, and the weights of its resources, on its form."""

from typing import Any

import pytest
from django.db import connection
from django.urls import reverse

from availability.models import Project
from tests.office.conftest import Enter
from tests.office.staff import faults, form_of
from tests.queries import Queries
from tests.world import Tenant

MARKED = {"requirements": ["Check the marked rows."]}
CONTROL = "May not contain control characters or line breaks."
LONG = "Ensure this field has no more than 200 characters."
LEAST = "Ensure this value is greater than or equal to 1."


@pytest.fixture
def dentist(tenant: Tenant) -> Any:
    return tenant.make_resource("Dr. Who")


@pytest.fixture
def chair(tenant: Tenant) -> Any:
    return tenant.make_resource("Chair 1", tags=["x-ray", "chair"])


@pytest.fixture
def project(tenant: Tenant, dentist: Any) -> Any:
    return tenant.make_project(dentist["id"])


def page_of(project: Any) -> str:
    return reverse("admin:availability_project_change", args=[project["id"]])


def requirement(number: int, name: str, **given: Any) -> dict[str, Any]:
    """The fields of a row."""
    row = {"name": name, "count": "", "tags": "", "resources": []} | given
    return {f"requirements-{number}-{column}": value for column, value in row.items()}


def row_faults(answer: Any) -> Any:
    return answer.context["adminform"].form.fields["requirements"].widget.errors


def stored(project: Any) -> tuple[Any, list[str]]:
    row = Project.objects.get(pk=project["id"])
    rows = row.project_resources.order_by("position").values_list("resource__name", flat=True)
    return row.requires, list(rows)


def test_requirements_are_added_changed_and_removed(
    tenant: Tenant, dentist: Any, chair: Any, project: Any, enter: Enter
) -> None:
    client, path = enter(tenant), page_of(project)
    rows = requirement(0, "dentist", resources=[dentist["id"]])
    rows |= requirement(1, "chair", tags="x-ray, unknown", count="2")

    client.post(path, form_of(client, path) | rows)
    added = stored(project)
    again = form_of(client, path)
    client.post(path, again)
    untouched = stored(project)
    client.post(path, again | requirement(0, "") | {"requirements-1-count": "1"})
    changed = stored(project)
    client.post(path, form_of(client, path) | requirement(0, ""))

    both = [
        {"name": "dentist", "any_of": [dentist["id"]]},
        {"name": "chair", "any_of": {"tags": ["x-ray", "unknown"]}, "count": 2},
    ]
    assert added == untouched == (both, ["Dr. Who", "Chair 1"])
    assert changed == ([both[1] | {"count": 1}], ["Chair 1"])
    assert stored(project) == (None, ["Chair 1"])


def test_order_of_rows_is_stored(
    tenant: Tenant, dentist: Any, chair: Any, project: Any, enter: Enter
) -> None:
    client, path = enter(tenant), page_of(project)
    rows = requirement(1, "chair", resources=[chair["id"]])
    rows |= requirement(0, "dentist", resources=[dentist["id"]])
    form = form_of(client, path).items()
    others = {name: value for name, value in form if not name.startswith("requirements-")}

    client.post(path, others | rows)

    assert stored(project)[1] == ["Chair 1", "Dr. Who"]


WHOLE_ROW = {
    "name": "dentist",
    "any_of": {"all": ["dentist"], "any": ["x-ray", "chair"]},
    "count": 2,
    "mode": "fair",
    "calibrate_from": "2026-11-01T00:00:00Z",
    "shown": False,
}
PART_ROW = {
    "name": "chair",
    "any_of": {"tags": ["x-ray"]},
    "offset": "30 mins",
    "length": "2 hours",
    "optional": True,
    "shown": True,
}


def test_all_keys_and_alternatives_are_kept_and_changed(
    tenant: Tenant, dentist: Any, chair: Any, project: Any, enter: Enter
) -> None:
    whole = {**WHOLE_ROW, "any_of": [dentist["id"], chair["id"]], "weights": {chair["id"]: 3}}
    requires = {"alternatives": [[whole, PART_ROW], [WHOLE_ROW]]}
    answer = tenant.put(f"/projects/{project['id']}", {"requires": requires})
    assert answer.status == 200
    client, path = enter(tenant), page_of(project)

    # The shares of two resources, of which `form_of` would read the last alone.
    shares = {
        "requirements-0-weight_ids": [chair["id"], dentist["id"]],
        "requirements-0-weights": ["3", ""],
    }
    client.post(path, form_of(client, path) | shares | {"name": "Implant"})
    kept = stored(project)[0]
    changes = {"requirements-1-offset": "45 mins", "requirements-1-optional": ""}
    changes |= {"requirements-0-mode": "random"}
    client.post(path, form_of(client, path) | shares | changes)
    changed = stored(project)[0]
    alone = {f"requirements-{number}-alternative": "" for number in range(3)}
    gone = requirement(2, "", all_tags="")
    client.post(path, form_of(client, path) | shares | gone | alone)

    part = {name: value for name, value in PART_ROW.items() if name != "optional"}
    first = [{**whole, "mode": "random"}, {**part, "offset": "45 mins"}]
    assert kept == answer.data["requires"]
    assert changed == {"alternatives": [first, [WHOLE_ROW]]}
    assert stored(project)[0] == first


def test_errors_of_further_fields_are_shown_at_their_row(
    tenant: Tenant, dentist: Any, project: Any, enter: Enter
) -> None:
    client, path = enter(tenant), page_of(project)
    second = {"resources": [dentist["id"]], "alternative": "2", "length": "soon"}
    rows = requirement(0, "chair", **second)
    rows |= requirement(1, "dentist", resources=[dentist["id"]], alternative="1")
    third = {"weight_ids": [dentist["id"]], "weights": ["many"]}
    rows |= requirement(2, "room", tags="x", alternative="1", **third)

    answer = client.post(path, form_of(client, path) | rows)

    assert faults(answer) == MARKED
    assert {number: list(row) for number, row in row_faults(answer).items()} == {
        0: ["length"],
        2: ["weights"],
    }


# What the API refuses, and what the form refuses before it.
WRONG_ROWS: list[tuple[dict[str, Any], dict[str, list[str]]]] = [
    ({"name": "", "tags": "x-ray"}, {"name": ["This field may not be blank."]}),
    ({"name": "a\x85b", "tags": "x-ray"}, {"name": [CONTROL]}),
    ({"tags": "a" * 201}, {"tags": [LONG]}),
    ({"count": "0", "tags": "x"}, {"count": [LEAST]}),
    ({"count": "9" * 5000, "tags": "x"}, {"count": ["Must be an integer."]}),
    ({"resources": ["no id"]}, {"resources": ["Must be a UUID."]}),
]
ROWS_WITHOUT_CHOICE: list[tuple[dict[str, Any], dict[str, list[str]]]] = [
    ({}, {"resources": ["Choose resources or enter tags."]}),
    ({"tags": " , "}, {"resources": ["Choose resources or enter tags."]}),
]


@pytest.mark.parametrize("wrong", [WRONG_ROWS, ROWS_WITHOUT_CHOICE], ids=["API", "form"])
def test_errors_are_shown_at_their_row(
    tenant: Tenant, dentist: Any, project: Any, enter: Enter, wrong: Any
) -> None:
    client, path = enter(tenant), page_of(project)
    rows = requirement(0, "dentist", resources=[dentist["id"]])
    for number, (given, _) in enumerate(wrong, 1):
        rows |= requirement(number, **({"name": f"chair {number}"} | given))

    answer = client.post(path, form_of(client, path) | rows)

    errors = {number: row for number, (_, row) in enumerate(wrong, 1)}
    assert faults(answer) == MARKED
    assert row_faults(answer) == errors
    for row in errors.values():
        for sentence in next(iter(row.values())):
            assert sentence in answer.content.decode()
    assert stored(project) == (None, ["Dr. Who"])


def test_a_name_that_is_repeated_is_refused(
    tenant: Tenant, dentist: Any, project: Any, enter: Enter
) -> None:
    client, path = enter(tenant), page_of(project)
    rows = requirement(0, "dentist", resources=[dentist["id"]])
    rows |= requirement(1, "dentist", tags="x-ray")

    answer = client.post(path, form_of(client, path) | rows)

    assert faults(answer) == {"requirements": ["Must not repeat a name."]}
    assert stored(project) == (None, ["Dr. Who"])


def test_resources_and_tags_exclude_each_other(
    tenant: Tenant, dentist: Any, project: Any, enter: Enter
) -> None:
    client, path = enter(tenant), page_of(project)
    row = requirement(0, "dentist", resources=[dentist["id"]], tags="x-ray")

    answer = client.post(path, form_of(client, path) | row)

    assert faults(answer) == MARKED
    assert row_faults(answer) == {0: {"tags": ["Choose resources or enter tags, not both."]}}


def test_another_apps_resource_is_refused(
    tenant: Tenant, dentist: Any, project: Any, enter: Enter
) -> None:
    foreign = Tenant("other").make_resource("Stranger")
    client, path = enter(), page_of(project)
    row = requirement(0, "dentist", resources=[dentist["id"], foreign["id"]])

    answer = client.post(path, form_of(client, path) | row)

    assert faults(answer) == MARKED
    assert row_faults(answer) == {0: {"resources": ["There is no such resource."]}}
    assert "Stranger" not in answer.content.decode()
    assert stored(project) == (None, ["Dr. Who"])


def test_requirements_need_a_length(
    tenant: Tenant, dentist: Any, project: Any, enter: Enter
) -> None:
    client, path = enter(tenant), page_of(project)
    row = requirement(0, "dentist", resources=[dentist["id"]])

    answer = client.post(path, form_of(client, path) | row | {"length_unit": "whole"})

    assert faults(answer) == {"length": ["Must be a duration: bookings need several resources."]}
    assert stored(project) == (None, ["Dr. Who"])


def test_derived_resources_cant_be_changed(
    tenant: Tenant, dentist: Any, chair: Any, project: Any, enter: Enter
) -> None:
    client, path = enter(tenant), page_of(project)
    form = form_of(client, path)
    tenant.put(
        f"/projects/{project['id']}",
        {"requires": [{"name": "dentist", "any_of": [dentist["id"]]}]},
    )

    client.post(path, form | {"project_resources-0-resource": chair["id"]})

    assert "project_resources-0-resource" in form
    assert "project_resources-0-resource" not in form_of(client, path)
    assert stored(project)[1] == ["Dr. Who"]


def test_a_viewer_reads_the_requirements(
    tenant: Tenant, dentist: Any, chair: Any, project: Any, enter: Enter
) -> None:
    requires = [
        {"name": "dentist", "any_of": [dentist["id"]]},
        {"name": "chair", "any_of": {"tags": ["x-ray", "chair"]}, "count": 2},
    ]
    tenant.put(f"/projects/{project['id']}", {"requires": requires})

    page = enter(tenant, "viewer").get(page_of(project)).content.decode()

    assert "dentist: Dr. Who<br>chair (2): x-ray, chair<br>" in page


def test_a_deleted_resource_stays_until_the_row_is_changed(
    tenant: Tenant, dentist: Any, chair: Any, project: Any, enter: Enter
) -> None:
    requires = [{"name": "dentist", "any_of": [dentist["id"], chair["id"]]}]
    tenant.put(f"/projects/{project['id']}", {"requires": requires})
    tenant.delete(f"/resources/{chair['id']}")
    client, path = enter(tenant), page_of(project)

    client.post(path, form_of(client, path) | {"name": "Renamed"})

    assert Project.objects.get().name == "Renamed"
    assert stored(project)[0] == requires
    assert "(deleted)" in client.get(path).content.decode()


def test_weights_are_set_changed_and_removed(
    tenant: Tenant, dentist: Any, chair: Any, enter: Enter
) -> None:
    """A client's change of another row's weight stays."""
    given = {"mode": "roundrobin_fair", "weights": {chair["id"]: 3}}
    project = tenant.make_project(dentist["id"], chair["id"], availability=given)
    client, path = enter(tenant), page_of(project)
    form = form_of(client, path)
    tenant.put(f"/projects/{project['id']}", {"availability": {"weights": {chair["id"]: 5}}})

    client.post(path, form | {"project_resources-0-weight": "0"})
    by_choice = Project.objects.get().availability
    client.post(path, form_of(client, path) | {"project_resources-1-DELETE": "on"})
    removed = Project.objects.get().availability
    client.post(path, form_of(client, path) | {"project_resources-0-weight": ""})

    assert [form[f"project_resources-{row}-weight"] for row in (0, 1)] == ["", "3"]
    assert by_choice == given | {"weights": {dentist["id"]: 0, chair["id"]: 5}}
    assert removed == given | {"weights": {dentist["id"]: 0}}
    assert Project.objects.get().availability == {"mode": "roundrobin_fair"}


def test_a_wrong_weight_is_refused_at_its_row(tenant: Tenant, enter: Enter) -> None:
    faults_of = {
        "1001": "Ensure this value is less than or equal to 1000.",
        "-1": "Ensure this value is greater than or equal to 0.",
        "many": "Enter a whole number.",
    }
    chairs = [tenant.make_resource(f"Chair {number}")["id"] for number in range(len(faults_of))]
    project = tenant.make_project(*chairs)
    client, path = enter(tenant), page_of(project)
    weights = {f"project_resources-{row}-weight": weight for row, weight in enumerate(faults_of)}

    answer = client.post(path, form_of(client, path) | weights)

    formset = answer.context["inline_admin_formsets"][0].formset
    assert formset.errors == [{"weight": [fault]} for fault in faults_of.values()]
    assert Project.objects.get().availability == {}


def test_a_viewer_reads_the_weights(tenant: Tenant, dentist: Any, chair: Any, enter: Enter) -> None:
    weights = {dentist["id"]: 7, chair["id"]: 9}
    project = tenant.make_project(dentist["id"], chair["id"], availability={"weights": weights})

    page = enter(tenant, "viewer").get(page_of(project)).content.decode()

    assert [page.count(f">{weight}<") for weight in weights.values()] == [1, 1]


@pytest.mark.parametrize("role", ["editor", "viewer"])
def test_query_count_is_constant(tenant: Tenant, enter: Enter, role: str) -> None:
    """Of requirements and derived resources."""
    client = enter(tenant, role)
    counts = []
    for number in (1, 3):
        ids = [tenant.make_resource(f"Chair {each}")["id"] for each in range(number)]
        requires = [{"name": str(each), "any_of": ids} for each in range(number)]
        project = tenant.post("/projects", {"name": "Check-up", "requires": requires}).data
        client.get(page_of(project))
        with Queries(connection) as sent:
            client.get(page_of(project))
        counts.append(len(sent))

    assert counts[0] == counts[1]
