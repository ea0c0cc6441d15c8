"""PostgreSQL is shut down hard and comes back (R15), or its standby takes over."""

import time
from collections import Counter
from collections.abc import Callable
from signal import SIGQUIT

import psycopg
import pytest

from notifications.outbox.leases import LEASES
from tests.chaos.conftest import BookingClients, ChangeReader, Deployment, slug
from tests.services import Replica


@pytest.mark.redis
@pytest.mark.postgresql
@pytest.mark.chaos
def test_postgresql_is_restarted_under_load(make_deployment: Callable[..., Deployment]) -> None:
    """Only 503 while it is down; each 201 is kept; a repeated key ends in one booking."""
    deployment = make_deployment(own_postgres=True)
    made = deployment.fill(f"make_app({slug()!r}, {deployment.size(20, 6)})")
    deployment.service.start_web()
    deployment.start_worker()
    deployment.service.start_beat()
    with BookingClients(deployment.service.url, made["key"], made["resources"]) as clients:
        for _ in range(deployment.size(3, 1)):
            time.sleep(3)
            deployment.postgres.kill(SIGQUIT)
            time.sleep(2)
            deployment.postgres.start()
        time.sleep(deployment.size(25, 4))
    # E-mails whose claim was lost with the answer to its commit are sent after their lease.
    seconds = deployment.wait_until_done(LEASES["email"].total_seconds() + 90)

    print(f"{dict(Counter(clients.codes))}, queue empty after {seconds:.0f} s")
    assert set(clients.codes) == {"201", "503 unavailable"}
    assert clients.stored() == sorted(set(clients.acknowledged))
    assert len({mail.id for mail in deployment.mails.mails}) == len(clients.acknowledged)
    assert all(process.poll() is None for process in deployment.service.processes.values())
    deployment.verify()


@pytest.mark.chaos
@pytest.mark.redis
@pytest.mark.postgresql
def test_primary_is_killed_and_its_standby_promoted(
    make_deployment: Callable[..., Deployment],
) -> None:
    """With synchronous replication each 201 is kept; no process is restarted."""
    deployment = make_deployment(own_postgres=True)
    made = deployment.fill(f"make_app({slug()!r}, 12)")
    primary, standby = deployment.postgres, Replica(deployment.postgres)
    try:
        standby.start()
        with psycopg.connect(primary.url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            connection.execute("SELECT pg_reload_conf()")
        hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
        deployment.service.database_url = (
            f"postgres://postgres@{hosts}/postgres?target_session_attrs=read-write"
        )
        deployment.service.env |= {
            "DATABASE_URL": deployment.service.database_url,
            "DATABASE_REPLICA_URL": standby.url,
        }
        deployment.service.start_web()
        deployment.start_worker()
        deployment.service.start_beat()
        reader = ChangeReader(deployment.service.url, made["key"])
        with (
            reader,
            BookingClients(deployment.service.url, made["key"], made["resources"]) as clients,
        ):
            time.sleep(8)
            primary.kill()
            time.sleep(2)
            before = len(clients.acknowledged)
            with psycopg.connect(standby.url, autocommit=True) as connection:
                connection.execute("SELECT pg_promote()")
            time.sleep(12)
        # E-mails whose result was lost with the primary are sent again after their lease.
        seconds = deployment.wait_until_done(LEASES["email"].total_seconds() + 120)
        while reader.read():
            pass

        print(f"{dict(Counter(clients.codes))}, queue empty after {seconds:.0f} s")
        assert set(clients.codes) == {"201", "503 unavailable"}
        assert len(clients.acknowledged) > before > 0
        assert sorted(reader.created) == clients.stored()
        assert clients.stored() == sorted(set(clients.acknowledged))
        assert len({mail.id for mail in deployment.mails.mails}) == len(clients.acknowledged)
        assert all(process.poll() is None for process in deployment.service.processes.values())
        deployment.service.shell.stop()  # it began with the address of the primary alone
        deployment.verify()
    finally:
        standby.stop()
