import contextlib
from collections.abc import Iterator

from django.db import connection


@contextlib.contextmanager
def patient_statements() -> Iterator[None]:
    """Statements may take as long as they need: a look at every row is no request's."""
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
    try:
        yield
    finally:
        with contextlib.suppress(Exception), connection.cursor() as cursor:
            cursor.execute("RESET statement_timeout")
