"""What a node of web sees of the servers around it: the broker, Redis, the pooler.

Each function returns None if there is no such server, and waits for two seconds at most.
"""

import contextlib

import psycopg
import redis
from celery import current_app
from django.conf import settings
from django.db import connection

SECONDS = 1


def broker_up() -> bool | None:
    if not settings.MESSAGE_BROKER_URL:
        return None
    try:
        with current_app.connection_for_read(connect_timeout=SECONDS) as broker:
            broker.connect()
    except (OSError, *broker.connection_errors, *broker.channel_errors):
        return False
    return True


def redis_up() -> bool | None:
    if not settings.REDIS_URL:
        return None
    client = redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=SECONDS, socket_connect_timeout=SECONDS
    )
    with contextlib.closing(client):
        try:
            return bool(client.ping())
        except (redis.RedisError, OSError):
            return False


def pooler_clients_waiting() -> int | None:
    """Return how many clients of this role and database wait for a connection of PgBouncer.

    None also if the pooler does not answer, or does not let the role read (`stats_users`).
    """
    if not settings.DB_POOLED:
        return None
    server = connection.settings_dict
    try:
        with psycopg.connect(
            host=server["HOST"],
            port=server["PORT"],
            user=server["USER"],
            password=server["PASSWORD"],
            dbname="pgbouncer",
            connect_timeout=SECONDS + 1,  # libpq waits for two seconds at least
            autocommit=True,
        ) as console:
            cursor = console.execute("SHOW POOLS")
            column = [one.name for one in cursor.description or ()].index("cl_waiting")
            return sum(
                int(row[column]) for row in cursor if row[:2] == (server["NAME"], server["USER"])
            )
    except psycopg.Error:
        return None
