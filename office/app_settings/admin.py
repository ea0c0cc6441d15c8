"""An app in the back office: settings, reminders and links."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.options import InlineModelAdmin
from django.db import connection
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.html import format_html
from django.utils.text import format_lazy
from django.utils.translation import gettext, pgettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _
from unfold.widgets import (
    UnfoldAdminEmailInputWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from access.invitations import invite_member
from apps_config.models import App, AppNotification, Credential, Membership
from apps_config.public_limits import (
    LIMITS,
    MAX_LIMIT,
    OPEN_PER_EMAIL,
    PER_ADDRESS,
    PER_APP,
    PER_EMAIL,
)
from apps_config.serializers import EMAIL_SWITCHES, AppSettingsSerializer, SlugField
from apps_config.services import change_app, create_app, issue_key, store_logo
from booking_pages.views.hosted_project_page import bookable_projects
from bookings.pages.base import LINK_WORDS
from bookings.pages.branding import branding_of
from bookings.pages.formatting import activate_language_of
from common.api.fields import EmailField, OneLineField
from common.images import small_logo
from common.time.zone_names import current_zone_name
from office.access.fresh_log_in import require_fresh_log_in
from office.access.members import ROLE_WORDS, with_file_hint
from office.app_settings.archive_app import ArchivingAdmin
from office.base.api_forms import CheckedForm, check_value, choice_field, switch_field
from office.base.event_notification_forms import EventNotificationInline
from office.base.form_fields import IMAGE_HINT, ImageFileField, ZoneField
from office.base.labels import language_names, sends_emails, yes_or_no
from office.base.lazy_text import LazyText
from office.base.model_admin import (
    ChoiceFilter,
    FormPartsAdmin,
    HistoryAdmin,
    ServiceBackedAdmin,
    without_field,
)
from office.base.model_admin_pages import ExtraPage, keep_secret, kept_secret
from office.base.scope import scope_of

PUBLIC_LIMITS = (PER_ADDRESS, PER_EMAIL, OPEN_PER_EMAIL, PER_APP)
NUMBERS = (*PUBLIC_LIMITS, "delivery_cap")
BRANDING = ("accent_color", "cover_text", "address", "imprint_url", "privacy_url")
SETTINGS = (
    "from_name",
    "from_email",
    "contact_name",
    "contact_email",
    "callback",
    "redirect_urls",
    "default_timezone",
    "language",
    *BRANDING,
    "stale_calendars",
    "external_edits",
    "public_challenge",
    "blocked_customers",
    *NUMBERS,
)
# One entry per line.
LISTS = ("redirect_urls", "blocked_customers")
SWITCH = "send_emails"
# Settings that are on or off, and what they are by default.
FLAGS = {"publish_projects": True, "public_resources": False}
# Parts of the form, as Django's fieldsets.
EMAIL_FIELDS: Any = (_("E-mails"), {"fields": (SWITCH, *SETTINGS[:4])})
CLIENT_FIELDS: Any = (_("Your own client"), {"fields": ("callback", "redirect_urls")})


def setting_text(settings: Mapping[str, Any], name: str) -> str:
    """Return a setting's text for its field; "" if clients have stored another type."""
    value = settings.get(name)
    if name == "default_timezone" and isinstance(value, str):
        return current_zone_name(value)
    if name in LISTS:
        return "\n".join(map(str, value)) if isinstance(value, list) else ""
    if name in NUMBERS:
        return str(value) if type(value) is int else ""
    return value if isinstance(value, str) else ""


def is_on(settings: Mapping[str, Any], name: str) -> bool:
    value = settings.get(name)
    return value if isinstance(value, bool) else FLAGS[name]


def other_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of clients' own."""
    known = {*SETTINGS, *FLAGS, *EMAIL_SWITCHES, "logo"}
    return {key: value for key, value in settings.items() if key not in known}


def language_choices(kept: str) -> list[tuple[str, str]]:
    """Return the languages of e-mails and pages."""
    return _with_stored([("", gettext("English (default)")), *language_names().items()], kept)


