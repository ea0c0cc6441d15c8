"""Endpoints of keys: /credentials and /auth."""

import uuid
from collections.abc import Sequence
from typing import NamedTuple

from django.db.models import QuerySet
from rest_framework.response import Response

from access.password_login import Person, issue_token, log_in_with_password
from access.serializers import LogInSerializer, NewCredentialSerializer
from apps_config.base_views import PublicView, TenantView
from apps_config.models import Credential
from apps_config.services import issue_key, revoke_key
from availability.models import Project, Resource
from availability.records import RESOURCE_EXAMPLE, CredentialRecord, LogInRecord
from common.api.ordering import order_query_parameters
from common.api.prefixed_request_headers import service_header
from common.api.search_conditions import CREDENTIAL_SEARCH, filter_by_search
from common.api.validated_input import read_body_as
from common.api.views import ApiRequest, found_or_404
from common.errors import Invalid
from common.limits.rate_limit import customer_network
from common.openapi.generator import data_object, describe_endpoint, page_of, search_of

SERVER_KEY = CredentialRecord.example(
    kind="server",
    prefix="live_api_key_005d6e7f80_",
    key="live_api_key_005d6e7f80_Vb0GfXk1hJ3v8qz5WcYt7uR2nE6sLdA9oPiMxKjHgQw",
    last_used_at=None,
)


class CredentialScopedView(TenantView):
    """Base of the key endpoints: requires all permissions in the app, because keys grant access."""

    tag = "credentials"
    owner_methods = frozenset({"GET", "POST", "DELETE"})
    refuses_unknown_keys = True

    def credentials(self) -> QuerySet[Credential]:
        """Return the app's keys. Access tokens are not among them: they belong to accounts."""
        return Credential.objects.filter(app=self.app)


ORDERS = {name: name for name in ("created_at", "updated_at")}


class CredentialsView(CredentialScopedView):
    paginated = True
    secret_methods = frozenset({"POST"})

    @describe_endpoint(
        summary="List keys",
        description="The keys of the app and its resources, including revoked keys. `key` is"
        " shown for widget keys only, because widget keys are public.",
        response=page_of(CredentialRecord),
        query={
            "search": search_of(CREDENTIAL_SEARCH, f"resource.id:{RESOURCE_EXAMPLE['id']}"),
            **order_query_parameters(ORDERS),
        },
    )
    def get(self, request: ApiRequest) -> Response:
        terms = self.query.search(CREDENTIAL_SEARCH)
        rows = filter_by_search(self.credentials(), terms, CREDENTIAL_SEARCH)
        return self.list_page(request, self.filter_and_order(rows, ORDERS), CredentialRecord.of)

    @describe_endpoint(
        summary="Create a key",
        description="Only this response contains the full key (`key`); therefore the endpoint"
        " takes no Idempotency-Key. `projects` and `origins` are the scope of a widget key. POST"
        " /v2/auth creates access tokens.",
        request=NewCredentialSerializer,
        response=data_object(CredentialRecord),
        status=201,
        examples={"a server key": {"data": SERVER_KEY}},
        request_examples={
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
            "a resource's": {"kind": "resource", "resource_id": RESOURCE_EXAMPLE["id"]},
        },
    )
    def post(self, request: ApiRequest) -> Response:
        given = read_body_as(NewCredentialSerializer, request, zone=self.input_zone, now=self.now)
        credential, text = issue_key(
            given["kind"],
            mode=self.app.mode,
            description=given.get("description") or "",
            expires_at=given.get("expires_at"),
            app=self.app,
            resource=self._find_resource(given.get("resource_id")),
            projects=self._check_projects(given.get("projects")),
            origins=given.get("origins"),
        )
        return Response({"data": CredentialRecord.of(credential) | {"key": text}}, status=201)

    def _check_projects(self, project_ids: Sequence[uuid.UUID] | None) -> list[str] | None:
        """The ids as text. Raises Invalid if the app does not have one of the projects."""
        if project_ids is None:
            return None
        projects = Project.objects.for_app(self.app).filter(id__in=project_ids)
        found_ids = set(projects.values_list("id", flat=True))
        errors = {
            f"projects.{position}": ["There is no such project."]
            for position, project_id in enumerate(project_ids)
            if project_id not in found_ids
        }
        if errors:
            raise Invalid(errors)
        return [str(project_id) for project_id in dict.fromkeys(project_ids)]

    def _find_resource(self, resource_id: uuid.UUID | None) -> Resource | None:
        if resource_id is None:
            return None
        resource = Resource.objects.for_app(self.app).filter(id=resource_id).first()
        if resource is None:
            raise Invalid.at("resource_id", "There is no such resource.")
        return resource


class CredentialView(CredentialScopedView):
    @describe_endpoint(
        summary="Revoke a key",
        description="The key is refused at once and stays in the list. Revoking it again also"
        " returns 204.",
        status=204,
    )
    def delete(self, request: ApiRequest, credential_id: uuid.UUID) -> Response:
        row = self.credentials().filter(id=credential_id).first()
        revoke_key(found_or_404(row, "Credential"))
        return Response(status=204)


class LogIn(NamedTuple):
    person: Person
    credential: Credential
    api_token: str


class AuthView(PublicView):
    """Exchange a password for a key."""

    operation_ids = {"POST": "logIn"}
    tag = "credentials"
    query_like = True
    errors = (400, 401, 406, 413, 415, 422, 429)

    @describe_endpoint(
        summary="Log in with a password",
        description="An account gets a new access token, a resource a new resource key. Use it as"
        " the password of HTTP Basic with the e-mail address as the user name, for 30 days."
        " Each person has at most ten valid tokens. With `Service-App`, only people of this"
        " app can log in; without it, 422 if the log-in matches resources of several apps."
        " 401 `second_factor_required` if the password is right, but the account has a second"
        " factor: send the `code` as well. An account whose only second factor is a passkey can't"
        " log in here. All other failures are 401 `unauthenticated`. After too many wrong passwords"
        " from one network, or for one address, 429.",
        request=LogInSerializer,
        response=data_object(LogInRecord),
        request_examples={
            "an account": {"email": "owner@example.com", "password": "correct horse battery"},
            "with a second factor": {
                "email": "owner@example.com",
                "password": "correct horse battery",
                "code": "492039",
            },
        },
    )
    def post(self, request: ApiRequest) -> Response:
        given = read_body_as(LogInSerializer, request)
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
        key = issue_token(proof, network, now=self.now)
        return Response({"data": LogInRecord.of(LogIn(proof.person, *key))})
