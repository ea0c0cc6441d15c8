"""Endpoints of projects and their resources."""

import uuid
from collections.abc import Collection
from typing import Any

from rest_framework.response import Response

from apps_config.endpoints import TenantView
from availability.filters import (
    PROJECT_SEARCH,
    apply_search,
)
from availability.models import Project, Resource
from availability.records import (
    PROJECT_INCLUDES,
    RESOURCE_INCLUDES,
    project_record,
    resource_record,
    with_project_rows,
    with_resource_includes,
)
from availability.schemas import PROJECT, PROJECT_EXAMPLE, RESOURCE, RESOURCE_EXAMPLE
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
from availability.views.scoped import BY_NAME, CHANGES, RESOURCE_INCLUDE, found
from scheduling.api.bodies import read_body_as, read_values_as
from scheduling.api.components import ID
from scheduling.api.ordering import ORDER_NAMES, UPDATED_SINCE, order_query
from scheduling.api.pagination import PAGE_NAMES
from scheduling.api.schema import described, include_of, one, page_of, search_of

PROJECT_INCLUDE = {"include": include_of(PROJECT_INCLUDES)}


_IDS = {"type": "array", "maxItems": MAX_RESOURCES, "items": ID}
RESOURCE_IDS = {
    "anyOf": [
        {"type": "object", "required": ["resources"], "properties": {"resources": _IDS}},
        _IDS,
    ]
}


class ProjectScopedView(TenantView):
    def projects(self) -> Any:
        return Project.objects.for_app(self.app)

    def find_project(self, project_id: uuid.UUID) -> Project:
        return found(self.projects().filter(id=project_id).first(), "Project")

    def includes(self) -> tuple[str, ...]:
        """Read before anything is written: a refused request leaves nothing behind."""
        return self.query.include(PROJECT_INCLUDES)

    def answer_project(
        self, project_id: uuid.UUID, includes: Collection[str] = (), status: int = 200
    ) -> Response:
        row = found(with_project_rows(self.projects()).filter(id=project_id).first(), "Project")
        return Response({"data": project_record(row, includes)}, status=status)


class ProjectsView(ProjectScopedView):
    paginated = True
    query_names = {"GET": (*CHANGES, "include"), "POST": ("include",)}

    @described(
        summary="List projects",
        response=page_of(PROJECT),
        query={
            "search": search_of(PROJECT_SEARCH, "slug:check-up"),
            **PROJECT_INCLUDE,
            **order_query(BY_NAME),
            "updated_since": UPDATED_SINCE,
        },
    )
    def get(self, request: Any) -> Response:
        includes = self.includes()
        terms = self.query.search(PROJECT_SEARCH)
        rows = self.listed(apply_search(self.projects(), terms, PROJECT_SEARCH), BY_NAME)
        rows = with_project_rows(rows)
        return self.list_page(request, rows, lambda row: project_record(row, includes))

    @described(
        summary="Make a project",
        description="The slug is made from the name where none is given; 409 `already_exists`"
        " where it is taken.",
        request=NewProjectSerializer,
        response=one(PROJECT),
        status=201,
        query=PROJECT_INCLUDE,
        request_examples={
            "a check-up": {
                key: PROJECT_EXAMPLE[key]
                for key in ("name", "resources", "availability", "availability_constraints")
            }
        },
    )
    def post(self, request: Any) -> Response:
        includes = self.includes()
        given = read_body_as(NewProjectSerializer, request)
        project = create_project(app=self.app, given=given)
        return self.answer_project(project.id, includes, 201)


class ProjectView(ProjectScopedView):
    query_names = {"GET": ("include",), "PUT": ("include",)}

    @described(summary="A project", response=one(PROJECT), query=PROJECT_INCLUDE)
    def get(self, request: Any, project_id: uuid.UUID) -> Response:
        return self.answer_project(project_id, self.includes())

    @described(
        summary="Change a project",
        description="Objects are merged key by key, null removes one; lists are replaced whole.",
        request=ProjectSerializer,
        response=one(PROJECT),
        query=PROJECT_INCLUDE,
        request_examples={"a buffer": {"availability": {"buffer": "10 minutes"}}},
    )
    def put(self, request: Any, project_id: uuid.UUID) -> Response:
        includes = self.includes()
        project = self.find_project(project_id)
        change_project(project, read_body_as(ProjectSerializer, request, project=project))
        return self.answer_project(project_id, includes)

    @described(
        summary="Remove a project",
        description="409 `in_use` while bookings of it are not completed. Its slug is free again.",
        status=204,
    )
    def delete(self, request: Any, project_id: uuid.UUID) -> Response:
        delete_project(self.find_project(project_id), now=self.now)
        return Response(status=204)


MEMBERS = (*PAGE_NAMES, *ORDER_NAMES, "updated_since")
BY_POSITION = {"position": "project_resources__position", **BY_NAME}


class ProjectResourcesView(ProjectScopedView):
    paginated = True
    query_names = {"GET": (*MEMBERS, "include"), "PUT": ("include",), "POST": ("include",)}

    @described(
        summary="The resources of a project, in its order",
        response=page_of(RESOURCE),
        query={
            **RESOURCE_INCLUDE,
            **order_query(BY_POSITION),
            "updated_since": UPDATED_SINCE,
        },
    )
    def get(self, request: Any, project_id: uuid.UUID) -> Response:
        includes = self.query.include(RESOURCE_INCLUDES)
        rows = Resource.objects.for_app(self.app).filter(
            project_resources__project=self.find_project(project_id)
        )
        rows = self.listed(rows, BY_POSITION, "position", ascending=True)
        rows = with_resource_includes(rows, includes)
        return self.list_page(request, rows, lambda row: resource_record(row, includes))

    @described(
        summary="Set the resources of a project",
        description="In the order of preference: a bare list of ids, or under `resources`.",
        request=RESOURCE_IDS,
        response=one(PROJECT),
        query=PROJECT_INCLUDE,
        request_examples={
            "as an object": {"resources": [RESOURCE_EXAMPLE["id"]]},
            "as a list": [RESOURCE_EXAMPLE["id"]],
        },
    )
    def put(self, request: Any, project_id: uuid.UUID) -> Response:
        includes = self.includes()
        project = self.find_project(project_id)
        body = request.data
        given = {"resources": body} if isinstance(body, list) else body
        ids = read_values_as(ResourceIdsSerializer, given)["resources"]
        set_project_resources(project, ids)
        return self.answer_project(project_id, includes)

    @described(
        summary="Add a resource to a project",
        description="As the last one; what is there already stays where it is.",
        request=ResourceIdSerializer,
        response=one(PROJECT),
        status=201,
        query=PROJECT_INCLUDE,
        request_examples={"one": {"resource_id": RESOURCE_EXAMPLE["id"]}},
    )
    def post(self, request: Any, project_id: uuid.UUID) -> Response:
        includes = self.includes()
        project = self.find_project(project_id)
        add_project_resource(project, read_body_as(ResourceIdSerializer, request)["resource_id"])
        return self.answer_project(project_id, includes, 201)


class ProjectResourceView(ProjectScopedView):
    @described(
        summary="Take a resource out of a project",
        description="The resource itself stays, and so do its bookings.",
        status=204,
    )
    def delete(self, request: Any, project_id: uuid.UUID, resource_id: uuid.UUID) -> Response:
        remove_project_resource(self.find_project(project_id), resource_id)
        return Response(status=204)
