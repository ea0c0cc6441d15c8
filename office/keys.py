"""Keys in the back office: issued, shown once, watched, revoked. For an app's owners, and staff."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from unfold.decorators import display

from apps_config.models import App, Credential, Membership
from apps_config.office import AppFilter, OfficeAdmin, app_id_of
from apps_config.scope import is_allowed, scope_of
from apps_config.services import issue_key, revoke_key
from availability.models import Resource
from availability.serializers.credentials import APP_KINDS, NewCredentialSerializer
from office.asking import ask_first
from office.shown_once import show_secret

OWNER_ALONE = dict.fromkeys(("add", "change", "delete"), Membership.OWNER)
KIND_WORDS = {
    Credential.SERVER: "server: does everything in the app",
    Credential.WIDGET: "widget: for public pages",
    Credential.RESOURCE: "resource: one resource's own",
}
STATE_COLOURS = {"valid": "success", "expired": "warning", "revoked": "danger"}


def state_of(key: Credential) -> str:
    if key.revoked_at:
        return "revoked"
    return "expired" if key.expires_at and key.expires_at <= timezone.now() else "valid"


class KeyForm(forms.ModelForm):
    """As POST /v2/credentials takes it. `owned`: the apps whose keys may be made."""

    owned: Any = None

    class Meta:
        model = Credential
        fields = ("app", "kind", "resource", "description", "expires_at")
        help_texts = {
            "kind": "A server key is for your own servers alone. A widget key may stand in a page.",
            "resource": "Whose key it is: for the kind “resource”.",
            "description": "What or who uses it.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "kind" in self.fields:
            self.fields["kind"].choices = [(kind, KIND_WORDS[kind]) for kind in APP_KINDS]
            self.fields["app"].required = True
            clock = timezone.get_current_timezone()
            self.fields["expires_at"].help_text = f"Empty: never. Time zone: {clock}."

    def clean(self) -> dict[str, Any]:
        given = super().clean()
        app, resource = given.get("app"), given.get("resource")
        if given.get("kind") != Credential.RESOURCE:
            resource = given["resource"] = None
        if app and not self.owned.filter(pk=app.pk).exists():
            self.add_error("app", "Only its owners make keys of an app.")
        elif app and resource and not Resource.objects.for_app(app).filter(pk=resource.pk).exists():
            self.add_error("resource", "There is no such resource in this app.")
        expires_at = given.get("expires_at")
        body = {
            "kind": given.get("kind"),
            "description": given.get("description") or "",
            "expires_at": expires_at.isoformat() if expires_at else None,
            "resource_id": str(resource.pk) if resource else None,
        }
        serializer = NewCredentialSerializer(data=body, context={"now": timezone.now()})
        for name, faults in ({} if serializer.is_valid() else serializer.errors).items():
            field = "resource" if name == "resource_id" else name
            if field not in self.errors:
                self.add_error(
                    field if field in self.fields else None, [str(one) for one in faults]
                )
        return given

    def _post_clean(self) -> None:
        """The row is made by the service: what it has to hold is not there yet."""


@admin.register(Credential)
class CredentialAdmin(OfficeAdmin):
    app_paths = ("app",)
    seen_by = Membership.OWNER
    least = OWNER_ALONE | {"delete": None}
    form = KeyForm
    list_display = ("prefix", "kind", "holder", "description", "shown_state")
    list_display += ("last_used_at", "expires_at", "created_at")
    list_filter = ("kind", ("app", AppFilter))
    list_select_related = ("app", "account", "resource")
    search_fields = ("prefix", "description", "app__slug", "account__email", "resource__email")
    ordering = ("-id",)
    sortable_by = ()
    autocomplete_fields = ("app", "resource")
    add_fieldsets = ((None, {"fields": KeyForm.Meta.fields}),)
    change_form_outer_before_template = "office/key_actions.html"
    actions = None

    class Media:
        js = ("office/key.js",)

    # --- the list and the page --------------------------------------------------------------------
    @display(description="of")
    def holder(self, key: Credential) -> str:
        return str(key.account or key.resource or key.app)

    @display(description="state", label=STATE_COLOURS)
    def shown_state(self, key: Credential) -> str:
        return state_of(key)

    @admin.display(description="key")
    def text(self, key: Credential) -> str:
        return key.public_text or f"{key.prefix}… (the rest was shown once, when it was made)"

    def get_fields(self, request: HttpRequest, obj: Credential | None = None) -> Any:
        shown = ("kind", "text", "shown_state", "app", "account", "resource", "description")
        return (*shown, "created_at", "expires_at", "last_used_at", "revoked_at")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """A key stays as it was made."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.get_fields(request, obj) if obj else ()

    def may_revoke(self, request: HttpRequest, key: Credential) -> bool:
        owner = app_id_of(key, self)
        return is_allowed(request, "apps_config.change_credential", owner, Membership.OWNER)

    # --- a new one --------------------------------------------------------------------------------
    def get_form(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, **kwargs)
        form.owned = scope_of(request).apps(Membership.OWNER)
        return form

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if db_field.name in ("app", "resource") and hasattr(field.widget, "can_add_related"):
            field.widget.can_add_related = field.widget.can_change_related = False
            field.widget.can_view_related = field.widget.can_delete_related = False
        return field

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """`?app=`; or the one app that there is."""
        initial = super().get_changeform_initial_data(request)
        apps = list(scope_of(request).apps(Membership.OWNER)[:2])
        return ({"app": apps[0].pk} if len(apps) == 1 else {}) | initial

    def save_model(self, request: HttpRequest, obj: Credential, form: Any, change: bool) -> None:
        given = form.cleaned_data
        app: App = given["app"]
        key, text = issue_key(
            given["kind"],
            mode=app.mode,
            description=given["description"],
            expires_at=given["expires_at"],
            app=app,
            resource=given["resource"],
        )
        obj.__dict__.update(key.__dict__)
        request.issued_text = text  # for this answer alone

    def response_add(self, request: HttpRequest, obj: Credential, *args: Any, **kwargs: Any) -> Any:
        """The text, this once: it stands in the answer to the form, and nowhere else."""
        return show_secret(
            self,
            request,
            title="The new key",
            heading=f"{obj.get_kind_display().capitalize()} key of {obj.resource or obj.app}",
            secret=request.issued_text,
            is_public=obj.kind == Credential.WIDGET,
            back=reverse("admin:apps_config_credential_changelist"),
        )

    # --- revoking ---------------------------------------------------------------------------------
    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        name = "apps_config_credential_revoke"
        own = path("<path:object_id>/revoke/", wrap(self.revoke), name=name)
        return [own, *super().get_urls()]

    def revoke(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Asks; a POST does it."""
        key = self.get_object(request, object_id)
        if key is None:
            raise Http404
        if not self.may_revoke(request, key):
            raise PermissionDenied
        if request.method == "POST":
            revoke_key(key)
            self.log_change(request, key, "Revoked.")
            messages.success(request, f"{key} is revoked.")
            return HttpResponseRedirect(reverse("admin:apps_config_credential_changelist"))
        return ask_first(
            self,
            request,
            key,
            title="Revoke this key?",
            sentence=f"{key} is refused from then on, for good. Who uses it needs a new one first.",
            button="Revoke it",
            back=reverse("admin:apps_config_credential_change", args=[key.pk]),
        )

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        key = self.get_object(request, object_id)
        may = key is not None and not key.revoked_at and self.may_revoke(request, key)
        own = {"may_revoke": may}
        return super().change_view(request, object_id, form_url, own | (extra_context or {}))
