"""Who gets in and what a key leaves behind (reliability, S01 to S07). S04, what a stranger learns,
is in test_tenants.py.
"""

import base64
import json
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from apps_config.models import SECRET_LENGTH, Account, Credential
from apps_config.services import archive_app, issue_key
from tests import corpus
from tests.description import description, examples_of
from tests.example_requests import EXAMPLE_PROJECT, filled
from tests.live import CUSTOMER, LiveAnswer, LiveApp, LiveCaller, Rows
from tests.services import Service
from tests.test_tenants import IDS, LINK_PAGES, PUSH, WITHOUT_ID
from tests.world import Caller, Tenant, basic

OPERATIONS = description().operations


# --- S01: nobody gets in, and nobody learns why ---------------------------------------------------
@pytest.fixture
def refused(make_tenant: Callable[..., Tenant]) -> dict[str, str | None]:
    """name -> an Authorization header that lets nobody in."""
    tenant, other = make_tenant(), make_tenant()
    tenant.member("ada@example.com")
    token = tenant.member("bob@example.com").headers["Authorization"]
    bobs = base64.b64decode(token.split()[1]).decode().split(":")[1]
    resource = tenant.make_resource(email="room@example.com")
    gone = tenant.make_resource(email="gone@example.com")
    tenant.delete(f"/resources/{gone['id']}")
    inactive = Account.objects.create_user("off@example.com", is_active=False)
    now = timezone.now()
    expired = issue_key(Credential.SERVER, app=tenant.app, expires_at=now)[1]
    revoked, revoked_text = issue_key(Credential.SERVER, app=tenant.app)
    Credential.objects.filter(id=revoked.id).update(revoked_at=now)
    archive_app(other.app, now=now)
    headers = {
        "unknown key": basic("live_api_key_00000000_" + "x" * SECRET_LENGTH),
        "known prefix, wrong secret": basic(tenant.key[:-1] + "_"),
        "secret cut short": basic(tenant.key[:-1]),
        "prefix alone": basic(tenant.key[:-SECRET_LENGTH]),
        "secret alone": basic(tenant.key[-SECRET_LENGTH:]),
        "in upper case": basic(tenant.key.upper()),
        "key as user": basic("", user=tenant.key),
        "user beside a server key": basic(tenant.key, user="ada@example.com"),
        "token of another account": basic(bobs, user="ada@example.com"),
        "token without its account": basic(bobs),
        "token of an inactive account": basic(
            issue_key(Credential.ACCESS, account=inactive)[1], user="off@example.com"
        ),
        "resource key without its resource": basic(resource["api_token"]),
        "key of a deleted resource": basic(gone["api_token"], user="gone@example.com"),
        "key of an archived app": basic(other.key),
        "expired key": basic(expired),
        "revoked key": basic(revoked_text),
        "password of an account": basic("correct horse battery", user="ada@example.com"),
        "SQL": basic("' OR 1=1--" + "x" * SECRET_LENGTH),
        "NUL": basic("\0" + tenant.key),
    }
    for number, header in enumerate(corpus.NO_AUTHORIZATION):
        text = header.decode("latin-1") if isinstance(header, bytes) else header
        headers[f"garbled {number}"] = text and text.replace("{key}", tenant.key)
    return headers


def test_authentication_refusals_are_equal_and_cost_one_query(
    refused: dict[str, str | None],
    settings: Any,
    django_assert_max_num_queries: Callable[..., Any],
) -> None:
    settings.FAILED_LOGINS_PER_MINUTE = 0
    answers = set()

    for header in refused.values():
        named = {} if header is None else {"Authorization": header}
        with django_assert_max_num_queries(1):
            response = Client().get("/v2/bookings", headers=named)
        body = json.loads(response.content)
        body.pop("request_id")
        shown = {k: v for k, v in response.headers.items() if k != "Service-Request-Id"}
        # The length differs with nothing but the request id's, which is always the same.
        answers.add((response.status_code, json.dumps(body), json.dumps(shown, sort_keys=True)))

    assert len(refused) > 30
    assert len(answers) == 1
    (status, text, shown) = answers.pop()
    assert status == 401
    assert json.loads(text) == {
        "error": "Valid credentials are required.",
        "code": "unauthenticated",
    }
    assert json.loads(shown)["WWW-Authenticate"].startswith("Basic ")


