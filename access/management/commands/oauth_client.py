"""`manage.py oauth_client`: register, list and remove programs that log in with OAuth."""

from argparse import ArgumentParser
from typing import Any

from allauth.idp.oidc.models import Client
from django.core.management.base import BaseCommand, CommandError

from access.oauth_clients import BadClient, register_client


class Command(BaseCommand):
    help = "Register, list or remove a program that members may let in with OAuth."

    def add_arguments(self, parser: ArgumentParser) -> None:
        does = parser.add_subparsers(dest="does", required=True)
        add = does.add_parser("add", help="prints the client id")
        add.add_argument("name", help="what members see")
        add.add_argument("redirect_uris", nargs="+", metavar="redirect-uri")
        does.add_parser("list")
        remove = does.add_parser("remove", help="its permissions end at once")
        remove.add_argument("client_id", metavar="client-id")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["does"] == "add":
            try:
                client = register_client(options["name"], options["redirect_uris"])
            except BadClient as error:
                raise CommandError(str(error)) from error
            self.stdout.write(client.pk)
        elif options["does"] == "list":
            for client in Client.objects.order_by("created_at", "pk"):
                self.stdout.write(" ".join([client.pk, *client.get_redirect_uris(), client.name]))
        elif not Client.objects.filter(pk=options["client_id"]).delete()[0]:
            raise CommandError("There is no such program.")
