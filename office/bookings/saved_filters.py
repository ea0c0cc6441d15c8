"""Saved filters of the list of bookings: filters, search and ordering under a name.

An account has its own for each app; the list shows them as tabs.
"""

import uuid
from dataclasses import dataclass
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from apps_config.models import App, SavedFilter
from common.api.fields import CONTROL_OR_BREAK
from office.base.model_admin_pages import find_row
from office.base.scope import account_of, read_once, scope_of

MAX_FILTERS = 20  # of an account in an app
APP = "app__id__exact"
# What a list's address may say, in this order.
PARAMETERS = (
    *(
        "tab",
        "period",
        "q",
        "state",
        "outcome",
        "graph",
        "day",
        "event__start_from",
        "event__start_to",
    ),
    *("resource__id__exact", "project__id__exact", APP, "o"),
)


class NameForm(forms.Form):
    name = forms.CharField(max_length=60)

    def clean_name(self) -> str:
        if CONTROL_OR_BREAK.search(self.cleaned_data["name"]):
            raise forms.ValidationError(_("Enter a name on one line."))
        return self.cleaned_data["name"]


@dataclass(frozen=True, slots=True)
class FilterState:
    """What the list shows: `query`, the saved filter with the same query, and whether and for which
    app it can be saved.
    """

    query: str
    saved: SavedFilter | None
    is_new: bool
    app: App | None


def query_of(given: QueryDict) -> str:
    """Return the list's query without the page and empty or unknown parameters."""
    pairs = [(name, given.get(name, "")) for name in PARAMETERS]
    return urlencode([(name, value) for name, value in pairs if value])


def is_filtered(query: str) -> bool:
    """Return whether the query is more than a tab of an app."""
    return bool(set(QueryDict(query)) - {"tab", APP})


@read_once
def saved_filters(request: HttpRequest) -> list[SavedFilter]:
    """Return the account's filters, by name. One query."""
    rows = SavedFilter.objects.filter(scope_of(request).rows("app"), account=account_of(request))
    return list(rows.order_by("name", "id")[:MAX_FILTERS])


@read_once
def filter_state(request: HttpRequest) -> FilterState:
    query = query_of(request.GET)
    saved = next((row for row in saved_filters(request) if row.query == query), None)
    is_new = saved is None and is_filtered(query)
    return FilterState(query, saved, is_new, _app_of(request, query) if is_new else None)


def _app_of(request: HttpRequest, query: str) -> App | None:
    """Return the app in the filter, or the account's only app."""
    apps = scope_of(request).apps()
    chosen = QueryDict(query).get(APP)
    if chosen:
        try:
            return apps.filter(pk=uuid.UUID(chosen)).first()
        except ValueError:
            return None
    found = list(apps.order_by()[:2])
    return found[0] if len(found) == 1 else None


# The forms above the list; each returns to it.
@require_POST
def save_filter(request: HttpRequest) -> HttpResponse:
    """Save `query` as `name`."""
    query = query_of(QueryDict(request.POST.get("query", "")[: SavedFilter.MAX_QUERY]))
    if not is_filtered(query):
        messages.error(request, _("Set a filter, search or order first."))
        return _redirect_to_list(query)
    app = _app_of(request, query)
    if app is None:
        messages.error(request, _("Filter by one app before you save the filter."))
        return _redirect_to_list(query)
    count = SavedFilter.objects.filter(account=account_of(request), app=app).count()
    if count >= MAX_FILTERS:
        sentence = ngettext(
            "You have %(count)s filter. Delete one first.",
            "You have %(count)s filters. Delete one first.",
            MAX_FILTERS,
        )
        messages.error(request, sentence % {"count": MAX_FILTERS})
        return _redirect_to_list(query)
    new = SavedFilter(account=account_of(request), app=app, query=query)
    _save_name(request, new, _("Filter “%(name)s” saved."))
    return _redirect_to_list(query)


@require_POST
def change_filter(request: HttpRequest, filter_id: uuid.UUID) -> HttpResponse:
    """Rename the filter to `name`, or delete it with `delete`."""
    own = SavedFilter.objects.filter(scope_of(request).rows("app"))
    saved = find_row(own.filter(account=account_of(request)), filter_id)
    if "delete" in request.POST:
        saved.delete()
        messages.success(request, _("Filter “%(name)s” deleted.") % {"name": saved.name})
    else:
        _save_name(request, saved, _("Filter “%(name)s” renamed."))
    return _redirect_to_list(saved.query)


def _save_name(request: HttpRequest, saved: SavedFilter, done: str) -> None:
    """Save the form's name. done: the message, with the placeholder `name`."""
    form = NameForm(request.POST)
    if not form.is_valid():
        messages.error(request, " ".join(map(str, form.errors["name"])))
        return
    saved.name = form.cleaned_data["name"]
    try:
        with transaction.atomic():
            saved.save()
    except IntegrityError:
        name_taken = _("You already have a filter “%(name)s”.") % {"name": saved.name}
        messages.error(request, name_taken)
        return
    messages.success(request, done % {"name": saved.name})


def _redirect_to_list(query: str) -> HttpResponse:
    return HttpResponseRedirect(f"{reverse('admin:bookings_booking_changelist')}?{query}")
