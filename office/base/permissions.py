"""Permissions of back-office pages, and JSON views."""

import uuid
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Concatenate, NamedTuple, ParamSpec

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from apps_config.authentication import Caller
from apps_config.models import App, Credential, Membership
from availability.core.explain import Reason
from availability.models import Project, Resource, Schedule
from availability.reserve.events import NotAvailable
from availability.search.rendering import reason_record
from bookings.services import Actor
from common.api.json import parse_body
from common.errors import Malformed, Refusal, json_error, log_refusal, refusal_of
from office.base.message_translations import translate_message
from office.base.scope import account_of, is_allowed, scope_of

MAX_SIDE_BY_SIDE = 10

Params = ParamSpec("Params")
JsonView = Callable[Concatenate[HttpRequest, Params], dict[str, Any]]
PageView = Callable[Concatenate[HttpRequest, Params], HttpResponse]
View = Callable[..., HttpResponseBase]
# Whether the account may open a page at all, for rows of some app.
PagePermission = Callable[[HttpRequest], bool]


class RequiredPermission(NamedTuple):
    """Required for an action: the role for members, Django's permission for platform staff."""

    role: str
    permission: str

    def is_held(self, request: HttpRequest) -> bool:
        """Return whether the account has the permission in any app."""
        return is_allowed(request, self.permission, None, self.role)


SEE = RequiredPermission(Membership.VIEWER, "bookings.view_booking")
MOVE = RequiredPermission(Membership.EDITOR, "bookings.change_booking")
MAKE = RequiredPermission(Membership.EDITOR, "bookings.add_booking")
BLOCK = RequiredPermission(Membership.EDITOR, "availability.add_event")


def may_enter_absences(request: HttpRequest) -> bool:
    """Return whether the account may close time and change the bookings in it, in any app."""
    return BLOCK.is_held(request) and MOVE.is_held(request)


def is_superuser(request: HttpRequest) -> bool:
    return bool(request.user.is_superuser)


def with_permission(view: View, is_allowed: PagePermission) -> View:
    """Return the view of a page that asks for a permission first."""

    @wraps(view)
    def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not is_allowed(request):
            raise PermissionDenied
        return view(request, *args, **kwargs)

    return checked


def has_permission(request: HttpRequest, app_id: uuid.UUID, need: RequiredPermission) -> bool:
    return is_allowed(request, need.permission, app_id, need.role)


def require(request: HttpRequest, app_id: uuid.UUID, need: RequiredPermission) -> None:
    """Raise PermissionDenied without the permission."""
    if not has_permission(request, app_id, need):
        raise PermissionDenied


def visible_resources(
    request: HttpRequest, *, least: str = Membership.VIEWER
) -> QuerySet[Resource]:
    """Return the resources, with apps, of apps where the account has at least the role `least`."""
    rows = Resource.objects.filter(scope_of(request).rows("app", least=least), deleted_at=None)
    return rows.select_related("app")


def visible_projects(request: HttpRequest) -> QuerySet[Project]:
    return Project.objects.filter(scope_of(request).rows("app"), deleted_at=None)


def visible_schedules(request: HttpRequest) -> QuerySet[Schedule]:
    return Schedule.objects.filter(scope_of(request).rows("app"))


def get_visible_resources_or_404(request: HttpRequest, ids: Sequence[uuid.UUID]) -> list[Resource]:
    """Return these resources of one app in the given order: one query. Raises Http404."""
    found = {row.id: row for row in visible_resources(request).filter(id__in=ids)}
    rows = [found[identifier] for identifier in dict.fromkeys(ids) if identifier in found]
    if not rows or len(rows) < len(set(ids)) or len({row.app_id for row in rows}) > 1:
        raise Http404
    require(request, rows[0].app_id, SEE)
    return rows


def read_ids(text: str) -> list[uuid.UUID]:
    """Parse comma-separated ids from a URL. Raises Http404."""
    try:
        ids = [uuid.UUID(part) for part in text.split(",") if part]
    except ValueError:
        raise Http404 from None
    if len(ids) > MAX_SIDE_BY_SIDE:
        raise Http404
    return ids


def editor_caller_of(request: HttpRequest, app: App) -> Caller:
    """Return the account as an API caller with an editor's rights, which the view has checked."""
    account = account_of(request)
    return Caller(
        credential_id=uuid.UUID(int=0),
        kind=Credential.ACCESS,
        role=Membership.EDITOR,
        app=app,
        memberships=((Membership.EDITOR, app),),
        account_id=account.pk,
        resource_id=None,
        actor=account.email,
    )


def actor_of(request: HttpRequest) -> Actor:
    return Actor(name=account_of(request).email, source="admin")


def read_json_object(request: HttpRequest) -> dict[str, Any]:
    """Return the JSON object of the body. Raises Malformed."""
    body = parse_body(request.body)
    if not isinstance(body, dict):
        raise Malformed("The body must be an object.")
    return body


def show_page(request: HttpRequest, template: str, **values: Any) -> HttpResponse:
    request.current_app = admin.site.name
    return render(request, template, {**admin.site.each_context(request), **values})


def _reason_in_words(reason: Reason) -> dict[str, Any]:
    record = reason_record(reason)
    return record | {"text": translate_message(record["text"])}


def json_view(*methods: str) -> Callable[[JsonView[Params]], PageView[Params]]:
    """Make a function a JSON view: its result is `data`; refusals have the API's error format."""

    def decorate(view: JsonView[Params]) -> PageView[Params]:
        @require_http_methods(methods)
        @wraps(view)
        def answer(
            request: HttpRequest, /, *args: Params.args, **kwargs: Params.kwargs
        ) -> HttpResponse:
            try:
                return JsonResponse({"data": view(request, *args, **kwargs)})
            except (Refusal, Http404, PermissionDenied) as error:
                refusal = refusal_of(error)
                if isinstance(error, NotAvailable):
                    refusal.fields["reasons"] = [
                        _reason_in_words(reason) for reason in error.reasons
                    ]
                log_refusal(error, refusal, request)
                refusal.message = translate_message(refusal.message)
                return json_error(request, refusal)

        return answer

    return decorate
