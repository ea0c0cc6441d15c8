"""Password authentication (POST /auth)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.contrib.auth.hashers import check_password, make_password
from django.db import transaction

from access.known_devices import is_new_device
from access.log_in_failures import record_failure, record_wrong_code
from access.log_in_limits import count_log_in_attempt
from access.second_factor import takes_codes, use_code
from apps_config.history import change_actor
from apps_config.models import Account, App, Credential
from apps_config.second_factors import has_second_factor, must_have_second_factor
from apps_config.services import issue_access_token
from availability.models import Resource
from availability.resources_by_email import with_email
from common.email_address import canonical_address
from common.errors import Invalid, SecondFactorRequired, Unauthenticated
from common.limits.hashing_slots import TooManyLogIns, hashing_slot

# The number of apps in which an address is looked up as a resource's.
MAX_APPS = 5

Person = Account | Resource


@dataclass(frozen=True, slots=True)
class Proof:
    """A person whose password was right. has_code: a code of the account's second factor, too."""

    person: Person
    has_code: bool = False


def log_in_with_password(
    *, email: str, password: str, code: str, app_slug: str | None, network: str, now: datetime
) -> Proof:
    """Check the password of the account, or else of the resource, with this address.

    `app_slug`: only of that app. Raises Unauthenticated, SecondFactorRequired, Invalid if the
    password matches resources of several apps, TooManyFailures, TooManyLogIns.
    """
    attempt = count_log_in_attempt(email=email, network=network, now=now)
    people = find_people(email, app_slug)
    try:
        with hashing_slot():
            matching = [person for person in people if check_password(password, person.password)]
            if not people:
                # As long as for a known address: the time does not reveal which ones exist.
                make_password(password)
    except TooManyLogIns:
        attempt.take_back()
        raise
    if not matching:
        record_failure(attempt, people, now=now)
        raise Unauthenticated
    attempt.take_back()
    if len(matching) > 1:
        raise Invalid.at("Service-App", "Required: the log-in matches several apps.")
    person = matching[0]
    if isinstance(person, Resource):
        return Proof(person)
    return Proof(person, has_code=check_second_factor(person, code, now=now))


def find_people(email: str, app_slug: str | None) -> Sequence[Person]:
    """Return the account with this address, else the resources: one hash is enough for either."""
    account = find_account(email, app_slug)
    return [account] if account else find_resources_with_password(email, app_slug)


def find_account(email: str, app_slug: str | None) -> Account | None:
    """Return the active account that is a member of an open app."""
    if not settings.PASSWORD_LOGIN:
        return None
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


def check_second_factor(account: Account, code: str, *, now: datetime) -> bool:
    """Return whether the account has a second factor, whose code is right.

    Raises SecondFactorRequired if it must have one or the code is wrong, RateLimited after too many
    wrong codes.
    """
    if not has_second_factor(account):
        if must_have_second_factor(account):
            raise SecondFactorRequired(
                "This account needs a second factor. Set one up in the back office."
            )
        return False
    if not takes_codes(account):
        raise SecondFactorRequired(
            "This account's second factor is a passkey, which works in the back office only."
        )
    if not code:
        raise SecondFactorRequired("Send a code of the authenticator app, or a recovery code.")
    if not use_code(account, code, now=now):
        record_wrong_code(account, now=now)
        raise SecondFactorRequired("The code is wrong or was already used.")
    return True


def issue_token(
    proof: Proof, network: str, *, scopes: Sequence[str] | None = None, now: datetime
) -> tuple[Credential, str]:
    """Create the key of a log-in. scopes: of an account's token; None: all.

    Raises Unauthenticated if the password was changed meanwhile, or the first second factor was
    added: either has ended all earlier keys. Raises Invalid for scopes of a resource's key.
    """
    person = proof.person
    if scopes and isinstance(person, Resource):
        raise Invalid.at("scopes", "Only access tokens of accounts have scopes.")
    account_id = person.pk if isinstance(person, Account) else None
    with transaction.atomic(), change_actor(account_id, person.email or ""):
        rows = type(person)._default_manager.select_for_update(no_key=True)
        if rows.filter(pk=person.pk, password=person.password).first() is None:
            raise Unauthenticated
        if isinstance(person, Resource):
            kind = Credential.RESOURCE
            return issue_access_token(kind, now=now, app=person.app, resource=person)
        if has_second_factor(person) and not proof.has_code:
            raise Unauthenticated
        is_new = is_new_device(person, network)
        return issue_access_token(
            Credential.ACCESS, now=now, is_new_device=is_new, scopes=scopes, account=person
        )
