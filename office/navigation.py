"""The sidebar: the pages that the account may open."""

import uuid
from collections.abc import Mapping
from functools import cache
from typing import Any

from django.conf import settings
from django.contrib.admin import site
from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from office.base.lazy_text import LazyText
from office.base.permissions import PagePermission
from office.base.registered_pages import registered_pages
from office.base.scope import scope_of
from office.notifications.mail_file_viewer import mails_are_files
from office.urls import PAGES

# Names of pages.
INDEX, SENT_MAILS = "index", "sent_mails"
BOOKINGS, DELIVERIES = "bookings_booking_changelist", "notifications_delivery_changelist"
CALENDARS, WEBHOOKS = "availability_calendar_changelist", "notifications_webhook_changelist"
BLOCK_TIME, AWAY = "calendar_block", "calendar_away"
CALENDAR_CLIENTS = "external_calendars_providerclient_changelist"
APPS, TEAM = "apps_config_app_changelist", "apps_config_membership_changelist"
SET_UP = _("Set-up")
# (heading, ((text, icon, page name, query), ...))
GROUPS: tuple[tuple[LazyText, tuple[Any, ...]], ...] = (
    (
        "",
        (
            (_("Today"), "today", INDEX),
            (_("Calendar"), "calendar_view_week", "calendar"),
            (_("Block time"), "event_busy", BLOCK_TIME),
            (pgettext_lazy("person", "Away"), "sick", AWAY),
            (_("Bookings"), "event_available", BOOKINGS, "?tab=upcoming"),
            (_("Customers"), "group", "bookings_appcustomer_changelist"),
            (_("Reports"), "bar_chart", "reports"),
            (_("Availability check"), "help", "why"),
        ),
    ),
    (
        _("Services and staff"),
        (
            (_("Resources"), "badge", "availability_resource_changelist"),
            (_("Schedules"), "schedule", "availability_schedule_changelist"),
            (_("Projects"), "web", "availability_project_changelist"),
            (_("Connected calendars"), "calendar_month", CALENDARS),
            (_("Events"), "event", "availability_event_changelist"),
        ),
    ),
    (
        _("Messages"),
        (
            (_("Deliveries"), "outgoing_mail", DELIVERIES),
            (_("Webhooks"), "webhook", WEBHOOKS),
            (_("E-mail templates"), "draft", "notifications_emailtemplate_changelist"),
            (_("Suppressed addresses"), "unsubscribe", "notifications_suppression_changelist"),
        ),
    ),
    (
        SET_UP,
        (
            (_("Apps"), "apps", APPS),
            (_("API keys"), "key", "apps_config_credential_changelist"),
            (_("Calendar clients"), "vpn_key", CALENDAR_CLIENTS),
            (_("Team"), "person_add", TEAM),
            (_("Security events"), "shield", "apps_config_securityevent_changelist"),
        ),
    ),
    (
        _("Platform"),
        (
            (_("Sent e-mails"), "inbox", SENT_MAILS),
            (_("Accounts"), "manage_accounts", "apps_config_account_changelist"),
            (_("Sessions"), "devices", "usersessions_usersession_changelist"),
        ),
    ),
)
# Everyday words for a page, which the search finds, too.
PAGE_KEYWORDS: Mapping[str, LazyText] = {
    "calendar": _("appointments week day month new booking"),
    BLOCK_TIME: _("lunch break closed away ill absence holiday meeting"),
    AWAY: _("ill sick absence leave vacation cancel all move"),
    BOOKINGS: _("appointments requests cancel reschedule"),
    "bookings_appcustomer_changelist": _("clients patients people export erase privacy"),
    "reports": _("statistics numbers utilisation no-shows cancellations figures charts"),
    "why": _("free times slots not available missing closed"),
    "availability_resource_changelist": _(
        "staff employees people rooms opening hours working time off vacation holidays pictures"
    ),
    "availability_schedule_changelist": _("shared opening hours working shifts"),
    "availability_project_changelist": _(
        "services appointment types booking page length duration questions payment reminders"
        " classes courses groups"
    ),
    CALENDARS: _("google outlook icloud caldav ical sync connect feed"),
    "availability_event_changelist": _("busy blocked time off"),
    DELIVERIES: _("sent e-mails emails reminders calls log failed"),
    WEBHOOKS: _("calls integration"),
    "notifications_emailtemplate_changelist": _("emails texts wording reminders confirmation"),
    "notifications_suppression_changelist": _("bounces unsubscribed emails"),
    APPS: _("settings reminders branding logo colour language e-mails emails"),
    "apps_config_credential_changelist": _("token secret widget password"),
    CALENDAR_CLIENTS: _("google microsoft outlook oauth client secret"),
    TEAM: _("members users colleagues staff invite invitations roles"),
    "apps_config_securityevent_changelist": _("audit log log-ins who exports history"),
    SENT_MAILS: _("emails outbox"),
    "apps_config_account_changelist": _("users password"),
}
# What the theme's template asks of each group and entry: Django finds a key much faster than its
# absence.
UNUSED = {"badge": None, "link_callback": None, "collapsible": False}


