"""The clients that an app has registered itself at calendar providers: for owners and staff."""

import uuid
from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display
from unfold.widgets import (
    UnfoldAdminPasswordWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
)

from apps_config.models import Membership
from external_calendars.clients import count_calendars, delete_client, store_client
from external_calendars.grants import callback_url
from external_calendars.models import ProviderClient
from external_calendars.providers import OAUTH_PROVIDERS
from external_calendars.serializers import NewProviderClientSerializer
from office.access.fresh_log_in import has_fresh_log_in, require_fresh_log_in
from office.base.api_forms import CheckedForm, choice_field
from office.base.list_filters import AppFilter
from office.base.model_admin import ServiceBackedAdmin
from office.base.permissions import RequiredPermission, has_permission
from office.calendars.sync_status import provider_words

CHANGE_CLIENTS = RequiredPermission(Membership.OWNER, "external_calendars.change_providerclient")


def clients_url() -> str:
    return reverse("admin:external_calendars_providerclient_changelist")


def may_change_clients(request: HttpRequest, app_id: uuid.UUID) -> bool:
    return has_permission(request, app_id, CHANGE_CLIENTS)


class ClientForm(CheckedForm, forms.ModelForm):
    """The fields of PUT /v2/calendars/clients/:provider. The stored secret is never shown."""

    field_of = {"client_secret": "secret"}

    provider = forms.ChoiceField(label=_("Provider"), widget=UnfoldAdminSelectWidget)
    client_id = forms.CharField(
        label=_("Client ID"), max_length=300, widget=UnfoldAdminTextInputWidget
    )
    # Not the model's column, which no form may show.
    secret = forms.CharField(
        label=_("Client secret"),
        max_length=1000,
        strip=False,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
        help_text=_("Stored encrypted and never shown again."),
    )

    class Meta:
        model = ProviderClient
        fields = ("app", "provider", "client_id")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.instance._state.adding:
            self.fields.pop("provider", None)
            return
        choice_field(self, "provider").choices = [
            (name, provider.label) for name, provider in OAUTH_PROVIDERS.items()
        ]

    def clean(self) -> dict[str, Any]:
        super().clean()
        given = self.cleaned_data
        names = {"client_id": "client_id", "secret": "client_secret"}
        body = {name: given[field] for field, name in names.items() if field in given}
        self.check(NewProviderClientSerializer(data=body))
        app, provider = given.get("app"), given.get("provider")
        if app and ProviderClient.objects.filter(app=app, provider=provider).exists():
            self.add_error("provider", gettext("The app has a client at this provider: change it."))
        return given

    def _post_clean(self) -> None:
        """Skip the model's validation: the service writes the row."""


@admin.register(ProviderClient)
class ProviderClientAdmin(ServiceBackedAdmin[ProviderClient]):
    app_paths = ("app",)
    seen_by = Membership.OWNER
    least = dict.fromkeys(("add", "change", "delete"), Membership.OWNER)
    chosen_by = Membership.OWNER
    autocomplete_fields = chosen_fields = ("app",)
    fixed_fields = ("app", "shown_provider")
    form = ClientForm
    list_display = ("shown_provider", "client_id", "app")
    list_filter = (("app", AppFilter),)
    list_select_related = ("app",)
    ordering = ("-id",)
    sortable_by = ()
    fieldsets = ((None, {"fields": ("app", "shown_provider", "client_id", "secret")}),)
    add_fieldsets = ((None, {"fields": ("app", "provider", "client_id", "secret")}),)
    change_form_outer_before_template = "office/calendar_client.html"
    actions = None
    deletion_effect = _(
        "The calendars that were connected with this client stop until their people connect them"
        " again. New connections use the client of the service, if it has one."
    )

    @display(description=_("provider"))
    def shown_provider(self, client: ProviderClient) -> str:
        return provider_words(client.provider)

    def row_title(self, row: ProviderClient) -> str:
        return gettext("Client at %(provider)s") % {"provider": provider_words(row.provider)}

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Ask for a fresh log-in first. A form that comes too late is not stored until then."""
        if self.has_add_permission(request):
            if request.method == "POST" and not has_fresh_log_in(request):
                return HttpResponseRedirect(request.get_full_path())
            require_fresh_log_in(request)
        return super().changeform_view(request, object_id, form_url, extra_context)

    def page_values(self, request: HttpRequest, object_id: str | None) -> dict[str, Any]:
        """Return the address to register at the provider, and what a change does."""
        client = self.get_object(request, object_id) if object_id else None
        count = count_calendars(client) if client else 0
        words = gettext(
            "Calendars connected with this client: %(count)s. With another client ID, they stop"
            " until they are connected again."
        )
        return {
            "redirect_uri": callback_url(),
            "effect": words % {"count": number_format(count)} if count else "",
        }

    def save_row(
        self, request: HttpRequest, row: ProviderClient, form: ClientForm, *, is_new: bool
    ) -> ProviderClient:
        return store_client(
            app=form.cleaned_data["app"] if is_new else row.app,
            provider=form.cleaned_data["provider"] if is_new else row.provider,
            now=timezone.now(),
            **form.given,
        )

    def delete_row(self, row: ProviderClient) -> None:
        delete_client(row, now=timezone.now())
