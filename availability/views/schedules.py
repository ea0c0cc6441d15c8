"""Endpoints of schedules."""

import uuid

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps_config.base_views import TenantViewSet
from availability.models import Schedule
from availability.serializers.resources import ScheduleSerializer
from availability.services import change_schedule, create_schedule, delete_schedule
from availability.views.base_views import BY_NAME
from common.api.search_conditions import SCHEDULE_SEARCH
from common.api.serializers import read_body_as
from common.openapi.generator import named_examples


class ScheduleViewSet(TenantViewSet):
    serializer_class = ScheduleSerializer
    lookup_url_kwarg = "schedule_id"
    search_fields = SCHEDULE_SEARCH
    search_example = "name:Practice*"
    ordering_fields = BY_NAME

    def get_queryset(self) -> QuerySet[Schedule]:
        return Schedule.objects.for_app(self.app)

    @extend_schema(summary="List schedules")
    def list(self, request: Request) -> Response:
        rows = self.filter_queryset(self.get_queryset())
        return self.list_page(request, rows, ScheduleSerializer.render)

    @extend_schema(
        summary="Create a schedule",
        description="Rules that several resources share: set `schedule_id` of each resource. The"
        " resource's own allow and block rules narrow the schedule's time; its `open_period`,"
        " `open_recurring` and `replace_day` change it.",
        examples=named_examples(
            request={
                "practice hours": {
                    "name": "Practice hours",
                    "availability_constraints": [
                        {"allow_weekdays": {}},
                        {"allow_hours": {"start": 9, "end": 17}},
                    ],
                }
            }
        ),
    )
    def create(self, request: Request) -> Response:
        schedule = create_schedule(app=self.app, given=read_body_as(ScheduleSerializer, request))
        return Response({"data": ScheduleSerializer.render(schedule)}, status=201)

    @extend_schema(summary="A schedule")
    def retrieve(self, request: Request, schedule_id: uuid.UUID) -> Response:
        return Response({"data": ScheduleSerializer.render(self.get_object())})

    @extend_schema(
        summary="Change a schedule",
        description="`availability_constraints` are replaced. The change applies at once to all"
        " resources of the schedule; existing bookings stay.",
        examples=named_examples(
            request={
                "opening hours": {
                    "availability_constraints": [
                        {"block_weekends": {}},
                        {"allow_hours": {"start": 9, "end": "17:30"}},
                    ]
                }
            }
        ),
    )
    def update(self, request: Request, schedule_id: uuid.UUID) -> Response:
        schedule = self.get_object()
        schedule = change_schedule(
            schedule, read_body_as(ScheduleSerializer, request, partial=True)
        )
        return Response({"data": ScheduleSerializer.render(schedule)})

    @extend_schema(
        summary="Delete a schedule",
        description="409 `in_use` while a resource has the schedule.",
    )
    def destroy(self, request: Request, schedule_id: uuid.UUID) -> Response:
        delete_schedule(self.get_object())
        return Response(status=204)
