"""Endpoints of projects and their resources."""

import uuid
from collections.abc import Collection

from django.db.models import QuerySet
from rest_framework.response import Response

from apps_config.base_views import TenantView, secret_response
from availability.models import Project, Resource
from availability.records import (
    PROJECT_EXAMPLE,
    PROJECT_INCLUDES,
    RESOURCE_EXAMPLE,
    RESOURCE_INCLUDES,
    ProjectRecord,
    ResourceRecord,
    with_project_rows,
    with_resource_includes,
)
from availability.serializers.fields import MAX_RESOURCES
from availability.serializers.projects import (
    NewProjectSerializer,
    ProjectSerializer,
    ResourceIdSerializer,
    ResourceIdsSerializer,
)
from availability.services import (
    add_project_resource,
    change_project,
    create_project,
    delete_project,
    remove_project_resource,
    set_project_resources,
)
from availability.views.base_views import BY_NAME, RESOURCE_INCLUDE
from common.api.ordering import order_query_parameters
from common.api.search_conditions import PROJECT_SEARCH, filter_by_search
from common.api.validated_input import read_body_as, read_values_as
from common.api.views import ApiRequest, found_or_404
from common.errors import Forbidden
from common.openapi.components import ID
from common.openapi.generator import data_object, describe_endpoint, include_of, page_of, search_of

PROJECT_INCLUDE = {
    "include": include_of(
        PROJECT_INCLUDES,
        note="payment_key needs a server key or an owner's access token, else 403.",
    )
}


_IDS = {"type": "array", "maxItems": MAX_RESOURCES, "items": ID}
RESOURCE_IDS = {
    "anyOf": [
        {"type": "object", "required": ["resources"], "properties": {"resources": _IDS}},
        _IDS,
    ]
}


class ProjectScopedView(TenantView):
    def projects(self) -> QuerySet[Project]:
        return Project.objects.for_app(self.app)

    def find_project(self, project_id: uuid.UUID) -> Project:
        return found_or_404(self.projects().filter(id=project_id).first(), "Project")

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
        rows = with_project_rows(self.projects(), includes)
        row = found_or_404(rows.filter(id=project_id).first(), "Project")
        return Response({"data": ProjectRecord.of(row, include=includes)}, status=status)


class ProjectsView(ProjectScopedView):
    paginated = True

    @describe_endpoint(
        summary="List projects",
        response=page_of(ProjectRecord),
        query={
            "search": search_of(PROJECT_SEARCH, "slug:check-up"),
            **PROJECT_INCLUDE,
            **order_query_parameters(BY_NAME),
        },
    )
    def get(self, request: ApiRequest) -> Response:
        includes = self.includes()
        terms = self.query.search(PROJECT_SEARCH)
        rows = self.filter_and_order(
            filter_by_search(self.projects(), terms, PROJECT_SEARCH), BY_NAME
        )
        rows = with_project_rows(rows, includes)
        return self.list_page(request, rows, lambda row: ProjectRecord.of(row, include=includes))

    @describe_endpoint(
        summary="Create a project",
        description="Without a slug, the name becomes the slug. 409 `already_exists` if the slug"
        " is taken.",
        request=NewProjectSerializer,
        response=data_object(ProjectRecord),
        status=201,
        query=PROJECT_INCLUDE,
        request_examples={
            "a check-up": {
                key: PROJECT_EXAMPLE[key]
                for key in ("name", "resources", "availability", "availability_constraints")
            }
        },
    )
    def post(self, request: ApiRequest) -> Response:
        includes = self.includes()
        given = read_body_as(NewProjectSerializer, request)
        project = create_project(app=self.app, given=given)
        return self.answer_project(project.id, includes, 201)


