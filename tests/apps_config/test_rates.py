"""How often: requests a minute for each key, failed log-ins a minute for each address."""

from collections.abc import Callable
from typing import Any, cast

import pytest
from django.db import connection

from apps_config import authentication
from apps_config.models import FailedLogin
from common.limits import rate_limit
from common.limits.rate_limit import RateWindow, RefusedKeys
from tests.world import NOW, Answer, Caller, Tenant, at

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]

TOO_MANY = {"error": "Too many requests.", "code": "rate_limited"}
RATE_HEADERS = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After")


def rates(answer: Answer) -> tuple[int, list[str | None]]:
    return answer.status, [answer.headers.get(name) for name in RATE_HEADERS]


@pytest.fixture
def set_limit(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    def set_to(limit: int) -> None:
        monkeypatch.setattr(authentication, "request_rates", RateWindow(limit))

    return set_to


# --- Requests -------------------------------------------------------------------------------------
def test_the_limit_by_default_is_6000(tenant: Tenant) -> None:
    assert rates(tenant.get("/app")) == (200, ["6000", "5999", "60", None])


def test_requests_beyond_the_limit_are_refused_until_the_minute_ends(
    tenant: Tenant, clock: Any, set_limit: Callable[[int], None]
) -> None:
    set_limit(2)
    clock.move_to(at("2026-11-20 09:30:15"))

    answers = [tenant.get("/app"), tenant.get("/apps/unknown"), tenant.get("/app")]
    clock.move_to(at("2026-11-20 09:31:00"))
    answers.append(tenant.get("/app"))

    assert [rates(answer) for answer in answers] == [
        (200, ["2", "1", "45", None]),
        (404, ["2", "0", "45", None]),
        (429, ["2", "0", "45", "45"]),
        (200, ["2", "1", "60", None]),
    ]
    assert answers[2].error == TOO_MANY


def test_draft_rate_limit_headers_are_sent(tenant: Tenant, clock: Any) -> None:
    clock.move_to(at("2026-11-20 09:30:15"))

    headers = tenant.get("/app").headers

    assert (headers["RateLimit-Policy"], headers["RateLimit"]) == (
        '"requests";q=6000;w=60',
        '"requests";r=5999;t=45',
    )


def test_redis_is_not_called_inside_a_transaction(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It could be slow, and the transaction would hold its locks meanwhile."""
    asked = []

    class Shared:
        def count(self, key: str, window: int, hits: int) -> int:
            asked.append([block for block in connection.atomic_blocks if not block._from_testcase])
            return 7

    monkeypatch.setattr(authentication, "request_rates", RateWindow(9, cast(Any, Shared())))

    answer = tenant.post("/projects", {"name": "Check-up"}, **{"Idempotency-Key": "a"})

    assert (answer.status, answer.headers["X-RateLimit-Remaining"], asked) == (201, "2", [[]])


def test_each_key_has_its_own_count(tenant: Tenant, set_limit: Callable[[int], None]) -> None:
    set_limit(1)
    member = tenant.member("owner@example.com")

    answers = [caller.get("/app") for caller in (tenant, member, tenant, member)]

    assert [answer.status for answer in answers[:2]] == [200, 200]
    assert [(answer.status, answer.error) for answer in answers[2:]] == [(429, TOO_MANY)] * 2


def test_widget_keys_are_counted_for_each_address(
    tenant: Tenant, settings: Any, set_limit: Callable[[int], None]
) -> None:
    """One page's key is used by all its visitors: none of them locks out the others."""
    set_limit(1)
    settings.TRUSTED_PROXIES = 1
    widget = tenant.widget()

    answers = [
        widget.post("/availability", {"project_id": ""}, **{"X-Forwarded-For": address})
        for address in ("192.0.2.1", "192.0.2.2", "192.0.2.1", "192.0.2.2")
    ]

    assert [answer.status for answer in answers[:2]] == [422, 422]
    assert [(answer.status, answer.error) for answer in answers[2:]] == [(429, TOO_MANY)] * 2


@pytest.mark.parametrize("has_key", [True, False])
def test_requests_of_one_ipv6_network_are_counted_together(
    tenant: Tenant, settings: Any, set_limit: Callable[[int], None], has_key: bool
) -> None:
    """One customer has 2^64 addresses."""
    set_limit(30)
    settings.TRUSTED_PROXIES = 1
    widget, path = tenant.widget(), "/challenge" if has_key else "/projects/hosted/unknown"

    def ask(address: str) -> int:
        return widget.get(path, **{"X-Forwarded-For": address}).status

    admitted = 200 if has_key else 404
    statuses = [ask(f"2001:db8:1:2::{number:x}") for number in range(60)]
    assert statuses == [admitted] * 30 + [429] * 30
    assert [ask("2001:db8:1:3::1"), ask("203.0.113.1")] == [admitted] * 2


def test_mapped_ipv4_address_counts_as_ipv4(
    tenant: Tenant, settings: Any, set_limit: Callable[[int], None]
) -> None:
    set_limit(1)
    settings.TRUSTED_PROXIES = 1
    widget = tenant.widget()

    statuses = [
        widget.get("/challenge", **{"X-Forwarded-For": address}).status
        for address in ("192.0.2.1", "::ffff:192.0.2.1", "::FFFF:C000:201", "192.0.2.2")
    ]

    assert statuses == [200, 429, 429, 200]


@pytest.mark.parametrize("is_public", [True, False])
def test_cpu_time_counts_as_requests(
    tenant: Tenant,
    monkeypatch: pytest.MonkeyPatch,
    set_limit: Callable[[int], None],
    is_public: bool,
) -> None:
    """Of a request that takes 0.26 s: five hits more. The headers say what is left after it."""
    set_limit(10)
    monkeypatch.setattr(rate_limit, "CPU_SECONDS", 0.05)
    began = iter([0.0, 0.049, 1.0, 1.26, 2.0, 2.26, 3.0, 3.0])
    monkeypatch.setattr(rate_limit.time, "thread_time", lambda: next(began))
    caller, path = tenant.widget(), "/projects/hosted/unknown" if is_public else "/challenge"

    answers = [caller.get(path) for _ in range(4)]

    admitted = 404 if is_public else 200
    assert [rates(answer)[0] for answer in answers] == [admitted] * 3 + [429]
    assert [answer.headers["X-RateLimit-Remaining"] for answer in answers] == ["9", "3", "0", "0"]
    assert [answer.headers["RateLimit"] for answer in answers] == [
        f'"requests";r={left};t=60' for left in (9, 3, 0, 0)
    ]


def test_a_page_counts_its_cpu_time(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, set_limit: Callable[[int], None]
) -> None:
    set_limit(10)
    project = tenant.make_project(tenant.make_resource()["id"])
    monkeypatch.setattr(rate_limit, "CPU_SECONDS", 0.05)
    monkeypatch.setattr(rate_limit.time, "thread_time", iter([0.0, 0.11]).__next__)

    response = tenant.client.get(f"/book/{project['slug']}")

    assert (response.status_code, response.headers["X-RateLimit-Remaining"]) == (200, "7")


def test_request_takes_one_redis_round_trip(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the counter of all processes."""
    asked = []

    class Shared:
        def count(self, key: str, window: int, hits: int) -> int:
            asked.append(hits)
            return 7

    monkeypatch.setattr(rate_limit, "CPU_SECONDS", 0.05)
    spent = iter([0.0, 0.04, 1.0, 1.2])
    monkeypatch.setattr(rate_limit.time, "thread_time", lambda: next(spent))
    monkeypatch.setattr(authentication, "request_rates", RateWindow(9, cast(Any, Shared())))

    tenant.get("/app")
    tenant.get("/app")

    assert asked == [1, 1, 3]


def test_no_headers_without_a_limit(tenant: Tenant, set_limit: Callable[[int], None]) -> None:
    set_limit(0)

    assert rates(tenant.get("/app")) == (200, [None, None, None, None])


# --- Failed log-ins -------------------------------------------------------------------------------
def test_eleventh_failed_log_in_of_a_minute_is_429(tenant: Tenant, clock: Any) -> None:
    clock.move_to(at("2026-11-20 09:30:20"))
    stranger = Caller("live_api_key_wrong")

    answers = [stranger.get("/app") for _ in range(12)]

    assert [answer.status for answer in answers] == [401] * 10 + [429] * 2
    assert [(answer.error, answer.headers["Retry-After"]) for answer in answers[10:]] == [
        (TOO_MANY, "40")
    ] * 2


def test_valid_key_passes_after_failures(tenant: Tenant) -> None:
    """Behind one shared address a stranger's mistakes lock out nobody."""
    stranger = Caller("live_api_key_wrong")
    for _ in range(11):
        stranger.get("/app")

    assert [stranger.get("/app").status, tenant.get("/app").status] == [429, 200]


def test_count_restarts_each_minute(tenant: Tenant, clock: Any) -> None:
    stranger = Caller("live_api_key_wrong")
    for _ in range(11):
        stranger.get("/app")

    clock.shift(60)

    assert stranger.get("/app").status == 401


def test_requests_without_credentials_are_not_counted(tenant: Tenant) -> None:
    nobody = Caller("")
    del nobody.headers["Authorization"]

    assert {nobody.get("/app").status for _ in range(12)} == {401}
    assert not FailedLogin.objects.exists()


def test_failures_are_counted_per_address(tenant: Tenant, settings: Any) -> None:
    settings.TRUSTED_PROXIES = 1
    stranger = Caller("live_api_key_wrong")
    for _ in range(11):
        stranger.get("/app", **{"X-Forwarded-For": "192.0.2.1"})

    statuses = [
        stranger.get("/app", **{"X-Forwarded-For": address}).status
        for address in ("192.0.2.1", "192.0.2.2")
    ]

    assert statuses == [429, 401]


def test_failures_of_one_ipv6_network_are_counted_together(tenant: Tenant, settings: Any) -> None:
    settings.TRUSTED_PROXIES = 1
    stranger = Caller("live_api_key_wrong")

    statuses = [
        stranger.get("/app", **{"X-Forwarded-For": f"2001:db8:1:2::{number:x}"}).status
        for number in range(1, 13)
    ]

    assert statuses == [401] * 10 + [429] * 2
    assert FailedLogin.objects.get().address == "2001:db8:1:2::/64"


def test_processes_share_one_count(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process knows only what the table says."""
    stranger = Caller("live_api_key_wrong")
    for _ in range(10):
        stranger.get("/app")

    monkeypatch.setattr(authentication, "refused_logins", RefusedKeys())

    assert stranger.get("/app").status == 429


def test_the_limit_of_failures_can_be_switched_off(tenant: Tenant, settings: Any) -> None:
    settings.FAILED_LOGINS_PER_MINUTE = 0
    stranger = Caller("live_api_key_wrong")

    assert {stranger.get("/app").status for _ in range(12)} == {401}


def test_old_failures_are_purged(tenant: Tenant, clock: Any) -> None:
    this_minute = int(at("2026-11-20 09:30").timestamp()) // 60
    for minute in (this_minute - 2, this_minute - 1, this_minute):
        FailedLogin.objects.create(address="192.0.2.1", minute=minute, count=3)

    counts = list(authentication.purge_failed_logins(now=NOW))

    assert counts == [1]
    kept = FailedLogin.objects.order_by("minute").values_list("minute", flat=True)
    assert list(kept) == [this_minute - 1, this_minute]
