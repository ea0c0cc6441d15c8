"""Who works in an app, and as what. For its owners, and staff."""

import uuid
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from unfold.decorators import display

from apps_config.models import App, Membership
from apps_config.office import AppFilter, ReadOnlyAdmin
from apps_config.scope import scope_of
from apps_config.services import add_member, change_role, remove_member
from scheduling.api.errors import Refusal
from scheduling.api.fields import CONTROL_OR_BREAK

ROLE_WORDS = {
    Membership.VIEWER: "viewer: looks at everything but keys",
    Membership.EDITOR: "editor: changes everything but keys and members",
    Membership.OWNER: "owner: does everything in the app",
}
ROLE_COLOURS = {
    Membership.VIEWER: "info",
    Membership.EDITOR: "primary",
    Membership.OWNER: "success",
}


class NewMemberForm(forms.Form):
    email = forms.EmailField(max_length=254)
    role = forms.ChoiceField(choices=list(ROLE_WORDS.items()))

    def clean_email(self) -> str:
        if CONTROL_OR_BREAK.search(self.cleaned_data["email"]):
            raise forms.ValidationError("Enter a valid email address.")
        return self.cleaned_data["email"]


@admin.register(Membership)
class MembershipAdmin(ReadOnlyAdmin):
    """The list is to look through; changes are made on the page of an app's members."""

    app_paths = ("app",)
    seen_by = Membership.OWNER
    list_display = ("account", "app", "shown_role")
    list_filter = ("role", ("app", AppFilter))
    list_select_related = ("account", "app")
    search_fields = ("account__email", "app__slug")
    fields = ("account", "app", "role")
    change_form_outer_before_template = "office/member_link.html"
    actions = None

    @display(description="role", label=ROLE_COLOURS)
    def shown_role(self, member: Membership) -> str:
        return member.role

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        own = path("of/<uuid:app_id>/", wrap(self.of_app), name="apps_config_membership_of")
        return [own, *super().get_urls()]

    def of_app(self, request: HttpRequest, app_id: uuid.UUID) -> HttpResponse:
        """The members of one app: shown, let in, given another role, let go."""
        app = scope_of(request).apps(Membership.OWNER).filter(id=app_id).first()
        if app is None:
            raise Http404
        if scope_of(request).is_staff and not request.user.has_perm("apps_config.view_membership"):
            raise PermissionDenied
        may_change = self._may_change(request)
        form = NewMemberForm(initial={"role": Membership.EDITOR})
        if request.method == "POST":
            if not may_change:
                raise PermissionDenied
            form = self._take(request, app)
            if form is None:
                return HttpResponseRedirect(self._next_page(request, app))
        members = app.memberships.select_related("account").order_by("account__email")
        context = {
            **self.admin_site.each_context(request),
            "opts": Membership._meta,
            "title": f"Members of {app.name}",
            "app": app,
            "members": list(members),
            "roles": ROLE_WORDS.items(),
            "form": form,
            "may_change": may_change,
            "may_link": request.user.has_perm("apps_config.change_account")
            and scope_of(request).is_staff,
        }
        return TemplateResponse(request, "office/members.html", context)

    def _may_change(self, request: HttpRequest) -> bool:
        is_staff = scope_of(request).is_staff
        return not is_staff or request.user.has_perm("apps_config.change_membership")

    def _next_page(self, request: HttpRequest, app: App) -> str:
        """The page again; the first one for who has just given the app away."""
        if scope_of(request).apps(Membership.OWNER).filter(id=app.pk).exists():
            return reverse("admin:apps_config_membership_of", args=[app.pk])
        return reverse("admin:index")

    def _take(self, request: HttpRequest, app: App) -> NewMemberForm | None:
        """Do what was asked; the form where it can't be read."""
        told: Any = None
        try:
            if "add" in request.POST:
                form = NewMemberForm(request.POST)
                if not form.is_valid():
                    return form
                told = self._add(request, app, **form.cleaned_data)
            else:
                told = self._change(request, app)
            messages.success(request, told)
        except Refusal as refusal:
            messages.error(request, refusal.message)
        # What was read of the account's roles may hold no more.
        request._scope = None  # type: ignore[attr-defined]
        return None

    def _add(self, request: HttpRequest, app: App, *, email: str, role: str) -> str:
        member = add_member(app=app, email=email, role=role)
        self.log_addition(request, member, f"Let in as {role}.")
        # The same words for an account that there was: owners learn nothing of other apps' people.
        tail = "Who has no password yet gets a link to choose one from the platform's staff."
        return f"{member.account} is {role} now. {tail}"

    def _change(self, request: HttpRequest, app: App) -> str:
        number = request.POST.get("member", "")
        member = app.memberships.filter(pk=int(number)).first() if number.isdecimal() else None
        if member is None:
            raise Http404
        if "remove" in request.POST:
            self.log_deletions(request, [member])
            remove_member(member)
            return f"{member.account} is no member any more."
        role = request.POST.get("role", "")
        if role not in Membership.ROLES:
            raise Http404
        change_role(member, role)
        self.log_change(request, member, f"From {member.role} to {role}.")
        return f"{member.account} is {role} now."