class ProjectView(ProjectScopedView):
    @describe_endpoint(
        summary="A project", response=data_object(ProjectRecord), query=PROJECT_INCLUDE
    )
    def get(self, request: ApiRequest, project_id: uuid.UUID) -> Response:
        return self.answer_project(project_id, self.includes())

    @describe_endpoint(
        summary="Change a project",
        description="Objects are merged key by key, and null removes a key. Lists are replaced.",
        request=ProjectSerializer,
        response=data_object(ProjectRecord),
        query=PROJECT_INCLUDE,
        request_examples={"a buffer": {"availability": {"buffer": "10 minutes"}}},
    )
    def put(self, request: ApiRequest, project_id: uuid.UUID) -> Response:
        includes = self.includes()
        project = self.find_project(project_id)
        change_project(project, read_body_as(ProjectSerializer, request, project=project))
        return self.answer_project(project_id, includes)

    @describe_endpoint(
        summary="Delete a project",
        description="409 `in_use` while the project has bookings that are not completed. The slug"
        " becomes free.",
        status=204,
    )
    def delete(self, request: ApiRequest, project_id: uuid.UUID) -> Response:
        delete_project(self.find_project(project_id), now=self.now)
        return Response(status=204)


BY_POSITION = {"position": "project_resources__position", **BY_NAME}


class ProjectResourcesView(ProjectScopedView):
    operation_ids = {"POST": "addProjectResource", "PUT": "setProjectResources"}
    paginated = True

    @describe_endpoint(
        summary="The resources of a project, in its order",
        response=page_of(ResourceRecord),
        query={
            **RESOURCE_INCLUDE,
            **order_query_parameters(BY_POSITION),
        },
    )
    def get(self, request: ApiRequest, project_id: uuid.UUID) -> Response:
        includes = self.query.include(RESOURCE_INCLUDES)
        of_project = Resource.objects.for_app(self.app).filter(
            project_resources__project=self.find_project(project_id)
        )
        rows = self.filter_and_order(of_project, BY_POSITION, "position", ascending=True)
        rows = with_resource_includes(rows, includes)
        return self.list_page(request, rows, lambda row: ResourceRecord.of(row, include=includes))

    @describe_endpoint(
        summary="Set the resources of a project",
        description="The ids in the order of preference, as a list or as an object with"
        " `resources`.",
        request=RESOURCE_IDS,
        body=ResourceIdsSerializer,
        response=data_object(ProjectRecord),
        query=PROJECT_INCLUDE,
        request_examples={
            "as an object": {"resources": [RESOURCE_EXAMPLE["id"]]},
            "as a list": [RESOURCE_EXAMPLE["id"]],
        },
    )
    def put(self, request: ApiRequest, project_id: uuid.UUID) -> Response:
        includes = self.includes()
        project = self.find_project(project_id)
        body = request.data
        given = {"resources": body} if isinstance(body, list) else body
        ids = read_values_as(ResourceIdsSerializer, given)["resources"]
        set_project_resources(project, ids)
        return self.answer_project(project_id, includes)

    @describe_endpoint(
        summary="Add a resource to a project",
        description="The resource is added at the end. A resource of the project keeps its"
        " position.",
        request=ResourceIdSerializer,
        response=data_object(ProjectRecord),
        status=201,
        query=PROJECT_INCLUDE,
        request_examples={"one": {"resource_id": RESOURCE_EXAMPLE["id"]}},
    )
    def post(self, request: ApiRequest, project_id: uuid.UUID) -> Response:
        includes = self.includes()
        project = self.find_project(project_id)
        add_project_resource(project, read_body_as(ResourceIdSerializer, request)["resource_id"])
        return self.answer_project(project_id, includes, 201)


class ProjectResourceView(ProjectScopedView):
    operation_ids = {"DELETE": "removeProjectResource"}

    @describe_endpoint(
        summary="Remove a resource from a project",
        description="The resource and its bookings stay.",
        status=204,
    )
    def delete(
        self, request: ApiRequest, project_id: uuid.UUID, resource_id: uuid.UUID
    ) -> Response:
        remove_project_resource(self.find_project(project_id), resource_id)
        return Response(status=204)
