"""Who calls: HTTP Basic, four kinds of key, one answer to every mistake (section 3)."""

import base64
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps_config.authentication import authenticate
from apps_config.models import Account, App, Credential, Membership, home_of_key
from apps_config.services import archive_app, issue_key, revoke_key
from availability.models import Resource
from common.db.ids import home_of_id
from tests.world import NOW, Answer, Caller, Tenant, at, basic, hours

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]

KINDS = ("server", "widget", "access", "resource")
# Those of a check: a second one reads the memberships of an access token's account.
QUERIES = {"server": 1, "widget": 1, "access": 2, "resource": 1}
OWNER = "owner@example.com"
DESK = "desk@example.com"
REFUSED = {"error": "Valid credentials are required.", "code": "unauthenticated"}


class Key:
    """A key of each kind in a tenant's app: its row, its text, who its user is."""

    def __init__(self, tenant: Tenant, kind: str, **given: Any) -> None:
        self.user = ""
        holder: dict[str, Any] = {"app": tenant.app}
        if kind == Credential.ACCESS:
            self.user = OWNER
            account = Account.objects.create_user(OWNER)
            Membership.objects.create(account=account, app=tenant.app, role=Membership.OWNER)
            holder = {"account": account}
        elif kind == Credential.RESOURCE:
            self.user = DESK
            made = tenant.make_resource("Desk", email=DESK)
            holder["resource"] = Resource.objects.get(id=made["id"])
        mode = tenant.app.mode
        self.credential, self.text = issue_key(kind, mode=mode, **holder, **given)
        self.header = basic(self.text, self.user)

    def call(self) -> Answer:
        """A POST that every kind of key may make."""
        body = {"project_id": "0193a4c2-0000-7000-8000-000000000014"}
        return Caller(self.text, self.user).post("/availability", body)


def is_let_in(answer: Answer) -> bool:
    """The query's only fault is its project."""
    return answer.status == 422 and list(answer.json["errors"]) == ["project_id"]


def refusal(answer: Answer) -> tuple[Any, ...]:
    """All of an answer but its request id, which differs each time."""
    names = sorted(set(answer.headers) - {"Service-Request-Id"})
    headers = {name: answer.headers[name] for name in names}
    return answer.status, answer.error, headers


# --- Who is let in --------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_key_is_accepted(tenant: Tenant, kind: str) -> None:
    assert is_let_in(Key(tenant, kind).call())


@pytest.mark.parametrize(
    ("kind", "mode", "start", "length"),
    [
        ("server", "live", "live_api_key_", 13 + 11 + 43),
        ("server", "test", "test_api_key_", 13 + 11 + 43),
        ("widget", "live", "live_widget_key_", 16 + 11 + 43),
        ("widget", "test", "test_widget_key_", 16 + 11 + 43),
        ("access", "live", "", 11 + 43),
        ("resource", "live", "", 11 + 43),
    ],
)
def test_key_prefix_names_kind_and_mode(
    make_tenant: Callable[..., Tenant], kind: str, mode: str, start: str, length: int
) -> None:
    key = Key(make_tenant(mode=mode), kind)

    assert (key.text[: len(start)], len(key.text)) == (start, length)


@pytest.mark.parametrize("home", [0, 7, 255])
@pytest.mark.parametrize("kind", KINDS)
def test_key_prefix_names_the_home_of_the_app(
    make_tenant: Callable[..., Tenant], settings: Any, kind: str, home: int
) -> None:
    settings.HOME_NUMBER = home
    tenant = make_tenant()

    key = Key(tenant, kind)

    ids = [home_of_id(row_id) for row_id in (tenant.app.id, key.credential.id)]
    assert (home_of_key(key.text), ids) == (home, [home, home])
    assert is_let_in(key.call())


@pytest.mark.parametrize(
    "text",
    [
        *("live_api_key_ff345678_" + "f" * 43, "test_widget_key_ff345678_" + "f" * 43),
        *("ff345678_" + "f" * 43, "ff345678_ff00000000_" + "f" * 32),
        *("", "banana", "live_other_key_ff34567890_", "LIVE_API_KEY_FF34567890_"),
    ],
)
def test_keys_of_older_releases_have_home_0(text: str) -> None:
    assert home_of_key(text) == 0


def test_key_of_an_older_release_is_accepted(tenant: Tenant) -> None:
    key = Key(tenant, "server")
    key.text = "live_api_key_ff345678_" + key.text[-43:]
    Credential.objects.filter(id=key.credential.id).update(prefix=key.text[:-43])

    assert is_let_in(key.call())


