"""Endpoints for the configuration of booking pages in browsers."""

import uuid

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps_config.base_views import PublicView, TenantViewSet
from apps_config.services import public_key
from availability.graph_names import SEAT_GRAPHS
from availability.models import Project
from availability.payment_links import lacks_payment_link
from availability.public_access import visible_projects
from availability.public_project import (
    EmbeddedPageSerializer,
    HostedPageSerializer,
    public_project_record,
)
from availability.serializers.projects import PROJECT_EXAMPLE, with_project_rows
from common.api.views import found_or_404
from common.errors import NotFound
from common.openapi.components import TEXT, text_response
from common.openapi.generator import parameters

FRESH_FOR = 60  # seconds that a browser may cache the answer
CONFIGURATION = (
    "The configuration of a booking page. Empty values are omitted. `customer_fields` contains at"
    " least name and e-mail. `ui` contains at least `availability_view`, `time_date_format`,"
    " `show_timezone_helper`, and the texts `submit_button` and `success_message` in"
    " `localization`; the project's values override these defaults. The default of"
    " `time_date_format` is `12h-mdy-sun` for the language `en-US`, else `24h-dmy-mon`."
    " `translations` has the project's texts in further languages."
)
CACHE_HEADERS = {"Cache-Control": TEXT | {"description": f"Fresh for {FRESH_FOR} seconds."}}


class EmbeddedPageViewSet(TenantViewSet):
    serializer_class = EmbeddedPageSerializer
    lookup_url_kwarg = "project_id"
    tag = "projects"

    @extend_schema(
        operation_id="retrieveEmbeddedPage",
        summary="Get the configuration of an embedded page",
        description=CONFIGURATION,
        parameters=parameters(headers=CACHE_HEADERS),
    )
    def retrieve(self, request: Request, project_id: uuid.UUID) -> Response:
        rows = with_project_rows(visible_projects(self.app, self.caller)).select_related("app")
        project = found_or_404(rows.filter(id=project_id).first(), "Project")
        record = public_project_record(project)
        return Response(
            {"data": record}, headers={"Cache-Control": f"private, max-age={FRESH_FOR}"}
        )


class HostedPageView(PublicView):
    operation_ids = {"GET": "retrieveHostedPage"}
    tag = "projects"
    errors = (400, 404, 406, 422, 429)
    has_etag = True

    @extend_schema(
        summary="Get the configuration of a hosted page",
        description=f"{CONFIGURATION} Needs no key. `app_key` is a widget key for this project"
        " alone; if there is none, the service creates one. 404 for a project that is not"
        " published, and for a project with payment but without `settings.pay_url` or"
        " `booking.payment_url`: its page takes no bookings.",
        responses={200: HostedPageSerializer},
        parameters=parameters(
            path={
                "project_slug": text_response(
                    "The project's slug.", examples=[PROJECT_EXAMPLE["slug"]]
                )
            },
            headers=CACHE_HEADERS,
        ),
    )
    def get(self, request: Request, project_slug: str) -> Response:
        rows = Project.objects.filter(deleted_at=None, app__archived_at=None, slug=project_slug)
        project = found_or_404(with_project_rows(rows).select_related("app").first(), "Project")
        # Own pages of clients may take the payments of seats themselves.
        is_seat = project.booking.get("graph") in SEAT_GRAPHS
        if not project.is_published or (lacks_payment_link(project) and not is_seat):
            raise NotFound("Project")
        self.app = project.app
        key = public_key(project.app, project.id, now=self.now)
        record = public_project_record(project) | {"app_key": key}
        return Response({"data": record}, headers={"Cache-Control": f"public, max-age={FRESH_FOR}"})
