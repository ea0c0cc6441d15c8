"""Before what can't be taken back: which row, and whether it is meant."""

from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse


def ask_first(
    page: Any,
    request: HttpRequest,
    row: Model,
    *,
    title: str,
    sentence: str,
    button: str,
    back: str,
) -> HttpResponse:
    """A page with one question; its button POSTs to the same address. `back`: where No leads."""
    context = {
        **page.admin_site.each_context(request),
        "opts": row._meta,
        "original": row,
        "title": title,
        "sentence": sentence,
        "button": button,
        "back": back,
    }
    return TemplateResponse(request, "office/confirm.html", context)


def find_to_change(page: Any, request: HttpRequest, object_id: str) -> Any:
    """A row that is not hidden. Raises Http404 for what is not to be seen, PermissionDenied for
    what is only that."""
    row = page.get_object(request, object_id)
    if row is None or row.deleted_at:
        raise Http404
    if not page.has_change_permission(request, row):
        raise PermissionDenied
    return row
