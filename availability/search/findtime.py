"""POST /findtime, the legacy form: translates the body into an availability request.

The names of the filters come from clients of that API (api.md section 6). A filter's own `timezone`
is ignored: rules apply to the wall clock of each resource.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from availability.core.constraints import ConstraintError, ConstraintRule, parse_constraints
from availability.core.slots import Slot
from availability.core.zones import local_day
from common.errors import Invalid
from common.messages import Message

ALL_SOLUTIONS = "15 minutes"
WEEK = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
BUSINESS_HOURS = (9, 17)
DAYTIME = (8, 20)

Constraints = list[dict[str, Any]]
Params = Mapping[str, Any]
RuleLists = tuple[tuple[ConstraintRule, ...], ...]

# Request key -> its name in the legacy form.
_RENAMED = {"from": "start", "to": "future", "resources": "resource_ids"}


def _windows(days: Sequence[Any], start: Any, end: Any) -> Constraints:
    """Translate a filter on days: constraints of one kind, whose windows are united."""
    return [{"allow_day_and_time": {"day": day, "start": start, "end": end}} for day in days]


FILTERS: Mapping[str, Callable[[Params], Constraints]] = {
    "specific_day": lambda given: _windows([given.get("day")], 0, 24),
    "specific_time": lambda given: _windows(WEEK, given.get("start"), given.get("end")),
    "specific_day_and_time": lambda given: _windows(
        [given.get("day")], given.get("start"), given.get("end")
    ),
    "business_hours": lambda given: _windows(WEEK[:5], *BUSINESS_HOURS),
    "daytime": lambda given: _windows(WEEK, *DAYTIME),
    "only_weekend": lambda given: _windows(WEEK[5:], 0, 24),
    "exclude_weekend": lambda given: _windows(WEEK[:5], 0, 24),
    "exclude_weekends": lambda given: _windows(WEEK[:5], 0, 24),
    "between_timestamps": lambda given: [
        {"allow_period": {"start": given.get("start"), "end": given.get("end")}}
    ],
}


def read_filters(raw: Any, path: str) -> RuleLists:
    """Parse `filters` into rule lists: a list of constraints in the present form, or `{or, and}`.

    All filters of `or` make one list (their windows unite), each filter of `and` its own list
    (lists intersect). Raises Invalid with the path.
    """
    if isinstance(raw, list):
        return (_parse(raw, path),)
    if not isinstance(raw, dict):
        raise Invalid.at(path, "Must be a list of constraints, or an object with `or` and `and`.")
    either = [
        constraint
        for position, item in enumerate(_items(raw, "or", path))
        for constraint in _translate(item, f"{path}.or.{position}")
    ]
    if len({next(iter(constraint)) for constraint in either}) > 1:
        raise Invalid.at(f"{path}.or", "Timestamps can't be combined with days and times here.")
    every = [
        _parse(_translate(item, f"{path}.and.{position}"), f"{path}.and.{position}")
        for position, item in enumerate(_items(raw, "and", path))
    ]
    return (_parse(either, f"{path}.or"), *every)


def _items(raw: Mapping[str, Any], name: str, path: str) -> list[Any]:
    items = [] if raw.get(name) is None else raw[name]
    if not isinstance(items, list) or len(items) > 100:
        raise Invalid.at(f"{path}.{name}", "Must be a list of at most 100 filters.")
    return items


def _translate(item: Any, path: str) -> Constraints:
    if not isinstance(item, dict) or len(item) != 1:
        raise Invalid.at(path, "Must be an object with exactly one key, the filter's name.")
    ((name, params),) = item.items()
    if name not in FILTERS:
        raise Invalid.at(path, f"{name:.80} is not a filter.")
    if not isinstance(params, dict) and params not in ([], None):
        raise Invalid.at(f"{path}.{name}", Message("Must be an object."))
    constraints = FILTERS[name](params or {})
    try:
        parse_constraints(constraints)
    except ConstraintError as error:
        # Report the error at the filter that was sent, not at its translation.
        messages = next(iter(error.errors.items()))
        raise Invalid.at(f"{path}.{name}.{messages[0].split('.')[-1]}", messages[1][0]) from error
    return constraints


def _parse(constraints: Constraints, path: str) -> tuple[ConstraintRule, ...]:
    try:
        return parse_constraints(constraints)
    except ConstraintError as error:
        raise Invalid(
            {f"{path}.{key}": messages for key, messages in error.errors.items()}
        ) from error


def within_one_day(slots: Sequence[Slot]) -> list[Slot]:
    """The slots that start and end on one local day of their first resource."""
    return [
        slot
        for slot in slots
        if local_day(slot[0], slot[2][0].zone) == local_day(slot[1] - 1, slot[2][0].zone)
    ]


def restore_sent_paths(
    error: Invalid, *, resource_paths: Sequence[str], rules_path: str
) -> Invalid:
    """The error of the translated request, with the paths of the request that was sent."""
    positions = {f"resources.{index}": path for index, path in enumerate(resource_paths)}
    names = _RENAMED | positions | {"constraints": rules_path}
    errors = error.fields["errors"].items()
    return Invalid({names.get(path, path): messages for path, messages in errors})
