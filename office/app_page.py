"""An app in the back office: its settings as fields, its reminders, the way to all that is its."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from django import forms
from django.conf import settings as django_settings
from django.contrib import admin
from django.db import connection
from django.http import HttpRequest
from django.urls import URLPattern, path
from django.utils.html import format_html
from rest_framework import serializers
from unfold.widgets import (
    UnfoldAdminEmailInputWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from apps_config.models import App, AppNotification, Membership
from apps_config.office import RecordedAdmin, ServedAdmin
from apps_config.reminders import ReminderInline
from apps_config.scope import scope_of
from apps_config.serializers import EMAIL_SWITCHES, AppSettingsSerializer, SlugField
from apps_config.services import change_app, create_app
from office.archiving import may_archive, show_archiving
from scheduling.api.fields import OneLineField
from scheduling.api.instants import ZONES
from scheduling.api.languages import shipped_languages

SETTINGS = (
    "from_name",
    "from_email",
    "contact_name",
    "contact_email",
    "callback",
    "redirect_urls",
    "default_timezone",
    "language",
    "stale_calendars",
    "external_edits",
)
SWITCH = "send_emails"


def words_of(settings: Mapping[str, Any], name: str) -> str:
    """A setting as it stands in its field; nothing where clients have put something else there."""
    value = settings.get(name)
    if name == "redirect_urls":
        return "\n".join(map(str, value)) if isinstance(value, list) else ""
    return value if isinstance(value, str) else ""


def sends_emails(settings: Mapping[str, Any]) -> bool:
    return settings.get("disable_emails") is not True


def other_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What clients keep there for themselves."""
    known = {*SETTINGS, *EMAIL_SWITCHES}
    return {key: value for key, value in settings.items() if key not in known}


def zone_choices(kept: str) -> list[tuple[str, str]]:
    return _with_kept(
        [("", "UTC, as none is chosen"), *((name, name) for name in sorted(ZONES))], kept
    )


def language_choices(kept: str) -> list[tuple[str, str]]:
    """The languages that e-mails and pages are shipped in."""
    names = {code.lower(): name for code, name in django_settings.LANGUAGES}
    shipped = [(code, names.get(code.lower(), code)) for code in shipped_languages()]
    return _with_kept([("", "English (default)"), *shipped], kept)


def edits_choices(kept: str) -> list[tuple[str, str]]:
    """What becomes of a booking that its owner moves or removes in a connected calendar."""
    known = [
        ("", "Say so, as nothing is chosen"),
        (App.WARN, "Say so: the booking stays as it is"),
        (App.FOLLOW, "Follow: the booking is moved or cancelled too"),
    ]
    return _with_kept(known, kept)


def stale_choices(kept: str) -> list[tuple[str, str]]:
    choices = [
        ("", "Say so, and offer time by what is known, as none is chosen"),
        (App.WARN, "Say so, and offer time by what is known"),
        (App.BLOCK, "Offer no time of its resource"),
    ]
    return _with_kept(choices, kept)


# The settings that are chosen from a list, by what is kept.
CHOICES: Mapping[str, Callable[[str], list[tuple[str, str]]]] = {
    "default_timezone": zone_choices,
    "language": language_choices,
    "stale_calendars": stale_choices,
    "external_edits": edits_choices,
}


def _with_kept(choices: list[tuple[str, str]], kept: str) -> list[tuple[str, str]]:
    return choices if kept in dict(choices) else [*choices, (kept, f"{kept} (unknown here)")]


def line(label: str, help_text: str, widget: Any = UnfoldAdminTextInputWidget) -> forms.CharField:
    """A setting's field. What it showed comes back with the form: only what was changed is saved,
    and what a client changes meanwhile stays."""
    return forms.CharField(
        label=label,
        help_text=help_text,
        required=False,
        strip=True,
        widget=widget,
        show_hidden_initial=True,
    )


