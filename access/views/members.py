"""Endpoints of an app's members: /apps/:slug/members."""

import uuid

from rest_framework.response import Response

from access.invitations import invite_member, revoke_invitation
from access.member_list import Member, list_members_and_invitations, member_of
from access.records import MemberRecord
from access.serializers import NewMemberSerializer
from apps_config.models import Membership
from apps_config.services import remove_member
from apps_config.views import SLUG, AppScopedView
from common.api.pagination import Page, list_envelope
from common.api.validated_input import read_body_as
from common.api.views import ApiRequest
from common.errors import NotFound
from common.openapi.generator import data_object, describe_endpoint, page_of


class MembersView(AppScopedView):
    tag = "members"
    paginated = True
    refuses_unknown_keys = True
    owner_methods = frozenset({"GET", "POST"})

    @describe_endpoint(
        summary="List members",
        description="Members of the app and open invitations, in the order of their addresses.",
        response=page_of(MemberRecord),
        path=SLUG,
    )
    def get(self, request: ApiRequest, slug: str) -> Response:
        rows = list_members_and_invitations(self.find_app(slug, Membership.OWNER))
        page = Page.read(request)
        records = [MemberRecord.of(Member(*row)) for row in rows[page.start : page.stop]]
        return Response(list_envelope(request, page, rows.count(), records))

    @describe_endpoint(
        summary="Invite a person",
        description="Sends an e-mail with a link that is valid for seven days. The person becomes a"
        " member when they open the link and accept. 409 `already_exists` for a member or an open"
        " invitation.",
        request=NewMemberSerializer,
        response=data_object(MemberRecord),
        status=201,
        path=SLUG,
        request_examples={
            "a viewer": {"email": "doc@example.com"},
            "an owner": {"email": "emmett@example.com", "role": "owner"},
        },
    )
    def post(self, request: ApiRequest, slug: str) -> Response:
        app = self.find_app(slug, Membership.OWNER)
        given = read_body_as(NewMemberSerializer, request)
        invitation = invite_member(app=app, **given, now=self.now)
        return Response({"data": MemberRecord.of(member_of(invitation))}, status=201)


class MemberView(AppScopedView):
    tag = "members"
    owner_methods = frozenset({"DELETE"})

    @describe_endpoint(
        summary="Remove a member or an invitation",
        description="The person's account stays, with its other apps. 409 `in_use` for the last"
        " owner.",
        status=204,
        path=SLUG,
    )
    def delete(self, request: ApiRequest, slug: str, member_id: uuid.UUID) -> Response:
        app = self.find_app(slug, Membership.OWNER)
        member = app.memberships.filter(account_id=member_id).first()
        invitation = None if member else app.invitations.open().filter(id=member_id).first()
        if member:
            remove_member(member)
        elif invitation:
            revoke_invitation(invitation, now=self.now)
        else:
            raise NotFound("Member")
        return Response(status=204)
