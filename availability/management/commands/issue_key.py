"""Stands here and not with the credentials because a resource key names a resource."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from apps_config.models import Account, App, Credential
from apps_config.services import issue_key
from availability.models import Resource


class Command(BaseCommand):
    help = "Issue a key. Its only line on stdout is the key, which is never shown again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", help="the app")
        parser.add_argument("--kind", choices=Credential.KINDS, default=Credential.SERVER)
        parser.add_argument("--account", metavar="EMAIL", help="whose access token; a member")
        parser.add_argument("--resource", metavar="EMAIL", help="whose resource key")
        parser.add_argument("--description", default="")
        parser.add_argument("--days", type=int, help="how long it is valid; for ever by default")

    def handle(self, *args: Any, **options: Any) -> None:
        app = App.objects.open().filter(slug=options["slug"]).first()
        if app is None:
            raise CommandError(f"There is no app {options['slug']}.")
        days = options["days"]
        if days is not None and not 1 <= days <= 36_500:
            raise CommandError("--days must be from 1 to 36500.")
        _, text = issue_key(
            options["kind"],
            mode=app.mode,
            description=options["description"][:200],
            expires_at=timezone.now() + timedelta(days=days) if days else None,
            **self._holder(app, options),
        )
        self.stdout.write(text)

    def _holder(self, app: App, options: dict[str, Any]) -> dict[str, Any]:
        kind = options["kind"]
        if kind == Credential.ACCESS:
            return {"account": self._account(app, options["account"])}
        if kind == Credential.RESOURCE:
            return {"app": app, "resource": self._resource(app, options["resource"])}
        return {"app": app}

    def _account(self, app: App, email: str | None) -> Account:
        """The member named, or the app's only one."""
        members = Account.objects.filter(memberships__app=app, is_active=True)
        return self._only(members, email, "--account")

    def _resource(self, app: App, email: str | None) -> Resource:
        return self._only(Resource.objects.for_app(app), email, "--resource")

    def _only(self, rows: Any, email: str | None, option: str) -> Any:
        if email:
            rows = rows.filter(email__iexact=email.strip())
        found = list(rows[:2])
        if len(found) != 1:
            raise CommandError(f"{option} must be the e-mail address of one of the app's.")
        return found[0]
