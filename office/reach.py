"""Whose rows a page of the back office may show and change, and how it answers in JSON."""

import uuid
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from apps_config.authentication import Caller
from apps_config.models import App, Credential, Membership
from apps_config.scope import is_allowed, scope_of
from availability.answers import reason_record
from availability.models import Project, Resource
from availability.placement import NotAvailable
from bookings.services import Actor
from scheduling.api.errors import Malformed, Refusal, json_error, log_refusal, refusal_of
from scheduling.api.parsers import parse_body

MOST_SIDE_BY_SIDE = 10


class Need(NamedTuple):
    """What it takes to do something: of a member the role, of platform staff the permission."""

    role: str
    permission: str


SEE = Need(Membership.VIEWER, "bookings.view_booking")
MOVE = Need(Membership.EDITOR, "bookings.change_booking")
MAKE = Need(Membership.EDITOR, "bookings.add_booking")


def may(request: HttpRequest, app_id: uuid.UUID, need: Need) -> bool:
    return is_allowed(request, need.permission, app_id, need.role)


def demand(request: HttpRequest, app_id: uuid.UUID, need: Need) -> None:
    """Raises PermissionDenied."""
    if not may(request, app_id, need):
        raise PermissionDenied


def resources_in_reach(request: HttpRequest, *, least: str = Membership.VIEWER) -> Any:
    """The resources that the account may see, or do more with, with their apps."""
    rows = Resource.objects.filter(scope_of(request).rows("app", least=least), deleted_at=None)
    return rows.select_related("app")


def projects_in_reach(request: HttpRequest) -> Any:
    return Project.objects.filter(scope_of(request).rows("app"), deleted_at=None)


def find_resources(request: HttpRequest, ids: Sequence[uuid.UUID]) -> list[Resource]:
    """Those resources, of one app, in the order given: one query. Raises Http404 for any other."""
    found = {row.id: row for row in resources_in_reach(request).filter(id__in=ids)}
    rows = [found[one] for one in dict.fromkeys(ids) if one in found]
    if not rows or len(rows) < len(set(ids)) or len({row.app_id for row in rows}) > 1:
        raise Http404
    demand(request, rows[0].app_id, SEE)
    return rows


def read_ids(text: str) -> list[uuid.UUID]:
    """Ids that stand in an address, parted by commas. Raises Http404 for what is none."""
    try:
        ids = [uuid.UUID(part) for part in text.split(",") if part]
    except ValueError:
        raise Http404 from None
    if len(ids) > MOST_SIDE_BY_SIDE:
        raise Http404
    return ids


def caller_of(request: HttpRequest, app: App) -> Caller:
    """The account as the API would know it: a member of that app. What it may do was asked."""
    return Caller(
        credential_id=uuid.UUID(int=0),
        kind=Credential.ACCESS,
        role=Membership.EDITOR,
        app=app,
        memberships=((Membership.EDITOR, app),),
        account_id=request.user.pk,
        resource_id=None,
        actor=request.user.email,
    )


def actor_of(request: HttpRequest) -> Actor:
    return Actor(name=request.user.email, source="admin")


def read_object(request: HttpRequest) -> dict[str, Any]:
    """The JSON object of a body. Raises Malformed."""
    body = parse_body(request.body)
    if not isinstance(body, dict):
        raise Malformed("The body must be an object.")
    return body


def show_page(request: HttpRequest, template: str, **values: Any) -> HttpResponse:
    """A page in the frame of the back office."""
    request.current_app = admin.site.name
    return render(request, template, {**admin.site.each_context(request), **values})


def answers_json(*methods: str) -> Callable[[Callable[..., Any]], Callable[..., HttpResponse]]:
    """A view whose result is `data`, and whose refusals are written as the API writes them."""

    def decorate(view: Callable[..., Any]) -> Callable[..., HttpResponse]:
        @require_http_methods(methods)
        @wraps(view)
        def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            try:
                return JsonResponse({"data": view(request, *args, **kwargs)})
            except (Refusal, Http404, PermissionDenied) as error:
                refusal = refusal_of(error)
                if isinstance(error, NotAvailable):
                    refusal.fields["reasons"] = [reason_record(one) for one in error.reasons]
                log_refusal(error, refusal, request)
                return json_error(request, refusal)

        return answer

    return decorate
