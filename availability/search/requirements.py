"""What the bookings of a project require: several resources at once.

Stored as sent: `[{"name": "room", "any_of": [ids] | {"tags": [texts]}, "count": 1}]`. The project's
resources are derived from it.
"""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import Q

from apps_config.models import App
from availability.core.matching import Requirement
from availability.core.parties import party_rank
from availability.models import Project, ProjectResource, Resource
from common.api.query import SearchTerm
from common.api.search_conditions import RESOURCE_SEARCH
from common.errors import Invalid

MAX_REQUIREMENTS = 10
MAX_RESOURCES = 500


def load_requirements(
    app_id: uuid.UUID, given: Sequence[Mapping[str, Any]], *, is_new: bool = True
) -> tuple[Requirement, ...]:
    """Return the requirements with the ids of their resources. One query.

    Raises Invalid on `requires` for an unknown resource and for more than 500 resources; of stored
    requirements (not is_new) these are left out.
    """
    condition, tags = Q(pk__in=[]), set()
    for requirement in given:
        if isinstance(requirement["any_of"], Mapping):
            tags |= set(requirement["any_of"]["tags"])
        else:
            condition |= Q(id__in=requirement["any_of"])
    for tag in tags:
        condition |= RESOURCE_SEARCH["tags"](SearchTerm("tags", tag, False, False))
    rows = Resource.objects.for_app(app_id).filter(condition).order_by("created_at", "id")
    tags_by_id = dict(rows.values_list("id", "tags")[: MAX_RESOURCES + is_new])
    if len(tags_by_id) > MAX_RESOURCES:
        raise Invalid.at("requires", f"Must name at most {MAX_RESOURCES} resources.")
    requirements = []
    errors: dict[str, list[str]] = {}
    for number, requirement in enumerate(given):
        ids = _resource_ids_of(requirement["any_of"], tags_by_id)
        for position, each in enumerate(ids):
            if each not in tags_by_id:
                errors[f"requires.{number}.any_of.{position}"] = ["There is no such resource."]
        known_ids = tuple(each for each in dict.fromkeys(ids) if each in tags_by_id)
        requirements.append(
            Requirement(requirement["name"], known_ids, requirement.get("count") or 1)
        )
    if errors and is_new:
        raise Invalid(errors)
    return tuple(requirements)


def _resource_ids_of(any_of: Any, found: Mapping[uuid.UUID, Any]) -> list[uuid.UUID]:
    if not isinstance(any_of, Mapping):
        return [uuid.UUID(str(each)) for each in any_of]
    tags = {tag.casefold() for tag in any_of["tags"]}
    return [
        resource_id
        for resource_id, own in found.items()
        if isinstance(own, list) and tags & {str(tag).casefold() for tag in own}
    ]


def project_requirements(project: Project | None) -> tuple[Requirement, ...]:
    """Return the requirements of the project; () without.

    Raises Invalid for stored values that are invalid, which only writes without the services can
    make.
    """
    if project is None or not project.requires:
        return ()
    try:
        return load_requirements(project.app_id, project.requires, is_new=False)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Invalid.at("requires", "The stored requirements are invalid.") from error


def resource_ids_of_requirements(requirements: Sequence[Requirement]) -> list[uuid.UUID]:
    """Return the resources of all requirements, in their order, each once."""
    return list(dict.fromkeys(each for requirement in requirements for each in requirement.ids))


def order_by_party(
    requirements: Sequence[Requirement], parties: Mapping[uuid.UUID, tuple[int, int]]
) -> tuple[Requirement, ...]:
    """Return the requirements with the resources for small parties first."""
    return tuple(
        each._replace(ids=tuple(sorted(each.ids, key=lambda id_: party_rank(parties.get(id_)))))
        for each in requirements
    )


def derive_resources(project: Project, requirements: Sequence[Requirement]) -> None:
    """Make the resources of the requirements those of the project."""
    ids = resource_ids_of_requirements(requirements)
    rows = ProjectResource.objects.filter(project=project)
    if list(rows.order_by("position", "id").values_list("resource_id", flat=True)) == ids:
        return
    rows.delete()
    new = (
        ProjectResource(project=project, resource_id=each, position=number)
        for number, each in enumerate(ids)
    )
    ProjectResource.objects.bulk_create(new, ignore_conflicts=True)


def derive_resources_by_tag(app: App) -> None:
    """Derive the resources of the projects that require tags, after a resource's tags changed."""
    # Bookings lock projects before resources: no project is locked here.
    for project in Project.objects.for_app(app).filter(requires__isnull=False).order_by("id"):
        if _has_tags(project.requires):
            derive_resources(project, project_requirements(project))


def _has_tags(requires: Any) -> bool:
    return isinstance(requires, list) and any(
        isinstance(each, Mapping) and isinstance(each.get("any_of"), Mapping) for each in requires
    )
