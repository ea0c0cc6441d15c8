"""Members of an app and their roles. For owners and staff."""

import uuid
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.timezone import localtime
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from access.invitations import invite_member, resend_invitation, revoke_invitation
from apps_config.models import App, Membership
from apps_config.services import change_role, remove_member
from bookings.pages.formatting import day_and_time, short_day_words, time_words
from common.api.fields import EmailField
from common.errors import Refusal
from office.access.fresh_log_in import require_fresh_log_in
from office.base.api_forms import check_value
from office.base.labels import LabelledWords
from office.base.list_filters import AppFilter
from office.base.message_translations import translate_message
from office.base.model_admin import ALL_EDITS, OfficeAdmin
from office.base.model_admin_pages import ExtraPage, find_row, is_confirmed
from office.base.scope import account_of, forget_values, scope_of
from office.notifications.mail_file_viewer import mails_are_files

ROLE_WORDS = {
    Membership.VIEWER: _("viewer: views everything except keys"),
    Membership.EDITOR: _("editor: changes everything except keys and members"),
    Membership.OWNER: _("owner: full access to the app"),
}
# Translators: roles in a team.
ROLE_NAMES = {
    Membership.VIEWER: _("viewer"),
    Membership.EDITOR: _("editor"),
    Membership.OWNER: _("owner"),
}
ROLE_TITLES = {
    Membership.VIEWER: _("%(account)s is viewer of %(app)s"),
    Membership.EDITOR: _("%(account)s is editor of %(app)s"),
    Membership.OWNER: _("%(account)s is owner of %(app)s"),
}
NOW_IN_ROLE = {
    Membership.VIEWER: _("%(account)s is now viewer."),
    Membership.EDITOR: _("%(account)s is now editor."),
    Membership.OWNER: _("%(account)s is now owner."),
}
ROLE_COLOURS = {
    Membership.VIEWER: "info",
    Membership.EDITOR: "primary",
    Membership.OWNER: "success",
}


MAX_LINKED = 20  # teams


def role_name(role: str) -> str:
    return str(ROLE_NAMES[role])


class InviteForm(forms.Form):
    email = forms.EmailField(max_length=254)
    role = forms.ChoiceField(choices=list(ROLE_WORDS.items()))

    def clean_email(self) -> str:
        return check_value(EmailField(), self.cleaned_data["email"])


