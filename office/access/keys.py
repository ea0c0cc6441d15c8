"""Keys in the back office: issue, show once, list and revoke. For an app's owners and staff."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.text import capfirst
from django.utils.translation import gettext, pgettext
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
)

from access.serializers import APP_KINDS, KINDS_WITH, CredentialSerializer
from apps_config.models import App, Credential, Membership
from apps_config.services import issue_key, revoke_key
from availability.models import Project, ProjectResource, Resource
from office.access.fresh_log_in import require_fresh_log_in
from office.base.api_forms import CheckedForm, choice_field
from office.base.labels import LabelledWords
from office.base.lazy_text import LazyText
from office.base.list_filters import AppFilter
from office.base.model_admin import ServiceBackedAdmin
from office.base.model_admin_pages import ExtraPage, keep_secret, kept_secret
from office.base.row_choices import CurrentRowsSelect
from office.base.scope import is_allowed

KIND_WORDS = {
    Credential.SERVER: _("server: for your own servers"),
    Credential.WIDGET: _("widget: for public web pages"),
    Credential.RESOURCE: _("resource: access to one resource"),
}
# Translators: the name of a key; %(prefix)s: the beginning of its text.
KEY_NAMES = {
    Credential.SERVER: _("server key %(prefix)s…"),
    Credential.WIDGET: _("widget key %(prefix)s…"),
    Credential.RESOURCE: _("resource key %(prefix)s…"),
    Credential.ACCESS: _("access key %(prefix)s…"),
}
KEY_OF = {
    Credential.SERVER: _("Server key of %(owner)s"),
    Credential.WIDGET: _("Widget key of %(owner)s"),
    Credential.RESOURCE: _("Resource key of %(owner)s"),
}
LIMIT_WORDS = {
    "scopes": _("Rights"),
    "projects": _("Projects"),
    "addresses": _("Networks"),
    "origins": _("Web sites"),
}
# Translators: states of a key.
STATE_WORDS = {"valid": _("valid"), "expired": _("expired"), "revoked": _("revoked")}
STATE_COLOURS = {"valid": "success", "expired": "warning", "revoked": "danger"}
EVERYTHING, CHOSEN = "everything", "chosen"
SCOPE_WORDS = {
    Credential.AVAILABILITY_READ: _("Read free time"),
    Credential.BOOKINGS_READ: _("Read bookings"),
    Credential.BOOKINGS_WRITE: _("Book, move and cancel"),
    Credential.PEOPLE_READ: _("Read customers’ details"),
    Credential.SETTINGS_READ: _("Read settings"),
    Credential.SETTINGS_WRITE: _("Change settings"),
    Credential.KEYS_WRITE: _("Manage keys and members"),
}


NO_PROJECT = _("The app has no such project.")


def state_of(key: Credential) -> str:
    if key.revoked_at:
        return "revoked"
    return "expired" if key.expires_at and key.expires_at <= timezone.now() else "valid"


def has_limit(key: Credential, name: str) -> bool:
    """Return whether keys of this kind take the limit, or this one has it."""
    return key.kind in KINDS_WITH[name] or getattr(key, name) is not None


def lines_field(label: LazyText, help_text: LazyText) -> forms.CharField:
    widget = UnfoldAdminTextareaWidget(attrs={"rows": 3})
    return forms.CharField(label=label, help_text=help_text, required=False, widget=widget)


class KeyForm(CheckedForm, forms.ModelForm):
    """The fields of POST /v2/credentials."""

    field_of = {
        "resource_id": "resource",
        "origins": "web_sites",
        "addresses": "networks",
    }

    access = forms.ChoiceField(
        label=_("Access"),
        required=False,
        help_text=_("What a server key may do."),
        choices=[(EVERYTHING, _("Everything")), (CHOSEN, _("Only the rights chosen below"))],
        widget=UnfoldAdminSelectWidget,
    )
    scopes = forms.MultipleChoiceField(
        label=LIMIT_WORDS["scopes"],
        required=False,
        help_text=_(
            "Without the right to read customers’ details, the key reads only their names."
        ),
        choices=list(SCOPE_WORDS.items()),
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
    )
    projects = forms.ModelMultipleChoiceField(
        Project.objects.filter(deleted_at=None),
        label=LIMIT_WORDS["projects"],
        required=False,
        help_text=_("The only projects that the key may use. Empty: all."),
        widget=CurrentRowsSelect(ProjectResource._meta.get_field("project"), admin.site),
        error_messages={"invalid_choice": NO_PROJECT, "invalid_pk_value": NO_PROJECT},
    )
    web_sites = lines_field(
        LIMIT_WORDS["origins"],
        _(
            "One per line, such as https://shop.example. Browsers may use a widget key only on"
            " these sites. Empty: everywhere."
        ),
    )
    networks = lines_field(
        LIMIT_WORDS["addresses"],
        _(
            "One per line, such as 203.0.113.0/24. A server key works only from these addresses."
            " Empty: from everywhere."
        ),
    )

    class Meta:
        model = Credential
        fields = ("app", "kind", "resource", "description", "expires_at")
        help_texts = {
            "kind": _("Use server keys on your own servers only. Widget keys may be public."),
            "resource": _("Only for the kind “resource”."),
            "description": _("Who or what uses the key."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "kind" in self.fields:
            choice_field(self, "kind").choices = [(kind, KIND_WORDS[kind]) for kind in APP_KINDS]
            self.fields["app"].required = True
            clock = timezone.get_current_timezone()
            hint = gettext("Empty: the key never expires. Time zone: %(zone)s.")
            self.fields["expires_at"].help_text = hint % {"zone": clock}

    def clean(self) -> dict[str, Any]:
        super().clean()
        given = self.cleaned_data
        app, resource = given.get("app"), given.get("resource")
        if given.get("kind") != Credential.RESOURCE:
            resource = given["resource"] = None
        projects = self._limit("projects") or ()
        if app and any(project.app_id != app.pk for project in projects):
            self.add_error("projects", NO_PROJECT)
        if app and resource and not Resource.objects.for_app(app).filter(pk=resource.pk).exists():
            self.add_error("resource", gettext("The app has no such resource."))
        expires_at = given.get("expires_at")
        body = {
            "kind": given.get("kind"),
            "description": given.get("description") or "",
            "expires_at": expires_at.isoformat() if expires_at else None,
            "resource_id": str(resource.pk) if resource else None,
            "projects": [str(project.pk) for project in projects] or None,
            "scopes": self._chosen_scopes(),
            **{
                name: (self._limit(name) or "").split() or None for name in ("origins", "addresses")
            },
        }
        self.check(CredentialSerializer(data=body, context={"now": timezone.now()}))
        return given

    def _limit(self, name: str) -> Any:
        """Return what was entered for a limit; None if keys of this kind have no such limit."""
        given = self.cleaned_data
        has_limit = given.get("kind") in KINDS_WITH[name]
        return given.get(self.field_of.get(name, name)) if has_limit else None

    def _chosen_scopes(self) -> list[str] | None:
        """Return the rights, which may be none at all; None: everything."""
        scopes = self._limit("scopes")
        if self.cleaned_data.get("access") == CHOSEN:
            return scopes
        if scopes:
            sentence = gettext(
                "Some rights are chosen below. Choose none for access to everything."
            )
            self.add_error("access", sentence)
        return None

    def _post_clean(self) -> None:
        """Skip the model's validation: the service creates the row."""


