"""Archiving an app: asked first, since it is for good."""

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone

from apps_config.models import Membership
from apps_config.scope import is_allowed
from apps_config.services import archive_app
from office.asking import ask_first


def show_archiving(page: Any, request: HttpRequest, object_id: str) -> HttpResponse:
    """Asks; a POST does it. For owners and staff. `page`: the app's ModelAdmin."""
    app = page.get_object(request, object_id)
    if app is None:
        raise Http404
    if not may_archive(request, app):
        raise PermissionDenied
    if request.method == "POST":
        archive_app(app, now=timezone.now())
        page.log_change(request, app, "Archived.")
        messages.success(request, f"{app} is archived.")
        return HttpResponseRedirect(reverse("admin:index"))
    return ask_first(
        page,
        request,
        app,
        title="Archive this app?",
        sentence=f"The keys of {app} are refused from then on, its booking pages are gone, and"
        " what is not sent yet is skipped. Its data stays; nothing here opens it again.",
        button="Archive it",
        back=reverse("admin:apps_config_app_change", args=[app.pk]),
    )


def may_archive(request: HttpRequest, app: Any) -> bool:
    """Whether there is anything to archive, and the caller may."""
    is_open = app.archived_at is None
    return is_open and is_allowed(request, "apps_config.change_app", app.pk, Membership.OWNER)
