"""Calendars in the back office: how those stand that are kept elsewhere, and what can be done."""

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.views.decorators.http import require_POST
from unfold.contrib.filters.admin import DropdownFilter
from unfold.decorators import action, display

from apps_config.days import moment_words
from apps_config.models import Membership
from apps_config.office import OfficeAdmin, ServedAdmin, refusal_words
from apps_config.scope import is_allowed
from availability.models import Calendar
from availability.serializers.resources import CalendarSerializer
from availability.services import CALENDAR_TEXTS, change_calendar, create_calendar
from external_calendars.feeds import feed_url, make_feed, revoke_feed
from external_calendars.models import Connection
from external_calendars.providers import PROVIDERS
from external_calendars.services import Verdict, choose_primary, disconnect, look_now, try_out
from office.asking import ask_first, find_to_change
from office.calendar_access import ADD, is_writable_kind, show_connect, show_reconnect
from office.calendar_states import (
    DELETED,
    FIRST_LOOK,
    STATES,
    TROUBLE,
    need_somebody,
    problem_words,
    progress_words,
    provider_words,
    with_state,
)
from office.reach import resources_in_reach
from office.shown_once import show_secret
from office.unread import tell_unread, unread_words
from scheduling.api.errors import Refusal

ACCESS_WORDS = {"": "not known yet", "reader": "reading only", "writer": "reading and writing"}


class CalendarForm(forms.ModelForm):
    """As the API takes it. What a field showed comes back with it: only changes are saved."""

    class Meta:
        model = Calendar
        fields = ("resource", *CALENDAR_TEXTS)
        labels = {"backgroundcolor": "Background colour", "foregroundcolor": "Text colour"}
        help_texts = {"backgroundcolor": "For clients that draw it, such as #1f6feb."}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in CALENDAR_TEXTS:
            if name in self.fields:
                self.fields[name].show_hidden_initial = True

    def clean(self) -> dict[str, Any]:
        given = super().clean()
        body = {name: given[name] for name in CALENDAR_TEXTS if name in given}
        if not self.instance._state.adding:
            body = {name: value for name, value in body.items() if name in self.changed_data}
        if "description" in body:
            body["description"] = body["description"].replace("\r\n", "\n")
        serializer = CalendarSerializer(data=body)
        self.given = serializer.validated_data if serializer.is_valid() else {}
        for name, found in serializer.errors.items():
            if name not in self.errors:
                self.add_error(name, [str(one) for one in found])
        return given


class ProviderFilter(DropdownFilter):
    title = "kept at"
    parameter_name = "provider"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, provider_words(name)) for name in (Calendar.SERVICE, *PROVIDERS)]

    def queryset(self, request: HttpRequest, calendars: Any) -> Any:
        return calendars.filter(provider=self.value()) if self.value() else calendars


