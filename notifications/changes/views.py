"""The endpoint of changes."""

from django.db.models import Exists, OuterRef, Q
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps_config.base_views import TenantViewSet
from apps_config.changes import Position, read_changes
from apps_config.models import Change
from apps_config.permissions import ACCESS, OUTSIDE_PROJECTS
from bookings.models import Booking
from common.api.pagination import read_number
from common.errors import Forbidden, Invalid
from common.openapi.components import list_of, text_response
from common.openapi.generator import envelope, parameters
from notifications.changes.records import listed_changes
from notifications.changes.serializers import ListedChangeSerializer

DEFAULT_LIMIT, MAX_LIMIT = 100, 1000
CHANGES = envelope(
    "ChangesPage",
    {
        "data": list_of(ListedChangeSerializer.schema),
        "next_cursor": text_response(
            "The cursor of the next request.", examples=["10482-93f1c2d46b7a0e58"]
        ),
        "has_more": {
            "type": "boolean",
            "description": "Whether the next request gets more at once.",
            "examples": [False],
        },
    },
)
QUERY = {
    "cursor": text_response(
        "`next_cursor` of the last response, or `cursor` of a change or of a webhook call. Absent:"
        " the present moment, and no changes."
    ),
    "types": text_response(
        f"Only these, separated by commas: {', '.join(Change.TYPES)}. 403 for one that the key may"
        " not read.",
        examples=["booking,delivery"],
    ),
    "limit": {
        "type": "integer",
        "description": "The most changes of a response.",
        "minimum": 1,
        "maximum": MAX_LIMIT,
        "default": DEFAULT_LIMIT,
    },
}


# Type -> who may read such an object.
READ_ACCESS = {
    "booking": ACCESS["bookings"]["retrieve"],
    "event": ACCESS["events"]["retrieve"],
    "resource": ACCESS["resources"]["retrieve"],
    "project": ACCESS["projects"]["retrieve"],
    "schedule": ACCESS["schedules"]["retrieve"],
    "calendar": ACCESS["calendars"]["retrieve"],
    "customer": ACCESS["customers"]["list"],
    "webhook": ACCESS["webhooks"]["retrieve"],
    "delivery": ACCESS["deliveries"]["retrieve"],
}


class ChangeViewSet(TenantViewSet):
    """The feed of an app's changes."""

    tag = "changes"
    list_actions = frozenset()  # no filters or pages of their own
    etag_actions = frozenset({"list"})
    errors = (410,)

    @extend_schema(
        operation_id="listChanges",
        summary="List the changes since a cursor",
        description="Every change of bookings, events, resources, projects, schedules, calendars,"
        " customers of bookings, and webhooks, and every end of a delivery: each once, in an order"
        " that never changes. Changes are listed for 30 days, then 410 `cursor_expired`; also if a"
        " backup was restored that lacks them. Poll with `If-None-Match`: without changes, 304."
        "\n\nThe deletion of a resource, calendar or booking stands for that of its calendars,"
        " events and customers, which have no changes of their own. A key with limits gets the"
        " changes of what it may read. `has_more` can be true although"
        " `data` is short or empty: a request reads a part of the changes.",
        responses={200: CHANGES},
        parameters=parameters(query=QUERY),
    )
    def list(self, request: Request) -> Response:
        cursor = self.query.text("cursor")
        part = read_changes(
            self.app,
            Position.read(cursor) if cursor is not None else None,
            types=self._types(),
            visible=self._visible(),
            limit=read_number(request, "limit", DEFAULT_LIMIT, MAX_LIMIT),
        )
        rows = listed_changes(
            self.app,
            part.changes,
            self.zone,
            people=self.caller.reads_people,
            links=self.caller.gets_customer_links,
        )
        return Response(
            {
                "data": [ListedChangeSerializer.render(row) for row in rows],
                "next_cursor": str(part.end),
                "has_more": part.has_more,
            }
        )

    def _types(self) -> tuple[str, ...]:
        """Return the types that the request asks for; by default those that the key may read."""
        asked = self.query.text("types")
        if asked is None:
            return tuple(kind for kind in Change.TYPES if self._may_read(kind))
        types = tuple(asked.split(","))
        if not {*types} <= {*Change.TYPES}:
            raise Invalid.at("types", f"Must be some of {', '.join(Change.TYPES)}.")
        for kind in types:
            self.caller.check_scopes(*READ_ACCESS[kind].scopes)
            if not self._may_read(kind):
                raise Forbidden(OUTSIDE_PROJECTS)
        return types

    def _may_read(self, kind: str) -> bool:
        access = READ_ACCESS[kind]
        in_projects = self.caller.projects is None or access.by_project
        return in_projects and self.caller.has_scopes(*access.scopes)

    def _visible(self) -> Q | None:
        """Return the changes of the key's projects and of their bookings; None: all changes."""
        projects = self.caller.projects
        if projects is None:
            return None
        of_projects = Booking.objects.filter(id=OuterRef("object_id"), project__in=projects)
        return Q(type="project", object_id__in=projects) | Q(Exists(of_projects), type="booking")