@pytest.mark.parametrize("kind", KINDS)
def test_secrets_are_stored_as_digests_except_widget_keys(tenant: Tenant, kind: str) -> None:
    key = Key(tenant, kind)
    row = Credential.objects.get(id=key.credential.id)

    assert row.prefix == key.text[:-43]
    assert len(row.secret_hash) == 64
    assert row.public_text == (key.text if kind == "widget" else "")
    assert key.text[-43:] not in row.secret_hash


def test_user_name_is_case_insensitive(tenant: Tenant) -> None:
    key = Key(tenant, "access")

    assert is_let_in(Caller(key.text, "Owner@EXAMPLE.com").post(*QUERY))


QUERY = ("/availability", {"project_id": "0193a4c2-0000-7000-8000-000000000014"})


@pytest.mark.parametrize("scheme", ["Basic", "basic", "BASIC"])
def test_scheme_is_case_insensitive(tenant: Tenant, scheme: str) -> None:
    header = basic(tenant.key).replace("Basic", scheme)

    assert is_let_in(tenant.post(*QUERY, Authorization=header))


# --- Who is not -----------------------------------------------------------------------------------
def encode(raw: bytes) -> str:
    return "Basic " + base64.b64encode(raw).decode()


GARBLED = {
    "none": None,
    "empty": "",
    "scheme alone": "Basic",
    "scheme and blank": "Basic ",
    "another scheme": "Bearer abc",
    "no base64": "Basic !!!!",
    "base64 cut off": "Basic YWJ",
    "letters beyond base64": "Basic YWJjÿ",
    "not UTF-8": encode(b"\xff\xfe:\xff"),
    "no colon": encode(b"live_api_key_12345678"),
    "NUL in the user": encode(b"\0:live_api_key_12345678"),
    "NUL in the password": encode(b":live_api_key_\0"),
    "colon alone": encode(b":"),
    "no password": encode(b"owner@example.com:"),
    "password too short": encode(b":short"),
    "a secret without prefix": encode(b":" + b"x" * 43),
    "unknown prefix": encode(b":live_api_key_00000000_" + b"x" * 43),
    "prefix too long": encode(b":" + b"p" * 60 + b"x" * 43),
    "header too long": encode(b":" + b"x" * 1000),
    "two schemes": "Basic Basic YWJj",
}


@pytest.mark.parametrize("header", GARBLED.values(), ids=GARBLED)
def test_malformed_headers_get_equal_responses(tenant: Tenant, header: str | None) -> None:
    caller = Caller("")
    del caller.headers["Authorization"]

    answer = caller.call("GET", "/resources", headers={"Authorization": header} if header else {})

    assert refusal(answer) == expected_refusal(answer)


def expected_refusal(answer: Answer) -> tuple[Any, ...]:
    headers = {
        "Cache-Control": "private, no-store",
        "Content-Length": str(len(answer.content)),
        "Content-Type": "application/json",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Referrer-Policy": "same-origin",
        "Vary": answer.headers["Vary"],
        "WWW-Authenticate": 'Basic realm="api", charset="UTF-8"',
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
    }
    return 401, REFUSED, headers


def wrong_secret(key: Key, tenant: Tenant) -> None:
    key.text = key.text[:-1] + ("A" if key.text[-1] != "A" else "B")


def wrong_prefix(key: Key, tenant: Tenant) -> None:
    key.text = "x" + key.text


def wrong_user(key: Key, tenant: Tenant) -> None:
    key.user = "somebody@example.com"


def swapped_user(key: Key, tenant: Tenant) -> None:
    """The key where the user belongs, and nothing else."""
    key.user, key.text = key.text, ""


def expire(key: Key, tenant: Tenant) -> None:
    Credential.objects.filter(id=key.credential.id).update(expires_at=NOW)


def revoke(key: Key, tenant: Tenant) -> None:
    revoke_key(key.credential)


def archive(key: Key, tenant: Tenant) -> None:
    archive_app(tenant.app, now=NOW)


def deactivate(key: Key, tenant: Tenant) -> None:
    Account.objects.update(is_active=False)


def hide_resource(key: Key, tenant: Tenant) -> None:
    Resource.objects.update(deleted_at=NOW)