class StateFilter(DropdownFilter):
    """By how it stands; `trouble`: whatever needs somebody, as today's page counts it."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(TROUBLE, "needs somebody"), *((name, one[0]) for name, one in STATES.items())]

    def queryset(self, request: HttpRequest, calendars: Any) -> Any:
        state = self.value()
        if state == TROUBLE:
            return need_somebody(calendars, timezone.now())
        return calendars.filter(state=state) if state in STATES else calendars


@admin.register(Calendar)
class CalendarAdmin(ServedAdmin, OfficeAdmin):
    app_paths = ("resource__app",)
    form = CalendarForm
    list_display = ("name", "resource", "kept_at", "shown_state", "in_step", "problem")
    list_filter = (StateFilter, ProviderFilter)
    list_select_related = ("resource", "connection")
    search_fields = ("name", "resource__name", "resource__email")
    ordering = ("-id",)
    sortable_by = ()
    autocomplete_fields = ("resource",)
    readonly_fields = ("id", "created_at", "updated_at", "deleted_at")
    fieldsets = (
        (None, {"fields": ("resource", *CALENDAR_TEXTS)}),
        ("About it", {"fields": readonly_fields}),
    )
    add_fieldsets = ((None, {"fields": ("resource", *CALENDAR_TEXTS)}),)
    change_form_outer_before_template = "office/calendar_state.html"
    actions = None
    actions_list = ("open_connect",)

    class Media:
        js = ("office/standing.js",)

    # --- the list ---------------------------------------------------------------------------------
    @display(description="kept at")
    def kept_at(self, calendar: Calendar) -> str:
        return provider_words(calendar.provider)

    @display(description="state", label=dict(STATES.values()))
    def shown_state(self, calendar: Calendar) -> str:
        return STATES[calendar.state][0]

    @display(description="last in step")
    def in_step(self, calendar: Calendar) -> str:
        return moment_words(calendar.synced_at) if calendar.synced_at else ""

    @display(description="problem")
    def problem(self, calendar: Calendar) -> str:
        connection = getattr(calendar, "connection", None)
        return problem_words(connection) or unread_words(connection.unread if connection else 0)

    @action(description="Connect a calendar…", url_path="new-connection", permissions=["connect"])
    def open_connect(self, request: HttpRequest) -> HttpResponse:
        return redirect("admin:availability_calendar_connect")

    # --- rights -----------------------------------------------------------------------------------
    def has_connect_permission(self, request: HttpRequest, *args: Any) -> bool:
        return is_allowed(request, ADD, None)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """What is deleted stays as it was."""
        return not (obj and obj.deleted_at) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return (*self.readonly_fields, "resource") if obj else self.readonly_fields

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "resource":
            kwargs["queryset"] = resources_in_reach(request, least=Membership.EDITOR)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    # --- saving -----------------------------------------------------------------------------------
    def save_model(self, request: HttpRequest, obj: Calendar, form: Any, change: bool) -> None:
        """Through the services: a worker writes the other columns of a connected one."""
        if not change:
            saved = create_calendar(resource=form.cleaned_data["resource"], given=form.given)
            obj.__dict__.update(saved.__dict__)
        elif form.given:
            change_calendar(obj, form.given)

    # --- its page ---------------------------------------------------------------------------------
    def get_queryset(self, request: HttpRequest) -> Any:
        rows = super().get_queryset(request).select_related("resource__app", "connection", "feed")
        return with_state(rows, timezone.now())

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        calendar = self.get_object(request, object_id) if object_id else None
        own = self._standing(request, calendar) if calendar else {}
        return super().changeform_view(request, object_id, form_url, own | (extra_context or {}))

    def _standing(self, request: HttpRequest, calendar: Calendar) -> dict[str, Any]:
        """How it stands, in words."""
        connection = getattr(calendar, "connection", None)
        state = calendar.state
        words, colour = STATES[state]
        progress = connection and connection.progress_record()
        is_feed = not is_writable_kind(calendar)

        def moment(at: Any) -> str:
            return moment_words(at) if at else ""

        return {
            "may_lead": self.has_change_permission(request, calendar),
            "is_gone": state == DELETED,
            "state": words,
            "colour": colour,
            "connection": connection,
            "provider": provider_words(calendar.provider),
            "access": ACCESS_WORDS[calendar.provider_access],
            "in_step": moment(calendar.synced_at),
            "problem": problem_words(connection),
            "problem_since": moment(connection and connection.problem_since),
            "next_look": _next_look_words(connection, timezone.now(), moment),
            "is_live": bool(connection and connection.lease_token) or state == FIRST_LOOK,
            "progress": progress,
            "progress_words": progress_words(connection),
            "is_feed": is_feed,
            "unread": connection and tell_unread(connection, is_feed=is_feed),
            "feed_since": moment(getattr(calendar, "feed", None) and calendar.feed.created_at),
        }

    # --- what is done with it ---------------------------------------------------------------------
    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        own = [
            (f"<path:object_id>/{address}/", view, address.replace("-", "_"))
            for address, view in {
                "reconnect": self.reconnect,
                "try": self.try_out,
                "look": self.look,
                "primary": self.primary,
                "disconnect": self.disconnect,
                "feed": self.feed,
                "revoke-feed": self.revoke_feed,
            }.items()
        ]
        own = [("connect/", self.connect, "connect"), *own]
        return [
            *(
                path(at, wrap(or_not_found(view)), name=f"availability_calendar_{name}")
                for at, view, name in own
            ),
            *super().get_urls(),
        ]

    def connect(self, request: HttpRequest) -> HttpResponse:
        """The form of a new one."""
        return show_connect(self, request)

    def reconnect(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The form to reach it otherwise."""
        return show_reconnect(self, request, self.find_connected(request, object_id))

    def try_out(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask its server now, and say how that went; a POST."""
        return _try_out(request, self, object_id)

    def look(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Put it in line for a worker; a POST."""
        return _look(request, self, object_id)

    def primary(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Whether bookings are written to it: `primary` is yes or no; a POST."""
        return _choose_primary(request, self, object_id)

    def disconnect(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Asks; a POST does it."""
        calendar = self.find_connected(request, object_id)
        if request.method == "POST":
            at = calendar.provider_id
            disconnect(calendar, now=timezone.now())
            self.log_change(request, calendar, f"Disconnected from {at}.")
            messages.success(request, f"“{calendar.name}” is kept here now.")
            return self.back_to(calendar)
        return self._ask(
            request,
            calendar,
            title=f"Disconnect “{calendar.name}”?",
            sentence="What was read there goes, and takes no time here any more; how it is reached"
            " is forgotten, and its feed ends. Bookings stay, and so does what was written there.",
            button="Disconnect it",
        )

    def feed(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Asks, where there is one already; a POST makes its address, shown once."""
        calendar = find_to_change(self, request, object_id)
        is_new = not hasattr(calendar, "feed")
        if request.method != "POST":
            return self._ask(
                request,
                calendar,
                title="Make a new address?" if not is_new else "Give it a feed?",
                sentence="Any calendar program reads it there, without logging in. The address is"
                " shown once." + ("" if is_new else " The one that there is ends."),
                button="Make the address",
            )
        token = make_feed(calendar, now=timezone.now())
        self.log_change(request, calendar, "Given a feed." if is_new else "Given another feed.")
        return show_secret(
            self,
            request,
            title="The feed's address",
            heading=f"The feed of “{calendar.name}”",
            label="Address",
            secret=feed_url(calendar, token),
            back=_page_of(calendar),
        )

    def revoke_feed(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Asks; a POST does it."""
        calendar = find_to_change(self, request, object_id)
        if not hasattr(calendar, "feed"):
            raise Http404
        if request.method == "POST":
            revoke_feed(calendar)
            self.log_change(request, calendar, "Its feed was revoked.")
            messages.success(request, "Its feed is not found any more.")
            return self.back_to(calendar)
        return self._ask(
            request,
            calendar,
            title="Revoke the feed?",
            sentence="Programs that read the calendar under its address find nothing there any"
            " more.",
            button="Revoke it",
        )

    def find_connected(self, request: HttpRequest, object_id: str) -> Calendar:
        """As `find_to_change`; Http404 also for a calendar that is kept here."""
        calendar = find_to_change(self, request, object_id)
        if not hasattr(calendar, "connection"):
            raise Http404
        return calendar

    def back_to(self, calendar: Calendar) -> HttpResponse:
        return HttpResponseRedirect(_page_of(calendar))

    def _ask(self, request: HttpRequest, calendar: Calendar, **words: str) -> HttpResponse:
        return ask_first(self, request, calendar, back=_page_of(calendar), **words)


def or_not_found(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """What a service refuses because somebody was quicker is not there any more."""

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except Refusal:
            raise Http404 from None

    return answer


def _next_look_words(
    connection: Connection | None, now: datetime, moment: Callable[[Any], str]
) -> str:
    """When a worker looks there next; "" where nobody does until a person has mended it."""
    if connection is None or connection.is_stopped:
        return ""
    if connection.lease_token:
        return "under way"
    return moment(connection.next_at) if connection.next_at > now else "waits for its turn"


def _page_of(calendar: Calendar) -> str:
    return reverse("admin:availability_calendar_change", args=[calendar.pk])


@require_POST
def _try_out(request: HttpRequest, page: CalendarAdmin, object_id: str) -> HttpResponse:
    calendar = page.find_connected(request, object_id)
    verdict = try_out(calendar)
    if verdict.trouble:
        messages.error(request, verdict.text)
    else:
        messages.success(request, f"{verdict.text} {_of_verdict(verdict)}")
    return page.back_to(calendar)


def _of_verdict(verdict: Verdict) -> str:
    may = "It may be read and written to" if verdict.access == Calendar.WRITER else "It may be read"
    return f"{may}; its server took {verdict.seconds:.1f} s."


@require_POST
def _look(request: HttpRequest, page: CalendarAdmin, object_id: str) -> HttpResponse:
    calendar = page.find_connected(request, object_id)
    look_now(calendar, now=timezone.now())
    messages.success(request, "It is being looked at. Its page shows how that goes.")
    return page.back_to(calendar)


@require_POST
def _choose_primary(request: HttpRequest, page: CalendarAdmin, object_id: str) -> HttpResponse:
    calendar = page.find_connected(request, object_id)
    is_primary = request.POST.get("primary") == "yes"
    try:
        choose_primary(calendar, is_primary, now=timezone.now())
    except Refusal as refusal:
        messages.error(request, refusal_words(refusal))
        return page.back_to(calendar)
    of_it = f"Bookings of {calendar.resource.name} are"
    words = f"{of_it} written to it." if is_primary else f"{of_it} not written to it any more."
    page.log_change(request, calendar, "Made the primary one." if is_primary else "Not primary.")
    messages.success(request, words)
    return page.back_to(calendar)
