"""Pages to connect and reconnect a calendar.

They contact the provider for up to ten seconds, outside any transaction: the theme's forms are
saved inside one, so these are separate views.
"""

import uuid
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps_config.models import Membership
from availability.models import Calendar, Resource
from common.errors import AlreadyExists, Invalid, NotFound, Refusal
from external_calendars.providers import OAUTH_PROVIDERS, PROVIDERS
from external_calendars.providers.base import CalendarAccess
from external_calendars.serializers import AccessSerializer, ConnectSerializer
from external_calendars.services import (
    MAX_CONNECTED,
    connect_calendar,
    reconnect_calendar,
    sends_password_to_new_host,
)
from office.base.api_forms import CheckedForm, choice_field
from office.base.message_translations import translate_message
from office.base.permissions import visible_resources
from office.calendars.clients import clients_url, may_change_clients
from office.calendars.consent import ConsentPages, find_connectable, grants_of, provider_choices
from office.calendars.sync_status import provider_words

LISTED = 50  # resources offered at once; others are found by name
ACCESS = ("address", "username", "password")
PRIMARY = {"": None, "yes": True, "no": False}


class CredentialsForm(CheckedForm, forms.Form):
    """Credentials of a calendar. A refused form returns neither the password nor a feed's
    address.
    """

    field_of = {"provider_primary": "primary"}

    address = forms.CharField(
        label=_("Address"),
        max_length=2000,
        help_text=_("The URL of the calendar or feed, or the server's name to find the calendar."),
    )
    username = forms.CharField(label=_("User name"), max_length=300, required=False)
    password = forms.CharField(
        label=_("Password"),
        max_length=1000,
        required=False,
        strip=False,
        widget=forms.PasswordInput,
        help_text=_(
            "Stored encrypted and never shown again. Many servers require an app password."
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs |= {"class": "office-input", "autocomplete": "off"}
        self.fields["password"].widget.attrs["autocomplete"] = "new-password"

    def add_refusal(self, refusal: Refusal) -> None:
        if isinstance(refusal, Invalid):
            self.add_faults(refusal.fields["errors"])
        else:
            field = "address" if isinstance(refusal, AlreadyExists) else None
            self.add_error(field, translate_message(refusal.message))

    def forget_secrets(self, *, is_feed: bool) -> None:
        """Clear typed secrets from `data`, from which the fields are rendered."""
        secrets = ("password", "address") if is_feed else ("password",)
        self.data = {name: self.data.get(name) for name in self.data} | dict.fromkeys(secrets, "")


class ConnectForm(CredentialsForm):
    """The fields of POST /v2/calendars."""

    provider = forms.ChoiceField(label=_("Provider"))
    name = forms.CharField(
        label=_("Name"),
        max_length=200,
        required=False,
        help_text=_("Empty: the calendar's name at the provider."),
    )
    primary = forms.ChoiceField(
        label=_("Write the resource's bookings to this calendar"),
        required=False,
        choices=[
            # Translators: answers to "Write the resource's bookings to this calendar".
            ("", _("if no other calendar of the resource is primary")),
            ("yes", _("yes, and to no other calendar")),
            ("no", _("no")),
        ],
    )
    field_order = ("provider", "address", "username", "password", "name", "primary")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choice_field(self, "provider").choices = [
            (name, provider_words(name)) for name in PROVIDERS if name not in OAUTH_PROVIDERS
        ]

    def clean(self) -> dict[str, Any]:
        super().clean()
        given = self.cleaned_data
        body = {name: given[name] for name in (*ACCESS, "provider") if name in given}
        if given.get("name"):
            body["name"] = given["name"]
        self.check(ConnectSerializer(data=body | {"resource_id": str(uuid.UUID(int=0))}))
        return given

    @property
    def access(self) -> CalendarAccess:
        return CalendarAccess(*[self.given.get(name) or "" for name in ACCESS])


class ReconnectForm(CredentialsForm):
    """The fields of PUT /v2/calendars/:id: unchanged ones stay."""

    def __init__(self, calendar: Calendar, *args: Any, **kwargs: Any) -> None:
        self.calendar = calendar
        is_feed = not is_writable_kind(calendar)
        shown = {
            "address": "" if is_feed else calendar.provider_id,
            "username": calendar.connection.username,
        }
        super().__init__(*args, initial=shown, **kwargs)
        self.fields["password"].help_text = gettext("Empty: keep the stored password.")
        if is_feed:
            self.fields["address"].required = False
            hint = gettext("The feed's URL at %(server)s. Empty: keep the stored URL.")
            self.fields["address"].help_text = hint % {"server": calendar.provider_id}

    def clean(self) -> dict[str, Any]:
        super().clean()
        given = self.cleaned_data
        changed = {name: given[name] for name in self.changed_data if name in given}
        if changed.get("username") == "":
            changed["password"] = given.get("password", "")
        self.check(AccessSerializer(data=changed))
        if sends_password_to_new_host(self.calendar, self.given):
            self.add_error(
                "password", gettext("Enter the password again: the address is on another server.")
            )
        return given


def is_writable_kind(calendar: Calendar) -> bool:
    """Return whether the provider can write; if not, the calendar is a feed with a secret
    address.
    """
    provider = PROVIDERS.get(calendar.provider)
    return provider is not None and provider.can_write


class ConnectPages(ConsentPages):
    """Admin pages to connect and reconnect a calendar."""

    def find_connected(self, request: HttpRequest, object_id: str) -> Calendar:
        """As `find_to_change`; raises Http404 also for a calendar of the service."""
        calendar = self.find_to_change(request, object_id)
        if not hasattr(calendar, "connection"):
            raise Http404
        return calendar

    def connect(self, request: HttpRequest) -> HttpResponse:
        """?resource=id, and for the form &provider=caldav. Let the user choose what is missing."""
        if not request.GET.get("resource"):
            return self._choose_resource(request)
        resource = find_connectable(request, request.GET["resource"])
        provider = request.GET.get("provider", "")
        if request.method != "POST" and not provider:
            return self._choose_provider(request, resource)
        form = ConnectForm(request.POST or None, initial={"provider": provider})
        if request.method == "POST" and form.is_valid():
            try:
                calendar = connect_calendar(
                    resource=resource,
                    provider=form.cleaned_data["provider"],
                    access=form.access,
                    given=form.given,
                    is_primary=PRIMARY[form.cleaned_data["primary"]],
                    now=timezone.now(),
                )
            except Refusal as refusal:
                form.add_refusal(refusal)
            else:
                self.log_addition(request, calendar, f"Connected to {calendar.provider_id}.")
                words = gettext("“%(calendar)s” is connected. The first sync is running.")
                messages.success(request, words % {"calendar": calendar.name})
                return self.redirect_to_row(calendar)
        if form.is_bound:
            sent = PROVIDERS.get(form.data.get("provider", ""))
            form.forget_secrets(is_feed=sent is None or not sent.can_write)
        return self.show_page(
            request,
            "office/calendar_connect.html",
            form=form,
            title=gettext("Connect a calendar of %(resource)s") % {"resource": resource.name},
            sentence=gettext(
                "Events of the connected calendar block the time of %(resource)s. Bookings can be"
                " written to the calendar. The service contacts the server first, for at most ten"
                " seconds. A resource can have at most %(limit)s connected calendars."
            )
            % {"resource": resource.name, "limit": MAX_CONNECTED},
            button=gettext("Connect"),
            back=reverse("admin:availability_resource_change", args=[resource.pk]),
        )

    def _choose_provider(self, request: HttpRequest, resource: Resource) -> HttpResponse:
        return self.show_page(
            request,
            "office/calendar_kinds.html",
            title=gettext("Connect a calendar of %(resource)s") % {"resource": resource.name},
            resource=resource,
            choices=provider_choices(resource),
            clients_url=clients_url() if may_change_clients(request, resource.app_id) else "",
            accounts=[
                (grant.email or grant.subject, provider_words(grant.provider), grant.pk)
                for grant in grants_of(resource)
            ],
            limit=MAX_CONNECTED,
            back=reverse("admin:availability_resource_change", args=[resource.pk]),
        )

    def _choose_resource(self, request: HttpRequest) -> HttpResponse:
        """Render the list of resources; ?q=ada filters it."""
        wanted = request.GET.get("q", "").replace("\0", "").strip()
        rows = visible_resources(request, least=Membership.EDITOR)
        if wanted:
            rows = rows.filter(name__icontains=wanted)
        found = list(rows.order_by("name", "id")[: LISTED + 1])
        return self.show_page(
            request,
            "office/calendar_whose.html",
            title=gettext("Connect a calendar"),
            resources=found[:LISTED],
            has_more=len(found) > LISTED,
            wanted=wanted,
        )

    def reconnect(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Render and handle the form with new credentials."""
        calendar = self.find_connected(request, object_id)
        if calendar.provider in OAUTH_PROVIDERS:
            return self.connect_again(request, calendar)
        form = ReconnectForm(calendar, request.POST or None)
        if request.method == "POST" and form.is_valid():
            try:
                calendar = reconnect_calendar(calendar, form.given, now=timezone.now())
            except NotFound:
                raise
            except Refusal as refusal:
                form.add_refusal(refusal)
            else:
                words = f"Reconnected to {calendar.provider_id}."
                self.log_change(request, calendar, words)
                sentence = gettext("“%(calendar)s” is reconnected.")
                messages.success(request, sentence % {"calendar": calendar.name})
                return self.redirect_to_row(calendar)
        if form.is_bound:
            form.forget_secrets(is_feed=not is_writable_kind(calendar))
        return self.show_page(
            request,
            "office/calendar_connect.html",
            form=form,
            title=gettext("Reconnect “%(calendar)s”") % {"calendar": calendar.name},
            sentence=gettext(
                "Unchanged fields keep their values. The service contacts the server first,"
                " for at most ten seconds, and then starts a sync. With the address of another"
                " calendar, the stored events are deleted."
            ),
            button=gettext("Reconnect"),
            back=self.url_of(calendar),
            original=calendar,
        )
