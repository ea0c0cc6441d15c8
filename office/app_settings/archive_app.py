"""The archive action of apps, with confirmation: it can't be undone."""

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from apps_config.models import App, Membership
from apps_config.services import archive_app
from office.base.model_admin import OfficeAdmin
from office.base.scope import is_allowed


class ArchivingAdmin(OfficeAdmin[App]):
    def has_archive_permission(self, request: HttpRequest, app: App | None = None) -> bool:
        """Return whether the app is open and the caller may archive it; without one, any app."""
        is_open = app is None or app.archived_at is None
        owner = self.app_id_of_row(app)
        return is_open and is_allowed(request, "apps_config.change_app", owner, Membership.OWNER)

    def archive(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask for confirmation; a POST archives. For owners and staff."""
        app = self.find(request, object_id)
        if not self.has_archive_permission(request, app):
            raise PermissionDenied
        if request.method == "POST":
            archive_app(app, now=timezone.now())
            self.log_change(request, app, "Archived.")
            messages.success(request, _("%(app)s is archived.") % {"app": app})
            return HttpResponseRedirect(reverse("admin:index"))
        return self.ask_confirmation(
            request,
            app,
            title=_("Archive this app?"),
            sentence=_(
                "The keys of %(app)s stop working, its booking pages are removed, and unsent"
                " e-mails and calls are skipped. The data stays. The back office can't undo this."
            )
            % {"app": app},
            button=_("Archive"),
        )
