"""Endpoints of keys: /credentials and /auth. Here, because a resource's key names a resource."""

import uuid
from typing import Any

from rest_framework.response import Response

from apps_config.authentication import count_failed_login, forgive_login
from apps_config.endpoints import PublicView, TenantView
from apps_config.models import Account, Credential
from apps_config.services import issue_key, issue_log_in_key, revoke_key
from availability.filters import CREDENTIAL_SEARCH, apply_search
from availability.log_ins import find_people
from availability.models import Resource
from availability.records import credential_record, log_in_record
from availability.schemas import CREDENTIAL, CREDENTIAL_EXAMPLE, LOG_IN, RESOURCE_EXAMPLE
from availability.serializers.credentials import LogInSerializer, NewCredentialSerializer
from availability.views.scoped import LISTING, found
from scheduling.api.bodies import read_body_as
from scheduling.api.errors import Invalid, Unauthenticated
from scheduling.api.headers import service_header
from scheduling.api.ordering import order_query, read_order
from scheduling.api.rates import client_address
from scheduling.api.schema import described, one, page_of, search_of

SERVER_KEY = CREDENTIAL_EXAMPLE | {
    "kind": "server",
    "prefix": "live_api_key_5d6e7f80_",
    "key": "live_api_key_5d6e7f80_Vb0GfXk1hJ3v8qz5WcYt7uR2nE6sLdA9oPiMxKjHgQw",
    "last_used_at": None,
}


class CredentialScopedView(TenantView):
    """Keys open doors: only who may do everything in the app sees and makes them."""

    tag = "credentials"
    owner_methods = frozenset({"GET", "POST", "DELETE"})

    def credentials(self) -> Any:
        """The app's keys. Access tokens are none: they belong to accounts."""
        return Credential.objects.filter(app=self.app)


ORDERS = {"created_at": "created_at"}


class CredentialsView(CredentialScopedView):
    paginated = True
    secret_methods = frozenset({"POST"})
    query_names = {"GET": LISTING}

    @described(
        summary="List keys",
        description="Of the app and its resources, also those that were revoked. Only a widget"
        " key's text is shown (`key`): it stands in public pages anyway.",
        response=page_of(CREDENTIAL),
        query={
            "search": search_of(CREDENTIAL_SEARCH, f"resource.id:{RESOURCE_EXAMPLE['id']}"),
            **order_query(ORDERS),
        },
    )
    def get(self, request: Any) -> Response:
        terms = self.query.search(CREDENTIAL_SEARCH)
        rows = apply_search(self.credentials(), terms, CREDENTIAL_SEARCH)
        rows = rows.order_by(*read_order(self.query, ORDERS))
        return self.list_page(request, rows, credential_record)

    @described(
        summary="Make a key",
        description="The answer shows its text (`key`), once; therefore no Idempotency-Key is"
        " taken. Access tokens come from POST /v2/auth.",
        request=NewCredentialSerializer,
        response=one(CREDENTIAL),
        status=201,
        examples={"a server key": {"data": SERVER_KEY}},
        request_examples={
            "for a web site": {"kind": "widget", "description": "www.example.com"},
            "for a year": {
                "kind": "server",
                "description": "Night job",
                "expires_at": "2099-01-01T00:00:00Z",
            },
            "a resource's": {"kind": "resource", "resource_id": RESOURCE_EXAMPLE["id"]},
        },
    )
    def post(self, request: Any) -> Response:
        given = read_body_as(NewCredentialSerializer, request, zone=self.input_zone, now=self.now)
        credential, text = issue_key(
            given["kind"],
            mode=self.app.mode,
            description=given.get("description") or "",
            expires_at=given.get("expires_at"),
            app=self.app,
            resource=self._find_resource(given.get("resource_id")),
        )
        return Response({"data": credential_record(credential) | {"key": text}}, status=201)

    def _find_resource(self, resource_id: uuid.UUID | None) -> Resource | None:
        if resource_id is None:
            return None
        resource = Resource.objects.for_app(self.app).filter(id=resource_id).first()
        if resource is None:
            raise Invalid.at("resource_id", "There is no such resource.")
        return resource


class CredentialView(CredentialScopedView):
    @described(
        summary="Revoke a key",
        description="It is refused from now on, and stays in the list. Once more: 204 as well.",
        status=204,
    )
    def delete(self, request: Any, credential_id: uuid.UUID) -> Response:
        row = self.credentials().filter(id=credential_id).first()
        revoke_key(found(row, "Credential"))
        return Response(status=204)


class AuthView(PublicView):
    """A password for a key. Guesses are counted before the password is looked at: past the limit
    a right one looks like a wrong one."""

    tag = "credentials"
    query_like = True
    errors = (400, 401, 406, 413, 415, 422, 429)

    @described(
        summary="Log in with a password",
        description="Of an account: a fresh access token. Of a resource: a fresh resource key."
        " Either is the password of HTTP Basic beside the e-mail address, for 30 days; each person"
        " keeps the newest ten. With `Service-App` only that app's people are looked for; 422 on it"
        " where address and password fit resources of several apps. Whatever is wrong, the answer"
        " is the same 401; after ten failures in a minute from one address: 429.",
        request=LogInSerializer,
        response=one(LOG_IN),
        request_examples={
            "an account": {"email": "owner@example.com", "password": "correct horse battery"}
        },
    )
    def post(self, request: Any) -> Response:
        given = read_body_as(LogInSerializer, request)
        address = client_address(request)
        count_failed_login(address, now=self.now)
        people = find_people(**given, app_slug=service_header(request, "App"))
        if not people:
            raise Unauthenticated()
        forgive_login(address, now=self.now)
        if len(people) > 1:
            raise Invalid.at("Service-App", "Say which app: there are several.")
        return Response({"data": self._open(people[0])})

    def _open(self, person: Account | Resource) -> dict[str, Any]:
        if isinstance(person, Account):
            key = issue_log_in_key(Credential.ACCESS, now=self.now, account=person)
        else:
            self.app = person.app
            key = issue_log_in_key(
                Credential.RESOURCE, now=self.now, app=person.app, resource=person
            )
        return log_in_record(person, *key)
