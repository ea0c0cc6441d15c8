"""`manage.py reencrypt_secrets`: the secrets of all rooms under the first of the keys."""

import io
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection, connections, models, transaction
from django.utils import timezone
from standardwebhooks import Webhook as Verifier

from apps_config.models import Account
from availability.models import Calendar, Resource
from common.encryption import decrypt_text, encrypt_text
from external_calendars.clients import store_client
from external_calendars.credentials import credentials_of, store_credentials
from external_calendars.grants import request_consent
from external_calendars.models import Connection, ConsentRequest, Grant, ProviderClient
from external_calendars.providers.base import CalendarAccess
from external_calendars.sync.run import SYNCED
from notifications.models import Webhook
from notifications.outbox.dispatcher import run_dispatcher
from notifications.webhooks.services import (
    create_webhook,
    delete_webhook,
    rotate_secret,
    signing_secrets,
)
from ops import reencryption
from ops.reencryption import SECRET_COLUMNS
from tests.external_calendars.memory import Memory, connect, look, memory
from tests.notifications.conftest import hooks
from tests.notifications.test_dispatcher import book
from tests.queries import Queries
from tests.sinks import HookSink
from tests.waiters import wait_for_a_waiter
from tests.world import Tenant

__all__ = ["hooks", "memory"]
pytestmark = pytest.mark.django_db(transaction=True)

OLD, NEW, LOST = "the old key, " * 3, "the new key, " * 3, "the lost key, " * 3
ACCESS = CalendarAccess("https://calendar.example.com/ada/", "ada", "secret")
TOKEN = "gAAAAA"  # as each begins
LOOKED_AT = "4 secrets checked."
REWRITTEN = "4 re-encrypted, 0 use the first key already, 0 can't be decrypted."
ALREADY = "0 re-encrypted, 4 use the first key already, 0 can't be decrypted."


@pytest.fixture(autouse=True)
def _old_key(settings: Any) -> None:
    settings.ENCRYPTION_KEYS = [OLD]


def run(**options: Any) -> tuple[int, list[str]]:
    """(exit status, what was said) of the command."""
    out = io.StringIO()
    try:
        call_command("reencrypt_secrets", stdout=out, **options)
    except CommandError as error:
        return error.returncode, [*_said(out), str(error)]
    return 0, _said(out)


def _said(out: io.StringIO) -> list[str]:
    """Without how fast it went."""
    return [line for line in out.getvalue().splitlines() if "/s, " not in line]


def make_hook(tenant: Tenant) -> tuple[Webhook, list[str]]:
    """A webhook whose secret was just rotated, and both of its secrets, the newer first."""
    webhook, first = create_webhook(app=tenant.app, given={"url": "https://example.com/hook"})
    webhook, second = rotate_secret(webhook, now=timezone.now())
    return webhook, [second, first]


def store_account(tenant: Tenant) -> Grant:
    """An account's grant, an app's own client, and a request for consent."""
    resource = Resource.objects.get(id=tenant.make_resource()["id"])
    now = timezone.now()
    store_client(
        app=tenant.app, provider="google", client_id="own", client_secret="client secret", now=now
    )
    request_consent(
        resource=resource, provider="google", redirect_url="https://app.example.com/", now=now
    )
    return Grant.objects.create(
        app=tenant.app,
        provider="google",
        subject="1",
        email="ada@example.com",
        client_id="own",
        refresh_token=encrypt_text("refresh token"),
        access_token=encrypt_text("access token"),
        access_ends_at=now + timedelta(hours=1),
        renew_at=now + timedelta(minutes=45),
    )


def tokens() -> list[str]:
    """What stands in the database, in the order in which it is looked at."""
    return [
        token
        for column in SECRET_COLUMNS
        for token in column.rows().order_by("pk").values_list(column.name, flat=True)
    ]


