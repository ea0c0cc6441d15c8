"""Extra pages of a model's admin, confirmation pages, and pages that show a secret once."""

from collections.abc import Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from django.contrib.admin import ModelAdmin
from django.core.exceptions import ImproperlyConfigured, PermissionDenied, ValidationError
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _

from office.base.permissions import PagePermission, View, with_permission

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


class ModelPages(ModelAdmin, Generic[Row]):
    """Pages and actions of a model: the service does not start if one names no permission."""

    def extra_pages(self) -> Iterable[ExtraPage]:
        return ()

    def get_urls(self) -> list[URLPattern]:
        self._check_actions()
        return [*map(self._extra_url, self.extra_pages()), *super().get_urls()]

    def _extra_url(self, page: ExtraPage) -> URLPattern:
        view = with_permission(page.view, self._permission_check(page.name, page.permission))
        return path(page.path, self.admin_site.admin_view(view), name=self._name(page.name))

    def _permission_check(self, name: str, permission: str) -> PagePermission:
        check = getattr(self, f"has_{permission}_permission", None)
        if check is None:
            raise ImproperlyConfigured(f"{self._name(name)} requires no known permission")
        return check

    def _check_actions(self) -> None:
        """Raise ImproperlyConfigured for an action, of the list or of a row, without permission."""
        names = [name for kind in ACTION_KINDS for name in getattr(self, kind, None) or ()]
        for method, name, _description in filter(None, map(self.get_action, names)):
            for permission in getattr(method, "allowed_permissions", None) or ("",):
                self._permission_check(name, permission)

    def _name(self, page: str) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_{page}"

    def list_url(self) -> str:
        return reverse(f"admin:{self._name('changelist')}")

    def url_of(self, row: Row) -> str:
        return reverse(f"admin:{self._name('change')}", args=[row.pk])

    def row_title(self, row: Row) -> str:
        """Return the row's name in headings."""
        return str(row)

    def redirect_to_row(self, row: Row) -> HttpResponse:
        return HttpResponseRedirect(self.url_of(row))

    def show_page(self, request: HttpRequest, template: str, **values: Any) -> TemplateResponse:
        """Render a page in the back office's layout. `values`: the template's."""
        context = {**self.admin_site.each_context(request), "opts": self.opts, **values}
        return TemplateResponse(request, template, context)

    def find(self, request: HttpRequest, object_id: str) -> Row:
        """Return a visible row. Raises Http404 for any other id."""
        row = self.get_object(request, object_id)
        if row is None:
            raise Http404
        return row

    def find_to_change(self, request: HttpRequest, object_id: str) -> Row:
        """Return a row to change. Raises Http404 if not visible, PermissionDenied if read-only."""
        row = self.find(request, object_id)
        if getattr(row, "deleted_at", None):
            raise Http404
        if not self.has_change_permission(request, row):
            raise PermissionDenied
        return row

    def ask_confirmation(
        self,
        request: HttpRequest,
        row: Row | None,
        *,
        title: str,
        sentence: str,
        button: str,
        back: str = "",
        button_style: str = "danger",
        lines: Sequence[str] = (),
        repeated: Sequence[str] = (),
        goes_back_to_form: bool = False,
    ) -> TemplateResponse:
        """Render a confirmation page; its button POSTs to the same URL.

        `row`: None if it is about several rows. `back`: the URL of No; default: the row's page.
        `lines`: what will happen. `repeated`: the fields of this request's form to send again with
        CONFIRMED. `goes_back_to_form`: No sends these fields with BACK instead.
        """
        fields = [(name, value) for name in repeated for value in request.POST.getlist(name)]
        return self.show_page(
            request,
            "office/confirm.html",
            original=TitledRow(row, self.row_title(row)) if row else None,
            title=title,
            sentence=sentence,
            lines=lines,
            fields=[*fields, (CONFIRMED, "yes")] if fields else [],
            button=button,
            button_style=button_style,
            back=back or (self.url_of(row) if row else self.list_url()),
            back_name=BACK if goes_back_to_form else "",
        )

    def show_secret(
        self,
        request: HttpRequest,
        *,
        title: str,
        heading: str,
        secret: str,
        back: str,
        label: str = "",
        is_public: bool = False,
    ) -> TemplateResponse:
        """Render a page with a secret, shown once. `is_public`: it can be shown again later."""
        return self.show_page(
            request,
            "office/secret.html",
            title=title,
            heading=heading,
            secret=secret,
            back=back,
            label=label or _("Secret"),
            is_public=is_public,
        )


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
