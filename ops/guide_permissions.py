"""The guide's tables of permissions, from the table that the API obeys."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from django.urls import URLPattern, get_resolver

from apps_config.base_views import TenantViewSet
from apps_config.models import Credential
from apps_config.permissions import ACCESS, Access

API = "v2/"
ALIAS = "users"  # of resources


class Endpoint(NamedTuple):
    path: str
    methods: tuple[str, ...]
    access: Access


def endpoints() -> Iterator[Endpoint]:
    """Yield what the apps' viewsets serve, in the order of the paths; methods of the same path with
    the same permissions together.
    """
    found: dict[tuple[str, Access], list[str]] = {}
    for pattern in api_patterns():
        view: Any = pattern.callback
        for method, action in view.actions.items():
            if method != "head":
                access = ACCESS[view.initkwargs["basename"]][action]
                found.setdefault((path_of(pattern), access), []).append(method.upper())
    for path, access in sorted(found):
        yield Endpoint(path, tuple(found[path, access]), access)


def api_patterns() -> Iterator[URLPattern]:
    for part in get_resolver().url_patterns:
        if str(part.pattern) != API or not hasattr(part, "url_patterns"):
            continue
        for pattern in part.url_patterns:
            view = getattr(pattern.callback, "cls", None)
            if (
                isinstance(pattern, URLPattern)
                and view
                and issubclass(view, TenantViewSet)
                and path_of(pattern).split("/")[1] != ALIAS
            ):
                yield pattern


def path_of(pattern: URLPattern) -> str:
    """Return the path as the guide writes it: `/projects/:id/resources/:resource_id`."""
    path = "/" + str(pattern.pattern)
    path = re.sub(r"<uuid:\w+>", ":id", path, count=1)
    return re.sub(r"<\w+:(\w+)>", r":\1", path)


def permission_table() -> str:
    """Return who may call each endpoint, beside server keys, and what keys with limits need."""
    rows = [
        "| endpoint | scope | key with `projects` | access token | widget key | resource key |",
        "|---|---|---|---|---|---|",
    ]
    for path, methods, access in endpoints():
        role = access.role + (" (no server key)" if access.only_accounts else "")
        kinds = [
            "yes" if kind in access.kinds else ""
            for kind in (Credential.WIDGET, Credential.RESOURCE)
        ]
        scopes = ", ".join(f"`{scope}`" for scope in access.scopes)
        cells = [scopes, "yes" if access.by_project else "", role, *kinds]
        rows.append(f"| {', '.join(methods)} `{path}` | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def widget_table() -> str:
    """Return the endpoints that a widget key may call."""
    rows = ["| method | endpoints |", "|---|---|"]
    found: dict[str, list[str]] = {}
    for path, methods, access in endpoints():
        for method in methods if Credential.WIDGET in access.kinds else ():
            found.setdefault(method, []).append(f"`{path}`")
    rows += [f"| {method} | {', '.join(paths)} |" for method, paths in sorted(found.items())]
    return "\n".join(rows) + "\n"
