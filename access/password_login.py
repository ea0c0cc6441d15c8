"""Password authentication (POST /auth)."""

from django.contrib.auth.hashers import check_password

from apps_config.models import Account, App
from availability.models import Resource
from availability.resources_by_email import with_email
from common.email_address import canonical_address

# The number of apps in which an address is looked up as a resource's.
MAX_APPS = 5


def authenticate_with_password(
    *, email: str, password: str, app_slug: str | None
) -> list[Account | Resource]:
    """Return the account, or else the resources of open apps, with this address and password.

    `app_slug`: only that app. An unknown address, or one without a password, costs a hash as well:
    the time does not reveal which addresses exist.
    """
    account = find_account(email, app_slug)
    if password_matches(password, account) and account:
        return [account]
    found: list[Resource | None] = [*find_resources_with_password(email, app_slug)]
    return [owner for owner in found or [None] if password_matches(password, owner) and owner]


def password_matches(password: str, person: Account | Resource | None) -> bool:
    return check_password(password, person.password if person else "") and person is not None


def find_account(email: str, app_slug: str | None) -> Account | None:
    """Return the active account that is a member of an open app."""
    apps = App.objects.open()
    if app_slug is not None:
        apps = apps.filter(slug=app_slug)
    accounts = Account.objects.filter(email=canonical_address(email), is_active=True)
    return accounts.filter(memberships__app__in=apps).first()


def find_resources_with_password(email: str, app_slug: str | None) -> list[Resource]:
    resources = with_email(Resource.objects.filter(deleted_at=None, app__archived_at=None), email)
    if app_slug is not None:
        resources = resources.filter(app__slug=app_slug)
    return list(resources.exclude(password="").select_related("app")[:MAX_APPS])
