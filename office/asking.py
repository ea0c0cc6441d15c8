"""Before what can't be taken back: which row, and whether it is meant."""

from collections.abc import Sequence
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import Http404, HttpRequest
from django.template.response import TemplateResponse

CONFIRMED = "confirmed"
# What Django's list sends with an action.
ACTION_FIELDS = ("action", "_selected_action", "select_across")


def ask_first(
    page: Any,
    request: HttpRequest,
    row: Model | None,
    *,
    title: str,
    sentence: str,
    button: str,
    back: str,
    look: str = "danger",
    lines: Sequence[str] = (),
    repeated: Sequence[str] = (),
) -> TemplateResponse:
    """A page with one question; its button POSTs to the same address. `row`: None where it is
    about several. `back`: where No leads. `lines`: what will happen. `repeated`: the names of
    fields of this request's form that are sent once more, with `is_confirmed`."""
    fields = [(name, value) for name in repeated for value in request.POST.getlist(name)]
    context = {
        **page.admin_site.each_context(request),
        "opts": (row or page.model)._meta,
        "original": row,
        "title": title,
        "sentence": sentence,
        "lines": lines,
        "fields": [*fields, (CONFIRMED, "yes")] if fields else [],
        "button": button,
        "look": look,
        "back": back,
    }
    return TemplateResponse(request, "office/confirm.html", context)


def is_confirmed(request: HttpRequest) -> bool:
    """Whether the form was sent by the button of such a page."""
    return request.method == "POST" and CONFIRMED in request.POST


def find_to_change(page: Any, request: HttpRequest, object_id: str) -> Any:
    """A row that is not hidden. Raises Http404 for what is not to be seen, PermissionDenied for
    what is only that."""
    row = page.get_object(request, object_id)
    if row is None or row.deleted_at:
        raise Http404
    if not page.has_change_permission(request, row):
        raise PermissionDenied
    return row
