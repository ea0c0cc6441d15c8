"""Who logged in, and who changed keys and members: read-only, for an app's owners and staff."""

from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.contrib.admin.utils import label_for_field
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from apps_config.models import Account, Credential, Membership, SecurityEvent
from apps_config.security_events import COMMAND
from office.access.account_pages import name_browser
from office.access.keys import KEY_NAMES
from office.access.members import role_name
from office.base.dates import moment_words
from office.base.labels import LabelledWords
from office.base.lazy_text import LazyText
from office.base.list_filters import AppFilter, ChoiceFilter, DaysFilter
from office.base.model_admin import ALL_EDITS, OfficeAdmin
from office.base.scope import scope_of

KIND_WORDS: Mapping[str, LazyText] = {
    SecurityEvent.LOG_IN: _("Logged in"),
    SecurityEvent.LOG_IN_FAILED: _("Wrong password or code"),
    SecurityEvent.LOG_IN_LOCKED: _("Log-in locked"),
    SecurityEvent.LOG_OUT: _("Logged out"),
    SecurityEvent.SESSIONS_ENDED: _("Sessions ended"),
    SecurityEvent.TOKEN_MADE: _("Access token created"),
    SecurityEvent.TOKENS_ENDED: _("Access tokens ended"),
    SecurityEvent.PASSWORD_CHANGED: _("Password changed"),
    SecurityEvent.PASSWORD_LINK_MADE: _("Password link created"),
    SecurityEvent.SECOND_FACTOR_ADDED: _("Second factor added"),
    SecurityEvent.SECOND_FACTOR_REMOVED: _("Second factor removed"),
    SecurityEvent.KEY_MADE: _("Key created"),
    SecurityEvent.KEY_REVOKED: _("Key revoked"),
    SecurityEvent.MEMBER_INVITED: _("Member invited"),
    SecurityEvent.INVITATION_REVOKED: _("Invitation revoked"),
    SecurityEvent.MEMBER_ADDED: _("Member added"),
    SecurityEvent.MEMBER_CHANGED: _("Role changed"),
    SecurityEvent.MEMBER_REMOVED: _("Member removed"),
    SecurityEvent.OWNER_ADDED: _("Owner added"),
    SecurityEvent.STAFF_ADDED: _("Platform staff added"),
    SecurityEvent.STAFF_REMOVED: _("Platform staff removed"),
    SecurityEvent.CUSTOMER_EXPORTED: _("Customer data exported"),
    SecurityEvent.CUSTOMER_ERASED: _("Customer data erased"),
    SecurityEvent.BOOKINGS_EXPORTED: _("Bookings exported"),
    SecurityEvent.CALENDAR_CLIENT_STORED: _("Calendar client stored"),
    SecurityEvent.CALENDAR_CLIENT_DELETED: _("Calendar client deleted"),
}
# What an owner should look at.
WARNINGS = frozenset(
    {SecurityEvent.LOG_IN_FAILED, SecurityEvent.LOG_IN_LOCKED, SecurityEvent.SECOND_FACTOR_REMOVED}
)
COLOURS = {kind: "warning" if kind in WARNINGS else "info" for kind in KIND_WORDS}
# Ways to log in, and second factors.
METHOD_WORDS: Mapping[str, LazyText] = {
    "password": _("with a password"),
    "totp": _("with an authenticator app"),
    "recovery_codes": _("with a recovery code"),
    "webauthn": _("with a passkey"),
    "oidc": _("with the identity provider"),
    "code": _("wrong code"),
}
FACTOR_WORDS: Mapping[str, LazyText] = {
    "totp": _("authenticator app"),
    "webauthn": _("passkey"),
}
ACTOR_WORDS: Mapping[str, LazyText] = {COMMAND: _("a command"), "customer": _("a customer")}
COUNT_WORDS: Mapping[str, LazyText] = {
    "tokens": _("tokens: %(count)s"),
    "sessions": _("sessions: %(count)s"),
    "bookings": _("bookings: %(count)s"),
}


