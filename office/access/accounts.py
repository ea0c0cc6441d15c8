"""The admin of accounts, for platform staff."""

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from apps_config.models import Account
from office.access.account_password_links import PasswordLinks

admin.site.unregister(Group)  # permissions come from memberships


class NewAccountForm(UserCreationForm):
    class Meta:
        model = Account
        fields = ("email",)


@admin.register(Account)
class AccountAdmin(PasswordLinks, UserAdmin):
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
    change_form_outer_before_template = "office/account_links.html"
    add_fieldsets = ((None, {"fields": ("email", "usable_password", "password1", "password2")}),)