@admin.register(Credential)
class CredentialAdmin(ServiceBackedAdmin[Credential]):
    app_paths = ("app",)
    seen_by = Membership.OWNER
    least = {"add": Membership.OWNER}
    never = frozenset({"change", "delete"})  # keys are immutable
    chosen_by = Membership.OWNER
    chosen_fields = ("app", "resource")
    form = KeyForm
    list_display = (
        *("prefix", "kind", "holder", "description", "limits", "shown_state"),
        *("last_used_at", "expires_at", "created_at"),
    )
    list_filter = ("kind", ("app", AppFilter))
    list_select_related = ("app", "account", "resource")
    search_fields = ("prefix", "description", "app__slug", "account__email", "resource__email")
    ordering = ("-id",)
    sortable_by = ("last_used_at", "expires_at", "created_at")
    autocomplete_fields = ("app", "resource")
    fields = (
        *("kind", "text", "shown_state", "app", "account", "resource", "description", "scope"),
        *("created_at", "expires_at", "last_used_at", "revoked_at"),
    )
    add_fieldsets = (
        (
            None,
            {
                "fields": (
                    *KeyForm.Meta.fields,
                    *("access", "scopes", "projects", "networks", "web_sites"),
                )
            },
        ),
    )
    change_form_outer_before_template = "office/key_actions.html"
    actions = None

    class Media:
        js = ("office/key.js",)

    # --- List and page ----------------------------------------------------------------------------
    @display(description=_("belongs to"))
    def holder(self, key: Credential) -> str:
        return str(key.account or key.resource or key.app)

    @display(description=_("state"), label=STATE_COLOURS)
    def shown_state(self, key: Credential) -> LabelledWords:
        state = state_of(key)
        return LabelledWords(state, str(STATE_WORDS[state]))

    @admin.display(description=_("key"))
    def text(self, key: Credential) -> str:
        hidden = gettext("%(prefix)s… (the full key was shown once, when it was issued)")
        return key.public_text or hidden % {"prefix": key.prefix}

    # Translators: what a key may be used for: rights, projects, networks and web sites.
    @admin.display(description=_("scope"))
    def scope(self, key: Credential) -> str:
        parts = {
            "scopes": self._rights,
            "projects": self._projects,
            "addresses": self._networks,
            "origins": self._web_sites,
        }
        return "; ".join(part(key) for name, part in parts.items() if has_limit(key, name))

    # Translators: what limits a key, such as its rights and networks.
    @admin.display(description=_("limits"))
    def limits(self, key: Credential) -> str | None:
        limited = (
            str(words) for name, words in LIMIT_WORDS.items() if getattr(key, name) is not None
        )
        return ", ".join(limited) or None

    def _rights(self, key: Credential) -> str:
        if key.scopes is None:
            return gettext("all rights")
        return gettext("rights: %(rights)s") % {"rights": ", ".join(key.scopes)}

    def _projects(self, key: Credential) -> str:
        if key.projects is None:
            return gettext("all projects")
        rows = Project.objects.filter(id__in=key.projects)
        slugs = ", ".join(rows.order_by("slug").values_list("slug", flat=True))
        none = pgettext("instead of projects", "none")
        return gettext("projects: %(projects)s") % {"projects": slugs or none}

    def _networks(self, key: Credential) -> str:
        if key.addresses is None:
            return gettext("all networks")
        return gettext("networks: %(networks)s") % {"networks": ", ".join(key.addresses)}

    def _web_sites(self, key: Credential) -> str:
        if key.origins is None:
            return gettext("all web sites")
        return gettext("web sites: %(sites)s") % {"sites": ", ".join(key.origins)}

    def row_title(self, row: Credential) -> str:
        return str(KEY_NAMES[row.kind]) % {"prefix": row.prefix}

    def get_fields(self, request: HttpRequest, obj: Credential | None = None) -> tuple[str, ...]:
        has_scope = obj and any(has_limit(obj, name) for name in LIMIT_WORDS)
        return tuple(name for name in self.fields if name != "scope" or has_scope)

    def get_readonly_fields(
        self, request: HttpRequest, obj: Credential | None = None
    ) -> tuple[str, ...]:
        return self.get_fields(request, obj) if obj else ()

    def has_revoke_permission(self, request: HttpRequest, key: Credential | None = None) -> bool:
        owner = self.app_id_of_row(key)
        return is_allowed(request, "apps_config.change_credential", owner, Membership.OWNER)

    # --- Issuing ----------------------------------------------------------------------------------
    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if self.has_add_permission(request):
            require_fresh_log_in(request)
        return super().add_view(request, form_url, extra_context)

    def save_row(
        self, request: HttpRequest, row: Credential, form: KeyForm, *, is_new: bool
    ) -> Credential:
        given = form.cleaned_data
        app: App = given["app"]
        key, text = issue_key(
            given["kind"],
            mode=app.mode,
            description=given["description"],
            expires_at=given["expires_at"],
            app=app,
            resource=given["resource"],
            projects=[str(id_) for id_ in form.given.get("projects") or ()] or None,
            **{name: form.given.get(name) for name in ("origins", "scopes", "addresses")},
        )
        keep_secret(request, text)
        return key

    def response_add(
        self, request: HttpRequest, obj: Credential, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Show the key, which appears in this answer only."""
        return self.show_secret(
            request,
            title=gettext("The new key"),
            heading=str(KEY_OF[obj.kind]) % {"owner": obj.resource or obj.app},
            secret=kept_secret(request),
            is_public=obj.kind == Credential.WIDGET,
            back=self.list_url(),
        )

    # --- Revoking ---------------------------------------------------------------------------------
    def extra_pages(self) -> Iterable[ExtraPage]:
        return [ExtraPage("<path:object_id>/revoke/", self.revoke, "revoke", "revoke")]

    def revoke(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask for confirmation; a POST revokes the key."""
        key = self.find(request, object_id)
        if not self.has_revoke_permission(request, key):
            raise PermissionDenied
        if request.method == "POST":
            revoke_key(key)
            self.log_change(request, key, "Revoked.")
            messages.success(request, gettext("%(key)s is revoked.") % {"key": self.row_title(key)})
            return HttpResponseRedirect(self.list_url())
        return self.ask_confirmation(
            request,
            key,
            title=gettext("Revoke this key?"),
            sentence=gettext("%(key)s stops working at once. This can't be undone.")
            % {"key": capfirst(self.row_title(key))},
            button=gettext("Revoke"),
        )

    def page_values(self, request: HttpRequest, object_id: str | None) -> dict[str, Any]:
        key = self.get_object(request, object_id) if object_id else None
        may_revoke = key and not key.revoked_at and self.has_revoke_permission(request, key)
        return {"may_revoke": bool(may_revoke)}
