"""Pages to connect calendars at providers with a consent page of their own (OAuth).

    Connect a calendar -> begin -> the provider -> /v2/calendars/callback -> come back -> choose

They contact the provider outside any transaction, as the pages of `connect.py`.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.http import urlencode
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST

from availability.models import Calendar, Resource
from common.errors import NotFound, Refusal
from external_calendars.consent import receive_consent, restore_calendar
from external_calendars.grants import (
    ConsentEnded,
    find_consent_request,
    is_client_registered,
    request_consent,
)
from external_calendars.models import Grant
from external_calendars.providers import OAUTH_PROVIDERS
from external_calendars.providers.base import DiscoveredCalendar
from external_calendars.services import connect_calendar, grant_access, list_account_calendars
from office.base.api_forms import choice_field
from office.base.model_admin import OfficeAdmin, refusal_words
from office.base.model_admin_pages import find_row
from office.base.permissions import visible_resources
from office.base.scope import account_of, is_allowed
from office.calendars.clients import clients_url, may_change_clients
from office.calendars.sync_status import account_words

ADD = "availability.add_calendar"
COME_BACK = "admin:availability_calendar_come_back"
MAX_PARAMETER = 4000  # of what the provider sends
# The key of the session for the grant that the person has just given.
NEW_GRANT = "new_calendar_grant"


class ProviderChoice(NamedTuple):
    """A provider as offered by the first page. hint: why it can't be used yet; "" if it can."""

    name: str
    label: str
    hint: str


def provider_choices(resource: Resource) -> list[ProviderChoice]:
    return [
        ProviderChoice(
            name,
            provider.label,
            "" if is_client_registered(resource.app_id, name) else no_client_words(name),
        )
        for name, provider in OAUTH_PROVIDERS.items()
    ]


def no_client_words(provider: str) -> str:
    """Return that there is no client, and what the operator or an owner has to do."""
    sentence = gettext(
        "No client is registered at %(provider)s: the operator sets %(id)s and %(secret)s, or an"
        " owner of the app enters a client."
    )
    return sentence % {
        "provider": OAUTH_PROVIDERS[provider].label,
        "id": f"{provider.upper()}_CLIENT_ID",
        "secret": f"{provider.upper()}_CLIENT_SECRET",
    }


def grants_of(resource: Resource) -> list[Grant]:
    """Return the grants that calendars of the resource use."""
    rows = Grant.objects.filter(
        provider__in=OAUTH_PROVIDERS,
        connections__calendar__resource=resource,
        connections__calendar__deleted_at=None,
    )
    return list(rows.distinct().order_by("provider", "email"))


class ChooseForm(forms.Form):
    """Which calendars of an account are connected, and which of them gets the bookings."""

    calendars = forms.MultipleChoiceField(required=False, widget=forms.CheckboxSelectMultiple)
    primary = forms.ChoiceField(required=False)

    def __init__(
        self, found: Sequence[DiscoveredCalendar], primary: str, *args: Any, **kwargs: Any
    ) -> None:
        """found: the calendars that can be connected. primary: the name of the resource's."""
        self.found = {calendar.address: calendar for calendar in found}
        super().__init__(*args, **kwargs)
        writable = [calendar for calendar in found if calendar.may_write]
        choice_field(self, "calendars").choices = [
            (calendar.address, _title_of(calendar)) for calendar in found
        ]
        choice_field(self, "primary").choices = [
            *((calendar.address, calendar.name) for calendar in writable),
            ("", gettext("“%(calendar)s”, as before") % {"calendar": primary})
            if primary
            else ("", gettext("none of them")),
        ]
        choice_field(self, "primary").label = gettext("Bookings are written to")
        self.fields["primary"].widget.attrs["class"] = "office-input"
        self.initial = {
            "calendars": [found[0].address] if found else [],
            "primary": writable[0].address if writable[:1] == found[:1] and not primary else "",
        }

    def clean(self) -> dict[str, Any]:
        given = super().clean() or self.cleaned_data
        chosen, primary = given.get("calendars", ()), given.get("primary")
        if not chosen:
            if "calendars" not in self.errors:
                self.add_error("calendars", gettext("Select at least one calendar."))
        elif primary and primary not in chosen:
            sentence = gettext("Select “%(calendar)s” above, too, or let another get the bookings.")
            self.add_error("primary", sentence % {"calendar": self.found[primary].name})
        return given

    @property
    def chosen(self) -> list[DiscoveredCalendar]:
        """Return the chosen calendars, first the one that gets the bookings."""
        chosen = [self.found[address] for address in self.cleaned_data["calendars"]]
        return sorted(chosen, key=lambda one: one.address != self.cleaned_data["primary"])