@cache
def _permissions() -> Mapping[str, PagePermission]:
    """Return name -> permission of the pages without a row: those of `office.urls`, and lists."""
    lists = {
        f"{page.opts.app_label}_{page.opts.model_name}_changelist": page.has_view_permission
        for page in registered_pages(site)
    }
    return {**lists, **{page.name: page.is_allowed for page in PAGES}}


def may_open(request: HttpRequest, page: str) -> bool:
    """Return whether the account has the permission that the page requires."""
    return page == INDEX or _permissions()[page](request)


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the groups in the theme's format."""
    only_app = only_app_id(request)
    groups = [
        {
            "title": title,
            "separator": bool(title),
            **UNUSED,
            "items": [
                {
                    "title": words if only_app or page != APPS else gettext("Apps and settings"),
                    "icon": icon,
                    "link": _page_link(page, only_app) + "".join(query),
                    "active": request.path == _page_link(page, only_app),
                    "keywords": str(PAGE_KEYWORDS.get(page, "")),
                    **UNUSED,
                }
                for words, icon, page, *query in items
                if may_open(request, page) and (page != SENT_MAILS or mails_are_files())
            ]
            + (_settings_of_only_app(only_app) if title is SET_UP else []),
        }
        for title, items in GROUPS
    ]
    return [group for group in groups if group["items"]]


def _page_link(page: str, only_app: uuid.UUID | None) -> str:
    """Return the page's URL; of the team, its app's page if there is a single app."""
    if page == TEAM and only_app:
        return reverse("admin:apps_config_membership_of", args=[only_app])
    return reverse(f"admin:{page}")


def _settings_of_only_app(app_id: uuid.UUID | None) -> list[dict[str, Any]]:
    """Return the link to the settings of the account's app, if there is a single one."""
    if app_id is None:
        return []
    link = reverse("admin:apps_config_app_change", args=[app_id])
    return [{"title": gettext("Settings"), "icon": "settings", "link": link, "keywords": ""}]


def only_app_id(request: HttpRequest) -> uuid.UUID | None:
    """Return the id of the account's app, if there is a single one that it may see."""
    if not may_open(request, APPS):
        return None
    scope = scope_of(request)
    apps = scope.apps().order_by().values_list("pk", flat=True)
    ids = list(apps[:2] if scope.is_staff else scope.roles)
    return ids[0] if len(ids) == 1 else None


def account_links(request: HttpRequest) -> list[dict[str, str]]:
    """Return the pages of the account's own menu, and the other cells, in the theme's format."""
    pages = [
        {"title": gettext("Security"), "link": reverse("mfa_index")},
        {"title": gettext("Sessions"), "link": reverse("account_sessions")},
        {"title": gettext("Keyboard shortcuts"), "link": "#office-keys"},
    ]
    cells = [
        {"title": name, "link": f"{address}/admin/"}
        for name, address in settings.CELLS
        if address != settings.PUBLIC_URL
    ]
    return pages + cells


def site_title(request: HttpRequest) -> str:
    return gettext("Scheduling")


def site_header(request: HttpRequest) -> str:
    return gettext("Scheduling and booking")


def stylesheet(request: HttpRequest) -> str:
    return static("office/office.css")


def words_script_url(request: HttpRequest) -> str:
    return static("office/words.js")


def theme_script_url(request: HttpRequest) -> str:
    return static("office/theme.js")


def keys_script_url(request: HttpRequest) -> str:
    return static("office/keys.js")


def favicon(request: HttpRequest) -> str:
    return static("office/favicon.svg")
