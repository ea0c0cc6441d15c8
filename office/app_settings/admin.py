"""An app in the back office: settings, reminders and links."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.options import InlineModelAdmin
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.text import format_lazy
from django.utils.translation import gettext, pgettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminEmailInputWidget, UnfoldAdminSelectWidget

from access.invitations import invite_member
from apps_config.models import App, AppLogo, AppNotification, Credential, DarkLogo, Membership
from apps_config.public_limits import LIMITS, OPEN_PER_EMAIL, PER_ADDRESS, PER_APP, PER_EMAIL
from apps_config.serializers import EMAIL_SWITCHES, AppSerializer, AppSettingsSerializer, SlugField
from apps_config.services import archive_app, change_app, create_app, issue_key, store_logo
from booking_pages.views.hosted_project_page import bookable_projects
from bookings.pages.base import LINK_WORDS
from bookings.pages.branding import branding_of
from bookings.pages.formatting import activate_language_of
from common.api.fields import EmailField
from common.images import small_logo
from office.access.fresh_log_in import require_fresh_log_in
from office.access.members import ROLE_WORDS, with_file_hint
from office.base.api_forms import ApiForm, check_value, setting_paths
from office.base.event_notification_forms import EventNotificationInline
from office.base.form_fields import ImageFileField, SwitchField
from office.base.lazy_text import LazyText
from office.base.list_filters import ChoiceFilter
from office.base.model_admin import PARTS_FORM, ServiceBackedAdmin, without_field
from office.base.model_admin_pages import ExtraPage, keep_secret, kept_secret
from office.base.scope import is_allowed, scope_of
from office.base.setting_fields import names_of_part, setting_field, show_fields

# Parts of the page.
APP, TEAM, ADVANCED = _("App"), _("Team and key"), _("Advanced")
EMAILS, BRANDING, TIME = _("E-mails"), _("Branding"), _("Time and language")
CLIENT, WEB = _("Your own client"), _("Booking on the web")
DELIVERIES, CALENDARS = _("Deliveries"), _("External calendars")

setting = partial(setting_field, AppSettingsSerializer, "settings")


def limit_setting(kind: str, label: LazyText) -> Any:
    limit = LIMITS[kind]
    effect = (
        _(
            "More need a proof of work, which the booking page does by itself. Default: {default}."
            " 0: no limit."
        )
        if limit.is_lifted
        else _("More attempts are refused. Default: {default}. 0: no limit.")
    )
    return setting(kind, WEB, label, format_lazy(effect, default=limit.default))


# Setting -> what stores it.
LOGOS: Mapping[str, type[AppLogo | DarkLogo]] = {kind.setting: kind for kind in (AppLogo, DarkLogo)}


class AppForm(ApiForm):
    serializer_class = AppSerializer
    is_partial = True  # the form's own fields check what a new app must have

    send_emails = setting(
        "disable_emails",
        EMAILS,
        _("Send booking e-mails and reminders"),
        _(
            "To customers and owners. If off, nobody gets an e-mail about a booking; webhooks"
            " are still called. Default: on."
        ),
        is_inverted=True,
    )
    from_name = setting(
        "from_name",
        EMAILS,
        _("Sender's name"),
        _("The sender of every e-mail. Default: the app's name."),
    )
    from_email = setting(
        "from_email",
        EMAILS,
        _("Sender's address"),
        _(
            "E-mails are from this address if the operator allows its domain; otherwise they are"
            " from the address of the service, and replies go to this one. Default: the address of"
            " the service."
        ),
    )
    contact_name = setting(
        "contact_name",
        EMAILS,
        _("Contact's name"),
        _("The contact for customers, shown in e-mails and on pages. Default: none."),
    )
    contact_email = setting(
        "contact_email",
        EMAILS,
        _("Contact's address"),
        _("The reply address of e-mails. Default: the sender's address."),
    )

    accent_color = setting(
        "accent_color",
        BRANDING,
        _("Colour"),
        _(
            "Of buttons and links, such as #1f4f99. Pages darken or lighten it so that it can be"
            " read. Default: the colour of the service."
        ),
    )
    cover_text = setting(
        "cover_text", BRANDING, _("Text at the top"), _("Shown on booking pages. Default: none.")
    )
    address = setting(
        "address",
        BRANDING,
        _("Postal address"),
        _("At the bottom of pages and e-mails. Default: none."),
    )
    imprint_url = setting(
        "imprint_url",
        BRANDING,
        _("Imprint"),
        _("A link at the bottom of pages and e-mails. Default: none."),
    )
    privacy_url = setting(
        "privacy_url",
        BRANDING,
        _("Privacy notice"),
        _("A link at the bottom of pages and e-mails. Default: none."),
    )
    logo_file = ImageFileField(
        shrink=small_logo,
        label=_("Logo"),
        use=_("On pages and in e-mails. Default: none."),
    )
    removes_logo = SwitchField(
        label=_("Remove the logo"),
        help_text=_("Pages and e-mails show the app's name alone. Default: off."),
    )
    dark_logo_file = ImageFileField(
        shrink=small_logo,
        label=_("Logo for dark screens"),
        use=_("On pages in dark colours. Default: the logo above."),
    )
    removes_dark_logo = SwitchField(
        label=_("Remove the logo for dark screens"),
        help_text=_("Dark pages show the other logo. Default: off."),
    )

    default_timezone = setting(
        "default_timezone",
        TIME,
        _("Time zone"),
        _(
            "For times that belong to no resource. Type a city or an offset, such as Berlin"
            " or +1. Default: UTC."
        ),
    )
    language = setting(
        "language",
        TIME,
        _("Language"),
        _("The language of e-mails and pages. Default: English."),
        choices={"": _("English (default)")},
    )

    callback = setting(
        "callback",
        CLIENT,
        _("Callback"),
        _("An http or https URL for your own client. Default: none."),
    )
    redirect_urls = setting(
        "redirect_urls",
        CLIENT,
        _("Redirect URLs"),
        _(
            "One per line. Links in e-mails can redirect only to these URLs after an action."
            " Default: none."
        ),
    )

    publish_projects = setting(
        "publish_projects",
        WEB,
        _("Publish projects"),
        _(
            "Projects have a public booking page, unless a project's own setting says otherwise."
            " Default: on."
        ),
    )
    public_resources = setting(
        "public_resources",
        WEB,
        _("Book resources without a project"),
        _(
            "Widget keys that are not bound to projects may book resources that are in no project."
            " Default: off."
        ),
    )
    public_challenge = setting(
        "public_challenge",
        WEB,
        _("Proof of work"),
        _(
            "Slows down automated bookings. Other clients with public keys have to solve it"
            " too. Default: only above the limits."
        ),
        choices={
            "": _("Off (default)"),
            App.NO_CHALLENGE: _("Off"),
            App.ALTCHA: _("ALTCHA: the browser solves a short task"),
        },
    )
    blocked_customers = setting(
        "blocked_customers",
        WEB,
        _("Blocked customers"),
        _(
            "One e-mail address per line, which can't book on public pages; * stands for any text."
            " Default: none."
        ),
    )
    public_bookings_per_address_per_hour = limit_setting(
        PER_ADDRESS, _("Booking attempts per network address and hour")
    )
    public_bookings_per_email_per_day = limit_setting(
        PER_EMAIL, _("Bookings per e-mail address and day")
    )
    public_open_bookings_per_email = limit_setting(
        OPEN_PER_EMAIL, _("Upcoming bookings per e-mail address")
    )
    public_bookings_per_app_per_minute = limit_setting(
        PER_APP, _("Bookings of all customers per minute")
    )

    delivery_cap = setting(
        "delivery_cap",
        DELIVERIES,
        _("Simultaneous deliveries"),
        _(
            "How many e-mails, and how many webhook calls, are sent at once. Default:"
            " as many as the service allows."
        ),
    )

    stale_calendars = setting(
        "stale_calendars",
        CALENDARS,
        _("Calendars out of sync"),
        _(
            "What to do when a connected calendar has not synced for too long. Default: warn,"
            " but keep offering times."
        ),
        choices={
            "": _("Warn, but keep offering times (default)"),
            App.WARN: _("Warn, but keep offering times"),
            App.BLOCK: _("Stop offering the resource"),
        },
    )
    external_edits = setting(
        "external_edits",
        CALENDARS,
        _("Changes in the external calendar"),
        _(
            "What to do when the owner moves or removes a booking in the calendar. Customers"
            " get an e-mail about moved and cancelled bookings. Default: warn only."
        ),
        choices={
            "": _("Warn only (default)"),
            App.WARN: _("Warn only: the booking is unchanged"),
            App.FOLLOW: _("Follow: move or cancel the booking too"),
        },
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
    wants_key = SwitchField(
        label=_("Issue a server key"),
        help_text=_("The next page shows the key once. Default: off."),
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
        for name in self.fields.keys() & {"logo_file", "dark_logo_file"}:
            self.fields[name].show_hidden_initial = False

    def clean_slug(self) -> str:
        return check_value(SlugField(), self.cleaned_data["slug"])

    def clean_invited_email(self) -> str:
        return check_value(EmailField(allow_blank=True), self.cleaned_data["invited_email"])

    def _is_sent(self, name: str, value: Any) -> bool:
        """A new app, too, stores only what was entered."""
        return name in self.changed_data

    def add_path_faults(self, field: str | None, steps: list[str], faults: list[str]) -> None:
        """Name the line of a list."""
        if steps:
            words = gettext("Line %(number)s: %(fault)s")
            faults = [words % {"number": int(steps[0]) + 1, "fault": fault} for fault in faults]
        super().add_path_faults(field, [], faults)


def other_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that have no field."""
    paths = setting_paths(AppForm.base_fields).values()
    known = {*(path.partition(".")[2] for path in paths), *EMAIL_SWITCHES, *LOGOS}
    return {key: value for key, value in settings.items() if key not in known}