FOR_ALL = (wrong_secret, wrong_prefix, wrong_user, swapped_user, expire, revoke)
CAUSES = [(kind, cause) for kind in KINDS for cause in FOR_ALL] + [
    ("server", archive),
    ("widget", archive),
    ("resource", archive),
    ("access", deactivate),
    ("resource", hide_resource),
]


@pytest.mark.parametrize(("kind", "cause"), CAUSES)
def test_all_causes_get_equal_responses(
    tenant: Tenant, kind: str, cause: Callable[[Key, Tenant], None]
) -> None:
    key = Key(tenant, kind)
    assert is_let_in(key.call())

    cause(key, tenant)

    answer = key.call()
    assert refusal(answer) == expected_refusal(answer)


def test_key_is_valid_until_it_expires(tenant: Tenant, clock: Any) -> None:
    key = Key(tenant, "server", expires_at=at("2026-11-20 10:00"))

    clock.move_to(at("2026-11-20 09:59:59"))
    before = key.call()
    clock.move_to(at("2026-11-20 10:00:00"))
    after = key.call()

    assert (is_let_in(before), after.status) == (True, 401)


def test_access_token_survives_archiving_of_the_app(tenant: Tenant) -> None:
    """The account stays; only the app is gone from it."""
    key = Key(tenant, "access")
    archive_app(tenant.app, now=NOW)

    answer = Caller(key.text, key.user).get("/apps")

    assert (answer.status, answer.data) == (200, [])


def test_unknown_path_is_404_without_valid_credentials() -> None:
    answer = Caller("nonsense").get("/nowhere")

    assert (answer.status, answer.error) == (
        404,
        {
            "error": "No endpoint has this path. Ids in paths are UUIDs.",
            "code": "not_found",
            "model": "Page",
        },
    )


# --- What a check costs ---------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_a_check_is_one_query(tenant: Tenant, kind: str) -> None:
    key = Key(tenant, kind)
    authenticate(key.header, None, now=NOW)

    with CaptureQueriesContext(
        connection,
    ) as queries:
        caller = authenticate(key.header, None, now=NOW)

    assert len(queries) == QUERIES[kind]
    assert (caller.kind, caller.app, caller.credential_id) == (
        kind,
        tenant.app,
        key.credential.id,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_last_use_is_stored_once_a_minute(tenant: Tenant, kind: str) -> None:
    key, check = Key(tenant, kind), QUERIES[kind]
    seen = []

    for instant in ("09:30:59", "09:30:10", "09:31:00", "09:31:59", "10:00:30"):
        with CaptureQueriesContext(connection) as queries:
            authenticate(key.header, None, now=at(f"2026-11-20 {instant}"))
        row = Credential.objects.get(id=key.credential.id)
        seen.append((row.last_used_at, len(queries)))

    assert seen == [
        (at("2026-11-20 09:30"), check + 1),
        (at("2026-11-20 09:30"), check),
        (at("2026-11-20 09:31"), check + 1),
        (at("2026-11-20 09:31"), check),
        (at("2026-11-20 10:00"), check + 1),
    ]


def test_refused_key_stores_no_last_use(tenant: Tenant) -> None:
    key = Key(tenant, "server", expires_at=NOW - hours(1))

    key.call()

    assert Credential.objects.get(id=key.credential.id).last_used_at is None


@pytest.mark.parametrize("apps", [1, 3])
def test_an_access_token_takes_two_queries_however_many_apps(
    tenant: Tenant, make_tenant: Callable[..., Tenant], apps: int
) -> None:
    key = Key(tenant, "access")
    for _ in range(apps - 1):
        Membership.objects.create(account=key.credential.account, app=make_tenant().app)
    authenticate(key.header, None, now=NOW)

    with CaptureQueriesContext(connection) as queries:
        caller = authenticate(key.header, None, now=NOW)

    assert (len(caller.memberships), len(queries)) == (apps, 2)


def test_app_of_the_caller_equals_its_row(tenant: Tenant) -> None:
    """The look-up's statement is compiled once, and its rows are those of the ORM."""
    App.objects.filter(id=tenant.app.id).update(settings={"a": [1, {"b": "ä"}]})
    caller = authenticate(basic(tenant.key), None, now=NOW)

    read, kept = caller.app, App.objects.get(id=tenant.app.id)

    fields = [field.attname for field in App._meta.concrete_fields]
    assert {name: getattr(read, name) for name in fields} == {
        name: getattr(kept, name) for name in fields
    }
