"""The admin of accounts, for platform staff."""

import uuid
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from allauth.mfa.models import Authenticator
from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.decorators import action
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from access.sessions import list_new_session
from apps_config.models import Account, SecurityEvent
from apps_config.security_events import PLATFORM_RIGHTS, record_event, record_staff
from common.api.fields import EmailField
from common.email_address import canonical_address
from common.errors import InUse
from office.access.account_password_links import password_link
from office.access.fresh_log_in import has_fresh_log_in, require_fresh_log_in
from office.base.api_forms import check_value
from office.base.model_admin import ServiceBackedAdmin
from office.base.model_admin_pages import ACTION_FIELDS, ExtraPage, find_row, is_confirmed
from office.base.scope import account_of

NAMED = 10  # accounts named on the confirmation page

admin.site.unregister(Group)  # permissions come from memberships


class AddressForm(forms.ModelForm):
    """Stores the canonical form of the e-mail address."""

    def clean_email(self) -> str:
        return canonical_address(check_value(EmailField(), self.cleaned_data["email"]))


class NewAccountForm(AddressForm, UserCreationForm):
    class Meta:
        model = Account
        fields = ("email",)


class AccountForm(AddressForm, UserChangeForm):
    pass


@admin.register(Account)
class AccountAdmin(ServiceBackedAdmin[Account], UserAdmin):
    deletion_effect = _("The account can no longer log in. This can't be undone.")
    ordering = ("email",)
    list_display = ("email", "name", "is_staff", "is_active", "last_login")
    list_filter = ("is_staff", "is_active")
    search_fields = ("email", "name")
    readonly_fields = ("last_login", "created_at")
    fieldsets = (
        (None, {"fields": ("email", "name", "password")}),
        (_("Rights"), {"fields": ("is_active", "is_staff", "is_superuser", "groups")}),
        (_("Dates"), {"fields": ("last_login", "created_at")}),
    )
    form = AccountForm
    add_form = NewAccountForm
    change_password_form = AdminPasswordChangeForm
    change_form_outer_before_template = "office/account_links.html"
    actions = ("remove_second_factors",)
    filter_horizontal = ()  # two lists side by side are wider than the page
    add_fieldsets = ((None, {"fields": ("email", "usable_password", "password1", "password2")}),)

    def delete_and_log(self, request: HttpRequest, row: Account) -> None:
        """Members of apps have to leave first. Raises InUse."""
        with transaction.atomic():
            account = Account.objects.select_for_update().get(pk=row.pk)  # nobody becomes a member
            names = account.memberships.order_by("app__name").values_list("app__name", flat=True)
            if names:
                sentence = gettext(
                    "%(account)s is a member of: %(apps)s. Remove the account there first."
                )
                raise InUse(sentence % {"account": account, "apps": ", ".join(names)})
            self.log_deletions(request, Account.objects.filter(pk=account.pk))
            self.delete_model(request, account)

    def change_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.method == "POST" and self.has_change_permission(request):
            require_fresh_log_in(request)
        return super().change_view(request, *args, **kwargs)

    def save_row(
        self, request: HttpRequest, row: Account, form: forms.ModelForm, *, is_new: bool
    ) -> Account:
        row.save()
        before = frozenset(name for name in PLATFORM_RIGHTS if form.initial.get(name))
        record_staff(row, before=before)
        return row

    def extra_pages(self) -> Iterable[ExtraPage]:
        at = "<uuid:account_id>/password-link/"
        return [ExtraPage(at, self.show_password_link, "link", "change")]

    def show_password_link(self, request: HttpRequest, account_id: uuid.UUID) -> HttpResponse:
        """Ask for confirmation; a POST creates the link and shows it once."""
        if not settings.PASSWORD_LOGIN:
            raise PermissionDenied
        account = find_row(Account.objects.filter(is_active=True), account_id)
        # Otherwise an account that may change accounts could take over a superuser's.
        if (account.is_staff or account.is_superuser) and not account_of(request).is_superuser:
            raise PermissionDenied
        require_fresh_log_in(request)
        if request.method == "POST":
            with transaction.atomic():
                self.log_change(request, account, "A password link was created.")
                record_event(SecurityEvent.PASSWORD_LINK_MADE, account_id=account.pk)
            return self.show_secret(
                request,
                title=gettext("A link to choose a password"),
                heading=gettext("For %(email)s") % {"email": account.email},
                label=gettext("Link"),
                secret=password_link(account),
                back=self.url_of(account),
            )
        return self.ask_confirmation(
            request,
            account,
            title=gettext("Create a password link?"),
            sentence=gettext(
                "Anyone with the link can choose the password of %(email)s: send it only to this"
                " person. The link works once, until the next log-in, for three days."
            )
            % {"email": account.email},
            button=gettext("Create the link"),
        )

    def user_change_password(
        self, request: HttpRequest, id: str, form_url: str = ""
    ) -> HttpResponse:
        if self.has_change_permission(request) and not has_fresh_log_in(request):
            if request.method == "POST":  # not suspended: sessions store no password
                return HttpResponseRedirect(request.get_full_path())
            require_fresh_log_in(request)
        response = super().user_change_password(request, id, form_url)
        if request.method == "POST" and response.status_code == HTTPStatus.FOUND:
            list_new_session(request)
        return response

    def has_reset_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

    @action(description=_("Remove second factors"), permissions=["reset"])
    def remove_second_factors(
        self, request: HttpRequest, rows: QuerySet[Account]
    ) -> HttpResponse | None:
        """For people who lost their phone, passkeys and recovery codes."""
        require_fresh_log_in(request)
        if not is_confirmed(request):
            return self.ask_confirmation(
                request,
                None,
                title=gettext("Remove second factors?"),
                sentence=gettext(
                    "These accounts log in with the password alone. Authenticator apps,"
                    " passkeys and recovery codes stop working."
                ),
                button=gettext("Remove second factors"),
                lines=[str(account) for account in rows[:NAMED]],
                repeated=ACTION_FIELDS,
            )
        Authenticator.objects.filter(user__in=rows).delete()
        for account in rows:
            self.log_change(request, account, "Second factors removed.")
            sentence = gettext("%(account)s logs in with the password alone.")
            messages.success(request, sentence % {"account": account})
        return None
