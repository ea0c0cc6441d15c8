"""Change the tenant: apps, their notifications, keys and members."""

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, models, transaction
from django.utils import timezone

from apps_config.models import (
    Account,
    App,
    AppLogo,
    AppNotification,
    Credential,
    DarkLogo,
    Membership,
    SecurityEvent,
    make_key,
)
from apps_config.security_events import record_event, record_role
from common.api.merge_patch import merge_free, merge_keys
from common.db.updated_at import transaction_start
from common.errors import AlreadyExists, NotFound, Refusal
from common.images import SmallImage
from common.messages import Message

# Keys of POST /auth: their description, lifetime and maximum number per person.
LOG_IN_DESCRIPTION = "POST /auth"
ACCESS_TOKEN_LIFETIME = timedelta(days=30)
MAX_ACCESS_TOKENS = 10


def lock_app(app: App) -> None:
    """Lock the app's row until the transaction ends; its children can still be written."""
    App.objects.select_for_update(no_key=True).filter(id=app.id).values("pk").first()


def create_app(
    *,
    slug: str,
    name: str,
    mode: str = App.LIVE,
    settings: Mapping[str, Any] | None = None,
    event_notifications: Sequence[Mapping[str, Any]] = (),
    owner: Account | None = None,
) -> App:
    """Create an app, with its owner if given. Raises AlreadyExists for a taken slug."""
    try:
        with transaction.atomic():
            app = App.objects.create(
                slug=slug, name=name, mode=mode, settings=merge_keys({}, settings or {})
            )
            if owner:
                record_role(
                    Membership.objects.create(account=owner, app=app, role=Membership.OWNER)
                )
            replace_notifications(AppNotification, event_notifications, app=app)
            return app
    except IntegrityError as error:
        if not App.objects.filter(slug=slug).exists():
            raise
        raise AlreadyExists(Message("Another app has this slug.")) from error


def change_app(app: App, given: Mapping[str, Any]) -> App:
    """Apply a partial change: settings are merged key by key, notifications are replaced."""
    with transaction.atomic():
        app = App.objects.select_for_update(no_key=True).get(id=app.id)
        app.name = given.get("name", app.name)
        app.settings = merge_free(app.settings, given.get("settings", {}), path="settings")
        app.save()
        if "event_notifications" in given:
            replace_notifications(AppNotification, given["event_notifications"], app=app)
    return app


def store_logo(
    app: App, logo: SmallImage | None, *, kind: type[AppLogo | DarkLogo] = AppLogo
) -> App:
    """Replace the app's logo of the kind; None removes it."""
    with transaction.atomic():
        app = App.objects.select_for_update(no_key=True).get(id=app.id)
        app.settings = {key: value for key, value in app.settings.items() if key != kind.setting}
        if logo:
            digest = hashlib.sha256(logo.content).hexdigest()
            values = {**logo._asdict(), "digest": digest}
            kind.objects.update_or_create(app=app, defaults=values)
            app.settings[kind.setting] = digest
        else:
            kind.objects.filter(app=app).delete()
        app.save()
    return app


def end_first_steps(app: App, *, now: datetime) -> None:
    """Show the app's list of first steps no more. It is no change of the app's configuration."""
    App.objects.filter(id=app.id, first_steps_ended_at=None).update(first_steps_ended_at=now)


def archive_app(app: App, *, now: datetime) -> None:
    """Disable the app's keys; its data stays."""
    with transaction.atomic():
        rows = App.objects.select_for_update(no_key=True).filter(id=app.id, archived_at=None)
        for row in rows:
            row.archived_at = now
            row.save(update_fields=["archived_at", "updated_at"])


def replace_notifications(
    model: type[models.Model], given: Sequence[Mapping[str, Any]], **owner: models.Model
) -> None:
    """Replace all notification rows of an owner (app=..., project=...) by `given`."""
    model._default_manager.filter(**owner).delete()
    model._default_manager.bulk_create(
        model(**owner, **{**values, "position": position}) for position, values in enumerate(given)
    )


def issue_key(
    kind: str,
    *,
    mode: str = App.LIVE,
    description: str = "",
    expires_at: datetime | None = None,
    **holder: Any,
) -> tuple[Credential, str]:
    """Create a key; returns its text too, shown once.

    `holder`: app, account, or app and resource, and the limits of the key.
    """
    with transaction.atomic(savepoint=False):
        credential, text = _store_key(
            kind, mode=mode, description=description, expires_at=expires_at, **holder
        )
        record_key(SecurityEvent.KEY_MADE, credential)
    return credential, text


def _store_key(kind: str, *, mode: str = App.LIVE, **values: Any) -> tuple[Credential, str]:
    credential = Credential(kind=kind, **values)
    text = make_key(credential, mode)
    credential.save(force_insert=True)
    return credential, text


def record_key(event: str, key: Credential, **more: Any) -> None:
    about = {"key_kind": key.kind, "prefix": key.prefix, **more}
    record_event(event, app_id=key.app_id, account_id=key.account_id, about=about)


