"""Whose an e-mail address and a password are (POST /auth). Here, because resources log in too."""

from typing import Any

from django.contrib.auth.hashers import check_password
from django.db.models import QuerySet, Value
from django.db.models.functions import Lower

from apps_config.models import Account, App
from availability.models import Resource

MOST_APPS = 5  # in which one address is tried as a resource's; the others have to name their app


def find_people(*, email: str, password: str, app_slug: str | None) -> list[Account | Resource]:
    """The account, or else the resources of open apps, to whom address and password belong.

    `app_slug`: of that app only. Who has no password, or no such address, costs a hash as well:
    time does not tell which addresses there are.
    """
    account = find_account(email, app_slug)
    if fits(password, account):
        return [account]
    resources = find_resources(email, app_slug) or [None]
    return [resource for resource in resources if fits(password, resource)]


def fits(password: str, person: Any) -> bool:
    return check_password(password, person.password if person else "") and person is not None


def find_account(email: str, app_slug: str | None) -> Account | None:
    """An active one, with a part in an open app."""
    apps = App.objects.open()
    if app_slug is not None:
        apps = apps.filter(slug=app_slug)
    accounts = Account.objects.filter(email=email.lower(), is_active=True)
    return accounts.filter(memberships__app__in=apps).first()


def find_resources(email: str, app_slug: str | None) -> list[Resource]:
    resources = with_email(Resource.objects.filter(deleted_at=None, app__archived_at=None), email)
    if app_slug is not None:
        resources = resources.filter(app__slug=app_slug)
    return list(resources.exclude(password="").select_related("app")[:MOST_APPS])


def with_email(resources: QuerySet[Resource], email: str) -> QuerySet[Resource]:
    """Those with that address in any case, by the index that keeps it unique in an app."""
    return resources.alias(address=Lower("email")).filter(address=Lower(Value(email)))
