"""The page behind the link of an invitation. It changes nothing until its button is pressed."""

import uuid

from django import forms
from django.conf import settings
from django.contrib.admin import site
from django.contrib.auth.forms import SetPasswordForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from access.invitations import accept_invitation, account_of_invitation, needs_password
from apps_config.models import Account, Invitation, Membership
from common.errors import NotFound
from notifications.links.invitations import BadInvitationLink, find_invitation
from office.access.members import role_name

INVITED_AS = {
    Membership.VIEWER: _("You are invited as viewer, with the address %(email)s."),
    Membership.EDITOR: _("You are invited as editor, with the address %(email)s."),
    Membership.OWNER: _("You are invited as owner, with the address %(email)s."),
}


@require_http_methods(["GET", "HEAD", "POST"])
def show_invitation(request: HttpRequest, invitation_id: uuid.UUID) -> HttpResponse:
    """Ask a new person for a password, and anyone else only to accept."""
    signature = request.GET.get("signature", "")
    try:
        invitation = find_invitation(invitation_id, signature, now=timezone.now())
        return show_or_accept_invitation(request, invitation)
    except (BadInvitationLink, NotFound):
        return show_page(request, status=403, is_valid=False)


def show_or_accept_invitation(request: HttpRequest, invitation: Invitation) -> HttpResponse:
    account = account_of_invitation(invitation)
    form = new_password_form(request, account, invitation) if needs_password(account) else None
    without_password = form is None or (settings.OIDC_ISSUER and "oidc" in request.POST)
    if request.method == "POST" and (without_password or (form and form.is_valid())):
        password = None if form is None or without_password else form.cleaned_data["new_password1"]
        member = accept_invitation(invitation, password=password, now=timezone.now())
        if settings.OIDC_ISSUER and "oidc" in request.POST:
            return HttpResponseRedirect(reverse("oidc_login"))
        return show_page(request, is_valid=True, member=member, role=role_name(member.role))
    return show_page(
        request,
        is_valid=True,
        invitation=invitation,
        sentence=str(INVITED_AS[invitation.role]) % {"email": invitation.email},
        form=form,
        oidc_name=settings.OIDC_NAME if settings.OIDC_ISSUER else "",
    )


def new_password_form(
    request: HttpRequest, account: Account | None, invitation: Invitation
) -> forms.Form:
    person = account or Account(email=invitation.email)
    is_sent = request.method == "POST" and "oidc" not in request.POST
    return SetPasswordForm(person, request.POST if is_sent else None)


def show_page(request: HttpRequest, *, status: int = 200, **values: object) -> HttpResponse:
    context = site.each_context(request) | {"title": gettext("Invitation"), **values}
    return render(request, "office/invitation.html", context, status=status)
