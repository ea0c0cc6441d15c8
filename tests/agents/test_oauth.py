"""Programs of members log in with OAuth: the whole flow over HTTP, and what ends a permission."""

import hashlib
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest
import time_machine
from allauth.idp.oidc.models import Client as Program
from allauth.idp.oidc.models import Token
from django.conf import settings
from django.core.management import CommandError, call_command
from django.test import Client, override_settings
from django.utils import timezone

from access.oauth_clients import register_client
from apps_config.models import Account, Credential, Membership
from apps_config.services import create_app, end_access_tokens
from apps_config.tasks import purge_idempotency_records
from tests.agents.client import Agent
from tests.agents.conftest import END, START
from tests.sign_in import EMAIL, log_in, make_member
from tests.world import Tenant

pytestmark = [
    pytest.mark.both_databases,
    pytest.mark.django_db,
    pytest.mark.usefixtures("clock"),
]

URI, OWN = "https://assistant.example/callback", settings.PUBLIC_URL
MCP, API = f"{OWN}/mcp", f"{OWN}/v2"
VERIFIER = "v" * 43
CHALLENGE = urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
AUTHORIZE = "/admin/account/programs/authorize"
READ = ["availability:read", "bookings:read", "settings:read"]
ALL = ["availability:read", "bookings:read", "bookings:write", "people:read", "settings:read"]
SIGNED = re.compile(r'name="request" value="([^"]+)"')


@pytest.fixture(autouse=True)
def oauth_server() -> Iterator[None]:
    with override_settings(OAUTH_SERVER=True):
        yield


@pytest.fixture
def program() -> Program:
    return register_client("Assistant", [URI, "http://127.0.0.1/callback"])


@pytest.fixture
def member(tenant: Tenant) -> Account:
    return make_member(tenant.app, Membership.EDITOR)


@pytest.fixture
def browser(member: Account) -> Client:
    client = Client()
    log_in(client)
    return client


def asked(program: Program, **others: Any) -> dict[str, Any]:
    """The parameters of a request for a permission."""
    return {
        "client_id": program.pk,
        "redirect_uri": URI,
        "response_type": "code",
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        "state": "s1",
        "scope": " ".join(ALL),
        "resource": MCP,
    } | others


def allow(
    browser: Client, program: Program, *, scopes: list[str] = ALL, app: str = "", **others: Any
) -> dict[str, str]:
    """Agree on the page; returns the parameters with which the browser goes back to the program."""
    more = {name: others.pop(name) for name in ("projects", "action") if name in others}
    page = browser.get(AUTHORIZE, asked(program, **others) | ({"app": app} if app else {}))
    assert page.status_code == 200, page.content
    found = SIGNED.search(page.content.decode())
    assert found, page.content
    slug = re.search(r'name="app" value="([^"]+)"', page.content.decode())
    assert slug
    answer = browser.post(
        AUTHORIZE,
        {"request": found[1], "app": slug[1], "scopes": scopes, "action": "grant"} | more,
    )
    assert answer.status_code == 302, answer.content
    assert answer["Location"].startswith(f"{others.get('redirect_uri', URI)}?")
    return dict(parse_qsl(urlsplit(answer["Location"]).query))


def test_the_page_says_to_where_the_person_returns(browser: Client, program: Program) -> None:
    on_this_computer = "http://127.0.0.1:49152/callback"
    pages = [
        browser.get(AUTHORIZE, asked(program, redirect_uri=uri)).content.decode()
        for uri in (URI, on_this_computer)
    ]

    assert [re.findall(r"<p>(It acts .*?)</p>", page) for page in pages] == [
        [f"It acts for {EMAIL}, with your role. Then you return to assistant.example."],
        [f"It acts for {EMAIL}, with your role. Then you return to the program on this computer."],
    ]


def exchange(program: Program, code: str, /, **others: Any) -> Any:
    body = {
        "grant_type": "authorization_code",
        "client_id": program.pk,
        "code": code,
        "redirect_uri": URI,
        "code_verifier": VERIFIER,
        "resource": MCP,
    }
    return Client().post("/oauth/token", body | others)