class AppForm(forms.ModelForm):
    send_emails = forms.BooleanField(
        label="Send e-mails",
        help_text="Off: customers and owners get no mail of bookings and reminders.",
        required=False,
        initial=True,
        widget=UnfoldBooleanSwitchWidget,
        show_hidden_initial=True,
    )
    from_name = line("Sender's name", "Stands as the sender of every mail. Empty: the app's name.")
    from_email = line(
        "Sender's address",
        "The mail server has to be allowed to send for it. Empty: the service's own address.",
        UnfoldAdminEmailInputWidget,
    )
    contact_name = line("Contact's name", "Whom customers can ask; stands in mails and on pages.")
    contact_email = line(
        "Contact's address", "Where answers to mails go.", UnfoldAdminEmailInputWidget
    )
    callback = line("Callback", "A http or https address that your own client reads from here.")
    redirect_urls = line(
        "Redirect addresses",
        "One per line. Where the links in mails may lead after an action; no others are followed.",
        UnfoldAdminTextareaWidget,
    )
    default_timezone = forms.ChoiceField(
        label="Time zone",
        help_text="On whose clock times are read that belong to no resource.",
        required=False,
        widget=UnfoldAdminSelectWidget,
        show_hidden_initial=True,
    )
    language = forms.ChoiceField(
        label="Language",
        help_text="Of mails and pages.",
        required=False,
        widget=UnfoldAdminSelectWidget,
        show_hidden_initial=True,
    )
    stale_calendars = forms.ChoiceField(
        label="Calendars out of step",
        help_text="What a connected calendar does of which nothing new has been known for too"
        " long.",
        required=False,
        widget=UnfoldAdminSelectWidget,
        show_hidden_initial=True,
    )
    external_edits = forms.ChoiceField(
        label="When it is moved or removed there",
        help_text="Of bookings that stand in a connected calendar. Customers are told of what is"
        " followed.",
        required=False,
        widget=UnfoldAdminSelectWidget,
        show_hidden_initial=True,
    )

    class Meta:
        model = App
        fields = ("slug", "name", "mode")
        help_texts = {
            "slug": "Names the app in addresses, for good: a to z, 0 to 9, hyphens, underscores.",
            "mode": "For good. A test app mails only its members.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        kept = self.instance.settings
        for name in SETTINGS:
            if name in self.fields:
                self.initial[name] = words_of(kept, name)
        self.initial[SWITCH] = sends_emails(kept)
        for name, choices in CHOICES.items():
            if name in self.fields:
                self.fields[name].choices = choices(words_of(kept, name))
        if "name" in self.fields:
            self.fields["name"].show_hidden_initial = True
        if "redirect_urls" in self.fields:
            self.fields["redirect_urls"].widget.attrs["rows"] = 4

    def clean_slug(self) -> str:
        return checked(SlugField(), self.cleaned_data["slug"])

    def clean_name(self) -> str:
        return checked(OneLineField(200), self.cleaned_data["name"])

    def clean(self) -> dict[str, Any]:
        """The settings as the API would check them."""
        given = super().clean()
        self.given_settings = self._changed_settings(given)
        serializer = AppSettingsSerializer(data=self.given_settings)
        if serializer.is_valid():
            self.given_settings = serializer.validated_data
        for name, faults in serializer.errors.items():
            field = SWITCH if name == "disable_emails" else name
            self.add_error(field if field in self.fields else None, in_lines(faults))
        return given

    def _changed_settings(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What was changed on this page; an emptied field takes the setting away."""
        found: dict[str, Any] = {}
        for name in self.changed_data:
            if name == SWITCH and SWITCH in given:
                found["disable_emails"] = not given[SWITCH]
            elif name == "redirect_urls" and name in given:
                lines = [text.strip() for text in given[name].splitlines()]
                found[name] = [text for text in lines if text] or None
            elif name in SETTINGS and name in given:
                found[name] = given[name] or None
        return found


def checked(field: serializers.Field, value: Any) -> Any:
    """The value, if a field of the API takes it. Raises forms.ValidationError."""
    try:
        return field.run_validation(value)
    except serializers.ValidationError as error:
        raise forms.ValidationError([str(fault) for fault in error.detail]) from error


def in_lines(faults: Any) -> list[str]:
    """Of a list's items: which line it is."""
    if not isinstance(faults, dict):
        return [str(fault) for fault in faults]
    return [f"Line {place + 1}: {fault}" for place, of_it in faults.items() for fault in of_it]


class AppReminderInline(ReminderInline):
    model = AppNotification


def shown_setting(name: str) -> Callable[..., str]:
    """A setting for who may look at it only."""

    @admin.display(description=AppForm.base_fields[name].label)
    def show(self: "AppAdmin", app: App) -> str:
        if name == SWITCH:
            return "yes" if sends_emails(app.settings) else "no"
        return words_of(app.settings, name)

    return show


@admin.register(App)
class AppAdmin(ServedAdmin, RecordedAdmin):
    app_paths = ("pk",)
    least = {"add": None, "change": Membership.EDITOR, "delete": None}
    form = AppForm
    list_display = ("name", "slug", "mode", "created_at", "archived_at")
    list_filter = ("mode",)
    search_fields = ("slug", "name")
    readonly_fields = ("id", "created_at", "updated_at", "archived_at", "others")
    inlines = (AppReminderInline,)
    change_form_outer_before_template = "office/app_links.html"
    fieldsets = (
        (None, {"fields": ("name", "slug", "mode")}),
        ("E-mails", {"fields": (SWITCH, *SETTINGS[:4])}),
        ("Addresses", {"fields": ("callback", "redirect_urls")}),
        ("Time and language", {"fields": ("default_timezone", "language")}),
        ("External calendars", {"fields": ("stale_calendars", "external_edits")}),
        (
            "Kept by clients",
            {"fields": ("others", "id", "created_at", "updated_at", "archived_at")},
        ),
    )

    @admin.display(description="Other settings")
    def others(self, app: App) -> str:
        text = json.dumps(other_settings(app.settings), ensure_ascii=False, indent=2)
        return format_html('<pre class="office-code">{}</pre>', text)

    def get_readonly_fields(self, request: HttpRequest, obj: App | None = None) -> tuple[str, ...]:
        """An app is live or test for good: its keys say which."""
        return (*self.readonly_fields, "slug", "mode") if obj else self.readonly_fields

    def get_fieldsets(self, request: HttpRequest, obj: App | None = None) -> Any:
        return super().get_fieldsets(request, obj) if obj else self.fieldsets[:-3]

    def get_inlines(self, request: HttpRequest, obj: App | None) -> Any:
        return self.inlines if obj else ()

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        archive = partial(show_archiving, self)
        own = path("<path:object_id>/archive/", wrap(archive), name="apps_config_app_archive")
        return [own, *super().get_urls()]

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        """A form is read and saved while nobody else changes the app."""
        app = super().get_object(request, object_id, from_field)
        if app and request.method == "POST" and connection.in_atomic_block:
            return App.objects.select_for_update(no_key=True).get(pk=app.pk)
        return app

    def save_model(self, request: HttpRequest, obj: App, form: Any, change: bool) -> None:
        """Through the services: what stands in the settings beside, stays."""
        if change:
            given: dict[str, Any] = {"settings": form.given_settings}
            if "name" in form.changed_data:
                given["name"] = obj.name
            saved = change_app(obj, given) if form.changed_data else App.objects.get(pk=obj.pk)
        else:
            saved = create_app(
                slug=obj.slug, name=obj.name, mode=obj.mode, settings=form.given_settings
            )
        obj.__dict__.update(saved.__dict__)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        scope = scope_of(request)
        owned = {str(app_id) for app_id in scope.ids(Membership.OWNER)}
        app = self.get_object(request, object_id)
        mine = {
            "may_own": scope.is_staff or object_id in owned,
            "may_archive": app is not None and may_archive(request, app),
        }
        return super().change_view(request, object_id, form_url, mine | (extra_context or {}))


for _name in (SWITCH, *SETTINGS):
    setattr(AppAdmin, _name, shown_setting(_name))
