"""Log-in of programs with OAuth 2.1: the page on which a member allows one, and its endpoints.

allauth.idp.oidc runs the protocol. A program is a public client, which `manage.py oauth_client`
registers, so PKCE proves that the same program asks for the token.
"""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode, urlsplit

from allauth.idp.oidc.models import Client
from allauth.idp.oidc.views import AuthorizationView, TokenView
from django import forms
from django.conf import settings
from django.contrib.admin import site
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

from access.oauth_clients import LOOPBACK, is_redirect_uri_of
from apps_config.client_access import AUDIENCES, CLIENT_SCOPES, allow_client, give_back_token
from apps_config.models import App, Membership
from availability.models import Project
from office.access.fresh_log_in import require_fresh_log_in, with_second_factor
from office.access.keys import SCOPE_WORDS
from office.base.scope import account_of
from office.middleware import CONTENT_SECURITY_POLICY

CODE = re.compile(r"[A-Za-z0-9_-]{1,100}")
View = Callable[..., HttpResponseBase]


def redirect_to_client(redirect_uri: str, **parameters: str) -> HttpResponse:
    """Send the browser back to the program, and say who answers (RFC 9207)."""
    given = {name: text for name, text in parameters.items() if text}
    query = urlencode(given | {"iss": settings.PUBLIC_URL})
    return HttpResponseRedirect(f"{redirect_uri}{'&' if '?' in redirect_uri else '?'}{query}")


