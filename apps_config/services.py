"""Change the tenant: apps, their notifications, their keys."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, models, transaction
from django.utils import timezone

from apps_config.models import (
    Account,
    App,
    AppNotification,
    Credential,
    Membership,
    make_key,
)
from scheduling.api.errors import AlreadyExists, NotFound, Refusal
from scheduling.api.merging import merge_free, merge_keys

# What the keys of POST /auth are described as, how long they last, how many a person has at once.
LOG_IN = "POST /auth"
LOG_IN_LASTS = timedelta(days=30)
MOST_LOG_INS = 10


def create_app(
    *,
    slug: str,
    name: str,
    mode: str = App.LIVE,
    settings: Mapping[str, Any] | None = None,
    event_notifications: Sequence[Mapping[str, Any]] = (),
    owner: Account | None = None,
) -> App:
    """Make an app, with its owner if one is named. Raises AlreadyExists for a taken slug."""
    try:
        with transaction.atomic():
            app = App.objects.create(
                slug=slug, name=name, mode=mode, settings=merge_keys({}, settings or {})
            )
            if owner:
                Membership.objects.create(account=owner, app=app, role=Membership.OWNER)
            replace_notifications(AppNotification, event_notifications, app=app)
            return app
    except IntegrityError as error:
        if not App.objects.filter(slug=slug).exists():
            raise
        raise AlreadyExists("There is an app with this slug.") from error


def change_app(app: App, given: Mapping[str, Any]) -> App:
    """A partial change: settings are merged key by key, notifications replaced whole."""
    with transaction.atomic():
        app = App.objects.select_for_update(no_key=True).get(id=app.id)
        app.name = given.get("name", app.name)
        app.settings = merge_free(app.settings, given.get("settings", {}), path="settings")
        app.save()
        if "event_notifications" in given:
            replace_notifications(AppNotification, given["event_notifications"], app=app)
    return app


def archive_app(app: App, *, now: datetime) -> None:
    """Stop the app's keys; its data stays."""
    with transaction.atomic():
        rows = App.objects.select_for_update(no_key=True).filter(id=app.id, archived_at=None)
        for row in rows:
            row.archived_at = now
            row.save(update_fields=["archived_at", "updated_at"])


def replace_notifications(
    model: type[models.Model], given: Sequence[Mapping[str, Any]], **owner: models.Model
) -> None:
    """Put `given` in place of all notification rows of an owner (app=..., project=...)."""
    model._default_manager.filter(**owner).delete()
    model._default_manager.bulk_create(
        model(**owner, **(values | {"position": position})) for position, values in enumerate(given)
    )


def issue_key(
    kind: str,
    *,
    mode: str = App.LIVE,
    description: str = "",
    expires_at: datetime | None = None,
    **holder: Any,
) -> tuple[Credential, str]:
    """A fresh key of its holder (app, account, or app and resource) and its text, shown once."""
    credential = Credential(kind=kind, description=description, expires_at=expires_at, **holder)
    text = make_key(credential, mode)
    credential.save(force_insert=True)
    return credential, text


def issue_log_in_key(kind: str, *, now: datetime, **holder: Any) -> tuple[Credential, str]:
    """The key of a log-in with a password: it lasts 30 days, and the newest ten are kept."""
    with transaction.atomic():
        credential, text = issue_key(
            kind, description=LOG_IN, expires_at=now + LOG_IN_LASTS, **holder
        )
        own = Credential.objects.filter(kind=kind, description=LOG_IN, **holder)
        kept = own.order_by("-created_at", "-id").values_list("id", flat=True)[:MOST_LOG_INS]
        own.exclude(id__in=list(kept)).delete()
    return credential, text


def public_key(app: App, *, now: datetime) -> str:
    """The text of the app's newest widget key that is valid; one is made where there is none."""
    text = _newest_widget_key(app, now)
    if text:
        return text
    with transaction.atomic():
        # One at a time: the second finds what the first has made.
        App.objects.select_for_update(no_key=True).get(id=app.id)
        text = _newest_widget_key(app, now)
        if text is None:
            _, text = issue_key(
                Credential.WIDGET, mode=app.mode, description="Hosted pages", app=app
            )
    return text


def _newest_widget_key(app: App, now: datetime) -> str | None:
    keys = Credential.objects.filter(app=app, kind=Credential.WIDGET, revoked_at=None)
    valid = keys.filter(models.Q(expires_at=None) | models.Q(expires_at__gt=now))
    return valid.order_by("-created_at", "-id").values_list("public_text", flat=True).first()


def end_log_ins(**holder: Any) -> None:
    """Forget all keys that were given for a password which holds no more."""
    Credential.objects.filter(description=LOG_IN, **holder).delete()


def revoke_key(credential: Credential) -> None:
    """Let a key be used no more, from now on."""
    Credential.objects.filter(id=credential.id, revoked_at=None).update(revoked_at=timezone.now())


class LastOwner(Refusal):
    """An app keeps at least one owner."""

    code = "in_use"

    def __init__(self) -> None:
        super().__init__("An app keeps at least one owner: make somebody else its owner first.")


def add_member(*, app: App, email: str, role: str) -> Membership:
    """Let the person with that address in. Where there is no account one is made, without a
    password; nobody is mailed. Raises AlreadyExists for who is a member."""
    with transaction.atomic():
        App.objects.select_for_update(no_key=True).get(id=app.id)
        address = email.strip().lower()
        account = Account.objects.filter(email=address).first()
        if account is None:
            account = Account.objects.create_user(address)
        elif Membership.objects.filter(app=app, account=account).exists():
            raise AlreadyExists("That person is a member already.")
        return Membership.objects.create(app=app, account=account, role=role)


def change_role(membership: Membership, role: str) -> None:
    """Raises LastOwner where nobody would own the app any more, NotFound for a member who went."""
    with transaction.atomic():
        locked = _lock_member(membership)
        if role != Membership.OWNER:
            _keep_an_owner(locked)
        locked.role = role
        locked.save(update_fields=["role"])


def remove_member(membership: Membership) -> None:
    """Let somebody in no more; the account stays. Raises LastOwner, NotFound."""
    with transaction.atomic():
        locked = _lock_member(membership)
        _keep_an_owner(locked)
        locked.delete()


def _lock_member(membership: Membership) -> Membership:
    """The row as it is, while nobody else changes who is in the app: two owners who leave at once
    would each see the other."""
    App.objects.select_for_update(no_key=True).get(id=membership.app_id)
    row = Membership.objects.filter(pk=membership.pk).first()
    if row is None:
        raise NotFound("Member")
    return row


def _keep_an_owner(leaving: Membership) -> None:
    owners = Membership.objects.filter(app=leaving.app_id, role=Membership.OWNER)
    if leaving.role == Membership.OWNER and not owners.exclude(pk=leaving.pk).exists():
        raise LastOwner()
