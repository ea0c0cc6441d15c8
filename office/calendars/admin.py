"""Calendars in the back office: sync state and actions of connected calendars."""

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import wraps
from typing import Any, ParamSpec

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.options import BaseModelAdmin
from django.db.models import ForeignKey, Model, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.formats import number_format
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST
from unfold.decorators import action, display

from apps_config.models import Membership
from availability.models import Calendar
from availability.serializers.calendars import CalendarSerializer
from availability.services import CALENDAR_TEXTS, change_calendar, create_calendar
from common.errors import Refusal
from external_calendars.models import Connection
from external_calendars.providers import OAUTH_PROVIDERS, PROVIDERS
from external_calendars.providers.base import PROVIDER_ERRORS
from external_calendars.published_feeds import feed_url, issue_feed_token, revoke_feed
from external_calendars.services import (
    ConnectionTest,
    choose_primary,
    disconnect_calendar,
    request_sync,
    test_connection,
)
from office.base.api_forms import ChangesForm
from office.base.dates import moment_words
from office.base.labels import LabelledWords
from office.base.list_filters import ChoiceFilter, DeletedFilter
from office.base.message_translations import translate_message
from office.base.model_admin import ServiceBackedAdmin, refusal_words
from office.base.model_admin_pages import ExtraPage
from office.base.permissions import visible_resources
from office.base.scope import is_allowed
from office.calendars.connect import ConnectPages, is_writable_kind
from office.calendars.consent import ADD
from office.calendars.sync_status import (
    DELETED,
    FIRST_SYNC,
    NEEDS_ATTENTION,
    STATE_COLOURS,
    STATES,
    account_words,
    need_attention,
    problem_words,
    progress_words,
    provider_words,
    state_of,
    with_state,
)
from office.calendars.unreadable_objects import list_unreadable, unreadable_count_text

Params = ParamSpec("Params")

# Translators: the access to a connected calendar.
ACCESS_WORDS = {"": _("unknown"), "reader": _("read only"), "writer": _("read and write")}


class CalendarForm(ChangesForm):
    sent = CALENDAR_TEXTS

    class Meta:
        model = Calendar
        fields = ("resource", *CALENDAR_TEXTS)
        labels = {"backgroundcolor": _("Background colour"), "foregroundcolor": _("Text colour")}
        help_texts = {"backgroundcolor": _("For clients that draw it, such as #1f6feb.")}

    def clean(self) -> dict[str, Any]:
        super().clean()
        given = self.cleaned_data
        self.check(CalendarSerializer(data=self.body(), partial=True))
        return given


class ProviderFilter(ChoiceFilter):
    title = _("provider")
    parameter_name = "provider"

    def lookups(self, request: HttpRequest, model_admin: BaseModelAdmin) -> list[tuple[str, str]]:
        return [(name, provider_words(name)) for name in (Calendar.SERVICE, *PROVIDERS)]


class SyncStateFilter(ChoiceFilter):
    """Filter by state; NEEDS_ATTENTION as counted on the dashboard."""

    title, parameter_name = _("state"), "state"
    options = [
        (NEEDS_ATTENTION, _("needs attention")),
        *((name, state[0]) for name, state in STATES.items()),
    ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Calendar]) -> QuerySet[Calendar]:
        state = self.value()
        if state == NEEDS_ATTENTION:
            return need_attention(queryset, timezone.now())
        return queryset.filter(Q(state=state)) if state in STATES else queryset


class DeletedCalendarFilter(DeletedFilter):
    """As the state *deleted* asks for deleted calendars, too."""

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet[Calendar]:
        if request.GET.get(SyncStateFilter.parameter_name) == DELETED:
            return queryset
        return super().queryset(request, queryset)


