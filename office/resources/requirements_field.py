"""The form field for what a project's bookings need at once: a row for each requirement."""

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from availability.core.matching import FAIR, RANDOM
from availability.models import Project, Resource
from availability.search.requirements import MAX_REQUIREMENTS, stored_alternatives
from availability.serializers.fields import MAX_RESOURCES
from common.api.fields import is_short_number
from office.base.rows_field import Row, RowsField, RowsWidget

CHECK_ROWS = _("Check the marked rows.")


MODES = (RANDOM, FAIR)  # the default is prioritized
YES, NO = "yes", "no"
SWITCHES = {YES: True, NO: False}
# Columns with a value that the API takes as it is entered.
TEXTS = ("calibrate_from", "offset", "length")


class RequirementsWidget(RowsWidget):
    """Columns: `resources` are ids, `tags` and `all_tags` have commas between them, `weights` are
    those of the resources `weight_ids`, `alternative` is a number.

    app_id: the app whose resources are offered; set by the form.
    """

    template_name = "office/widgets/requirements.html"
    columns = (
        *("name", "resources", "tags", "count", "all_tags", "mode", "weight_ids", "weights"),
        *(*TEXTS, "optional", "shown", "alternative"),
    )
    filled_by = ("name", "resources", "tags", "all_tags")
    lists = frozenset({"resources", "weight_ids", "weights"})
    app_id: uuid.UUID

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        rows = self.parse(value)
        offered = offered_resources(self.app_id, resources_of(rows))
        own = {
            "rows": self.shown_rows(rows, offered, tags_of_resources(self.app_id, offered)),
            "alternatives": [str(number) for number in range(1, MAX_REQUIREMENTS + 1)],
        }
        return super().get_context(name, value, attrs) | own

    def shown_rows(
        self, rows: Sequence[Row], offered: Mapping[str, str], tags: Mapping[str, set[str]]
    ) -> list[dict[str, Any]]:
        """Return the template's values of the rows, and of an empty one. offered: id -> name of the
        resources to choose from, tags: id -> their tags.
        """
        return [
            {
                **row,
                "faults": self.faults_at(number),
                "options": resource_options(row["resources"], offered),
                "shares": [
                    (each, offered.get(each), weight) for each, weight in _shares(row, tags).items()
                ],
                "has_more": any(row[column] for column in self.columns[4:]),
            }
            for number, row in enumerate([*rows, *self.parse([{}])])
        ]


def resource_options(
    chosen: Sequence[str], offered: Mapping[str, str]
) -> list[tuple[str, str | None, bool]]:
    """Return (id, name, whether it is chosen). The chosen ones come first: their order is that in
    which they are taken.
    """
    others = ((each, name) for each, name in offered.items() if name and each not in chosen)
    return [
        *((each, offered.get(each), True) for each in chosen),
        *((each, name, False) for each, name in others),
    ]


def resources_of(rows: Iterable[Row]) -> set[str]:
    """Return the ids of the resources that the rows name."""
    return {each for row in rows for each in (*row["resources"], *row["weight_ids"])}


def _shares(row: Row, tags: Mapping[str, set[str]]) -> dict[str, str]:
    """Return id -> weight of each resource that the row means or that has a weight."""
    every, some = set(_tags_of(row, "all_tags")), set(_tags_of(row, "tags"))
    named = [
        each
        for each, own in tags.items()
        if each in row["resources"]
        or ((every or some) and every <= own and (not some or some & own))
    ]
    return dict.fromkeys(named, "") | dict(zip(row["weight_ids"], row["weights"], strict=False))


class RequirementsField(RowsField):
    """Rows of requirements, checked by the API."""

    widget: RequirementsWidget
    sent_rows: Sequence[Row] = ()

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(widget=RequirementsWidget(), **kwargs)

    def validate(self, value: list[Row]) -> None:
        self.sent_rows = value
        for number, row in enumerate(value):
            for column, fault in choice_faults(row):
                self.add_fault(number, column, [fault])
        if self.widget.errors:
            raise forms.ValidationError(CHECK_ROWS)

    def compared(self, row: Row) -> Any:
        return {**requirement_of(row), "alternative": row["alternative"]}

    def shown_value(self, stored: Any) -> list[Row]:
        return rows_of(stored)

    def sent_value(self, value: list[Row]) -> Any:
        if not any(row["alternative"] for row in value):
            return [requirement_of(row) for row in value] or None
        groups = _rows_by_alternative(value).values()
        lists = [[requirement_of(value[each]) for each in group] for group in groups]
        return {"alternatives": lists}

    def add_api_fault(self, steps: list[str], faults: list[str]) -> bool:
        """Add faults of the API, at their path within `requires`, to their row and column; return
        whether they have one.
        """
        if steps[0] == "alternatives" and len(steps) > 3:
            groups = list(_rows_by_alternative(self.sent_rows).values())
            number, steps = groups[int(steps[1])][int(steps[2])], steps[2:]
        elif steps[0] != "alternatives" and len(steps) > 1:
            number = int(steps[0])
        else:
            return False
        self.add_fault(number, column_of(steps[1:]), faults)
        return True


def choice_faults(row: Row) -> Iterator[tuple[str, str]]:
    """Yield column and sentence of what is wrong with the choice of resources."""
    has_tags = _tags_of(row, "tags") or _tags_of(row, "all_tags")
    if row["resources"] and has_tags:
        yield "tags", gettext("Choose resources or enter tags, not both.")
    elif not row["resources"] and not has_tags:
        yield "resources", gettext("Choose resources or enter tags.")