def test_every_operation_but_the_public_ones_needs_a_key(db: None) -> None:
    codes = {}
    for operation in OPERATIONS:
        path = filled(operation.path, dict.fromkeys(IDS, corpus.UNKNOWN_ID))
        response = Client().generic(operation.method, path, b"{}", content_type="application/json")
        codes[str(operation)] = response.status_code

    link = "/v2/bookings/{booking_id}/external_action/{action}"
    public = {  # of links the signature is the key
        "GET /v2/calendars/{calendar_id}/feed.ics",
        *("GET /v2/calendars/callback", *PUSH),
        *("GET /healthz", "GET /readyz", "GET /metrics", "GET /v2/openapi.json", "GET /v2"),
        *(f"{method} {path}" for method in ("GET", "POST") for path in (link, *LINK_PAGES)),
        *("POST /v2/auth", "GET /v2/projects/hosted/{project_slug}"),  # give one
    }
    assert {name for name, code in codes.items() if code != 401} == public


# --- S03: what is left of a key -------------------------------------------------------------------
def test_issued_keys_are_stored_and_logged_nowhere(start_service: Callable[..., Service]) -> None:
    service = start_service(
        workers=1,
        LOG_LEVEL="DEBUG",
        WEBHOOK_ALLOWED_NETWORKS="127.0.0.0/8",
        GUNICORN_CMD_ARGS="--access-logfile -",
    )
    app = LiveApp(service)
    resource = app.post(
        "/v2/resources", {"name": "Ada", "timezone": "UTC", "email": "ada@example.com"}
    ).data
    callers = {
        "server": app,
        "access": app.owner(),
        "resource": LiveCaller(service.url, resource["api_token"], "ada@example.com"),
    }
    for caller in [*callers.values(), app.widget()]:
        caller.get("/v2/bookings")
        caller.call("GET", "/v2/bookings?x=1", headers={"Service-Context": "hello"})
        caller.call("POST", "/v2/bookings", b"{", headers={"Idempotency-Key": "k"})
        LiveCaller(service.url, f"{caller.key}x").get("/v2/bookings")
        LiveCaller(service.url, caller.key, "nobody@example.com").get("/v2/bookings")
    app.call("POST", "/v2/bookings", {"customer": CUSTOMER}, {"Idempotency-Key": "k2"})
    webhook = app.post("/v2/webhooks", {"url": "https://example.com/hook"}).data
    rotated = app.post(f"/v2/webhooks/{webhook['id']}/rotate", {}).data
    app.post(f"/v2/webhooks/{webhook['id']}/test", {})

    feed = app.post(f"/v2/calendars/{resource['calendars'][0]['id']}/feed", {}).data
    connected = app.subscribe(resource["id"], feed["url"])
    app.post(f"/v2/calendars/{connected['id']}/test", {})

    rows = Rows(service).dump()
    written = "".join(
        file.read_text(errors="replace")
        for file in service.folder.rglob("*")
        if file.is_file() and not file.name.startswith("db.sqlite3")
    )

    for name, caller in callers.items():
        header = str(caller.headers["Authorization"]).split()[1]
        for secret in (caller.key[-SECRET_LENGTH:], header):
            assert (name, secret in rows, secret in written) == (name, False, False)
    for secret in (webhook["secret"], rotated["secret"]):
        bare = secret.removeprefix("whsec_")
        assert (len(bare), bare in rows, bare in written) == (44, False, False)
    # Shown once here, and kept there as an address.
    token = feed["token"]
    assert (len(token), token in rows, token in written) == (43, False, False)
    # Widget keys stand in public pages anyway, and stay readable for who runs the app.
    widget = app.widget_key[-SECRET_LENGTH:]
    assert (widget in rows, widget in written) == (True, False)
    assert "context='hello'" in service.log("web")
    assert f"GET /v2/calendars/{resource['calendars'][0]['id']}/feed.ics HTTP" in service.log("web")


# --- S05: what nobody may set ---------------------------------------------------------------------
MARK = "mass-assigned"
MARK_ID = "deadbeef-dead-4eef-8ead-beefdeadbeef"
MARK_TIME = "2001-02-03T04:05:06+00:00"
NOT_SETTABLE: dict[str, Any] = {
    **dict.fromkeys(("id", "app", "app_id", "tenant", "owner_id", "account_id"), MARK_ID),
    **dict.fromkeys(("event_id", "main_id", "credential_id"), MARK_ID),
    **dict.fromkeys(("created_at", "updated_at", "deleted_at", "archived_at"), MARK_TIME),
    **dict.fromkeys(("completes_at", "last_used_at", "revoked_at"), MARK_TIME),
    **dict.fromkeys(("previous_until", "failing_since"), MARK_TIME),
    **dict.fromkeys(("state", "from_state", "actor", "source", "role", "kind", "prefix"), MARK),
    **dict.fromkeys(
        ("secret_hash", "api_token", "provider", "provider_id", "email_verified"), MARK
    ),
    **dict.fromkeys(("secret", "previous_secret", "disabled_reason"), MARK),
    **dict.fromkeys(("completed", "is_staff", "is_superuser", "exclusive", "deleted"), True),
    **dict.fromkeys(("attempts", "reschedules", "position", "count", "slot"), 31_013),
    **dict.fromkeys(("failures", "tries", "lapses"), 31_013),
}