# --- Everything -----------------------------------------------------------------------------------
def test_every_secret_column_is_listed(tenant: Tenant) -> None:
    """Looked for in all tables: what was encrypted begins alike."""
    make_hook(tenant)
    connect(tenant.make_resource()["id"])
    store_account(tenant)

    holding = {
        (model, field.name)
        for model in apps.get_models()
        for field in model._meta.concrete_fields
        if isinstance(field, models.CharField | models.TextField)
        and model._base_manager.filter(**{f"{field.name}__startswith": TOKEN}).exists()
    }

    assert [(column.what, column.name) for column in SECRET_COLUMNS] == [
        ("webhook", "secret"),
        ("webhook", "previous_secret"),
        ("calendar", "address"),
        ("calendar", "password"),
        ("grant", "refresh_token"),
        ("grant", "access_token"),
        ("request for consent", "verifier"),
        ("calendar client", "client_secret"),
        ("second factor", "data"),
        ("recovery codes", "data"),
    ]
    # Second factors are in JSON: tests/office/test_sign_in.py.
    texts = {(column.model, column.name) for column in SECRET_COLUMNS if column.name != "data"}
    assert texts == holding


def test_the_old_key_can_be_dropped(tenant: Tenant, settings: Any) -> None:
    webhook, secrets = make_hook(tenant)
    calendar_connection = connect(tenant.make_resource()["id"])
    before = tokens()
    settings.ENCRYPTION_KEYS = [NEW, OLD]

    first, second = run(), run()

    assert first == (0, [LOOKED_AT, REWRITTEN])
    assert second == (0, [LOOKED_AT, ALREADY])
    settings.ENCRYPTION_KEYS = [NEW]
    webhook.refresh_from_db()
    calendar_connection.refresh_from_db()
    assert signing_secrets(webhook, now=timezone.now()) == secrets
    assert credentials_of(calendar_connection) == ACCESS
    assert not set(tokens()) & set(before)


def test_secrets_of_accounts_are_reencrypted(tenant: Tenant, settings: Any) -> None:
    grant = store_account(tenant)
    verifier = decrypt_text(ConsentRequest.objects.get().verifier)
    settings.ENCRYPTION_KEYS = [NEW, OLD]

    first = run()

    assert first == (0, [LOOKED_AT, REWRITTEN])
    settings.ENCRYPTION_KEYS = [NEW]
    grant.refresh_from_db()
    client = ProviderClient.objects.get()
    stored = [grant.refresh_token, grant.access_token, client.client_secret]
    stored.append(ConsentRequest.objects.get().verifier)
    assert [decrypt_text(token) for token in stored] == [
        "refresh token",
        "access token",
        "client secret",
        verifier,
    ]


