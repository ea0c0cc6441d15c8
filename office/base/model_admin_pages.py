"""Extra pages of a model's admin, confirmation pages, and pages that show a secret once."""

from typing import Any, NamedTuple, TypeVar

from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404

from office.base.permissions import View

Row = TypeVar("Row", bound=Model)

CONFIRMED = "confirmed"
BACK = "back"
# The fields that Django's list sends with an action.
ACTION_FIELDS = ("action", "_selected_action", "select_across")
# Of Django, and of the theme, which makes a page of each.
ACTION_KINDS = ("actions", "actions_list", "actions_detail", "actions_row", "actions_submit_line")


class ExtraPage(NamedTuple):
    """A page of a model beside Django's own.

    path         below the model's
    view         a method of the admin; called only with the permission
    name         `act` of Booking is `admin:bookings_booking_act`
    permission   `change`: requires `has_change_permission(request)`, as `permissions` of an action.
                 Whether the account may change this very row is for the view to ask.
    """

    path: str
    view: View
    name: str
    permission: str


class TitledRow:
    """A row whose text is a title, for the heading of a page."""

    def __init__(self, row: Model, title: str) -> None:
        self._row, self._title = row, title

    def __str__(self) -> str:
        return self._title

    def __getattr__(self, name: str) -> Any:
        return getattr(self._row, name)


def find_row(rows: QuerySet[Row], row_id: object) -> Row:
    """Return the row with that id. Raises Http404, also for malformed ids."""
    try:
        return get_object_or_404(rows, pk=str(row_id))
    except (ValidationError, ValueError):
        raise Http404 from None


def keep_secret(request: HttpRequest, secret: str) -> None:
    """Keep a secret from saving the row until this request's answer."""
    vars(request)["_office_secret"] = secret


def kept_secret(request: HttpRequest) -> str:
    """Return the secret of this request, "" without one."""
    return vars(request).get("_office_secret", "")


def is_confirmed(request: HttpRequest) -> bool:
    """Return whether the confirmation page's button sent the request."""
    return request.method == "POST" and CONFIRMED in request.POST
