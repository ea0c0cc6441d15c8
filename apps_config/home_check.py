"""Whether this process belongs to its database: HOME_NUMBER is one of the stored numbers."""

import logging

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import Error, connection

from apps_config.models import Account, App, DatabaseHome

logger = logging.getLogger(__name__)


def home_problem() -> str:
    """Return a sentence if the database belongs to another home than HOME_NUMBER, else "".

    The setting is stored in a database that has no number yet, and in one without apps and
    accounts: no id and no key has its number. Raises Django's database errors.
    """
    numbers = set(DatabaseHome.objects.values_list("number", flat=True))
    if settings.HOME_NUMBER in numbers:
        return ""
    if numbers and (App.objects.exists() or Account.objects.exists()):
        named = " or ".join(map(str, sorted(numbers)))
        return (
            f"HOME_NUMBER is {settings.HOME_NUMBER}, but this database belongs to home {named}."
            " Set DATABASE_URL or HOME_NUMBER to those of this cell."
        )
    DatabaseHome.objects.exclude(number=settings.HOME_NUMBER).delete()
    DatabaseHome.objects.get_or_create(number=settings.HOME_NUMBER)
    return ""


def refuse_other_home() -> None:
    """Raise ImproperlyConfigured if the database belongs to another home: for a start.

    A process also starts while the database is unavailable or has no table of homes yet.
    """
    try:
        problem = home_problem()
    except Error as error:
        logger.warning("the home of the database was not checked: %s", error)
        problem = ""
    finally:
        connection.close()  # web and workers fork
    if problem:
        raise ImproperlyConfigured(problem)