def test_read_only_fields_are_never_stored(start_service: Callable[..., Service]) -> None:
    client = {"GOOGLE_CLIENT_ID": "demo", "GOOGLE_CLIENT_SECRET": "demo"}
    service = start_service(workers=1, WEBHOOK_ALLOWED_NETWORKS="127.0.0.0/8", **client)
    app = LiveApp(service)
    redirects = {"redirect_urls": ["https://app.example.com/settings/calendars"]}
    app.call("PUT", f"/v2/apps/{app.slug}", {"settings": redirects})
    shared = app.make_ids(EXAMPLE_PROJECT)
    sent = 0
    for operation in OPERATIONS:
        bodies = operation.content.get("requestBody", {}).get("content", {})
        if "application/json" not in bodies or operation.path.endswith("/verify"):
            continue  # a code takes effect once, and stores nothing of its body
        known = description().resolve(description().body_schema(operation)).get("properties", {})
        extra = {key: value for key, value in NOT_SETTABLE.items() if key not in known}
        changes_nothing = str(operation) in WITHOUT_ID["asks"]
        content = operation.content["requestBody"]["content"]["application/json"]
        for example in examples_of(content).values():
            if not isinstance(example, dict):
                continue
            ids = shared if changes_nothing else app.make_ids(EXAMPLE_PROJECT)
            body = json.loads(filled(json.dumps(example), ids)) | extra
            if "event" in body:
                body["event"] |= {key: extra[key] for key in extra if key not in known}
            caller = app.owner() if str(operation) == "POST /v2/apps" else app
            answer = caller.call(operation.method, filled(operation.path, ids), body)
            while answer.status == 422:
                # Names what it does not change or know; it ignores the others.
                refused = set(answer.json["errors"])
                assert refused and refused <= {*extra, *(f"event.{key}" for key in extra)}, str(
                    operation
                )
                body = {key: value for key, value in body.items() if key not in refused}
                answer = caller.call(operation.method, filled(operation.path, ids), body)
            assert answer.status in (200, 201, 202, 204), (str(operation), answer.content)
            record = (
                answer.data if answer.status in (200, 201) and isinstance(answer.data, dict) else {}
            )
            assert (record.get("state"), record.get("completed")) in SETTLED, str(operation)
            sent += 1

    dump = Rows(service).dump()
    assert sent > 25
    for mark in (MARK, MARK_ID, MARK_ID.replace("-", ""), "2001-02-03", "2001, 2, 3", " 31013,"):
        assert mark not in dump
    assert Rows(service).read("SELECT count(*) FROM apps_config_account WHERE is_staff") == [(0,)]


# No booking at all, one that was just made or moved, one that the example cancels.
SETTLED = {(None, None), ("invited", None), ("confirmed", False), ("cancelled", True)}


def test_mode_of_an_app_is_fixed(tenant: Tenant) -> None:
    path = f"/apps/{tenant.app.slug}"

    answer = tenant.put(path, {"mode": "test", "slug": "another"})

    errors = {"mode": ["Can't be changed here."], "slug": ["Can't be changed here."]}
    assert (answer.status, answer.json["errors"]) == (422, errors)
    assert (tenant.get(path).data["mode"], tenant.get(path).data["slug"]) == (
        "live",
        tenant.app.slug,
    )


# --- S06: guessing --------------------------------------------------------------------------------
GUESSER, SOMEBODY = "203.0.113.7", "203.0.113.8"
STILL = "tests.still_wsgi"  # failures are counted by the minute


@pytest.mark.both_databases
def test_key_guessing_is_limited_per_network(
    start_service: Callable[..., Service],
) -> None:
    service = start_service(wsgi=STILL, FAILED_LOGINS_PER_MINUTE=10, TRUSTED_PROXIES=1)
    app = LiveApp(service)

    def guess(number: int) -> LiveAnswer:
        key = f"live_api_key_{number:08x}_" + "x" * SECRET_LENGTH
        # What a client claims itself stands before what the proxy saw.
        forwarded = {"X-Forwarded-For": f"198.51.100.{number % 250}, {GUESSER}"}
        return LiveCaller(service.url, key).call("GET", "/v2/app", headers=forwarded)

    with ThreadPoolExecutor(50) as pool:
        answers = [*pool.map(guess, range(50)), *map(guess, range(50, 200))]
    own, others = (
        app.call("GET", "/v2/app", headers={"X-Forwarded-For": address}).code
        for address in (GUESSER, SOMEBODY)
    )
    wrong = LiveCaller(service.url, "live_api_key_00000000_" + "x" * SECRET_LENGTH)
    elsewhere = wrong.call("GET", "/v2/app", headers={"X-Forwarded-For": SOMEBODY})

    counted = Counter(answer.code for answer in answers)
    assert counted == {"401 unauthenticated": 10, "429 rate_limited": 190}
    assert {answer.headers["Retry-After"] for answer in answers if answer.status == 429} == {"60"}
    # Behind one shared address a stranger's mistakes lock out nobody who has a key.
    assert (own, others, elsewhere.code) == ("200", "200", "401 unauthenticated")


