"""Endpoints of projects and their resources."""

import uuid
from collections.abc import Collection
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps_config.idempotent_actions import secret_response
from availability.models import Project, Resource
from availability.public_access import visible_projects
from availability.serializers.projects import (
    PROJECT_EXAMPLE,
    PROJECT_INCLUDES,
    ProjectSerializer,
    ResourceIdSerializer,
    ResourceIdsSerializer,
    with_project_rows,
)
from availability.serializers.resources import (
    RESOURCE_EXAMPLE,
    RESOURCE_INCLUDES,
    ResourceSerializer,
    with_resource_includes,
)
from availability.services import (
    add_project_resource,
    change_project,
    create_project,
    delete_project,
    remove_project_resource,
    set_project_resources,
)
from availability.views.base_views import (
    BY_EXTERNAL_ID,
    BY_NAME,
    EXTERNAL_ID,
    RESOURCE_INCLUDE,
    ExternalIdViewSet,
)
from common.api.search_conditions import PROJECT_SEARCH
from common.api.serializers import read_body_as, read_values_as
from common.api.views import found_or_404
from common.errors import Forbidden
from common.openapi.generator import named_examples, parameters
from common.openapi.parameters import include_of

PROJECT_INCLUDE = {
    "include": include_of(
        PROJECT_INCLUDES,
        note="payment_key needs a server key or an owner's access token, else 403.",
    )
}


# What decides which resources of the app a project has.
RESOURCE_FIELDS = frozenset({"resources", "requires", "steps"})


