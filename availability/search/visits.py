"""Visits: the steps of a booking, as a project or a request has them.

Stored as sent: `steps` (`StepSerializer`) and `order` (`given` or `any`). The project's resources
are derived from them.
"""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any

from apps_config.models import App
from availability.core.matching import FixedChoice, Requirement
from availability.core.visits import MAX_COMBINATIONS, Step, Visit, count_combinations
from availability.models import Project
from availability.search.fair_turns import with_costs
from availability.search.requirements import (
    derive_resources,
    load_requirements,
    project_requirements,
    stored_alternatives,
)
from common.errors import Invalid
from common.time.durations import DurationError, elapsed_seconds

GIVEN, ANY = ORDERS = ("given", "any")
MIN_STEPS, MAX_STEPS = 2, 10


def load_visit(
    app_id: uuid.UUID, steps: Sequence[Mapping[str, Any]], order: str | None, *, is_new: bool = True
) -> Visit:
    """Return the visit with the ids of its resources. One query.

    Raises Invalid on `steps` for unknown resources, more than 500 of them, and too many
    combinations of resources for steps with `same_as`; of stored steps (not is_new) the resources
    are left out.
    """
    alternatives = load_requirements(
        app_id,
        {"alternatives": [requirements_of_step(step) for step in steps]},
        is_new=is_new,
        paths=[f"steps.{number}.{_list_of(step)}" for number, step in enumerate(steps)],
    )
    found = []
    for step, requirements in zip(steps, alternatives, strict=True):
        gap = step.get("gap") or {}
        least = elapsed_seconds(gap.get("min") or 0)
        most = gap.get("max")
        found.append(
            Step(
                name=step["name"],
                requirements=requirements,
                length=elapsed_seconds(step["length"]),
                min_gap=least,
                max_gap=least if most is None else elapsed_seconds(most),
                same_as=step.get("same_as"),
            )
        )
    visit = Visit(found, is_ordered=order != ANY)
    if is_new and count_combinations(visit) > MAX_COMBINATIONS:
        raise Invalid.at("steps", "Steps with `same_as` have too many resources together.")
    return visit


def _list_of(step: Mapping[str, Any]) -> str:
    return "requires" if step.get("requires") else "resources"


def requirements_of_step(step: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the requirements of a stored step: `resources` are one of these, by its name."""
    if step.get("requires"):
        return list(step["requires"])
    return [{"name": step["name"], "any_of": step["resources"]}]


def project_visit(project: Project | None) -> Visit | None:
    """Return the visit of the project; None without. Raises Invalid for invalid stored values."""
    if project is None or not project.steps:
        return None
    try:
        return load_visit(project.app_id, project.steps, project.order, is_new=False)
    except (AttributeError, DurationError, KeyError, TypeError, ValueError) as error:
        raise Invalid.at("steps", "The stored steps are invalid.") from error


def requirements_of_project(project: Project) -> list[Sequence[Requirement]]:
    """Return the lists of requirements of the project: its alternatives, or those of its steps."""
    return [*project_requirements(project)] or requirements_of(project_visit(project))


def requirements_of(visit: Visit | None) -> list[Sequence[Requirement]]:
    """Return the requirements of each step."""
    return visit.requirements if visit else []


def visit_with_costs(
    visit: Visit, project: Project | None, fixed: FixedChoice, *, now: datetime
) -> Visit:
    """Return the visit with the costs of its requirements' modes, as of now."""
    costed = with_costs(visit.requirements, project, fixed, now=now)
    return visit.with_requirements(costed)


def fixed_in_visit(visit: Visit, fixed: FixedChoice) -> FixedChoice:
    """Return what is fixed by the names of requirements alone. Raises Invalid for a resource that
    no step has.
    """
    if fixed.anywhere is None:
        return fixed
    for requirement in chain.from_iterable(requirements_of(visit)):
        if fixed.anywhere in requirement.ids:
            return FixedChoice({requirement.name: (fixed.anywhere,), **fixed.named})
    raise Invalid.at("resource_id", "Fits no step of the visit.")


def derive_resources_by_tag(app: App) -> None:
    """Derive the resources of the projects that require tags, after a resource's tags changed."""
    # Bookings lock projects before resources: no project is locked here.
    projects = Project.objects.for_app(app).exclude(requires=None, steps=None).order_by("id")
    for project in projects:
        if _has_tags(project):
            derive_resources(project, requirements_of_project(project))


def _has_tags(project: Project) -> bool:
    try:
        lists = [
            *stored_alternatives(project.requires),
            *(requirements_of_step(step) for step in project.steps or ()),
        ]
        requirements = chain.from_iterable(lists)
        return any(isinstance(each["any_of"], Mapping) for each in requirements)
    except (AttributeError, KeyError, TypeError):  # written without the services
        return False