def test_signing_and_sync_work_with_only_the_new_key(
    tenant: Tenant, hooks: HookSink, memory: Memory, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = create_webhook(app=tenant.app, given={"url": hooks.url("/hook")})[1]
    calendar_connection = connect(tenant.make_resource(email="ada@example.com")["id"])
    settings.ENCRYPTION_KEYS = [NEW, OLD]
    run()
    settings.ENCRYPTION_KEYS = [NEW]

    book(tenant)
    run_dispatcher("webhook")
    ended = look(calendar_connection)

    (call,) = hooks.calls
    assert Verifier(secret).verify(call.body, dict(call.headers))["state"] == "confirmed"
    assert (ended, calendar_connection.problem) == (SYNCED, "")


def test_a_dry_run_only_counts(tenant: Tenant, settings: Any) -> None:
    make_hook(tenant)
    settings.ENCRYPTION_KEYS = [NEW, OLD]
    connect(tenant.make_resource()["id"])
    before = tokens()

    found = run(dry_run=True)

    assert found == (
        0,
        [LOOKED_AT, "2 to be re-encrypted, 2 use the first key already, 0 can't be decrypted."],
    )
    assert tokens() == before


def test_run_without_secrets(db: None) -> None:
    assert run() == (
        0,
        [
            "0 secrets checked.",
            "0 re-encrypted, 0 use the first key already, 0 can't be decrypted.",
        ],
    )


def test_empty_password_stays_empty(tenant: Tenant, settings: Any) -> None:
    calendar_connection = connect(tenant.make_resource()["id"])
    Connection.objects.update(password="")
    settings.ENCRYPTION_KEYS = [NEW, OLD]

    run()

    calendar_connection.refresh_from_db()
    assert (credentials_of(calendar_connection).address, calendar_connection.password) == (
        ACCESS.address,
        "",
    )


# --- What no key opens ----------------------------------------------------------------------------
@pytest.mark.parametrize("dry_run", [False, True])
def test_unreadable_secrets_are_listed_and_others_rewritten(
    tenant: Tenant, settings: Any, dry_run: bool
) -> None:
    webhook, _ = make_hook(tenant)
    calendar_connection = connect(tenant.make_resource()["id"])
    settings.ENCRYPTION_KEYS = [LOST]
    lost = encrypt_text("whsec_lost")
    Webhook.objects.update(secret=lost)
    Connection.objects.update(password="damaged")
    settings.ENCRYPTION_KEYS = [NEW, OLD]

    found = run(dry_run=dry_run)

    older = "2 to be re-encrypted" if dry_run else "2 re-encrypted"
    assert found == (
        1,
        [
            f"webhook {webhook.id}: secret can't be decrypted.",
            f"calendar {calendar_connection.pk}: password can't be decrypted.",
            LOOKED_AT,
            f"{older}, 0 use the first key already, 2 can't be decrypted.",
            "No key of ENCRYPTION_KEYS decrypts 2 secrets.",
        ],
    )
    assert (Webhook.objects.get().secret, Connection.objects.get().password) == (lost, "damaged")


def test_unused_unreadable_secrets_are_no_error(tenant: Tenant, settings: Any) -> None:
    """Of what was deleted, and of a secret that signs no more; what can be read is rewritten."""
    gone, _ = make_hook(tenant)
    over, _ = make_hook(tenant)
    make_hook(tenant)
    connect(tenant.make_resource()["id"])
    now = timezone.now()
    delete_webhook(gone, now=now)
    Webhook.objects.filter(id=gone.id).update(secret="damaged")
    Webhook.objects.filter(id=over.id).update(
        previous_secret="damaged", previous_until=now - timedelta(hours=1)
    )
    Calendar.objects.exclude(connection=None).update(deleted_at=now)
    Connection.objects.update(address="damaged")
    settings.ENCRYPTION_KEYS = [NEW, OLD]

    found = run()

    assert found == (
        0,
        [
            "8 secrets checked.",
            "5 re-encrypted, 0 use the first key already, 0 can't be decrypted.",
            "3 others can't be decrypted, but are deleted or expired and not used.",
        ],
    )


# --- Beside a running service ---------------------------------------------------------------------
Between = Callable[[], None]


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Callable[[Between], None]:
    """`between(change)`: it happens once, after a secret was read and before it is written."""

    def happen(change: Between) -> None:
        waiting = [change]

        def encrypt(text: str) -> str:
            if waiting:
                waiting.pop()()
            return encrypt_text(text)

        monkeypatch.setattr(reencryption, "encrypt_text", encrypt)

    return happen


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ([NEW, OLD], "1 re-encrypted, 1 use the first key already, 0 can't be decrypted."),
        ([OLD], "2 re-encrypted, 0 use the first key already, 0 can't be decrypted."),
    ],
    ids=["by a process that knows the new key", "by one that was not started anew"],
)
def test_concurrently_changed_secret_is_kept(
    tenant: Tenant,
    settings: Any,
    between: Callable[[Between], None],
    keys: list[str],
    told: str,
) -> None:
    calendar_connection = connect(tenant.make_resource()["id"])

    def change() -> None:
        settings.ENCRYPTION_KEYS = keys
        Connection.objects.update(address=encrypt_text("https://new.example.com/"))
        settings.ENCRYPTION_KEYS = [NEW, OLD]

    between(change)
    settings.ENCRYPTION_KEYS = [NEW, OLD]
    found = run()

    assert found == (0, ["2 secrets checked.", told])
    settings.ENCRYPTION_KEYS = [NEW]
    calendar_connection.refresh_from_db()
    assert credentials_of(calendar_connection) == ACCESS._replace(
        address="https://new.example.com/"
    )


