"""Endpoints of schedules."""

import uuid

from django.db.models import QuerySet
from rest_framework.response import Response

from apps_config.base_views import TenantView
from availability.models import Schedule
from availability.records import ScheduleRecord
from availability.serializers.resources import NewScheduleSerializer, ScheduleSerializer
from availability.services import change_schedule, create_schedule, delete_schedule
from availability.views.base_views import BY_NAME
from common.api.ordering import order_query_parameters
from common.api.search_conditions import SCHEDULE_SEARCH, filter_by_search
from common.api.validated_input import read_body_as
from common.api.views import ApiRequest, found_or_404
from common.openapi.generator import data_object, describe_endpoint, page_of, search_of


class ScheduleScopedView(TenantView):
    tag = "schedules"

    def schedules(self) -> QuerySet[Schedule]:
        return Schedule.objects.for_app(self.app)

    def find_schedule(self, schedule_id: uuid.UUID) -> Schedule:
        return found_or_404(self.schedules().filter(id=schedule_id).first(), "Schedule")


class SchedulesView(ScheduleScopedView):
    paginated = True

    @describe_endpoint(
        summary="List schedules",
        response=page_of(ScheduleRecord),
        query={
            "search": search_of(SCHEDULE_SEARCH, "name:Practice*"),
            **order_query_parameters(BY_NAME),
        },
    )
    def get(self, request: ApiRequest) -> Response:
        terms = self.query.search(SCHEDULE_SEARCH)
        rows = self.filter_and_order(
            filter_by_search(self.schedules(), terms, SCHEDULE_SEARCH), BY_NAME
        )
        return self.list_page(request, rows, ScheduleRecord.of)

    @describe_endpoint(
        summary="Create a schedule",
        description="Rules that several resources share: set `schedule_id` of each resource. The"
        " resource's own allow and block rules narrow the schedule's time; its `open_period`,"
        " `open_recurring` and `replace_day` change it.",
        request=NewScheduleSerializer,
        response=data_object(ScheduleRecord),
        status=201,
        request_examples={
            "practice hours": {
                "name": "Practice hours",
                "availability_constraints": [
                    {"allow_weekdays": {}},
                    {"allow_hours": {"start": 9, "end": 17}},
                ],
            }
        },
    )
    def post(self, request: ApiRequest) -> Response:
        schedule = create_schedule(app=self.app, given=read_body_as(NewScheduleSerializer, request))
        return Response({"data": ScheduleRecord.of(schedule)}, status=201)


class ScheduleView(ScheduleScopedView):
    @describe_endpoint(summary="A schedule", response=data_object(ScheduleRecord))
    def get(self, request: ApiRequest, schedule_id: uuid.UUID) -> Response:
        return Response({"data": ScheduleRecord.of(self.find_schedule(schedule_id))})

    @describe_endpoint(
        summary="Change a schedule",
        description="`availability_constraints` are replaced. The change applies at once to all"
        " resources of the schedule; existing bookings stay.",
        request=ScheduleSerializer,
        response=data_object(ScheduleRecord),
        request_examples={
            "opening hours": {
                "availability_constraints": [
                    {"block_weekends": {}},
                    {"allow_hours": {"start": 9, "end": "17:30"}},
                ]
            }
        },
    )
    def put(self, request: ApiRequest, schedule_id: uuid.UUID) -> Response:
        schedule = self.find_schedule(schedule_id)
        schedule = change_schedule(schedule, read_body_as(ScheduleSerializer, request))
        return Response({"data": ScheduleRecord.of(schedule)})

    @describe_endpoint(
        summary="Delete a schedule",
        description="409 `in_use` while a resource has the schedule.",
        status=204,
    )
    def delete(self, request: ApiRequest, schedule_id: uuid.UUID) -> Response:
        delete_schedule(self.find_schedule(schedule_id))
        return Response(status=204)
