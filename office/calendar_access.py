"""Connecting a calendar that is kept elsewhere, in the back office: the forms and their pages.

Its server is asked while a form is answered, for ten seconds at most and outside of any
transaction: these are views of their own because the theme's forms are saved inside one.
"""

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone

from apps_config.models import Membership
from apps_config.scope import is_allowed
from availability.models import Calendar, Resource
from external_calendars.providers import PROVIDERS
from external_calendars.providers.base import Access
from external_calendars.serializers.calendars import AccessSerializer, ConnectSerializer
from external_calendars.services import (
    MOST_CONNECTED,
    TYPE_AGAIN,
    connect,
    reconnect,
    would_tell_another_server,
)
from office.reach import resources_in_reach
from scheduling.api.errors import AlreadyExists, Invalid, NotFound, Refusal

ADD = "availability.add_calendar"
LISTED = 50  # resources to choose from at once; others are found by name
ACCESS = ("address", "username", "password")
# Of the API's body, where it is called otherwise here.
FIELD_OF = {"provider_primary": "primary"}
PRIMARY = {"": None, "yes": True, "no": False}


class AccessForm(forms.Form):
    """How it is reached. Neither a password nor a feed's address comes back with a refusal."""

    address = forms.CharField(
        label="Address",
        max_length=2000,
        help_text="Of the calendar, of its server alone (it is looked for there), or of a feed.",
    )
    username = forms.CharField(label="User name", max_length=300, required=False)
    password = forms.CharField(
        label="Password",
        max_length=1000,
        required=False,
        strip=False,
        widget=forms.PasswordInput,
        help_text="Kept encrypted, and never shown again. Many servers want one that is made for"
        " programs.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs |= {"class": "office-input", "autocomplete": "off"}
        self.fields["password"].widget.attrs["autocomplete"] = "new-password"

    def add_faults(self, faults: Mapping[str, Iterable[Any]]) -> None:
        """Of the API's body, each at its field."""
        for name, found in faults.items():
            field = FIELD_OF.get(name, name)
            if field in self.errors:
                continue
            self.add_error(field if field in self.fields else None, [str(one) for one in found])

    def add_refusal(self, refusal: Refusal) -> None:
        if isinstance(refusal, Invalid):
            self.add_faults(refusal.fields["errors"])
        else:
            field = "address" if isinstance(refusal, AlreadyExists) else None
            self.add_error(field, refusal.message)

    def forget_secrets(self, *, is_feed: bool) -> None:
        """What was typed of them stands in no page: `data` is what the fields are filled with."""
        self.data = self.data.copy()
        for name in ("password", "address") if is_feed else ("password",):
            self.data[name] = ""


class ConnectForm(AccessForm):
    """As POST /v2/calendars takes it."""

    provider = forms.ChoiceField(label="Kept at")
    name = forms.CharField(
        label="Name", max_length=200, required=False, help_text="Empty: its name there."
    )
    primary = forms.ChoiceField(
        label="Bookings of the resource are written to it",
        required=False,
        choices=[
            ("", "if none of its calendars takes them yet"),
            ("yes", "yes, and to no other"),
            ("no", "no"),
        ],
    )
    field_order = ("provider", "address", "username", "password", "name", "primary")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["provider"].choices = [
            (name, provider.label) for name, provider in PROVIDERS.items()
        ]

    def clean(self) -> dict[str, Any]:
        given = super().clean()
        body = {name: given[name] for name in (*ACCESS, "provider") if name in given}
        if given.get("name"):
            body["name"] = given["name"]
        serializer = ConnectSerializer(data=body | {"resource_id": str(uuid.UUID(int=0))})
        self.given = serializer.validated_data if serializer.is_valid() else {}
        self.add_faults(serializer.errors)
        return given

    @property
    def access(self) -> Access:
        return Access(*[self.given.get(name) or "" for name in ACCESS])


class ReconnectForm(AccessForm):
    """As PUT /v2/calendars/:id takes it: what is left as it was stays."""

    def __init__(self, calendar: Calendar, *args: Any, **kwargs: Any) -> None:
        self.calendar = calendar
        is_feed = not is_writable_kind(calendar)
        shown = {
            "address": "" if is_feed else calendar.provider_id,
            "username": calendar.connection.username,
        }
        super().__init__(*args, initial=shown, **kwargs)
        self.fields["password"].help_text = "Empty: the password stays."
        if is_feed:
            self.fields["address"].required = False
            self.fields[
                "address"
            ].help_text = f"Of a feed at {calendar.provider_id}; it is secret. Empty: it stays."

    def clean(self) -> dict[str, Any]:
        given = super().clean()
        changed = {name: given[name] for name in self.changed_data if name in given}
        if changed.get("username") == "":
            changed["password"] = given.get("password", "")
        serializer = AccessSerializer(data=changed)
        self.given = serializer.validated_data if serializer.is_valid() else {}
        self.add_faults(serializer.errors)
        if would_tell_another_server(self.calendar, self.given):
            self.add_error("password", TYPE_AGAIN)
        return given


def is_writable_kind(calendar: Calendar) -> bool:
    """Whether its provider can write; what can't is a feed, of which the address is a secret."""
    provider = PROVIDERS.get(calendar.provider)
    return provider is not None and provider.can_write


# --- Connect --------------------------------------------------------------------------------------
def show_connect(page: Any, request: HttpRequest) -> HttpResponse:
    """?resource=id. `page` is the calendar's admin class. Without a resource, which one."""
    if not is_allowed(request, ADD, None):
        raise PermissionDenied
    if not request.GET.get("resource"):
        return _choose_resource(page, request)
    resource = _find_resource(request)
    form = ConnectForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            calendar = connect(
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
            page.log_addition(request, calendar, f"Connected to {calendar.provider_id}.")
            messages.success(
                request, f"“{calendar.name}” is connected. It is being read for the first time."
            )
            return _to_page(calendar)
    if form.is_bound:
        provider = PROVIDERS.get(form.data.get("provider", ""))
        form.forget_secrets(is_feed=provider is None or not provider.can_write)
    return _show_form(
        page,
        request,
        form,
        title=f"Connect a calendar of {resource.name}",
        sentence=f"One that {resource.name} keeps elsewhere. What stands in it takes time here;"
        " if it can be written to, bookings stand there too. Its server is asked first, which"
        f" takes up to ten seconds. A resource has at most {MOST_CONNECTED} of them.",
        button="Connect",
        back=reverse("admin:availability_resource_change", args=[resource.pk]),
    )


def _find_resource(request: HttpRequest) -> Resource:
    try:
        key = uuid.UUID(request.GET["resource"])
    except ValueError:
        raise Http404 from None
    resource = resources_in_reach(request).filter(id=key).first()
    if resource is None:
        raise Http404
    if not is_allowed(request, ADD, resource.app_id):
        raise PermissionDenied
    return resource


def _choose_resource(page: Any, request: HttpRequest) -> HttpResponse:
    """Whose calendar it is: ?q=ada narrows them."""
    wanted = request.GET.get("q", "").replace("\0", "").strip()
    rows = resources_in_reach(request, least=Membership.EDITOR)
    if wanted:
        rows = rows.filter(name__icontains=wanted)
    found = list(rows.order_by("name", "id")[: LISTED + 1])
    context = {
        **page.admin_site.each_context(request),
        "opts": page.model._meta,
        "title": "Connect a calendar",
        "resources": found[:LISTED],
        "has_more": len(found) > LISTED,
        "wanted": wanted,
    }
    return TemplateResponse(request, "office/calendar_whose.html", context)


# --- Connect again --------------------------------------------------------------------------------
def show_reconnect(page: Any, request: HttpRequest, calendar: Calendar) -> HttpResponse:
    """The form for a calendar that may be changed."""
    form = ReconnectForm(calendar, request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            calendar = reconnect(calendar, form.given, now=timezone.now())
        except NotFound:
            raise
        except Refusal as refusal:
            form.add_refusal(refusal)
        else:
            page.log_change(request, calendar, f"Connected again, to {calendar.provider_id}.")
            messages.success(request, f"“{calendar.name}” is connected again.")
            return _to_page(calendar)
    if form.is_bound:
        form.forget_secrets(is_feed=not is_writable_kind(calendar))
    return _show_form(
        page,
        request,
        form,
        title=f"Connect “{calendar.name}” again",
        sentence="What you leave as it is stays. Its server is asked first, which takes up to ten"
        " seconds; a problem that had stopped it is over then. With another calendar's address,"
        " what was read from this one goes.",
        button="Connect again",
        back=reverse("admin:availability_calendar_change", args=[calendar.pk]),
        original=calendar,
    )


def _show_form(page: Any, request: HttpRequest, form: AccessForm, **words: Any) -> HttpResponse:
    context = {
        **page.admin_site.each_context(request),
        "opts": page.model._meta,
        "form": form,
        **words,
    }
    return TemplateResponse(request, "office/calendar_connect.html", context)


def _to_page(calendar: Calendar) -> HttpResponse:
    return HttpResponseRedirect(reverse("admin:availability_calendar_change", args=[calendar.pk]))