class ConsentForm(forms.Form):
    request = forms.CharField(widget=forms.HiddenInput)
    scopes = forms.MultipleChoiceField(
        label=_("It may"),
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": _("Select at least one.")},
    )
    projects = forms.ModelMultipleChoiceField(
        queryset=Project.objects.none(),
        label=_("Only for these services"),
        help_text=_("None ticked: all services."),
        widget=forms.CheckboxSelectMultiple,
        required=False,
    )

    def __init__(
        self, *args: Any, user: Any, requested_scopes: list[str], app: App, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        scopes, projects = self.fields["scopes"], self.fields["projects"]
        asked = [scope for scope in CLIENT_SCOPES if scope in requested_scopes]
        scopes.choices = [(scope, SCOPE_WORDS[scope]) for scope in asked]  # type: ignore[attr-defined]
        scopes.initial = asked
        projects.queryset = Project.objects.for_app(app).order_by("name", "slug")  # type: ignore[attr-defined]


class ConsentView(AuthorizationView):
    """Asks which app, which services and what a program may use."""

    form_class = ConsentForm
    template_name = "office/consent.html"

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        require_fresh_log_in(request)
        if refusal := refuse_request(request):
            return refusal
        if self.find_app() is None:
            return self.ask_for_app(request)
        return self.with_issuer(super().get(request, *args, **kwargs))

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not request.POST.get("request"):
            raise PermissionDenied
        return self.with_issuer(super().post(request, *args, **kwargs))

    def with_issuer(self, response: HttpResponse) -> HttpResponse:
        if "Location" in response:
            return redirect_to_client(response["Location"])
        return response

    def find_app(self) -> App | None:
        """The chosen app of the account, or its only one."""
        slug = self.request.POST.get("app") or self.request.GET.get("app")
        apps = [each for each in self.list_apps() if slug in (None, each.slug)]
        return apps[0] if len(apps) == 1 else None

    def list_apps(self) -> list[App]:
        members = Membership.objects.filter(account=account_of(self.request), app__archived_at=None)
        return [each.app for each in members.select_related("app").order_by("app__name", "app_id")]

    def ask_for_app(self, request: HttpRequest) -> HttpResponse:
        apps = self.list_apps()
        if not apps:
            return show_refusal(request, gettext("Your account is a member of no app."))
        query = request.GET.copy()
        links = []
        for app in apps:
            query["app"] = app.slug
            links.append((app, f"?{query.urlencode()}"))
        client = Client.objects.get(pk=request.GET["client_id"])
        context = site.each_context(request) | {"client": client, "links": links}
        return render(request, "office/consent_app.html", context)

    def get_form_kwargs(self) -> dict[str, Any]:
        app = self.find_app()
        if app is None:
            raise PermissionDenied
        return super().get_form_kwargs() | {"app": app}

    def form_valid(self, form: forms.Form) -> HttpResponse:
        given = form.cleaned_data
        client = Client.objects.get(pk=self._request_info["client_id"])
        app = self.find_app()
        assert app is not None  # noqa: S101 # nosec B101  # by get_form_kwargs
        with transaction.atomic():
            allow_client(
                client,
                account=account_of(self.request),
                app=app,
                scopes=given["scopes"],
                projects=[project.pk for project in given["projects"]] or None,
            )
            return super().form_valid(form)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        others = self.request.GET.copy()
        others.pop("app", None)
        target = urlsplit(self._request_info["redirect_uri"]).hostname
        return {
            **site.each_context(self.request),
            **super().get_context_data(**kwargs),
            "app": self.find_app(),
            "other_apps": f"?{others.urlencode()}" if len(self.list_apps()) > 1 else "",
            "returns_to": None if target in LOOPBACK else target,
        }

    def render_to_response(self, context: dict[str, Any], **kwargs: Any) -> HttpResponse:
        """Allow the form to end at the program: browsers also check a redirect after it."""
        response = super().render_to_response(context, **kwargs)
        target = urlsplit(self._request_info["redirect_uri"])
        port = f":{target.port}" if target.port else ""
        response["Content-Security-Policy"] = CONTENT_SECURITY_POLICY.replace(
            "form-action 'self'", f"form-action 'self' {target.scheme}://{target.hostname}{port}"
        )
        return response


def show_refusal(request: HttpRequest, sentence: str) -> HttpResponse:
    context = site.each_context(request) | {"sentence": sentence}
    return render(request, "office/consent_refused.html", context, status=400)


def refuse_request(request: HttpRequest) -> HttpResponse | None:
    """Answer a request for a permission that is not as this service wants it; None for others."""
    given = request.GET
    redirect_uri, state = given.get("redirect_uri", ""), given.get("state", "")
    client = find_client(given.get("client_id", ""))
    if client is None or not is_redirect_uri_of(client, redirect_uri):
        sentence = gettext(
            "This program, or the address to which it returns, is not registered here. Nothing was"
            " allowed."
        )
        return show_refusal(request, sentence)
    error = ""
    if not given.get("code_challenge") or given.get("code_challenge_method") != "S256":
        error = "invalid_request"
    elif not AUDIENCES.issuperset(given.getlist("resource")):
        error = "invalid_target"
    elif "none" in given.get("prompt", "").split():
        error = "consent_required"
    return redirect_to_client(redirect_uri, error=error, state=state) if error else None


def find_client(client_id: str) -> Client | None:
    known = CODE.fullmatch(client_id)
    return Client.objects.filter(pk=client_id).first() if known else None


def only_if_on(view: View) -> View:
    def guarded(request: HttpRequest) -> HttpResponseBase:
        if not settings.OAUTH_SERVER:
            raise Http404
        return view(request)

    return guarded


authorize = only_if_on(login_required(with_second_factor(ConsentView.as_view())))


@csrf_exempt
@only_if_on
@require_POST
def issue_token(request: HttpRequest) -> HttpResponseBase:
    """The token endpoint: a code or a refresh token for tokens.

    Requests of a client wait for each other: of two with the same code, the second finds it used.
    """
    if not AUDIENCES.issuperset(request.POST.getlist("resource")):
        return JsonResponse({"error": "invalid_target"}, status=400)
    client_id = request.POST.get("client_id", "")
    if not CODE.fullmatch(client_id):
        return JsonResponse({"error": "invalid_client"}, status=401)
    if not CODE.fullmatch(request.POST.get("code", "-")):
        return JsonResponse({"error": "invalid_grant"}, status=400)
    with transaction.atomic():
        Client.objects.select_for_update(no_key=True).filter(pk=client_id).first()
        return TokenView.as_view()(request)


@csrf_exempt
@only_if_on
@require_POST
def revoke_token(request: HttpRequest) -> HttpResponseBase:
    """The revocation endpoint (RFC 7009): a token of a client ends the whole permission."""
    if CODE.fullmatch(client_id := request.POST.get("client_id", "")):
        give_back_token(request.POST.get("token", ""), client_id)
    return HttpResponse(status=200)


@only_if_on
@require_GET
def show_metadata(request: HttpRequest) -> HttpResponseBase:
    """GET /.well-known/oauth-authorization-server (RFC 8414)."""
    own = settings.PUBLIC_URL
    return JsonResponse(
        {
            "issuer": own,
            "authorization_endpoint": f"{own}{reverse('oauth_authorize')}",
            "token_endpoint": f"{own}{reverse('oauth_token')}",
            "revocation_endpoint": f"{own}{reverse('oauth_revoke')}",
            "scopes_supported": CLIENT_SCOPES,
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": ["none"],
            "revocation_endpoint_auth_methods_supported": ["none"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
        },
        headers={"Access-Control-Allow-Origin": "*"},
    )