def detail_words(event: SecurityEvent) -> str:
    """Return what the event is about: `bob@example.com, owner (before: viewer)`."""
    return ", ".join(filter(None, _details(event)))


def _details(event: SecurityEvent) -> Iterator[str]:
    about: dict[str, Any] = event.about
    if event.account and event.account.email not in (event.actor, ""):
        yield event.account.email
    yield about.get("member", "")
    if "role" in about:
        before = gettext("%(role)s (before: %(before)s)")
        names = {name: role_name(about[name]) for name in ("role", "before") if name in about}
        yield before % names if "before" in names else names["role"]
    if "prefix" in about:
        kind = about["key_kind"]
        yield str(KEY_NAMES.get(kind, KEY_NAMES[Credential.SERVER])) % {"prefix": about["prefix"]}
    if "client_id" in about:
        yield f"{about['provider']}: {about['client_id']}"
    for name in ("method", "factor"):
        yield str(METHOD_WORDS.get(about.get(name, ""), ""))
    yield str(FACTOR_WORDS.get(about.get("type", ""), ""))
    for right in about.get("rights", ()):
        yield str(label_for_field(right, Account))
    if about.get("is_new_device"):
        yield gettext("from a new device")
    for name, words in COUNT_WORDS.items():
        if name in about:
            yield str(words) % {"count": about[name]}
    if event.count > 1:
        yield gettext("%(count)s times within an hour") % {"count": event.count}


class KindFilter(ChoiceFilter):
    title = _("kind")
    parameter_name = "kind"
    options = tuple(KIND_WORDS.items())


@admin.register(SecurityEvent)
class SecurityEventAdmin(OfficeAdmin[SecurityEvent]):
    """Owners see the events of their apps, and what concerns the accounts of their members."""

    never = ALL_EDITS
    app_paths = ("app",)
    seen_by = Membership.OWNER
    list_display = ("shown_kind", "moment", "who", "details", "origin", "app")
    list_filter = (KindFilter, ("app", AppFilter), ("created_at", DaysFilter))
    list_select_related = ("app", "account")
    search_fields = ("actor", "account__email", "network")
    fields = ("shown_kind", "moment", "who", "details", "app", "network", "user_agent")
    sortable_by = ()
    actions = None

    def get_queryset(self, request: HttpRequest) -> QuerySet[SecurityEvent]:
        # Not by `app_paths` alone: log-ins belong to no app.
        rows = SecurityEvent.objects.select_related("app", "account").order_by("-id")
        scope = scope_of(request)
        if scope.is_staff:
            return rows
        owned = scope.ids(Membership.OWNER)
        people = Membership.objects.filter(app__in=owned).values("account")
        return rows.filter(Q(app__in=owned) | Q(app=None, account__in=people))

    def app_id_of_row(self, obj: Model | None) -> UUID | None:
        """Return the app of a row that `get_queryset` has found; None if it belongs to no app."""
        return obj.app_id if isinstance(obj, SecurityEvent) else None

    @display(description=_("kind"), label=COLOURS)
    def shown_kind(self, event: SecurityEvent) -> LabelledWords:
        return LabelledWords(event.kind, str(KIND_WORDS.get(event.kind, event.kind)))

    @display(description=_("when"))
    def moment(self, event: SecurityEvent) -> str:
        return moment_words(event.created_at)

    # Translators: the person, key or command that did something.
    @display(description=_("by"))
    def who(self, event: SecurityEvent) -> str:
        return str(ACTOR_WORDS.get(event.actor, event.actor))

    @display(description=_("details"))
    def details(self, event: SecurityEvent) -> str:
        return detail_words(event)

    # Translators: the network and browser from which something was done.
    @display(description=pgettext_lazy("place", "from"))
    def origin(self, event: SecurityEvent) -> str:
        browser = name_browser(event.user_agent) if event.user_agent else ""
        return ", ".join(filter(None, (event.network, browser)))

    def row_title(self, row: SecurityEvent) -> str:
        return f"{self.shown_kind(row).words}, {self.moment(row)}"