@admin.register(Calendar)
class CalendarAdmin(ServiceBackedAdmin[Calendar], ConnectPages):
    app_paths = ("app",)
    never = frozenset({"delete"})
    fixed_fields = ("resource",)
    form = CalendarForm
    list_display = (
        *("name", "resource", "kept_at", "shown_account"),
        *("shown_state", "shown_last_sync", "problem"),
    )
    list_filter = (DeletedCalendarFilter, SyncStateFilter, ProviderFilter)
    list_select_related = ("resource", "connection__grant")
    search_fields = (
        *("name", "resource__name", "resource__email"),
        "connection__grant__email",
    )
    ordering = ("-id",)
    sortable_by = ("name",)
    autocomplete_fields = ("resource",)
    readonly_fields = ("id", "created_at", "updated_at", "deleted_at")
    fieldsets = (
        (None, {"fields": ("resource", *CALENDAR_TEXTS)}),
        (_("Details"), {"fields": readonly_fields}),
    )
    add_fieldsets = ((None, {"fields": ("resource", *CALENDAR_TEXTS)}),)
    change_form_outer_before_template = "office/calendar_state.html"
    actions = None
    actions_list = ("open_connect",)

    class Media:
        js = ("office/standing.js",)

    # --- List -------------------------------------------------------------------------------------
    @display(description=_("provider"))
    def kept_at(self, calendar: Calendar) -> str:
        return provider_words(calendar.provider)

    @display(description=_("account"))
    def shown_account(self, calendar: Calendar) -> str:
        return account_words(getattr(calendar, "connection", None))

    @display(description=_("state"), label=STATE_COLOURS)
    def shown_state(self, calendar: Calendar) -> LabelledWords:
        state = state_of(calendar)
        return LabelledWords(state, str(STATES[state][0]))

    @display(description=_("last sync"))
    def shown_last_sync(self, calendar: Calendar) -> str:
        return moment_words(calendar.synced_at) if calendar.synced_at else ""

    @display(description=_("problem"))
    def problem(self, calendar: Calendar) -> str:
        connection = getattr(calendar, "connection", None)
        return problem_words(connection) or unreadable_count_text(
            connection.unread if connection else 0
        )

    @action(
        description=_("Connect a calendar…"), url_path="new-connection", permissions=["connect"]
    )
    def open_connect(self, request: HttpRequest) -> HttpResponse:
        return redirect("admin:availability_calendar_connect")

    # --- Permissions ------------------------------------------------------------------------------
    def has_connect_permission(self, request: HttpRequest, object_id: str | None = None) -> bool:
        return is_allowed(request, ADD, None)

    def _may(self, request: HttpRequest, what: str, obj: Model | None) -> bool:
        """Deleted calendars can't be changed."""
        return not getattr(obj, "deleted_at", None) and super()._may(request, what, obj)

    def formfield_for_foreignkey(
        self, db_field: ForeignKey, request: HttpRequest, **kwargs: Any
    ) -> forms.ModelChoiceField | None:
        if db_field.name == "resource":
            kwargs["queryset"] = visible_resources(request, least=Membership.EDITOR)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    # --- Saving -----------------------------------------------------------------------------------
    def save_row(
        self, request: HttpRequest, row: Calendar, form: CalendarForm, *, is_new: bool
    ) -> Calendar:
        """Save only the given texts: a worker writes the other columns of a connected calendar."""
        if is_new:
            return create_calendar(resource=form.cleaned_data["resource"], given=form.given)
        if form.given:
            change_calendar(row, form.given)
        return row

    # --- Page -------------------------------------------------------------------------------------
    def get_queryset(self, request: HttpRequest) -> QuerySet[Calendar]:
        rows = (
            super()
            .get_queryset(request)
            .select_related("resource__app", "connection__grant", "feed")
        )
        return with_state(rows, timezone.now())

    def page_values(self, request: HttpRequest, object_id: str | None) -> dict[str, Any]:
        calendar = self.get_object(request, object_id) if object_id else None
        return self._sync_values(request, calendar) if calendar else {}

    def _sync_values(self, request: HttpRequest, calendar: Calendar) -> dict[str, Any]:
        """Return the texts of the calendar's state, for the template."""
        connection = getattr(calendar, "connection", None)
        state = state_of(calendar)
        words, colour = STATES[state]
        progress = connection and connection.progress_record()
        is_feed, has_feed = not is_writable_kind(calendar), hasattr(calendar, "feed")

        return {
            "may_lead": self.has_change_permission(request, calendar),
            "is_gone": state == DELETED,
            "state": str(words),
            "colour": colour,
            "connection": connection,
            "provider": provider_words(calendar.provider),
            "account": account_words(connection),
            "is_granted": calendar.provider in OAUTH_PROVIDERS,
            "access": str(ACCESS_WORDS[calendar.provider_access]),
            "last_sync": moment_words(calendar.synced_at),
            "problem": problem_words(connection),
            "problem_since": moment_words(connection and connection.problem_since),
            "next_sync": _next_sync_words(connection, timezone.now()),
            "is_live": bool(connection and connection.lease_token) or state == FIRST_SYNC,
            "progress": progress,
            "progress_words": progress_words(connection),
            "is_feed": is_feed,
            "unread": connection and list_unreadable(connection, is_feed=is_feed),
            "feed_since": moment_words(calendar.feed.created_at) if has_feed else "",
        }

    # --- Actions ----------------------------------------------------------------------------------
    def extra_pages(self) -> Iterable[ExtraPage]:
        of_one = {
            "reconnect": self.reconnect,
            "try": self.test_connection_page,
            "sync": self.sync,
            "primary": self.set_primary,
            "disconnect": self.disconnect,
            "feed": self.feed,
            "revoke-feed": self.revoke_feed,
        }
        of_none = {
            "connect": ("connect/", self.connect),
            "begin_consent": ("connect/begin/", self.begin),
            "come_back": ("connect/back/", self.come_back),
            "choose": ("connect/choose/", self.choose),
        }
        for name, (path, page) in of_none.items():
            yield ExtraPage(path, not_found_as_404(page), name, "connect")
        for address, view in of_one.items():
            name = address.replace("-", "_")
            path = f"<path:object_id>/{address}/"
            yield ExtraPage(path, not_found_as_404(view), name, "change")

    @method_decorator(require_POST)
    def test_connection_page(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Test the connection and show the result."""
        calendar = self.find_connected(request, object_id)
        result = test_connection(calendar)
        if result.provider_error:
            messages.error(request, translate_message(PROVIDER_ERRORS[result.provider_error]))
        else:
            messages.success(request, result_words(result))
        return self.redirect_to_row(calendar)

    @method_decorator(require_POST)
    def sync(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Request a sync; of an ended permission only whether the provider allows it again."""
        calendar = self.find_connected(request, object_id)
        if request_sync(calendar).connection.is_stopped:
            words = gettext("The provider is asked once more. If it refuses, connect again.")
            messages.warning(request, words)
        else:
            words = gettext("A sync was requested. This page shows its progress.")
            messages.success(request, words)
        return self.redirect_to_row(calendar)

    @method_decorator(require_POST)
    def set_primary(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Set whether bookings are written to the calendar: `primary` is yes or no."""
        calendar = self.find_connected(request, object_id)
        is_primary = request.POST.get("primary") == "yes"
        try:
            choose_primary(calendar, is_primary, now=timezone.now())
        except Refusal as refusal:
            messages.error(request, refusal_words(refusal))
            return self.redirect_to_row(calendar)
        now = gettext("Bookings of %(resource)s are now written to this calendar.")
        no_longer = gettext("Bookings of %(resource)s are no longer written to this calendar.")
        words = (now if is_primary else no_longer) % {"resource": calendar.resource.name}
        note = "Made primary." if is_primary else "Not primary."
        self.log_change(request, calendar, note)
        messages.success(request, words)
        return self.redirect_to_row(calendar)

    def disconnect(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask for confirmation; a POST disconnects."""
        calendar = self.find_connected(request, object_id)
        if request.method == "POST":
            at = calendar.provider_id
            disconnect_calendar(calendar, now=timezone.now())
            self.log_change(request, calendar, f"Disconnected from {at}.")
            sentence = gettext("“%(calendar)s” is disconnected.")
            messages.success(request, sentence % {"calendar": calendar.name})
            return self.redirect_to_row(calendar)
        return self.ask_confirmation(
            request,
            calendar,
            title=gettext("Disconnect “%(calendar)s”?") % {"calendar": calendar.name},
            sentence=gettext(
                "The events from the provider, the stored password and the feed are deleted."
                " Bookings stay, also in the provider's calendar."
            ),
            button=gettext("Disconnect"),
        )

    def feed(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask for confirmation; a POST creates a feed and shows its URL once."""
        calendar = self.find_to_change(request, object_id)
        is_new = not hasattr(calendar, "feed")
        if request.method != "POST":
            return self.ask_confirmation(
                request,
                calendar,
                title=gettext("Create a new feed URL?")
                if not is_new
                else gettext("Create a feed?"),
                sentence=gettext(
                    "Anyone with the URL can read the calendar without logging in. The URL is"
                    " shown once."
                )
                if is_new
                else gettext(
                    "Anyone with the URL can read the calendar without logging in. The URL is"
                    " shown once. The old URL stops working."
                ),
                button=gettext("Create the URL"),
                button_style="primary" if is_new else "danger",
            )
        details = not is_new and calendar.feed.details
        token = issue_feed_token(calendar, details=details, now=timezone.now())
        self.log_change(request, calendar, "Feed created." if is_new else "Feed URL replaced.")
        return self.show_secret(
            request,
            title=gettext("The feed's URL"),
            heading=gettext("The feed of “%(calendar)s”") % {"calendar": calendar.name},
            label=gettext("URL"),
            secret=feed_url(calendar, token),
            back=self.url_of(calendar),
        )

    def revoke_feed(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask for confirmation; a POST deletes the feed."""
        calendar = self.find_to_change(request, object_id)
        if not hasattr(calendar, "feed"):
            raise Http404
        if request.method == "POST":
            revoke_feed(calendar)
            self.log_change(request, calendar, "Feed revoked.")
            messages.success(request, gettext("The feed is revoked."))
            return self.redirect_to_row(calendar)
        return self.ask_confirmation(
            request,
            calendar,
            title=gettext("Revoke the feed?"),
            sentence=gettext("Calendar programs can no longer read the calendar under this URL."),
            button=gettext("Revoke"),
        )


def not_found_as_404(view: Callable[Params, HttpResponse]) -> Callable[Params, HttpResponse]:
    """Answer 404 if a service refuses because the calendar was deleted or disconnected
    meanwhile.
    """

    @wraps(view)
    def answer(*args: Params.args, **kwargs: Params.kwargs) -> HttpResponse:
        try:
            return view(*args, **kwargs)
        except Refusal:
            raise Http404 from None

    return answer


def _next_sync_words(connection: Connection | None, now: datetime) -> str:
    """Return when the next sync is due; "" if a person must fix a problem first."""
    if connection is None or connection.next_at is None:
        return ""
    if connection.lease_token:
        # Translators: the next sync of a calendar is running.
        return gettext("running")
    # Translators: the next sync of a calendar waits for a worker.
    return moment_words(connection.next_at) if connection.next_at > now else gettext("queued")


def result_words(result: ConnectionTest) -> str:
    """Return the result of a successful test."""
    words = gettext("The calendar can be used. Access: %(access)s. Response time: %(seconds)s s.")
    seconds = number_format(result.seconds, decimal_pos=1)
    return words % {"access": ACCESS_WORDS[result.access], "seconds": seconds}