def token_of(browser: Client, program: Program, **others: Any) -> str:
    code = allow(browser, program, **others)["code"]
    audience = {"resource": others["resource"]} if "resource" in others else {}
    return str(exchange(program, code, **audience).json()["access_token"])


def status_with(token: str) -> int:
    return Agent(token).request("tools/list").status


def test_program_logs_in_and_finds_times(
    browser: Client, program: Program, tenant: Tenant, service: Any
) -> None:
    given = allow(browser, program)
    answer = exchange(program, given["code"])

    tokens = answer.json()
    agent = Agent(tokens["access_token"])
    assert (given["state"], given["iss"]) == ("s1", OWN)
    assert answer["Cache-Control"] == "no-store"
    assert (tokens["token_type"], tokens["expires_in"]) == ("Bearer", 3600)
    assert sorted(tokens["scope"].split()) == ALL
    assert [each["project_id"] for each in agent.use("list_services")["services"]] == [
        service["id"]
    ]
    found = agent.use("find_times", project_id=service["id"], from_=START, to=END)
    assert found["times"][0]["start"].startswith("2026-11-23T")
    key = Credential.objects.get(client_id=program.pk)
    assert (key.account_id, key.only_app_id, key.description, key.scopes, key.projects) == (
        *(Account.objects.get(email=EMAIL).pk, tenant.app.pk, "Assistant"),
        *(sorted(ALL), None),
    )


def test_refresh_replaces_the_refresh_token(browser: Client, program: Program) -> None:
    first = exchange(program, allow(browser, program)["code"]).json()
    body = {"grant_type": "refresh_token", "client_id": program.pk}

    second = Client().post("/oauth/token", body | {"refresh_token": first["refresh_token"]}).json()
    again = Client().post("/oauth/token", body | {"refresh_token": first["refresh_token"]})

    assert status_with(second["access_token"]) == 200
    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")


def test_token_of_another_audience_is_refused(
    browser: Client, program: Program, tenant: Tenant
) -> None:
    for_agents = token_of(browser, program)
    for_api = token_of(browser, program, resource=API)
    unrestricted = token_of(browser, program, resource=[])

    statuses = [
        (
            status_with(token),
            Client().get("/v2/projects", headers={"Authorization": f"Bearer {token}"}).status_code,
        )
        for token in (for_agents, for_api, unrestricted)
    ]
    assert statuses == [(200, 401), (401, 200), (401, 200)]


def test_challenge_names_the_metadata_and_the_wrong_token(
    browser: Client, program: Program
) -> None:
    answer = Agent(token_of(browser, program, resource=API)).request("tools/list")

    metadata = f'resource_metadata="{OWN}/.well-known/oauth-protected-resource/mcp"'
    assert answer.status == 401
    assert answer.headers["WWW-Authenticate"] == f'Bearer error="invalid_token", {metadata}'


def test_metadata() -> None:
    resource = Client().get("/.well-known/oauth-protected-resource/mcp").json()
    server = Client().get("/.well-known/oauth-authorization-server").json()

    assert resource == {
        "resource": MCP,
        "bearer_methods_supported": ["header"],
        "resource_name": "Scheduling",
        "authorization_servers": [OWN],
        "scopes_supported": [
            "availability:read",
            "bookings:read",
            "bookings:write",
            "settings:read",
        ],
    }
    assert server == {
        "issuer": OWN,
        "authorization_endpoint": f"{OWN}{AUTHORIZE}",
        "token_endpoint": f"{OWN}/oauth/token",
        "revocation_endpoint": f"{OWN}/oauth/revoke",
        "scopes_supported": [*ALL, "settings:write"],
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
    }