class ProjectViewSet(ExternalIdViewSet):
    serializer_class = ProjectSerializer
    lookup_url_kwarg = "project_id"
    list_actions = frozenset({"list", "list_resources"})
    search_fields = PROJECT_SEARCH
    search_example = "slug:check-up"
    ordering_fields = BY_NAME

    def get_queryset(self) -> QuerySet[Project]:
        return visible_projects(self.app, self.caller)

    @extend_schema(
        summary="List projects",
        parameters=parameters(query=PROJECT_INCLUDE),
    )
    def list(self, request: Request) -> Response:
        includes = self.includes()
        rows = with_project_rows(self.filter_queryset(self.get_queryset()), includes)
        return self.list_page(
            request, rows, lambda row: ProjectSerializer.render(row, include=includes)
        )

    @extend_schema(
        summary="Create a project",
        description="Without a slug, the name becomes the slug. 409 `already_exists` if the slug"
        " is taken.",
        parameters=parameters(query=PROJECT_INCLUDE),
        examples=named_examples(
            request={
                "a check-up": {
                    key: PROJECT_EXAMPLE[key]
                    for key in ("name", "resources", "availability", "availability_constraints")
                }
            }
        ),
    )
    def create(self, request: Request) -> Response:
        includes = self.includes()
        project = create_project(app=self.app, given=self.read_given(request, None))
        return self.answer_project(project.id, includes, 201)

    @extend_schema(
        summary="A project",
        parameters=parameters(query=PROJECT_INCLUDE),
    )
    def retrieve(self, request: Request, project_id: uuid.UUID) -> Response:
        return self.answer_project(project_id, self.includes())

    @extend_schema(
        summary="Change a project",
        description="Objects are merged key by key, and null removes a key. Lists are replaced.",
        parameters=parameters(query=PROJECT_INCLUDE),
        examples=named_examples(request={"a buffer": {"availability": {"buffer": "10 minutes"}}}),
    )
    def update(self, request: Request, project_id: uuid.UUID) -> Response:
        includes = self.includes()
        project = self.get_object()
        given = self.read_given(request, project)
        if self.caller.projects is not None and not RESOURCE_FIELDS.isdisjoint(given):
            raise Forbidden("A key with `projects` can't change which resources a project has.")
        # It could take the id of another project.
        id_changes = given.get("external_id", project.external_id) != project.external_id
        if self.caller.projects is not None and id_changes:
            raise Forbidden("A key with `projects` can't change the external_id.")
        change_project(project, given)
        return self.answer_project(project_id, includes)

    @extend_schema(
        operation_id="putProjectByExternalId",
        summary="Change the project with an external id, or create it",
        description="Changes it as PUT /v2/projects/:id; without one, creates it as POST"
        " /v2/projects: 201.",
        request=ProjectSerializer(partial=True),
        responses={200: ProjectSerializer, 201: ProjectSerializer},
        parameters=parameters(path=EXTERNAL_ID, query=PROJECT_INCLUDE),
        examples=named_examples(
            request={"a check-up": {key: PROJECT_EXAMPLE[key] for key in ("name", "resources")}}
        ),
    )
    @action(detail=False, methods=["put", "patch"], url_path=BY_EXTERNAL_ID)
    def put_by_external_id(self, request: Request, external_id: str) -> Response:
        includes = self.includes()
        project_id, status = self.put_row(request, external_id)
        return self.answer_project(project_id, includes, status)

    def read_given(self, request: Request, row: Project | None) -> dict[str, Any]:
        given = read_body_as(ProjectSerializer, request, partial=row is not None, project=row)
        self.caller.check_receivers(given.get("event_notifications"))
        return given

    def create_row(self, given: dict[str, Any]) -> Project:
        return create_project(app=self.app, given=given)

    def change_row(self, row: Project, given: dict[str, Any]) -> None:
        change_project(row, given)

    @extend_schema(
        summary="Delete a project",
        description="409 `in_use` while the project has bookings that are not completed. The slug"
        " and the external id become free.",
    )
    def destroy(self, request: Request, project_id: uuid.UUID) -> Response:
        delete_project(self.get_object(), now=self.now)
        return Response(status=204)

    @extend_schema(
        summary="The resources of a project, in its order",
        responses={200: ResourceSerializer},
        parameters=parameters(query=RESOURCE_INCLUDE),
    )
    @action(
        detail=True,
        url_path="resources",
        search_fields=None,
        ordering_fields={"position": "project_resources__position", **BY_NAME},
        ordering="position",
    )
    def list_resources(self, request: Request, project_id: uuid.UUID) -> Response:
        includes = self.query.include(RESOURCE_INCLUDES)
        of_project = Resource.objects.for_app(self.app).filter(
            project_resources__project=self.get_object()
        )
        rows = with_resource_includes(self.filter_queryset(of_project), includes)
        return self.list_page(
            request, rows, lambda row: ResourceSerializer.render(row, include=includes)
        )

    @extend_schema(
        operation_id="setProjectResources",
        summary="Set the resources of a project",
        description="The ids in the order of preference, as a list or as an object with"
        " `resources`.",
        request=ResourceIdsSerializer,
        responses={200: ProjectSerializer},
        parameters=parameters(query=PROJECT_INCLUDE),
        examples=named_examples(
            request={
                "as an object": {"resources": [RESOURCE_EXAMPLE["id"]]},
                "as a list": [RESOURCE_EXAMPLE["id"]],
            }
        ),
    )
    @list_resources.mapping.put
    def set_resources(self, request: Request, project_id: uuid.UUID) -> Response:
        includes = self.includes()
        project = self.get_object()
        body = request.data
        given = {"resources": body} if isinstance(body, list) else body
        ids = read_values_as(ResourceIdsSerializer, given)["resources"]
        set_project_resources(project, ids)
        return self.answer_project(project_id, includes)

    @extend_schema(
        operation_id="addProjectResource",
        summary="Add a resource to a project",
        description="The resource is added at the end. A resource of the project keeps its"
        " position.",
        request=ResourceIdSerializer,
        responses={201: ProjectSerializer},
        parameters=parameters(query=PROJECT_INCLUDE),
        examples=named_examples(request={"one": {"resource_id": RESOURCE_EXAMPLE["id"]}}),
    )
    @list_resources.mapping.post
    def add_resource(self, request: Request, project_id: uuid.UUID) -> Response:
        includes = self.includes()
        project = self.get_object()
        add_project_resource(project, read_body_as(ResourceIdSerializer, request)["resource_id"])
        return self.answer_project(project_id, includes, 201)

    @extend_schema(
        operation_id="removeProjectResource",
        summary="Remove a resource from a project",
        description="The resource and its bookings stay.",
        responses={204: None},
    )
    @action(detail=True, methods=["delete"], url_path="resources/<uuid:resource_id>")
    def remove_resource(
        self, request: Request, project_id: uuid.UUID, resource_id: uuid.UUID
    ) -> Response:
        remove_project_resource(self.get_object(), resource_id)
        return Response(status=204)

    def includes(self) -> tuple[str, ...]:
        """Read it before anything is written, so that a refused request changes nothing.

        Raises Forbidden if the request may not read what it includes, and Invalid if the response
        would be stored with a secret.
        """
        includes = self.query.include(PROJECT_INCLUDES)
        if "payment_key" in includes:
            if not self.acts_as_owner:
                raise Forbidden("Only server keys and owners can read the key of payment links.")
            if self.keeps_answer:
                raise secret_response()
        return includes

    def answer_project(
        self, project_id: uuid.UUID, includes: Collection[str] = (), status: int = 200
    ) -> Response:
        rows = with_project_rows(self.get_queryset(), includes)
        row = found_or_404(rows.filter(id=project_id).first(), "Project")
        return Response({"data": ProjectSerializer.render(row, include=includes)}, status=status)
