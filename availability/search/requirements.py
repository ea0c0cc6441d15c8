"""What the bookings of a project require: several resources at once.

Stored as sent: a list of requirements (`RequirementSerializer`), or several such lists of which the
first that can be met is taken: `{"alternatives": [[...], [...]]}`. The project's resources are
derived from it.
"""

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from django.db.models import Q
from django.db.models.functions import Lower

from availability.core.matching import (
    PRIORITIZED,
    Alternatives,
    FixedChoice,
    Requirement,
    Stretch,
    kinds_of,
)
from availability.core.parties import MAX_COMBINATIONS, Party, count_combinations
from availability.models import Project, ProjectResource, Resource
from common.api.query import SearchTerm
from common.api.search_conditions import RESOURCE_SEARCH
from common.errors import Invalid
from common.time.durations import DurationError, elapsed_seconds
from common.time.instants import parse_instant

MAX_REQUIREMENTS = 10
MAX_RESOURCES = 500

StoredRequirement = Mapping[str, Any]


def stored_alternatives(requires: Any) -> list[list[StoredRequirement]]:
    """Return the lists of requirements as they are stored; [] without."""
    if isinstance(requires, Mapping):
        return [list(each) for each in requires["alternatives"]]
    return [list(requires)] if requires else []


def load_requirements(
    app_id: uuid.UUID, requires: Any, *, is_new: bool = True, paths: Iterable[str] = ()
) -> Alternatives:
    """Return the requirements with the ids of their resources. One query.

    Resources of tags stand in the order of their names. Raises Invalid on `requires` for an unknown
    resource and for more than 500 resources; of stored requirements (not is_new) these are left
    out. paths: those of the lists in the body, if they are not those of `requires`.
    """
    given = stored_alternatives(requires)
    tags_by_id = _fetch_tags(app_id, list(chain.from_iterable(given)), MAX_RESOURCES + is_new)
    if len(tags_by_id) > MAX_RESOURCES:
        raise Invalid.at("requires", f"Must name at most {MAX_RESOURCES} resources.")
    errors: dict[str, list[str]] = {}
    alternatives = []
    for path, requirements in zip(paths or _paths(requires), given, strict=True):
        found = []
        for number, requirement in enumerate(requirements):
            ids = _resource_ids_of(requirement["any_of"], tags_by_id)
            for position, each in enumerate(ids):
                if each not in tags_by_id:
                    is_list = path.endswith("resources")
                    key = f"{path}.{position}" if is_list else f"{path}.{number}.any_of.{position}"
                    errors[key] = ["There is no such resource."]
            known_ids = dict.fromkeys(each for each in ids if each in tags_by_id)
            found.append(_read_requirement(requirement, tuple(known_ids), is_first=number == 0))
        alternatives.append(tuple(found))
    if errors and is_new:
        raise Invalid(errors)
    return tuple(alternatives)


def _paths(requires: Any) -> Iterator[str]:
    """Yield the path of each list of `stored_alternatives` in a body."""
    if isinstance(requires, Mapping):
        for number in range(len(requires["alternatives"])):
            yield f"requires.alternatives.{number}"
    elif requires:
        yield "requires"


def _fetch_tags(
    app_id: uuid.UUID, requirements: Sequence[StoredRequirement], limit: int
) -> dict[uuid.UUID, Any]:
    """Return the tags of the resources that the requirements may mean, by id."""
    condition, tags = Q(pk__in=[]), set()
    for requirement in requirements:
        if isinstance(requirement["any_of"], Mapping):
            tags |= {tag for tags_named in requirement["any_of"].values() for tag in tags_named}
        else:
            condition |= Q(id__in=requirement["any_of"])
    for tag in tags:
        condition |= RESOURCE_SEARCH["tags"](SearchTerm("tags", tag, False, False))
    rows = Resource.objects.for_app(app_id).filter(condition).order_by(Lower("name"), "id")
    return dict(rows.values_list("id", "tags")[:limit])