def test_server_that_is_off_has_no_endpoints(browser: Client, program: Program) -> None:
    token = token_of(browser, program)

    with override_settings(OAUTH_SERVER=False):
        statuses = [
            browser.get(AUTHORIZE, asked(program)).status_code,
            Client().post("/oauth/token").status_code,
            Client().post("/oauth/revoke").status_code,
            Client().get("/.well-known/oauth-authorization-server").status_code,
            status_with(token),
        ]
        metadata = Client().get("/.well-known/oauth-protected-resource/mcp").json()
    assert statuses == [404, 404, 404, 404, 401]
    assert "authorization_servers" not in metadata


def test_narrower_scopes_refuse_writes(browser: Client, program: Program) -> None:
    agent = Agent(token_of(browser, program, scopes=READ))

    tools = [tool["name"] for tool in agent.request("tools/list").json["result"]["tools"]]
    refused = agent.request("tools/call", name="hold_time", arguments={})
    assert tools == [
        *("list_services", "find_times", "explain_time"),
        *("list_bookings", "get_booking", "list_resources"),
    ]
    assert (refused.status, refused.json["error"]["message"]) == (
        403,
        "This key can't use this tool.",
    )


def test_refresh_with_fewer_scopes_narrows_the_token(browser: Client, program: Program) -> None:
    first = exchange(program, allow(browser, program)["code"]).json()
    body = {"grant_type": "refresh_token", "client_id": program.pk, "scope": "settings:read"}

    token = Client().post("/oauth/token", body | {"refresh_token": first["refresh_token"]}).json()

    tools = Agent(token["access_token"]).request("tools/list").json["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["list_services", "list_resources"]


def test_program_keeps_to_the_app_and_its_services(
    browser: Client, program: Program, tenant: Tenant, service: Any, member: Account, booking: Any
) -> None:
    other_app = create_app(slug="other", name="Other")
    Membership.objects.create(app=other_app, account=member, role=Membership.OWNER)
    spare = tenant.make_project(tenant.make_resource()["id"])

    choice = browser.get(AUTHORIZE, asked(program)).content.decode()
    in_other = Agent(token_of(browser, program, app="other"))
    seen_in_other = in_other.use("list_bookings")["bookings"]
    within_spare = Agent(token_of(browser, program, app=tenant.app.slug, projects=[spare["id"]]))

    assert [slug in choice for slug in ("app=other", f"app={tenant.app.slug}")] == [True, True]
    assert seen_in_other == []
    assert [each["project_id"] for each in within_spare.use("list_services")["services"]] == [
        spare["id"]
    ]
    assert within_spare.use("list_bookings")["bookings"] == []
    assert within_spare.refused("get_booking", booking_id=booking["id"])["code"] == "not_found"
    # The later choice has ended the earlier one.
    assert in_other.request("tools/list").status == 401
    named = Agent(token_of(browser, program, app="other"), **{"Service-App": tenant.app.slug})
    assert named.request("tools/list").status == 404


def test_services_and_apps_of_others_cannot_be_chosen(
    browser: Client, program: Program, tenant: Tenant, make_tenant: Callable[..., Tenant]
) -> None:
    other_tenant = make_tenant()
    foreign = other_tenant.make_project(other_tenant.make_resource()["id"])
    page = browser.get(AUTHORIZE, asked(program)).content.decode()
    signed = SIGNED.search(page)
    assert signed
    body = {"request": signed[1], "scopes": READ, "action": "grant"}

    with_project = browser.post(
        AUTHORIZE, body | {"app": tenant.app.slug, "projects": [foreign["id"]]}
    )
    with_app = browser.post(AUTHORIZE, body | {"app": other_tenant.app.slug})
    with_scope = browser.post(AUTHORIZE, body | {"app": tenant.app.slug, "scopes": ["keys:write"]})

    statuses = [answer.status_code for answer in (with_project, with_app, with_scope)]
    assert statuses == [200, 403, 200]
    assert not Credential.objects.filter(client_id=program.pk).exists()


def test_member_refuses(browser: Client, program: Program) -> None:
    given = allow(browser, program, action="cancel")

    assert given == {"error": "access_denied", "state": "s1", "iss": OWN}
    assert not Credential.objects.filter(client_id=program.pk).exists()


@pytest.mark.parametrize("end", ["member", "account", "app", "password", "program", "page"])
def test_end_of_the_permission_is_effective_at_once(
    end: str, browser: Client, program: Program, tenant: Tenant, member: Account
) -> None:
    token = token_of(browser, program)
    before = status_with(token)

    if end == "member":
        Membership.objects.filter(account=member).delete()
    elif end == "account":
        Account.objects.filter(pk=member.pk).update(is_active=False)
    elif end == "app":
        tenant.app.archived_at = timezone.now()
        tenant.app.save()
    elif end == "password":
        end_access_tokens(member)
    elif end == "program":
        call_command("oauth_client", "remove", program.pk)
    else:
        row = Credential.objects.get(client_id=program.pk)
        listed = browser.get("/admin/account/sessions/").content.decode()
        assert "Programs with access" in listed and "Assistant" in listed
        browser.post("/admin/account/sessions/", {"program": str(row.pk)})
    assert (before, status_with(token)) == (200, 401)


def test_revoked_token_ends_the_permission(browser: Client, program: Program) -> None:
    tokens = exchange(program, allow(browser, program)["code"]).json()
    another = register_client("Another", [URI])

    foreign = Client().post(
        "/oauth/revoke", {"client_id": another.pk, "token": tokens["refresh_token"]}
    )
    still = status_with(tokens["access_token"])
    own = Client().post(
        "/oauth/revoke", {"client_id": program.pk, "token": tokens["refresh_token"]}
    )

    assert (foreign.status_code, still, own.status_code) == (200, 200, 200)
    assert status_with(tokens["access_token"]) == 401
    assert not Token.objects.exists()
    assert Credential.objects.get(client_id=program.pk).revoked_at is not None


def test_expired_token_is_refused_and_purged(browser: Client, program: Program) -> None:
    token = token_of(browser, program)

    with time_machine.travel(timezone.now() + timedelta(hours=2)):
        status = status_with(token)
        purge_idempotency_records()

    assert status == 401
    assert [token.type for token in Token.objects.all()] == [Token.Type.REFRESH_TOKEN]


def test_same_choice_again_keeps_the_tokens_of_another_device(
    browser: Client, program: Program
) -> None:
    first, second = token_of(browser, program), token_of(browser, program)

    assert (status_with(first), status_with(second)) == (200, 200)
    assert Credential.objects.filter(client_id=program.pk).count() == 1


def test_code_works_once(browser: Client, program: Program) -> None:
    code = allow(browser, program)["code"]

    answers = [exchange(program, code), exchange(program, code)]

    assert [answer.status_code for answer in answers] == [200, 400]
    assert answers[1].json()["error"] == "invalid_grant"


@pytest.mark.parametrize(
    ("others", "status", "error"),
    [
        ({"code_verifier": "w" * 43}, 400, "invalid_grant"),
        ({"code_verifier": ""}, 400, "invalid_grant"),
        ({"redirect_uri": "http://127.0.0.1/callback"}, 400, "invalid_request"),
        ({"resource": "https://elsewhere.example/mcp"}, 400, "invalid_target"),
        ({"client_id": "0" * 32}, 401, "invalid_client"),
        ({"client_id": "a\0"}, 401, "invalid_client"),
        ({"code": "a\0"}, 400, "invalid_grant"),
        ({"grant_type": "client_credentials"}, 401, "invalid_client"),
        ({"grant_type": "password"}, 400, "invalid_request"),
    ],
)
def test_wrong_token_request_is_refused(
    browser: Client, program: Program, others: Any, status: int, error: str
) -> None:
    code = others.get("code") or allow(browser, program)["code"]

    answer = exchange(program, code, **{**others, "code": code})

    assert (answer.status_code, answer.json()["error"]) == (status, error)
    assert not Token.objects.exists()


@pytest.mark.parametrize(
    "redirect_uri",
    [
        *("https://evil.example/callback", f"{URI}/more", f"{URI}?more=1", f"{URI}#more"),
        *("https://assistant.example@evil.example/callback", "http://127.0.0.1:80a/callback"),
        *("http://evil@127.0.0.1/callback", "http://127.0.0.1/other", ""),
    ],
)
def test_other_redirect_uri_is_refused(
    browser: Client, program: Program, redirect_uri: str
) -> None:
    answer = browser.get(AUTHORIZE, asked(program, redirect_uri=redirect_uri))

    assert (answer.status_code, "Location" in answer) == (400, False)


def test_program_on_the_persons_machine_chooses_its_port(browser: Client, program: Program) -> None:
    given = allow(browser, program, redirect_uri="http://127.0.0.1:49152/callback")

    answer = exchange(program, given["code"], redirect_uri="http://127.0.0.1:49152/callback")
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("others", "error"),
    [
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge": ""}, "invalid_request"),
        ({"resource": "https://elsewhere.example/mcp"}, "invalid_target"),
        ({"prompt": "none"}, "consent_required"),
        ({"scope": "bookings:read keys:write"}, "invalid_scope"),
        ({"scope": "openid"}, "invalid_scope"),
        ({"response_type": "token"}, "unauthorized_client"),
    ],
)
def test_wrong_request_returns_to_the_program(
    browser: Client, program: Program, others: Any, error: str
) -> None:
    answer = browser.get(AUTHORIZE, asked(program, **others))

    given = parse_qs(urlsplit(answer["Location"]).query)
    assert answer.status_code == 302 and answer["Location"].startswith(URI)
    assert (given["error"], given["state"], given["iss"]) == ([error], ["s1"], [OWN])


