"""`manage.py issue_key`: issue a key of an app, an account or a resource."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any, TypeVar

from django.core.management.base import BaseCommand, CommandError
from django.db.models import Model, QuerySet
from django.utils import timezone

from apps_config.models import Account, App, Credential
from apps_config.services import issue_key
from availability.models import Resource
from availability.resources_by_email import with_email
from common.email_address import canonical_address

Row = TypeVar("Row", bound=Model)


class Command(BaseCommand):
    help = "Issue a key. Prints only the key, which is never shown again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", help="the app")
        parser.add_argument("--kind", choices=Credential.KINDS, default=Credential.SERVER)
        parser.add_argument("--account", metavar="EMAIL", help="member, for an access token")
        parser.add_argument("--resource", metavar="EMAIL", help="resource, for a resource key")
        parser.add_argument("--description", default="")
        parser.add_argument("--days", type=int, help="validity in days (default: unlimited)")

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
        """Return the member with this address, or the app's only member."""
        members = Account.objects.filter(memberships__app=app, is_active=True)
        if email:
            members = members.filter(email=canonical_address(email.strip()))
        return self._single_row(members, "--account")

    def _resource(self, app: App, email: str | None) -> Resource:
        resources = Resource.objects.for_app(app)
        resources_with_email = with_email(resources, email.strip()) if email else resources
        return self._single_row(resources_with_email, "--resource")

    def _single_row(self, rows: QuerySet[Row], option: str) -> Row:
        matches = list(rows[:2])
        if len(matches) != 1:
            raise CommandError(f"{option} must be an e-mail address of this app.")
        return matches[0]
