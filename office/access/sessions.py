"""Log-ins of all accounts that have not ended. For platform staff."""

from allauth.usersessions.models import UserSession
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.decorators import action, display

from access.sessions import end_sessions, open_sessions
from office.access.account_pages import name_browser
from office.base.dates import moment_words
from office.base.model_admin import ALL_EDITS, OfficeAdmin
from office.base.model_admin_pages import ACTION_FIELDS, is_confirmed

NAMED = 10  # sessions named on the confirmation page


@admin.register(UserSession)
class SessionAdmin(OfficeAdmin[UserSession]):
    never = ALL_EDITS
    list_display = ("user", "browser", "address", "since")
    list_select_related = ("user",)
    search_fields = ("user__email",)
    fields = ("user", "browser", "address", "since")
    ordering = ("-created_at", "-id")
    sortable_by = ()
    actions = ("end_selected",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[UserSession]:
        return super().get_queryset(request) & open_sessions()

    @display(description=_("browser"))
    def browser(self, row: UserSession) -> str:
        return name_browser(row.user_agent)

    @display(description=_("IP address"))
    def address(self, row: UserSession) -> str:
        return row.ip

    @display(description=_("logged in since"))
    def since(self, row: UserSession) -> str:
        return moment_words(row.created_at)

    def has_end_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

    @action(description=_("End these sessions"), permissions=["end"])
    def end_selected(
        self, request: HttpRequest, rows: QuerySet[UserSession]
    ) -> HttpResponse | None:
        if not is_confirmed(request):
            first = rows.select_related("user")[:NAMED]
            return self.ask_confirmation(
                request,
                None,
                title=gettext("End these sessions?"),
                sentence=gettext("These browsers have to log in again."),
                button=gettext("End the sessions"),
                lines=[f"{row.user}, {name_browser(row.user_agent)}" for row in first],
                repeated=ACTION_FIELDS,
            )
        sentence = gettext("Sessions ended: %(count)s.")
        messages.success(request, sentence % {"count": end_sessions(rows)})
        return None
