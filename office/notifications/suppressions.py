"""Addresses that get no e-mails or no reminders: a list, and an action that ends it."""

from collections.abc import Iterable

from django.contrib import admin, messages
from django.contrib.admin.models import LogEntry
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.decorators import action, display

from notifications.models import Suppression
from office.base.dates import moment_words
from office.base.list_filters import AppFilter
from office.base.model_admin import OfficeAdmin


@admin.register(Suppression)
class SuppressionAdmin(OfficeAdmin[Suppression]):
    """Rows are made by bounces and by customers; deleting a row sends e-mails again."""

    app_paths = ("app",)
    never = frozenset({"add", "change"})
    list_display = ("email", "reason", "detail", "app", "since")
    list_filter = ("reason", ("app", AppFilter))
    list_select_related = ("app",)
    search_fields = ("address", "detail")
    ordering = ("-id",)
    actions = ("send_again",)

    @display(description=_("e-mail"), ordering="address")
    def email(self, row: Suppression) -> str:
        return row.address

    def log_deletions(
        self, request: HttpRequest, queryset: Iterable[Suppression]
    ) -> list[LogEntry]:
        """Note it at the app: the log keeps a row's name for ever, here a customer's address."""
        note = "A suppressed address was removed."
        return [self.log_change(request, row.app, note) for row in queryset]

    @display(description=_("since"), ordering="created_at")
    def since(self, row: Suppression) -> str:
        return moment_words(row.created_at)

    @action(description=_("Send e-mails again"), permissions=["delete"])
    def send_again(self, request: HttpRequest, rows: QuerySet[Suppression]) -> None:
        addresses = list(rows.values_list("address", flat=True))
        rows.delete()
        sentence = gettext("E-mails are sent again to: %(addresses)s.")
        messages.success(request, sentence % {"addresses": ", ".join(addresses)})