def _title_of(calendar: DiscoveredCalendar) -> str:
    if calendar.may_write:
        return calendar.name
    return gettext("%(calendar)s (read only)") % {"calendar": calendar.name}


class ConsentPages(OfficeAdmin[Calendar]):
    """Admin pages to connect a calendar with a person's consent."""

    # --- There ------------------------------------------------------------------------------------
    @method_decorator(require_POST)
    def begin(self, request: HttpRequest) -> HttpResponse:
        """Send the person to a provider's consent page. The form names `resource`, `provider`."""
        resource = find_connectable(request, request.POST.get("resource", ""))
        provider = request.POST.get("provider", "")
        if provider not in OAUTH_PROVIDERS:
            raise Http404
        return self._leave(request, resource, provider)

    def connect_again(self, request: HttpRequest, calendar: Calendar) -> HttpResponse:
        """Ask for confirmation; a POST sends the person to the provider of a connected calendar."""
        if request.method == "POST":
            return self._leave(request, calendar.resource, calendar.provider, calendar)
        provider = OAUTH_PROVIDERS[calendar.provider].label
        account = account_words(calendar.connection)
        return self.ask_confirmation(
            request,
            calendar,
            title=gettext("Connect “%(calendar)s” again?") % {"calendar": calendar.name},
            sentence=gettext(
                "You agree again at %(provider)s, with the account %(account)s. The calendar keeps"
                " its events and bookings."
            )
            % {"provider": provider, "account": account},
            button=gettext("Go to %(provider)s") % {"provider": provider},
            button_style="primary",
            back_words=gettext("Go back"),
        )

    def _leave(
        self,
        request: HttpRequest,
        resource: Resource,
        provider: str,
        calendar: Calendar | None = None,
    ) -> HttpResponse:
        """Render a page that goes on to the provider at once.

        A redirect of a form to another host is refused by browsers, because of the
        Content-Security-Policy; the provider may redirect to hosts that nobody can list there.
        """
        if not is_client_registered(resource.app_id, provider):
            return self._show_end(
                request, no_client_words(provider), resource, provider, calendar, may_repeat=False
            )
        try:
            url = request_consent(
                resource=resource,
                provider=provider,
                redirect_url=request.build_absolute_uri(reverse(COME_BACK)),
                calendar=calendar,
                account=account_of(request),
                now=timezone.now(),
            )
        except Refusal as refusal:
            words = refusal_words(refusal)
            return self._show_end(request, words, resource, provider, calendar, may_repeat=False)
        label = OAUTH_PROVIDERS[provider].label
        return self.show_page(
            request,
            "office/calendar_leave.html",
            title=gettext("Go to %(provider)s") % {"provider": label},
            url=url,
        )

    # --- And back ---------------------------------------------------------------------------------
    @method_decorator(require_http_methods(["GET"]))
    def come_back(self, request: HttpRequest) -> HttpResponse:
        """Store the consent of the person who is back from the provider."""
        state, code, error = (
            request.GET.get(name, "")[:MAX_PARAMETER] for name in ("state", "code", "error")
        )
        now = timezone.now()
        try:
            consent = find_consent_request(state, now=now)
        except ConsentEnded:
            return self._show_end(request, _ended_words())
        if consent.account_id != account_of(request).pk:
            return self._show_end(
                request,
                gettext("Somebody else began this connection: connect the calendar yourself."),
            )
        resource, calendar = find_connectable(request, consent.resource_id), consent.calendar
        try:
            _, grant = receive_consent(consent, code, error, now=now)
            if calendar is not None:
                calendar = restore_calendar(calendar, now=now)
        except ConsentEnded:
            return self._show_end(request, _ended_words(), resource, consent.provider, calendar)
        except NotFound:
            raise Http404 from None
        except Refusal as refusal:
            words = refusal_words(refusal)
            return self._show_end(request, words, resource, consent.provider, calendar)
        if calendar is not None:
            self.log_change(request, calendar, f"Connected again to {calendar.provider_id}.")
            sentence = gettext("“%(calendar)s” is reconnected.")
            messages.success(request, sentence % {"calendar": calendar.name})
            return self.redirect_to_row(calendar)
        request.session[NEW_GRANT] = str(grant.pk)
        return HttpResponseRedirect(choose_url(resource, grant))

    def _show_end(
        self,
        request: HttpRequest,
        sentence: str,
        resource: Resource | None = None,
        provider: str = "",
        calendar: Calendar | None = None,
        *,
        may_repeat: bool = True,
    ) -> HttpResponse:
        """Render why nothing was connected, and what the person can do."""
        back = reverse("admin:availability_calendar_connect")
        if calendar is not None:
            back = self.url_of(calendar)
        elif resource is not None:
            back = f"{back}?{urlencode({'resource': str(resource.pk)})}"
        return self.show_page(
            request,
            "office/calendar_not_connected.html",
            title=gettext("The calendar is not connected"),
            sentence=sentence,
            resource=resource,
            provider=provider,
            calendar=calendar,
            may_repeat=may_repeat and resource is not None,
            clients_url=clients_url()
            if resource and not may_repeat and may_change_clients(request, resource.app_id)
            else "",
            back=back,
        )

    # --- Choose -----------------------------------------------------------------------------------
    def choose(self, request: HttpRequest) -> HttpResponse:
        """Let the person choose calendars of an account: ?resource=id&grant=id."""
        resource = find_connectable(request, request.GET.get("resource", ""))
        grant = _find_grant(request, resource)
        try:
            found = list_account_calendars(grant)
        except Refusal as refusal:
            return self._show_end(request, refusal_words(refusal), resource, grant.provider)
        if not found:
            sentence = gettext("The account %(account)s has no calendar.")
            words = sentence % {"account": grant.email or grant.subject}
            return self._show_end(request, words, resource, grant.provider)
        known = _connected_calendars(resource)
        primary = next((one.name for one in known.values() if one.provider_primary), "")
        fresh = [calendar for calendar in found if calendar.address not in known]
        form = ChooseForm(fresh, primary, request.POST or None)
        if request.method == "POST" and form.is_valid():
            return self._connect_chosen(request, resource, grant, form)
        provider = OAUTH_PROVIDERS[grant.provider].label
        return self.show_page(
            request,
            "office/calendar_choose.html",
            title=gettext("Connect a calendar of %(resource)s") % {"resource": resource.name},
            account=grant.email or grant.subject,
            provider=provider,
            form=form,
            has_choice=bool(fresh),
            connected=_connected_words(found, known),
            back=reverse("admin:availability_resource_change", args=[resource.pk]),
        )

    def _connect_chosen(
        self, request: HttpRequest, resource: Resource, grant: Grant, form: ChooseForm
    ) -> HttpResponse:
        """Connect each chosen calendar; one that is refused does not keep out the others."""
        connected, is_refused = [], False
        for one in form.chosen:
            try:
                calendar = connect_calendar(
                    resource=resource,
                    provider=grant.provider,
                    access=grant_access(grant, one.address),
                    grant=grant,
                    given={},
                    is_primary=one.address == form.cleaned_data["primary"],
                    now=timezone.now(),
                )
            except Refusal as refusal:
                is_refused = True
                sentence = gettext("“%(calendar)s” is not connected: %(reason)s")
                reason = refusal_words(refusal)
                messages.error(request, sentence % {"calendar": one.name, "reason": reason})
                continue
            connected.append(calendar)
            self.log_addition(request, calendar, f"Connected to {calendar.provider_id}.")
            words = gettext("“%(calendar)s” is connected. The first sync is running.")
            messages.success(request, words % {"calendar": calendar.name})
        if len(connected) == 1 and not is_refused:
            return self.redirect_to_row(connected[0])
        if connected:
            return HttpResponseRedirect(
                reverse("admin:availability_resource_change", args=[resource.pk])
            )
        return HttpResponseRedirect(choose_url(resource, grant))


