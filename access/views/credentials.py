"""Endpoints of keys: /credentials and /auth."""

import uuid
from collections.abc import Mapping, Sequence
from ipaddress import ip_network
from typing import Any, NamedTuple

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from access.password_login import Person, issue_token, log_in_with_password
from access.serializers import CredentialSerializer, LogInInputSerializer, LogInSerializer
from apps_config.authentication import Caller
from apps_config.base_views import PublicView, TenantViewSet
from apps_config.models import App, Credential
from apps_config.permissions import WIDER_KEY, may_make_key
from apps_config.services import issue_key, revoke_key
from availability.models import Project, Resource
from availability.serializers.resources import RESOURCE_EXAMPLE
from common.api.query import service_header
from common.api.search_conditions import CREDENTIAL_SEARCH
from common.api.serializers import read_body_as
from common.errors import Forbidden, Invalid
from common.limits.rate_limit import customer_network
from common.openapi.generator import named_examples

SERVER_KEY = CredentialSerializer.example(
    kind="server",
    prefix="live_api_key_005d6e7f80_",
    key="live_api_key_005d6e7f80_Vb0GfXk1hJ3v8qz5WcYt7uR2nE6sLdA9oPiMxKjHgQw",
    last_used_at=None,
)


def check_projects(app: App, project_ids: Sequence[uuid.UUID] | None) -> list[str] | None:
    """The ids as text. Raises Invalid if the app does not have one of the projects."""
    if project_ids is None:
        return None
    projects = Project.objects.for_app(app).filter(id__in=project_ids)
    found_ids = set(projects.values_list("id", flat=True))
    Invalid.check_known("projects", project_ids, found_ids, "There is no such project.")
    return [str(project_id) for project_id in dict.fromkeys(project_ids)]


def check_may_make(caller: Caller, given: Mapping[str, Any]) -> None:
    """Raise Forbidden for a key that may do more than the caller's own."""
    networks = given.get("addresses")
    may_make = may_make_key(
        caller,
        given["kind"],
        scopes=given.get("scopes"),
        projects=given.get("projects"),
        addresses=None if networks is None else [ip_network(each) for each in networks],
    )
    if not may_make:
        raise Forbidden(WIDER_KEY)


def find_resource(app: App, resource_id: uuid.UUID | None) -> Resource | None:
    if resource_id is None:
        return None
    resource = Resource.objects.for_app(app).filter(id=resource_id).first()
    if resource is None:
        raise Invalid.at("resource_id", "There is no such resource.")
    return resource


class CredentialViewSet(TenantViewSet):
    """Owners only, because keys grant access."""

    serializer_class = CredentialSerializer
    lookup_url_kwarg = "credential_id"
    tag = "credentials"
    refuses_unknown_keys = True
    secret_actions = {"create": ("key",)}
    search_fields = CREDENTIAL_SEARCH
    search_example = f"resource.id:{RESOURCE_EXAMPLE['id']}"
    ordering_fields = {name: name for name in ("created_at", "updated_at")}

    def get_queryset(self) -> QuerySet[Credential]:
        """Return the app's keys. Access tokens are not among them: they belong to accounts."""
        return Credential.objects.filter(app=self.app)

    @extend_schema(
        summary="List keys",
        description="The keys of the app and its resources, including revoked keys. `key` is"
        " shown for widget keys only, because widget keys are public.",
    )
    def list(self, request: Request) -> Response:
        rows = self.filter_queryset(self.get_queryset())
        return self.list_page(request, rows, CredentialSerializer.render)

    @extend_schema(
        summary="Create a key",
        description="Only this response contains the full key (`key`). `scopes`, `projects`,"
        " `addresses` and `origins` limit what it may do, for which projects, from where. 403 for a"
        " key that may do more than the key of the request. POST /v2/auth creates access tokens.",
        examples=named_examples(
            request={
                "for a web site": {
                    "kind": "widget",
                    "description": "www.example.com",
                    "origins": ["https://www.example.com"],
                },
                "for a year": {
                    "kind": "server",
                    "description": "Night job",
                    "expires_at": "2099-01-01T00:00:00Z",
                },
                "to read free time and to book": {
                    "kind": "server",
                    "description": "Assistant",
                    "scopes": ["availability:read", "bookings:write"],
                    "addresses": ["203.0.113.0/24"],
                },
                "a resource's": {"kind": "resource", "resource_id": RESOURCE_EXAMPLE["id"]},
            },
            response={"a server key": {"data": SERVER_KEY}},
        ),
    )
    def create(self, request: Request) -> Response:
        given = read_body_as(CredentialSerializer, request, zone=self.input_zone, now=self.now)
        check_may_make(self.caller, given)
        credential, text = issue_key(
            given["kind"],
            mode=self.app.mode,
            description=given.get("description") or "",
            expires_at=given.get("expires_at"),
            app=self.app,
            resource=find_resource(self.app, given.get("resource_id")),
            projects=check_projects(self.app, given.get("projects")),
            origins=given.get("origins"),
            scopes=given.get("scopes"),
            addresses=given.get("addresses"),
        )
        return Response(
            {"data": CredentialSerializer.render(credential) | {"key": text}}, status=201
        )

    @extend_schema(
        summary="Revoke a key",
        description="The key is refused at once and stays in the list. Revoking it again also"
        " returns 204. 403 for a key that may do more than the key of the request.",
    )
    def destroy(self, request: Request, credential_id: uuid.UUID) -> Response:
        key = self.get_object()
        projects = None if key.projects is None else [uuid.UUID(each) for each in key.projects]
        check_may_make(
            self.caller,
            {
                "kind": key.kind,
                "scopes": key.scopes,
                "projects": projects,
                "addresses": key.addresses,
            },
        )
        revoke_key(key)
        return Response(status=204)


class LogIn(NamedTuple):
    person: Person
    credential: Credential
    api_token: str


class AuthView(PublicView):
    """Exchange a password for a key."""

    operation_ids = {"POST": "logIn"}
    tag = "credentials"
    is_query = True  # in its description; a second attempt would use up its code
    refuses_unknown_keys = True
    errors = (400, 401, 406, 413, 415, 422, 429)

    @extend_schema(
        summary="Log in with a password",
        description="An account gets a new access token, a resource a new resource key. Use it as"
        " the password of HTTP Basic with the e-mail address as the user name, for 30 days."
        " Each person has at most ten valid tokens. With `Service-App`, only people of this"
        " app can log in; without it, 422 if the log-in matches resources of several apps."
        " 401 `second_factor_required` if the password is right, but the account has a second"
        " factor: send the `code` as well. An account whose only second factor is a passkey can't"
        " log in here. All other failures are 401 `unauthenticated`. After too many wrong passwords"
        " from one network, or for one address, 429.",
        request=LogInInputSerializer,
        responses={200: LogInSerializer},
        examples=named_examples(
            request={
                "an account": {"email": "owner@example.com", "password": "correct horse battery"},
                "with a second factor": {
                    "email": "owner@example.com",
                    "password": "correct horse battery",
                    "code": "492039",
                },
            }
        ),
    )
    def post(self, request: Request) -> Response:
        given = read_body_as(LogInInputSerializer, request)
        network = customer_network(request)
        proof = log_in_with_password(
            email=given["email"],
            password=given["password"],
            code=given.get("code") or "",
            app_slug=service_header(request, "App"),
            network=network,
            now=self.now,
        )
        if isinstance(proof.person, Resource):
            self.app = proof.person.app
        key = issue_token(proof, network, scopes=given.get("scopes"), now=self.now)
        return Response({"data": LogInSerializer.render(LogIn(proof.person, *key))})