def test_concurrently_deleted_row_is_skipped(
    tenant: Tenant, settings: Any, between: Callable[[Between], None]
) -> None:
    connect(tenant.make_resource()["id"])
    between(lambda: Connection.objects.all().delete() and None)
    settings.ENCRYPTION_KEYS = [NEW, OLD]

    status, _ = run()

    assert (status, Connection.objects.count()) == (0, 0)


@pytest.mark.postgresql
def test_run_waits_for_a_concurrent_change_and_keeps_it(tenant: Tenant, settings: Any) -> None:
    """The update has begun on the old row when the change is committed."""
    calendar_connection = connect(tenant.make_resource()["id"])
    settings.ENCRYPTION_KEYS = [NEW, OLD]
    found: list[tuple[int, list[str]]] = []

    def work() -> None:
        try:
            found.append(run())
        finally:
            connections.close_all()

    thread = threading.Thread(target=work)
    with transaction.atomic():
        store_credentials(calendar_connection, ACCESS._replace(password="another"))
        calendar_connection.save()
        thread.start()
        wait_for_a_waiter()
    thread.join(20)

    assert found == [
        (
            0,
            [
                "2 secrets checked.",
                "0 re-encrypted, 2 use the first key already, 0 can't be decrypted.",
            ],
        )
    ]
    calendar_connection.refresh_from_db()
    assert credentials_of(calendar_connection).password == "another"


def test_interrupted_run_can_be_repeated(
    tenant: Tenant, settings: Any, between: Callable[[Between], None]
) -> None:
    make_hook(tenant)
    connect(tenant.make_resource()["id"])
    settings.ENCRYPTION_KEYS = [NEW, OLD]
    texts = [decrypt_text(token) for token in tokens()]

    def stop() -> None:
        between(interrupt)

    def interrupt() -> None:
        raise KeyboardInterrupt

    between(stop)
    stopped = run(batch=1)
    between(lambda: None)
    again = run(batch=1)

    assert stopped == (130, ["Stopped. Run the command again to continue."])
    assert again == (
        0,
        [LOOKED_AT, "3 re-encrypted, 1 use the first key already, 0 can't be decrypted."],
    )
    settings.ENCRYPTION_KEYS = [NEW]
    assert [decrypt_text(token) for token in tokens()] == texts


def test_query_count_is_constant(tenant: Tenant, settings: Any) -> None:
    for _ in range(5):
        make_hook(tenant)
    settings.ENCRYPTION_KEYS = [NEW, OLD]

    with Queries(connection) as wide:
        run(dry_run=True)
    with Queries(connection) as narrow:
        run(dry_run=True, batch=2)

    assert len(narrow) - len(wide) == 4


@pytest.mark.parametrize("batch", [0, 10_001])
def test_wrong_batch_sizes_are_refused(db: None, batch: int) -> None:
    assert run(batch=batch) == (1, ["--batch must be from 1 to 10000."])


def test_second_factor_keeps_its_other_values(settings: Any) -> None:
    account = Account.objects.create_user("doc@example.com")
    codes = {"seed": encrypt_text("the seed"), "used_mask": 5}
    Authenticator.objects.create(user=account, type="recovery_codes", data=codes)
    Authenticator.objects.create(user=account, type="webauthn", data={"name": "Laptop"})
    settings.ENCRYPTION_KEYS = [NEW, OLD]

    status, said = run()

    settings.ENCRYPTION_KEYS = [NEW]
    stored = Authenticator.objects.get(type="recovery_codes").data
    assert (status, decrypt_text(stored["seed"]), stored["used_mask"]) == (0, "the seed", 5)
    assert said[0] == "1 secrets checked."