@admin.register(Membership)
class MembershipAdmin(OfficeAdmin[Membership]):
    """The list is read-only; changes are made on the page of an app's members."""

    never = ALL_EDITS
    app_paths = ("app",)
    seen_by = Membership.OWNER
    list_display = ("account", "app", "shown_role")
    list_filter = ("role", ("app", AppFilter))
    list_select_related = ("account", "app")
    search_fields = ("account__email", "app__slug")
    fields = ("account", "app", "role")
    list_before_template = "office/team_links.html"
    change_form_outer_before_template = "office/member_link.html"
    actions = None

    @display(description=_("role"), label=ROLE_COLOURS)
    def shown_role(self, member: Membership) -> LabelledWords:
        return LabelledWords(member.role, role_name(member.role))

    def row_title(self, row: Membership) -> str:
        return str(ROLE_TITLES[row.role]) % {"account": row.account, "app": row.app}

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        teams = scope_of(request).apps(Membership.OWNER)[:MAX_LINKED]
        return super().changelist_view(request, {"teams": list(teams)} | (extra_context or {}))

    def extra_pages(self) -> Iterable[ExtraPage]:
        return [ExtraPage("of/<uuid:app_id>/", self.of_app, "of", "view")]

    def of_app(self, request: HttpRequest, app_id: uuid.UUID) -> HttpResponse:
        """Render and handle the page of an app's members: list, invite, change role, remove."""
        app = find_row(scope_of(request).apps(Membership.OWNER), app_id)
        account, is_staff = account_of(request), scope_of(request).is_staff
        may_change = not is_staff or account.has_perm("apps_config.change_membership")
        form: InviteForm | None = InviteForm(initial={"role": Membership.VIEWER})
        if request.method == "POST":
            if not may_change:
                raise PermissionDenied
            is_ending = bool({"revoke", "remove"} & request.POST.keys())
            if is_ending and not is_confirmed(request):
                return self._confirm_removal(request, app)
            if not is_ending:
                require_fresh_log_in(request)
            form = self._apply_post(request, app)
            if form is None:
                return HttpResponseRedirect(self._next_page(request, app))
        members = app.memberships.select_related("account").order_by("account__email")
        return self.show_page(
            request,
            "office/members.html",
            title=gettext("Team of %(app)s") % {"app": app.name},
            app=app,
            members=[(member, role_name(member.role)) for member in members],
            invitations=[
                (row, role_name(row.role), brief_moment(row.sent_at), brief_moment(row.expires_at))
                for row in app.invitations.open()
            ],
            now=timezone.now(),
            roles=[(role, role_name(role), words) for role, words in ROLE_WORDS.items()],
            form=form,
            may_change=may_change,
            may_link=settings.PASSWORD_LOGIN
            and is_staff
            and account.has_perm("apps_config.change_account"),
        )

    def _confirm_removal(self, request: HttpRequest, app: App) -> HttpResponse:
        """Ask before an invitation is revoked or a member removed."""
        if "revoke" in request.POST:
            invitation = find_row(app.invitations.open(), request.POST.get("invitation", ""))
            title = gettext("Revoke the invitation of %(email)s?") % {"email": invitation.email}
            sentence, button = gettext("The link in the e-mail stops working."), gettext("Revoke")
        else:
            member = find_row(app.memberships.all(), request.POST.get("member", ""))
            title = gettext("Remove %(email)s from %(app)s?") % {
                "email": member.account,
                "app": app.name,
            }
            sentence = gettext("The app is no longer visible to this person.")
            button = gettext("Remove")
        return self.ask_confirmation(
            request,
            None,
            title=title,
            sentence=sentence,
            button=button,
            back=reverse("admin:apps_config_membership_of", args=[app.pk]),
            repeated=("invitation", "revoke", "member", "remove"),
        )

    def _next_page(self, request: HttpRequest, app: App) -> str:
        """Return the URL of the page; of the dashboard if the caller is no longer an owner."""
        if scope_of(request).apps(Membership.OWNER).filter(id=app.pk).exists():
            return reverse("admin:apps_config_membership_of", args=[app.pk])
        return reverse("admin:index")

    def _apply_post(self, request: HttpRequest, app: App) -> InviteForm | None:
        """Perform the POSTed action; return the form if it is invalid."""
        try:
            if "invite" in request.POST:
                form = InviteForm(request.POST)
                if not form.is_valid():
                    return form
                words = self._invite(request, app, **form.cleaned_data)
            elif "invitation" in request.POST:
                words = self._change_invitation(request, app)
            else:
                words = self._change(request, app)
            messages.success(request, words)
        except Refusal as refusal:
            messages.error(request, translate_message(refusal.message))
        forget_values(request)  # the caller's own role may have changed
        return None

    def _invite(self, request: HttpRequest, app: App, *, email: str, role: str) -> str:
        invitation = invite_member(app=app, email=email, role=role, now=timezone.now())
        self.log_change(request, app, f"Invited {invitation.email} as {role}.")
        # The same text for existing accounts: owners must not learn who has an account.
        sentence = gettext("Invitation sent to %(email)s.") % {"email": invitation.email}
        return with_file_hint(request, sentence)

    def _change_invitation(self, request: HttpRequest, app: App) -> str:
        invitation = find_row(app.invitations.open(), request.POST["invitation"])
        if "revoke" in request.POST:
            revoke_invitation(invitation, now=timezone.now())
            self.log_change(request, app, f"Revoked the invitation of {invitation.email}.")
            sentence = gettext("The invitation of %(email)s is revoked.")
            return sentence % {"email": invitation.email}
        resend_invitation(invitation, now=timezone.now())
        sentence = gettext("Invitation sent to %(email)s again.") % {"email": invitation.email}
        return with_file_hint(request, sentence)

    def _change(self, request: HttpRequest, app: App) -> str:
        member = find_row(app.memberships.all(), request.POST.get("member", ""))
        if "remove" in request.POST:
            self.log_deletions(request, app.memberships.filter(pk=member.pk))
            remove_member(member)
            return gettext("%(account)s is no longer a member.") % {"account": member.account}
        role = request.POST.get("role", "")
        if role not in Membership.ROLES:
            raise Http404
        change_role(member, role)
        self.log_change(request, member, f"Role changed from {member.role} to {role}.")
        return str(NOW_IN_ROLE[role]) % {"account": member.account}


def brief_moment(moment: datetime) -> str:
    """Return `Mon 23 Nov, 09:00 CET`."""
    local = localtime(moment)
    return f"{day_and_time(short_day_words(local), time_words(local))} {local.tzname()}"


def with_file_hint(request: HttpRequest, sentence: str) -> str:
    """Add what to do where no mail server is set: e-mails are files, which platform staff can
    read.
    """
    if not mails_are_files():
        return sentence
    hint = gettext("No mail server is set: ask the platform's staff for the e-mail with the link.")
    if account_of(request).is_superuser:
        hint = gettext("No mail server is set: find the e-mail under Sent e-mails.")
    return f"{sentence} {hint}"
