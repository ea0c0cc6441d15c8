"""Limits of wrong passwords, the same for the back office and POST /auth."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from access import log_in_limits
from access.known_devices import cookie_name
from access.log_in_failures import record_failure
from access.log_in_limits import LogInAttempt, count_log_in_attempt
from apps_config.authentication import purge_failed_logins
from apps_config.models import Account, FailedLogin, Membership, SecurityEvent
from common.limits.rate_limit import RefusedKeys
from tests.live import LiveApp
from tests.services import Service
from tests.world import Tenant

pytestmark = pytest.mark.both_databases
PASSWORD = "correct horse battery"
DOC, NOBODY = "doc@example.com", "nobody@example.com"
ENTRIES = ["office", "api"]


@pytest.fixture
def doc(tenant: Tenant, clock: Any) -> Account:
    account = Account.objects.create_user(DOC, PASSWORD)
    Membership.objects.create(app=tenant.app, account=account, role="editor")
    return account


def try_log_in(
    entry: str,
    number: int,
    email: str = DOC,
    password: str = "wrong",
    client: Client | None = None,
) -> HttpResponse:
    """From an address of its own for each number: 2001:db8:0:<number>::1."""
    client, address = client or Client(), f"2001:db8:0:{number:x}::1"
    if entry == "office":
        form = {"username": email, "password": password}
        return client.post("/admin/login/", form, REMOTE_ADDR=address)
    body = {"email": email, "password": password}
    return client.post("/v2/auth", body, content_type="application/json", REMOTE_ADDR=address)


RIGHT = {"office": 302, "api": 200}
WRONG = {"office": 200, "api": 401}


def statuses(answers: Any) -> Counter[int]:
    return Counter(answer.status_code for answer in answers)


# --- An account -----------------------------------------------------------------------------------
@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("email", [DOC, NOBODY])
def test_ten_failures_of_an_address_begin_a_pause(doc: Account, entry: str, email: str) -> None:
    """An address that nobody has is answered in the same way."""
    answers = [try_log_in(entry, number, email) for number in range(12)]
    right = try_log_in(entry, 99, email, PASSWORD)

    assert statuses(answers) == {WRONG[entry]: 10, 429: 2}
    assert (right.status_code, right.headers["Retry-After"]) == (429, "60")


@pytest.mark.parametrize("first", ENTRIES)
def test_api_office_and_all_spellings_share_one_count(doc: Account, first: str) -> None:
    other = ENTRIES[1 - ENTRIES.index(first)]
    for number, email in enumerate([DOC, "Doc@example.com", "DOC@EXAMPLE.COM"] * 4):
        try_log_in(first, number, email)

    assert try_log_in(other, 99, DOC, PASSWORD).status_code == 429


def test_the_pause_grows_to_a_quarter_of_an_hour(doc: Account, clock: Any) -> None:
    """At 9:30; at 10:00 another hour begins."""
    clock.shift(-29 * 60)
    for number in range(10):
        try_log_in("api", number)
    pauses = []
    for number in range(10, 15):
        pauses.append(int(try_log_in("api", number).headers["Retry-After"]))
        clock.shift(pauses[-1] - 1)
        assert try_log_in("api", number).status_code == 429
        clock.shift(1)
        assert try_log_in("api", number).status_code == 401

    assert pauses == [60, 120, 240, 480, 900]
    assert try_log_in("api", 99).headers["Retry-After"] == "900"


def test_a_pause_ends_with_the_hour(doc: Account, clock: Any) -> None:
    clock.shift(30 * 60 - 20)
    for number in range(10):
        try_log_in("api", number)

    paused = try_log_in("api", 99, DOC, PASSWORD)
    clock.shift(20)

    assert (paused.status_code, paused.headers["Retry-After"]) == (429, "20")
    assert try_log_in("api", 99, DOC, PASSWORD).status_code == 200


def test_successful_and_refused_log_ins_are_not_counted(doc: Account) -> None:
    for _ in range(15):
        assert try_log_in("api", 1, DOC, PASSWORD).status_code == 200
    for number in range(50):
        try_log_in("api", number)

    counts = dict(FailedLogin.objects.values_list("address", "count"))
    assert sorted(Counter(counts.values()).items())[-1] == (10, 2)  # attempts, and wrong ones


def test_limits_can_be_switched_off(doc: Account, settings: Any) -> None:
    settings.FAILED_PASSWORDS_PER_HOUR = 0

    answers = [try_log_in("office", 1) for _ in range(40)]

    assert statuses(answers) == {200: 40}
    assert not FailedLogin.objects.exists()


# --- Known browsers and networks ------------------------------------------------------------------
def lock_out(number: int = 100) -> None:
    for each in range(10):
        try_log_in("api", number + each)


def test_a_browser_that_has_logged_in_passes_the_pause(doc: Account, settings: Any) -> None:
    settings.HTTPS = True
    browser, other = Client(), Client()
    entered = try_log_in("office", 1, DOC, PASSWORD, browser)
    name = next(name for name in entered.cookies if name.startswith("known_device"))
    cookie = entered.cookies[name]
    browser.cookies.pop("sessionid")
    lock_out()

    strangers = try_log_in("office", 2, DOC, PASSWORD, other)
    known = try_log_in("office", 2, DOC, PASSWORD, browser)

    assert (strangers.status_code, known.status_code) == (429, 302)
    kept = {key: cookie[key] for key in ("httponly", "samesite", "path", "secure", "max-age")}
    assert kept == {
        "httponly": True,
        "samesite": "Strict",
        "path": "/admin/",
        "secure": True,
        "max-age": 90 * 86_400,
    }


def test_known_browser_has_its_own_ten_attempts(doc: Account) -> None:
    browser = Client()
    try_log_in("office", 1, DOC, PASSWORD, browser)
    lock_out()

    answers = [try_log_in("office", 3, DOC, "wrong", browser) for _ in range(12)]

    assert statuses(answers) == {200: 10, 429: 2}


@pytest.mark.parametrize("fault", ["another account's", "old password", "old", "damaged"])
def test_invalid_device_cookie_does_not_pass_the_pause(
    doc: Account, tenant: Tenant, clock: Any, fault: str
) -> None:
    bob = Account.objects.create_user("bob@example.com", PASSWORD)
    Membership.objects.create(app=tenant.app, account=bob, role="editor")
    browser, who = Client(), bob if fault == "another account's" else doc
    try_log_in("office", 1, who.email, PASSWORD, browser)
    browser.cookies.pop("sessionid")
    cookie, name = browser.cookies[cookie_name(who)].value, cookie_name(doc)
    browser.cookies[name] = cookie
    if fault == "old password":
        doc.set_password(PASSWORD)
        doc.save()
    if fault == "old":
        clock.shift(90 * 86_400 + 1)
    if fault == "damaged":
        browser.cookies[name] = cookie + "x"
    lock_out()

    assert try_log_in("office", 2, DOC, PASSWORD, browser).status_code == 429


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_network_of_an_earlier_log_in_passes_the_pause(
    doc: Account, clock: Any, entry: str
) -> None:
    for known in ENTRIES:
        try_log_in(known, 1 + ENTRIES.index(known), DOC, PASSWORD)
    clock.shift(29 * 86_400)
    lock_out()

    known = [try_log_in(entry, number, DOC, PASSWORD).status_code for number in (1, 2)]
    clock.shift(2 * 86_400)
    lock_out()

    assert known == [RIGHT[entry]] * 2
    assert try_log_in(entry, 1, DOC, PASSWORD).status_code == RIGHT[entry]  # known for its log-in
    SecurityEvent.objects.all().delete()
    assert try_log_in(entry, 1, DOC, PASSWORD).status_code == 429


def test_log_in_to_another_app_makes_no_network_known(
    doc: Account, tenant: Tenant, make_tenant: Callable[..., Tenant]
) -> None:
    """Somebody gives a resource of an app of their own the address of the account."""
    hostile = make_tenant()
    made = hostile.make_resource(email=DOC)
    hostile.put(f"/resources/{made['id']}", {"password": "hostile words"})
    body = {"email": DOC, "password": "hostile words"}
    entered = Client().post(
        "/v2/auth",
        body,
        content_type="application/json",
        headers={"Service-App": hostile.app.slug},
        REMOTE_ADDR="2001:db8:0:7::1",
    )
    lock_out()

    assert (entered.status_code, try_log_in("api", 7).status_code) == (200, 429)


def test_an_account_has_a_hundred_failures_an_hour(doc: Account, clock: Any) -> None:
    """Also from browsers that it knows."""
    browsers = [Client() for _ in range(11)]
    for browser in browsers:
        try_log_in("office", 1, DOC, PASSWORD, browser)

    answers = [
        try_log_in("office", 10 + number, DOC, "wrong", browser)
        for number, browser in enumerate(browsers)
        for _ in range(10)
    ]

    assert statuses(answers) == {200: 100, 429: 10}


# --- A network ------------------------------------------------------------------------------------
@pytest.mark.parametrize("entry", ENTRIES)
def test_thirty_accounts_from_one_network_share_one_limit(
    doc: Account, clock: Any, entry: str
) -> None:
    """From other addresses of one /64."""
    for number in range(30):
        name = f"name-{number}@example.com"
        headers = {"REMOTE_ADDR": f"2001:db8::{number:x}"}
        answer = Client().post("/admin/login/", {"username": name, "password": "x"}, **headers)
        assert answer.status_code == 200

    right = try_log_in(entry, 0, DOC, PASSWORD)
    elsewhere = try_log_in(entry, 1, DOC, PASSWORD)
    clock.shift(30 * 60)
    later = try_log_in(entry, 0, DOC, PASSWORD)

    assert (right.status_code, right.headers["Retry-After"]) == (429, "1800")
    assert (elsewhere.status_code, later.status_code) == (RIGHT[entry], RIGHT[entry])


def test_a_known_browser_passes_the_limit_of_its_network(doc: Account) -> None:
    """A stranger in the guests' network locks nobody out."""
    browser = Client()
    try_log_in("office", 5, DOC, PASSWORD, browser)
    for number in range(31):
        try_log_in("api", 5, f"name-{number}@example.com")

    assert try_log_in("office", 5, DOC, PASSWORD).status_code == 429
    assert try_log_in("office", 5, DOC, PASSWORD, browser).status_code == 302


