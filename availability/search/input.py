"""Convert the body of an availability request to a query."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from apps_config.authentication import Caller
from apps_config.models import App
from availability.core.matching import Alternatives, FixedChoice
from availability.core.visits import Visit
from availability.models import Project
from availability.public_access import (
    MAX_LENGTH,
    check_project_is_named,
    check_quantity,
    check_resources_are_in_no_project,
    visible_projects,
)
from availability.reserve.policies import PUBLIC_WINDOW, project_parameters
from availability.search.availability_query import (
    AvailabilityQuery,
    SearchResource,
    for_party,
    load_project_resources,
    load_resources,
)
from availability.search.fair_turns import with_fair_turns
from availability.search.parameters import SlotParameters, restrict_to, with_parameters
from availability.search.requirements import (
    check_fixed,
    load_requirements,
    project_requirements,
    resource_ids_of_requirements,
)
from availability.search.visits import (
    fixed_in_visit,
    load_visit,
    project_visit,
    requirements_of,
    visit_with_costs,
)
from common.errors import Forbidden, Invalid
from common.messages import Message, find_message
from common.time.durations import is_relative, parse_instant_or_date
from common.time.instants import InstantError, format_instant


def parse_availability_query(
    given: Mapping[str, Any],
    *,
    app: App,
    caller: Caller,
    zone: str,
    now: datetime,
    for_explain: bool = False,
) -> AvailabilityQuery:
    """The query for validated body values. Three database queries, however many resources there
    are; three more in the mode roundrobin_fair.

    `zone` applies to wall times if the resources have several zones. for_explain: also resources
    that get no bookings by turn. Raises Invalid for ids that the app does not have, and for a body
    with neither a project nor resources.
    """
    given = {key: value for key, value in given.items() if value is not None or key == "length"}
    project = _find_project(app, caller, given)
    check_project_is_named(app, caller, project.id if project else None)
    alternatives = _find_requirements(app, caller, project, given)
    visit = _find_visit(app, caller, project, given)
    if visit:
        alternatives = ()
    required = requirements_of(visit) if visit else alternatives
    if required:
        ids = resource_ids_of_requirements(required)
        resources: Sequence[SearchResource] = load_resources(app, ids, now=now)
    else:
        resources = _find_resources(app, caller, project, given, now)
    if project is None:
        check_resources_are_in_no_project(caller, [resource.id for resource in resources])
    own = project_parameters(project) if project else None
    parameters = _read_parameters(own or SlotParameters(), given, resources, zone)
    query = AvailabilityQuery(
        resources=resources,
        terms=parameters,
        now=now,
        project_id=project.id if project else None,
        own=own,
        alternatives=alternatives,
        visit=visit,
        fixed=_read_fixed(given.get("resources"), required, caller),
        quantity=given.get("quantity", 1),
        party_size=given.get("party_size"),
    )
    if visit:
        fixed = fixed_in_visit(visit, query.fixed)
        query = replace(query, fixed=fixed, visit=visit_with_costs(visit, project, fixed, now=now))
    check_quantity(caller, project, query.quantity)
    if query.quantity > 1 and query.takes_several_resources:
        raise Invalid.at("quantity", "A booking of several resources takes one unit of each.")
    if alternatives and parameters.length is None:
        raise Invalid.at("length", "Required with `requires`.")
    if not caller.is_widget:
        return for_party(with_fair_turns(query, project, drops_others=not for_explain))
    if own is None:
        query = replace(query, terms=_limit_without_project(parameters), bounds=PUBLIC_WINDOW)
        return for_party(with_fair_turns(query, None))
    # A widget key may narrow what the project offers, never extend it.
    terms = restrict_to(own, parameters, given=frozenset(given))
    terms = replace(terms, earliest=parameters.earliest, latest=parameters.latest)
    return for_party(with_fair_turns(replace(query, terms=terms, bounds=own), project))


def _find_requirements(
    app: App, caller: Caller, project: Project | None, given: Mapping[str, Any]
) -> Alternatives:
    """The requirements of the request, else of the project. Raises Forbidden for a widget key that
    sends some, Invalid for a list of resources beside them.
    """
    if "requires" in given and caller.is_bound_to_projects:
        raise Forbidden("This key can't send `requires`: its projects have their own.")
    alternatives = (
        load_requirements(app.id, given["requires"])
        if "requires" in given
        else project_requirements(project)
    )
    is_named = isinstance(given.get("resources"), Mapping)
    if "steps" in given or (project and project.steps and "requires" not in given):
        return ()
    if alternatives and "resources" in given and not is_named:
        raise Invalid.at("resources", "Is derived from `requires`.")
    if is_named and not alternatives:
        raise Invalid.at("resources", "The project has no `requires`.")
    return alternatives


def _find_visit(
    app: App, caller: Caller, project: Project | None, given: Mapping[str, Any]
) -> Visit | None:
    """The visit of the request, else of the project, unless the request has requirements. Raises
    Forbidden for a widget key that sends steps, Invalid for a list of resources beside them.
    """
    if "steps" in given:
        if caller.is_bound_to_projects:
            raise Forbidden("This key can't send `steps`: its projects have their own.")
        visit: Visit | None = load_visit(app.id, given["steps"], given.get("order"))
    else:
        has_steps = project and project.steps and "requires" not in given
        visit = project_visit(project) if has_steps else None
    if visit and "resources" in given and not isinstance(given["resources"], Mapping):
        raise Invalid.at("resources", "Is derived from `steps`.")
    return visit


def _read_fixed(resources: Any, alternatives: Alternatives, caller: Caller) -> FixedChoice:
    """What the request fixes of the requirements. Raises Invalid for what meets none."""
    fixed = FixedChoice(resources if alternatives and resources else {}, caller.resource_id)
    check_fixed(alternatives, fixed)
    return fixed


def _limit_without_project(parameters: SlotParameters) -> SlotParameters:
    if parameters.length is not None and parameters.length > MAX_LENGTH.total_seconds():
        raise Invalid.at("length", Message("Must be at most 24 hours."))
    return replace(parameters, include_past=False)


def _find_project(app: App, caller: Caller, given: Mapping[str, Any]) -> Project | None:
    if "project_id" not in given:
        return None
    project = visible_projects(app, caller).filter(id=given["project_id"]).first()
    if project is None:
        raise Invalid.at("project_id", "There is no such project.")
    return project


def _find_resources(
    app: App, caller: Caller, project: Project | None, given: Mapping[str, Any], now: datetime
) -> Sequence[SearchResource]:
    ids: Sequence[uuid.UUID] | None = given.get("resources")
    only = caller.resource_id
    if only:
        ids = ids or [only]
    elif ids is None and project is None:
        raise Invalid.at("resources", "Required without a project.")
    if project and (ids is None or caller.is_bound_to_projects):
        project_resources = load_project_resources(app, project, now=now)
    else:
        project_resources = load_resources(app, list(dict.fromkeys(ids or ())), now=now)
    if ids is None:
        return project_resources
    by_id = {resource.id: resource for resource in project_resources if only in (None, resource.id)}
    Invalid.check_known("resources", ids, by_id, "There is no such resource.")
    if project and project.is_mutual and caller.is_widget:
        return project_resources  # fewer resources would be free more often
    return [by_id[identifier] for identifier in dict.fromkeys(ids)]


def _read_parameters(
    base: SlotParameters, given: Mapping[str, Any], resources: Sequence[SearchResource], zone: str
) -> SlotParameters:
    """`base` with the parameters of the request; wall times are read in one zone."""
    zone = common_zone_or(resources, zone)
    moments = {
        name: _with_offset(name, given[name], zone) for name in ("from", "to") if name in given
    }
    terms = with_parameters(base, {**given, **moments})
    return replace(terms, extra=(given.get("constraints", ()),))


def common_zone_or(resources: Sequence[SearchResource], default: str) -> str:
    """The zone of wall times: that of the resources if they share one, else `default`."""
    zones = {resource.zone for resource in resources}
    return zones.pop() if len(zones) == 1 else default


def _with_offset(name: str, text: str, zone: str) -> str:
    if is_relative(text):
        return text
    try:
        return format_instant(parse_instant_or_date(text.strip(), zone))
    except InstantError as error:
        raise Invalid.at(name, find_message(error)) from error