def issue_access_token(
    kind: str,
    *,
    now: datetime,
    is_new_device: bool = False,
    scopes: Sequence[str] | None = None,
    **holder: Any,
) -> tuple[Credential, str]:
    """Create the key of a log-in with a password: it expires after 30 days; the newest ten are
    kept.

    is_new_device: the account has logged in before, but not from this network. scopes: None: all.
    """
    with transaction.atomic():
        credential, text = _store_key(
            kind,
            description=LOG_IN_DESCRIPTION,
            expires_at=now + ACCESS_TOKEN_LIFETIME,
            scopes=scopes,
            **holder,
        )
        own = Credential.objects.filter(kind=kind, description=LOG_IN_DESCRIPTION, **holder)
        kept = own.order_by("-created_at", "-id").values_list("id", flat=True)[:MAX_ACCESS_TOKENS]
        own.exclude(id__in=list(kept)).delete()
        more = {"is_new_device": True} if is_new_device else {}
        record_key(SecurityEvent.TOKEN_MADE, credential, **more)
    return credential, text


def public_key(app: App, project_id: uuid.UUID, *, now: datetime) -> str:
    """The text of the newest valid key of a project's hosted page; one is created if there is none.

    Only for a published project: the key allows everybody to book it.
    """
    text = _newest_page_key(app, project_id, now)
    if text:
        return text
    with transaction.atomic():
        # Serialise: a concurrent call finds the key of the first.
        App.objects.select_for_update(no_key=True).get(id=app.id)
        text = _newest_page_key(app, project_id, now)
        if text is None:
            _, text = _store_key(
                Credential.WIDGET,
                mode=app.mode,
                description="Hosted page",
                app=app,
                projects=[str(project_id)],
                hosted_project_id=project_id,
            )
    return text


def _newest_page_key(app: App, project_id: uuid.UUID, now: datetime) -> str | None:
    keys = Credential.objects.filter(app=app, hosted_project=project_id, revoked_at=None)
    valid = keys.filter(models.Q(expires_at=None) | models.Q(expires_at__gt=now))
    return valid.order_by("-created_at", "-id").values_list("public_text", flat=True).first()


def end_access_tokens(account: Account) -> None:
    """Delete all access tokens of an account that has a new password, its first second factor or
    the role of an owner.

    A log-in that is creating one has locked the account: wait for it.
    """
    with transaction.atomic(savepoint=False):
        Account.objects.select_for_update(no_key=True).get(pk=account.pk)
        _end_tokens(Credential.objects.filter(kind=Credential.ACCESS, account=account))


def end_tokens_of_new_owner(member: Membership) -> None:
    """End the access tokens of an account that has become an owner: they are not to do more."""
    if member.role == Membership.OWNER:
        end_access_tokens(member.account)


def end_log_in_tokens(resource_id: uuid.UUID) -> None:
    """Delete the tokens of the log-ins of a resource whose password has changed; its keys stay."""
    rows = Credential.objects.filter(kind=Credential.RESOURCE, resource=resource_id)
    _end_tokens(rows.filter(description=LOG_IN_DESCRIPTION))


def _end_tokens(tokens: models.QuerySet[Credential]) -> None:
    with transaction.atomic(savepoint=False):
        rows = list(tokens)
        tokens.filter(id__in=[row.id for row in rows]).delete()
        if rows:
            record_event(
                SecurityEvent.TOKENS_ENDED,
                app_id=rows[0].app_id,
                account_id=rows[0].account_id,
                about={"tokens": len(rows)},
            )


def revoke_key(credential: Credential) -> None:
    """Revoke a key, effective at once."""
    with transaction.atomic():
        is_revoked = Credential.objects.filter(id=credential.id, revoked_at=None).update(
            revoked_at=timezone.now(), updated_at=transaction_start()
        )
        if is_revoked:
            record_key(SecurityEvent.KEY_REVOKED, credential)


class LastOwner(Refusal):
    """An app must keep at least one owner."""

    code = "in_use"

    def __init__(self) -> None:
        super().__init__(Message("An app must have at least one owner: add another owner first."))


def change_role(membership: Membership, role: str) -> None:
    """Change a member's role. Raises LastOwner if no owner would remain, NotFound for a removed
    member.
    """
    with transaction.atomic():
        locked = _lock_members_and_read(membership)
        if role != Membership.OWNER:
            _check_last_owner(locked)
        before, locked.role = locked.role, role
        locked.save(update_fields=["role"])
        if role != before:
            record_role(locked, before=before)
            end_tokens_of_new_owner(locked)


def remove_member(membership: Membership) -> None:
    """Remove a member; the account stays. Raises LastOwner, NotFound."""
    with transaction.atomic():
        locked = _lock_members_and_read(membership)
        _check_last_owner(locked)
        locked.delete()
        record_event(
            SecurityEvent.MEMBER_REMOVED,
            app_id=locked.app_id,
            about={"member": locked.account.email, "role": locked.role},
        )


def _lock_members_and_read(membership: Membership) -> Membership:
    """The member's present row, under a lock on the app's members.

    Without the lock, two owners who leave at once would each count the other as the remaining
    owner.
    """
    App.objects.select_for_update(no_key=True).get(id=membership.app_id)
    row = Membership.objects.select_related("account").filter(pk=membership.pk).first()
    if row is None:
        raise NotFound("Member")
    return row


def _check_last_owner(leaving: Membership) -> None:
    owners = Membership.objects.filter(app=leaving.app_id, role=Membership.OWNER)
    if leaving.role == Membership.OWNER and not owners.exclude(pk=leaving.pk).exists():
        raise LastOwner()
