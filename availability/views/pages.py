"""Endpoints that tell a page in a browser what it offers."""

import uuid
from typing import Any

from rest_framework.response import Response

from apps_config.endpoints import PublicView
from apps_config.services import public_key
from availability.models import Project
from availability.page_records import page_record
from availability.records import with_project_rows
from availability.schemas import EMBEDDED_PAGE, HOSTED_PAGE, PROJECT_EXAMPLE
from availability.views.projects import ProjectScopedView
from availability.views.scoped import found
from scheduling.api.components import TEXT, text_of
from scheduling.api.schema import described, one

FRESH_FOR = 60  # seconds in which a browser need not ask again
CONFIGURATION = (
    "What a booking page is made from. Keys with empty values are left out; `customer_fields` asks"
    " at least for name and e-mail; `ui.localization` has texts for `submit_button` and"
    " `success_message`, and the project's own win."
)
CACHE_HEADERS = {"Cache-Control": TEXT | {"description": f"Fresh for {FRESH_FOR} seconds."}}


class EmbeddedPageView(ProjectScopedView):
    tag = "projects"
    widget_methods = frozenset({"GET"})

    @described(
        summary="The configuration of a page that is embedded in a web site",
        description=CONFIGURATION,
        response=one(EMBEDDED_PAGE),
        headers=CACHE_HEADERS,
    )
    def get(self, request: Any, project_id: uuid.UUID) -> Response:
        rows = with_project_rows(self.projects()).filter(id=project_id)
        record = page_record(found(rows.first(), "Project"))
        return Response(
            {"data": record}, headers={"Cache-Control": f"private, max-age={FRESH_FOR}"}
        )


class HostedPageView(PublicView):
    tag = "projects"
    errors = (400, 404, 406, 422, 429)

    @described(
        summary="The configuration of a page of its own",
        description=f"{CONFIGURATION} Needs no key, and carries one: `app_key`, the newest widget"
        " key of the app that is valid; where there is none, one is made.",
        response=one(HOSTED_PAGE),
        path={"project_slug": text_of("Of the project.", examples=[PROJECT_EXAMPLE["slug"]])},
        headers=CACHE_HEADERS,
    )
    def get(self, request: Any, project_slug: str) -> Response:
        rows = Project.objects.filter(deleted_at=None, app__archived_at=None, slug=project_slug)
        project = found(with_project_rows(rows).select_related("app").first(), "Project")
        self.app = project.app
        record = page_record(project) | {"app_key": public_key(self.app, now=self.now)}
        return Response({"data": record}, headers={"Cache-Control": f"public, max-age={FRESH_FOR}"})