def edits_choices(kept: str) -> list[tuple[str, str]]:
    """Return the options for bookings that the owner moves or removes in a connected calendar."""
    known = [
        ("", gettext("Warn only (default)")),
        (App.WARN, gettext("Warn only: the booking is unchanged")),
        (App.FOLLOW, gettext("Follow: move or cancel the booking too")),
    ]
    return _with_stored(known, kept)


def stale_choices(kept: str) -> list[tuple[str, str]]:
    choices = [
        ("", gettext("Warn, but keep offering times (default)")),
        (App.WARN, gettext("Warn, but keep offering times")),
        (App.BLOCK, gettext("Stop offering the resource")),
    ]
    return _with_stored(choices, kept)


def challenge_choices(kept: str) -> list[tuple[str, str]]:
    choices = [
        ("", gettext("Off (default)")),
        ("off", gettext("Off")),
        ("altcha", gettext("ALTCHA: the browser solves a short task")),
    ]
    return _with_stored(choices, kept)


# Settings with choices; the function's parameter is the stored value.
CHOICES: Mapping[str, Callable[[str], list[tuple[str, str]]]] = {
    "language": language_choices,
    "stale_calendars": stale_choices,
    "external_edits": edits_choices,
    "public_challenge": challenge_choices,
}


def _with_stored(choices: list[tuple[str, str]], kept: str) -> list[tuple[str, str]]:
    unknown = (kept, gettext("%(value)s (unknown)") % {"value": kept})
    return choices if kept in dict(choices) else [*choices, unknown]


def text_field(
    label: LazyText,
    help_text: LazyText,
    widget: type[forms.Widget] = UnfoldAdminTextInputWidget,
) -> forms.CharField:
    """Return a setting's form field. The shown value returns with the form: only changes are saved,
    so concurrent changes by clients stay.
    """
    return forms.CharField(
        label=label,
        help_text=help_text,
        required=False,
        strip=True,
        widget=widget,
        show_hidden_initial=True,
    )


def limit_field(kind: str, label: LazyText) -> forms.IntegerField:
    limit = LIMITS[kind]
    effect = (
        _(
            "More need a proof of work, which the booking page does by itself. Default: {default}."
            " 0: no limit."
        )
        if limit.is_lifted
        else _("More attempts are refused. Default: {default}. 0: no limit.")
    )
    return forms.IntegerField(
        label=label,
        help_text=format_lazy(effect, default=limit.default),
        required=False,
        min_value=0,
        max_value=MAX_LIMIT,
        widget=UnfoldAdminIntegerFieldWidget,
        show_hidden_initial=True,
    )


