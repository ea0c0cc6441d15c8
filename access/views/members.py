"""Endpoints of an app's members: /apps/:slug/members."""

import uuid

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from access.invitations import invite_member, revoke_invitation
from access.member_list import ORDER, Member, list_members_and_invitations, member_of
from access.serializers import MemberSerializer
from apps_config.services import remove_member
from apps_config.views import SLUG, AppPathViewSet
from common.api.cursors import after_cursor, write_cursor
from common.api.pagination import Page, cursor_envelope, list_envelope
from common.api.serializers import read_body_as
from common.errors import Forbidden, NotFound
from common.openapi.generator import named_examples, parameters


class MemberViewSet(AppPathViewSet):
    serializer_class = MemberSerializer
    lookup_url_kwarg = "member_id"
    tag = "members"
    refuses_unknown_keys = True

    @extend_schema(
        summary="List members",
        description="Members of the app and open invitations, in the order of their addresses.",
        parameters=parameters(path=SLUG),
    )
    def list(self, request: Request, slug: str) -> Response:
        app, page = self.find_app(slug), Page.read(request)
        if page.cursor is not None:
            after = after_cursor(page.cursor, request.path, ORDER, ORDER)
            found = list(list_members_and_invitations(app, after)[: page.limit + 1])
            members = [Member(*row) for row in found[: page.limit]]
            last = members[-1] if len(found) > page.limit else None
            cursor = last and write_cursor(request.path, ORDER, [last.email, last.id])
            records = [MemberSerializer.render(member) for member in members]
            return Response(cursor_envelope(request, page, cursor, records))
        rows = list_members_and_invitations(app)
        records = [MemberSerializer.render(Member(*row)) for row in rows[page.start : page.stop]]
        return Response(list_envelope(request, page, rows.count(), records))

    @extend_schema(
        summary="Invite a person",
        description="Sends an e-mail with a link that is valid for seven days. The person becomes a"
        " member when they open the link and accept. 409 `already_exists` for a member or an open"
        " invitation.",
        parameters=parameters(path=SLUG),
        examples=named_examples(
            request={
                "a viewer": {"email": "doc@example.com"},
                "an owner": {"email": "emmett@example.com", "role": "owner"},
            }
        ),
    )
    def create(self, request: Request, slug: str) -> Response:
        app = self.find_app(slug)
        if self.caller.is_restricted:
            raise Forbidden("A key with limits can't invite members, who have none.")
        given = read_body_as(MemberSerializer, request)
        invitation = invite_member(app=app, **given, now=self.now)
        return Response({"data": MemberSerializer.render(member_of(invitation))}, status=201)

    @extend_schema(
        summary="Remove a member or an invitation",
        description="The person's account stays, with its other apps. 409 `in_use` for the last"
        " owner.",
        parameters=parameters(path=SLUG),
    )
    def destroy(self, request: Request, slug: str, member_id: uuid.UUID) -> Response:
        app = self.find_app(slug)
        member = app.memberships.filter(account_id=member_id).first()
        invitation = None if member else app.invitations.open().filter(id=member_id).first()
        if member:
            remove_member(member)
        elif invitation:
            revoke_invitation(invitation, now=self.now)
        else:
            raise NotFound("Member")
        return Response(status=204)
