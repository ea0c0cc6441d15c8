"""The service's database connections besides the default one.

`direct`    past a pooler, for jobs that change their session (`DATABASE_DIRECT_URL`)
`replica`   a standby that answers reads (`DATABASE_REPLICA_URL`)
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connection, connections

DIRECT, REPLICA = "direct", "replica"

_STORED = """
SELECT split_part(unnest(setconfig), '=', 1) FROM pg_db_role_setting
WHERE setrole IN (0, (SELECT oid FROM pg_roles WHERE rolname = current_user))
AND setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
"""


@contextmanager
def use_connection(alias: str) -> Iterator[None]:
    """Make this connection the default one of the thread: for the ORM and for handwritten SQL.

    It takes the default's name, so that a row read through it belongs to the default database.
    """
    usual, other = connections[DEFAULT_DB_ALIAS], connections[alias]
    other.alias = DEFAULT_DB_ALIAS
    connections[DEFAULT_DB_ALIAS] = other
    try:
        yield
    finally:
        connections[DEFAULT_DB_ALIAS] = usual


@contextmanager
def direct_session() -> Iterator[None]:
    """Use a session that no pooler shares with other clients: the direct connection, if one is set.

    Without one, the default connection is such a session.
    """
    if DIRECT not in settings.DATABASES:
        yield
        return
    with use_connection(DIRECT):
        try:
            yield
        finally:
            connection.close()


def store_role_parameters() -> None:
    """Make the time-outs of a session the defaults of the role, for sessions through a pooler.

    A pooler passes on no start-up options. Values that the operator has stored stay. Only new
    sessions use them.
    """
    with connection.cursor() as cursor:
        cursor.execute(_STORED)
        stored = {name for (name,) in cursor.fetchall()}
        cursor.execute("SELECT current_database()")
        database = connection.ops.quote_name(cursor.fetchone()[0])
        for name, value in settings.POSTGRESQL_PARAMETERS.items():
            if name not in stored:
                role = f"ALTER ROLE CURRENT_USER IN DATABASE {database}"
                cursor.execute(f"{role} SET {name} = '{value}'")