def save_logos(app: App, given: Mapping[str, Any]) -> App:
    """Store the logos that were chosen, or remove them."""
    for name, kind in LOGOS.items():
        logo = given.get(f"{name}_file")
        if logo or given.get(f"removes_{name}"):
            app = store_logo(app, logo or None, kind=kind)
    return app


def page_link_words(app: App) -> dict[str, str]:
    """Return the words of the links at the bottom of the booking page, in its language."""
    with activate_language_of(app):
        return {name: str(words) for name, words in LINK_WORDS.items()}


class AppReminderInline(EventNotificationInline):
    model = AppNotification


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
class AppAdmin(ServiceBackedAdmin[App]):
    """Apps. Mode is fixed: keys carry it."""

    app_paths = ("pk",)
    least = {"add": None, "change": Membership.EDITOR}
    never = frozenset({"delete"})
    fixed_fields = ("slug", "mode")
    form = AppForm
    change_form_template = PARTS_FORM
    list_display = ("name", "slug", "mode", "created_at", "archived_at")
    sortable_by = ("name", "created_at")
    list_filter = (ArchivedFilter, "mode")
    search_fields = ("slug", "name")
    readonly_fields = ("id", "created_at", "updated_at", "archived_at", "settings_of_api_clients")
    inlines = (AppReminderInline,)
    change_form_outer_before_template = "office/app_links.html"
    change_form_outer_after_template = "office/branding_preview.html"
    fieldsets: ClassVar[Any] = (
        (APP, {"fields": ("name", "slug", "mode")}),
        (EMAILS, {"fields": names_of_part(AppForm, EMAILS)}),
        (
            BRANDING,
            {
                "fields": (
                    *names_of_part(AppForm, BRANDING),
                    *("logo_file", "removes_logo", "dark_logo_file", "removes_dark_logo"),
                )
            },
        ),
        *(
            (part, {"fields": names_of_part(AppForm, part)})
            for part in (TIME, CLIENT, WEB, DELIVERIES, CALENDARS)
        ),
        (
            ADVANCED,
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
    add_fieldsets: ClassVar[Any] = (
        fieldsets[0],
        (TEAM, {"fields": ("invited_email", "invited_role", "wants_key")}),
        (EMAILS, {"fields": names_of_part(AppForm, EMAILS)}),
        (CLIENT, {"fields": names_of_part(AppForm, CLIENT)}),
    )
    parts = (
        *((APP, None), (EMAILS, None), (_("Reminders"), AppReminderInline), (BRANDING, None)),
        *((TIME, None), (WEB, None), (CALENDARS, None), (CLIENT, None), (DELIVERIES, None)),
        (ADVANCED, None),
    )

    class Media:
        css = {"all": ("office/forms.css",)}
        js = ("office/branding_preview.js",)

    def get_fieldsets(self, request: HttpRequest, obj: App | None = None) -> Any:
        fieldsets = super().get_fieldsets(request, obj)
        may_change = obj is not None and self.has_change_permission(request, obj)
        branding = branding_of(obj) if obj and may_change else None
        for name in LOGOS:
            if not getattr(branding, name, ""):
                fieldsets = without_field(fieldsets, f"removes_{name}")
        return fieldsets

    @admin.display(description=_("Logo"))
    def logo_file(self, app: App) -> str:
        return self._logo(branding_of(app).logo)

    @admin.display(description=_("Logo for dark screens"))
    def dark_logo_file(self, app: App) -> str:
        return self._logo(branding_of(app).dark_logo)

    def _logo(self, path: str) -> str:
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

    def has_archive_permission(self, request: HttpRequest, app: App | None = None) -> bool:
        """Return whether the app is open and the caller may archive it; without one, any app."""
        is_open = app is None or app.archived_at is None
        owner = self.app_id_of_row(app)
        return is_open and is_allowed(request, "apps_config.change_app", owner, Membership.OWNER)

    def archive(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask for confirmation; a POST archives. For owners and staff."""
        app = self.find(request, object_id)
        if not self.has_archive_permission(request, app):
            raise PermissionDenied
        if request.method == "POST":
            archive_app(app, now=timezone.now())
            self.log_change(request, app, "Archived.")
            messages.success(request, gettext("%(app)s is archived.") % {"app": app})
            return HttpResponseRedirect(reverse("admin:index"))
        return self.ask_confirmation(
            request,
            app,
            title=gettext("Archive this app?"),
            sentence=gettext(
                "The keys of %(app)s stop working, its booking pages are removed, and unsent"
                " e-mails and calls are skipped. The data stays. The back office can't undo this."
            )
            % {"app": app},
            button=gettext("Archive"),
        )

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
        if is_new:
            settings = form.given.get("settings", {})
            app = create_app(slug=row.slug, name=row.name, mode=row.mode, settings=settings)
            self._invite_member_and_issue_key(request, app, form.cleaned_data)
            return app
        app = change_app(row, form.given) if form.changed_data else App.objects.get(pk=row.pk)
        return save_logos(app, form.cleaned_data)

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


show_fields(AppAdmin, AppForm, setting_paths(AppForm.base_fields))