def column_of(steps: Sequence[str]) -> str:
    """Return the column of a path within a requirement of the API."""
    if steps[0] != "any_of":
        return steps[0]
    given = {"tags": "tags", "any": "tags", "all": "all_tags"}
    return given.get(steps[1], "resources") if len(steps) > 1 else "resources"


def _rows_by_alternative(rows: Sequence[Row]) -> dict[int, list[int]]:
    """Return number of the alternative -> positions of its rows; without a number the first."""
    groups: dict[int, list[int]] = {}
    for position, row in enumerate(rows):
        number = int(row["alternative"]) if is_short_number(row["alternative"]) else 1
        groups.setdefault(number, []).append(position)
    return dict(sorted(groups.items()))


def rows_of(requires: Any) -> list[Row]:
    """Return the rows of a project's `requires`."""
    is_several = isinstance(requires, Mapping)
    return [
        _row_of(each, str(number) if is_several else "")
        for number, requirements in enumerate(stored_alternatives(requires), start=1)
        for each in requirements
        if isinstance(each, Mapping) and "any_of" in each
    ]


def _row_of(stored: Mapping[str, Any], alternative: str) -> Row:
    any_of, weights = stored["any_of"], stored.get("weights") or {}
    has_tags = isinstance(any_of, Mapping)
    mode = stored.get("mode") or ""
    shown = stored.get("shown")
    return {
        "name": stored["name"],
        "resources": [] if has_tags else list(any_of),
        "tags": ", ".join([*any_of.get("any", ()), *any_of.get("tags", ())]) if has_tags else "",
        "count": str(stored.get("count") or ""),
        "all_tags": ", ".join(any_of.get("all", ())) if has_tags else "",
        "mode": mode if mode in MODES else "",
        "weight_ids": list(weights),
        "weights": [str(weight) for weight in weights.values()],
        **{name: str(stored.get(name) or "") for name in TEXTS},
        "optional": YES if stored.get("optional") else "",
        "shown": "" if shown is None else YES if shown else NO,
        "alternative": alternative,
    }


def requirement_of(row: Row) -> dict[str, Any]:
    requirement: dict[str, Any] = {"name": row["name"], "any_of": row["resources"] or _tags(row)}
    if row["count"]:
        requirement["count"] = _number(row["count"])
    pairs = zip(row["weight_ids"], row["weights"], strict=False)
    if weights := {each: _number(weight.strip()) for each, weight in pairs if weight.strip()}:
        requirement["weights"] = weights
    requirement |= {name: row[name] for name in ("mode", *TEXTS) if row[name]}
    if row["optional"]:
        requirement["optional"] = True
    if row["shown"] in SWITCHES:
        requirement["shown"] = SWITCHES[row["shown"]]
    return requirement


def _tags(row: Row) -> dict[str, list[str]]:
    some, every = _tags_of(row, "tags"), _tags_of(row, "all_tags")
    if not every:
        return {"tags": some}
    return {"all": every, **({"any": some} if some else {})}


def _number(text: str) -> int | str:
    return int(text) if is_short_number(text) else text


def _tags_of(row: Row, column: str) -> list[str]:
    return [tag.strip() for tag in row[column].split(",") if tag.strip()]


def tags_of_resources(app_id: uuid.UUID, ids: Iterable[str]) -> dict[str, set[str]]:
    """Return id -> tags of those resources of the app, by name."""
    known = [each for each in ids if _is_id(each)]
    rows = Resource.objects.filter(app_id=app_id, deleted_at=None, id__in=known)
    found = rows.order_by("name", "id").values_list("id", "tags")
    return {str(each): set(tags) for each, tags in found}


def offered_resources(app_id: uuid.UUID, chosen: Iterable[str]) -> dict[str, str]:
    """Return id -> name of the app's first resources by name, and of the chosen ones."""
    rows = Resource.objects.filter(app_id=app_id, deleted_at=None).order_by("name", "id")
    names = {str(each): name for each, name in rows.values_list("id", "name")[:MAX_RESOURCES]}
    others = [each for each in chosen if each not in names]
    if others:
        chosen_rows = rows.filter(id__in=[each for each in others if _is_id(each)])
        names |= {str(each): name for each, name in chosen_rows.values_list("id", "name")}
    return names | {each: "" for each in others if each not in names}


def requirement_lines(project: Project) -> list[str]:
    """Return `dentist: Ada, Bob`, `chair (2): with the tag x-ray` of each requirement."""
    rows = rows_of(project.requires)
    chosen = [each for row in rows for each in row["resources"]]
    return in_words(rows, offered_resources(project.app_id, chosen) if chosen else {})


def in_words(rows: Iterable[Row], names: Mapping[str, str]) -> list[str]:
    """Return a line for each row. names: id -> name of its resources."""
    lines = []
    for row in rows:
        count = f" ({row['count']})" if row["count"] not in ("", "1") else ""
        who = ", ".join(names[each] for each in row["resources"] if names[each])
        tags = " + ".join(filter(None, (row["all_tags"], row["tags"])))
        lines.append(f"{row['name']}{count}: {who or tags}")
    return lines


def _is_id(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True