def test_page_asks_for_a_log_in_and_cannot_be_framed(
    browser: Client, program: Program, member: Account
) -> None:
    stranger = Client().get(AUTHORIZE, asked(program))
    page = browser.get(AUTHORIZE, asked(program))
    unsigned = browser.post(AUTHORIZE, {"request": "forged", "action": "grant"})
    careful = Client(enforce_csrf_checks=True)
    careful.force_login(member)

    assert stranger["Location"].startswith("/admin/login/?next=/admin/account/programs/authorize")
    assert page["X-Frame-Options"] == "DENY"
    policy = page["Content-Security-Policy"].split("; ")
    assert "frame-ancestors 'none'" in policy
    assert "form-action 'self' https://assistant.example" in policy
    assert page["Cache-Control"] == "no-store"
    assert unsigned.status_code == 403
    assert careful.post(AUTHORIZE, {"request": "x", "action": "grant"}).status_code == 403


def test_account_without_its_second_factor_is_asked_for_one(
    program: Program, tenant: Tenant
) -> None:
    owner = make_member(tenant.app, Membership.OWNER, "boss@example.com")
    client = Client()
    log_in(client, owner.email)

    with override_settings(REQUIRE_SECOND_FACTOR="owners"):
        answer = client.get(AUTHORIZE, asked(program))

    assert (answer.status_code, answer["Location"]) == (302, "/admin/account/security/")


def test_command_registers_lists_and_removes(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("oauth_client", "add", "Assistant", URI)
    client_id = capsys.readouterr().out.strip()
    call_command("oauth_client", "list")
    listed = capsys.readouterr().out
    call_command("oauth_client", "remove", client_id)

    assert listed == f"{client_id} {URI} Assistant\n"
    assert not Program.objects.exists()
    with pytest.raises(CommandError, match="no such program"):
        call_command("oauth_client", "remove", client_id)


@pytest.mark.parametrize(
    "uri",
    [
        *("http://assistant.example/callback", "javascript:alert(1)", "https://*.example/callback"),
        *(
            "https://a@b.example/callback",
            "https://b.example/#c",
            "https://b.example:x/",
            "callback",
        ),
    ],
)
def test_command_refuses_unsafe_addresses(uri: str) -> None:
    with pytest.raises(CommandError, match=r"must be|must have|no address"):
        call_command("oauth_client", "add", "Assistant", uri)
    assert not Program.objects.exists()
