"""From the body of an availability request to a query on the app's rows."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from apps_config.authentication import Caller
from apps_config.models import App
from availability.enforcement import terms_of_project
from availability.models import Project
from availability.search import Bookable, Query, load_project_resources, load_resources
from availability.terms import Terms, narrowed, with_values
from scheduling.api.durations import is_relative
from scheduling.api.errors import Invalid
from scheduling.api.instants import InstantError, format_instant, parse_instant


def build_query(
    given: Mapping[str, Any], *, app: App, caller: Caller, zone: str, now: datetime
) -> Query:
    """The query of valid body values; three queries of the database, whatever the resources.

    `zone` reads wall times where the resources have several. Raises Invalid for ids that the app
    does not have, and for a body that names neither a project nor resources.
    """
    given = {key: value for key, value in given.items() if value is not None or key == "length"}
    project = _find_project(app, given)
    resources = _find_resources(app, caller, project, given, now)
    own = terms_of_project(project) if project else None
    asked = _read_terms(own or Terms(), given, resources, zone)
    query = Query(
        resources=resources,
        terms=asked,
        now=now,
        project_id=project.id if project else None,
        own=own,
    )
    if not caller.is_widget:
        return query
    if own is None:
        return replace(query, terms=replace(asked, include_past=False))
    # A public key may narrow what the project offers, never loosen it.
    terms = narrowed(own, asked, given=frozenset(given))
    terms = replace(terms, earliest=asked.earliest, latest=asked.latest)
    return replace(query, terms=terms, bounds=own)


def _find_project(app: App, given: Mapping[str, Any]) -> Project | None:
    if "project_id" not in given:
        return None
    project = Project.objects.for_app(app).filter(id=given["project_id"]).first()
    if project is None:
        raise Invalid.at("project_id", "There is no such project.")
    return project


def _find_resources(
    app: App, caller: Caller, project: Project | None, given: Mapping[str, Any], now: datetime
) -> Sequence[Bookable]:
    ids: Sequence[uuid.UUID] | None = given.get("resources")
    only = caller.resource_id
    if only:
        ids = ids or [only]
    elif ids is None and project is None:
        raise Invalid.at("resources", "Is needed where no project is named.")
    if project and (ids is None or caller.is_widget):
        known = load_project_resources(app, project, now=now)
    else:
        known = load_resources(app, list(dict.fromkeys(ids or ())), now=now)
    if ids is None:
        return known
    by_id = {resource.id: resource for resource in known if only in (None, resource.id)}
    errors = {
        f"resources.{position}": ["There is no such resource."]
        for position, one in enumerate(ids)
        if one not in by_id
    }
    if errors:
        raise Invalid(errors)
    return [by_id[one] for one in dict.fromkeys(ids)]


def _read_terms(
    base: Terms, given: Mapping[str, Any], resources: Sequence[Bookable], zone: str
) -> Terms:
    """`base` with what the request says in place, its wall times read in one zone for all."""
    zone = wall_zone(resources, zone)
    moments = {
        name: _with_offset(name, given[name], zone) for name in ("from", "to") if name in given
    }
    terms = with_values(base, {**given, **moments})
    return replace(terms, extra=(given.get("constraints", ()),))


def wall_zone(resources: Sequence[Bookable], zone: str) -> str:
    """Where wall times are read: the zone that all resources have, else `zone`."""
    zones = {resource.zone for resource in resources}
    return zones.pop() if len(zones) == 1 else zone


def _with_offset(name: str, text: str, zone: str) -> str:
    if is_relative(text):
        return text
    try:
        return format_instant(parse_instant(text.strip(), zone))
    except InstantError as error:
        raise Invalid.at(name, str(error)) from error