def test_processes_share_the_count_of_a_network(
    doc: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process knows only what the table says."""
    for number in range(31):
        try_log_in("api", 5, f"name-{number}@example.com")

    monkeypatch.setattr(log_in_limits, "refused_networks", RefusedKeys())

    assert try_log_in("api", 5, DOC, PASSWORD).status_code == 429


def test_counts_are_purged_after_their_hour(doc: Account, clock: Any) -> None:
    try_log_in("api", 5)
    kept = [*purge_failed_logins(now=timezone.now())]
    clock.shift(32 * 60)

    assert (kept, sum(purge_failed_logins(now=timezone.now()))) == ([], 6)


# --- The pages ------------------------------------------------------------------------------------
def test_page_shows_when_to_retry(doc: Account) -> None:
    lock_out()

    english = try_log_in("office", 1)
    german = try_log_in("office", 1, client=Client(headers={"Accept-Language": "de"}))

    assert "You can try again in 1 minute." in english.content.decode()
    assert "Sie können es in 1 Minute erneut versuchen." in german.content.decode()


# --- Events ---------------------------------------------------------------------------------------
def test_failures_and_locks_are_recorded_in_few_rows(doc: Account, clock: Any) -> None:
    """And never what was typed in place of an address."""
    for number in range(40):
        try_log_in("office", number)
        try_log_in("api", number, "my-password-is@example.com")
    clock.shift(3600)
    try_log_in("api", 1)

    rows = SecurityEvent.objects.filter(kind__startswith="log_in").order_by("id")
    found = [(row.kind, row.account, row.actor, row.network, row.count) for row in rows]
    assert found == [
        ("log_in_failed", doc, "", "2001:db8::/64", 10),
        ("log_in_failed", None, "", "2001:db8::/64", 10),
        ("log_in_locked", doc, "", "2001:db8:0:9::/64", 1),
        ("log_in_failed", doc, "", "2001:db8:0:1::/64", 1),
    ]
    assert "my-password" not in str(list(SecurityEvent.objects.values()))


def test_locked_network_is_recorded_once(doc: Account) -> None:
    for number in range(40):
        try_log_in("api", 5, f"name-{number}@example.com")

    row = SecurityEvent.objects.get(kind="log_in_locked")
    assert (row.account, row.about, row.count) == (None, {"network": "2001:db8:0:5::/64"}, 1)


# --- Races ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("limit", [30, 0])
def test_concurrent_failures_meet_the_limits_exactly(
    start_service: Callable[..., Service], limit: int
) -> None:
    """Forty at once in two processes; the control has no limit."""
    service = start_service(
        workers=2,
        threads=8,
        wsgi="tests.access.guessing_wsgi",
        FAILED_PASSWORDS_PER_HOUR=limit,
        TRUSTED_PROXIES=1,
    )
    app = LiveApp(service)

    def guess(number: int, email: str, network: int) -> int:
        headers = {"X-Forwarded-For": f"203.0.113.{network}"}
        body = {"email": email, "password": "wrong"}
        return app.call("POST", "/v2/auth", body, headers=headers).status

    with ThreadPoolExecutor(20) as pool:
        of_account = [*pool.map(lambda n: guess(n, DOC, n), range(40))]
        of_network = [*pool.map(lambda n: guess(n, f"n{n}@example.com", 200), range(40))]

    # 503: while the passwords that use up the limit are being checked.
    found = [
        Counter(429 if status == 503 else status for status in answers)
        for answers in (of_account, of_network)
    ]
    expected = [{401: 10, 429: 30}, {401: 30, 429: 10}] if limit else [{401: 40}, {401: 40}]
    assert found == expected


def begin(count: int, email: str = "n{}@example.com", network: int = 5) -> list[LogInAttempt]:
    """Attempts at once, whose passwords are still being checked."""
    now, address = timezone.now(), f"2001:db8:0:{network}::/64"
    return [
        count_log_in_attempt(email=email.format(number), network=address, now=now)
        for number in range(count)
    ]


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("begun", [(30, "n{}@example.com", 5), (10, DOC, 7)])
@pytest.mark.parametrize("is_right", [True, False])
def test_concurrent_successful_log_ins_cause_no_lock(
    doc: Account, entry: str, begun: tuple[int, str, int], is_right: bool
) -> None:
    """Of a network, or of one account. The control: wrong ones do."""
    attempts = begin(*begun)

    early = try_log_in(entry, 5, DOC, PASSWORD)
    for attempt in attempts:
        attempt.take_back() if is_right else record_failure(attempt, [], now=timezone.now())
    later = try_log_in(entry, 5, DOC, PASSWORD)

    assert (early.status_code, early.headers["Retry-After"]) == (503, "2")
    assert later.status_code == (RIGHT[entry] if is_right else 429)


def test_concurrent_attempt_counts_towards_the_limit(doc: Account) -> None:
    """It may prove wrong: nine failures and one attempt leave no room for another."""
    for number in range(9):
        try_log_in("api", number)
    [attempt] = begin(1, DOC)

    during = try_log_in("api", 20)
    record_failure(attempt, [doc], now=timezone.now())
    after = try_log_in("api", 20)

    found = [(answer.status_code, answer.headers["Retry-After"]) for answer in (during, after)]
    assert found == [(503, "2"), (429, "60")]
    assert SecurityEvent.objects.filter(kind="log_in_locked").count() == 1


# --- The password, asked again --------------------------------------------------------------------
PAGES = {
    "/admin/account/confirm/": "password",
    "/admin/password_change/": "old_password",
}


@pytest.mark.parametrize("path", PAGES)
def test_password_guesses_within_a_session_are_limited(doc: Account, path: str) -> None:
    thief, field = Client(), PAGES[path]
    thief.force_login(doc)
    others = {"new_password1": "another password", "new_password2": "another password"}

    pages = [thief.post(path, {field: "wrong", **others}).content.decode() for _ in range(11)]
    right = thief.post(path, {field: PASSWORD, **others})

    assert ["You can try again in 1 minute." in page for page in pages] == [False] * 10 + [True]
    assert right.status_code == 200
    assert try_log_in("api", 99, DOC, PASSWORD).status_code == 429
    assert Account.objects.get().check_password(PASSWORD) is True
    assert SecurityEvent.objects.get(kind="log_in_failed").count == 10


@pytest.mark.parametrize("path", PAGES)
def test_the_right_password_passes(doc: Account, path: str) -> None:
    client, field = Client(), PAGES[path]
    client.force_login(doc)
    others = {"new_password1": "another password", "new_password2": "another password"}

    answer = client.post(path, {field: PASSWORD, **others})

    assert answer.status_code == 302
    assert not FailedLogin.objects.filter(count__gt=0).exists()