def _ended_words() -> str:
    return gettext(
        "This request is older than ten minutes or was used already: connect the calendar again."
    )


def choose_url(resource: Resource, grant: Grant) -> str:
    query = urlencode({"resource": str(resource.pk), "grant": str(grant.pk)})
    return f"{reverse('admin:availability_calendar_choose')}?{query}"


def find_connectable(request: HttpRequest, resource_id: object) -> Resource:
    """Return a resource that the account may connect calendars to.

    Raises Http404, PermissionDenied.
    """
    resource = find_row(visible_resources(request), resource_id)
    if not is_allowed(request, ADD, resource.app_id):
        raise PermissionDenied
    return resource


def _find_grant(request: HttpRequest, resource: Resource) -> Grant:
    """Return a grant of the resource's calendars, or the one that the person has just given."""
    grant = find_row(
        Grant.objects.filter(app=resource.app_id, provider__in=OAUTH_PROVIDERS),
        request.GET.get("grant", ""),
    )
    is_new = request.session.get(NEW_GRANT) == str(grant.pk)
    if not is_new and grant not in grants_of(resource):
        raise Http404
    return grant


def _connected_calendars(resource: Resource) -> Mapping[str, Calendar]:
    """Return address -> connected calendar of the resource."""
    rows = Calendar.objects.filter(resource=resource, deleted_at=None, connection__isnull=False)
    return {calendar.provider_id: calendar for calendar in rows}


def _connected_words(
    found: Collection[DiscoveredCalendar], known: Mapping[str, Calendar]
) -> list[str]:
    sentence = gettext("This calendar is already connected as “%(name)s”.")
    return [sentence % {"name": known[one.address].name} for one in found if one.address in known]
