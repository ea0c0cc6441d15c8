from django.urls import path

from availability.views import (
    availability_queries,
    events,
    projects,
    public_project,
    resources,
    schedules,
)
from common.api.router import ApiRouter

router = ApiRouter()
router.register("users", resources.ResourceViewSet, "resources")
router.register("resources", resources.ResourceViewSet, "resources")
router.register("schedules", schedules.ScheduleViewSet, "schedules")
router.register("events", events.EventViewSet, "events")
router.register("projects", projects.ProjectViewSet, "projects")
router.register("projects/embed", public_project.EmbeddedPageViewSet, "embedded-pages")
# Their actions have whole paths, such as /unavailable/slots.
router.register("", availability_queries.AvailabilityViewSet, "availability")
router.register("", availability_queries.FindtimeViewSet, "findtime")

urlpatterns = [
    path("projects/hosted/<str:project_slug>", public_project.HostedPageView.as_view()),
    *router.urls,
]
