"""Read-only admins of idempotency records, failed log-ins, request counts and invitations."""

from datetime import UTC, datetime

from django.contrib import admin
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from apps_config.models import FailedLogin, IdempotencyRecord, Invitation, Membership, RequestCount
from office.base.dates import moment_words
from office.base.labels import state_words
from office.base.model_admin import ReadOnlyAdmin

INVITED_TO = {
    Membership.VIEWER: _("%(email)s is invited to %(app)s as viewer"),
    Membership.EDITOR: _("%(email)s is invited to %(app)s as editor"),
    Membership.OWNER: _("%(email)s is invited to %(app)s as owner"),
}


@admin.register(IdempotencyRecord)
class IdempotencyRecordAdmin(ReadOnlyAdmin[IdempotencyRecord]):
    list_display = ("key", "credential", "status", "created_at")
    list_select_related = ("credential",)
    search_fields = ("key",)
    fields = ("credential", "key", "status", "created_at")


@admin.register(FailedLogin)
class FailedLoginAdmin(ReadOnlyAdmin[FailedLogin]):
    list_display = ("address", "time", "count")
    fields = ("address", "time", "count")
    search_fields = ("address",)

    @display(description="time")
    def time(self, row: FailedLogin) -> str:
        return moment_words(datetime.fromtimestamp(row.minute * 60, UTC))


@admin.register(RequestCount)
class RequestCountAdmin(ReadOnlyAdmin[RequestCount]):
    list_display = ("shown_kind", "app", "count", "expires_at")
    list_filter = ("kind",)
    list_select_related = ("app",)
    search_fields = ("kind", "app__slug")

    @display(description="kind", ordering="kind")
    def shown_kind(self, row: RequestCount) -> str:
        return state_words(row.kind).capitalize()


@admin.register(Invitation)
class InvitationAdmin(ReadOnlyAdmin[Invitation]):
    app_paths = ("app",)
    list_display = ("email", "app", "role", "created_at", "expires_at", "accepted_at", "revoked_at")
    list_select_related = ("app",)
    search_fields = ("email", "app__slug")

    def row_title(self, row: Invitation) -> str:
        return str(INVITED_TO[row.role]) % {"email": row.email, "app": row.app}