def _resource_ids_of(any_of: Any, found: Mapping[uuid.UUID, Any]) -> list[uuid.UUID]:
    if not isinstance(any_of, Mapping):
        return [uuid.UUID(str(each)) for each in any_of]
    every = _folded(any_of.get("all", ()))
    some = _folded([*any_of.get("any", ()), *any_of.get("tags", ())])
    return [
        resource_id
        for resource_id, own in found.items()
        if isinstance(own, list) and every <= _folded(own) and (not some or some & _folded(own))
    ]


def _folded(tags: Sequence[Any]) -> set[str]:
    return {str(tag).casefold() for tag in tags}


def _read_requirement(
    stored: StoredRequirement, ids: tuple[uuid.UUID, ...], *, is_first: bool
) -> Requirement:
    length, since = stored.get("length"), stored.get("calibrate_from")
    shown = stored.get("shown")
    return Requirement(
        name=stored["name"],
        ids=ids,
        number=stored.get("count") or 1,
        stretch=Stretch(
            elapsed_seconds(stored.get("offset") or 0),
            None if length is None else elapsed_seconds(length),
        ),
        optional=bool(stored.get("optional")),
        shown=is_first if shown is None else bool(shown),
        mode=stored.get("mode") or PRIORITIZED,
        weights=tuple(
            (uuid.UUID(key), weight) for key, weight in (stored.get("weights") or {}).items()
        ),
        calibrate_from=None if since is None else int(parse_instant(since, "UTC").timestamp()),
    )


def project_requirements(project: Project | None) -> Alternatives:
    """Return the requirements of the project; () without.

    Raises Invalid for stored values that are invalid, which only writes without the services can
    make.
    """
    if project is None or not project.requires:
        return ()
    try:
        return load_requirements(project.app_id, project.requires, is_new=False)
    except (AttributeError, DurationError, KeyError, TypeError, ValueError) as error:
        raise Invalid.at("requires", "The stored requirements are invalid.") from error


def resource_ids_of_requirements(alternatives: Alternatives) -> list[uuid.UUID]:
    """Return the resources of all requirements, in their order, each once."""
    requirements = chain.from_iterable(alternatives)
    return list(dict.fromkeys(each for requirement in requirements for each in requirement.ids))


def stretches_of(alternatives: Alternatives) -> dict[Stretch, list[uuid.UUID]]:
    """Return the stretches of the requirements, each with the resources that it may need."""
    found: dict[Stretch, dict[uuid.UUID, None]] = {}
    for requirement in chain.from_iterable(alternatives):
        found.setdefault(requirement.stretch, {}).update(dict.fromkeys(requirement.ids))
    return {stretch: list(ids) for stretch, ids in found.items()}


def check_fixed(alternatives: Alternatives, fixed: FixedChoice) -> None:
    """Raise Invalid on `resources` for names and resources that no alternative has."""
    known: dict[str, set[uuid.UUID]] = {}
    for requirement in chain.from_iterable(alternatives):
        known.setdefault(requirement.name, set()).update(requirement.ids)
    errors = {
        f"resources.{name}": ["There is no such requirement, or it has no such resource."]
        for name, ids in fixed.named.items()
        if not known.get(name, set()).issuperset(ids)
    }
    if errors:
        raise Invalid(errors)


def requirements_for_party(alternatives: Alternatives, party: Party | None) -> Alternatives:
    """Return the requirements for the party, which the resources of a list have to suit together.

    None: any resources will do. Raises Invalid on `party_size` if the resources have too many
    different ranges.
    """
    found = [[each._replace(party=party) for each in one] for one in alternatives]
    if party and any(count_combinations(kinds_of(each)) > MAX_COMBINATIONS for each in found):
        text = "The resources have too many different `party` ranges to be joined."
        raise Invalid.at("party_size", text)
    return found


def derive_resources(project: Project, alternatives: Alternatives) -> None:
    """Make the resources of the requirements those of the project."""
    ids = resource_ids_of_requirements(alternatives)
    rows = ProjectResource.objects.filter(project=project)
    if list(rows.order_by("position", "id").values_list("resource_id", flat=True)) == ids:
        return
    rows.delete()
    new = (
        ProjectResource(project=project, resource_id=each, position=number)
        for number, each in enumerate(ids)
    )
    ProjectResource.objects.bulk_create(new, ignore_conflicts=True)
