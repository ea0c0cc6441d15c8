"""Staff's view of the tenant. Secrets are never shown: keys are issued by `manage.py issue_key`."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group
from django.http import HttpRequest
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from apps_config.models import (
    Account,
    App,
    AppNotification,
    Credential,
    FailedLogin,
    IdempotencyRecord,
    Membership,
)
from apps_config.office import (
    OfficeAdmin,
    OfficeInline,
    ReadOnlyAdmin,
    RecordedAdmin,
)
from apps_config.services import revoke_key

OWNER_ALONE = dict.fromkeys(("add", "change", "delete"), Membership.OWNER)
admin.site.unregister(Group)  # rights come from memberships


class NewAccountForm(UserCreationForm):
    class Meta:
        model = Account
        fields = ("email",)


class MembershipInline(OfficeInline):
    model = Membership
    extra = 0
    autocomplete_fields = ("account", "app")


@admin.register(Account)
class AccountAdmin(OfficeAdmin, UserAdmin):
    ordering = ("email",)
    list_display = ("email", "name", "is_staff", "is_active", "last_login")
    list_filter = ("is_staff", "is_active")
    search_fields = ("email", "name")
    readonly_fields = ("last_login", "created_at")
    fieldsets = (
        (None, {"fields": ("email", "name", "password")}),
        ("Rights", {"fields": ("is_active", "is_staff", "is_superuser", "groups")}),
        ("Dates", {"fields": ("last_login", "created_at")}),
    )
    form = UserChangeForm
    add_form = NewAccountForm
    change_password_form = AdminPasswordChangeForm
    add_fieldsets = ((None, {"fields": ("email", "usable_password", "password1", "password2")}),)
    inlines = (MembershipInline,)


class AppNotificationInline(OfficeInline):
    model = AppNotification
    extra = 0


@admin.register(App)
class AppAdmin(RecordedAdmin):
    app_paths = ("pk",)
    least = OWNER_ALONE | {"add": None, "delete": None}
    list_display = ("slug", "name", "mode", "created_at", "archived_at")
    list_filter = ("mode",)
    search_fields = ("slug", "name")
    readonly_fields = ("id", "created_at", "updated_at")
    inlines = (AppNotificationInline, MembershipInline)

    def get_readonly_fields(self, request: HttpRequest, obj: App | None = None) -> tuple[str, ...]:
        """An app is live or test for good: its keys say which."""
        return (*self.readonly_fields, "slug", "mode") if obj else self.readonly_fields

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Membership)
class MembershipAdmin(OfficeAdmin):
    app_paths = ("app",)
    least = OWNER_ALONE
    list_display = ("account", "app", "role")
    list_filter = ("role",)
    list_select_related = ("account", "app")
    search_fields = ("account__email", "app__slug")
    autocomplete_fields = ("account", "app")


@admin.register(Credential)
class CredentialAdmin(ReadOnlyAdmin):
    app_paths = ("app",)
    list_display = ("prefix", "kind", "holder", "description", "last_used_at", "revoked_at")
    list_filter = ("kind",)
    list_select_related = ("app", "account", "resource")
    search_fields = ("prefix", "description", "app__slug", "account__email", "resource__email")
    fields = ("kind", "prefix", "app", "account", "resource", "description")
    fields += ("created_at", "expires_at", "revoked_at", "last_used_at")
    actions = ("revoke",)

    @admin.display(description="of")
    def holder(self, credential: Credential) -> str:
        return str(credential.account or credential.resource or credential.app)

    @admin.action(description="Revoke the selected keys", permissions=["revoke"])
    def revoke(self, request: HttpRequest, credentials: Any) -> None:
        for credential in credentials:
            revoke_key(credential)
        self.message_user(request, f"{len(credentials)} keys are revoked.")

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("apps_config.change_credential")


@admin.register(IdempotencyRecord)
class IdempotencyRecordAdmin(ReadOnlyAdmin):
    list_display = ("key", "credential", "status", "created_at")
    list_select_related = ("credential",)
    search_fields = ("key",)
    fields = ("credential", "key", "status", "created_at")


@admin.register(FailedLogin)
class FailedLoginAdmin(ReadOnlyAdmin):
    list_display = ("address", "minute", "count")
    search_fields = ("address",)


@admin.register(AppNotification)
class AppNotificationAdmin(OfficeAdmin):
    app_paths = ("app",)
    list_display = ("app", "type", "when_time", "when_unit", "when_type")
    list_select_related = ("app",)
    search_fields = ("app__slug",)
    autocomplete_fields = ("app",)