class AppForm(CheckedForm, forms.ModelForm):
    field_of = {"disable_emails": SWITCH}

    send_emails = forms.BooleanField(
        label=_("Send booking e-mails and reminders"),
        help_text=_(
            "To customers and owners. If off, nobody gets an e-mail about a booking; webhooks"
            " are still called. Default: on."
        ),
        required=False,
        initial=True,
        widget=UnfoldBooleanSwitchWidget,
        show_hidden_initial=True,
    )
    from_name = text_field(
        _("Sender's name"), _("The sender of every e-mail. Default: the app's name.")
    )
    from_email = text_field(
        _("Sender's address"),
        _(
            "E-mails are from this address if the operator allows its domain; otherwise they are"
            " from the address of the service, and replies go to this one. Default: the address of"
            " the service."
        ),
        UnfoldAdminEmailInputWidget,
    )
    contact_name = text_field(
        _("Contact's name"),
        _("The contact for customers, shown in e-mails and on pages. Default: none."),
    )
    contact_email = text_field(
        _("Contact's address"),
        _("The reply address of e-mails. Default: the sender's address."),
        UnfoldAdminEmailInputWidget,
    )
    callback = text_field(
        _("Callback"), _("An http or https URL for your own client. Default: none.")
    )
    redirect_urls = text_field(
        _("Redirect URLs"),
        _(
            "One per line. Links in e-mails can redirect only to these URLs after an action."
            " Default: none."
        ),
        UnfoldAdminTextareaWidget,
    )
    default_timezone = ZoneField(
        label=_("Time zone"),
        help_text=_(
            "For times that belong to no resource. Type a city or an offset, such as Berlin"
            " or +1. Default: UTC."
        ),
        required=False,
        show_hidden_initial=True,
    )
    language = forms.ChoiceField(
        label=_("Language"),
        help_text=_("The language of e-mails and pages. Default: English."),
        required=False,
        widget=UnfoldAdminSelectWidget,
        show_hidden_initial=True,
    )
    stale_calendars = forms.ChoiceField(
        label=_("Calendars out of sync"),
        help_text=_(
            "What to do when a connected calendar has not synced for too long. Default: warn,"
            " but keep offering times."
        ),
        required=False,
        widget=UnfoldAdminSelectWidget,
        show_hidden_initial=True,
    )
    external_edits = forms.ChoiceField(
        label=_("Changes in the external calendar"),
        help_text=_(
            "What to do when the owner moves or removes a booking in the calendar. Customers"
            " get an e-mail about moved and cancelled bookings. Default: warn only."
        ),
        required=False,
        widget=UnfoldAdminSelectWidget,
        show_hidden_initial=True,
    )

    accent_color = text_field(
        _("Colour"),
        _(
            "Of buttons and links, such as #1f4f99. Pages darken or lighten it so that it can be"
            " read. Default: the colour of the service."
        ),
    )
    cover_text = text_field(
        _("Text at the top"),
        _("Shown on booking pages. Default: none."),
        UnfoldAdminTextareaWidget,
    )
    address = text_field(
        _("Postal address"),
        _("At the bottom of pages and e-mails. Default: none."),
        UnfoldAdminTextareaWidget,
    )
    imprint_url = text_field(
        _("Imprint"), _("A link at the bottom of pages and e-mails. Default: none.")
    )
    privacy_url = text_field(
        _("Privacy notice"), _("A link at the bottom of pages and e-mails. Default: none.")
    )
    logo_file = ImageFileField(
        shrink=small_logo,
        label=_("Logo"),
        help_text=format_lazy("{} {}", IMAGE_HINT, _("On pages and in e-mails. Default: none.")),
    )
    removes_logo = forms.BooleanField(
        label=_("Remove the logo"),
        help_text=_("Pages and e-mails show the app's name alone. Default: off."),
        required=False,
        widget=UnfoldBooleanSwitchWidget,
    )

    publish_projects = switch_field(
        _("Publish projects"),
        _(
            "Projects have a public booking page, unless a project's own setting says otherwise."
            " Default: on."
        ),
    )
    public_resources = switch_field(
        _("Book resources without a project"),
        _(
            "Widget keys that are not bound to projects may book resources that are in no project."
            " Default: off."
        ),
    )
    public_challenge = forms.ChoiceField(
        label=_("Proof of work"),
        help_text=_(
            "Slows down automated bookings. Other clients with public keys have to solve it"
            " too. Default: only above the limits."
        ),
        required=False,
        widget=UnfoldAdminSelectWidget,
        show_hidden_initial=True,
    )
    blocked_customers = text_field(
        _("Blocked customers"),
        _(
            "One e-mail address per line, which can't book on public pages; * stands for any text."
            " Default: none."
        ),
        UnfoldAdminTextareaWidget,
    )
    public_bookings_per_address_per_hour = limit_field(
        PER_ADDRESS, _("Booking attempts per network address and hour")
    )
    public_bookings_per_email_per_day = limit_field(
        PER_EMAIL, _("Bookings per e-mail address and day")
    )
    public_open_bookings_per_email = limit_field(
        OPEN_PER_EMAIL, _("Upcoming bookings per e-mail address")
    )
    public_bookings_per_app_per_minute = limit_field(
        PER_APP, _("Bookings of all customers per minute")
    )
    delivery_cap = forms.IntegerField(
        label=_("Simultaneous deliveries"),
        help_text=_(
            "How many e-mails, and how many webhook calls, are sent at once. Default:"
            " as many as the service allows."
        ),
        required=False,
        widget=UnfoldAdminIntegerFieldWidget,
        show_hidden_initial=True,
    )

    # Only for a new app.
    invited_email = forms.EmailField(
        label=_("Invite a team member"),
        help_text=_("They get an e-mail with a link. Default: nobody."),
        max_length=254,
        required=False,
        widget=UnfoldAdminEmailInputWidget,
    )
    invited_role = forms.ChoiceField(
        label=_("Their role"),
        help_text=_("Default: viewer, who sees everything and changes nothing."),
        choices=list(ROLE_WORDS.items()),
        required=False,
        initial=Membership.VIEWER,
        widget=UnfoldAdminSelectWidget,
    )
    wants_key = forms.BooleanField(
        label=_("Issue a server key"),
        help_text=_("The next page shows the key once. Default: off."),
        required=False,
        widget=UnfoldBooleanSwitchWidget,
    )

    class Meta:
        model = App
        fields = ("slug", "name", "mode")
        help_texts = {
            "slug": _(
                "Used in URLs. Can't be changed later. a to z, 0 to 9, hyphens, underscores."
            ),
            "mode": _(
                "Can't be changed. A test app sends e-mails only to its members. Default: live."
            ),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        kept = self.instance.settings
        for name in SETTINGS:
            if name in self.fields:
                self.initial[name] = setting_text(kept, name)
        self.initial[SWITCH] = kept.get("disable_emails") is not True
        self.initial.update({name: is_on(kept, name) for name in FLAGS})
        for name, choices in CHOICES.items():
            if name in self.fields:
                choice_field(self, name).choices = choices(setting_text(kept, name))
        if "name" in self.fields:
            self.fields["name"].show_hidden_initial = True
        for name in self.fields.keys() & set(LISTS):
            self.fields[name].widget.attrs["rows"] = 4

    def clean_slug(self) -> str:
        return check_value(SlugField(), self.cleaned_data["slug"])

    def clean_name(self) -> str:
        return check_value(OneLineField(200), self.cleaned_data["name"])

    def clean_invited_email(self) -> str:
        return check_value(EmailField(allow_blank=True), self.cleaned_data["invited_email"])

    def clean(self) -> dict[str, Any]:
        """Check the settings with the API's serializer."""
        super().clean()
        given = self.cleaned_data
        self.check(AppSettingsSerializer(data=self._changed_settings(given)))
        return given

    def sentences(self, faults: Any) -> list[str]:
        """Return error texts; for a list with the line number."""
        if not isinstance(faults, dict):
            return [str(fault) for fault in faults]
        words = gettext("Line %(number)s: %(fault)s")
        return [
            words % {"number": place + 1, "fault": fault}
            for place, field_faults in faults.items()
            for fault in field_faults
        ]

    def _changed_settings(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the changed settings; an emptied field removes its setting."""
        changed: dict[str, Any] = {}
        for name in self.changed_data:
            if name == SWITCH and SWITCH in given:
                changed["disable_emails"] = not given[SWITCH]
            elif name in LISTS and name in given:
                lines = [text.strip() for text in given[name].splitlines()]
                changed[name] = [text for text in lines if text] or None
            elif name in (*FLAGS, *NUMBERS) and name in given:
                changed[name] = given[name]
            elif name in SETTINGS and name in given:
                changed[name] = given[name] or None
        return changed


def save_logo(app: App, given: Mapping[str, Any]) -> App:
    """Store the logo that was chosen, or remove it."""
    if logo := given.get("logo_file"):
        return store_logo(app, logo)
    return store_logo(app, None) if given.get("removes_logo") else app


def page_link_words(app: App) -> dict[str, str]:
    """Return the words of the links at the bottom of the booking page, in its language."""
    with activate_language_of(app):
        return {name: str(words) for name, words in LINK_WORDS.items()}


class AppReminderInline(EventNotificationInline):
    model = AppNotification


def shown_setting(name: str) -> Callable[..., str]:
    """Return the display function of a setting, for accounts that may not change it."""

    @admin.display(description=AppForm.base_fields[name].label)
    def show(self: "AppAdmin", app: App) -> str:
        if name == SWITCH:
            return yes_or_no(sends_emails(app))
        if name in FLAGS:
            return yes_or_no(is_on(app.settings, name))
        return setting_text(app.settings, name)

    return show


class ArchivedFilter(ChoiceFilter):
    """Leaves out archived apps, unless they are asked for."""

    title = _("archived")
    parameter_name = "archived"
    all_option = ("", _("Not archived"))
    options = (("only", _("Archived")), ("all", pgettext_lazy("apps", "All")))

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet[App]:
        if self.value() == "all":
            return queryset
        return queryset.filter(archived_at__isnull=self.value() != "only")


@admin.register(App)
class AppAdmin(ServiceBackedAdmin[App], HistoryAdmin[App], FormPartsAdmin[App], ArchivingAdmin):
    """Apps. Mode is fixed: keys carry it."""

    app_paths = ("pk",)
    least = {"add": None, "change": Membership.EDITOR}
    never = frozenset({"delete"})
    fixed_fields = ("slug", "mode")
    form = AppForm
    list_display = ("name", "slug", "mode", "created_at", "archived_at")
    sortable_by = ("name", "created_at")
    list_filter = (ArchivedFilter, "mode")
    search_fields = ("slug", "name")
    readonly_fields = ("id", "created_at", "updated_at", "archived_at", "settings_of_api_clients")
    inlines = (AppReminderInline,)
    change_form_outer_before_template = "office/app_links.html"
    change_form_outer_after_template = "office/branding_preview.html"
    fieldsets = (
        (_("App"), {"fields": ("name", "slug", "mode")}),
        EMAIL_FIELDS,
        (_("Branding"), {"fields": (*BRANDING, "logo_file", "removes_logo")}),
        (_("Time and language"), {"fields": ("default_timezone", "language")}),
        CLIENT_FIELDS,
        (
            _("Booking on the web"),
            {"fields": (*FLAGS, "public_challenge", "blocked_customers", *PUBLIC_LIMITS)},
        ),
        (_("Deliveries"), {"fields": ("delivery_cap",)}),
        (_("External calendars"), {"fields": ("stale_calendars", "external_edits")}),
        (
            _("Advanced"),
            {
                "classes": ("collapse",),
                "fields": (
                    "settings_of_api_clients",
                    "id",
                    "created_at",
                    "updated_at",
                    "archived_at",
                ),
            },
        ),
    )
    add_fieldsets = (
        *fieldsets[:1],
        (_("Team and key"), {"fields": ("invited_email", "invited_role", "wants_key")}),
        EMAIL_FIELDS,
        CLIENT_FIELDS,
    )

    parts = (
        *((_("App"), None), (_("E-mails"), None), (_("Reminders"), AppReminderInline)),
        *((_("Branding"), None), (_("Time and language"), None), (_("Booking on the web"), None)),
        *((_("External calendars"), None), (_("Your own client"), None), (_("Deliveries"), None)),
        (_("Advanced"), None),
    )

    class Media:
        css = {"all": ("office/forms.css",)}
        js = ("office/branding_preview.js",)

    def get_fieldsets(self, request: HttpRequest, obj: App | None = None) -> Any:
        fieldsets = super().get_fieldsets(request, obj)
        may_remove = obj and branding_of(obj).logo and self.has_change_permission(request, obj)
        return fieldsets if may_remove else without_field(fieldsets, "removes_logo")

    @admin.display(description=_("Logo"))
    def logo_file(self, app: App) -> str:
        path = branding_of(app).logo
        return (
            format_html('<img src="{}" alt="" height="40">', path)
            if path
            else pgettext("instead of a picture", "none")
        )

    @admin.display(description=_("Custom settings (API)"))
    def settings_of_api_clients(self, app: App) -> str:
        text = json.dumps(other_settings(app.settings), ensure_ascii=False, indent=2)
        return format_html('<pre class="office-code">{}</pre>', text)

    def get_inlines(
        self, request: HttpRequest, obj: App | None
    ) -> tuple[type[InlineModelAdmin], ...]:
        return self.inlines if obj else ()

    def extra_pages(self) -> Iterable[ExtraPage]:
        return [ExtraPage("<path:object_id>/archive/", self.archive, "archive", "archive")]

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> App | None:
        """Lock the app while its form is processed."""
        app = super().get_object(request, object_id, from_field)
        if app and request.method == "POST" and connection.in_atomic_block:
            return App.objects.select_for_update(no_key=True).get(pk=app.pk)
        return app

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """A new app can have a first key and member."""
        if self.has_add_permission(request):
            require_fresh_log_in(request)
        return super().add_view(request, form_url, extra_context)

    def save_row(self, request: HttpRequest, row: App, form: AppForm, *, is_new: bool) -> App:
        """Save the changed settings; other settings stay."""
        settings = dict(form.given)
        if is_new:
            app = create_app(slug=row.slug, name=row.name, mode=row.mode, settings=settings)
            self._invite_member_and_issue_key(request, app, form.cleaned_data)
            return app
        given: dict[str, Any] = {"settings": settings}
        if "name" in form.changed_data:
            given["name"] = row.name
        app = change_app(row, given) if form.changed_data else App.objects.get(pk=row.pk)
        return save_logo(app, form.cleaned_data)

    def _invite_member_and_issue_key(
        self, request: HttpRequest, app: App, given: Mapping[str, Any]
    ) -> None:
        """Invite the first member of a new app, and issue its first key, as the form says."""
        if email := given.get("invited_email"):
            role = given.get("invited_role") or Membership.VIEWER
            invitation = invite_member(app=app, email=email, role=role, now=timezone.now())
            sentence = gettext("Invitation sent to %(email)s.") % {"email": invitation.email}
            messages.success(request, with_file_hint(request, sentence))
        if given.get("wants_key"):
            _, text = issue_key(Credential.SERVER, mode=app.mode, app=app)
            keep_secret(request, text)

    def response_add(
        self, request: HttpRequest, obj: App, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Show the app's first key, which appears in this answer only."""
        text = kept_secret(request)
        if not text:
            return super().response_add(request, obj, post_url_continue)
        return self.show_secret(
            request,
            title=gettext("The new key"),
            heading=gettext("Server key of %(owner)s") % {"owner": obj},
            secret=text,
            back=self.url_of(obj),
        )

    def response_post_save_change(self, request: HttpRequest, obj: App) -> HttpResponseRedirect:
        """Stay on the page: members of one app open it as their settings."""
        return HttpResponseRedirect(self.url_of(obj))

    def get_prepopulated_fields(
        self, request: HttpRequest, obj: App | None = None
    ) -> dict[str, Sequence[str]]:
        return {} if obj else {"slug": ("name",)}

    def page_values(self, request: HttpRequest, object_id: str | None) -> dict[str, Any]:
        if object_id is None:
            return {}
        scope = scope_of(request)
        owned = {str(app_id) for app_id in scope.ids(Membership.OWNER)}
        app = self.get_object(request, object_id)
        # A project's page has buttons and days in the accent colour; the app's list has none.
        project = next(iter(bookable_projects(app)), None) if app else None
        return {
            "may_own": scope.is_staff or object_id in owned,
            "may_archive": app is not None and self.has_archive_permission(request, app),
            "preview_address": f"/book/{project.slug}" if project else "",
            "link_words": page_link_words(app) if app else {},
        }


for _name in (SWITCH, *SETTINGS, *FLAGS):
    setattr(AppAdmin, _name, shown_setting(_name))