# --- S07: the staff's door ------------------------------------------------------------------------
PASSWORD = "correct horse battery staple"


@pytest.fixture
def staff(db: None) -> Account:
    return Account.objects.create_superuser("staff@example.com", PASSWORD)


def test_admin_login_needs_its_token(staff: Account) -> None:
    client = Client(enforce_csrf_checks=True)
    given = {"username": staff.email, "password": PASSWORD}

    answer = client.post("/admin/login/", given)

    assert answer.status_code == 403
    assert "sessionid" not in client.cookies


@pytest.mark.parametrize(
    "target",
    [
        "https://evil.example",
        "//evil.example",
        "///evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "https:evil.example",
        "javascript:alert(1)",
        " https://evil.example",
        "https://testserver@evil.example/",
        "http://testserver.evil.example/",
    ],
)
def test_admin_login_redirects_only_within_the_service(staff: Account, target: str) -> None:
    given = {"username": staff.email, "password": PASSWORD, "next": target}

    answer = Client().post("/admin/login/", given)

    assert answer.status_code == 302
    assert answer.headers["Location"].startswith("/admin/")


def test_staff_session_gives_no_api_access(staff: Account, tenant: Tenant) -> None:
    client = Client()
    client.force_login(staff)

    assert client.get("/v2/app").status_code == 401


@pytest.mark.parametrize("path", ["/admin/", "/docs", "/healthz"])
def test_cors_is_allowed_only_for_the_api(db: None, path: str) -> None:
    origin = {"Origin": "https://evil.example"}

    for api in (Client().get(each, headers=origin) for each in ("/v2", "/v2/app")):
        assert api.headers["Access-Control-Allow-Origin"] == "*"
        assert "Access-Control-Allow-Credentials" not in api.headers
    other = Client().get(path, headers=origin)

    assert "Access-Control-Allow-Origin" not in other.headers


EXPOSED = (
    "Service-TestMode, Timekit-TestMode, Service-Request-Id, RateLimit, RateLimit-Policy,"
    " X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After,"
    " Idempotent-Replayed, Service-Complete-Until, Service-Ignored, ETag"
)


def test_a_preflight_needs_no_key(db: None) -> None:
    asked = {
        "Origin": "https://www.example.com",
        "Access-Control-Request-Method": "PUT",
        "Access-Control-Request-Headers": "authorization, x-anything",
    }

    answer = Client().options("/v2/bookings", headers=asked)

    found = {name.lower(): value for name, value in answer.headers.items()}
    assert (answer.status_code, answer.content) == (200, b"")
    assert {name: value for name, value in found.items() if name.startswith("access-")} == {
        "access-control-allow-origin": "*",
        "access-control-expose-headers": EXPOSED,
        "access-control-allow-headers": "authorization, *",
        "access-control-allow-methods": "GET, POST, PUT, PATCH, DELETE, OPTIONS",
        "access-control-max-age": "86400",
    }


def test_browsers_may_read_our_headers(tenant: Tenant) -> None:
    answer = tenant.get("/app", Origin="https://www.example.com")

    assert answer.headers["Access-Control-Expose-Headers"] == EXPOSED


def test_authenticated_responses_and_errors_are_not_cached(tenant: Tenant) -> None:
    answers = [
        tenant.get("/customers"),
        tenant.call("HEAD", "/customers"),
        tenant.get("/bookings?unknown=1"),
        tenant.get(f"/bookings/{corpus.UNKNOWN_ID}"),
        tenant.put("/customers"),
        tenant.get("/no-such-path"),
        tenant.post("/auth", {"email": "ada@example.com", "password": "wrong"}),
        Caller("wrong").get("/customers"),
    ]

    found = [(answer.status, answer.headers["Cache-Control"]) for answer in answers]
    statuses = [200, 200, 422, 404, 405, 404, 401, 401]
    assert found == [(status, "private, no-store") for status in statuses]


def test_answers_are_not_sniffed_or_framed(tenant: Tenant) -> None:
    for answer in (tenant.get("/app"), Caller("").get("/app"), tenant.get("/no-such-path")):
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["X-Frame-Options"] == "DENY"
